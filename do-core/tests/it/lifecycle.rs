//! B1 to B16: how instances come, stay and go.

use crate::common::{Rig, START, ask, begin, join, request, soon};
use do_core::{Error, ErrorKind, ObjectName, Stub, prelude::*, testing::Probe};
use futures::FutureExt;
use serde_json::{Value, json};
use std::time::Duration;

fn assert_reset(error: &Error, message: &str) {
    assert_eq!(error.kind(), ErrorKind::Reset, "{error}");
    assert_eq!(error.to_string(), message);
    assert!(error.is_indefinite());
}

/// Whether the object is another instance than before.
async fn is_new(rig: &Rig, name: &str, before: &Value) -> bool {
    rig.last(name, json!(["instance"])).await != *before
}

#[tokio::test]
async fn b1_the_first_event_constructs_and_later_ones_find_the_instance() {
    let rig = Rig::new();
    rig.run("x", json!([{"on_new": [{"note": "new"}]}])).await.unwrap();
    rig.pass(10_200).await;
    let all: Vec<_> = (0..20).map(|_| begin(&rig.stub("x"), json!(["instance"]))).collect();
    let mut instances = Vec::new();
    for one in all {
        instances.push(join(one).await.unwrap());
    }
    assert!(instances.iter().all(|i| *i == instances[0]));
    let log = rig.last("x", json!(["log"])).await;
    assert_eq!(log.as_array().unwrap().len(), 1, "constructed once: {log}");
}

#[tokio::test]
async fn b2_an_idle_object_is_kept_for_ten_seconds_and_then_gone() {
    let rig = Rig::new();
    let before = rig.last("x", json!([{"add": 5}, {"sql": "INSERT INTO n VALUES (5)"}, "instance"])).await;
    rig.pass(9_800).await;
    assert_eq!(rig.why_awake("x").await, Some(vec![]));
    assert!(!is_new(&rig, "x", &before).await);
    rig.pass(9_800).await;
    assert!(rig.is_awake("x").await, "counted from the last event");
    rig.pass(400).await;
    assert!(!rig.is_awake("x").await);
    let after = rig.run("x", json!([{"add": 0}, {"sql": "SELECT n FROM n"}, "instance"])).await.unwrap();
    assert_eq!((&after[0], &after[1]), (&json!(0), &json!([5])), "memory is lost, data stays");
    assert_ne!(after[2], before);
}

#[tokio::test]
async fn b2_the_end_of_work_counts_not_its_beginning() {
    let rig = Rig::new();
    let call = rig.begin("x", json!([{"sleep": 14_000}]));
    rig.settle().await;
    rig.pass(14_000).await;
    join(call).await.unwrap();
    rig.pass(9_800).await;
    assert!(rig.is_awake("x").await);
    rig.pass(400).await;
    assert!(!rig.is_awake("x").await);
}

#[tokio::test]
async fn b2_many_objects_come_and_go() {
    let rig = Rig::new();
    for n in 0..50 {
        rig.run(&format!("o{n}"), json!([])).await.unwrap();
        rig.pass(100).await;
    }
    rig.pass(5_300).await; // o0 is 10.3 s old, o49 5.4 s
    for n in 0..50 {
        assert_eq!(rig.is_awake(&format!("o{n}")).await, n > 3, "o{n}");
    }
}

#[tokio::test]
async fn b3_work_keeps_an_object_awake_and_says_so() {
    let rig = Rig::new();
    for (name, steps, why) in [
        ("sleep", json!([{"wait_until": [{"sleep": 60_000}]}]), vec!["wait_until", "a pending sleep"]),
        ("handler", json!([{"sleep": 60_000}]), vec!["fetch", "a pending sleep"]),
        ("call", json!([{"call": ["slow", [{"sleep": 60_000}]]}]), vec!["fetch", "a call under way"]),
    ] {
        let call = rig.begin(name, steps);
        rig.settle().await;
        rig.pass_in_steps(59_000, 5_000).await;
        assert_eq!(rig.why_awake(name).await, Some(why), "{name}");
        rig.pass(1_000).await;
        join(call).await.unwrap();
        assert_eq!(rig.why_awake(name).await, Some(vec![]), "{name}");
        rig.pass(9_800).await;
        assert!(rig.is_awake(name).await, "{name}");
        rig.pass(400).await;
        assert!(!rig.is_awake(name).await, "{name}");
    }
}

