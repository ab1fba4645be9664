//! Sweeps.

use crate::stores::{Stores, on_main};
use do_core::testing::{Case, Driver, Fault, Lab, Outcome, same};
use serde_json::{Value, json};
use std::time::Duration;

pub(super) fn cases<D: Driver>() -> Vec<Case<D>> {
    vec![
        Case::new("t4 a put that does not expire sooner does not set the alarm", |lab| Box::pin(sets(lab))),
        Case::new("t6 a backlog is swept in slices, run after run", |lab| Box::pin(backlog(lab))),
        Case::new("t8 what never expires has no alarm", |lab| Box::pin(never(lab))),
        Case::new("t9 the sweep is a slot of a schedule beside other jobs", |lab| Box::pin(slot(lab))),
        Case::new("e13 a transaction that fails takes the alarm back, and the next put has one", |lab| {
            Box::pin(rolled_back(lab))
        }),
        Case::new("e14 after everything was deleted a put has its alarm", |lab| Box::pin(deleted(lab))),
        Case::new("what expires is told once with what it was", |lab| Box::pin(told(lab))),
        Case::new("a handler that fails is told again and the others do not wait", |lab| {
            Box::pin(again(lab))
        }),
        Case::new("what is put while its handler runs stays", |lab| Box::pin(while_told(lab))),
        Case::new("what is evicted is told", |lab| Box::pin(evicted(lab))),
    ]
}

const SOON: Duration = Duration::from_secs(20);

async fn gone<D: Driver>(lab: &Lab<D>, left: u64) -> Outcome {
    let rows = async || lab.rows("a").await;
    lab.eventually("rows", SOON, rows, |rows| *rows == left).await.map(drop)
}

/// The keys that were told, with the attempts, when there are so many.
async fn telling<D: Driver>(lab: &Lab<D>, many: usize) -> Result<Vec<(String, u64)>, Fault> {
    let told = async || lab.noted("a", "told").await;
    let told = lab.eventually("told", SOON, told, |told| told.len() >= many).await?;
    let key = |one: &Value| one["key"].as_str().unwrap_or_default().to_owned();
    Ok(told.iter().map(|one| (key(one), one["attempt"].as_u64().unwrap_or(0))).collect())
}

async fn sets<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.tell("a", json!({"configure": {"pace": {"slack_ms": 1_000}}})).await?;
    for (key, ttl, sets) in [("a", 60_000, 1), ("b", 120_000, 0), ("a", 90_000, 0), ("c", 30_000, 1)] {
        let cost = lab.cost("a", json!({"put": [key, "v", ttl]})).await?;
        same(key, cost[2], sets)?;
    }
    let now = lab.tell("a", json!("now")).await?.as_i64().unwrap_or(0);
    let armed = lab.tell("a", json!({"alarm": "get"})).await?.as_i64().unwrap_or(0);
    same("of the soonest, with the slack", (25_000..=31_000).contains(&(armed - now)), true)
}

async fn backlog<D: Driver>(lab: &Lab<D>) -> Outcome {
    let pace = json!({"slack_ms": 0, "slice_rows": 10, "rows_per_wake": 40});
    lab.tell("a", json!({"configure": {"pace": pace}})).await?;
    lab.main("a", json!({"fill": [0, 100, 10, 300]})).await?;
    lab.advance(Duration::from_millis(350)).await?;
    gone(lab, 0).await?;
    let runs = lab.noted("a", "alarm").await?.len();
    same("three runs, or one more for each that came between two puts", (3..=6).contains(&runs), true)
}

async fn never<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.main("a", json!({"put": ["k", "v", null]})).await?;
    same("alarm", lab.tell("a", json!({"alarm": "get"})).await?, Value::Null)
}

async fn slot<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.tell("a", json!({"configure": {"slot": true, "pace": {"slack_ms": 0}}})).await?;
    lab.tell("a", json!({"alarm": {"job": ["other", 500]}})).await?;
    lab.main("a", json!({"put": ["k", "v", 300]})).await?;
    lab.advance(Duration::from_millis(550)).await?;
    gone(lab, 0).await?;
    let jobs = async || lab.noted("a", "job").await;
    lab.eventually("jobs", SOON, jobs, |jobs| jobs.len() == 1).await.map(drop)
}

