use super::*;
use crate::{OnFull, OutboundStats, outbound::Delivered};

/// The host has one message; three more wait.
fn three(on_full: OnFull) -> Outbound {
    Outbound::new().window(0).max_messages(3).on_full(on_full)
}

#[test]
fn one_who_keeps_up_is_never_behind() {
    let rig = Rig::new(three(OnFull::Close));
    rig.kit.run(async {
        let client = rig.join("/").await;
        for sent in rig.count(0..100).await {
            assert_eq!(sent, BroadcastReport { queued: 1, ..report(1) });
        }
        rig.kit.settle().await;
        assert_eq!(got(&client), texts(0..100));
        assert_eq!(rig.stats().await, OutboundStats::default());
        rig.kit.hibernate(&rig.stub).await.unwrap();
    });
}

#[test]
fn drop_newest_leaves_out_what_comes_when_it_is_full() {
    let rig = Rig::new(three(OnFull::DropNewest));
    rig.kit.run(async {
        let (slow, fast) = (rig.stalled("/slow").await, rig.join("/fast").await);
        let reports = rig.count(0..10).await;
        assert!(reports[..4].iter().all(|r| *r == BroadcastReport { queued: 2, ..report(2) }), "{reports:?}");
        let full = BroadcastReport { queued: 1, dropped: 1, ..report(2) };
        assert!(reports[4..].iter().all(|r| *r == full), "{reports:?}");
        let waits = OutboundStats { behind: 1, messages: 3, bytes: 3, dropped: 6, ..Default::default() };
        assert_eq!(rig.stats().await, waits);
        assert_eq!(rig.read(&slow).await, texts(0..4));
        assert_eq!(got(&fast), texts(0..10));
        assert_eq!(rig.stats().await, OutboundStats { dropped: 6, ..Default::default() });
    });
}

#[test]
fn drop_oldest_leaves_out_what_waits_for_longest() {
    let rig = Rig::new(three(OnFull::DropOldest));
    rig.kit.run(async {
        let slow = rig.stalled("/").await;
        let reports = rig.count(0..10).await;
        assert!(reports.iter().all(|r| *r == BroadcastReport { queued: 1, ..report(1) }), "{reports:?}");
        let waits = OutboundStats { behind: 1, messages: 3, bytes: 3, dropped: 6, ..Default::default() };
        assert_eq!(rig.stats().await, waits);
        assert_eq!(rig.read(&slow).await, texts([0, 7, 8, 9]));
    });
}

#[test]
fn close_ends_the_socket_with_1013_and_lets_go_of_what_waits() {
    let rig = Rig::new(three(OnFull::Close));
    rig.kit.run(async {
        let slow = rig.stalled("/").await;
        let reports = rig.count(0..6).await;
        assert!(reports[..4].iter().all(|r| *r == BroadcastReport { queued: 1, ..report(1) }), "{reports:?}");
        assert_eq!(reports[4..], [BroadcastReport { disconnected: 1, ..report(1) }, report(0)]);
        assert_eq!(rig.stats().await, OutboundStats { disconnected: 1, ..Default::default() });
        // What the host had, and the reason; nothing after the decision.
        assert_eq!(rig.read(&slow).await, ["0", "1013"]);
    });
}

#[test]
fn latest_per_key_keeps_one_of_each_in_the_order_of_the_latest() {
    let rig = Rig::new(three(OnFull::LatestPerKey));
    rig.kit.run(async {
        let slow = rig.stalled("/").await;
        let reports = rig
            .act(|room| {
                let keyed = |text: &str, key: &str| room.broadcast(text).key(key).send();
                vec![
                    room.send_all("0"), // to the host
                    keyed("a1", "a"),
                    keyed("b1", "b"),
                    keyed("a2", "a"),
                    room.send_all("plain"),
                    keyed("b2", "b"),
                    keyed("a3", "a"),
                ]
            })
            .await;
        let queued = BroadcastReport { queued: 1, ..report(1) };
        let coalesced = BroadcastReport { coalesced: 1, ..report(1) };
        assert_eq!(reports, [queued, queued, queued, coalesced, queued, coalesced, coalesced]);
        let waits = OutboundStats { behind: 1, messages: 3, bytes: 9, coalesced: 3, ..Default::default() };
        assert_eq!(rig.stats().await, waits);
        assert_eq!(rig.read(&slow).await, ["0", "plain", "b2", "a3"]);
    });
}

#[test]
fn latest_per_key_closes_when_there_are_too_many_keys() {
    let rig = Rig::new(three(OnFull::LatestPerKey));
    rig.kit.run(async {
        let slow = rig.stalled("/").await;
        let report = rig
            .act(|room| {
                room.send_all("0");
                let sent = ["a", "b", "c", "d"].map(|key| room.broadcast(key).key(key).send());
                sent[3]
            })
            .await;
        assert_eq!(report.disconnected, 1);
        assert_eq!(rig.read(&slow).await, ["0", "1013"]);
    });
}

#[test]
fn keys_mean_nothing_to_other_policies() {
    let rig = Rig::new(three(OnFull::DropNewest));
    rig.kit.run(async {
        let slow = rig.stalled("/").await;
        let sent = rig.act(|room| ["0", "1", "2"].map(|text| room.broadcast(text).key("a").send())).await;
        assert!(sent.iter().all(|sent| sent.queued == 1), "{sent:?}");
        assert_eq!(rig.read(&slow).await, ["0", "1", "2"]);
    });
}

#[test]
fn what_is_numbered_is_never_left_out_alone() {
    for on_full in [OnFull::DropNewest, OnFull::DropOldest, OnFull::LatestPerKey, OnFull::Close] {
        let rig = Rig::new(three(on_full));
        rig.kit.run(async {
            let slow = rig.stalled("/slow").await;
            let became = rig
                .act(|room| {
                    let texts = ["0", "1", "2", "3", "4", "5"];
                    texts.map(|text| deliver(room, "slow", text, Kind::Sequenced))
                })
                .await;
            let (queued, closed) = (Delivered::Queued, Delivered::Disconnected);
            assert_eq!(became[..5], [queued, queued, queued, queued, closed], "{on_full:?}");
            assert_eq!(rig.stats().await, OutboundStats { disconnected: 1, ..Default::default() });
            assert_eq!(rig.read(&slow).await, ["0", "1013"]);
        });
    }
}

#[test]
fn drop_oldest_leaves_out_others_for_what_is_numbered_and_itself_when_nothing_else_helps() {
    let rig = Rig::new(three(OnFull::DropOldest));
    rig.kit.run(async {
        let slow = rig.stalled("/slow").await;
        let became = rig
            .act(|room| {
                let (sequenced, plain) = (Kind::Sequenced, Kind::Plain);
                let order = [plain, sequenced, plain, plain, sequenced, sequenced, plain];
                let mut became = Vec::new();
                for (number, kind) in order.into_iter().enumerate() {
                    became.push(deliver(room, "slow", &number.to_string(), kind));
                }
                became
            })
            .await;
        let mut expected = [Delivered::Queued; 7];
        expected[6] = Delivered::Dropped;
        assert_eq!(became, expected);
        assert_eq!(rig.stats().await.dropped, 3);
        assert_eq!(rig.read(&slow).await, ["0", "1", "4", "5"]);
    });
}