#[tokio::test]
async fn b3_the_objects_in_memory_are_listed_with_what_keeps_each() {
    let mut rig = Rig::with(|builder| builder.shards(3).object::<Probe<_>>("OTHER"));
    let objects = rig.namespace("PROBE");
    assert_eq!(soon(objects.in_memory()).await.unwrap(), []);
    let id = |name: &str| objects.id_of(&ObjectName::new(name).unwrap()).unwrap();
    let call = rig.begin("busy", json!([{"sleep": 60_000}]));
    for name in ["x", "y", "z"] {
        rig.run(name, json!([])).await.unwrap();
    }
    let listed = || async {
        let mut listed = soon(objects.in_memory()).await.unwrap();
        listed.sort_by_key(|(id, _)| id.name().map(ToString::to_string));
        listed
    };
    let busy = (id("busy"), vec!["fetch", "a pending sleep"]);
    let expected = [busy.clone(), (id("x"), vec![]), (id("y"), vec![]), (id("z"), vec![])];
    let seen = listed().await;
    assert_eq!(seen, expected);
    assert_eq!(seen[0].0.name().unwrap().as_str(), "busy");
    assert_eq!(soon(rig.namespace("OTHER").in_memory()).await.unwrap(), [], "of that class alone");
    rig.pass(10_200).await;
    assert_eq!(listed().await, [busy], "the idle ones have left");
    rig.stop();
    assert_eq!(join(call).await.unwrap_err().kind(), ErrorKind::Reset);
    assert_eq!(soon(objects.in_memory()).await.unwrap_err().kind(), ErrorKind::Shutdown);
}

#[tokio::test]
async fn b3_an_open_response_keeps_an_object_awake_until_it_ends_or_is_dropped() {
    let rig = Rig::new();
    for dropped in [false, true] {
        let response = soon(rig.stub("x").fetch(request(&json!(["open", {"chunk": "a"}])))).await.unwrap();
        rig.pass_in_steps(60_000, 5_000).await;
        assert_eq!(rig.why_awake("x").await, Some(vec!["an open response body"]));
        if dropped {
            drop(response);
            rig.settle().await;
            assert_eq!(rig.last("x", json!([{"chunk": "b"}])).await, json!(false));
        } else {
            rig.run("x", json!(["close"])).await.unwrap();
            assert_eq!(soon(response.into_body().text(10)).await.unwrap(), "a");
        }
        rig.settle().await;
        assert_eq!(rig.why_awake("x").await, Some(vec![]));
        rig.pass(10_200).await;
        assert!(!rig.is_awake("x").await);
    }
}

#[tokio::test]
async fn b3_a_stored_alarm_does_not_keep_an_object_awake() {
    let rig = Rig::new();
    rig.run("x", json!([{"set_alarm": 60_000}])).await.unwrap();
    rig.pass(10_200).await;
    assert!(!rig.is_awake("x").await);
    assert_eq!(rig.last("x", json!(["get_alarm"])).await, json!(START + 60_000));
}

#[tokio::test]
async fn b3_a_call_that_nobody_awaits_keeps_the_caller_awake_until_it_is_answered() {
    let rig = Rig::new();
    rig.run("x", json!([{"call_detached": ["slow", [{"sleep": 60_000}]]}])).await.unwrap();
    rig.settle().await;
    rig.pass_in_steps(59_000, 5_000).await;
    assert_eq!(rig.why_awake("x").await, Some(vec!["a call under way"]));
    rig.pass(1_000).await;
    assert_eq!(rig.why_awake("x").await, Some(vec![]));
    rig.pass(9_800).await;
    assert!(rig.is_awake("x").await, "counted from the end of the call");
    rig.pass(400).await;
    assert!(!rig.is_awake("x").await);
}

