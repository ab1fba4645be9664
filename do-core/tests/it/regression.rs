//! Faults that were found once, each with the test that keeps it from coming back.

use crate::common::{Rig, START, ask, join, request, soon};
use do_core::{
    prelude::*,
    testing::Probe,
    tokio::{HostStub, ManualClock},
};
use futures::FutureExt;
use serde_json::{Value, json};
use std::{
    fmt,
    ops::ControlFlow,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
};

/// An error that cannot even be shown.
#[derive(Debug)]
struct BadDisplay {
    panics: bool,
}

impl fmt::Display for BadDisplay {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        assert!(!self.panics, "a rude Display");
        Err(fmt::Error)
    }
}

impl std::error::Error for BadDisplay {}

/// Calls the object `log` when it is dropped.
struct CallsOnDrop<S: ObjectState>(S);

impl<S: ObjectState> Drop for CallsOnDrop<S> {
    fn drop(&mut self) {
        let Ok(log) = self.0.env().namespace("PROBE").and_then(|probes| probes.named("log")) else { return };
        drop(log.fetch(request(&json!([{"note": "escaped"}]))));
    }
}

/// Where the handler that takes its thread's token meets the test.
static MEETING: Mutex<Option<(mpsc::Sender<()>, mpsc::Receiver<()>)>> = Mutex::new(None);

/// What an object can do that the steps of a probe cannot.
struct Odd<S: ObjectState>(S);

impl<S: ObjectState> Odd<S> {
    fn caught_transaction(&self) -> Result<()> {
        let (state, sql) = (&self.0, self.0.sql());
        sql.exec("CREATE TABLE t (x)", ())?;
        let caught = catch_unwind(AssertUnwindSafe(|| {
            sql.transaction(|| -> Result<()> {
                sql.exec("INSERT INTO t VALUES (1)", ())?;
                drop(state.alarms().set(state.now() + Duration::from_secs(5)));
                panic!("in a transaction")
            })
        }));
        if caught.is_ok() {
            return Err(Failure::msg("it did not panic"));
        }
        sql.exec("INSERT INTO t VALUES (2)", ())?;
        Ok(())
    }

    /// 40 rows of 1.9 MB, which is more than may be collected.
    fn large_result(&self) -> Result<Value> {
        const LARGE: &str = "WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 40)
            SELECT zeroblob(1900000) FROM c";
        let kind = self.0.sql().exec(LARGE, ()).err().map(|error| format!("{:?}", error.kind()));
        let mut bytes = 0;
        self.0.sql().for_each(LARGE, (), |row| {
            bytes += row.at::<Vec<u8>>(0)?.len();
            Ok(ControlFlow::Continue(()))
        })?;
        let fits = self.0.sql().exec(&LARGE.replace("40", "30"), ())?.len();
        Ok(json!([kind, bytes, fits]))
    }
}

impl<S: ObjectState> DurableObject<S> for Odd<S> {
    fn new(state: S) -> Result<Self> {
        match state.id().name().map(ObjectName::as_str) {
            Some("bad constructor") => Err(BadDisplay { panics: true }.into()),
            _ => Ok(Self(state)),
        }
    }

    async fn fetch(&self, request: Request) -> Result<Response> {
        let state = &self.0;
        let value = match request.uri().path() {
            "/bad-display" => return Err(BadDisplay { panics: false }.into()),
            "/rude-display" => return Err(BadDisplay { panics: true }.into()),
            "/take-token" => {
                state.sleep(Duration::from_secs(1)).await;
                if let Some((here, go)) = &*MEETING.lock().unwrap() {
                    here.send(())?;
                    go.recv()?;
                    std::thread::park_timeout(Duration::ZERO); // takes the token at the latest
                }
                Value::Null
            }
            "/caught-transaction" => {
                self.caught_transaction()?;
                Value::Null
            }
            "/what-is-left" => {
                let left: Option<i64> = state.sql().scalar("SELECT sum(x) FROM t", ())?;
                json!([left, state.alarms().get().await?])
            }
            "/undone" => {
                let _calls = CallsOnDrop(state.clone());
                state.sql().exec(
                    "CREATE TABLE p (x INTEGER PRIMARY KEY);
                     CREATE TABLE c (y REFERENCES p DEFERRABLE INITIALLY DEFERRED);
                     INSERT INTO c VALUES (77)",
                    (),
                )?;
                state.sleep(Duration::from_secs(100)).await;
                Value::Null
            }
            "/large" => self.large_result()?,
            _ => json!("hello"),
        };
        Ok(reply::json(&value)?)
    }
}

