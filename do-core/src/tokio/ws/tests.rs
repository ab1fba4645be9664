//! The table over real TCP, hyper's server and real clients.

use super::{ConnEvent, ConnLimits, Connections, Cork, response};
use crate::{
    Body, Close, CloseCode, CloseFrame, Message, Response,
    engine::{ConnId, SocketKey, SystemClock, Transport as _},
};
use futures::{SinkExt as _, StreamExt as _};
use hyper::{service::service_fn, upgrade::OnUpgrade};
use hyper_util::rt::TokioIo;
use std::{collections::VecDeque, future::Future, net::SocketAddr, pin::pin, sync::Arc, time::Duration};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::{mpsc, oneshot},
};
use tokio_tungstenite::tungstenite as client;

mod corked;

/// A request to a server that hands its upgrades to a shard and answers once the shard has taken it.
struct Opening {
    upgrade: OnUpgrade,
    taken: oneshot::Sender<()>,
}

/// A shard without objects: an event of a connection is logged, and answered by `answer`.
struct Shard {
    conns: Connections,
    woken: mpsc::UnboundedReceiver<ConnId>,
    openings: mpsc::UnboundedReceiver<Opening>,
    addr: SocketAddr,
    /// By the number of the socket.
    ids: Vec<ConnId>,
    log: VecDeque<(u64, ConnEvent)>,
    on_insert: fn(&Connections, ConnId),
    on_event: fn(&Connections, ConnId, &ConnEvent),
    /// Events of the largest poll.
    most: usize,
}

impl Shard {
    async fn start(limits: ConnLimits) -> Self {
        Self::corked(limits, Cork::new(Duration::ZERO, Arc::new(SystemClock::new()))).await
    }

    async fn corked(limits: ConnLimits, cork: Cork) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let (opening, openings) = mpsc::unbounded_channel();
        tokio::spawn(serve(listener, opening));
        let (wake, woken) = mpsc::unbounded_channel();
        let wake = Arc::new(move |id| wake.send(id).unwrap_or_default());
        Self {
            conns: Connections::new(limits, cork, wake),
            woken,
            openings,
            addr,
            ids: Vec::new(),
            log: VecDeque::new(),
            on_insert: |_, _| (),
            on_event: echo,
            most: 0,
        }
    }

    /// One turn: something wakes the shard, it polls, answers and flushes.
    async fn turn(&mut self) {
        tokio::select! {
            Some(id) = self.woken.recv() => {
                let mut events = Vec::new();
                self.conns.poll(id, &mut events);
                self.most = self.most.max(events.len());
                for (owner, event) in events {
                    let id = self.ids[usize::try_from(owner.socket).unwrap()];
                    (self.on_event)(&self.conns, id, &event);
                    self.log.push_back((owner.socket, event));
                }
            }
            Some(opening) = self.openings.recv() => {
                let owner = SocketKey { object: 7, socket: self.ids.len() as u64 };
                let id = self.conns.insert(opening.upgrade, owner);
                self.ids.push(id);
                (self.on_insert)(&self.conns, id);
                opening.taken.send(()).unwrap();
            }
        }
        self.conns.flush();
    }

    /// Turns until the client is done.
    async fn during<T>(&mut self, client: impl Future<Output = T>) -> T {
        let mut client = pin!(client);
        let bounded = tokio::time::timeout(Duration::from_secs(60), async {
            loop {
                tokio::select! {
                    biased;
                    done = &mut client => return done,
                    () = self.turn() => {}
                }
            }
        });
        bounded.await.expect("the test hangs")
    }

    /// Turns until an event comes.
    async fn event(&mut self) -> (u64, ConnEvent) {
        self.until(|shard| !shard.log.is_empty()).await;
        self.log.pop_front().unwrap()
    }

    /// Turns until something holds.
    async fn until(&mut self, done: impl Fn(&Self) -> bool) {
        let bounded = tokio::time::timeout(Duration::from_secs(60), async {
            while !done(self) {
                self.turn().await;
            }
        });
        bounded.await.expect("the test hangs");
    }

    async fn open(&mut self) -> TcpStream {
        let addr = self.addr;
        let stream = self.during(open(addr, "/")).await;
        // The client sees the 101 before the server's side of the upgrade is handed over.
        self.until(|shard| shard.ids.last().is_some_and(|id| shard.conns.is_upgraded(*id))).await;
        stream
    }

    fn assert_no_more_events(&self) {
        assert!(self.log.is_empty(), "{:?}", self.log);
    }
}

