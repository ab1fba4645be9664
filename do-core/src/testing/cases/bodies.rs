//! Bodies: that they pass untouched and piece by piece, how full a slow client's gets, and who learns when one leaves.

use crate::testing::{
    case::{Case, Fault, Outcome, holds, same},
    difference::HostKind,
    driver::Driver,
    exchange::{Exchange, Leave, Piece},
    lab::Lab,
    route::percent_encoded,
    tasks::both,
};
use http::{Method, Request, Response};
use serde_json::{Value, json};
use std::time::Duration;

/// In which something that is to come has come.
const SOON: Duration = Duration::from_secs(10);
/// In which something that is not to come would have come.
const A_WHILE: Duration = Duration::from_millis(400);

pub(super) fn cases<D: Driver>() -> Vec<Case<D>> {
    vec![
        Case::new("b3 an open response keeps its object in memory", |lab| Box::pin(b3_open(lab))).evicts(),
        Case::new("b16 a client that leaves before the answer does not stop the handler", |lab| {
            Box::pin(b16_leaves(lab))
        }),
        Case::new("b17a a client that closed is noticed with the next write, which succeeds", |lab| {
            Box::pin(b17a_closes(lab))
        })
        .differs(&[HostKind::Tokio, HostKind::Workerd], "client-gone"),
        Case::new("b17a a client that left is noticed without a write", |lab| Box::pin(b17a_leaves(lab)))
            .differs(&[HostKind::Kit], "client-gone"),
        Case::new("b17b a client that resets is noticed without a write", |lab| Box::pin(b17b_resets(lab))),
        Case::new("b17c a client that closes its own side alone goes on reading", |lab| {
            Box::pin(b17c_half(lab))
        }),
        Case::new("b17c a client that closes its own side before the answer gets it", |lab| {
            Box::pin(b17c_before(lab))
        }),
        Case::new("body untouched passes with its length both ways", |lab| Box::pin(untouched(lab))),
        Case::new("body of a request is read while it is still being sent", |lab| Box::pin(upload(lab))),
        Case::new("b17 a response arrives chunk by chunk", |lab| Box::pin(chunk_by_chunk(lab))),
        Case::new("b17 a body that is read in part or not at all does no harm", |lab| Box::pin(in_part(lab))),
        Case::new("b17 an answer that its caller drops unread tells its sender", |lab| Box::pin(unread(lab))),
        Case::new(
            "b17 an open response is full while the client does not read, and nothing is lost",
            |lab| Box::pin(full(lab)),
        ),
        Case::new("b16 a request's body that ends early is an error for its reader", |lab| {
            Box::pin(ends_early(lab))
        }),
        Case::new("b13 a response that a reset cuts off is not complete for its reader", |lab| {
            Box::pin(cut_off(lab))
        }),
        Case::new("body is left out with HEAD, 204, 205 and 304", |lab| Box::pin(without(lab))),
        Case::new("response that redirects is not followed", |lab| Box::pin(redirect(lab))),
        Case::new("response headers stay several and UTF-8", |lab| Box::pin(headers(lab))),
        Case::new("response with a length that is not its body's is sent with the right one", |lab| {
            Box::pin(length(lab))
        }),
        Case::new("response with a status that cannot be sent is an error and nothing more", |lab| {
            Box::pin(status(lab))
        }),
    ]
}

impl<D: Driver> Lab<D> {
    /// Begins a request that brings its steps in its query.
    pub(super) async fn begin(
        &self,
        method: Method,
        object: &str,
        steps: Value,
        headers: &[(&str, &str)],
    ) -> Result<D::Exchange, Fault> {
        self.begin_at(&self.path("run", object), method, steps, headers).await
    }

