//! Where the Worker differs from the native server: the platform answers before the code sees anything. Here stands
//! what workerd really does; all else holds for both hosts and is tested in `both`.
//!
//! | what | native server | Worker |
//! |---|---|---|
//! | changes come from | the watched folder and `POST /notify` | `POST /notify` |
//! | command line, exit codes, default data directory | its own | those of workerd or wrangler |
//! | a method that nobody knows; `CONNECT` | 405, `Allow` | 501; 500 |
//! | no `Host`, or an empty one | 403 on loopback, but `/` and `/healthz` answer | 400 |
//! | a request line that is none; an address over 64 KiB | 400; 414 | the same, with a text |
//! | a head of more than 100 lines; of 1 MB | 431; 431 | taken; 431, with a text |
//! | `/ws` without an upgrade, or with another version | 426, `Upgrade` | 426; answers have no `Upgrade` header |
//! | an upgrade of another version, or without a key | 426 or 400, JSON | 426 or 400, a text |
//! | an upgrade without `Connection`, or with a key that is none | 400 | 101 |
//! | an unmasked frame | 1002 | taken |
//! | a text that is no UTF-8 | 1007 | taken, with U+FFFD |
//! | a Close frame of one byte | 1002 | answered as one without a code |
//! | after 1002 | the connection ends | it stays until the client leaves; it counts no more |
//! | who does not read | 1013 at 1 MiB, dropped soon after | 1013 at 1 MiB; it stays until the client leaves; it counts no more |
//! | SIGTERM | editors get 1001, `/healthz` 503, exit 0 | workerd answers nobody new and waits until all have left |
//!
//! What the platform answers itself has a text instead of `{"error":"text"}`. On Cloudflare's network a front end stands
//! before all that, with limits of its own; a deployment there ends all connections, and the page connects again.

use crate::{
    both::ws::{editors, expect_close, one_does_not_read, raw_editor},
    common::{Editor, Http, Place, handshake_with, handshake_without, request, within},
};

#[tokio::test]
async fn what_is_no_request_is_answered_by_the_platform_in_text() {
    let place = Place::new();
    let server = place.start().await;
    let host = server.address.to_string();
    let right = [("host", host.as_str())];
    let long = format!("/{}", "a".repeat(66_000));
    let wide = "a".repeat(1_000_000);
    for (what, sent, status, body) in [
        ("a method", request("BREW", "/", &right, ""), 501, "ERROR: Unrecognized request method."),
        ("CONNECT", request("CONNECT", "/", &right, ""), 500, "Internal Server Error"),
        ("no Host", request("GET", "/healthz", &[], ""), 400, "Bad Request"),
        ("an empty Host", request("GET", "/healthz", &[("host", "")], ""), 400, "Bad Request"),
        ("no request line", "GET\r\n\r\n".to_owned(), 400, "invalid HTTP method parsed"),
        ("a long address", request("GET", &long, &right, ""), 414, "URI too long"),
        ("a long head", request("GET", "/", &[right[0], ("x", &wide)], ""), 431, "message head is too large"),
    ] {
        let mut http = Http::connect(server.address).await;
        http.send(sent.as_bytes()).await.unwrap();
        let answer = within("an answer", http.answer("GET")).await.unwrap();
        assert_eq!((answer.status, answer.text()), (status, body), "{what}");
    }
    assert_eq!(server.ask("GET", "/healthz", &[], "").await.status, 200, "it goes on");
}

#[tokio::test]
async fn upgrades_are_checked_by_the_platform_in_its_own_way() {
    let place = Place::new();
    let server = place.start().await;
    for (headers, status, body) in [
        (
            handshake_with("sec-websocket-version", "8"),
            426,
            "ERROR: The requested WebSocket version is not supported.",
        ),
        (
            handshake_without("sec-websocket-version"),
            426,
            "ERROR: The requested WebSocket version is not supported.",
        ),
        (handshake_without("sec-websocket-key"), 400, "ERROR: Missing Sec-WebSocket-Key"),
    ] {
        let answer = server.ask("GET", "/ws", &headers, "").await;
        assert_eq!((answer.status, answer.text()), (status, body), "{headers:?}");
    }
    for headers in [
        handshake_with("sec-websocket-key", "short"),
        handshake_without("connection"),
        handshake_with("connection", "keep-alive"),
    ] {
        assert_eq!(server.ask("GET", "/ws", &headers, "").await.status, 101, "{headers:?}");
    }
    let plain = server.ask("GET", "/ws", &[], "").await;
    assert_eq!(
        (plain.status, plain.header("upgrade")),
        (426, None),
        "the platform keeps this header to itself"
    );
}

