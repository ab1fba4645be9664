//! The clients of one server: all in one thread, each an `EventSource` as far as measuring needs it.
//!
//! Every message carries the time at which it was sent and a number that grows by one, so a reader sees by itself what
//! is missing, doubled or out of place.

use super::{
    order::{DIGITS, Order, now},
    reader::{Event, Reader},
};
use crate::fanout::{
    Outcome,
    client::{Load, Measured},
    process::Server,
    server::PUBLISH,
};
use std::{
    cell::{Cell, RefCell},
    future::pending,
    io::ErrorKind::WouldBlock,
    net::SocketAddr,
    rc::Rc,
    time::{Duration, Instant},
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpSocket, TcpStream},
    task::{JoinHandle, LocalSet, spawn_local},
    time::{sleep, timeout},
};

/// How long the last messages may take.
const DRAIN: Duration = Duration::from_secs(10);

/// How often the server's memory is looked at.
const LOOK: Duration = Duration::from_millis(2_500);

/// Messages that are published while clients come back.
const MORE: u64 = 100;

/// Before a client whose stream has ended comes back.
const BACK: Duration = Duration::from_millis(10);

/// What came of a broadcast.
#[derive(Debug, Clone, Default)]
pub struct Seen {
    /// Figures.
    pub measured: Measured,
    /// Messages that did not come right behind the one before.
    pub disordered: u64,
}

/// What came of clients that return.
#[derive(Debug, Clone, Default)]
pub struct Storm {
    /// Messages that were replayed, of all clients.
    pub replayed: u64,
    /// From the first connection until the last client had all of them.
    pub took: Duration,
    /// CPU time of the server in that time.
    pub cpu: Duration,
    /// Messages that did not come right behind the one before, and those that never came.
    pub disordered: u64,
    /// See `disordered`.
    pub missing: u64,
    /// Streams that ended behind a part of the replay and were opened again.
    pub returned: u64,
    /// Resident memory of the server before, and the most that was seen meanwhile.
    pub resident: (u64, u64),
}

#[derive(Debug)]
struct Shared {
    address: String,
    measuring: Cell<bool>,
    stop: Cell<bool>,
    deliveries: Cell<u64>,
    reads: Cell<u64>,
    returned: Cell<u64>,
    latencies: RefCell<Vec<u32>>,
    scratch: RefCell<Vec<u8>>,
}

/// What one client knows.
#[derive(Debug, Default)]
struct Seat {
    /// Number of the last message.
    last: Cell<u64>,
    disordered: Cell<u64>,
    /// Id of the last event.
    id: RefCell<Vec<u8>>,
}

impl Shared {
    fn new(address: &str) -> Rc<Self> {
        Rc::new(Self {
            address: address.to_owned(),
            measuring: Cell::new(false),
            stop: Cell::new(false),
            deliveries: Cell::new(0),
            reads: Cell::new(0),
            returned: Cell::new(0),
            latencies: RefCell::default(),
            scratch: RefCell::new(vec![0; 256 * 1_024]),
        })
    }

    fn delivered(&self, seat: &Seat, event: &Event) {
        if seat.id.borrow().as_slice() != event.id {
            seat.id.borrow_mut().clone_from(&event.id);
        }
        let Some(data) = event.data.as_deref().filter(|_| event.name.is_empty()) else { return };
        let number = |part: Option<&[u8]>| {
            part.unwrap_or_default().iter().fold(0, |n, digit| n * 10 + u64::from(digit.wrapping_sub(b'0')))
        };
        let (sent, place) = (number(data.get(..DIGITS)), number(data.get(DIGITS..2 * DIGITS)));
        if place != seat.last.get() + 1 {
            seat.disordered.set(seat.disordered.get() + 1);
        }
        seat.last.set(place);
        if self.measuring.get() {
            self.deliveries.set(self.deliveries.get() + 1);
            let micros = now().saturating_sub(sent) / 1_000;
            self.latencies.borrow_mut().push(u32::try_from(micros).unwrap_or(u32::MAX));
        }
    }

    /// Reads a stream until it ends.
    async fn read(&self, stream: &TcpStream, reader: &mut Reader, seat: &Seat) -> Outcome<()> {
        while !reader.is_complete() && self.read_some(stream, reader, seat).await? {}
        Ok(())
    }

