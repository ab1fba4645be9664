//! What of the HTTP interface is the native server's own: on Workers the platform answers these itself.

use crate::common::{Http, Place, handshake_with, handshake_without, request};

#[tokio::test]
async fn the_first_line_says_where() {
    let place = Place::new();
    for host in ["127.0.0.1", "0.0.0.0", "[::1]"] {
        if std::net::TcpListener::bind(format!("{host}:0")).is_err() {
            continue; // this machine has no IPv6
        }
        let server = place.start_at(host).await;
        assert_ne!(server.address.port(), 0);
        assert_eq!(server.program.line, format!("listening on http://{host}:{}", server.address.port()));
        server.stop().await;
    }
}

#[tokio::test]
async fn a_method_that_nobody_knows_is_405_too() {
    let place = Place::new();
    let server = place.start().await;
    for (path, allowed) in [("/", "GET, HEAD"), ("/notify", "POST")] {
        let answer = server.ask("BREW", path, &[], "").await;
        assert_eq!((answer.status, answer.header("allow")), (405, Some(allowed)), "{path}");
        assert_ne!(answer.error(), "");
    }
}

#[tokio::test]
async fn a_host_that_is_empty_is_no_host_of_this_machine() {
    let place = Place::new();
    let server = place.start().await;
    let mut http = Http::connect(server.address).await;
    http.send(request("GET", "/ws", &[("host", "")], "").as_bytes()).await.unwrap();
    let answer = http.answer("GET").await.unwrap();
    assert_eq!(answer.status, 403);
    assert_ne!(answer.error(), "");
}

#[tokio::test]
async fn a_broken_upgrade_is_400_and_one_is_asked_for_with_the_right_header() {
    let place = Place::new();
    let server = place.start().await;
    let plain = server.ask("GET", "/ws", &[], "").await;
    assert_eq!((plain.status, plain.header("upgrade")), (426, Some("websocket")));
    let older = server.ask("GET", "/ws", &handshake_with("sec-websocket-version", "8"), "").await;
    assert_ne!(older.error(), "");
    for broken in [
        handshake_without("sec-websocket-key"),
        handshake_with("sec-websocket-key", "short"),
        handshake_with("sec-websocket-key", "not base64 at all!!!!!!!"),
        handshake_without("connection"),
        handshake_with("connection", "keep-alive"),
    ] {
        let answer = server.ask("GET", "/ws", &broken, "").await;
        assert_eq!(answer.status, 400, "{broken:?}");
        assert_ne!(answer.error(), "");
    }
}
