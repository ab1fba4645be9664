//! Heartbeats, by one alarm that others may share.

use crate::{
    feeds::{A_WHILE, Feeds, ONE, SOON, within},
    stream::{Ask, ms},
};
use do_core::testing::{Case, Driver, Fault, HostKind, Lab, Leave, Outcome, holds, same};
use serde_json::{Value, json};

pub(super) fn cases<D: Driver>() -> Vec<Case<D>> {
    vec![
        Case::new("s5 a heartbeat is a comment, and listeners hear nothing of it", |lab| {
            Box::pin(comment(lab))
        }),
        Case::new("s5 w8 heartbeats come every 15 s without a word", |lab| {
            Box::pin(every(lab, json!({}), 15_000))
        })
        .long(),
        Case::new("s5 heartbeats come every 25 s where that is asked for", |lab| {
            Box::pin(every(lab, json!({"heartbeat_ms": 25_000}), 25_000))
        })
        .long(),
        Case::new("s5 where something was sent the heartbeat is left out, every 15 s", |lab| {
            Box::pin(left_out(lab, json!({}), 15_000))
        })
        .long(),
        Case::new("s5 where something was sent the heartbeat is left out, every 25 s", |lab| {
            Box::pin(left_out(lab, json!({"heartbeat_ms": 25_000}), 25_000))
        })
        .long(),
        Case::new("s5 where something was sent the heartbeat is left out", |lab| {
            Box::pin(left_out(lab, json!({"heartbeat_ms": 5_000}), 5_000))
        }),
        Case::new("s5 flaw13 one alarm for all connections, and none when nobody is there", |lab| {
            Box::pin(one_alarm(lab))
        }),
        Case::new("s5 s7 the raw alarm ends when the last one left, and begins again with the next", |lab| {
            Box::pin(begins_again(lab, false))
        }),
        Case::new("s5 s7 the slot ends when the last one left, and begins again with the next", |lab| {
            Box::pin(begins_again(lab, true))
        }),
        Case::new(
            "s6 a heartbeat whose alarm cannot be set fails, is retried, and heartbeats go on",
            |lab| Box::pin(fails(lab)),
        ),
        Case::new("s6 who comes while the slot cannot be set is sent away", |lab| Box::pin(away_slot(lab))),
        Case::new("s6 a heartbeat later than any alarm can be is as good as none", |lab| {
            Box::pin(never(lab))
        }),
        Case::new("s7 an alarm that is gone is set again by who comes", |lab| Box::pin(set_again(lab))),
        Case::new("s7 an alarm that was deleted is set again with what is sent a minute later", |lab| {
            Box::pin(lost(lab))
        })
        .long(),
        Case::new("s8 the raw alarm of an object that began anew finds nobody, and ends", |lab| {
            Box::pin(rebuilt(lab, false))
        })
        .crashes(),
        Case::new("s8 the slot of an object that began anew ends, and other jobs stay", |lab| {
            Box::pin(rebuilt(lab, true))
        })
        .crashes(),
        Case::new("s8 three jobs share the alarm, and each comes at its own time", |lab| {
            Box::pin(shared(lab))
        }),
        Case::new("flaw6 streams end at an age of their own, and their clients come back", |lab| {
            Box::pin(ages(lab))
        }),
        Case::new("flaw13 the rows of opening and of heartbeats", |lab| Box::pin(rows(lab)))
            .differs(&[HostKind::Workerd], "rows-counted"),
        Case::new("flaw13 a feed that is not used writes nothing and has no alarm", |lab| {
            Box::pin(unused(lab))
        }),
    ]
}

async fn count<D: Driver>(lab: &Lab<D>) -> Result<u64, Fault> {
    Ok(lab.stats("a", ["beats"]).await?[0])
}

/// Waits for this many heartbeats in all.
async fn beats<D: Driver>(lab: &Lab<D>, wanted: u64) -> Result<u64, Fault> {
    lab.eventually("heartbeats", SOON, async || count(lab).await, |beats| *beats >= wanted).await
}

async fn comment<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.configure("a", json!({"heartbeat_ms": 200})).await?;
    let mut stream = Ask::of("a").ready(lab).await?;
    for n in 1..=4 {
        beats(lab, n).await?;
        stream.beat().await?;
    }
    lab.broadcast("a", "data").await?;
    stream.hears("the only event", ["data"]).await
}

