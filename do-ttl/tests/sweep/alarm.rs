//! When the alarm is set, and what it survives.

use crate::lab::{
    Lab, MINUTE, SECOND, Setup, armed, at_once, jobs, put, rows, stub, try_within, wakes, within,
};
use do_core::{
    Failure,
    kit::{Failing, Kit, Strike},
    prelude::*,
};
use do_ttl::{Pace, Settings, Ttl};
use futures::FutureExt;
use std::{cell::Cell, rc::Rc};

#[test]
fn t4_the_alarm_is_set_only_when_something_expires_sooner_and_never_later_by_a_put() {
    let kit = Setup::new().start();
    kit.run(async {
        let begin = kit.now();
        put(&kit, "a", 60).await;
        assert_eq!(armed(&kit).await, Some(begin + MINUTE + SECOND));
        for (key, seconds, expected, sets) in
            [("b", 120, 61, 1), ("a", 600, 61, 1), ("c", 30, 31, 2), ("c", 30, 31, 2), ("d", 31, 31, 2)]
        {
            put(&kit, key, seconds).await;
            assert_eq!(armed(&kit).await, Some(begin + SECOND * expected), "{key} {seconds}");
            let set = at_once(&kit, |lab| lab.first().stats().unwrap().alarms_set).await;
            assert_eq!(set, sets, "{key} {seconds}");
        }
        // What expires within the slack is swept with it.
        kit.advance(SECOND * 30).await;
        assert_eq!((wakes().len(), rows(&kit).await), (0, 4));
        kit.advance(SECOND).await;
        assert_eq!((wakes(), rows(&kit).await), (vec![begin + SECOND * 31], 2));
        assert_eq!(armed(&kit).await, Some(begin + SECOND * 121));
    });
}

#[test]
fn t5_what_expires_within_the_slack_shares_a_wake() {
    for (slack, apart, expected) in
        [(SECOND, 10, 1), (SECOND, 500, 34), (MINUTE, 500, 1), (Duration::ZERO, 10, 100)]
    {
        let kit = Setup { pace: Pace::new().slack(slack), ..Setup::new() }.start();
        kit.run(async {
            at_once(&kit, move |lab| {
                for n in 0..100 {
                    let _ = lab.first().put(&n.to_string(), "1", Ttl::millis(60_000 + n * apart)).unwrap();
                }
            })
            .await;
            kit.advance(MINUTE * 5).await;
            assert_eq!((wakes().len(), rows(&kit).await), (expected, 0), "{slack:?} {apart} ms");
        });
    }
}

#[test]
fn t8_what_is_empty_or_never_expires_has_no_alarm_and_costs_one_wake_at_most() {
    let kit = Setup::new().start();
    kit.run(async {
        at_once(&kit, |lab| {
            lab.first().get("a").unwrap();
            let _ = lab.first().put("a", "1", Ttl::NEVER).unwrap();
            let _ = lab.first().put("b", "1", Ttl::secs(0)).unwrap();
        })
        .await;
        assert_eq!(armed(&kit).await, None);
        put(&kit, "c", 60).await;
        at_once(&kit, |lab| assert!(lab.first().remove("c").unwrap())).await;
        kit.advance(MINUTE * 600).await;
        assert_eq!(wakes().len(), 1);
        kit.crash();
        kit.advance(MINUTE * 600).await;
        assert!(at_once(&kit, |lab| lab.first().contains("a").unwrap()).await);
        assert_eq!((wakes().len(), armed(&kit).await), (0, None));
    });
}

/// Puts in a transaction that is rolled back.
fn roll_back(lab: &Lab, key: &str, seconds: i64) {
    let rolled = lab.state.sql().transaction(|| -> Result<()> {
        let _ = lab.first().put(key, "1", Ttl::secs(seconds))?;
        Err(Failure::msg("no"))
    });
    assert!(rolled.is_err());
}

