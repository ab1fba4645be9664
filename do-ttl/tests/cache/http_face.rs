//! The HTTP face: statuses, headers and bodies.

use bytes::Bytes;
use do_core::{
    kit::Kit,
    prelude::*,
    tokio::{HostState, HostStub},
};
use do_ttl::{CacheSettings, ENTRY_BYTES, Settings, Ttl, TtlCache};
use http::HeaderMap;

fn object<C: CacheSettings>() -> (Kit, HostStub) {
    let kit = Kit::builder().object::<TtlCache<HostState, C>>("CACHE").start().unwrap();
    let stub = kit.namespace("CACHE").unwrap().named("c").unwrap();
    (kit, stub)
}

/// An answer.
#[derive(Debug)]
struct Answer {
    status: u16,
    headers: HeaderMap,
    body: Bytes,
}

impl Answer {
    fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// The word of a refusal.
    fn word(&self) -> (u16, String) {
        let reason: serde_json::Value = serde_json::from_slice(&self.body).unwrap();
        assert!(reason["message"].is_string(), "{reason}");
        (self.status, reason["error"].as_str().unwrap().to_owned())
    }
}

async fn ask(stub: &HostStub, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
    let mut request = http::Request::builder().method(method).uri(format!("http://c{path}"));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let response = stub.fetch(request.body(body.to_owned().into()).unwrap()).await.unwrap();
    let (parts, body) = response.into_parts();
    Answer {
        status: parts.status.as_u16(),
        headers: parts.headers,
        body: body.bytes(ENTRY_BYTES).await.unwrap(),
    }
}

async fn get(stub: &HostStub, path: &str) -> Answer {
    ask(stub, "GET", path, &[], "").await
}

#[test]
fn a_value_is_put_read_described_and_removed() {
    let (kit, stub) = object::<()>();
    kit.run(async {
        let put = ask(&stub, "PUT", "/entry/a%2Fb", &[("ttl", "60000")], "hello").await;
        let until = (kit.now() + Duration::from_secs(60)).to_string();
        assert_eq!((put.status, put.header("ttl"), put.header("expires-at")), (204, "60000", until.as_str()));
        let tag = put.header("etag").to_owned();
        assert!(tag.starts_with('"') && tag.ends_with('"') && tag.len() > 2, "{tag}");

        kit.advance(Duration::from_secs(20)).await;
        let got = get(&stub, "/entry/a%2Fb").await;
        assert_eq!((got.status, &got.body[..]), (200, &b"hello"[..]));
        for (name, value) in [
            ("etag", tag.as_str()),
            ("ttl", "40000"),
            ("expires-at", &until),
            ("content-type", "application/octet-stream"),
            ("x-content-type-options", "nosniff"),
            ("cache-control", "no-cache"),
        ] {
            assert_eq!(got.header(name), value, "{name}");
        }
        let head = ask(&stub, "HEAD", "/entry?key=a/b", &[], "").await;
        assert_eq!((head.status, head.header("content-length"), head.body.len()), (200, "5", 0));
        assert_eq!((head.header("etag"), head.header("ttl")), (tag.as_str(), "40000"));

        assert_eq!(ask(&stub, "DELETE", "/entry/a%2Fb", &[], "").await.status, 204);
        for method in ["GET", "DELETE"] {
            let gone = ask(&stub, method, "/entry/a%2Fb", &[], "").await;
            assert_eq!(gone.word(), (404, "absent".to_owned()), "{method}");
        }
        let head = ask(&stub, "HEAD", "/entry/a%2Fb", &[], "").await;
        assert_eq!((head.status, head.header("refused"), head.body.len()), (404, "absent", 0));
    });
}

#[test]
fn a_touch_changes_the_time_and_keeps_the_version() {
    let (kit, stub) = object::<()>();
    kit.run(async {
        let put = ask(&stub, "PUT", "/entry/k", &[("ttl", "1000")], "v").await;
        let touched = ask(&stub, "PATCH", "/entry/k", &[("ttl", "never")], "").await;
        assert_eq!((touched.status, touched.header("ttl"), touched.header("expires-at")), (204, "never", ""));
        assert_eq!(touched.header("etag"), put.header("etag"));
        kit.advance(Duration::from_secs(5)).await;
        assert_eq!(get(&stub, "/entry/k").await.status, 200);
        assert_eq!(ask(&stub, "PATCH", "/entry/k", &[], "").await.word(), (400, "invalid".to_owned()));
        assert_eq!(ask(&stub, "PATCH", "/entry/k", &[("ttl", "-1")], "").await.status, 204);
        assert_eq!(get(&stub, "/entry/k").await.status, 404);
        assert_eq!(ask(&stub, "PATCH", "/entry/k", &[("ttl", "1")], "").await.word().0, 404);
    });
}

