//! What is kept when the instance, the turn or the database is not.

use crate::stores::{Stores, on_main};
use do_core::testing::{Case, Driver, Lab, Outcome, holds, same};
use serde_json::{Value, json};
use std::time::Duration;

pub(super) fn cases<D: Driver>() -> Vec<Case<D>> {
    vec![
        Case::new("f18 what is put in a transaction that fails never was", |lab| Box::pin(rolled_back(lab))),
        Case::new("f18 what is done in a transaction that holds is done", |lab| Box::pin(committed(lab))),
        Case::new("c4 what is done in a turn whose commit fails never was", |lab| Box::pin(undone(lab))),
        Case::new("e14 when everything was deleted the stores begin anew", |lab| Box::pin(deleted(lab))),
        Case::new("b7 a new instance has what the one before put", |lab| Box::pin(evicted(lab))).evicts(),
        Case::new("c5 a crash takes nothing away that was answered", |lab| Box::pin(crashed(lab))).crashes(),
    ]
}

fn put(key: &str, value: &str) -> Value {
    on_main(json!({"put": [key, value, 600_000]}))
}

fn get(key: &str) -> Value {
    on_main(json!({"get": key}))
}

async fn rolled_back<D: Driver>(lab: &Lab<D>) -> Outcome {
    // The first has to make the table, which is rolled back with it.
    let undone = |does: Value| json!({"transaction": {"fails": true, "does": does}});
    let within = lab.tell("a", undone(json!([put("k", "undone"), get("k")]))).await?;
    same("within", &within[1], "undone")?;
    same("after it", lab.tell("a", get("k")).await?, Value::Null)?;
    same("there is no table", lab.tell("a", json!({"stored": "rows"})).await?, Value::Null)?;
    lab.tell("a", json!([put("k", "kept"), put("l", "kept")])).await?;
    let changes =
        json!([put("k", "undone"), put("m", "undone"), on_main(json!({"remove": "l"})), get("k"), get("l"),]);
    let within = lab.tell("a", undone(changes)).await?;
    same("within", [&within[3], &within[4]], [json!("undone"), Value::Null])?;
    let after = lab.tell("a", json!([get("k"), get("l"), get("m")])).await?;
    same("after it", after, json!(["kept", "kept", null]))?;
    // Inside the turn in which it failed.
    let after = lab
        .tell("a", json!([undone(json!([on_main(json!({"take": "k"}))])), get("k"), put("n", "v"), get("n")]))
        .await?;
    same("in the same turn", [&after[1], &after[3]], ["kept", "v"])
}

async fn committed<D: Driver>(lab: &Lab<D>) -> Outcome {
    let does = json!([put("k", "v"), put("l", "w"), on_main(json!({"remove": "k"})), get("l")]);
    let inner = json!({"transaction": {"fails": true, "does": [put("l", "undone")]}});
    let outer = json!({"transaction": {"fails": false, "does": [{"transaction": {"fails": false, "does": does}}, inner]}});
    lab.tell("a", outer).await?;
    same("after it", lab.tell("a", json!([get("k"), get("l")])).await?, json!([null, "w"]))?;
    holds("an alarm", lab.tell("a", json!({"alarm": "get"})).await?.is_i64())
}

async fn undone<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.tell("a", put("k", "kept")).await?;
    lab.refused("a", json!({"undone": [put("k", "never"), put("l", "never")]})).await?;
    same("after it", lab.tell("a", json!([get("k"), get("l")])).await?, json!(["kept", null]))
}

async fn deleted<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.tell("a", json!([put("k", "v"), {"stored": "delete_all"}])).await?;
    same("after it", lab.tell("a", get("k")).await?, Value::Null)?;
    lab.tell("a", json!({"stored": "delete_all"})).await?;
    let told = lab.tell("a", json!([on_main(json!({"remove": "k"})), put("k", "w"), get("k")])).await?;
    same("anew", [&told[0], &told[2]], [json!(false), json!("w")])?;
    holds("an alarm", lab.tell("a", json!({"alarm": "get"})).await?.is_i64())
}

async fn stays<D: Driver>(lab: &Lab<D>, entry: &Value) -> Outcome {
    same("instances", lab.tell("a", json!("boots")).await?.as_array().map(Vec::len), 2)?;
    same("the entry", &lab.tell("a", on_main(json!({"get_entry": "k"}))).await?, entry)?;
    // Those of one millisecond differ, and may be in any order.
    lab.advance(Duration::from_millis(2)).await?;
    let swap = json!({"compare_and_swap": ["k", entry["version"], "w", 600_000]});
    holds("it is swapped", lab.main("a", swap).await?["done"].is_object())?;
    let next = lab.tell("a", on_main(json!({"get_entry": "k"}))).await?;
    let versions = [&next["version"], &entry["version"]].map(Value::as_u64);
    holds(format!("{versions:?} grow"), versions[0] > versions[1])
}

async fn evicted<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.tell("a", put("k", "v")).await?;
    let entry = lab.tell("a", on_main(json!({"get_entry": "k"}))).await?;
    lab.evict().await?;
    stays(lab, &entry).await
}

async fn crashed<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.tell("a", put("k", "v")).await?;
    let entry = lab.tell("a", on_main(json!({"get_entry": "k"}))).await?;
    lab.crash().await?;
    stays(lab, &entry).await
}
