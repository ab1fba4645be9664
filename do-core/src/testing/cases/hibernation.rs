//! D: what sockets keep while their object is out of memory.

use crate::{
    limits,
    testing::{
        case::{Case, Outcome, holds, same},
        driver::{Client, Driver, Received},
        lab::{ClientExt, Lab, closed},
        tasks::both,
    },
};
use serde_json::{Value, json};
use std::time::Duration;

const SOON: Duration = Duration::from_secs(3);

pub(super) fn cases<D: Driver>() -> Vec<Case<D>> {
    let mut cases = waking();
    cases.extend(asleep());
    cases.into_iter().map(Case::evicts).chain(idle()).collect()
}

/// What a woken object finds.
fn waking<D: Driver>() -> Vec<Case<D>> {
    vec![
        Case::new("d9 many messages to an evicted object keep their order and construct once", |lab| {
            Box::pin(d9_burst(lab))
        }),
        Case::new("d9 messages to an evicted object wait for the gate of its constructor", |lab| {
            Box::pin(d9_gate(lab))
        }),
        Case::new("d19 a close that wakes an evicted object is told and answered", |lab| {
            Box::pin(d19_close(lab))
        }),
        Case::new("d19 a loss that wakes an evicted object is told", |lab| Box::pin(d19_lost(lab))),
        Case::new("d19 the socket of a close that wakes is the same as of one that does not", |lab| {
            Box::pin(d19_sees(lab))
        }),
        Case::new("d25 a constructor that fails when woken loses the sockets without an event", |lab| {
            Box::pin(d25_constructor(lab))
        }),
        Case::new("d27 tags and attachments survive hibernation", |lab| Box::pin(d27_kept(lab))),
        Case::new("d27 a changed attachment survives hibernation, again and again", |lab| {
            Box::pin(d27_changed(lab))
        }),
        Case::new("d27 memory does not survive hibernation", |lab| Box::pin(d27_memory(lab))),
        Case::new("d27 sockets that were found by tag are found again", |lab| Box::pin(d27_found(lab))),
        Case::new("d33 the constructor of a woken object reaches its sockets", |lab| {
            Box::pin(d33_constructor(lab))
        }),
        Case::new("d33 an alarm that wakes an evicted object reaches its sockets", |lab| {
            Box::pin(d33_alarm(lab))
        }),
    ]
}

/// What the host does by itself meanwhile.
fn asleep<D: Driver>() -> Vec<Case<D>> {
    vec![
        Case::new("d29 the auto-response does not wake the object", |lab| Box::pin(d29_asleep(lab))),
        Case::new("d29 the auto-response survives hibernation", |lab| Box::pin(d29_setting(lab))),
        Case::new("d29 another text wakes the object", |lab| Box::pin(d29_other(lab))),
        Case::new("d30 the time of an auto-response given meanwhile is there after it", |lab| {
            Box::pin(d30_asleep(lab))
        }),
    ]
}