/// Sends messages back, answers a Close and ends.
fn echo(conns: &Connections, id: ConnId, event: &ConnEvent) {
    match event {
        ConnEvent::Message(message) => conns.send(id, message),
        ConnEvent::Close(close) => {
            conns.close(id, &close.answer().unwrap());
            conns.finish(id);
        }
        ConnEvent::Error(_, frame) => {
            conns.close(id, frame);
            conns.finish(id);
        }
        ConnEvent::Lost => {}
    }
}

async fn serve(listener: TcpListener, opening: mpsc::UnboundedSender<Opening>) {
    while let Ok((stream, _)) = listener.accept().await {
        let opening = opening.clone();
        let service = service_fn(move |mut request: http::Request<hyper::body::Incoming>| {
            let opening = opening.clone();
            async move {
                let upgrade = hyper::upgrade::on(&mut request);
                let accepts = request.uri().path() == "/";
                let response = response(&request.map(|_| Body::empty()), None)?;
                let (taken, wait) = oneshot::channel();
                assert!(opening.send(Opening { upgrade, taken }).is_ok());
                wait.await.unwrap();
                Ok::<Response, crate::Error>(if accepts { response } else { Response::default() })
            }
        });
        let connection =
            hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service);
        tokio::spawn(connection.with_upgrades());
    }
}

/// A client that has read the answer to its handshake.
async fn open(addr: SocketAddr, path: &str) -> TcpStream {
    let mut stream = TcpStream::connect(addr).await.unwrap();
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n\
         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        answer.push(stream.read_u8().await.unwrap());
    }
    stream
}

/// A client's frame of at most 65,535 bytes; the mask is zero, which is a mask too.
fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![first];
    match u8::try_from(payload.len()) {
        Ok(len @ 0..=125) => frame.push(0x80 | len),
        _ => {
            frame.push(0x80 | 126);
            frame.extend(u16::try_from(payload.len()).unwrap().to_be_bytes());
        }
    }
    frame.extend([0; 4]);
    frame.extend(payload);
    frame
}

/// A server's frame: its first byte and its payload. `None` at an orderly end.
async fn receive(stream: &mut (impl tokio::io::AsyncRead + Unpin)) -> Option<(u8, Vec<u8>)> {
    let mut first = [0];
    if stream.read(&mut first).await.unwrap() == 0 {
        return None;
    }
    let len = match stream.read_u8().await.unwrap() {
        126 => u64::from(stream.read_u16().await.unwrap()),
        127 => stream.read_u64().await.unwrap(),
        short => short.into(),
    };
    let mut payload = vec![0; usize::try_from(len).unwrap()];
    stream.read_exact(&mut payload).await.unwrap();
    Some((first[0], payload))
}

/// All frames up to the end.
async fn receive_all(stream: &mut (impl tokio::io::AsyncRead + Unpin)) -> Vec<(u8, Vec<u8>)> {
    let mut frames = Vec::new();
    while let Some(frame) = receive(stream).await {
        frames.push(frame);
    }
    frames
}

fn close_payload(code: u16, reason: &str) -> (u8, Vec<u8>) {
    (0x88, [&code.to_be_bytes(), reason.as_bytes()].concat())
}

fn assert_message(event: Option<(u64, ConnEvent)>, socket: u64, message: &Message) {
    assert!(matches!(event, Some((s, ConnEvent::Message(m))) if s == socket && m == *message));
}

