//! B1 to B6: when instances are made, and what keeps them in memory.

use super::told::gone;
use crate::testing::{
    case::{Case, Fault, Outcome, holds, same},
    difference::HostKind,
    driver::{Client, Driver, Received},
    exchange::Exchange,
    lab::{ClientExt, Lab},
    tasks::both,
};
use http::Method;
use serde_json::{Value, json};
use std::time::Duration;

/// Longer than an idle object stays in memory, also where it is looked at only now and then.
const BEYOND_IDLE: Duration = Duration::from_millis(12_500);

pub(super) fn cases<D: Driver>() -> Vec<Case<D>> {
    [construction(), staying()].into_iter().flatten().collect()
}

fn construction<D: Driver>() -> Vec<Case<D>> {
    vec![
        Case::new("b1 the first events construct one instance and wait for it", |lab| Box::pin(b1_once(lab))),
        Case::new("b1 what the constructor made is there for the first event", |lab| {
            Box::pin(b1_before(lab))
        }),
        Case::new("b1 a socket message constructs", |lab| Box::pin(b1_message(lab))).evicts(),
        Case::new("b2 an evicted object loses its memory and keeps its data", |lab| {
            Box::pin(b2_evicted(lab))
        })
        .evicts(),
        Case::new("b2 an idle object leaves memory after ten seconds", |lab| Box::pin(b2_idle(lab))).long(),
        Case::new("b2 what is asked of it keeps an object in memory for ten seconds more", |lab| {
            Box::pin(b2_asked(lab))
        })
        .long(),
    ]
}

fn staying<D: Driver>() -> Vec<Case<D>> {
    vec![
        Case::new("b3 a pending sleep keeps its object in memory", |lab| {
            Box::pin(b3_keeps(lab, json!([{"life": {"hold_sleep": 600_000}}])))
        }),
        Case::new("b3 background work keeps its object in memory", |lab| {
            Box::pin(b3_keeps(lab, json!([{"wait_until": [{"sleep": 600_000}]}])))
        }),
        Case::new("b3 background work that waits for nothing keeps its object in memory", |lab| {
            Box::pin(b3_keeps(lab, json!([{"wait_until": [{"life": "never"}]}])))
        }),
        Case::new("b3 a call that is awaited keeps the caller in memory", |lab| {
            let steps = json!([{"wait_until": [{"call": [lab.name("c"), [{"sleep": 600_000}]]}]}]);
            Box::pin(b3_keeps(lab, steps))
        }),
        Case::new("b3 a call that nobody awaits keeps the caller in memory", |lab| {
            Box::pin(b3_keeps(lab, json!([{"call_detached": [lab.name("c"), [{"sleep": 600_000}]]}])))
        }),
        Case::new("b3 a call keeps the object that is called in memory", |lab| Box::pin(b3_called(lab))),
        Case::new("b3 a request under way keeps its object in memory", |lab| Box::pin(b3_request(lab))),
        Case::new("b3 a message handler that awaits keeps its object in memory", |lab| {
            Box::pin(b3_message(lab))
        }),
        Case::new("b3 what a slow socket was not sent yet keeps its object in memory", |lab| {
            Box::pin(b3_unsent(lab))
        })
        .differs(&[HostKind::Tokio, HostKind::Workerd], "no-network"),
        Case::new("b3 a stored alarm does not keep its object in memory", |lab| Box::pin(b3_alarm(lab))),
        Case::new("b3 sockets do not keep their object in memory", |lab| Box::pin(b3_sockets(lab))),
        Case::new("b3 an object that was called and has answered leaves memory", |lab| {
            Box::pin(b3_over(lab))
        }),
        Case::new("b4 background work alone keeps an object for as long as it takes", |lab| {
            Box::pin(b4_stays(lab))
        })
        .long()
        .differs(&[HostKind::Kit, HostKind::Tokio], "background"),
        Case::new("b4 background work alone keeps an object for 70 to 140 s", |lab| Box::pin(b4_leaves(lab)))
            .long()
            .differs(&[HostKind::Workerd], "background"),
        Case::new("b6 a hibernated socket is open after minutes and wakes its object", |lab| {
            Box::pin(b6_minutes(lab))
        })
        .long(),
    ]
}

