//! What clients get.

use crate::client::{Client, keep_beating, serve, soon};
use do_core::Origins;
use do_sse::{Event, History, Hub, Item, Settings};
use http::Method;
use std::time::Duration;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

#[tokio::test]
async fn f18_f19_the_headers_and_the_first_event_come_at_once() {
    let hub = Hub::new(Settings::new().history(History::new()));
    let address = serve(&hub).await;
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(b"GET /events HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    let mut read = Vec::new();
    while !read.ends_with(b"\"}\n\n\r\n") {
        read.push(soon(stream.read_u8()).await.unwrap());
    }
    let text = String::from_utf8(read).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let mut headers: Vec<&str> = head.lines().filter(|line| !line.starts_with("date: ")).collect();
    headers.sort_unstable();
    let wanted = [
        "HTTP/1.1 200 OK",
        "cache-control: no-store, no-transform",
        "content-type: text/event-stream",
        "transfer-encoding: chunked",
        "x-accel-buffering: no",
    ];
    assert_eq!(headers, wanted);
    assert!(body.contains("\r\nretry: ") && body.contains("\nevent: ready\nid: "), "{body}");
}

#[tokio::test]
async fn s1_what_is_published_broadcast_and_sent_arrives_in_order() {
    let hub = Hub::new(Settings::new().history(History::new()));
    let address = serve(&hub).await;
    let mut client = Client::open(address).await;
    client.next_of("ready").await;
    let id = hub.infos()[0].id.clone();
    hub.publish("1").unwrap();
    hub.broadcast("2").send();
    hub.send_to(&id, "3");
    hub.publish("4").unwrap();
    for data in ["1", "2", "3", "4"] {
        assert_eq!(client.next_of("message").await, data);
    }
}

#[tokio::test]
async fn f5_who_comes_back_continues() {
    let hub = Hub::new(Settings::new().history(History::new()));
    let address = serve(&hub).await;
    let mut client = Client::open(address).await;
    client.next_of("ready").await;
    let seen = hub.publish("1").unwrap().position;
    assert_eq!(client.next_of("message").await, "1");
    drop(client);
    hub.publish("2").unwrap();
    let headers = format!("last-event-id: {seen}\r\n");
    let mut client = Client::ask(address, &Method::GET, &headers).await;
    assert_eq!(client.next_of("message").await, "2");
    assert_eq!(hub.stats().resumed, 1);
}

#[tokio::test]
async fn s5_a_quiet_connection_gets_comments() {
    let hub = Hub::new(Settings::new().heartbeat(Duration::from_millis(100)));
    let address = serve(&hub).await;
    let beating = keep_beating(&hub);
    let mut client = Client::open(address).await;
    client.next_of("ready").await;
    for _ in 0..3 {
        assert_eq!(client.next().await, Some(Item::Comment(String::new())));
    }
    beating.abort();
}

#[tokio::test]
async fn head_and_preflight_open_nothing() {
    let origins = Origins::same_host().allow("https://app.example.com").unwrap();
    let hub = Hub::new(Settings::new().cors(origins));
    let address = serve(&hub).await;
    let mut head = Client::ask(address, &Method::HEAD, "").await;
    assert!(
        head.head.starts_with("HTTP/1.0 200") && head.head.contains("text/event-stream"),
        "{}",
        head.head
    );
    assert_eq!(head.next().await, None);
    let asked = "origin: https://app.example.com\r\naccess-control-request-method: GET\r\n\
                 access-control-request-headers: last-event-id\r\n";
    let mut preflight = Client::ask(address, &Method::OPTIONS, asked).await;
    assert!(preflight.head.starts_with("HTTP/1.0 204"), "{}", preflight.head);
    assert!(preflight.head.contains("access-control-allow-headers: last-event-id\r\n"), "{}", preflight.head);
    assert_eq!(preflight.next().await, None);
    assert_eq!(hub.stats().opened, 0);
}

#[tokio::test]
async fn a_page_that_is_not_allowed_does_not_take_the_place_of_one_that_is() {
    let origins = Origins::same_host().allow("https://app.example.com").unwrap();
    let hub = Hub::new(Settings::new().cors(origins));
    let open = |origin: &str| {
        let request = http::Request::get("/").header("host", "feeds.example.com").header("origin", origin);
        hub.open(&request.body(()).unwrap()).id("ann").start().unwrap()
    };
    let allowed = open("https://app.example.com");
    assert_eq!(allowed.headers()["access-control-allow-credentials"], "true");
    let foreign = open("https://evil.example");
    assert_eq!(
        (foreign.status().as_u16(), foreign.headers().get("access-control-allow-origin")),
        (403, None)
    );
    assert_eq!((hub.stats().opened, hub.stats().replaced), (1, 0));
    let own = open("https://feeds.example.com");
    assert_eq!((own.status().as_u16(), hub.stats().replaced), (200, 1));
}

#[tokio::test]
async fn the_end_of_the_last_hub_is_the_end_of_its_streams_behind_what_waits() {
    let hub = Hub::new(Settings::new());
    let mut body = hub.open(&http::Request::get("/").body(()).unwrap()).start().unwrap().into_body();
    hub.broadcast(Event::from("the last")).send();
    let clone = hub.clone();
    drop(hub);
    assert_eq!(clone.count(), 1, "a clone is the same hub");
    drop(clone);
    let mut text = String::new();
    while let Some(frame) = soon(http_body_util::BodyExt::frame(&mut body)).await {
        text += std::str::from_utf8(&frame.unwrap().into_data().unwrap()).unwrap();
    }
    assert!(text.ends_with("data: the last\n\n"), "{text}");
}

#[tokio::test]
async fn close_all_ends_the_response_and_keeps_the_server() {
    let hub = Hub::new(Settings::new());
    let address = serve(&hub).await;
    let mut client = Client::open(address).await;
    client.next_of("ready").await;
    hub.broadcast("x").send();
    assert_eq!(hub.close_all(), 1);
    assert_eq!(client.next_of("message").await, "x");
    assert_eq!(client.next().await, None);
    let mut client = Client::open(address).await;
    client.next_of("ready").await;
}
