//! The clients of one server: all in one thread, reading frames of one fixed length.
//!
//! Each message begins with the time at which it was sent, so latency needs no clocks to agree: publisher and readers
//! are one process. Every connection counts; when the least and the most are what was published, nothing was lost.

use super::{Outcome, process::Server, server::PUBLISH, stats::quantile};
use std::{
    cell::{Cell, RefCell},
    io::ErrorKind::WouldBlock,
    net::SocketAddr,
    rc::Rc,
    time::{Duration, Instant},
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpSocket, TcpStream},
    task::{LocalSet, spawn_local},
    time::{MissedTickBehavior, interval, sleep},
};

/// Digits of a message's time in nanoseconds.
const STAMP: usize = 20;

/// Most bytes of a server's frame before the digits.
const HEAD: usize = 4;

/// How long the last messages may take.
const DRAIN: Duration = Duration::from_secs(10);

/// How often the server's memory is looked at.
const LOOK: Duration = Duration::from_millis(2_500);

/// What clients do to a server.
#[derive(Debug, Clone)]
pub struct Load {
    /// Subscribers.
    pub sockets: usize,
    /// How many of them read nothing.
    pub stalled: usize,
    /// Bytes of a message, 126 to 65,535.
    pub payload: usize,
    /// Messages in a second.
    pub rate: u32,
    /// Before anything is measured.
    pub warm: Duration,
    /// While it is.
    pub window: Duration,
}

/// What came of it.
#[derive(Debug, Clone, Default)]
pub struct Measured {
    /// Messages that the publisher sent, and those of the window.
    pub published: u64,
    /// Deliveries in the window.
    pub deliveries: u64,
    /// Reads that brought them.
    pub reads: u64,
    /// CPU time of the server in the window.
    pub cpu: Duration,
    /// Length of the window.
    pub window: Duration,
    /// Microseconds from sending to reading, sorted, of the window.
    pub latencies: Vec<u32>,
    /// Messages of the connection that got the fewest, of those that read.
    pub least: u64,
    /// Of the one that got the most.
    pub most: u64,
    /// Resident memory of the server, at the start and every 2.5 s.
    pub resident: Vec<u64>,
}

impl Measured {
    /// Microseconds of the server's CPU for one delivery.
    #[must_use]
    pub fn cpu_per_delivery(&self) -> f64 {
        self.cpu.as_secs_f64() * 1e6 / (self.deliveries.max(1) as f64)
    }

    /// Deliveries in a second.
    #[must_use]
    pub fn per_second(&self) -> f64 {
        self.deliveries as f64 / self.window.as_secs_f64().max(1e-9)
    }

    /// Messages that one read brought: how much the server coalesced.
    #[must_use]
    pub fn per_read(&self) -> f64 {
        self.deliveries as f64 / (self.reads.max(1) as f64)
    }

    /// A quantile of the latency in milliseconds.
    #[must_use]
    pub fn latency(&self, per_mille: usize) -> f64 {
        f64::from(quantile(&self.latencies, per_mille)) / 1e3
    }

    /// Whether every reader got every message.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.least == self.published && self.most == self.published
    }
}

struct Shared {
    begun: Instant,
    stride: usize,
    measuring: Cell<bool>,
    deliveries: Cell<u64>,
    reads: Cell<u64>,
    latencies: RefCell<Vec<u32>>,
    scratch: RefCell<Vec<u8>>,
}

impl Shared {
    fn delivered(&self, stamp: &[u8]) {
        if !self.measuring.get() {
            return;
        }
        self.deliveries.set(self.deliveries.get() + 1);
        let sent = stamp.iter().fold(0, |n, digit| n * 10 + u64::from(digit.wrapping_sub(b'0')));
        let micros = (self.now().saturating_sub(sent)) / 1_000;
        self.latencies.borrow_mut().push(u32::try_from(micros).unwrap_or(u32::MAX));
    }

