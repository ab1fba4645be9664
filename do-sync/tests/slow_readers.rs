//! Slow readers over real TCP on the tokio host, with the send buffers of a listener that an embedder made.
#![cfg(not(target_arch = "wasm32"))]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // helpers of tests

use do_core::{
    Accept, DurableObject, Env, Failure, Namespace, ObjectState, Request, Response, Stub,
    tokio::{Host, HostEnv, HostStub, ManualClock},
};
use do_sync::{OnFull, Outbound, Room};
use std::{net::SocketAddr, time::Duration};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpSocket, TcpStream},
};

const KIB: usize = 1_024;

/// Of the kernel's buffers on either side; it rounds up.
const KERNEL: u32 = 4 * 1_024;

/// More messages than the buffers on the way can take.
const MANY: u32 = 2_000;

struct Hall<S: ObjectState>(Room<S>);

impl<S: ObjectState> DurableObject<S> for Hall<S> {
    fn new(state: S) -> Result<Self, Failure> {
        let on_full = if state.id().name().is_some_and(|name| name.as_str() == "strict") {
            OnFull::Close
        } else {
            OnFull::DropNewest
        };
        let outbound = Outbound::new().window(16 * KIB).max_bytes(64 * KIB).on_full(on_full);
        Ok(Self(Room::new(&state).outbound(outbound)))
    }

    /// `/say?N` sends 4 KiB that begin with the number; `/stats` tells; everything else joins.
    async fn fetch(&self, request: Request) -> Result<Response, Failure> {
        let (path, query) = (request.uri().path(), request.uri().query().unwrap_or_default());
        let numbers = match path {
            "/say" => {
                let report = self.0.broadcast(format!("{query:0>4096}")).send();
                [report.queued, report.dropped, report.disconnected]
            }
            "/stats" => {
                let stats = self.0.outbound_stats();
                [stats.behind, stats.bytes, usize::try_from(stats.disconnected).unwrap_or(usize::MAX)]
            }
            _ => return Ok(self.0.join(&request, Accept::new())?.0),
        };
        Ok(Response::new(serde_json::to_vec(&numbers).unwrap_or_default().into()))
    }
}

/// Awaits what a real connection does, with a limit that only a fault reaches.
async fn within<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), what).await.expect("nothing happened within 20 s")
}

struct Rig {
    _folder: tempfile::TempDir,
    clock: ManualClock,
    host: Host,
    addr: SocketAddr,
    object: HostStub,
}

impl Rig {
    async fn new(name: &'static str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let clock = ManualClock::at(do_core::Timestamp::from_millis(1_000));
        let host =
            Host::builder(folder.path()).clock(clock.clone()).object::<Hall<_>>("HALL").start().unwrap();
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_send_buffer_size(KERNEL).unwrap(); // what is accepted inherits it
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let listener = socket.listen(16).unwrap();
        let addr = listener.local_addr().unwrap();
        host.serve(listener, move |request: Request, env: HostEnv| async move {
            Ok(env.namespace("HALL")?.named(name)?.fetch(request).await?)
        });
        let object = host.env().namespace("HALL").unwrap().named(name).unwrap();
        Self { _folder: folder, clock, host, addr, object }
    }

    /// The three numbers of an answer.
    async fn ask(&self, path: &str) -> [usize; 3] {
        let request = http::Request::get(format!("http://hall{path}")).body(do_core::Body::empty()).unwrap();
        within(async { self.object.fetch(request).await.unwrap().into_body().json(1_000).await.unwrap() })
            .await
    }

    /// A client that reads when it is told to, and not before.
    async fn client(&self) -> Reader {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(KERNEL).unwrap();
        let mut stream = within(socket.connect(self.addr)).await.unwrap();
        let request = "GET / HTTP/1.1\r\nhost: hall\r\nupgrade: websocket\r\nconnection: upgrade\r\n\
                       sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(within(stream.read_u8()).await.unwrap());
        }
        assert!(head.starts_with(b"HTTP/1.1 101"));
        Reader(stream)
    }
}

