//! What another deployment finds of the one before it: classes that were renamed, deleted and added by migrations.

use crate::testing::{
    case::{Case, Fault, Outcome, holds, same},
    deployment::Deployment,
    driver::{Client, Driver, Received},
    lab::Lab,
    route::percent_encoded,
};
use serde_json::{Value, json};
use std::time::Duration;

pub(super) fn cases<D: Driver>() -> Vec<Case<D>> {
    vec![
        Case::new("a1 a renamed class keeps its objects' ids and data", |lab| Box::pin(renamed(lab)))
            .crashes(),
        Case::new("e16 a pending alarm runs in the class's new name", |lab| Box::pin(alarm(lab))).crashes(),
        Case::new("migration a deleted class that is made again has no data and no alarms", |lab| {
            Box::pin(deleted(lab))
        })
        .crashes(),
        Case::new("migration a new class is there, and the others see the new configuration", |lab| {
            Box::pin(new(lab))
        })
        .crashes(),
        Case::new("migration a kill after a deployment changes nothing", |lab| Box::pin(killed(lab)))
            .crashes(),
        Case::new("d25 a deployment ends all sockets", |lab| Box::pin(sockets(lab))).crashes(),
    ]
}

/// The path of an object of a namespace.
fn path<D: Driver>(lab: &Lab<D>, what: &str, namespace: &str, object: &str) -> String {
    format!("/{what}/{namespace}/{}", percent_encoded(&lab.name(object)))
}

async fn last<D: Driver>(lab: &Lab<D>, namespace: &str, object: &str, steps: Value) -> Result<Value, Fault> {
    let values = lab.value(&path(lab, "run", namespace, object), &steps).await?;
    values.as_array().and_then(|all| all.last()).cloned().ok_or_else(|| Fault::new("no steps"))
}

async fn put<D: Driver>(lab: &Lab<D>, namespace: &str, object: &str, number: i64) -> Outcome {
    let insert = format!("INSERT INTO n VALUES ({number})");
    last(lab, namespace, object, json!([{ "sql": insert }])).await.map(drop)
}

fn numbers() -> Value {
    json!([{"sql": "SELECT n FROM n"}])
}

async fn id<D: Driver>(lab: &Lab<D>, namespace: &str, object: &str) -> Result<Value, Fault> {
    lab.value(&path(lab, "id", namespace, object), &Value::Null).await
}

/// The kind of the error with which the entry refuses a namespace that is not bound.
async fn is_unknown<D: Driver>(lab: &Lab<D>, namespace: &str) -> Outcome {
    match lab.ask(&path(lab, "run", namespace, "a"), &json!([])).await? {
        Ok(values) => Err(Fault::new(format!("{namespace} is there: {values}"))),
        Err(thrown) => same(namespace, thrown.kind, "NotFound"),
    }
}

async fn renamed<D: Driver>(lab: &Lab<D>) -> Outcome {
    put(lab, "BEFORE", "a", 7).await?;
    let named = id(lab, "BEFORE", "a").await?;
    let unique = lab.value("/unique/BEFORE/", &Value::Null).await?;
    let unique = unique.as_str().ok_or_else(|| Fault::new(format!("{unique} is no id")))?;
    lab.value(&format!("/run-id/BEFORE/{unique}"), &json!([{"sql": "INSERT INTO n VALUES (8)"}])).await?;
    is_unknown(lab, "AFTER").await?;
    lab.deploy(Deployment::Second).await?;
    same("the id of the name", id(lab, "AFTER", "a").await?, &named)?;
    let seen = lab.value(&path(lab, "run", "AFTER", "a"), &json!([{"sql": "SELECT n FROM n"}, "id"])).await?;
    same("by name", seen, json!([[7], named]))?;
    let seen = lab.value(&format!("/run-id/AFTER/{unique}"), &numbers()).await?;
    same("by the id of before", seen, json!([[8]]))?;
    is_unknown(lab, "BEFORE").await
}

