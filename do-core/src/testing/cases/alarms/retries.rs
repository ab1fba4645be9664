//! E7 to E11, E15: what counts as a failed run, and what comes after it.

use super::{RETRY, SOON, arm, noted, only_run, retries, runs, slot, still, wakes};
use crate::testing::{
    case::{Case, Fault, Outcome, holds, same},
    difference::HostKind,
    driver::{Driver, PanicCost},
    lab::Lab,
};
use serde_json::{Value, json};
use std::time::Duration;

/// A foreign key that is checked at the commit, which therefore fails.
const BREAK: &str = "INSERT INTO child VALUES (99)";

pub(super) fn cases<D: Driver>() -> Vec<Case<D>> {
    vec![
        Case::new("e6 e8 a failed run is tried again after 2 s and told so", |lab| Box::pin(e8_retry(lab))),
        Case::new("e7 a run whose commit fails is tried again", |lab| Box::pin(e7_commit(lab))),
        Case::new("e7 a run that resets its object is tried again", |lab| Box::pin(e7_reset(lab))),
        Case::new("e7 a run whose gate fails is tried again", |lab| Box::pin(e7_gate(lab))),
        Case::new("e7 a run that panics is tried again", |lab| Box::pin(e7_panic(lab)))
            .panics(PanicCost::Object),
        Case::new("e7 a run of fifteen minutes has failed", |lab| Box::pin(e7_wall_time(lab)))
            .long()
            .differs(&[HostKind::Kit, HostKind::Tokio], "alarm-wall-time"),
        Case::new("e7 failed background work of a run is not retried", |lab| Box::pin(e7_background(lab))),
        Case::new("e7 a refused set that nobody awaits is not retried", |lab| Box::pin(e7_unawaited(lab))),
        Case::new("e8 the second retry comes after 4 s more", |lab| Box::pin(e8_doubles(lab))),
        Case::new("e8 after six retries the alarm is dropped", |lab| Box::pin(e8_dropped(lab))).long(),
        Case::new("e8 the alarm after one that was retried begins anew", |lab| Box::pin(e8_anew(lab))),
        Case::new("e9 memory and instance of a failed run stay", |lab| Box::pin(e9_memory(lab))),
        Case::new("e9 the writes of a failed run stay", |lab| Box::pin(e9_writes(lab))),
        Case::new("e7 e9 a constructor that fails on wake is tried again, uncounted", |lab| {
            Box::pin(e9_constructor(lab))
        })
        .evicts(),
        Case::new("e9 a constructor may fail on wake again and again", |lab| Box::pin(e9_no_end(lab)))
            .evicts()
            .long(),
        Case::new("e10 a set in a run that then fails gives the retries up", |lab| Box::pin(e10_set(lab))),
        Case::new("e10 a delete in a run that then fails gives the retries up", |lab| {
            Box::pin(e10_delete(lab))
        }),
        Case::new("e10 a delete by a request during a run that then fails gives the retries up", |lab| {
            Box::pin(e10_request_deletes(lab))
        }),
        Case::new("e10 a set by a request during a run that then fails gives the retries up", |lab| {
            Box::pin(e10_request_sets(lab))
        }),
        Case::new("e11 a delete during back-off cancels the retry", |lab| Box::pin(e11_delete(lab))),
        Case::new("e11 a set during back-off waits for the retry, which consumes it", |lab| {
            Box::pin(e11_consumed(lab))
        }),
        Case::new("e11 a set to after the retry takes its place", |lab| Box::pin(e11_later(lab))),
        Case::new("e15 without an alarm handler runs fail and are tried again", |lab| {
            Box::pin(e15_default(lab))
        }),
    ]
}

