//! Deadlines: several rooms on one alarm, and times beyond all bounds.

use crate::probe::{Do, Lab, Setup, heard, hello};
use do_core::Timestamp;
use serde_json::json;
use std::time::Duration;

#[test]
fn e4_two_rooms_on_one_alarm_do_not_take_it_from_each_other() {
    for order in [["", "room=1&"], ["room=1&", ""]] {
        let lab = Lab::new(&Setup { grace: Some(Duration::from_secs(10)), ..Setup::default() });
        lab.run(async {
            let fay = lab.connect("follow=1").await;
            let other = lab.connect("room=1&follow=1").await;
            let ann = lab.connect(&format!("{}member=ann", order[0])).await;
            let bob = lab.connect(&format!("{}member=bob", order[1])).await;
            drop(ann);
            lab.kit.advance(Duration::from_secs(5)).await;
            drop(bob);
            lab.kit.settle().await;
            for client in [&fay, &other] {
                heard(client);
            }
            lab.kit.advance(Duration::from_secs(6)).await;
            let first = [heard(&fay), heard(&other)].concat();
            assert_eq!(first, ["-ann"]);
            lab.kit.advance(Duration::from_secs(6)).await;
            let second = [heard(&fay), heard(&other)].concat();
            assert_eq!(second, ["-bob"], "nothing but the alarm says so");
        });
    }
}

#[test]
fn a_grace_without_end_is_none_of_the_alarms_business() {
    for grace in [
        Duration::MAX,
        Duration::from_millis(u64::MAX),
        Duration::from_secs(1 << 40),
        Duration::from_secs(1 << 33),
    ] {
        let lab = Lab::new(&Setup { grace: Some(grace), ..Setup::default() });
        lab.run(async {
            let bob = lab.connect("member=bob").await;
            let ann = lab.connect("member=ann").await;
            drop(ann);
            lab.kit.settle().await;
            assert_eq!(lab.there().await, ["ann", "bob"], "{grace:?}");
            lab.ask(Do::OnAlarm).await;
            lab.kit.hibernate(&lab.stub).await.unwrap();
            assert_eq!(lab.there().await, ["ann", "bob"], "{grace:?}");
            let ann = lab.connect("member=ann").await;
            assert_eq!(hello(&ann).await["count"], json!(2));
            assert_eq!(heard(&bob), ["hello", "+ann"]);
            assert_eq!(lab.log().await, ["+bob", "+ann"]);
        });
    }
}

#[test]
fn an_age_without_end_or_beginning_does_no_harm() {
    for age in [Duration::MAX, Duration::from_secs(1 << 40), Duration::ZERO, Duration::from_nanos(1)] {
        let lab = Lab::new(&Setup { max_age: Some(age), replay: 10, ..Setup::default() });
        lab.run(async {
            lab.ask(Do::Publish(json!(1))).await;
            lab.ask(Do::Publish(json!(2))).await;
            lab.kit.advance(Duration::from_secs(3_600)).await;
            lab.ask(Do::OnAlarm).await;
            let shown = lab.ask(Do::Messages(None, u64::MAX)).await["entries"].as_array().unwrap().len();
            assert_eq!(shown, if age > Duration::from_secs(1) { 2 } else { 0 }, "{age:?}");
            let ann = lab.connect("member=ann").await;
            hello(&ann).await;
            lab.ask(Do::Publish(json!(3))).await;
            lab.kit.settle().await;
            assert_eq!(heard(&ann).last().unwrap(), "3");
        });
    }
}

#[test]
fn a_clock_that_jumps_far_ahead_and_back_stops_nothing() {
    let setup = Setup {
        grace: Some(Duration::from_secs(5)),
        max_age: Some(Duration::from_secs(60)),
        replay: 10,
        ..Setup::default()
    };
    let lab = Lab::new(&setup);
    lab.run(async {
        let now = lab.kit.now();
        let bob = lab.connect("member=bob").await;
        let ann = lab.connect("member=ann").await;
        for far in [Timestamp::from_millis(6_942_758_399_999), Timestamp::from_millis(1 << 50)] {
            lab.kit.step_wall(far);
            lab.ask(Do::Publish(json!("ahead"))).await;
            lab.kit.hibernate(&lab.stub).await.unwrap();
            lab.kit.step_wall(now);
            lab.ask(Do::Publish(json!("back"))).await;
        }
        drop(ann);
        lab.kit.settle().await;
        lab.kit.advance(Duration::from_secs(6)).await;
        assert_eq!(lab.there().await, ["bob"]);
        let news = heard(&bob);
        assert_eq!(news.last().unwrap(), "-ann", "{news:?}");
        assert!(!news.iter().any(|entry| entry.parse::<u16>().is_ok()), "{news:?}");
    });
}
