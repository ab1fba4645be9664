use super::*;
use crate::{OnFull, OutboundStats};
use std::time::Duration;

fn credit(bytes: u64) -> Outbound {
    Outbound::new().credit(bytes).max_messages(100).on_full(OnFull::DropNewest)
}

#[test]
fn a_member_gets_its_credit_and_the_rest_as_it_acknowledges() {
    let rig = Rig::new(credit(8));
    rig.kit.run(async {
        let client = rig.join("/one?member").await;
        assert_eq!(rig.act(|room| room.credit(&named(room, "one"))).await, Some(8));
        rig.count(0..10).await;
        rig.kit.settle().await;
        assert_eq!(got(&client), texts(0..8)); // it reads, but does not say so
        assert!(rig.act(|room| room.acknowledged(&named(room, "one"), 1)).await);
        rig.kit.settle().await;
        assert_eq!(got(&client), ["8"]);
        rig.act(|room| room.acknowledged(&named(room, "one"), 1_000)).await;
        rig.kit.settle().await;
        assert_eq!(got(&client), ["9"]);
        assert_eq!(rig.stats().await, OutboundStats::default());
    });
}

#[test]
fn less_than_a_quarter_unacknowledged_holds_up_nothing() {
    let rig = Rig::new(credit(40));
    rig.kit.run(async {
        let client = rig.join("/one?member").await;
        let long = "x".repeat(200);
        let sent = long.clone();
        rig.act(move |room| (room.send_all("123456789"), room.send_all(sent))).await;
        rig.kit.settle().await;
        assert_eq!(got(&client), ["123456789".to_owned(), long]);
        // From there on it waits.
        rig.count(0..1).await;
        assert_eq!((got(&client), rig.stats().await.messages), (vec![], 1));
    });
}

#[test]
fn credit_survives_the_instance_as_what_is_unknown() {
    let rig = Rig::new(credit(4));
    rig.kit.run(async {
        let client = rig.join("/one?member").await;
        rig.count(0..4).await;
        rig.kit.hibernate(&rig.stub).await.unwrap();
        assert!(rig.act(|room| room.acknowledged(&named(room, "one"), 1)).await);
        rig.count(4..9).await; // found again by the attachment; what it had before is forgiven
        rig.kit.settle().await;
        assert_eq!((got(&client), rig.stats().await.messages), (texts(0..8), 1));
    });
}

#[test]
fn whoever_never_acknowledges_is_closed_after_the_deadline() {
    let rig = Rig::new(credit(4).stall(Duration::from_secs(5)));
    rig.kit.run(async {
        let client = rig.join("/?member").await;
        rig.count(0..6).await;
        rig.kit.advance(Duration::from_secs(4)).await;
        assert_eq!(got(&client), texts(0..4));
        rig.kit.advance(Duration::from_secs(2)).await;
        assert_eq!(got(&client), ["1013"]);
        assert_eq!(rig.stats().await, OutboundStats { disconnected: 1, ..Default::default() });
    });
}

#[test]
fn raw_sockets_and_foreign_attachments_go_by_what_the_host_tells() {
    let rig = Rig::new(credit(4).window(0).max_messages(2));
    rig.kit.run(async {
        let (raw, foreign) = (rig.join("/raw").await, rig.join("/?foreign").await);
        rig.count(0..9).await;
        assert_eq!((got(&raw), got(&foreign)), (texts(0..9), texts(0..9)));
        raw.stall(true);
        assert_eq!(rig.count(0..9).await[8], BroadcastReport { queued: 1, dropped: 1, ..report(2) });
    });
}

#[test]
fn without_credit_the_host_tells_and_nobody_has_to_acknowledge() {
    let rig = Rig::new(Outbound::new());
    rig.kit.run(async {
        let _client = rig.join("/one?member").await;
        assert_eq!(rig.act(|room| room.credit(&named(room, "one"))).await, None);
        assert!(!rig.act(|room| room.acknowledged(&named(room, "one"), 1)).await);
    });
}

#[test]
fn what_is_known_of_gone_members_does_not_pile_up() {
    let rig = Rig::new(credit(100));
    rig.kit.run(async {
        for _ in 0..300 {
            let client = rig.join("/?member").await;
            rig.count(0..1).await;
            client.lose();
            rig.kit.settle().await;
        }
        assert!(rig.act(|room| room.inner().flow.known() <= 70).await);
    });
}