#[tokio::test]
async fn b4_background_work_alone_keeps_an_object_for_as_long_as_the_host_says() {
    let rig = Rig::with(|builder| builder.background(Duration::from_secs(100)));
    let work = json!({"wait_until": [{"wait_for": 1}]});
    rig.run("x", json!([work, {"sql": "INSERT INTO n VALUES (1)"}])).await.unwrap();
    rig.run("y", json!([work])).await.unwrap();
    let request = rig.begin("z", json!([work, {"sleep": 200_000}]));
    rig.settle().await;
    rig.pass_in_steps(60_000, 5_000).await;
    rig.run("y", json!([])).await.unwrap();
    rig.pass_in_steps(50_000, 5_000).await;
    assert!(!rig.is_awake("x").await);
    assert!(rig.is_awake("y").await, "counted from the last event");
    assert!(rig.is_awake("z").await, "a request keeps it");
    rig.pass_in_steps(90_000, 5_000).await;
    join(request).await.unwrap();
    let after = rig.run("x", json!([{"add": 0}, {"sql": "SELECT n FROM n"}, "boots"])).await.unwrap();
    assert_eq!(after, json!([0, [1], 2]), "memory is lost, data stays");
}

#[tokio::test]
async fn b4_background_work_has_its_time_from_the_end_of_a_long_request() {
    let rig = Rig::with(|builder| builder.background(Duration::from_secs(100)));
    let work = json!({"wait_until": [{"wait_for": 1}]});
    let request = rig.begin("x", json!([work, {"sleep": 200_000}]));
    rig.pass_in_steps(200_000, 5_000).await;
    join(request).await.unwrap();
    rig.pass_in_steps(80_000, 5_000).await;
    assert!(rig.is_awake("x").await);
    rig.pass_in_steps(40_000, 5_000).await;
    assert!(!rig.is_awake("x").await);
}

#[tokio::test]
async fn times_without_an_end_keep_objects_for_ever() {
    let rig = Rig::with(|builder| builder.background(Duration::MAX).idle(Duration::from_secs(10)));
    rig.run("x", json!([{"wait_until": [{"wait_for": 1}]}])).await.unwrap();
    rig.pass(100_000).await;
    assert!(rig.is_awake("x").await);
    let rig = Rig::with(|builder| builder.idle(Duration::MAX));
    rig.pass(1_000).await;
    rig.run("x", json!([])).await.unwrap();
    rig.pass(100_000_000).await;
    assert!(rig.is_awake("x").await);
}

#[tokio::test]
async fn b7_a_failed_constructor_fails_its_request_alone_and_is_not_remembered() {
    let rig = Rig::new();
    let fails = json!([{"on_new": [{"note": "half"}, {"fail_before": START + 60_000}]}]);
    rig.run("x", fails).await.unwrap();
    rig.pass(10_200).await;
    let (one, two) = (rig.begin("x", json!([])), rig.begin("x", json!([])));
    let (one, two) = (join(one).await.unwrap_err(), join(two).await.unwrap_err());
    assert_eq!(one.kind(), ErrorKind::Application);
    assert!(one.to_string().starts_with("too early, attempt "), "{one}");
    assert_ne!(one.to_string(), two.to_string(), "two requests are two attempts");
    assert!(!rig.is_awake("x").await);
    rig.pass(50_000).await;
    let log = rig.last("x", json!(["log"])).await;
    assert_eq!(log.as_array().unwrap().len(), 1, "what a failed constructor wrote is undone: {log}");
}

