use crate::{BuildLog, route};
use do_core::{kit::Kit, prelude::*};
use do_sse::{Decoded, Decoder};
use http_body_util::BodyExt;

#[test]
fn the_object_has_at_most_40_lines_of_code() {
    let object = include_str!("../build_log.rs").split("#[cfg(test)]").next().unwrap();
    let is_code = |line: &&str| !line.trim().is_empty() && !line.trim().starts_with("//");
    let lines = object.lines().filter(is_code).count();
    assert!(lines <= 40, "{lines}");
}

fn start() -> Kit {
    Kit::builder().object::<BuildLog<_>>("BUILDS").start().unwrap()
}

async fn ask(kit: &Kit, method: &str, path: &str, body: impl Into<Body>) -> Response {
    let uri = format!("http://builds{path}");
    kit.serve(route, http::Request::builder().method(method).uri(uri).body(body.into()).unwrap()).await
}

async fn post(kit: &Kit, what: &str, body: impl Into<Body>) -> u16 {
    ask(kit, "POST", &format!("/builds/main-17/{what}"), body).await.status().as_u16()
}

/// Somebody who reads the log, as an `EventSource` does.
struct Reader {
    body: Body,
    decoder: Decoder,
}

impl Reader {
    async fn open(kit: &Kit, after: &str) -> Self {
        let response = ask(kit, "GET", &format!("/builds/main-17/log{after}"), "").await;
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Self { body: response.into_body(), decoder: Decoder::new() }
    }

    async fn next(&mut self) -> Decoded {
        loop {
            if let Some(event) = self.decoder.next_event().unwrap() {
                return event;
            }
            let frame = self.body.frame().await.expect("the stream ended").unwrap();
            self.decoder.push(&frame.into_data().unwrap()).unwrap();
        }
    }

    /// The next events up to this number of them, each as `name: data`.
    async fn take(&mut self, count: usize) -> Vec<String> {
        let mut events = Vec::new();
        while events.len() < count {
            let Decoded { event, data, .. } = self.next().await;
            events.push(format!("{event}: {data}"));
        }
        events
    }
}

#[test]
fn a_log_is_seen_from_the_beginning_to_the_end_by_everyone_once() {
    let kit = start();
    kit.run(async {
        let mut early = Reader::open(&kit, "").await;
        assert_eq!(early.next().await.event, "ready");
        assert_eq!(post(&kit, "lines", "compiling\n  warning: \u{1b}[33munused\u{1b}[0m\r\n\n").await, 204);
        let lines = ["line: compiling", "line:   warning: \u{1b}[33munused\u{1b}[0m", "line: "];
        assert_eq!(early.take(3).await, lines);

        // Somebody comes in the middle; somebody else is away for a while, and the object was out of memory.
        let mut late = Reader::open(&kit, "").await;
        assert_eq!(late.take(4).await[1..], lines);
        let seen = early.decoder.last_event_id().to_owned();
        drop((early, late));
        kit.settle().await;
        kit.hibernate_all().await.unwrap();
        assert_eq!(post(&kit, "lines", b"caf\xe9".to_vec()).await, 204);
        let mut back = Reader::open(&kit, &format!("?lastEventId={seen}")).await;
        assert_eq!(back.next().await.event, "ready");
        assert_eq!(back.take(1).await, ["line: caf\u{fffd}"]);

        assert_eq!(post(&kit, "end", "it works\n").await, 204);
        assert_eq!(back.take(1).await, ["end: it works"]);
        let mut late = Reader::open(&kit, "").await;
        assert_eq!(late.take(6).await[1..4], lines);
        for what in ["lines", "end"] {
            assert_eq!(post(&kit, what, "more").await, 409, "{what}");
        }
    });
}

#[test]
fn a_report_is_in_the_log_as_a_whole_or_not_at_all() {
    let kit = start();
    kit.run(async {
        assert_eq!(post(&kit, "lines", "one\ntwo").await, 204);
        kit.crash();
        let mut reader = Reader::open(&kit, "").await;
        assert_eq!(reader.take(3).await[1..], ["line: one", "line: two"]);
        assert_eq!(post(&kit, "lines", "x".repeat(64 << 10)).await, 204);
        assert_eq!(reader.next().await.data.len(), 64 << 10);
        assert_eq!(post(&kit, "lines", "x\n".repeat(32 << 10) + "x").await, 413);
        assert_eq!(post(&kit, "lines", "").await, 204);
        assert_eq!(post(&kit, "end", "").await, 204);
        assert_eq!(reader.take(1).await, ["end: "]);
    });
}

#[test]
fn a_reader_that_is_quiet_for_long_hears_a_heartbeat() {
    let kit = start();
    kit.run(async {
        let mut reader = Reader::open(&kit, "").await;
        reader.take(1).await;
        for _ in 0..3 {
            kit.advance(Duration::from_secs(15)).await;
            let frame = reader.body.frame().await.unwrap().unwrap();
            assert_eq!(frame.into_data().unwrap(), ":\n\n");
        }
    });
}

#[test]
fn what_is_no_request_is_refused() {
    let kit = start();
    kit.run(async {
        for (method, path, status) in [
            ("GET", "/builds/main-17/lines", 404),
            ("PUT", "/builds/main-17/lines", 404),
            ("POST", "/builds/main-17/log", 404),
            ("POST", "/builds/main-17/", 404),
            ("POST", "/builds/main-17", 404),
            ("POST", "/builds//lines", 404),
            ("POST", "/builds/main-17/lines/", 404),
            ("GET", "/nothing", 404),
            ("HEAD", "/builds/main-17/log", 200),
        ] {
            assert_eq!(ask(&kit, method, path, "").await.status().as_u16(), status, "{method} {path}");
        }
        let foreign = http::Request::post("http://builds/builds/main-17/lines")
            .header("host", "builds")
            .header("origin", "http://evil.example");
        assert_eq!(kit.serve(route, foreign.body("x".into()).unwrap()).await.status(), 403);
        let page = ask(&kit, "GET", "/", "").await.into_body().text(1 << 20).await.unwrap();
        assert!(page.starts_with("<!doctype html>"));
        let script = ask(&kit, "GET", "/page.js", "").await.into_body().text(1 << 20).await.unwrap();
        assert!(script.contains("EventSource"));
    });
}
