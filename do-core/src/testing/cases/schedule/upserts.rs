//! Putting what is pending already: what begins anew and what stays.

use super::{ask, host, is_bare, now, on_job, only, pending, put, ran, schedule, show, still};
use crate::testing::{
    case::{Case, Outcome, holds, same},
    cases::alarms::SOON,
    driver::Driver,
    lab::Lab,
};
use serde_json::{Value, json};
use std::time::Duration;

pub(super) fn cases<D: Driver>() -> Vec<Case<D>> {
    vec![
        Case::new("schedule the same interval put again keeps the next tick", |lab| {
            Box::pin(same_interval(lab))
        }),
        Case::new("schedule another interval or anchor begins anew", |lab| Box::pin(other_interval(lab))),
        Case::new("schedule another payload, retry or limit keeps the next tick", |lab| {
            Box::pin(other_terms(lab))
        }),
        Case::new("schedule the same plan put again during back-off keeps the retry", |lab| {
            Box::pin(during_back_off(lab))
        }),
        Case::new("schedule another time of a job replaces it", |lab| Box::pin(other_time(lab))),
        Case::new("schedule a recurring job becomes one that runs once, and the other way round", |lab| {
            Box::pin(other_kind(lab))
        }),
        Case::new(
            "schedule a key that was put before changes nothing, also after its job ran or was cancelled",
            |lab| Box::pin(keys(lab)),
        ),
        Case::new("schedule the latest thousand keys are remembered", |lab| Box::pin(many_keys(lab))),
        Case::new(
            "e13 schedule: a transaction that is rolled back undoes what it put, and its alarm",
            |lab| Box::pin(rolled_back(lab)),
        ),
        Case::new("c6 schedule: a failed commit undoes what it put, and its alarm", |lab| {
            Box::pin(failed_commit(lab))
        }),
    ]
}

/// Puts one plan and then another, some time later: what was pending under the name.
async fn puts<D: Driver>(
    lab: &Lab<D>,
    object: &str,
    one: Value,
    two: Value,
) -> Result<[Value; 2], super::Fault> {
    let before = lab.last(object, json!([host(), put("a", one), show("a")])).await?;
    lab.advance(Duration::from_millis(60)).await?;
    Ok([before, lab.last(object, json!([put("a", two), show("a")])).await?])
}

async fn same_interval<D: Driver>(lab: &Lab<D>) -> Outcome {
    for (object, plan) in [
        ("a", json!({"every": 60_000})),
        (
            "b",
            json!({"every": 60_000, "anchor": 5, "payload": [1], "retry": [3, 100], "missed": {"catch_up": 2}}),
        ),
    ] {
        let [before, after] = puts(lab, object, plan.clone(), plan.clone()).await?;
        same("what is pending", after, before)?;
        let cost = schedule(json!({"cost": [put("a", plan)]}));
        let cost = ask(lab, object, cost).await?;
        same("alarms set, and rows written", json!([cost["set"], cost["written"]]), json!([0, 0]))?;
    }
    Ok(())
}

async fn other_interval<D: Driver>(lab: &Lab<D>) -> Outcome {
    let [before, after] = puts(lab, "a", json!({"every": 60_000}), json!({"every": 60_001})).await?;
    let later = super::number(&after["scheduled"])? - super::number(&before["scheduled"])?;
    holds(format!("begins {later} ms later"), later > 50)?;
    let [_, after] = puts(lab, "b", json!({"every": 60_000}), json!({"every": 60_000, "anchor": 7})).await?;
    same("of the anchor", super::number(&after["scheduled"])? % 60_000, 7)
}

async fn other_terms<D: Driver>(lab: &Lab<D>) -> Outcome {
    let others = [
        json!({"payload": "new"}),
        json!({"retry": [2, 100]}),
        json!({"limit": 100}),
        json!({"missed": {"skip": 5}}),
    ];
    for (n, other) in others.into_iter().enumerate() {
        let mut plan = json!({"every": 60_000, "payload": "old"});
        let before = plan.clone();
        if let (Some(plan), Some(other)) = (plan.as_object_mut(), other.as_object()) {
            plan.extend(other.clone());
        }
        let [before, after] = puts(lab, &n.to_string(), before, plan.clone()).await?;
        same(&plan.to_string(), &after["scheduled"], &before["scheduled"])?;
        same("the payload", &after["payload"], &plan["payload"])?;
    }
    Ok(())
}

async fn during_back_off<D: Driver>(lab: &Lab<D>) -> Outcome {
    for object in ["once", "recurs"] {
        let at = now(lab, object).await? + super::BUSY;
        let plan = match object {
            "once" => json!({"on": at, "retry": [3, 60_000]}),
            _ => json!({"every": 86_400_000, "anchor": at, "retry": [3, 60_000]}),
        };
        let fails = on_job("a", json!([{"fail": "no"}]));
        lab.run(object, json!([host(), fails, put("a", plan.clone())])).await?;
        only(lab, object).await?;
        let waits = |shown: &Value| shown["running"] == json!(false);
        let before = lab.until(object, json!([show("a")]), SOON, waits).await?;
        same("attempts", &before["attempts"], 1)?;
        let after = lab.last(object, json!([put("a", plan), show("a")])).await?;
        same(object, after, before)?;
    }
    Ok(())
}