#[test]
fn e13_a_put_that_is_rolled_back_takes_its_alarm_with_it_and_the_next_ones_have_theirs() {
    let kit = Setup::new().start();
    kit.run(async {
        let begin = kit.now();
        at_once(&kit, |lab| roll_back(lab, "a", 10)).await;
        assert_eq!((armed(&kit).await, rows(&kit).await), (None, 0));
        put(&kit, "b", 60).await;
        assert_eq!(armed(&kit).await, Some(begin + SECOND * 61));

        // In the turn of the rollback, one that would come behind what is not there any more.
        at_once(&kit, move |lab| {
            roll_back(lab, "c", 10);
            let _ = lab.first().put("d", "1", Ttl::secs(20)).unwrap();
            // In the turn itself: one commit, behind which the process may die.
            let armed = lab.state.alarms().get().now_or_never().unwrap().unwrap();
            assert_eq!(armed, Some(begin + SECOND * 21));
        })
        .await;
        kit.settle().await;
        assert_eq!(armed(&kit).await, Some(begin + SECOND * 21));
        at_once(&kit, |lab| {
            roll_back(lab, "c", 10);
            let _ = lab.first().put("d", "1", Ttl::secs(300)).unwrap();
        })
        .await;
        kit.advance(SECOND * 61).await;
        assert_eq!((rows(&kit).await, wakes().len()), (1, 2));
        assert_eq!(armed(&kit).await, Some(begin + SECOND * 301));

        // What an instance knows after it lost its belief within a transaction.
        kit.crash();
        at_once(&kit, |lab| roll_back(lab, "e", 1)).await;
        put(&kit, "f", 100).await;
        kit.settle().await;
        assert_eq!(armed(&kit).await, Some(kit.now() + SECOND * 101));
    });
}

#[test]
fn e12_what_the_constructor_puts_is_swept_whatever_woke_the_object() {
    for slot in [false, true] {
        let born: fn(&Lab) = |lab| {
            let _ = lab.first().put("born", "1", Ttl::secs(60)).unwrap();
        };
        let kit = Setup { slot, born: Some(born), ..Setup::new() }.start();
        kit.run(async {
            let begin = kit.now();
            assert_eq!(rows(&kit).await, 1);
            kit.settle().await;
            assert_eq!(armed(&kit).await, Some(begin + SECOND * 61), "slot {slot}");
            // The alarm makes an instance, whose constructor puts.
            kit.crash();
            kit.advance(SECOND * 61).await;
            assert_eq!(wakes().len(), 1);
            kit.advance(SECOND * 61).await;
            assert_eq!(wakes().len(), 1, "slot {slot}");
            kit.crash();
            assert_eq!(rows(&kit).await, 1);
        });
    }
}

#[test]
fn an_alarm_that_cannot_be_set_does_not_fail_the_put_and_is_set_soon() {
    for failures in [1, 2, 3, 6] {
        let kit = Setup::new().start();
        kit.run(async {
            rows(&kit).await;
            for _ in 0..failures {
                kit.fail_next(&stub(&kit), Failing::SetAlarm);
            }
            put(&kit, "a", 60).await;
            put(&kit, "b", 30).await;
            put(&kit, "c", 90).await;
            // Tried after 1, 5, 21 and 85 s at the latest.
            kit.advance(SECOND * 151).await;
            assert_eq!(rows(&kit).await, 0, "{failures}");
            let wakes = wakes().len();
            assert!((2..=4).contains(&wakes), "{failures}: {wakes}");
        });
    }
}

#[test]
fn an_alarm_that_could_not_be_set_before_a_crash_is_set_with_the_next_event() {
    let kit = Setup::new().start();
    kit.run(async {
        rows(&kit).await;
        for _ in 0..9 {
            kit.fail_next(&stub(&kit), Failing::SetAlarm);
        }
        put(&kit, "a", 60).await;
        kit.crash();
        kit.heal();
        assert_eq!(armed(&kit).await, None);
        kit.settle().await;
        assert!(armed(&kit).await.is_some());
        kit.advance(MINUTE * 2).await;
        assert_eq!((rows(&kit).await, wakes().len()), (0, 1));
    });
}

#[test]
fn t7_e7_a_run_that_fails_comes_again() {
    for failing in [Failing::Sql, Failing::SetAlarm, Failing::Commit, Failing::CrashBeforeCommit] {
        let kit = Setup::new().start();
        kit.run(async {
            put(&kit, "a", 60).await;
            put(&kit, "b", 120).await;
            kit.advance(MINUTE).await;
            kit.fail_next(&stub(&kit), failing);
            kit.advance(SECOND * 10).await;
            assert_eq!((rows(&kit).await, wakes().len()), (1, 2), "{failing:?}");
            kit.advance(MINUTE).await;
            assert_eq!((rows(&kit).await, wakes().len()), (0, 1), "{failing:?}");
        });
    }
}

thread_local! {
    static FAILING: Cell<bool> = const { Cell::new(false) };
}

