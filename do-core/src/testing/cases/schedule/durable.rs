//! What outlives an instance, a kill and a deployment.

use super::{
    ask, dead_letters, get, host, is_armed, is_bare, names, now, number, on_job, only, pending, put, ran,
    ran_at_least, schedule, set_at, show,
};
use crate::testing::{
    case::{Case, Outcome, holds, same},
    cases::alarms::SOON,
    deployment::Deployment,
    driver::Driver,
    lab::Lab,
};
use serde_json::json;
use std::time::Duration;

pub(super) fn cases<D: Driver>() -> Vec<Case<D>> {
    vec![
        Case::new("e16 schedule: slots and jobs wake an evicted object at their times", |lab| {
            Box::pin(evicted(lab))
        })
        .evicts(),
        Case::new("schedule an interval has no drift over an eviction", |lab| Box::pin(interval(lab)))
            .evicts(),
        Case::new("schedule keys are remembered over an eviction", |lab| Box::pin(keys(lab))).evicts(),
        Case::new(
            "schedule a retry comes at its time over an eviction, and attempts are counted on",
            |lab| Box::pin(retry(lab)),
        )
        .evicts(),
        Case::new("e16 schedule: what is pending survives a kill, and what is overdue runs late", |lab| {
            Box::pin(killed(lab))
        })
        .crashes(),
        Case::new("e16 schedule: attempts and back-off survive a kill", |lab| {
            Box::pin(killed_in_back_off(lab))
        })
        .crashes(),
        Case::new("e16 schedule: what is pending and dead letters survive a deployment", |lab| {
            Box::pin(deployed(lab))
        })
        .crashes(),
    ]
}

async fn evicted<D: Driver>(lab: &Lab<D>) -> Outcome {
    let due = now(lab, "a").await? + lab.after_eviction(1_500);
    let puts =
        [set_at("ttl", due), put("a", json!({"on": due + 300, "payload": 7})), set_at("beat", due + 60_000)];
    lab.run("a", json!([host(), on_job("a", json!([{"note_of": ["boots"]}])), puts[2], puts[1], puts[0]]))
        .await?;
    lab.evict().await?;
    lab.advance(Duration::from_millis(2_600)).await?;
    let told = ran(lab, "a", 2, SOON).await?;
    same("the runs", (names(&told), told[0].scheduled, told[1].scheduled), (["ttl", "a"], due, due + 300))?;
    same("which instance", lab.lines("a").await?, json!(["[2]"]))?;
    is_armed(lab, "a", &json!(due + 60_000)).await
}

async fn interval<D: Driver>(lab: &Lab<D>) -> Outcome {
    // Longer than an object that is idle stays in memory.
    let every = lab.after_eviction(1_500);
    let first = lab.last("a", json!([host(), put("a", json!({ "every": every })), show("a")])).await?;
    let first = number(&first["scheduled"])?;
    for _ in 0..2 {
        lab.evict().await?;
        lab.advance(Duration::from_millis(2_000)).await?;
    }
    let told = ran_at_least(lab, "a", 2, SOON).await?;
    for run in &told {
        same(&format!("{told:?}"), (run.scheduled - first) % every, 0)?;
    }
    holds(format!("{told:?}"), told.windows(2).all(|pair| pair[0].scheduled < pair[1].scheduled))?;
    let boots = number(&ask(lab, "a", json!("boots")).await?)?;
    holds(format!("{boots} constructions"), boots >= 2)
}

async fn keys<D: Driver>(lab: &Lab<D>) -> Outcome {
    let keyed = put("a", json!({"at": 50, "key": "one"}));
    lab.run("a", json!([host(), keyed])).await?;
    only(lab, "a").await?;
    is_bare(lab, "a").await?;
    lab.evict().await?;
    lab.run("a", json!([keyed])).await?;
    is_bare(lab, "a").await?;
    only(lab, "a").await.map(drop)
}

async fn retry<D: Driver>(lab: &Lab<D>) -> Outcome {
    let wait = lab.after_eviction(1_500);
    let fails = on_job("a", super::once(json!([{"fail": "the first"}])));
    lab.run("a", json!([host(), fails, put("a", json!({"at": 50, "retry": [2, wait]}))])).await?;
    only(lab, "a").await?;
    lab.evict().await?;
    // The wait, and up to a quarter more.
    lab.advance(Duration::from_millis(u64::try_from(lab.after_eviction(1_500) / 4 + 2_000)?)).await?;
    let told = ran(lab, "a", 2, SOON).await?;
    same("attempts", super::attempts(&told), [1, 2])?;
    let gap = told[1].at - told[0].at;
    holds(format!("the gap is {gap} ms, not {wait}"), gap >= wait)?;
    is_bare(lab, "a").await
}

async fn killed<D: Driver>(lab: &Lab<D>) -> Outcome {
    let at = now(lab, "a").await? + super::BUSY;
    let puts = [
        set_at("ttl", at),
        put("a", json!({"on": at + 10})),
        put("b", json!({"on": at + 600_000, "payload": 7})),
    ];
    lab.run("a", json!([host(), puts[0], puts[1], puts[2]])).await?;
    let before = ask(lab, "a", show("b")).await?;
    lab.crash().await?;
    lab.advance(Duration::from_millis(3_200)).await?;
    let told = ran(lab, "a", 2, SOON).await?;
    same("the runs", (names(&told), told[0].scheduled, told[1].scheduled), (["ttl", "a"], at, at + 10))?;
    is_armed(lab, "a", &before["due"]).await?;
    same("what is pending", ask(lab, "a", pending()).await?, json!([before]))
}

async fn killed_in_back_off<D: Driver>(lab: &Lab<D>) -> Outcome {
    let fails = on_job("ttl", json!([{"fail": "always"}]));
    lab.run("a", json!([host(), fails, super::set("ttl", 50)])).await?;
    only(lab, "a").await?;
    let waits = |shown: &serde_json::Value| shown["running"] == json!(false);
    let before = lab.until("a", json!([show("ttl")]), SOON, waits).await?;
    lab.crash().await?;
    lab.advance(Duration::from_millis(2_500)).await?;
    let told = ran_at_least(lab, "a", 2, SOON).await?;
    same("the second", (told[1].attempt, told[1].scheduled), (2, &before["scheduled"]))?;
    holds(format!("{told:?} of {before}"), told[1].at >= number(&before["due"])?)
}

async fn deployed<D: Driver>(lab: &Lab<D>) -> Outcome {
    let fails = on_job("bad", json!([schedule(json!({"give_up": "no"}))]));
    let far = [
        put("far", json!({"every": 3_600_000, "payload": 7})),
        set_at("ttl", now(lab, "a").await? + 600_000),
    ];
    lab.run("a", json!([host(), fails, put("bad", json!({"at": 50})), far[0], far[1]])).await?;
    lab.until("a", json!([dead_letters()]), SOON, |dead| *dead != json!([])).await?;
    let left = |pending: &serde_json::Value| pending.as_array().map(Vec::len) == Some(2);
    lab.until("a", json!([pending()]), SOON, left).await?;
    let look = json!([pending(), dead_letters(), get("ttl"), "get_alarm"]);
    is_armed(lab, "a", &ask(lab, "a", get("ttl")).await?).await?;
    let before = lab.run("a", look.clone()).await?;
    lab.deploy(Deployment::Second).await?;
    same("what is left", lab.run("a", look).await?, before)?;
    same("which deployment", ask(lab, "a", json!({"var": "DEPLOYMENT"})).await?, "second")
}
