//! Ticks that nobody ran when they came.

use super::{
    ask, attempts, check, hosts, is_armed, now, number, only, outcomes, put, ran_at_least, show, still,
};
use crate::testing::{
    case::{Case, Fault, Outcome, holds, same},
    cases::alarms::SOON,
    driver::Driver,
    lab::Lab,
};
use serde_json::{Value, json};
use std::time::Duration;

pub(super) fn cases<D: Driver>() -> Vec<Case<D>> {
    vec![
        Case::new(
            "schedule missed ticks are one run, told the latest of them and how many before it",
            |lab| Box::pin(once(lab)),
        ),
        Case::new("schedule a tick that is too late is skipped, and the next one runs", |lab| {
            Box::pin(skipped(lab))
        }),
        Case::new("schedule a tick that is late and not too late is run", |lab| Box::pin(not_skipped(lab))),
        Case::new("schedule of missed ticks the latest are caught up with, oldest first", |lab| {
            Box::pin(caught_up(lab))
        }),
        Case::new("schedule all missed ticks are caught up with when they may be as many", |lab| {
            Box::pin(all_caught_up(lab))
        }),
        Case::new("schedule what runs once is run however late", |lab| Box::pin(late_once(lab))),
        Case::new(
            "schedule ticks missed while the object was out of memory and without an alarm are one run",
            |lab| Box::pin(evicted(lab)),
        )
        .evicts(),
    ]
}

/// Puts a job whose alarm is lost, lets `ms` pass and has it mended. The first tick.
async fn late<D: Driver>(lab: &Lab<D>, plan: Value, ms: u64) -> Result<i64, Fault> {
    hosts(lab).await?;
    let first = lab.last("a", json!([put("a", plan), "delete_alarm", show("a")])).await?;
    still(lab, "a", 0, ms).await?;
    same("whether something was wrong", ask(lab, "a", check()).await?, true)?;
    number(&first["scheduled"])
}

async fn once<D: Driver>(lab: &Lab<D>) -> Outcome {
    let first = late(lab, json!({"every": 200}), 1_300).await?;
    let told = ran_at_least(lab, "a", 2, SOON).await?;
    let behind = told[0].scheduled - first;
    same(&format!("{told:?} of {first}"), (behind % 200, told[0].missed), (0, behind / 200))?;
    holds(format!("only {} missed", told[0].missed), told[0].missed >= 4)?;
    holds(format!("{told:?}"), told[1].scheduled >= told[0].scheduled + 200)
}

/// An interval whose first tick is soon and whose others are not.
async fn rare<D: Driver>(lab: &Lab<D>, skip: u64) -> Result<Value, Fault> {
    let anchor = now(lab, "a").await? + super::BUSY;
    Ok(json!({"every": 86_400_000, "anchor": anchor, "missed": {"skip": skip}}))
}

async fn skipped<D: Driver>(lab: &Lab<D>) -> Outcome {
    let plan = rare(lab, 400).await?;
    let tick = late(lab, plan, 4_000).await?;
    let runs = outcomes(lab, "a", 1).await?;
    same("what came of it", json!([runs[0]["outcome"], runs[0]["scheduled"]]), json!(["Skipped", tick]))?;
    let next = ask(lab, "a", show("a")).await?;
    same("the next", (&next["scheduled"], &next["attempts"]), (tick + 86_400_000, 0))?;
    is_armed(lab, "a", &next["due"]).await?;
    still(lab, "a", 0, 200).await
}

async fn not_skipped<D: Driver>(lab: &Lab<D>) -> Outcome {
    let plan = rare(lab, 60_000).await?;
    let tick = late(lab, plan, 4_000).await?;
    same("its tick", only(lab, "a").await?.scheduled, tick)?;
    same("what came of it", &outcomes(lab, "a", 1).await?[0]["outcome"], "Done")
}

async fn caught_up<D: Driver>(lab: &Lab<D>) -> Outcome {
    let first = late(lab, json!({"every": 1_500, "missed": {"catch_up": 3}}), 7_000).await?;
    let told = ran_at_least(lab, "a", 4, SOON * 2).await?;
    let ticks: Vec<_> = told.iter().map(|run| run.scheduled).collect();
    for pair in ticks.windows(2).take(2) {
        same(&format!("{ticks:?}"), pair[1] - pair[0], 1_500)?;
    }
    let behind = ticks[0] - first;
    same(&format!("{told:?} of {first}"), (behind % 1_500, told[0].missed), (0, behind / 1_500))?;
    holds(format!("only {} dropped", told[0].missed), told[0].missed >= 1)?;
    same("missed between them", [told[1].missed, told[2].missed], [0, 0])?;
    same("attempts", attempts(&told[..4]), [1, 1, 1, 1])
}

async fn all_caught_up<D: Driver>(lab: &Lab<D>) -> Outcome {
    let first = late(lab, json!({"every": 300, "missed": {"catch_up": 50}}), 1_600).await?;
    let told = ran_at_least(lab, "a", 5, SOON).await?;
    for (n, run) in (0..).zip(&told) {
        same(&format!("{told:?}"), (run.scheduled, run.missed), (first + n * 300, 0))?;
    }
    Ok(())
}

async fn late_once<D: Driver>(lab: &Lab<D>) -> Outcome {
    let at = late(lab, json!({"at": 100, "missed": {"skip": 1}}), 800).await?;
    same("its time", only(lab, "a").await?.scheduled, at)
}

async fn evicted<D: Driver>(lab: &Lab<D>) -> Outcome {
    hosts(lab).await?;
    let first = lab.last("a", json!([put("a", json!({"every": 500})), "delete_alarm", show("a")])).await?;
    lab.evict().await?;
    lab.advance(Duration::from_millis(1_100)).await?;
    let told = ran_at_least(lab, "a", 1, SOON).await?;
    let behind = told[0].scheduled - number(&first["scheduled"])?;
    same(&format!("{told:?} of {first}"), (behind % 500, told[0].missed), (0, behind / 500))?;
    holds(format!("{told:?}"), told[0].missed >= 1)
}
