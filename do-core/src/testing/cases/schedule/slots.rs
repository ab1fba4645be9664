//! A slot is an alarm scheduler: what the raw slot does by rules E1 to E5, each of many does.

use super::{
    BUSY, ask, get, host, is_bare, names, now, number, on_job, once, only, ran, schedule, set, set_at, still,
    up_to,
};
use crate::{
    limits,
    testing::{
        case::{Case, Outcome, holds, same},
        cases::alarms::{RETRY, SOON},
        driver::Driver,
        lab::Lab,
    },
};
use serde_json::{Value, json};
use std::time::Duration;

pub(super) fn cases<D: Driver>() -> Vec<Case<D>> {
    vec![
        Case::new("schedule a slot holds its time until its job runs, and then nothing", |lab| {
            Box::pin(holds_its_time(lab))
        }),
        Case::new("schedule a deleted slot does not run, and leaves no alarm", |lab| Box::pin(deleted(lab))),
        Case::new("schedule a sooner time of a slot replaces a later one", |lab| Box::pin(sooner(lab))),
        Case::new("schedule a later time of a slot replaces a sooner one", |lab| Box::pin(later(lab))),
        Case::new("schedule set_earlier moves a slot only earlier", |lab| Box::pin(earlier(lab))),
        Case::new("schedule a past time of a slot is now, and runs at once", |lab| Box::pin(past(lab))),
        Case::new("schedule the same time of a slot set twice is one run", |lab| Box::pin(twice(lab))),
        Case::new("schedule a slot is set at the call, not at the await", |lab| Box::pin(at_call(lab))),
        Case::new("schedule times that no slot can have are refused and change nothing", |lab| {
            Box::pin(refused(lab))
        }),
        Case::new("schedule a slot is empty within its run, for requests too", |lab| {
            Box::pin(empty_within(lab))
        }),
        Case::new("schedule a slot set in its own run survives it", |lab| Box::pin(survives(lab))),
        Case::new("schedule its own time set again in the run of a slot makes another run", |lab| {
            Box::pin(same_again(lab))
        }),
        Case::new("schedule a slot set to now in twenty runs makes twenty more", |lab| Box::pin(twenty(lab))),
        Case::new("schedule slots do not disturb each other", |lab| Box::pin(several(lab))),
        Case::new(
            "schedule a failed run of a slot is tried again as the platform does, in the same instance",
            |lab| Box::pin(retried(lab)),
        ),
        Case::new("schedule a slot that is deleted during back-off is not tried again", |lab| {
            Box::pin(deleted_in_back_off(lab))
        }),
    ]
}

async fn holds_its_time<D: Driver>(lab: &Lab<D>) -> Outcome {
    let seen = lab.run("a", json!([host(), get("ttl"), set("ttl", 300), get("ttl"), "get_alarm"])).await?;
    same("before", &seen[1], Value::Null)?;
    same("what it holds, and the raw slot", [&seen[3], &seen[4]], [&seen[2], &seen[2]])?;
    let told = only(lab, "a").await?;
    same("its time", told.scheduled, &seen[2])?;
    same("the run", json!([told.name, told.attempt, told.missed, told.last]), json!(["ttl", 1, 0, 0]))?;
    same("after", ask(lab, "a", get("ttl")).await?, Value::Null)?;
    is_bare(lab, "a").await
}

async fn deleted<D: Driver>(lab: &Lab<D>) -> Outcome {
    let delete = schedule(json!({"delete": "ttl"}));
    let seen = lab.run("a", json!([host(), set("ttl", 400), delete, get("ttl"), "get_alarm"])).await?;
    same("what it holds, and the raw slot", [&seen[3], &seen[4]], [&Value::Null, &Value::Null])?;
    lab.run("a", json!([delete])).await?;
    still(lab, "a", 0, 600).await
}

async fn sooner<D: Driver>(lab: &Lab<D>) -> Outcome {
    let seen = lab.run("a", json!([host(), set("ttl", 60_000), set("ttl", 200), get("ttl")])).await?;
    same("what it holds", &seen[3], &seen[2])?;
    same("its time", only(lab, "a").await?.scheduled, &seen[2])?;
    is_bare(lab, "a").await
}