async fn get(stub: &HostStub, path: &str) -> Result<Value, Error> {
    let request = http::Request::get(format!("http://odd{path}")).body(Body::empty()).unwrap();
    let response = soon(stub.fetch(request)).await?;
    soon(response.into_body().json(1_000)).await
}

#[tokio::test]
async fn a_handler_that_takes_its_threads_token_does_not_make_the_shard_sleep_on_work() {
    let rig = Rig::with_class::<Odd<_>>();
    let odd = rig.namespace("OTHER").named("x").unwrap();
    let (here, arrived) = mpsc::channel();
    let (go, gone) = mpsc::channel();
    *MEETING.lock().unwrap() = Some((here, gone));
    for n in 1..=5 {
        let takes = odd.fetch(http::Request::get("http://odd/take-token").body(Body::empty()).unwrap());
        // A timer begins the turn: the shard would go to sleep behind it, were it not for the request.
        rig.settle().await;
        rig.clock.advance(Duration::from_secs(1));
        arrived.recv_timeout(Duration::from_secs(20)).unwrap();
        let waiting = rig.begin("y", json!([{"add": 1}]));
        go.send(()).unwrap();
        assert_eq!(join(waiting).await.unwrap(), json!([n]));
        soon(takes).await.unwrap();
    }
}

#[tokio::test]
async fn e10_a_new_time_set_in_the_turn_of_a_reset_is_kept_by_the_last_retry_too() {
    const DAY: i64 = 86_400_000;
    let rig = Rig::new();
    let on_alarm = json!([{"up_to_runs": [6, [{"fail": "no"}]]}, {"set_alarm": DAY}, {"reset": "again"}]);
    rig.run("x", json!([{"on_alarm": on_alarm}, {"set_alarm": 1_000}])).await.unwrap();
    rig.pass_in_steps(250_000, 1_000).await;
    let runs = rig.last("x", json!(["runs"])).await;
    assert_eq!(runs.as_array().unwrap().len(), 7);
    assert_eq!(runs[6]["retries"], 6);
    let next = runs[6]["at"].as_i64().unwrap() + DAY;
    assert_eq!(rig.last("x", json!(["get_alarm"])).await, json!(next));
    rig.pass(DAY.unsigned_abs()).await;
    let runs = rig.last("x", json!(["runs"])).await;
    assert_eq!((&runs[7]["scheduled"], &runs[7]["retries"]), (&json!(next), &json!(0)));
}

#[tokio::test]
async fn e10_a_new_time_set_in_the_turn_of_a_reset_gives_the_retries_up() {
    let rig = Rig::new();
    let on_alarm = json!([{"set_alarm": 500_000}, {"reset": "again"}]);
    rig.run("x", json!([{"on_alarm": on_alarm}, {"set_alarm": 1_000}])).await.unwrap();
    rig.pass_in_steps(300_000, 1_000).await;
    assert_eq!(rig.last("x", json!(["get_alarm"])).await, json!(START + 501_000));
    let runs = rig.last("x", json!(["runs"])).await;
    assert_eq!(runs, json!([{"at": START + 1_000, "scheduled": START + 1_000, "retries": 0}]));
}

#[tokio::test]
async fn c4_the_end_of_a_body_waits_for_the_commit_of_its_turn() {
    let rig = Rig::new();
    let open = json!(["open", {"chunk": "part"}]);
    let body = soon(rig.stub("x").fetch(request(&open))).await.unwrap().into_body();
    let broken = json!([{"sql": "INSERT INTO child VALUES (77)"}, "close"]);
    assert_eq!(rig.run("x", broken).await.unwrap_err().kind(), ErrorKind::Sql);
    assert_eq!(soon(body.text(100)).await.unwrap_err().kind(), ErrorKind::Reset);

    let body = soon(rig.stub("x").fetch(request(&open))).await.unwrap().into_body();
    rig.run("x", json!([{"sql": "INSERT INTO parent VALUES (77)"}, "close"])).await.unwrap();
    assert_eq!(soon(body.text(100)).await.unwrap(), "part");
}