#[test]
fn t13_an_entry_is_gone_at_its_moment_and_its_alarm_sweeps_it() {
    let (kit, stub) = object::<()>();
    kit.run(async {
        assert_eq!(ask(&stub, "PUT", "/entry/k", &[("ttl", "1000")], "v").await.status, 204);
        kit.advance(Duration::from_millis(999)).await;
        assert_eq!(get(&stub, "/entry/k").await.header("ttl"), "1");
        kit.advance(Duration::from_millis(1)).await;
        assert_eq!(get(&stub, "/entry/k").await.status, 404);
        assert_eq!(ask(&stub, "HEAD", "/entry/k", &[], "").await.status, 404);
    });
}

#[test]
fn a_sliding_entry_is_used_by_get_and_not_by_head() {
    let (kit, stub) = object::<()>();
    kit.run(async {
        let ttl = [("ttl", "sliding=1000;max_age=2500")];
        assert_eq!(ask(&stub, "PUT", "/entry/k", &ttl, "v").await.header("ttl"), "1000");
        for left in ["1000", "900"] {
            kit.advance(Duration::from_millis(800)).await;
            assert_eq!(ask(&stub, "HEAD", "/entry/k", &[], "").await.header("ttl"), "200");
            assert_eq!(get(&stub, "/entry/k").await.header("ttl"), left, "at most its age");
        }
        kit.advance(Duration::from_millis(900)).await;
        assert_eq!(get(&stub, "/entry/k").await.status, 404);
    });
}

#[test]
fn conditions_are_kept_by_every_method() {
    let (kit, stub) = object::<()>();
    kit.run(async {
        let absent = [("if-none-match", "*"), ("ttl", "never")];
        let first = ask(&stub, "PUT", "/entry/k", &absent, "1").await;
        assert_eq!(first.status, 204);
        let refused = ask(&stub, "PUT", "/entry/k", &absent, "2").await;
        assert_eq!((refused.status, &refused.body[..], refused.header("ttl")), (412, &b"1"[..], "never"));
        assert_eq!(refused.header("etag"), first.header("etag"));

        let old = [("if-match", first.header("etag"))];
        let second = ask(&stub, "PUT", "/entry/k", &old, "2").await;
        assert_eq!(second.status, 204);
        assert_ne!(second.header("etag"), first.header("etag"));
        for (method, path) in [
            ("PUT", "/entry/k"),
            ("PATCH", "/entry/k"),
            ("DELETE", "/entry/k"),
            ("GET", "/entry/k"),
            ("POST", "/take/k"),
        ] {
            let refused = ask(&stub, method, path, &old, "3").await;
            assert_eq!((refused.status, &refused.body[..]), (412, &b"2"[..]), "{method}");
            let nothing = ask(&stub, method, &path.replace('k', "none"), &[("if-match", "*")], "3").await;
            // The letter stands in `take` as well.
            let status = if method == "POST" { 404 } else { 412 };
            assert_eq!(nothing.status, status, "{method}");
        }
        assert_eq!(ask(&stub, "HEAD", "/entry/k", &old, "").await.status, 412);

        let new = [("if-none-match", second.header("etag"))];
        let same = ask(&stub, "GET", "/entry/k", &new, "").await;
        assert_eq!((same.status, same.body.len()), (304, 0));
        assert_eq!((same.header("etag"), same.header("ttl")), (second.header("etag"), "never"));
        assert_eq!(ask(&stub, "HEAD", "/entry/k", &new, "").await.status, 304);
        assert_eq!(ask(&stub, "GET", "/entry/k", &[("if-none-match", "\"1\"")], "").await.status, 200);
        assert_eq!(ask(&stub, "GET", "/entry/k", &[("if-match", "7")], "").await.word().0, 400);

        let taken = ask(&stub, "POST", "/take/k", &[("if-match", second.header("etag"))], "").await;
        assert_eq!((taken.status, &taken.body[..]), (200, &b"2"[..]));
        assert_eq!(ask(&stub, "POST", "/take/k", &[], "").await.word(), (404, "absent".to_owned()));
    });
}