    /// Reads once; false at the end.
    async fn read_some(&self, stream: &TcpStream, reader: &mut Reader, seat: &Seat) -> Outcome<bool> {
        stream.readable().await?;
        let mut scratch = self.scratch.borrow_mut();
        let read = match stream.try_read(&mut scratch) {
            Ok(0) => return Ok(false),
            Ok(read) => read,
            Err(error) if error.kind() == WouldBlock => return Ok(true),
            Err(error) => return Err(error.into()),
        };
        if self.measuring.get() {
            self.reads.set(self.reads.get() + 1);
        }
        reader.read(scratch.get(..read).unwrap_or_default(), |event| self.delivered(seat, event))?;
        Ok(true)
    }

    /// A client that comes back with its last id whenever its stream ends.
    async fn resume(self: Rc<Self>, seat: Rc<Seat>) {
        let mut first = true;
        while !self.stop.get() {
            if !first {
                self.returned.set(self.returned.get() + 1);
                sleep(BACK).await;
            }
            first = false;
            let id = seat.id.borrow().clone();
            let Ok(stream) = request(&self.address, &id, None).await else { continue };
            let _ = self.read(&stream, &mut Reader::default(), &seat).await;
        }
    }

    /// Has the server publish, until it says that it did.
    async fn publish(self: Rc<Self>, order: Order) -> Outcome<()> {
        let (mut stream, text) = (tcp(&self.address, None).await?, order.text());
        let head = format!("POST {PUBLISH} HTTP/1.1\r\nhost: {}\r\ncontent-type: text/plain", self.address);
        let post = format!("{head}\r\ncontent-length: {}\r\n\r\n{text}", text.len());
        stream.write_all(post.as_bytes()).await?;
        let mut answer = Vec::new();
        while !answer.ends_with(b"\r\n\r\n") {
            if stream.read_buf(&mut answer).await? == 0 {
                return Err("the server ended the connection".into());
            }
        }
        if answer.starts_with(b"HTTP/1.1 20") { Ok(()) } else { Err("publishing failed".into()) }
    }
}

/// Runs clients against a server.
///
/// # Errors
/// When a connection cannot be made, or the server ends.
pub async fn run(server: &Server, load: &Load) -> Outcome<Seen> {
    LocalSet::new().run_until(all(server, load)).await
}

async fn all(server: &Server, load: &Load) -> Outcome<Seen> {
    let shared = Shared::new(&server.address);
    let (mut seats, mut stalled) = (Vec::new(), Vec::new());
    for number in 0..load.sockets {
        if number < load.stalled {
            stalled.push(request(&server.address, b"", Some(64 * 1_024)).await?);
            continue;
        }
        let seat = Rc::new(Seat::default());
        let (stream, mut reader) = open(&shared, &seat, b"").await?;
        let (shared, own) = (Rc::clone(&shared), Rc::clone(&seat));
        spawn_local(async move {
            // One whose stream ends reads nothing more, and its count shows it.
            let _ = shared.read(&stream, &mut reader, &own).await;
            pending::<()>().await;
        });
        seats.push(seat);
    }
    sleep(Duration::from_millis(300)).await;
    let mut measured = Measured { resident: vec![server.resident()?], ..Measured::default() };
    let time = load.warm + load.window;
    let count = u64::try_from(time.as_millis())? * u64::from(load.rate) / 1_000;
    let order = Order { from: 1, count, rate: load.rate, payload: load.payload };
    let publisher = spawn_local(Rc::clone(&shared).publish(order));
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
    measured.published = count;
    timeout(3 * DRAIN, publisher).await???;
    drained(&seats, count).await;
    measured.deliveries = shared.deliveries.get();
    measured.reads = shared.reads.get();
    measured.latencies = shared.latencies.take();
    measured.latencies.sort_unstable();
    let last = |seat: &Rc<Seat>| seat.last.get();
    measured.least = seats.iter().map(last).min().unwrap_or_default();
    measured.most = seats.iter().map(last).max().unwrap_or_default();
    drop(stalled);
    Ok(Seen { measured, disordered: seats.iter().map(|seat| seat.disordered.get()).sum() })
}

/// Waits until everybody has the message of that number, or for too long.
async fn drained(seats: &[Rc<Seat>], last: u64) {
    let until = Instant::now() + DRAIN;
    while seats.iter().any(|seat| seat.last.get() < last) && Instant::now() < until {
        sleep(Duration::from_millis(20)).await;
    }
}

