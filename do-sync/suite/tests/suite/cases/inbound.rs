//! What comes in: who, how long, how often, and what becomes of what is malformed.

use crate::rooms::{Rooms, hears_close};
use do_core::{
    Message,
    testing::{Case, Client, ClientExt, Driver, Exchange, Fault, Head, Lab, Opened, Outcome, closed, same},
};
use http::{Method, Request};
use serde_json::{Value, json};
use std::time::Duration;

pub(super) fn cases<D: Driver>() -> Vec<Case<D>> {
    vec![
        Case::new("flaw12 who shows no ticket and who comes from a foreign page is refused", |lab| {
            Box::pin(unwelcome(lab))
        }),
        Case::new("flaw12 handshakes of another version and without a key are refused", |lab| {
            Box::pin(handshakes(lab))
        }),
        Case::new("flaw12 a full room refuses members and followers too", |lab| Box::pin(full(lab))),
        Case::new("inbound a message that is too long closes with 1009", |lab| Box::pin(too_big(lab))),
        Case::new("inbound who sends too often is not heard until some time passed", |lab| {
            Box::pin(too_often(lab))
        }),
        Case::new("inbound who sends too often is closed with 1008 by a strict room", |lab| {
            Box::pin(strict_rate(lab))
        }),
        Case::new("inbound malformed messages are closed with 1007 and 1003 by a strict room", |lab| {
            Box::pin(strict_form(lab))
        }),
        Case::new("inbound bounds hold for relayed messages and for each socket by itself", |lab| {
            Box::pin(relayed(lab))
        }),
        Case::new("inbound bounds hold after an eviction", |lab| Box::pin(evicted(lab))).evicts(),
        Case::new("inbound an acknowledgement is the room's where there is credit", |lab| {
            Box::pin(acknowledged(lab))
        }),
    ]
}

/// The status of a handshake with these headers in place of its own, or beside them.
async fn status<D: Driver>(
    lab: &Lab<D>,
    query: &[(&str, &str)],
    headers: &[(&str, &str)],
) -> Result<u16, Fault> {
    let own = [
        ("upgrade", "websocket"),
        ("connection", "Upgrade"),
        ("sec-websocket-version", "13"),
        ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
    ];
    let mut head = Request::builder().method(Method::GET).uri(lab.queried(&lab.address("/room", "a"), query));
    for (name, value) in own.iter().filter(|(name, _)| !headers.iter().any(|(other, _)| name == other)) {
        head = head.header(*name, *value);
    }
    for (name, value) in headers.iter().filter(|(_, value)| !value.is_empty()) {
        head = head.header(*name, *value);
    }
    let head: Head = head.body(())?;
    Ok(lab.driver().begin(head).await?.head().await?.status().as_u16())
}

async fn unwelcome<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.configure("a", json!({"inbound": {"own_pages": true, "ticket": "s3cret"}})).await?;
    let evil = [("origin", "https://evil.example")];
    for (query, headers, expected) in [
        (&[][..], &[][..], 401),
        (&[("ticket", "wrong")], &[], 401),
        (&[("ticket", "s3cret")], &evil, 403),
        (&[("ticket", "s3cret")], &[("origin", "null")], 403),
        (&[("member", "ann")], &[], 401),
        (&[("member", "ann"), ("ticket", "s3cret")], &evil, 403),
        (&[("follow", "1")], &[], 401),
    ] {
        same(&format!("{query:?} {headers:?}"), status(lab, query, headers).await?, expected)?;
    }
    let mut ann = lab.join("a", &[("ticket", "s3cret")]).await?;
    lab.broadcast("a", json!({"text": "welcome"})).await?;
    ann.hears_text("ann", "welcome").await?;
    same("the count", lab.tell("a", json!({"room": "count"})).await?, json!(1))
}