#[tokio::test]
async fn an_error_that_cannot_be_shown_fails_its_own_object_alone() {
    let rig = Rig::with_class::<Odd<_>>();
    let others = rig.namespace("OTHER");
    let waiting = rig.begin("y", json!([{"add": 1}, {"sleep": 1_000}, {"add": 1}]));
    for (name, path, text) in [
        ("x", "/bad-display", "a Display implementation returned an error unexpectedly: Error"),
        ("x", "/rude-display", "a rude Display"),
        ("bad constructor", "/", "a rude Display"),
    ] {
        let error = get(&others.named(name).unwrap(), path).await.unwrap_err();
        assert_eq!(
            (error.kind(), error.to_string()),
            (ErrorKind::Reset, format!("the object panicked: {text}"))
        );
    }
    assert_eq!(get(&others.named("x").unwrap(), "/").await.unwrap(), json!("hello"));
    rig.pass(1_000).await;
    assert_eq!(join(waiting).await.unwrap(), json!([1, null, 2]));
}

#[tokio::test]
async fn calls_from_destructors_of_an_instance_whose_turn_was_undone_do_not_leave() {
    let rig = Rig::with_class::<Odd<_>>();
    let odd = rig.namespace("OTHER").named("x").unwrap();
    assert_eq!(get(&odd, "/undone").await.unwrap_err().kind(), ErrorKind::Sql);
    rig.settle().await;
    assert_eq!(rig.last("log", json!(["log"])).await, json!([]));
}

#[tokio::test]
async fn c5_a_transaction_whose_panic_the_object_catches_is_rolled_back() {
    let rig = Rig::with_class::<Odd<_>>();
    let odd = rig.namespace("OTHER").named("x").unwrap();
    get(&odd, "/caught-transaction").await.unwrap();
    // What followed it is kept, in the same turn.
    assert_eq!(get(&odd, "/what-is-left").await.unwrap(), json!([2, null]));
}

#[tokio::test]
async fn a_namespace_may_be_named_as_a_file_of_the_host_is() {
    let mut rig = Rig::with(|builder| builder.object::<Probe<_>>("lock").object::<Probe<_>>("alarms"));
    for name in ["lock", "alarms"] {
        let stub = rig.namespace(name).named("x").unwrap();
        ask(&stub, json!([{"note": name}, {"set_alarm": 1_000}])).await.unwrap();
    }
    rig.shut_down().await;
    rig.start();
    rig.pass(1_000).await;
    for name in ["lock", "alarms"] {
        let stub = rig.namespace(name).named("x").unwrap();
        let found = ask(&stub, json!([{"sql": "SELECT line FROM log"}, "runs"])).await.unwrap();
        assert_eq!(found[0], json!([name]));
        assert_eq!(found[1][0]["at"], START + 1_000);
    }
}

#[tokio::test]
async fn more_objects_than_may_be_awake_leave_early_the_longest_idle_first() {
    let rig = Rig::with(|builder| builder.awake_objects(2));
    let busy = rig.begin("busy", json!([{"add": 1}, {"sleep": 100}, {"add": 1}]));
    for name in ["a", "b", "c", "d", "e"] {
        rig.run(name, json!([{"note": name}, {"set_alarm": 1_000}])).await.unwrap();
        rig.pass(1).await;
    }
    for (name, awake) in [("a", false), ("b", false), ("c", false), ("d", false), ("e", true)] {
        assert_eq!(rig.is_awake(name).await, awake, "{name}");
    }
    assert!(rig.is_awake("busy").await);
    rig.pass(100).await;
    assert_eq!(join(busy).await.unwrap(), json!([1, null, 2]));
    rig.pass(1_000).await;
    for name in ["a", "b", "c", "d", "e"] {
        let found = rig.run(name, json!([{"sql": "SELECT line FROM log"}, "runs"])).await.unwrap();
        assert_eq!((&found[0], found[1].as_array().unwrap().len()), (&json!([name]), 1));
    }
}

#[tokio::test]
async fn a_result_too_large_to_collect_is_refused_and_still_readable_row_by_row() {
    let rig = Rig::with_class::<Odd<_>>();
    let odd = rig.namespace("OTHER").named("x").unwrap();
    assert_eq!(get(&odd, "/large").await.unwrap(), json!(["Limit", 76_000_000, 30]));
}

