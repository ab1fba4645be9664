use super::*;
use crate::{change::BODY_BYTES, ready};
use do_core::{ObjectId, Secret};
use std::{
    future,
    sync::{Arc, Mutex},
    task::Poll,
};

/// A host of which only the room's answer matters.
#[derive(Clone, Default)]
struct Fake {
    loopback: bool,
    room: Option<&'static str>,
    /// What the room's stub fails with.
    fault: Option<ErrorKind>,
    /// Every wait is over at once.
    hasty: bool,
    /// Which rooms were asked, for which path, with which body.
    asked: Arc<Mutex<Vec<(String, String, usize)>>>,
}

impl Env for Fake {
    type Namespace = Self;

    fn namespace(&self, binding: &str) -> Result<Self, Error> {
        assert_eq!(binding, "SYNC_ROOM");
        Ok(self.clone())
    }

    fn var(&self, name: &str) -> Result<String, Error> {
        match (name, self.room) {
            ("LOOPBACK", _) if self.loopback => Ok("1".to_owned()),
            ("ROOM", Some(room)) => Ok(room.to_owned()),
            _ => Err(Error::new(ErrorKind::NotFound, "no such variable")),
        }
    }

    fn secret(&self, _: &str) -> Result<Secret, Error> {
        Err(Error::new(ErrorKind::NotFound, "no such secret"))
    }
}

impl Namespace for Fake {
    type Stub = FakeStub;

    fn id_of(&self, name: &ObjectName) -> Result<ObjectId, Error> {
        Ok(ObjectId::from_parts([7; 32], Some(name.clone())))
    }

    fn parse_id(&self, _: &str) -> Result<ObjectId, Error> {
        Err(Error::new(ErrorKind::Invalid, "no"))
    }

    fn unique_id(&self) -> Result<ObjectId, Error> {
        Err(Error::new(ErrorKind::Platform, "no"))
    }

    fn get(&self, id: &ObjectId) -> Result<FakeStub, Error> {
        Ok(FakeStub { id: id.clone(), host: self.clone() })
    }
}

#[derive(Clone)]
struct FakeStub {
    id: ObjectId,
    host: Fake,
}

impl Stub for FakeStub {
    fn id(&self) -> &ObjectId {
        &self.id
    }

    fn fetch(&self, request: Request) -> impl Future<Output = Result<Response, Error>> + Send + use<> {
        let length = usize::try_from(request.body().size_hint().exact().unwrap()).unwrap();
        let name = self.id.name().unwrap().to_string();
        self.host.asked.lock().unwrap().push((name, request.uri().path().to_owned(), length));
        future::ready(match self.host.fault {
            Some(kind) => Err(Error::new(kind, "a secret of the inside")),
            None => Ok(reply::text("from the room")),
        })
    }

    fn delay(&self, _: Duration) -> impl Future<Output = ()> + Send + use<> {
        let over = self.host.hasty;
        future::poll_fn(move |_| if over { Poll::Ready(()) } else { Poll::Pending })
    }

    fn random(&self) -> Result<u64, Error> {
        Ok(7)
    }
}

struct Answer {
    status: u16,
    headers: HeaderMap,
    body: String,
}

impl Answer {
    fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// That it makes an `EventSource` come back.
    fn later(&self) {
        assert_eq!((self.status, self.header("content-type")), (200, "text/event-stream"));
        assert_eq!(self.body, "retry: 5000\n\n");
    }

    /// That it is an error as the interface has them.
    fn error(&self, status: u16) {
        assert_eq!(self.status, status, "{}", self.body);
        assert_eq!(self.header("content-type"), "application/json");
        let body: serde_json::Value = serde_json::from_str(&self.body).unwrap();
        let text = body["error"].as_str().unwrap();
        assert!(!text.is_empty() && !text.contains("secret"), "{text}");
        assert_eq!(body.as_object().unwrap().len(), 1);
    }
}

