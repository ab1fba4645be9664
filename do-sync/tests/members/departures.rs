//! Who goes, in every way there is, and who comes back in time.

use super::{
    hall::{Flaw, Rules, ask, builder, enter, hall, kit, there},
    watch::{heard, log},
};
use do_core::{
    kit::{Client, Failing, Kit, for_seeds},
    prelude::{Duration, Message},
    tokio::HostStub,
};

fn grace(seconds: u64) -> Rules {
    Rules { grace: seconds, ..Rules::default() }
}

/// The ways in which a connection ends with an event: a Close, a loss, a fault of the protocol.
fn end(client: Client, how: u8) -> Option<Client> {
    match how {
        0 => client.close(Some((1_000, "bye"))).unwrap(),
        1 => return None,
        _ => client.send("x".repeat(1_001)).unwrap(),
    }
    Some(client)
}

#[test]
fn d15_d16_whoever_closes_is_lost_or_fails_has_left_exactly_once() {
    for (how, asleep) in (0..3).flat_map(|how| [(how, false), (how, true)]) {
        let kit = kit(Rules::default(), 0);
        kit.run(async {
            let hall = hall(&kit);
            let bob = enter(&kit, &hall, "m=bob").await;
            let ann = enter(&kit, &hall, "m=ann").await;
            if asleep {
                kit.hibernate(&hall).await.unwrap(); // the end itself wakes the object
            }
            let ann = end(ann, how);
            kit.settle().await;
            assert_eq!(there(&hall).await, ["bob"], "{how} {asleep}");
            assert_eq!(log(&hall).await, ["+bob", "+ann", "-ann"], "{how} {asleep}");
            assert_eq!(heard(&bob).short(), ["+ann", "-ann"], "{how} {asleep}");
            drop(ann);
        });
    }
}

#[test]
fn d25_whoever_went_with_a_reset_is_missed_by_the_next_who_comes() {
    for strike in 0..3 {
        let kit = kit(Rules::default(), 0);
        kit.run(async {
            let hall = hall(&kit);
            let gone = [enter(&kit, &hall, "m=ann&d=x").await, enter(&kit, &hall, "m=bob").await];
            kit.settle().await;
            match strike {
                0 => kit.evict(&hall),
                1 => kit.crash(),
                _ => kit.lose_power(),
            }
            kit.settle().await;
            assert!(there(&hall).await.is_empty(), "a look shows who is there, and writes nothing");
            assert_eq!(log(&hall).await, ["+ann=x", "+bob"]);
            let bob = enter(&kit, &hall, "m=bob").await;
            assert_eq!(log(&hall).await, ["+ann=x", "+bob", "-ann", "-bob", "+bob"]);
            assert_eq!(there(&hall).await, ["bob"]);
            drop((gone, bob));
        });
    }
}

/// Every order of the old connection's end and the new one's begin, in every order of the kit.
#[test]
fn a_fast_return_is_no_leaving_and_joining_where_the_new_one_is_first() {
    for_seeds(0..6, |seed| {
        for (how, asleep) in (0..3).flat_map(|how| [(how, false), (how, true)]) {
            let kit = kit(Rules::default(), seed);
            kit.run(async {
                let hall = hall(&kit);
                let old = enter(&kit, &hall, "m=ann").await;
                kit.settle().await;
                if asleep {
                    kit.hibernate(&hall).await.unwrap();
                }
                let new = enter(&kit, &hall, "m=ann").await;
                let old = end(old, how);
                kit.settle().await;
                assert_eq!((there(&hall).await, heard(&new).end), (vec!["ann".to_owned()], None));
                assert_eq!(log(&hall).await, ["+ann"], "{how} {asleep}");
                drop(old);
            });
        }
    });
}

#[test]
fn with_a_grace_no_order_of_a_fast_return_is_a_leaving() {
    for_seeds(0..6, |seed| {
        for (how, strike) in (0..3).flat_map(|how| (0..5).map(move |strike| (how, strike))) {
            let kit = kit(grace(5), seed);
            kit.run(async {
                let hall = hall(&kit);
                let old = enter(&kit, &hall, "m=ann&d=x").await;
                kit.settle().await;
                let old = end(old, how);
                strike_at(&kit, &hall, strike).await;
                kit.advance(Duration::from_millis(4_900)).await;
                let new = enter(&kit, &hall, "m=ann").await;
                kit.advance(Duration::from_secs(60)).await;
                assert_eq!((there(&hall).await, heard(&new).end), (vec!["ann=x".to_owned()], None));
                assert_eq!(log(&hall).await, ["+ann=x"], "{how} {strike}");
                drop(old);
            });
        }
    });
}