/// Three heartbeats, each after a silence.
async fn every<D: Driver>(lab: &Lab<D>, settings: Value, every: u64) -> Outcome {
    lab.configure("a", settings).await?;
    let mut stream = Ask::of("a").ready(lab).await?;
    let now = async || Ok::<_, Fault>(lab.tell("a", json!("now")).await?.as_u64().unwrap_or_default());
    let began = now().await?;
    for n in 1..=3 {
        let due = began + n * every;
        lab.advance(ms((due - 1_000).saturating_sub(now().await?))).await?;
        same("heartbeats before the time", count(lab).await?, n - 1)?;
        lab.advance(ms(due.saturating_sub(now().await?))).await?;
        beats(lab, n).await?;
        stream.beat().await?;
        // On a machine that is busy each may be somewhat late.
        within("the time of the heartbeat", now().await? - began, n * every, n * (every + 1_500))?;
    }
    same("alarms", lab.noted("a", "alarm").await?.len(), 3)
}

/// An event in the middle of the silence: the next heartbeat is so much later.
async fn left_out<D: Driver>(lab: &Lab<D>, settings: Value, every: u64) -> Outcome {
    lab.configure("a", settings).await?;
    let mut ann = Ask::of("a").id("ann").ready(lab).await?;
    let mut bob = Ask::of("a").id("bob").ready(lab).await?;
    lab.advance(ms(every / 2)).await?;
    lab.send("a", json!({"to": ["ann", {"data": "hers"}]})).await?;
    ann.hears("hers", ["hers"]).await?;
    lab.advance(ms(every / 2)).await?;
    // Bob's, and nobody else's.
    beats(lab, 1).await?;
    bob.beat().await?;
    same("heartbeats", count(lab).await?, 1)?;
    lab.advance(ms(every / 2)).await?;
    beats(lab, 2).await?;
    ann.beat().await?;
    same("both are there", lab.broadcast("a", "last").await?, [2, 2, 0, 0, 0])?;
    ann.hears("ann", ["last"]).await?;
    bob.hears("bob", ["last"]).await
}

async fn one_alarm<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.configure("a", json!({"heartbeat_ms": 1_000})).await?;
    let mut streams = Vec::new();
    for _ in 0..10 {
        streams.push(Ask::of("a").ready(lab).await?);
    }
    // Read each, so that the next has something to do where a client reads only then.
    for n in [10, 20] {
        beats(lab, n).await?;
        for stream in &mut streams {
            stream.beat().await?;
        }
    }
    let alarms = lab.noted("a", "alarm").await?.len();
    // Those due within a fifth of the interval share it. On a slow machine they take long to come: up to five groups, each
    // with an alarm for each of three intervals.
    holds(format!("{alarms} alarms for twenty heartbeats"), alarms <= 15)?;
    streams.into_iter().for_each(|stream| stream.leave(Leave::Reset));
    lab.until("a", "gone", 10).await?;
    ends(lab).await
}

/// The alarm comes once more, and is not set again.
async fn ends<D: Driver>(lab: &Lab<D>) -> Outcome {
    let look = async || lab.alarm("a", json!("get")).await;
    lab.eventually("the alarm", SOON, look, Value::is_null).await?;
    lab.advance(A_WHILE).await?;
    same("the alarm", look().await?, Value::Null)
}

async fn begins_again<D: Driver>(lab: &Lab<D>, slot: bool) -> Outcome {
    lab.configure("a", json!({"heartbeat_ms": 1_000, "slot": slot})).await?;
    for round in 0..3 {
        let before = count(lab).await?;
        let mut stream = Ask::of("a").ready(lab).await?;
        // It is empty while it runs.
        let look = async || lab.alarm("a", json!("get")).await;
        lab.eventually("the alarm", SOON, look, |alarm| !alarm.is_null()).await?;
        beats(lab, before + 1).await?;
        stream.beat().await?;
        stream.leave(Leave::Reset);
        lab.until("a", "gone", round + 1).await?;
        ends(lab).await?;
        let alarms = lab.noted("a", "alarm").await?;
        holds(format!("{alarms:?}"), alarms.iter().all(|run| run["failed"] == false))?;
        same("dead heartbeats", lab.alarm("a", json!("pending")).await?, json!([]))?;
    }
    Ok(())
}