fn ask_in(host: &Fake, phase: Phase, request: http::request::Builder, body: impl Into<Body>) -> Answer {
    let request = request.body(body.into()).unwrap();
    let response = ready(route_in(request, host.clone(), phase)).unwrap();
    let (head, body) = response.into_parts();
    Answer { status: head.status.as_u16(), headers: head.headers, body: ready(body.text(1 << 20)).unwrap() }
}

fn ask(host: &Fake, request: http::request::Builder, body: impl Into<Body>) -> Answer {
    ask_in(host, Phase::Serving, request, body)
}

fn report() -> http::request::Builder {
    http::Request::post("/notify").header("host", "localhost").header("content-type", "application/json")
}

fn events() -> http::request::Builder {
    http::Request::get("/events").header("host", "localhost:8080")
}

fn handshake() -> http::request::Builder {
    http::Request::get("/ws")
        .header("host", "localhost:8080")
        .header("connection", "upgrade")
        .header("upgrade", "websocket")
        .header("sec-websocket-version", "13")
        .header("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==")
}

#[test]
fn the_page_and_its_headers() {
    let page = ask(&Fake::default(), http::Request::get("/"), "");
    assert_eq!((page.status, page.header("content-type")), (200, "text/html; charset=utf-8"));
    assert!(page.header("content-security-policy").starts_with("default-src 'none'; script-src "));
    assert_eq!(
        (page.header("x-content-type-options"), page.header("cache-control")),
        ("nosniff", "no-cache")
    );
    assert_eq!(page.header("referrer-policy"), "no-referrer");
    assert_eq!(page.body, include_str!("../page.html"));
    assert_eq!(ask(&Fake::default(), http::Request::get("/?x=1"), "").status, 200);
}

#[test]
fn head_has_the_headers_of_get_and_no_body() {
    let get = ask(&Fake::default(), http::Request::get("/"), "");
    let head = ask(&Fake::default(), http::Request::head("/"), "");
    assert_eq!((head.status, head.body.as_str()), (200, ""));
    assert_eq!(head.header("content-length"), get.body.len().to_string());
    let events = ask(&Fake::default(), http::Request::head("/events").header("host", "localhost"), "");
    assert_eq!((events.status, events.body.as_str()), (200, ""));
    let health = ask(&Fake::default(), http::Request::head("/healthz"), "");
    assert_eq!((health.status, health.header("content-length"), health.body.as_str()), (200, "2", ""));
}

#[test]
fn health_is_503_while_shutting_down_and_asks_no_room() {
    let host = Fake::default();
    let ok = ask(&host, http::Request::get("/healthz"), "");
    assert_eq!((ok.status, ok.body.as_str()), (200, "ok"));
    ask_in(&host, Phase::Draining, http::Request::get("/healthz"), "").error(503);
    ask_in(&host, Phase::Draining, handshake(), "").error(503);
    ask_in(&host, Phase::Draining, report(), "{}").error(503);
    ask_in(&host, Phase::Draining, events(), "").later();
    assert_eq!(ask_in(&host, Phase::Draining, http::Request::get("/"), "").status, 200);
    assert!(host.asked.lock().unwrap().is_empty());
}

#[test]
fn unknown_addresses_and_wrong_methods() {
    let host = Fake::default();
    for path in ["/x", "/ws/", "/notify/", "//", "/events/", "/index.html"] {
        ask(&host, http::Request::get(path), "").error(404);
    }
    for (path, method, allowed) in [
        ("/", "POST", "GET, HEAD"),
        ("/healthz", "DELETE", "GET, HEAD"),
        ("/ws", "POST", "GET"),
        ("/ws", "HEAD", "GET"),
        ("/events", "POST", "GET, HEAD"),
        ("/notify", "GET", "POST"),
        ("/notify", "OPTIONS", "POST"),
    ] {
        let answer = ask(&host, http::Request::builder().method(method).uri(path), "");
        assert_eq!((answer.status, answer.header("allow")), (405, allowed), "{method} {path}");
    }
    ask(&host, http::Request::post("/"), "").error(405);
}

