//! Counters, leases and semaphores as objects of their own, over HTTP and by their stubs, which an entry and an object call.

use crate::rooms::{Rooms, SOON};
use do_core::testing::{
    Case, Driver, Exchange, Fault, Head, Lab, Local, Outcome, Piece, Thrown, all, both, holds, same,
};
use http::{Method, Request};
use serde_json::{Value, json};
use std::time::Duration;

pub(super) fn cases<D: Driver>() -> Vec<Case<D>> {
    vec![
        Case::new("counter over HTTP it tells its values and its refusals", |lab| Box::pin(over_http(lab))),
        Case::new("counter a request key is done once over HTTP", |lab| Box::pin(key_over_http(lab))),
        Case::new("counter by the stub of an entry and of an object it is the same one", |lab| {
            Box::pin(stubs(lab))
        }),
        Case::new("counter adds of many at once are all counted", |lab| Box::pin(many(lab))),
        Case::new("counter values and request keys outlive eviction and crash", |lab| {
            Box::pin(outlives(lab))
        })
        .evicts()
        .crashes(),
        Case::new("lease one holder at a time, by stubs and over HTTP", |lab| Box::pin(exclusive(lab))),
        Case::new("lease fencing tokens grow over eviction and crash", |lab| Box::pin(fencing(lab)))
            .evicts()
            .crashes(),
        Case::new("lease it is over by the alarm, which tells it once", |lab| Box::pin(expires(lab))),
        Case::new("lease it is over by the alarm of an object that left memory", |lab| {
            Box::pin(expires_evicted(lab))
        })
        .evicts(),
        Case::new("lease it is over by the alarm after a crash", |lab| Box::pin(expires_crashed(lab)))
            .crashes(),
        Case::new("lease a stub waits until it is free", |lab| Box::pin(waits(lab))),
        Case::new("semaphore no more permits than there are", |lab| Box::pin(permits(lab))),
    ]
}

/// One POST with a request key if there is one: the status, and the answer, which is JSON.
async fn post<D: Driver>(
    lab: &Lab<D>,
    path: &str,
    key: Option<&str>,
    body: &Value,
) -> Result<(u16, Value), Fault> {
    let body = body.to_string().into_bytes();
    let mut head =
        Request::builder().method(Method::POST).uri(path).header("content-length", body.len().to_string());
    if let Some(key) = key {
        head = head.header("idempotency-key", key);
    }
    let head: Head = head.body(())?;
    let mut exchange = lab.driver().begin(head).await?;
    exchange.send(&body).await?;
    exchange.finish().await?;
    let status = exchange.head().await?.status().as_u16();
    let mut answer = Vec::new();
    loop {
        match exchange.read(64 * 1_024).await? {
            Piece::Bytes(bytes) => answer.extend(bytes),
            Piece::End => break,
            Piece::Lost => return Err(Fault::new("the answer was lost")),
        }
    }
    Ok((status, serde_json::from_slice(&answer)?))
}

/// What a counter object answers over HTTP.
async fn counter<D: Driver>(lab: &Lab<D>, operation: &str, body: Value) -> Result<(u16, Value), Fault> {
    post(lab, &format!("{}/{operation}", lab.address("/counters", "a")), None, &body).await
}

fn command<D: Driver>(lab: &Lab<D>, call: &Value) -> Value {
    json!({"object": lab.name("a"), "call": call})
}

/// What the stub of the entry gives.
async fn entry<D: Driver>(lab: &Lab<D>, call: Value) -> Result<Value, Fault> {
    lab.value("/stub", &command(lab, &call)).await
}

/// What the stub of an object gives.
async fn object<D: Driver>(lab: &Lab<D>, call: Value) -> Result<Value, Fault> {
    lab.tell("a", json!({"primitive": command(lab, &call)})).await
}

/// What the stub of the entry gives for a request key.
async fn keyed<D: Driver>(lab: &Lab<D>, key: &str, call: Value) -> Result<Result<Value, Thrown>, Fault> {
    lab.ask("/stub", &json!({"object": lab.name("a"), "key": key, "call": call})).await
}

