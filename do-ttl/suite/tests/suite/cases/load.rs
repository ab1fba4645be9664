//! Loading.

use crate::stores::{MAIN, Stores, named, on_main};
use do_core::testing::{Case, Driver, Fault, Lab, Local, Outcome, all, same, unless};
use serde_json::{Value, json};
use std::time::Duration;

pub(super) fn cases<D: Driver>() -> Vec<Case<D>> {
    vec![
        Case::new("goal7 a thousand callers of twenty requests cost one load", |lab| Box::pin(thousand(lab))),
        Case::new(
            "goal7 an error goes to the one whose loader failed, and the next in line takes over",
            |lab| Box::pin(errors(lab)),
        ),
        Case::new("goal7 when the one that loads goes, one that waits takes over", |lab| Box::pin(goes(lab))),
        Case::new("goal7 what is removed or written during a load is not overwritten by it", |lab| {
            Box::pin(changed(lab))
        }),
        Case::new("goal7 who comes after a removal does not get what was being loaded before", |lab| {
            Box::pin(after_removal(lab))
        }),
        Case::new("goal7 what is there is not loaded, and what has expired is loaded again", |lab| {
            Box::pin(expired(lab))
        }),
        Case::new("goal7 a typed view loads values of its type", |lab| Box::pin(typed(lab))),
    ]
}

/// A command that loads the key `k`.
fn load(load: Value) -> Value {
    let mut load = load;
    load["key"] = json!("k");
    json!({"load": [MAIN, {"get": load}]})
}

fn later(ms: u64, command: Value) -> Value {
    named("load", vec![MAIN.into(), named("later", vec![ms.into(), command])])
}

fn attempt(command: Value) -> Value {
    named("attempt", command)
}

/// What these give when they are done at once in one request.
async fn at_once<D: Driver>(lab: &Lab<D>, object: &str, commands: Vec<Value>) -> Result<Value, Fault> {
    while_time_passes(lab, lab.tell(object, json!({ "at_once": commands }))).await
}

/// What a request gives that takes time.
async fn while_time_passes<D: Driver, T>(
    lab: &Lab<D>,
    request: impl Future<Output = Result<T, Fault>>,
) -> Result<T, Fault> {
    let passes = async { while lab.advance(Duration::from_millis(50)).await.is_ok() {} };
    unless(request, passes).await.unwrap_or_else(|| Err(Fault::new("time stands still")))
}

async fn loads<D: Driver>(lab: &Lab<D>, object: &str, number: usize) -> Outcome {
    same("loads", lab.noted(object, "load").await?.len(), number)
}

async fn thousand<D: Driver>(lab: &Lab<D>) -> Outcome {
    let command = load(json!({"takes": 1_000, "gives": "v"}));
    let request =
        |_| -> Local<'_, _> { Box::pin(lab.tell("a", json!({"at_once": vec![command.clone(); 50]}))) };
    let told = while_time_passes(lab, async { Ok(all((0..20).map(request).collect()).await) }).await?;
    for values in told {
        same("the values", values?, json!(vec!["v"; 50]))?;
    }
    loads(lab, "a", 1).await?;
    same("what is stored", lab.main("a", json!({"get": "k"})).await?, "v")
}

async fn errors<D: Driver>(lab: &Lab<D>) -> Outcome {
    let fails = attempt(load(json!({"takes": 100})));
    let gives = attempt(load(json!({"takes": 100, "gives": "v"})));
    let told = at_once(lab, "a", vec![fails.clone(), fails, gives.clone(), gives.clone(), gives]).await?;
    for failed in [&told[0], &told[1]] {
        same("the error", failed["error"]["message"].clone(), "nothing to load")?;
    }
    for value in 2..5 {
        same("the value", told[value].clone(), json!({"ok": "v"}))?;
    }
    loads(lab, "a", 3).await
}

