//! B7, B11, B12, B15: errors of constructors and handlers, and what a caller sees of them.

use super::told::{SOON, fails, gone, is_reset};
use crate::testing::{
    case::{Case, Fault, Outcome, holds, same},
    driver::{Driver, Received},
    lab::{ClientExt, Lab},
    tasks::both,
    thrown::Thrown,
};
use serde_json::{Value, json};
use std::time::Duration;

pub(super) fn cases<D: Driver>() -> Vec<Case<D>> {
    [failing_constructors(), failures()].into_iter().flatten().collect()
}

fn failing_constructors<D: Driver>() -> Vec<Case<D>> {
    vec![
        Case::new("b7 two requests are two attempts to construct", |lab| Box::pin(b7_attempts(lab))),
        Case::new("b7 the caller of a failed constructor gets its error", |lab| Box::pin(b7_error(lab))),
        Case::new("b7 an object caller of a failed constructor gets its error", |lab| {
            Box::pin(b7_called(lab))
        }),
        Case::new("b7 a constructor that failed for a while is followed by one that does not", |lab| {
            Box::pin(b7_recovers(lab))
        }),
        Case::new("b7 what a failed constructor wrote is undone", |lab| Box::pin(b7_undone(lab))),
        Case::new("b7 d28 sockets are lost without an event when the constructor fails on waking", |lab| {
            Box::pin(b7_sockets(lab))
        })
        .evicts(),
        Case::new("b9 init that fails resets, and the next request tries it again", |lab| {
            Box::pin(b9_init(lab))
        }),
        Case::new("b9 all that waited for an init that fails get its error", |lab| Box::pin(b9_waiting(lab))),
    ]
}

fn failures<D: Driver>() -> Vec<Case<D>> {
    vec![
        Case::new("b11 c5 an error of a request keeps memory and the writes before it", |lab| {
            Box::pin(b11_error(lab))
        }),
        Case::new("b11 an error of a message handler keeps memory, writes and socket", |lab| {
            Box::pin(b11_message(lab))
        }),
        Case::new("b11 an error of the alarm keeps memory and writes", |lab| Box::pin(b11_alarm(lab))),
        Case::new("b12 an error crosses a stub with its name and message", |lab| Box::pin(b12_error(lab))),
        Case::new("b12 every kind of error crosses a stub with what it tells", |lab| {
            Box::pin(b12_kinds(lab))
        }),
        Case::new("b12 an error crosses from object to object to the entry", |lab| Box::pin(b12_hops(lab))),
        Case::new("b12 the code of an SQL error crosses stubs", |lab| Box::pin(b12_sql(lab))),
        Case::new("b12 the text of an error crosses whatever it is", |lab| Box::pin(b12_texts(lab))),
        Case::new("b15 failing background work is nobody's error", |lab| Box::pin(b15_background(lab))),
    ]
}

async fn b7_attempts<D: Driver>(lab: &Lab<D>) -> Outcome {
    fails(lab, "a", 2, json!([])).await?;
    for text in ["attempt 1", "attempt 2"] {
        same("the attempt", lab.thrown("a", json!([])).await?.message, text)?;
    }
    same("constructions", lab.last("a", json!(["boots"])).await?, 2)
}

async fn b7_error<D: Driver>(lab: &Lab<D>) -> Outcome {
    let cases = [
        ("a", json!({"fail": "no é"}), ("Application", "Error", "no é", false)),
        ("b", json!("fail_typed"), ("Application", "ProbeError", "the probe was told to fail", false)),
        ("c", json!({"life": {"fail_kind": ["Limit", "too much"]}}), ("Limit", "Error", "too much", false)),
        ("d", json!({"life": {"fail_kind": ["Transient", "later"]}}), ("Transient", "Error", "later", true)),
    ];
    for (object, step, expected) in cases {
        lab.run(object, json!([{"on_new": [step]}])).await?;
        gone(lab, object).await?;
        for _ in 0..2 {
            let thrown = lab.thrown(object, json!([])).await?;
            let seen = (&*thrown.kind, &*thrown.name, &*thrown.message, thrown.retryable);
            same(&format!("{thrown:?}"), seen, expected)?;
            same("remote", thrown.remote, true)?;
        }
    }
    Ok(())
}

async fn b7_called<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.run("a", json!([{"on_new": ["fail_typed"]}])).await?;
    gone(lab, "a").await?;
    let direct = lab.thrown("a", json!([])).await?;
    for _ in 0..2 {
        let called = lab.last("b", json!([{"try": [{"call": [lab.name("a"), []]}]}])).await?;
        same("the error", &called["error"], &direct)?;
    }
    Ok(())
}

