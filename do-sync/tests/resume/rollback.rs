//! What was sent and then taken back is told as a gap, and never as something else.

use crate::{
    client::{Peer, Told},
    object::{Command, Config, World},
};
use do_core::kit::Failing;
use do_sync::codes;
use serde_json::{Value, json};

/// Comes back, and is told of a gap of unknown size.
async fn is_told_of_a_gap(world: &World, peer: &mut Peer) {
    peer.catch_up(world).await;
    let hello = peer.last_hello();
    assert_eq!((&hello["gap"]["lost"], hello["gap"].is_object()), (&Value::Null, true), "{hello}");
    assert_eq!(peer.position(), world.position().await);
}

#[test]
fn a_publish_in_a_transaction_that_is_rolled_back_begins_a_new_epoch() {
    for settled in [true, false] {
        let world = World::new(&Config::default());
        world.run(async {
            let mut ann = Peer::enter(&world, "ann").await;
            world.ask(Command::Publish(json!("kept"))).await;
            ann.catch_up(&world).await;
            let (epoch, _) = (ann.epoch.clone(), ann.news());
            if settled {
                world.ask(Command::Undone(json!("undone"))).await;
            } else {
                world.ask(Command::UndoneThen(json!("undone"), json!("then"))).await;
            }
            world.kit.settle().await;
            assert!(!ann.drain());
            let news = ann.news();
            assert!(matches!(&news[0], Told::Message(3, m) if m["d"] == "undone"), "it was sent");
            assert_eq!(news.last(), Some(&Told::Closed(codes::RESYNC)));
            ann.connect(&world).await.unwrap();
            is_told_of_a_gap(&world, &mut ann).await;
            assert_ne!(ann.epoch, epoch);
            // Once: it goes on as ever.
            world.ask(Command::Publish(json!("after"))).await;
            ann.catch_up(&world).await;
            assert_eq!(ann.values(), [json!("after")]);
        });
    }
}

#[test]
fn a_rollback_that_is_followed_by_an_eviction_is_known_too() {
    let world = World::new(&Config::default());
    world.run(async {
        let mut ann = Peer::enter(&world, "ann").await;
        let epoch = ann.epoch.clone();
        world.ask(Command::Undone(json!("undone"))).await;
        world.kit.hibernate(&world.room).await.unwrap();
        world.ask(Command::Publish(json!("after"))).await;
        world.kit.settle().await;
        ann.drain();
        assert_eq!(ann.news().last(), Some(&Told::Closed(codes::RESYNC)));
        ann.connect(&world).await.unwrap();
        ann.catch_up(&world).await;
        assert_ne!(ann.epoch, epoch);
    });
}

#[test]
fn e14_after_delete_all_the_sequence_begins_anew_in_another_epoch() {
    for hibernates in [false, true] {
        let world = World::new(&Config::default());
        world.run(async {
            let mut ann = Peer::enter(&world, "ann").await;
            world.ask(Command::Many(5, 1)).await;
            ann.catch_up(&world).await;
            let (before, _) = (ann.position(), ann.news());
            world.ask(Command::DeleteAll).await;
            if hibernates {
                world.kit.hibernate(&world.room).await.unwrap();
            }
            let now = world.position().await;
            assert_eq!(now.split_once('-').unwrap().1, "0");
            assert_ne!(now.split_once('-').unwrap().0, before.split_once('-').unwrap().0);
            world.ask(Command::Publish(json!("new"))).await;
            world.kit.settle().await;
            ann.drain();
            // Either the room closes it, or the number does not fit: both lead to this.
            assert!(ann.news().contains(&Told::Closed(codes::RESYNC)));
            let mut again = Peer::new("ann");
            let (epoch, seq) = before.split_once('-').unwrap();
            (again.epoch, again.seq) = (epoch.to_owned(), seq.parse().unwrap());
            again.connect(&world).await.unwrap();
            is_told_of_a_gap(&world, &mut again).await;
        });
    }
}

#[test]
fn c6_what_a_failed_commit_takes_away_was_never_sent() {
    for what in [Failing::Commit, Failing::CrashBeforeCommit] {
        let world = World::new(&Config::default());
        world.run(async {
            let mut ann = Peer::enter(&world, "ann").await;
            world.kit.fail_next(&world.room, what);
            world.try_ask(&Command::Publish(json!("lost"))).await.unwrap_err();
            world.kit.settle().await;
            ann.drain();
            ann.catch_up(&world).await;
            world.ask(Command::Publish(json!("kept"))).await;
            ann.catch_up(&world).await;
            let news = ann.news();
            let hello =
                news.iter().rev().find_map(|t| if let Told::Hello(h) = t { Some(h) } else { None }).unwrap();
            assert_eq!(hello["gap"], Value::Null);
            assert!(matches!(news.last(), Some(Told::Message(_, m)) if m["d"] == "kept"));
        });
    }
}

#[test]
fn an_entry_that_is_not_stored_is_not_sent() {
    let world = World::new(&Config::default());
    world.run(async {
        let mut ann = Peer::enter(&world, "ann").await;
        ann.news();
        world.kit.fail_next(&world.room, Failing::Sql);
        world.try_ask(&Command::Publish(json!("refused"))).await.unwrap_err();
        world.ask(Command::Publish(json!("kept"))).await;
        ann.catch_up(&world).await;
        assert_eq!(ann.values(), [json!("kept")]);
    });
}
