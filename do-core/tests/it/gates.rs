//! C1 to C10: what other events may see of an object's writes, and when what it sends leaves.

use crate::common::{Rig, ask, join, request, soon};
use do_core::{ErrorKind, Stub, prelude::*, tokio::HostState};
use serde_json::{Value, json};
use std::{cell::RefCell, ops::ControlFlow};

/// A foreign key that is checked at the commit, which therefore fails.
const BREAK: &str = "INSERT INTO child VALUES (99)";

async fn lines(rig: &Rig, name: &str) -> Value {
    rig.last(name, json!([{"sql": "SELECT line FROM log ORDER BY rowid"}])).await
}

async fn increments(rig: &Rig, name: &str, step: Value, time: u64) -> Value {
    // All of them are delivered together when this gate opens.
    let gate = rig.begin(name, json!([{"gate": [{"sleep": 10}]}]));
    let calls: Vec<_> = (0..20).map(|_| rig.begin(name, json!([step]))).collect();
    rig.pass(10).await;
    join(gate).await.unwrap();
    rig.pass_in_steps(time, 10).await;
    for call in calls {
        join(call).await.unwrap();
    }
    rig.last(name, json!([{"sql": "SELECT n FROM n"}])).await
}

#[tokio::test]
async fn c1_read_modify_write_with_storage_awaits_alone_is_atomic() {
    let rig = Rig::new();
    assert_eq!(increments(&rig, "x", json!({"increment": null}), 0).await, json!([20]));
}

#[tokio::test]
async fn c2_a_sleep_in_between_lets_other_events_in_unless_a_gate_is_closed() {
    let rig = Rig::new();
    assert_eq!(increments(&rig, "x", json!({"increment": 10}), 10).await, json!([1]));
    assert_eq!(increments(&rig, "y", json!({"gate": [{"increment": 10}]}), 200).await, json!([20]));
}

#[tokio::test]
async fn c2_a_sleep_of_no_time_is_an_await_like_any_other() {
    let rig = Rig::new();
    // How many of the twenty arrive before the first is through is the scheduler's choice.
    let counted = increments(&rig, "x", json!({"increment": 0}), 0).await[0].as_i64().unwrap();
    assert!((1..20).contains(&counted), "{counted}");
    let error = rig.run("y", json!([{"note": "a"}, {"sleep": 0}, {"note": "b"}, {"sql": BREAK}])).await;
    assert_eq!(error.unwrap_err().kind(), ErrorKind::Sql);
    assert_eq!(lines(&rig, "y").await, json!(["a"]), "committed at the await");
}

#[tokio::test]
async fn c4_c6_nothing_made_after_a_write_leaves_when_its_commit_fails() {
    let rig = Rig::new();
    let before = rig.last("x", json!([{"note": "kept"}, "instance"])).await;
    let response = soon(rig.stub("x").fetch(request(&json!(["open"])))).await.unwrap();
    let steps = json!([
        {"chunk": "before "}, {"call_detached": ["peer", [{"note": "before"}]]},
        {"note": "lost"}, {"sql": BREAK},
        {"chunk": "after"}, {"call_detached": ["peer", [{"note": "after"}]]},
        {"call_detached": ["other", [{"note": "after"}]]}, {"set_alarm": 1_000}
    ]);
    let waiting = rig.begin("x", json!([{"sleep": 1_000}]));
    rig.settle().await;
    let error = rig.run("x", steps).await.unwrap_err();
    let text = "Durable Object was reset and rolled back to its last known good state because the application left \
                the database in a state where constraints were violated: ";
    assert!(error.to_string().starts_with(text), "{error}");
    assert_eq!(error.sql_code(), Some("SQLITE_CONSTRAINT_FOREIGNKEY"));
    assert_eq!(
        join(waiting).await.unwrap_err().to_string(),
        error.to_string(),
        "who was in flight hears the same"
    );
    rig.settle().await;
    assert!(!rig.is_awake("other").await, "never constructed");
    assert_eq!(lines(&rig, "peer").await, json!(["before"]));
    let (chunk, end) = read_to_error(response).await;
    assert_eq!((chunk.as_str(), end.kind()), ("before ", ErrorKind::Reset));
    let after = rig.run("x", json!(["instance", "get_alarm"])).await.unwrap();
    assert_ne!(after[0], before);
    assert_eq!(after[1], Value::Null);
    assert_eq!(lines(&rig, "x").await, json!(["kept"]));
}

