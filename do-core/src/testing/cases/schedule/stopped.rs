//! Runs that do not end by themselves: panics, hangs, resets, kills, failed commits.

use super::{
    ask, attempts, dead_letters, host, is_bare, names, on_job, once, outcomes, put, ran, ran_at_least,
    schedule, set, still,
};
use crate::testing::{
    case::{Case, Outcome, holds, same},
    cases::alarms::{RETRY, SOON},
    driver::{Driver, PanicCost},
    lab::Lab,
};
use serde_json::{Value, json};
use std::time::Duration;

/// A foreign key that is checked at the commit, which therefore fails.
const BREAK: &str = "INSERT INTO child VALUES (99)";

pub(super) fn cases<D: Driver>() -> Vec<Case<D>> {
    vec![
        Case::new("schedule a job that panics has failed alone where panics unwind", |lab| {
            Box::pin(panics(lab))
        })
        .panics(PanicCost::Object),
        Case::new("schedule a job that panics and takes the process with it is a dead letter at last where panics abort", |lab| {
            Box::pin(aborts(lab))
        })
        .crashes()
        .panics(PanicCost::Isolate),
        Case::new("schedule a job that hangs is cut off at its limit, and the others run", |lab| {
            Box::pin(hangs(lab))
        }),
        Case::new("schedule a run that resets its object counts as an attempt", |lab| Box::pin(resets(lab))),
        Case::new("schedule a job that resets its object for ever is a dead letter", |lab| {
            Box::pin(resets_for_ever(lab))
        })
        .long(),
        Case::new("schedule a run that a kill cuts off counts as an attempt and is tried again", |lab| {
            Box::pin(killed(lab))
        })
        .crashes(),
        Case::new("c5 c6 schedule: the last writes of a job and that it ran are one commit", |lab| {
            Box::pin(one_commit(lab))
        }),
        Case::new("e5 schedule: requests are let in while a job waits", |lab| Box::pin(requests(lab))),
        Case::new("e5 schedule: a request may set a slot while a job waits", |lab| {
            Box::pin(set_meanwhile(lab))
        }),
    ]
}

async fn panics<D: Driver>(lab: &Lab<D>) -> Outcome {
    let bad = on_job("bad", json!([{"note": "kept"}, {"panic": "on demand"}]));
    let puts = [put("bad", json!({"at": 50, "retry": [2, 100]})), put("good", json!({"at": 60}))];
    let before = lab.last("a", json!([host(), bad, puts[0], puts[1], "instance"])).await?;
    let told = ran(lab, "a", 3, SOON).await?;
    same("the runs", names(&told), ["bad", "good", "bad"])?;
    is_bare(lab, "a").await?;
    let dead = ask(lab, "a", dead_letters()).await?;
    let seen = json!([dead[0]["name"], dead[0]["error"], dead[0]["attempts"], dead[1]]);
    same("the dead letter", seen, json!(["bad", "it panicked: on demand", 2, null]))?;
    same("what it wrote", lab.lines("a").await?, json!(["kept", "kept"]))?;
    same("the instance", lab.last("a", json!(["instance"])).await?, before)
}

/// A run that panics never ends for the platform, which therefore does not try it again before the process is gone.
async fn aborts<D: Driver>(lab: &Lab<D>) -> Outcome {
    let bad = on_job("bad", json!([{"sleep": 0}, {"panic": "on demand"}]));
    let puts = [put("bad", json!({"at": 300, "retry": [2, 100]})), put("good", json!({"at": 310}))];
    lab.run("a", json!([host(), bad, puts[0], puts[1]])).await?;
    for _ in 0..2 {
        // Whoever asks meanwhile may be left without an answer.
        lab.advance(Duration::from_secs(3)).await?;
        lab.crash().await?;
    }
    let told = ran(lab, "a", 3, SOON).await?;
    same("the runs", names(&told), ["bad", "good", "bad"])?;
    same("attempts", attempts(&told), [1, 1, 2])?;
    is_bare(lab, "a").await?;
    let dead = ask(lab, "a", dead_letters()).await?;
    let seen = json!([dead[0]["name"], dead[0]["error"], dead[0]["attempts"], dead[1]]);
    same("the dead letter", seen, json!(["bad", "its run was cut off", 2, null]))
}

async fn hangs<D: Driver>(lab: &Lab<D>) -> Outcome {
    let never = on_job("never", json!([{"add": 1}, {"life": "never"}]));
    let slow = on_job("slow", json!([{"sleep": 3_600_000}, {"note": "went on"}]));
    let plan = |at: i64| json!({"at": at, "limit": 200, "retry": [1, 100]});
    let steps = json!([
        host(),
        never,
        slow,
        put("never", plan(50)),
        put("slow", plan(60)),
        put("good", json!({"at": 70}))
    ]);
    lab.run("a", steps).await?;
    let told = ran(lab, "a", 3, SOON).await?;
    same("the order", names(&told), ["never", "slow", "good"])?;
    holds(format!("{told:?}"), told[1].at >= told[0].at + 200 && told[2].at >= told[1].at + 200)?;
    is_bare(lab, "a").await?;
    let dead = ask(lab, "a", dead_letters()).await?;
    let errors = json!([dead[0]["error"], dead[1]["error"], dead[2]]);
    same("the errors", errors, json!(["it took longer than 200ms", "it took longer than 200ms", null]))?;
    same("what was dropped went on", lab.lines("a").await?, json!([]))
}