    async fn begin_at(
        &self,
        path: &str,
        method: Method,
        steps: Value,
        headers: &[(&str, &str)],
    ) -> Result<D::Exchange, Fault> {
        let path = format!("{path}?steps={}", percent_encoded(&steps.to_string()));
        let mut head = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            head = head.header(*name, http::HeaderValue::from_bytes(value.as_bytes())?);
        }
        self.driver().begin(head.body(())?).await
    }

    /// Begins a GET and gives the head of its answer.
    async fn get(&self, object: &str, steps: Value) -> Result<(D::Exchange, Response<()>), Fault> {
        let mut exchange = self.begin(Method::GET, object, steps, &[]).await?;
        let head = exchange.head().await?;
        Ok((exchange, head))
    }

    /// Runs steps by a request without a body: nothing that its handler awaits comes before them.
    pub(super) async fn run_at_once(&self, object: &str, steps: Value) -> Result<Value, Fault> {
        let what = steps.to_string();
        let (mut exchange, head) = self.get(object, steps).await?;
        let value = answered(&mut exchange).await?;
        holds(format!("{what} gave {}, {value}", head.status()), head.status() == 200)?;
        Ok(value)
    }

    /// Runs steps over a stub that the entry keeps from request to request; an error is given as its JSON.
    pub(super) async fn run_kept(&self, object: &str, steps: Value) -> Result<Value, Fault> {
        let mut exchange = self.begin_at(&self.path("kept", object), Method::GET, steps, &[]).await?;
        exchange.head().await?;
        answered(&mut exchange).await
    }

    /// Opens a body of the object that holds 1,000 bytes, reads the first chunk, and sees to it that its end is noted.
    async fn listen(&self, object: &str) -> Result<D::Exchange, Fault> {
        let steps =
            json!([{"body": {"channel": 1_000}}, {"body": "note_closed"}, {"body": {"write": "one"}}]);
        let (mut exchange, head) = self.get(object, steps).await?;
        same("the status", head.status().as_u16(), 200)?;
        reads(&mut exchange, "one").await?;
        Ok(exchange)
    }

    async fn write(&self, object: &str, text: &str) -> Result<Value, Fault> {
        self.last(object, json!([{"body": {"write": text}}])).await
    }

    async fn noted(&self, object: &str, line: &str) -> Outcome {
        let lines = json!([{"sql": "SELECT line FROM log ORDER BY rowid"}]);
        self.until(object, lines, SOON, |lines| *lines == json!([line])).await.map(drop)
    }
}

/// Reads exactly this text, however it is cut.
async fn reads<E: Exchange>(exchange: &mut E, text: &str) -> Outcome {
    let mut got = Vec::new();
    while got.len() < text.len() {
        match exchange.read(text.len() - got.len()).await? {
            Piece::Bytes(bytes) => got.extend(bytes),
            other => return Err(Fault::new(format!("{other:?} after {got:?} instead of {text:?}"))),
        }
    }
    same("what arrived", String::from_utf8_lossy(&got), text)
}

/// Reads until the body ends, properly or not.
async fn rest<E: Exchange>(exchange: &mut E) -> Result<(Vec<u8>, Piece), Fault> {
    let mut got = Vec::new();
    loop {
        match exchange.read(1 << 16).await? {
            Piece::Bytes(bytes) => got.extend(bytes),
            end => return Ok((got, end)),
        }
    }
}

/// The JSON of an answer that is complete.
async fn answered<E: Exchange>(exchange: &mut E) -> Result<Value, Fault> {
    let (body, end) = rest(exchange).await?;
    holds(format!("the answer ends with {end:?}"), end == Piece::End)?;
    Ok(serde_json::from_slice(&body)?)
}

fn header(head: &Response<()>, name: &str) -> Vec<String> {
    let values = head.headers().get_all(name).into_iter();
    values.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()).collect()
}

async fn b3_open<D: Driver>(lab: &Lab<D>) -> Outcome {
    let before = lab.last("a", json!(["instance"])).await?;
    let mut exchange =
        lab.get("a", json!([{"body": {"channel": 1_000}}, {"body": {"write": "one"}}])).await?.0;
    reads(&mut exchange, "one").await?;
    // Where eviction waits for what is open, it goes on when it no longer is.
    let (evicted, kept) = both(lab.evict(), async {
        lab.advance(A_WHILE).await?;
        same("the instance", lab.last("a", json!(["instance"])).await?, &before)?;
        same("a write", lab.write("a", "two").await?, "sent")?;
        reads(&mut exchange, "two").await?;
        lab.run("a", json!(["close"])).await?;
        let (left, end) = rest(&mut exchange).await?;
        holds(format!("it ends with {left:?}, {end:?}"), left.is_empty() && end == Piece::End)
    })
    .await;
    kept.and(evicted)?;
    lab.evict().await?;
    holds("the instance is the same", lab.last("a", json!(["instance"])).await? != before)
}

