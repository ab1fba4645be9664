//! Times, keys, values, names and limits at their edges.

use crate::lab::{Lab, MINUTE, SECOND, Setup, armed, at_once, rows, wakes, within};
use do_core::{ErrorKind, Keys, prelude::*};
use do_ttl::{ENTRY_BYTES, KEY_BYTES, OnFull, Pace, Put, PutIfAbsent, Settings, Swap, Ttl, Version};

const MAX: Timestamp = Timestamp::from_millis(i64::MAX);

fn never() -> Vec<Ttl> {
    vec![
        Ttl::millis(i64::MAX),
        Ttl::secs(i64::MAX),
        Duration::MAX.into(),
        Ttl::until(MAX),
        Ttl::sliding(Duration::MAX),
        Ttl::sliding(Duration::MAX).max_age(Duration::MAX).jitter(100),
        Ttl::millis(i64::MAX).jitter(255),
        Ttl::NEVER.max_age(Duration::MAX),
    ]
}

fn over() -> Vec<Ttl> {
    vec![
        Ttl::millis(i64::MIN),
        Ttl::secs(i64::MIN),
        Ttl::millis(0),
        Ttl::until(Timestamp::from_millis(0)),
        Ttl::until(Timestamp::from_millis(i64::MIN)),
        Ttl::sliding(Duration::ZERO),
        Ttl::sliding(Duration::ZERO).max_age(Duration::MAX),
        Ttl::sliding(Duration::MAX).max_age(Duration::ZERO),
        Ttl::secs(9).max_age(Duration::ZERO).jitter(100),
    ]
}

#[test]
fn times_at_their_edges_are_never_or_over_in_every_operation() {
    for settings in [Settings::new(), Settings::new().max_entries(9).notify(true)] {
        let kit = Setup { stores: vec![("s", settings)], ..Setup::new() }.start();
        kit.run(async {
            at_once(&kit, |lab| {
                let store = lab.first();
                for ttl in never() {
                    let Put::Stored { version, expires: None } = store.put("k", "1", ttl).unwrap() else {
                        panic!("{ttl:?}")
                    };
                    assert!(store.touch("k", ttl).unwrap());
                    let entry = store.get_entry("k").unwrap().unwrap();
                    assert_eq!((entry.expires, entry.version), (None, version), "{ttl:?}");
                }
                for ttl in over() {
                    let Put::Stored { version, .. } = store.put("k", "1", Ttl::NEVER).unwrap() else {
                        panic!()
                    };
                    let swap = store.compare_and_swap("k", version, "2", ttl).unwrap();
                    assert_eq!(swap, Swap::Done(Put::Removed), "{ttl:?}");
                    let absent = store.put_if_absent("k", "2", ttl).unwrap();
                    assert_eq!(absent, PutIfAbsent::Done(Put::Removed));
                    assert!(!store.touch("k", ttl).unwrap());
                    let _ = store.put("k", "1", Ttl::NEVER).unwrap();
                    assert!(store.touch("k", ttl).unwrap());
                    assert_eq!(
                        store.put_many([("k", "1", Ttl::NEVER), ("k", "1", ttl)]).unwrap()[1],
                        Put::Removed
                    );
                    assert_eq!(store.count().unwrap(), 0, "{ttl:?}");
                }
                let swap = store.compare_and_swap("k", Version::from_raw(u64::MAX), "2", Ttl::NEVER).unwrap();
                assert_eq!(swap, Swap::Differs(None));
            })
            .await;
            assert_eq!((armed(&kit).await, rows(&kit).await), (None, 0));
        });
    }
}