async fn fails<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.configure("a", json!({"heartbeat_ms": 500, "slot": true})).await?;
    let mut stream = Ask::of("a").ready(lab).await?;
    lab.alarm("a", json!({"broken": true})).await?;
    let failed = async || {
        let runs = lab.noted("a", "alarm").await?;
        Ok(runs.iter().filter(|run| run["failed"] == true).count())
    };
    lab.eventually("runs that failed", SOON, failed, |failed| *failed >= 1).await?;
    // Whoever is there was sent their heartbeat nevertheless, and stays.
    stream.beat().await?;
    same("who is there", lab.stats("a", ["connections", "gone"]).await?, [1, 0])?;
    lab.alarm("a", json!({"broken": false})).await?;
    for _ in 0..3 {
        let before = count(lab).await?;
        beats(lab, before + 1).await?;
        stream.beat().await?;
    }
    let runs = lab.noted("a", "alarm").await?;
    let first = runs.iter().position(|run| run["failed"] == true).unwrap_or(runs.len());
    holds(format!("{runs:?}"), runs[first..].iter().any(|run| run["retries"] == 1))?;
    holds(format!("{runs:?}"), runs.last().is_some_and(|run| run["failed"] == false))?;
    lab.broadcast("a", "hi").await?;
    stream.hears("it is whole", ["hi"]).await
}

async fn away_slot<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.configure("a", json!({"slot": true, "retry_ms": 1_000})).await?;
    // Its tables are there.
    lab.alarm("a", json!({"job": ["other", 3_600_000]})).await?;
    lab.alarm("a", json!({"broken": true})).await?;
    let mut away = Ask::of("a").open(lab).await?;
    same("the status", away.head.status().as_u16(), 200)?;
    away.ends().await?;
    within("the time", away.retry.unwrap_or_default(), 1_000, 1_500)?;
    same("statistics", lab.stats("a", ["opened", "sent_away", "connections"]).await?, [0, 1, 0])?;
    lab.alarm("a", json!({"broken": false})).await?;
    let mut stream = Ask::of("a").ready(lab).await?;
    same("a broadcast", lab.broadcast("a", "hi").await?, ONE)?;
    stream.hears("whoever is let in", ["hi"]).await
}

async fn never<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.configure("a", json!({"heartbeat_ms": 10_000_000_000_000_u64})).await?;
    let mut stream = Ask::of("a").ready(lab).await?;
    same("who is sent away", lab.stats("a", ["sent_away"]).await?, [0])?;
    same("a broadcast", lab.broadcast("a", "hi").await?, ONE)?;
    stream.hears("whoever is let in", ["hi"]).await
}

async fn set_again<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.configure("a", json!({"heartbeat_ms": 500})).await?;
    let first = Ask::of("a").ready(lab).await?;
    first.leave(Leave::Reset);
    lab.until("a", "gone", 1).await?;
    // While the alarm of the first is still pending, and after it came.
    let mut second = Ask::of("a").ready(lab).await?;
    for _ in 0..2 {
        let before = count(lab).await?;
        beats(lab, before + 1).await?;
        second.beat().await?;
    }
    second.leave(Leave::Reset);
    lab.until("a", "gone", 2).await?;
    ends(lab).await?;
    let before = count(lab).await?;
    let mut third = Ask::of("a").ready(lab).await?;
    beats(lab, before + 1).await?;
    third.beat().await
}

async fn lost<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.configure("a", json!({"heartbeat_ms": 5_000})).await?;
    let mut stream = Ask::of("a").ready(lab).await?;
    lab.alarm("a", json!("delete")).await?;
    lab.advance(ms(70_000)).await?;
    same("heartbeats", count(lab).await?, 0)?;
    same("a broadcast", lab.broadcast("a", "one").await?, ONE)?;
    stream.hears("what is sent", ["one"]).await?;
    for n in 1..=2 {
        beats(lab, n).await?;
        stream.beat().await?;
    }
    Ok(())
}

async fn rebuilt<D: Driver>(lab: &Lab<D>, slot: bool) -> Outcome {
    lab.configure("a", json!({"heartbeat_ms": 2_000, "slot": slot})).await?;
    let mut stream = Ask::of("a").ready(lab).await?;
    if slot {
        lab.alarm("a", json!({"job": ["job", 4_000]})).await?;
        lab.alarm("a", json!({"other": 3_600_000})).await?;
    }
    lab.crash().await?;
    stream.is_over().await?;
    // The alarm wakes it.
    lab.advance(ms(2_500)).await?;
    let look = async || Ok(lab.noted("a", "alarm").await?.len());
    lab.eventually("alarms", SOON, look, |alarms| *alarms >= 1).await?;
    same("who is there", lab.stats("a", ["opened", "connections", "beats"]).await?, [0, 0, 0])?;
    if !slot {
        ends(lab).await?;
        return same("alarms", lab.noted("a", "alarm").await?.len(), 1);
    }
    let job = async || Ok(lab.noted("a", "job").await?.len());
    lab.eventually("the other job", SOON, job, |jobs| *jobs >= 1).await?;
    same("the feed's own", lab.alarm("a", json!("slot")).await?, Value::Null)?;
    same("what is pending", lab.alarm("a", json!("pending")).await?, json!(["other"]))?;
    holds("no alarm", lab.alarm("a", json!("get")).await? != Value::Null)?;
    same("alarms of the feed", lab.noted("a", "alarm").await?.len(), 1)
}

