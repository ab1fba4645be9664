//! D11b, R4: what waits for a peer is bounded, and one that reads too slowly is nobody else's trouble.
//!
//! What one turn sends has left on no host before it ends, so a flood within one turn fills what a peer that does not read
//! would. Lengths are such that the framing that some hosts count makes no difference.

use crate::rooms::{Rooms, SOON};
use do_core::testing::{
    Case, Client, ClientExt, Driver, Fault, HostKind, Lab, Outcome, Received, holds, same,
};
use serde_json::{Value, json};
use std::time::Duration;

pub(super) fn cases<D: Driver>() -> Vec<Case<D>> {
    vec![
        Case::new("d11b flaw2 flaw16 pain8 the newest is left out beyond the bound in bytes", |lab| {
            Box::pin(newest(lab))
        }),
        Case::new("d11b flaw2 pain8 the oldest are left out beyond the bound in messages", |lab| {
            Box::pin(oldest(lab))
        }),
        Case::new("d11b flaw2 pain8 the latest of each key waits", |lab| Box::pin(latest(lab))),
        Case::new("d11b flaw2 beyond the bound the socket closes with 1013", |lab| Box::pin(closes(lab))),
        Case::new("r4 flaw2 a reader that stops costs its bound and the others nothing", |lab| {
            Box::pin(stops(lab))
        })
        .differs(&[HostKind::Tokio, HostKind::Workerd], "kit-reads"),
        Case::new("d11b flaw1 a reader that stops is closed after the deadline", |lab| {
            Box::pin(deadline(lab))
        })
        .differs(&[HostKind::Tokio, HostKind::Workerd], "kit-reads"),
    ]
}

/// Of each message.
const LENGTH: usize = 20_000;

/// The host is given three, the bound in bytes is ten more.
async fn bounded<D: Driver>(lab: &Lab<D>, on_full: &str, max_messages: usize) -> Outcome {
    let outbound = json!({
        "max_bytes": 13 * LENGTH + 1_000, "max_messages": max_messages, "window": 3 * LENGTH + 1_000,
        "stall_ms": 3_000, "on_full": on_full,
    });
    lab.configure("a", json!({ "outbound": outbound })).await
}

async fn flood<D: Driver>(lab: &Lab<D>, from: u32, to: u32, keys: u32) -> Result<Value, Fault> {
    lab.tell("a", json!({"outbound": {"flood": [from, to, LENGTH, keys]}})).await
}

/// So many reports of the one, then so many of the other.
fn first_and(first: [u8; 4], times: usize, then: [u8; 4], more: usize) -> Value {
    let mut all = vec![first; times];
    all.extend(vec![then; more]);
    json!(all)
}

async fn hears(client: &mut impl Client, numbers: impl IntoIterator<Item = u32>) -> Outcome {
    for number in numbers {
        client.hears_text("the next one", &format!("{number:<LENGTH$}")).await?;
    }
    Ok(())
}

/// The same while the pump gives the host what it takes, for which time must pass.
async fn drains<D: Driver>(
    lab: &Lab<D>,
    client: &mut D::Client,
    numbers: impl IntoIterator<Item = u32>,
) -> Outcome {
    for number in numbers {
        lab.advance(Duration::from_millis(20)).await?;
        hears(client, [number]).await?;
    }
    Ok(())
}

const QUEUED: [u8; 4] = [1, 0, 0, 0];

async fn newest<D: Driver>(lab: &Lab<D>) -> Outcome {
    bounded(lab, "drop_newest", 100).await?;
    let mut client = lab.join("a", &[]).await?;
    same("the reports", flood(lab, 0, 20, 0).await?, first_and(QUEUED, 13, [0, 1, 0, 0], 7))?;
    drains(lab, &mut client, 0..13).await?;
    same("statistics", lab.tell("a", json!({"outbound": "stats"})).await?, [0, 0, 7, 0, 0])?;
    same("one more", flood(lab, 20, 21, 0).await?, json!([QUEUED]))?;
    hears(&mut client, [20]).await
}

