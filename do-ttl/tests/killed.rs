//! A process that is killed while it sweeps. Alone in its program: a process that is being started holds the locks of its
//! parent for a moment, and would keep hosts of other tests from starting.
#![cfg(not(target_arch = "wasm32"))]
#![allow(clippy::unwrap_used, clippy::panic)] // tests fail by panics

use do_core::{
    prelude::*,
    tokio::{Host, ManualClock},
};
use do_ttl::{Expired, Pace, Settings, Sweeper, Ttl, TtlStore};
use serde_json::{Value, json};
use std::{
    env,
    os::unix::process::ExitStatusExt as _,
    path::Path,
    process::{Command, Stdio},
};

/// Tells the process that is to be killed its directory, and which object.
const DIRECTORY: &str = "DO_TTL_KILLED_DIRECTORY";
const OBJECT: &str = "DO_TTL_KILLED_OBJECT";
/// The object whose store notifies.
const NOTIFIES: &str = "notifies";
/// Rows that expire together.
const ROWS: u64 = 1_000;
const BEGIN: Timestamp = Timestamp::from_millis(1_000_000);

/// A store whose sweep takes many turns.
struct Object<S: ObjectState> {
    state: S,
    notifies: bool,
    sweeper: Sweeper<S>,
    store: TtlStore<S>,
}

impl<S: ObjectState> DurableObject<S> for Object<S> {
    fn new(state: S) -> Result<Self> {
        state.sql().migrate(&["CREATE TABLE told (key TEXT NOT NULL, attempt INTEGER NOT NULL)"])?;
        let sweeper = Sweeper::with(&state, Pace::new().slice_rows(4), Alarm::raw(&state));
        let notifies = state.id().name().is_some_and(|name| name.as_str() == NOTIFIES);
        let store = sweeper.store("rows", Settings::new().notify(notifies))?;
        Ok(Self { state, notifies, sweeper, store })
    }

    async fn fetch(&self, request: Request) -> Result<Response> {
        let count = |table: &str| {
            let sql = format!("SELECT count(*) FROM {table}");
            self.state.sql().scalar::<u64>(&sql, ())
        };
        if request.method() == Method::POST {
            let rows = (0..ROWS).map(|n| (n.to_string(), "v".repeat(100), Ttl::secs(1)));
            self.store.put_many(rows)?;
            self.store.put("stays", "v", Ttl::NEVER)?;
            return Ok(reply::text("null"));
        }
        let told = self.state.sql().scalar::<u64>("SELECT count(DISTINCT key) FROM told", ())?;
        let seen: Vec<_> = self.store.list_keys(do_core::Keys::all())?.keys().map(str::to_owned).collect();
        Ok(reply::json(&json!({
            "rows": count("_ttl")?, "seen": seen, "told": count("told")?, "told of": told,
            "alarm": self.state.alarms().get().await?,
        }))?)
    }

    async fn alarm(&self, _: AlarmInfo) -> Result<()> {
        if env::var_os(DIRECTORY).is_some() {
            self.state.wait_until(kill_in_the_middle(self.state.clone()));
        }
        if !self.notifies {
            return Ok(self.sweeper.on_alarm().await?);
        }
        let handler = async |expired: Expired| {
            self.state.sql().exec("INSERT INTO told VALUES (?, ?)", (expired.key, expired.attempt))?;
            Ok(())
        };
        Ok(self.sweeper.on_alarm_with(handler).await?)
    }
}

/// Ends this process as `kill -9` does, between two slices.
async fn kill_in_the_middle<S: ObjectState>(state: S) {
    while state.sql().scalar::<u64>("SELECT count(*) FROM _ttl", ()).unwrap().unwrap() > ROWS * 3 / 4 {
        state.sleep(Duration::ZERO).await;
    }
    rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL).unwrap();
}

fn start(dir: &Path, clock: &ManualClock) -> Host {
    Host::builder(dir).clock(clock.clone()).shards(1).object::<Object<_>>("STORE").start().unwrap()
}

async fn ask(host: &Host, object: &str, method: Method) -> Value {
    let mut request = Request::new(Body::empty());
    *request.method_mut() = method;
    let answer = host.namespace("STORE").unwrap().named(object).unwrap().fetch(request).await.unwrap();
    answer.into_body().json(1 << 20).await.unwrap()
}

/// Sweeps in the directory that it is told, and is killed by that. In any other process it does nothing.
#[tokio::test]
async fn the_process_that_is_killed() {
    let (Some(dir), Ok(object)) = (env::var_os(DIRECTORY), env::var(OBJECT)) else { return };
    let clock = ManualClock::at(BEGIN);
    let host = start(Path::new(&dir), &clock);
    ask(&host, &object, Method::POST).await;
    clock.advance(Duration::from_secs(3));
    std::future::pending::<()>().await;
}

/// Starts that process and waits for its end.
fn kill(dir: &Path, object: &str) {
    let status = Command::new(env::current_exe().unwrap())
        .args(["--exact", "the_process_that_is_killed"])
        .env(DIRECTORY, dir)
        .env(OBJECT, object)
        .stdout(Stdio::null())
        .status()
        .unwrap();
    assert_eq!(status.signal(), Some(9));
}

/// What is there once the sweep of what was left is over, and what was there before it.
async fn restart(dir: &Path, object: &str) -> (Value, Value) {
    // Between the expiry and the alarm, which a slack later begins anew.
    let clock = ManualClock::at(BEGIN + Duration::from_millis(1_500));
    let host = start(dir, &clock);
    let before = ask(&host, object, Method::GET).await;
    clock.advance(Duration::from_secs(60));
    loop {
        let after = ask(&host, object, Method::GET).await;
        assert_eq!(after["seen"], json!(["stays"]));
        if after["rows"] == 1 && after["alarm"].is_null() {
            return (before, after);
        }
    }
}

/// What a process finds that was begun after a kill in the middle, and what is there in the end.
async fn killed(object: &str) -> (Value, Value) {
    let dir = tempfile::tempdir().unwrap();
    kill(dir.path(), object);
    let (before, after) = restart(dir.path(), object).await;
    assert_eq!(before["seen"], json!(["stays"]));
    // The process is killed in a turn, whose commit may not be in the file yet.
    let rows = before["rows"].as_u64().unwrap();
    assert!((ROWS / 2..=ROWS).contains(&rows), "{rows} rows were left");
    (before, after)
}

#[tokio::test]
async fn t6_what_a_killed_process_has_not_swept_is_swept_by_the_next() {
    killed("plain").await;
}

#[tokio::test]
async fn t6_what_a_killed_process_has_not_told_is_told_by_the_next_and_nothing_twice() {
    let (before, after) = killed(NOTIFIES).await;
    // What was told and what is left are one commit.
    assert_eq!(before["told"].as_u64().unwrap() + before["rows"].as_u64().unwrap(), ROWS + 1);
    assert_eq!((&after["told"], &after["told of"]), (&json!(ROWS), &json!(ROWS)));
}
