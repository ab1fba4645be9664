//! Clients that leave, whichever way, are removed once, and by identity.

use crate::{
    feeds::{A_WHILE, ENDED, Feeds, NOBODY, ONE, SOON},
    stream::{Ask, ms},
};
use do_core::testing::{Case, Driver, HostKind, Lab, Leave, Local, Outcome, all, holds, same};
use serde_json::{Value, json};

pub(super) fn cases<D: Driver>() -> Vec<Case<D>> {
    vec![
        Case::new("b17a flaw1 a client that closed is noticed with the next write, which succeeds", |lab| {
            Box::pin(closed(lab))
        })
        .differs(&[HostKind::Tokio, HostKind::Workerd], "client-gone"),
        Case::new("b17a flaw1 a client that closed is noticed with the next heartbeat", |lab| {
            Box::pin(closed_quietly(lab))
        }),
        Case::new("b17a a client that left is noticed without a write", |lab| Box::pin(left(lab)))
            .differs(&[HostKind::Kit], "client-gone"),
        Case::new("b17b flaw1 a client that resets is noticed without a write", |lab| Box::pin(reset(lab))),
        Case::new("b17c flaw1 a client that closes its own side alone stays, and gets everything", |lab| {
            Box::pin(half_closed(lab))
        }),
        Case::new("b17 a client that leaves before it read anything is removed once", |lab| {
            Box::pin(unread(lab))
        }),
        Case::new(
            "s3 flaw15 a connection that failed is removed once, by broadcasts and heartbeats at a time",
            |lab| Box::pin(at_a_time(lab)),
        ),
        Case::new("s3 what is sent behind the first failure is a no-op", |lab| Box::pin(behind(lab))),
        Case::new(
            "s4 a connection under the same id is untouched by the late failure of the one before",
            |lab| Box::pin(late(lab)),
        ),
        Case::new("s4 of several under an id only the one that failed is removed", |lab| {
            Box::pin(one_of(lab))
        }),
    ]
}

const ENDS: [&str; 8] = ["opened", "connections", "gone", "full", "stalled", "aged", "replaced", "closed"];

/// What the statistics have when all of those that were opened left, each once.
async fn all_gone<D: Driver>(lab: &Lab<D>, opened: u64) -> Outcome {
    lab.until("a", "gone", opened).await?;
    lab.advance(A_WHILE).await?;
    same("the ends", lab.stats("a", ENDS).await?, [opened, 0, opened, 0, 0, 0, 0, 0])?;
    same("who is there", lab.tell("a", json!({"feed": "infos"})).await?, json!([]))?;
    same("a broadcast", lab.broadcast("a", "to nobody").await?, NOBODY)
}

async fn closed<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.configure("a", json!({"heartbeat_ms": 600_000})).await?;
    Ask::of("a").ready(lab).await?.leave(Leave::Close);
    lab.advance(A_WHILE).await?;
    same("the write", lab.broadcast("a", "one").await?, ONE)?;
    all_gone(lab, 1).await
}

async fn closed_quietly<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.configure("a", json!({"heartbeat_ms": 300})).await?;
    Ask::of("a").ready(lab).await?.leave(Leave::Close);
    all_gone(lab, 1).await
}

async fn left<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.configure("a", json!({"heartbeat_ms": 600_000})).await?;
    Ask::of("a").ready(lab).await?.leave(Leave::Close);
    all_gone(lab, 1).await
}

async fn reset<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.configure("a", json!({"heartbeat_ms": 600_000})).await?;
    Ask::of("a").ready(lab).await?.leave(Leave::Reset);
    all_gone(lab, 1).await
}

async fn half_closed<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.configure("a", json!({"heartbeat_ms": 400})).await?;
    let mut stream = Ask::of("a").id("ann").ready(lab).await?;
    stream.half_close().await?;
    for turn in 0..3_u64 {
        let look = async || Ok(lab.stats("a", ["beats"]).await?[0]);
        lab.eventually("heartbeats", SOON, look, |beats| *beats > turn).await?;
        stream.beat().await?;
        same("a write", lab.broadcast("a", &turn.to_string()).await?, ONE)?;
        stream.hears("what is written", [turn]).await?;
    }
    same("the ends", lab.stats("a", ENDS).await?, [1, 1, 0, 0, 0, 0, 0, 0])?;
    lab.tell("a", json!({"feed": {"close": "ann"}})).await?;
    stream.ends().await
}