/// What a body gave before it failed.
async fn read_to_error(response: Response) -> (String, Error) {
    use http_body_util::BodyExt;
    let mut body = response.into_body();
    let mut text = String::new();
    loop {
        match soon(body.frame()).await.expect("the body ended as if it were whole") {
            Ok(frame) => text.push_str(std::str::from_utf8(frame.data_ref().unwrap()).unwrap()),
            Err(error) => return (text, error),
        }
    }
}

#[tokio::test]
async fn c4_a_panic_lets_out_what_was_made_before_the_write_alone() {
    let rig = Rig::new();
    rig.run("x", json!([])).await.unwrap();
    let steps = json!([{"call_detached": ["peer", [{"note": "before"}]]}, {"note": "lost"},
        {"call_detached": ["peer", [{"note": "after"}]]}, {"panic": "here"}]);
    rig.run("x", steps).await.unwrap_err();
    rig.settle().await;
    assert_eq!(lines(&rig, "peer").await, json!(["before"]));
    assert_eq!(lines(&rig, "x").await, json!([]));
}

#[tokio::test]
async fn c4_a_caught_fault_of_an_earlier_write_still_fails_the_turn() {
    let rig = Rig::new();
    rig.run(
        "x",
        json!([{"sql": "CREATE TRIGGER t BEFORE INSERT ON n BEGIN SELECT RAISE(ROLLBACK, 'no'); END"}]),
    )
    .await
    .unwrap();
    let steps = json!([{"note": "lost"}, {"catch": [{"sql": "INSERT INTO n VALUES (1)"}]},
        {"call_detached": ["peer", [{"note": "after"}]]}]);
    assert_eq!(rig.run("x", steps).await.unwrap_err().kind(), ErrorKind::Sql);
    rig.settle().await;
    assert_eq!(lines(&rig, "x").await, json!([]));
    assert!(!rig.is_awake("peer").await);
}

#[tokio::test]
async fn c5_writes_commit_at_the_next_await_and_an_error_undoes_none() {
    let rig = Rig::new();
    let call = rig.begin("x", json!([{"note": "a"}, {"sleep": 10}, {"note": "b"}, {"sql": BREAK}]));
    rig.settle().await;
    assert_eq!(lines(&rig, "x").await, json!(["a"]));
    rig.pass(10).await;
    assert_eq!(join(call).await.unwrap_err().kind(), ErrorKind::Sql);
    rig.run("x", json!([{"note": "c"}, {"fail": "anyhow"}])).await.unwrap_err();
    assert_eq!(lines(&rig, "x").await, json!(["a", "c"]));
}

#[tokio::test]
async fn c5_a_transaction_rolls_back_alone_and_nests() {
    let rig = Rig::new();
    let steps = json!([
        {"note": "outside"},
        {"catch": [{"transaction": [{"note": "undone"}, {"set_alarm": 5_000}, {"fail": "first"}]}]},
        "get_alarm",
        {"transaction": [{"note": "outer"}, {"note": "outer too"}]},
        {"catch": [{"transaction": [{"note": "undone"}, {"transaction": [{"note": "undone"}]}, {"fail": "second"}]}]},
        {"catch": [{"transaction": [{"sql": "INSERT INTO nothing VALUES (1)"}]}]}
    ]);
    let gave = rig.run("x", steps).await.unwrap();
    assert_eq!((&gave[1], &gave[2], &gave[4]), (&json!("first"), &Value::Null, &json!("second")));
    assert_eq!(lines(&rig, "x").await, json!(["outside", "outer", "outer too"]));
}

