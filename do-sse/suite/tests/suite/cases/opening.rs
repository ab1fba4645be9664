//! What a stream begins with, and who gets none.

use crate::{
    feeds::{Feeds, ONE, SOON, parts, within},
    stream::{Ask, Stream},
};
use do_core::testing::{Case, Driver, Fault, Lab, Leave, Outcome, holds, same};
use do_sse::Item;
use http::{Method, Request};
use serde_json::json;
use std::collections::BTreeSet;

pub(super) fn cases<D: Driver>() -> Vec<Case<D>> {
    vec![
        Case::new("flaw18 w9 the headers of a stream", |lab| Box::pin(headers(lab))),
        Case::new("flaw18 a HEAD gets the headers and opens nothing", |lab| Box::pin(head(lab))),
        Case::new("flaw19 o2 the first event has a name, data and the position", |lab| Box::pin(first(lab))),
        Case::new("flaw19 a feed without a history gives no ids", |lab| Box::pin(without_ids(lab))),
        Case::new("flaw6 each stream has a time of its own to come back after", |lab| Box::pin(retry(lab))),
        Case::new("flaw12 w9 o1 who finds no place is sent away with 200", |lab| Box::pin(full(lab))),
        Case::new("flaw12 a place is free again when its client has left", |lab| Box::pin(free_again(lab))),
        Case::new("w9 o1 answers that need no feed: come later, stay away, go away", |lab| {
            Box::pin(answers(lab))
        }),
        Case::new("flaw12 pages of allowed origins may read, with cookies", |lab| Box::pin(origins(lab))),
        Case::new("flaw12 w10 a browser that asks first is answered, and opens nothing", |lab| {
            Box::pin(preflight(lab))
        }),
        Case::new("flaw7 the second of an id replaces the first, which is told to stay away", |lab| {
            Box::pin(replaces(lab))
        }),
        Case::new("flaw7 the second of an id is sent away while the first is there", |lab| {
            Box::pin(rejects(lab))
        }),
        Case::new("flaw7 several of an id are all there", |lab| Box::pin(allows(lab))),
        Case::new("flaw7 a client that replaces itself needs no second place", |lab| {
            Box::pin(replaces_when_full(lab))
        }),
    ]
}

async fn headers<D: Driver>(lab: &Lab<D>) -> Outcome {
    let stream = Ask::of("a").open(lab).await?;
    same("the status", stream.head.status().as_u16(), 200)?;
    same("the type", stream.header("content-type"), ["text/event-stream"])?;
    same("caches", stream.header("cache-control"), ["no-store, no-transform"])?;
    same("proxies", stream.header("x-accel-buffering"), ["no"])?;
    same("the length", stream.header("content-length"), json!([]))?;
    same("compression", stream.header("content-encoding"), json!([]))?;
    same("other origins", stream.header("access-control-allow-origin"), json!([]))
}

async fn head<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut stream = Ask::of("a").head().open(lab).await?;
    same("the status", stream.head.status().as_u16(), 200)?;
    same("the type", stream.header("content-type"), ["text/event-stream"])?;
    stream.ends().await?;
    same("what was opened", lab.stats("a", ["opened", "connections"]).await?, [0, 0])?;
    same("the alarm", lab.alarm("a", json!("get")).await?, json!(null))
}

async fn first<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.configure("a", json!({"history": {}})).await?;
    let mut ann = Ask::of("a").id("ann").open(lab).await?;
    let item = ann.item().await?;
    holds(format!("the first item is {item:?}"), matches!(item, Some(Item::Retry(_))))?;
    let event = ann.event().await?;
    same("the event", (&*event.event, &*event.data), ("ready", r#"{"connection":"ann"}"#))?;
    let (epoch, number) = parts(&event.id)?;
    same("the number", number, 0)?;
    same("the position", lab.tell("a", json!({"feed": "position"})).await?, &event.id)?;
    holds(format!("the id {:?} is not short ASCII", event.id), event.id.len() < 40 && event.id.is_ascii())?;
    let position = lab.publish("a", "one").await?;
    same("its position", &position, format!("{epoch}-1"))?;
    let event = ann.event().await?;
    same("the next", (&*event.event, &*event.data, &*event.id), ("message", "one", &*position))?;
    // Without an id of its own it is drawn.
    let mut bob = Ask::of("a").open(lab).await?;
    let drawn = bob.ready().await?;
    let infos = lab.tell("a", json!({"feed": "infos"})).await?;
    same("who is there", infos, json!([["ann", []], [drawn, []]]))?;
    same("where he begins", bob.last_id(), position)
}

async fn without_ids<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut stream = Ask::of("a").open(lab).await?;
    let event = stream.event().await?;
    same("the event", (&*event.event, &*event.id), ("ready", ""))?;
    lab.broadcast("a", "hi").await?;
    same("the id", stream.event().await?.id, "")?;
    same("the position", lab.tell("a", json!({"feed": "position"})).await?, json!(null))?;
    let thrown = lab.refused("a", json!({"send": {"publish": {"data": "no"}}})).await?;
    same("publishing", thrown.kind, "Invalid")?;
    // Who comes with a position of elsewhere is just let in.
    let mut stranger = Ask::of("a").after("x-7").open(lab).await?;
    stranger.ready().await?;
    same("a broadcast", lab.broadcast("a", "ho").await?, [2, 2, 0, 0, 0])?;
    stranger.hears("the stranger", ["ho"]).await
}