async fn alarm<D: Driver>(lab: &Lab<D>) -> Outcome {
    let handler = json!({"on_alarm": [{"note_of": ["name", {"var": "DEPLOYMENT"}]}]});
    let far = last(lab, "BEFORE", "far", json!([{"set_alarm": 600_000}])).await?;
    // Far enough that it is still pending when the first deployment ends, on a busy machine too.
    let set = last(lab, "BEFORE", "a", json!([handler, {"set_alarm": 3_000}])).await?;
    lab.deploy(Deployment::Second).await?;
    lab.advance(Duration::from_millis(3_000)).await?;
    let mut runs = Value::Null;
    for _ in 0..100 {
        runs = last(lab, "AFTER", "a", json!(["runs"])).await?;
        if runs != json!([]) {
            break;
        }
        lab.advance(Duration::from_millis(20)).await?;
    }
    same("how often it ran", runs.as_array().map(Vec::len), 1)?;
    same("what it was set to", json!([runs[0]["scheduled"], runs[0]["retries"]]), json!([set, 0]))?;
    let lines = last(lab, "AFTER", "a", json!([{"sql": "SELECT line FROM log"}])).await?;
    same("what it saw", lines, json!([json!([lab.name("a"), "second"]).to_string()]))?;
    same("a later one", last(lab, "AFTER", "far", json!(["get_alarm"])).await?, far)
}

async fn deleted<D: Driver>(lab: &Lab<D>) -> Outcome {
    put(lab, "GONE", "a", 7).await?;
    put(lab, "PROBE", "a", 8).await?;
    last(lab, "GONE", "a", json!([{"set_alarm": 3_000}])).await?;
    lab.deploy(Deployment::Second).await?;
    lab.advance(Duration::from_millis(3_000)).await?;
    let look = json!([{"sql": "SELECT n FROM n"}, "get_alarm", "runs", "boots"]);
    let seen = lab.value(&path(lab, "run", "GONE", "a"), &look).await?;
    same("what is left", seen, json!([[], null, [], 1]))?;
    put(lab, "GONE", "a", 9).await?;
    same("it is usable", last(lab, "GONE", "a", numbers()).await?, json!([9]))?;
    same("another class", last(lab, "PROBE", "a", numbers()).await?, json!([8]))
}

async fn new<D: Driver>(lab: &Lab<D>) -> Outcome {
    is_unknown(lab, "NEW").await?;
    put(lab, "OTHER", "a", 7).await?;
    let which = json!([{"var": "DEPLOYMENT"}]);
    same("before", last(lab, "OTHER", "a", which.clone()).await?, "first")?;
    lab.deploy(Deployment::Second).await?;
    same("the new class", last(lab, "NEW", "a", which.clone()).await?, "second")?;
    put(lab, "NEW", "a", 8).await?;
    same("its data", last(lab, "NEW", "a", numbers()).await?, json!([8]))?;
    same("after", last(lab, "OTHER", "a", which).await?, "second")?;
    same("data of before", last(lab, "OTHER", "a", numbers()).await?, json!([7]))
}

async fn killed<D: Driver>(lab: &Lab<D>) -> Outcome {
    put(lab, "BEFORE", "a", 7).await?;
    lab.deploy(Deployment::Second).await?;
    put(lab, "AFTER", "a", 8).await?;
    put(lab, "GONE", "a", 9).await?;
    lab.crash().await?;
    same("the renamed class", last(lab, "AFTER", "a", numbers()).await?, json!([7, 8]))?;
    same("the one that was made again", last(lab, "GONE", "a", numbers()).await?, json!([9]))
}

async fn sockets<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut client = lab.open("a", &[]).await?;
    lab.deploy(Deployment::Second).await?;
    let got = client.receive().await?;
    holds(format!("the client got {got:?}"), got == Received::Lost)?;
    let seen = lab.run("a", json!([{"count": "all"}, "events"])).await?;
    same("what the object has", seen, json!([0, []]))
}
