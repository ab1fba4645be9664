//! What is told of entries that expired: at least once each, and of none that did not.

use crate::lab::{
    Boxed, Lab, MINUTE, SECOND, Setup, armed, at_once, put, rows, stub, try_within, wakes, within,
};
use do_core::{
    ErrorKind, Failure,
    kit::{Failing, Strike},
    prelude::*,
};
use do_ttl::{Cause, Expired, Pace, Settings, Ttl};
use std::{cell::RefCell, collections::BTreeMap, rc::Rc};

thread_local! {
    /// What was told, over all instances: what was committed, and what was not.
    static TOLD: RefCell<Vec<Expired>> = RefCell::default();
}

fn told() -> Vec<Expired> {
    TOLD.take()
}

fn keys(told: &[Expired]) -> Vec<(&str, u32)> {
    told.iter().map(|one| (one.key.as_str(), one.attempt)).collect()
}

fn note(_: Rc<Lab>, one: Expired) -> Boxed<Result<()>> {
    TOLD.with_borrow_mut(|told| told.push(one));
    Box::pin(async { Ok(()) })
}

/// Notes and fails for keys that begin with "bad".
fn fail_bad(_: Rc<Lab>, one: Expired) -> Boxed<Result<()>> {
    let is_bad = one.key.starts_with("bad");
    TOLD.with_borrow_mut(|told| told.push(one));
    Box::pin(async move { if is_bad { Err(Failure::msg("bad")) } else { Ok(()) } })
}

/// Notes, and takes five seconds.
fn slow(lab: Rc<Lab>, one: Expired) -> Boxed<Result<()>> {
    TOLD.with_borrow_mut(|told| told.push(one));
    Box::pin(async move {
        lab.state.sleep(SECOND * 5).await;
        Ok(())
    })
}

#[test]
fn each_entry_that_expires_is_told_once_with_what_it_was() {
    told();
    for slot in [false, true] {
        let kit = Setup { slot, ..Setup::told(note) }.start();
        kit.run(async {
            put(&kit, "b", 60).await;
            put(&kit, "a", 61).await;
            put(&kit, "removed", 60).await;
            put(&kit, "taken", 60).await;
            put(&kit, "renewed", 60).await;
            put(&kit, "touched", 60).await;
            put(&kit, "later", 600).await;
            let b = at_once(&kit, |lab| {
                lab.first().remove("removed").unwrap();
                lab.first().take("taken").unwrap();
                let _ = lab.first().put("renewed", "2", Ttl::secs(600)).unwrap();
                assert!(lab.first().touch("touched", Ttl::secs(600)).unwrap());
                lab.first().get_entry("b").unwrap().unwrap()
            })
            .await;
            kit.advance(MINUTE * 5).await;
            let told = told();
            assert_eq!(keys(&told), [("b", 1), ("a", 1)]);
            assert_eq!(
                (
                    told[0].store.as_str(),
                    &told[0].value,
                    told[0].version,
                    Some(told[0].expires),
                    told[0].cause
                ),
                ("s", &b.value, b.version, b.expires, Cause::Expired)
            );
            assert_eq!((rows(&kit).await, wakes().len()), (3, 1));
            kit.advance(MINUTE * 10).await;
            assert_eq!(rows(&kit).await, 0);
        });
        told();
    }
}

#[test]
fn one_whose_handler_fails_is_told_again_and_again_and_the_others_do_not_wait() {
    told();
    let kit = Setup::told(fail_bad).start();
    kit.run(async {
        put(&kit, "bad", 60).await;
        put(&kit, "good", 60).await;
        kit.advance(SECOND * 61).await;
        assert_eq!(keys(&told()), [("bad", 1), ("good", 1)]);
        let begin = kit.now();
        // It is out of its store: nothing of the store waits for it.
        at_once(&kit, |lab| assert_eq!(lab.first().stats().unwrap().backlog, 0)).await;
        let mut at = Vec::new();
        for attempt in 2..=15 {
            let mut one = told();
            while one.is_empty() {
                kit.advance(SECOND).await;
                one = told();
            }
            assert_eq!(keys(&one), [("bad", attempt)]);
            at.push(begin.until(kit.now()).as_secs());
        }
        // 1, 2, 4.. and an hour at most, each with the slack.
        let gaps: Vec<_> = at.iter().scan(0, |last, at| Some(at - std::mem::replace(last, *at))).collect();
        for (n, gap) in gaps.iter().enumerate() {
            let expected = (1_u64 << n).min(3_600);
            assert!((expected..=expected + 2).contains(gap), "{gaps:?}");
        }
        // Not lost by a crash, and told as soon as it can be.
        kit.crash();
        Setup::told(note).becomes();
        kit.advance(MINUTE * 61).await;
        assert_eq!(keys(&told()), [("bad", 16)]);
        assert_eq!(rows(&kit).await, 0);
        assert_eq!(armed(&kit).await, None);
    });
}

