//! E12 to E16, and C5 and C6 as far as the slot goes: what is undone, and what survives.

use super::{RETRY, SOON, arm, noted, only_run, retries, runs, runs_at_least, slot, still, wakes};
use crate::testing::{
    case::{Case, Outcome, holds, same},
    driver::Driver,
    lab::Lab,
};
use serde_json::{Value, json};
use std::time::Duration;

/// A foreign key that is checked at the commit, which therefore fails.
const BREAK: &str = "INSERT INTO child VALUES (99)";

pub(super) fn cases<D: Driver>() -> Vec<Case<D>> {
    vec![
        Case::new("c5 an error keeps the alarm that was set before it", |lab| Box::pin(c5_error(lab))),
        Case::new("c6 a failed commit undoes a set", |lab| Box::pin(c6_set(lab))),
        Case::new("c6 a failed commit undoes a delete, and the alarm wakes the object by its name", |lab| {
            Box::pin(c6_delete(lab))
        })
        .evicts(),
        Case::new(
            "c6 e10 a set that the failed commit of its run undoes does not give the retries up",
            |lab| Box::pin(c6_in_run(lab)),
        ),
        Case::new("e12 a constructor that sets a later time keeps the alarm from running before it", |lab| {
            Box::pin(e12_later(lab))
        })
        .evicts(),
        Case::new("e12 a constructor that deletes keeps the alarm from running", |lab| {
            Box::pin(e12_delete(lab))
        })
        .evicts(),
        Case::new("e12 set_earlier in init lets the alarm run that wakes the object", |lab| {
            Box::pin(e12_set_earlier(lab))
        })
        .evicts(),
        Case::new("e13 a transaction that is rolled back undoes a set", |lab| Box::pin(e13_set(lab))),
        Case::new("e13 a transaction that is rolled back undoes a delete", |lab| Box::pin(e13_delete(lab))),
        Case::new("e13 a set that was rolled back in a run does not survive it", |lab| {
            Box::pin(e13_in_run(lab))
        }),
        Case::new("e13 a delete that was rolled back in a failing run does not give the retries up", |lab| {
            Box::pin(e13_in_failing_run(lab))
        }),
        Case::new("e14 delete_all empties database and slot", |lab| Box::pin(e14_delete_all(lab))),
        Case::new("e14 delete_all discards a set of the same turn", |lab| Box::pin(e14_same_turn(lab))),
        Case::new("e14 delete_all within a run leaves nothing and no further run", |lab| {
            Box::pin(e14_in_run(lab))
        }),
        Case::new("e14 an alarm set after delete_all within a run is kept", |lab| {
            Box::pin(e14_set_after(lab))
        }),
        Case::new("e16 a10 an alarm wakes an evicted object, which has its name", |lab| {
            Box::pin(e16_evicted(lab))
        })
        .evicts(),
        Case::new("e16 a10 an alarm survives a kill and fires late rather than never", |lab| {
            Box::pin(e16_killed(lab))
        })
        .crashes(),
        Case::new("e16 an alarm of the future survives a kill and is not early after it", |lab| {
            Box::pin(e16_future(lab))
        })
        .crashes(),
        Case::new("e16 what replaced or deleted an alarm survives a kill", |lab| Box::pin(e16_last(lab)))
            .crashes(),
        Case::new("e16 a run that a kill cut off runs again as a first one", |lab| Box::pin(e16_cut(lab)))
            .crashes(),
        Case::new("e16 retries and back-off do not survive a kill", |lab| Box::pin(e16_back_off(lab)))
            .crashes(),
        Case::new("a10 e16 a later alarm keeps the name that it was set under over a kill", |lab| {
            Box::pin(a10_later(lab))
        })
        .crashes(),
    ]
}

async fn c5_error<D: Driver>(lab: &Lab<D>) -> Outcome {
    for (object, ms) in [("a", 60_000), ("b", 300)] {
        let thrown = lab.thrown(object, json!([{"set_alarm": ms}, {"fail": "after it"}])).await?;
        same("the error", thrown.message, "after it")?;
    }
    holds("the slot is empty", slot(lab, "a").await? != Value::Null)?;
    only_run(lab, "b").await.map(drop)
}