#[tokio::test]
async fn e17_an_entry_of_the_index_that_is_early_wakes_nobody_and_runs_nothing_early() {
    let mut rig = Rig::new();
    rig.run("x", json!([{"on_new": [{"note": "new"}]}, {"set_alarm": 100_000}])).await.unwrap();
    rig.shut_down().await;
    let index = rusqlite::Connection::open(rig.dir.path().join("alarms.sqlite")).unwrap();
    assert_eq!(index.execute("UPDATE alarms SET at = ?", [START + 1_000]).unwrap(), 1);
    drop(index);
    rig.start();
    for _ in 0..99 {
        rig.pass(1_000).await;
        assert!(!rig.is_awake("x").await);
    }
    rig.pass(1_000).await;
    assert!(rig.is_awake("x").await);
    let found = rig.run("x", json!(["log", "runs"])).await.unwrap();
    assert_eq!(found[0], json!([{"at": START + 100_000, "line": "new"}]));
    let run = json!({"at": START + 100_000, "scheduled": START + 100_000, "retries": 0});
    assert_eq!(found[1], json!([run]));
}

#[tokio::test]
async fn c8_nothing_is_acknowledged_into_a_directory_that_was_removed() {
    let rig = Rig::new();
    let write = || json!([{"sql": "CREATE TABLE IF NOT EXISTS t (n)"}, {"sql": "INSERT INTO t VALUES (1)"}]);
    rig.run("x", write()).await.unwrap();
    std::fs::remove_dir_all(rig.dir.path()).unwrap();
    for name in ["x", "x", "y"] {
        let error = rig.run(name, write()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Platform, "{name}: {error}");
        assert!(error.to_string().ends_with("was removed while it was in use"), "{error}");
    }
}

/// Counts where no request has to ask for it.
struct Ticks<S: ObjectState>(S);

static TICKS: AtomicUsize = AtomicUsize::new(0);

/// More than some polls of the engine have turns for.
const TASKS: usize = 3_000;

impl<S: ObjectState> DurableObject<S> for Ticks<S> {
    fn new(state: S) -> Result<Self> {
        Ok(Self(state))
    }

    async fn fetch(&self, _: Request) -> Result<Response> {
        for _ in 0..TASKS {
            let sleep = self.0.sleep(Duration::from_secs(60));
            self.0.wait_until(async {
                sleep.await;
                TICKS.fetch_add(1, Ordering::Relaxed);
            });
        }
        Ok(reply::text("begun"))
    }
}

#[tokio::test]
async fn more_work_than_one_poll_has_turns_for_is_done_though_nobody_asks() {
    let rig = Rig::with_class::<Ticks<_>>();
    soon(rig.namespace("OTHER").named("x").unwrap().fetch(Request::default())).await.unwrap();
    rig.settle().await;
    rig.clock.advance(Duration::from_secs(60));
    soon(async {
        while TICKS.load(Ordering::Relaxed) < TASKS {
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert_eq!(TICKS.load(Ordering::Relaxed), TASKS);
}

static PASSING: Mutex<Option<ManualClock>> = Mutex::new(None);

/// Works in turns that take two milliseconds each until its call is answered, and says how many it took.
struct Busy<S: ObjectState>(S);

impl<S: ObjectState> DurableObject<S> for Busy<S> {
    fn new(state: S) -> Result<Self> {
        Ok(Self(state))
    }

    async fn fetch(&self, _: Request) -> Result<Response> {
        let clock = PASSING.lock().unwrap().clone().ok_or_else(|| Failure::msg("no clock"))?;
        let call = self.0.env().namespace("PROBE")?.named("other")?.fetch(request(&json!([])));
        let mut call = std::pin::pin!(call);
        let mut turns = 0;
        while call.as_mut().now_or_never().is_none() {
            clock.advance(Duration::from_millis(2));
            self.0.sleep(Duration::ZERO).await;
            turns += 1;
        }
        Ok(reply::text(turns.to_string()))
    }
}

#[tokio::test]
async fn long_work_in_many_turns_lets_in_what_comes_from_outside_after_each_of_them() {
    let rig = Rig::with_class::<Busy<_>>();
    PASSING.lock().unwrap().replace(rig.clock.clone());
    let answer = soon(rig.namespace("OTHER").named("x").unwrap().fetch(Request::default())).await.unwrap();
    let turns: u32 = answer.into_body().text(100).await.unwrap().parse().unwrap();
    assert!(turns <= 8, "{turns} turns");
}
