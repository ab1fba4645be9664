//! The HTTP interface, to the letter.

use crate::common::{
    Answer, HANDSHAKE, Http, JSON, PATIENCE, Place, Server, created, handshake_with, handshake_without,
    request, within,
};
use serde_json::{Value, json};
use tokio::time::timeout;

async fn status(server: &Server, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> u16 {
    let answer = server.ask(method, path, headers, body).await;
    if answer.status >= 400 && method != "HEAD" {
        assert_ne!(answer.error(), "");
    }
    answer.status
}

#[tokio::test]
async fn healthz_is_ok() {
    let place = Place::new();
    let server = place.start().await;
    let answer = server.ask("GET", "/healthz", &[], "").await;
    assert_eq!((answer.status, answer.text()), (200, "ok"));
    server.stop().await;
}

#[tokio::test]
async fn the_page_is_html_under_a_policy_that_lets_nothing_foreign_run() {
    let place = Place::new();
    let server = place.start().await;
    let page = server.ask("GET", "/", &[], "").await;
    assert_eq!(page.status, 200);
    assert_eq!(page.header("content-type"), Some("text/html; charset=utf-8"));
    assert_eq!(page.header("x-content-type-options"), Some("nosniff"));
    assert!(page.text().starts_with("<!doctype html>"));
    let policy = page.header("content-security-policy").unwrap();
    for part in [
        "default-src 'none'",
        "script-src 'self' 'sha256-",
        "connect-src 'self' ws: wss:",
        "frame-ancestors 'none'",
    ] {
        assert!(policy.contains(part), "{policy}");
    }
    assert!(!policy.contains("script-src 'unsafe-inline'"));

    let head = server.ask("HEAD", "/", &[], "").await;
    assert_eq!((head.status, head.body.len()), (200, 0));
    assert_eq!(head.header("content-length"), Some(page.body.len().to_string().as_str()));
}

#[tokio::test]
async fn a_wrong_method_is_405_with_allow_and_an_unknown_path_404() {
    let place = Place::new();
    let server = place.start().await;
    for (path, allowed) in [
        ("/", "GET, HEAD"),
        ("/client.js", "GET, HEAD"),
        ("/healthz", "GET, HEAD"),
        ("/ws", "GET"),
        ("/events", "GET, HEAD"),
        ("/notify", "POST"),
    ] {
        for method in ["GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"] {
            if allowed.contains(method) {
                continue;
            }
            let answer = server.ask(method, path, &[], "").await;
            assert_eq!(answer.status, 405, "{method} {path}");
            assert_eq!(answer.header("allow"), Some(allowed), "{method} {path}");
            assert_ne!(answer.error(), "");
        }
    }
    for path in ["/nothing", "/ws/", "/events/", "/notify/x", "//", "/healthz/", "/index.html"] {
        for method in ["GET", "POST"] {
            assert_eq!(status(&server, method, path, &[], "").await, 404, "{method} {path}");
        }
    }
    assert_eq!(status(&server, "GET", "/healthz?verbose=1", &[], "").await, 200, "a query changes nothing");
}

#[tokio::test]
async fn a_report_is_one_change_or_a_list_and_answered_by_the_last_number() {
    let place = Place::new();
    let server = place.start().await;
    assert_eq!(server.notify(&created("a")).await, (200, json!({ "seq": 1 })));
    let renamed = json!({ "type": "change", "kind": "renamed", "path": "c", "from": "a" }).to_string();
    assert_eq!(server.notify(&renamed).await, (200, json!({ "seq": 2 })));
    let list = json!([{ "kind": "modified", "path": "x" }, { "kind": "removed", "path": "y/z" }]);
    assert_eq!(server.notify(&list.to_string()).await, (200, json!({ "seq": 4 })));
    let most: Vec<Value> = (0..1_000).map(|n| json!({ "kind": "created", "path": format!("{n}") })).collect();
    assert_eq!(server.notify(&json!(most).to_string()).await, (200, json!({ "seq": 1_004 })));
}

#[tokio::test]
async fn a_malformed_report_is_400_and_records_nothing() {
    let place = Place::new();
    let server = place.start().await;
    for body in [
        "",
        "{",
        "null",
        "[]",
        "1",
        r#""created""#,
        "{}",
        r#"{"kind":"created"}"#,
        r#"{"path":"x"}"#,
        r#"{"kind":"touched","path":"x"}"#,
        r#"{"kind":"created","path":""}"#,
        r#"{"kind":"created","path":7}"#,
        r#"{"kind":"created","path":"/etc/passwd"}"#,
        r#"{"kind":"created","path":"../x"}"#,
        r#"{"kind":"renamed","path":"x"}"#,
        r#"{"kind":"created","path":"x","from":"y"}"#,
        r#"{"kind":"created","path":"x","seq":9}"#,
        r#"{"kind":"created","path":"x","at":9}"#,
        r#"{"type":"hello","kind":"created","path":"x"}"#,
        r#"[{"kind":"created","path":"x"},{"kind":"created","path":""}]"#,
        r#"[{"kind":"created","path":"x"},null]"#,
    ] {
        assert_eq!(status(&server, "POST", "/notify", &[JSON], body).await, 400, "{body}");
    }
    assert_eq!(server.notify_created("x").await, 1, "nothing of the refused was recorded");
}

#[tokio::test]
async fn a_body_that_is_no_utf8_is_400() {
    let place = Place::new();
    let server = place.start().await;
    let mut http = Http::connect(server.address).await;
    let host = server.address.to_string();
    let head = request("POST", "/notify", &[("host", &host), JSON, ("content-length", "29")], "");
    http.send(head.as_bytes()).await.unwrap();
    http.send(b"{\"kind\":\"created\",\"path\":\"\xff\"} ").await.unwrap();
    let answer = within("an answer", http.answer("POST")).await.unwrap();
    assert_eq!(answer.status, 400);
    assert_ne!(answer.error(), "");
}

/// A report of exactly so many bytes.
fn report_of(bytes: usize) -> String {
    let report = created("x");
    format!("{}{report}", " ".repeat(bytes - report.len()))
}

#[tokio::test]
async fn a_report_of_64_kib_is_taken_and_a_longer_one_is_413_however_it_is_sent() {
    let place = Place::new();
    let server = place.start().await;
    let most = 64 * 1_024;
    let chunked = |body: &str| format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
    let encoding = ("transfer-encoding", "chunked");

    let (fits, too_long) = (report_of(most), report_of(most + 1));
    assert_eq!(status(&server, "POST", "/notify", &[JSON], &fits).await, 200);
    assert_eq!(status(&server, "POST", "/notify", &[JSON], &too_long).await, 413);
    assert_eq!(status(&server, "POST", "/notify", &[JSON, encoding], &chunked(&fits)).await, 200);
    assert_eq!(status(&server, "POST", "/notify", &[JSON, encoding], &chunked(&too_long)).await, 413);
    // Announced only: refused without waiting for what will not come.
    let announced = [JSON, ("content-length", "100000000")];
    assert_eq!(status(&server, "POST", "/notify", &announced, "").await, 413);
    let list = json!(vec![json!({ "kind": "created", "path": "x" }); 1_001]).to_string();
    assert!(list.len() < most);
    assert_eq!(status(&server, "POST", "/notify", &[JSON], &list).await, 413);
    assert_eq!(server.notify_created("x").await, 3, "the refused were not recorded");
}

#[tokio::test]
async fn only_json_is_taken_and_another_type_is_415() {
    let place = Place::new();
    let server = place.start().await;
    let body = created("x");
    for (kind, expected) in [
        ("application/json", 200),
        ("Application/JSON; charset=utf-8", 200),
        ("application/json ;x=y", 200),
        ("text/plain", 415),
        ("application/jsonp", 415),
        ("application/x-www-form-urlencoded", 415),
        ("", 415),
    ] {
        assert_eq!(
            status(&server, "POST", "/notify", &[("content-type", kind)], &body).await,
            expected,
            "{kind}"
        );
    }
    assert_eq!(status(&server, "POST", "/notify", &[], &body).await, 415, "no type at all");
}

#[tokio::test]
async fn a_client_that_ends_its_body_early_records_nothing() {
    let place = Place::new();
    let server = place.start().await;
    let host = server.address.to_string();
    let mut http = Http::connect(server.address).await;
    let head = request("POST", "/notify", &[("host", &host), JSON, ("content-length", "500")], "");
    http.send(head.as_bytes()).await.unwrap();
    http.send(created("x").as_bytes()).await.unwrap();
    drop(http);
    assert_eq!(server.notify_created("y").await, 1);
}

#[tokio::test]
async fn many_requests_go_over_one_connection() {
    let place = Place::new();
    let server = place.start().await;
    let host = server.address.to_string();
    let mut http = Http::connect(server.address).await;
    for seq in 1..=3 {
        http.send(request("POST", "/notify", &[("host", &host), JSON], &created("x")).as_bytes())
            .await
            .unwrap();
        let answer = within("an answer", http.answer("POST")).await.unwrap();
        assert_eq!(answer.json(), json!({ "seq": seq }));
        http.send(request("DELETE", "/notify", &[("host", &host)], "").as_bytes()).await.unwrap();
        assert_eq!(within("an answer", http.answer("DELETE")).await.unwrap().status, 405);
    }
}

#[tokio::test]
async fn ws_without_an_upgrade_or_with_another_version_is_426() {
    let place = Place::new();
    let server = place.start().await;
    let right = server.ask("GET", "/ws", &HANDSHAKE, "").await;
    assert_eq!(right.status, 101);
    assert_eq!(right.header("sec-websocket-accept"), Some("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="));

    for plain in [&[][..], &[("connection", "Upgrade"), ("upgrade", "h2c")]] {
        let answer = server.ask("GET", "/ws", plain, "").await;
        assert_eq!((answer.status, answer.header("sec-websocket-version")), (426, Some("13")), "{plain:?}");
        assert_ne!(answer.error(), "");
    }
    let older = handshake_with("sec-websocket-version", "8");
    let answer = server.ask("GET", "/ws", &older, "").await;
    assert_eq!((answer.status, answer.header("sec-websocket-version")), (426, Some("13")));
    assert_eq!(server.ask("GET", "/ws", &handshake_without("sec-websocket-key"), "").await.status, 400);
    assert_eq!(server.ask("POST", "/ws", &HANDSHAKE, "").await.status, 405);
    // An upgrade is an offer, which the other addresses do not take.
    assert_eq!(server.ask("GET", "/healthz", &HANDSHAKE, "").await.text(), "ok");
    assert_eq!(status(&server, "GET", "/nothing", &HANDSHAKE, "").await, 404);
}

#[tokio::test]
async fn a_connection_outlives_an_upgrade_that_the_route_refuses() {
    let place = Place::new();
    let server = place.start().await;
    let host = server.address.to_string();
    let mut http = Http::connect(server.address).await;
    let mut headers = vec![("host", host.as_str()), ("origin", "http://evil.example")];
    headers.extend(HANDSHAKE);
    http.send(request("GET", "/ws", &headers, "").as_bytes()).await.unwrap();
    let refused = within("an answer", http.answer("GET")).await.unwrap();
    assert_eq!((refused.status, refused.error().as_str()), (403, "the Origin is not this server"));
    http.send(request("GET", "/healthz", &[("host", &host)], "").as_bytes()).await.unwrap();
    assert_eq!(within("an answer", http.answer("GET")).await.unwrap().text(), "ok");
}

/// The statuses of a handshake and of a report with these headers, which say the `Host`.
async fn both(server: &Server, headers: &[(&str, &str)]) -> (u16, u16) {
    let ask = async |method: &str, path: &str, more: &[(&str, &str)], body: &str| -> Answer {
        let all: Vec<_> = headers.iter().chain(more).copied().collect();
        let mut http = Http::connect(server.address).await;
        http.send(request(method, path, &all, body).as_bytes()).await.unwrap();
        timeout(PATIENCE, http.answer(method)).await.unwrap().unwrap()
    };
    let socket = ask("GET", "/ws", &HANDSHAKE, "").await;
    let report = ask("POST", "/notify", &[JSON], &created("x")).await;
    for answer in [&socket, &report] {
        if answer.status >= 400 {
            assert_ne!(answer.error(), "");
        }
    }
    (socket.status, report.status)
}

const TAKEN: (u16, u16) = (101, 200);
const REFUSED: (u16, u16) = (403, 403);

#[tokio::test]
async fn a_loopback_listener_refuses_foreign_origins_and_hosts() {
    let place = Place::new();
    let server = place.start().await;
    let port = server.address.port();
    for (host, origin, expected) in [
        ("127.0.0.1:PORT", None, TAKEN),
        ("127.0.0.1:PORT", Some("http://127.0.0.1:PORT"), TAKEN),
        ("localhost:PORT", Some("http://localhost:PORT"), TAKEN),
        ("LOCALHOST:PORT", Some("http://localhost:PORT"), TAKEN),
        ("[::1]:PORT", Some("http://[::1]:PORT"), TAKEN),
        ("127.0.0.1", Some("http://127.0.0.1:80"), TAKEN),
        ("127.0.0.1:PORT", Some("http://localhost:PORT"), REFUSED),
        ("127.0.0.1:PORT", Some("http://127.0.0.1"), REFUSED),
        ("127.0.0.1:PORT", Some("http://127.0.0.1:1"), REFUSED),
        ("[::1]:PORT", Some("http://[::1]:1"), REFUSED),
        ("[::1]:PORT", Some("http://[::2]:PORT"), REFUSED),
        ("127.0.0.1:PORT", Some("http://evil.example"), REFUSED),
        ("127.0.0.1:PORT", Some("null"), REFUSED),
        ("evil.example:PORT", None, REFUSED),
        ("evil.example:PORT", Some("http://evil.example:PORT"), REFUSED),
        ("127.0.0.1.evil.example", None, REFUSED),
        ("[::2]:PORT", None, REFUSED),
        ("192.168.1.1:PORT", None, REFUSED),
        ("a b/c", None, REFUSED),
    ] {
        let host = host.replace("PORT", &port.to_string());
        let origin = origin.map(|origin: &str| origin.replace("PORT", &port.to_string()));
        let mut headers = vec![("host", host.as_str())];
        headers.extend(origin.as_deref().map(|origin| ("origin", origin)));
        assert_eq!(both(&server, &headers).await, expected, "{headers:?}");
    }
    // What tells nothing and changes nothing is for everybody.
    for path in ["/", "/healthz"] {
        let mut http = Http::connect(server.address).await;
        http.send(request("GET", path, &[("host", "evil.example")], "").as_bytes()).await.unwrap();
        assert_eq!(http.answer("GET").await.unwrap().status, 200);
    }
}

#[tokio::test]
async fn another_listener_takes_any_host_but_no_foreign_origin() {
    let place = Place::new();
    let server = place.start_at("0.0.0.0").await;
    assert_eq!(both(&server, &[("host", "my.example")]).await, TAKEN);
    assert_eq!(both(&server, &[("host", "my.example"), ("origin", "http://my.example")]).await, TAKEN);
    assert_eq!(both(&server, &[("host", "my.example"), ("origin", "https://my.example")]).await, TAKEN);
    assert_eq!(both(&server, &[("host", "my.example"), ("origin", "http://other.example")]).await, REFUSED);
    assert_eq!(both(&server, &[("host", "my.example:1"), ("origin", "http://my.example")]).await, REFUSED);
    assert_eq!(both(&server, &[("host", "a b/c")]).await, (400, 400), "a Host that is none");
}

#[tokio::test]
async fn an_ipv6_listener_is_loopback_too() {
    if std::net::TcpListener::bind("[::1]:0").is_err() {
        return; // this machine has no IPv6
    }
    let place = Place::new();
    let server = place.start_at("[::1]").await;
    let host = format!("[::1]:{}", server.address.port());
    assert_eq!(both(&server, &[("host", &host), ("origin", &format!("http://{host}"))]).await, TAKEN);
    assert_eq!(both(&server, &[("host", "evil.example")]).await, REFUSED);
}