async fn b7_recovers<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.run("a", json!([{"note": "kept"}])).await?;
    fails(lab, "a", 1, json!([])).await?;
    lab.thrown("a", json!([])).await?;
    let after = lab.run("a", json!(["boots", {"sql": "SELECT line FROM log"}])).await?;
    same("constructions, and what was written before", after, json!([2, ["kept"]]))
}

async fn b7_undone<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.run("a", json!([{"note": "kept"}])).await?;
    fails(lab, "a", 2, json!([{"note": "half"}, {"set_alarm": 600_000}])).await?;
    for _ in 0..2 {
        lab.thrown("a", json!([])).await?;
    }
    // The construction that succeeds runs the same steps.
    same("what was written", lab.lines("a").await?, json!(["kept", "half"]))
}

async fn b7_sockets<D: Driver>(lab: &Lab<D>) -> Outcome {
    let (mut one, mut two) = (lab.open("a", &[]).await?, lab.open("a", &[]).await?);
    lab.run("a", json!([{"on_new": [{"life": {"fail_times": 1}}]}])).await?;
    lab.evict().await?;
    one.text("wake up").await?;
    one.hears("the one that woke it", Received::Lost).await?;
    two.hears("the other one", Received::Lost).await?;
    let after = lab.run("a", json!([{"count": "all"}, "events", "boots"])).await?;
    same("sockets, events and constructions", after, json!([0, [], 2]))
}

async fn b9_init<D: Driver>(lab: &Lab<D>) -> Outcome {
    fails(lab, "a", 2, json!([{"sleep": 1}])).await?;
    let time = || lab.advance(Duration::from_millis(100));
    for text in ["attempt 1", "attempt 2"] {
        let (thrown, time) = both(lab.thrown("a", json!([])), time()).await;
        time?;
        is_reset(&thrown?, text)?;
    }
    let (after, time) = both(lab.last("a", json!([{"add": 1}])), time()).await;
    time?;
    same("memory after it", after?, 1)
}

async fn b9_waiting<D: Driver>(lab: &Lab<D>) -> Outcome {
    fails(lab, "a", 100, json!([{"sleep": 1_000}])).await?;
    let call = || lab.thrown("a", json!([]));
    let ((one, two), time) = both(both(call(), call()), lab.advance(Duration::from_millis(2_500))).await;
    time?;
    let (one, two) = (one?, two?);
    is_reset(&one, &two.message)?;
    is_reset(&one, "attempt 1")
}

async fn b11_message<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut client = lab.open("a", &[]).await?;
    let before = client.steps(json!([{"add": 3}, "instance"])).await?;
    client.text(&json!([{"add": 1}, {"note": "written"}, {"fail": "no"}]).to_string()).await?;
    same("memory and instance", client.steps(json!([{"add": 0}, "instance"])).await?, json!([4, before[1]]))?;
    same("what was written", lab.lines("a").await?, json!(["written"]))
}

async fn b11_alarm<D: Driver>(lab: &Lab<D>) -> Outcome {
    let handler = json!([{"up_to_runs": [1, [{"add": 1}, {"note": "written"}, {"fail": "no"}]]}]);
    let before =
        lab.run("a", json!([{"add": 3}, "instance", {"on_alarm": handler}, {"set_alarm": 50}])).await?;
    let runs = json!([{"sql": "SELECT count(*) FROM runs"}]);
    lab.until("a", runs, SOON, |runs| runs[0].as_i64() >= Some(1)).await?;
    same("memory and instance", lab.run("a", json!([{"add": 0}, "instance"])).await?, json!([4, before[1]]))?;
    same("what was written", lab.lines("a").await?, json!(["written"]))
}

/// What an error is to the entry, and to another object.
async fn both_ways<D: Driver>(lab: &Lab<D>, steps: Value) -> Result<[Thrown; 2], Fault> {
    let direct = lab.thrown("a", steps.clone()).await?;
    let called = lab.last("b", json!([{"try": [{"call": [lab.name("a"), steps]}]}])).await?;
    Ok([direct, serde_json::from_value(called["error"].clone())?])
}