#[tokio::test]
async fn b8_a_gate_gives_its_value_and_holds_back_requests() {
    let rig = Rig::new();
    let first = rig
        .begin("x", json!([{"note": "first"}, {"gate": [{"sleep": 1_000}, {"add": 3}, {"note": "gate"}]}]));
    let second = rig.begin("x", json!([{"note": "second"}, {"add": 0}]));
    rig.settle().await;
    rig.pass(900).await;
    assert_eq!(rig.why_awake("x").await.unwrap()[2..], ["events that wait", "a pending sleep"]);
    rig.pass(100).await;
    assert_eq!(join(first).await.unwrap(), json!([null, [null, 3, null]]));
    assert_eq!(join(second).await.unwrap(), json!([null, 3]));
    let log = rig.last("x", json!(["log"])).await;
    let lines: Vec<_> = log.as_array().unwrap().iter().map(|l| l["line"].as_str().unwrap()).collect();
    assert_eq!(lines, ["first", "gate", "second"]);
}

#[tokio::test]
async fn b8_a_gate_holds_back_what_was_under_way_too() {
    let rig = Rig::new();
    let early = rig.begin("x", json!([{"sleep": 100}, {"note": "early"}]));
    let gate = rig.begin("x", json!([{"gate": [{"sleep": 1_000}, {"note": "gate"}]}]));
    rig.settle().await;
    rig.pass(500).await;
    rig.pass(500).await;
    join(early).await.unwrap();
    join(gate).await.unwrap();
    let log = rig.last("x", json!(["log"])).await;
    assert_eq!((&log[0]["line"], &log[1]["line"]), (&json!("gate"), &json!("early")));
    assert_eq!(log[1]["at"], json!(START + 1_000));
}

#[tokio::test]
async fn b8_other_objects_go_on() {
    let rig = Rig::new();
    let gate = rig.begin("x", json!([{"gate": [{"sleep": 1_000}]}]));
    rig.settle().await;
    rig.run("y", json!([])).await.unwrap();
    rig.pass(1_000).await;
    join(gate).await.unwrap();
}

#[tokio::test]
async fn b8_init_in_the_constructor_holds_back_the_first_requests() {
    let rig = Rig::new();
    rig.run("x", json!([{"on_new": [{"sleep": 500}, {"add": 10}]}])).await.unwrap();
    rig.pass(10_200).await;
    let calls: Vec<_> = (0..3).map(|_| rig.begin("x", json!([{"add": 1}]))).collect();
    rig.settle().await;
    assert!(calls.iter().all(|call| !call.is_finished()));
    rig.pass(500).await;
    for (call, n) in calls.into_iter().zip(11..) {
        assert_eq!(join(call).await.unwrap(), json!([n]));
    }
}

#[tokio::test]
async fn b8_gates_nest_and_follow_each_other() {
    let rig = Rig::new();
    let nested =
        json!([{"gate": [{"gate": [{"sleep": 10}, {"gate": [{"sleep": 10}, {"add": 1}]}]}, {"sleep": 10}]}]);
    let call = rig.begin("x", nested);
    rig.settle().await;
    rig.pass_in_steps(30, 10).await;
    assert_eq!(join(call).await.unwrap(), json!([[[null, [null, 1]], null]]));

    let call =
        rig.begin("x", json!([{"two_gates": [[{"sleep": 10}, {"add": 1}], [{"sleep": 10}, {"add": 1}]]}]));
    rig.settle().await;
    rig.pass_in_steps(20, 10).await;
    assert_eq!(join(call).await.unwrap(), json!([[[null, 2], [null, 3]]]));
    assert_eq!(rig.why_awake("x").await, Some(vec![]));
}

#[tokio::test]
async fn b8_two_gates_asked_for_within_a_gate_both_run() {
    let rig = Rig::new();
    let two = json!([{"gate": [{"two_gates": [[{"sleep": 10}, {"add": 1}], [{"sleep": 10}, {"add": 1}]]}]}]);
    let call = rig.begin("x", two);
    let other = rig.begin("x", json!([{"gate": [{"add": 10}]}]));
    rig.settle().await;
    rig.pass_in_steps(20, 10).await;
    assert_eq!(join(call).await.unwrap(), json!([[[[null, 1], [null, 2]]]]));
    assert_eq!(join(other).await.unwrap(), json!([[12]]));
}

