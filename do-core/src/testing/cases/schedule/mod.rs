//! The schedule: many deadlines over the one alarm, the same on every host.

#![allow(clippy::needless_pass_by_value)] // so that `json!` can stand in the call

mod bounds;
mod cost;
mod cron;
mod dead;
mod durable;
mod failures;
mod hidden;
mod missed;
mod plans;
mod rearm;
mod slots;
mod stopped;
mod upserts;

use super::alarms::SOON;
use crate::testing::{
    case::{Case, Fault, Outcome, holds, same},
    driver::Driver,
    lab::Lab,
};
use serde::Deserialize;
use serde_json::{Value, json};
use std::time::Duration;

pub(super) fn cases<D: Driver>() -> Vec<Case<D>> {
    let parts = [
        slots::cases(),
        hidden::cases(),
        plans::cases(),
        upserts::cases(),
        missed::cases(),
        cron::cases(),
        failures::cases(),
        stopped::cases(),
        dead::cases(),
        bounds::cases(),
        rearm::cases(),
        durable::cases(),
        cost::cases(),
    ];
    parts.into_iter().flatten().collect()
}

/// What a run of a job was told.
#[derive(Debug, Deserialize)]
struct Told {
    at: i64,
    name: String,
    scheduled: i64,
    attempt: u32,
    missed: i64,
    last: i64,
}

/// How far ahead a time is set that is still ahead after a few requests on a busy machine.
const BUSY: i64 = 3_000;

fn schedule(step: Value) -> Value {
    json!({ "schedule": step })
}

fn host() -> Value {
    schedule(json!({"host": {}}))
}

/// Makes the object a host, and lets the instance look at the raw slot, as it does once.
async fn hosts<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.run("a", json!([host()])).await?;
    lab.advance(Duration::from_millis(50)).await
}

fn on_job(name: &str, steps: Value) -> Value {
    schedule(json!({"on_job": [name, steps]}))
}

/// What a job does in its first run alone.
fn once(steps: Value) -> Value {
    up_to(1, steps)
}

fn up_to(runs: i64, steps: Value) -> Value {
    json!([schedule(json!({"up_to": [runs, steps]}))])
}

fn put(name: &str, plan: Value) -> Value {
    schedule(json!({"put": [name, plan]}))
}

fn set(slot: &str, ms: i64) -> Value {
    schedule(json!({"set": [slot, ms]}))
}

fn set_at(slot: &str, ms: i64) -> Value {
    schedule(json!({"set_at": [slot, ms]}))
}

fn get(slot: &str) -> Value {
    schedule(json!({"get": slot}))
}

fn show(name: &str) -> Value {
    schedule(json!({"show": name}))
}

fn check() -> Value {
    schedule(json!("check"))
}

fn pending() -> Value {
    schedule(json!({"pending": ["", 100]}))
}

fn dead_letters() -> Value {
    schedule(json!({"dead_letters": [0, 100]}))
}

/// What `schedule` gives after one step.
async fn ask<D: Driver>(lab: &Lab<D>, object: &str, step: Value) -> Result<Value, Fault> {
    lab.last(object, json!([step])).await
}

async fn now<D: Driver>(lab: &Lab<D>, object: &str) -> Result<i64, Fault> {
    number(&lab.last(object, json!(["now"])).await?)
}

fn number(value: &Value) -> Result<i64, Fault> {
    value.as_i64().ok_or_else(|| Fault::new(format!("{value} is no number")))
}

/// What the runs of jobs were told, once there are so many; none of them early.
async fn ran_at_least<D: Driver>(
    lab: &Lab<D>,
    object: &str,
    count: usize,
    within: Duration,
) -> Result<Vec<Told>, Fault> {
    let there = |told: &Value| told.as_array().is_some_and(|told| told.len() >= count);
    let told = lab.until_over_reset(object, json!([schedule(json!("ran"))]), within, there).await?;
    let told: Vec<Told> = serde_json::from_value(told)?;
    for run in &told {
        holds(format!("early: {run:?}"), run.at >= run.scheduled)?;
    }
    Ok(told)
}

/// The same where there are to be no more.
async fn ran<D: Driver>(
    lab: &Lab<D>,
    object: &str,
    count: usize,
    within: Duration,
) -> Result<Vec<Told>, Fault> {
    let told = ran_at_least(lab, object, count, within).await?;
    same(&format!("the runs of {object}: {told:?}"), told.len(), count)?;
    Ok(told)
}

/// The only run, once it was.
async fn only<D: Driver>(lab: &Lab<D>, object: &str) -> Result<Told, Fault> {
    ran(lab, object, 1, SOON).await?.pop().ok_or_else(|| Fault::new("no run"))
}

/// Fails unless there were so many runs when so much time has passed.
async fn still<D: Driver>(lab: &Lab<D>, object: &str, count: usize, ms: u64) -> Outcome {
    lab.advance(Duration::from_millis(ms)).await?;
    ran(lab, object, count, Duration::ZERO).await.map(drop)
}

fn names(told: &[Told]) -> Vec<&str> {
    told.iter().map(|run| run.name.as_str()).collect()
}

fn attempts(told: &[Told]) -> Vec<u32> {
    told.iter().map(|run| run.attempt).collect()
}

/// Looks until nothing is pending, and fails unless there is no alarm then.
async fn is_bare<D: Driver>(lab: &Lab<D>, object: &str) -> Outcome {
    lab.until(object, json!([pending()]), SOON, |pending| *pending == json!([])).await?;
    // A run may not have ended yet.
    lab.advance(Duration::from_millis(50)).await?;
    same("what is left", lab.run(object, json!([pending(), "get_alarm"])).await?, json!([[], null]))
}

/// Looks until the raw slot is set to that.
async fn is_armed<D: Driver>(lab: &Lab<D>, object: &str, at: &Value) -> Outcome {
    lab.until(object, json!(["get_alarm"]), SOON, |armed| armed == at).await.map(drop)
}

/// Makes a next instance.
async fn gone<D: Driver>(lab: &Lab<D>, object: &str) -> Outcome {
    lab.thrown(object, json!([{"reset": "to be constructed again"}])).await.map(drop)
}

/// Looks until so many runs are written down, the latest first, and gives what came of them.
async fn outcomes<D: Driver>(lab: &Lab<D>, object: &str, count: usize) -> Result<Vec<Value>, Fault> {
    let look = json!([schedule(json!({"history": 100}))]);
    let there = |runs: &Value| runs.as_array().is_some_and(|runs| runs.len() >= count);
    let runs = lab.until(object, look, SOON, there).await?;
    let runs = runs.as_array().cloned().unwrap_or_default();
    same(&format!("the history: {runs:?}"), runs.len(), count)?;
    Ok(runs)
}
