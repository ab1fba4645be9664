//! R2: no socket is kept by the object, so none is lost with its memory; D28: what the host answers meanwhile.

use crate::rooms::{Rooms, all_of, ask};
use do_core::testing::{Case, Client, ClientExt, Driver, Lab, Outcome, Received, closed, holds, same};
use serde_json::{Value, json};
use std::time::Duration;

pub(super) fn cases<D: Driver>() -> Vec<Case<D>> {
    vec![
        Case::new("r2 after an eviction every open socket is found, by tag and in all", |lab| {
            Box::pin(r2_found(lab))
        })
        .evicts(),
        Case::new("r2 after an eviction a message of a member reaches the others", |lab| {
            Box::pin(r2_relayed(lab))
        })
        .evicts(),
        Case::new("r2 after an eviction the object closes who it wants", |lab| Box::pin(r2_closes(lab)))
            .evicts(),
        Case::new("r2 whoever leaves meanwhile is not found", |lab| Box::pin(r2_left(lab))).evicts(),
        Case::new("r2 the settings of rooms and their sockets survive many evictions", |lab| {
            Box::pin(r2_again(lab))
        })
        .evicts(),
        Case::new("r2 after a crash the room is empty and takes new ones", |lab| Box::pin(r2_crash(lab)))
            .crashes(),
        Case::new("d28 flaw14 the auto ping is answered without waking the object", |lab| {
            Box::pin(d28_asleep(lab))
        })
        .evicts(),
        Case::new("d28 flaw14 the auto ping is no message for the object", |lab| Box::pin(d28_awake(lab))),
    ]
}

async fn boots<D: Driver>(lab: &Lab<D>, object: &str) -> Result<usize, do_core::testing::Fault> {
    Ok(lab.tell(object, json!("boots")).await?.as_array().map_or(0, Vec::len))
}

async fn r2_found<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut ann = lab.join("a", &[("tag", "x"), ("attach", "ann")]).await?;
    let mut bob = lab.join("a", &[("tag", "x"), ("tag", "y")]).await?;
    let mut cid = lab.join("a", &[]).await?;
    lab.evict().await?;
    let look = json!([{"room": "count"}, {"room": "tags"}, {"room": {"attachments": ["x"]}}]);
    same("what there is", lab.tell("a", look).await?, json!([3, [["x", "y"], ["x"], []], ["ann", null]]))?;
    same("constructions", boots(lab, "a").await?, 2)?;
    same("to x", lab.broadcast("a", json!({"text": "x", "to": ["x"]})).await?, all_of(2))?;
    same("to all", lab.broadcast("a", json!({"text": "all"})).await?, all_of(3))?;
    ann.hears_text("ann", "x").await?;
    bob.hears_text("bob", "x").await?;
    for client in [&mut ann, &mut bob, &mut cid] {
        client.hears_text("all", "all").await?;
    }
    Ok(())
}

async fn r2_relayed<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.configure("a", json!({"relay": true})).await?;
    let (mut ann, mut bob) = (lab.join("a", &[]).await?, lab.join("a", &[]).await?);
    for text in ["one", "two"] {
        lab.evict().await?;
        ann.text(text).await?;
        bob.hears_text("bob", text).await?;
    }
    same("constructions", boots(lab, "a").await?, 3)
}

async fn r2_closes<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut ann = lab.join("a", &[("tag", "ann")]).await?;
    let mut bob = lab.join("a", &[]).await?;
    lab.evict().await?;
    let close = json!([{"room": {"close": [["ann"], 4_001, "go"]}}, {"room": "count"}]);
    same("the count", lab.tell("a", close).await?, json!([null, 1]))?;
    ann.hears("ann", closed(4_001, "go")).await?;
    ann.close(Some((4_001, "go"))).await?;
    let noted = lab.noted("a", "close", 1).await?;
    same("what was told", &noted[0]["tags"], json!(["ann"]))?;
    same("the rest", lab.broadcast("a", json!({"text": "hi"})).await?, all_of(1))?;
    bob.hears_text("bob", "hi").await
}

async fn r2_left<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut ann = lab.join("a", &[("tag", "ann")]).await?;
    let _bob = lab.join("a", &[]).await?;
    let cid = lab.join("a", &[("tag", "cid")]).await?;
    lab.evict().await?;
    ann.close(Some((1_000, ""))).await?;
    ann.hears("the answer", closed(1_000, "")).await?;
    cid.lose();
    let noted = lab.noted("a", "close", 2).await?;
    let mut told: Vec<_> = noted.iter().map(|line| line["tags"][0].clone()).collect();
    told.sort_by_key(Value::to_string);
    same("who left", told, ["ann", "cid"])?;
    same("tags", lab.tell("a", json!({"room": "tags"})).await?, json!([[]]))
}

async fn r2_again<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.configure("a", json!({"rooms": ["red"], "relay": true})).await?;
    let mut red = lab.join("a", &[("in", "red")]).await?;
    let _main = lab.join("a", &[]).await?;
    for n in 2..5 {
        lab.evict().await?;
        let text = n.to_string();
        let report = lab.tell_in("a", "red", json!({"room": {"broadcast": {"text": text}}})).await?;
        same("the report", report, all_of(1))?;
        red.hears_text("red", &text).await?;
        same("constructions", boots(lab, "a").await?, n)?;
    }
    Ok(())
}

async fn r2_crash<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.configure("a", json!({"rooms": ["red"]})).await?;
    let mut ann = lab.join("a", &[]).await?;
    lab.crash().await?;
    ann.hears("the crash", Received::Lost).await?;
    same("the count", lab.tell("a", json!({"room": "count"})).await?, json!(0))?;
    let mut bob = lab.join("a", &[]).await?;
    let _red = lab.join("a", &[("in", "red")]).await?;
    same("the report", lab.broadcast("a", json!({"text": "hi"})).await?, all_of(1))?;
    bob.hears_text("bob", "hi").await
}

async fn d28_asleep<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.configure("a", json!({"auto_ping": ["ping", "pong"]})).await?;
    let mut ann = lab.join("a", &[]).await?;
    lab.evict().await?;
    for _ in 0..3 {
        ann.text("ping").await?;
        ann.hears_text("asleep", "pong").await?;
    }
    lab.advance(Duration::from_millis(1_500)).await?;
    let told = ask(&mut ann, &json!(["boots", "now", "log"])).await?;
    let (boots, now) = (told[0].as_array().cloned().unwrap_or_default(), told[1].as_i64());
    same("constructions", boots.len(), 2)?;
    // The question itself is what constructed it.
    let age = now.zip(boots.last().and_then(Value::as_i64)).map(|(now, at)| now - at);
    holds(format!("the instance is {age:?} ms old"), age.is_some_and(|age| age < 1_500))?;
    same("events", &told[2], json!([]))
}

async fn d28_awake<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.configure("a", json!({"auto_ping": ["ping", "pong"], "relay": true})).await?;
    let (mut ann, mut bob) = (lab.join("a", &[]).await?, lab.join("a", &[]).await?);
    ann.text("ping").await?;
    ann.hears_text("the answer", "pong").await?;
    ann.text("ping?").await?;
    bob.hears_text("what is no ping", "ping?").await
}
