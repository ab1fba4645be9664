//! Objects that put where they should not, and have two of what is to be one.

use crate::lab::{Lab, MINUTE, SECOND, Setup, armed, at_once, jobs, put, rows, wakes, within};
use do_core::{ErrorKind, prelude::*};
use do_ttl::{Pace, Settings, Sweeper, Ttl};
use std::rc::Rc;

#[test]
fn a_store_opened_again_with_other_settings_is_refused_and_stays_what_it_was() {
    let kit = Setup { stores: vec![("s", Settings::new().max_entries(1))], ..Setup::new() }.start();
    kit.run(async {
        at_once(&kit, |lab| {
            for other in [
                Settings::new(),
                Settings::new().max_entries(2),
                Settings::new().max_entries(1).notify(true),
                Settings::new().max_entries(1).throttle(Duration::ZERO),
            ] {
                let error = lab.sweeper.store("s", other).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Invalid);
            }
            let again = lab.sweeper.store("s", Settings::new().max_entries(1)).unwrap();
            let _ = again.put("k", "1", Ttl::secs(60)).unwrap();
            assert_eq!(lab.first().count().unwrap(), 1);
        })
        .await;
        kit.advance(MINUTE * 2).await;
        assert_eq!(rows(&kit).await, 0);
    });
}

#[test]
fn what_two_sweepers_of_one_object_have_is_not_seen_when_it_expires_and_swept_in_the_end() {
    let kit = Setup::new().start();
    kit.run(async {
        within(&kit, |lab| async move {
            let other = Sweeper::with(&lab.state, Pace::new(), Alarm::raw(&lab.state));
            let store = other.store("s", Settings::new()).unwrap();
            let _ = lab.first().put("a", "1", Ttl::secs(60)).unwrap();
            let _ = store.put("b", "1", Ttl::secs(600)).unwrap();
            assert_eq!(lab.first().count().unwrap(), 2);
            assert_eq!(store.get("a").unwrap().unwrap(), "1");
        })
        .await;
        kit.advance(SECOND * 60).await;
        at_once(&kit, |lab| assert_eq!(lab.first().get("a").unwrap(), None)).await;
        kit.advance(MINUTE * 20).await;
        assert_eq!((rows(&kit).await, armed(&kit).await), (0, None));
    });
}

#[test]
fn what_a_constructor_puts_is_swept_whatever_the_first_event_is() {
    let born = |lab: &Lab| {
        let _ = lab.first().put("born", "1", Ttl::secs(60)).unwrap();
        let _ = lab.first().put("over", "1", Ttl::millis(-1)).unwrap();
    };
    for slot in [false, true] {
        let kit = Setup { slot, born: Some(born), ..Setup::new() }.start();
        kit.run(async {
            at_once(&kit, |lab| assert!(lab.first().contains("born").unwrap())).await;
            assert!(armed(&kit).await.is_some());
            kit.crash();
            // The next instance is made by the alarm, and puts again, so that it comes again, once each time.
            wakes();
            kit.advance(MINUTE * 10).await;
            let wakes = wakes().len();
            assert!((5..=10).contains(&wakes), "{slot} {wakes}");
            assert!(rows(&kit).await <= 1);
        });
    }
}

#[test]
fn what_an_alarm_puts_before_the_sweep_is_swept_also_when_the_alarm_fails_first() {
    fn before(lab: &Rc<Lab>) -> Result<()> {
        let is_first = lab.first().put_if_absent("count", "1", Ttl::secs(600))?;
        let _ = lab.first().put("alarm", "1", Ttl::secs(30))?;
        match is_first {
            do_ttl::PutIfAbsent::Done(_) => Err(Failure::msg("once")),
            do_ttl::PutIfAbsent::Present(_) => Ok(()),
        }
    }
    for slot in [false, true] {
        let kit = Setup { slot, before: Some(before), ..Setup::new() }.start();
        kit.run(async {
            put(&kit, "a", 60).await;
            kit.advance(SECOND * 70).await;
            assert!(wakes().len() >= 2);
            at_once(&kit, |lab| assert_eq!(lab.first().get("a").unwrap(), None)).await;
            // Each sweep puts one: it comes again and again, and not more often than that.
            kit.advance(MINUTE * 10).await;
            let wakes = wakes().len();
            assert!((15..=30).contains(&wakes), "{slot} {wakes}");
            assert!(rows(&kit).await <= 2);
        });
    }
}