async fn goes<D: Driver>(lab: &Lab<D>) -> Outcome {
    let slow = load(json!({"takes": 3_600_000, "gives": "slow"}));
    let gone = |ms| json!({"load": [MAIN, {"within": [ms, slow]}]});
    let waits = load(json!({"takes": 50, "gives": "v"}));
    let told = at_once(lab, "a", vec![gone(100), gone(200), waits.clone(), waits]).await?;
    same("what they got", told, json!(["dropped", "dropped", "v", "v"]))?;
    loads(lab, "a", 3).await?;
    // Of requests of their own.
    let gone = json!({"load": [MAIN, {"within": [300, slow]}]});
    let waits = later(50, load(json!({"takes": 50, "gives": "v"})));
    let requests: Vec<Local<'_, _>> = vec![
        Box::pin(lab.tell("b", gone)),
        Box::pin(lab.tell("b", waits.clone())),
        Box::pin(lab.tell("b", waits)),
    ];
    let told = while_time_passes(lab, async { Ok(all(requests).await) }).await?;
    let told = told.into_iter().collect::<Result<Vec<_>, _>>()?;
    same("what they got", json!(told), json!(["dropped", "v", "v"]))?;
    loads(lab, "b", 2).await
}

async fn changed<D: Driver>(lab: &Lab<D>) -> Outcome {
    let loads = || vec![load(json!({"takes": 300, "gives": "loaded"})); 2];
    let during = |command| vec![later(100, on_main(command))];
    let told = at_once(lab, "a", [loads(), during(json!({"put": ["k", "put", null]}))].concat()).await?;
    same("written", json!([told[0], told[1]]), json!(["put", "put"]))?;
    same("what stays", lab.main("a", json!({"get": "k"})).await?, "put")?;
    for (object, removal) in [("b", json!({"remove": "k"})), ("c", json!({"take": "k"}))] {
        let told = at_once(lab, object, [loads(), during(removal)].concat()).await?;
        same("removed", json!([told[0], told[1]]), json!(["loaded", "loaded"]))?;
        same("what stays", lab.main(object, json!({"get": "k"})).await?, Value::Null)?;
    }
    Ok(())
}

async fn after_removal<D: Driver>(lab: &Lab<D>) -> Outcome {
    let commands = vec![
        load(json!({"takes": 400, "gives": "old"})),
        later(100, on_main(json!({"remove": "k"}))),
        later(200, load(json!({"takes": 400, "gives": "new"}))),
        later(300, load(json!({"gives": "newer"}))),
    ];
    let told = at_once(lab, "a", commands).await?;
    same("what they got", told, json!(["old", false, "new", "new"]))?;
    same("what is stored", lab.main("a", json!({"get": "k"})).await?, "new")
}

async fn expired<D: Driver>(lab: &Lab<D>) -> Outcome {
    let first = load(json!({"gives": "first", "ttl": 1_000}));
    same("loaded", lab.tell("a", first.clone()).await?, "first")?;
    let second = json!({"load": [MAIN, {"get_for": {"key": "k", "gives": "second", "ttl": 60_000}}]});
    same("there", lab.tell("a", second.clone()).await?, "first")?;
    lab.advance(Duration::from_millis(1_100)).await?;
    same("loaded again", lab.tell("a", second).await?, "second")?;
    same("there", lab.tell("a", first).await?, "second")?;
    loads(lab, "a", 2).await?;
    let over = json!({"load": [MAIN, {"get": {"key": "j", "gives": "v", "ttl": 0}}]});
    same("over at once", lab.tell("a", over).await?, "v")?;
    same("not stored", lab.main("a", json!({"get": "j"})).await?, Value::Null)
}

async fn typed<D: Driver>(lab: &Lab<D>) -> Outcome {
    let get = |number: u64| json!({"load": [MAIN, {"get_number": ["k", number]}]});
    same("loaded", lab.tell("a", get(7)).await?, 7)?;
    same("there", lab.tell("a", get(8)).await?, 7)?;
    lab.main("a", json!({"put": ["k", "seven", null]})).await?;
    let error = lab.refused("a", get(8)).await?;
    let text = "the value of \"k\" is not of that type: expected value at line 1 column 1";
    same("another type", error.message.as_str(), text)
}
