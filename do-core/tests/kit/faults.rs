//! Objects leave memory, processes die, disks and commits fail.

use crate::common::{ask, kit, lines, probe};
use do_core::{ErrorKind, kit::Failing, testing::Received};
use serde_json::{Value, json};
use std::time::Duration;

#[test]
fn hibernation_keeps_sockets_and_loses_memory() {
    let kit = kit();
    let a = probe(&kit, "a");
    kit.run(async {
        let client = kit.connect(&a, "/?tag=x").await.unwrap();
        assert_eq!(ask(&a, json!([{"add": 7}])).await.unwrap(), [json!(7)]);
        kit.hibernate(&a).await.unwrap();
        client.send(json!([{"add": 0}, {"count": "all"}]).to_string()).unwrap();
        assert_eq!(client.text().await.unwrap(), "[0,1]");
    });
}

#[test]
fn b3_what_is_busy_does_not_hibernate_and_says_why() {
    let kit = kit();
    let a = probe(&kit, "a");
    kit.run(async {
        let call = {
            let a = a.clone();
            kit.spawn(async move { ask(&a, json!([{"sleep": 1_000}])).await })
        };
        let error = kit.hibernate(&a).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert_eq!(error.to_string(), "the object is not idle: fetch, a pending sleep");
        kit.advance(Duration::from_secs(1)).await;
        call.await.unwrap();
        kit.hibernate(&a).await.unwrap();
    });
}

#[test]
fn d25_an_eviction_fails_what_is_under_way_and_drops_sockets() {
    let kit = kit();
    let a = probe(&kit, "a");
    kit.run(async {
        let client = kit.connect(&a, "/?tag=x").await.unwrap();
        let steps = json!([{"note": "before"}, {"add": 1}, {"sleep": 1_000}, {"note": "after"}]);
        let call = {
            let a = a.clone();
            kit.spawn(async move { ask(&a, steps).await })
        };
        kit.settle().await;
        kit.evict(&a);
        let error = call.await.unwrap_err();
        assert_eq!(
            (error.kind(), error.to_string().as_str()),
            (ErrorKind::Reset, "the object was moved to another machine")
        );
        assert_eq!(client.receive().await, Received::Lost);
        assert_eq!(
            ask(&a, json!([{"add": 0}, {"count": "all"}, "events"])).await.unwrap(),
            [json!(0), json!(0), json!([])]
        );
        assert_eq!(lines(&a).await, ["before"]);
        // An object that is not in memory can be moved too: its sockets go.
        let client = kit.connect(&a, "/?tag=y").await.unwrap();
        kit.hibernate(&a).await.unwrap();
        kit.evict(&a);
        assert_eq!(client.receive().await, Received::Lost);
        assert_eq!(ask(&a, json!([{"count": "all"}])).await.unwrap(), [json!(0)]);
    });
}

#[test]
fn a_crash_keeps_what_was_committed_and_nothing_else() {
    let kit = kit();
    let a = probe(&kit, "a");
    kit.run(async {
        let client = kit.connect(&a, "/?tag=x").await.unwrap();
        client.stall(true);
        ask(&a, json!([{"note": "kept"}, {"add": 1}, {"send": ["all", "never arrives"]}])).await.unwrap();
        let steps = json!([{"note": "kept too"}, {"sleep": 1_000}, {"note": "not reached"}]);
        let call = {
            let a = a.clone();
            kit.spawn(async move { ask(&a, steps).await })
        };
        kit.settle().await;
        kit.crash();
        assert!(call.await.unwrap_err().is_indefinite());
        client.stall(false);
        assert_eq!(client.receive().await, Received::Lost);
        assert_eq!(lines(&a).await, ["kept", "kept too"]);
        assert_eq!(ask(&a, json!([{"add": 0}, {"count": "all"}])).await.unwrap(), [json!(0), json!(0)]);
    });
}

#[test]
fn a_power_failure_keeps_what_was_acknowledged() {
    let kit = kit();
    let a = probe(&kit, "a");
    kit.run(async {
        for n in 0..10 {
            ask(&a, json!([{"note": n.to_string()}])).await.unwrap();
        }
        kit.lose_power();
        assert_eq!(lines(&a).await.len(), 10);
    });
}

