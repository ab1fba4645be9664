//! E12, the way around it: what must not happen in a constructor waits for the first event that is not the alarm's.

use super::alarms::{SOON, noted, only_run, runs, slot, wakes};
use crate::testing::{
    case::{Case, Fault, Outcome, holds, same},
    difference::HostKind,
    driver::{Client, Driver, PanicCost, Received},
    lab::{ClientExt, Lab, closed},
    tasks::both,
};
use serde_json::{Value, json};
use std::time::Duration;

pub(super) fn cases<D: Driver>() -> Vec<Case<D>> {
    [woken(), events(), losses()].into_iter().flatten().collect()
}

/// Of an object that its alarm wakes.
fn woken<D: Driver>() -> Vec<Case<D>> {
    vec![
        Case::new(
            "e12 work for the first event is called neither in the constructor nor for the alarm",
            |lab| Box::pin(not_for_the_alarm(lab)),
        ),
        Case::new("e12 work for the first event that an alarm's run asks for waits for one", |lab| {
            Box::pin(asked_in_a_run(lab))
        }),
        Case::new(
            "e5 e12 a request during the run of the alarm that woke the object is its first event",
            |lab| Box::pin(during_a_run(lab)),
        ),
        Case::new("e12 work for the first event precedes the message that wakes an evicted object", |lab| {
            Box::pin(message(lab))
        }),
        Case::new(
            "d19 e12 work for the first event precedes the close that wakes an evicted object",
            |lab| Box::pin(close(lab)),
        ),
        Case::new(
            "d16 e12 work for the first event precedes the fault that wakes an evicted object",
            |lab| Box::pin(fault(lab)),
        )
        .differs(&[HostKind::Tokio, HostKind::Workerd], "kit-wire"),
        Case::new("b2 e12 work for the first event is called again in the next instance", |lab| {
            Box::pin(next_instance(lab))
        }),
    ]
    .into_iter()
    .map(Case::evicts)
    .collect()
}

fn events<D: Driver>() -> Vec<Case<D>> {
    vec![
        Case::new("e12 work for the first event precedes the first request's handler, once", |lab| {
            Box::pin(request(lab))
        }),
        Case::new(
            "c5 e12 what work for the first event writes is committed with what the handler does",
            |lab| Box::pin(one_commit(lab)),
        ),
        Case::new(
            "e12 works for the first event are called in the order in which they were asked for",
            |lab| Box::pin(order(lab)),
        ),
        Case::new("e12 work for the first event is called at once in a request's handler", |lab| {
            Box::pin(at_once(lab))
        }),
        Case::new("b8 e12 work for the first event waits for the gate of the constructor", |lab| {
            Box::pin(gate(lab))
        }),
        Case::new("e12 an alarm that work for the first event sets is kept and runs", |lab| {
            Box::pin(alarm(lab))
        }),
    ]
}

fn losses<D: Driver>() -> Vec<Case<D>> {
    vec![
        Case::new("b7 e12 work for the first event is dropped with a constructor that fails", |lab| {
            Box::pin(failed_constructor(lab))
        }),
        Case::new(
            "b11 e12 a panic in work for the first event is one of the handler where panics unwind",
            |lab| Box::pin(panics(lab)),
        )
        .panics(PanicCost::Object),
    ]
}

/// Asks for these steps at the first event.
fn first<const N: usize>(steps: [Value; N]) -> Value {
    let steps = Vec::from(steps);
    json!({"first_event": {"do": steps}})
}

fn notes(line: &str) -> Value {
    json!({"note": line})
}

/// Makes a next instance whose constructor does this.
async fn constructs<D: Driver>(lab: &Lab<D>, object: &str, steps: Value) -> Outcome {
    lab.run(object, json!([{"on_new": steps}])).await?;
    lab.thrown(object, json!([{"reset": "to be constructed again"}])).await.map(drop)
}

/// What is far enough behind the time of an alarm that its run is over on a busy machine.
const AFTER: u64 = 1_000;

async fn not_for_the_alarm<D: Driver>(lab: &Lab<D>) -> Outcome {
    let new = json!([first([notes("work"), json!({"set_alarm": 60_000})]), notes("made")]);
    wakes(lab, "a", |_| json!([{"on_new": new}, {"on_alarm": [notes("alarm")]}]), AFTER).await?;
    lab.run_at_once("a", json!([notes("request")])).await?;
    same("the order", lab.lines("a").await?, json!(["made", "alarm", "work", "request"]))?;
    only_run(lab, "a").await?;
    holds("the alarm of the work is lost", slot(lab, "a").await? != Value::Null)
}

async fn asked_in_a_run<D: Driver>(lab: &Lab<D>) -> Outcome {
    let run = json!([first([notes("work")]), {"sleep": 1}, notes("alarm")]);
    wakes(lab, "a", |_| json!([{"on_alarm": run}]), AFTER).await?;
    lab.run_at_once("a", json!([notes("request")])).await?;
    same("the order", lab.lines("a").await?, json!(["alarm", "work", "request"]))
}

async fn during_a_run<D: Driver>(lab: &Lab<D>) -> Outcome {
    let run = json!([notes("begin"), {"add": 1}, {"wait_for": 2}, notes("end")]);
    let new = json!([first([notes("work")])]);
    wakes(lab, "a", |_| json!([{"on_new": new}, {"on_alarm": run}]), AFTER).await?;
    lab.run_at_once("a", json!([notes("request"), {"add": 1}])).await?;
    noted(lab, "a", json!(["begin", "work", "request", "end"])).await
}

