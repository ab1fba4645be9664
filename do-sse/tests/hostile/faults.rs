//! Commits, alarms and SQL that fail.

use crate::object::{Config, Op, Reader, World};
use do_core::kit::Failing;
use serde_json::json;
use std::time::Duration;

fn publish(text: &str) -> Op {
    Op::Publish(text.into())
}

#[test]
fn c6_what_was_ended_in_a_turn_whose_commit_fails_ends_and_shows_nothing_of_it() {
    for is_stored in [false, true] {
        let world = World::new(&Config::new(is_stored));
        world.kit.clone().run(async {
            let mut reader = Reader::at(&world, "/").await;
            world.kit.fail_next(&world.log, Failing::Commit);
            world.ask(&[publish("never"), Op::CloseAll]).await.unwrap_err();
            world.kit.settle().await;
            reader.drain();
            assert!(!reader.has("never"));
            assert!(!reader.is_there(), "stored: {is_stored}");
            reader.catch_up(&world).await;
            world.ask(&[publish("then")]).await.unwrap();
            reader.catch_up(&world).await;
            assert!(reader.has("then") && !reader.has("never"));
        });
    }
}

#[test]
fn c6_who_was_replaced_in_a_turn_whose_commit_fails_ends() {
    for is_stored in [false, true] {
        let world = World::new(&Config::new(is_stored));
        world.kit.clone().run(async {
            let mut old = Reader::at(&world, "/?id=a").await;
            world.kit.fail_next(&world.log, Failing::Commit);
            let mut new = Reader::new("/?id=a&write=1");
            assert!(new.connect(&world).await.is_err());
            world.kit.settle().await;
            old.drain();
            assert!(!old.is_there() && !old.told.iter().any(|told| told.0 == "replaced"), "{:?}", old.told);
        });
    }
}

#[test]
fn c4_what_is_closed_behind_a_publish_has_it_after_the_commit() {
    for is_stored in [false, true] {
        let world = World::new(&Config::new(is_stored));
        world.kit.clone().run(async {
            let mut reader = Reader::at(&world, "/").await;
            world.ask(&[publish("last"), Op::CloseAll]).await.unwrap();
            world.kit.settle().await;
            reader.drain();
            assert!(reader.has("last") && !reader.is_there());
        });
    }
}

#[test]
fn heartbeats_go_on_for_who_comes_behind_the_deletion_of_everything() {
    for is_slot in [false, true] {
        let world = World::new(&Config { is_slot, ..Config::new(true) });
        world.kit.clone().run(async {
            let _first = Reader::at(&world, "/").await;
            world.ask(&[publish("a"), Op::DeleteAll]).await.unwrap();
            let mut second = Reader::at(&world, "/").await;
            world.pass(60, &mut second).await;
            assert!(second.is_there() && second.beats >= 2, "{} beats, slot: {is_slot}", second.beats);
        });
    }
}

#[test]
fn s6_heartbeats_come_back_when_the_alarm_could_not_be_set_for_so_long_that_it_was_given_up() {
    for (is_stored, is_slot) in [(false, false), (true, false), (false, true), (true, true)] {
        let world = World::new(&Config { is_slot, ..Config::new(is_stored) });
        world.kit.clone().run(async {
            let mut reader = Reader::at(&world, "/").await;
            for _ in 0..200 {
                world.kit.fail_next(&world.log, Failing::SetAlarm);
            }
            world.pass(1_000, &mut reader).await;
            let mut away = Reader::at(&world, "/").await;
            away.drain();
            assert!(is_slot || (!away.is_there() && away.told.is_empty()), "it is sent away");
            reader.drain();
            assert!(reader.is_there(), "who is there lives on");
            assert!(is_slot || world.ask(&[Op::Alarm]).await.unwrap() == json!(null));
            world.kit.heal();
            world.ask(&[publish("x")]).await.unwrap();
            reader.drain();
            let before = reader.beats;
            world.pass(60, &mut reader).await;
            assert!(reader.has("x") && reader.beats >= before + 2, "{} beats", reader.beats - before);
        });
    }
}

#[test]
fn s6_heartbeats_come_back_with_who_comes_when_the_alarm_was_given_up() {
    for (is_stored, is_slot) in [(false, false), (true, false), (false, true), (true, true)] {
        let world = World::new(&Config { is_slot, ..Config::new(is_stored) });
        world.kit.clone().run(async {
            let mut reader = Reader::at(&world, "/").await;
            for _ in 0..200 {
                world.kit.fail_next(&world.log, Failing::SetAlarm);
            }
            world.pass(1_000, &mut reader).await;
            world.kit.heal();
            let mut new = Reader::at(&world, "/").await;
            let before = reader.beats;
            for _ in 0..12 {
                world.pass(5, &mut reader).await;
                new.drain();
            }
            assert!(new.beats >= 2 && reader.beats >= before + 2, "stored: {is_stored}, slot: {is_slot}");
        });
    }
}

#[test]
fn while_the_alarm_cannot_be_set_broadcasts_do_not_try_it_each_time() {
    let world = World::new(&Config::new(false));
    world.kit.clone().run(async {
        let mut reader = Reader::at(&world, "/").await;
        for _ in 0..9 {
            world.kit.fail_next(&world.log, Failing::SetAlarm);
        }
        world.pass(1_000, &mut reader).await;
        for n in 0..100 {
            world.ask(&[Op::Broadcast(n.to_string())]).await.unwrap();
        }
        world.kit.settle().await;
        reader.drain();
        assert!(reader.is_there() && reader.has("99"));
        // Of the nine, one for each of seven runs, and one for all of the broadcasts.
        let mut away = Reader::at(&world, "/").await;
        away.drain();
        assert!(away.told.is_empty(), "the ninth was used up");
    });
}

#[test]
fn e16_alarms_that_come_late_or_twice_change_nothing() {
    let world = World::new(&Config::new(true));
    world.kit.clone().run(async {
        world.kit.late_alarms(Duration::from_secs(40));
        world.kit.repeat_alarms(100);
        let mut reader = Reader::at(&world, "/").await;
        world.pass(600, &mut reader).await;
        assert!((9..=13).contains(&reader.beats), "{} beats", reader.beats);
    });
}

#[test]
fn old_events_are_deleted_after_their_alarm_was_given_up() {
    let world = World::new(&Config { max_age_ms: Some(10_000), ..Config::new(true) });
    world.kit.clone().run(async {
        world.ask(&[publish("a")]).await.unwrap();
        world.kit.settle().await;
        assert_ne!(world.ask(&[Op::Alarm]).await.unwrap(), json!(null));
        for _ in 0..7 {
            world.kit.fail_next(&world.log, Failing::Sql);
        }
        world.kit.advance(Duration::from_secs(1_000)).await;
        world.kit.heal();
        world.ask(&[publish("b")]).await.unwrap();
        world.kit.settle().await;
        assert_ne!(world.ask(&[Op::Alarm]).await.unwrap(), json!(null));
    });
}
