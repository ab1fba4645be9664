//! What it costs: each event is read once in an instance, however many clients come back.

use crate::{
    object::{Command, Config, World},
    reader::{Reader, Told},
};
use serde_json::json;

#[test]
fn a_storm_of_a_thousand_clients_reads_each_event_once_and_loses_and_repeats_none() {
    let world = World::new(&Config::default());
    world.kit.run(async {
        let first = world.publish("x").await;
        world.ask(Command::Many(99, 3)).await;
        let epoch = first.split_once('-').unwrap().0.to_owned();
        world.kit.evict(&world.log);
        let mut readers: Vec<Reader> =
            (0..1_000).map(|n| Reader::behind("/", &format!("{epoch}-{}", n % 101))).collect();
        for reader in &mut readers {
            reader.connect(&world).await.unwrap();
        }
        world.publish("live").await;
        world.kit.settle().await;
        assert_eq!(world.ask(Command::Read).await, json!(100), "events that were read from the database");
        for (n, reader) in readers.iter_mut().enumerate() {
            reader.drain();
            let expected = (n % 101 + 1..=101).map(|seq| format!("{epoch}-{seq}"));
            let told = reader.news().into_iter().filter_map(|told| match told {
                Told::Event(id, _) => Some(id),
                Told::Ready(_) => None,
                other => panic!("{other:?}"),
            });
            assert!(told.eq(expected), "{n}");
            assert!(reader.is_there());
        }
        assert_eq!(world.ask(Command::Count).await, json!(1_000));
    });
}

#[test]
fn nothing_is_read_for_who_needs_nothing_that_is_not_in_memory() {
    let world = World::new(&Config::default());
    world.kit.run(async {
        world.ask(Command::Many(50, 3)).await;
        world.kit.evict(&world.log);
        let mut ann = Reader::at(&world, "/").await;
        let newest = world.publish("a").await;
        world.publish("b").await;
        ann.catch_up(&world).await;
        Reader::behind("/", &newest).catch_up(&world).await;
        Reader::behind("/", "another-1").catch_up(&world).await;
        assert_eq!(ann.texts(), ["a", "b"]);
        assert_eq!(world.ask(Command::Read).await, json!(0));
        let before = newest.replace("-51", "-49");
        Reader::behind("/", &before).catch_up(&world).await;
        assert_eq!(world.ask(Command::Read).await, json!(52));
    });
}
