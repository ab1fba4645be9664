//! What a panic in one object costs the others, for each way that a host is built. Library code never panics; an
//! application's may.

use crate::testing::{
    case::{Case, Fault, Outcome, holds, same},
    driver::{Driver, PanicCost, Received},
    lab::{ClientExt, Lab},
    tasks::both,
};
use serde_json::json;
use std::time::Duration;

pub(super) fn cases<D: Driver>() -> Vec<Case<D>> {
    vec![
        Case::new("b11 a panic resets its object alone where panics unwind", |lab| {
            Box::pin(resets_its_object(lab))
        })
        .panics(PanicCost::Object),
        Case::new("b11 a panic in a socket handler resets its object alone where panics unwind", |lab| {
            Box::pin(in_a_socket_handler(lab))
        })
        .panics(PanicCost::Object),
        Case::new(
            "b11 a panic in the entry is answered with 500 and costs nobody else where panics unwind",
            |lab| Box::pin(in_the_entry(lab)),
        )
        .panics(PanicCost::Object),
        Case::new("b11 a panic costs every object its memory and its requests where panics abort", |lab| {
            Box::pin(costs_all(lab))
        })
        .panics(PanicCost::Isolate),
        Case::new(
            "b11 b8 a panic of another object leaves init before requests where panics unwind",
            |lab| Box::pin(init_first(lab)),
        )
        .panics(PanicCost::Object),
        Case::new("b11 b8 a panic of another object leaves init before requests where panics abort", |lab| {
            Box::pin(init_first(lab))
        })
        .panics(PanicCost::Isolate),
    ]
}

async fn resets_its_object<D: Driver>(lab: &Lab<D>) -> Outcome {
    let before = lab.run("a", json!([{"note": "kept"}, {"add": 5}, "instance"])).await?;
    let other = lab.run("b", json!([{"add": 5}, "instance"])).await?;
    let slow = lab.run("b", json!([{"add": 1}, {"sleep": 300}, {"add": 1}]));
    let (slow, thrown) = both(slow, async {
        lab.begun("b", 6).await?;
        let thrown = lab.thrown("a", json!([{"panic": "on demand"}])).await?;
        lab.advance(Duration::from_millis(400)).await?;
        Ok::<_, Fault>(thrown)
    })
    .await;
    let thrown = thrown?;
    let what = format!("{thrown:?}");
    same(&what, thrown.kind, "Reset")?;
    holds(&what, thrown.message.contains("on demand"))?;
    same("a request in flight in another object", slow?, [json!(6), json!(null), json!(7)])?;
    same(
        "another object's memory",
        lab.run("b", json!([{"add": 0}, "instance"])).await?,
        [json!(7), other[1].clone()],
    )?;
    let after = lab.run("a", json!([{"add": 0}, "instance"])).await?;
    same("its own memory", &after[0], json!(0))?;
    holds("the instance is the same", after[1] != before[2])?;
    same("what it had written", lab.lines("a").await?, json!(["kept"]))
}

async fn in_a_socket_handler<D: Driver>(lab: &Lab<D>) -> Outcome {
    let other = lab.last("b", json!([{"add": 5}])).await?;
    let mut client = lab.open("a", &[]).await?;
    client.steps(json!([{"add": 5}])).await?;
    client.text(&json!([{"panic": "on demand"}]).to_string()).await?;
    client.hears("after it", Received::Lost).await?;
    same("another object", lab.last("b", json!([{"add": 0}])).await?, other)?;
    same("the object", lab.run("a", json!([{"add": 0}, "events"])).await?, [json!(0), json!([])])
}

/// Where panics abort, the instance that is made anew is not behind the platform's own gate. Reading a body would wait for
/// that, so the requests have none.
async fn init_first<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.run("a", json!([{"on_new": [{"sleep": 200}, {"add": 10}]}])).await?;
    lab.thrown("a", json!([{"reset": "to be constructed again"}])).await?;
    let three = || async {
        let call = || lab.run_at_once("a", json!([{"add": 0}, "instance"]));
        let (calls, time) =
            both(both(call(), both(call(), call())), lab.advance(Duration::from_millis(400))).await;
        time?;
        let (one, (two, three)) = calls;
        Ok::<_, Fault>([one?, two?, three?])
    };
    let [before, ..] = three().await?;
    same("the first", &before[0], json!(10))?;
    let panicked = lab.answer("b", json!([{"panic": "on demand"}]));
    match lab.driver().panic_cost() {
        PanicCost::Object => drop(panicked.await?),
        PanicCost::Isolate => lab.silent("what panics", panicked, Duration::from_millis(500)).await?,
    }
    let after = three().await?;
    for after in &after {
        same("what a request after the panic sees of init", &after[0], json!(10))?;
    }
    let lost = lab.driver().panic_cost() == PanicCost::Isolate;
    same("the instance is another one", after[0][1] != before[1], lost)
}

async fn in_the_entry<D: Driver>(lab: &Lab<D>) -> Outcome {
    let before = lab.run("a", json!([{"add": 5}, "instance"])).await?;
    let (status, body) = lab.driver().post("/panic/PROBE/", Vec::new()).await?;
    same("the answer", (status, String::from_utf8_lossy(&body)), (500, "internal error"))?;
    same("an object", lab.run("a", json!([{"add": 0}, "instance"])).await?, before)
}

async fn costs_all<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.run("a", json!([{"note": "kept"}])).await?;
    let other = lab.last("b", json!([{"note": "kept"}, "instance"])).await?;
    let mut client = lab.open("b", &[("tag", "t"), ("attach", "ada")]).await?;
    let slow = lab.answer("b", json!([{"add": 1}, {"sleep": 300}, {"add": 1}]));
    let slow = lab.silent("a request in flight in another object", slow, Duration::from_secs(3));
    let (slow, panic) = both(slow, async {
        lab.begun("b", 1).await?;
        let call = lab.answer("a", json!([{"panic": "on demand"}]));
        lab.silent("the request that panics", call, Duration::from_secs(2)).await
    })
    .await;
    slow.and(panic)?;
    same("its memory", lab.last("a", json!([{"add": 0}])).await?, json!(0))?;
    same("what it had written", lab.lines("a").await?, json!(["kept"]))?;
    let after = lab.run("b", json!([{"add": 0}, "instance"])).await?;
    same("another object's memory", &after[0], json!(0))?;
    holds("the other object's instance is the same", after[1] != other)?;
    same("its data", lab.lines("b").await?, json!(["kept"]))?;
    let seen = client.steps(json!([{"tags": "this"}, {"attachments": "this"}])).await?;
    same("its socket", seen, json!([[["t"]], ["ada"]]))
}
