//! The HTTP face, by clients that lie, repeat themselves and ask for too much. A client's fault is never a 500, and an
//! answer is never as large as what was wrong.

use do_core::{
    kit::Kit,
    prelude::*,
    tokio::{HostState, HostStub},
};
use do_ttl::{ENTRY_BYTES, TtlCache};
use serde_json::{Value, json};

fn object() -> (Kit, HostStub) {
    let kit = Kit::builder().object::<TtlCache<HostState>>("CACHE").start().unwrap();
    let stub = kit.namespace("CACHE").unwrap().named("c").unwrap();
    (kit, stub)
}

async fn ask(
    stub: &HostStub,
    (method, path): (&str, &str),
    headers: &[(&str, &str)],
    body: impl Into<Body>,
) -> (u16, Vec<u8>) {
    let mut request = http::Request::builder().method(method).uri(format!("http://c{path}"));
    for (name, value) in headers {
        request = request.header(*name, http::HeaderValue::from_bytes(value.as_bytes()).unwrap());
    }
    let response = stub.fetch(request.body(body.into()).unwrap()).await.unwrap();
    (response.status().as_u16(), response.into_body().bytes(20 << 20).await.unwrap().to_vec())
}

async fn refused(
    stub: &HostStub,
    what: (&str, &str),
    headers: &[(&str, &str)],
    body: impl Into<Body>,
) -> u16 {
    let (status, answer) = ask(stub, what, headers, body).await;
    assert!((400..500).contains(&status), "{what:?} {headers:?} {status}");
    assert!(answer.len() < 1_000, "{what:?} {headers:?} answered {} bytes", answer.len());
    let reason: Value = serde_json::from_slice(&answer).unwrap();
    assert!(reason["message"].is_string(), "{reason}");
    status
}

#[test]
fn paths_that_try_to_be_others_are_keys_or_nothing() {
    let (kit, stub) = object();
    kit.run(async {
        for path in [
            "//entry/a",
            "/entry//",
            "/entry//a",
            "/entry/a/",
            "/entry/a/../b",
            "/ENTRY/a",
            "/entry%2Fa",
            "/entryx/a",
            "/entries/",
            "/count/",
            "/take",
            "/take//a",
            "/stats/x",
            "/get_many/",
            "/%65ntry/a",
        ] {
            let status = refused(&stub, ("GET", path), &[], "").await;
            assert!(status == 404 || status == 400, "{path} {status}");
        }
        for path in [
            "/entry/%ED%A0%80",
            "/entry/%C0%80",
            "/entry/%F4%90%80%80",
            "/entry?key=%80",
            "/entries?start=%FE",
        ] {
            assert_eq!(refused(&stub, ("GET", path), &[], "").await, 400, "{path}");
        }
        for (path, key) in [
            ("/entry/%2e%2e", ".."),
            ("/entry/%2F..%2F", "/../"),
            ("/entry/%", "%"),
            ("/entry/%zz", "%zz"),
            ("/entry/%2541", "%41"),
            ("/entry/a;b=c", "a;b=c"),
            ("/entry/a?key=b", "a"),
            ("/entry/%F4%8F%BF%BF", "\u{10ffff}"),
        ] {
            assert_eq!(ask(&stub, ("PUT", path), &[], key).await.0, 204, "{path}");
            let found = ask(&stub, ("POST", "/get_many"), &[], json!([key]).to_string()).await;
            assert_eq!(found.0, 200);
            assert!(found.1.ends_with(key.as_bytes()), "{path}");
        }
        let long = format!("/entry/{}", "%00".repeat(513));
        assert_eq!(refused(&stub, ("PUT", &long), &[], "x").await, 413);
        for method in ["GET", "DELETE"] {
            assert_eq!(refused(&stub, (method, &long), &[], "").await, 404);
        }
        for path in
            ["/entries?limit=", "/entries?limit=1e3", "/entries?limit=4294967296", "/entries?limit=%D9%A1"]
        {
            assert_eq!(refused(&stub, ("GET", path), &[], "").await, 400, "{path}");
        }
        assert_eq!(ask(&stub, ("GET", "/entries?limit=4294967295&limit=x"), &[], "").await.0, 200);
    });
}