#[test]
fn what_expires_last_of_all_has_an_alarm_and_the_widest_pace_is_no_overflow() {
    for slack in [Duration::ZERO, Duration::MAX] {
        let pace = Pace::new().slack(slack).slice_rows(0).slice_bytes(0).rows_per_wake(0);
        let kit = Setup { pace, ..Setup::new() }.start();
        kit.run(async {
            at_once(&kit, |lab| {
                let last = Timestamp::from_millis(do_core::limits::SQL_INTEGER_MAX - 1);
                let _ = lab.first().put("last", "1", Ttl::until(last)).unwrap();
                assert_eq!(lab.first().get_entry("last").unwrap().unwrap().expires, Some(last));
                for key in ["a", "b", "c"] {
                    let _ = lab.first().put(key, "1", Ttl::millis(1)).unwrap();
                }
            })
            .await;
            kit.advance(MINUTE).await;
            assert!(armed(&kit).await.is_some());
            assert_eq!(rows(&kit).await, if slack == Duration::ZERO { 1 } else { 4 });
            within(&kit, |lab| async move { lab.sweeper.on_alarm().await.unwrap() }).await;
            kit.advance(SECOND).await;
            assert_eq!(rows(&kit).await, 1);
            wakes();
            kit.advance(MINUTE * 600).await;
            assert_eq!(wakes().len(), 0);
        });
    }
}

#[test]
fn a_throttle_of_any_length_keeps_what_is_used_twice_in_its_idle_time() {
    for throttle in [Duration::ZERO, Duration::from_nanos(1), MINUTE, Duration::MAX] {
        for idle in [1, 2, 3, 1_000] {
            let kit =
                Setup { stores: vec![("s", Settings::new().throttle(throttle))], ..Setup::new() }.start();
            kit.run(async {
                at_once(&kit, move |lab| {
                    let _ = lab.first().put("k", "1", Ttl::sliding(Duration::from_millis(idle))).unwrap();
                })
                .await;
                for _ in 0..20 {
                    kit.advance(Duration::from_millis((idle / 2).max(1) - u64::from(idle == 1))).await;
                    let found = at_once(&kit, |lab| lab.first().get("k").unwrap()).await;
                    assert!(found.is_some(), "{throttle:?} {idle}");
                }
                kit.advance(Duration::from_millis(idle)).await;
                assert_eq!(at_once(&kit, |lab| lab.first().get("k").unwrap()).await, None);
            });
        }
    }
}

/// Keys that are easily taken for each other.
fn odd_keys() -> Vec<String> {
    let longest = "k".repeat(KEY_BYTES);
    let mut keys: Vec<String> =
        ["", "\0", "\0\0", "a", "a\0", "a\0b", "A", "a ", " a", "'", "\"", "%", "_", "é", "e\u{301}"]
            .into_iter()
            .chain([
                "\u{d7ff}",
                "\u{e000}",
                "\u{fffd}",
                "\u{feff}",
                "\u{10ffff}",
                "\u{10ffff}\u{10ffff}",
                "1",
                "1.0",
                "01",
            ])
            .chain(["x'00'", "NULL", "?", ";--", "../..", "\n", "\r\n", "\u{202e}"])
            .map(str::to_owned)
            .collect();
    keys.extend([format!("{}\0", &longest[1..]), format!("{}j", &longest[1..]), longest]);
    keys
}

#[test]
fn odd_keys_are_told_apart_in_every_operation_and_every_list() {
    for settings in [Settings::new(), Settings::new().max_entries(u64::MAX).max_bytes(u64::MAX)] {
        let kit = Setup { stores: vec![("s", settings)], ..Setup::new() }.start();
        kit.run(async {
            at_once(&kit, |lab| {
                let (store, keys) = (lab.first(), odd_keys());
                store.put_many(keys.iter().map(|key| (key, key.clone(), Ttl::secs(60)))).unwrap();
                assert_eq!(store.count().unwrap(), keys.len() as u64);
                let mut sorted = keys.clone();
                sorted.sort();
                assert_eq!(store.list_keys(Keys::all()).unwrap().keys().collect::<Vec<_>>(), sorted);
                for key in &keys {
                    let found = store.get(key).unwrap().unwrap();
                    assert_eq!(found, key.as_bytes());
                    let with: Vec<_> =
                        sorted.iter().filter(|other| other.starts_with(key.as_str())).collect();
                    let listed = store.list_keys(Keys::prefix(key)).unwrap();
                    assert_eq!(listed.keys().collect::<Vec<_>>(), with, "{key:?}");
                }
                for (n, key) in keys.iter().enumerate() {
                    assert_eq!(store.take(key).unwrap().unwrap().value, key.as_bytes());
                    assert_eq!(store.count().unwrap(), (keys.len() - n - 1) as u64);
                }
            })
            .await;
        });
    }
}

