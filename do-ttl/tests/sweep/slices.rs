//! How much a run does at once, and in which order.

use crate::lab::{Lab, MINUTE, SECOND, Setup, at_once, put, rows, wakes, within};
use do_core::prelude::*;
use do_ttl::{Pace, Settings, Ttl};
use std::{cell::RefCell, rc::Rc};

fn fill(lab: &Lab, store: &str, n: u32, bytes: usize) {
    for key in 0..n {
        let value = vec![b'v'; bytes];
        let _ = lab.store(store).put(&format!("{key:05}"), value, Ttl::secs(60)).unwrap();
    }
}

thread_local! {
    /// What was there in each store when that changed.
    static SEEN: RefCell<Vec<Vec<u64>>> = RefCell::default();
}

/// Looks beside a run, in turns of its own, until nothing changes any more.
fn watch(lab: &Rc<Lab>) -> Result<()> {
    let lab = Rc::clone(lab);
    lab.state.clone().wait_until(async move {
        let mut since = 0;
        while since < 20 {
            let now: Vec<u64> = lab.stores().map(|store| store.stats().unwrap().backlog).collect();
            since = SEEN.with_borrow_mut(|seen| {
                if seen.last() == Some(&now) {
                    return since + 1;
                }
                seen.push(now);
                0
            });
            lab.state.sleep(Duration::ZERO).await;
        }
    });
    Ok(())
}

#[test]
fn t6_a_slice_is_a_turn() {
    for (pace, value, runs, slices) in [
        (Pace::new(), 100, 1, 1),
        (Pace::new().slice_rows(4), 100, 1, 3),
        // 4 and 2, and the rest in a run of its own right after.
        (Pace::new().slice_rows(4).rows_per_wake(6), 100, 2, 4),
        // Two rows each.
        (Pace::new().slice_rows(4), 1_000, 1, 5),
        // Of 1,005 bytes each.
        (Pace::new().slice_bytes(3_015), 1_000, 1, 4),
        (Pace::new().slice_bytes(1), 1_000, 1, 11),
    ] {
        let kit = Setup { pace, ..Setup::new() }.start();
        kit.run(async {
            at_once(&kit, move |lab| fill(lab, "s", 10, value)).await;
            kit.advance(MINUTE).await;
            let before = kit.history().len();
            kit.advance(SECOND * 2).await;
            assert_eq!(wakes().len(), runs, "{pace:?}");
            let commits = kit.history()[before..].matches("commits").count();
            assert_eq!(commits, slices, "{pace:?}");
            assert_eq!(rows(&kit).await, 0);
        });
    }
}

#[test]
fn t6_a_backlog_is_swept_at_once_however_large() {
    let pace = Pace::new().rows_per_wake(100);
    let kit = Setup { pace, ..Setup::new() }.start();
    kit.run(async {
        at_once(&kit, |lab| fill(lab, "s", 1_050, 10)).await;
        kit.advance(SECOND * 62).await;
        assert_eq!((rows(&kit).await, wakes().len()), (0, 11));
        kit.advance(MINUTE * 60).await;
        assert_eq!(wakes().len(), 0);
    });
}

#[test]
fn no_store_waits_for_another_to_be_done() {
    let pace = Pace::new().slice_rows(10).rows_per_wake(50);
    let names = ["a", "b", "c"];
    let stores = names.map(|name| (name, Settings::new())).to_vec();
    let kit = Setup { pace, stores, before: Some(watch), ..Setup::new() }.start();
    kit.run(async {
        at_once(&kit, |lab| {
            fill(lab, "a", 200, 1);
            fill(lab, "b", 20, 1);
            fill(lab, "c", 20, 1);
        })
        .await;
        SEEN.take();
        kit.advance(SECOND * 70).await;
        let seen = SEEN.take();
        // After 60 rows, those with 20 are done.
        let small = seen.iter().find(|left| left[1] + left[2] == 0).unwrap();
        assert!(small[0] >= 140, "{seen:?}");
        assert_eq!(wakes().len(), 5);
    });
}

#[test]
fn a_store_that_the_code_does_not_open_any_more_is_swept_too() {
    let setup = Setup { stores: vec![("old", Settings::new()), ("s", Settings::new())], ..Setup::new() };
    let kit = setup.start();
    kit.run(async {
        at_once(&kit, |lab| {
            fill(lab, "old", 3, 1);
            let _ = lab.store("old").put("for ever", "1", Ttl::NEVER).unwrap();
        })
        .await;
        Setup::new().becomes();
        kit.crash();
        kit.advance(MINUTE * 2).await;
        assert_eq!(rows(&kit).await, 1);
    });
}

#[test]
fn the_count_of_a_limited_store_follows_the_sweep() {
    let pace = Pace::new().slice_rows(3);
    let stores = vec![("s", Settings::new().max_entries(10))];
    let kit = Setup { pace, stores: stores.clone(), ..Setup::new() }.start();
    kit.run(async {
        at_once(&kit, |lab| {
            fill(lab, "s", 10, 1);
            let _ = lab.first().put("for ever", "1", Ttl::NEVER).unwrap();
        })
        .await;
        kit.advance(MINUTE * 2).await;
        let stats = at_once(&kit, |lab| lab.first().stats().unwrap()).await;
        assert_eq!(stats.usage.map(|usage| (usage.entries, usage.bytes)), Some((1, 9)));

        // One that nobody opens is kept right too.
        at_once(&kit, |lab| fill(lab, "s", 5, 1)).await;
        Setup { stores: vec![("t", Settings::new())], pace, ..Setup::new() }.becomes();
        kit.crash();
        kit.advance(MINUTE * 2).await;
        Setup { pace, stores: stores.clone(), ..Setup::new() }.becomes();
        kit.crash();
        let stats = at_once(&kit, |lab| lab.first().stats().unwrap()).await;
        assert_eq!(stats.usage.map(|usage| (usage.entries, usage.bytes)), Some((1, 9)));
    });
}

#[test]
fn two_runs_at_once_are_one_after_the_other() {
    let pace = Pace::new().slice_rows(2);
    let kit = Setup { pace, ..Setup::new() }.start();
    kit.run(async {
        at_once(&kit, |lab| fill(lab, "s", 20, 1)).await;
        let sweeps: Vec<_> = (0..3)
            .map(|_| {
                let kit = kit.clone();
                async move {
                    within(&kit, |lab| async move {
                        lab.state.sleep(SECOND * 61).await;
                        lab.sweep().await.unwrap();
                        lab.rows()
                    })
                    .await
                }
            })
            .map(|sweep| kit.spawn(sweep))
            .collect();
        kit.advance(SECOND * 62).await;
        for sweep in sweeps {
            assert_eq!(sweep.await, 0);
        }
        assert_eq!(wakes().len(), 1);
        put(&kit, "again", 60).await;
        kit.advance(MINUTE * 2).await;
        assert_eq!((rows(&kit).await, wakes().len()), (0, 1));
    });
}

#[test]
fn a_run_that_no_alarm_began_leaves_the_alarm_as_it_is() {
    let kit = Setup::new().start();
    kit.run(async {
        put(&kit, "a", 60).await;
        within(&kit, |lab| async move {
            lab.sweep().await.unwrap();
            assert_eq!(lab.first().stats().unwrap().alarms_set, 1);
        })
        .await;
        kit.advance(MINUTE * 2).await;
        assert_eq!((rows(&kit).await, wakes().len()), (0, 1));
    });
}