#[tokio::test]
async fn b8_work_spawned_in_a_gate_runs_with_it() {
    let rig = Rig::new();
    let work = json!([{"sleep": 10}, {"wait_until": [{"sleep": 5}, {"add": 1}]}, {"gate": [{"sleep": 10}, {"add": 1}]}, {"add": 1}]);
    let call = rig.begin("x", json!([{"gate_over_background": work}]));
    rig.settle().await;
    rig.pass_in_steps(30, 5).await;
    assert_eq!(join(call).await.unwrap(), json!([[7, [null, null, [null, 1], 2]]]));
    assert_eq!(rig.why_awake("x").await, Some(vec![]));
}

#[tokio::test]
async fn b8_a_gate_that_nobody_awaits_holds_all_the_same() {
    let rig = Rig::new();
    let first =
        rig.run("x", json!([{"gate_detached": [{"sleep": 100}, {"add": 5}]}, {"add": 1}])).await.unwrap();
    assert_eq!(first, json!([null, 1]), "the turn that asked goes on to its end");
    let second = rig.begin("x", json!([{"add": 1}]));
    rig.settle().await;
    assert!(!second.is_finished());
    rig.pass(100).await;
    assert_eq!(join(second).await.unwrap(), json!([7]));
}

#[tokio::test]
async fn b9_a_failing_gate_resets_the_object_whoever_catches_the_error() {
    let rig = Rig::new();
    let before = rig.last("x", json!([{"add": 1}, {"note": "kept"}, "instance"])).await;
    let in_flight = rig.begin("x", json!([{"sleep": 60_000}]));
    let caught =
        rig.begin("x", json!([{"catch": [{"gate": [{"sleep": 10}, "fail_typed"]}]}, {"note": "never"}]));
    let waiting = rig.begin("x", json!([]));
    rig.settle().await;
    rig.pass(10).await;
    for call in [in_flight, caught, waiting] {
        let error = join(call).await.unwrap_err();
        assert_reset(&error, "the probe was told to fail");
        assert_eq!(error.name(), "ProbeError");
    }
    assert!(is_new(&rig, "x", &before).await);
    let after = rig.run("x", json!([{"add": 0}, {"sql": "SELECT line FROM log"}])).await.unwrap();
    assert_eq!(after, json!([0, ["kept"]]));
}

#[tokio::test]
async fn b9_a_failing_init_fails_every_request_until_one_succeeds() {
    let rig = Rig::new();
    rig.run("x", json!([{"on_new": [{"sleep": 10}, {"fail_before": START + 60_000}]}])).await.unwrap();
    rig.pass(10_200).await;
    for _ in 0..2 {
        let (one, two) = (rig.begin("x", json!([])), rig.begin("x", json!([])));
        rig.settle().await;
        rig.pass(10).await;
        let (one, two) = (join(one).await.unwrap_err(), join(two).await.unwrap_err());
        assert_eq!(one.kind(), ErrorKind::Reset);
        assert_eq!(one.to_string(), two.to_string(), "whoever waited shares the attempt");
    }
    rig.pass(50_000).await;
    let call = rig.begin("x", json!([{"add": 1}]));
    rig.settle().await;
    rig.pass(10).await;
    assert_eq!(join(call).await.unwrap(), json!([1]));
}

#[tokio::test]
async fn b10_a_gate_of_thirty_seconds_resets_as_overloaded_for_all() {
    let rig = Rig::new();
    let before = rig.last("x", json!(["instance"])).await;
    let calls = [rig.begin("x", json!([{"gate": [{"sleep": 600_000}]}])), rig.begin("x", json!([]))];
    rig.settle().await;
    rig.pass_in_steps(29_900, 1_000).await;
    assert!(calls.iter().all(|call| !call.is_finished()));
    rig.pass(100).await;
    for call in calls {
        let error = join(call).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Overloaded);
        assert_eq!(
            error.to_string(),
            "A call to blockConcurrencyWhile() in a Durable Object waited for too long. The call was canceled and the \
             Durable Object was reset."
        );
        assert!(error.is_overloaded() && error.is_indefinite() && !error.is_retryable());
    }
    assert!(is_new(&rig, "x", &before).await);
    rig.pass(10_200).await;
    assert!(!rig.is_awake("x").await, "nothing of the old instance is left");
}