async fn c6_set<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.thrown("empty", json!([{"set_alarm": 200}, {"sql": BREAK}])).await?;
    same("the slot that was empty", slot(lab, "empty").await?, Value::Null)?;
    let set = lab.last("a", json!([{"set_alarm": 60_000}])).await?;
    lab.thrown("a", json!([{"set_alarm": 200}, {"sql": BREAK}])).await?;
    same("the slot", slot(lab, "a").await?, set)?;
    still(lab, "a", 0, 500).await?;
    still(lab, "empty", 0, 0).await
}

async fn c6_delete<D: Driver>(lab: &Lab<D>) -> Outcome {
    let due = lab.last("a", json!(["now"])).await?.as_i64().unwrap_or_default() + lab.after_eviction(1_500);
    lab.run("a", json!([{"on_alarm": [{"note_of": ["name"]}]}, {"set_alarm_at": due}])).await?;
    lab.thrown("a", json!(["delete_alarm", {"sql": BREAK}])).await?;
    lab.evict().await?;
    lab.advance(Duration::from_millis(1_600)).await?;
    same("its time", only_run(lab, "a").await?.scheduled, due)?;
    noted(lab, "a", json!([json!([lab.name("a")]).to_string()])).await
}

async fn c6_in_run<D: Driver>(lab: &Lab<D>) -> Outcome {
    let handler = json!([{"sleep": 0}, {"up_to_runs": [1, [{"set_alarm": 60_000}, {"sql": BREAK}]]}]);
    let set = arm(lab, "a", handler, 50).await?;
    let runs = runs(lab, "a", 2, RETRY).await?;
    same("the second", json!([runs[1].scheduled, runs[1].retries]), json!([set, 1]))?;
    same("the slot", slot(lab, "a").await?, Value::Null)
}

async fn e12_later<D: Driver>(lab: &Lab<D>) -> Outcome {
    let later = |due: i64| json!([{"on_new": [{"set_alarm_at": due + 4_000}]}]);
    let due = wakes(lab, "a", later, 500).await?;
    let seen = lab.run("a", json!(["boots", "runs", "get_alarm"])).await?;
    same("constructions, runs, slot", seen, json!([2, [], due + 4_000]))?;
    let run = only_run(lab, "a").await?;
    same("what it was told", json!([run.scheduled, run.retries]), json!([due + 4_000, 0]))
}

async fn e12_delete<D: Driver>(lab: &Lab<D>) -> Outcome {
    wakes(lab, "a", |_| json!([{"on_new": ["delete_alarm"]}]), 500).await?;
    let seen = lab.run("a", json!(["boots", "runs", "get_alarm"])).await?;
    same("constructions, runs, slot", seen, json!([2, [], null]))
}

async fn e12_set_earlier<D: Driver>(lab: &Lab<D>) -> Outcome {
    let due = wakes(lab, "a", |_| json!([{"on_new": [{"alarm": {"set_earlier": 60_000}}]}]), 0).await?;
    same("its time", only_run(lab, "a").await?.scheduled, due)?;
    same("the slot", slot(lab, "a").await?, Value::Null)
}

fn rolled_back(step: &Value) -> Value {
    json!({"catch": [{"transaction": [step, {"fail": "rolled back"}]}]})
}

async fn e13_set<D: Driver>(lab: &Lab<D>) -> Outcome {
    let got = lab.last("a", json!([rolled_back(&json!({"set_alarm": 200})), "get_alarm"])).await?;
    same("within the turn", got, Value::Null)?;
    still(lab, "a", 0, 500).await?;
    // One that is not rolled back, for comparison.
    lab.run("a", json!([{"transaction": [{"set_alarm": 200}]}])).await?;
    only_run(lab, "a").await.map(drop)
}

async fn e13_delete<D: Driver>(lab: &Lab<D>) -> Outcome {
    let set = lab.last("a", json!([{"set_alarm": 1_500}, "get_alarm"])).await?;
    let got = lab.last("a", json!([rolled_back(&json!("delete_alarm")), "get_alarm"])).await?;
    same("within the turn", got, &set)?;
    same("its time", only_run(lab, "a").await?.scheduled, set)
}

