//! Whatever happens, a client sees each event once and in order, or is told of a gap.

use crate::{
    object::{Command, Config, World, builder},
    reader::{Reader, Told},
};
use do_core::kit::for_seeds;
use std::{collections::BTreeMap, time::Duration};

/// Not the kit's own randomness: what the test does is the same with each order that the kit picks.
fn config(rng: &mut fastrand::Rng) -> Config {
    Config {
        max_events: [3, 20, 1_000][rng.usize(..3)],
        max_bytes: [600, 4_000, 1 << 20][rng.usize(..3)],
        max_age_ms: [None, Some(2_000), Some(60_000)][rng.usize(..3)],
        replay: rng.u64(..10),
        queue: [3, 1_000][rng.usize(..2)],
    }
}

/// What each was told is in order, without a hole that it was not told of, and is what was published.
fn check(reader: &Reader, published: &BTreeMap<String, String>) {
    let (mut epoch, mut seq, mut is_known) = (String::new(), 0, false);
    let parts = |id: &str| {
        let (epoch, seq) = id.split_once('-').unwrap();
        (epoch.to_owned(), seq.parse::<u64>().unwrap())
    };
    let told = &reader.told;
    for (at, one) in told.iter().enumerate() {
        match one {
            // Where it continues, unless a gap is told of.
            Told::Ready(Some(id)) if !matches!(told.get(at + 1), Some(Told::Reset(..))) => {
                assert!(!is_known, "{id} behind {epoch}-{seq}");
                ((epoch, seq), is_known) = (parts(id), true);
            }
            Told::Reset(id, _) => ((epoch, seq), is_known) = (parts(id), true),
            Told::Event(id, text) => {
                seq += 1;
                assert_eq!(*id, format!("{epoch}-{seq}"), "{told:?}");
                assert!(published.get(id).is_none_or(|published| published == text), "{id}: {text}");
            }
            Told::Ready(_) | Told::Ended => {}
        }
    }
}

async fn disturb(world: &mut World, rng: &mut fastrand::Rng, readers: &mut [Reader], count: &mut u64) {
    let who = rng.usize(..readers.len());
    let reader = &mut readers[who];
    match rng.u32(..24) {
        0..=8 => {
            *count += 1;
            let text = format!("{count} {}", "x".repeat(rng.usize(..300)));
            let _ = world.try_ask(Command::Publish(text)).await;
        }
        9 => {
            let _ = world.try_ask(Command::Undone("undone".into())).await;
            world.kit.settle().await; // see `Feed::stored`
        }
        10 => {
            *count += 1;
            let _ = world.try_ask(Command::UndoneThen("undone".into(), count.to_string())).await;
            world.kit.settle().await;
        }
        11 => {
            let _ = world.try_ask(Command::DeleteAll).await;
        }
        12 => world.kit.evict(&world.log),
        13 => world.kit.crash(),
        14 => world.kit.lose_power(),
        15 => reader.leave(),
        16 => world.kit.advance(Duration::from_millis(rng.u64(..3_000))).await,
        17 => *world = world.deployed(&config(rng)),
        _ => {
            reader.drain();
            if !reader.is_there() {
                let _ = reader.connect(world).await;
            }
        }
    }
}

#[test]
fn every_event_is_seen_once_and_in_order_or_a_gap_is_told() {
    for_seeds(0..40, |seed| {
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut world = World::of(builder(&config(&mut rng)).seed(seed).start().unwrap());
        world.kit.clone().run(async {
            let mut readers: Vec<Reader> = (0..4).map(|_| Reader::new("/")).collect();
            let mut count = 0;
            for _ in 0..120 {
                disturb(&mut world, &mut rng, &mut readers, &mut count).await;
            }
            world.kit.heal();
            for text in ["middle", "end"] {
                for reader in &mut readers {
                    reader.catch_up(&world).await;
                }
                world.publish(text).await;
            }
            let position = world.position().await;
            let audit = serde_json::from_value::<Vec<(String, String)>>(world.ask(Command::Audit).await);
            let published = audit.unwrap().into_iter().collect();
            for reader in &mut readers {
                reader.catch_up(&world).await;
                assert_eq!(reader.id, position);
                check(reader, &published);
            }
        });
    });
}