#[test]
fn a_key_that_no_entry_can_have_is_not_there_or_refused_however_long() {
    let kit = Setup::new().start();
    kit.run(async {
        at_once(&kit, |lab| {
            let store = lab.first();
            let _ = store.put("k", "1", Ttl::NEVER).unwrap();
            for bytes in [KEY_BYTES + 1, 1 << 20, 3 << 20] {
                let key = "k".repeat(bytes);
                let refused = store.put(&key, "1", Ttl::NEVER).unwrap_err();
                assert_eq!(refused.kind(), ErrorKind::Limit);
                assert!(refused.to_string().len() < 300);
                assert_eq!(store.put_many([(&key, "1", Ttl::NEVER)]).unwrap_err().kind(), ErrorKind::Limit);
                assert_eq!(store.get(&key).unwrap(), None, "{bytes}");
                assert!(!store.contains(&key).unwrap());
                assert!(!store.remove(&key).unwrap());
                assert!(!store.touch(&key, Ttl::NEVER).unwrap());
                assert_eq!(store.take(&key).unwrap(), None);
                assert_eq!(store.remove_many([key.as_str(), "x"]).unwrap(), 0);
                assert_eq!(store.get_many([key.as_str(), "k"]).unwrap(), [None, Some("1".into())]);
            }
        })
        .await;
    });
}

#[test]
fn values_around_every_bound_come_back_through_every_change() {
    for settings in [Settings::new(), Settings::new().max_bytes(u64::MAX).notify(true)] {
        let kit = Setup { stores: vec![("s", settings)], ..Setup::new() }.start();
        kit.run(async {
            at_once(&kit, move |lab| {
                let store = lab.first();
                // With the key and the name of the store: 766 is the last that is inline.
                let sizes = [0, 1, 765, 766, 767, 768, 1_000, 4_096, ENTRY_BYTES - 1];
                for from in sizes {
                    for to in sizes {
                        for bytes in [from, to] {
                            let value = vec![(bytes % 251) as u8; bytes];
                            let _ = store.put("k", value.clone(), Ttl::secs(60)).unwrap();
                            assert!(store.get("k").unwrap().unwrap() == value, "{from} {to}");
                        }
                        assert_eq!(big(lab), i64::from(to > 766), "{from} {to}");
                    }
                }
                let refused = store.put("k", vec![0; ENTRY_BYTES], Ttl::NEVER).unwrap_err();
                assert_eq!(refused.kind(), ErrorKind::Limit);
                assert_eq!(store.get("k").unwrap().unwrap().len(), ENTRY_BYTES - 1);
                assert!(store.remove("k").unwrap());
                assert_eq!(big(lab), 0);
            })
            .await;
        });
    }
}

/// Values that are not in the table of the rows.
fn big(lab: &Lab) -> i64 {
    lab.state.sql().scalar("SELECT count(*) FROM _ttl_big", ()).unwrap().unwrap()
}