#[test]
fn one_that_is_overwritten_before_it_was_told_is_told_all_the_same() {
    told();
    let kit = Setup::told(note).start();
    kit.late_alarms(MINUTE * 10);
    kit.run(async {
        put(&kit, "a", 60).await;
        kit.advance(MINUTE * 2).await;
        at_once(&kit, |lab| {
            let _ = lab.first().put("a", "second", Ttl::secs(60)).unwrap();
        })
        .await;
        kit.advance(MINUTE * 2).await;
        at_once(&kit, |lab| {
            let _ = lab.first().put("a", "third", Ttl::NEVER).unwrap();
        })
        .await;
        kit.crash();
        kit.advance(MINUTE * 20).await;
        let told = told();
        let values: Vec<_> = told.iter().map(|one| one.value.as_ref()).collect();
        assert_eq!(values, [b"a".as_slice(), b"second"]);
        assert_ne!(told[0].version, told[1].version);
        assert_eq!(rows(&kit).await, 1);
    });
}

#[test]
fn what_happens_to_a_key_while_its_handler_runs_is_kept_and_it_is_told_once() {
    type Change = fn(&Lab);
    let changes: [(&str, Change, i64, Option<&[u8]>); 5] = [
        (
            "put",
            |lab| {
                let _ = lab.first().put("a", "2", Ttl::NEVER).unwrap();
            },
            1,
            Some(b"2"),
        ),
        (
            "put and expired",
            |lab| {
                let _ = lab.first().put("a", "2", Ttl::millis(1)).unwrap();
            },
            0,
            None,
        ),
        ("remove", |lab| assert!(!lab.first().remove("a").unwrap()), 0, None),
        ("take", |lab| assert_eq!(lab.first().take("a").unwrap(), None), 0, None),
        ("delete all", |lab| lab.state.delete_all().unwrap(), 0, None),
    ];
    for (name, change, left, value) in changes {
        told();
        let kit = Setup::told(slow).start();
        kit.run(async {
            put(&kit, "a", 60).await;
            kit.advance(SECOND * 63).await;
            at_once(&kit, change).await;
            kit.advance(MINUTE).await;
            assert_eq!(rows(&kit).await, left, "{name}");
            let found = at_once(&kit, |lab| lab.first().get("a").unwrap()).await;
            assert_eq!(found.as_deref(), value, "{name}");
            let told = told();
            let expected: &[(&str, u32)] =
                if name == "put and expired" { &[("a", 1), ("a", 1)] } else { &[("a", 1)] };
            assert_eq!(keys(&told), expected, "{name}");
            if let [one, two] = &told[..] {
                assert_ne!(one.version, two.version);
            }
        });
    }
}

#[test]
fn what_a_handler_puts_for_the_key_that_it_is_told_of_stays() {
    told();
    let kit = Setup::told(|lab, one| {
        let again = if one.value.len() < 4 { Ttl::secs(60) } else { Ttl::NEVER };
        let _ = lab.first().put(&one.key, [&one.value[..], b"+"].concat(), again).unwrap();
        note(lab, one)
    })
    .start();
    kit.run(async {
        put(&kit, "a", 60).await;
        kit.advance(MINUTE * 30).await;
        assert_eq!(told().len(), 4);
        let found = at_once(&kit, |lab| lab.first().get("a").unwrap()).await;
        assert_eq!((found.as_deref(), rows(&kit).await), (Some(b"a++++".as_slice()), 1));
    });
}

#[test]
fn what_is_evicted_is_told_and_says_so() {
    told();
    let stores = vec![("s", Settings::new().notify(true).max_entries(2))];
    let kit = Setup { stores, ..Setup::told(note) }.start();
    kit.run(async {
        put(&kit, "a", 600).await;
        put(&kit, "b", 500).await;
        put(&kit, "c", 700).await;
        // Soon, not when it would have expired.
        kit.advance(SECOND * 2).await;
        let first = told();
        assert_eq!(keys(&first), [("b", 1)]);
        assert_eq!(first[0].cause, Cause::Evicted);
        // One that is expired and makes room expired.
        kit.late_alarms(MINUTE * 60);
        kit.advance(MINUTE * 11).await;
        put(&kit, "d", 700).await;
        kit.late_alarms(Duration::ZERO);
        kit.advance(MINUTE * 60).await;
        let mut second = told();
        second.sort_by(|a, b| a.key.cmp(&b.key));
        assert_eq!(keys(&second), [("a", 1), ("c", 1), ("d", 1)]);
        assert!(second.iter().all(|one| one.cause == Cause::Expired));
        let usage = at_once(&kit, |lab| lab.first().stats().unwrap().usage.unwrap()).await;
        assert_eq!((usage.entries, usage.bytes, rows(&kit).await), (0, 0, 0));
    });
}

