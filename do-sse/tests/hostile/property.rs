//! Whatever fails, a client sees what was committed, once and in order, or is told of a gap; and in the end all is as it was.

use crate::object::{Config, Op, Reader, World, builder};
use do_core::kit::{Failing, for_seeds};
use std::{collections::BTreeMap, time::Duration};

/// More of them were run once.
const SEEDS: u64 = 60;

fn parts(id: &str) -> (String, u64) {
    let (epoch, seq) = id.split_once('-').unwrap();
    (epoch.to_owned(), seq.parse().unwrap())
}

/// Without a hole that it was not told of, and nothing but what was committed.
pub(crate) fn check(reader: &Reader, committed: &BTreeMap<String, String>) {
    let mut at: Option<(String, u64)> = None;
    let told = &reader.told;
    for (n, (name, id, data)) in told.iter().enumerate() {
        match name.as_str() {
            "ready" if id.is_empty() => {}
            "ready" => {
                let is_reset = told.get(n + 1).is_some_and(|next| next.0 == "reset");
                assert!(is_reset || at.as_ref().is_none_or(|at| *at == parts(id)), "{id} behind {at:?}");
                at = Some(parts(id));
            }
            "reset" => at = Some(parts(id)),
            "message" => {
                let (epoch, seq) = at.clone().unwrap();
                at = Some((epoch.clone(), seq + 1));
                assert_eq!(
                    (id, data.starts_with("undone")),
                    (&format!("{epoch}-{}", seq + 1), false),
                    "{told:?}"
                );
                assert_eq!(committed.get(data), Some(id), "{data} was not committed: {told:?}");
            }
            "plain" | "replaced" => {}
            other => panic!("{other}"),
        }
    }
}

async fn disturb(world: &World, rng: &mut fastrand::Rng, readers: &mut [Reader], count: &mut u64) {
    let who = rng.usize(..readers.len());
    let reader = &mut readers[who];
    *count += 1;
    let publish = || Op::Publish(format!("{count} {}", "x".repeat(30)));
    let fail = |what| world.kit.fail_next(&world.log, what);
    match rng.u32(..32) {
        0..=7 => drop(world.ask(&[publish()]).await),
        8 => drop(world.ask(&[publish(), Op::CloseAll]).await),
        9 => drop(world.ask(&[Op::Broadcast("b".into()), publish(), Op::Broadcast("c".into())]).await),
        10 => drop(world.ask(&[Op::Beat]).await),
        11 => fail(Failing::Commit),
        12 => fail(Failing::CrashBeforeCommit),
        13 => fail(Failing::CrashAfterCommit),
        14 => fail(Failing::SetAlarm),
        15 => fail(Failing::Sql),
        16 => world.kit.evict(&world.log),
        17 => world.kit.crash(),
        18 => world.kit.lose_power(),
        19 => world.kit.late_alarms(Duration::from_secs(rng.u64(..40))),
        20 => world.kit.repeat_alarms(2),
        21 | 22 => reader.leave(),
        23 | 24 => world.kit.advance(Duration::from_millis(rng.u64(..30_000))).await,
        25 => world.kit.settle().await,
        _ => {
            reader.drain();
            if !reader.is_there() {
                let _ = reader.connect(world).await;
            }
        }
    }
}

#[test]
fn only_what_is_committed_is_seen_once_and_in_order_and_heartbeats_outlive_all_faults() {
    for_seeds(0..SEEDS, |seed| {
        let mut rng = fastrand::Rng::with_seed(seed);
        let config = Config {
            is_stored: seed % 2 == 0,
            is_slot: seed % 4 < 2,
            max_events: [0, 1, 3, 1_000][rng.usize(..4)],
            queue: [1, 3, 1_000][rng.usize(..3)],
            max_age_ms: [None, Some(0), Some(10_000)][rng.usize(..3)],
        };
        let world = World::of(builder(&config).seed(seed).start().unwrap());
        world.kit.clone().run(async {
            let mut readers: Vec<Reader> =
                ["/", "/?id=a", "/?id=a", "/?id=b&write=1"].map(Reader::new).into();
            readers.remove(2); // two of one id would replace each other for ever
            let mut count = 0;
            for _ in 0..150 {
                disturb(&world, &mut rng, &mut readers, &mut count).await;
            }
            world.kit.heal();
            for n in 0..2 {
                for reader in &mut readers {
                    reader.catch_up(&world).await;
                }
                world.ask(&[Op::Publish(format!("end {n}"))]).await.unwrap();
            }
            let position = world.ask(&[Op::Position]).await.unwrap();
            let audit: Vec<(String, String)> =
                serde_json::from_value(world.ask(&[Op::Audit]).await.unwrap()).unwrap();
            let committed = audit.into_iter().map(|(position, text)| (text, position)).collect();
            for reader in &mut readers {
                reader.catch_up(&world).await;
                assert_eq!(reader.id, position, "{config:?}");
                check(reader, &committed);
                reader.beats = 0;
            }
            for _ in 0..12 {
                world.kit.advance(Duration::from_secs(5)).await;
                readers.iter_mut().for_each(Reader::drain);
            }
            for reader in &mut readers {
                assert!(reader.is_there() && reader.beats >= 2, "{} beats, {config:?}", reader.beats);
            }
            assert_eq!(world.ask(&[Op::Count]).await.unwrap(), 3);
            let (opened, summed): (u64, u64) =
                serde_json::from_value(world.ask(&[Op::Sums]).await.unwrap()).unwrap();
            assert_eq!(opened, summed);
            readers.clear();
            world.kit.settle().await;
            assert_eq!(world.ask(&[Op::Count]).await.unwrap(), 0);
        });
    });
}
