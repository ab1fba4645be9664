//! A1 to A13: ids, names and the way to an object.

use crate::common::{Rig, ask, begin, join, request, soon};
use do_core::{ObjectId, prelude::*, tokio::HostNamespace};
use serde_json::json;

fn id_of(namespace: &HostNamespace, name: &str) -> ObjectId {
    namespace.id_of(&ObjectName::new(name).unwrap()).unwrap()
}

fn two_namespaces() -> Rig {
    Rig::with_class::<do_core::testing::Probe<_>>()
}

#[tokio::test]
async fn a1_an_id_is_made_of_the_name_and_the_namespace_alone() {
    let rig = two_namespaces();
    let probes = rig.namespace("PROBE");
    // HMAC-SHA256 of the name and of its own first half, keyed with SHA-256 of the namespace
    let expected = "eaff53d37502e652d833f66b1998f9e25a90b220858cbb08deb45dcf49701e4a";
    assert_eq!(id_of(&probes, "room-1").to_string(), expected);
    assert_ne!(id_of(&rig.namespace("OTHER"), "room-1").to_string(), expected);
    for other in ["Room-1", "room-1 ", " room-1", "room-1\0", ""] {
        assert_ne!(id_of(&probes, other), id_of(&probes, "room-1"), "{other:?}");
    }
    assert_ne!(id_of(&probes, "é"), id_of(&probes, "e\u{301}"));
}

#[tokio::test]
async fn a2_the_empty_name_is_a_name() {
    let rig = Rig::new();
    assert_eq!(rig.last("", json!(["name"])).await, json!(""));
}

#[tokio::test]
async fn a3_unique_ids_differ_and_have_no_name() {
    let rig = Rig::new();
    let probes = rig.namespace("PROBE");
    let (one, two) = (probes.unique_id().unwrap(), probes.unique_id().unwrap());
    assert_ne!(one, two);
    assert_eq!(one.name(), None);
    assert_eq!(one.to_string().len(), 64);
    let seen = ask(&probes.get(&one).unwrap(), json!(["name", "id"])).await.unwrap();
    assert_eq!(seen, json!([null, one.to_string()]));
}

#[tokio::test]
async fn a4_the_text_of_an_id_leads_back_in_either_case_without_the_name() {
    let rig = Rig::new();
    let probes = rig.namespace("PROBE");
    let id = id_of(&probes, "x");
    assert_eq!(id.name().map(ObjectName::as_str), Some("x"));
    let text = id.to_string();
    assert_eq!(text, text.to_lowercase());
    for text in [text.clone(), text.to_uppercase()] {
        let parsed = probes.parse_id(&text).unwrap();
        assert_eq!(parsed, id);
        assert_eq!(parsed.name(), None);
        ask(&probes.get(&parsed).unwrap(), json!([{"add": 1}])).await.unwrap();
    }
    assert_eq!(rig.last("x", json!([{"add": 1}])).await, json!(3), "one object");
}

#[tokio::test]
async fn a5_what_is_no_id_of_the_namespace_is_refused() {
    let rig = two_namespaces();
    let probes = rig.namespace("PROBE");
    let text = id_of(&probes, "x").to_string();
    for wrong in ["", "x", &text[..63], &format!("{text}0"), &format!("g{}", &text[1..])] {
        let error = probes.parse_id(wrong).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert_eq!(error.to_string(), "an object id must be 64 hex digits");
    }
    let last = if text.ends_with('0') { '1' } else { '0' };
    let unchecked = format!("{}{last}", &text[..63]);
    let foreign = id_of(&rig.namespace("OTHER"), "x").to_string();
    for wrong in [unchecked, foreign] {
        let error = probes.parse_id(&wrong).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert_eq!(error.to_string(), "the object id is not valid for the namespace PROBE");
    }
}

#[tokio::test]
async fn a6_an_id_of_another_namespace_reaches_nobody() {
    let rig = two_namespaces();
    let foreign = id_of(&rig.namespace("OTHER"), "x");
    assert_eq!(rig.namespace("PROBE").get(&foreign).unwrap_err().kind(), ErrorKind::Invalid);
    assert_eq!(rig.host().namespace("NONE").unwrap_err().kind(), ErrorKind::NotFound);
}