/// Sets an alarm whose first run alone runs these steps; gives its time and its two runs.
async fn fails_once<D: Driver>(
    lab: &Lab<D>,
    steps: Value,
) -> Result<(Value, Vec<super::Ran>, Vec<Value>), Fault> {
    // What is in the same turn as a fault may be undone with it.
    let handler = json!([{"sleep": 0}, {"up_to_runs": [1, steps]}]);
    let before =
        lab.run("a", json!([{"on_alarm": handler}, "instance", {"set_alarm": 50}, "get_alarm"])).await?;
    let runs = runs(lab, "a", 2, RETRY).await?;
    same("retries", retries(&runs), [0, 1])?;
    let set = before[3].clone();
    same("its times", json!([runs[0].scheduled, runs[1].scheduled]), json!([set, set]))?;
    let after = lab.run("a", json!(["instance", "get_alarm"])).await?;
    same("the slot", &after[1], Value::Null)?;
    Ok((set, runs, vec![before[1].clone(), after[0].clone()]))
}

async fn e8_retry<D: Driver>(lab: &Lab<D>) -> Outcome {
    let (_, runs, _) = fails_once(lab, json!([{"fail": "the first run"}])).await?;
    let gap = runs[1].at - runs[0].at;
    // 2 s and up to a quarter more, which on a busy machine workerd counts from somewhat before the first run.
    holds(format!("the gap is {gap} ms"), (1_000..6_000).contains(&gap))
}

/// The run failed with its instance.
async fn fails_with_instance<D: Driver>(lab: &Lab<D>, steps: Value) -> Outcome {
    let (_, _, instances) = fails_once(lab, steps).await?;
    holds("the instance is the same", instances[0] != instances[1])
}

async fn e7_commit<D: Driver>(lab: &Lab<D>) -> Outcome {
    fails_with_instance(lab, json!([{"note": "undone"}, {"sql": BREAK}])).await?;
    same("what it wrote", lab.lines("a").await?, json!([]))
}

async fn e7_reset<D: Driver>(lab: &Lab<D>) -> Outcome {
    fails_with_instance(lab, json!([{"note": "kept"}, {"reset": "in the run"}])).await?;
    same("what it wrote", lab.lines("a").await?, json!(["kept"]))
}

async fn e7_gate<D: Driver>(lab: &Lab<D>) -> Outcome {
    fails_with_instance(lab, json!([{"gate": [{"fail": "in the gate"}]}])).await
}

async fn e7_panic<D: Driver>(lab: &Lab<D>) -> Outcome {
    fails_with_instance(lab, json!([{"panic": "on demand"}])).await
}

async fn e7_wall_time<D: Driver>(lab: &Lab<D>) -> Outcome {
    let handler = json!([{"up_to_runs": [1, [{"sleep": 7_200_000}, {"note": "went on"}]]}]);
    let before = lab.run("a", json!([{"on_alarm": handler}, "instance", {"set_alarm": 0}])).await?;
    lab.advance(Duration::from_secs(890)).await?;
    let first = only_run(lab, "a").await?;
    same("the slot while it runs", slot(lab, "a").await?, Value::Null)?;
    let all = runs(lab, "a", 2, Duration::from_secs(20)).await?;
    same("retries", retries(&all), [0, 1])?;
    let gap = all[1].at - first.at;
    holds(format!("the gap is {gap} ms"), (902_000..903_000).contains(&gap))?;
    same("the instance", lab.last("a", json!(["instance"])).await?, &before[1])?;
    same("what it did", lab.lines("a").await?, json!([]))
}

async fn e7_background<D: Driver>(lab: &Lab<D>) -> Outcome {
    let handler = json!([{"wait_until": [{"sleep": 20}, {"note": "begun"}, {"fail": "unseen"}]}]);
    arm(lab, "a", handler, 50).await?;
    noted(lab, "a", json!(["begun"])).await?;
    still(lab, "a", 1, 3_500).await?;
    same("the slot", slot(lab, "a").await?, Value::Null)
}

async fn e7_unawaited<D: Driver>(lab: &Lab<D>) -> Outcome {
    let handler = json!([{"alarm": {"set_unawaited_at": 0}}, {"note": "went on"}]);
    arm(lab, "a", handler, 50).await?;
    noted(lab, "a", json!(["went on"])).await?;
    still(lab, "a", 1, 3_500).await?;
    same("the slot", slot(lab, "a").await?, Value::Null)
}