    fn now(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}

/// Loads a server and measures. Must run on a current-thread runtime.
///
/// # Errors
/// When the server refuses connections or ends.
pub async fn run(server: &Server, load: &Load) -> Outcome<Measured> {
    LocalSet::new().run_until(measure(server, load)).await
}

async fn measure(server: &Server, load: &Load) -> Outcome<Measured> {
    let shared = Rc::new(Shared {
        begun: Instant::now(),
        stride: HEAD + load.payload,
        measuring: Cell::new(false),
        deliveries: Cell::new(0),
        reads: Cell::new(0),
        latencies: RefCell::default(),
        scratch: RefCell::new(vec![0; 256 * 1_024]),
    });
    let mut counts = Vec::new();
    let mut stalled = Vec::new();
    for number in 0..load.sockets {
        if number < load.stalled {
            stalled.push(connect(&server.address, "/", Some(64 * 1_024)).await?);
            continue;
        }
        let stream = connect(&server.address, "/", None).await?;
        let count = Rc::new(Cell::new(0));
        counts.push(Rc::clone(&count));
        spawn_local(read(stream, Rc::clone(&shared), count));
    }
    let (published, stop) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(false)));
    let stream = connect(&server.address, PUBLISH, None).await?;
    sleep(Duration::from_millis(300)).await;
    let mut measured = Measured { resident: vec![server.resident()?], ..Measured::default() };
    let publisher = spawn_local(publish(
        stream,
        load.payload,
        load.rate,
        Rc::clone(&shared),
        Rc::clone(&published),
        Rc::clone(&stop),
    ));
    sleep(load.warm).await;
    let (from, cpu) = (Instant::now(), server.cpu()?);
    shared.measuring.set(true);
    while from.elapsed() < load.window {
        sleep(LOOK.min(load.window.saturating_sub(from.elapsed()))).await;
        measured.resident.push(server.resident()?);
    }
    shared.measuring.set(false);
    measured.cpu = server.cpu()?.saturating_sub(cpu);
    measured.window = from.elapsed();
    stop.set(true);
    let _open = publisher.await??; // its end is not a part of the measurement
    measured.published = published.get();
    let until = Instant::now() + DRAIN;
    while counts.iter().any(|count| count.get() < published.get()) && Instant::now() < until {
        sleep(Duration::from_millis(50)).await;
    }
    measured.deliveries = shared.deliveries.get();
    measured.reads = shared.reads.get();
    measured.latencies = shared.latencies.take();
    measured.latencies.sort_unstable();
    measured.least = counts.iter().map(|count| count.get()).min().unwrap_or_default();
    measured.most = counts.iter().map(|count| count.get()).max().unwrap_or_default();
    drop(stalled);
    Ok(measured)
}

async fn read(stream: TcpStream, shared: Rc<Shared>, count: Rc<Cell<u64>>) {
    // How far the present frame is, and its beginning.
    let mut at = 0;
    let mut start = [0; HEAD + STAMP];
    while stream.readable().await.is_ok() {
        let mut scratch = shared.scratch.borrow_mut();
        let read = match stream.try_read(&mut scratch) {
            Ok(0) => return,
            Ok(read) => read,
            Err(error) if error.kind() == WouldBlock => continue,
            Err(_) => return,
        };
        if shared.measuring.get() {
            shared.reads.set(shared.reads.get() + 1);
        }
        let mut rest = scratch.get(..read).unwrap_or_default();
        while !rest.is_empty() {
            let missing = start.len().saturating_sub(at);
            let taken = if missing > 0 { missing } else { shared.stride - at }.min(rest.len());
            let (now, later) = rest.split_at(taken);
            if let Some(place) = start.get_mut(at..at + taken) {
                place.copy_from_slice(now);
            }
            (at, rest) = (at + taken, later);
            if missing > 0 && at == start.len() {
                if start.first() != Some(&0x81) {
                    return; // a Close: this one reads nothing more, and its count shows it
                }
                shared.delivered(start.get(HEAD..).unwrap_or_default());
            }
            if at == shared.stride {
                at = 0;
                count.set(count.get() + 1);
            }
        }
    }
}

async fn publish(
    mut stream: TcpStream,
    payload: usize,
    rate: u32,
    shared: Rc<Shared>,
    published: Rc<Cell<u64>>,
    stop: Rc<Cell<bool>>,
) -> Outcome<TcpStream> {
    let mut frame = vec![0x81, 0x80 | 126];
    frame.extend(u16::try_from(payload)?.to_be_bytes());
    frame.extend([0; 4]); // a mask of zeros is one too
    let at = frame.len();
    frame.resize(at + payload, b'.');
    let mut ticks = interval(Duration::from_secs(1) / rate.max(1));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
    while !stop.get() {
        ticks.tick().await;
        let stamp = format!("{:0STAMP$}", shared.now());
        frame.get_mut(at..at + STAMP).ok_or("a short message")?.copy_from_slice(stamp.as_bytes());
        stream.write_all(&frame).await?;
        published.set(published.get() + 1);
    }
    Ok(stream)
}

/// A WebSocket whose handshake is read. Nothing else has come: nobody publishes yet.
///
/// # Errors
/// When the server refuses.
pub async fn connect(address: &str, path: &str, receive_buffer: Option<u32>) -> Outcome<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    if let Some(bytes) = receive_buffer {
        socket.set_recv_buffer_size(bytes)?;
    }
    let mut stream = socket.connect(address.parse::<SocketAddr>()?).await?;
    stream.set_nodelay(true)?;
    upgrade(&mut stream, address, path).await?;
    Ok(stream)
}

/// The handshake on a stream.
///
/// # Errors
/// When the server refuses.
pub async fn upgrade<T>(stream: &mut T, address: &str, path: &str) -> Outcome<()>
where
    T: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
{
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await?;
    stream.flush().await?;
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        if stream.read_buf(&mut head).await? == 0 {
            return Err("the server ended the handshake".into());
        }
    }
    if !head.starts_with(b"HTTP/1.1 101") {
        return Err(String::from_utf8_lossy(&head).into());
    }
    Ok(())
}
