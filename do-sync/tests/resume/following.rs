//! Those who only follow, and values that are published together.

use crate::{
    client::{Peer, Told},
    object::{Command, Config, World},
};
use serde_json::{Value, json};

fn numbers(told: &[Told]) -> Vec<(u64, &str)> {
    let number = |told: &Told| match told {
        Told::Message(seq, message) => (*seq, if message["t"] == "msg" { "msg" } else { "other" }),
        other => panic!("not numbered: {other:?}"),
    };
    told.iter().map(number).collect()
}

#[test]
fn followers_get_the_sequence_and_are_no_members() {
    let world = World::new(&Config { replay: 10, ..Config::default() });
    world.run(async {
        world.ask(Command::Publish(json!("early"))).await;
        let (mut one, mut two) = (Peer::enter(&world, "").await, Peer::enter(&world, "").await);
        for peer in [&mut one, &mut two] {
            let news = peer.news();
            let Told::Hello(hello) = &news[0] else { panic!("no hello first: {news:?}") };
            assert_eq!(
                (&hello["member"], &hello["count"], &hello["members"]),
                (&Value::Null, &json!(0), &json!([]))
            );
            assert_eq!(numbers(&news[1..]), [(1, "msg")], "nobody came, as far as the log knows");
        }
        let mut ann = Peer::enter(&world, "ann").await;
        let hello = ann.last_hello();
        assert_eq!((&hello["count"], &hello["members"]), (&json!(1), &json!([{ "id": "ann" }])));
        world.kit.hibernate(&world.room).await.unwrap();
        world.ask(Command::Publish(json!("later"))).await;
        for peer in [&mut one, &mut two] {
            peer.catch_up(&world).await;
            assert_eq!(
                numbers(&peer.news()),
                [(2, "other"), (3, "msg")],
                "ann came, then something was published"
            );
        }
        drop(one);
        ann.socket = None;
        world.kit.settle().await;
        two.catch_up(&world).await;
        assert_eq!(numbers(&two.news()), [(4, "other")], "ann left, and nobody else");
    });
}

#[test]
fn a_follower_resumes_after_a_crash() {
    let world = World::new(&Config::default());
    world.run(async {
        let mut peer = Peer::enter(&world, "").await;
        world.ask(Command::Publish(json!(1))).await;
        peer.catch_up(&world).await;
        assert_eq!(peer.values(), [json!(1)]);
        world.kit.crash();
        world.ask(Command::Publish(json!(2))).await;
        peer.catch_up(&world).await;
        world.ask(Command::Publish(json!(3))).await;
        peer.catch_up(&world).await;
        assert_eq!(peer.values(), [json!(2), json!(3)]);
    });
}

#[test]
fn values_that_are_published_together_are_all_there_or_none() {
    let world = World::new(&Config::default());
    world.run(async {
        let mut peer = Peer::enter(&world, "").await;
        assert_eq!(world.ask(Command::All(vec![json!("a"), json!("b")])).await, json!([[1, 1], [2, 1]]));
        let position = world.position().await;
        let too_long = json!("x".repeat(3 << 20));
        world.try_ask(&Command::All(vec![json!("c"), too_long])).await.unwrap_err();
        assert_eq!(world.ask(Command::All(Vec::new())).await, json!([]));
        assert_eq!(world.position().await, position, "no number was used, and the epoch goes on");
        world.ask(Command::All(vec![json!("d")])).await;
        peer.catch_up(&world).await;
        assert_eq!(peer.values(), [json!("a"), json!("b"), json!("d")]);
        assert_eq!((peer.connections, peer.seq), (1, 3));
    });
}