/// A socket of an object that was evicted, whose handler of `event` and whose work take notes.
async fn asleep<D: Driver>(lab: &Lab<D>, event: Value) -> Result<D::Client, Fault> {
    lab.run("a", json!([{"on_new": [first([json!({"note_of": ["boots"]})])]}, event])).await?;
    let client = lab.open("a", &[]).await?;
    lab.evict().await?;
    Ok(client)
}

async fn message<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut client = asleep(lab, json!({"on_message": [notes("message"), "echo"]})).await?;
    for text in ["one", "two"] {
        client.text(text).await?;
        client.hears_text("the echo", text).await?;
    }
    same("the order", lab.lines("a").await?, json!(["[2]", "message", "message"]))
}

async fn close<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut client = asleep(lab, json!({"on_close": [notes("close")]})).await?;
    client.close(Some((4_001, "bye"))).await?;
    client.hears("the answer", closed(4_001, "bye")).await?;
    same("the order", lab.lines("a").await?, json!(["[2]", "close"]))
}

async fn fault<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut client = asleep(lab, json!({"sockets": {"on_error": [notes("fault")]}})).await?;
    client.frame(0x83, b"x").await?; // of a kind that there is not
    while !matches!(client.receive().await?, Received::Close(_) | Received::Lost) {}
    noted(lab, "a", json!(["[2]", "fault"])).await
}

async fn next_instance<D: Driver>(lab: &Lab<D>) -> Outcome {
    constructs(lab, "a", json!([first([json!({"note_of": ["boots"]})])])).await?;
    lab.run("a", json!([notes("request")])).await?;
    lab.evict().await?;
    lab.run_at_once("a", json!([notes("request")])).await?;
    same("the order", lab.lines("a").await?, json!(["[2]", "request", "[3]", "request"]))
}

async fn request<D: Driver>(lab: &Lab<D>) -> Outcome {
    constructs(lab, "a", json!([first([notes("work")]), notes("made")])).await?;
    for _ in 0..2 {
        lab.run_at_once("a", json!([notes("request")])).await?;
    }
    same("the order", lab.lines("a").await?, json!(["made", "work", "request", "request"]))
}

/// A foreign key is checked at the commit, so that the two only hold together.
async fn one_commit<D: Driver>(lab: &Lab<D>) -> Outcome {
    constructs(lab, "a", json!([first([json!({"sql": "INSERT INTO child VALUES (99)"})])])).await?;
    lab.run_at_once("a", json!([{"sql": "INSERT INTO parent VALUES (99)"}])).await?;
    same("the row", lab.last("a", json!([{"sql": "SELECT id FROM child"}])).await?, json!([99]))
}

async fn order<D: Driver>(lab: &Lab<D>) -> Outcome {
    let within = first([notes("asked for within")]);
    let new = json!([first([notes("one"), within]), first([notes("two")]), first([notes("three")])]);
    constructs(lab, "a", new).await?;
    lab.run_at_once("a", json!([notes("request")])).await?;
    same("the order", lab.lines("a").await?, json!(["one", "two", "three", "asked for within", "request"]))
}

async fn at_once<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.run("a", json!([notes("before"), first([notes("work")]), notes("after")])).await?;
    same("the order", lab.lines("a").await?, json!(["before", "work", "after"]))
}

async fn gate<D: Driver>(lab: &Lab<D>) -> Outcome {
    let init = [json!({"sleep": 200}), first([notes("asked for in init")]), notes("open")];
    let new = [&[first([notes("asked for before")])], &init[..]].concat();
    constructs(lab, "a", json!(new)).await?;
    let request = lab.run_at_once("a", json!([notes("request")]));
    let (ran, passed) = both(request, lab.advance(Duration::from_millis(300))).await;
    passed.and(ran.map(drop))?;
    same(
        "the order",
        lab.lines("a").await?,
        json!(["open", "asked for before", "asked for in init", "request"]),
    )
}

async fn alarm<D: Driver>(lab: &Lab<D>) -> Outcome {
    let begun = json!({"first_event": {"begin": [{"alarm": {"set_earlier": 300}}]}});
    for (object, work) in [("a", first([json!({"set_alarm": 300})])), ("b", begun)] {
        constructs(lab, object, json!([work])).await?;
        lab.run_at_once(object, json!([])).await?;
        let all = runs(lab, object, 1, SOON).await?;
        same("the runs", all.len(), 1)?;
        same("the slot", slot(lab, object).await?, Value::Null)?;
    }
    Ok(())
}

async fn failed_constructor<D: Driver>(lab: &Lab<D>) -> Outcome {
    constructs(lab, "a", json!([first([notes("work")]), {"life": {"fail_times": 1}}])).await?;
    same("the error", lab.thrown("a", json!([])).await?.message, "attempt 1")?;
    same("what is left", lab.run_at_once("a", json!([{"first_event": "waiting"}])).await?, json!([0]))?;
    same("what was called", lab.lines("a").await?, json!(["work"]))
}

async fn panics<D: Driver>(lab: &Lab<D>) -> Outcome {
    let panics = first([json!({"life": {"panic_times": 1}}), notes("one")]);
    constructs(lab, "a", json!([panics, first([notes("two")])])).await?;
    let thrown = lab.thrown("a", json!([notes("never")])).await?;
    let seen = (&*thrown.kind, &*thrown.message);
    same(&format!("{thrown:?}"), seen, ("Reset", "the object panicked: attempt 1"))?;
    lab.run_at_once("a", json!([notes("request")])).await?;
    same("the order", lab.lines("a").await?, json!(["one", "two", "request"]))
}
