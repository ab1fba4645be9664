//! What one is told who comes.

use crate::{
    client::{Peer, Told},
    object::{Command, Config, World},
};
use do_core::{Message, Stub, kit::Client, testing::Received};
use do_sync::codes;
use serde_json::{Value, json};
use std::time::Duration;

fn text(received: Option<Received>) -> Value {
    match received {
        Some(Received::Message(Message::Text(text))) => serde_json::from_str(&text).unwrap(),
        other => panic!("no text: {other:?}"),
    }
}

fn members(hello: &Value) -> Vec<&str> {
    hello["members"].as_array().unwrap().iter().map(|member| member["id"].as_str().unwrap()).collect()
}

#[test]
fn the_hello_comes_first_and_others_hear_of_it_once() {
    let world = World::new(&Config::default());
    world.run(async {
        let mut ann = Peer::enter(&world, "ann").await;
        let hello = ann.last_hello();
        let epoch = &ann.epoch;
        assert_eq!(hello["at"], format!("{epoch}-1"), "behind one's own `joined`");
        assert_eq!(
            (&hello["member"], &hello["replay"], &hello["count"]),
            (&json!("ann"), &json!(0), &json!(1))
        );
        assert_eq!(
            (&hello["gap"], &hello["snapshot"], &hello["more"]),
            (&Value::Null, &Value::Null, &Value::Null)
        );
        assert_eq!((&hello["ping"], &hello["limits"]["bytes"]), (&json!(["ping", "pong"]), &json!(65_536)));
        assert_eq!(members(&hello), ["ann"]);

        let mut bob = Peer::enter(&world, "bob").await;
        let hello = bob.last_hello();
        assert_eq!((members(&hello), &hello["count"]), (vec!["ann", "bob"], &json!(2)));
        world.kit.settle().await;
        ann.drain();
        let [Told::Message(2, joined)] = &ann.news()[..] else { panic!("not one `joined`") };
        assert_eq!((&joined["t"], &joined["member"]), (&json!("joined"), &json!("bob")));

        bob.socket.as_ref().unwrap().send(r#""hi""#).unwrap();
        world.kit.settle().await;
        for peer in [&mut ann, &mut bob] {
            peer.drain();
            let [Told::Message(3, message)] = &peer.news()[..] else { panic!("not one message") };
            assert_eq!((&message["from"], &message["d"]), (&json!("bob"), &json!("hi")));
        }
        let again = world.kit.connect(&world.room, "/?member=ann").await.unwrap();
        world.kit.settle().await;
        assert!(!ann.drain());
        assert_eq!(ann.news(), [Told::Closed(codes::REPLACED)]);
        assert_eq!(text(again.try_receive())["at"], bob.position(), "whoever is there joins no more");
    });
}

#[test]
fn raw_sockets_get_no_frames_and_a_broadcast_reaches_both() {
    let world = World::new(&Config::default());
    world.run(async {
        let mut ann = Peer::enter(&world, "ann").await;
        let raw = world.kit.connect(&world.room, "/raw").await.unwrap();
        ann.news();
        world.ask(Command::Publish(json!(1))).await;
        world.ask(Command::Binary(vec![7, 8])).await;
        assert_eq!(world.ask(Command::Event(json!("typing"))).await, 2);
        world.kit.settle().await;
        ann.drain();
        let news = ann.news();
        assert_eq!(news[1..], [Told::Binary(3, vec![7, 8]), Told::Event(json!("typing"))]);
        assert!(
            matches!(&news[0], Told::Message(2, message) if message["d"] == 1 && message["from"].is_null())
        );
        assert_eq!(text(raw.try_receive()), json!({"t": "ev", "d": "typing"}));
        assert_eq!(raw.try_receive(), None);
    });
}

#[test]
fn who_comes_back_gets_exactly_what_was_missed() {
    let world = World::new(&Config::default());
    world.run(async {
        let _bob = Peer::enter(&world, "bob").await;
        let mut ann = Peer::enter(&world, "ann").await;
        world.ask(Command::Publish(json!("live"))).await;
        ann.catch_up(&world).await;
        ann.socket = None; // lost
        world.kit.settle().await;
        for n in 0..5 {
            world.ask(Command::Publish(json!(n))).await;
        }
        let before = ann.seq;
        ann.news();
        ann.connect(&world).await.unwrap();
        ann.catch_up(&world).await;
        world.ask(Command::Publish(json!("after"))).await;
        ann.catch_up(&world).await;
        let news = ann.news();
        let Told::Hello(hello) = &news[0] else { panic!("no hello first") };
        // Her own `left`, five messages, her own `joined`.
        assert_eq!((&hello["replay"], &hello["gap"]), (&json!(7), &Value::Null));
        let said: Vec<Value> = news[1..]
            .iter()
            .map(|told| match told {
                Told::Message(_, message) if message["t"] == "msg" => message["d"].clone(),
                Told::Message(_, message) => message["t"].clone(),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(
            said,
            [
                json!("left"),
                json!(0),
                json!(1),
                json!(2),
                json!(3),
                json!(4),
                json!("joined"),
                json!("after")
            ]
        );
        assert_eq!(ann.seq, before + 8);
    });
}

#[test]
fn a_newcomer_is_shown_the_latest() {
    let world = World::new(&Config { replay: 3, ..Config::default() });
    world.run(async {
        for n in 0..10 {
            world.ask(Command::Publish(json!(n))).await;
        }
        let mut ann = Peer::enter(&world, "ann").await;
        world.kit.settle().await;
        ann.drain();
        assert_eq!(ann.values(), [json!(8), json!(9)], "and one's own `joined`");
        assert_eq!(ann.seq, 11);
    });
}

#[test]
fn a_position_that_is_no_more_is_a_gap_of_unknown_size() {
    let world = World::new(&Config { replay: 2, ..Config::default() });
    world.run(async {
        for n in 0..5 {
            world.ask(Command::Publish(json!(n))).await;
        }
        let epoch = world.position().await.split_once('-').unwrap().0.to_owned();
        for after in [
            "zzz-3".to_owned(),
            format!("{epoch}-99"),
            "%F0%9F%A6%80".repeat(70),
            format!("{epoch}-18446744073709551615"),
        ] {
            let client =
                world.kit.connect(&world.room, &format!("/?member=ann&after={after}")).await.unwrap();
            world.kit.settle().await;
            let hello = text(client.try_receive());
            assert_eq!(hello["replay"], 2);
            assert_eq!((&hello["gap"]["lost"], hello["gap"].as_object().unwrap().len()), (&Value::Null, 2));
            assert!(hello["gap"]["after"].as_str().unwrap().chars().count() <= 64);
        }
    });
}

#[test]
fn a_snapshot_is_for_those_who_miss_something() {
    let config = Config { snapshot: true, max_messages: 5, replay: 1, ..Config::default() };
    let world = World::new(&config);
    world.run(async {
        world.ask(Command::Publish(json!("a"))).await;
        let mut ann = Peer::enter(&world, "ann").await;
        let hello = ann.last_hello();
        assert_eq!(hello["snapshot"].as_array().unwrap().len(), 1);
        ann.socket = None;
        world.kit.settle().await;
        world.ask(Command::Publish(json!("b"))).await;
        ann.connect(&world).await.unwrap();
        ann.catch_up(&world).await;
        assert_eq!(ann.last_hello()["snapshot"], Value::Null, "nothing was missed");
        ann.socket = None;
        world.kit.settle().await;
        world.ask(Command::Many(10, 1)).await;
        ann.connect(&world).await.unwrap();
        ann.catch_up(&world).await;
        let hello = ann.last_hello();
        // `left`, ten messages, `joined`, of which the latest is shown.
        assert_eq!((&hello["gap"]["lost"], &hello["replay"]), (&json!(11), &json!(1)));
        assert_eq!(hello["snapshot"].as_array().unwrap().len(), 12);
    });
}

#[test]
fn refusals_are_responses() {
    let world = World::new(&Config { max_sockets: 1, ..Config::default() });
    world.run(async {
        let status = async |request| world.room.fetch(request).await.unwrap().status().as_u16();
        let get = |path: &str| http::Request::get(path).body(do_core::Body::empty()).unwrap();
        assert_eq!(status(get("/?member=ann")).await, 426);
        let (mut request, _opening) = world.kit.handshake("/?member=ann").unwrap();
        request.headers_mut().remove("sec-websocket-key");
        assert_eq!(status(request).await, 400);
        let _ann = Peer::enter(&world, "ann").await;
        let (request, _opening) = world.kit.handshake("/?member=bob").unwrap();
        let response = world.room.fetch(request).await.unwrap();
        assert_eq!(
            (response.status().as_u16(), &response.headers()["retry-after"]),
            (503, &"5".parse().unwrap())
        );
    });
}

#[test]
fn what_does_not_fit_one_connection_comes_in_parts() {
    // A mebibyte, over connections that may hold 64 KiB.
    let config = Config { outbound_bytes: 64 * 1_024, max_bytes: 2 << 20, ..Config::default() };
    let world = World::new(&config);
    world.run(async {
        let mut ann = Peer::enter(&world, "ann").await;
        ann.socket = None;
        world.kit.settle().await;
        ann.news();
        for _ in 0..4 {
            world.ask(Command::Many(16, 16 * 1_024)).await;
        }
        ann.connect(&world).await.unwrap();
        ann.catch_up(&world).await;
        assert_eq!(ann.seq, 1 + 1 + 64 + 1, "joined, left, 64 messages, joined");
        // Two messages of 16 KiB fit 48 KiB.
        assert_eq!(ann.connections, 1 + 32);
        let news = ann.news();
        let hellos: Vec<_> = news
            .iter()
            .filter_map(|told| if let Told::Hello(hello) = told { Some(hello) } else { None })
            .collect();
        let (last, parts) = hellos.split_last().unwrap();
        assert!(parts.iter().all(|hello| hello["more"] == true && hello["members"].is_null()));
        assert_eq!((&last["more"], &last["count"]), (&Value::Null, &json!(1)));
        let closes: Vec<_> = news.iter().filter(|told| matches!(told, Told::Closed(_))).collect();
        assert!(closes.iter().all(|close| **close == Told::Closed(codes::RESYNC)));
        assert_eq!(closes.len(), parts.len());
        assert_eq!(ann.told, []);
        // The parts were no members: nobody joined or left for them.
        assert_eq!(world.position().await, ann.position());
    });
}

#[test]
fn a_message_that_no_connection_could_hold_is_refused_and_changes_nothing() {
    let world = World::new(&Config { outbound_bytes: 10_000, ..Config::default() });
    world.run(async {
        let mut ann = Peer::enter(&world, "ann").await;
        let before = world.position().await;
        let error = world.try_ask(&Command::Publish(json!("x".repeat(5_000)))).await.unwrap_err();
        assert!(error.to_string().ends_with("bytes long in its frame, the limit is 5000"), "{error}");
        assert_eq!(world.position().await, before);
        world.ask(Command::Publish(json!("x".repeat(4_900)))).await;
        world.kit.settle().await;
        ann.drain();
        assert_eq!(ann.values(), [json!("x".repeat(4_900))]);
    });
}

#[test]
fn a_thousand_come_back_at_once() {
    let world = World::new(&Config { duplicates: true, ..Config::default() });
    world.run(async {
        let mut ann = Peer::enter(&world, "ann").await;
        let path = format!("/?member=ann&after={}", ann.position());
        for n in 0..20 {
            world.ask(Command::Publish(json!(n))).await;
        }
        let mut clients: Vec<Client> = Vec::new();
        for n in 20..1_020 {
            clients.push(world.kit.connect(&world.room, &path).await.unwrap());
            if n % 100 == 0 {
                world.ask(Command::Publish(json!(n))).await; // between them
            }
            world.kit.advance(Duration::from_millis(1)).await; // the kit wants some time for so much
        }
        world.ask(Command::Publish(json!("last"))).await;
        world.kit.settle().await;
        for (n, client) in clients.iter().enumerate() {
            let hello = text(client.try_receive());
            let replay = 20 + (n + 19) / 100;
            assert_eq!(
                (&hello["replay"], &hello["gap"], &hello["count"]),
                (&json!(replay), &Value::Null, &json!(1))
            );
            for seq in 2..=1 + 20 + 10 + 1 {
                assert_eq!(text(client.try_receive())["s"], seq, "client {n}");
            }
            assert_eq!(client.try_receive(), None);
        }
        ann.drain();
        assert_eq!(ann.seq, 32);
    });
}

#[test]
fn in_a_full_room_a_member_can_take_over_from_themselves() {
    let world = World::new(&Config { max_sockets: 2, ..Config::default() });
    world.run(async {
        let mut ann = Peer::enter(&world, "ann").await;
        let _bob = Peer::enter(&world, "bob").await;
        let refused = Peer::new("cid").connect(&world).await.unwrap_err();
        assert!(refused.to_string().contains("503"), "{refused}");
        let refused = Peer::new("").connect(&world).await.unwrap_err();
        assert!(refused.to_string().contains("503"), "{refused}");
        let mut again = Peer::enter(&world, "ann").await;
        assert_eq!(again.last_hello()["count"], 2);
        assert!(!ann.drain());
        assert_eq!(ann.news().last(), Some(&Told::Closed(codes::REPLACED)));
    });
}

#[test]
fn a_snapshot_has_what_does_not_fit_beside_it() {
    let config = Config { replay: 50, outbound_bytes: 16 * 1_024, snapshot: true, ..Config::default() };
    let world = World::new(&config);
    world.run(async {
        world.ask(Command::Many(50, 1_000)).await;
        // 50 KB do not fit 16 KiB, and the snapshot is too long for that as well: it is refused, and nobody is in.
        Peer::new("ann").connect(&world).await.unwrap_err();
    });
    let config = Config { outbound_bytes: 64 * 1_024, ..config };
    let world = World::new(&config);
    world.run(async {
        world.ask(Command::Many(30, 1_000)).await;
        let mut ann = Peer::enter(&world, "ann").await;
        let news = ann.news();
        let [Told::Hello(hello)] = &news[..] else { panic!("{} more than a hello", news.len()) };
        assert_eq!((&hello["replay"], &hello["more"]), (&json!(0), &Value::Null));
        assert_eq!(hello["snapshot"].as_array().map(Vec::len), Some(30), "all of it");
        assert_eq!(ann.position(), world.position().await);
        world.ask(Command::Publish(json!("next"))).await;
        ann.catch_up(&world).await;
        assert_eq!(ann.values(), [json!("next")]);
    });
}