#[tokio::test]
async fn b10_a_gate_that_ended_in_time_is_not_timed() {
    let rig = Rig::new();
    let call = rig
        .begin("x", json!([{"gate": [{"sleep": 29_000}]}, {"sleep": 29_000}, {"gate": [{"sleep": 29_000}]}]));
    rig.settle().await;
    rig.pass_in_steps(87_000, 1_000).await;
    join(call).await.unwrap();
}

#[tokio::test]
async fn b10_gates_nest_64_deep_and_no_deeper() {
    let rig = Rig::new();
    let before = rig.last("x", json!([{"nest": 64}, "instance"])).await;
    let error = rig.run("x", json!([{"nest": 65}])).await.unwrap_err();
    assert_reset(&error, "block_concurrency_while is nested deeper than 64: the object is reset");
    assert!(is_new(&rig, "x", &before).await);
}

#[tokio::test]
async fn b11_b12_an_error_of_a_handler_crosses_with_name_and_message_and_resets_nothing() {
    let rig = Rig::new();
    let before = rig.last("x", json!([{"add": 1}, "instance"])).await;
    let error = rig.run("x", json!([{"add": 1}, {"note": "stays"}, "fail_typed"])).await.unwrap_err();
    assert_eq!((error.kind(), error.name()), (ErrorKind::Application, "ProbeError"));
    assert_eq!(error.to_string(), "the probe was told to fail");
    let error = rig.run("x", json!([{"sql": "SELECT * FROM nothing"}])).await.unwrap_err();
    assert_eq!((error.kind(), error.sql_code()), (ErrorKind::Sql, Some("SQLITE_ERROR")));
    let after = rig.run("x", json!([{"add": 0}, "instance", {"sql": "SELECT line FROM log"}])).await.unwrap();
    assert_eq!(after, json!([2, before, ["stays"]]));
    // From one object to another and on to the outside.
    let error = rig.run("y", json!([{"call": ["x", ["fail_typed"]]}])).await.unwrap_err();
    assert_eq!((error.kind(), error.name()), (ErrorKind::Application, "ProbeError"));
}

#[tokio::test]
async fn b13_reset_keeps_what_was_written_before_and_drops_memory() {
    let rig = Rig::new();
    let before = rig.last("x", json!([{"add": 1}, "instance"])).await;
    let in_flight = rig.begin("x", json!([{"note": "a"}, {"sleep": 1_000}, {"note": "never"}]));
    rig.settle().await;
    let error = rig
        .run("x", json!([{"note": "b"}, {"catch": [{"reset": "enough"}]}, {"note": "never"}]))
        .await
        .unwrap_err();
    assert_reset(&error, "enough");
    assert_reset(&join(in_flight).await.unwrap_err(), "enough");
    rig.pass(1_000).await;
    assert!(is_new(&rig, "x", &before).await);
    let after = rig.run("x", json!([{"add": 0}, {"sql": "SELECT line FROM log"}])).await.unwrap();
    assert_eq!(after, json!([0, ["a", "b"]]));
}

#[tokio::test]
async fn b13_a_body_under_way_ends_with_an_error_when_its_object_is_reset() {
    let rig = Rig::new();
    let response = soon(rig.stub("x").fetch(request(&json!(["open", {"chunk": "part"}])))).await.unwrap();
    rig.run("x", json!([{"reset": "enough"}])).await.unwrap_err();
    let error = soon(response.into_body().text(100)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Reset, "a cut off body must not pass for a whole one");
}

#[tokio::test]
async fn b14_a_stub_works_on_after_a_reset() {
    let rig = Rig::new();
    let stub = rig.stub("x");
    ask(&stub, json!([{"reset": "enough"}])).await.unwrap_err();
    assert_eq!(ask(&stub, json!([{"add": 1}])).await.unwrap(), json!([1]));
}