#[test]
fn the_room_is_asked_only_for_a_right_handshake() {
    let host = Fake { room: Some("/home/a"), ..Fake::default() };
    assert_eq!(ask(&host, handshake(), "").body, "from the room");
    assert_eq!(*host.asked.lock().unwrap(), [("/home/a".to_owned(), "/ws".to_owned(), 0)]);

    let plain = ask(&host, http::Request::get("/ws").header("host", "localhost"), "");
    plain.error(426);
    assert_eq!((plain.header("upgrade"), plain.header("sec-websocket-version")), ("websocket", "13"));
    ask(&host, handshake().header("sec-websocket-key", "x"), "").error(400);
    assert_eq!(host.asked.lock().unwrap().len(), 1);
}

#[test]
fn a_report_reaches_the_room_whole_or_not_at_all() {
    let host = Fake::default();
    assert_eq!(ask(&host, report(), "x".repeat(BODY_BYTES)).status, 200);
    assert_eq!(*host.asked.lock().unwrap(), [("sync".to_owned(), "/notify".to_owned(), BODY_BYTES)]);

    ask(&host, report(), "x".repeat(BODY_BYTES + 1)).error(413);
    ask(&host, report().header("content-length", "100000000"), "").error(413);
    assert_eq!(host.asked.lock().unwrap().len(), 1);
}

#[test]
fn only_json_is_taken() {
    let host = Fake::default();
    let with = |kind: &str| ask(&host, http::Request::post("/notify").header("content-type", kind), "{}");
    for good in
        ["application/json", "Application/JSON", "application/json; charset=utf-8", " application/json ;x=y"]
    {
        assert_eq!(with(good).status, 200, "{good}");
    }
    for bad in
        ["", "text/plain", "application/jsonx", "application/json-patch+json", "text/plain; application/json"]
    {
        with(bad).error(415);
    }
    ask(&host, http::Request::post("/notify"), "{}").error(415);
}

#[test]
fn foreign_pages_are_refused_on_the_ways_to_the_room_alone() {
    let host = Fake { loopback: true, ..Fake::default() };
    ask(&host, handshake().header("origin", "http://evil.example"), "").error(403);
    ask(&host, report().header("origin", "http://evil.example"), "{}").error(403);
    ask(&host, http::Request::get("/ws").header("host", "evil.example"), "").error(403);
    ask(&host, events().header("origin", "http://evil.example"), "").error(403);
    assert!(host.asked.lock().unwrap().is_empty());
    assert_eq!(ask(&host, handshake().header("origin", "http://localhost:8080"), "").status, 200);
    assert_eq!(ask(&host, report().header("origin", "http://localhost"), "{}").status, 200);
    assert_eq!(ask(&host, http::Request::get("/").header("host", "evil.example"), "").status, 200);
}

#[test]
fn what_the_room_fails_with_becomes_a_status_and_stays_inside() {
    for (kind, status) in [
        (ErrorKind::Overloaded, 503),
        (ErrorKind::Shutdown, 503),
        (ErrorKind::Deadline, 504),
        (ErrorKind::Application, 500),
        (ErrorKind::Reset, 500),
        (ErrorKind::Limit, 500),
    ] {
        let host = Fake { fault: Some(kind), ..Fake::default() };
        let answer = ask(&host, report(), "{}");
        answer.error(status);
        assert_eq!(answer.header("retry-after"), if kind == ErrorKind::Overloaded { "1" } else { "" });
        ask(&host, handshake(), "").error(status);
        match ask(&host, events(), "") {
            passing if status > 500 || kind == ErrorKind::Reset => passing.later(),
            fault => fault.error(status),
        }
    }
}

#[test]
fn a_report_whose_body_never_arrives_is_408() {
    let (_open, body) = Body::channel(1);
    let host = Fake { hasty: true, ..Fake::default() };
    let answer = ask(&host, report(), body);
    answer.error(408);
    assert_eq!(answer.header("connection"), "close");
    assert!(host.asked.lock().unwrap().is_empty());
}
