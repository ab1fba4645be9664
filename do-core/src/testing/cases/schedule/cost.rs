//! What it costs: alarms set on every host, rows read and written where the platform counts them.

use super::{ask, check, gone, host, is_bare, now, number, put, ran_at_least, schedule, set_at, still};
use crate::testing::{
    case::{Case, Fault, Outcome, holds, same},
    cases::alarms::SOON,
    difference::HostKind,
    driver::Driver,
    lab::Lab,
};
use serde_json::{Value, json};

pub(super) fn cases<D: Driver>() -> Vec<Case<D>> {
    vec![
        Case::new("schedule a thousand sets, each later, set the alarm once", |lab| Box::pin(sliding(lab))),
        Case::new("schedule a thousand sets to the same time set the alarm once and write one row", |lab| {
            Box::pin(unchanged(lab))
        }),
        Case::new("schedule a thousand sets, each sooner, set the alarm each time", |lab| {
            Box::pin(falling(lab))
        }),
        Case::new("schedule a thousand jobs in any order set the alarm only for a new soonest", |lab| {
            Box::pin(any_order(lab))
        }),
        Case::new("schedule a heartbeat sets the alarm once for each tick", |lab| Box::pin(heartbeat(lab))),
        Case::new(
            "schedule an object that was never given a deadline writes nothing and has no alarm",
            |lab| Box::pin(idle(lab)),
        ),
        counted("schedule the rows of setting a slot", |lab| Box::pin(slot_rows(lab))),
        counted("schedule the rows of putting and cancelling jobs", |lab| Box::pin(job_rows(lab))),
        counted("schedule the rows of a run", |lab| Box::pin(run_rows(lab))),
        counted("schedule the rows of a look at the alarm", |lab| Box::pin(check_rows(lab))),
    ]
}

fn counted<D: Driver>(
    name: &'static str,
    run: for<'a> fn(&'a Lab<D>) -> crate::testing::case::Run<'a>,
) -> Case<D> {
    Case::new(name, run).differs(&[HostKind::Workerd], "rows-counted")
}

fn cost(steps: Value) -> Value {
    schedule(json!({ "cost": steps }))
}

fn stats() -> Value {
    schedule(json!("stats"))
}

/// An hour ahead.
async fn far<D: Driver>(lab: &Lab<D>) -> Result<i64, Fault> {
    lab.run("a", json!([host()])).await?;
    Ok(now(lab, "a").await? + 3_600_000)
}

/// How often the raw slot was set.
async fn sets<D: Driver>(lab: &Lab<D>, steps: Value) -> Result<i64, Fault> {
    number(&ask(lab, "a", cost(steps)).await?["set"])
}

fn set_each(times: impl Iterator<Item = i64>) -> Value {
    json!([schedule(json!({"set_each": ["ttl", times.collect::<Vec<_>>()]}))])
}

async fn sliding<D: Driver>(lab: &Lab<D>) -> Outcome {
    let far = far(lab).await?;
    same("alarms set", sets(lab, set_each((0..1_000).map(|n| far + n))).await?, 1)
}

async fn unchanged<D: Driver>(lab: &Lab<D>) -> Outcome {
    let far = far(lab).await?;
    same("alarms set", sets(lab, set_each((0..1_000).map(|_| far))).await?, 1)?;
    let seen = ask(lab, "a", cost(set_each((0..1_000).map(|_| far)))).await?;
    same("of a thousand more", json!([seen["set"], seen["written"]]), json!([0, 0]))
}

async fn falling<D: Driver>(lab: &Lab<D>) -> Outcome {
    let far = far(lab).await?;
    same("alarms set", sets(lab, set_each((0..1_000).map(|n| far - n))).await?, 1_000)
}

