//! Stubs of objects that answer what no cache does: an error each time, never a result that is not one.

use do_core::{kit::Kit, prelude::*};
use do_ttl::{Ttl, TtlCacheStub, Version};
use std::cell::RefCell;

type Headers = Vec<(&'static str, &'static str)>;

thread_local! {
    /// What the object answers: a status, headers, a body.
    static ANSWER: RefCell<(u16, Headers, &'static str)> = RefCell::default();
}

struct Liar;

impl<S: ObjectState> DurableObject<S> for Liar {
    fn new(_: S) -> Result<Self> {
        Ok(Self)
    }

    async fn fetch(&self, _: Request) -> Result<Response> {
        let (status, headers, body) = ANSWER.with_borrow(Clone::clone);
        let mut response = http::Response::builder().status(status);
        for (name, value) in headers {
            response = response.header(name, value);
        }
        Ok(response.body(Body::from(body)).unwrap())
    }
}

/// Every call to an object that answers this; whether each is an error.
async fn calls(kit: &Kit) -> Vec<(&'static str, Result<String, do_core::Error>)> {
    let cache = TtlCacheStub::new(kit.namespace("CACHE").unwrap().named("c").unwrap());
    let keys = do_core::Keys::all();
    let told = |result: Result<String, do_core::Error>| result;
    vec![
        ("get", told(cache.get_entry("k").await.map(|v| format!("{v:?}")))),
        ("take", told(cache.take("k").await.map(|v| format!("{v:?}")))),
        ("put", told(cache.put("k", "v", Ttl::NEVER).await.map(|v| format!("{v:?}")))),
        ("absent", told(cache.put_if_absent("k", "v", Ttl::NEVER).await.map(|v| format!("{v:?}")))),
        (
            "swap",
            told(
                cache
                    .compare_and_swap("k", Version::from_raw(1), "v", Ttl::NEVER)
                    .await
                    .map(|v| format!("{v:?}")),
            ),
        ),
        ("contains", told(cache.contains("k").await.map(|v| format!("{v:?}")))),
        ("touch", told(cache.touch("k", Ttl::NEVER).await.map(|v| format!("{v:?}")))),
        ("remove", told(cache.remove("k").await.map(|v| format!("{v:?}")))),
        ("get_many", told(cache.get_many(["k", "l"]).await.map(|v| format!("{v:?}")))),
        ("put_many", told(cache.put_many([("k", "v", Ttl::NEVER)]).await.map(|v| format!("{v:?}")))),
        ("remove_many", told(cache.remove_many(["k"]).await.map(|v| format!("{v:?}")))),
        ("list", told(cache.list(keys).await.map(|v| format!("{v:?}")))),
        ("list_keys", told(cache.list_keys(keys).await.map(|v| format!("{v:?}")))),
        ("clear", told(cache.clear().await.map(|v| format!("{v:?}")))),
        ("count", told(cache.count().await.map(|v| format!("{v:?}")))),
    ]
}

fn answers(status: u16, headers: &[(&'static str, &'static str)], body: &'static str, fine: &[&str]) {
    ANSWER.set((status, headers.to_vec(), body));
    let kit = Kit::builder().object::<Liar>("CACHE").start().unwrap();
    kit.run(async {
        for (call, result) in calls(&kit).await {
            assert_eq!(
                result.is_ok(),
                fine.contains(&call),
                "{status} {headers:?} {body}: {call} {result:?}"
            );
        }
    });
}

#[test]
fn a_page_of_something_else_is_no_result() {
    // A HEAD has no more than its status.
    answers(200, &[], "<p>hello", &["contains"]);
    answers(200, &[], "", &["contains"]);
    answers(302, &[("location", "/")], "", &[]);
    answers(404, &[], "<p>not found", &[]);
    answers(412, &[], "", &["swap"]);
    answers(206, &[("etag", "\"1\"")], "v", &[]);
}

#[test]
fn headers_that_cannot_be_read_are_no_result() {
    for headers in [
        &[("etag", "1")],
        &[("etag", "\"abc\"")],
        &[("etag", "W/\"1\"")],
        &[("etag", "\"99999999999999999999\"")],
    ] {
        answers(200, headers, "v", &["contains"]);
        answers(204, headers, "", &["remove", "touch"]);
    }
    answers(200, &[("etag", "\"1\""), ("expires-at", "soon")], "v", &["contains"]);
    answers(200, &[("etag", "\"1\""), ("expires-at", "9007199254740992")], "v", &["contains"]);
}

#[test]
fn frames_that_lie_are_no_result() {
    let many = "get_many";
    for body in [
        "{\"entries\":[]}\n",
        "{\"entries\":[null,null,null]}\n",
        "{\"entries\":[{\"version\":1,\"expires\":null,\"bytes\":5},null]}\nabc",
        "{\"entries\":[{\"version\":1,\"expires\":null,\"bytes\":18446744073709551615}]}\nabc",
        "{\"entries\":[{\"version\":1,\"expires\":null}]}\nabc",
        "{\"entries\":[{\"version\":-1,\"expires\":null,\"bytes\":1}]}\nabc",
        "{\"entries\":[null,null]}\nmore bytes than it says",
    ] {
        ANSWER.set((200, vec![], body));
        let kit = Kit::builder().object::<Liar>("CACHE").start().unwrap();
        kit.run(async {
            let result = calls(&kit).await.into_iter().find(|(call, _)| *call == many).unwrap().1;
            assert!(result.is_err(), "{body} {result:?}");
        });
    }
    for body in ["{\"entries\":[]}", "{\"entries\":[null,null]}"] {
        ANSWER.set((200, vec![], body));
        let kit = Kit::builder().object::<Liar>("CACHE").start().unwrap();
        kit.run(async {
            let result = calls(&kit).await.into_iter().find(|(call, _)| *call == "put_many").unwrap().1;
            assert!(result.is_err(), "{body} {result:?}");
        });
    }
}
