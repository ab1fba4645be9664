//! Faults in the middle of what belongs together.

use crate::probe::{Do, Lab, Setup, heard, hello};
use do_core::{Stub, kit::Failing};
use serde_json::json;
use std::time::Duration;

fn epoch(position: &serde_json::Value) -> String {
    position.as_str().unwrap().split_once('-').unwrap().0.to_owned()
}

#[test]
fn what_could_not_be_logged_and_was_not_sent_is_no_new_epoch() {
    let lab = Lab::new(&Setup { grace: Some(Duration::from_secs(5)), ..Setup::default() });
    lab.run(async {
        let bob = lab.connect("member=bob").await;
        let both = [lab.connect("member=ann").await, lab.connect("member=cat").await];
        let before = lab.ask(Do::Position).await;
        // The second of two entries fails.
        lab.ask(Do::Sql("CREATE TRIGGER jam BEFORE INSERT ON _room_log WHEN NEW.seq = 5 BEGIN SELECT RAISE(ABORT, 'jammed'); END".into())).await;
        drop(both);
        lab.kit.settle().await;
        heard(&bob);
        lab.kit.advance(Duration::from_secs(6)).await;
        lab.ask(Do::Sql("DROP TRIGGER jam".into())).await;
        lab.ask(Do::OnAlarm).await;
        lab.kit.settle().await;
        let now = lab.ask(Do::Position).await;
        assert_eq!(epoch(&now), epoch(&before));
        assert_eq!(heard(&bob), ["-ann", "-cat"], "and bob was not sent away");
    });
}

#[test]
fn who_could_not_come_in_has_replaced_nobody() {
    let lab = Lab::new(&Setup::default());
    lab.run(async {
        let old = lab.connect("member=ann&data=x").await;
        hello(&old).await;
        lab.ask(Do::Sql(
            "CREATE TRIGGER jam BEFORE UPDATE ON _room_members BEGIN SELECT RAISE(ABORT, 'jammed'); END"
                .into(),
        ))
        .await;
        let (status, text) = lab.refused("member=ann&data=y").await;
        assert!(status == 0 && text.contains("jammed"), "{text}");
        lab.kit.settle().await;
        assert_eq!(heard(&old), [""; 0], "the old one is there");
        assert_eq!(lab.there().await, ["ann"]);
        lab.ask(Do::Publish(json!(1))).await;
        lab.kit.settle().await;
        assert_eq!(heard(&old), ["1"]);
    });
}

#[test]
fn snapshots_that_fail_panic_or_are_huge_let_nobody_in() {
    for snapshot in ["fails", "huge", "panics"] {
        let lab = Lab::new(&Setup::default());
        lab.run(async {
            let old = lab.connect("member=ann").await;
            hello(&old).await;
            let (status, _) = lab.refused(&format!("member=ann&snapshot={snapshot}")).await;
            assert_eq!(status, 0);
            lab.kit.settle().await;
            if snapshot != "panics" {
                assert_eq!(heard(&old), [""; 0]);
                assert_eq!(lab.there().await, ["ann"]);
            }
            let again = lab.connect("member=ann").await;
            assert_eq!(hello(&again).await["count"], json!(1));
        });
    }
}

#[test]
fn a_snapshot_that_publishes_comes_before_nothing_that_it_published() {
    for (max_messages, replay) in [(1_000, 0), (1_000, 10), (1, 0), (0, 0), (0, 10)] {
        let lab = Lab::new(&Setup { max_messages, replay, ..Setup::default() });
        lab.run(async {
            lab.ask(Do::Publish(json!(1))).await;
            for _ in 0..2 {
                let position = lab.ask(Do::Position).await;
                for after in
                    [String::new(), format!("&after={}", position.as_str().unwrap()), "&after=x-1".into()]
                {
                    let ann = lab.connect(&format!("member=ann&snapshot=publishes{after}")).await;
                    let hello = hello(&ann).await;
                    let at: u64 = hello["at"].as_str().unwrap().split_once('-').unwrap().1.parse().unwrap();
                    lab.kit.settle().await;
                    let replayed = heard(&ann).len() as u64;
                    let newest = lab.ask(Do::Position).await;
                    let newest: u64 = newest.as_str().unwrap().split_once('-').unwrap().1.parse().unwrap();
                    assert_eq!(at + replayed, newest, "{max_messages} {replay} {after} {hello}");
                }
            }
        });
    }
}

