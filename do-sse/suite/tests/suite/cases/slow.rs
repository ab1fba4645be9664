//! Readers that are slow, or stop: bounded, by policy, and nobody else's trouble.
//!
//! What one turn sends with a write leaves on no host before its commit, so that a flood within one turn fills what a reader
//! that does not read would.

use crate::{
    feeds::{A_WHILE, COALESCED, DROPPED, ENDED, Feeds, NOBODY, ONE, SOON},
    stream::{Ask, Stream, ms},
};
use do_core::testing::{Case, Driver, Fault, Lab, Leave, Outcome, holds, same};
use serde_json::{Value, json};

pub(super) fn cases<D: Driver>() -> Vec<Case<D>> {
    vec![
        Case::new("flaw2 flaw16 beyond the bound in events the stream ends", |lab| Box::pin(closes(lab))),
        Case::new("flaw2 flaw16 beyond the bound in bytes the newest are left out", |lab| {
            Box::pin(newest(lab))
        }),
        Case::new("flaw2 flaw16 beyond the bound the oldest are left out", |lab| Box::pin(oldest(lab))),
        Case::new("flaw2 flaw16 the latest of each key waits", |lab| Box::pin(latest(lab))),
        Case::new(
            "flaw2 what is published is never left out: the stream ends, and its client resumes",
            |lab| Box::pin(published(lab)),
        ),
        Case::new("flaw2 one event is taken whatever its length", |lab| Box::pin(long(lab))),
        Case::new("flaw2 flaw17 a reader that stops costs its bound, and the others nothing", |lab| {
            Box::pin(stops(lab))
        }),
        Case::new("flaw1 a reader that stops is ended after the deadline", |lab| Box::pin(stalls(lab))),
        Case::new("flaw1 flaw17 a reader that stops does not keep the others from their heartbeats", |lab| {
            Box::pin(beats(lab))
        }),
        Case::new("flaw1 a reader that goes on before the deadline gets everything", |lab| {
            Box::pin(goes_on(lab))
        }),
    ]
}

async fn flood<D: Driver>(
    lab: &Lab<D>,
    from: u32,
    to: u32,
    length: usize,
    keys: u32,
) -> Result<Value, Fault> {
    lab.send("a", json!({"flood": [from, to, length, keys]})).await
}

/// So many reports of each.
fn reports(all: &[([usize; 5], usize)]) -> Vec<[usize; 5]> {
    all.iter().flat_map(|(report, times)| vec![*report; *times]).collect()
}

async fn closes<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.configure("a", json!({"max_events": 10, "on_full": "close"})).await?;
    let mut stream = Ask::of("a").ready(lab).await?;
    same("the reports", flood(lab, 0, 15, 5, 0).await?, reports(&[(ONE, 10), (ENDED, 1), (NOBODY, 4)]))?;
    stream.is_over().await?;
    let stats = lab.stats("a", ["delivered", "dropped", "full", "connections", "waiting_bytes"]).await?;
    same("statistics", stats, [10, 0, 1, 0, 0])
}

async fn newest<D: Driver>(lab: &Lab<D>) -> Outcome {
    // Each is `data: `, a hundred bytes and two line ends.
    lab.configure("a", json!({"max_bytes": 108 * 7 + 50, "on_full": "drop_newest"})).await?;
    let mut stream = Ask::of("a").ready(lab).await?;
    same("the reports", flood(lab, 0, 20, 100, 0).await?, reports(&[(ONE, 7), (DROPPED, 13)]))?;
    stream.hears("the first", 0..7).await?;
    same("one more", flood(lab, 20, 21, 100, 0).await?, reports(&[(ONE, 1)]))?;
    stream.hears("one more", [20]).await?;
    same("statistics", lab.stats("a", ["delivered", "dropped", "full"]).await?, [8, 13, 0])
}

async fn oldest<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.configure("a", json!({"max_events": 4, "max_bytes": 108 * 4, "on_full": "drop_oldest"})).await?;
    let mut stream = Ask::of("a").ready(lab).await?;
    same("the reports", flood(lab, 0, 20, 100, 0).await?, reports(&[(ONE, 20)]))?;
    stream.hears("the last", 16..20).await?;
    // One that is as long as three of them takes the place of three.
    let told = json!([{"send": {"flood": [20, 24, 100, 0]}}, {"send": {"flood": [24, 25, 316, 0]}}]);
    lab.tell("a", json!({ "written": told })).await?;
    stream.hears("the last", [23, 24]).await?;
    same("statistics", lab.stats("a", ["delivered", "dropped", "full"]).await?, [25, 19, 0])
}

async fn latest<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.configure("a", json!({"max_events": 4, "on_full": "latest_per_key"})).await?;
    let mut stream = Ask::of("a").ready(lab).await?;
    same("the reports", flood(lab, 0, 20, 5, 2).await?, reports(&[(ONE, 2), (COALESCED, 18)]))?;
    stream.hears("the last of each", [18, 19]).await?;
    // Those without a key count, and what is full ends.
    let told = json!([{"send": {"flood": [20, 23, 5, 0]}}, {"send": {"flood": [23, 26, 5, 1]}}, {"send": {"flood": [26, 27, 5, 0]}}]);
    let expected = json!([reports(&[(ONE, 3)]), reports(&[(ONE, 1), (COALESCED, 2)]), [ENDED]]);
    same("the reports", lab.tell("a", json!({ "written": told })).await?, expected)?;
    stream.is_over().await?;
    same("statistics", lab.stats("a", ["coalesced", "dropped", "full"]).await?, [20, 0, 1])
}

