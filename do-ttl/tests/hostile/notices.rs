//! Handlers that misuse what they are given, and alarms that forget them.

use crate::lab::{Boxed, Lab, MINUTE, SECOND, Setup, armed, at_once, put, rows, try_within, wakes, within};
use do_core::{
    ErrorKind,
    kit::{Kit, Strike},
    prelude::*,
};
use do_ttl::{Cause, Expired, Pace, Settings, Ttl};
use std::{cell::RefCell, rc::Rc};

thread_local! {
    static TOLD: RefCell<Vec<Expired>> = RefCell::default();
    static SAID: RefCell<Vec<String>> = RefCell::default();
}

fn note(one: &Expired) {
    TOLD.with_borrow_mut(|told| told.push(one.clone()));
}

fn keys(told: &[Expired]) -> Vec<(&str, u32)> {
    told.iter().map(|one| (one.key.as_str(), one.attempt)).collect()
}

fn telling(settings: Settings, handler: impl Fn(Rc<Lab>, Expired) -> Boxed<Result<()>> + 'static) -> Setup {
    TOLD.take();
    SAID.take();
    let stores = vec![("s", settings.notify(true))];
    Setup { stores, ..Setup::told(handler) }
}

#[test]
fn a_handler_that_calls_the_sweep_is_told_so_at_once() {
    let handler = |lab: Rc<Lab>, one: Expired| -> Boxed<Result<()>> {
        Box::pin(async move {
            note(&one);
            let begin = lab.state.now();
            let inner = if one.key == "a" {
                lab.sweeper.on_alarm().await
            } else {
                lab.sweeper.on_alarm_with(async |_| Ok(())).await
            };
            assert_eq!(lab.state.now(), begin);
            let error = inner.unwrap_err();
            SAID.with_borrow_mut(|said| said.push(format!("{:?} {error}", error.kind())));
            Ok(())
        })
    };
    let kit = telling(Settings::new(), handler).start();
    kit.run(async {
        put(&kit, "a", 60).await;
        put(&kit, "b", 60).await;
        kit.advance(MINUTE * 30).await;
        assert_eq!(keys(&TOLD.take()), [("a", 1), ("b", 1)]);
        let said = SAID.take();
        assert_eq!(said.len(), 2);
        assert!(
            said.iter().all(|said| said.starts_with("Invalid") && said.contains("waits for itself")),
            "{said:?}"
        );
        assert_eq!((rows(&kit).await, armed(&kit).await), (0, None));
    });
}

#[test]
fn an_alarm_that_tells_nobody_of_what_was_evicted_says_so_and_does_not_spin() {
    TOLD.take();
    let stores = vec![("s", Settings::new().notify(true).max_entries(1))];
    let kit = Setup { stores: stores.clone(), ..Setup::new() }.start();
    kit.run(async {
        put(&kit, "a", 6_000).await;
        put(&kit, "b", 6_000).await;
        assert_eq!(rows(&kit).await, 2);
        kit.advance(SECOND * 10).await;
        assert!(wakes().len() < 20);
        let error = within(&kit, |lab| async move { lab.sweeper.on_alarm().await.unwrap_err() }).await;
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.to_string().contains("on_alarm_with"), "{error}");
        // Nothing is lost by it.
        let handler = |_: Rc<Lab>, one: Expired| -> Boxed<Result<()>> {
            note(&one);
            Box::pin(async { Ok(()) })
        };
        Setup { stores, ..Setup::told(handler) }.becomes();
        kit.crash();
        rows(&kit).await;
        kit.advance(MINUTE * 5).await;
        let told = TOLD.take();
        assert_eq!((keys(&told), told[0].cause, rows(&kit).await), (vec![("a", 1)], Cause::Evicted, 1));
    });
}

#[test]
fn an_alarm_that_never_tells_wakes_seldom() {
    for evicted in [false, true] {
        let kit = Setup { stores: vec![("s", Settings::new().notify(true).max_entries(1))], ..Setup::new() }
            .start();
        kit.run(async {
            put(&kit, "a", if evicted { 600_000 } else { 60 }).await;
            if evicted {
                put(&kit, "b", 600_000).await;
            }
            kit.advance(MINUTE * 60).await;
            let wakes = wakes().len();
            assert!((5..240).contains(&wakes), "{evicted} {wakes}");
        });
    }
}