#[tokio::test]
async fn b15_failed_background_work_is_nobodys_business() {
    let rig = Rig::new();
    let before = rig.last("x", json!([{"wait_until": [{"fail": "unseen"}]}, "instance"])).await;
    assert!(!is_new(&rig, "x", &before).await);
    assert_eq!(rig.why_awake("x").await, Some(vec![]));
}

#[tokio::test]
async fn b16_a_caller_that_leaves_does_not_stop_the_handler() {
    let rig = Rig::new();
    let call = rig.stub("x").fetch(request(&json!([{"sleep": 100}, {"note": "done"}])));
    drop(call);
    let aborted = rig.begin("x", json!([{"sleep": 100}, {"note": "done"}]));
    rig.settle().await;
    aborted.abort();
    rig.pass(100).await;
    let log = rig.last("x", json!([{"sql": "SELECT line FROM log"}])).await;
    assert_eq!(log, json!(["done", "done"]));
    let late = soon(rig.stub("x").fetch_within(Duration::ZERO, request(&json!([{"sleep": 100}])))).await;
    assert_eq!(late.unwrap_err().kind(), ErrorKind::Deadline);
}

#[tokio::test]
async fn panics_reset_their_object_alone() {
    let rig = Rig::new();
    let other = rig.last("y", json!([{"add": 1}, "instance"])).await;
    rig.run("x", json!([{"on_alarm": [{"note": "undone"}, {"panic": "in alarm"}]}, {"note": "kept"}]))
        .await
        .unwrap();
    for steps in [
        json!([{"note": "undone"}, {"panic": "here"}]),
        json!([{"gate": [{"note": "undone"}, {"panic": "here"}]}]),
        json!([{"wait_until": [{"note": "undone"}, {"panic": "here"}]}, {"sleep": 10}]),
        json!([{"transaction": [{"note": "undone"}, {"panic": "here"}]}]),
    ] {
        let before = rig.last("x", json!([{"add": 1}, "instance"])).await;
        let in_flight = rig.begin("x", json!([{"sleep": 10}]));
        rig.settle().await;
        for error in [rig.run("x", steps.clone()).await.unwrap_err(), join(in_flight).await.unwrap_err()] {
            assert_reset(&error, "the object panicked: here");
        }
        assert!(is_new(&rig, "x", &before).await, "{steps}");
    }
    let before = rig.last("x", json!([{"set_alarm": 0}, "instance"])).await;
    rig.settle().await;
    assert!(is_new(&rig, "x", &before).await);
    rig.run("x", json!(["delete_alarm", {"on_new": [{"note": "undone"}, {"panic": "in new"}]}]))
        .await
        .unwrap();
    rig.run("x", json!([{"reset": "away"}])).await.unwrap_err();
    for _ in 0..2 {
        assert_reset(&rig.run("x", json!([])).await.unwrap_err(), "the object panicked: in new");
    }
    assert!(!is_new(&rig, "y", &other).await);
    assert_eq!(rig.last("y", json!([{"add": 0}])).await, json!(1));
}

/// Its destructor and those of its handlers do what they should not.
struct Rude<S: ObjectState>(S);

struct RudeGuard<S: ObjectState>(S);

impl<S: ObjectState> Drop for RudeGuard<S> {
    fn drop(&mut self) {
        let state = &self.0;
        let used = state.sql().exec("SELECT 1", ());
        drop(state.alarms().set(state.now()));
        drop(state.block_concurrency_while(async { Ok(()) }));
        state.wait_until(async {});
        drop(state.sleep(Duration::from_secs(1)));
        let _ = (state.sockets().all(), state.random(), state.sql().database_size(), state.delete_all());
        let _ = state.sockets().set_auto_response(None);
        if let Ok(stub) = state.env().namespace("PROBE").and_then(|probes| probes.named("log")) {
            let said = match used {
                Ok(_) => "ok".to_owned(),
                Err(error) => format!("{:?}", error.kind()),
            };
            drop(stub.fetch(request(&json!([{"note": said}]))));
        }
        assert!(std::thread::panicking(), "a rude destructor");
    }
}