#[test]
fn limits_at_their_edges() {
    for on_full in [OnFull::Evict, OnFull::Refuse] {
        let stores = vec![
            ("none", Settings::new().max_entries(0).on_full(on_full)),
            ("no bytes", Settings::new().max_bytes(0).on_full(on_full)),
            ("all", Settings::new().max_entries(u64::MAX).max_bytes(u64::MAX).on_full(on_full)),
            ("large", Settings::new().max_bytes(1_000_000).on_full(on_full)),
        ];
        let kit = Setup { stores, ..Setup::new() }.start();
        kit.run(async {
            at_once(&kit, move |lab| {
                let refused = lab.store("none").put("", "", Ttl::secs(1)).unwrap_err();
                assert_eq!(refused.kind(), ErrorKind::Limit);
                // An entry of no bytes has room in no bytes.
                let _ = lab.store("no bytes").put("", "", Ttl::secs(60)).unwrap();
                let refused = lab.store("no bytes").put("a", "", Ttl::secs(60)).unwrap_err();
                assert_eq!(refused.kind(), ErrorKind::Limit);
                assert_eq!(lab.store("no bytes").usage().unwrap().entries, 1);
                let _ = lab.store("all").put("k", vec![0; 2_000], Ttl::secs(60)).unwrap();

                // Many small ones against one that takes all: each attempt makes some room, and one comes to its end.
                let large = lab.store("large");
                large.put_many((0..100).map(|n| (n.to_string(), "v", Ttl::secs(60 + n)))).unwrap();
                let mut attempts = 0;
                let last = loop {
                    attempts += 1;
                    let before = large.count().unwrap();
                    match large.put("large", vec![0; 1_000_000 - 5], Ttl::NEVER) {
                        Err(error) if error.kind() == ErrorKind::Transient => {
                            assert_eq!(before - large.count().unwrap(), u64::from(do_ttl::EVICTED_PER_PUT));
                        }
                        last => break last.map(drop).map_err(|error| error.kind()),
                    }
                };
                let usage = large.usage().unwrap();
                if on_full == OnFull::Evict {
                    assert_eq!((last, attempts, usage.entries, usage.bytes), (Ok(()), 13, 1, 1_000_000));
                } else {
                    assert_eq!((last, attempts, usage.entries), (Err(ErrorKind::Limit), 1, 100));
                }
                let refused = large.put("larger", vec![0; 1_000_000 - 5], Ttl::secs(1)).unwrap_err();
                assert_eq!(refused.kind(), ErrorKind::Limit);
                assert_eq!(large.usage().unwrap(), usage);
            })
            .await;
            kit.advance(MINUTE * 5).await;
            at_once(&kit, |lab| {
                for store in ["none", "no bytes", "all"] {
                    assert_eq!(lab.store(store).usage().unwrap(), do_ttl::Usage::default(), "{store}");
                }
            })
            .await;
        });
    }
}

#[test]
fn names_of_any_text_of_1_to_64_bytes_are_stores_of_their_own() {
    let kit = Setup::new().start();
    kit.run(async {
        at_once(&kit, |lab| {
            let longest = "n".repeat(64);
            let names =
                ["'", "\"; DROP TABLE _ttl; --", "\0", "a", "a\0", "A", "\u{10ffff}", longest.as_str(), "%"];
            for name in names {
                let store = lab.sweeper.store(name, Settings::new().max_entries(5)).unwrap();
                let _ = store.put("k", name.to_owned(), Ttl::secs(60)).unwrap();
            }
            for name in names {
                let store = lab.sweeper.store(name, Settings::new().max_entries(5)).unwrap();
                assert_eq!(store.get("k").unwrap().unwrap(), name.as_bytes());
                assert_eq!(store.count().unwrap(), 1, "{name:?}");
            }
            for wrong in ["", &"n".repeat(65), &"é".repeat(33), &"n".repeat(1 << 20)] {
                let error = lab.sweeper.store(wrong, Settings::new()).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Invalid);
                assert!(error.to_string().len() < 300);
            }
        })
        .await;
        kit.advance(MINUTE * 2).await;
        assert_eq!(rows(&kit).await, 0);
    });
}