#[test]
fn t7_e8_a_run_that_failed_until_it_was_given_up_begins_anew_with_the_next_use() {
    let before: fn(&Rc<Lab>) -> Result<()> =
        |_| if FAILING.get() { Err(Failure::msg("as it was told")) } else { Ok(()) };
    for stays in [false, true] {
        let kit = Setup { before: Some(before), ..Setup::new() }.start();
        kit.run(async {
            put(&kit, "a", 60).await;
            put(&kit, "b", 3_600).await;
            if stays {
                stay(&kit);
            }
            FAILING.set(true);
            kit.advance(MINUTE * 5).await;
            FAILING.set(false);
            assert_eq!(wakes().len(), 7);
            // A use is enough, no put.
            assert!(at_once(&kit, |lab| lab.first().get("b").unwrap().is_some()).await);
            kit.advance(SECOND).await;
            assert_eq!((rows(&kit).await, wakes().len()), (1, 1), "in memory all the time: {stays}");
        });
    }
}

/// The object stays in memory.
fn stay(kit: &Kit) {
    let world = kit.clone();
    drop(
        kit.spawn(
            async move { within(&world, |lab| async move { lab.state.sleep(MINUTE * 10).await }).await },
        ),
    );
}

#[test]
fn e10_a_put_during_a_run_that_fails_does_not_put_the_sweep_off() {
    for slot in [false, true] {
        let setup = Setup::told(|lab, _| {
            Box::pin(async move {
                lab.state.sleep(SECOND * 5).await;
                Ok(())
            })
        });
        let kit = Setup { slot, ..setup }.start();
        kit.run(async {
            put(&kit, "a", 60).await;
            kit.advance(SECOND * 63).await;
            // The run waits for its handler.
            put(&kit, "b", 3_600).await;
            put(&kit, "c", 600).await;
            kit.fail_next(&stub(&kit), Failing::Sql);
            kit.advance(SECOND * 30).await;
            assert_eq!((rows(&kit).await, wakes().len()), (2, 2), "slot {slot}");
            let soonest =
                within(&kit, |lab| async move { lab.first().get_entry("c").unwrap().unwrap().expires });
            assert_eq!(armed(&kit).await, soonest.await.map(|at| at + SECOND), "slot {slot}");
        });
    }
}

#[test]
fn e14_after_everything_was_deleted_a_put_has_its_alarm() {
    for slot in [false, true] {
        let kit = Setup { slot, ..Setup::new() }.start();
        kit.run(async {
            put(&kit, "a", 60).await;
            let begin = kit.now();
            at_once(&kit, |lab| {
                lab.state.delete_all().unwrap();
                let _ = lab.first().put("b", "1", Ttl::secs(90)).unwrap();
            })
            .await;
            assert_eq!(armed(&kit).await, Some(begin + SECOND * 91), "slot {slot}");
            at_once(&kit, |lab| lab.state.delete_all().unwrap()).await;
            assert_eq!(armed(&kit).await, None, "slot {slot}");
            at_once(&kit, |lab| assert_eq!(lab.first().get("b").unwrap(), None)).await;
            put(&kit, "c", 100).await;
            assert_eq!(armed(&kit).await, Some(begin + SECOND * 101), "slot {slot}");
            kit.advance(SECOND * 101).await;
            assert_eq!((rows(&kit).await, wakes().len()), (0, 1), "slot {slot}");
        });
    }
}

#[test]
fn e14_during_a_run_everything_is_deleted_and_what_is_put_then_has_its_alarm_in_a_crash_too() {
    let pace = Pace::new().slice_rows(1).slack(Duration::ZERO);
    // Deletes and puts between the slices of the run, and crashes before its end.
    let test = |strike: Option<u64>| {
        let kit = Setup { pace, ..Setup::new() }.start();
        kit.run(async {
            at_once(&kit, |lab| {
                for key in ["a", "b", "c"] {
                    let _ = lab.first().put(key, "1", Ttl::secs(60)).unwrap();
                }
            })
            .await;
            let before = kit.steps();
            if let Some(step) = strike {
                kit.at_step(step, &Strike::Crash);
            }
            let within = kit.spawn({
                let kit = kit.clone();
                async move {
                    let done = try_within(&kit, |lab| async move {
                        lab.state.sleep(MINUTE).await;
                        lab.state.delete_all().unwrap();
                        let _ = lab.first().put("z", "1", Ttl::secs(60)).unwrap();
                    });
                    done.await.is_ok()
                }
            });
            kit.advance(SECOND * 61).await;
            let _ = within.await;
            kit.advance(SECOND * 70).await;
            let steps = kit.steps();
            kit.heal();
            assert_eq!(rows(&kit).await, 0, "{strike:?}\n{}", kit.history());
            (before, steps)
        })
    };
    let (before, steps) = test(None);
    for step in before..steps {
        test(Some(step));
    }
}

