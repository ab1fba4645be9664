//! The history outlives the instance, and is two histories where there are two feeds.

use crate::{
    object::{Command, Config, World},
    reader::{Reader, Told},
};
use do_core::kit::{Failing, Kit, Strike};

fn ends() -> [fn(&Kit, &World); 3] {
    [|kit, world| kit.evict(&world.log), |kit, _| kit.crash(), |kit, _| kit.lose_power()]
}

#[test]
fn clients_resume_behind_evictions_crashes_and_power_failures() {
    for end in ends() {
        let world = World::new(&Config::default());
        world.kit.run(async {
            let mut ann = Reader::at(&world, "/").await;
            let first = world.publish("one").await;
            world.ask(Command::Many(3, 5)).await;
            ann.catch_up(&world).await;
            let seen = ann.news();
            end(&world.kit, &world);
            let mut bob = Reader::behind("/", &first);
            bob.catch_up(&world).await;
            assert_eq!(bob.news()[1..], seen[2..], "as they were sent the first time");
            ann.catch_up(&world).await;
            world.publish("five").await;
            for reader in [&mut ann, &mut bob] {
                reader.catch_up(&world).await;
                assert_eq!(reader.texts(), ["five"]);
            }
            let (epoch, seq) = ann.id.split_once('-').unwrap();
            assert_eq!((epoch, seq), (first.split_once('-').unwrap().0, "5"));
        });
    }
}

#[test]
fn a_client_that_had_everything_resumes_without_a_word_more() {
    let world = World::new(&Config::default());
    world.kit.run(async {
        let newest = world.publish("one").await;
        world.kit.evict(&world.log);
        let mut ann = Reader::behind("/", &newest);
        ann.catch_up(&world).await;
        assert_eq!(ann.news(), [Told::Ready(None)]);
        // Nothing had to be loaded for that; the next one needs what is not in memory.
        world.publish("two").await;
        ann.catch_up(&world).await;
        assert_eq!(ann.texts(), ["two"]);
        let mut bob = Reader::behind("/", &newest.replace("-1", "-0"));
        bob.catch_up(&world).await;
        assert_eq!(bob.texts(), ["one", "two"]);
    });
}

#[test]
fn a_newcomer_is_shown_the_latest_of_an_earlier_instance() {
    for replay in [0, 2] {
        let world = World::new(&Config { replay, ..Config::default() });
        world.kit.run(async {
            for text in ["a", "b", "c"] {
                world.publish(text).await;
            }
            world.kit.evict(&world.log);
            let mut ann = Reader::at(&world, "/").await;
            let shown: &[&str] = if replay == 0 { &[] } else { &["b", "c"] };
            assert_eq!(ann.texts(), shown);
        });
    }
}

#[test]
fn topics_are_kept() {
    let world = World::new(&Config::default());
    world.kit.run(async {
        let first = world.publish("all").await;
        world.ask(Command::To("a\n\"b\"".into(), "some".into())).await;
        world.ask(Command::To("c".into(), "others".into())).await;
        world.publish("all again").await;
        world.kit.evict(&world.log);
        let mut some = Reader::behind("/?topic=a%0A%22b%22", &first);
        let mut none = Reader::behind("/", &first);
        some.catch_up(&world).await;
        none.catch_up(&world).await;
        assert_eq!(some.texts(), ["some", "all again"]);
        assert_eq!(none.texts(), ["all again"]);
    });
}

#[test]
fn two_feeds_of_an_object_have_a_sequence_each() {
    let world = World::new(&Config::default());
    world.kit.run(async {
        let mine = world.publish("mine").await;
        let other = world.ask(Command::Other("other".into())).await.as_str().unwrap().to_owned();
        let epoch = |position: &str| position.split_once('-').unwrap().0.to_owned();
        assert_ne!(epoch(&mine), epoch(&other));
        assert!(mine.ends_with("-1") && other.ends_with("-1"));
        world.publish("mine too").await;
        world.kit.evict(&world.log);
        for (path, id, texts) in [("/", &mine, vec!["mine too"]), ("/other", &other, vec![])] {
            let mut reader = Reader::behind(path, id);
            reader.catch_up(&world).await;
            assert_eq!(reader.texts(), texts);
        }
        // What one lost is no business of the other.
        let mut reader = Reader::at(&world, "/other").await;
        reader.news();
        world.ask(Command::Undone("undone".into())).await;
        world.ask(Command::Other("after".into())).await;
        reader.catch_up(&world).await;
        assert_eq!(reader.news().len(), 1);
        assert_eq!(reader.id, format!("{}-2", epoch(&other)));
    });
}