async fn b1_once<D: Driver>(lab: &Lab<D>) -> Outcome {
    let call = || lab.run("a", json!([{"add": 1}, "instance", "boots"]));
    let (one, (two, three)) = both(call(), both(call(), call())).await;
    let (one, two, three) = (one?, two?, three?);
    for other in [&two, &three] {
        same("instance and constructions", &one[1..], &other[1..])?;
    }
    same("constructions", &one[2], 1)?;
    let mut counted: Vec<_> = [&one, &two, &three].iter().filter_map(|seen| seen[0].as_i64()).collect();
    counted.sort_unstable();
    same("in one memory", counted, [1, 2, 3])
}

async fn b1_before<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.run("a", json!([{"on_new": [{"add": 7}, {"note": "made"}]}])).await?;
    gone(lab, "a").await?;
    let seen = lab.run("a", json!([{"add": 1}, {"note": "called"}, {"sql": "SELECT line FROM log"}])).await?;
    same("memory and data", [&seen[0], &seen[2]], json!([8, ["made", "called"]]))
}

async fn b1_message<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.run("a", json!([{"on_new": [{"add": 7}]}])).await?;
    let mut client = lab.open("a", &[]).await?;
    lab.evict().await?;
    let boots = client.steps(json!([{"add": 1}, "boots"])).await?;
    same("memory and constructions", boots, json!([8, 2]))
}

async fn b2_evicted<D: Driver>(lab: &Lab<D>) -> Outcome {
    let before = lab.run("a", json!([{"add": 5}, {"sql": "INSERT INTO n VALUES (5)"}, "instance"])).await?;
    lab.evict().await?;
    let after = lab.run("a", json!([{"add": 0}, {"sql": "SELECT n FROM n"}, "instance", "boots"])).await?;
    same("memory and data", &after[..2], [json!(0), json!([5])])?;
    holds("the instance is the same", before[2] != after[2])?;
    same("constructions", &after[3], json!(2))
}

async fn b2_idle<D: Driver>(lab: &Lab<D>) -> Outcome {
    // workerd counts the ten seconds from when it last looked at the clock, which it does rarely while all the cases
    // begin at once.
    lab.advance(Duration::from_secs(8)).await?;
    let before = lab.last("a", json!(["instance"])).await?;
    lab.advance(Duration::from_millis(8_500)).await?;
    same("after 8.5 s", lab.last("a", json!(["instance"])).await?, &before)?;
    lab.advance(Duration::from_millis(11_500)).await?;
    holds("the instance is the same", lab.last("a", json!(["instance"])).await? != before)
}

async fn b2_asked<D: Driver>(lab: &Lab<D>) -> Outcome {
    let before = lab.last("a", json!(["instance"])).await?;
    for _ in 0..3 {
        lab.advance(Duration::from_secs(7)).await?;
        same("within ten seconds", lab.last("a", json!(["instance"])).await?, &before)?;
    }
    Ok(())
}

/// Runs the steps, lets the time pass after which an idle object is gone, and looks whether it stayed.
async fn b3_keeps<D: Driver>(lab: &Lab<D>, steps: Value) -> Outcome {
    lab.run("a", steps).await?;
    let before = lab.last("a", json!([{"add": 5}, "instance"])).await?;
    lab.advance(BEYOND_IDLE).await?;
    let after = lab.run("a", json!([{"add": 0}, "instance"])).await;
    gone(lab, "a").await?;
    same("memory and instance", after?, json!([5, before]))
}

/// Fails unless the object left memory in that time.
async fn leaves<D: Driver>(lab: &Lab<D>, object: &str, before: &Value) -> Outcome {
    lab.advance(BEYOND_IDLE).await?;
    holds("the instance is the same", lab.last(object, json!(["instance"])).await? != *before)
}

async fn b3_called<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.run("b", json!([{"call_detached": [lab.name("a"), [{"add": 5}, {"sleep": 600_000}]]}])).await?;
    b3_stays(lab).await
}

/// Whether something in the object, which has added 5, goes on beyond the time after which an idle one is gone.
async fn b3_stays<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.begun("a", 5).await?;
    let before = lab.last("a", json!(["instance"])).await?;
    lab.advance(BEYOND_IDLE).await?;
    let after = lab.run("a", json!([{"add": 0}, "instance"])).await;
    gone(lab, "a").await?;
    same("memory and instance", after?, json!([5, before]))
}

