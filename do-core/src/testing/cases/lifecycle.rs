//! B: how instances come, stay and go.

use crate::testing::{
    case::{Case, Fault, Outcome, holds, same},
    driver::Driver,
    lab::Lab,
    tasks::both,
};
use serde_json::{Value, json};
use std::time::Duration;

pub(super) fn cases<D: Driver>() -> Vec<Case<D>> {
    vec![
        Case::new("b2 an evicted object loses its memory and keeps its data", |lab| {
            Box::pin(b2_evicted(lab))
        })
        .evicts(),
        Case::new("b2 an idle object leaves memory after ten seconds", |lab| Box::pin(b2_idle(lab))).long(),
        Case::new(
            "b7 a failed constructor fails its request alone and the next one constructs again",
            |lab| Box::pin(b7_constructor(lab)),
        ),
        Case::new("b8 a closed gate holds back requests and gives its value", |lab| Box::pin(b8_gate(lab))),
        Case::new("b8 init in the constructor holds back the first request", |lab| Box::pin(b8_init(lab))),
        Case::new("b9 a failing gate resets the object although the error is caught", |lab| {
            Box::pin(b9_failing_gate(lab))
        }),
        Case::new("b10 gates nested deeper than 64 reset the object", |lab| Box::pin(b10_depth(lab))),
        Case::new("b11 c5 an error keeps memory and the writes before it", |lab| Box::pin(b11_error(lab))),
        Case::new("b12 an error crosses a stub with its name and message", |lab| Box::pin(b12_error(lab))),
        Case::new("b13 a reset fails what is in flight, loses memory and keeps writes", |lab| {
            Box::pin(b13_reset(lab))
        }),
        Case::new("b14 a stub goes on working after a reset", |lab| Box::pin(b14_stub(lab))),
        Case::new("b14 a stub kept by the entry serves later requests, after a reset too", |lab| {
            Box::pin(b14_kept(lab))
        }),
        Case::new("b15 failing background work is nobody's error", |lab| Box::pin(b15_background(lab))),
    ]
}

async fn b2_evicted<D: Driver>(lab: &Lab<D>) -> Outcome {
    let before = lab.run("a", json!([{"add": 5}, {"sql": "INSERT INTO n VALUES (5)"}, "instance"])).await?;
    lab.evict().await?;
    let after = lab.run("a", json!([{"add": 0}, {"sql": "SELECT n FROM n"}, "instance", "boots"])).await?;
    same("memory and data", &after[..2], [json!(0), json!([5])])?;
    holds("the instance is the same", before[2] != after[2])?;
    same("constructions", &after[3], json!(2))
}

async fn b2_idle<D: Driver>(lab: &Lab<D>) -> Outcome {
    // workerd counts the ten seconds from when it last looked at the clock, which it does rarely while all the cases
    // begin at once.
    lab.advance(Duration::from_secs(8)).await?;
    let before = lab.last("a", json!(["instance"])).await?;
    lab.advance(Duration::from_millis(8_500)).await?;
    same("after 8.5 s", lab.last("a", json!(["instance"])).await?, &before)?;
    lab.advance(Duration::from_millis(11_500)).await?;
    holds("the instance is the same", lab.last("a", json!(["instance"])).await? != before)
}

async fn b7_constructor<D: Driver>(lab: &Lab<D>) -> Outcome {
    let now = lab.last("a", json!(["now"])).await?.as_i64().unwrap_or_default();
    let fail_for = |ms| json!([{"note": "kept"}, {"on_new": [{"fail_before": now.saturating_add(ms)}]}]);
    lab.run("a", fail_for(3_600_000)).await?;
    lab.thrown("a", json!([{"reset": "to be constructed again"}])).await?;
    let (one, two) = (lab.thrown("a", json!([])).await?, lab.thrown("a", json!([])).await?);
    for thrown in [&one, &two] {
        holds(format!("{thrown:?}"), thrown.message.starts_with("too early, attempt "))?;
    }
    holds("one attempt for two requests", one.message != two.message)?;
    // Another one, so that nothing depends on how long the requests above took.
    lab.run("b", fail_for(2_000)).await?;
    lab.thrown("b", json!([{"reset": "to be constructed again"}])).await?;
    drop(lab.answer("b", json!([])).await?);
    lab.advance(Duration::from_millis(2_500)).await?;
    same("what was written before", lab.lines("b").await?, json!(["kept"]))
}

async fn b8_gate<D: Driver>(lab: &Lab<D>) -> Outcome {
    // The turn that asks goes on to its end.
    let gate = json!([{"gate_detached": [{"sleep": 300}, {"note": "gate"}]}, {"note": "first"}]);
    lab.run("a", gate).await?;
    let second = lab.run("a", json!([{"note": "second"}]));
    let (second, time) = both(second, async {
        lab.advance(Duration::from_millis(200)).await?;
        lab.advance(Duration::from_millis(300)).await
    })
    .await;
    second.and(time)?;
    same("the order", lab.lines("a").await?, json!(["first", "gate", "second"]))?;
    let (value, time) = both(lab.last("a", json!([{"gate": [{"sleep": 50}, {"add": 3}]}])), async {
        lab.advance(Duration::from_millis(200)).await
    })
    .await;
    time?;
    same("its value", value?, json!([null, 3]))
}

