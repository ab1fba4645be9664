//! Many entries: several keys at once, lists, and what is known of the whole, over the stub and in HTTP.

use do_core::{Keys, kit::Kit, prelude::*, tokio::HostStub};
use do_ttl::{CacheSettings, OnFull, Pace, Put, Settings, Ttl, TtlCache, TtlCacheStub};
use serde_json::{Value, json};

fn start() -> Kit {
    Kit::builder().object::<TtlCache<_>>("CACHE").start().unwrap()
}

fn stub(kit: &Kit) -> HostStub {
    kit.namespace("CACHE").unwrap().named("c").unwrap()
}

async fn ask(stub: &HostStub, method: &str, path: &str, body: impl Into<Body>) -> (u16, Vec<u8>) {
    let request = http::Request::builder().method(method).uri(format!("http://c{path}"));
    let response = stub.fetch(request.body(body.into()).unwrap()).await.unwrap();
    (response.status().as_u16(), response.into_body().bytes(32 << 20).await.unwrap().to_vec())
}

async fn asked(stub: &HostStub, method: &str, path: &str, body: impl Into<Body>) -> (u16, Value) {
    let (status, body) = ask(stub, method, path, body).await;
    (status, serde_json::from_slice(&body).unwrap())
}

#[test]
fn several_keys_are_put_read_and_removed_at_once() {
    let kit = start();
    kit.run(async {
        let cache = TtlCacheStub::new(stub(&kit));
        let items = [
            ("a", &b"1\n"[..], Ttl::NEVER),
            ("..", b"", Ttl::secs(9)),
            ("gone", b"x", Ttl::millis(0)),
            ("", b"\xff", Ttl::secs(9)),
        ];
        let puts = cache.put_many(items).await.unwrap();
        let until = kit.now() + Duration::from_secs(9);
        assert_eq!((puts.len(), puts[2]), (4, Put::Removed));
        let entries = cache.get_many(["..", "gone", "a", "", "a"]).await.unwrap();
        let found: Vec<_> = entries
            .iter()
            .map(|entry| entry.as_ref().map(|entry| (&entry.value[..], entry.expires)))
            .collect();
        let a = Some((&b"1\n"[..], None));
        assert_eq!(found, [Some((&b""[..], Some(until))), None, a, Some((b"\xff", Some(until))), a]);
        let versions = entries[2].as_ref().map(|entry| entry.version);
        assert!(matches!(puts[0], Put::Stored { version, expires: None } if Some(version) == versions));
        assert_eq!(cache.count().await.unwrap(), 3);
        assert_eq!(cache.remove_many(["a", "a", "none", ""]).await.unwrap(), 2);
        assert_eq!(cache.count().await.unwrap(), 1);
        assert_eq!(cache.get_many::<&str>([]).await.unwrap(), []);
        assert_eq!(cache.put_many::<&str, &str, Ttl>([]).await.unwrap(), []);
        assert_eq!(cache.remove_many::<&str>([]).await.unwrap(), 0);
    });
}

#[test]
fn any_number_of_keys_and_bytes_is_read_and_too_many_are_not_put() {
    let kit = start();
    kit.run(async {
        let cache = TtlCacheStub::new(stub(&kit));
        for n in 0..6_u8 {
            let _ = cache.put(&format!("large {n}"), vec![n; 1_900_000], Ttl::NEVER).await.unwrap();
        }
        let keys: Vec<_> = (0..2_500).map(|n| format!("large {n}")).collect();
        let entries = cache.get_many(&keys).await.unwrap();
        assert_eq!(entries.len(), 2_500);
        for (n, entry) in entries.into_iter().enumerate() {
            assert_eq!(
                entry.map(|entry| entry.value),
                (n < 6).then(|| vec![n as u8; 1_900_000].into()),
                "{n}"
            );
        }
        let many = (0..1_001).map(|n| (n.to_string(), "v", Ttl::NEVER));
        assert_eq!(cache.put_many(many).await.unwrap_err().kind(), ErrorKind::Limit);
        let large = (0..5).map(|n| (n.to_string(), vec![0; 1_900_000], Ttl::NEVER));
        assert_eq!(cache.put_many(large).await.unwrap_err().kind(), ErrorKind::Limit);
        let one = [("k", vec![0; 5]), ("l", vec![0; 2_000_000])].map(|(key, value)| (key, value, Ttl::NEVER));
        assert_eq!(cache.put_many(one).await.unwrap_err().kind(), ErrorKind::Limit);
        assert_eq!(cache.remove_many(&keys).await.unwrap_err().kind(), ErrorKind::Limit);
        assert_eq!(cache.count().await.unwrap(), 6);
        let _ = cache.put_many((0..1_000).map(|n| (n.to_string(), "v", Ttl::NEVER))).await.unwrap();
        assert_eq!(cache.count().await.unwrap(), 1_006);
    });
}