/// Clients come, go before anything is published, and all come back at once to `events` messages that they missed,
/// while more are published at `rate`.
///
/// # Errors
/// When a connection cannot be made, or the server ends.
pub async fn storm(server: &Server, load: &Load, events: u64) -> Outcome<Storm> {
    LocalSet::new().run_until(returning(server, load, events)).await
}

async fn returning(server: &Server, load: &Load, events: u64) -> Outcome<Storm> {
    let shared = Shared::new(&server.address);
    let mut seats = Vec::new();
    for _ in 0..load.sockets {
        let seat = Rc::new(Seat::default());
        let (stream, mut reader) = open(&shared, &seat, b"").await?;
        while seat.id.borrow().is_empty() {
            if !timeout(DRAIN, shared.read_some(&stream, &mut reader, &seat)).await?? {
                return Err("the stream ended before an id came".into());
            }
        }
        seats.push(seat);
    }
    let missed = Order { from: 1, count: events, rate: 0, payload: load.payload };
    Rc::clone(&shared).publish(missed).await?;
    let mut storm = Storm { resident: (server.resident()?, 0), ..Storm::default() };
    let (from, cpu) = (Instant::now(), server.cpu()?);
    let clients: Vec<JoinHandle<()>> =
        seats.iter().map(|seat| spawn_local(Rc::clone(&shared).resume(Rc::clone(seat)))).collect();
    let more = Order { from: events + 1, count: MORE, rate: load.rate, ..missed };
    let publisher = spawn_local(Rc::clone(&shared).publish(more));
    while seats.iter().any(|seat| seat.last.get() < events) && from.elapsed() < 6 * DRAIN {
        storm.resident.1 = storm.resident.1.max(server.resident()?);
        sleep(Duration::from_millis(5)).await;
    }
    (storm.took, storm.cpu) = (from.elapsed(), server.cpu()?.saturating_sub(cpu));
    publisher.await??;
    let published = events + MORE;
    drained(&seats, published).await;
    shared.stop.set(true);
    for client in clients {
        client.abort();
    }
    storm.replayed = events * load.sockets as u64;
    storm.returned = shared.returned.get();
    storm.disordered = seats.iter().map(|seat| seat.disordered.get()).sum();
    storm.missing = seats.iter().map(|seat| published - seat.last.get().min(published)).sum();
    Ok(storm)
}

/// A stream whose head has come.
async fn open(shared: &Shared, seat: &Seat, last_id: &[u8]) -> Outcome<(TcpStream, Reader)> {
    let (stream, mut reader) = (request(&shared.address, last_id, None).await?, Reader::default());
    while !reader.is_begun() {
        if !timeout(DRAIN, shared.read_some(&stream, &mut reader, seat)).await?? {
            return Err("the server ended the connection".into());
        }
    }
    Ok((stream, reader))
}

/// Streams that nothing is read from behind their heads.
///
/// # Errors
/// When the server refuses.
pub async fn idle(address: &str, count: usize) -> Outcome<Vec<TcpStream>> {
    let (shared, seat) = (Shared::new(address), Seat::default());
    let mut streams = Vec::with_capacity(count);
    for _ in 0..count {
        streams.push(open(&shared, &seat, b"").await?.0);
    }
    Ok(streams)
}

async fn request(address: &str, last_id: &[u8], receive_buffer: Option<u32>) -> Outcome<TcpStream> {
    let mut stream = tcp(address, receive_buffer).await?;
    let head = format!(
        "GET /events HTTP/1.1\r\nhost: {address}\r\naccept: text/event-stream\r\ncache-control: no-store\r\n"
    );
    let mut request = head.into_bytes();
    if !last_id.is_empty() {
        request.extend_from_slice(b"last-event-id: ");
        request.extend_from_slice(last_id);
        request.extend_from_slice(b"\r\n");
    }
    request.extend_from_slice(b"\r\n");
    stream.write_all(&request).await?;
    Ok(stream)
}

async fn tcp(address: &str, receive_buffer: Option<u32>) -> Outcome<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    if let Some(bytes) = receive_buffer {
        socket.set_recv_buffer_size(bytes)?;
    }
    let stream = socket.connect(address.parse::<SocketAddr>()?).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}