async fn later<D: Driver>(lab: &Lab<D>) -> Outcome {
    let seen = lab.run("a", json!([host(), set("ttl", 200), set("ttl", 700), get("ttl")])).await?;
    same("what it holds", &seen[3], &seen[2])?;
    same("its time", only(lab, "a").await?.scheduled, &seen[2])
}

async fn earlier<D: Driver>(lab: &Lab<D>) -> Outcome {
    let set = |ms: i64| json!([schedule(json!({"set_earlier": ["ttl", ms]})), get("ttl")]);
    lab.run("a", json!([host()])).await?;
    let first = lab.run("a", set(60_000)).await?;
    same("empty: it is set", &first[1], &first[0])?;
    let later = lab.run("a", set(90_000)).await?;
    same("later: nothing changes", &later[1], &first[0])?;
    let sooner = lab.run("a", set(600)).await?;
    same("earlier: it is set", &sooner[1], &sooner[0])?;
    same("its time", only(lab, "a").await?.scheduled, &sooner[0])
}

async fn past<D: Driver>(lab: &Lab<D>) -> Outcome {
    let seen = lab.run("a", json!([host(), "now", set("ttl", -5_000), get("ttl")])).await?;
    holds(format!("held as {}, not as {}", seen[3], seen[1]), number(&seen[3])? >= number(&seen[1])?)?;
    let told = only(lab, "a").await?;
    holds(format!("{told:?} of {seen:?}"), told.scheduled >= number(&seen[1])?)
}

async fn twice<D: Driver>(lab: &Lab<D>) -> Outcome {
    let at = now(lab, "a").await? + BUSY;
    lab.run("a", json!([host(), set_at("ttl", at), {"sleep": 0}, set_at("ttl", at)])).await?;
    same("its time", only(lab, "a").await?.scheduled, at)?;
    still(lab, "a", 1, 600).await
}

async fn at_call<D: Driver>(lab: &Lab<D>) -> Outcome {
    let set = schedule(json!({"set_unawaited": ["ttl", 600]}));
    let seen = lab.run("a", json!([host(), set, get("ttl"), "get_alarm"])).await?;
    same("what it holds, and the raw slot", [&seen[2], &seen[3]], [&seen[1], &seen[1]])?;
    same("its time", only(lab, "a").await?.scheduled, &seen[1])
}

async fn refused<D: Driver>(lab: &Lab<D>) -> Outcome {
    let at = lab.last("a", json!([host(), set("ttl", 60_000)])).await?;
    for wrong in [0, -1, limits::ALARM_MAX_MS + 1, i64::MAX] {
        let refused = ask(lab, "a", json!({"try": [set_at("ttl", wrong)]})).await?;
        same(&wrong.to_string(), &refused["error"]["kind"], json!("Invalid"))?;
    }
    same("what it holds, and the raw slot", lab.run("a", json!([get("ttl"), "get_alarm"])).await?, [&at, &at])
}

async fn empty_within<D: Driver>(lab: &Lab<D>) -> Outcome {
    let job = json!([{"life": {"note_try": [get("ttl")]}}, {"add": 1}, {"wait_for": 2}]);
    lab.run("a", json!([host(), on_job("ttl", job), set("ttl", 50)])).await?;
    lab.until("a", json!([{"add": 0}]), SOON, |n| *n == json!(1)).await?;
    let seen = lab.run("a", json!([get("ttl"), super::show("ttl"), {"add": 1}])).await?;
    same("what a request sees", &seen[0], Value::Null)?;
    same("whether it runs", &seen[1]["running"], true)?;
    is_bare(lab, "a").await?;
    same("what its run saw", lab.lines("a").await?, json!([json!({"ok": [null]}).to_string()]))
}