async fn any_order<D: Driver>(lab: &Lab<D>) -> Outcome {
    let far = far(lab).await?;
    // Each number below 1,009 but 0 once, in an order without a pattern.
    let order: Vec<i64> = std::iter::successors(Some(11), |n| Some(n * 11 % 1_009)).take(1_000).collect();
    let soonest = order.iter().scan(i64::MAX, |soonest, n| {
        let is_new = n < soonest;
        *soonest = (*soonest).min(*n);
        Some(is_new)
    });
    let soonest = soonest.filter(|is_new| *is_new).count();
    let times: Vec<i64> = order.iter().map(|n| far + n * 1_000).collect();
    let set = sets(lab, json!([schedule(json!({"put_each": times}))])).await?;
    same("alarms set", set, soonest)?;
    holds(format!("{set} of 1,000"), set <= 16)
}

async fn heartbeat<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.run("a", json!([host(), put("a", json!({"every": 1_000}))])).await?;
    ran_at_least(lab, "a", 4, SOON * 2).await?;
    // Of one moment, in which no run is under way.
    let ended = |seen: &Value| seen["set"].as_i64() == seen["wakes"].as_i64().map(|wakes| wakes + 1);
    let seen = lab.until("a", json!([stats()]), SOON, ended).await?;
    same("deleted", &seen["deleted"], 0)?;
    // In real time a tick may come before the run of the one before has ended.
    let (jobs, wakes) = (number(&seen["jobs"])?, number(&seen["wakes"])?);
    let real = lab.driver().kind() == HostKind::Workerd;
    holds(format!("{seen}"), jobs >= 4 && (jobs == wakes || (real && jobs > wakes)))
}

async fn idle<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.run("a", json!([host()])).await?;
    gone(lab, "a").await?;
    let looks =
        [check(), super::get("ttl"), super::pending(), super::dead_letters(), json!("get_alarm"), stats()];
    let seen = lab.run("a", json!(looks)).await?;
    same("what is there", json!(seen[..5]), json!([false, null, [], [], null]))?;
    same("what it did", json!([seen[5]["set"], seen[5]["deleted"], seen[5]["written"]]), json!([0, 0, 0]))?;
    let tables =
        json!({"sql": "SELECT count(*) FROM sqlite_master WHERE name LIKE '\\_schedule%' ESCAPE '\\'"});
    same("tables", ask(lab, "a", tables).await?, [0])?;
    still(lab, "a", 0, 50).await
}

/// Fails unless each step costs this: rows read, rows written, alarms set, alarms deleted.
async fn costs<D: Driver>(lab: &Lab<D>, steps: &[(&str, Value, [i64; 4])]) -> Outcome {
    let mut wrong = Vec::new();
    for (what, step, expected) in steps {
        let seen = ask(lab, "a", cost(json!([step]))).await?;
        let seen = ["read", "written", "set", "deleted"].map(|name| seen[name].as_i64().unwrap_or(-1));
        if seen != *expected {
            wrong.push(format!("{what}: {seen:?}, not {expected:?}"));
        }
    }
    holds(wrong.join("; "), wrong.is_empty())
}

async fn slot_rows<D: Driver>(lab: &Lab<D>) -> Outcome {
    let far = far(lab).await?;
    let set = |slot: &str, ms: i64| set_at(slot, far + ms);
    costs(
        lab,
        &[
            ("the first of all, with the tables", set("ttl", 0), [2, 5, 1, 0]),
            ("to the same time", set("ttl", 0), [3, 0, 0, 0]),
            ("later", set("ttl", 5_000), [4, 2, 0, 0]),
            ("sooner than the alarm", set("ttl", -5_000), [4, 2, 1, 0]),
            ("a second one, later", set("beat", 5_000), [2, 2, 0, 0]),
            ("a third one, sooner", set("sweep", -10_000), [2, 2, 1, 0]),
            ("what it holds", super::get("ttl"), [1, 0, 0, 0]),
            ("deleting one of several", schedule(json!({"delete": "sweep"})), [3, 1, 0, 0]),
            ("deleting one that is not there", schedule(json!({"delete": "sweep"})), [1, 0, 0, 0]),
            ("deleting the last but one", schedule(json!({"delete": "ttl"})), [3, 1, 0, 0]),
            ("deleting the last", schedule(json!({"delete": "beat"})), [3, 1, 0, 1]),
            ("the first, with the tables there", set("ttl", 0), [2, 2, 1, 0]),
        ],
    )
    .await
}

