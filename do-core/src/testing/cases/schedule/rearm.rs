//! What is pending has its alarm, and what is not has none: whatever happens to the raw slot, and whoever looks.

use super::{
    ask, check, gone, host, hosts, is_armed, is_bare, names, number, on_job, only, pending, put, ran,
    schedule, set, show, still,
};
use crate::testing::{
    case::{Case, Fault, Outcome, holds, same},
    driver::Driver,
    lab::Lab,
};
use serde_json::{Value, json};
use std::time::Duration;

pub(super) fn cases<D: Driver>() -> Vec<Case<D>> {
    vec![
        Case::new("schedule an alarm that was deleted behind its back is set again by check, once", |lab| {
            Box::pin(deleted(lab))
        }),
        Case::new(
            "schedule an alarm that was set later behind its back is set sooner again by check",
            |lab| Box::pin(set_later(lab)),
        ),
        Case::new(
            "schedule an alarm that was deleted behind its back is set again by an instance's first event",
            |lab| Box::pin(first_event(lab)),
        ),
        Case::new(
            "schedule an alarm that the platform dropped is set again by an instance's first event",
            |lab| Box::pin(dropped(lab)),
        ),
        Case::new(
            "schedule an alarm that was to come long ago is taken for lost by the next change",
            |lab| Box::pin(long_past(lab)),
        ),
        Case::new("schedule an alarm that comes for nothing runs nothing, and the right one is set", |lab| {
            Box::pin(for_nothing(lab))
        }),
        Case::new("schedule a later deadline leaves the alarm as it is, and a sooner one moves it", |lab| {
            Box::pin(moves_earlier(lab))
        }),
        Case::new(
            "schedule an object that has nothing pending has no alarm, also one that somebody set",
            |lab| Box::pin(nothing_pending(lab)),
        ),
        Case::new("e14 schedule: delete_all leaves nothing, and the schedule can be used again", |lab| {
            Box::pin(delete_all(lab))
        }),
        Case::new("e14 schedule: delete_all in a job leaves nothing", |lab| Box::pin(delete_all_in_job(lab))),
        Case::new("e14 schedule: a slot set after delete_all in a job is kept and runs", |lab| {
            Box::pin(set_after_delete_all(lab))
        }),
    ]
}

/// A slot that is a minute ahead.
async fn far<D: Driver>(lab: &Lab<D>, then: Value) -> Result<Value, Fault> {
    hosts(lab).await?;
    let seen = lab.run("a", json!([set("ttl", 60_000), "get_alarm", then])).await?;
    same("the raw slot", &seen[1], &seen[0])?;
    Ok(seen[0].clone())
}

async fn deleted<D: Driver>(lab: &Lab<D>) -> Outcome {
    let at = far(lab, json!("delete_alarm")).await?;
    let seen = lab.run("a", json!(["get_alarm", check(), "get_alarm", check()])).await?;
    same("before, wrong, after, wrong", seen, json!([null, true, at, false]))
}

async fn set_later<D: Driver>(lab: &Lab<D>) -> Outcome {
    let at = far(lab, json!({"set_alarm": 3_600_000})).await?;
    same(
        "wrong, after, wrong",
        lab.run("a", json!([check(), "get_alarm", check()])).await?,
        json!([true, at, false]),
    )
}

async fn first_event<D: Driver>(lab: &Lab<D>) -> Outcome {
    let at = far(lab, json!("delete_alarm")).await?;
    // Not by the instance that is there: it looks at the raw slot once.
    lab.advance(Duration::from_millis(100)).await?;
    same("before", ask(lab, "a", json!("get_alarm")).await?, Value::Null)?;
    gone(lab, "a").await?;
    is_armed(lab, "a", &at).await
}

/// As after the last retry of an alarm (rule E8): what was due is still there, and no alarm.
async fn dropped<D: Driver>(lab: &Lab<D>) -> Outcome {
    hosts(lab).await?;
    lab.run("a", json!([set("ttl", 100), put("a", json!({"at": 110})), "delete_alarm"])).await?;
    still(lab, "a", 0, 400).await?;
    gone(lab, "a").await?;
    lab.run("a", json!([])).await?;
    let told = ran(lab, "a", 2, super::SOON).await?;
    same("the runs", names(&told), ["ttl", "a"])?;
    is_bare(lab, "a").await
}