struct Reader(TcpStream);

/// A message's number, or the code of a Close.
#[derive(Debug, PartialEq, Eq)]
enum Got {
    Number(u32),
    Close(u16),
}

impl Reader {
    async fn next(&mut self) -> Got {
        within(async {
            match self.0.read_u8().await.unwrap() {
                0x81 => {
                    assert_eq!(
                        (self.0.read_u8().await.unwrap(), self.0.read_u16().await.unwrap()),
                        (126, 4_096)
                    );
                    let mut text = vec![0; 4_096];
                    self.0.read_exact(&mut text).await.unwrap();
                    Got::Number(String::from_utf8(text).unwrap().parse().unwrap())
                }
                0x88 => {
                    assert_eq!(self.0.read_u8().await.unwrap(), 2);
                    Got::Close(self.0.read_u16().await.unwrap())
                }
                other => panic!("a frame that begins with {other:#x}"),
            }
        })
        .await
    }
}

#[tokio::test]
async fn d11b_a_reader_that_stops_costs_its_bound_and_the_others_nothing() {
    let rig = Rig::new("lenient").await;
    let (mut slow, mut fast) = (rig.client().await, rig.client().await);
    let mut left_out = 0;
    let mut said = 0;
    while left_out < 20 {
        assert!(said < MANY, "the bound is never reached");
        let [queued, dropped, disconnected] = rig.ask(&format!("/say?{said}")).await;
        assert_eq!((queued + dropped, disconnected), (2, 0));
        assert_eq!(fast.next().await, Got::Number(said));
        left_out += dropped;
        said += 1;
    }
    let [behind, bytes, _] = rig.ask("/stats").await;
    assert!(behind == 1 && bytes <= 64 * KIB, "{behind} behind with {bytes} bytes");
    // It reads again: what was taken comes in order and whole, the first 20 that were left out are missing.
    let taken = said - 20;
    for number in 0..taken {
        rig.clock.advance(Duration::from_millis(250)); // for the pump
        assert_eq!(slow.next().await, Got::Number(number));
    }
    assert_eq!(rig.ask("/stats").await, [0, 0, 0]);
    assert_eq!(rig.ask("/say?7777").await, [2, 0, 0]);
    assert_eq!((slow.next().await, fast.next().await), (Got::Number(7_777), Got::Number(7_777)));
    within(rig.host.shutdown(Duration::from_secs(1))).await.unwrap();
}

#[tokio::test]
async fn a_reader_that_stops_is_closed_after_the_deadline_and_reads_the_reason_if_it_comes_back() {
    let rig = Rig::new("strict").await;
    let (mut slow, mut fast) = (rig.client().await, rig.client().await);
    let mut said = 0;
    while rig.ask("/stats").await[0] == 0 {
        assert!(said < MANY, "nobody is ever behind");
        assert_eq!(rig.ask(&format!("/say?{said}")).await, [2, 0, 0]);
        assert_eq!(fast.next().await, Got::Number(said));
        said += 1;
    }
    // Each answer means that what came due before was done.
    let mut quarters = 0;
    while rig.ask("/stats").await[2] == 0 {
        assert!(quarters < 140, "30 s are over");
        rig.clock.advance(Duration::from_millis(250));
        quarters += 1;
    }
    assert!(quarters >= 120, "closed after {quarters} quarters of a second");
    assert_eq!(rig.ask("/stats").await, [0, 0, 1]);
    let mut number = 0;
    let end = loop {
        match slow.next().await {
            Got::Number(next) => assert_eq!(next, number),
            end @ Got::Close(_) => break end,
        }
        number += 1;
    };
    assert_eq!(end, Got::Close(1_013));
    assert!(number < said, "what waited in the room is gone");
    within(rig.host.shutdown(Duration::from_secs(1))).await.unwrap();
}