async fn e13_in_run<D: Driver>(lab: &Lab<D>) -> Outcome {
    let handler = json!([rolled_back(&json!({"set_alarm": 100})), "note_alarm"]);
    arm(lab, "a", handler, 50).await?;
    noted(lab, "a", json!(["none"])).await?;
    still(lab, "a", 1, 500).await?;
    same("the slot", slot(lab, "a").await?, Value::Null)
}

async fn e13_in_failing_run<D: Driver>(lab: &Lab<D>) -> Outcome {
    let handler = json!([{"up_to_runs": [1, [rolled_back(&json!("delete_alarm")), {"fail": "after it"}]]}]);
    arm(lab, "a", handler, 50).await?;
    same("retries", retries(&runs(lab, "a", 2, RETRY).await?), [0, 1])
}

async fn e14_delete_all<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.run("a", json!([{"note": "x"}, {"set_alarm": 3_000}, {"sql": "CREATE TABLE mine (x)"}])).await?;
    lab.run("a", json!([{"note": "undone with it"}, "delete_all"])).await?;
    let tables = json!({"sql": "SELECT name FROM sqlite_master WHERE name = 'mine'"});
    let after = lab.run("a", json!(["log", tables, "get_alarm"])).await?;
    same("what is left", after, [json!([]), json!([]), Value::Null])?;
    still(lab, "a", 0, 3_300).await?;
    lab.run("a", json!([{"note": "new"}])).await?;
    same("it is usable", lab.lines("a").await?, json!(["new"]))
}

async fn e14_same_turn<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.run("a", json!([{"set_alarm": 200}, "delete_all"])).await?;
    same("set before it", slot(lab, "a").await?, Value::Null)?;
    let set = lab.run("b", json!(["delete_all", {"set_alarm": 600}, "get_alarm"])).await?;
    same("set after it", &set[2], &set[1])?;
    same("its time", only_run(lab, "b").await?.scheduled, &set[1])?;
    still(lab, "a", 0, 0).await
}

async fn e14_in_run<D: Driver>(lab: &Lab<D>) -> Outcome {
    let handler = json!(["delete_all", {"note": "ran"}]);
    let steps =
        json!([{"on_alarm": handler}, {"sql": "CREATE TABLE mine (x)"}, {"note": "gone"}, {"set_alarm": 50}]);
    lab.run("a", steps).await?;
    let ran = |lines: &Value| *lines == json!(["ran"]);
    lab.until("a", json!([{"sql": "SELECT line FROM log"}]), SOON, ran).await?;
    still(lab, "a", 0, 500).await?; // the row of its only run went with the rest
    let tables = json!({"sql": "SELECT name FROM sqlite_master WHERE name = 'mine'"});
    let kept = json!({"sql": "SELECT event FROM script"});
    let after = lab.run("a", json!([tables, kept, "get_alarm"])).await?;
    same("what is left", after, [json!([]), json!([]), Value::Null])?;
    same("what it noted", lab.lines("a").await?, json!(["ran"]))
}

async fn e14_set_after<D: Driver>(lab: &Lab<D>) -> Outcome {
    let handler = json!(["delete_all", {"set_alarm": 300}, "note_alarm"]);
    arm(lab, "a", handler, 50).await?;
    let run = only_run(lab, "a").await?; // the handler went with the rest, so that this is the second one
    same("its time", lab.lines("a").await?, json!([run.scheduled.to_string()]))
}

async fn e16_evicted<D: Driver>(lab: &Lab<D>) -> Outcome {
    let handler = json!([{"note_of": ["boots", "name", {"add": 0}]}]);
    let due = wakes(lab, "a", |_| json!([{"on_alarm": handler}, {"add": 5}]), 0).await?;
    let run = only_run(lab, "a").await?;
    same("what it was told", json!([run.scheduled, run.retries]), json!([due, 0]))?;
    let seen = json!([2, lab.name("a"), 0]).to_string();
    same("what it saw", lab.lines("a").await?, json!([seen]))
}