async fn handshakes<D: Driver>(lab: &Lab<D>) -> Outcome {
    for query in [&[][..], &[("member", "ann")], &[("follow", "1")]] {
        let version = status(lab, query, &[("sec-websocket-version", "12")]).await?;
        let key = status(lab, query, &[("sec-websocket-key", "")]).await?;
        same(&format!("{query:?}: another version, no key"), (version, key), (426, 400))?;
    }
    let look = json!([{"room": "count"}, {"members": "presence"}]);
    same("who is in", lab.tell("a", look).await?, json!([0, []]))
}

async fn full<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.configure("a", json!({"max_sockets": 1})).await?;
    let ann = lab.join("a", &[("member", "ann")]).await?;
    for query in [&[][..], &[("member", "bob")], &[("follow", "1")]] {
        match lab.driver().open(&lab.queried(&lab.address("/room", "a"), query)).await? {
            Opened::Refused(status, _) => same("the status", status, 503)?,
            Opened::Client(_) => return Err(Fault::new(format!("{query:?} was opened"))),
        }
    }
    let presence = json!([{"room": "count"}, {"members": "presence"}]);
    same("who is in", lab.tell("a", presence).await?, json!([1, [{"id": "ann"}]]))?;
    // Whoever takes over their own place needs none.
    let again = lab.join("a", &[("member", "ann")]).await?;
    ann.lose();
    again.lose();
    lab.noted("a", "close", 2).await?;
    lab.join("a", &[("follow", "1")]).await.map(drop)
}

/// The statistics: admitted, control, too big, too often, malformed, closing, closed.
async fn stats<D: Driver>(lab: &Lab<D>) -> Result<Value, Fault> {
    lab.tell("a", json!({"inbound": "stats"})).await
}

async fn too_big<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.configure("a", json!({"inbound": {"max_bytes": 100}})).await?;
    let (mut ann, mut bob) = (lab.join("a", &[]).await?, lab.join("a", &[]).await?);
    ann.text(&format!("\"{}\"", "x".repeat(98))).await?;
    lab.noted("a", "message", 1).await?;
    ann.text(&format!("\"{}\"", "x".repeat(99))).await?;
    ann.hears("ann", closed(1_009, "the message is too long")).await?;
    same("statistics", stats(lab).await?, [1, 0, 1, 0, 0, 0, 1])?;
    same("who is left", lab.tell("a", json!({"room": "count"})).await?, json!(1))?;
    // What she sends before she closes is not acted on.
    ann.text("\"late\"").await?;
    ann.close(Some((1_009, ""))).await?;
    bob.send(Message::binary(vec![0; 101])).await?;
    hears_close(&mut bob, "bob", 1_009).await?;
    bob.close(Some((1_009, ""))).await?;
    lab.noted("a", "close", 2).await?;
    same("messages", lab.noted("a", "message", 1).await?.len(), 1)
}

async fn too_often<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.configure("a", json!({"inbound": {"rate": [0.25, 2]}})).await?;
    let mut ann = lab.join("a", &[]).await?;
    for n in 0..5 {
        ann.text(&n.to_string()).await?;
    }
    let values = |lines: Vec<Value>| lines.iter().map(|line| line["value"].clone()).collect::<Vec<_>>();
    same("what is heard", values(lab.noted("a", "message", 2).await?), [0, 1])?;
    same("what is not", lab.noted("a", "dropped", 3).await?[0]["reason"].clone(), "too many messages")?;
    same("statistics", stats(lab).await?, [2, 0, 0, 3, 0, 0, 0])?;
    lab.advance(Duration::from_millis(4_500)).await?;
    ann.text("5").await?;
    same("later", values(lab.noted("a", "message", 3).await?), [0, 1, 5])
}