async fn e8_doubles<D: Driver>(lab: &Lab<D>) -> Outcome {
    let handler = json!([{"up_to_runs": [2, [{"fail": "twice"}]]}]);
    arm(lab, "a", handler, 50).await?;
    lab.advance(Duration::from_secs(4)).await?;
    let runs = runs(lab, "a", 3, Duration::from_secs(10)).await?;
    same("retries", retries(&runs), [0, 1, 2])?;
    let gap = runs[2].at - runs[1].at;
    holds(format!("the gap is {gap} ms"), (3_000..9_000).contains(&gap))
}

async fn e8_dropped<D: Driver>(lab: &Lab<D>) -> Outcome {
    let set = arm(lab, "a", json!([{"fail": "always"}]), 50).await?;
    // 126 s, and up to a quarter more. Nobody asks meanwhile, so that the object leaves memory between the later ones.
    lab.advance(Duration::from_secs(160)).await?;
    let all = runs(lab, "a", 7, Duration::from_secs(30)).await?;
    same("retries", retries(&all), [0, 1, 2, 3, 4, 5, 6])?;
    for (pair, base) in all.windows(2).zip([2_000, 4_000, 8_000, 16_000, 32_000, 64_000]) {
        let gap = pair[1].at - pair[0].at;
        holds(format!("a gap of {gap} ms"), (base - 1_000..base + base / 4 + 6_000).contains(&gap))?;
        same("its time", pair[1].scheduled, &set)?;
    }
    same("the slot", slot(lab, "a").await?, Value::Null)
}

async fn e8_anew<D: Driver>(lab: &Lab<D>) -> Outcome {
    fails_once(lab, json!([{"fail": "the first run"}])).await?;
    lab.run("a", json!([{"set_alarm": 50}])).await?;
    same("retries", retries(&runs(lab, "a", 3, SOON).await?), [0, 1, 0])
}

async fn e9_memory<D: Driver>(lab: &Lab<D>) -> Outcome {
    let (_, _, instances) = fails_once(lab, json!([{"add": 7}, {"fail": "the first run"}])).await?;
    same("the instance", &instances[0], &instances[1])?;
    same("its memory", lab.last("a", json!([{"add": 0}])).await?, 7)
}

async fn e9_writes<D: Driver>(lab: &Lab<D>) -> Outcome {
    fails_once(lab, json!([{"note": "kept"}, {"sleep": 10}, {"note": "too"}, {"fail": "the first run"}]))
        .await?;
    same("what it wrote", lab.lines("a").await?, json!(["kept", "too"]))
}

async fn e9_constructor<D: Driver>(lab: &Lab<D>) -> Outcome {
    // Nobody asks while it fails: a request would construct the object, too.
    let fails = |due: i64| json!([{"on_new": [{"fail_before": due + 1_000}]}]);
    let due = wakes(lab, "a", fails, 3_000).await?;
    let run = only_run(lab, "a").await?;
    same("what it was told", json!([run.scheduled, run.retries]), json!([due, 0]))?;
    holds(format!("it ran at {} of {due}", run.at), run.at >= due + 2_000)
}

async fn e9_no_end<D: Driver>(lab: &Lab<D>) -> Outcome {
    // Attempts after 0, 2, 6 and 14 s, each delay with up to a quarter more.
    let fails = |due: i64| json!([{"on_new": [{"fail_before": due + 12_000}]}]);
    let due = wakes(lab, "a", fails, 18_000).await?;
    let run = only_run(lab, "a").await?;
    same("what it was told", json!([run.scheduled, run.retries]), json!([due, 0]))?;
    holds(format!("it ran at {} of {due}", run.at), run.at >= due + 12_000)
}

async fn e10_set<D: Driver>(lab: &Lab<D>) -> Outcome {
    let handler = json!([{"up_to_runs": [1, [{"set_alarm": 4_500}, "note_alarm", {"fail": "after it"}]]}]);
    arm(lab, "a", handler, 50).await?;
    let runs = runs(lab, "a", 2, Duration::from_secs(10)).await?;
    same("retries", retries(&runs), [0, 0])?;
    same("the time of the second", lab.lines("a").await?, json!([runs[1].scheduled.to_string()]))?;
    same("the slot", slot(lab, "a").await?, Value::Null)
}