async fn resets<D: Driver>(lab: &Lab<D>) -> Outcome {
    let bad = on_job("bad", once(json!([{"sleep": 0}, {"reset": "in the job"}])));
    let puts = [put("bad", json!({"at": 50, "retry": [3, 100]})), put("good", json!({"at": 60}))];
    lab.run("a", json!([host(), bad, puts[0], puts[1]])).await?;
    lab.advance(Duration::from_millis(3_000)).await?;
    let told = ran(lab, "a", 3, RETRY).await?;
    let bad: Vec<_> = told.iter().filter(|run| run.name == "bad").map(|run| run.attempt).collect();
    same("attempts", bad, [1, 2])?;
    is_bare(lab, "a").await?;
    let runs = outcomes(lab, "a", 3).await?;
    let cut = runs.iter().find(|run| run["outcome"] == "Failed");
    same("what came of the first", cut.map(|run| &run["error"]), "its run was cut off")
}

async fn resets_for_ever<D: Driver>(lab: &Lab<D>) -> Outcome {
    let bad = on_job("bad", json!([{"sleep": 0}, {"reset": "in the job"}]));
    let puts = [put("bad", json!({"at": 50, "retry": [3, 100]})), put("good", json!({"at": 60}))];
    lab.run("a", json!([host(), bad, puts[0], puts[1]])).await?;
    lab.advance(Duration::from_secs(20)).await?;
    let told = ran(lab, "a", 4, Duration::from_secs(30)).await?;
    let bad: Vec<_> = told.iter().filter(|run| run.name == "bad").map(|run| run.attempt).collect();
    same("attempts", bad, [1, 2, 3])?;
    lab.until("a", json!([dead_letters()]), Duration::from_secs(30), |dead| *dead != json!([])).await?;
    is_bare(lab, "a").await?;
    let dead = ask(lab, "a", dead_letters()).await?;
    let seen = json!([dead[0]["name"], dead[0]["error"], dead[0]["attempts"], dead[1]]);
    same("the dead letter", seen, json!(["bad", "its run was cut off", 3, null]))
}

async fn killed<D: Driver>(lab: &Lab<D>) -> Outcome {
    let cut = on_job("a", once(json!([{"note": "begun"}, {"sleep": 600_000}])));
    lab.run("a", json!([host(), cut, put("a", json!({"at": 50, "retry": [3, 100]}))])).await?;
    ran(lab, "a", 1, SOON).await?;
    lab.advance(Duration::from_millis(100)).await?;
    lab.crash().await?;
    lab.advance(Duration::from_millis(500)).await?;
    let told = ran(lab, "a", 2, SOON).await?;
    same("attempts", attempts(&told), [1, 2])?;
    same("its time", told[1].scheduled, told[0].scheduled)?;
    is_bare(lab, "a").await?;
    let runs = outcomes(lab, "a", 2).await?;
    let came: Vec<_> = runs.iter().map(|run| json!([run["outcome"], run["error"]])).collect();
    same("the history", came, json!([["Done", null], ["Failed", "its run was cut off"]]))
}

/// What is in one commit with a fault is undone: the note, and that the job ran.
async fn one_commit<D: Driver>(lab: &Lab<D>) -> Outcome {
    let fails = once(json!([{"sleep": 0}, {"note": "undone"}, {"sql": BREAK}]));
    lab.run("a", json!([host(), on_job("a", fails), put("a", json!({"at": 50, "retry": [3, 100]}))])).await?;
    lab.advance(Duration::from_millis(2_500)).await?;
    let told = ran(lab, "a", 2, RETRY).await?;
    same("attempts", attempts(&told), [1, 2])?;
    same("what the first wrote", lab.lines("a").await?, json!([]))?;
    is_bare(lab, "a").await?;
    let came: Vec<_> = outcomes(lab, "a", 2).await?.iter().map(|run| run["outcome"].clone()).collect();
    same("the history", came, ["Done", "Failed"])
}

async fn requests<D: Driver>(lab: &Lab<D>) -> Outcome {
    let job = on_job("a", json!([{"add": 1}, {"wait_for": 2}, {"note": "end"}]));
    lab.run("a", json!([host(), job, put("a", json!({"at": 50}))])).await?;
    lab.until("a", json!([{"add": 0}]), SOON, |n| *n == json!(1)).await?;
    let seen = lab.run("a", json!([{"note": "request"}, schedule(json!("check")), {"add": 1}])).await?;
    same("whether something was wrong", &seen[1], false)?;
    is_bare(lab, "a").await?;
    same("the order", lab.lines("a").await?, json!(["request", "end"]))
}

async fn set_meanwhile<D: Driver>(lab: &Lab<D>) -> Outcome {
    let job = on_job("a", json!([{"add": 1}, {"wait_for": 2}]));
    lab.run("a", json!([host(), job, put("a", json!({"at": 50}))])).await?;
    lab.until("a", json!([{"add": 0}]), SOON, |n| *n == json!(1)).await?;
    let seen = lab.run("a", json!([set("ttl", 300), "get_alarm", {"add": 1}])).await?;
    same("the end of the run sets it", &seen[1], Value::Null)?;
    let told = ran_at_least(lab, "a", 2, SOON).await?;
    same("its time", told[1].scheduled, &seen[0])?;
    is_bare(lab, "a").await?;
    still(lab, "a", 2, 100).await
}