#[tokio::test]
async fn a7_a_name_and_its_id_are_one_object() {
    let rig = Rig::new();
    let probes = rig.namespace("PROBE");
    let by_id = probes.get(&id_of(&probes, "x")).unwrap();
    let by_name = probes.named("x").unwrap();
    assert_eq!(by_id.id(), by_name.id());
    assert_eq!(by_name.id().name().map(ObjectName::as_str), Some("x"));
    let instance = ask(&by_id, json!(["instance"])).await.unwrap();
    assert_eq!(ask(&by_name, json!(["instance"])).await.unwrap(), instance);
    assert_ne!(rig.run("y", json!(["instance"])).await.unwrap(), instance);
}

#[tokio::test]
async fn a9_the_first_caller_of_an_instance_decides_whether_it_knows_its_name() {
    let rig = Rig::new();
    let probes = rig.namespace("PROBE");
    let nameless = probes.get(&probes.parse_id(&id_of(&probes, "x").to_string()).unwrap()).unwrap();
    let named = probes.named("x").unwrap();
    assert_eq!(ask(&nameless, json!(["name"])).await.unwrap(), json!([null]));
    assert_eq!(ask(&named, json!(["name"])).await.unwrap(), json!([null]));
    rig.pass(10_200).await;
    assert_eq!(ask(&named, json!(["name"])).await.unwrap(), json!(["x"]));
    assert_eq!(ask(&nameless, json!(["name"])).await.unwrap(), json!(["x"]));
    rig.pass(10_200).await;
    assert_eq!(ask(&nameless, json!(["name"])).await.unwrap(), json!([null]));
}

#[tokio::test]
async fn a9_after_a_reset_the_next_caller_decides_anew() {
    let rig = Rig::new();
    let probes = rig.namespace("PROBE");
    let nameless = probes.get(&probes.parse_id(&id_of(&probes, "x").to_string()).unwrap()).unwrap();
    rig.run("x", json!([{"reset": "away"}])).await.unwrap_err();
    assert_eq!(ask(&nameless, json!(["name"])).await.unwrap(), json!([null]));
}

#[tokio::test]
async fn a9_names_up_to_1024_bytes_work_and_longer_ones_are_an_error() {
    let rig = Rig::new();
    let probes = rig.namespace("PROBE");
    let longest = "é".repeat(512);
    assert_eq!(rig.last(&longest, json!(["name"])).await, json!(longest));
    let error = probes.named(format!("{longest}x")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Limit);
    assert_eq!(error.to_string(), "object name is 1025 bytes long, the limit is 1024");
}

#[tokio::test]
async fn a10_an_alarm_that_wakes_an_object_brings_its_name() {
    let mut rig = Rig::new();
    let probes = rig.namespace("PROBE");
    let id = id_of(&probes, "x");
    let steps = json!([{"on_alarm": [{"sql": "INSERT INTO n VALUES (1)"}, "name", {"set_alarm": 20_000}]},
        {"on_new": [{"sql": "INSERT INTO n VALUES (0)"}]}, {"set_alarm": 20_000}]);
    rig.run("x", steps).await.unwrap();
    rig.pass(11_000).await;
    assert!(!rig.is_awake("x").await);
    rig.pass(9_000).await;
    // by its bytes, so that this caller brings no name
    let nameless = probes.get(&probes.parse_id(&id.to_string()).unwrap()).unwrap();
    assert_eq!(ask(&nameless, json!(["name"])).await.unwrap(), json!(["x"]), "after an eviction");
    rig.shut_down().await;
    rig.clock.advance(std::time::Duration::from_secs(30));
    rig.start();
    rig.settle().await;
    let probes = rig.namespace("PROBE");
    let nameless = probes.get(&probes.parse_id(&id.to_string()).unwrap()).unwrap();
    assert_eq!(ask(&nameless, json!(["name"])).await.unwrap(), json!(["x"]), "after a restart");
}

#[tokio::test]
async fn a11_a_stub_constructs_nothing() {
    let rig = Rig::new();
    let stub = rig.stub("x");
    assert_eq!(stub.id().name().map(ObjectName::as_str), Some("x"));
    rig.settle().await;
    assert!(!rig.is_awake("x").await);
    assert_eq!(std::fs::read_dir(rig.dir.path().join("PROBE")).map_or(0, Iterator::count), 0);
    rig.run("x", json!([])).await.unwrap();
    assert!(rig.is_awake("x").await);
}