async fn job_rows<D: Driver>(lab: &Lab<D>) -> Outcome {
    let far = far(lab).await?;
    lab.run("a", json!([set_at("ttl", far)])).await?;
    let keyed = json!({"on": far + 1_000, "key": "one"});
    costs(
        lab,
        &[
            ("a new job, later", put("a", json!({"on": far + 1_000})), [2, 2, 0, 0]),
            ("the same", put("a", json!({"on": far + 1_000})), [3, 0, 0, 0]),
            ("another payload", put("a", json!({"on": far + 1_000, "payload": 1})), [4, 1, 0, 0]),
            ("another time, later", put("a", json!({"on": far + 2_000, "payload": 1})), [4, 2, 0, 0]),
            ("a new interval", put("b", json!({"every": 86_400_000})), [2, 2, 0, 0]),
            ("the same", put("b", json!({"every": 86_400_000})), [3, 0, 0, 0]),
            ("with a key", put("c", keyed.clone()), [4, 4, 0, 0]),
            ("with the same key", put("c", keyed), [3, 0, 0, 0]),
            ("cancelling one", schedule(json!({"cancel": "a"})), [3, 1, 0, 0]),
        ],
    )
    .await
}

/// What one run costs, from what the instance counted before and after: the same four.
async fn run_cost<D: Driver>(lab: &Lab<D>, set: Value) -> Result<[i64; 4], Fault> {
    let before = lab.last("a", json!([set, stats()])).await?;
    let ran = |seen: &Value| seen["wakes"].as_i64() > before["wakes"].as_i64();
    lab.until("a", json!([stats()]), SOON, ran).await?;
    lab.advance(std::time::Duration::from_millis(200)).await?;
    let after = ask(lab, "a", stats()).await?;
    same("wakes", number(&after["wakes"])? - number(&before["wakes"])?, 1)?;
    Ok(["read", "written", "set", "deleted"]
        .map(|name| after[name].as_i64().unwrap_or_default() - before[name].as_i64().unwrap_or_default()))
}

async fn run_rows<D: Driver>(lab: &Lab<D>) -> Outcome {
    let far = far(lab).await?;
    // The tables.
    lab.run("a", json!([set_at("beat", far), schedule(json!({"delete": "beat"}))])).await?;
    let mut wrong = Vec::new();
    for (what, expected) in [
        ("a slot, the only one", [7, 2, 0, 0]),
        ("a job, the only one", [9, 3, 0, 0]),
        ("a tick", [8, 4, 1, 0]),
        ("a slot of two", [7, 2, 1, 0]),
        ("nothing", [2, 0, 1, 0]),
    ] {
        let at = now(lab, "a").await? + super::BUSY;
        let set = match what {
            "a job, the only one" => put("a", json!({ "on": at })),
            "a tick" => put("b", json!({"every": 86_400_000, "anchor": at})),
            "nothing" => json!({ "set_alarm_at": at }),
            _ => set_at("ttl", at),
        };
        let seen = run_cost(lab, set).await?;
        if seen != expected {
            wrong.push(format!("{what}: {seen:?}, not {expected:?}"));
        }
    }
    holds(wrong.join("; "), wrong.is_empty())
}

async fn check_rows<D: Driver>(lab: &Lab<D>) -> Outcome {
    let far = far(lab).await?;
    let first_event = async || -> Result<Value, Fault> {
        gone(lab, "a").await?;
        lab.run("a", json!([])).await?;
        lab.advance(std::time::Duration::from_millis(100)).await?;
        let seen = ask(lab, "a", stats()).await?;
        Ok(json!([seen["read"], seen["written"], seen["set"]]))
    };
    same("a first event without tables", first_event().await?, json!([0, 0, 0]))?;
    lab.run("a", json!([set_at("ttl", far)])).await?;
    same("a first event with one pending", first_event().await?, json!([2, 0, 0]))?;
    lab.run("a", json!([schedule(json!({"delete": "ttl"}))])).await?;
    is_bare(lab, "a").await?;
    same("a first event with nothing pending", first_event().await?, json!([1, 0, 0]))
}
