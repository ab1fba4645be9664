//! Readers that stop, where clients tell what they have read: the same on every host, as nothing depends on what buffers
//! on the way hold.

use crate::rooms::{Rooms, SOON, hears_close, next};
use do_core::testing::{Case, Client, ClientExt, Driver, Fault, Lab, Outcome, Received, holds, same};
use serde_json::{Value, json};
use std::time::Duration;

pub(super) fn cases<D: Driver>() -> Vec<Case<D>> {
    vec![
        Case::new(
            "flaw2 no more is on its way than a member has credit, and acknowledgements open it",
            |lab| Box::pin(opens(lab)),
        ),
        Case::new("flaw1 a member who reads nothing is closed after the deadline and has left", |lab| {
            Box::pin(stalls(lab))
        }),
        Case::new("pain11 a member who lags is told so by 1013 and resumes without loss", |lab| {
            Box::pin(lags(lab))
        }),
        Case::new("flaw2 credit is given anew after an eviction", |lab| Box::pin(evicted(lab))).evicts(),
    ]
}

const LENGTH: usize = 2_000;
const CREDIT: usize = 5 * LENGTH;

async fn bounded<D: Driver>(lab: &Lab<D>, on_full: &str, stall_ms: u64) -> Outcome {
    let outbound = json!({
        "max_bytes": 20 * LENGTH, "max_messages": 100, "window": CREDIT, "stall_ms": stall_ms, "on_full": on_full,
        "credit": CREDIT,
    });
    lab.configure("a", json!({ "outbound": outbound })).await
}

/// Comes in, and gives how long the hello is and what it says.
async fn enter<D: Driver>(lab: &Lab<D>, query: &[(&str, &str)]) -> Result<(D::Client, usize, Value), Fault> {
    let mut client = lab.join("a", query).await?;
    let Received::Message(hello) = client.receive().await? else { return Err(Fault::new("no hello")) };
    let told: Value = hello.parse_json()?;
    same("the credit", &told["credit"], json!(CREDIT))?;
    Ok((client, hello.len(), told))
}

async fn flood<D: Driver>(lab: &Lab<D>, from: u32, to: u32) -> Result<Value, Fault> {
    lab.tell("a", json!({"outbound": {"flood": [from, to, LENGTH, 0]}})).await
}

async fn hears(client: &mut impl Client, numbers: std::ops::Range<u32>) -> Outcome {
    for number in numbers {
        client.hears_text("the next one", &format!("{number:<LENGTH$}")).await?;
    }
    Ok(())
}