#[tokio::test]
async fn echo_and_close_with_another_implementation() {
    let mut shard = Shard::start(ConnLimits::default()).await;
    let url = format!("ws://{}/", shard.addr);
    let talk = async {
        let (mut socket, _) = tokio_tungstenite::connect_async(url).await.unwrap();
        let big = "é".repeat(500_000);
        for message in ["hello", "", &big] {
            socket.send(client::Message::text(message)).await.unwrap();
            assert_eq!(socket.next().await.unwrap().unwrap(), client::Message::text(message));
            socket.send(client::Message::binary(message.to_owned())).await.unwrap();
            assert_eq!(socket.next().await.unwrap().unwrap(), client::Message::binary(message.to_owned()));
        }
        let frame = client::protocol::CloseFrame { code: 4_000.into(), reason: "bye".into() };
        socket.close(Some(frame)).await.unwrap();
        socket.next().await.unwrap().unwrap()
    };
    let client::Message::Close(Some(answer)) = shard.during(talk).await else { panic!("no Close") };
    assert_eq!((u16::from(answer.code), answer.reason.as_str()), (4_000, "bye"));
    shard.until(|shard| shard.conns.is_empty()).await;
    assert!(
        matches!(shard.log.pop_back(), Some((0, ConnEvent::Close(close))) if close == Close::new(4_000, "bye", true))
    );
    assert_eq!(shard.log.len(), 6);
}

#[tokio::test]
async fn what_is_sent_before_the_upgrade_completes_waits_and_keeps_its_order() {
    let mut shard = Shard::start(ConnLimits::default()).await;
    shard.on_insert = |conns, id| {
        for n in 0..100 {
            conns.send(id, &Message::text(format!("{n}")));
        }
        assert_eq!(conns.buffered(id), 10 * 3 + 90 * 4);
        assert!(conns.pending_output());
        conns.flush();
        conns.send(id, &Message::text("end"));
    };
    let mut stream = shard.open().await;
    for n in 0..100 {
        let received = shard.during(receive(&mut stream)).await.unwrap();
        assert_eq!(received, (0x81, n.to_string().into_bytes()));
    }
    assert_eq!(shard.during(receive(&mut stream)).await.unwrap(), (0x81, b"end".to_vec()));
    assert!(!shard.conns.pending_output());
    assert_eq!(shard.conns.queued_bytes(), 0);
}

#[tokio::test]
async fn what_comes_together_with_the_handshake_is_read() {
    let mut shard = Shard::start(ConnLimits::default()).await;
    let addr = shard.addr;
    let talk = async {
        let mut stream = TcpStream::connect(addr).await.unwrap();
        let mut request = b"GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
            Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
            .to_vec();
        request.extend(frame(0x81, b"early"));
        stream.write_all(&request).await.unwrap();
        while stream.read_u8().await.unwrap() != 0x81 {}
        let mut rest = [0; 6];
        stream.read_exact(&mut rest).await.unwrap();
        rest
    };
    assert_eq!(shard.during(talk).await, *b"\x05early");
}

#[tokio::test]
async fn a_ping_between_fragments_is_answered_before_the_message() {
    let mut shard = Shard::start(ConnLimits::default()).await;
    let mut stream = shard.open().await;
    let frames =
        [frame(0x01, b"Hel"), frame(0x89, b"p"), frame(0x8A, b"unasked"), frame(0x80, b"lo")].concat();
    stream.write_all(&frames).await.unwrap();
    assert_eq!(shard.during(receive(&mut stream)).await.unwrap(), (0x8A, b"p".to_vec()));
    assert_eq!(shard.during(receive(&mut stream)).await.unwrap(), (0x81, b"Hello".to_vec()));
    assert_message(shard.log.pop_front(), 0, &Message::text("Hello"));
    shard.assert_no_more_events();
}

#[tokio::test]
async fn d13_ten_pings_get_ten_pongs() {
    let mut shard = Shard::start(ConnLimits::default()).await;
    let mut stream = shard.open().await;
    let pings: Vec<u8> = (0..10).flat_map(|n| frame(0x89, &[n])).collect();
    stream.write_all(&pings).await.unwrap();
    for n in 0..10 {
        assert_eq!(shard.during(receive(&mut stream)).await.unwrap(), (0x8A, vec![n]));
    }
    shard.assert_no_more_events();
}