#[test]
fn an_alarm_that_tells_nobody_says_so_and_sweeps_the_other_stores() {
    told();
    let stores = vec![("a", Settings::new()), ("s", Settings::new().notify(true)), ("z", Settings::new())];
    let kit = Setup { stores: stores.clone(), ..Setup::new() }.start();
    kit.run(async {
        at_once(&kit, |lab| {
            for store in ["a", "s", "z"] {
                let _ = lab.store(store).put("k", "1", Ttl::secs(60)).unwrap();
            }
        })
        .await;
        kit.advance(SECOND * 62).await;
        assert_eq!(rows(&kit).await, 1);
        let error = within(&kit, |lab| async move { lab.sweeper.on_alarm().await.unwrap_err() }).await;
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert_eq!(
            error.to_string(),
            "the store \"s\" notifies: call Sweeper::on_alarm_with, or open it without"
        );
        assert_eq!(at_once(&kit, |lab| lab.store("s").get("k").unwrap()).await, None);
        // A later version of the code does.
        Setup { stores, ..Setup::told(note) }.becomes();
        kit.crash();
        rows(&kit).await;
        kit.advance(MINUTE * 3).await;
        assert_eq!((keys(&told()), rows(&kit).await), (vec![("k", 1)], 0));
    });
}

#[test]
fn of_a_store_that_is_not_open_is_told_too_and_not_of_one_that_does_not_notify() {
    told();
    let both =
        vec![("quiet", Settings::new()), ("old", Settings::new()), ("s", Settings::new().notify(true))];
    let kit = Setup { stores: both, ..Setup::told(note) }.start();
    kit.run(async {
        at_once(&kit, |lab| {
            for store in ["quiet", "old", "s"] {
                let _ = lab.store(store).put(store, "1", Ttl::secs(60)).unwrap();
            }
        })
        .await;
        Setup { stores: vec![("quiet", Settings::new())], ..Setup::told(note) }.becomes();
        kit.crash();
        kit.advance(MINUTE * 2).await;
        let told = told();
        let stores: Vec<_> = told.iter().map(|one| one.store.as_str()).collect();
        assert_eq!((stores, rows(&kit).await), (vec!["old", "s"], 0));
    });
}

#[test]
fn what_a_handler_writes_at_its_end_is_one_commit_with_the_forgetting_of_the_notice() {
    // Counts in the object's database what was told, and is struck at each step.
    let pace = Pace::new().slice_rows(2).rows_per_wake(3).slack(Duration::ZERO);
    let count = |lab: Rc<Lab>, one: Expired| -> Boxed<Result<()>> {
        Box::pin(async move {
            if one.key == "2" {
                lab.state.sleep(Duration::from_millis(5)).await;
            }
            lab.state.sql().exec("CREATE TABLE IF NOT EXISTS told (key TEXT)", ())?;
            lab.state.sql().exec("INSERT INTO told VALUES (?)", (one.key.as_str(),))?;
            if one.key == "3" && one.attempt == 1 {
                return Err(Failure::msg("once"));
            }
            Ok(())
        })
    };
    for strike in [Strike::Crash, Strike::LosePower] {
        let test = |step: Option<u64>| {
            let kit = Setup { pace, ..Setup::told(count) }.start();
            if let Some(step) = step {
                kit.at_step(step, &strike);
            }
            kit.run(async {
                let done = try_within(&kit, |lab| async move {
                    for n in 0..5 {
                        let _ = lab.first().put(&n.to_string(), "1", Ttl::secs(60)).unwrap();
                    }
                })
                .await;
                kit.advance(SECOND * 90).await;
                let steps = kit.steps();
                kit.heal();
                let (left, counts) = at_once(&kit, |lab| {
                    let sql = lab.state.sql();
                    let rows = sql.exec("SELECT key, count(*) FROM told GROUP BY key", ());
                    let read = |row: do_core::Row<'_>| (row.at(0).unwrap(), row.at(1).unwrap());
                    let counts: BTreeMap<String, i64> =
                        rows.map_or_else(|_| BTreeMap::new(), |rows| rows.iter().map(read).collect());
                    (lab.rows(), counts)
                })
                .await;
                assert_eq!(left, 0, "{step:?}");
                if done.is_ok() {
                    let expected = [("0", 1), ("1", 1), ("2", 1), ("3", 2), ("4", 1)];
                    let expected = expected.map(|(key, n)| (key.to_owned(), n)).into();
                    assert_eq!(counts, expected, "{step:?}\n{}", kit.history());
                }
                steps
            })
        };
        for step in 0..test(None) {
            test(Some(step));
        }
    }
}