#[tokio::test]
async fn c8_what_was_acknowledged_is_in_the_files() {
    let rig = Rig::new();
    for n in 0..10 {
        rig.run(&format!("o{n}"), json!([{"note": "acknowledged"}, {"set_alarm": 1_000}])).await.unwrap();
    }
    // What a kill would leave, as far as the operating system has it.
    let mut copy = Rig::new();
    copy.stop();
    copy_dir(rig.dir.path(), copy.dir.path());
    copy.start();
    for n in 0..10 {
        let seen =
            copy.run(&format!("o{n}"), json!([{"sql": "SELECT line FROM log"}, "get_alarm"])).await.unwrap();
        assert_eq!(seen, json!([["acknowledged"], crate::common::START + 1_000]));
    }
}

fn copy_dir(from: &std::path::Path, to: &std::path::Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_dir(&entry.path(), &target);
        } else if entry.file_name() != "lock" {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

#[tokio::test]
async fn c10_outputs_keep_their_order_around_writes() {
    let rig = Rig::new();
    let response = soon(rig.stub("x").fetch(request(&json!(["open", {"chunk": "a"}])))).await.unwrap();
    let say = |text: &str| json!({"call_detached": ["peer", [{"note": text}]]});
    rig.run("x", json!([{"chunk": "b"}, say("1"), {"note": "w"}, {"chunk": "c"}, say("2"), {"chunk": "d"}, {"note": "w"}, say("3")])).await.unwrap();
    rig.run("x", json!([{"chunk": "e"}, say("4"), "close"])).await.unwrap();
    assert_eq!(soon(response.into_body().text(100)).await.unwrap(), "abcde");
    rig.settle().await;
    assert_eq!(lines(&rig, "peer").await, json!(["1", "2", "3", "4"]));
}

/// Writes, sends, and then empties its database, so that nothing is left to commit.
struct Eraser<S: ObjectState>(S);

impl<S: ObjectState> DurableObject<S> for Eraser<S> {
    fn new(state: S) -> Result<Self> {
        Ok(Self(state))
    }

    async fn fetch(&self, _: Request) -> Result<Response> {
        self.0.sql().exec("CREATE TABLE t (x)", ())?;
        drop(self.0.env().namespace("PROBE")?.named("peer")?.fetch(request(&json!([{"note": "sent"}]))));
        self.0.delete_all()?;
        Ok(reply::text("answered"))
    }
}

#[tokio::test]
async fn c4_what_was_sent_before_the_writes_were_discarded_leaves_all_the_same() {
    let rig = Rig::with_class::<Eraser<_>>();
    let eraser = rig.namespace("OTHER").named("x").unwrap();
    for _ in 0..2 {
        let response = soon(eraser.fetch(request(&json!([])))).await.unwrap();
        assert_eq!(soon(response.into_body().text(100)).await.unwrap(), "answered");
    }
    rig.settle().await;
    assert_eq!(lines(&rig, "peer").await, json!(["sent", "sent"]));
}

thread_local! {
    static LEAKED: RefCell<Option<HostState>> = const { RefCell::new(None) };
}

/// Hands its state to whoever runs on its thread.
struct Leaky(HostState);

impl DurableObject<HostState> for Leaky {
    fn new(state: HostState) -> Result<Self> {
        Ok(Self(state))
    }

    async fn fetch(&self, request: Request) -> Result<Response> {
        match request.uri().path() {
            "/leak" => LEAKED.set(Some(self.0.clone())),
            "/reset" => match self.0.reset("away").await {},
            _ => {
                let leaked = LEAKED.take().ok_or_else(|| Failure::msg("nothing was leaked"))?;
                let used = [
                    leaked.sql().exec("CREATE TABLE t (x)", ()).err(),
                    leaked.sql().for_each("SELECT 1", (), |_| Ok(ControlFlow::Continue(()))).err(),
                    leaked.sql().transaction(|| Ok(())).err().map(Error::from),
                    leaked.alarms().set(self.0.now()).await.err(),
                    leaked.alarms().get().await.err(),
                    leaked.delete_all().err(),
                    leaked.block_concurrency_while(async { Ok(()) }).await.err().map(Error::from),
                ];
                leaked.wait_until(async { unreachable!("never runs") });
                LEAKED.set(Some(leaked));
                let kinds = used.map(|error| error.map(|error| format!("{:?}", error.kind())));
                return Ok(reply::json(&kinds)?);
            }
        }
        Ok(reply::text(""))
    }
}

#[tokio::test]
async fn c5_a_state_works_in_its_own_events_alone() {
    let rig = Rig::with_class::<Leaky>();
    let get = async |name: &str, path: &str| {
        let request = http::Request::get(format!("http://leaky{path}")).body(Body::empty()).unwrap();
        soon(rig.namespace("OTHER").named(name).unwrap().fetch(request)).await
    };
    get("x", "/leak").await.unwrap();
    let used: Vec<String> = get("y", "/use").await.unwrap().into_body().json(1_000).await.unwrap();
    assert_eq!(used, ["NotInEvent"; 7]);
    get("x", "/reset").await.unwrap_err();
    for _ in 0..2 {
        let used: Vec<String> = get("y", "/use").await.unwrap().into_body().json(1_000).await.unwrap();
        assert_eq!(used, ["Reset"; 7]);
        rig.pass(10_200).await; // the second time: y has been evicted and made anew
    }
}

/// Uses its state inside the callbacks of its state.
struct Nested<S: ObjectState>(S);

impl<S: ObjectState> DurableObject<S> for Nested<S> {
    fn new(state: S) -> Result<Self> {
        state.sql().exec("CREATE TABLE IF NOT EXISTS t (x INTEGER)", ())?;
        Ok(Self(state))
    }

    async fn fetch(&self, _: Request) -> Result<Response> {
        let (state, sql) = (&self.0, self.0.sql());
        sql.exec("DELETE FROM t", ())?;
        sql.exec("INSERT INTO t VALUES (1), (2)", ())?;
        let mut said = Vec::new();
        let kind =
            |result: Result<(), Error>| result.map_or_else(|e| format!("{:?}", e.kind()), |()| "ok".into());
        sql.for_each("SELECT x FROM t", (), |row| {
            let x: i64 = row.get("x")?;
            said.push(kind(sql.exec("SELECT ?", (x,)).map(drop)));
            said.push(kind(sql.exec("INSERT INTO t VALUES (3)", ()).map(drop)));
            said.push(kind(sql.transaction(|| Ok(())).map_err(Error::from)));
            said.push(kind(futures::executor::block_on(
                state.alarms().set(state.now() + Duration::from_secs(9)),
            )));
            said.push(kind(state.delete_all()));
            state.wait_until(async {});
            drop(state.env().namespace("PROBE")?.named("peer")?.fetch(request(&json!([{"note": "sent"}]))));
            Ok(ControlFlow::Break(()))
        })?;
        sql.transaction(|| {
            sql.for_each("SELECT x FROM t", (), |_| Ok(ControlFlow::Break(())))?;
            said.push(kind(state.delete_all()));
            drop(state.block_concurrency_while(async { Ok(()) }));
            Ok(())
        })?;
        Ok(reply::json(&said)?)
    }
}

#[tokio::test]
async fn state_methods_inside_callbacks_give_errors_not_panics() {
    let rig = Rig::with_class::<Nested<_>>();
    let nested = rig.namespace("OTHER").named("x").unwrap();
    for _ in 0..2 {
        let said = ask(&nested, json!([])).await.unwrap();
        assert_eq!(said, json!(["ok", "ok", "ok", "ok", "Invalid", "Invalid"]));
    }
    rig.settle().await;
    assert_eq!(lines(&rig, "peer").await, json!(["sent", "sent"]));
}
