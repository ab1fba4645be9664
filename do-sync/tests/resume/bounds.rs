//! The history is bounded by count, bytes and age, exactly.

use crate::{
    client::Peer,
    object::{Command, Config, World},
};
use do_core::Timestamp;
use serde_json::{Value, json};
use std::time::Duration;

/// The numbers that are stored.
async fn stored(world: &World) -> Vec<u64> {
    let rows = world.ask(Command::Rows).await;
    rows.as_array().unwrap().iter().map(|row| row[0].as_u64().unwrap()).collect()
}

/// The numbers that are shown to one who asks for all.
async fn shown(world: &World) -> (Option<u64>, Vec<u64>) {
    let epoch = world.position().await.split_once('-').unwrap().0.to_owned();
    let excerpt = world.ask(Command::Messages(Some(format!("{epoch}-0")), 1 << 32)).await;
    let numbers = excerpt["entries"].as_array().unwrap().iter();
    let numbers =
        numbers.map(|entry| entry["position"].as_str().unwrap().split_once('-').unwrap().1.parse().unwrap());
    (excerpt["gap"]["lost"].as_u64(), numbers.collect())
}

fn range(from: u64, to: u64) -> Vec<u64> {
    (from..=to).collect()
}

#[test]
fn by_count_an_eighth_more_is_kept_and_none_is_shown() {
    let world = World::new(&Config { max_messages: 16, ..Config::default() });
    world.run(async {
        for n in 1..=100 {
            world.ask(Command::Publish(json!(n))).await;
            let oldest = if n <= 16 { 1 } else { n - 15 };
            assert_eq!(shown(&world).await, ((n > 16).then(|| n - 16), range(oldest, n)), "{n}");
            let stored = stored(&world).await;
            assert!(stored.len() <= 18, "{n}: {stored:?}");
            assert!(stored[0] <= oldest && stored.last() == Some(&n));
        }
        // Deleted every other time: an eighth of 16 is two.
        assert_eq!(stored(&world).await, range(85, 100));
    });
}

#[test]
fn by_bytes_the_frames_are_counted_as_they_are_sent() {
    let world = World::new(&Config { max_bytes: 1_000, ..Config::default() });
    world.run(async {
        for n in 1..=60_u64 {
            world.ask(Command::Publish(json!("x".repeat(usize::try_from(n % 7).unwrap() * 20)))).await;
            let rows = world.ask(Command::Rows).await;
            let rows: Vec<(u64, u64)> = serde_json::from_value(rows).unwrap();
            let mut left = 1_000_u64;
            let fits = rows.iter().rev().take_while(|(seq, bytes)| {
                *seq > 0 && left.checked_sub(*bytes).inspect(|rest| left = *rest).is_some()
            });
            let oldest = fits.last().unwrap().0;
            assert_eq!(shown(&world).await.1, range(oldest, n), "{n}");
            let all: u64 = rows.iter().map(|(_, bytes)| bytes).sum();
            assert!(all <= 1_000 + 1_000 / 8 + 200, "{n}: {all}");
        }
    });
}

#[test]
fn a_message_beyond_all_bounds_is_sent_and_not_shown_and_the_sequence_goes_on() {
    for config in
        [Config { max_messages: 0, ..Config::default() }, Config { max_bytes: 10, ..Config::default() }]
    {
        let world = World::new(&config);
        world.run(async {
            let mut ann = Peer::enter(&world, "ann").await;
            for n in 0..5 {
                world.ask(Command::Publish(json!(n))).await;
            }
            ann.catch_up(&world).await;
            assert_eq!(ann.values(), [0, 1, 2, 3, 4].map(Value::from));
            assert_eq!(shown(&world).await, (Some(6), vec![]));
            assert_eq!(stored(&world).await, [6]);
            ann.socket = None;
            world.kit.settle().await;
            world.kit.crash();
            ann.connect(&world).await.unwrap();
            ann.catch_up(&world).await;
            assert_eq!(ann.last_hello()["gap"]["lost"], 2, "`left` and `joined`");
            assert_eq!(ann.seq, 8);
        });
    }
}

#[test]
fn by_age_none_is_shown_when_its_time_is_over() {
    let config = Config { max_age_ms: Some(8_000), ..Config::default() };
    let world = World::new(&config);
    world.run(async {
        for n in 1..=40 {
            world.ask(Command::Publish(json!(n))).await;
            // At the times 0, 500, 1,000, ..: those of the last 8 s are shown, both ends with them.
            let oldest = if n <= 17 { 1 } else { n - 16 };
            assert_eq!(shown(&world).await.1, range(oldest, n), "{n}");
            // A step of the log is a second: two messages.
            assert!(stored(&world).await.len() <= 17 + 2 + 1, "{n}");
            world.kit.advance(Duration::from_millis(500)).await;
        }
        world.kit.advance(Duration::from_secs(60)).await;
        assert_eq!(shown(&world).await, (Some(40), vec![]));
        world.ask(Command::Publish(json!("again"))).await;
        assert_eq!(shown(&world).await, (Some(40), vec![41]));
        assert_eq!(stored(&world).await, [41]);
    });
}