#[test]
fn storage_that_fails_while_a_notice_is_put_away_tells_it_again() {
    for failing in [Failing::Sql, Failing::Commit] {
        told();
        let kit = Setup::told(slow).start();
        kit.run(async {
            put(&kit, "a", 60).await;
            kit.advance(SECOND * 63).await;
            kit.fail_next(&stub(&kit), failing);
            kit.advance(MINUTE).await;
            assert_eq!((keys(&told()), rows(&kit).await), (vec![("a", 1), ("a", 1)], 0), "{failing:?}");
        });
    }
}

#[test]
fn a_run_that_is_cut_off_tells_the_rest_in_the_next_one() {
    told();
    // Each takes more than 3 minutes: the platform would cut the run off after 15.
    let kit = Setup::told(|lab, one| {
        TOLD.with_borrow_mut(|told| told.push(one));
        Box::pin(async move {
            lab.state.sleep(SECOND * 200).await;
            Ok(())
        })
    })
    .start();
    kit.run(async {
        for key in ["a", "b", "c", "d", "e", "f", "g"] {
            put(&kit, key, 60).await;
        }
        kit.advance(MINUTE * 60).await;
        assert_eq!(told().len(), 7);
        assert_eq!((rows(&kit).await, wakes().len()), (0, 3));
    });
}

#[test]
fn a_handler_that_panics_or_does_not_end_has_failed_and_is_in_nobodys_way() {
    told();
    let kit = Setup::told(|_, one| {
        let (key, attempt) = (one.key.clone(), one.attempt);
        TOLD.with_borrow_mut(|told| told.push(one));
        Box::pin(async move {
            match key.as_str() {
                "panics" if attempt == 1 => panic!("a handler of a test"),
                "hangs" if attempt == 1 => std::future::pending().await,
                _ => Ok(()),
            }
        })
    })
    .start();
    kit.run(async {
        put(&kit, "panics", 60).await;
        put(&kit, "hangs", 61).await;
        put(&kit, "well", 61).await;
        kit.advance(MINUTE * 10).await;
        assert_eq!(keys(&told()), [("panics", 1), ("hangs", 1), ("well", 1), ("panics", 2), ("hangs", 2)]);
        assert_eq!(rows(&kit).await, 0);
    });
}

/// A store of ten entries that notifies.
fn small() -> Vec<(&'static str, Settings)> {
    vec![("s", Settings::new().notify(true).max_entries(10).max_bytes(1 << 20))]
}

/// Puts out so many entries, of so many bytes each, in one turn.
fn evict(lab: &Lab, n: u32, bytes: usize) {
    for key in 0..n {
        let _ = lab.first().put(&format!("{key:02}"), vec![b'v'; bytes], Ttl::secs(6_000)).unwrap();
    }
    for key in 0..n {
        let _ = lab.first().put(&format!("new {key:02}"), vec![b'v'; bytes], Ttl::NEVER).unwrap();
    }
}

#[test]
fn an_alarm_that_tells_nobody_of_what_was_evicted_says_so_and_is_not_set_again_and_again() {
    let kit = Setup { stores: small(), ..Setup::new() }.start();
    kit.run(async {
        at_once(&kit, |lab| evict(lab, 10, 1)).await;
        kit.advance(MINUTE * 60).await;
        // As often as an alarm that fails is tried again, and the mending of it.
        let wakes = wakes().len();
        assert!((7..=240).contains(&wakes), "{wakes}");
        let error = within(&kit, |lab| async move { lab.sweeper.on_alarm().await.unwrap_err() }).await;
        assert_eq!(error.kind(), ErrorKind::Invalid);
        let stats = at_once(&kit, |lab| (lab.first().stats().unwrap(), lab.rows())).await;
        assert_eq!((stats.0.notices, stats.0.backlog, stats.1), (10, 0, 20));
        told();
        Setup { stores: small(), ..Setup::told(note) }.becomes();
        kit.crash();
        rows(&kit).await;
        kit.advance(MINUTE * 3).await;
        let notices = at_once(&kit, |lab| lab.first().stats().unwrap().notices).await;
        assert_eq!((told().len(), notices, rows(&kit).await), (10, 0, 10));
    });
}