async fn b16_leaves<D: Driver>(lab: &Lab<D>) -> Outcome {
    for (object, how) in [("a", Leave::Close), ("b", Leave::Reset)] {
        let steps = json!([{"add": 1}, {"wait_for": 2}, {"note": "end"}]);
        let exchange = lab.begin(Method::GET, object, steps, &[]).await?;
        lab.begun(object, 1).await?;
        exchange.leave(how);
        lab.advance(A_WHILE).await?;
        lab.run(object, json!([{"add": 1}])).await?;
        lab.noted(object, "end").await.map_err(|fault| fault.during(&format!("{how:?}")))?;
    }
    Ok(())
}

async fn b17a_closes<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.listen("a").await?.leave(Leave::Close);
    lab.advance(A_WHILE).await?;
    same("what is noted without a write", lab.lines("a").await?, json!([]))?;
    same("the first write", lab.write("a", "two").await?, "sent")?;
    is_gone(lab).await
}

async fn b17a_leaves<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.listen("a").await?.leave(Leave::Close);
    is_gone(lab).await
}

/// What is told of a client that is known to be gone.
async fn is_gone<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.noted("a", "closed").await?;
    same("is_closed", lab.last("a", json!([{"body": "is_closed"}])).await?, true)?;
    same("the next write", lab.write("a", "three").await?, "closed")?;
    same("what is kept for nobody", lab.last("a", json!([{"body": "queued"}])).await?, 0)
}

async fn b17b_resets<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.listen("a").await?.leave(Leave::Reset);
    lab.noted("a", "closed").await?;
    same("the first write", lab.write("a", "two").await?, "closed")
}

/// It cannot be told from one that closed but by writing to it.
async fn b17c_half<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut exchange = lab.listen("a").await?;
    exchange.half_close().await?;
    for text in ["two", "three"] {
        lab.advance(A_WHILE).await?;
        same("a write", lab.write("a", text).await?, "sent")?;
        reads(&mut exchange, text).await?;
    }
    same("what is noted", lab.lines("a").await?, json!([]))?;
    lab.run("a", json!(["close"])).await?;
    let (left, end) = rest(&mut exchange).await?;
    holds(format!("it ends with {left:?}, {end:?}"), left.is_empty() && end == Piece::End)
}

async fn b17c_before<D: Driver>(lab: &Lab<D>) -> Outcome {
    let steps = json!([{"add": 1}, {"wait_for": 2}]);
    let mut exchange = lab.begin(Method::GET, "a", steps, &[]).await?;
    lab.begun("a", 1).await?;
    exchange.half_close().await?;
    lab.advance(A_WHILE).await?;
    lab.run("a", json!([{"add": 1}])).await?;
    lab.advance(A_WHILE).await?;
    same("the status", exchange.head().await?.status().as_u16(), 200)?;
    same("the first step", answered(&mut exchange).await?.get(0), 1)
}

async fn untouched<D: Driver>(lab: &Lab<D>) -> Outcome {
    let sent: Vec<u8> = (0..1_000_000_u32).flat_map(u32::to_le_bytes).take(1_000_000).collect();
    // By one object, and through a second one.
    let own = json!([{"body": "echo"}]);
    let other = json!([{"body": {"take": [lab.name("c"), [{"body": {"text": "x".repeat(50_000)}}]]}}, {"body": "echo"}]);
    let length = sent.len().to_string();
    let mut exchange = lab.begin(Method::POST, "a", own, &[("content-length", &length)]).await?;
    exchange.send(&sent).await?;
    exchange.finish().await?;
    let head = exchange.head().await?;
    let (body, end) = rest(&mut exchange).await?;
    holds(format!("{} bytes, {end:?}", body.len()), end == Piece::End && body == sent)?;
    same("the length that was announced", header(&head, "content-length"), [length.as_str()])?;
    let counted = json!([{"body": {"told": "content-length"}}, {"body": "count"}]);
    let mut exchange = lab.begin(Method::POST, "a", counted, &[("content-length", &length)]).await?;
    exchange.send(&sent).await?;
    exchange.head().await?;
    same("what the object has", answered(&mut exchange).await?, json!([[length], sent.len()]))?;
    let (mut exchange, head) = lab.get("b", other).await?;
    same("the other object's length", header(&head, "content-length"), ["50000"])?;
    let (body, end) = rest(&mut exchange).await?;
    holds(format!("{} bytes, {end:?}", body.len()), end == Piece::End && body == [b'x'; 50_000])
}