async fn over_http<D: Driver>(lab: &Lab<D>) -> Outcome {
    let named = json!({"name": "hits"});
    same("nothing yet", counter(lab, "get", named.clone()).await?, (200, json!({"value": 0})))?;
    same("add", counter(lab, "add", json!({"name": "hits", "by": 7})).await?, (200, json!({"value": 7})))?;
    let (status, told) =
        counter(lab, "compare_and_set", json!({"name": "hits", "expected": 1, "value": 2})).await?;
    same("differs", (status, &told["error"], &told["value"]), (409, "differs", 7))?;
    let (status, told) = counter(lab, "add", json!({"name": "hits", "by": 1_i64 << 53})).await?;
    same("no number that can be added", (status, &told["error"]), (400, "invalid"))?;
    let (status, told) = counter(lab, "add", json!({"name": "hits", "by": (1_i64 << 53) - 1})).await?;
    same("out of bounds", (status, &told["error"]), (422, "limit"))?;
    let (status, told) = counter(lab, "add", json!({"name": "hits"})).await?;
    same("no argument", (status, &told["error"]), (400, "invalid"))?;
    let (status, told) = counter(lab, "nothing", named.clone()).await?;
    same("no operation", (status, &told["error"]), (404, "unknown_operation"))?;
    same(
        "list",
        counter(lab, "list", json!({"limit": 9})).await?,
        (200, json!({"counters": [["hits", 7]]})),
    )?;
    same("reset", counter(lab, "reset", named).await?, (200, json!({"value": 7})))
}

async fn key_over_http<D: Driver>(lab: &Lab<D>) -> Outcome {
    let path = format!("{}/add", lab.address("/counters", "a"));
    let (one, two) = (json!({"name": "hits", "by": 1}), json!({"name": "hits", "by": 2}));
    for _ in 0..3 {
        same("the answer", post(lab, &path, Some("k1"), &one).await?, (200, json!({"value": 1})))?;
    }
    let (status, told) = post(lab, &path, Some("k1"), &two).await?;
    same("reused", (status, &told["error"]), (422, "key_reused"))?;
    same("another key", post(lab, &path, Some("k2"), &two).await?, (200, json!({"value": 3})))?;
    let (status, told) = post(lab, &path, Some("two words"), &one).await?;
    same("no key", (status, &told["error"]), (400, "invalid"))?;
    same("the value", entry(lab, json!({"get": "hits"})).await?, 3)
}

async fn stubs<D: Driver>(lab: &Lab<D>) -> Outcome {
    same("the entry", entry(lab, json!({"add": ["hits", 2]})).await?, 2)?;
    same("the object", object(lab, json!({"add": ["hits", 3]})).await?, 5)?;
    let (_, told) = counter(lab, "get", json!({"name": "hits"})).await?;
    same("over HTTP", told, json!({"value": 5}))?;
    same("set", object(lab, json!({"set": ["stock", -1]})).await?, -1)?;
    same("another", entry(lab, json!({"compare_and_set": ["hits", 4, 0]})).await?, json!({"differs": 5}))?;
    same("done", entry(lab, json!({"compare_and_set": ["hits", 5, 9]})).await?, "done")?;
    same("all", object(lab, json!({"list": ["", 10]})).await?, json!([["hits", 9], ["stock", -1]]))?;
    same("reset", entry(lab, json!({"reset": "hits"})).await?, 9)?;
    same("again", entry(lab, json!({"reset": "hits"})).await?, Value::Null)?;
    let refused = lab.ask("/stub", &command(lab, &json!({"add": ["", 1]}))).await?;
    same("a name that is none", refused.err().map(|thrown| thrown.kind), "Invalid")
}