#[test]
fn many_notices_of_one_moment_are_told_in_the_order_in_which_they_came() {
    told();
    let stores = vec![("s", Settings::new().notify(true).max_entries(500))];
    let kit = Setup { stores, ..Setup::told(note) }.start();
    kit.run(async {
        at_once(&kit, |lab| {
            // The later one expires first.
            for n in 0..500 {
                let _ = lab.first().put(&format!("{n:03}"), "v", Ttl::secs(6_000 - n)).unwrap();
            }
            for n in 0..500 {
                let _ = lab.first().put(&format!("new {n:03}"), "v", Ttl::NEVER).unwrap();
            }
        })
        .await;
        kit.advance(SECOND * 2).await;
        let told = told();
        let expected: Vec<_> = (0..500).rev().map(|n| format!("{n:03}")).collect();
        assert_eq!(told.iter().map(|one| one.key.as_str()).collect::<Vec<_>>(), expected);
        assert_eq!((rows(&kit).await, wakes().len()), (500, 1));
    });
}

#[test]
fn a_slice_with_a_handler_ends_with_its_bytes_too() {
    for evicted in [false, true] {
        for (pace, slices) in [
            (Pace::new(), 1),
            (Pace::new().slice_rows(4), 3),
            (Pace::new().slice_bytes(3_000), 4),
            (Pace::new().slice_bytes(1), 11),
        ] {
            told();
            let kit = Setup { pace, stores: small(), ..Setup::told(note) }.start();
            kit.run(async {
                at_once(&kit, move |lab| {
                    if evicted {
                        return evict(lab, 10, 1_000);
                    }
                    for key in 0..10 {
                        let value = vec![b'v'; 1_000];
                        let _ = lab.first().put(&key.to_string(), value, Ttl::millis(100)).unwrap();
                    }
                })
                .await;
                let before = kit.history().len();
                kit.advance(SECOND * 2).await;
                let commits = kit.history()[before..].matches("commits").count();
                assert_eq!((told().len(), wakes().len(), commits), (10, 1, slices), "{evicted} {pace:?}");
            });
        }
    }
}

#[test]
fn a_run_that_waits_for_another_one_is_over_in_time_too() {
    told();
    // Each takes more than 3 minutes: the platform would cut the run off after 15.
    let kit = Setup::told(|lab, one| {
        TOLD.with_borrow_mut(|told| told.push(one));
        Box::pin(async move {
            lab.state.sleep(SECOND * 200).await;
            Ok(())
        })
    })
    .start();
    kit.run(async {
        for key in ["a", "b", "c", "d", "e", "f", "g", "h", "i"] {
            put(&kit, key, 60).await;
        }
        let world = kit.clone();
        let other = kit.spawn(async move {
            within(&world, |lab| async move {
                lab.state.sleep(Duration::from_millis(60_500)).await;
                lab.sweep().await.unwrap();
            })
            .await;
        });
        kit.advance(MINUTE * 60).await;
        other.await;
        let told = told();
        let expected = ["a", "b", "c", "d", "e", "f", "g", "h", "i"].map(|key| (key, 1));
        assert_eq!((keys(&told), rows(&kit).await), (expected.to_vec(), 0));
    });
}

#[test]
fn what_could_not_be_deleted_is_not_counted_as_expired() {
    const NO: &str = "CREATE TRIGGER no BEFORE DELETE ON _ttl BEGIN SELECT raise(ABORT, 'no'); END";
    for setup in [Setup::new(), Setup::told(note), Setup::told(fail_bad)] {
        let kit = setup.start();
        kit.run(async {
            put(&kit, "bad", 60).await;
            let expired = || at_once(&kit, |lab| lab.first().stats().unwrap().counters.expired);
            at_once(&kit, |lab| lab.state.sql().exec(NO, ()).unwrap()).await;
            kit.advance(SECOND * 62).await;
            assert_eq!((wakes().len(), expired().await), (1, 0));
            at_once(&kit, |lab| lab.state.sql().exec("DROP TRIGGER no", ()).unwrap()).await;
            kit.advance(SECOND * 10).await;
            assert_eq!(expired().await, 1);
        });
        told();
    }
}