async fn other_time<D: Driver>(lab: &Lab<D>) -> Outcome {
    let [_, after] = puts(lab, "a", json!({"at": 60_000}), json!({"at": 200})).await?;
    same("its time", only(lab, "a").await?.scheduled, &after["due"])?;
    is_bare(lab, "a").await?;
    let [_, after] = puts(lab, "b", json!({"at": 3_000}), json!({"at": 3_500})).await?;
    same("its time", only(lab, "b").await?.scheduled, &after["due"])?;
    is_bare(lab, "b").await
}

async fn other_kind<D: Driver>(lab: &Lab<D>) -> Outcome {
    let [_, after] = puts(lab, "a", json!({"every": 60_000, "payload": 1}), json!({"at": 200})).await?;
    same("recurs", json!([after["recurs"], after["payload"]]), json!([false, null]))?;
    only(lab, "a").await?;
    is_bare(lab, "a").await?;
    let [_, after] = puts(lab, "b", json!({"at": 3_000}), json!({"every": 60_000})).await?;
    same("recurs", &after["recurs"], true)?;
    still(lab, "b", 0, 3_300).await
}

async fn keys<D: Driver>(lab: &Lab<D>) -> Outcome {
    let keyed = |name: &str, at: i64, payload: i64| {
        put(name, json!({"at": at, "payload": payload, "key": format!("request {name}")}))
    };
    let seen = lab
        .run("a", json!([host(), keyed("a", 200, 1), show("a"), keyed("a", 60_000, 2), show("a")]))
        .await?;
    same("while it is pending", &seen[4], &seen[2])?;
    only(lab, "a").await?;
    is_bare(lab, "a").await?;
    lab.run("a", json!([keyed("a", 0, 3)])).await?;
    is_bare(lab, "a").await?;
    lab.run("a", json!([keyed("b", 60_000, 1), schedule(json!({"cancel": "b"})), keyed("b", 60_000, 2)]))
        .await?;
    is_bare(lab, "a").await?;
    still(lab, "a", 1, 200).await?;
    // Another key, or none, is another request.
    lab.run("a", json!([put("a", json!({"at": 0, "key": "another"})), put("b", json!({"at": 0}))])).await?;
    ran(lab, "a", 3, SOON).await.map(drop)
}

async fn many_keys<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.run("a", json!([host()])).await?;
    let keyed = |n: usize| put("a", json!({"at": 60_000 + n, "key": format!("key {n}")}));
    for hundred in 0..10 {
        let steps: Vec<_> = (hundred * 100..hundred * 100 + 100).map(keyed).collect();
        lab.run("a", json!(steps)).await?;
    }
    let count = json!({"sql": "SELECT count(*) FROM _schedule_keys"});
    same("how many", ask(lab, "a", count.clone()).await?, [1_000])?;
    let cancelled = schedule(json!({"cancel": "a"}));
    let seen = lab
        .run(
            "a",
            json!([
                cancelled,
                keyed(0),
                pending(),
                keyed(1_000),
                pending(),
                cancelled,
                keyed(0),
                pending(),
                count
            ]),
        )
        .await?;
    same("one that is remembered", &seen[2], json!([]))?;
    same("a new one", seen[4].as_array().map(Vec::len), 1)?;
    same("the oldest is forgotten", seen[7].as_array().map(Vec::len), 1)?;
    same("how many", &seen[8], [1_000])
}

async fn rolled_back<D: Driver>(lab: &Lab<D>) -> Outcome {
    let undone = json!({"catch": [{"transaction": [put("a", json!({"at": 200})), super::set("ttl", 200), {"fail": "undo"}]}]});
    let seen = lab.run("a", json!([host(), undone, pending(), "get_alarm"])).await?;
    same("what is left", json!([seen[1], seen[2], seen[3]]), json!(["undo", [], null]))?;
    let seen = lab.run("a", json!([put("b", json!({"at": 60_000})), undone, pending(), "get_alarm"])).await?;
    same("the raw slot", &seen[3], &seen[2][0]["due"])?;
    // Whatever was noted of the alarm is undone as well: the same again takes effect.
    lab.run("a", json!([{"transaction": [put("a", json!({"at": 200}))]}])).await?;
    only(lab, "a").await.map(drop)
}

async fn failed_commit<D: Driver>(lab: &Lab<D>) -> Outcome {
    let breaks = json!({"sql": "INSERT INTO child VALUES (99)"});
    lab.run("a", json!([host()])).await?;
    lab.thrown("a", json!([put("a", json!({"at": 100})), breaks])).await?;
    same("what is left", lab.run("a", json!([pending(), "get_alarm"])).await?, json!([[], null]))?;
    still(lab, "a", 0, 300).await?;
    lab.run("a", json!([put("a", json!({"at": 100}))])).await?;
    only(lab, "a").await.map(drop)
}
