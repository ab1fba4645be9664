//! B13, B14: what a reset ends, and that stubs go on after it.

use super::told::{SOON, fails, go_on, gone, is_reset, until_told, waits};
use crate::testing::{
    case::{Case, Outcome, holds, same},
    driver::{Driver, Received},
    lab::{ClientExt, Lab},
    tasks::both,
};
use serde_json::{Value, json};
use std::time::Duration;

pub(super) fn cases<D: Driver>() -> Vec<Case<D>> {
    vec![
        Case::new("b13 a reset fails what is in flight with its reason", |lab| Box::pin(b13_in_flight(lab))),
        Case::new("b13 a reset loses memory and keeps writes", |lab| Box::pin(b13_reset(lab))),
        Case::new("b13 nothing runs after a reset", |lab| Box::pin(b13_nothing_after(lab))),
        Case::new("b13 a reset without a reason says that it was one", |lab| Box::pin(b13_no_reason(lab))),
        Case::new("b13 a reset ends background work", |lab| Box::pin(b13_background(lab))),
        Case::new("b13 a reset in background work resets the object", |lab| Box::pin(b13_by_background(lab))),
        Case::new("b13 a reset inside a gate resets the object", |lab| Box::pin(b13_in_gate(lab))),
        Case::new("b13 a reset in init fails the request that woke the object", |lab| {
            Box::pin(b13_in_init(lab))
        }),
        Case::new("b13 d25 a reset in a message handler loses all sockets", |lab| Box::pin(b13_message(lab))),
        Case::new("b13 e7 a reset in the alarm's run fails it, and it is tried again", |lab| {
            Box::pin(b13_alarm(lab))
        }),
        Case::new("b13 a reset keeps the alarm that is set", |lab| Box::pin(b13_keeps_alarm(lab))),
        Case::new("b13 a reset touches no other object", |lab| Box::pin(b13_others(lab))),
        Case::new("b14 a stub goes on working after a reset", |lab| Box::pin(b14_stub(lab))),
        Case::new("b14 a stub kept by the entry serves later requests, after a reset too", |lab| {
            Box::pin(b14_kept(lab))
        }),
        Case::new("b14 calls made at once on one stub fail with a reset each and alone", |lab| {
            Box::pin(b14_at_once(lab))
        }),
        Case::new("b14 an object goes on calling one that failed to construct", |lab| {
            Box::pin(b14_constructor(lab))
        }),
    ]
}

async fn b13_in_flight<D: Driver>(lab: &Lab<D>) -> Outcome {
    let waiting = |n: i64| {
        let call = lab.thrown("a", json!([{"add": 1}, {"sleep": 60_000}]));
        async move { call.await.map_err(|fault| fault.during(&n.to_string())) }
    };
    let called = json!([{"try": [{"call": [lab.name("a"), [{"add": 1}, {"sleep": 60_000}]]}]}]);
    let (all, reset) = both(both(both(waiting(1), waiting(2)), lab.last("b", called)), async {
        lab.begun("a", 3).await?;
        lab.thrown("a", json!([{"reset": "because é"}])).await
    })
    .await;
    let ((one, two), three) = all;
    let three = serde_json::from_value(three?["error"].clone())?;
    for thrown in [one?, two?, three, reset?] {
        is_reset(&thrown, "because é")?;
    }
    Ok(())
}

async fn b13_reset<D: Driver>(lab: &Lab<D>) -> Outcome {
    let before = lab.run("a", json!([{"note": "kept"}, {"add": 5}, "instance"])).await?;
    lab.thrown("a", json!([{"note": "too"}, {"reset": "because"}])).await?;
    let after = lab.run("a", json!([{"add": 0}, "instance", "boots"])).await?;
    same("memory and constructions", [&after[0], &after[2]], json!([0, 2]))?;
    holds("the instance is the same", before[2] != after[1])?;
    same("what was written before", lab.lines("a").await?, json!(["kept", "too"]))
}

async fn b13_nothing_after<D: Driver>(lab: &Lab<D>) -> Outcome {
    let other = lab.thrown("a", json!([until_told(lab, "c"), {"note": "another"}]));
    let (other, reset) = both(other, async {
        waits(lab, "c").await?;
        lab.thrown("a", json!([{"catch": [{"reset": "because"}]}, {"note": "after it"}])).await?;
        go_on(lab, "c").await
    })
    .await;
    reset?;
    is_reset(&other?, "because")?;
    same("what ran", lab.lines("a").await?, json!([]))
}

async fn b13_no_reason<D: Driver>(lab: &Lab<D>) -> Outcome {
    is_reset(&lab.thrown("a", json!([{"reset": ""}])).await?, "the object reset itself")
}

async fn b13_background<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.run("a", json!([{"wait_until": [until_told(lab, "c"), {"note": "background"}]}])).await?;
    waits(lab, "c").await?;
    gone(lab, "a").await?;
    go_on(lab, "c").await?;
    same("what ran", lab.lines("a").await?, json!([]))
}

async fn b13_by_background<D: Driver>(lab: &Lab<D>) -> Outcome {
    let steps =
        json!([{"add": 1}, {"wait_until": [{"sleep": 100}, {"reset": "because"}]}, {"sleep": 60_000}]);
    let (thrown, time) = both(lab.thrown("a", steps), lab.advance(Duration::from_millis(300))).await;
    time?;
    is_reset(&thrown?, "because")?;
    same("memory", lab.last("a", json!([{"add": 0}])).await?, 0)
}

