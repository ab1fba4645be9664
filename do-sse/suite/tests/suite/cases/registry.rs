//! A registry says who is let in, and is told of all who come and go, once.

use crate::{
    feeds::{A_WHILE, Feeds, SOON},
    stream::{Ask, ms},
};
use do_core::testing::{Case, Driver, Fault, Lab, Leave, Local, Outcome, all, holds, same};
use serde_json::{Value, json};

pub(super) fn cases<D: Driver>() -> Vec<Case<D>> {
    vec![
        Case::new("flaw12 who does not say who they are stays away", |lab| Box::pin(unknown(lab))),
        Case::new("flaw12 o1 who has too many, or finds no place, comes back later", |lab| {
            Box::pin(places(lab))
        }),
        Case::new("s3 flaw15 hooks are told once of each, however it ends", |lab| Box::pin(each(lab))),
        Case::new("s3 hooks are told once, by broadcasts and heartbeats at a time", |lab| {
            Box::pin(at_a_time(lab))
        }),
        Case::new("s4 hooks are told of the one that went, not of the one that came", |lab| {
            Box::pin(replaced(lab))
        }),
    ]
}

/// What was noted of one kind, once it is so much, and no more a while later: the ids, sorted.
async fn noted<D: Driver>(lab: &Lab<D>, event: &str, ids: &[&str]) -> Outcome {
    let look = async || {
        let lines = lab.noted("a", event).await?;
        let mut ids: Vec<_> =
            lines.iter().map(|line| line["id"].as_str().unwrap_or_default().to_owned()).collect();
        ids.sort();
        Ok::<_, Fault>(ids)
    };
    lab.eventually(event, SOON, look, |noted| noted.len() >= ids.len()).await?;
    lab.advance(A_WHILE).await?;
    same(event, look().await?, ids)
}

async fn unknown<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.configure("a", json!({"registry": {}})).await?;
    same("without a name", Ask::of("a").open(lab).await?.head.status().as_u16(), 401)?;
    same("an empty one", Ask::of("a").query("user", "").open(lab).await?.head.status().as_u16(), 401)?;
    same("what was opened", lab.stats("a", ["opened"]).await?, [0])?;
    let mut stream = Ask::of("a").query("user", "ann").id("1").ready(lab).await?;
    lab.broadcast("a", "hi").await?;
    stream.hears("ann", ["hi"]).await?;
    let joined = lab.noted("a", "join").await?;
    same("who came", joined, json!([{"event": "join", "id": "1", "user": "ann", "others": 0}]))
}

async fn places<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.configure("a", json!({"registry": {"max": 3, "max_per_key": 2}})).await?;
    let come =
        async |user: &'static str, id: &'static str| Ask::of("a").query("user", user).id(id).open(lab).await;
    let mut inside = Vec::new();
    for id in ["1", "2"] {
        inside.push(come("ann", id).await?);
    }
    let mut third = come("ann", "3").await?;
    same("the status", third.head.status().as_u16(), 200)?;
    third.ends().await?;
    // By itself or with jitter.
    let retry = third.retry.unwrap_or_default();
    holds(format!("she comes back after {retry} ms"), (5_000..=7_500).contains(&retry))?;
    let bob = come("bob", "4").await?;
    let mut cid = come("cid", "5").await?;
    same("the status", cid.head.status().as_u16(), 200)?;
    cid.ends().await?;
    same("statistics", lab.stats("a", ["opened", "sent_away", "connections"]).await?, [3, 2, 3])?;
    // One who comes anew in place of their own takes no second place.
    let mut again = come("ann", "2").await?;
    again.ready().await?;
    bob.leave(Leave::Reset);
    noted(lab, "leave", &["2", "4"]).await?;
    let mut cid = come("cid", "5").await?;
    cid.ready().await?;
    lab.broadcast("a", "hi").await?;
    cid.hears("cid", ["hi"]).await?;
    same("who is there", lab.stats("a", ["connections"]).await?, [3])
}

async fn each<D: Driver>(lab: &Lab<D>) -> Outcome {
    let settings = json!({"registry": {}, "heartbeat_ms": 300, "max_events": 3});
    lab.configure("a", settings).await?;
    let come = async |id: &'static str| Ask::of("a").query("user", "ann").id(id).topic(id).ready(lab).await;
    let left = come("left").await?;
    let reset = come("reset").await?;
    let full = come("full").await?;
    let closed = come("closed").await?;
    let replaced = come("replaced").await?;
    let _again = come("replaced").await?;
    let _stays = come("stays").await?;
    noted(lab, "join", &["closed", "full", "left", "replaced", "replaced", "reset", "stays"]).await?;
    left.leave(Leave::Close);
    reset.leave(Leave::Reset);
    let to_full = json!({"times": [5, {"send": {"to": ["full", {"data": "x"}]}}]});
    lab.tell("a", json!({"written": [to_full]})).await?;
    lab.tell("a", json!({"feed": {"close": "closed"}})).await?;
    noted(lab, "leave", &["closed", "full", "left", "replaced", "reset"]).await?;
    for stream in [full, closed, replaced] {
        stream.leave(Leave::Reset);
    }
    lab.advance(ms(700)).await?;
    noted(lab, "leave", &["closed", "full", "left", "replaced", "reset"]).await?;
    let ends = lab.stats("a", ["opened", "connections", "gone", "full", "closed", "replaced"]).await?;
    same("statistics", ends, [7, 2, 2, 1, 1, 1])
}

async fn at_a_time<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.configure("a", json!({"registry": {}, "heartbeat_ms": 100})).await?;
    let mut streams = Vec::new();
    for id in ["1", "2", "3", "4"] {
        streams.push(Ask::of("a").query("user", "ann").id(id).ready(lab).await?);
    }
    for (n, stream) in streams.into_iter().enumerate() {
        stream.leave(if n.is_multiple_of(2) { Leave::Close } else { Leave::Reset });
    }
    let call = |n: usize| -> Local<'_, Outcome> {
        let told: Value = match n % 2 {
            0 => json!([{"send": {"broadcast": {"data": "x"}}}, {"feed": "count"}]),
            _ => json!([{"feed": "beat"}, {"feed": "infos"}]),
        };
        Box::pin(async move { lab.tell("a", told).await.map(drop) })
    };
    all((0..12).map(call).collect()).await.into_iter().collect::<Outcome>()?;
    noted(lab, "leave", &["1", "2", "3", "4"]).await?;
    let others = lab.noted("a", "leave").await?;
    let others: Vec<_> = others.iter().map(|line| line["others"].clone()).collect();
    same("how many of hers were left", others, [3, 2, 1, 0])
}

async fn replaced<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.configure("a", json!({"registry": {}, "heartbeat_ms": 300})).await?;
    let old = Ask::of("a").query("user", "ann").id("1").ready(lab).await?;
    let mut new = Ask::of("a").query("user", "bob").id("1").ready(lab).await?;
    let gone = async || Ok(lab.noted("a", "leave").await?.len());
    lab.eventually("who left", SOON, gone, |gone| *gone == 1).await?;
    old.leave(Leave::Reset);
    lab.advance(ms(700)).await?;
    let left = lab.noted("a", "leave").await?;
    same("who left", left, json!([{"event": "leave", "id": "1", "user": "ann", "others": 0}]))?;
    lab.broadcast("a", "hi").await?;
    new.hears("who came", ["hi"]).await
}