async fn many<D: Driver>(lab: &Lab<D>) -> Outcome {
    let add = |n: usize| -> Local<'_, Result<Value, Fault>> {
        let call = json!({"add": ["hits", 1]});
        if n.is_multiple_of(2) { Box::pin(entry(lab, call)) } else { Box::pin(object(lab, call)) }
    };
    let mut seen = Vec::new();
    for value in all((0..40).map(add).collect()).await {
        seen.push(value?.as_i64().unwrap_or_default());
    }
    seen.sort_unstable();
    same("each value once", seen, (1..=40).collect::<Vec<_>>())
}

async fn outlives<D: Driver>(lab: &Lab<D>) -> Outcome {
    let add = || json!({"add": ["hits", 1]});
    let value = |answer: Result<Value, Thrown>| answer.ok();
    same("at first", value(keyed(lab, "k1", add()).await?), 1)?;
    lab.evict().await?;
    same("the same", value(keyed(lab, "k1", add()).await?), 1)?;
    same("another", value(keyed(lab, "k2", add()).await?), 2)?;
    lab.crash().await?;
    same("the same after a crash", value(keyed(lab, "k1", add()).await?), 1)?;
    same("the other", value(keyed(lab, "k2", add()).await?), 2)?;
    let reused = keyed(lab, "k1", json!({"add": ["hits", 5]})).await?;
    same("reused", reused.err().map(|thrown| thrown.kind), "Invalid")?;
    same("the value", object(lab, json!({"get": "hits"})).await?, 2)
}

const MINUTE: u64 = 60_000;

async fn exclusive<D: Driver>(lab: &Lab<D>) -> Outcome {
    let granted = entry(lab, json!({"acquire": ["job", "ann", MINUTE]})).await?;
    let token = granted["granted"]["token"].clone();
    holds(format!("{granted}"), token.is_i64())?;
    let held = object(lab, json!({"acquire": ["job", "bob", MINUTE]})).await?;
    same("held", &held["held"]["holder"], "ann")?;
    let path = format!("{}/lease/acquire", lab.address("/locks", "a"));
    let asked = json!({"name": "job", "holder": "cid", "ttl_ms": MINUTE});
    let (status, told) = post(lab, &path, None, &asked).await?;
    same("over HTTP", (status, &told["error"], &told["holder"]), (409, "held", Value::Null))?;
    same("check", object(lab, json!({"check": ["job", token]})).await?, true)?;
    same("renew", entry(lab, json!({"renew": ["job", token, MINUTE]})).await?["token"].clone(), &token)?;
    same("stale", entry(lab, json!({"release": ["job", 1]})).await?, "stale")?;
    same("release", object(lab, json!({"release": ["job", token]})).await?, "released")?;
    same("again", entry(lab, json!({"release": ["job", token]})).await?, "not_held")?;
    same("nobody", entry(lab, json!({"holder": "job"})).await?, Value::Null)?;
    let (status, told) = post(lab, &path, None, &asked).await?;
    holds(format!("{told}"), status == 200 && told["token"].as_i64() > token.as_i64())
}

async fn fencing<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut last = 0;
    for turn in 0..4 {
        let granted = entry(lab, json!({"acquire": ["job", format!("h{turn}"), MINUTE]})).await?;
        let token = granted["granted"]["token"].as_i64().unwrap_or_default();
        holds(format!("{token} after {last}"), token > last)?;
        if turn % 2 == 0 {
            lab.evict().await?;
        } else {
            lab.crash().await?;
        }
        same("still held", entry(lab, json!({"check": ["job", token]})).await?, true)?;
        let other = object(lab, json!({"acquire": ["job", "other", MINUTE]})).await?;
        same("by whom", &other["held"]["holder"], format!("h{turn}"))?;
        same("released", object(lab, json!({"release": ["job", token]})).await?, "released")?;
        last = token;
    }
    Ok(())
}

/// What an object with leases of its own answers.
async fn leases<D: Driver>(lab: &Lab<D>, told: Value) -> Result<Value, Fault> {
    lab.value(&lab.address("/leases", "a"), &told).await
}