#[test]
fn times_that_are_tricks_are_refused_and_change_nothing() {
    let (kit, stub) = object();
    kit.run(async {
        assert_eq!(ask(&stub, ("PUT", "/entry/k"), &[], "old").await.0, 204);
        let huge = "9".repeat(30_000);
        for ttl in [
            "",
            ";",
            ";;",
            "5;",
            ";5",
            "5;;jitter=1",
            "1e3",
            "1_000",
            "0x10",
            "1 000",
            "+5",
            "- 5",
            "\u{661}",
            "５",
            "never;jitter",
            "never=1",
            "sliding",
            "sliding=",
            "sliding=;max_age=5",
            "max_age=5",
            "jitter=5",
            "until=now",
            "5;jitter=1e1",
            "5;jitter=101",
            "5;jitter=-1",
            "5;max_age=",
            "5, 6",
            "5;until=6",
            "\"5\"",
            "5\t6",
            &huge,
            "9007199254740992",
            "-9007199254740992",
            "NaN",
            "null",
        ] {
            for (method, body) in [("PUT", "new"), ("PATCH", "")] {
                let status = refused(&stub, (method, "/entry/k"), &[("ttl", ttl)], body).await;
                assert_eq!(status, 400, "{method} {ttl:.40}");
            }
        }
        // Twice is no time: hosts that join lines and those that do not are to agree.
        let twice = [("ttl", "5"), ("ttl", "6")];
        assert_eq!(refused(&stub, ("PUT", "/entry/k"), &twice, "new").await, 400);
        assert_eq!(refused(&stub, ("PATCH", "/entry/k"), &[], "").await, 400);
        assert_eq!(ask(&stub, ("GET", "/entry/k"), &[], "").await, (200, b"old".to_vec()));
        for (ttl, left) in
            [("-0", 404), ("sliding=-5", 404), ("00000000000000000000005000", 200), ("until=-1", 404)]
        {
            assert_eq!(ask(&stub, ("PUT", "/entry/t"), &[("ttl", ttl)], "v").await.0, 204, "{ttl}");
            assert_eq!(ask(&stub, ("GET", "/entry/t"), &[], "").await.0, left, "{ttl}");
        }
    });
}

#[test]
fn conditions_that_are_tricks_are_refused_or_not_met() {
    let (kit, stub) = object();
    kit.run(async {
        assert_eq!(ask(&stub, ("PUT", "/entry/k"), &[], "old").await.0, 204);
        let many: String = (0..5_000).map(|n| format!("\"{n}\", ")).collect::<String>() + "\"x\"";
        for (name, value, expected) in [
            ("if-match", "\"\"", 412),
            ("if-match", "\"18446744073709551616\"", 412),
            ("if-match", "\"18446744073709551615\"", 412),
            ("if-match", "\"-1\"", 412),
            ("if-match", "\"*\"", 412),
            ("if-match", many.as_str(), 412),
            ("if-none-match", many.as_str(), 204),
            ("if-match", "**", 400),
            ("if-match", "\"1", 400),
            ("if-match", "1\"", 400),
            ("if-match", "\"1\"\"2\"", 400),
            ("if-none-match", "W/*", 400),
            ("if-match", "", 400),
        ] {
            let (status, answer) = ask(&stub, ("PUT", "/entry/k"), &[(name, value)], "old").await;
            assert_eq!(status, expected, "{name} {value:.40}");
            assert!(answer.len() < 300);
        }
    });
}

