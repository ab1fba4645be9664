//! E: the alarm slot, its runs and its retries.

use crate::testing::{
    case::{Case, Fault, Outcome, holds, same},
    driver::Driver,
    lab::Lab,
};
use serde::Deserialize;
use serde_json::{Value, json};
use std::time::Duration;

pub(super) fn cases<D: Driver>() -> Vec<Case<D>> {
    vec![
        Case::new("e1 setting replaces, sooner or later", |lab| Box::pin(e1_replaces(lab))),
        Case::new("e1 times that are none are refused and change nothing", |lab| Box::pin(e1_refused(lab))),
        Case::new("e2 a past time runs at once and no alarm early", |lab| Box::pin(e2_past(lab))),
        Case::new("e3 e5 the slot is empty while the handler runs, and requests are let in", |lab| {
            Box::pin(e3_empty(lab))
        }),
        Case::new("e4 success empties the slot unless it was set in the run", |lab| Box::pin(e4_again(lab))),
        Case::new("e6 e8 a failed run is tried again after 2 s and told so", |lab| Box::pin(e8_retry(lab))),
        Case::new("e14 delete_all empties database and slot", |lab| Box::pin(e14_delete_all(lab))),
        Case::new("e16 an alarm wakes an evicted object", |lab| Box::pin(e16_evicted(lab))).evicts(),
        Case::new("e16 an alarm survives a kill and fires late rather than never", |lab| {
            Box::pin(e16_killed(lab))
        })
        .crashes(),
    ]
}

#[derive(Debug, Deserialize)]
struct Ran {
    at: i64,
    scheduled: i64,
    retries: u32,
}

/// The runs, once there are so many.
async fn runs<D: Driver>(
    lab: &Lab<D>,
    object: &str,
    count: usize,
    within: Duration,
) -> Result<Vec<Ran>, Fault> {
    let enough = |runs: &Value| runs.as_array().is_some_and(|runs| runs.len() >= count);
    let runs: Vec<Ran> = serde_json::from_value(lab.until(object, json!(["runs"]), within, enough).await?)?;
    for run in &runs {
        holds(format!("early: {run:?}"), run.at >= run.scheduled)?;
    }
    same(&format!("the runs of {object}: {runs:?}"), runs.len(), count)?;
    Ok(runs)
}

const SOON: Duration = Duration::from_secs(3);

async fn e1_replaces<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.run("sooner", json!([{"set_alarm": 60_000}])).await?;
    let sooner = lab.last("sooner", json!([{"set_alarm": 200}])).await?;
    let later = lab.run("later", json!([{"set_alarm": 200}, {"set_alarm": 700}, "get_alarm"])).await?;
    let twice = lab.run("twice", json!([{"set_alarm": 200}, {"set_alarm": 200}])).await?;
    lab.run("deleted", json!([{"set_alarm": 200}, "delete_alarm"])).await?;
    same("what is set", &later[2], &later[1])?;
    for (object, at) in [("sooner", &sooner), ("later", &later[1]), ("twice", &twice[1])] {
        let runs = runs(lab, object, 1, SOON).await?;
        same(object, json!(runs[0].scheduled), at)?;
    }
    for object in ["sooner", "later", "twice", "deleted"] {
        same(object, lab.last(object, json!(["get_alarm"])).await?, Value::Null)?;
    }
    same("deleted", lab.last("deleted", json!(["runs"])).await?, json!([]))
}

async fn e1_refused<D: Driver>(lab: &Lab<D>) -> Outcome {
    let set = lab.last("a", json!([{"set_alarm": 60_000}])).await?;
    for wrong in [0, -1, i64::MIN, 6_942_758_400_000, i64::MAX] {
        let refused = lab.last("a", json!([{"try": [{"set_alarm_at": wrong}]}])).await?;
        same(&wrong.to_string(), &refused["error"]["kind"], json!("Invalid"))?;
    }
    same("the slot", lab.last("a", json!(["get_alarm"])).await?, set)?;
    let latest = 6_942_758_399_999_i64;
    let got = lab.last("a", json!([{"set_alarm_at": latest}, "get_alarm", "runs"])).await?;
    same("runs", got, json!([]))?;
    same("the latest time", lab.last("a", json!(["get_alarm"])).await?, json!(latest))
}

async fn e2_past<D: Driver>(lab: &Lab<D>) -> Outcome {
    let before = lab.run("a", json!(["now", {"set_alarm": -5_000}])).await?[0].as_i64();
    let runs = runs(lab, "a", 1, SOON).await?;
    holds(format!("stored as now, not as {:?}", runs[0]), Some(runs[0].scheduled) >= before)?;
    lab.run("b", json!([{"set_alarm": 400}])).await?;
    self::runs(lab, "b", 1, SOON).await.map(drop)
}