async fn acknowledges(client: &mut impl Client, bytes: usize) -> Outcome {
    client.text(&format!(r#"{{"t":"ack","b":{bytes}}}"#)).await
}

/// So many messages wait in the room.
async fn waits<D: Driver>(lab: &Lab<D>, messages: u32) -> Outcome {
    let look = async || lab.tell("a", json!({"outbound": "stats"})).await;
    lab.eventually("what waits", SOON, look, |stats| stats[1] == messages).await.map(drop)
}

async fn opens<D: Driver>(lab: &Lab<D>) -> Outcome {
    bounded(lab, "drop_newest", 30_000).await?;
    let (mut ann, hello, _) = enter(lab, &[("member", "ann")]).await?;
    // Four beside the hello; the other sixteen wait, but for what is beyond the bound of twenty.
    let reports = flood(lab, 0, 20).await?;
    let queued = reports.as_array().into_iter().flatten().filter(|report| report[0] == 1).count();
    same("queued", queued, 19)?;
    hears(&mut ann, 0..4).await?;
    waits(lab, 15).await?;
    acknowledges(&mut ann, hello + 4 * LENGTH).await?;
    hears(&mut ann, 4..9).await?;
    waits(lab, 10).await?;
    for first in [9, 14] {
        acknowledges(&mut ann, CREDIT).await?;
        hears(&mut ann, first..first + 5).await?;
    }
    waits(lab, 0).await?;
    acknowledges(&mut ann, CREDIT).await?;
    lab.noted("a", "control", 4).await?;
    same("statistics", lab.tell("a", json!({"outbound": "stats"})).await?, [0, 0, 1, 0, 0])?;
    flood(lab, 20, 21).await?;
    hears(&mut ann, 20..21).await
}

async fn stalls<D: Driver>(lab: &Lab<D>) -> Outcome {
    bounded(lab, "close", 1_500).await?;
    let (mut ann, _, _) = enter(lab, &[("member", "ann")]).await?;
    let (mut bob, hello, _) = enter(lab, &[("member", "bob")]).await?;
    let joined = next(&mut ann).await?;
    same("ann hears", &joined["t"], "joined")?;
    flood(lab, 0, 8).await?;
    hears(&mut bob, 0..4).await?;
    acknowledges(&mut bob, hello + 4 * LENGTH).await?;
    hears(&mut bob, 4..8).await?;
    acknowledges(&mut bob, 4 * LENGTH).await?;
    let look = async || {
        lab.advance(Duration::from_millis(200)).await?;
        lab.tell("a", json!({"outbound": "stats"})).await
    };
    lab.eventually("who was slow is closed", SOON, look, |stats| *stats == json!([0, 0, 0, 0, 1])).await?;
    hears(&mut ann, 0..4).await?;
    hears_close(&mut ann, "ann", 1_013).await?;
    ann.close(Some((1_013, ""))).await?;
    let left = next(&mut bob).await?;
    same("bob hears", (&left["t"], &left["member"]), ("left", "ann"))?;
    same("the next report", flood(lab, 8, 9).await?, json!([[1, 0, 0, 0]]))?;
    hears(&mut bob, 8..9).await
}

/// The numbered messages that come until the connection closes for slowness, or until a last one; the last number.
async fn reads(client: &mut impl Client, mut seq: u64, last: u64) -> Result<u64, Fault> {
    while seq < last {
        match client.receive().await? {
            Received::Message(message) => {
                let frame: Value = message.parse_json()?;
                seq += 1;
                same("the number", &frame["s"], json!(seq))?;
                acknowledges(client, message.len()).await?;
            }
            Received::Close(Some((1_013 | 4_000, _))) => break,
            other => return Err(Fault::new(format!("expected a frame, got {other:?}"))),
        }
    }
    Ok(seq)
}

async fn lags<D: Driver>(lab: &Lab<D>) -> Outcome {
    bounded(lab, "drop_newest", 30_000).await?;
    let (mut ann, _, hello) = enter(lab, &[("member", "ann")]).await?;
    // More than may wait; what is numbered is never left out.
    lab.tell("a", json!({"history": {"many": [40, LENGTH]}})).await?;
    let stats = lab.tell("a", json!({"outbound": "stats"})).await?;
    same("statistics", (&stats[2], &stats[4]), (0, 1))?;
    let mut seq = 1;
    loop {
        match ann.receive().await? {
            Received::Message(_) => seq += 1,
            Received::Close(Some((1_013, _))) => break,
            other => return Err(Fault::new(format!("expected a frame or 1013, got {other:?}"))),
        }
    }
    holds(format!("{seq} had come"), (2..=6).contains(&seq))?;
    ann.close(Some((1_013, ""))).await?;
    lab.noted("a", "close", 1).await?;
    let epoch = hello["at"].as_str().and_then(|at| at.split('-').next()).unwrap_or_default();
    // Joined, forty, left.
    let missed = 42;
    for connection in 1.. {
        let after = format!("{epoch}-{seq}");
        let (mut ann, bytes, hello) = enter_or_page(lab, &after).await?;
        holds(format!("no gap: {hello}"), hello["gap"].is_null())?;
        acknowledges(&mut ann, bytes).await?;
        seq = reads(&mut ann, seq, missed).await?;
        if seq >= missed {
            break;
        }
        holds("it gets on", connection < 20)?;
        ann.lose();
    }
    same("the last", seq, missed)
}

/// As [`enter`], where a page of what was missed has no credit.
async fn enter_or_page<D: Driver>(lab: &Lab<D>, after: &str) -> Result<(D::Client, usize, Value), Fault> {
    let mut client = lab.join("a", &[("member", "ann"), ("after", after)]).await?;
    let Received::Message(hello) = client.receive().await? else { return Err(Fault::new("no hello")) };
    let told: Value = hello.parse_json()?;
    Ok((client, hello.len(), told))
}

async fn evicted<D: Driver>(lab: &Lab<D>) -> Outcome {
    bounded(lab, "drop_newest", 30_000).await?;
    let (mut ann, hello, _) = enter(lab, &[("member", "ann")]).await?;
    flood(lab, 0, 4).await?;
    hears(&mut ann, 0..4).await?;
    lab.evict().await?;
    // What was on its way before is forgiven, and its acknowledgement is the room's still.
    acknowledges(&mut ann, hello + 4 * LENGTH).await?;
    lab.noted("a", "control", 1).await?;
    flood(lab, 4, 12).await?;
    hears(&mut ann, 4..9).await?;
    waits(lab, 3).await?;
    acknowledges(&mut ann, CREDIT).await?;
    hears(&mut ann, 9..12).await
}