#[tokio::test]
async fn d16_a_fault_is_answered_by_its_close_and_one_error_event() {
    let limits = ConnLimits { message_bytes: 1_000, ..ConnLimits::default() };
    let mut shard = Shard::start(limits).await;
    for (socket, (bytes, code, reason)) in [
        (frame(0x82, &[0; 1_001])[..8].to_vec(), 1_009, "a message is longer than the limit"),
        (frame(0x81, b"\xFF"), 1_007, "a text message is not UTF-8"),
        (b"\x81\x01x".to_vec(), 1_002, "a client's frame is not masked"),
        (frame(0x88, &[0x03, 0xE7]), 1_002, "a Close frame has a code that must not be sent"),
    ]
    .into_iter()
    .enumerate()
    {
        let mut stream = shard.open().await;
        // Nothing after the fault is read as a message, and it does not spoil our Close.
        stream.write_all(&[frame(0x81, b"before"), bytes, frame(0x81, b"after")].concat()).await.unwrap();
        let frames = shard.during(receive_all(&mut stream)).await;
        assert_eq!(frames, [(0x81, b"before".to_vec()), close_payload(code, reason)]);
        drop(stream);
        shard.until(|shard| shard.conns.is_empty()).await;
        assert_message(shard.log.pop_front(), socket as u64, &Message::text("before"));
        assert!(matches!(
            shard.log.pop_front(),
            Some((_, ConnEvent::Error(e, _))) if e.kind() == crate::ErrorKind::Invalid && e.to_string() == reason
        ));
        shard.assert_no_more_events();
    }
}

#[tokio::test]
async fn our_last_frames_arrive_although_the_peer_still_sends() {
    let mut shard = Shard::start(ConnLimits::default()).await;
    let mut stream = shard.open().await;
    let talk = async {
        // Closing with this unread would reset the connection.
        stream.write_all(b"\x81\x01x").await.unwrap();
        stream.write_all(&vec![0; 4 * 1_024 * 1_024]).await.unwrap();
        receive_all(&mut stream).await
    };
    assert_eq!(shard.during(talk).await, [close_payload(1_002, "a client's frame is not masked")]);
    assert_eq!(shard.conns.len(), 1, "it waits for the peer's end");
    stream.shutdown().await.unwrap();
    shard.until(|shard| shard.conns.is_empty()).await;
}

#[tokio::test]
async fn d21_after_our_close_messages_arrive_until_the_peers() {
    let mut shard = Shard::start(ConnLimits::default()).await;
    shard.on_event = |conns, id, event| match event {
        ConnEvent::Message(message) if message.as_text() == Some("close") => {
            conns.close(id, &CloseFrame::new(CloseCode::NORMAL, "done").unwrap());
            conns.close(id, &CloseCode::POLICY.into());
            conns.send(id, &Message::text("too late"));
        }
        ConnEvent::Close(_) => conns.finish(id),
        _ => {}
    };
    let mut stream = shard.open().await;
    stream.write_all(&[frame(0x81, b"close"), frame(0x81, b"more")].concat()).await.unwrap();
    assert_eq!(shard.during(receive(&mut stream)).await.unwrap(), close_payload(1_000, "done"));
    let rest = [frame(0x89, b"too late"), frame(0x81, b"last"), frame(0x88, &[0x03, 0xE8])].concat();
    stream.write_all(&rest).await.unwrap();
    assert_eq!(shard.during(receive_all(&mut stream)).await, []);
    for text in ["close", "more", "last"] {
        assert_message(shard.log.pop_front(), 0, &Message::text(text));
    }
    assert!(
        matches!(shard.log.pop_front(), Some((0, ConnEvent::Close(close))) if close == Close::new(1_000, "", true))
    );
    shard.assert_no_more_events();
}

#[tokio::test]
async fn a_fault_after_our_close_ends_without_a_second_close() {
    let mut shard = Shard::start(ConnLimits::default()).await;
    shard.on_insert = |conns, id| conns.close(id, &CloseFrame::empty());
    let mut stream = shard.open().await;
    assert_eq!(shard.during(receive(&mut stream)).await.unwrap(), (0x88, vec![]));
    stream.write_all(&[0xFF]).await.unwrap();
    assert_eq!(shard.during(receive_all(&mut stream)).await, []);
    assert!(matches!(shard.log.pop_front(), Some((0, ConnEvent::Error(..)))));
}

#[tokio::test]
async fn d15_a_lost_connection_is_reported_once() {
    let mut shard = Shard::start(ConnLimits::default()).await;
    // An orderly end of TCP, one in the middle of a frame, and a reset.
    drop(shard.open().await);
    let mut cut = shard.open().await;
    cut.write_all(&frame(0x81, b"whole")[..8]).await.unwrap();
    drop(cut);
    let reset = shard.open().await;
    reset.set_zero_linger().unwrap();
    drop(reset);
    shard.until(|shard| shard.log.len() == 3).await;
    assert!(shard.conns.is_empty());
    let mut lost: Vec<u64> = shard
        .log
        .drain(..)
        .map(|(socket, event)| {
            assert!(matches!(event, ConnEvent::Lost), "{event:?}");
            socket
        })
        .collect();
    lost.sort_unstable();
    assert_eq!(lost, [0, 1, 2]);
}