async fn published<D: Driver>(lab: &Lab<D>) -> Outcome {
    for (object, on_full) in [("a", "drop_newest"), ("b", "drop_oldest"), ("c", "latest_per_key")] {
        lab.configure(object, json!({"max_events": 4, "on_full": on_full, "history": {}})).await?;
        let mut stream = Ask::of(object).ready(lab).await?;
        let sent = lab.send(object, json!({"publications": [0, 6, 5]})).await?;
        same("the reports", sent, reports(&[(ONE, 4), (ENDED, 1), (NOBODY, 1)]))?;
        stream.is_over().await?;
        let id = stream.last_id().to_owned();
        let mut again = Ask::of(object).after(&id).ready(lab).await?;
        again.hears("what was missed", 0..6).await?;
        same("statistics", lab.stats(object, ["full", "dropped", "resumed", "gaps"]).await?, [1, 0, 1, 0])?;
    }
    Ok(())
}

async fn long<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.configure("a", json!({"max_bytes": 100})).await?;
    let mut stream = Ask::of("a").ready(lab).await?;
    same("the reports", flood(lab, 0, 1, 1_000_000, 0).await?, reports(&[(ONE, 1)]))?;
    same("it arrives", stream.event().await?.data.len(), 1_000_000)?;
    lab.broadcast("a", "next").await?;
    stream.hears("the next", ["next"]).await
}

/// Of each event that is to fill the way to a client.
const LENGTH: usize = 256 * 1_024;
/// Far beyond what the way holds.
const MANY: u32 = 400;

/// Broadcasts until something waits for one who does not read, however long one waits. How many there were.
async fn jam<D: Driver>(lab: &Lab<D>, reads: &mut [&mut Stream<D::Exchange>]) -> Result<u32, Fault> {
    for number in 0..MANY {
        let reports = flood(lab, number, number + 1, LENGTH, 0).await?;
        holds(format!("{reports}"), reports[0][2] == 0 && reports[0][4] == 0)?;
        for stream in &mut *reads {
            stream.hears("whoever reads", [number]).await?;
        }
        let mut waits = 0;
        while waits < 3 && lab.stats("a", ["waiting_bytes"]).await? != [0] {
            lab.advance(ms(10)).await?;
            waits += 1;
        }
        if waits == 3 {
            return Ok(number + 1);
        }
    }
    Err(Fault::new("what nobody reads never waits"))
}

async fn stops<D: Driver>(lab: &Lab<D>) -> Outcome {
    let most = 8 * (LENGTH + 8);
    lab.configure("a", json!({"max_bytes": most, "on_full": "drop_newest", "stall_ms": 600_000})).await?;
    let mut slow = Ask::of("a").id("slow").ready(lab).await?;
    let mut fast = Ask::of("a").id("fast").ready(lab).await?;
    let first = jam(lab, &mut [&mut fast]).await?;
    for number in first..first + 20 {
        flood(lab, number, number + 1, LENGTH, 0).await?;
        fast.hears("whoever reads", [number]).await?;
    }
    let [waiting, dropped, connections] = lab.stats("a", ["waiting_bytes", "dropped", "connections"]).await?;
    holds(format!("{waiting} bytes wait, of {most}"), waiting <= most as u64)?;
    holds(format!("{dropped} of 20 were left out"), (12..=20).contains(&dropped))?;
    same("all are there", connections, 2)?;
    // What it gets is the beginning, without holes.
    let sent = u64::from(first) + 20 - dropped;
    slow.hears("the slow one", 0..sent).await?;
    lab.broadcast("a", "last").await?;
    slow.hears("the slow one", ["last"]).await
}

async fn stalls<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.configure("a", json!({"max_bytes": 100 << 20, "stall_ms": 5_000, "heartbeat_ms": 500})).await?;
    let slow = Ask::of("a").id("slow").ready(lab).await?;
    let mut fast = Ask::of("a").id("fast").ready(lab).await?;
    jam(lab, &mut [&mut fast]).await?;
    // By the alarm alone.
    lab.until("a", "stalled", 1).await?;
    same("the other", lab.broadcast("a", "hi").await?, ONE)?;
    fast.hears("the other", ["hi"]).await?;
    slow.leave(Leave::Reset);
    lab.advance(A_WHILE).await?;
    same("the ends", lab.stats("a", ["stalled", "gone", "full", "connections"]).await?, [1, 0, 0, 1])
}

async fn beats<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.configure("a", json!({"max_bytes": 100 << 20, "stall_ms": 600_000, "heartbeat_ms": 500})).await?;
    let _slow = Ask::of("a").id("slow").ready(lab).await?;
    let mut fast = Ask::of("a").id("fast").ready(lab).await?;
    jam(lab, &mut [&mut fast]).await?;
    let before = lab.stats("a", ["beats"]).await?[0];
    let look = async || Ok(lab.stats("a", ["beats"]).await?[0]);
    lab.eventually("heartbeats", SOON, look, |beats| *beats > before).await?;
    fast.beat().await?;
    same("all are there", lab.stats("a", ["connections", "stalled"]).await?, [2, 0])
}

async fn goes_on<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.configure("a", json!({"max_bytes": 100 << 20, "stall_ms": 60_000, "heartbeat_ms": 60_000})).await?;
    let mut slow = Ask::of("a").ready(lab).await?;
    let count = jam(lab, &mut []).await?;
    slow.hears("all of it", 0..count).await?;
    lab.broadcast("a", "last").await?;
    slow.hears("the last", ["last"]).await?;
    same("statistics", lab.stats("a", ["connections", "dropped", "waiting_bytes"]).await?, [1, 0, 0])
}
