//! What is bounded: the work of a wake, the history; and what must not stand in the way of the others.

use super::{ask, dead_letters, host, is_bare, names, on_job, only, outcomes, put, ran, schedule, set};
use crate::testing::{
    case::{Case, Outcome, holds, same},
    cases::alarms::SOON,
    driver::Driver,
    lab::Lab,
};
use serde_json::json;

pub(super) fn cases<D: Driver>() -> Vec<Case<D>> {
    vec![
        Case::new(
            "schedule more jobs than one run of the alarm may run are run by further ones, in order",
            |lab| Box::pin(jobs_per_wake(lab)),
        ),
        Case::new("schedule the history has so many of the latest runs, the latest first", |lab| {
            Box::pin(history(lab))
        }),
        Case::new("schedule a history of nothing is none", |lab| Box::pin(no_history(lab))),
        Case::new("schedule a job that records failures only has no other runs in the history", |lab| {
            Box::pin(failures_only(lab))
        }),
        Case::new("schedule a job that the constructor retires is gone, and the others run", |lab| {
            Box::pin(retired(lab))
        }),
        Case::new("schedule a row that cannot be read is a dead letter, and the others run", |lab| {
            Box::pin(unreadable(lab))
        }),
        Case::new("schedule numbers in a row that make no sense do not stop the others", |lab| {
            Box::pin(senseless(lab))
        }),
    ]
}

async fn jobs_per_wake<D: Driver>(lab: &Lab<D>) -> Outcome {
    let two = schedule(json!({"host": {"jobs_per_wake": 2}}));
    let mut steps = vec![two, on_job("c", json!([{"fail": "once"}]))];
    let at = super::now(lab, "a").await? + super::BUSY;
    for (name, ms) in [("e", 4), ("d", 3), ("c", 2), ("b", 1), ("a", 0)] {
        steps.push(put(name, json!({"on": at + ms, "retry": [1, 100]})));
    }
    lab.run("a", json!(steps)).await?;
    let told = ran(lab, "a", 5, SOON * 2).await?;
    same("the order", names(&told), ["a", "b", "c", "d", "e"])?;
    let wakes = lab.last("a", json!([{"sql": "SELECT count(*) FROM runs"}])).await?;
    holds(format!("{wakes} wakes"), wakes[0].as_i64() >= Some(3))?;
    is_bare(lab, "a").await
}

async fn history<D: Driver>(lab: &Lab<D>) -> Outcome {
    let host = schedule(json!({"host": {"history": 3}}));
    let puts: Vec<_> = (0..5).map(|n| put(&format!("job {n}"), json!({"at": 50 + n}))).collect();
    lab.run("a", json!([host, puts[0], puts[1], puts[2], puts[3], puts[4], set("ttl", 60)])).await?;
    ran(lab, "a", 6, SOON).await?;
    is_bare(lab, "a").await?;
    let runs = outcomes(lab, "a", 3).await?;
    let seen: Vec<_> = runs.iter().map(|run| json!([run["id"], run["name"]])).collect();
    same("the history", seen, json!([[5, "job 4"], [4, "job 3"], [3, "job 2"]]))?;
    let latest = ask(lab, "a", schedule(json!({"history": 1}))).await?;
    same("the latest", json!([latest[0]["name"], latest[1]]), json!(["job 4", null]))
}

async fn no_history<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.run("a", json!([schedule(json!({"host": {"history": 0}})), put("a", json!({"at": 50}))])).await?;
    only(lab, "a").await?;
    is_bare(lab, "a").await?;
    outcomes(lab, "a", 0).await.map(drop)
}

async fn failures_only<D: Driver>(lab: &Lab<D>) -> Outcome {
    let job = on_job("a", super::once(json!([{"fail": "once"}])));
    let quiet = json!({"at": 50, "retry": [3, 50], "failures_only": true});
    lab.run("a", json!([host(), job, put("a", quiet), put("b", json!({"at": 400}))])).await?;
    let told = ran(lab, "a", 3, SOON).await?;
    same("what ran", names(&told), ["a", "a", "b"])?;
    is_bare(lab, "a").await?;
    let runs = outcomes(lab, "a", 2).await?;
    let seen: Vec<_> = runs.iter().map(|run| json!([run["name"], run["outcome"]])).collect();
    same("the history", seen, json!([["b", "Done"], ["a", "Failed"]]))
}

