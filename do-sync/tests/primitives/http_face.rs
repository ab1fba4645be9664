//! The HTTP face: statuses and bodies that a program without the stubs can rely on.

use do_core::{
    kit::Kit,
    prelude::*,
    tokio::{HostState, HostStub},
};
use do_sync::{CounterObject, LockObject};
use serde_json::{Value, json};

fn object<O: DurableObject<HostState>>() -> (Kit, HostStub) {
    let kit = Kit::builder().object::<O>("OBJECT").start().unwrap();
    let stub = kit.namespace("OBJECT").unwrap().named("o").unwrap();
    (kit, stub)
}

async fn send(stub: &HostStub, path: &str, key: Option<&str>, body: String) -> (u16, Value) {
    let mut request = http::Request::post(format!("http://o{path}"));
    if let Some(key) = key {
        request = request.header("idempotency-key", key);
    }
    let response = stub.fetch(request.body(Body::from(body)).unwrap()).await.unwrap();
    assert_eq!(response.headers()["content-type"], "application/json");
    (response.status().as_u16(), response.into_body().json(1 << 20).await.unwrap())
}

async fn post(stub: &HostStub, path: &str, body: Value) -> (u16, Value) {
    send(stub, path, None, body.to_string()).await
}

/// The status and the word of a refusal.
async fn refused(stub: &HostStub, path: &str, key: Option<&str>, body: &str) -> (u16, String) {
    let (status, body) = send(stub, path, key, body.to_owned()).await;
    assert!(body["message"].is_string(), "{body}");
    (status, body["error"].as_str().unwrap().to_owned())
}

fn word(status: u16, word: &str) -> (u16, String) {
    (status, word.to_owned())
}

#[test]
fn counters_answer_with_their_value() {
    let (kit, stub) = object::<CounterObject<_>>();
    kit.run(async {
        assert_eq!(post(&stub, "/get", json!({"name": "n"})).await, (200, json!({"value": 0})));
        assert_eq!(post(&stub, "/add", json!({"name": "n", "by": 2})).await, (200, json!({"value": 2})));
        assert_eq!(post(&stub, "/set", json!({"name": "n", "value": 9})).await, (200, json!({"value": 9})));
        let swap = |expected, value| json!({"name": "n", "expected": expected, "value": value});
        assert_eq!(post(&stub, "/compare_and_set", swap(9, 1)).await, (200, json!({"value": 1})));
        let (status, body) = post(&stub, "/compare_and_set", swap(9, 1)).await;
        assert_eq!((status, &body["error"], &body["value"]), (409, &json!("differs"), &json!(1)));
        assert_eq!(post(&stub, "/list", json!({"limit": 5})).await, (200, json!({"counters": [["n", 1]]})));
        assert_eq!(post(&stub, "/reset", json!({"name": "n"})).await, (200, json!({"value": 1})));
        assert_eq!(post(&stub, "/reset", json!({"name": "n"})).await, (200, json!({"value": null})));
    });
}