async fn b8_init<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.run("a", json!([{"on_new": [{"sleep": 200}, {"add": 10}]}])).await?;
    lab.thrown("a", json!([{"reset": "to be constructed again"}])).await?;
    let (value, time) =
        both(lab.last("a", json!([{"add": 1}])), async { lab.advance(Duration::from_millis(300)).await })
            .await;
    time?;
    same("the number in memory", value?, json!(11))
}

async fn b9_failing_gate<D: Driver>(lab: &Lab<D>) -> Outcome {
    let before = lab.run("a", json!([{"add": 1}, {"note": "kept"}, "instance"])).await?;
    let thrown = lab.thrown("a", json!([{"catch": [{"gate": [{"fail": "the gate fails"}]}]}])).await?;
    holds(format!("{thrown:?}"), thrown.message.contains("the gate fails"))?;
    same("the kind", thrown.kind, "Reset")?;
    let after = lab.run("a", json!([{"add": 0}, "instance"])).await?;
    same("memory", &after[0], json!(0))?;
    holds("the instance is the same", before[2] != after[1])?;
    same("what was written before", lab.lines("a").await?, json!(["kept"]))
}

async fn b11_error<D: Driver>(lab: &Lab<D>) -> Outcome {
    let before = lab.last("a", json!(["instance"])).await?;
    let thrown = lab.thrown("a", json!([{"add": 3}, {"note": "written"}, {"fail": "no"}])).await?;
    same("the text", thrown.message, "no")?;
    let after = lab.run("a", json!([{"add": 0}, "instance"])).await?;
    same("memory and instance", after, [json!(3), before])?;
    same("what was written", lab.lines("a").await?, json!(["written"]))
}

async fn b12_error<D: Driver>(lab: &Lab<D>) -> Outcome {
    let cases = [
        (json!({"fail": "as told é"}), "Application", "Error", "as told é"),
        (json!("fail_typed"), "Application", "ProbeError", "the probe was told to fail"),
        (json!({"set_alarm_at": 0}), "Invalid", "Error", ""),
    ];
    for (step, kind, name, message) in cases {
        // To the entry, and to another object.
        let direct = lab.thrown("a", json!([step])).await?;
        let called = lab.last("b", json!([{"try": [{"call": [lab.name("a"), [step]]}]}])).await?;
        let called = serde_json::from_value(called["error"].clone())?;
        for thrown in [direct, called] {
            let what = format!("{thrown:?}");
            same(&what, (thrown.kind.as_str(), thrown.name.as_str()), (kind, name))?;
            holds(&what, message.is_empty() || thrown.message == message)?;
            same(&what, (thrown.remote, thrown.retryable, thrown.overloaded), (true, false, false))?;
        }
    }
    Ok(())
}

async fn b13_reset<D: Driver>(lab: &Lab<D>) -> Outcome {
    let before = lab.run("a", json!([{"note": "kept"}, "instance"])).await?;
    let waiting = lab.thrown("a", json!([{"add": 1}, {"sleep": 60_000}]));
    let (waiting, reset) = both(waiting, async {
        lab.begun("a", 1).await?;
        lab.thrown("a", json!([{"note": "too"}, {"reset": "because"}])).await
    })
    .await;
    for thrown in [waiting?, reset?] {
        let what = format!("{thrown:?}");
        same(&what, (thrown.kind.as_str(), thrown.message.as_str()), ("Reset", "because"))?;
        holds(what, thrown.indefinite)?;
    }
    let after = lab.run("a", json!([{"add": 0}, "instance"])).await?;
    same("memory", &after[0], json!(0))?;
    holds("the instance is the same", before[1] != after[1])?;
    same("what was written before", lab.lines("a").await?, json!(["kept", "too"]))
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

async fn b10_depth<D: Driver>(lab: &Lab<D>) -> Outcome {
    let before = lab.run("a", json!([{"nest": 64}, {"add": 5}, "instance"])).await?;
    let thrown = lab.thrown("a", json!([{"nest": 65}])).await?;
    same("the kind", thrown.kind, "Reset")?;
    same(
        "the text",
        thrown.message,
        "block_concurrency_while is nested deeper than 64: the object is reset",
    )?;
    let after = lab.run("a", json!([{"add": 0}, "instance"])).await?;
    same("its memory", &after[0], json!(0))?;
    holds("the instance is the same", after[1] != before[2])
}

async fn b15_background<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.run("a", json!([{"add": 1}, {"wait_until": [{"note": "begun"}, {"fail": "unseen"}]}])).await?;
    let memory = lab.last("a", json!([{"add": 0}])).await?;
    same("memory", memory, json!(1))?;
    let lines = lab.lines("a").await?;
    if lines == json!(["begun"]) { Ok(()) } else { Err(Fault::new(format!("it did not run: {lines}"))) }
}