async fn strike_at(kit: &Kit, hall: &HostStub, strike: u8) {
    match strike {
        0 => {}
        1 => drop(kit.hibernate(hall).await),
        2 => kit.evict(hall),
        3 => kit.crash(),
        _ => kit.lose_power(),
    }
}

#[test]
fn the_end_of_a_grace_is_kept_over_whatever_happens_and_comes_by_itself() {
    for strike in 0..5 {
        let kit = kit(grace(5), 0);
        kit.run(async {
            let hall = hall(&kit);
            let ann = enter(&kit, &hall, "m=ann").await;
            kit.settle().await;
            drop(ann);
            kit.settle().await;
            assert_eq!(there(&hall).await, ["ann"]);
            kit.advance(Duration::from_secs(3)).await;
            strike_at(&kit, &hall, strike).await;
            kit.advance(Duration::from_millis(1_999)).await;
            assert_eq!(
                (there(&hall).await, log(&hall).await),
                (vec!["ann".to_owned()], vec!["+ann".to_owned()])
            );
            kit.advance(Duration::from_millis(1)).await;
            assert_eq!(log(&hall).await, ["+ann", "-ann"], "{strike}");
            assert!(there(&hall).await.is_empty());
        });
    }
}

#[test]
fn a_grace_ends_late_with_its_alarm_or_with_the_next_use() {
    let kit = kit(grace(5), 0);
    kit.run(async {
        let hall = hall(&kit);
        kit.late_alarms(Duration::from_secs(10));
        drop(enter(&kit, &hall, "m=ann").await);
        kit.advance(Duration::from_secs(7)).await;
        assert!(there(&hall).await.is_empty(), "nobody is waited for longer than it says");
        assert_eq!(log(&hall).await, ["+ann"]);
        let bob = enter(&kit, &hall, "m=bob").await;
        assert_eq!(log(&hall).await, ["+ann", "-ann", "+bob"]);
        kit.repeat_alarms(2);
        kit.advance(Duration::from_secs(60)).await;
        assert_eq!(log(&hall).await, ["+ann", "-ann", "+bob"]);
        drop(bob);
    });
}

#[test]
fn an_alarm_that_could_not_be_set_is_set_by_the_next_use() {
    let kit = kit(grace(5), 0);
    kit.run(async {
        let hall = hall(&kit);
        let (ann, bob) = (enter(&kit, &hall, "m=ann").await, enter(&kit, &hall, "m=bob").await);
        kit.settle().await;
        kit.fail_next(&hall, Failing::SetAlarm);
        drop(ann);
        kit.settle().await;
        kit.advance(Duration::from_secs(1)).await;
        ask::<usize>(&hall, "/kick?m=nobody").await.unwrap();
        kit.advance(Duration::from_secs(4)).await;
        assert_eq!(log(&hall).await, ["+ann", "+bob", "-ann"]);
        drop(bob);
    });
}

#[test]
fn a_leaving_that_could_not_be_written_is_written_by_the_next_use() {
    for failing in ["jam", "statement", "commit"] {
        let kit = kit(Rules::default(), 0);
        kit.run(async {
            let hall = hall(&kit);
            let (ann, bob) = (enter(&kit, &hall, "m=ann").await, enter(&kit, &hall, "m=bob").await);
            kit.settle().await;
            match failing {
                "jam" => drop(ask::<u8>(&hall, "/jam").await.unwrap()),
                "statement" => kit.fail_next(&hall, Failing::Sql),
                _ => kit.fail_next(&hall, Failing::Commit),
            }
            drop(ann);
            kit.settle().await;
            assert_eq!(log(&hall).await, ["+ann", "+bob"], "{failing}");
            if failing == "jam" {
                ask::<u8>(&hall, "/unjam").await.unwrap();
            }
            let carl = enter(&kit, &hall, "m=carl").await;
            let bob_left: &[&str] = if failing == "commit" { &["-bob"] } else { &[] };
            let expected = [&["+ann", "+bob", "-ann"], bob_left, &["+carl"]].concat();
            assert_eq!(log(&hall).await, expected, "{failing}");
            drop((bob, carl));
        });
    }
}

