//! E1 to E6, E18: what the slot holds, and the runs that come of it.

use super::{RETRY, SOON, arm, noted, only_run, runs, slot, still, wakes};
use crate::{
    limits,
    testing::{
        case::{Case, Outcome, holds, same},
        driver::Driver,
        lab::Lab,
    },
};
use serde_json::{Value, json};
use std::time::Duration;

pub(super) fn cases<D: Driver>() -> Vec<Case<D>> {
    vec![
        Case::new("e1 a sooner time replaces a later one", |lab| Box::pin(e1_sooner(lab))),
        Case::new("e1 a later time replaces a sooner one", |lab| Box::pin(e1_later(lab))),
        Case::new("e1 the same time set twice is one run", |lab| Box::pin(e1_twice(lab))),
        Case::new("e1 a deleted alarm does not run", |lab| Box::pin(e1_deleted(lab))),
        Case::new("e1 set takes effect at the call, not at the await", |lab| Box::pin(e1_at_call(lab))),
        Case::new("e1 of several sets that nobody awaits the last one counts", |lab| Box::pin(e1_last(lab))),
        Case::new("e1 times that are none are refused and change nothing", |lab| Box::pin(e1_refused(lab))),
        Case::new("e1 the latest time is the last millisecond of the year 2189", |lab| {
            Box::pin(e1_latest(lab))
        }),
        Case::new("e1 set_earlier sets an empty slot and moves it only earlier", |lab| {
            Box::pin(e1_set_earlier(lab))
        }),
        Case::new("e2 a past time is stored as now and runs at once", |lab| Box::pin(e2_past(lab))),
        Case::new("e2 no alarm runs early", |lab| Box::pin(e2_not_early(lab))),
        Case::new("e2 a time sixty days ahead is kept and does not run", |lab| Box::pin(e2_far(lab))),
        Case::new("e3 the slot is empty within its run", |lab| Box::pin(e3_within(lab))),
        Case::new("e3 the slot is empty for requests during a run", |lab| Box::pin(e3_requests(lab))),
        Case::new("e3 what is set during a run is seen within it and by requests", |lab| {
            Box::pin(e3_set_anew(lab))
        }),
        Case::new("e3 set_earlier within a run sets the slot", |lab| Box::pin(e3_set_earlier(lab))),
        Case::new("e3 during back-off the old time is seen", |lab| Box::pin(e3_back_off(lab))),
        Case::new("e3 the constructor that an alarm woke sees its time", |lab| Box::pin(e3_constructor(lab)))
            .evicts(),
        Case::new("e4 success empties the slot", |lab| Box::pin(e4_success(lab))),
        Case::new("e4 a time set in the run survives it", |lab| Box::pin(e4_again(lab))),
        Case::new("e4 its own time set again in the run makes another run", |lab| Box::pin(e4_same(lab))),
        Case::new("e4 now set in twenty runs makes twenty more", |lab| Box::pin(e4_now(lab))),
        Case::new("e4b now set in a hundred runs makes a hundred more", |lab| Box::pin(e4b_set(lab))),
        Case::new("e4b now set behind a delete in a hundred runs makes a hundred more", |lab| {
            Box::pin(e4b_delete_and_set(lab))
        }),
        Case::new("e5 requests are let in at the awaits of a run", |lab| Box::pin(e5_requests(lab))),
        Case::new("e5 a time that comes due during a run waits for its end", |lab| Box::pin(e5_overlap(lab))),
        Case::new("e6 a first run is told the time that was set, and of no retries", |lab| {
            Box::pin(e6_first(lab))
        }),
        Case::new("e18 an alarm due behind a closed gate waits for it", |lab| Box::pin(e18_gate(lab))),
        Case::new("e18 an alarm that wakes the object waits for init", |lab| Box::pin(e18_init(lab)))
            .evicts(),
        Case::new("e18 an alarm due behind a gate that fails is not lost", |lab| {
            Box::pin(e18_failing_gate(lab))
        }),
    ]
}

async fn e1_sooner<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.run("a", json!([{"set_alarm": 60_000}])).await?;
    let set = lab.last("a", json!([{"set_alarm": 200}, "get_alarm"])).await?;
    same("its time", only_run(lab, "a").await?.scheduled, set)?;
    same("the slot", slot(lab, "a").await?, Value::Null)
}