#[test]
fn bodies_for_many_that_lie_are_refused_and_nothing_is_done() {
    let (kit, stub) = object();
    kit.run(async {
        assert_eq!(ask(&stub, ("PUT", "/entry/k"), &[], "old").await.0, 204);
        let given = |bytes: &str| format!("[{{\"key\":\"k\",\"bytes\":{bytes}}}]\nxyz");
        for bytes in [
            "4",
            "2",
            "0",
            "-1",
            "1.5",
            "3e0",
            "\"3\"",
            "null",
            "18446744073709551615",
            "18446744073709551616",
            "1e400",
        ] {
            assert_eq!(refused(&stub, ("POST", "/put_many"), &[], given(bytes)).await, 400, "{bytes}");
        }
        let wide = "x".repeat(2 << 20);
        let deep = "[".repeat(1 << 20);
        for body in [
            "\n",
            "\nxyz",
            "[]\nxyz",
            "{}\n",
            "null",
            "[null]",
            "[{}]",
            "[[]]",
            "[{\"key\":1,\"bytes\":0}]",
            "[{\"key\":\"\\ud800\",\"bytes\":0}]",
            "[{\"bytes\":0}]",
            "[{\"key\":\"a\",\"key\":\"b\",\"bytes\":0}]",
            "[{\"key\":\"k\",\"bytes\":0,\"ttl\":5}]",
            "[{\"key\":\"k\",\"bytes\":0,\"ttl\":\";;\"}]",
            &deep,
            &format!("[{{\"key\":\"k\",\"bytes\":0,\"ttl\":\"{wide}\"}}]"),
            &format!("\"{wide}\""),
            &format!("[{{\"key\":\"k\",\"bytes\":\"{wide}\"}}]"),
            &wide,
        ] {
            let status = refused(&stub, ("POST", "/put_many"), &[], body.to_owned()).await;
            assert_eq!(status, 400, "{body:.60}");
        }
        for path in ["/get_many", "/remove_many"] {
            for body in [
                "[\"\\ud800\"]",
                "[null]",
                "[[\"k\"]]",
                "\"k\"",
                "[\"k\"",
                "[\"k\"] x",
                &deep,
                &format!("\"{wide}\""),
            ] {
                assert_eq!(
                    refused(&stub, ("POST", path), &[], body.to_owned()).await,
                    400,
                    "{path} {body:.60}"
                );
            }
            let keys: Vec<String> = (0..10_000).map(|n| n.to_string()).collect();
            assert_eq!(refused(&stub, ("POST", path), &[], json!(keys).to_string()).await, 413);
            let endless = format!("[{}\"\"]", "\"\",".repeat(2_700_000));
            assert_eq!(refused(&stub, ("POST", path), &[], endless).await, 413);
            assert_eq!(refused(&stub, ("POST", path), &[], vec![0xff; (8 << 20) + 1]).await, 413);
        }
        let many: Vec<Value> = (0..10_000).map(|n| json!({"key": n.to_string(), "bytes": 0})).collect();
        assert_eq!(refused(&stub, ("POST", "/put_many"), &[], json!(many).to_string()).await, 413);
        let long = format!("[{{\"key\":\"{}\",\"bytes\":0}}]", "k".repeat(513));
        assert_eq!(refused(&stub, ("POST", "/put_many"), &[], long).await, 413);
        let (status, counted) = ask(&stub, ("GET", "/count"), &[], "").await;
        assert_eq!((status, counted), (200, b"{\"count\":1}".to_vec()));
        assert_eq!(ask(&stub, ("GET", "/entry/k"), &[], "").await.1, b"old");
    });
}

#[test]
fn a_key_that_is_longer_than_a_value_may_be_is_only_absent() {
    let (kit, stub) = object();
    kit.run(async {
        let keys = json!(["k".repeat(3 << 20), "k"]).to_string();
        assert_eq!(ask(&stub, ("PUT", "/entry/k"), &[], "v").await.0, 204);
        let (status, body) = ask(&stub, ("POST", "/get_many"), &[], keys.clone()).await;
        assert_eq!(
            (status, &body[..24], body.last()),
            (200, &b"{\"entries\":[null,{\"bytes"[..], Some(&b'v'))
        );
        let (status, body) = ask(&stub, ("POST", "/remove_many"), &[], keys).await;
        assert_eq!((status, body), (200, b"{\"removed\":1}".to_vec()));
    });
}

#[test]
fn a_body_without_a_length_counts_by_what_comes() {
    let (kit, stub) = object();
    kit.run(async {
        let chunks = |n: usize| {
            let (sender, body) = Body::channel(8 << 20);
            (0..n).for_each(|_| sender.try_send(vec![1; 1 << 16]).unwrap());
            body
        };
        assert_eq!(ask(&stub, ("PUT", "/entry/k"), &[], chunks(2)).await.0, 204);
        let over = ENTRY_BYTES / (1 << 16) + 1;
        assert_eq!(refused(&stub, ("PUT", "/entry/k"), &[], chunks(over)).await, 413);
        assert_eq!(ask(&stub, ("GET", "/entry/k"), &[], "").await.1.len(), 2 << 16);
    });
}