#[test]
fn c6_a_failed_commit_undoes_its_turn_and_resets() {
    let kit = kit();
    let a = probe(&kit, "a");
    kit.run(async {
        let client = kit.connect(&a, "/?tag=x").await.unwrap();
        ask(&a, json!([{"add": 1}, {"note": "before"}])).await.unwrap();
        kit.fail_next(&a, Failing::Commit);
        let error = ask(&a, json!([{"note": "undone"}, {"send": ["all", "held"]}])).await.unwrap_err();
        assert_eq!(error.to_string(), "the kit was told that Commit fails");
        assert_eq!(client.receive().await, Received::Lost);
        assert_eq!(lines(&a).await, ["before"]);
        assert_eq!(ask(&a, json!([{"add": 0}])).await.unwrap(), [json!(0)]);
    });
}

#[test]
fn a_crash_in_a_commit_tells_nobody_whether_it_was_kept() {
    for (what, kept) in
        [(Failing::CrashBeforeCommit, &["before"][..]), (Failing::CrashAfterCommit, &["before", "in doubt"])]
    {
        let kit = kit();
        let a = probe(&kit, "a");
        kit.run(async {
            ask(&a, json!([{"note": "before"}])).await.unwrap();
            kit.fail_next(&a, what);
            assert!(ask(&a, json!([{"note": "in doubt"}])).await.unwrap_err().is_indefinite(), "{what:?}");
            assert_eq!(lines(&a).await, kept, "{what:?}");
        });
    }
}

#[test]
fn f18_a_transaction_that_cannot_be_undone_costs_its_turn() {
    let kit = kit();
    let a = probe(&kit, "a");
    kit.run(async {
        ask(&a, json!([{"note": "earlier"}])).await.unwrap();
        kit.fail_next(&a, Failing::Undo);
        let failed = json!({"catch": [{"transaction": [{"note": "not to be kept"}, {"fail": "as told"}]}]});
        let error = ask(&a, json!([{"note": "before"}, failed, {"note": "after"}])).await.unwrap_err();
        assert_eq!(error.to_string(), "the kit was told that Undo fails");
        assert_eq!(lines(&a).await, ["earlier"]);
    });
}

#[test]
fn failing_sql_is_an_error_that_the_object_survives() {
    let kit = kit();
    let a = probe(&kit, "a");
    kit.run(async {
        ask(&a, json!([{"add": 1}])).await.unwrap();
        kit.fail_next(&a, Failing::Sql);
        let tried = ask(&a, json!([{"catch": [{"sql": "SELECT 1"}]}, {"sql": "SELECT 1"}, {"add": 1}]))
            .await
            .unwrap();
        assert_eq!(tried, [json!("the kit was told that Sql fails"), json!([1]), json!(2)]);
        kit.fail_next(&a, Failing::SqlAfter(2));
        let select = json!({"catch": [{"sql": "SELECT 1"}]});
        let tried = ask(&a, json!([select, select, select, select])).await.unwrap();
        let failed = json!("the kit was told that SqlAfter(0) fails");
        assert_eq!(
            tried.iter().map(|tried| *tried == failed).collect::<Vec<_>>(),
            [false, false, true, false]
        );
        kit.fail_next(&a, Failing::SetAlarm);
        let tried = ask(&a, json!([{"catch": [{"set_alarm": 50}]}, "get_alarm", {"add": 1}])).await.unwrap();
        assert_eq!(tried, [json!("the kit was told that SetAlarm fails"), Value::Null, json!(3)]);
    });
}

#[test]
fn a_fault_is_for_the_object_that_it_was_asked_for() {
    let kit = kit();
    let (a, b) = (probe(&kit, "a"), probe(&kit, "b"));
    kit.run(async {
        kit.fail_next(&a, Failing::Commit);
        ask(&b, json!([{"note": "fine"}])).await.unwrap();
        ask(&a, json!([{"note": "fails"}])).await.unwrap_err();
        ask(&a, json!([{"note": "once"}])).await.unwrap();
    });
}