impl<S: ObjectState> DurableObject<S> for Rude<S> {
    fn new(state: S) -> Result<Self> {
        Ok(Self(state))
    }

    async fn fetch(&self, request: Request) -> Result<Response> {
        let _guard = RudeGuard(self.0.clone());
        match request.uri().path() {
            "/wait" => self.0.sleep(Duration::from_secs(3_600)).await,
            "/reset" => match self.0.reset("away").await {},
            _ => {}
        }
        Ok(reply::text("answered"))
    }
}

impl<S: ObjectState> Drop for Rude<S> {
    fn drop(&mut self) {
        drop(RudeGuard(self.0.clone()));
    }
}

#[tokio::test]
async fn destructors_that_use_the_state_and_panic_harm_nobody_else() {
    let rig = Rig::with_class::<Rude<_>>();
    let rude = rig.namespace("OTHER").named("x").unwrap();
    let get = |path: &str| {
        let request = http::Request::get(format!("http://rude{path}")).body(Body::empty()).unwrap();
        rude.fetch(request)
    };
    // As the handler's own, inside its event: its panic resets the object, whose destructor panics too.
    let error = soon(get("/")).await.unwrap_err();
    assert_reset(&error, "the object panicked: a rude destructor");
    let waiting: Vec<_> = (0..3).map(|_| get("/wait")).collect();
    let error = soon(get("/reset")).await.unwrap_err();
    assert_reset(&error, "away");
    for call in waiting {
        assert_reset(&soon(call).await.unwrap_err(), "away");
    }
    rig.settle().await;
    let log = rig.last("log", json!([{"sql": "SELECT line FROM log ORDER BY line"}])).await;
    // The six destructors of what was thrown away found their state gone, and their calls were not sent.
    assert_eq!(log, json!(["ok"]));
    assert!(get("/wait").now_or_never().is_none());
}

#[tokio::test]
async fn an_object_that_never_rests_does_not_starve_the_others() {
    let rig = Rig::new();
    let spinning = rig.begin("x", json!([{"spin_until": 1}]));
    rig.settle().await;
    rig.run("y", json!([])).await.unwrap();
    assert_eq!(rig.run("x", json!([{"add": 1}])).await.unwrap(), json!([1]));
    join(spinning).await.unwrap();
}

#[tokio::test]
async fn a_host_that_is_dropped_cuts_bodies_and_callers_off() {
    let mut rig = Rig::new();
    let response = soon(rig.stub("x").fetch(request(&json!(["open", {"chunk": "part"}])))).await.unwrap();
    let (stub, waiting) = (rig.stub("x"), rig.begin("x", json!([{"sleep": 1_000}])));
    rig.settle().await;
    rig.stop();
    assert_eq!(soon(response.into_body().text(100)).await.unwrap_err().kind(), ErrorKind::Reset);
    assert_eq!(join(waiting).await.unwrap_err().kind(), ErrorKind::Reset);
    assert_eq!(ask(&stub, json!([])).await.unwrap_err().kind(), ErrorKind::Shutdown);
}

#[tokio::test]
async fn b8_whoever_awaits_a_gate_goes_on_before_anybody_else() {
    let rig = Rig::new();
    let first = rig.begin("x", json!([{"gate": [{"sleep": 10}]}, {"note": "behind"}]));
    let second = rig.begin("x", json!([{"gate": [{"sleep": 10}, {"fail": "x"}]}, {"note": "never"}]));
    let third = rig.begin("x", json!([{"note": "never"}]));
    rig.pass(10).await;
    join(first).await.unwrap();
    rig.pass(10).await;
    join(second).await.unwrap_err();
    join(third).await.unwrap_err();
    assert_eq!(rig.last("x", json!([{"sql": "SELECT line FROM log"}])).await, json!(["behind"]));
}