/// What its alarm found, as soon as it is something; and once.
async fn over<D: Driver>(lab: &Lab<D>, expected: &Value) -> Outcome {
    let look = async || leases(lab, json!(["over"])).await;
    lab.eventually("what is over", SOON, look, |found| *found != json!([])).await?;
    lab.advance(Duration::from_millis(500)).await?;
    same("what is over", look().await?, expected)
}

async fn expires<D: Driver>(lab: &Lab<D>) -> Outcome {
    let token = leases(lab, json!(["acquire", "job", "ann", 700])).await?;
    same("held", leases(lab, json!(["acquire", "job", "bob", 700])).await?, Value::Null)?;
    same("over", leases(lab, json!(["over"])).await?, json!([]))?;
    lab.advance(Duration::from_millis(800)).await?;
    over(lab, &json!([["job", "ann", token]])).await?;
    same("too late", leases(lab, json!(["renew", "job", token, MINUTE])).await?, false)?;
    let next = leases(lab, json!(["acquire", "job", "bob", MINUTE])).await?;
    holds(format!("{next} after {token}"), next.as_i64() > token.as_i64())
}

async fn expires_evicted<D: Driver>(lab: &Lab<D>) -> Outcome {
    let ttl = lab.after_eviction(1_500);
    let token = leases(lab, json!(["acquire", "job", "ann", ttl])).await?;
    lab.evict().await?;
    lab.advance(Duration::from_millis(1_700)).await?;
    over(lab, &json!([["job", "ann", token]])).await
}

async fn expires_crashed<D: Driver>(lab: &Lab<D>) -> Outcome {
    let token = leases(lab, json!(["acquire", "job", "ann", 1_500])).await?;
    let kept = leases(lab, json!(["acquire", "other", "ann", 10 * MINUTE])).await?;
    lab.crash().await?;
    lab.advance(Duration::from_millis(1_700)).await?;
    over(lab, &json!([["job", "ann", token]])).await?;
    same("the other", leases(lab, json!(["renew", "other", kept, MINUTE])).await?, true)
}

async fn waits<D: Driver>(lab: &Lab<D>) -> Outcome {
    let first = entry(lab, json!({"acquire": ["job", "ann", 1_000]})).await?;
    let time = async {
        for _ in 0..12 {
            lab.advance(Duration::from_millis(250)).await?;
        }
        Ok::<_, Fault>(())
    };
    let waiting = object(lab, json!({"acquire_within": [20_000, "job", "bob", MINUTE]}));
    let (second, passed) = both(waiting, time).await;
    passed?;
    let token = |granted: &Value| granted["granted"]["token"].as_i64();
    let (first, second) = (token(&first), token(&second?));
    holds(format!("{second:?} after {first:?}"), first.is_some() && second > first)?;
    let held = entry(lab, json!({"acquire_within": [0, "job", "cid", MINUTE]})).await?;
    same("without patience", &held["held"]["holder"], "bob")
}

async fn permits<D: Driver>(lab: &Lab<D>) -> Outcome {
    let take = |holder: &str, weight: u32| json!({"acquire_permits": ["pool", holder, weight, MINUTE]});
    let unknown = lab.ask("/stub", &command(lab, &take("ann", 1))).await?;
    same("without a capacity", unknown.err().map(|thrown| thrown.kind), "NotFound")?;
    entry(lab, json!({"set_capacity": ["pool", 3]})).await?;
    let ann = entry(lab, take("ann", 2)).await?;
    same("too many", &object(lab, take("bob", 2)).await?["exhausted"]["free"], 1)?;
    let bob = object(lab, take("bob", 1)).await?;
    holds(format!("{bob}"), bob["granted"]["token"].as_i64() > ann["granted"]["token"].as_i64())?;
    let usage = entry(lab, json!({"usage": "pool"})).await?;
    same("usage", (&usage["capacity"], &usage["free"]), (3, 0))?;
    let back = json!({"release_permits": ["pool", ann["granted"]["token"]]});
    same("back", object(lab, back).await?, "released")?;
    same("free", &entry(lab, json!({"usage": "pool"})).await?["free"], 2)
}