async fn retry<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.configure("a", json!({"retry_ms": 1_000})).await?;
    let mut seen = BTreeSet::new();
    for _ in 0..12 {
        let stream = Ask::of("a").ready(lab).await?;
        let retry = stream.retry.ok_or_else(|| Fault::new("no time"))?;
        within("the time", retry, 1_000, 1_500)?;
        seen.insert(retry);
    }
    holds(format!("twelve streams have {seen:?}"), seen.len() > 6)
}

/// Sent away, with the time to come back after, if it is known.
async fn is_sent_away<D: Driver>(stream: &mut Stream<D::Exchange>, least: u64, most: u64) -> Outcome {
    same("the status", stream.head.status().as_u16(), 200)?;
    same("the type", stream.header("content-type"), ["text/event-stream"])?;
    stream.ends().await?;
    within("the time", stream.retry.unwrap_or_default(), least, most)
}

async fn full<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.configure("a", json!({"max_connections": 2, "retry_ms": 3_000})).await?;
    let _ann = Ask::of("a").ready(lab).await?;
    let mut bob = Ask::of("a").ready(lab).await?;
    for times in 1..=3 {
        let mut cid = Ask::of("a").open(lab).await?;
        is_sent_away::<D>(&mut cid, 3_000, 4_500).await?;
        same("statistics", lab.stats("a", ["opened", "sent_away", "connections"]).await?, [2, times, 2])?;
    }
    same("a broadcast", lab.broadcast("a", "hi").await?, [2, 2, 0, 0, 0])?;
    bob.hears("bob", ["hi"]).await
}

async fn free_again<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.configure("a", json!({"max_connections": 1})).await?;
    Ask::of("a").ready(lab).await?.leave(Leave::Reset);
    lab.until("a", "gone", 1).await?;
    let mut bob = Ask::of("a").ready(lab).await?;
    same("a broadcast", lab.broadcast("a", "hi").await?, ONE)?;
    bob.hears("bob", ["hi"]).await
}

async fn answers<D: Driver>(lab: &Lab<D>) -> Outcome {
    let get = async |name: &str| {
        let head = Request::builder().method(Method::GET).uri(format!("/answer/{name}"));
        Stream::begin(lab, head.body(())?).await
    };
    let mut stop = get("stop").await?;
    same("stay away", stop.head.status().as_u16(), 204)?;
    stop.ends().await?;
    for (name, time) in [("later", 7_000), ("full", 7_000), ("too-many", 7_000), ("conflict", 5_000)] {
        let mut later = get(name).await?;
        is_sent_away::<D>(&mut later, time, time).await.map_err(|fault| fault.during(name))?;
    }
    for (name, status) in [("unauthorized", 401), ("forbidden", 403)] {
        same(name, get(name).await?.head.status().as_u16(), status)?;
    }
    Ok(())
}

async fn origins<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.configure("a", json!({"origins": ["https://app.example"]})).await?;
    let from = async |origin: &str, head: bool| {
        let ask = Ask::of("a").header("origin", origin.as_bytes());
        let stream = if head { ask.head().open(lab).await? } else { ask.open(lab).await? };
        let told = ["access-control-allow-origin", "access-control-allow-credentials", "vary"]
            .map(|name| stream.header(name));
        same("the status", stream.head.status().as_u16(), 200)?;
        Ok::<_, Fault>(told)
    };
    let allowed = json!([["https://app.example"], ["true"], ["origin"]]);
    same("an allowed one", from("https://app.example", false).await?, &allowed)?;
    same("its headers alone", from("https://app.example", true).await?, &allowed)?;
    let others = json!([[], [], ["origin"]]);
    for origin in ["https://other.example", "http://app.example", "https://app.example.evil.example", "null"]
    {
        same(origin, from(origin, false).await?, &others)?;
    }
    let own = Ask::of("a").open(lab).await?;
    same("a client that is no page", own.header("access-control-allow-origin"), json!([]))?;
    same("caches know all the same", own.header("vary"), ["origin"])
}