#[test]
fn a_handler_that_puts_evicts_removes_and_clears_ends_and_nothing_is_lost_or_doubled() {
    let handler = |lab: Rc<Lab>, one: Expired| -> Boxed<Result<()>> {
        note(&one);
        Box::pin(async move {
            let store = lab.first();
            // Each expiry of a numbered key puts another; a full store evicts, which is told too.
            if let Some(n) = one.key.strip_prefix('n').and_then(|n| n.parse::<u32>().ok()).filter(|n| *n < 20)
            {
                let _ = store.put(&format!("n{}", n + 1), "1", Ttl::secs(3_600))?;
                let _ = store.put(&format!("m{n}"), "1", Ttl::secs(3_000))?;
            }
            store.remove("removed")?;
            if one.key == "n10" {
                store.clear().await?;
            }
            Ok(())
        })
    };
    let kit = telling(Settings::new().max_entries(4), handler).start();
    kit.run(async {
        for key in ["n0", "removed", "x"] {
            put(&kit, key, 60).await;
        }
        kit.advance(MINUTE * 60 * 40).await;
        let told = TOLD.take();
        let mut seen: Vec<_> = told.iter().map(|one| (one.key.clone(), one.version)).collect();
        let count = seen.len();
        seen.sort();
        seen.dedup();
        assert_eq!(seen.len(), count, "{:?}", keys(&told));
        assert_eq!((rows(&kit).await, armed(&kit).await), (0, None), "{:?}", keys(&told));
        let usage = at_once(&kit, |lab| lab.first().stats().unwrap().usage.unwrap()).await;
        assert_eq!((usage.entries, usage.bytes), (0, 0));
    });
}

#[test]
fn handlers_that_evict_each_other_for_ever_are_cut_into_runs() {
    let handler = |lab: Rc<Lab>, one: Expired| -> Boxed<Result<()>> {
        note(&one);
        Box::pin(async move {
            let _ = lab.first().put(if one.key == "a" { "b" } else { "a" }, "1", Ttl::secs(600))?;
            Ok(())
        })
    };
    let setup = telling(Settings::new().max_entries(1), handler);
    let kit = Setup { pace: Pace::new().rows_per_wake(10).slice_rows(2), ..setup }.start();
    kit.run(async {
        put(&kit, "a", 60).await;
        put(&kit, "b", 60).await;
        kit.advance(SECOND * 30).await;
        let (told, wakes) = (TOLD.take().len(), wakes().len());
        assert!(told <= wakes * 10, "{told} {wakes}");
        assert!(wakes <= 31, "{wakes}");
        // Others are served.
        at_once(&kit, |lab| assert!(lab.first().count().unwrap() <= 1)).await;
    });
}

#[test]
fn a_handler_that_deletes_everything_leaves_an_object_that_works() {
    let handler = |lab: Rc<Lab>, one: Expired| -> Boxed<Result<()>> {
        note(&one);
        Box::pin(async move {
            if one.key == "a" {
                lab.state.delete_all()?;
                let _ = lab.first().put("c", "1", Ttl::secs(60))?;
                if one.attempt == 1 {
                    return Err(Failure::msg("and fails"));
                }
            }
            Ok(())
        })
    };
    let kit = telling(Settings::new().max_entries(9), handler).start();
    kit.run(async {
        put(&kit, "a", 60).await;
        put(&kit, "b", 60).await;
        kit.advance(MINUTE * 10).await;
        let told = TOLD.take();
        assert_eq!(keys(&told), [("a", 1), ("c", 1)]);
        assert_eq!((rows(&kit).await, armed(&kit).await), (0, None));
        assert_eq!(at_once(&kit, |lab| lab.first().usage().unwrap().entries).await, 0);
    });
}