/// What needs the idle time itself.
fn idle<D: Driver>() -> Vec<Case<D>> {
    vec![
        Case::new("d29 the auto-response does not extend the life of the object", |lab| {
            Box::pin(d29_idle(lab))
        }),
        Case::new("d35 two sockets that were opened at once do not keep their object in memory", |lab| {
            Box::pin(d35_two(lab))
        }),
    ]
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

async fn d9_gate<D: Driver>(lab: &Lab<D>) -> Outcome {
    let gate = json!([{"sleep": 200}, {"note": "open"}]);
    lab.run("a", json!([{"on_new": gate}, {"on_message": [{"note": "message"}]}])).await?;
    let mut client = lab.open("a", &[]).await?;
    lab.evict().await?;
    client.text("one").await?;
    client.text("two").await?;
    lab.advance(Duration::from_millis(300)).await?;
    let all = |lines: &Value| *lines == json!(["open", "message", "message"]);
    let lines = json!([{"sql": "SELECT line FROM log ORDER BY rowid"}]);
    lab.until("a", lines, SOON, all).await.map(drop)
}

async fn d19_close<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut client = lab.open("a", &[("tag", "t")]).await?;
    lab.evict().await?;
    client.close(Some((4_001, "bye"))).await?;
    client.hears("the answer", closed(4_001, "bye")).await?;
    let told = lab.run("a", json!(["events", "boots"])).await?;
    same("events and constructions", told, [json!([r#"t: close 4001 "bye" clean"#]), json!(2)])
}

async fn d19_lost<D: Driver>(lab: &Lab<D>) -> Outcome {
    let client = lab.open("a", &[("tag", "t")]).await?;
    lab.run("a", json!([{"on_close": [{"note_of": ["boots"]}]}])).await?;
    lab.evict().await?;
    client.lose();
    lab.advance(Duration::from_millis(200)).await?;
    let told = json!([r#"t: close 1006 "WebSocket disconnected without sending Close frame." lost"#]);
    lab.until("a", json!(["events"]), SOON, |events| *events == told).await?;
    same("constructions at the handler", lab.lines("a").await?, json!(["[2]"]))
}

async fn d19_sees<D: Driver>(lab: &Lab<D>) -> Outcome {
    let look = json!({"note_of": [
        {"states": "this"}, {"tags": "this"}, {"attachments": "this"}, {"count": "all"}, {"count": "others"}
    ]});
    lab.run("a", json!([{"on_close": [look, {"send": ["this", "last words"]}]}])).await?;
    let mut client = lab.open("a", &[("tag", "t"), ("attach", "ada")]).await?;
    lab.evict().await?;
    client.close(Some((1_000, ""))).await?;
    client.hears_text("before the answer", "last words").await?;
    client.hears("the answer", closed(1_000, "")).await?;
    same("what it saw", lab.lines("a").await?, json!([r#"[["Closing"],[["t"]],["ada"],1,0]"#]))
}

async fn d25_constructor<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut one = lab.open("a", &[]).await?;
    let mut two = lab.open("a", &[]).await?;
    lab.run("a", json!([{"on_new": [{"life": {"fail_times": 1}}]}])).await?;
    lab.evict().await?;
    one.text("wakes").await?;
    one.hears("the one that woke", Received::Lost).await?;
    two.hears("the other", Received::Lost).await?;
    same("events and count", lab.run("a", json!(["events", {"count": "all"}])).await?, [json!([]), json!(0)])
}

async fn d27_kept<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut one = lab.open("a", &[("tag", "x"), ("tag", ""), ("tag", "a"), ("attach", "one")]).await?;
    let mut two = lab.open("a", &[]).await?;
    lab.evict().await?;
    let look = json!([{"tags": "this"}, {"attachments": "this"}, {"states": "this"}]);
    same("one", one.steps(look.clone()).await?, json!([[["x", "", "a"]], ["one"], ["Open"]]))?;
    same("two", two.steps(look).await?, json!([[[]], [null], ["Open"]]))
}

async fn d27_changed<D: Driver>(lab: &Lab<D>) -> Outcome {
    let longest = "x".repeat(limits::ATTACHMENT_BYTES - 2);
    let mut client = lab.open("a", &[("attach", "first")]).await?;
    for (boots, value) in [(1, json!({"n": [1]})), (2, json!(longest)), (3, json!(null))] {
        same(
            "constructions",
            client.steps(json!(["boots", {"attach": ["this", value]}])).await?,
            json!([boots, null]),
        )?;
        lab.evict().await?;
        same("the attachment", client.steps(json!([{"attachments": "this"}])).await?, json!([[value]]))?;
    }
    Ok(())
}

async fn d27_memory<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut client = lab.open("a", &[]).await?;
    let before = client.steps(json!([{"add": 5}, "instance"])).await?;
    lab.evict().await?;
    let after = client.steps(json!([{"add": 0}, "instance"])).await?;
    same("memory", &after[0], json!(0))?;
    holds("the instance is the same", after[1] != before[1])
}

async fn d27_found<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut one = lab.open("a", &[("tag", "x"), ("tag", "y")]).await?;
    let mut two = lab.open("a", &[("tag", "y")]).await?;
    let mut three = lab.open("a", &[]).await?;
    lab.evict().await?;
    let look = json!([{"count": "all"}, {"count": {"tagged": "x"}}, {"count": {"tagged": "y"}}, {"count": "others"}]);
    same("counts", three.steps(look).await?, json!([3, 1, 2, 2]))?;
    lab.run(
        "a",
        json!([{"send": [{"tagged": "x"}, "x"]}, {"send": [{"tagged": "y"}, "y"]}, {"send": ["all", "all"]}]),
    )
    .await?;
    for (client, texts) in
        [(&mut one, &["x", "y", "all"][..]), (&mut two, &["y", "all"]), (&mut three, &["all"])]
    {
        for text in texts {
            client.hears_text("after the eviction", text).await?;
        }
    }
    Ok(())
}

async fn d33_constructor<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut client = lab.open("a", &[("tag", "t"), ("attach", "ada")]).await?;
    let look = json!({"note_of": [{"tags": "all"}, {"attachments": {"tagged": "t"}}, {"states": "all"}]});
    lab.run("a", json!([{"on_new": [look, {"send": ["all", "from the constructor"]}]}])).await?;
    lab.evict().await?;
    client.text("wakes").await?;
    client.hears_text("from the constructor", "from the constructor").await?;
    same("what it saw", lab.lines("a").await?, json!([r#"[[["t"]],["ada"],["Open"]]"#]))
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

/// A socket of an object that answers "ping" by itself and was evicted.
async fn sleeping<D: Driver>(lab: &Lab<D>) -> Result<D::Client, crate::testing::Fault> {
    lab.run("a", json!([{"auto_response": ["ping", "pong"]}, {"on_message": ["echo"]}])).await?;
    let client = lab.open("a", &[]).await?;
    lab.evict().await?;
    Ok(client)
}

async fn d29_asleep<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut client = sleeping(lab).await?;
    for _ in 0..3 {
        client.text("ping").await?;
        client.hears_text("asleep", "pong").await?;
    }
    // The question itself is the second construction.
    same("constructions and events", client.steps(json!(["boots", "events"])).await?, json!([2, []]))
}

async fn d29_setting<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut client = sleeping(lab).await?;
    same("constructions", client.steps(json!(["boots"])).await?, json!([2]))?;
    client.text("ping").await?;
    client.hears_text("awake again", "pong").await?;
    let mut other = lab.open("a", &[]).await?;
    other.text("ping").await?;
    other.hears_text("a new socket", "pong").await
}

async fn d29_other<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut client = sleeping(lab).await?;
    client.text("PING").await?;
    client.hears_text("another text", "PING").await?;
    same("constructions", client.steps(json!(["boots"])).await?, json!([2]))
}

async fn d30_asleep<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut client = sleeping(lab).await?;
    lab.advance(Duration::from_millis(100)).await?;
    client.text("ping").await?;
    client.hears_text("asleep", "pong").await?;
    lab.advance(Duration::from_millis(100)).await?;
    let woken = client.steps(json!([{"auto_responses_at": "this"}, "now"])).await?;
    let (at, now) = (woken[0][0].as_i64(), woken[1].as_i64());
    holds(format!("{at:?} is no time before {now:?}"), at.is_some() && at < now)
}

async fn d29_idle<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut client = lab.open("a", &[]).await?;
    client.steps(json!([{"auto_response": ["ping", "pong"]}])).await?;
    for _ in 0..4 {
        lab.advance(Duration::from_millis(3_100)).await?;
        client.text("ping").await?;
        client.hears_text("the answer", "pong").await?;
    }
    same("constructions", client.steps(json!(["boots"])).await?, json!([2]))
}

async fn d35_two<D: Driver>(lab: &Lab<D>) -> Outcome {
    let (one, two) = both(lab.open("a", &[]), lab.open("a", &[])).await;
    let (mut one, mut two) = (one?, two?);
    lab.advance(limits::IDLE + Duration::from_millis(1_500)).await?;
    same("constructions", one.steps(json!(["boots", {"count": "all"}])).await?, json!([2, 2]))?;
    same("over the other", two.steps(json!(["boots"])).await?, json!([2]))
}
