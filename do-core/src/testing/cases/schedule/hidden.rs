//! What the platform does with its one slot that a schedule does not show: rules E4b, E10, E11 and E12.

use super::{
    attempts, get, gone, host, is_armed, is_bare, names, now, number, on_job, once, put, ran, schedule, set,
    set_at, show, still, up_to,
};
use crate::testing::{
    case::{Case, Outcome, holds, same},
    cases::alarms::{RETRY, SOON},
    driver::Driver,
    lab::Lab,
};
use serde_json::{Value, json};
use std::time::Duration;

pub(super) fn cases<D: Driver>() -> Vec<Case<D>> {
    vec![
        Case::new("e4b schedule: the raw slot is set beyond the moment at which a run ends", |lab| {
            Box::pin(e4b_ahead(lab))
        }),
        Case::new(
            "e10 schedule: a slot set in a run that fails is tried again and comes at its time",
            |lab| Box::pin(e10_set(lab)),
        ),
        Case::new("e10 schedule: a slot set in the failing run of another changes nothing for that", |lab| {
            Box::pin(e10_other(lab))
        }),
        Case::new("e10 schedule: a slot deleted in a run that fails is not tried again", |lab| {
            Box::pin(e10_delete(lab))
        }),
        Case::new(
            "e10 schedule: a slot deleted by a request during a run that fails is not tried again",
            |lab| Box::pin(e10_request_deletes(lab)),
        ),
        Case::new(
            "e11 schedule: a slot set during back-off comes at its own time, in place of the retry",
            |lab| Box::pin(e11_own_time(lab)),
        ),
        Case::new("e11 schedule: a slot set during the back-off of another comes at its own time", |lab| {
            Box::pin(e11_other(lab))
        }),
        Case::new("e12 schedule: what the constructor declares is kept and runs", |lab| {
            Box::pin(e12_declared(lab))
        }),
        Case::new(
            "e12 schedule: a slot set in the constructor costs the run that woke the object nothing",
            |lab| Box::pin(e12_set(lab)),
        )
        .evicts(),
        Case::new("e12 schedule: a slot deleted in the constructor costs the others no run", |lab| {
            Box::pin(e12_deleted(lab))
        })
        .evicts(),
        Case::new("e12 schedule: a job declared in each constructor keeps its ticks", |lab| {
            Box::pin(e12_keeps_ticks(lab))
        })
        .evicts(),
    ]
}

/// Each run leaves its slot due at once, so that the end of the run has to set the raw slot to as soon as it may.
async fn e4b_ahead<D: Driver>(lab: &Lab<D>) -> Outcome {
    let one = schedule(json!({"host": {"jobs_per_wake": 1}}));
    let again = on_job("ttl", up_to(3, json!([set("ttl", -5)])));
    lab.run("a", json!([one, again, {"on_alarm": ["note_alarm"]}, set("ttl", 50)])).await?;
    let told = ran(lab, "a", 4, SOON).await?;
    is_bare(lab, "a").await?;
    let armed = lab.lines("a").await?;
    same("the last", &armed[3], "none")?;
    for (n, run) in told.iter().take(3).enumerate() {
        let at: i64 = armed[n].as_str().unwrap_or_default().parse()?;
        holds(format!("{at} after {run:?}"), at > run.at)?;
    }
    Ok(())
}

async fn e10_set<D: Driver>(lab: &Lab<D>) -> Outcome {
    let fails = once(json!([{"life": {"note_try": [set("ttl", 4_500)]}}, {"fail": "after it"}]));
    lab.run("a", json!([host(), on_job("ttl", fails), set("ttl", 50)])).await?;
    let told = ran(lab, "a", 3, Duration::from_secs(12)).await?;
    same("attempts", attempts(&told), [1, 2, 1])?;
    let gap = told[1].at - told[0].at;
    holds(format!("the retry comes after {gap} ms"), (2_000..4_500).contains(&gap))?;
    let line = json!({"ok": [told[2].scheduled]}).to_string();
    same("its new time", lab.lines("a").await?, json!([line]))?;
    is_bare(lab, "a").await
}

async fn e10_other<D: Driver>(lab: &Lab<D>) -> Outcome {
    let fails = once(json!([set("beat", 60_000), {"fail": "after it"}]));
    lab.run("a", json!([host(), on_job("ttl", fails), set("ttl", 50)])).await?;
    let told = ran(lab, "a", 2, RETRY).await?;
    same("the runs", (names(&told), attempts(&told)), json!([["ttl", "ttl"], [1, 2]]))?;
    let beat = lab.last("a", json!([get("beat")])).await?;
    is_armed(lab, "a", &beat).await?;
    holds("the other one is lost", beat != Value::Null)
}

async fn e10_delete<D: Driver>(lab: &Lab<D>) -> Outcome {
    let fails = json!([schedule(json!({"delete": "ttl"})), {"fail": "after it"}]);
    lab.run("a", json!([host(), on_job("ttl", fails), set("ttl", 50)])).await?;
    ran(lab, "a", 1, SOON).await?;
    is_bare(lab, "a").await?;
    still(lab, "a", 1, 3_500).await?;
    same("dead letters", lab.last("a", json!([super::dead_letters()])).await?, json!([]))
}

