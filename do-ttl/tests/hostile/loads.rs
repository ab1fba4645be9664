//! Loaders that misuse their store.

use crate::lab::{MINUTE, SECOND, Setup, at_once, rows, within};
use do_core::{ErrorKind, prelude::*};
use do_ttl::{Settings, Ttl};
use futures::FutureExt;
use std::{cell::Cell, rc::Rc};

#[test]
fn a_loader_that_changes_its_own_key_ends_with_what_is_there() {
    let kit =
        Setup { stores: vec![("s", Settings::new().max_entries(1).notify(true))], ..Setup::new() }.start();
    kit.run(async {
        within(&kit, |lab| async move {
            let store = lab.first();
            let put = async || {
                let _ = store.put("k", "put", Ttl::secs(60))?;
                Ok("loaded")
            };
            assert_eq!(store.get_or_insert_with("k", Ttl::secs(60), put).await.unwrap(), "put");
            assert!(store.remove("k").unwrap());
            let removes = async || {
                let _ = store.put("k", "put", Ttl::secs(60))?;
                store.remove("k")?;
                Ok("loaded")
            };
            assert_eq!(store.get_or_insert_with("k", Ttl::secs(60), removes).await.unwrap(), "loaded");
            assert_eq!(store.get("k").unwrap(), None);
            let clears = async || {
                store.clear().await?;
                Ok("loaded")
            };
            assert_eq!(store.get_or_insert_with("k", Ttl::secs(60), clears).await.unwrap(), "loaded");
            assert_eq!(store.get("k").unwrap(), None);
            // Its own key, behind a change of it: another load, and no waiting for itself.
            let again = async || {
                store.remove("k")?;
                let inner = store.get_or_insert_with("k", Ttl::secs(60), async || Ok("inner")).await?;
                assert_eq!(inner, "inner");
                Ok("outer")
            };
            assert_eq!(store.get_or_insert_with("k", Ttl::secs(60), again).await.unwrap(), "inner");
            assert!(store.remove("k").unwrap());
            // Its own key through a clone, and through another key of the same future.
            let other = store.clone();
            let circle = async || {
                let inner =
                    async || Ok(other.get_or_insert_with("k", Ttl::secs(60), async || Ok("x")).await?);
                other.get_or_insert_with("l", Ttl::secs(60), inner).await
            };
            let error = store.get_or_insert_with("k", Ttl::secs(60), circle).await.unwrap_err();
            assert!(error.to_string().contains("waits for itself"), "{error}");
        })
        .await;
    });
}

#[test]
fn a_full_store_gives_what_it_cannot_keep_and_an_error_of_a_key_is_one_of_all() {
    let stores = vec![("s", Settings::new().max_entries(1).max_bytes(5))];
    let kit = Setup { stores, ..Setup::new() }.start();
    kit.run(async {
        within(&kit, |lab| async move {
            let store = lab.first();
            let _ = store.put("a", "1", Ttl::NEVER).unwrap();
            for value in ["b", "much too large"] {
                let load = store.get_or_insert_with("k", Ttl::secs(60), async || Ok(value));
                assert_eq!(load.await.unwrap(), value);
            }
            assert_eq!(store.get("k").unwrap(), None);
            let long = "k".repeat(513);
            let error = store.get_or_insert_with(&long, Ttl::NEVER, async || Ok("x")).await.unwrap_err();
            assert!(error.to_string().contains("513"), "{error}");
            // Over at once: given, and not there.
            let load = store.get_or_insert_with("k", Ttl::millis(i64::MIN), async || Ok("x"));
            assert_eq!(load.await.unwrap(), "x");
            assert_eq!(store.stats().unwrap().usage.unwrap().entries, 1);
        })
        .await;
    });
}

#[test]
fn of_a_thousand_who_wait_each_may_go_and_the_last_one_loads() {
    let kit = Setup::new().start();
    kit.run(async {
        within(&kit, |lab| async move {
            let store = lab.first();
            let loads = Rc::new(Cell::new(0));
            let ask = |ends: bool| {
                let (store, loads) = (store.clone(), Rc::clone(&loads));
                Box::pin(async move {
                    let load = async || {
                        loads.set(loads.get() + 1);
                        if !ends {
                            std::future::pending::<()>().await;
                        }
                        Ok("v")
                    };
                    store
                        .get_or_insert_with("k", Ttl::secs(60), load)
                        .await
                        .map(drop)
                        .map_err(|e| e.to_string())
                })
            };
            let mut asked: Vec<_> = (0..1_000).map(|n| ask(n == 999)).collect();
            assert!(asked.iter_mut().all(|one| one.as_mut().now_or_never().is_none()));
            assert_eq!(loads.get(), 1);
            // From the front, the one that loads each time; from the back, whole lots of those who wait.
            let last = asked.pop().unwrap();
            while asked.len() > 500 {
                drop(asked.remove(0));
                asked.pop();
                let polled = asked[0].as_mut().now_or_never();
                assert!(polled.is_none());
            }
            drop(asked);
            last.await.unwrap();
            assert!(loads.get() > 100);
            assert_eq!(store.get("k").unwrap().unwrap(), "v");
        })
        .await;
    });
}

#[test]
fn a_loader_that_panics_in_its_first_poll_or_later_leaves_the_key_free() {
    let kit = Setup::new().start();
    kit.run(async {
        let work = within(&kit, |lab| async move {
            for waits in [false, true] {
                let store = lab.first();
                let load = async || -> Result<&'static str> {
                    if waits {
                        lab.state.sleep(SECOND).await;
                    }
                    panic!("a loader of a test")
                };
                let asked = store.get_or_insert_with("k", Ttl::NEVER, load);
                assert!(std::panic::AssertUnwindSafe(asked).catch_unwind().await.is_err());
                let again = store.get_or_insert_with("k", Ttl::millis(1), async || Ok("v")).await.unwrap();
                assert_eq!(again, "v");
                lab.state.sleep(SECOND).await;
            }
        });
        futures::future::join(work, kit.advance(MINUTE)).await;
    });
}

#[test]
fn a_load_whose_row_is_rolled_back_or_expires_meanwhile_is_not_for_ever() {
    let kit = Setup::new().start();
    kit.run(async {
        let work = within(&kit, |lab| async move {
            let store = lab.first();
            let load = async || {
                let rolled: Result<()> = lab.state.sql().transaction(|| {
                    let _ = store.put("k", "rolled back", Ttl::secs(60))?;
                    Err(Failure::msg("no"))
                });
                assert!(rolled.is_err());
                Ok("v")
            };
            assert_eq!(store.get_or_insert_with("k", Ttl::secs(60), load).await.unwrap(), "v");
            let load = async || {
                let _ = store.put("l", "short", Ttl::millis(1))?;
                lab.state.sleep(SECOND).await;
                Ok("v")
            };
            assert_eq!(store.get_or_insert_with("l", Ttl::secs(60), load).await.unwrap(), "v");
            let error = store.get_or_insert_with("m", Ttl::secs(60), async || {
                Err::<&str, _>(Error::new(ErrorKind::Limit, "mine").into())
            });
            assert_eq!(error.await.unwrap_err().to_string(), "mine");
        });
        futures::future::join(work, kit.advance(MINUTE * 5)).await;
        assert_eq!(rows(&kit).await, 0);
        at_once(&kit, |lab| assert_eq!(lab.first().count().unwrap(), 0)).await;
    });
}
