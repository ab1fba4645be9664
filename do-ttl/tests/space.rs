//! What the sweep deletes makes the file of a native host smaller.
#![cfg(not(target_arch = "wasm32"))]
#![allow(clippy::unwrap_used)] // tests fail by panics

use do_core::{
    prelude::*,
    tokio::{Host, ManualClock},
};
use do_ttl::{Settings, Sweeper, Ttl, TtlStore};
use std::{fs, path::Path};

const ROWS: u64 = 10_000;

struct Object<S: ObjectState> {
    sweeper: Sweeper<S>,
    store: TtlStore<S>,
}

impl<S: ObjectState> DurableObject<S> for Object<S> {
    fn new(state: S) -> Result<Self> {
        let sweeper = Sweeper::new(&state, Alarm::raw(&state));
        let store = sweeper.store("rows", Settings::new())?;
        Ok(Self { sweeper, store })
    }

    async fn fetch(&self, request: Request) -> Result<Response> {
        if request.method() == Method::POST {
            // Nine of ten expire soon.
            let rows = (0..ROWS).map(|n| {
                (format!("{n:05}"), "v".repeat(300), if n % 10 == 0 { Ttl::NEVER } else { Ttl::secs(1) })
            });
            self.store.put_many(rows)?;
        }
        let stats = self.store.stats()?;
        Ok(reply::json(&(stats.backlog, stats.database_size))?)
    }

    async fn alarm(&self, _: AlarmInfo) -> Result<()> {
        Ok(self.sweeper.on_alarm().await?)
    }
}

/// Expired rows that are there, and the bytes that the object is told its database has.
async fn ask(host: &Host, method: Method) -> (u64, u64) {
    let mut request = Request::new(Body::empty());
    *request.method_mut() = method;
    let answer = host.namespace("STORE").unwrap().named("a").unwrap().fetch(request).await.unwrap();
    answer.into_body().json(1 << 10).await.unwrap()
}

/// The largest file of a directory and what is in it: that of the object.
fn largest(dir: &Path) -> u64 {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap());
    entries
        .map(
            |entry| {
                if entry.path().is_dir() { largest(&entry.path()) } else { entry.metadata().unwrap().len() }
            },
        )
        .max()
        .unwrap_or(0)
}

#[tokio::test]
async fn t20_what_is_swept_makes_the_file_smaller() {
    let dir = tempfile::tempdir().unwrap();
    let clock = ManualClock::at(Timestamp::from_millis(1_000_000));
    let start = || {
        let host = Host::builder(dir.path()).clock(clock.clone()).shards(1).object::<Object<_>>("STORE");
        host.start().unwrap()
    };
    let host = start();
    let (_, all) = ask(&host, Method::POST).await;
    host.shutdown(Duration::from_secs(10)).await.unwrap();
    let full = largest(dir.path());
    assert!(full >= all && all > ROWS * 300, "{full} {all}");

    let host = start();
    ask(&host, Method::GET).await;
    clock.advance(Duration::from_secs(3));
    let mut left = ask(&host, Method::GET).await;
    while left.0 > 0 {
        left = ask(&host, Method::GET).await;
    }
    // Step by step between events, when the object has nothing to do: how many events that takes is chance.
    for _ in 0..20_000 {
        clock.advance(Duration::from_millis(10));
        ask(&host, Method::GET).await;
        if largest(dir.path()) < full / 2 {
            break;
        }
    }
    host.shutdown(Duration::from_secs(10)).await.unwrap();
    let bytes = largest(dir.path());
    assert!(left.1 < all / 5 && bytes < full / 2, "{bytes} of {full}; {} of {all}", left.1);
}