async fn strict_rate<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.configure("a", json!({"inbound": {"rate": [0.01, 2], "close_excess": true}})).await?;
    let (mut ann, mut bob) = (lab.join("a", &[]).await?, lab.join("a", &[]).await?);
    for n in 0..5 {
        ann.text(&n.to_string()).await?;
    }
    ann.hears("ann", closed(1_008, "too many messages")).await?;
    ann.close(Some((1_008, ""))).await?;
    lab.noted("a", "close", 1).await?;
    bob.text("5").await?;
    let heard = lab.noted("a", "message", 3).await?;
    same("heard", heard.iter().map(|line| &line["value"]).collect::<Vec<_>>(), [0, 1, 5])?;
    let stats = stats(lab).await?;
    same("admitted, too often, closed", (&stats[0], &stats[3], &stats[6]), (3, 1, 1))
}

async fn strict_form<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.configure("a", json!({"inbound": {"close_malformed": true}})).await?;
    let (mut ann, mut bob) = (lab.join("a", &[]).await?, lab.join("a", &[]).await?);
    ann.text("{\"good\":1}").await?;
    ann.text("{\"bad\"").await?;
    ann.hears("ann", closed(1_007, "the message is malformed")).await?;
    bob.send(Message::binary(&b"{}"[..])).await?;
    bob.hears("bob", closed(1_003, "binary messages are not read here")).await?;
    lab.noted("a", "malformed", 2).await?;
    let _cid = lab.join("a", &[]).await?;
    same("who is left", lab.tell("a", json!({"room": "count"})).await?, json!(1))
}

async fn relayed<D: Driver>(lab: &Lab<D>) -> Outcome {
    let inbound = json!({"rate": [0.01, 1], "max_bytes": 10});
    lab.configure("a", json!({"relay": true, "inbound": inbound})).await?;
    let (mut ann, mut bob) = (lab.join("a", &[]).await?, lab.join("a", &[]).await?);
    for text in ["one", "two"] {
        ann.text(text).await?;
    }
    bob.hears_text("bob", "one").await?;
    bob.text("three").await?;
    // Hers was used up and his was not.
    ann.hears_text("ann", "three").await?;
    ann.text("much too long").await?;
    hears_close(&mut ann, "ann", 1_009).await?;
    lab.broadcast("a", json!({"text": "last"})).await?;
    bob.hears_text("bob, who heard nothing else", "last").await
}

async fn evicted<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.configure("a", json!({"inbound": {"max_bytes": 10, "rate": [0.01, 1]}})).await?;
    let mut ann = lab.join("a", &[]).await?;
    ann.text("1").await?;
    lab.noted("a", "message", 1).await?;
    lab.evict().await?;
    // Buckets are in memory: one burst more.
    ann.text("2").await?;
    ann.text("3").await?;
    lab.noted("a", "dropped", 1).await?;
    lab.noted("a", "message", 2).await?;
    lab.evict().await?;
    ann.text("\"much too long\"").await?;
    hears_close(&mut ann, "ann", 1_009).await
}

async fn acknowledged<D: Driver>(lab: &Lab<D>) -> Outcome {
    let outbound = json!({
        "max_bytes": 100_000, "max_messages": 100, "window": 50_000, "stall_ms": 30_000, "on_full": "close",
        "credit": 50_000,
    });
    lab.configure("a", json!({"outbound": outbound, "inbound": {"close_malformed": true}})).await?;
    let mut ann = lab.join("a", &[("member", "ann")]).await?;
    let mut raw = lab.join("a", &[]).await?;
    ann.receive().await?;
    let ack = r#"{"t":"ack","b":12}"#;
    ann.text(ack).await?;
    lab.noted("a", "control", 1).await?;
    // Nearly one is none, and one of somebody who has no credit neither.
    ann.text(r#"{"t":"ack","b":12 }"#).await?;
    raw.text(ack).await?;
    let noted = lab.noted("a", "message", 2).await?;
    same("the application's", (&noted[0]["value"]["t"], &noted[1]["value"]["b"]), ("ack", 12))?;
    same("statistics", stats(lab).await?, [2, 1, 0, 0, 0, 0, 0])
}