#[tokio::test]
async fn frames_are_checked_less_strictly() {
    let place = Place::new();
    let server = place.start().await;
    let (mut other, _) = Editor::join(&server).await;
    let mut http = raw_editor(&server).await;
    assert_eq!(other.next().await, editors(2));
    http.send(b"\x81\x04ping").await.unwrap(); // unmasked
    assert_eq!(within("pong", http.frame()).await.unwrap(), (0x81, b"pong".to_vec()));
    http.send(b"\x81\x84\0\0\0\0caf\xe9").await.unwrap(); // no UTF-8: a malformed message only
    http.send(b"\x81\x84\0\0\0\0ping").await.unwrap();
    assert_eq!(within("pong", http.frame()).await.unwrap(), (0x81, b"pong".to_vec()));
    http.send(b"\x88\x81\0\0\0\0\x03").await.unwrap();
    assert_eq!(within("a Close frame", http.frame()).await.unwrap(), (0x88, Vec::new()));
    assert_eq!(other.next().await, editors(1));
}

#[tokio::test]
async fn who_broke_the_protocol_is_counted_out_at_once_and_stays_connected() {
    let place = Place::new();
    let server = place.start().await;
    let (mut other, _) = Editor::join(&server).await;
    let mut http = raw_editor(&server).await;
    assert_eq!(other.next().await, editors(2));
    http.send(&[0x83, 0x80, 0, 0, 0, 0]).await.unwrap();
    expect_close(&mut http, 1002).await;
    assert_eq!(other.next().await, editors(1));
    // It is in no list any more: the next change is for the other one.
    assert_eq!(server.notify_created("x").await, 1);
    assert_eq!(other.next().await["path"], "x");
    let (_third, hello) = Editor::join(&server).await;
    assert_eq!(hello["editors"], 2);
}

#[tokio::test]
async fn who_does_not_read_holds_nobody_up_and_is_closed_behind_what_was_on_its_way() {
    let place = Place::new();
    let server = place.start().await;
    let (mut reader, mut mute) = one_does_not_read(&server).await;
    let mut last = 0;
    loop {
        let (opcode, payload) = within("a change or the end", mute.frame()).await.unwrap();
        if opcode == 0x88 {
            assert_eq!(payload.get(..2), Some(&1_013_u16.to_be_bytes()[..]));
            break;
        }
        let change: serde_json::Value = serde_json::from_slice(&payload).unwrap();
        assert_eq!(change["seq"], last + 1);
        last += 1;
    }
    assert!(0 < last && last < 2_100, "{last}");
    let (_third, hello) = Editor::join(&server).await;
    assert_eq!(hello["editors"], 2);
    assert_eq!(reader.next().await, editors(2));
}

#[tokio::test]
async fn sigterm_waits_for_those_who_are_connected() {
    let place = Place::new();
    let mut server = place.start().await;
    let (mut editor, _) = Editor::join(&server).await;
    assert_eq!(server.notify_created("x").await, 1);
    assert_eq!(editor.next().await["path"], "x");
    server.terminate();
    editor.send(r#"{"type":"ping"}"#).await;
    assert_eq!(editor.text().await, r#"{"type":"pong"}"#, "it is still served");
    editor.leave().await;
    assert_eq!(server.ended().await.0.code(), Some(0));

    let server = place.start().await;
    let (_editor, hello) = Editor::join(&server).await;
    assert_eq!(hello["recent"][0]["path"], "x");
}
