//! Whatever happens, a client that follows the protocol sees each message once and in order, or is told of a gap.

use crate::{
    client::{Peer, Told},
    object::{Command, Config, World, builder},
};
use do_core::kit::for_seeds;
use serde_json::{Value, json};
use std::{collections::BTreeMap, time::Duration};

/// Not the kit's own randomness: what the test does is the same with each order that the kit picks.
fn config(rng: &mut fastrand::Rng) -> Config {
    let outbound_bytes = [2_000, 6_000, 256 * 1_024][rng.usize(..3)];
    Config {
        max_messages: [3, 20, 1_000][rng.usize(..3)],
        max_bytes: [500, 4_000, 1 << 20][rng.usize(..3)],
        max_age_ms: [None, Some(2_000), Some(60_000)][rng.usize(..3)],
        replay: rng.u64(..10),
        outbound_bytes,
        outbound_messages: [8, 1_000][rng.usize(..2)],
        grace_ms: [0, 1_000][rng.usize(..2)],
        alarm: true,
        ..Config::default()
    }
}

/// What each peer was told is in order, without a hole that it was not told of, and is what was published.
fn check(peer: &Peer, published: &BTreeMap<String, Value>) {
    let (mut epoch, mut seq) = (String::new(), 0);
    for told in &peer.told {
        match told {
            Told::Hello(hello) => {
                let at = hello["at"].as_str().unwrap();
                if epoch.is_empty() || !hello["gap"].is_null() {
                    let (e, s) = at.split_once('-').unwrap();
                    (epoch, seq) = (e.to_owned(), s.parse().unwrap());
                } else {
                    assert_eq!(at, format!("{epoch}-{seq}"), "{}", peer.name);
                }
            }
            Told::Message(n, message) => {
                seq += 1;
                assert_eq!(*n, seq, "{}", peer.name);
                if message["t"] == "msg" {
                    let position = format!("{epoch}-{seq}");
                    assert_eq!(published.get(&position), Some(&message["d"]), "{}: {position}", peer.name);
                }
            }
            Told::Closed(_) => {}
            other => panic!("{}: {other:?}", peer.name),
        }
    }
}

async fn disturb(world: &World, rng: &mut fastrand::Rng, peers: &mut [Peer], count: &mut u64) {
    let who = rng.usize(..peers.len());
    let peer = &mut peers[who];
    match rng.u32(..20) {
        0..=5 => {
            *count += 1;
            let _ = world.try_ask(&Command::Publish(json!([*count, "x".repeat(rng.usize(..300))]))).await;
        }
        6..=9 => {
            *count += 1;
            if let Some(socket) = &peer.socket {
                let _ = socket.send(json!([*count, peer.name]).to_string());
            }
        }
        10 => world.kit.evict(&world.room),
        11 => {
            let _ = world.kit.hibernate(&world.room).await;
        }
        12 => world.kit.crash(),
        13 => world.kit.lose_power(),
        14 => peer.socket = None,
        15 => {
            if let Some(socket) = &peer.socket {
                socket.stall(rng.bool());
            }
        }
        16 => world.kit.advance(Duration::from_millis(rng.u64(..3_000))).await,
        17 => {
            if let Some(socket) = &peer.socket {
                let _ = socket.close(Some((1_000, "")));
            }
        }
        _ => {
            if !peer.drain() {
                let _ = peer.connect(world).await;
            }
        }
    }
}

#[test]
fn every_message_is_seen_once_and_in_order_or_a_gap_is_told() {
    for_seeds(0..60, |seed| {
        let mut rng = fastrand::Rng::with_seed(seed);
        let config = config(&mut rng);
        let world = World::of(builder(&config).seed(seed));
        world.run(async {
            let mut peers: Vec<Peer> = ["ann", "bob", "cyd", "dan"].map(Peer::new).into();
            let mut count = 0;
            for _ in 0..120 {
                disturb(&world, &mut rng, &mut peers, &mut count).await;
            }
            world.kit.heal();
            for peer in &mut peers {
                if let Some(socket) = &peer.socket {
                    socket.stall(false);
                }
                peer.catch_up(&world).await;
            }
            world.ask(Command::Publish(json!("end"))).await;
            for peer in &mut peers {
                peer.catch_up(&world).await;
            }
            let position = world.position().await;
            let audit: Vec<(String, String)> =
                serde_json::from_value(world.ask(Command::Audit).await).unwrap();
            let published = audit.into_iter().map(|(p, v)| (p, serde_json::from_str(&v).unwrap())).collect();
            for peer in &peers {
                assert_eq!(peer.position(), position, "{}", peer.name);
                check(peer, &published);
            }
        });
    });
}

#[test]
fn a_crash_at_any_moment_loses_nothing_that_was_acknowledged() {
    use do_core::kit::Strike;
    let run = |strike: Option<u64>| {
        let world = World::new(&Config::default());
        if let Some(step) = strike {
            world.kit.at_step(step, &Strike::LosePower);
        }
        let mut steps = 0;
        world.run(async {
            let mut ann = Peer::new("ann");
            let mut acknowledged = Vec::new();
            for n in 0..3 {
                let _ = ann.connect(&world).await;
                world.kit.settle().await;
                ann.drain();
                if world.try_ask(&Command::Publish(json!(n))).await.is_ok() {
                    acknowledged.push(json!(n));
                }
                world.kit.settle().await;
                ann.drain();
            }
            steps = world.kit.steps();
            world.kit.heal();
            ann.catch_up(&world).await;
            let all = world.ask(Command::Messages(None, 100)).await;
            let kept: Vec<&Value> = all["entries"]
                .as_array()
                .unwrap()
                .iter()
                .filter_map(|e| e.get("msg"))
                .map(|m| &m["d"])
                .collect();
            assert!(acknowledged.iter().all(|value| kept.contains(&value)), "{acknowledged:?} {kept:?}");
            let seen = ann.values();
            assert!(kept.ends_with(&seen.iter().collect::<Vec<_>>()), "{seen:?} {kept:?}");
            assert_eq!(ann.position(), world.position().await);
        });
        steps
    };
    for step in 0..run(None) {
        run(Some(step));
    }
}