#[test]
fn refusals_are_told_apart() {
    let (kit, stub) = object::<CounterObject<_>>();
    kit.run(async {
        let add = r#"{"name":"n","by":1}"#;
        assert_eq!(refused(&stub, "/nothing", None, add).await, word(404, "unknown_operation"));
        assert_eq!(refused(&stub, "/add", None, "").await, word(400, "invalid"));
        assert_eq!(refused(&stub, "/add", None, r#"{"name":"n","by":1.5}"#).await, word(400, "invalid"));
        assert_eq!(refused(&stub, "/add", None, r#"{"name":"","by":1}"#).await, word(400, "invalid"));
        assert_eq!(refused(&stub, "/add", Some("two words"), add).await, word(400, "invalid"));
        assert_eq!(refused(&stub, "/add", Some(&"k".repeat(129)), add).await, word(400, "invalid"));
        assert_eq!(
            refused(&stub, "/add", None, r#"{"name":"n","by":9007199254740992}"#).await,
            word(400, "invalid")
        );
        assert_eq!(refused(&stub, "/add", None, &" ".repeat(9_000)).await, word(413, "too_large"));
        let most = json!({"name": "n", "by": 9_007_199_254_740_991_i64});
        assert_eq!(post(&stub, "/add", most).await.0, 200);
        assert_eq!(refused(&stub, "/add", None, add).await, word(422, "limit"));
        assert_eq!(send(&stub, "/set", Some("k"), r#"{"name":"n","value":1}"#.to_owned()).await.0, 200);
        assert_eq!(refused(&stub, "/add", Some("k"), add).await, word(422, "key_reused"));
        let get = stub.fetch(Request::default()).await.unwrap();
        assert_eq!((get.status().as_u16(), &get.headers()["allow"]), (405, &"POST".parse().unwrap()));
    });
}

#[test]
fn a_held_lease_is_409_and_tells_its_holder_only_on_request() {
    let (kit, stub) = object::<LockObject<_>>();
    kit.run(async {
        let ask = |holder: &str, tell: bool| {
            json!({"name": "l", "holder": holder, "ttl_ms": 1_000, "tell_holder": tell})
        };
        let (status, grant) = post(&stub, "/lease/acquire", ask("ann", false)).await;
        let until = kit.now().as_millis() + 1_000;
        assert_eq!((status, &grant["until"]), (200, &json!(until)));
        let (status, held) = post(&stub, "/lease/acquire", ask("bob", false)).await;
        assert_eq!((status, &held["error"], &held["until"]), (409, &json!("held"), &json!(until)));
        assert_eq!(held.get("holder"), None);
        assert_eq!(held.get("token"), None);
        assert_eq!(post(&stub, "/lease/acquire", ask("bob", true)).await.1["holder"], "ann");
        let of = |token: &Value| json!({"name": "l", "token": token});
        assert_eq!(post(&stub, "/lease/check", of(&grant["token"])).await, (200, json!({"held": true})));
        let renew = json!({"name": "l", "token": 1, "ttl_ms": 1});
        assert_eq!(post(&stub, "/lease/renew", renew).await.0, 409);
        assert_eq!(refused(&stub, "/lease/release", None, &of(&json!(1)).to_string()).await, word(409, "stale"));
        assert_eq!(post(&stub, "/lease/get", json!({"name": "l"})).await.1["holder"]["token"], grant["token"]);
        assert_eq!(post(&stub, "/lease/release", of(&grant["token"])).await, (200, json!({"released": true})));
        assert_eq!(post(&stub, "/lease/release", of(&grant["token"])).await, (200, json!({"released": false})));
        assert_eq!(post(&stub, "/lease/get", json!({"name": "l"})).await, (200, json!({"holder": null})));
        assert_eq!(refused(&stub, "/lease", None, "{}").await, word(404, "unknown_operation"));
        assert_eq!(refused(&stub, "/lease/take", None, "{}").await, word(404, "unknown_operation"));
        let long = json!({"name": "l", "holder": "a", "ttl_ms": u64::MAX}).to_string();
        assert_eq!(refused(&stub, "/lease/acquire", None, &long).await, word(400, "invalid"));
    });
}

#[test]
fn an_exhausted_semaphore_is_409_and_one_without_a_capacity_404() {
    let (kit, stub) = object::<LockObject<_>>();
    kit.run(async {
        let ask = json!({"name": "s", "holder": "ann", "weight": 2, "ttl_ms": 1_000});
        let path = "/semaphore/acquire";
        assert_eq!(refused(&stub, path, None, &ask.to_string()).await, word(404, "not_found"));
        assert_eq!(post(&stub, "/semaphore/get", json!({"name": "s"})).await, (200, json!({"usage": null})));
        let capacity = json!({"name": "s", "permits": 3});
        assert_eq!(post(&stub, "/semaphore/capacity", capacity).await, (200, json!({})));
        let (status, grant) = post(&stub, path, ask.clone()).await;
        assert_eq!(status, 200);
        let (status, body) = post(&stub, path, ask.clone()).await;
        assert_eq!((status, &body["error"], &body["free"]), (409, &json!("exhausted"), &json!(1)));
        assert_eq!(body["until"], grant["until"]);
        let one = json!({"name": "s", "holder": "bob", "ttl_ms": 1_000});
        assert_eq!(post(&stub, path, one).await.0, 200);
        let usage = post(&stub, "/semaphore/get", json!({"name": "s"})).await.1;
        assert_eq!((&usage["usage"]["capacity"], &usage["usage"]["free"]), (&json!(3), &json!(0)));
        assert_eq!(usage["usage"]["holders"][1]["holder"], "bob");
        kit.advance(Duration::from_secs(1)).await;
        assert_eq!(post(&stub, path, ask).await.0, 200);
    });
}