async fn survives<D: Driver>(lab: &Lab<D>) -> Outcome {
    let again = json!([{"life": {"note_try": [set("ttl", 300), get("ttl")]}}]);
    lab.run("a", json!([host(), on_job("ttl", once(again)), set("ttl", 50)])).await?;
    let told = ran(lab, "a", 2, SOON).await?;
    let line = json!({"ok": [told[1].scheduled, told[1].scheduled]}).to_string();
    same("what was set and seen, and its time", lab.lines("a").await?, json!([line]))?;
    same("attempts", super::attempts(&told), [1, 1])?;
    is_bare(lab, "a").await
}

async fn same_again<D: Driver>(lab: &Lab<D>) -> Outcome {
    let at = now(lab, "a").await? + BUSY;
    let again = once(json!([set_at("ttl", at)]));
    lab.run("a", json!([host(), on_job("ttl", again), set_at("ttl", at)])).await?;
    let told = ran(lab, "a", 2, SOON).await?;
    same("the first", told[0].scheduled, at)?;
    same("attempts", super::attempts(&told), [1, 1])?;
    still(lab, "a", 2, 200).await?;
    is_bare(lab, "a").await
}

async fn twenty<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.run("a", json!([host(), on_job("ttl", up_to(20, json!([set("ttl", 0)]))), set("ttl", 50)])).await?;
    ran(lab, "a", 21, SOON).await?;
    is_bare(lab, "a").await?;
    still(lab, "a", 21, 100).await
}

async fn several<D: Driver>(lab: &Lab<D>) -> Outcome {
    let slots = [set("beat", 700), set("ttl", 300), set("sweep", 60_000), get("sweep"), json!("get_alarm")];
    let seen = lab.run("a", json!([host(), slots[0], slots[1], slots[2], slots[3], slots[4]])).await?;
    same("the raw slot is the soonest", &seen[5], &seen[2])?;
    let told = ran(lab, "a", 2, SOON).await?;
    same("the order", names(&told), ["ttl", "beat"])?;
    same("their times", json!([told[0].scheduled, told[1].scheduled]), json!([seen[2], seen[1]]))?;
    super::is_armed(lab, "a", &seen[3]).await?;
    same("the third", ask(lab, "a", get("sweep")).await?, &seen[3])?;
    lab.run("a", json!([schedule(json!({"delete": "sweep"}))])).await?;
    is_bare(lab, "a").await
}

async fn retried<D: Driver>(lab: &Lab<D>) -> Outcome {
    let fails = once(json!([{"note": "kept"}, {"add": 1}, {"fail": "the first run"}]));
    let seen = lab.run("a", json!([host(), on_job("ttl", fails), "instance", set("ttl", 50)])).await?;
    ran(lab, "a", 1, SOON).await?;
    let held = lab.until("a", json!([get("ttl")]), SOON, |held| !held.is_null()).await?;
    same("what it holds during back-off", held, &seen[3])?;
    let told = ran(lab, "a", 2, RETRY).await?;
    same("attempts", super::attempts(&told), [1, 2])?;
    same("its times", json!([told[0].scheduled, told[1].scheduled]), json!([seen[3], seen[3]]))?;
    let gap = told[1].at - told[0].at;
    holds(format!("the gap is {gap} ms"), (2_000..6_000).contains(&gap))?;
    same("instance and memory", lab.run("a", json!(["instance", {"add": 0}])).await?, json!([seen[2], 1]))?;
    same("what was written", lab.lines("a").await?, json!(["kept"]))?;
    is_bare(lab, "a").await
}

async fn deleted_in_back_off<D: Driver>(lab: &Lab<D>) -> Outcome {
    let fails = on_job("ttl", json!([{"fail": "always"}]));
    lab.run("a", json!([host(), fails, set("ttl", 50)])).await?;
    ran(lab, "a", 1, SOON).await?;
    lab.until("a", json!([get("ttl")]), Duration::from_secs(1), |held| !held.is_null()).await?;
    lab.run("a", json!([schedule(json!({"delete": "ttl"}))])).await?;
    is_bare(lab, "a").await?;
    still(lab, "a", 1, 3_500).await
}