async fn b3_request<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut request = lab.begin(Method::GET, "a", json!([{"add": 5}, {"sleep": 600_000}]), &[]).await?;
    b3_stays(lab).await?;
    same("its answer after the reset", request.head().await?.status().as_u16(), 500)
}

async fn b3_message<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut client = lab.open("a", &[]).await?;
    client.text(&json!([{"add": 5}, {"sleep": 600_000}]).to_string()).await?;
    b3_stays(lab).await?;
    client.hears("after the reset", Received::Lost).await
}

async fn b3_unsent<D: Driver>(lab: &Lab<D>) -> Outcome {
    /// More than the way to a client that does not read holds.
    const BYTES: usize = 24 << 20;
    let mut client = lab.open("a", &[]).await?;
    lab.run("a", json!([{"life": {"send_size": ["all", BYTES]}}])).await?;
    let before = lab.last("a", json!([{"add": 5}, "instance"])).await?;
    lab.advance(BEYOND_IDLE).await?;
    same("memory and instance", lab.run("a", json!([{"add": 0}, "instance"])).await?, json!([5, before]))?;
    match client.receive().await? {
        Received::Message(message) => same("what arrives", message.len(), BYTES),
        other => Err(Fault::new(format!("{other:?} instead of the message"))),
    }
}

async fn b3_alarm<D: Driver>(lab: &Lab<D>) -> Outcome {
    let before = lab.run("a", json!([{"set_alarm": 600_000}, "instance"])).await?;
    leaves(lab, "a", &before[1]).await?;
    same("the alarm", lab.last("a", json!(["get_alarm"])).await?, &before[0])
}

async fn b3_sockets<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut client = lab.open("a", &[("attach", "ada")]).await?;
    let before = client.steps(json!([{"add": 5}, "instance"])).await?;
    lab.advance(BEYOND_IDLE).await?;
    let after = client.steps(json!([{"add": 0}, "instance", "boots", {"attachments": "this"}])).await?;
    same("memory, constructions and attachment", [&after[0], &after[2], &after[3]], json!([0, 2, ["ada"]]))?;
    holds("the instance is the same", before[1] != after[1])
}

async fn b3_over<D: Driver>(lab: &Lab<D>) -> Outcome {
    let to_a = |steps: Value| json!([{"call": [lab.name("a"), steps]}]);
    let called = lab.last("b", to_a(json!(["instance"]))).await?;
    let caller = lab.last("b", json!([{"call_detached": [lab.name("a"), []]}, "instance"])).await?;
    lab.advance(BEYOND_IDLE).await?;
    let stays = |what| format!("the instance of {what} is the same");
    holds(stays("the caller"), lab.last("b", json!(["instance"])).await? != caller)?;
    holds(stays("the one that was called"), lab.last("b", to_a(json!(["instance"]))).await? != called)
}

/// What only background work keeps, this long after the last request.
async fn b4_after<D: Driver>(lab: &Lab<D>, seconds: u64) -> Result<bool, Fault> {
    lab.run("a", json!([{"wait_until": [{"life": "never"}]}, {"life": {"hold_sleep": 600_000}}])).await?;
    let before = lab.last("a", json!(["instance"])).await?;
    lab.advance(Duration::from_secs(seconds)).await?;
    Ok(lab.last("a", json!(["instance"])).await? == before)
}

async fn b4_stays<D: Driver>(lab: &Lab<D>) -> Outcome {
    holds("it left", b4_after(lab, 145).await?)
}

async fn b4_leaves<D: Driver>(lab: &Lab<D>) -> Outcome {
    holds("it is still there after 145 s", !b4_after(lab, 145).await?)
}

async fn b6_minutes<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut client = lab.open("a", &[("tag", "t"), ("attach", "ada")]).await?;
    client.steps(json!([{"add": 5}])).await?;
    lab.advance(Duration::from_secs(145)).await?;
    let seen = client.steps(json!([{"add": 0}, "boots", {"tags": "this"}, {"attachments": "this"}])).await?;
    same("memory, constructions, tags, attachment", seen, json!([0, 2, [["t"]], ["ada"]]))
}
