//! What was sent and then taken back is told as a gap, and never as something else.

use crate::{
    object::{Command, Config, World},
    reader::{Reader, Told},
};

fn epoch(position: &str) -> &str {
    position.split_once('-').unwrap().0
}

/// Its stream ended, it came back, and was told of a gap of unknown size.
fn was_reset(news: &[Told], position: &str) {
    let at = news.iter().rposition(|told| *told == Told::Ended).unwrap();
    let [Told::Ready(_), Told::Reset(id, data)] = &news[at + 1..] else { panic!("{news:?}") };
    assert_eq!((&**id, &**data), (position, "{\"lost\":null}"));
}

#[test]
fn a_publish_in_a_transaction_that_is_rolled_back_ends_all_streams_and_the_epoch() {
    for settles in [true, false] {
        let world = World::new(&Config::default());
        world.kit.run(async {
            let mut ann = Reader::at(&world, "/").await;
            let before = world.publish("kept").await;
            ann.catch_up(&world).await;
            ann.news();
            if settles {
                world.ask(Command::Undone("undone".into())).await;
            } else {
                world.ask(Command::UndoneThen("undone".into(), "then".into())).await;
            }
            ann.catch_up(&world).await;
            let news = ann.news();
            assert!(matches!(&news[0], Told::Event(_, text) if text == "undone"), "{news:?}");
            let position = world.position().await;
            was_reset(&news, &position);
            assert_ne!(epoch(&position), epoch(&before));
            assert!(position.ends_with(if settles { "-1" } else { "-2" }));
            // Once: it goes on as ever.
            world.publish("after").await;
            ann.catch_up(&world).await;
            assert_eq!(ann.texts(), ["after"]);
        });
    }
}

#[test]
fn a_rollback_that_is_followed_by_an_eviction_is_known_too() {
    let world = World::new(&Config::default());
    world.kit.run(async {
        let mut ann = Reader::at(&world, "/").await;
        world.ask(Command::Undone("undone".into())).await;
        world.kit.settle().await;
        world.kit.evict(&world.log);
        world.publish("after").await;
        ann.catch_up(&world).await;
        let position = world.position().await;
        was_reset(&ann.news(), &position);
        assert!(position.ends_with("-1"));
    });
}

#[test]
fn events_of_before_have_ids_of_the_epoch_that_is_now() {
    let world = World::new(&Config { replay: 10, ..Config::default() });
    world.kit.run(async {
        let old = world.publish("one").await;
        world.ask(Command::To("t".into(), "two".into())).await;
        world.ask(Command::Undone("undone".into())).await;
        for evicts in [false, true] {
            if evicts {
                world.kit.evict(&world.log);
            }
            let position = world.position().await;
            let mut ann = Reader::at(&world, "/?topic=t").await;
            let now = epoch(&position);
            let [one, two] =
                [(1, "one"), (2, "two")].map(|(seq, text)| Told::Event(format!("{now}-{seq}"), text.into()));
            assert_eq!(ann.news()[1..], [one, two.clone()]);
            // So they can be resumed from, and those of the old epoch cannot.
            let mut bob = Reader::behind("/?topic=t", &format!("{now}-1"));
            bob.catch_up(&world).await;
            assert_eq!(bob.news()[1..], [two]);
            let mut cyd = Reader::behind("/", &old);
            cyd.catch_up(&world).await;
            assert!(
                cyd.news()
                    .iter()
                    .any(|told| matches!(told, Told::Reset(_, data) if data == "{\"lost\":null}"))
            );
        }
    });
}

#[test]
fn e14_after_delete_all_the_sequence_begins_anew_and_nobody_is_left_behind() {
    for notices in
        [Command::Publish("new".into()), Command::Beat, Command::Position, Command::Undone("undone".into())]
    {
        let world = World::new(&Config::default());
        world.kit.run(async {
            let mut ann = Reader::at(&world, "/").await;
            world.ask(Command::Many(5, 1)).await;
            ann.catch_up(&world).await;
            let before = ann.id.clone();
            ann.news();
            world.ask(Command::DeleteAll).await;
            world.ask(notices.clone()).await;
            ann.catch_up(&world).await;
            let position = world.position().await;
            assert_ne!(epoch(&position), epoch(&before), "{notices:?}");
            was_reset(&ann.news(), &position);
            world.publish("after").await;
            ann.catch_up(&world).await;
            assert_eq!(ann.texts(), ["after"], "{notices:?}");
        });
    }
}

#[test]
fn e14_after_delete_all_whoever_comes_next_ends_the_streams_of_before() {
    let world = World::new(&Config::default());
    world.kit.run(async {
        let mut ann = Reader::at(&world, "/").await;
        world.publish("one").await;
        ann.catch_up(&world).await;
        ann.news();
        world.ask(Command::DeleteAll).await;
        let mut bob = Reader::at(&world, "/").await;
        ann.catch_up(&world).await;
        was_reset(&ann.news(), &world.position().await);
        assert!(bob.is_there());
        world.publish("two").await;
        for reader in [&mut ann, &mut bob] {
            reader.catch_up(&world).await;
            assert_eq!(reader.texts(), ["two"]);
        }
    });
}

#[test]
fn e14_an_emptied_object_that_nobody_reads_is_left_empty_by_the_alarm() {
    for max_age_ms in [None, Some(1_000)] {
        let world = World::new(&Config { max_age_ms, ..Config::default() });
        world.kit.run(async {
            world.publish("one").await;
            world.ask(Command::DeleteAll).await;
            world.kit.evict(&world.log);
            world.ask(Command::Beat).await;
            let tables = "SELECT 1 FROM sqlite_master WHERE name = '_feed_log'";
            assert_eq!(world.ask(Command::Sql(tables.into())).await, 0);
        });
    }
}

#[test]
fn a_snapshot_is_given_to_whoever_was_reset() {
    let world = World::new(&Config::default());
    world.kit.run(async {
        let mut ann = Reader::at(&world, "/?snapshot").await;
        world.ask(Command::Undone("undone".into())).await;
        ann.catch_up(&world).await;
        let position = world.position().await;
        let data = "{\"lost\":null,\"snapshot\":\"all\"}".to_owned();
        assert_eq!(ann.news().last(), Some(&Told::Reset(position, data)));
    });
}
