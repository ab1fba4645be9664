use super::*;
use crate::{OnFull, OutboundStats, outbound::Delivered};

#[test]
fn the_bound_in_bytes_is_exact_and_counts_what_the_host_holds() {
    let rig = Rig::new(Outbound::new().window(0).max_bytes(100).on_full(OnFull::DropNewest));
    rig.kit.run(async {
        let slow = rig.stalled("/slow").await;
        let became = rig
            .act(|room| {
                // 10 bytes and a header of 2 are the host's; 80 wait, and 8 are left.
                let mut became: Vec<_> =
                    (0..9).map(|_| deliver(room, "slow", "0123456789", Kind::Plain)).collect();
                for text in ["012345678", "01234567", ""] {
                    became.push(deliver(room, "slow", text, Kind::Plain));
                }
                became.push(deliver(room, "slow", "0", Kind::Plain));
                became
            })
            .await;
        let mut expected = [Delivered::Queued; 13];
        (expected[9], expected[12]) = (Delivered::Dropped, Delivered::Dropped);
        assert_eq!(became, expected);
        let waits = OutboundStats { behind: 1, messages: 10, bytes: 88, dropped: 2, ..Default::default() };
        assert_eq!(rig.stats().await, waits);
        assert_eq!(rig.read(&slow).await.len(), 11);
    });
}

#[test]
fn a_message_longer_than_the_bound_waits_alone() {
    let rig = Rig::new(Outbound::new().max_bytes(100).window(20).on_full(OnFull::DropNewest));
    rig.kit.run(async {
        let slow = rig.stalled("/slow").await;
        let long = "x".repeat(1_000);
        let became = rig
            .act({
                let long = long.clone();
                move |room| {
                    [
                        deliver(room, "slow", "0", Kind::Plain),   // to the host
                        deliver(room, "slow", &long, Kind::Plain), // alone in the room
                        deliver(room, "slow", &long, Kind::Plain),
                        deliver(room, "slow", "1", Kind::Plain),
                    ]
                }
            })
            .await;
        assert_eq!(became, [Delivered::Queued, Delivered::Queued, Delivered::Dropped, Delivered::Dropped]);
        assert_eq!(rig.read(&slow).await, ["0".to_owned(), long]);
    });
}

#[test]
fn the_host_is_given_a_window_and_not_more() {
    let rig = Rig::new(Outbound::new().window(50));
    rig.kit.run(async {
        let slow = rig.stalled("/slow").await;
        rig.count(0..100).await;
        let (held, waits) =
            rig.act(|room| (named(room, "slow").buffered_bytes(), room.outbound_stats())).await;
        // Numbers below ten take three bytes with their headers, others four.
        assert_eq!((held, waits.messages), (Some(3 * 10 + 4 * 5), 85));
        assert_eq!(rig.read(&slow).await, texts(0..100));
    });
}

#[test]
fn a_replay_exceeds_the_bounds_and_what_follows_it_has_them_for_itself() {
    let rig = Rig::new(Outbound::new().window(0).max_bytes(10).max_messages(2));
    rig.kit.run(async {
        let slow = rig.stalled("/slow").await;
        let became = rig
            .act(|room| {
                let mut became: Vec<_> =
                    (0..20).map(|n| deliver(room, "slow", &format!("replay {n}"), Kind::Replay)).collect();
                became.extend(["1234", "56789"].map(|text| deliver(room, "slow", text, Kind::Sequenced)));
                became
            })
            .await;
        assert_eq!(became, [Delivered::Queued; 22]);
        let mut expected: Vec<_> = (0..20).map(|n| format!("replay {n}")).collect();
        expected.extend(["1234".to_owned(), "56789".to_owned()]);
        assert_eq!(rig.read(&slow).await, expected);
    });
}

#[test]
fn a_host_with_less_room_than_the_window_is_not_run_into() {
    let rig =
        Rig::with(Outbound::new().window(1_000).on_full(OnFull::DropNewest).max_messages(5), |builder| {
            builder.outbox_bytes(200)
        });
    rig.kit.run(async {
        let slow = rig.stalled("/").await;
        let reports = rig.count(0..20).await;
        assert!(reports.iter().all(|report| report.disconnected == 0), "{reports:?}");
        let taken: usize = reports.iter().map(|report| report.queued).sum();
        assert_eq!(rig.read(&slow).await, texts(0..u32::try_from(taken).unwrap()));
        assert!((6..13).contains(&taken), "{taken}");
    });
}

#[test]
fn a_socket_that_the_application_overfilled_by_itself_counts_as_disconnected() {
    let rig = Rig::with(Outbound::new(), |builder| builder.outbox_bytes(200));
    rig.kit.run(async {
        let _slow = rig.stalled("/slow").await;
        let report = rig
            .act(|room| {
                let socket = named(room, "slow");
                while socket.send("past the room").is_ok() {}
                room.send_to(&socket, "late")
            })
            .await;
        assert_eq!(report, BroadcastReport { dropped: 1, ..super::report(1) });
    });
}

#[test]
fn recipients_who_are_behind_share_the_bytes() {
    let rig = Rig::new(Outbound::new().window(0));
    rig.kit.run(async {
        let clients = [rig.stalled("/").await, rig.stalled("/").await];
        rig.count(0..3).await;
        rig.act(|room| room.broadcast_json(&"shared").unwrap().send()).await;
        let mut pointers = Vec::new();
        for client in &clients {
            client.stall(false);
        }
        rig.kit.advance(std::time::Duration::from_secs(1)).await;
        for client in &clients {
            while let Some(Received::Message(message)) = client.try_receive() {
                pointers.push(message.as_bytes().as_ptr());
            }
        }
        assert_eq!((pointers.len(), pointers[3]), (8, pointers[7]));
    });
}