async fn e1_later<D: Driver>(lab: &Lab<D>) -> Outcome {
    let set = lab.run("a", json!([{"set_alarm": 200}, {"set_alarm": 700}, "get_alarm"])).await?;
    same("the slot", &set[2], &set[1])?;
    same("its time", only_run(lab, "a").await?.scheduled, &set[1])
}

async fn e1_twice<D: Driver>(lab: &Lab<D>) -> Outcome {
    let now = lab.last("a", json!(["now"])).await?.as_i64().unwrap_or_default();
    // In a commit of its own each.
    let set = json!({"set_alarm_at": now + 400});
    lab.run("a", json!([set, {"sleep": 0}, set])).await?;
    only_run(lab, "a").await?;
    still(lab, "a", 1, 600).await
}

async fn e1_deleted<D: Driver>(lab: &Lab<D>) -> Outcome {
    let got = lab.run("a", json!([{"set_alarm": 400}, "delete_alarm", "get_alarm"])).await?;
    same("within the turn", &got[2], Value::Null)?;
    same("the slot", slot(lab, "a").await?, Value::Null)?;
    // Deleting what is empty is no error.
    lab.run("a", json!(["delete_alarm"])).await?;
    still(lab, "a", 0, 600).await
}

async fn e1_at_call<D: Driver>(lab: &Lab<D>) -> Outcome {
    let set = lab.run("a", json!([{"alarm": {"set_unawaited": 600}}, "get_alarm"])).await?;
    same("the slot", &set[1], &set[0])?;
    same("its time", only_run(lab, "a").await?.scheduled, &set[0])
}

async fn e1_last<D: Driver>(lab: &Lab<D>) -> Outcome {
    let steps = [60_000, 50, 900, 600].map(|ms| json!({"alarm": {"set_unawaited": ms}}));
    let set = lab.run("a", json!(steps)).await?;
    same("its time", only_run(lab, "a").await?.scheduled, &set[3])?;
    still(lab, "a", 1, 900).await
}

async fn e1_refused<D: Driver>(lab: &Lab<D>) -> Outcome {
    let set = lab.last("a", json!([{"set_alarm": 60_000}])).await?;
    for wrong in [0, -1, i64::MIN, limits::ALARM_MAX_MS + 1, i64::MAX] {
        let refused = lab.last("a", json!([{"try": [{"set_alarm_at": wrong}]}])).await?;
        same(&wrong.to_string(), &refused["error"]["kind"], json!("Invalid"))?;
    }
    same("the slot", slot(lab, "a").await?, set)
}

async fn e1_latest<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.run("a", json!([{"set_alarm_at": limits::ALARM_MAX_MS}])).await?;
    same("the slot", slot(lab, "a").await?, 6_942_758_399_999_i64)?;
    still(lab, "a", 0, 200).await
}

async fn e1_set_earlier<D: Driver>(lab: &Lab<D>) -> Outcome {
    let set = |ms: i64| json!([{"alarm": {"set_earlier": ms}}, "get_alarm"]);
    let first = lab.run("a", set(60_000)).await?;
    same("empty: it is set", &first[1], &first[0])?;
    let later = lab.run("a", set(90_000)).await?;
    same("later: nothing changes", &later[1], &first[0])?;
    let sooner = lab.run("a", set(600)).await?;
    same("earlier: it is set", &sooner[1], &sooner[0])?;
    same("its time", only_run(lab, "a").await?.scheduled, &sooner[0])
}

async fn e2_past<D: Driver>(lab: &Lab<D>) -> Outcome {
    let set = lab.run("a", json!(["now", {"set_alarm": -5_000}, "get_alarm"])).await?;
    holds(format!("stored as {}, not as {}", set[2], set[0]), set[2].as_i64() >= set[0].as_i64())?;
    let run = only_run(lab, "a").await?;
    holds(format!("{run:?} of {set:?}"), Some(run.scheduled) >= set[0].as_i64())
}

