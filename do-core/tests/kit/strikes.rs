//! A busy room is struck at every one of its steps: what it told anybody must be true afterwards.

use crate::objects::{Book, Room};
use do_core::{
    Body, Request,
    kit::{Failing, Kit, Strike},
    prelude::*,
    testing::Received,
    tokio::HostStub,
};
use std::{cell::RefCell, rc::Rc};

fn kit(seed: u64) -> Kit {
    Kit::builder().seed(seed).object::<Room<_>>("ROOM").object::<Book<_>>("BOOK").start().unwrap()
}

fn stub(kit: &Kit, namespace: &str) -> HostStub {
    kit.namespace(namespace).unwrap().named(namespace).unwrap()
}

async fn ask(stub: &HostStub, path: &str) -> Result<String, do_core::Error> {
    let mut request = Request::new(Body::empty());
    *request.uri_mut() = path.parse().unwrap();
    let response = stub.fetch(request).await?;
    assert_eq!(response.status(), 200);
    response.into_body().text(10_000).await
}

async fn log(stub: &HostStub) -> Vec<String> {
    ask(stub, "/log").await.unwrap().lines().map(str::to_owned).collect()
}

/// A strike needs the kit's own stubs.
type MakeStrike = fn(&Kit) -> Strike;

type Seen = Rc<RefCell<Vec<String>>>;

/// Joins and writes down what comes, until the connection ends. Its end is what it gives.
fn listener(kit: &Kit, room: &HostStub, seen: &Seen) -> impl Future<Output = &'static str> + use<> {
    let (inside, room, seen) = (kit.clone(), room.clone(), Rc::clone(seen));
    kit.spawn(async move {
        let Ok(client) = inside.connect(&room, "/join").await else { return "refused" };
        let _ = client.send("hello"); // it may be lost already
        loop {
            match client.receive().await {
                Received::Message(Message::Text(text)) => seen.borrow_mut().push(text.as_str().to_owned()),
                Received::Lost => return "lost",
                other => seen.borrow_mut().push(format!("{other:?}")),
            }
        }
    })
}

/// What a run came to: its steps, how many calls failed, and what happened.
struct Run {
    steps: u64,
    failed: usize,
    history: String,
}

/// The scenario, with `disturb` done at its beginning.
fn run(seed: u64, disturb: impl Fn(&Kit)) -> Run {
    let kit = kit(seed);
    let (room, book) = (stub(&kit, "ROOM"), stub(&kit, "BOOK"));
    disturb(&kit);
    kit.run(async {
        let seen = Seen::default();
        let ends = [listener(&kit, &room, &seen), listener(&kit, &room, &seen)];
        let calls: Vec<_> = (0..3)
            .map(|n| {
                let room = room.clone();
                kit.spawn(async move { ask(&room, &format!("/{n}")).await })
            })
            .collect();
        let streamed = {
            let room = room.clone();
            kit.spawn(async move { ask(&room, "/stream").await })
        };
        kit.advance(Duration::from_secs(60)).await;
        let steps = kit.steps();

        let mut acknowledged = Vec::new();
        let mut failed = 0;
        for (n, call) in calls.into_iter().enumerate() {
            // Each has an answer by now, or this panics: nothing else is left to happen.
            match call.await {
                Ok(booked) => {
                    assert_eq!(booked, format!("begin /{n}"));
                    acknowledged.push(format!("end /{n}"));
                }
                Err(error) => {
                    failed += 1;
                    assert!(!error.to_string().is_empty());
                }
            }
        }
        if let Ok(chunks) = streamed.await {
            assert_eq!(chunks, "chunk 0chunk 1chunk 2");
            acknowledged.extend((0..3).map(|n| format!("chunk {n}")));
        }
        kit.heal();
        let (kept, booked) = (log(&room).await, log(&book).await);
        for line in &acknowledged {
            assert!(kept.contains(line), "{line} was acknowledged and lost: {kept:?}\n{}", kit.history());
        }
        for line in seen.borrow().iter().chain(&booked) {
            assert!(kept.contains(line), "{line} was told and never written: {kept:?}\n{}", kit.history());
        }
        // An alarm was set in the same turn, and nothing takes it back.
        let begun = kept.iter().any(|line| line.starts_with("begin"));
        assert!(!begun || kept.iter().any(|line| line == "alarm"), "no alarm: {kept:?}\n{}", kit.history());
        kit.crash();
        for end in ends {
            assert!(["lost", "refused"].contains(&end.await));
        }
        Run { steps, failed, history: kit.history() }
    })
}