async fn upload<D: Driver>(lab: &Lab<D>) -> Outcome {
    let steps = json!([{"body": "first"}, {"add": 1}, {"body": "whole"}]);
    let mut exchange = lab.begin(Method::POST, "a", steps, &[]).await?;
    exchange.send(b"one").await?;
    lab.begun("a", 1).await?;
    exchange.send(b"two").await?;
    exchange.send(b"three").await?;
    exchange.finish().await?;
    exchange.head().await?;
    same("what was read", answered(&mut exchange).await?, json!(["one", 1, "twothree"]))
}

async fn chunk_by_chunk<D: Driver>(lab: &Lab<D>) -> Outcome {
    let (mut exchange, head) = lab.get("a", json!([{"body": {"channel": 1_000}}])).await?;
    same("the length of what is not known yet", header(&head, "content-length"), json!([]))?;
    for text in ["one", "two", "thr\u{e9}e"] {
        same("a write", lab.write("a", text).await?, "sent")?;
        reads(&mut exchange, text).await?;
    }
    lab.run("a", json!(["close"])).await?;
    let (left, end) = rest(&mut exchange).await?;
    holds(format!("it ends with {left:?}, {end:?}"), left.is_empty() && end == Piece::End)?;
    // Back to the client as it comes: what is sent is answered before the request is complete.
    let mut exchange = lab.begin(Method::POST, "b", json!([{"body": "echo"}]), &[]).await?;
    exchange.send(b"one").await?;
    exchange.head().await?;
    for text in ["one", "two"] {
        if text != "one" {
            exchange.send(text.as_bytes()).await?;
        }
        reads(&mut exchange, text).await?;
    }
    exchange.finish().await?;
    let (left, end) = rest(&mut exchange).await?;
    holds(format!("the echo ends with {left:?}, {end:?}"), left.is_empty() && end == Piece::End)
}

async fn in_part<D: Driver>(lab: &Lab<D>) -> Outcome {
    let all = [
        json!([{"body": "first"}, {"add": 1}]),
        json!([{"body": "first"}, {"body": "drop"}, {"add": 1}]),
        json!([{"body": "drop"}, {"add": 1}]),
        json!([{"add": 1}]),
    ];
    for (n, steps) in (1..).zip(all) {
        let what = steps.to_string();
        let mut exchange = lab.begin(Method::POST, "a", steps, &[]).await?;
        exchange.send(b"one").await?;
        exchange.head().await.map_err(|fault| fault.during(&what))?;
        let values = answered(&mut exchange).await?;
        same(&what, values.as_array().and_then(|values| values.last()), n)?;
        exchange.leave(Leave::Close);
    }
    // The reader is another object: its writer learns that nobody reads.
    let source = json!([{"body": {"channel": 1_000}}, {"body": "note_closed"}, {"body": {"write": "one"}}]);
    let steps =
        json!([{"body": {"take": [lab.name("source"), source]}}, {"body": "first"}, {"body": "drop"}]);
    same("what it read", lab.run("a", steps).await?, json!([200, "one", null]))?;
    lab.noted("source", "closed").await
}

