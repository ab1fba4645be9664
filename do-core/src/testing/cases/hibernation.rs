//! D: what sockets keep while their object is out of memory.

use crate::testing::{
    case::{Case, Outcome, holds, same},
    driver::{Client, Driver, Received},
    lab::{ClientExt, Lab, closed},
};
use serde_json::json;
use std::time::Duration;

pub(super) fn cases<D: Driver>() -> Vec<Case<D>> {
    vec![
        Case::new("d19 a close that wakes an evicted object is told and answered", |lab| {
            Box::pin(d19_close_wakes(lab))
        })
        .evicts(),
        Case::new(
            "d27 sockets, tags and attachments survive eviction and a message makes a new instance",
            |lab| Box::pin(d27_survive(lab)),
        )
        .evicts(),
        Case::new("d29 the auto-response does not wake the object", |lab| Box::pin(d29_asleep(lab))).evicts(),
        Case::new("d33 an alarm that wakes an evicted object reaches its sockets", |lab| {
            Box::pin(d33_alarm(lab))
        })
        .evicts(),
        Case::new("d9 many messages to an evicted object keep their order and construct once", |lab| {
            Box::pin(d9_burst(lab))
        })
        .evicts(),
    ]
}

async fn d19_close_wakes<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut client = lab.open("a", &[("tag", "t"), ("attach", "ada")]).await?;
    lab.run("a", json!([{"on_close": [{"note_of": [{"tags": "this"}, {"attachments": "this"}, "boots"]}]}]))
        .await?;
    lab.evict().await?;
    client.close(Some((4_001, "bye"))).await?;
    client.hears("the answer", closed(4_001, "bye")).await?;
    same("events", lab.events("a").await?, json!([r#"t: close 4001 "bye" clean"#]))?;
    same("what the handler saw", lab.lines("a").await?, json!([r#"[[["t"]],["ada"],2]"#]))
}

async fn d27_survive<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut one = lab.open("a", &[("tag", "x"), ("tag", "y"), ("attach", "one")]).await?;
    let mut two = lab.open("a", &[("tag", "y")]).await?;
    two.steps(json!([{"attach": ["this", {"name": "two"}]}])).await?;
    let look = json!([
        {"tags": "this"}, {"attachments": "this"}, {"attachments": {"tagged": "y"}}, {"count": {"tagged": "x"}},
        {"states": "all"}, {"count": "others"}
    ]);
    let before = one.steps(look.clone()).await?;
    let expected = json!([
        [["x", "y"]], ["one"], ["one", {"name": "two"}], 1, ["Open", "Open"], 1
    ]);
    same("before", &before, &expected)?;
    let instance = lab.last("a", json!([{"add": 5}, "instance"])).await?;
    for boots in 2..4 {
        lab.evict().await?;
        same("after the eviction", one.steps(look.clone()).await?, &expected)?;
        let now = two.steps(json!(["instance", "boots", {"add": 0}])).await?;
        holds("the instance is the same", now[0] != instance)?;
        same("constructions and memory", [&now[1], &now[2]], [&json!(boots), &json!(0)])?;
    }
    lab.run("a", json!([{"send": [{"tagged": "y"}, "both"]}])).await?;
    one.hears_text("one", "both").await?;
    two.hears_text("two", "both").await
}

async fn d29_asleep<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut client = lab.open("a", &[]).await?;
    client.steps(json!([{"auto_response": ["ping", "pong"]}])).await?;
    lab.evict().await?;
    for _ in 0..3 {
        client.text("ping").await?;
        client.hears_text("asleep", "pong").await?;
    }
    // The question itself is the second construction.
    let woken = client.steps(json!(["boots", "events", {"auto_responses_at": "this"}])).await?;
    same("constructions and events", [&woken[0], &woken[1]], [&json!(2), &json!([])])?;
    holds("no time of the answer", woken[2][0].is_i64())?;
    client.text("ping").await?;
    client.hears_text("awake", "pong").await
}

async fn d33_alarm<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut client = lab.open("a", &[]).await?;
    let ms = lab.after_eviction(2_500);
    lab.run("a", json!([{"on_alarm": [{"send": ["all", "the alarm"]}]}, {"set_alarm": ms}])).await?;
    lab.evict().await?;
    lab.advance(Duration::from_millis(2_600)).await?;
    client.hears_text("without a request", "the alarm").await?;
    same("constructions", lab.last("a", json!(["boots"])).await?, json!(2))
}

async fn d9_burst<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.run("a", json!([{"on_message": ["echo"]}])).await?;
    let mut client = lab.open("a", &[]).await?;
    lab.evict().await?;
    for n in 0..50 {
        client.text(&n.to_string()).await?;
    }
    for n in 0..50 {
        client.hears("the echo", Received::Message(n.to_string().into())).await?;
    }
    same("constructions", lab.last("a", json!(["boots"])).await?, json!(2))
}