async fn rolled_back<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.tell("a", json!({"configure": {"pace": {"slack_ms": 0}}})).await?;
    let put = |key: &str, ttl: u64| on_main(json!({"put": [key, "v", ttl]}));
    let undone = json!({"transaction": {"fails": true, "does": [put("a", 60_000)]}});
    lab.tell("a", undone).await?;
    let get = async || lab.tell("a", json!({"alarm": "get"})).await;
    same("after it", get().await?, Value::Null)?;
    // In one turn with what is undone and would have come before it, and one commit with its alarm.
    let undone = json!({"transaction": {"fails": true, "does": [put("a", 10)]}});
    let told = lab.tell("a", json!([undone, "now", put("b", 300), {"alarm": "get"}])).await?;
    let in_ms = told[3].as_i64().zip(told[1].as_i64()).map(|(armed, now)| armed - now);
    same("in the turn itself", in_ms, Some(300))?;
    lab.advance(Duration::from_millis(350)).await?;
    gone(lab, 0).await
}

async fn deleted<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.tell("a", json!({"configure": {"pace": {"slack_ms": 0}}})).await?;
    lab.main("a", json!({"put": ["a", "v", 60_000]})).await?;
    lab.tell("a", json!({"stored": "delete_all"})).await?;
    lab.main("a", json!({"put": ["b", "v", 300]})).await?;
    lab.advance(Duration::from_millis(350)).await?;
    gone(lab, 0).await
}

async fn notifies<D: Driver>(lab: &Lab<D>, store: Value) -> Outcome {
    let configure = json!({"configure": {"pace": {"slack_ms": 0}, "stores": {"main": store}}});
    lab.tell("a", configure).await.map(drop)
}

async fn told<D: Driver>(lab: &Lab<D>) -> Outcome {
    notifies(lab, json!({"notify": true})).await?;
    lab.main("a", json!({"put": ["a", "v", 300]})).await?;
    lab.main("a", json!({"put": ["b", "v", 60_000]})).await?;
    lab.advance(Duration::from_millis(350)).await?;
    same("told", telling(lab, 1).await?, vec![("a".to_owned(), 1)])?;
    let one = lab.noted("a", "told").await?.remove(0);
    same(
        "of",
        [&one["store"], &one["value"], &one["evicted"]],
        [&json!("main"), &json!("v"), &json!(false)],
    )?;
    gone(lab, 1).await?;
    same("told once", lab.noted("a", "told").await?.len(), 1)
}

async fn again<D: Driver>(lab: &Lab<D>) -> Outcome {
    notifies(lab, json!({"notify": true})).await?;
    lab.main("a", json!({"put": ["a", "bad once", 300]})).await?;
    lab.main("a", json!({"put": ["b", "good", 400]})).await?;
    lab.advance(Duration::from_millis(450)).await?;
    let mut first = telling(lab, 2).await?;
    first.truncate(2); // a slow machine sees the next one too
    same("first", first, vec![("a".to_owned(), 1), ("b".to_owned(), 1)])?;
    lab.advance(Duration::from_millis(1_050)).await?;
    same("again", telling(lab, 3).await?.pop(), Some(("a".to_owned(), 2)))?;
    let waiting = async || lab.tell("a", json!({"sweep": "waiting"})).await;
    lab.eventually("waiting", SOON, waiting, |left| *left == 0).await.map(drop)
}

async fn while_told<D: Driver>(lab: &Lab<D>) -> Outcome {
    notifies(lab, json!({"notify": true})).await?;
    lab.main("a", json!({"put": ["a", "slow", 300]})).await?;
    lab.advance(Duration::from_millis(350)).await?;
    telling(lab, 1).await?;
    lab.main("a", json!({"put": ["a", "new", null]})).await?;
    lab.advance(Duration::from_millis(450)).await?;
    let waiting = async || lab.tell("a", json!({"sweep": "waiting"})).await;
    lab.eventually("waiting", SOON, waiting, |left| *left == 0).await?;
    same("it", lab.main("a", json!({"get": "a"})).await?, "new")?;
    same("told once", lab.noted("a", "told").await?.len(), 1)
}

async fn evicted<D: Driver>(lab: &Lab<D>) -> Outcome {
    notifies(lab, json!({"notify": true, "max_entries": 1})).await?;
    lab.main("a", json!({"put": ["a", "v", 60_000]})).await?;
    lab.main("a", json!({"put": ["b", "v", 90_000]})).await?;
    lab.advance(Duration::from_millis(50)).await?;
    same("told", telling(lab, 1).await?, vec![("a".to_owned(), 1)])?;
    same("why", lab.noted("a", "told").await?.remove(0)["evicted"].clone(), true)
}