async fn e10_request_deletes<D: Driver>(lab: &Lab<D>) -> Outcome {
    let fails = json!([{"add": 1}, {"wait_for": 2}, {"fail": "after it"}]);
    lab.run("a", json!([host(), on_job("ttl", fails), set("ttl", 50)])).await?;
    lab.until("a", json!([{"add": 0}]), SOON, |n| *n == json!(1)).await?;
    lab.run("a", json!([schedule(json!({"delete": "ttl"})), {"add": 1}])).await?;
    is_bare(lab, "a").await?;
    still(lab, "a", 1, 3_500).await
}

async fn e11_own_time<D: Driver>(lab: &Lab<D>) -> Outcome {
    let fails = once(json!([{"fail": "the first run"}]));
    lab.run("a", json!([host(), on_job("ttl", fails), set("ttl", 50)])).await?;
    ran(lab, "a", 1, SOON).await?;
    lab.until("a", json!([get("ttl")]), SOON, |held| !held.is_null()).await?;
    let at = lab.last("a", json!([set("ttl", 300)])).await?;
    let told = ran(lab, "a", 2, SOON).await?;
    same("its time", told[1].scheduled, at)?;
    same("attempts", attempts(&told), [1, 1])?;
    still(lab, "a", 2, 3_500).await?;
    is_bare(lab, "a").await
}

async fn e11_other<D: Driver>(lab: &Lab<D>) -> Outcome {
    let fails = on_job("a", json!([{"fail": "always"}]));
    lab.run("a", json!([host(), fails, put("a", json!({"at": 50, "retry": [2, 600_000]}))])).await?;
    ran(lab, "a", 1, SOON).await?;
    let waits = |shown: &Value| shown["running"] == json!(false);
    let before = lab.until("a", json!([show("a")]), SOON, waits).await?;
    let at = lab.last("a", json!([set("beat", 300)])).await?;
    let told = ran(lab, "a", 2, SOON).await?;
    same("what ran", (&*told[1].name, told[1].scheduled), ("beat", at))?;
    is_armed(lab, "a", &before["due"]).await?;
    same("what waits", lab.last("a", json!([show("a")])).await?, before)
}

async fn e12_declared<D: Driver>(lab: &Lab<D>) -> Outcome {
    let new = json!([schedule(json!({"declare": ["tick", {"every": 2000}]})), set("ttl", 100)]);
    lab.run("a", json!([host(), {"on_new": new}])).await?;
    gone(lab, "a").await?;
    lab.run("a", json!([])).await?;
    let told = ran(lab, "a", 2, SOON).await?;
    same("the runs", names(&told), ["ttl", "tick"])
}

/// Lets the slot of an evicted object come due, and its run end, without asking the object.
async fn woken<D: Driver>(lab: &Lab<D>, before: Value, new: Value) -> Result<i64, super::Fault> {
    let due = now(lab, "a").await? + lab.after_eviction(1_500);
    lab.run("a", json!([host(), {"on_new": new}, before, set_at("ttl", due)])).await?;
    lab.evict().await?;
    lab.advance(Duration::from_millis(2_600)).await?;
    Ok(due)
}

async fn e12_set<D: Driver>(lab: &Lab<D>) -> Outcome {
    let due = woken(lab, json!("now"), json!([set("beat", 60_000)])).await?;
    let seen = lab.run("a", json!([schedule(json!("ran")), get("beat"), "boots"])).await?;
    same("constructions", &seen[2], 2)?;
    same("what ran", json!([seen[0][0]["name"], seen[0][0]["scheduled"]]), json!(["ttl", due]))?;
    holds("what the constructor set is lost", !seen[1].is_null())?;
    is_armed(lab, "a", &seen[1]).await
}

async fn e12_deleted<D: Driver>(lab: &Lab<D>) -> Outcome {
    let new = json!([schedule(json!({"delete": "beat"}))]);
    let due = woken(lab, set("beat", 60_000), new).await?;
    let seen = lab.run("a", json!([schedule(json!("ran")), get("beat")])).await?;
    same("what ran", json!([seen[0][0]["name"], seen[0][0]["scheduled"]]), json!(["ttl", due]))?;
    same("what the constructor deleted", &seen[1], Value::Null)?;
    is_bare(lab, "a").await
}

async fn e12_keeps_ticks<D: Driver>(lab: &Lab<D>) -> Outcome {
    let plan = json!({"every": 60_000});
    let declare = json!([schedule(json!({"declare": ["tick", plan]}))]);
    let before = lab.last("a", json!([host(), put("tick", plan), show("tick")])).await?;
    woken(lab, json!("now"), declare).await?;
    let after = lab.run("a", json!([show("tick"), "boots"])).await?;
    same("the job, and constructions", after, json!([before, 2]))?;
    is_armed(lab, "a", &json!(number(&before["scheduled"])?)).await
}