#[test]
fn the_time_of_messages_never_goes_back() {
    let world = World::new(&Config { max_age_ms: Some(60_000), ..Config::default() });
    world.run(async {
        world.ask(Command::Publish(json!(1))).await;
        let now = world.kit.now();
        world.kit.crash();
        world.kit.step_wall(now - Duration::from_secs(3_600));
        world.ask(Command::Publish(json!(2))).await;
        let excerpt = world.ask(Command::Messages(None, 10)).await;
        let times: Vec<Timestamp> = excerpt["entries"]
            .as_array()
            .unwrap()
            .iter()
            .map(|e| serde_json::from_value(e["at"].clone()).unwrap())
            .collect();
        assert_eq!(times, [now, now]);
        assert_eq!(shown(&world).await.1, [1, 2]);
    });
}

#[test]
fn the_alarm_deletes_many_at_once_and_the_last_ones_content_too() {
    let config = Config { max_age_ms: Some(80_000), alarm: true, ..Config::default() };
    let world = World::new(&config);
    world.run(async {
        let begin = world.kit.now();
        let alarm = async || world.ask(Command::Alarm).await.as_i64();
        let at = |ms: u64| Some((begin + Duration::from_millis(ms)).as_millis());
        assert_eq!(alarm().await, None);
        for n in 0..20 {
            world.ask(Command::Publish(json!(n))).await;
            world.kit.settle().await;
            assert_eq!(alarm().await, at(90_000), "{n}: for the oldest, and an eighth more");
            world.kit.advance(Duration::from_millis(1_000)).await;
        }
        world.kit.advance(Duration::from_secs(69)).await;
        assert_eq!(stored(&world).await, range(1, 20), "not yet: at 89 s");
        assert_eq!(shown(&world).await.1, range(10, 20), "but not shown: those of 9 s and later are");
        world.kit.advance(Duration::from_secs(1)).await;
        // At 90 s: those before 10 s go, which are ten.
        assert_eq!(stored(&world).await, range(11, 20));
        assert_eq!(alarm().await, at(100_000));
        world.kit.advance(Duration::from_secs(10)).await;
        assert_eq!(stored(&world).await, [20], "the newest stays");
        assert_eq!(world.ask(Command::Rows).await, json!([[20, 0]]), "without its content");
        assert_eq!(alarm().await, None, "nothing is left to be deleted");
        world.ask(Command::Publish(json!("again"))).await;
        world.kit.settle().await;
        assert_eq!(alarm().await, at(190_000));
        assert_eq!(shown(&world).await, (Some(20), vec![21]));
    });
}

#[test]
fn an_alarm_that_was_not_set_is_made_up_for_by_the_next_instance() {
    let config = Config { max_age_ms: Some(80_000), ..Config::default() };
    let world = World::new(&config);
    world.run(async {
        world.ask(Command::Publish(json!(1))).await; // without an alarm
        let with = Config { alarm: true, ..config };
        let world = world.deployed(&with);
        let begin = world.kit.now();
        world.kit.advance(Duration::from_secs(10)).await;
        world.ask(Command::Position).await; // any use of the room
        world.kit.settle().await;
        let due = begin + Duration::from_secs(90);
        assert_eq!(world.ask(Command::Alarm).await, json!(due));
    });
}

#[test]
fn smaller_bounds_take_effect_at_once() {
    let world = World::new(&Config::default());
    world.run(async {
        world.ask(Command::Many(100, 10)).await;
        let world = world.deployed(&Config { max_messages: 10, ..Config::default() });
        assert_eq!(shown(&world).await, (Some(90), range(91, 100)));
        world.ask(Command::Publish(json!("one more"))).await;
        assert_eq!(stored(&world).await, range(92, 101));
    });
}

#[test]
fn an_excerpt_is_typed_and_says_what_is_missing() {
    let world = World::new(&Config { max_messages: 4, ..Config::default() });
    world.run(async {
        let mut ann = Peer::enter(&world, "ann").await;
        world.ask(Command::Publish(json!({"x": 1}))).await;
        world.ask(Command::Binary(vec![1, 2])).await;
        let all = world.ask(Command::Messages(None, 10)).await;
        let at = world.kit.now();
        let epoch = &ann.epoch;
        let entry = |seq: u64, key: &str, what: Value| json!({"position": format!("{epoch}-{seq}"), "at": at, key: what});
        let entries = json!([
            entry(1, "joined", json!({"member": "ann"})),
            entry(2, "msg", json!({"d": {"x": 1}})),
            entry(3, "binary", json!({"d": [1, 2]})),
        ]);
        assert_eq!(all, json!({"entries": entries, "newest": format!("{epoch}-3")}));
        let some = world.ask(Command::Messages(Some(format!("{epoch}-1")), 1)).await;
        assert_eq!(some["entries"], json!([entries[1]]));
        world.ask(Command::Many(10, 1)).await;
        let gone = world.ask(Command::Messages(Some(format!("{epoch}-2")), 1)).await;
        assert_eq!((&gone["gap"]["lost"], &gone["entries"][0]["position"]), (&json!(7), &json!(format!("{epoch}-10"))));
        let other = world.ask(Command::Messages(Some("1-2".to_owned()), 1)).await;
        assert_eq!((&other["gap"], other["entries"].as_array().unwrap().len()), (&json!({"lost": null}), 1));
        ann.catch_up(&world).await;
    });
}