async fn unread<D: Driver>(lab: &Lab<D>) -> Outcome {
    let source = json!([{"body": {"channel": 1_000}}, {"body": "note_closed"}, {"body": {"write": "one"}}]);
    let taken = json!([{"body": {"take": [lab.name("one"), source]}}, {"body": "drop"}, {"sleep": 60_000}]);
    let (kept, noted) =
        both(lab.silent("its caller", lab.run("a", taken), A_WHILE), lab.noted("one", "closed")).await;
    kept.and(noted)
}

async fn full<D: Driver>(lab: &Lab<D>) -> Outcome {
    const MAX: usize = 1_000_000;
    const CHUNK: usize = 65_536;
    /// Far beyond what the way to a client holds: sockets of this machine's, and the platform's own queue.
    const BOUND: usize = 64 << 20;
    let (mut exchange, _) = lab.get("a", json!([{"body": {"channel": MAX}}])).await?;
    let (mut sent, mut without) = (0, 0);
    while without < 5 {
        let filled = lab.run("a", json!([{"body": {"fill": CHUNK}}, {"body": "queued"}])).await?;
        same("the last write", &filled[0]["last"], "full")?;
        let queued = filled[1].as_u64().and_then(|queued| usize::try_from(queued).ok());
        // Where the connection has a thread of its own, some of it may have left already.
        holds(format!("{filled:?}"), queued.is_some_and(|queued| queued <= MAX))?;
        let taken = filled[0]["taken"].as_u64().and_then(|taken| usize::try_from(taken).ok()).unwrap_or(0);
        sent += taken;
        without = if taken == 0 { without + 1 } else { 0 };
        holds(format!("{sent} bytes were taken for a client that reads nothing"), sent < BOUND)?;
        lab.advance(Duration::from_millis(20)).await?;
    }
    lab.run("a", json!(["close"])).await?;
    let (body, end) = rest(&mut exchange).await?;
    same("what arrived", body.len(), sent)?;
    holds(format!("it ends with {end:?}"), end == Piece::End)
}

async fn ends_early<D: Driver>(lab: &Lab<D>) -> Outcome {
    let cases = [
        ("a", &[("content-length", "10")][..], Leave::Close),
        ("b", &[("content-length", "10")], Leave::Reset),
        ("c", &[], Leave::Close),
        ("d", &[], Leave::Reset),
    ];
    for (object, headers, how) in cases {
        let steps = json!([{"body": "first"}, {"add": 1}, {"body": "note_count"}]);
        let mut exchange = lab.begin(Method::POST, object, steps, headers).await?;
        exchange.send(b"one").await?;
        lab.begun(object, 1).await?;
        exchange.leave(how);
        let what = format!("{headers:?} and {how:?}");
        lab.noted(object, "Transient").await.map_err(|fault| fault.during(&what))?;
    }
    Ok(())
}

async fn cut_off<D: Driver>(lab: &Lab<D>) -> Outcome {
    let open = json!([{"body": {"channel": 1_000}}, {"body": {"write": "one"}}]);
    // To a client.
    let (mut exchange, _) = lab.get("a", open.clone()).await?;
    reads(&mut exchange, "one").await?;
    lab.thrown("a", json!([{"reset": "because"}])).await?;
    let (left, end) = rest(&mut exchange).await?;
    holds(format!("it ends with {left:?}, {end:?}"), left.is_empty() && end == Piece::Lost)?;
    // To another object.
    let steps = json!([{"body": {"take": [lab.name("c"), open]}}, {"body": "first"}, {"add": 1}, {"try": [{"body": "count"}]}]);
    let (read, reset) = both(lab.run("b", steps), async {
        lab.begun("b", 1).await?;
        lab.thrown("c", json!([{"reset": "because"}])).await
    })
    .await;
    reset?;
    let read = read?;
    same("before it", &read[..2], json!([200, "one"]))?;
    holds(format!("after it: {}", read[3]), read[3]["error"]["kind"].is_string())
}