async fn e10_delete<D: Driver>(lab: &Lab<D>) -> Outcome {
    let handler = json!(["delete_alarm", {"fail": "after it"}]);
    arm(lab, "a", handler, 50).await?;
    only_run(lab, "a").await?;
    still(lab, "a", 1, 3_500).await?;
    same("the slot", slot(lab, "a").await?, Value::Null)
}

/// A run that fails when a request that did this has raised the number in memory.
async fn fails_after<D: Driver>(lab: &Lab<D>, request: Value) -> Result<Value, Fault> {
    let handler = json!([{"up_to_runs": [1, [{"add": 1}, {"wait_for": 2}, {"fail": "after it"}]]}]);
    arm(lab, "a", handler, 50).await?;
    lab.until("a", json!([{"add": 0}]), SOON, |n| *n == json!(1)).await?;
    Ok(lab.run("a", json!([request, {"add": 1}])).await?.remove(0))
}

async fn e10_request_deletes<D: Driver>(lab: &Lab<D>) -> Outcome {
    fails_after(lab, json!("delete_alarm")).await?;
    still(lab, "a", 1, 3_500).await?;
    same("the slot", slot(lab, "a").await?, Value::Null)
}

async fn e10_request_sets<D: Driver>(lab: &Lab<D>) -> Outcome {
    let set = fails_after(lab, json!({"set_alarm": 4_500})).await?;
    let runs = runs(lab, "a", 2, Duration::from_secs(10)).await?;
    same("the second", json!([runs[1].scheduled, runs[1].retries]), json!([set, 0]))
}

/// An object whose alarm's first run failed, and which does this in the back-off; the alarm's time.
async fn backing_off<D: Driver>(lab: &Lab<D>, steps: &[Value]) -> Result<Value, Fault> {
    // It does so by itself: a request might come late.
    let later = [&[json!({"sleep": 300})], steps, &[json!("note_alarm")]].concat();
    let handler = json!([{"up_to_runs": [1, [{"wait_until": later}, {"fail": "the first run"}]]}]);
    arm(lab, "a", handler, 50).await
}

async fn e11_delete<D: Driver>(lab: &Lab<D>) -> Outcome {
    backing_off(lab, &[json!("delete_alarm")]).await?;
    noted(lab, "a", json!(["none"])).await?;
    still(lab, "a", 1, 3_500).await
}

async fn e11_consumed<D: Driver>(lab: &Lab<D>) -> Outcome {
    let old = backing_off(lab, &[json!({"set_alarm": 200})]).await?;
    let runs = runs(lab, "a", 2, RETRY).await?;
    same("the second", json!([runs[1].scheduled, runs[1].retries]), json!([old, 1]))?;
    let gap = runs[1].at - runs[0].at;
    holds(format!("the gap is {gap} ms"), gap >= 1_000)?;
    let lines = lab.lines("a").await?;
    holds(
        format!("set to {lines} after {old}"),
        lines != json!([old.to_string()]) && lines != json!(["none"]),
    )?;
    same("the slot", slot(lab, "a").await?, Value::Null)?;
    still(lab, "a", 2, 500).await
}

async fn e11_later<D: Driver>(lab: &Lab<D>) -> Outcome {
    backing_off(lab, &[json!({"set_alarm": 4_500})]).await?;
    let runs = runs(lab, "a", 2, Duration::from_secs(10)).await?;
    same("retries", retries(&runs), [0, 0])?;
    same("its time", lab.lines("a").await?, json!([runs[1].scheduled.to_string()]))
}

async fn e15_default<D: Driver>(lab: &Lab<D>) -> Outcome {
    let seen = lab.last("a", json!([{"try": [{"alarm": "run_default"}]}])).await?;
    same("its error", &seen["error"]["message"], json!("this object has no alarm handler"))?;
    let (_, _, instances) = fails_once(lab, json!([{"alarm": "run_default"}])).await?;
    same("the instance", &instances[0], &instances[1])
}