#[test]
fn a_run_that_nothing_strikes_succeeds_with_any_seed() {
    for seed in 0..20 {
        assert_eq!(run(seed, |_| ()).failed, 0, "seed {seed}");
    }
}

#[test]
fn a_strike_at_any_step_makes_nothing_untrue_that_was_told() {
    const SEED: u64 = 3;
    let steps = run(SEED, |_| ()).steps;
    assert!(steps > 50, "{steps}");
    // The last two need not make a call fail: its one turn ends at once, or it keeps its object in memory.
    let strikes: [(MakeStrike, bool); 5] = [
        (|_| Strike::Crash, true),
        (|_| Strike::LosePower, true),
        (|kit| Strike::Evict(stub(kit, "ROOM")), true),
        (|kit| Strike::Evict(stub(kit, "BOOK")), false),
        (|kit| Strike::Hibernate(stub(kit, "ROOM")), false),
    ];
    for (first, (strike, fails)) in (0..).zip(strikes) {
        // Every third, and others for each strike: all of them take long.
        let struck = (first % 3..steps).step_by(3);
        let failed: usize = struck.map(|step| run(SEED, |kit| kit.at_step(step, &strike(kit))).failed).sum();
        assert_eq!(failed > 0, fails, "strike {first} made {failed} calls fail");
    }
}

#[test]
fn two_strikes_and_repeated_late_alarms_together() {
    for seed in 0..15 {
        let steps = run(seed, |_| ()).steps;
        let disturbed = || {
            run(seed, |kit| {
                kit.late_alarms(Duration::from_millis(1_700));
                kit.repeat_alarms(2);
                kit.at_step(seed * 7 % steps, &Strike::LosePower);
                kit.at_step(seed * 13 % steps, &Strike::Evict(stub(kit, "ROOM")));
                kit.at_random(&Strike::Crash, 0.01);
                kit.at_random(&Strike::Hibernate(stub(kit, "BOOK")), 0.1);
            })
        };
        // Faults are as repeatable as the rest.
        assert_eq!(disturbed().history, disturbed().history, "seed {seed}");
    }
}

#[test]
fn every_kind_of_failing_at_every_depth() {
    let all = [
        Failing::Sql,
        Failing::SetAlarm,
        Failing::Commit,
        Failing::CrashBeforeCommit,
        Failing::CrashAfterCommit,
    ];
    for seed in 0..5 {
        for what in all {
            for times in 1..8 {
                run(seed, |kit| {
                    for _ in 0..times {
                        kit.fail_next(&stub(kit, "ROOM"), what);
                    }
                });
            }
            run(seed, |kit| kit.fail_next(&stub(kit, "BOOK"), what));
        }
        run(seed, |kit| {
            for what in all {
                kit.fail_next(&stub(kit, "ROOM"), what);
                kit.fail_next(&stub(kit, "BOOK"), what);
            }
        });
    }
}

#[test]
fn a_panic_of_an_object_is_the_callers_error_and_the_objects_reset() {
    let kit = kit(0);
    let room = stub(&kit, "ROOM");
    kit.run(async {
        let client = kit.connect(&room, "/join").await.unwrap();
        let error = ask(&room, "/panic").await.unwrap_err();
        assert_eq!(error.to_string(), "the object panicked: the room panics");
        assert_eq!(client.receive().await, Received::Lost);
        assert_eq!(log(&room).await, [""; 0]);
    });
}
