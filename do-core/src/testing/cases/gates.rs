//! C: what other events see of an object's writes, and when what it sends leaves.

use crate::{
    limits,
    testing::{
        case::{Case, Outcome, holds, same},
        difference::HostKind,
        driver::{Client, Driver, Received},
        lab::{ClientExt, Lab},
        tasks::both,
    },
};
use serde_json::json;
use std::time::Duration;

/// A foreign key that is checked at the commit, which therefore fails.
const BREAK: &str = "INSERT INTO child VALUES (99)";

pub(super) fn cases<D: Driver>() -> Vec<Case<D>> {
    vec![
        Case::new("c1 read-modify-write with storage awaits alone is atomic", |lab| Box::pin(c1_atomic(lab))),
        Case::new("c2 a sleep in between lets other events in unless a gate is closed", |lab| {
            Box::pin(c2_sleep(lab))
        }),
        Case::new("c4 c6 nothing made after a write leaves when its commit fails", |lab| {
            Box::pin(c4_commit_fails(lab))
        })
        .shows("commit-doubt"),
        Case::new("c4 d25 a socket gets what was sent before the failed write and is lost", |lab| {
            Box::pin(c4_socket(lab))
        }),
        Case::new("c8 what was acknowledged survives a kill", |lab| Box::pin(c8_kill(lab))).crashes(),
        Case::new("f18 transactions nest 64 deep and no deeper", |lab| Box::pin(f18_depth(lab))),
        Case::new("c10 messages keep their order around writes", |lab| Box::pin(c10_order(lab))),
    ]
}

async fn c1_atomic<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.many("a", json!([{"increment": null}]), 20).await?;
    same("20 increments", lab.last("a", json!([{"sql": "SELECT n FROM n"}])).await?, json!([20]))
}

async fn c2_sleep<D: Driver>(lab: &Lab<D>) -> Outcome {
    let (calls, time) = both(lab.many("a", json!([{"add": 1}, {"increment": 400}]), 20), async {
        lab.begun("a", 20).await?;
        lab.advance(Duration::from_millis(500)).await
    })
    .await;
    calls.and(time)?;
    let counted = lab.last("a", json!([{"sql": "SELECT n FROM n"}])).await?;
    holds(
        format!("20 increments gave {counted}"),
        counted[0].as_i64().is_some_and(|n| (1..20).contains(&n)),
    )?;
    let (calls, time) = both(
        lab.many("b", json!([{"gate": [{"increment": 10}]}]), 20),
        lab.advance(Duration::from_millis(300)),
    )
    .await;
    calls.and(time)?;
    same("20 gated increments", lab.last("b", json!([{"sql": "SELECT n FROM n"}])).await?, json!([20]))
}

async fn c4_commit_fails<D: Driver>(lab: &Lab<D>) -> Outcome {
    let before = lab.last("a", json!([{"note": "kept"}, "instance"])).await?;
    let note = |object: &str, line: &str| json!({"call_detached": [lab.name(object), [{"note": line}]]});
    let steps = json!([
        note("peer", "before"), {"note": "lost"}, {"sql": BREAK},
        note("peer", "after"), note("other", "after"), {"set_alarm": 60_000}
    ]);
    let thrown = lab.thrown("a", steps).await?;
    let text = "Durable Object was reset and rolled back to its last known good state because the application left \
                the database in a state where constraints were violated";
    holds(format!("{thrown:?}"), thrown.message.starts_with(text))?;
    same("its kind", &thrown.kind, "Sql")?;
    same("its code", &thrown.sql_code, "SQLITE_CONSTRAINT_FOREIGNKEY")?;
    let in_doubt = lab.driver().kind() == HostKind::Workerd;
    same(
        "whether it may have happened, and may be tried again",
        [thrown.indefinite, thrown.retryable],
        [in_doubt, false],
    )?;
    let after = lab.run("a", json!(["instance", "get_alarm"])).await?;
    holds("the instance is the same", after[0] != before)?;
    same("the alarm", &after[1], json!(null))?;
    same("what was written", lab.lines("a").await?, json!(["kept"]))?;
    lab.advance(Duration::from_millis(200)).await?;
    // A call made before the write leaves, unless the reset overtakes it: it is in flight like any other.
    let peer = lab.lines("peer").await?;
    holds(format!("a peer heard {peer}"), peer == json!(["before"]) || peer == json!([]))?;
    same(
        "how often the other was constructed",
        lab.run("other", json!(["boots", "log"])).await?,
        [json!(1), json!([])],
    )
}

async fn c4_socket<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut client = lab.open("a", &[]).await?;
    let steps = json!([{"send": ["this", "before"]}, {"sql": BREAK}, {"send": ["this", "after"]}]);
    client.text(&steps.to_string()).await?;
    client.hears_text("before the write", "before").await?;
    client.hears("after it", Received::Lost).await?;
    same("events", lab.events("a").await?, json!([]))
}

async fn c8_kill<D: Driver>(lab: &Lab<D>) -> Outcome {
    for n in 0..10 {
        lab.run("a", json!([{"note": format!("{n}")}])).await?;
    }
    lab.crash().await?;
    let all: Vec<_> = (0..10).map(|n| n.to_string()).collect();
    same("what was acknowledged", lab.lines("a").await?, json!(all))
}

async fn c10_order<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut client = lab.open("a", &[]).await?;
    let steps = json!([
        {"send": ["this", "1"]}, {"note": "w"}, {"send": ["this", "2"]}, {"send_bytes": ["this", [3]]},
        {"note": "w"}, {"send": ["this", "4"]}
    ]);
    client.text(&steps.to_string()).await?;
    client.hears_text("first", "1").await?;
    client.hears_text("second", "2").await?;
    client.hears("third", Received::Message(vec![3].into())).await?;
    client.hears_text("fourth", "4").await?;
    client.close(None).await
}

async fn f18_depth<D: Driver>(lab: &Lab<D>) -> Outcome {
    let nest = |depth: usize| json!({"life": {"nest_transactions": depth}});
    let (most, more) = (limits::TRANSACTION_DEPTH, limits::TRANSACTION_DEPTH + 1);
    same("as deep as may be", lab.last("a", json!([nest(most)])).await?, most)?;
    let refused = lab.last("a", json!([{"try": [nest(more)]}])).await?;
    let error = json!([refused["error"]["kind"], refused["error"]["message"]]);
    same("deeper", error, json!(["Limit", "transactions are nested deeper than 64"]))?;
    let rows = json!([{"sql": "SELECT count(*) FROM n"}]);
    same("what it wrote is undone", lab.last("a", rows).await?, json!([most]))?;
    same("side by side", lab.last("a", json!([nest(1), nest(most)])).await?, most + 1 + most)
}