async fn e3_empty<D: Driver>(lab: &Lab<D>) -> Outcome {
    let handler = json!(["note_alarm", {"add": 1}, {"wait_for": 2}, {"set_alarm": 60_000}, "note_alarm"]);
    lab.run("a", json!([{"on_alarm": handler}, {"set_alarm": 50}])).await?;
    lab.until("a", json!([{"add": 0}]), SOON, |n| *n == json!(1)).await?;
    same("to a request meanwhile", lab.last("a", json!(["get_alarm"])).await?, Value::Null)?;
    lab.run("a", json!([{"add": 1}])).await?;
    let look = json!([{"sql": "SELECT line FROM log"}]);
    let lines =
        lab.until("a", look, SOON, |lines| lines.as_array().is_some_and(|lines| lines.len() == 2)).await?;
    let set = lab.last("a", json!(["get_alarm"])).await?;
    same("within the run", lines, json!(["none", set.to_string()]))
}

async fn e4_again<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.run("once", json!([{"set_alarm": 50}])).await?;
    let again = json!([{"on_alarm": [{"up_to_runs": [2, [{"set_alarm": 50}]]}]}, {"set_alarm": 50}]);
    lab.run("again", again).await?;
    runs(lab, "once", 1, SOON).await?;
    for run in runs(lab, "again", 3, SOON).await? {
        same("retries", run.retries, 0)?;
    }
    lab.advance(Duration::from_millis(200)).await?;
    for (object, count) in [("once", 1), ("again", 3)] {
        let seen = lab.run(object, json!(["get_alarm", {"sql": "SELECT count(*) FROM runs"}])).await?;
        same(object, seen, [Value::Null, json!([count])])?;
    }
    Ok(())
}

async fn e8_retry<D: Driver>(lab: &Lab<D>) -> Outcome {
    let handler = json!([{"add": 1}, {"up_to_runs": [1, [{"note": "kept"}, {"fail": "the first run"}]]}]);
    let set = lab.last("a", json!([{"on_alarm": handler}, {"set_alarm": 50}])).await?;
    let runs = runs(lab, "a", 2, Duration::from_secs(8)).await?;
    same("retries", [runs[0].retries, runs[1].retries], [0, 1])?;
    same("scheduled", json!([runs[0].scheduled, runs[1].scheduled]), json!([set, set]))?;
    let gap = runs[1].at - runs[0].at;
    // 2 s and up to a quarter more, which on a busy machine workerd counts from somewhat before the first run.
    holds(format!("the gap is {gap} ms"), (1_000..6_000).contains(&gap))?;
    same("memory and writes of the failed run", lab.last("a", json!([{"add": 0}])).await?, json!(2))?;
    same("its writes", lab.lines("a").await?, json!(["kept"]))?;
    same("the slot", lab.last("a", json!(["get_alarm"])).await?, Value::Null)
}

async fn e14_delete_all<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.run("a", json!([{"note": "x"}, {"set_alarm": 2_000}, {"sql": "CREATE TABLE mine (x)"}])).await?;
    lab.run("a", json!([{"note": "undone with it"}, "delete_all"])).await?;
    let tables = json!({"sql": "SELECT name FROM sqlite_master WHERE name = 'mine'"});
    let after = lab.run("a", json!(["log", tables, "get_alarm"])).await?;
    same("what is left", after, [json!([]), json!([]), Value::Null])?;
    lab.advance(Duration::from_millis(2_300)).await?;
    same("runs", lab.last("a", json!(["runs"])).await?, json!([]))?;
    same(
        "it is usable",
        lab.last("a", json!([{"note": "new"}, {"sql": "SELECT line FROM log"}])).await?,
        json!(["new"]),
    )
}

async fn e16_evicted<D: Driver>(lab: &Lab<D>) -> Outcome {
    let ms = lab.after_eviction(2_500);
    let handler = json!([{"note_of": ["boots", "name", {"add": 0}]}]);
    let set = lab.run("a", json!([{"on_alarm": handler}, {"add": 5}, {"set_alarm": ms}])).await?;
    lab.evict().await?;
    lab.advance(Duration::from_millis(2_600)).await?;
    let runs = runs(lab, "a", 1, SOON).await?;
    same("the run", json!([runs[0].scheduled, runs[0].retries]), json!([set[2], 0]))?;
    // A10: the name is there although nobody called.
    let seen = json!([2, lab.name("a"), 0]).to_string();
    same("what it saw", lab.lines("a").await?, json!([seen]))
}

async fn e16_killed<D: Driver>(lab: &Lab<D>) -> Outcome {
    let set = lab.last("a", json!([{"set_alarm": 400}])).await?;
    lab.crash().await?;
    lab.advance(Duration::from_millis(600)).await?;
    let runs = runs(lab, "a", 1, SOON).await?;
    same("the run", json!([runs[0].scheduled, runs[0].retries]), json!([set, 0]))
}