async fn b13_in_gate<D: Driver>(lab: &Lab<D>) -> Outcome {
    let steps = json!([{"add": 1}, {"gate": [{"note": "kept"}, {"reset": "because"}]}, {"note": "after it"}]);
    is_reset(&lab.thrown("a", steps).await?, "because")?;
    same("memory", lab.last("a", json!([{"add": 0}])).await?, 0)?;
    same("what was written", lab.lines("a").await?, json!(["kept"]))
}

async fn b13_in_init<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.run("a", json!([{"on_new": [{"sleep": 1}, {"life": {"reset_times": 1}}]}])).await?;
    gone(lab, "a").await?;
    let (thrown, time) = both(lab.thrown("a", json!([])), lab.advance(Duration::from_millis(100))).await;
    time?;
    is_reset(&thrown?, "attempt 1")?;
    let (after, time) =
        both(lab.last("a", json!([{"add": 1}])), lab.advance(Duration::from_millis(100))).await;
    time?;
    same("after it", after?, 1)
}

async fn b13_message<D: Driver>(lab: &Lab<D>) -> Outcome {
    let (mut one, mut two) = (lab.open("a", &[]).await?, lab.open("a", &[]).await?);
    one.text(&json!([{"note": "kept"}, {"reset": "because"}]).to_string()).await?;
    one.hears("the one that told it", Received::Lost).await?;
    two.hears("the other one", Received::Lost).await?;
    let after = lab.run("a", json!(["events", {"count": "all"}])).await?;
    same("events and sockets", after, json!([[], 0]))?;
    same("what was written", lab.lines("a").await?, json!(["kept"]))
}

async fn b13_alarm<D: Driver>(lab: &Lab<D>) -> Outcome {
    let handler = json!([{"up_to_runs": [1, [{"reset": "because"}]]}]);
    lab.run("a", json!([{"on_alarm": handler}, {"set_alarm": 50}])).await?;
    let retries = json!([{"sql": "SELECT retries FROM runs ORDER BY rowid"}]);
    let two = |runs: &Value| runs.as_array().is_some_and(|runs| runs.len() >= 2);
    same("retries", lab.until_over_reset("a", retries, SOON, two).await?, json!([0, 1]))?;
    same("constructions", lab.last("a", json!(["boots"])).await?, 2)?;
    same("the slot", lab.last("a", json!(["get_alarm"])).await?, Value::Null)
}

async fn b13_keeps_alarm<D: Driver>(lab: &Lab<D>) -> Outcome {
    let set = lab.last("a", json!([{"set_alarm": 600_000}])).await?;
    gone(lab, "a").await?;
    same("the alarm", lab.last("a", json!(["get_alarm"])).await?, &set)?;
    lab.thrown("a", json!(["delete_alarm", {"set_alarm": 700_000}, {"reset": "because"}])).await?;
    let changed = lab.last("a", json!(["get_alarm"])).await?;
    holds(format!("the change is lost: {changed}"), changed.as_i64() > set.as_i64())
}

async fn b13_others<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut client = lab.open("b", &[]).await?;
    let before = client.steps(json!([{"add": 5}, "instance"])).await?;
    let slow = lab.run("b", json!([{"add": 1}, {"wait_for": 7}, "instance"]));
    let (slow, reset) = both(slow, async {
        lab.begun("b", 6).await?;
        gone(lab, "a").await?;
        lab.run("b", json!([{"add": 1}])).await?;
        lab.advance(Duration::from_millis(100)).await
    })
    .await;
    reset?;
    same("a request in flight", slow?, json!([6, null, before[1]]))?;
    same("its socket", client.steps(json!([{"add": 0}, "instance"])).await?, json!([7, before[1]]))
}

async fn b14_at_once<D: Driver>(lab: &Lab<D>) -> Outcome {
    let calls = json!([[{"add": 1}], [{"reset": "because"}], [{"sleep": 0}]]);
    let to = json!([{"life": {"calls": [lab.name("a"), calls]}}]);
    for _ in 0..2 {
        let seen = lab.last("b", to.clone()).await?;
        is_reset(&serde_json::from_value(seen[1]["error"].clone())?, "because")?;
        // Under way with it, or so much later that there is a new instance.
        match seen[2].get("error") {
            Some(error) => is_reset(&serde_json::from_value(error.clone())?, "because")?,
            None => same("the last", &seen[2], json!([null]))?,
        }
    }
    same("after it", lab.last("b", json!([{"call": [lab.name("a"), [{"add": 1}]]}])).await?, json!([1]))
}

async fn b14_constructor<D: Driver>(lab: &Lab<D>) -> Outcome {
    fails(lab, "a", 1, json!([])).await?;
    let first = lab.run_kept("a", json!([])).await?;
    same("the kind", &first["error"]["kind"], "Application")?;
    same("after it", lab.run_kept("a", json!([{"add": 1}])).await?, json!([1]))
}

async fn b14_stub<D: Driver>(lab: &Lab<D>) -> Outcome {
    let to = |steps: Value| json!([{"try": [{"call": [lab.name("a"), steps]}]}]);
    let failed = lab.last("b", to(json!([{"reset": "because"}]))).await?;
    same("the kind", &failed["error"]["kind"], json!("Reset"))?;
    let again = lab.last("b", to(json!([{"add": 1}]))).await?;
    same("after it", again, json!({"ok": [[1]]}))
}

async fn b14_kept<D: Driver>(lab: &Lab<D>) -> Outcome {
    for n in 1..4 {
        same("a kept stub", lab.run_kept("a", json!([{"add": 1}])).await?, json!([n]))?;
    }
    let failed = lab.run_kept("a", json!([{"reset": "because"}])).await?;
    same("the kind", &failed["error"]["kind"], json!("Reset"))?;
    same("after it", lab.run_kept("a", json!([{"add": 1}])).await?, json!([1]))
}