async fn unread<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.configure("a", json!({"heartbeat_ms": 300})).await?;
    for how in [Leave::Close, Leave::Reset, Leave::Close, Leave::Reset] {
        Ask::of("a").open(lab).await?.leave(how);
    }
    all_gone(lab, 4).await
}

async fn at_a_time<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.configure("a", json!({"heartbeat_ms": 100})).await?;
    let mut stays = Ask::of("a").id("stays").ready(lab).await?;
    for round in 1..=3_u64 {
        for how in [Leave::Close, Leave::Reset] {
            Ask::of("a").ready(lab).await?.leave(how);
        }
        let call = |n: usize| -> Local<'_, Outcome> {
            Box::pin(async move {
                let told = match n % 3 {
                    0 => json!({"send": {"broadcast": {"data": "x"}}}),
                    1 => json!({"feed": "beat"}),
                    _ => json!([{"send": {"broadcast": {"data": "x"}}}, {"feed": "beat"}, {"feed": "count"}]),
                };
                lab.tell("a", told).await.map(drop)
            })
        };
        all((0..12).map(call).collect()).await.into_iter().collect::<Outcome>()?;
        lab.until("a", "gone", 2 * round).await?;
    }
    lab.advance(A_WHILE).await?;
    same("the ends", lab.stats("a", ENDS).await?, [7, 1, 6, 0, 0, 0, 0, 0])?;
    same("the other", lab.broadcast("a", "last").await?, ONE)?;
    for _ in 0..3 * 8 {
        same("what it heard", stays.event().await?.data, "x")?;
    }
    stays.hears("the last", ["last"]).await
}

async fn behind<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.configure("a", json!({"max_events": 3, "heartbeat_ms": 100})).await?;
    let mut stream = Ask::of("a").id("ann").ready(lab).await?;
    let told = json!([
        {"send": {"flood": [0, 5, 1, 0]}}, {"send": {"to": ["ann", {"data": "x"}]}}, {"feed": "beat"},
        {"send": {"flood": [5, 6, 1, 0]}}, {"feed": {"close": "ann"}}, {"feed": "count"}
    ]);
    let reports = json!([[ONE, ONE, ONE, ENDED, NOBODY], NOBODY, null, [NOBODY], 0, 0]);
    same("the reports", lab.tell("a", told).await?, reports)?;
    // After the decision nothing more is written, also not of what waited.
    stream.is_over().await?;
    lab.advance(A_WHILE).await?;
    same("the ends", lab.stats("a", ENDS).await?, [1, 0, 0, 1, 0, 0, 0, 0])?;
    stream.leave(Leave::Reset);
    lab.advance(A_WHILE).await?;
    same("the ends", lab.stats("a", ENDS).await?, [1, 0, 0, 1, 0, 0, 0, 0])
}

async fn late<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.configure("a", json!({"heartbeat_ms": 300})).await?;
    let old = Ask::of("a").id("ann").ready(lab).await?;
    let mut new = Ask::of("a").id("ann").ready(lab).await?;
    old.leave(Leave::Reset);
    lab.advance(ms(700)).await?;
    same("who is there", lab.tell("a", json!({"feed": "infos"})).await?, json!([["ann", []]]))?;
    same("the ends", lab.stats("a", ENDS).await?, [2, 1, 0, 0, 0, 0, 1, 0])?;
    same("to ann", lab.send("a", json!({"to": ["ann", {"data": "hi"}]})).await?, ONE)?;
    new.hears("the new one", ["hi"]).await
}

async fn one_of<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.configure("a", json!({"heartbeat_ms": 300, "on_duplicate": "allow"})).await?;
    let mut streams = Vec::new();
    for _ in 0..4 {
        streams.push(Ask::of("a").id("ann").ready(lab).await?);
    }
    streams.remove(1).leave(Leave::Reset);
    streams.remove(1).leave(Leave::Close);
    lab.until("a", "gone", 2).await?;
    same("to ann", lab.send("a", json!({"to": ["ann", {"data": "hi"}]})).await?, [2, 2, 0, 0, 0])?;
    for stream in &mut streams {
        stream.hears("those that stay", ["hi"]).await?;
    }
    let infos: Value = lab.tell("a", json!({"feed": "infos"})).await?;
    holds(format!("{infos}"), infos == json!([["ann", []], ["ann", []]]))
}