#[tokio::test]
async fn a12_an_origin_form_uri_is_completed_and_an_absolute_one_kept() {
    let rig = Rig::new();
    for (uri, host, seen) in [
        ("/a?b=c", Some("example.com:81"), "http://example.com:81/a?b=c"),
        ("/a", None, "http://localhost/a"),
        ("https://h/x", Some("other"), "https://h/x"),
        ("h:443", None, "http://h:443/"),
    ] {
        let mut request = request(&json!(["uri"]));
        *request.uri_mut() = uri.parse().unwrap();
        if let Some(host) = host {
            request.headers_mut().insert("host", host.parse().unwrap());
        }
        let response = soon(rig.stub("x").fetch(request)).await.unwrap();
        let seen_there: Vec<String> = response.into_body().json(1_000).await.unwrap();
        assert_eq!(seen_there, [seen], "{uri} {host:?}");
    }
    let mut wrong = request(&json!(["uri"]));
    *wrong.uri_mut() = "/".parse().unwrap();
    wrong.headers_mut().insert("host", "a b".parse().unwrap());
    assert_eq!(soon(rig.stub("x").fetch(wrong)).await.unwrap_err().kind(), ErrorKind::Invalid);
}

#[tokio::test]
async fn a13_calls_arrive_in_the_order_in_which_they_were_made() {
    let rig = Rig::new();
    let stub = rig.stub("x");
    // From outside: the calls are made in order and awaited in the opposite one.
    let calls: Vec<_> = (0..50).map(|n| stub.fetch(request(&json!([{"note": n.to_string()}])))).collect();
    for call in calls.into_iter().rev() {
        soon(call).await.unwrap();
    }
    // From inside another object, never awaited.
    let calls: Vec<_> =
        (50..80).map(|n| json!({"call_detached": ["x", [{"note": n.to_string()}]]})).collect();
    join(begin(&rig.stub("caller"), json!(calls))).await.unwrap();
    rig.settle().await;
    let log = rig.last("x", json!(["log"])).await;
    let lines: Vec<_> =
        log.as_array().unwrap().iter().map(|l| l["line"].as_str().unwrap().to_owned()).collect();
    assert_eq!(lines, (0..80).map(|n| n.to_string()).collect::<Vec<_>>());
}

#[tokio::test]
async fn a14_objects_of_one_name_in_two_namespaces_share_nothing() {
    let rig = two_namespaces();
    rig.run("x", json!([{"add": 1}, {"sql": "INSERT INTO n VALUES (1)"}])).await.unwrap();
    let other = rig.namespace("OTHER").named("x").unwrap();
    assert_eq!(ask(&other, json!([{"add": 0}, {"sql": "SELECT n FROM n"}])).await.unwrap(), json!([0, []]));
}

/// Says its name on a socket.
struct Named<S: ObjectState>(S);

impl<S: ObjectState> DurableObject<S> for Named<S> {
    fn new(state: S) -> Result<Self> {
        Ok(Self(state))
    }

    async fn fetch(&self, request: Request) -> Result<Response> {
        Ok(self.0.sockets().accept(&request, Accept::new())?.0)
    }

    async fn websocket_message(&self, socket: SocketOf<S>, _: Message) -> Result<()> {
        Ok(socket.send(self.0.id().name().map_or("none", ObjectName::as_str).to_owned())?)
    }
}

#[tokio::test]
async fn a9_a_message_that_wakes_a_hibernated_object_finds_its_name() {
    use futures::{SinkExt, StreamExt};
    let rig = Rig::with_class::<Named<_>>();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("ws://{}/", listener.local_addr().unwrap());
    rig.host().serve(listener, async |request: Request, env: do_core::tokio::HostEnv| {
        Ok(env.namespace("OTHER")?.named("x")?.fetch(request).await?)
    });
    let (mut socket, _) = soon(tokio_tungstenite::connect_async(url)).await.unwrap();
    rig.pass_in_steps(10_200, 5_100).await;
    let id = id_of(&rig.namespace("OTHER"), "x");
    assert_eq!(soon(rig.namespace("OTHER").why_awake(&id)).await.unwrap(), None, "hibernated");
    soon(socket.send("who".into())).await.unwrap();
    let answer = soon(socket.next()).await.unwrap().unwrap();
    assert_eq!(answer.to_text().unwrap(), "x");
}