#[tokio::test]
async fn d6_an_upgrade_that_never_comes_is_a_loss() {
    let mut shard = Shard::start(ConnLimits::default()).await;
    shard.on_insert = |conns, id| conns.send(id, &Message::text("never"));
    let addr = shard.addr;
    shard.during(open(addr, "/refused")).await;
    assert!(matches!(shard.event().await, (0, ConnEvent::Lost)));
    assert!(shard.conns.is_empty());
}

#[tokio::test]
async fn d17_a_peer_that_closed_and_left_is_no_second_event_until_writing_fails() {
    let mut shard = Shard::start(ConnLimits::default()).await;
    shard.on_event = |_, _, _| ();
    let mut stream = shard.open().await;
    stream.write_all(&frame(0x88, &[0x03, 0xE8])).await.unwrap();
    stream.shutdown().await.unwrap();
    assert!(matches!(shard.event().await, (0, ConnEvent::Close(_))));
    // Its own direction is shut; ours still takes a message and our Close.
    let id = shard.ids[0];
    shard.conns.send(id, &Message::text("farewell"));
    shard.conns.close(id, &CloseCode::NORMAL.into());
    shard.conns.finish(id);
    let frames = shard.during(receive_all(&mut stream)).await;
    assert_eq!(frames, [(0x81, b"farewell".to_vec()), close_payload(1_000, "")]);
    shard.until(|shard| shard.conns.is_empty()).await;
    shard.assert_no_more_events();
}

#[tokio::test]
async fn a_close_that_was_sent_before_the_reset_is_not_lost() {
    let mut shard = Shard::start(ConnLimits::default()).await;
    shard.on_event = |_, _, _| ();
    let mut stream = shard.open().await;
    let id = shard.ids[0];
    shard.conns.set_paused(id, true);
    stream.write_all(&[frame(0x81, b"last"), frame(0x88, b"")].concat()).await.unwrap();
    // The peer is gone and answers what we write by a reset.
    drop(stream);
    while shard.conns.is_writable(id) {
        assert!(shard.conns.fits(id, 100, 0, 0), "the reset never comes");
        shard.conns.send(id, &Message::text("into the void"));
        shard.conns.flush();
        tokio::task::yield_now().await;
    }
    shard.conns.set_paused(id, false);
    assert_message(Some(shard.event().await), 0, &Message::text("last"));
    assert!(matches!(shard.event().await, (0, ConnEvent::Close(_))));
    assert!(matches!(shard.event().await, (0, ConnEvent::Lost)));
    assert!(shard.conns.is_empty());
}

#[tokio::test]
async fn a_slow_reader_fills_its_own_outbox_only() {
    let limits = ConnLimits { outbox_bytes: 256 * 1_024, ..ConnLimits::default() };
    let mut shard = Shard::start(limits).await;
    let mut slow = shard.open().await;
    let mut quick = shard.open().await;
    let (id, other) = (shard.ids[0], shard.ids[1]);
    let mut sent = 0_u32;
    while shard.conns.fits(id, 65_536, 0, 0) {
        let mut content = vec![b'.'; 65_536];
        content[..4].copy_from_slice(&sent.to_be_bytes());
        shard.conns.send(id, &Message::binary(content));
        shard.conns.flush();
        sent += 1;
        assert!(sent < 10_000, "the operating system takes everything");
    }
    assert!(shard.conns.buffered(id) <= limits.outbox_bytes);
    assert!(shard.conns.fits(other, 65_536, 0, 0));
    assert_eq!(shard.conns.buffered(other), 0);
    quick.write_all(&frame(0x81, b"hi")).await.unwrap();
    assert_eq!(shard.during(receive(&mut quick)).await.unwrap(), (0x81, b"hi".to_vec()));

    // Nothing that was taken is lost.
    for n in 0..sent {
        let (first, payload) = shard.during(receive(&mut slow)).await.unwrap();
        assert_eq!((first, &payload[..4], payload.len()), (0x82, &n.to_be_bytes()[..], 65_536));
    }
    shard.until(|shard| !shard.conns.pending_output()).await;
    assert!(shard.conns.fits(id, 100 * 1_024 * 1_024, 0, 0), "an empty outbox takes any message");
}

