//! Who comes in, and what becomes of those who are there already.

use super::{
    hall::{Rules, ask, enter, hall, kit, refused, there},
    watch::{heard, log},
};
use do_core::{ErrorKind, kit::Failing, prelude::Duration};

#[test]
fn a_member_with_several_sockets_joins_once_and_is_listed_once() {
    let kit = kit(Rules { duplicate: 1, ..Rules::default() }, 0);
    kit.run(async {
        let hall = hall(&kit);
        let bob = enter(&kit, &hall, "m=bob").await;
        let first = enter(&kit, &hall, "m=ann&d=x").await;
        let second = enter(&kit, &hall, "m=ann").await;
        assert_eq!(there(&hall).await, ["ann=x", "bob"]);
        first.close(None).unwrap();
        kit.settle().await;
        assert_eq!(there(&hall).await, ["ann=x", "bob"]);
        second.close(None).unwrap();
        kit.settle().await;
        assert_eq!(there(&hall).await, ["bob"]);
        assert_eq!(log(&hall).await, ["+bob", "+ann=x", "-ann"]);
        assert_eq!(heard(&bob).short(), ["+ann=x", "-ann"]);
    });
}

#[test]
fn the_newest_replaces_and_nobody_hears_of_it() {
    let kit = kit(Rules::default(), 0);
    kit.run(async {
        let hall = hall(&kit);
        let bob = enter(&kit, &hall, "m=bob").await;
        let old = enter(&kit, &hall, "m=ann&d=x").await;
        kit.settle().await;
        let new = enter(&kit, &hall, "m=ann").await;
        kit.settle().await;
        let end = heard(&old).end;
        assert_eq!(end, Some(4_500));
        kit.settle().await;
        assert_eq!((heard(&new).end, heard(&bob).short()), (None, vec!["+ann=x".to_owned()]));
        assert_eq!(there(&hall).await, ["ann=x", "bob"]);
        let sockets: Vec<(String, Option<String>, Option<String>)> = ask(&hall, "/sockets").await.unwrap();
        assert_eq!(sockets.len(), 2);
        assert_eq!(log(&hall).await, ["+bob", "+ann=x"]);
    });
}

#[test]
fn a_duplicate_is_refused_as_long_as_the_other_is_open() {
    let kit = kit(Rules { duplicate: 2, ..Rules::default() }, 0);
    kit.run(async {
        let hall = hall(&kit);
        let first = enter(&kit, &hall, "m=ann").await;
        assert_eq!(refused(&kit, &hall, "m=ann").await, (409, "this member is here already".to_owned()));
        first.close(None).unwrap();
        kit.settle().await;
        let again = enter(&kit, &hall, "m=ann").await;
        // A connection that broke without a word blocks the one who comes back.
        again.vanish();
        kit.advance(Duration::from_secs(3_600)).await;
        assert_eq!(refused(&kit, &hall, "m=ann").await.0, 409);
        assert_eq!(log(&hall).await, ["+ann", "-ann", "+ann"]);
    });
}

#[test]
fn a_duplicate_takes_the_place_of_one_that_does_not_ping() {
    let kit = kit(Rules { duplicate: 2, silent: Some(60), ..Rules::default() }, 0);
    kit.run(async {
        let hall = hall(&kit);
        let first = enter(&kit, &hall, "m=ann").await;
        for _ in 0..3 {
            kit.advance(Duration::from_secs(59)).await;
            first.send("ping").unwrap();
            kit.settle().await;
        }
        assert_eq!(refused(&kit, &hall, "m=ann").await.0, 409);
        first.vanish();
        kit.advance(Duration::from_secs(59)).await;
        assert_eq!(refused(&kit, &hall, "m=ann").await.0, 409);
        kit.advance(Duration::from_secs(1)).await;
        let second = enter(&kit, &hall, "m=ann").await;
        kit.advance(Duration::from_secs(59)).await;
        assert_eq!((there(&hall).await, heard(&second).end), (vec!["ann".to_owned()], None));
        assert_eq!(log(&hall).await, ["+ann"]);
    });
}