#[test]
fn a_list_goes_page_by_page_both_ways() {
    let kit = start();
    kit.run(async {
        let cache = TtlCacheStub::new(stub(&kit));
        let all: Vec<_> = (0..25).map(|n| format!("user/{n:02}?&\u{e9}")).collect();
        let _ = cache.put_many(all.iter().map(|key| (key, key.clone(), Ttl::secs(9)))).await.unwrap();
        let _ = cache.put_many([("other", "v", Ttl::NEVER), ("user0", "v", Ttl::NEVER)]).await.unwrap();
        for reverse in [false, true] {
            let (mut found, mut at) = (Vec::new(), None::<String>);
            loop {
                let keys = Keys::prefix("user/").limit(10);
                let keys = if reverse { keys.reverse() } else { keys };
                let keys = at.as_deref().map_or(keys, |at| keys.resume(at));
                let page = cache.list(keys).await.unwrap();
                assert_eq!(
                    cache.list_keys(keys).await.unwrap().keys().collect::<Vec<_>>(),
                    page.keys().collect::<Vec<_>>()
                );
                for (key, entry) in page.entries {
                    assert_eq!(
                        (&entry.value[..], entry.expires),
                        (key.as_bytes(), Some(kit.now() + Duration::from_secs(9)))
                    );
                    found.push(key);
                }
                at = page.next;
                if at.is_none() {
                    break;
                }
            }
            if reverse {
                found.reverse();
            }
            assert_eq!(found, all);
        }
        let some = cache.list_keys(Keys::all().start(&all[3]).end(&all[5])).await.unwrap();
        assert_eq!(some.keys().collect::<Vec<_>>(), [&all[3], &all[4]]);
        assert!(cache.list(Keys::all().limit(0)).await.unwrap().entries.is_empty());
        kit.advance(Duration::from_secs(9)).await;
        assert_eq!(
            cache.list_keys(Keys::all()).await.unwrap().keys().collect::<Vec<_>>(),
            ["other", "user0"]
        );
        assert_eq!(cache.clear().await.unwrap(), 2);
        assert_eq!(cache.clear().await.unwrap(), 0);
        assert!(cache.list(Keys::all()).await.unwrap().entries.is_empty());
    });
}