async fn b12_error<D: Driver>(lab: &Lab<D>) -> Outcome {
    let cases = [
        (json!({"fail": "as told é"}), "Application", "Error", "as told é"),
        (json!("fail_typed"), "Application", "ProbeError", "the probe was told to fail"),
        (json!({"set_alarm_at": 0}), "Invalid", "Error", ""),
    ];
    for (step, kind, name, message) in cases {
        for thrown in both_ways(lab, json!([step])).await? {
            let what = format!("{thrown:?}");
            same(&what, (thrown.kind.as_str(), thrown.name.as_str()), (kind, name))?;
            holds(&what, message.is_empty() || thrown.message == message)?;
            same(&what, (thrown.remote, thrown.retryable, thrown.overloaded), (true, false, false))?;
        }
    }
    Ok(())
}

async fn b12_kinds<D: Driver>(lab: &Lab<D>) -> Outcome {
    // Retryable, overloaded, indefinite.
    let cases = [
        ("Invalid", (false, false, false)),
        ("Limit", (false, false, false)),
        ("NotFound", (false, false, false)),
        ("NotInEvent", (false, false, false)),
        ("Closed", (false, false, false)),
        ("Sql", (false, false, false)),
        ("Application", (false, false, false)),
        ("Reset", (true, false, true)),
        ("Transient", (true, false, true)),
        ("Overloaded", (false, true, false)),
        ("Deadline", (false, false, true)),
        ("Shutdown", (false, false, false)),
        ("Platform", (false, false, false)),
    ];
    for (kind, flags) in cases {
        for thrown in both_ways(lab, json!([{"life": {"fail_kind": [kind, "as told"]}}])).await? {
            let what = format!("{thrown:?}");
            same(&what, (&*thrown.kind, &*thrown.name, &*thrown.message), (kind, "Error", "as told"))?;
            same(&what, (thrown.retryable, thrown.overloaded, thrown.indefinite), flags)?;
            same(&what, (thrown.remote, thrown.sql_code), (true, Value::Null))?;
        }
    }
    same("the object goes on", lab.last("a", json!(["boots"])).await?, 1)
}

async fn b12_hops<D: Driver>(lab: &Lab<D>) -> Outcome {
    for step in [
        json!("fail_typed"),
        json!({"life": {"fail_kind": ["Overloaded", "full"]}}),
        json!({"reset": "because"}),
    ] {
        let direct = lab.thrown("a", json!([step])).await?;
        let over_two = json!([{"call": [lab.name("b"), [{"call": [lab.name("a"), [step]]}]]}]);
        same("over two objects", lab.thrown("c", over_two).await?, &direct)?;
    }
    same("the objects between", lab.last("b", json!(["boots"])).await?, 1)
}

async fn b12_sql<D: Driver>(lab: &Lab<D>) -> Outcome {
    let twice = json!([{"sql": "INSERT INTO parent VALUES (1)"}, {"sql": "INSERT INTO parent VALUES (1)"}]);
    for thrown in both_ways(lab, twice).await? {
        let what = format!("{thrown:?}");
        same(&what, (&*thrown.kind, thrown.remote), ("Sql", true))?;
        same(&what, thrown.sql_code, "SQLITE_CONSTRAINT_PRIMARYKEY")?;
    }
    Ok(())
}

async fn b12_texts<D: Driver>(lab: &Lab<D>) -> Outcome {
    for text in ["", "line\nline\u{0}", "\u{1f980} \u{2028}", "TypeError: x", &"x".repeat(10_000)] {
        for thrown in both_ways(lab, json!([{"fail": text}])).await? {
            same("the text", thrown.message, text)?;
        }
    }
    Ok(())
}

async fn b11_error<D: Driver>(lab: &Lab<D>) -> Outcome {
    let before = lab.last("a", json!(["instance"])).await?;
    let thrown = lab.thrown("a", json!([{"add": 3}, {"note": "written"}, {"fail": "no"}])).await?;
    same("the text", thrown.message, "no")?;
    let after = lab.run("a", json!([{"add": 0}, "instance"])).await?;
    same("memory and instance", after, [json!(3), before])?;
    same("what was written", lab.lines("a").await?, json!(["written"]))
}

async fn b15_background<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.run("a", json!([{"add": 1}, {"wait_until": [{"note": "begun"}, {"fail": "unseen"}]}])).await?;
    let memory = lab.last("a", json!([{"add": 0}])).await?;
    same("memory", memory, json!(1))?;
    let lines = lab.lines("a").await?;
    if lines == json!(["begun"]) { Ok(()) } else { Err(Fault::new(format!("it did not run: {lines}"))) }
}