async fn e2_not_early<D: Driver>(lab: &Lab<D>) -> Outcome {
    for ms in [1, 30, 170, 400] {
        lab.run(&ms.to_string(), json!([{"set_alarm": ms}])).await?;
    }
    for ms in [1, 30, 170, 400] {
        only_run(lab, &ms.to_string()).await?; // which looks at the times
    }
    Ok(())
}

async fn e2_far<D: Driver>(lab: &Lab<D>) -> Outcome {
    let set = lab.last("a", json!([{"set_alarm": 60_i64 * 24 * 3_600 * 1_000}])).await?;
    still(lab, "a", 0, 300).await?;
    same("the slot", slot(lab, "a").await?, set)
}

/// A handler that says with the number in memory that it runs, and runs until a request has raised it.
fn held(before: &[Value], after: &[Value]) -> Value {
    let hold = [json!({"add": 1}), json!({"wait_for": 2})];
    json!([before, &hold, after].concat())
}

async fn begin_held<D: Driver>(lab: &Lab<D>, before: &[Value], after: &[Value]) -> Outcome {
    arm(lab, "a", held(before, after), 50).await?;
    lab.until("a", json!([{"add": 0}]), SOON, |n| *n == json!(1)).await.map(drop)
}

async fn e3_within<D: Driver>(lab: &Lab<D>) -> Outcome {
    arm(lab, "a", json!(["note_alarm", {"sleep": 20}, "note_alarm"]), 50).await?;
    noted(lab, "a", json!(["none", "none"])).await
}

async fn e3_requests<D: Driver>(lab: &Lab<D>) -> Outcome {
    begin_held(lab, &[], &[]).await?;
    same("during the run", slot(lab, "a").await?, Value::Null)?;
    lab.run("a", json!([{"add": 1}])).await.map(drop)
}

async fn e3_set_anew<D: Driver>(lab: &Lab<D>) -> Outcome {
    begin_held(lab, &[json!({"set_alarm": 60_000}), json!("note_alarm")], &[json!("note_alarm")]).await?;
    let set = slot(lab, "a").await?;
    holds(format!("to a request: {set}"), set.is_i64())?;
    lab.run("a", json!([{"add": 1}])).await?;
    noted(lab, "a", json!([set.to_string(), set.to_string()])).await
}

async fn e3_set_earlier<D: Driver>(lab: &Lab<D>) -> Outcome {
    let again = json!([{"up_to_runs": [1, [{"alarm": {"set_earlier": 200}}]]}]);
    arm(lab, "a", again, 50).await?;
    let runs = runs(lab, "a", 2, SOON).await?;
    holds(format!("{runs:?}"), runs[1].scheduled >= runs[0].at + 200 && runs[1].retries == 0)
}

async fn e3_back_off<D: Driver>(lab: &Lab<D>) -> Outcome {
    let set = arm(lab, "a", json!([{"fail": "always"}]), 50).await?;
    only_run(lab, "a").await?;
    // Until the failure is there, the run is still under way.
    lab.until("a", json!(["get_alarm"]), SOON, |slot| *slot == set).await.map(drop)
}

async fn e3_constructor<D: Driver>(lab: &Lab<D>) -> Outcome {
    let due = wakes(lab, "a", |_| json!([{"on_new": ["note_alarm"]}]), 0).await?;
    only_run(lab, "a").await?;
    same("in the constructor", lab.lines("a").await?, json!([due.to_string()]))
}

async fn e4_success<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.run("a", json!([{"set_alarm": 50}])).await?;
    only_run(lab, "a").await?;
    same("the slot", slot(lab, "a").await?, Value::Null)?;
    still(lab, "a", 1, 300).await
}

async fn e4_again<D: Driver>(lab: &Lab<D>) -> Outcome {
    let again = json!([{"up_to_runs": [2, [{"set_alarm": 50}]]}]);
    arm(lab, "a", again, 50).await?;
    for run in runs(lab, "a", 3, SOON).await? {
        same("retries", run.retries, 0)?;
    }
    still(lab, "a", 3, 200).await?;
    same("the slot", slot(lab, "a").await?, Value::Null)
}