#[test]
fn c6_what_a_failed_commit_takes_away_was_never_sent() {
    for what in [Failing::Commit, Failing::CrashBeforeCommit] {
        let world = World::new(&Config::default());
        world.kit.run(async {
            let mut ann = Reader::at(&world, "/").await;
            world.publish("before").await;
            ann.catch_up(&world).await;
            ann.news();
            world.kit.fail_next(&world.log, what);
            world.try_ask(Command::Publish("lost".into())).await.unwrap_err();
            ann.catch_up(&world).await;
            world.publish("kept").await;
            ann.catch_up(&world).await;
            let position = ann.id.clone();
            let expected = [Told::Ended, Told::Ready(None), Told::Event(position, "kept".into())];
            assert_eq!(ann.news(), expected, "no gap is told of");
        });
    }
}

#[test]
fn an_event_that_is_not_stored_is_not_sent() {
    let world = World::new(&Config::default());
    world.kit.run(async {
        let mut ann = Reader::at(&world, "/").await;
        ann.news();
        world.kit.settle().await;
        world.kit.fail_next(&world.log, Failing::Sql);
        world.try_ask(Command::Publish("refused".into())).await.unwrap_err();
        let jam = "CREATE TRIGGER jam BEFORE INSERT ON _feed_log BEGIN SELECT RAISE(ABORT, 'jammed'); END";
        world.ask(Command::Sql(jam.into())).await;
        let error = world.try_ask(Command::Publish("jammed".into())).await.unwrap_err();
        assert!(error.to_string().contains("jammed"), "{error}");
        world.ask(Command::Sql("DROP TRIGGER jam".into())).await;
        world.publish("kept").await;
        ann.catch_up(&world).await;
        assert_eq!(ann.texts(), ["kept"]);
        assert!(ann.id.ends_with("-1"));
    });
}

#[test]
fn who_comes_while_the_history_cannot_be_read_is_told_to_come_back() {
    let world = World::new(&Config::default());
    world.kit.run(async {
        let first = world.publish("one").await;
        world.publish("two").await;
        world.ask(Command::Sql("ALTER TABLE _feed_log RENAME COLUMN event TO away".into())).await;
        let mut ann = Reader::behind("/", &first);
        ann.connect(&world).await.unwrap(); // with 200
        world.kit.settle().await;
        ann.drain();
        assert_eq!(ann.news(), [Told::Ended]);
        world.ask(Command::Sql("ALTER TABLE _feed_log RENAME COLUMN away TO event".into())).await;
        ann.catch_up(&world).await;
        assert_eq!(ann.texts(), ["two"]);
    });
}

#[test]
fn an_event_that_cannot_be_read_is_a_gap() {
    let world = World::new(&Config::default());
    world.kit.run(async {
        let first = world.publish("one").await;
        world.ask(Command::Many(3, 4)).await;
        for broken in ["kind = 9", "kind = 2", "event = x'ff'"] {
            world.ask(Command::Sql(format!("UPDATE _feed_log SET {broken} WHERE seq = 3"))).await;
            world.kit.evict(&world.log);
            let mut ann = Reader::behind("/", &first);
            ann.catch_up(&world).await;
            let epoch = first.split_once('-').unwrap().0;
            let reset = Told::Reset(format!("{epoch}-3"), "{\"lost\":2}".into());
            let last = Told::Event(format!("{epoch}-4"), "0002".into());
            assert_eq!(ann.news()[1..], [reset, last]);
        }
    });
}

#[test]
fn a_crash_at_any_moment_loses_nothing_that_was_acknowledged_and_repeats_nothing() {
    let run = |strike: Option<u64>| {
        let world = World::new(&Config::default());
        if let Some(step) = strike {
            world.kit.at_step(step, &Strike::LosePower);
        }
        world.kit.run(async {
            let mut ann = Reader::new("/");
            let mut acknowledged = Vec::new();
            // Known to it, so that all that follows is resumed.
            let _ = ann.connect(&world).await;
            world.kit.settle().await;
            ann.drain();
            let knew = !ann.id.is_empty();
            for n in 0..3 {
                if !ann.is_there() {
                    let _ = ann.connect(&world).await;
                }
                if world.try_ask(Command::Publish(n.to_string())).await.is_ok() {
                    acknowledged.push(n.to_string());
                }
                world.kit.settle().await;
                ann.drain();
            }
            world.kit.heal();
            ann.catch_up(&world).await;
            assert!(!ann.told.iter().any(|told| matches!(told, Told::Reset(..))), "{:?}", ann.told);
            let texts = ann.texts();
            if knew {
                assert!(acknowledged.iter().all(|text| texts.contains(text)), "{acknowledged:?} {texts:?}");
            }
            assert!(texts.is_sorted_by(|a, b| a < b), "{texts:?}");
            assert_eq!(ann.id, world.position().await);
        });
        world.kit.steps()
    };
    for step in 0..run(None) {
        run(Some(step));
    }
}