#[test]
fn a_job_of_another_slot_may_put_and_its_schedule_stays() {
    let kit = Setup { slot: true, ..Setup::new() }.start();
    kit.run(async {
        jobs();
        within(&kit, |lab| async move {
            let plan = Plan::at(lab.state.now() + SECOND * 30);
            lab.schedule.as_ref().unwrap().put("other", plan).await.unwrap();
        })
        .await;
        put(&kit, "a", 60).await;
        kit.advance(MINUTE * 2).await;
        assert_eq!((jobs(), rows(&kit).await), (1, 0));
        assert_eq!(armed(&kit).await, None);
    });
}

#[test]
fn everything_deleted_in_one_turn_with_puts_around_leaves_what_is_put_after() {
    for settings in [Settings::new(), Settings::new().max_entries(2).notify(true)] {
        let told = |lab: Rc<Lab>, _| -> crate::lab::Boxed<Result<()>> {
            Box::pin(async move { lab.state.sql().exec("SELECT 1", ()).map(drop).map_err(Into::into) })
        };
        let kit =
            Setup { stores: vec![("s", settings)], handler: Some(Rc::new(told)), ..Setup::new() }.start();
        kit.run(async {
            put(&kit, "a", 60).await;
            at_once(&kit, |lab| {
                let store = lab.first();
                let _ = store.put("b", vec![0; 5_000], Ttl::secs(60)).unwrap();
                lab.state.delete_all().unwrap();
                assert_eq!((store.count().unwrap(), store.get("a").unwrap()), (0, None));
                assert!(!store.touch("a", Ttl::NEVER).unwrap());
                let _ = store.put("c", vec![0; 5_000], Ttl::secs(90)).unwrap();
                let _ = store.put("d", "1", Ttl::secs(90)).unwrap();
                assert_eq!(store.count().unwrap(), 2);
            })
            .await;
            assert!(armed(&kit).await.is_some());
            kit.advance(SECOND * 80).await;
            assert_eq!(rows(&kit).await, 2);
            kit.advance(SECOND * 20).await;
            assert_eq!((rows(&kit).await, armed(&kit).await), (0, None));
        });
    }
}

#[test]
fn an_iterator_that_panics_or_uses_the_store_within_many_leaves_nothing_half_done() {
    let kit = Setup { stores: vec![("s", Settings::new().max_entries(50))], ..Setup::new() }.start();
    kit.run(async {
        at_once(&kit, |lab| {
            let store = lab.first();
            store.put_many((0..20).map(|n| (n.to_string(), "v", Ttl::secs(60)))).unwrap();
            let before = store.usage().unwrap();
            let panics =
                || (0..20).map(|n| if n == 10 { panic!("an iterator of a test") } else { n.to_string() });
            let caught = |work: &dyn Fn()| {
                assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).is_err());
                assert_eq!((store.usage().unwrap(), store.count().unwrap()), (before, 20));
            };
            caught(&|| drop(store.remove_many(panics())));
            caught(&|| drop(store.get_many(panics())));
            caught(&|| drop(store.put_many(panics().map(|key| (key + "x", "v", Ttl::NEVER)))));
            // One that changes the store as it goes.
            let removed = store.remove_many((0..20).map(|n: u32| {
                let _ = store.put(&format!("new{n}"), "v", Ttl::secs(60)).unwrap();
                n.to_string()
            }));
            assert_eq!((removed.unwrap(), store.count().unwrap()), (20, 20));
            let put = store.put_many((0..20).map(|n: u32| {
                store.remove(&format!("new{n}")).unwrap();
                (n.to_string(), "v", Ttl::secs(60))
            }));
            assert_eq!((put.unwrap().len(), store.count().unwrap()), (20, 20));
        })
        .await;
        kit.advance(MINUTE * 2).await;
        assert_eq!(rows(&kit).await, 0);
    });
}