async fn long_past<D: Driver>(lab: &Lab<D>) -> Outcome {
    far(lab, json!("delete_alarm")).await?;
    let past = json!({"sql": "UPDATE _schedule SET due = due - 180000, tick = tick - 180000"});
    lab.run("a", json!([past, set("beat", 3_600_000)])).await?;
    same("what ran", only(lab, "a").await?.name, "ttl")
}

async fn for_nothing<D: Driver>(lab: &Lab<D>) -> Outcome {
    let at = far(lab, json!({"set_alarm": 100})).await?;
    let wakes = json!([{"sql": "SELECT count(*) FROM runs"}]);
    lab.until("a", wakes, super::SOON, |wakes| *wakes == json!([1])).await?;
    is_armed(lab, "a", &at).await?;
    still(lab, "a", 0, 300).await
}

async fn moves_earlier<D: Driver>(lab: &Lab<D>) -> Outcome {
    let at = far(lab, json!("now")).await?;
    let later = [set("beat", 90_000), put("a", json!({"at": 70_000})), set("ttl", 80_000)];
    let seen =
        lab.run("a", json!([later[0], later[1], later[2], "get_alarm", schedule(json!("stats"))])).await?;
    same("the raw slot", &seen[3], &at)?;
    same("how often it was set", &seen[4]["set"], 1)?;
    let seen = lab
        .run("a", json!([put("b", json!({"at": 30_000})), "get_alarm", show("b"), schedule(json!("stats"))]))
        .await?;
    same("the raw slot", &seen[1], &seen[2]["due"])?;
    same("how often it was set", &seen[3]["set"], 2)
}

async fn nothing_pending<D: Driver>(lab: &Lab<D>) -> Outcome {
    let seen = lab
        .run("a", json!([host(), set("ttl", 60_000), schedule(json!({"delete": "ttl"})), "get_alarm"]))
        .await?;
    same("after the last was deleted", &seen[3], Value::Null)?;
    lab.run("a", json!([on_job("a", json!([])), put("a", json!({"at": 50}))])).await?;
    only(lab, "a").await?;
    is_bare(lab, "a").await?;
    // One that is nobody's comes, runs nothing, and is gone.
    lab.run("a", json!([{"set_alarm": 50}])).await?;
    lab.until("a", json!([{"sql": "SELECT count(*) FROM runs"}]), super::SOON, |wakes| *wakes == json!([2]))
        .await?;
    is_bare(lab, "a").await?;
    still(lab, "a", 1, 100).await
}

async fn delete_all<D: Driver>(lab: &Lab<D>) -> Outcome {
    let puts = [put("a", json!({"at": 300, "key": "one"})), set("ttl", 310), put("c", json!({"every": 300}))];
    lab.run("a", json!([host(), puts[0], puts[1], puts[2]])).await?;
    let seen = lab.run("a", json!(["delete_all", pending(), "get_alarm", check()])).await?;
    same("what is left", json!([seen[1], seen[2], seen[3]]), json!([[], null, false]))?;
    still(lab, "a", 0, 600).await?;
    // Nothing that the instance remembers is in the way.
    let seen = lab.run("a", json!([puts[0], "get_alarm", show("a")])).await?;
    same("the raw slot", &seen[1], &seen[2]["due"])?;
    only(lab, "a").await?;
    is_bare(lab, "a").await
}

async fn delete_all_in_job<D: Driver>(lab: &Lab<D>) -> Outcome {
    let puts = [put("a", json!({"at": 50})), put("b", json!({"at": 60})), put("c", json!({"every": 200}))];
    lab.run("a", json!([host(), on_job("a", json!(["delete_all"])), puts[0], puts[1], puts[2]])).await?;
    lab.until("a", json!([{"sql": "SELECT count(*) FROM script"}]), super::SOON, |left| *left == json!([0]))
        .await?;
    is_bare(lab, "a").await?;
    still(lab, "a", 0, 500).await?;
    let tables =
        json!({"sql": "SELECT count(*) FROM sqlite_master WHERE name LIKE '\\_schedule%' ESCAPE '\\'"});
    same("tables", ask(lab, "a", tables).await?, [0])
}

async fn set_after_delete_all<D: Driver>(lab: &Lab<D>) -> Outcome {
    let job = on_job("a", json!(["delete_all", set("ttl", 300)]));
    lab.run("a", json!([host(), job, put("a", json!({"at": 50})), put("b", json!({"at": 60}))])).await?;
    let told = only(lab, "a").await?;
    same("the run", &told.name, "ttl")?;
    holds(format!("{told:?}"), told.scheduled > 0 && number(&json!(told.attempt))? == 1)?;
    is_bare(lab, "a").await
}