#[test]
fn c6_a_response_that_is_dropped_is_nobody_who_came() {
    let lab = Lab::new(&Setup::default());
    lab.run(async {
        let bob = lab.connect("member=bob").await;
        let (status, text) = lab.refused("member=ann&dropped=1").await;
        assert_eq!((status, text.as_str()), (200, "dropped"));
        lab.kit.advance(Duration::from_secs(120)).await;
        assert_eq!(lab.there().await, ["bob"]);
        assert_eq!(heard(&bob), ["hello", "+ann", "-ann"]);
        lab.kit.hibernate(&lab.stub).await.unwrap();
        assert_eq!(lab.there().await, ["bob"]);
    });
}

#[test]
fn c6_what_is_not_kept_is_seen_by_nobody() {
    for what in
        [Failing::Commit, Failing::CrashBeforeCommit, Failing::CrashAfterCommit, Failing::Sql, Failing::Undo]
    {
        let lab = Lab::new(&Setup { replay: 100, ..Setup::default() });
        lab.run(async {
            let bob = lab.connect("member=bob").await;
            hello(&bob).await;
            heard(&bob);
            lab.kit.fail_next(&lab.stub, what);
            let (request, opening) = lab.kit.handshake("/?member=ann").unwrap();
            let opened = lab.stub.fetch(request).await.map(|response| opening.open(response).is_ok());
            lab.kit.settle().await;
            let kept = lab.log().await;
            for seen in heard(&bob).iter().filter(|seen| seen.starts_with(['+', '-'])) {
                assert!(kept.contains(seen), "{what:?} {seen} {kept:?} {opened:?}");
            }
        });
    }
}

#[test]
fn a_member_who_is_kicked_in_their_own_handler_leaves_once() {
    let lab = Lab::new(&Setup::default());
    lab.run(async {
        let bob = lab.connect("member=bob").await;
        let ann = lab.connect("member=ann").await;
        ann.send("\"kick me\"").unwrap();
        ann.send("\"still here\"").unwrap();
        lab.kit.settle().await;
        assert_eq!(lab.there().await, ["bob"]);
        let news = heard(&bob);
        assert_eq!(news.iter().filter(|entry| *entry == "-ann").count(), 1, "{news:?}");
        assert_eq!(heard(&ann), ["hello", "-ann", "4501"]);
    });
}

#[test]
fn e14_members_who_stay_over_delete_all_leave_and_come_in_the_new_log() {
    for hibernates in [false, true] {
        let lab = Lab::new(&Setup::default());
        lab.run(async {
            let ann = lab.connect("member=ann").await;
            lab.ask(Do::Publish(json!(1))).await;
            lab.ask(Do::DeleteAll).await;
            if hibernates {
                lab.kit.hibernate(&lab.stub).await.unwrap();
            }
            let bob = lab.connect("member=bob").await;
            lab.kit.settle().await;
            // The room closes it, or it is shown a number that does not fit.
            let told = if hibernates { "+bob" } else { "4000" };
            assert_eq!(heard(&ann).last().unwrap(), told);
            let back = lab.connect("member=ann").await;
            lab.kit.settle().await;
            drop((ann, bob, back));
            lab.kit.settle().await;
            assert_eq!(lab.there().await, [""; 0]);
            let log = lab.log().await;
            for member in ["ann", "bob"] {
                let of: Vec<_> =
                    log.iter().filter(|entry| entry.ends_with(member)).map(|entry| &entry[..1]).collect();
                assert!(of.chunks(2).all(|pair| pair == ["+", "-"]), "{hibernates} {log:?}");
            }
        });
    }
}
