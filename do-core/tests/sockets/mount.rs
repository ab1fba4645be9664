//! The service inside other servers: axum and plain hyper.

use crate::common::*;
use do_core::{
    prelude::*,
    tokio::{HostNamespace, HostSocket},
};
use futures::{SinkExt, StreamExt};
use hyper_util::rt::TokioIo;
use std::net::SocketAddr;
use tokio::net::{TcpListener, TcpStream};

/// Echoes on sockets and streams a response whose parts are a second apart.
struct Mounted;
impl Hooks for Mounted {
    async fn fetch(probe: &Probe<Self>, request: Request) -> Result<Response> {
        if Upgrade::of(&request) != Upgrade::None {
            return probe.accept(&request);
        }
        let uri = request.uri().to_string();
        let posted = request.into_body().text(1_000).await?;
        probe.log(format!("{uri} {posted}"));
        let (sender, body) = Body::channel(1_000);
        let state = probe.state.clone();
        sender.try_send("one ")?;
        probe.state.wait_until(async move {
            state.sleep(Duration::from_secs(1)).await;
            let _ = sender.try_send("two");
        });
        Ok(reply::stream(body, "text/plain"))
    }
}

fn route(head: &http::request::Parts) -> Result<ObjectName, Error> {
    ObjectName::new(head.uri.path().split('/').nth(1).unwrap_or_default())
}

async fn serve_axum(listener: TcpListener, objects: HostNamespace) {
    let app = axum::Router::new().fallback_service(objects.service(route));
    axum::serve(listener, app).await.unwrap();
}

async fn serve_hyper(listener: TcpListener, objects: HostNamespace) {
    let service = objects.service(route);
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let service = service.clone();
        tokio::spawn(async move {
            let served = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .with_upgrades();
            let _ = served.await;
        });
    }
}

/// The same for every way of mounting.
async fn exercise(rig: &mut Rig, addr: SocketAddr) {
    let stream = within(TcpStream::connect(addr)).await.unwrap();
    let url = format!("ws://{addr}/room?attach=x");
    let (mut client, _) = within(tokio_tungstenite::client_async(url, stream)).await.unwrap();
    client.send(words("hello")).await.unwrap();
    assert_eq!(within(client.next()).await.unwrap().unwrap(), words("hello"));
    rig.expect(["new", r#"message "hello""#]).await;
    rig.evict("room").await;
    client.send(words("again")).await.unwrap();
    assert_eq!(within(client.next()).await.unwrap().unwrap(), words("again"));
    within(client.close(None)).await.unwrap();
    while let Some(message) = within(client.next()).await {
        message.unwrap();
    }
    rig.expect(["new", r#"message "again""#, r#"close 1005 "" clean"#]).await;

    // A streamed response, chunk by chunk, and the absolute URI (rule A12).
    let mut raw = Raw::connect(addr, None).await;
    raw.send(b"POST /other/path?q=1 HTTP/1.1\r\nhost: example.org:81\r\ncontent-length: 4\r\n\r\nbody").await;
    assert!(raw.head().await.starts_with("HTTP/1.1 200 OK"));
    assert_eq!(raw.bytes(9).await.unwrap(), b"4\r\none \r\n");
    rig.expect(["new", "http://example.org:81/other/path?q=1 body"]).await;
    rig.pass(1).await;
    assert_eq!(raw.bytes(13).await.unwrap(), b"3\r\ntwo\r\n0\r\n\r\n");

    // Errors become responses.
    let mut raw = Raw::connect(addr, None).await;
    raw.send(format!("GET /{} HTTP/1.1\r\nhost: x\r\n\r\n", "n".repeat(1_025)).as_bytes()).await;
    assert!(raw.head().await.starts_with("HTTP/1.1 413"));
}

#[tokio::test]
async fn mounts_in_axum_in_one_line() {
    let mut rig = Rig::start::<Mounted>().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    tokio::spawn(serve_axum(listener, rig.objects()));
    exercise(&mut rig, addr).await;
}

#[tokio::test]
async fn mounts_in_plain_hyper() {
    let mut rig = Rig::start::<Mounted>().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    tokio::spawn(serve_hyper(listener, rig.objects()));
    exercise(&mut rig, addr).await;
}

#[tokio::test]
async fn serves_by_itself() {
    let mut rig = Rig::start::<Mounted>().await;
    let addr = rig.addr;
    exercise(&mut rig, addr).await;
}

/// It comes with the handshake, so that HTTP has read it; and it is longer than one read of a socket.
#[tokio::test]
async fn what_is_sent_behind_the_handshake_is_read_first() {
    let mut rig = Rig::start::<Mounted>().await;
    let long = "x".repeat(6_000);
    let mut raw = Raw::connect(rig.addr, None).await;
    let early =
        [upgrade_head("room").as_bytes(), &frame(TEXT, long.as_bytes()), &frame(TEXT, b"second")].concat();
    raw.send(&early).await;
    assert!(raw.head().await.starts_with("HTTP/1.1 101"));
    raw.text("third").await;
    rig.expect(["new", "message text of 6000 bytes", r#"message "second""#, r#"message "third""#]).await;
}

#[tokio::test]
async fn a_front_that_drops_the_101_ends_in_a_close_1006() {
    struct H;
    impl Hooks for H {
        async fn message(_: &Probe<Self>, _: HostSocket, _: Message) -> Result<()> {
            Ok(())
        }
    }
    let mut rig = Rig::start::<H>().await;
    let objects = rig.objects();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    let app = axum::Router::new().fallback(move |request: axum::extract::Request| {
        let stub = objects.named("room").unwrap();
        async move {
            let response = stub.fetch(request.map(Body::from_http)).await;
            if response.is_ok_and(|response| response.status() == 101) { "not today" } else { "no 101" }
        }
    });
    tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
    let mut raw = Raw::connect(addr, None).await;
    raw.send(upgrade_head("room").as_bytes()).await;
    assert!(raw.head().await.starts_with("HTTP/1.1 200"));
    assert_eq!(raw.bytes(9).await.unwrap(), b"not today");
    rig.expect(["new"]).await;
    rig.pass(10).await; // at the latest then; the object has been idle as long
    match rig.logged().await.as_str() {
        LOST => {}
        line => {
            assert_eq!(line, "new");
            rig.expect([LOST]).await;
        }
    }
    // The connection is kept for other requests.
    raw.send(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").await;
    let head = raw.head().await;
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    assert_eq!(raw.bytes(6).await.unwrap(), b"no 101");
}

#[tokio::test]
async fn without_with_upgrades_a_socket_is_refused_or_lost_but_never_hangs() {
    let mut rig = Rig::start::<Plain>().await;
    let service = rig.objects().service(route);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let _ =
            hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
    });
    let mut raw = Raw::connect(addr, None).await;
    raw.send(upgrade_head("room").as_bytes()).await;
    let _ = raw.head().await;
    rig.expect(["new"]).await;
    rig.pass(10).await;
    loop {
        match rig.logged().await.as_str() {
            LOST => break,
            line => assert_eq!(line, "new"),
        }
    }
}
