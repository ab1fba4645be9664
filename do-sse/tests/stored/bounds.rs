//! What is beyond the bounds is told as a gap of so many events, also when the bounds changed.

use crate::{
    object::{Command, Config, World},
    reader::{Reader, Told},
};
use serde_json::{Value, json};

fn numbers(rows: &Value) -> Vec<u64> {
    rows.as_array().unwrap().iter().map(|row| row[0].as_u64().unwrap()).collect()
}

#[test]
fn a_gap_is_as_large_as_what_is_beyond_the_bounds() {
    for (config, kept) in [
        (Config { max_events: 4, ..Config::default() }, 4),
        // Each is 28 bytes or so in the table, with its id.
        (Config { max_bytes: 100, ..Config::default() }, 2),
    ] {
        for evicts in [false, true] {
            let world = World::new(&config);
            world.kit.run(async {
                let first = world.publish("0000000000").await;
                world.ask(Command::Many(9, 10)).await;
                if evicts {
                    world.kit.evict(&world.log);
                }
                let mut ann = Reader::behind("/", &first);
                ann.catch_up(&world).await;
                let news = ann.news();
                let Told::Reset(id, data) = &news[1] else { panic!("{news:?}") };
                assert_eq!(*data, format!("{{\"lost\":{}}}", 9 - kept), "{news:?}");
                assert_eq!(id.split_once('-').unwrap().1, (10 - kept).to_string());
                assert_eq!(news.len(), 2 + kept);
                assert!(numbers(&world.ask(Command::Rows).await).len() <= kept + 1);
            });
        }
    }
}

#[test]
fn narrower_bounds_count_at_once_and_wider_ones_bring_nothing_back() {
    let world = World::new(&Config::default());
    world.kit.run(async {
        let first = world.publish("x").await;
        world.ask(Command::Many(19, 1)).await;
        let narrow = world.deployed(&Config { max_events: 5, ..Config::default() });
        let mut ann = Reader::behind("/", &first);
        ann.catch_up(&narrow).await;
        assert!(matches!(&ann.news()[1], Told::Reset(_, data) if data == "{\"lost\":14}"));
        narrow.publish("y").await;
        assert_eq!(numbers(&narrow.ask(Command::Rows).await), (17..=21).collect::<Vec<_>>());
        let wide = narrow.deployed(&Config::default());
        let mut bob = Reader::behind("/", &first);
        bob.catch_up(&wide).await;
        assert!(matches!(&bob.news()[1], Told::Reset(_, data) if data == "{\"lost\":15}"));
        ann.catch_up(&wide).await;
        assert_eq!(ann.id, bob.id);
    });
}

#[test]
fn an_event_that_the_history_cannot_hold_is_refused() {
    let world = World::new(&Config { max_bytes: 100, ..Config::default() });
    world.kit.run(async {
        let long = "x".repeat(60);
        world.publish(&long).await;
        // With its topic it is too long.
        let error = world.try_ask(Command::To("y".repeat(30), long)).await.unwrap_err();
        assert!(error.to_string().contains("the history holds 100"), "{error}");
        assert!(world.position().await.ends_with("-1"));
    });
    let world = World::new(&Config { max_bytes: 1 << 30, ..Config::default() });
    world.kit.run(async {
        let error = world.try_ask(Command::Many(1, 2_000_000)).await.unwrap_err();
        assert!(error.to_string().contains("the limit is"), "{error}");
        assert_eq!(world.ask(Command::Count).await, json!(0));
        assert!(world.position().await.ends_with("-0"));
    });
}