async fn e4_same<D: Driver>(lab: &Lab<D>) -> Outcome {
    let again = json!([{"up_to_runs": [1, [{"alarm": "set_again"}]]}]);
    let set = arm(lab, "a", again, 50).await?;
    let runs = runs(lab, "a", 2, SOON).await?;
    same("the time of the first", runs[0].scheduled, set)?;
    same("retries", super::retries(&runs), [0, 0])?;
    still(lab, "a", 2, 300).await?;
    same("the slot", slot(lab, "a").await?, Value::Null)
}

async fn e4_now<D: Driver>(lab: &Lab<D>) -> Outcome {
    again_and_again(lab, 20, json!([{"set_alarm": 0}])).await
}

/// So often that some of the runs are still in the millisecond for which they were set.
async fn e4b_set<D: Driver>(lab: &Lab<D>) -> Outcome {
    again_and_again(lab, 100, json!([{"set_alarm": 0}])).await
}

async fn e4b_delete_and_set<D: Driver>(lab: &Lab<D>) -> Outcome {
    again_and_again(lab, 100, json!(["delete_alarm", {"set_alarm": 0}])).await
}

/// So many runs of the alarm set it again, and the one after them does not.
async fn again_and_again<D: Driver>(lab: &Lab<D>, count: usize, set: Value) -> Outcome {
    arm(lab, "a", json!([{"up_to_runs": [count, set]}]), 50).await?;
    for run in runs(lab, "a", count + 1, Duration::from_secs(10)).await? {
        same("retries", run.retries, 0)?;
    }
    still(lab, "a", count + 1, 100).await?;
    same("the slot", slot(lab, "a").await?, Value::Null)
}

async fn e5_requests<D: Driver>(lab: &Lab<D>) -> Outcome {
    begin_held(lab, &[json!({"note": "begin"})], &[json!({"note": "end"})]).await?;
    lab.run("a", json!([{"note": "request"}, {"add": 1}])).await?;
    noted(lab, "a", json!(["begin", "request", "end"])).await
}

async fn e5_overlap<D: Driver>(lab: &Lab<D>) -> Outcome {
    begin_held(lab, &[json!({"note": "begin"})], &[json!({"note": "end"})]).await?;
    lab.run("a", json!([{"set_alarm": 0}])).await?;
    lab.advance(Duration::from_millis(300)).await?;
    same("while the first one runs", lab.lines("a").await?, json!(["begin"]))?;
    // The second run finds the number high enough to end by itself.
    lab.run("a", json!([{"add": 1}])).await?;
    noted(lab, "a", json!(["begin", "end", "begin", "end"])).await?;
    same("retries", super::retries(&runs(lab, "a", 2, RETRY).await?), [0, 0])
}

async fn e6_first<D: Driver>(lab: &Lab<D>) -> Outcome {
    let set = arm(lab, "a", json!([]), 150).await?;
    let run = only_run(lab, "a").await?;
    same("what it was told", json!([run.scheduled, run.retries]), json!([set, 0]))
}

async fn e18_gate<D: Driver>(lab: &Lab<D>) -> Outcome {
    let gate = json!({"gate_detached": [{"sleep": 700}, {"note": "open"}]});
    lab.run("a", json!([{"on_alarm": [{"note": "alarm"}]}, {"set_alarm": 100}, gate])).await?;
    lab.advance(Duration::from_millis(800)).await?;
    noted(lab, "a", json!(["open", "alarm"])).await?;
    same("retries", only_run(lab, "a").await?.retries, 0)
}

async fn e18_init<D: Driver>(lab: &Lab<D>) -> Outcome {
    let init = json!([{"sleep": 300}, {"note": "made"}]);
    wakes(lab, "a", |_| json!([{"on_alarm": [{"note": "alarm"}]}, {"on_new": init}]), 400).await?;
    noted(lab, "a", json!(["made", "alarm"])).await?;
    same("retries", only_run(lab, "a").await?.retries, 0)
}

async fn e18_failing_gate<D: Driver>(lab: &Lab<D>) -> Outcome {
    let set = arm(lab, "a", json!([]), 100).await?;
    // Whether the answer leaves before the reset is another rule's.
    drop(lab.answer("a", json!([{"gate_detached": [{"sleep": 500}, {"fail": "the gate"}]}])).await?);
    lab.advance(Duration::from_millis(600)).await?;
    let runs = runs(lab, "a", 1, RETRY).await?;
    same("its time", runs[0].scheduled, set)
}