async fn e16_killed<D: Driver>(lab: &Lab<D>) -> Outcome {
    let handler = json!([{"note_of": ["name"]}]);
    let set = arm(lab, "a", handler, 400).await?;
    lab.crash().await?;
    lab.advance(Duration::from_millis(600)).await?;
    first_run(lab, set).await?;
    let seen = lab.lines("a").await?;
    same("what it saw", &seen[0], json!([lab.name("a")]).to_string())
}

/// At least one run of the alarm, as a first one.
async fn first_run<D: Driver>(lab: &Lab<D>, set: Value) -> Outcome {
    let runs = runs_at_least(lab, "a", 1, SOON).await?;
    same("what it was told", json!([runs[0].scheduled, runs[0].retries]), json!([set, 0]))
}

async fn e16_future<D: Driver>(lab: &Lab<D>) -> Outcome {
    let set = arm(lab, "a", json!([]), 3_000).await?;
    lab.crash().await?;
    lab.advance(Duration::from_millis(3_100)).await?;
    first_run(lab, set).await // which looks at its time
}

async fn e16_last<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.run("deleted", json!([{"set_alarm": 3_000}])).await?;
    lab.run("moved", json!([{"set_alarm": 3_000}])).await?;
    lab.run("deleted", json!(["delete_alarm"])).await?;
    let moved = lab.last("moved", json!([{"set_alarm": 60_000}])).await?;
    lab.crash().await?;
    lab.advance(Duration::from_millis(3_300)).await?;
    for object in ["deleted", "moved"] {
        still(lab, object, 0, 0).await?;
    }
    same("deleted", slot(lab, "deleted").await?, Value::Null)?;
    same("moved", slot(lab, "moved").await?, moved)
}

async fn e16_cut<D: Driver>(lab: &Lab<D>) -> Outcome {
    let handler = json!([{"up_to_runs": [1, [{"add": 1}, {"sleep": 60_000}]]}]);
    let set = arm(lab, "a", handler, 50).await?;
    lab.until("a", json!([{"add": 0}]), SOON, |n| *n == json!(1)).await?;
    lab.crash().await?;
    let runs = runs_at_least(lab, "a", 2, SOON).await?;
    same("retries", &retries(&runs)[..2], [0, 0])?;
    same("its times", json!([runs[0].scheduled, runs[1].scheduled]), json!([set, set]))?;
    same("the slot", slot(lab, "a").await?, Value::Null)
}

async fn e16_back_off<D: Driver>(lab: &Lab<D>) -> Outcome {
    let handler = json!([{"up_to_runs": [2, [{"fail": "twice"}]]}]);
    arm(lab, "a", handler, 50).await?;
    lab.advance(Duration::from_millis(2_600)).await?;
    runs(lab, "a", 2, SOON).await?;
    lab.crash().await?;
    same("retries", &retries(&runs_at_least(lab, "a", 3, SOON).await?)[..3], [0, 1, 0])
}

async fn a10_later<D: Driver>(lab: &Lab<D>) -> Outcome {
    let path = format!("/id/PROBE/{}", crate::testing::route::percent_encoded(&lab.name("a")));
    let id = lab.value(&path, &json!([])).await?;
    let by_id = format!("/run-id/PROBE/{}", id.as_str().unwrap_or_default());
    // An instance that nobody called by its name, and then one that somebody did.
    let first = json!(["name", {"on_alarm": [{"note_of": ["name"]}]}, {"set_alarm": 4_000}]);
    same("the name", &lab.value(&by_id, &first).await?[0], Value::Null)?;
    lab.thrown("a", json!([{"reset": "to be constructed again"}])).await?;
    let second = lab.run("a", json!(["name", {"set_alarm": 5_000}])).await?;
    same("the name", &second[0], lab.name("a"))?;
    lab.crash().await?;
    lab.advance(Duration::from_millis(5_100)).await?;
    first_run(lab, second[1].clone()).await?;
    same("what it saw", &lab.lines("a").await?[0], json!([lab.name("a")]).to_string())
}
