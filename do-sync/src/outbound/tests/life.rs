use super::*;
use crate::{OnFull, OutboundStats};
use std::time::Duration;

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

async fn memory(rig: &Rig) -> OutboundStats {
    rig.stats().await
}

#[test]
fn a_peer_that_stands_still_is_closed_after_the_deadline_and_costs_nothing_then() {
    let rig = Rig::new(Outbound::new().window(0));
    rig.kit.run(async {
        let slow = rig.stalled("/").await;
        rig.count(0..3).await;
        rig.kit.advance(secs(29)).await;
        assert_eq!(
            memory(&rig).await,
            OutboundStats { behind: 1, messages: 2, bytes: 2, ..Default::default() }
        );
        assert!(rig.kit.hibernate(&rig.stub).await.is_err());
        rig.kit.advance(Duration::from_millis(1_300)).await;
        assert_eq!(memory(&rig).await, OutboundStats { disconnected: 1, ..Default::default() });
        // The peer never reads the Close: the host waits for its answer, and then no more (rule D24).
        rig.kit.advance(secs(11)).await;
        rig.kit.hibernate(&rig.stub).await.unwrap();
        slow.stall(false);
        rig.kit.settle().await;
        assert_eq!(got(&slow), [""; 0]);
    });
}

#[test]
fn a_half_open_peer_ends_as_one_that_stands_still() {
    let rig = Rig::new(Outbound::new().window(0).stall(secs(5)));
    rig.kit.run(async {
        let gone = rig.join("/").await;
        gone.vanish();
        rig.count(0..3).await;
        rig.kit.advance(secs(17)).await;
        assert_eq!(memory(&rig).await.disconnected, 1);
        rig.kit.hibernate(&rig.stub).await.unwrap();
    });
}

#[test]
fn whoever_reads_a_little_is_not_closed() {
    let rig = Rig::new(Outbound::new().window(0).stall(secs(5)));
    rig.kit.run(async {
        let slow = rig.stalled("/").await;
        rig.count(0..20).await;
        let mut all = Vec::new();
        for _ in 0..20 {
            rig.kit.advance(secs(4)).await;
            slow.stall(false);
            rig.kit.settle().await; // what the host has, and not more: the pump rests
            slow.stall(true);
            all.extend(got(&slow));
        }
        assert_eq!(all, texts(0..20));
        assert_eq!(memory(&rig).await, OutboundStats::default());
    });
}

#[test]
fn r4_one_of_many_stands_still_and_the_others_notice_nothing() {
    let rig = Rig::new(Outbound::new().window(0).max_messages(10).on_full(OnFull::DropNewest));
    rig.kit.run(async {
        let slow = rig.stalled("/").await;
        let mut others = Vec::new();
        for _ in 0..20 {
            others.push(rig.join("/").await);
        }
        let before = rig.kit.now();
        rig.count(0..50).await;
        assert_eq!(rig.kit.now(), before);
        for other in &others {
            assert_eq!(got(other), texts(0..50));
        }
        let waits =
            OutboundStats { behind: 1, messages: 10, bytes: 10 + 1, dropped: 39, ..Default::default() };
        assert_eq!(memory(&rig).await, waits);
        assert_eq!(rig.read(&slow).await, texts(0..11));
    });
}

#[test]
fn c10_the_order_holds_across_direct_and_waiting_messages_and_all_who_send() {
    for seed in 0..20 {
        let rig = Rig::with(Outbound::new().window(8), |builder| builder.seed(seed));
        rig.kit.run(async {
            let client = rig.join("/one").await;
            for number in 0..60 {
                client.stall(number % 7 < 4);
                rig.act(move |room| match number % 3 {
                    0 => drop(room.send_all(number.to_string())),
                    1 => drop(room.send_to(&named(room, "one"), number.to_string())),
                    _ => drop(deliver(room, "one", &number.to_string(), Kind::Sequenced)),
                })
                .await;
                if number % 5 == 0 {
                    rig.kit.advance(Duration::from_millis(3)).await;
                }
            }
            assert_eq!(rig.read(&client).await, texts(0..60), "seed {seed}");
        });
    }
}

#[test]
fn a_peer_that_goes_takes_with_it_what_waited() {
    let rig = Rig::new(Outbound::new().window(0));
    rig.kit.run(async {
        let (slow, other) = (rig.stalled("/").await, rig.join("/").await);
        rig.count(0..5).await;
        assert_eq!(memory(&rig).await.behind, 1);
        slow.lose();
        rig.kit.advance(secs(1)).await;
        assert_eq!(memory(&rig).await, OutboundStats::default());
        rig.kit.hibernate(&rig.stub).await.unwrap();
        assert_eq!(got(&other), texts(0..5));
    });
}

#[test]
fn a_socket_that_the_object_closes_gets_nothing_of_what_waits() {
    let rig = Rig::new(Outbound::new().window(0));
    rig.kit.run(async {
        let slow = rig.stalled("/slow").await;
        rig.count(0..5).await;
        let report = rig
            .act(|room| {
                let socket = named(room, "slow");
                socket.close(do_core::CloseCode::NORMAL).unwrap();
                room.send_to(&socket, "late")
            })
            .await;
        assert_eq!(report, BroadcastReport { dropped: 1, ..super::report(1) });
        assert_eq!(memory(&rig).await, OutboundStats::default());
        assert_eq!(rig.read(&slow).await, ["0", "1000"]);
    });
}

#[test]
fn the_pump_ends_when_nothing_waits_and_begins_again() {
    let rig = Rig::new(Outbound::new().window(0));
    rig.kit.run(async {
        let client = rig.join("/").await;
        for _ in 0..3 {
            client.stall(true);
            rig.count(0..5).await;
            assert!(rig.kit.hibernate(&rig.stub).await.is_err());
            assert_eq!(rig.read(&client).await, texts(0..5));
            rig.kit.hibernate(&rig.stub).await.unwrap();
        }
    });
}
