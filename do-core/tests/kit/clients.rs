//! Clients that are slow, half-open, or gone.

use crate::common::{ask, builder, kit, probe};
use do_core::{ErrorKind, Message, Stub, testing::Received};
use serde_json::{Value, json};
use std::time::Duration;

#[test]
fn d11b_a_client_that_does_not_read_fills_its_outbox_and_is_told_1013() {
    let kit = builder().outbox_bytes(1_000).start().unwrap();
    let a = probe(&kit, "a");
    kit.run(async {
        let client = kit.connect(&a, "/?tag=x").await.unwrap();
        client.stall(true);
        let text = "x".repeat(400);
        let send = json!({"send": ["all", text]});
        let sent = ask(&a, json!([{"try": [send]}, {"try": [send]}, {"try": [send]}])).await.unwrap();
        assert_eq!([&sent[0]["ok"], &sent[1]["ok"]], [&json!([null]), &json!([null])]);
        assert_eq!(sent[2]["error"]["kind"], json!("Overloaded"));
        client.stall(false);
        assert_eq!(client.text().await.unwrap(), text);
        assert_eq!(client.text().await.unwrap(), text);
        assert_eq!(client.receive().await, Received::Close(Some((1_013, String::new()))));
    });
}

#[test]
fn a_half_open_client_is_noticed_by_nobody_until_the_object_closes_it() {
    let kit = kit();
    let a = probe(&kit, "a");
    kit.run(async {
        let client = kit.connect(&a, "/?tag=x").await.unwrap();
        client.vanish();
        client.send("never arrives").unwrap();
        ask(&a, json!([{"send": ["all", "neither does this"]}])).await.unwrap();
        kit.advance(Duration::from_secs(3_600)).await;
        assert_eq!(ask(&a, json!([{"count": "all"}, "events"])).await.unwrap(), [json!(1), json!([])]);
        assert_eq!(client.try_receive(), None);
        // The peer's answer is waited for, and then no more (rule D24).
        ask(&a, json!([{"close_sockets": ["all", [1000, "bye"]]}])).await.unwrap();
        kit.advance(Duration::from_secs(11)).await;
        let events = ask(&a, json!(["events"])).await.unwrap();
        let lost = "x: close 1006 \"WebSocket disconnected without sending Close frame.\" lost";
        assert_eq!(events, [json!([lost])]);
    });
}

#[test]
fn d15_a_client_that_is_dropped_is_lost_behind_what_it_sent() {
    let kit = kit();
    let a = probe(&kit, "a");
    kit.run(async {
        let client = kit.connect(&a, "/?tag=x").await.unwrap();
        client.send("the last").unwrap();
        client.lose();
        kit.settle().await;
        let events = ask(&a, json!(["events"])).await.unwrap();
        let lost = "x: close 1006 \"WebSocket disconnected without sending Close frame.\" lost";
        assert_eq!(events, [json!(["x: message \"the last\"", lost])]);
    });
}

#[test]
fn a_client_answers_a_close_as_browsers_do_unless_told_otherwise() {
    let kit = kit();
    let a = probe(&kit, "a");
    kit.run(async {
        let polite = kit.connect(&a, "/?tag=polite").await.unwrap();
        let mute = kit.connect(&a, "/?tag=mute").await.unwrap();
        mute.answers_closes(false);
        ask(&a, json!([{"close_sockets": ["all", [4000, "bye"]]}])).await.unwrap();
        for client in [&polite, &mute] {
            assert_eq!(client.receive().await, Received::Close(Some((4_000, "bye".to_owned()))));
        }
        assert_eq!(polite.receive().await, Received::Lost);
        kit.settle().await;
        assert_eq!(ask(&a, json!(["events"])).await.unwrap(), [json!(["polite: close 4000 \"\" clean"])]);
        assert_eq!(polite.send("late").unwrap_err().kind(), ErrorKind::Closed);
    });
}

#[test]
fn a_refused_handshake_gives_the_response() {
    let kit = kit();
    let a = probe(&kit, "a");
    kit.run(async {
        let error = kit.connect(&a, &format!("/?tag={}", "x".repeat(300))).await.unwrap_err();
        assert!(error.is_remote(), "{error}");
        let (request, opening) = kit.handshake("/").unwrap();
        let plain = do_core::reply::text("not a WebSocket");
        assert_eq!(opening.open(plain).unwrap_err().status(), 200);
        assert_eq!(kit.handshake("no path").unwrap_err().kind(), ErrorKind::Invalid);
        drop(request);
    });
}

#[test]
fn d6_a_socket_whose_101_is_dropped_is_lost() {
    let kit = kit();
    let a = probe(&kit, "a");
    kit.run(async {
        let (request, opening) = kit.handshake("/?tag=x").unwrap();
        drop(a.fetch(request).await.unwrap());
        drop(opening);
        kit.settle().await;
        let seen = ask(&a, json!([{"count": "all"}, "events"])).await.unwrap();
        assert_eq!(seen[0], json!(0));
        assert_eq!(seen[1].as_array().unwrap().len(), 1);
    });
}

#[test]
fn d11_a_message_of_the_limit_arrives_and_a_longer_one_is_told_1009() {
    let kit = builder().message_bytes(100).start().unwrap();
    let a = probe(&kit, "a");
    kit.run(async {
        let client = kit.connect(&a, "/?tag=x").await.unwrap();
        client.send(Message::from("y".repeat(100))).unwrap();
        client.send(Message::from("z".repeat(101))).unwrap();
        assert!(matches!(client.receive().await, Received::Close(Some((1_009, _)))));
        let events = ask(&a, json!(["events"])).await.unwrap();
        let expected = [
            format!("x: message {:?}", "y".repeat(100)),
            "x: error Invalid: a message is longer than the limit".into(),
        ];
        assert_eq!(events, [json!(expected)]);
    });
}

#[test]
fn a_handler_that_never_answers_a_client_leaves_the_others_alone() {
    let kit = kit();
    let a = probe(&kit, "a");
    kit.run(async {
        let asked = {
            let a = a.clone();
            kit.spawn(async move { ask(&a, json!([{"sleep": 1_000_000}])).await })
        };
        let answer = ask(&a, json!(["now"])).await.unwrap();
        assert_eq!(answer, [json!(kit.now())]);
        kit.advance(Duration::from_secs(1_001)).await;
        assert_eq!(asked.await.unwrap(), [Value::Null]);
    });
}
