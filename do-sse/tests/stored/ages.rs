//! Events that are too old are not shown, and deleted by the alarm, whether somebody is there or not.

use crate::{
    object::{Command, Config, World},
    reader::{Reader, Told},
};
use serde_json::{Value, json};
use std::time::Duration;

const AGE: Config =
    Config { max_events: 1_000, max_bytes: 1 << 20, max_age_ms: Some(8_000), replay: 10, queue: 1_000 };

#[test]
fn an_old_event_is_not_shown_and_goes_when_it_is_due() {
    for evicts in [false, true] {
        let world = World::new(&AGE);
        world.kit.run(async {
            let first = world.publish("old").await;
            world.publish("old too").await;
            if evicts {
                world.kit.evict(&world.log);
            }
            world.kit.advance(Duration::from_millis(8_001)).await;
            let mut ann = Reader::at(&world, "/").await;
            assert_eq!(ann.texts().len(), 0);
            let mut bob = Reader::behind("/", &first);
            bob.catch_up(&world).await;
            assert!(matches!(&bob.news()[1], Told::Reset(_, data) if data == "{\"lost\":1}"));
            world.kit.advance(Duration::from_secs(1)).await;
            // The newest row stays for its number.
            assert_eq!(world.ask(Command::Rows).await, json!([[2, 0]]));
            assert_eq!(world.position().await, ann.id);
            world.publish("new").await;
            ann.catch_up(&world).await;
            assert_eq!(ann.texts(), ["new"]);
        });
    }
}

#[test]
fn the_alarm_comes_for_the_oldest_event_and_ends_behind_the_last() {
    let world = World::new(&AGE);
    world.kit.run(async {
        let began = world.kit.now();
        world.publish("a").await;
        world.kit.settle().await;
        let due = (began + Duration::from_secs(9)).as_millis();
        assert_eq!(world.ask(Command::Alarm).await, json!(due));
        world.kit.advance(Duration::from_secs(5)).await;
        world.publish("b").await;
        world.kit.advance(Duration::from_secs(4)).await;
        let rows = world.ask(Command::Rows).await;
        assert_eq!(rows.as_array().unwrap().len(), 1, "{rows}");
        assert_eq!(world.ask(Command::Alarm).await, json!(due + 5_000));
        world.kit.advance(Duration::from_secs(5)).await;
        assert_eq!(world.ask(Command::Rows).await, json!([[2, 0]]));
        assert_eq!(world.ask(Command::Alarm).await, Value::Null);
        world.publish("c").await;
        world.kit.settle().await;
        assert_ne!(world.ask(Command::Alarm).await, Value::Null);
    });
}

#[test]
fn heartbeats_go_on_beside_it() {
    let world = World::new(&Config { max_age_ms: Some(80_000), ..AGE });
    world.kit.run(async {
        let mut ann = Reader::at(&world, "/").await;
        world.publish("a").await;
        for _ in 0..8 {
            world.kit.advance(Duration::from_secs(15)).await;
            ann.drain();
            assert!(ann.is_there());
        }
        assert_eq!(world.ask(Command::Rows).await, json!([[1, 0]]));
        assert_eq!(ann.texts(), ["a"]);
        let next = world.ask(Command::Alarm).await.as_i64().unwrap();
        assert!(next - world.kit.now().as_millis() <= 15_000);
    });
}

#[test]
fn an_age_that_is_new_counts_for_what_is_there_from_the_first_use() {
    let world = World::new(&Config { max_age_ms: None, ..AGE });
    world.kit.run(async {
        world.publish("old").await;
        world.kit.advance(Duration::from_secs(100)).await;
        let world = world.deployed(&AGE);
        let mut ann = Reader::at(&world, "/").await;
        assert_eq!(ann.texts().len(), 0);
        world.publish("new").await;
        world.kit.advance(Duration::from_secs(1)).await;
        assert_eq!(world.ask(Command::Rows).await.as_array().unwrap().len(), 1);
    });
}

#[test]
fn e14_after_delete_all_the_alarm_is_set_anew() {
    let world = World::new(&AGE);
    world.kit.run(async {
        world.publish("a").await;
        world.kit.settle().await;
        world.ask(Command::DeleteAll).await;
        let at = world.kit.now() + Duration::from_secs(9);
        world.publish("b").await;
        world.kit.settle().await;
        assert_eq!(world.ask(Command::Alarm).await, json!(at.as_millis()));
    });
}