async fn without<D: Driver>(lab: &Lab<D>) -> Outcome {
    for code in [204, 205, 304] {
        let steps = json!([{"body": {"status": code}}, {"body": {"text": "none"}}]);
        let (mut exchange, head) = lab.get("a", steps).await?;
        same("the status", head.status().as_u16(), code)?;
        let (left, end) = rest(&mut exchange).await?;
        holds(format!("{code} has {left:?}, {end:?}"), left.is_empty() && end == Piece::End)?;
    }
    let steps = json!([{"body": {"header": ["x-of", "head"]}}, {"body": {"text": "none"}}]);
    let mut exchange = lab.begin(Method::HEAD, "a", steps, &[("connection", "close")]).await?;
    let head = exchange.head().await?;
    same("HEAD", (head.status().as_u16(), header(&head, "x-of")), (200, ["head"]))
}

async fn length<D: Driver>(lab: &Lab<D>) -> Outcome {
    for wrong in ["3", "30", "x"] {
        let steps = json!([{"body": {"header": ["content-length", wrong]}}, {"body": {"text": "hello"}}]);
        let (mut exchange, head) = lab.get("a", steps).await?;
        same(wrong, head.status().as_u16(), 200)?;
        let (body, end) = rest(&mut exchange).await?;
        same(wrong, String::from_utf8_lossy(&body), "hello")?;
        holds(format!("the answer ends with {end:?}"), end == Piece::End)?;
    }
    Ok(())
}

async fn redirect<D: Driver>(lab: &Lab<D>) -> Outcome {
    let steps = json!([
        {"body": {"status": 302}}, {"body": {"header": ["location", "/run/PROBE/elsewhere"]}}, {"body": {"text": "go"}},
    ]);
    // From an object, and through another.
    for steps in [steps.clone(), json!([{"body": {"pass": [lab.name("b"), steps]}}])] {
        let (mut exchange, head) = lab.get("a", steps).await?;
        same("the status", head.status().as_u16(), 302)?;
        same("the way", header(&head, "location"), ["/run/PROBE/elsewhere"])?;
        reads(&mut exchange, "go").await?;
    }
    Ok(())
}

async fn headers<D: Driver>(lab: &Lab<D>) -> Outcome {
    let steps = json!([
        {"body": {"header": ["set-cookie", "a=1; Path=/, x"]}}, {"body": {"header": ["set-cookie", "b=2"]}},
        {"body": {"header": ["x-text", "h\u{e9}ll\u{f6} \u{2603} \u{1f980}"]}}, {"body": {"text": "t"}},
    ]);
    for steps in [steps.clone(), json!([{"body": {"pass": [lab.name("b"), steps]}}])] {
        let (_, head) = lab.get("a", steps).await?;
        same("cookies", header(&head, "set-cookie"), ["a=1; Path=/, x", "b=2"])?;
        same("a text", header(&head, "x-text"), ["h\u{e9}ll\u{f6} \u{2603} \u{1f980}"])?;
    }
    let mut exchange = lab
        .begin(Method::GET, "a", json!([{"body": {"told": "x-text"}}]), &[("x-text", "h\u{e9} \u{1f980}")])
        .await?;
    exchange.head().await?;
    same("a request's", answered(&mut exchange).await?, json!([["h\u{e9} \u{1f980}"]]))?;
    // What is not UTF-8 does no harm.
    let steps = percent_encoded(&json!([{"body": {"told": "x-text"}}]).to_string());
    let head = Request::get(format!("{}?steps={steps}", lab.path("run", "a")));
    let head = head.header("x-text", http::HeaderValue::from_bytes(b"h\xe9!")?);
    let mut exchange = lab.driver().begin(head.body(())?).await?;
    exchange.head().await?;
    same("what is not UTF-8", answered(&mut exchange).await?, json!([["h\u{fffd}!"]]))
}

async fn status<D: Driver>(lab: &Lab<D>) -> Outcome {
    let before = lab.run("a", json!([{"add": 5}, "instance"])).await?;
    for code in [100, 101, 199, 600, 999] {
        let (mut exchange, head) = lab.get("a", json!([{"body": {"status": code}}])).await?;
        same(&format!("the status instead of {code}"), head.status().as_u16(), 500)?;
        let (body, _) = rest(&mut exchange).await?;
        holds(format!("{code}: no reason"), !body.is_empty())?;
    }
    same("the object", lab.run("a", json!([{"add": 0}, "instance"])).await?, before)
}
