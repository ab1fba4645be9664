//! Many keys at once.

use crate::stores::{MAIN, Stores, named};
use do_core::testing::{Case, Driver, Fault, HostKind, Lab, Outcome, same};
use serde_json::{Value, json};
use std::time::Duration;

pub(super) fn cases<D: Driver>() -> Vec<Case<D>> {
    vec![
        Case::new("t17 values of many keys come in the order of the keys", |lab| Box::pin(order(lab))),
        Case::new("t17 of many puts all are done or none", |lab| Box::pin(all_or_none(lab))),
        Case::new("t18 more keys than a statement has parameters, and one alarm for them", |lab| {
            Box::pin(thousands(lab))
        }),
        Case::new("t17 many values of a type", |lab| Box::pin(typed(lab))),
        Case::new("t1 each of many costs what one costs, which is less than in one statement", |lab| {
            Box::pin(costs(lab))
        })
        .differs(&[HostKind::Workerd], "rows-counted"),
    ]
}

async fn many<D: Driver>(lab: &Lab<D>, command: Value) -> Result<Value, Fault> {
    lab.tell("a", many_command(command)).await
}

fn many_command(command: Value) -> Value {
    named("many", vec![MAIN.into(), command])
}

async fn order<D: Driver>(lab: &Lab<D>) -> Outcome {
    let items = json!([["b", "1", null], ["a", "2", 60_000], ["b", "3", null], ["x", "4", 0]]);
    let puts = many(lab, json!({ "put": items })).await?;
    same("one that is over", puts[3].clone(), "removed")?;
    same("one that never is", puts[2]["expires"].clone(), Value::Null)?;
    let values = many(lab, json!({"get": ["b", "x", "a", "b"]})).await?;
    same("the values", values, json!(["3", null, "2", "3"]))?;
    let entries = many(lab, json!({"get_entries": ["a", "x"]})).await?;
    same("the version", entries[0]["version"].clone(), puts[1]["version"].clone())?;
    same("the expiry", entries[0]["expires"].clone(), puts[1]["expires"].clone())?;
    same("none", entries[1].clone(), Value::Null)?;
    same("removed", many(lab, json!({"remove": ["a", "a", "x"]})).await?, 1)?;
    same("what is left", many(lab, json!({"get": ["a", "b"]})).await?, json!([null, "3"]))?;
    same("no keys", many(lab, json!({"get": []})).await?, json!([]))
}

async fn all_or_none<D: Driver>(lab: &Lab<D>) -> Outcome {
    many(lab, json!({"put": [["a", "old", null]]})).await?;
    let items = json!([["a", "new", 60_000], ["b", {"filled": 2_000_000}, 60_000]]);
    let error = lab.refused("a", many_command(json!({ "put": items }))).await?;
    same("too large", error.kind.as_str(), "Limit")?;
    same("what is there", many(lab, json!({"get": ["a", "b"]})).await?, json!(["old", null]))?;
    let put = many_command(json!({"put": [["a", "new", 60_000], ["b", "new", 60_000]]}));
    lab.tell("a", json!({"transaction": {"fails": true, "does": [put]}})).await?;
    same("what is there", many(lab, json!({"get": ["a", "b"]})).await?, json!(["old", null]))
}

async fn thousands<D: Driver>(lab: &Lab<D>) -> Outcome {
    many(lab, json!({"fill": [0, 1_000, 10, 3_600_000]})).await?;
    let keys: Vec<_> = (0..1_000).rev().map(|n| format!("{n:08}")).collect();
    same("the values", many(lab, json!({ "get": keys })).await?, json!(vec![".........."; 1_000]))?;
    same("removed", many(lab, json!({"remove_filled": [0, 2_000]})).await?, 1_000)?;
    many(lab, json!({"fill": [0, 10, 10, 500]})).await?;
    lab.advance(Duration::from_millis(550)).await?;
    same("expired", many(lab, json!({"remove_filled": [0, 10]})).await?, 0)?;
    let rows = async || lab.rows("a").await;
    lab.eventually("rows", Duration::from_secs(10), rows, |rows| *rows == 0).await?;
    same("alarms", lab.noted("a", "alarm").await?.len(), 1)
}

async fn typed<D: Driver>(lab: &Lab<D>) -> Outcome {
    let most = u64::from(u32::MAX);
    many(lab, json!({"put_numbers": [["a", 1], ["b", most]]})).await?;
    let numbers = json!({"get_numbers": ["b", "x", "a"]});
    same("numbers", many(lab, numbers.clone()).await?, json!([most, null, 1]))?;
    same("as JSON", lab.main("a", json!({"get": "b"})).await?, most.to_string())?;
    lab.main("a", json!({"put": ["x", "\"ten\"", null]})).await?;
    let error = lab.refused("a", many_command(numbers)).await?;
    same("another type", error.message.starts_with("the value of \"x\" is not of that type: "), true)
}

async fn costs<D: Driver>(lab: &Lab<D>) -> Outcome {
    let cost = async |command: Value| {
        let cost = lab.tell("a", json!({"cost": many_command(command)})).await?;
        Ok::<[u64; 3], Fault>(serde_json::from_value(cost)?)
    };
    many(lab, json!({"fill": [0, 1_000, 10, 60_000]})).await?;
    same("puts", cost(json!({"fill": [1_000, 1_100, 10, 70_000]})).await?, [0, 200, 0])?;
    same("over others", cost(json!({"fill": [1_000, 1_100, 10, 80_000]})).await?, [0, 200, 0])?;
    let keys = ["00000000", "00000500", "00001099", "missing", "00000001", "00000002"];
    same("gets", cost(json!({ "get": keys })).await?, [5, 0, 0])?;
    let [_, written, sets] = cost(json!({"remove_filled": [1_000, 1_200]})).await?;
    same("removals", [written, sets], [100, 0])?;
    let in_one = many(lab, json!({"in_one_statement": ["00000000", "00000500", "00000001"]})).await?;
    same("three in one statement", in_one, 6)
}