#[test]
fn caps_of_members_and_of_sockets_of_one() {
    let rules = Rules { duplicate: 1, max_members: Some(2), max_sockets: Some(2), ..Rules::default() };
    let kit = kit(rules, 0);
    kit.run(async {
        let hall = hall(&kit);
        let ann = [enter(&kit, &hall, "m=ann").await, enter(&kit, &hall, "m=ann").await];
        let (status, why) = refused(&kit, &hall, "m=ann").await;
        assert_eq!((status, why.as_str()), (409, "this member has as many connections as one may have"));
        let bob = enter(&kit, &hall, "m=bob").await;
        let (status, why) = refused(&kit, &hall, "m=carl").await;
        assert_eq!((status, why.as_str()), (503, "the room has as many members as it takes"));
        let again = enter(&kit, &hall, "m=bob").await;
        kit.hibernate(&hall).await.unwrap();
        assert_eq!(refused(&kit, &hall, "m=carl").await.0, 503);
        drop((bob, again));
        kit.settle().await;
        let carl = enter(&kit, &hall, "m=carl").await;
        assert_eq!(there(&hall).await, ["ann", "carl"]);
        drop((ann, carl));
    });
}

#[test]
fn a_grace_without_an_alarm_is_said_at_the_door() {
    let kit = kit(Rules { grace: 5, no_alarm: true, ..Rules::default() }, 0);
    kit.run(async {
        let error = kit.connect(&hall(&kit), "/enter?m=ann").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.to_string().contains("a grace for members needs an alarm"), "{error}");
    });
}

#[test]
fn who_comes_with_other_data_is_seen_so_on_all_sockets() {
    let kit = kit(Rules { duplicate: 1, ..Rules::default() }, 0);
    kit.run(async {
        let hall = hall(&kit);
        let first = enter(&kit, &hall, "m=ann&d=x").await;
        let second = enter(&kit, &hall, "m=ann&d=y").await;
        let third = enter(&kit, &hall, "m=ann&d=y").await;
        let sockets: Vec<(String, Option<String>, Option<String>)> = ask(&hall, "/sockets").await.unwrap();
        assert_eq!(sockets, vec![("ann".to_owned(), Some("y".to_owned()), None); 3]);
        assert_eq!(
            (log(&hall).await, heard(&first).short()),
            (vec!["+ann=x".into(), "~ann=y".into()], vec!["~ann=y".to_owned()])
        );
        drop((second, third));
    });
}

#[test]
fn who_could_not_be_written_did_not_come_in() {
    for failing in ["jam", "statement", "commit"] {
        let kit = kit(Rules::default(), 0);
        kit.run(async {
            let hall = hall(&kit);
            let bob = enter(&kit, &hall, "m=bob").await;
            kit.settle().await;
            match failing {
                "jam" => drop(ask::<u8>(&hall, "/jam").await.unwrap()),
                "statement" => kit.fail_next(&hall, Failing::Sql),
                _ => kit.fail_next(&hall, Failing::Commit),
            }
            assert!(kit.connect(&hall, "/enter?m=ann").await.is_err(), "{failing}");
            kit.settle().await;
            assert_eq!(log(&hall).await, ["+bob"], "{failing}");
            if failing == "jam" {
                ask::<u8>(&hall, "/unjam").await.unwrap();
            }
            // A commit that fails takes all sockets with it (rule C6).
            let bob_is_here = failing != "commit";
            assert_eq!(there(&hall).await, if bob_is_here { vec!["bob"] } else { vec![] }, "{failing}");
            let ann = enter(&kit, &hall, "m=ann").await;
            let expected: &[&str] = if bob_is_here { &["+bob", "+ann"] } else { &["+bob", "-bob", "+ann"] };
            assert_eq!(log(&hall).await, expected, "{failing}");
            drop((ann, bob));
        });
    }
}