async fn preflight<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.configure("a", json!({"origins": ["https://app.example"]})).await?;
    let ask = async |origin: &str| {
        let ask = Ask::of("a")
            .method(Method::OPTIONS)
            .header("origin", origin.as_bytes())
            .header("content-length", b"0")
            .header("access-control-request-method", b"GET")
            .header("access-control-request-headers", b"last-event-id");
        ask.open(lab).await
    };
    let allowed = ask("https://app.example").await?;
    same("the status", allowed.head.status().as_u16(), 204)?;
    same("the origin", allowed.header("access-control-allow-origin"), ["https://app.example"])?;
    same("cookies", allowed.header("access-control-allow-credentials"), ["true"])?;
    let headers = allowed.header("access-control-allow-headers").join(",").to_ascii_lowercase();
    holds(format!("the headers {headers:?}"), headers.contains("last-event-id"))?;
    let other = ask("https://other.example").await?;
    same("the status for others", other.head.status().as_u16(), 403)?;
    same("the origin for others", other.header("access-control-allow-origin"), json!([]))?;
    same("what was opened", lab.stats("a", ["opened", "sent_away"]).await?, [0, 0])
}

async fn replaces<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut old = Ask::of("a").id("ann").ready(lab).await?;
    let mut other = Ask::of("a").id("bob").ready(lab).await?;
    lab.broadcast("a", "before").await?;
    let mut new = Ask::of("a").id("ann").ready(lab).await?;
    same(
        "those who are there",
        lab.tell("a", json!({"feed": "infos"})).await?,
        json!([["bob", []], ["ann", []]]),
    )?;
    same("to ann", lab.send("a", json!({"to": ["ann", {"data": "hers"}]})).await?, ONE)?;
    old.hears("what was sent before", ["before"]).await?;
    let event = old.event().await?;
    same("its last", (&*event.event, &*event.data), ("replaced", ""))?;
    same("the time to stay away", old.retry, 3_600_000)?;
    old.ends().await?;
    new.hears("the new one", ["hers"]).await?;
    other.hears("another", ["before"]).await?;
    old.leave(Leave::Close);
    same("statistics", lab.stats("a", ["opened", "replaced", "gone", "connections"]).await?, [3, 1, 0, 2])
}

async fn rejects<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.configure("a", json!({"on_duplicate": "reject", "retry_ms": 1_000})).await?;
    let mut first = Ask::of("a").id("ann").ready(lab).await?;
    let mut second = Ask::of("a").id("ann").open(lab).await?;
    is_sent_away::<D>(&mut second, 1_000, 1_500).await?;
    lab.broadcast("a", "hi").await?;
    first.hears("the first", ["hi"]).await?;
    first.leave(Leave::Reset);
    lab.until("a", "gone", 1).await?;
    let mut third = Ask::of("a").id("ann").ready(lab).await?;
    lab.broadcast("a", "ho").await?;
    third.hears("the third", ["ho"]).await?;
    same("statistics", lab.stats("a", ["opened", "sent_away", "replaced"]).await?, [2, 1, 0])
}

async fn allows<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.configure("a", json!({"on_duplicate": "allow"})).await?;
    let mut first = Ask::of("a").id("ann").ready(lab).await?;
    let mut second = Ask::of("a").id("ann").ready(lab).await?;
    same("to ann", lab.send("a", json!({"to": ["ann", {"data": "both"}]})).await?, [2, 2, 0, 0, 0])?;
    first.hears("the first", ["both"]).await?;
    second.hears("the second", ["both"]).await?;
    same("how many are closed", lab.tell("a", json!({"feed": {"close": "ann"}})).await?, 2)?;
    first.ends().await?;
    second.ends().await?;
    let look = async || lab.stats("a", ["closed", "gone", "connections"]).await;
    same("statistics", lab.eventually("closing", SOON, look, |_| true).await?, [2, 0, 0])
}

async fn replaces_when_full<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.configure("a", json!({"max_connections": 1})).await?;
    let mut old = Ask::of("a").id("ann").ready(lab).await?;
    let mut new = Ask::of("a").id("ann").ready(lab).await?;
    let mut other = Ask::of("a").id("bob").open(lab).await?;
    is_sent_away::<D>(&mut other, 2_000, 3_000).await?;
    same("its last", old.event().await?.event, "replaced")?;
    lab.broadcast("a", "hi").await?;
    new.hears("the new one", ["hi"]).await
}