async fn shared<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.configure("a", json!({"heartbeat_ms": 400, "slot": true})).await?;
    let mut stream = Ask::of("a").ready(lab).await?;
    lab.alarm("a", json!({"job": ["job", 900]})).await?;
    lab.alarm("a", json!({"other": 1_300})).await?;
    for n in 1..=5 {
        beats(lab, n).await?;
        stream.beat().await?;
    }
    let jobs = lab.noted("a", "job").await?;
    let names: Vec<_> = jobs.iter().map(|job| job["name"].clone()).collect();
    same("the other jobs", names, ["job", "other"])?;
    same("what is pending", lab.alarm("a", json!("pending")).await?, json!(["feed"]))?;
    // The chain of the feed ends, that of another goes on.
    lab.alarm("a", json!({"other": 1_500})).await?;
    stream.leave(Leave::Reset);
    lab.until("a", "gone", 1).await?;
    let look = async || Ok(lab.noted("a", "job").await?.len());
    lab.eventually("the other's", SOON, look, |jobs| *jobs == 3).await?;
    same("what is pending", lab.alarm("a", json!("pending")).await?, json!([]))
}

async fn ages<D: Driver>(lab: &Lab<D>) -> Outcome {
    const AGE: u64 = 3_000;
    lab.configure("a", json!({"max_age_ms": AGE, "heartbeat_ms": 60_000, "history": {}})).await?;
    let mut streams = Vec::new();
    for _ in 0..6 {
        streams.push(Ask::of("a").ready(lab).await?);
    }
    let aged = async || Ok(lab.stats("a", ["aged"]).await?[0]);
    lab.advance(ms(AGE * 7 / 10)).await?;
    // Before 80 % of the age: a machine that is slow may be there already, and then this says nothing.
    lab.eventually("aged", SOON, aged, |aged| *aged == 6).await?;
    lab.publish("a", "missed").await?;
    let alarms = lab.noted("a", "alarm").await?.len();
    holds(format!("{alarms} alarms"), alarms > 1)?;
    for mut stream in streams {
        stream.ends().await?;
        let id = stream.last_id().to_owned();
        let mut again = Ask::of("a").after(&id).ready(lab).await?;
        again.hears("what was missed", ["missed"]).await?;
    }
    same("statistics", lab.stats("a", ["full", "stalled", "resumed", "gaps"]).await?, [0, 0, 6, 0])
}

/// What is written for one feed with one connection, by the schedule: the feed itself writes nothing.
async fn rows<D: Driver>(lab: &Lab<D>) -> Outcome {
    const WRITTEN: usize = 4;
    const SET: usize = 2;
    lab.configure("a", json!({"heartbeat_ms": 2_500, "slot": true, "quiet": true})).await?;
    // Its tables are there, which are made once.
    lab.alarm("a", json!({"job": ["other", 3_600_000]})).await?;
    let stats = async || -> Result<Vec<u64>, Fault> {
        Ok(serde_json::from_value(lab.alarm("a", json!("stats")).await?)?)
    };
    let before = stats().await?;
    let mut stream = Ask::of("a").ready(lab).await?;
    let opened = stats().await?;
    // The row of the slot and that of its index; and the alarm itself.
    same("rows of the first", [opened[WRITTEN] - before[WRITTEN], opened[SET] - before[SET]], [2, 1])?;
    let mut other = Ask::of("a").ready(lab).await?;
    let second = stats().await?;
    same("rows of the second", [second[WRITTEN] - opened[WRITTEN], second[SET] - opened[SET]], [0, 0])?;
    for n in [2, 4] {
        beats(lab, n).await?;
        stream.beat().await?;
        other.beat().await?;
    }
    let after = stats().await?;
    let wakes = after[0] - second[0];
    let written = after[WRITTEN] - second[WRITTEN];
    let set = after[SET] - second[SET];
    holds(format!("{wakes} wakes for two connections"), (2..=3).contains(&wakes))?;
    // The row of the slot is claimed, set to the next time, and that is in an index too.
    same("rows and alarms of all wakes", [written, set], [3 * wakes, wakes])
}

async fn unused<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.configure("a", json!({"slot": true, "history": {}})).await?;
    lab.broadcast("a", "to nobody").await?;
    lab.publish("a", "to nobody").await?;
    same("the schedule", lab.alarm("a", json!("stats")).await?, [0, 0, 0, 0, 0])?;
    same("the alarm", lab.alarm("a", json!("get")).await?, Value::Null)
}