async fn retired<D: Driver>(lab: &Lab<D>) -> Outcome {
    let declare = |name: &str| schedule(json!({"declare": [name, {"every": 200}]}));
    lab.run("a", json!([host(), {"on_new": [declare("old"), declare("kept")]}])).await?;
    super::gone(lab, "a").await?;
    super::ran_at_least(lab, "a", 2, SOON).await?;
    let retire = schedule(json!({"retire": "old"}));
    lab.run("a", json!([{"on_new": [retire, declare("kept")]}])).await?;
    super::gone(lab, "a").await?;
    let pending = ask(lab, "a", super::pending()).await?;
    same("what is pending", json!([pending[0]["name"], pending[1]]), json!(["kept", null]))?;
    let before = ask(lab, "a", schedule(json!("ran"))).await?.as_array().map_or(0, Vec::len);
    let told = super::ran_at_least(lab, "a", before + 2, SOON).await?;
    let later: Vec<_> = told.iter().skip(before).map(|run| run.name.as_str()).collect();
    holds(format!("{later:?}"), later.iter().all(|name| *name == "kept"))
}

async fn unreadable<D: Driver>(lab: &Lab<D>) -> Outcome {
    let terms =
        ["garbage", "{\"cadence\":{\"every\":{\"ms\":0,\"anchor\":0}}}", "{\"cadence\":7}", "{\"retry\":{}}"];
    let mut steps = vec![host()];
    for (n, terms) in terms.iter().enumerate() {
        steps.push(put(&format!("bad {n}"), json!({"at": 50 + n, "payload": n})));
        let update = format!("UPDATE _schedule SET terms = '{terms}' WHERE key = 'bad {n}'");
        steps.push(json!({ "sql": update }));
    }
    // As a run that was cut off leaves it, and one that is tried again before its tick.
    let cut_off = format!("UPDATE _schedule SET terms = '{}', running = 1 WHERE key = 'bad 4'", terms[1]);
    let early = format!("UPDATE _schedule SET terms = '{}', tick = tick + 500 WHERE key = 'bad 5'", terms[1]);
    for (n, update) in [(4, cut_off), (5, early)] {
        steps.extend([
            put(&format!("bad {n}"), json!({"at": 50 + n, "payload": n})),
            json!({ "sql": update }),
        ]);
    }
    steps.extend([put("good", json!({"at": 300})), set("ttl", 310)]);
    lab.run("a", json!(steps)).await?;
    let told = ran(lab, "a", 2, SOON).await?;
    same("what ran", names(&told), ["good", "ttl"])?;
    is_bare(lab, "a").await?;
    let dead = ask(lab, "a", dead_letters()).await?;
    for (n, letter) in dead.as_array().into_iter().flatten().enumerate() {
        same(
            "the letter",
            json!([letter["name"], letter["payload"], letter["attempts"]]),
            json!([format!("bad {n}"), n, 0]),
        )?;
        let error = letter["error"].as_str().unwrap_or_default();
        let expected =
            if [1, 4, 5].contains(&n) { "every 0 ms: it must be" } else { "a plan that cannot be read: " };
        holds(error, error.starts_with(expected))?;
    }
    same("how many", dead.as_array().map(Vec::len), terms.len() + 2)
}

async fn senseless<D: Driver>(lab: &Lab<D>) -> Outcome {
    let changes = ["attempt = -1", "attempt = 4294967296", "payload = '{'"];
    let mut steps = vec![host()];
    for (n, change) in changes.iter().enumerate() {
        steps.push(put(&format!("bad {n}"), json!({"at": 50 + n, "retry": [2, 50]})));
        let update = format!("UPDATE _schedule SET {change} WHERE key = 'bad {n}'");
        steps.push(json!({ "sql": update }));
    }
    steps.push(put("good", json!({"at": 300})));
    lab.run("a", json!(steps)).await?;
    // The first has been tried so often that nobody counts any more, and succeeds all the same.
    let told = ran(lab, "a", 4, SOON).await?;
    same("what ran", names(&told), ["bad 0", "bad 1", "bad 2", "good"])?;
    is_bare(lab, "a").await?;
    same("dead letters", ask(lab, "a", dead_letters()).await?, json!([]))
}