async fn oldest<D: Driver>(lab: &Lab<D>) -> Outcome {
    bounded(lab, "drop_oldest", 4).await?;
    let mut client = lab.join("a", &[]).await?;
    same("the reports", flood(lab, 0, 20, 0).await?, first_and(QUEUED, 20, QUEUED, 0))?;
    drains(lab, &mut client, [0, 1, 2, 16, 17, 18, 19]).await?;
    same("statistics", lab.tell("a", json!({"outbound": "stats"})).await?, [0, 0, 13, 0, 0])
}

async fn latest<D: Driver>(lab: &Lab<D>) -> Outcome {
    bounded(lab, "latest_per_key", 4).await?;
    let mut client = lab.join("a", &[]).await?;
    // Three to the host, one of each of the two keys waits, and the others take their places.
    same("the reports", flood(lab, 0, 20, 2).await?, first_and(QUEUED, 5, [0, 0, 1, 0], 15))?;
    drains(lab, &mut client, [0, 1, 2, 18, 19]).await?;
    same("statistics", lab.tell("a", json!({"outbound": "stats"})).await?, [0, 0, 0, 15, 0])
}

async fn closes<D: Driver>(lab: &Lab<D>) -> Outcome {
    bounded(lab, "close", 100).await?;
    let mut client = lab.join("a", &[]).await?;
    let mut expected = vec![QUEUED; 13];
    expected.extend([[0, 0, 0, 1], [0; 4]]);
    same("the reports", flood(lab, 0, 15, 0).await?, json!(expected))?;
    hears(&mut client, 0..3).await?;
    client.hears("the reason", Received::Close(Some((1_013, String::new())))).await?;
    same("statistics", lab.tell("a", json!({"outbound": "stats"})).await?, [0, 0, 0, 0, 1])
}

/// Sends until somebody is behind, and gives how many there were; `reads` gets each.
async fn until_behind<D: Driver>(lab: &Lab<D>, reads: &mut D::Client) -> Result<u32, Fault> {
    for number in 0..4_000 {
        flood(lab, number, number + 1, 0).await?;
        hears(reads, [number]).await?;
        let stats = lab.tell("a", json!({"outbound": "stats"})).await?;
        if stats[1].as_u64().is_some_and(|messages| messages >= 5) {
            return Ok(number + 1);
        }
    }
    Err(Fault::new("nobody is ever behind"))
}

async fn stops<D: Driver>(lab: &Lab<D>) -> Outcome {
    bounded(lab, "drop_newest", 5).await?;
    let (mut slow, mut fast) = (lab.join("a", &[]).await?, lab.join("a", &[]).await?);
    let said = until_behind(lab, &mut fast).await?;
    let reports = flood(lab, said, said + 1, 0).await?;
    same("the next report", reports, json!([[1, 1, 0, 0]]))?;
    hears(&mut fast, [said]).await?;
    hears(&mut slow, 0..said.saturating_sub(20)).await?;
    drains(lab, &mut slow, said.saturating_sub(20)..said).await?;
    let idle = |stats: &Value| stats[0] == 0;
    let look = async || lab.tell("a", json!({"outbound": "stats"})).await;
    lab.eventually("nobody is behind", SOON, look, idle).await?;
    flood(lab, said + 1, said + 2, 0).await?;
    hears(&mut slow, [said + 1]).await?;
    hears(&mut fast, [said + 1]).await
}

async fn deadline<D: Driver>(lab: &Lab<D>) -> Outcome {
    bounded(lab, "close", 5).await?;
    let (_slow, mut fast) = (lab.join("a", &[]).await?, lab.join("a", &[]).await?);
    let said = until_behind(lab, &mut fast).await?;
    let look = async || lab.tell("a", json!([{"outbound": "stats"}, {"room": "count"}])).await;
    let closed = |values: &Value| values[0] == json!([0, 0, 0, 0, 1]);
    let values = lab.eventually("the slow one is closed", SOON, look, closed).await?;
    holds(format!("{values}: one is left"), values[1] == 1)?;
    same("the next report", flood(lab, said, said + 1, 0).await?, json!([QUEUED]))?;
    hears(&mut fast, [said]).await
}