#[test]
fn the_largest_entry_in_a_store_of_the_longest_name_is_told_and_kept_when_that_fails() {
    TOLD.take();
    let handler = |_: Rc<Lab>, one: Expired| -> Boxed<Result<()>> {
        note(&one);
        Box::pin(async move { if one.attempt == 1 { Err(Failure::msg("once")) } else { Ok(()) } })
    };
    let name: &'static str = Box::leak("\u{10ffff}".repeat(16).into_boxed_str());
    let stores = vec![(name, Settings::new().notify(true))];
    let kit = Setup { stores, ..Setup::told(handler) }.start();
    kit.run(async {
        at_once(&kit, |lab| {
            let key = "\u{10ffff}".repeat(do_ttl::KEY_BYTES / 4);
            let _ = lab.first().put(&key, vec![7; do_ttl::ENTRY_BYTES - key.len()], Ttl::secs(60)).unwrap();
        })
        .await;
        kit.advance(MINUTE * 2).await;
        let told = TOLD.take();
        assert_eq!(told.iter().map(|one| one.attempt).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(told[0].value.len(), do_ttl::ENTRY_BYTES - do_ttl::KEY_BYTES);
        assert_eq!(rows(&kit).await, 0);
    });
}

#[test]
fn what_is_rolled_back_is_not_told_and_what_was_is_told_once() {
    let handler = |_: Rc<Lab>, one: Expired| -> Boxed<Result<()>> {
        note(&one);
        Box::pin(async { Ok(()) })
    };
    let kit: Kit = telling(Settings::new().max_entries(3), handler).start();
    kit.run(async {
        put(&kit, "a", 600).await;
        put(&kit, "b", 700).await;
        put(&kit, "c", 800).await;
        at_once(&kit, |lab| {
            let store = lab.first();
            let no = |work: &dyn Fn() -> Result<()>| {
                let rolled: Result<()> = lab.state.sql().transaction(|| {
                    work()?;
                    Err(Failure::msg("no"))
                });
                assert_eq!(rolled.unwrap_err().to_string(), "no");
                let usage = store.usage().unwrap();
                assert_eq!((usage.entries, usage.bytes), (3, 6));
                assert_eq!(store.count().unwrap(), 3);
            };
            no(&|| store.put("d", "1", Ttl::secs(1)).map(|_| ()).map_err(Into::into));
            no(&|| {
                store
                    .put_many(["d", "e", "f"].map(|key| (key, "1", Ttl::secs(1))))
                    .map(|_| ())
                    .map_err(Into::into)
            });
            no(&|| store.take("a").map(|_| ()).map_err(Into::into));
            no(&|| store.remove_many(["a", "b", "c"]).map(|_| ()).map_err(Into::into));
            no(&|| store.put("a", "", Ttl::NEVER).map(|_| ()).map_err(Into::into));
            no(&|| {
                // Within a transaction its first slice is what a clear does when it is polled once.
                let mut clear = std::pin::pin!(store.clear());
                let cleared = futures::FutureExt::now_or_never(clear.as_mut());
                assert_eq!(cleared.unwrap()?, 3);
                Ok(())
            });
        })
        .await;
        kit.advance(SECOND * 5).await;
        assert_eq!(keys(&TOLD.take()), []);
        kit.advance(MINUTE * 20).await;
        assert_eq!(keys(&TOLD.take()), [("a", 1), ("b", 1), ("c", 1)]);
        assert_eq!((rows(&kit).await, armed(&kit).await), (0, None));
    });
}

#[test]
fn whatever_strikes_a_handler_that_puts_and_evicts_the_counts_are_right_and_what_was_acknowledged_is_told() {
    let handler = |lab: Rc<Lab>, one: Expired| -> Boxed<Result<()>> {
        note(&one);
        Box::pin(async move {
            let store = lab.first();
            if let Some(n) = one.key.strip_prefix('n').and_then(|n| n.parse::<u32>().ok()).filter(|n| *n < 2)
            {
                let _ = store.put(&format!("m{n}"), vec![0; 1_000], Ttl::secs(30))?;
                lab.state.sleep(Duration::from_millis(5)).await;
                let _ = store.put(&format!("n{}", n + 1), "1", Ttl::secs(60))?;
                if one.attempt == 1 && n == 0 {
                    return Err(Failure::msg("once"));
                }
            }
            Ok(())
        })
    };
    let test = |step: Option<u64>, strike: &Strike| {
        let kit = telling(Settings::new().max_entries(2), handler).start();
        if let Some(step) = step {
            kit.at_step(step, strike);
        }
        kit.run(async {
            let mut acknowledged = Vec::new();
            for key in ["n0", "x", "y"] {
                let work =
                    move |lab: Rc<Lab>| async move { lab.first().put(key, key, Ttl::secs(60)).map(drop) };
                if let Ok(Ok(())) = try_within(&kit, work).await {
                    acknowledged.push(key);
                }
            }
            kit.advance(MINUTE * 5).await;
            let steps = kit.steps();
            kit.heal();
            let (left, usage) = at_once(&kit, |lab| (lab.rows(), lab.first().usage().unwrap())).await;
            assert_eq!((left, usage.entries, usage.bytes), (0, 0, 0), "{step:?}\n{}", kit.history());
            let told = TOLD.take();
            for key in acknowledged {
                assert!(told.iter().any(|one| one.key == key), "{step:?} {key} {:?}", keys(&told));
            }
            steps
        })
    };
    for strike in [Strike::Crash, Strike::LosePower] {
        for step in 0..test(None, &strike) {
            test(Some(step), &strike);
        }
    }
}
