//! Bounds of nothing, of everything, and clients that do not keep to theirs.

use crate::probe::{Do, Lab, Setup, heard, hello};
use serde_json::json;

#[test]
fn a_history_of_nothing_numbers_and_sends_all_the_same() {
    for (max_messages, history_bytes) in
        [(0, 1 << 20), (1, 1 << 20), (1_000, 0), (1_000, 1), (0, 0), (u64::MAX, u64::MAX)]
    {
        let lab = Lab::new(&Setup { max_messages, history_bytes, replay: u64::MAX, ..Setup::default() });
        lab.run(async {
            let ann = lab.connect("member=ann").await;
            for n in 0..20 {
                lab.ask(Do::Publish(json!(n))).await;
            }
            lab.kit.settle().await;
            let news = heard(&ann);
            assert_eq!(news.iter().filter(|entry| entry.parse::<u64>().is_ok()).count(), 20);
            let shown = lab.ask(Do::Messages(None, u64::MAX)).await["entries"].as_array().unwrap().len();
            let kept = if history_bytes < 2 || max_messages == 0 { 0 } else { max_messages.min(21) as usize };
            assert_eq!(shown, kept, "{max_messages} {history_bytes}");
        });
    }
}

#[test]
fn positions_that_nobody_was_told_are_gaps() {
    let lab = Lab::new(&Setup::default());
    lab.run(async {
        lab.ask(Do::Publish(json!(1))).await;
        let position = lab.ask(Do::Position).await;
        let epoch = position.as_str().unwrap().split_once('-').unwrap().0.to_owned();
        let long = "z".repeat(10_000);
        let wrong = [
            "".to_owned(),
            "-".into(),
            "x".into(),
            long,
            format!("{epoch}--1"),
            format!("{epoch}-2"),
            format!("{epoch}-9007199254740993"),
            format!("{epoch}-{}", u64::MAX),
            format!("{epoch}-{}0", u64::MAX),
            "0-1".into(),
            "zzzzzzzzzzzzz-1".into(),
            "%00-%FF".into(),
            "%F0%9F%98%80".repeat(100),
        ];
        let error = lab.try_ask("/", Do::Messages(Some("x".into()), 1)).await.unwrap_err();
        assert_eq!(error.kind(), do_core::ErrorKind::Invalid, "{error}");
        for after in wrong {
            let fay = lab.connect(&format!("follow=1&after={after}")).await;
            let hello = hello(&fay).await;
            assert_eq!(hello["gap"]["lost"], json!(null), "{after}");
            assert!(hello["gap"]["after"].as_str().unwrap().chars().count() <= 64, "{after}");
            assert_eq!(hello["at"], position);
        }
    });
}

#[test]
fn outbound_bounds_of_nothing_let_members_come_and_go() {
    for outbound_bytes in [0, 1, 100] {
        for credit in [None, Some(0), Some(1), Some(u64::MAX)] {
            let lab = Lab::new(&Setup { outbound_bytes, outbound_messages: 0, credit, ..Setup::default() });
            lab.run(async {
                let ann = lab.connect("member=ann").await;
                assert_eq!(hello(&ann).await["count"], json!(1));
                let ack = format!(r#"{{"t":"ack","b":{}}}"#, u64::MAX);
                ann.send(ack.as_str()).unwrap();
                lab.kit.settle().await;
                let bob = lab.connect("member=bob").await;
                lab.kit.settle().await;
                ann.send(ack.as_str()).unwrap();
                lab.kit.settle().await;
                drop(bob);
                lab.kit.settle().await;
                assert_eq!(lab.there().await, ["ann"], "{outbound_bytes} {credit:?} {:?}", heard(&ann));
                assert_eq!(lab.log().await, ["+ann", "+bob", "-bob"]);
            });
        }
    }
}

#[test]
fn clients_that_acknowledge_what_they_please_break_nothing() {
    let lab = Lab::new(&Setup { credit: Some(1_000), outbound_bytes: 100_000, ..Setup::default() });
    lab.run(async {
        let liar = lab.connect("member=liar").await;
        let silent = lab.connect("member=silent").await;
        for n in 0..100 {
            liar.send(format!(r#"{{"t":"ack","b":{}}}"#, u64::MAX)).unwrap();
            liar.send(r#"{"t":"ack","b":0}"#).unwrap();
            lab.ask(Do::Publish(json!(format!("{n:0>999}")))).await;
            lab.kit.settle().await;
        }
        assert!(heard(&liar).len() >= 100);
        let news = heard(&silent);
        assert_eq!(news.last().unwrap(), "1013", "{}", news.len());
        liar.send(format!(r#"{{"t":"ack","b":{}}}"#, u64::MAX)).unwrap();
        lab.kit.settle().await;
        let stats = lab.ask(Do::Stats).await;
        assert_eq!(stats[2], json!(0), "nothing is kept for who is gone");
        assert_eq!(lab.there().await, ["liar"]);
    });
}

#[test]
fn two_clients_that_fight_for_one_member_end_it() {
    let lab = Lab::new(&Setup::default());
    lab.run(async {
        let mut clients = Vec::new();
        for _ in 0..50 {
            clients.push(lab.connect("member=ann&data=x").await);
        }
        lab.kit.settle().await;
        for client in &clients[..49] {
            assert_eq!(heard(client).last().unwrap(), "4500");
        }
        assert_eq!(lab.there().await, ["ann"]);
        assert_eq!(lab.log().await, ["+ann"]);
        // The seq goes on without a hole for who stays.
        lab.ask(Do::Publish(json!(1))).await;
        lab.kit.settle().await;
        assert_eq!(heard(&clients[49]), ["hello", "1"]);
    });
}