#[test]
fn one_who_left_untold_is_missed_by_the_next_instance() {
    let kit = kit(Rules { flaw: Flaw::Silent, ..Rules::default() }, 0);
    kit.run(async {
        let hall = hall(&kit);
        let bob = enter(&kit, &hall, "m=bob").await;
        drop(enter(&kit, &hall, "m=ann").await);
        kit.settle().await;
        assert_eq!(
            (there(&hall).await, log(&hall).await),
            (vec!["bob".to_owned()], vec!["+bob".to_owned(), "+ann".to_owned()])
        );
        kit.hibernate(&hall).await.unwrap();
        let carl = enter(&kit, &hall, "m=carl").await;
        kit.settle().await;
        assert_eq!(log(&hall).await, ["+bob", "+ann", "-ann", "+carl"]);
        assert_eq!(heard(&bob).short(), ["+ann", "-ann", "+carl"]);
        drop(carl);
    });
}

#[test]
fn the_kicked_have_left_at_once_and_are_told_to_stay_away() {
    let kit = kit(Rules { duplicate: 1, grace: 5, ..Rules::default() }, 0);
    kit.run(async {
        let hall = hall(&kit);
        let bob = enter(&kit, &hall, "m=bob").await;
        let ann = [enter(&kit, &hall, "m=ann").await, enter(&kit, &hall, "m=ann").await];
        ann[1].vanish();
        assert_eq!(ask::<usize>(&hall, "/kick?m=ann").await.unwrap(), 2);
        assert_eq!(
            (there(&hall).await, log(&hall).await),
            (vec!["bob".into()], vec!["+bob".to_owned(), "+ann".to_owned(), "-ann".to_owned()])
        );
        kit.settle().await;
        assert_eq!(heard(&ann[0]).end, Some(4_501));
        assert_eq!(heard(&bob).short(), ["+ann", "-ann"]);
        // One who is only waited for, and one who is not there.
        drop(bob);
        kit.settle().await;
        assert_eq!(there(&hall).await, ["bob"]);
        assert_eq!(ask::<usize>(&hall, "/kick?m=bob").await.unwrap(), 0);
        assert_eq!(ask::<usize>(&hall, "/kick?m=bob").await.unwrap(), 0);
        kit.advance(Duration::from_secs(60)).await;
        assert_eq!(log(&hall).await, ["+bob", "+ann", "-ann", "-bob"]);
        assert!(there(&hall).await.is_empty());
    });
}

#[test]
fn a_kick_and_a_return_in_one_turn_are_a_leaving_and_a_joining() {
    let kit = kit(Rules::default(), 0);
    kit.run(async {
        let hall = hall(&kit);
        let old = enter(&kit, &hall, "m=ann").await;
        let new = kit.connect(&hall, "/twice?m=ann").await.unwrap();
        kit.settle().await;
        assert_eq!(heard(&old).end, Some(4_501));
        kit.settle().await;
        assert_eq!(
            (log(&hall).await, there(&hall).await),
            (vec!["+ann".to_owned(), "-ann".to_owned(), "+ann".to_owned()], vec!["ann".to_owned()])
        );
        assert_eq!(heard(&new).end, None);
    });
}

#[test]
fn a_deployment_with_another_grace_takes_over_who_is_waited_for() {
    let kit = kit(grace(3_600), 0);
    kit.run(async {
        let client = enter(&kit, &hall(&kit), "m=ann").await;
        drop(client);
        kit.settle().await;
        kit.deploy(builder(grace(5))).unwrap();
        let bob = enter(&kit, &hall(&kit), "m=bob").await;
        kit.advance(Duration::from_secs(5)).await;
        assert_eq!(log(&hall(&kit)).await, ["+ann", "+bob", "-ann"]);
        drop(bob);
        kit.settle().await;
        kit.deploy(builder(grace(0))).unwrap();
        ask::<usize>(&hall(&kit), "/kick?m=nobody").await.unwrap();
        assert_eq!(log(&hall(&kit)).await, ["+ann", "+bob", "-ann", "-bob"]);
    });
}

#[test]
fn what_is_sent_by_one_who_closes_still_counts() {
    let kit = kit(Rules::default(), 0);
    kit.run(async {
        let hall = hall(&kit);
        let bob = enter(&kit, &hall, "m=bob").await;
        let ann = enter(&kit, &hall, "m=ann&d=x").await;
        ann.send(Message::text("data:y")).unwrap();
        ann.close(None).unwrap();
        kit.settle().await;
        assert_eq!(heard(&bob).short(), ["+ann=x", "~ann=y", "-ann"]);
    });
}
