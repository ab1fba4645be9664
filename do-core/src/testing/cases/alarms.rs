//! E: the alarm slot, its runs and its retries.

mod durable;
mod retries;
mod slot;

use crate::testing::{
    case::{Case, Fault, Outcome, holds, same},
    driver::Driver,
    lab::Lab,
};
use serde::Deserialize;
use serde_json::{Value, json};
use std::time::Duration;

pub(super) fn cases<D: Driver>() -> Vec<Case<D>> {
    let parts = [slot::cases(), retries::cases(), durable::cases()];
    parts.into_iter().flatten().collect()
}

/// One run of the handler.
#[derive(Debug, Deserialize)]
pub(super) struct Ran {
    at: i64,
    scheduled: i64,
    retries: u32,
}

/// For what is due at once, or after half a second, on a machine that has much else to do.
pub(super) const SOON: Duration = Duration::from_secs(5);

/// For a first retry, which comes after 2 to 2.5 s.
pub(super) const RETRY: Duration = Duration::from_secs(8);

/// The runs, once there are so many; none of them early, and none more.
pub(super) async fn runs<D: Driver>(
    lab: &Lab<D>,
    object: &str,
    count: usize,
    within: Duration,
) -> Result<Vec<Ran>, Fault> {
    let runs = runs_at_least(lab, object, count, within).await?;
    same(&format!("the runs of {object}: {runs:?}"), runs.len(), count)?;
    Ok(runs)
}

/// The same where one may come twice: after a restart, an alarm runs at least once.
async fn runs_at_least<D: Driver>(
    lab: &Lab<D>,
    object: &str,
    count: usize,
    within: Duration,
) -> Result<Vec<Ran>, Fault> {
    let enough = |runs: &Value| runs.as_array().is_some_and(|runs| runs.len() >= count);
    let seen = lab.until_over_reset(object, json!(["runs"]), within, enough).await;
    let seen = seen.map_err(|fault| fault.during(&format!("{count} runs of {object}")))?;
    let runs: Vec<Ran> = serde_json::from_value(seen)?;
    for run in &runs {
        holds(format!("early: {run:?}"), run.at >= run.scheduled)?;
    }
    Ok(runs)
}

/// The only run, once it was.
pub(super) async fn only_run<D: Driver>(lab: &Lab<D>, object: &str) -> Result<Ran, Fault> {
    let mut all = runs(lab, object, 1, SOON).await?;
    all.pop().ok_or_else(|| Fault::new("no run"))
}

/// Fails unless the handler has run this often when so much time has passed.
async fn still<D: Driver>(lab: &Lab<D>, object: &str, count: usize, ms: u64) -> Outcome {
    lab.advance(Duration::from_millis(ms)).await?;
    runs(lab, object, count, Duration::ZERO).await.map(drop)
}

/// What retries each run was told.
fn retries(runs: &[Ran]) -> Vec<u32> {
    runs.iter().map(|run| run.retries).collect()
}

/// Keeps what the handler does, sets an alarm that is due after `ms`, and gives what the slot holds then: its time may
/// have passed when it was written.
async fn arm<D: Driver>(lab: &Lab<D>, object: &str, handler: Value, ms: i64) -> Result<Value, Fault> {
    lab.last(object, json!([{"on_alarm": handler}, {"set_alarm": ms}, "get_alarm"])).await
}

pub(super) async fn slot<D: Driver>(lab: &Lab<D>, object: &str) -> Result<Value, Fault> {
    lab.last(object, json!(["get_alarm"])).await
}

/// Looks until the object has noted as many lines as these, and compares them.
pub(super) async fn noted<D: Driver>(lab: &Lab<D>, object: &str, lines: Value) -> Outcome {
    let look = json!([{"sql": "SELECT line FROM log ORDER BY rowid"}]);
    let count = |lines: &Value| lines.as_array().map_or(0, Vec::len);
    let wanted = count(&lines);
    let seen = lab.until(object, look, SOON, |seen| count(seen) >= wanted).await?;
    same(&format!("what {object} noted"), seen, lines)
}

/// Runs the steps that `steps` gives for a time, sets the alarm to that time, evicts the object before it, and lets
/// `ms` pass from it on without asking the object.
pub(super) async fn wakes<D: Driver>(
    lab: &Lab<D>,
    object: &str,
    steps: impl FnOnce(i64) -> Value,
    ms: u64,
) -> Result<i64, Fault> {
    let now = lab.last(object, json!(["now"])).await?.as_i64().unwrap_or_default();
    let due = now.saturating_add(lab.after_eviction(2_500));
    lab.run(object, steps(due)).await?;
    lab.run(object, json!([{"set_alarm_at": due}])).await?;
    lab.evict().await?;
    lab.advance(Duration::from_millis(2_600_u64.saturating_add(ms))).await?;
    Ok(due)
}
