//! Dead letters: listed, replayed, discarded.

use super::{
    ask, attempts, dead_letters, host, is_bare, on_job, outcomes, pending, put, ran, schedule, show, still,
    up_to,
};
use crate::testing::{
    case::{Case, Fault, Outcome, holds, same},
    cases::alarms::SOON,
    driver::Driver,
    lab::Lab,
};
use serde_json::{Value, json};

pub(super) fn cases<D: Driver>() -> Vec<Case<D>> {
    vec![
        Case::new(
            "schedule dead letters are listed oldest first, in pages, and discarded one by one",
            |lab| Box::pin(listed(lab)),
        ),
        Case::new(
            "schedule a dead letter is replayed with its name, payload, time and all its attempts",
            |lab| Box::pin(replayed(lab)),
        ),
        Case::new("schedule a dead letter that fails again is one again", |lab| Box::pin(fails_again(lab))),
        Case::new("schedule a dead letter is replayed beside a job of its name", |lab| Box::pin(beside(lab))),
        Case::new("schedule a recurring job is not replayed over one of its name", |lab| {
            Box::pin(not_over(lab))
        }),
        Case::new("schedule a slot that failed for the last time is a dead letter", |lab| {
            Box::pin(slot(lab))
        }),
    ]
}

/// Jobs that fail at once, and then no more.
async fn fail<D: Driver>(lab: &Lab<D>, names: &[&str], plan: Value) -> Outcome {
    let mut steps = vec![host()];
    for name in names {
        steps.push(on_job(name, up_to(1, json!([{"fail": format!("no {name}")}]))));
        steps.push(put(name, plan.clone()));
    }
    lab.run("a", json!(steps)).await?;
    let there = |dead: &Value| dead.as_array().map(Vec::len) == Some(names.len());
    lab.until("a", json!([dead_letters()]), SOON, there).await.map(drop)
}

async fn letters<D: Driver>(lab: &Lab<D>, after: i64, limit: u32) -> Result<Value, Fault> {
    let all = ask(lab, "a", schedule(json!({"dead_letters": [after, limit]}))).await?;
    Ok(json!(
        all.as_array().into_iter().flatten().map(|one| json!([one["id"], one["name"]])).collect::<Vec<_>>()
    ))
}

async fn listed<D: Driver>(lab: &Lab<D>) -> Outcome {
    fail(lab, &["a", "b", "c"], json!({"at": 50, "retry": [1, 100]})).await?;
    same("all", letters(lab, 0, 100).await?, json!([[1, "a"], [2, "b"], [3, "c"]]))?;
    same("a page", letters(lab, 0, 2).await?, json!([[1, "a"], [2, "b"]]))?;
    same("the next", letters(lab, 2, 2).await?, json!([[3, "c"]]))?;
    let discard = schedule(json!({"discard": 2}));
    same("whether it was there", lab.run("a", json!([discard, discard])).await?, [true, false])?;
    same("what is left", letters(lab, 0, 100).await?, json!([[1, "a"], [3, "c"]]))?;
    same("one that is not there", ask(lab, "a", schedule(json!({"replay": 2}))).await?, false)?;
    is_bare(lab, "a").await
}

async fn replayed<D: Driver>(lab: &Lab<D>) -> Outcome {
    fail(lab, &["a"], json!({"at": 50, "retry": [1, 100], "payload": {"n": 7}})).await?;
    let dead = ask(lab, "a", dead_letters()).await?;
    // From here on it fails once more, and is tried again only if it has all its attempts.
    let seen = lab.run("a", json!([{"schedule": {"replay": 1}}, pending(), dead_letters()])).await?;
    let waits =
        json!([seen[1][0]["name"], seen[1][0]["scheduled"], seen[1][0]["payload"], seen[1][0]["attempts"]]);
    same("what is pending", waits, json!(["a", dead[0]["scheduled"], {"n": 7}, 0]))?;
    same("dead letters", &seen[2], json!([]))?;
    let told = ran(lab, "a", 2, SOON).await?;
    same("what it was told", (told[1].scheduled, told[1].attempt), (&dead[0]["scheduled"], 1))?;
    is_bare(lab, "a").await?;
    same("the history", &outcomes(lab, "a", 2).await?[0]["outcome"], "Done")
}

async fn fails_again<D: Driver>(lab: &Lab<D>) -> Outcome {
    let fails = on_job("a", json!([{"fail": "always"}]));
    lab.run("a", json!([host(), fails, put("a", json!({"at": 50, "retry": [2, 50]}))])).await?;
    lab.until("a", json!([dead_letters()]), SOON, |dead| *dead != json!([])).await?;
    lab.run("a", json!([schedule(json!({"replay": 1}))])).await?;
    let told = ran(lab, "a", 4, SOON).await?;
    same("attempts", attempts(&told), [1, 2, 1, 2])?;
    same("its time", told[3].scheduled, told[0].scheduled)?;
    is_bare(lab, "a").await?;
    let dead = ask(lab, "a", dead_letters()).await?;
    same(
        "the letter",
        json!([dead[0]["id"], dead[0]["name"], dead[0]["attempts"], dead[1]]),
        json!([2, "a", 2, null]),
    )
}

async fn beside<D: Driver>(lab: &Lab<D>) -> Outcome {
    fail(lab, &["a"], json!({"at": 50, "retry": [1, 100], "payload": "old"})).await?;
    let new = put("a", json!({"at": 60_000, "payload": "new"}));
    let seen = lab.run("a", json!([new, show("a"), schedule(json!({"replay": 1})), pending()])).await?;
    same("how many wait", seen[3].as_array().map(Vec::len), 2)?;
    ran(lab, "a", 2, SOON).await?;
    let left = |pending: &Value| pending.as_array().map(Vec::len) == Some(1);
    let pending = lab.until("a", json!([pending()]), SOON, left).await?;
    same("the new one", &pending[0], &seen[1])
}

async fn not_over<D: Driver>(lab: &Lab<D>) -> Outcome {
    let unknown = on_job("a", json!([schedule(json!("unknown"))]));
    lab.run("a", json!([host(), unknown, put("a", json!({"every": 100}))])).await?;
    lab.until("a", json!([dead_letters()]), SOON, |dead| *dead != json!([])).await?;
    let again = json!({"try": [schedule(json!({"replay": 1}))]});
    let seen = lab.run("a", json!([put("a", json!({"at": 60_000})), again, dead_letters()])).await?;
    same("the error", &seen[1]["error"]["kind"], "Invalid")?;
    same("the letter stays", &seen[2][0]["id"], 1)
}

async fn slot<D: Driver>(lab: &Lab<D>) -> Outcome {
    let gives_up = on_job("ttl", json!([schedule(json!({"give_up": "no"}))]));
    let at = lab.last("a", json!([host(), gives_up, super::set("ttl", 50)])).await?;
    let dead = lab.until("a", json!([dead_letters()]), SOON, |dead| *dead != json!([])).await?;
    same(
        "the letter",
        json!([dead[0]["name"], dead[0]["scheduled"], dead[0]["attempts"]]),
        json!(["ttl", at, 1]),
    )?;
    same("the slot", ask(lab, "a", super::get("ttl")).await?, Value::Null)?;
    is_bare(lab, "a").await?;
    lab.run("a", json!([on_job("ttl", json!([])), schedule(json!({"replay": 1}))])).await?;
    let told = ran(lab, "a", 2, SOON).await?;
    holds(format!("{told:?}"), told[1].name == "ttl")?;
    is_bare(lab, "a").await?;
    still(lab, "a", 2, 100).await
}