#[test]
fn any_bytes_are_a_value_and_any_text_is_a_key() {
    let (kit, stub) = object::<()>();
    kit.run(async {
        let all: Vec<u8> = (0..=255).collect();
        let keys = [
            "/entry/",
            "/entry?key=",
            "/entry?key=.",
            "/entry?key=..",
            "/entry/%00",
            "/entry/a%20b",
            "/entry/a+b",
        ];
        for (n, path) in (0_u8..).zip(keys) {
            let mut value = all.clone();
            value.push(n);
            let put = http::Request::put(format!("http://c{path}")).body(Body::from(value)).unwrap();
            assert_eq!(stub.fetch(put).await.unwrap().status(), 204, "{path}");
        }
        for (n, path) in (0_u8..).zip(keys) {
            // The first two are one key: the second put counts.
            let n = n.max(1);
            let got = get(&stub, path).await;
            assert_eq!((got.status, got.header("ttl"), got.body.last()), (200, "never", Some(&n)), "{path}");
            assert_eq!(got.body[..256], all[..]);
        }
        assert_eq!(ask(&stub, "PUT", "/entry/empty", &[], "").await.status, 204);
        let empty = get(&stub, "/entry/empty").await;
        assert_eq!((empty.status, empty.body.len()), (200, 0));
    });
}

#[test]
fn refusals_are_told_apart_and_change_nothing() {
    let (kit, stub) = object::<()>();
    kit.run(async {
        assert_eq!(ask(&stub, "PUT", "/entry/k", &[], "old").await.status, 204);
        for ttl in ["NaN", "Infinity", "9007199254740992", "1.5", "soon", "", "until=x", "5;jitter=200"] {
            let refused = ask(&stub, "PUT", "/entry/k", &[("ttl", ttl)], "new").await;
            assert_eq!(refused.word(), (400, "invalid".to_owned()), "{ttl}");
        }
        let large = "x".repeat(ENTRY_BYTES);
        for (path, body) in [("/entry/k", large.as_str()), (&format!("/entry/{}", "k".repeat(1_025)), "new")]
        {
            assert_eq!(ask(&stub, "PUT", path, &[], body).await.word(), (413, "limit".to_owned()));
        }
        let larger = format!("{large}x");
        assert_eq!(ask(&stub, "PUT", "/entry/k", &[], &larger).await.word(), (413, "limit".to_owned()));
        for (path, status, word) in [
            ("/", 404, "unknown_path"),
            ("/entry/a/b", 404, "unknown_path"),
            ("/entry", 400, "invalid"),
            ("/entry/%FF", 400, "invalid"),
        ] {
            assert_eq!(get(&stub, path).await.word(), (status, word.to_owned()), "{path}");
        }
        for (method, path, allow) in [
            ("POST", "/entry/k", "GET, HEAD, PUT, PATCH, DELETE"),
            ("OPTIONS", "/entry/k", "GET, HEAD, PUT, PATCH, DELETE"),
            ("GET", "/take/k", "POST"),
        ] {
            let refused = ask(&stub, method, path, &[], "").await;
            assert_eq!((refused.header("allow"), refused.header("refused")), (allow, "method_not_allowed"));
            assert_eq!(refused.word(), (405, "method_not_allowed".to_owned()));
        }
        assert_eq!(get(&stub, "/entry/k").await.body, "old");
        let most = "x".repeat(ENTRY_BYTES - 1);
        assert_eq!(ask(&stub, "PUT", "/entry/k", &[], &most).await.status, 204);
        assert_eq!(get(&stub, "/entry/k").await.body.len(), ENTRY_BYTES - 1);
    });
}

#[test]
fn t10_a_time_that_is_over_removes_and_answers_without_a_version() {
    let (kit, stub) = object::<()>();
    kit.run(async {
        for ttl in ["0", "-1", "-9007199254740991", "until=1", "sliding=0"] {
            assert_eq!(ask(&stub, "PUT", "/entry/k", &[], "v").await.status, 204);
            let put = ask(&stub, "PUT", "/entry/k", &[("ttl", ttl)], "v").await;
            assert_eq!((put.status, put.header("etag"), put.header("ttl")), (204, "", ""), "{ttl}");
            assert_eq!(get(&stub, "/entry/k").await.status, 404, "{ttl}");
        }
        let most = ask(&stub, "PUT", "/entry/k", &[("ttl", "9007199254740991")], "v").await;
        assert_eq!(most.header("ttl"), "never");
    });
}

#[test]
fn settings_are_those_of_the_type() {
    struct Short;
    impl CacheSettings for Short {
        fn settings() -> Settings {
            Settings::new().notify(true)
        }
        fn ttl() -> Ttl {
            Ttl::secs(5)
        }
    }
    let (kit, stub) = object::<Short>();
    kit.run(async {
        assert_eq!(ask(&stub, "PUT", "/entry/k", &[], "v").await.header("ttl"), "5000");
        assert_eq!(ask(&stub, "PUT", "/entry/l", &[("ttl", "9")], "v").await.header("ttl"), "9");
        kit.advance(Duration::from_secs(10)).await;
        assert_eq!(get(&stub, "/entry/k").await.status, 404);
    });
}