#[test]
fn what_is_for_many_is_json_and_frames() {
    let kit = start();
    kit.run(async {
        let stub = stub(&kit);
        let body = "[{\"key\":\"a\",\"bytes\":3,\"ttl\":\"9000\"},{\"key\":\"b\",\"bytes\":2},{\"key\":\"c\",\"bytes\":0,\"ttl\":\"0\"}]\n1\n2xy";
        let (status, done) = asked(&stub, "POST", "/put_many", body).await;
        let until = kit.now().as_millis() + 9_000;
        assert_eq!((status, &done["entries"][0]["expires"]), (200, &json!(until)));
        assert_eq!((&done["entries"][1]["expires"], &done["entries"][2]), (&Value::Null, &Value::Null));

        let (status, got) = ask(&stub, "POST", "/get_many", r#"["b","c","a"]"#).await;
        assert_eq!(status, 200);
        let line = got.iter().position(|byte| *byte == b'\n').unwrap();
        assert_eq!(&got[line + 1..], b"xy1\n2");
        let got: Value = serde_json::from_slice(&got[..line]).unwrap();
        assert_eq!((&got["entries"][0]["bytes"], &got["entries"][1]), (&json!(2), &Value::Null));
        assert_eq!(got["entries"][2]["version"], done["entries"][0]["version"]);

        let (status, listed) = asked(&stub, "GET", "/entries?prefix=&limit=1", "").await;
        assert_eq!((status, &listed["next"], &listed["entries"][0]["key"]), (200, &json!("a"), &json!("a")));
        let (_, listed) = asked(&stub, "GET", "/entries?resume=a&limit=1", "").await;
        assert_eq!((&listed["next"], &listed["entries"][0]["key"]), (&Value::Null, &json!("b")));
        let (_, framed) = ask(&stub, "GET", "/entries?values&start=b", "").await;
        assert!(framed.ends_with(b"}\nxy"));
        assert_eq!(asked(&stub, "GET", "/count", "").await, (200, json!({"count": 2})));
        assert_eq!(asked(&stub, "POST", "/remove_many", r#"["a"]"#).await, (200, json!({"removed": 1})));
        let (_, stats) = asked(&stub, "GET", "/stats", "").await;
        assert_eq!((&stats["counters"]["puts"], &stats["usage"]), (&json!(2), &Value::Null));
        assert_eq!(asked(&stub, "DELETE", "/entries", "").await, (200, json!({"removed": 1})));
    });
}

#[test]
fn what_is_malformed_is_refused_and_nothing_of_it_is_done() {
    let kit = start();
    kit.run(async {
        let stub = stub(&kit);
        for (method, path, body, status) in [
            ("POST", "/get_many", "", 400),
            ("POST", "/get_many", "[1]", 400),
            ("POST", "/remove_many", "{}", 400),
            ("POST", "/put_many", "", 400),
            ("POST", "/put_many", "[{\"key\":\"a\",\"bytes\":1}]\n", 400),
            ("POST", "/put_many", "[{\"key\":\"a\",\"bytes\":1}]\nxy", 400),
            ("POST", "/put_many", "[{\"key\":\"a\",\"bytes\":-1}]\n", 400),
            (
                "POST",
                "/put_many",
                "[{\"key\":\"a\",\"bytes\":1},{\"key\":\"b\",\"bytes\":1,\"ttl\":\"NaN\"}]\nxy",
                400,
            ),
            ("GET", "/entries?limit=x", "", 400),
            ("GET", "/entries?limit=-1", "", 400),
            ("GET", "/entries?reverse=maybe", "", 400),
            ("GET", "/entries?prefix=%FF", "", 400),
            ("PUT", "/entries", "", 405),
            ("POST", "/count", "", 405),
            ("GET", "/put_many", "", 405),
        ] {
            let (answered, reason) = asked(&stub, method, path, body).await;
            assert_eq!(answered, status, "{method} {path} {body}");
            assert!(reason["message"].is_string(), "{reason}");
        }
        assert_eq!(asked(&stub, "POST", "/put_many", vec![b' '; (8 << 20) + 1]).await.0, 413);
        assert_eq!(asked(&stub, "GET", "/count", "").await, (200, json!({"count": 0})));
    });
}

/// Room for twenty small entries or one large one.
struct Small<const REFUSE: bool>;

impl<const REFUSE: bool> CacheSettings for Small<REFUSE> {
    fn settings() -> Settings {
        let on_full = if REFUSE { OnFull::Refuse } else { OnFull::Evict };
        Settings::new().max_entries(20).max_bytes(100).on_full(on_full)
    }

    fn pace() -> Pace {
        Pace::new().slack(Duration::from_secs(5))
    }
}

#[test]
fn a_put_that_finds_no_room_yet_is_503_and_its_stub_tries_again() {
    let kit = Kit::builder().object::<TtlCache<_, Small<false>>>("CACHE").start().unwrap();
    kit.run(async {
        let stub = stub(&kit);
        let cache = TtlCacheStub::new(stub.clone()).seed(1);
        let small: Vec<_> = (0..20).map(|n| (format!("k{n}"), "v", Ttl::secs(60))).collect();
        let _ = cache.put_many(small.clone()).await.unwrap();
        let put = http::Request::put("http://c/entry/large").body("x".repeat(90).into()).unwrap();
        let refused = stub.fetch(put).await.unwrap();
        assert_eq!(
            (refused.status().as_u16(), &refused.headers()["retry-after"]),
            (503, &"1".parse().unwrap())
        );
        assert!(!cache.contains("large").await.unwrap());
        let _ = cache.clear().await.unwrap();
        let _ = cache.put_many(small).await.unwrap();
        let again = cache.clone();
        // Also what is not repeated when nobody knows whether it was done.
        let put = kit.spawn(async move { again.put_if_absent("large", "x".repeat(90), Ttl::secs(9)).await });
        kit.advance(Duration::from_secs(1)).await;
        put.await.unwrap();
        assert!(cache.contains("large").await.unwrap());
        let stats = cache.stats().await.unwrap();
        let usage = stats.usage.unwrap();
        assert!(usage.bytes <= 100 && stats.counters.evicted >= 20, "{stats:?}");
        let error = cache.put("larger", "x".repeat(100), Ttl::NEVER).await.unwrap_err();
        assert_eq!((error.kind(), error.is_indefinite()), (ErrorKind::Limit, false), "{error}");
    });
}

#[test]
fn a_store_that_refuses_says_so_and_keeps_what_it_has() {
    let kit = Kit::builder().object::<TtlCache<_, Small<true>>>("CACHE").start().unwrap();
    kit.run(async {
        let cache = TtlCacheStub::new(stub(&kit));
        let _ = cache.put_many((0..20).map(|n| (format!("k{n}"), "v", Ttl::secs(60)))).await.unwrap();
        let error = cache.put("new", "v", Ttl::secs(60)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Limit, "{error}");
        assert_eq!((cache.count().await.unwrap(), cache.stats().await.unwrap().counters.refused), (20, 1));
        kit.advance(Duration::from_secs(60)).await;
        // In an instance of its own: the one that has put them has left memory.
        let stats = cache.stats().await.unwrap();
        assert_eq!((stats.backlog, stats.oldest_overdue, stats.alarms_set), (20, Some(Duration::ZERO), 0));
        let _ = cache.put("new", "v", Ttl::secs(60)).await.unwrap();
        assert_eq!(cache.count().await.unwrap(), 1);
    });
}