#[test]
fn an_alarm_that_was_lost_is_mended_by_a_use_after_a_minute() {
    let kit = Setup::new().start();
    kit.run(async {
        for write in [false, true] {
            put(&kit, "a", 30).await;
            stay(&kit);
            kit.settle().await;
            within(&kit, |lab| async move { lab.state.alarms().delete().await.unwrap() }).await;
            kit.advance(SECOND * 95).await;
            assert_eq!((wakes().len(), rows(&kit).await), (0, 1));
            if write {
                put(&kit, "b", 3_600).await;
            } else {
                assert_eq!(at_once(&kit, |lab| lab.first().get("a").unwrap()).await, None);
            }
            kit.advance(SECOND).await;
            assert_eq!((wakes().len(), rows(&kit).await), (1, i64::from(write)));
        }
    });
}

#[test]
fn e16_doubled_and_late_alarms_change_nothing() {
    let kit = Setup::new().start();
    kit.run(async {
        kit.repeat_alarms(9);
        kit.late_alarms(SECOND * 7);
        put(&kit, "a", 60).await;
        put(&kit, "b", 120).await;
        kit.advance(SECOND * 67).await;
        assert_eq!(rows(&kit).await, 2);
        kit.advance(SECOND).await;
        assert_eq!(rows(&kit).await, 1);
        kit.advance(MINUTE * 2).await;
        assert_eq!(rows(&kit).await, 0);
        kit.advance(MINUTE * 60).await;
        assert!(wakes().len() <= 11);
    });
}

#[test]
fn t9_the_sweep_shares_the_alarm_with_the_jobs_of_a_schedule() {
    let kit = Setup { slot: true, ..Setup::new() }.start();
    kit.run(async {
        let begin = kit.now();
        within(&kit, move |lab| async move {
            let schedule = lab.schedule.clone().unwrap();
            schedule.put("tick", Plan::every(MINUTE).unwrap()).await.unwrap();
            for seconds in [30, 90, 600] {
                let _ = lab.first().put(&format!("{seconds}"), "1", Ttl::secs(seconds)).unwrap();
            }
        })
        .await;
        for (minutes, left) in [(1, 2), (2, 1), (9, 1), (11, 0)] {
            kit.advance(kit.now().until(begin + MINUTE * minutes + SECOND * 2)).await;
            assert_eq!(rows(&kit).await, left, "{minutes}");
        }
        assert_eq!(jobs(), 11);
        kit.crash();
        put(&kit, "x", 1).await;
        kit.advance(SECOND * 3).await;
        assert_eq!(rows(&kit).await, 0);
    });
}

#[test]
fn t19_a_crash_at_any_step_leaves_no_row_without_an_alarm() {
    let pace = Pace::new().slice_rows(2).rows_per_wake(3).slack(Duration::ZERO);
    for slot in [false, true] {
        for strike in [Strike::Crash, Strike::LosePower] {
            let test = |step: Option<u64>| {
                let stores = vec![("s", Settings::new()), ("t", Settings::new())];
                let kit = Setup { pace, slot, stores, ..Setup::new() }.start();
                if let Some(step) = step {
                    kit.at_step(step, &strike);
                }
                kit.run(async {
                    let world = kit.clone();
                    drop(kit.spawn(async move {
                        let puts = try_within(&world, |lab| async move {
                            for n in 0..4 {
                                let _ = lab.store("s").put(&n.to_string(), "1", Ttl::secs(60 - n)).unwrap();
                                let _ = lab.store("t").put(&n.to_string(), "1", Ttl::secs(50 + n)).unwrap();
                                lab.state.sleep(Duration::from_millis(1)).await;
                            }
                        });
                        puts.await.is_ok()
                    }));
                    kit.advance(SECOND * 75).await;
                    let steps = kit.steps();
                    kit.heal();
                    // Without an event since the crash: the alarm alone has to have done it.
                    assert_eq!(at_once(&kit, Lab::rows).await, 0, "{slot} {step:?}");
                    steps
                })
            };
            for step in 0..test(None) {
                test(Some(step));
            }
        }
    }
}

#[test]
fn t14_a_step_of_the_clock_does_not_stop_the_sweep() {
    let kit = Setup::new().start();
    kit.run(async {
        put(&kit, "a", 60).await;
        kit.step_wall(kit.now() + MINUTE * 10);
        kit.advance(SECOND * 2).await;
        assert_eq!(rows(&kit).await, 0);
        put(&kit, "b", 60).await;
        kit.step_wall(kit.now() - MINUTE * 60);
        assert!(at_once(&kit, |lab| lab.first().contains("b").unwrap()).await);
        put(&kit, "c", 60).await;
        kit.advance(MINUTE * 62).await;
        assert_eq!(rows(&kit).await, 0);
    });
}
