//! Faults that were found once, each with the test that keeps it from coming back.

use crate::common::*;
use do_core::{prelude::*, tokio::HostSocket};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpSocket,
};

#[tokio::test]
async fn d25_a_close_handler_that_panics_after_an_await_ends_the_connection() {
    struct H;
    impl Hooks for H {
        async fn close(probe: &Probe<Self>, _: HostSocket, close: Close) -> Result<()> {
            probe.log(closed(&close));
            probe.state.sleep(Duration::from_secs(1)).await;
            panic!("in the close handler")
        }
    }
    let mut rig = Rig::start::<H>().await;
    for _ in 0..2 {
        let mut raw = rig.raw("a").await;
        raw.close(4_000, "").await;
        rig.expect(["new", r#"close 4000 "" clean"#]).await;
        rig.pass(1).await;
        let end = raw.next().await;
        assert!(matches!(end, Got::Eof | Got::Reset), "{end:?}");
        assert_eq!(rig.awake("a").await, None);
    }
    // Were a connection left, the end would wait for its peer.
    let peer = rig.raw("a").await;
    drop(peer);
    rig.expect(["new", LOST]).await;
    rig.shutdown(Duration::ZERO).await.unwrap();
}

#[tokio::test]
async fn d11b_the_answers_of_a_peer_that_sends_much_at_once_leave_before_they_fill_its_outbox() {
    const MESSAGES: usize = 1_800;
    const KERNEL: u32 = 200 * 1_024;
    struct H;
    impl Hooks for H {
        async fn message(_: &Probe<Self>, socket: HostSocket, _: Message) -> Result<()> {
            Ok(socket.send("y".repeat(200))?)
        }
    }
    // The outbox holds 270 answers, and the kernel all: how fast this test reads does not matter.
    let mut rig = Rig::with::<H>(|builder| builder.outbox_bytes(64 * 1_024)).await;
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_send_buffer_size(KERNEL).unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(8).unwrap();
    let addr = listener.local_addr().unwrap();
    serve(rig.host(), listener);
    let mut raw = Raw::connect(addr, Some(KERNEL)).await;
    raw.send(upgrade_head("a").as_bytes()).await;
    assert!(raw.head().await.starts_with("HTTP/1.1 101"));
    raw.send(&frame(TEXT, b"x").repeat(MESSAGES)).await; // less than the host reads at once
    let answer = text(&"y".repeat(200));
    for n in 0..MESSAGES {
        assert_eq!(raw.next().await, answer, "answer {n}");
    }
    raw.close(1_000, "").await;
    assert_eq!(raw.next().await, close(1_000, ""));
    rig.expect(["new", r#"close 1000 "" clean"#]).await;
}

#[tokio::test]
async fn the_bytes_of_messages_under_way_are_bounded_for_each_socket() {
    const MESSAGES: usize = 6;
    const MIB: usize = 1_024 * 1_024;
    struct H;
    impl Hooks for H {
        async fn message(probe: &Probe<Self>, socket: HostSocket, message: Message) -> Result<()> {
            probe.state.sleep(Duration::from_secs(1)).await;
            Ok(socket.send(format!("{}", message.len()))?)
        }
    }
    let rig = Rig::start::<H>().await;
    let raw = rig.raw("a").await;
    let (mut reader, mut writer) = raw.stream.into_split();
    let flood = tokio::spawn(async move {
        let one = frame(BINARY, &vec![1; 8 * MIB]);
        for _ in 0..MESSAGES {
            writer.write_all(&one).await.unwrap();
        }
        writer
    });
    let running = async || {
        let why = rig.awake("a").await.unwrap_or_default();
        why.iter().filter(|why| **why == "websocket_message").count()
    };
    let mut answered = 0;
    while answered < MESSAGES {
        within(async {
            while running().await == 0 {
                tokio::task::yield_now().await;
            }
        })
        .await;
        // It has all the time to take in more.
        for _ in 0..500 {
            let now = running().await;
            assert!(now <= 2, "{now} messages of 8 MiB are under way");
            tokio::task::yield_now().await;
        }
        let now = running().await;
        rig.clock.advance(Duration::from_secs(1));
        for _ in 0..now {
            let mut answer = [0; 9];
            within(reader.read_exact(&mut answer)).await.unwrap();
            assert_eq!(&answer[2..], b"8388608");
        }
        answered += now;
    }
    drop(within(flood).await.unwrap());
}

/// Fails in the way that the path says.
struct Fails;
impl Hooks for Fails {
    async fn fetch(probe: &Probe<Self>, request: Request) -> Result<Response> {
        match request.uri().path().rsplit('/').next() {
            Some("mismatch") => drop(probe.state.sql().exec("SELECT ?", ())?),
            Some("long") => drop(Tag::new("secret".repeat(100))?),
            Some("none") => return Err(Error::new(ErrorKind::NotFound, "secret").into()),
            Some("own") => return Err(Error::new(ErrorKind::Invalid, "secret").into()),
            _ => return probe.accept(&request),
        }
        Ok(reply::text("it did not fail"))
    }
}

#[tokio::test]
async fn an_objects_own_error_is_a_500_without_its_text_whatever_its_kind() {
    let rig = Rig::start::<Fails>().await;
    let service = rig.objects().service(|_| ObjectName::new("a"));
    for path in ["mismatch", "none", "own"] {
        let request = http::Request::get(format!("http://host/a/{path}")).body(Body::empty()).unwrap();
        let response = within(hyper::service::Service::call(&service, request)).await.unwrap();
        let status = response.status();
        let body = within(response.into_body().text(1_000)).await.unwrap();
        assert_eq!((status.as_u16(), body.as_str()), (500, "internal error"), "{path}");

        let mut raw = Raw::connect(rig.addr, None).await;
        raw.send(format!("GET /a/{path} HTTP/1.1\r\nhost: x\r\n\r\n").as_bytes()).await;
        let head = raw.head().await;
        assert!(head.starts_with("HTTP/1.1 500"), "{head}");
        assert_eq!(raw.bytes(14).await.unwrap(), b"internal error");
    }
}

#[tokio::test]
async fn a_broken_upgrade_is_a_400_with_its_text_through_the_service_too() {
    let rig = Rig::start::<Fails>().await;
    let service = rig.objects().service(|_| ObjectName::new("a"));
    let request = http::Request::get("http://host/a")
        .header("connection", "upgrade")
        .header("upgrade", "websocket")
        .header("sec-websocket-version", "8")
        .header("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==")
        .body(Body::empty())
        .unwrap();
    let response = within(hyper::service::Service::call(&service, request)).await.unwrap();
    assert_eq!(response.status(), 400);
    let body = within(response.into_body().text(1_000)).await.unwrap();
    assert_eq!(body, "the request asks for another version of WebSocket than 13");
}

#[tokio::test]
async fn objects_that_leave_early_keep_their_sockets() {
    let mut rig = Rig::with::<Plain>(|builder| builder.awake_objects(2)).await;
    let mut raws = Vec::new();
    for name in ["a", "b", "c", "d", "e"] {
        let mut raw = rig.raw(&format!("{name}?attach={name}")).await;
        raw.text("first").await;
        assert_eq!(raw.next().await, text("first"));
        rig.expect(["new", r#"message "first""#]).await;
        rig.pass(1).await; // so that they have been idle for different times
        raws.push((name, raw));
    }
    for (name, awake) in [("a", false), ("b", false), ("c", false), ("d", true), ("e", true)] {
        assert_eq!(rig.awake(name).await.is_some(), awake, "{name}");
    }
    for (_, raw) in &mut raws[..3] {
        raw.text("second").await;
        assert_eq!(raw.next().await, text("second"));
        rig.expect(["new", r#"message "second""#]).await;
    }
    rig.nothing_logged();
}