#[tokio::test]
async fn a_flood_is_read_in_portions() {
    let mut shard = Shard::start(ConnLimits::default()).await;
    shard.on_event = |_, _, _| ();
    let mut stream = shard.open().await;
    let flood = frame(0x82, &[0; 1_018]).repeat(2_000);
    shard.during(async { stream.write_all(&flood).await.unwrap() }).await;
    shard.until(|shard| shard.log.len() == 2_000).await;
    assert!(shard.most <= (256 + 64), "{} messages of 1 KiB in one poll", shard.most);

    shard.log.clear();
    shard.most = 0;
    let flood = frame(0x82, b"").repeat(60_000);
    shard.during(async { stream.write_all(&flood).await.unwrap() }).await;
    shard.until(|shard| shard.log.len() == 60_000).await;
    assert!(shard.most <= 1_024 + 64 * 1_024 / 6 + 1, "{} messages in one poll", shard.most);
}

#[tokio::test]
async fn a_paused_connection_is_not_read() {
    let mut shard = Shard::start(ConnLimits::default()).await;
    let mut paused = shard.open().await;
    let mut other = shard.open().await;
    let id = shard.ids[0];
    shard.conns.set_paused(id, true);
    paused.write_all(&frame(0x81, b"paused")).await.unwrap();
    shard.conns.send(id, &Message::text("writing goes on"));
    shard.conns.flush();
    assert_eq!(shard.during(receive(&mut paused)).await.unwrap(), (0x81, b"writing goes on".to_vec()));
    other.write_all(&frame(0x81, b"other")).await.unwrap();
    assert_eq!(shard.during(receive(&mut other)).await.unwrap(), (0x81, b"other".to_vec()));
    assert_message(shard.log.pop_front(), 1, &Message::text("other"));
    shard.assert_no_more_events();

    shard.conns.set_paused(id, false);
    assert_eq!(shard.during(receive(&mut paused)).await.unwrap(), (0x81, b"paused".to_vec()));
}

#[tokio::test]
async fn finishing_a_paused_connection_reads_on_to_the_end() {
    let mut shard = Shard::start(ConnLimits::default()).await;
    let mut stream = shard.open().await;
    let id = shard.ids[0];
    shard.conns.set_paused(id, true);
    stream.write_all(&frame(0x81, b"never seen")).await.unwrap();
    shard.conns.close(id, &CloseCode::GOING_AWAY.into());
    shard.conns.finish(id);
    assert_eq!(shard.during(receive_all(&mut stream)).await, [close_payload(1_001, "")]);
    drop(stream);
    shard.until(|shard| shard.conns.is_empty()).await;
    shard.assert_no_more_events();
}

#[tokio::test]
async fn stale_ids_are_harmless_and_places_are_used_again() {
    let mut shard = Shard::start(ConnLimits::default()).await;
    let mut first = shard.open().await;
    let stale = shard.ids[0];
    shard.conns.abort(stale);
    assert!(shard.conns.is_empty());
    assert_eq!(first.read(&mut [0]).await.unwrap(), 0);

    let mut second = shard.open().await;
    let id = shard.ids[1];
    assert_eq!((id.index, id.generation), (stale.index, stale.generation + 1));
    let mut events = Vec::new();
    shard.conns.send(stale, &Message::text("to nobody"));
    shard.conns.close(stale, &CloseFrame::empty());
    shard.conns.finish(stale);
    shard.conns.abort(stale);
    shard.conns.set_paused(stale, true);
    shard.conns.poll(stale, &mut events);
    assert!(events.is_empty());
    assert_eq!((shard.conns.fits(stale, usize::MAX, 0, 0), shard.conns.buffered(stale)), (true, 0));
    shard.conns.flush();
    second.write_all(&frame(0x81, b"alive")).await.unwrap();
    assert_eq!(shard.during(receive(&mut second)).await.unwrap(), (0x81, b"alive".to_vec()));
}
