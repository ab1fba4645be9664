//! E1 to E18: the alarm slot, its runs and its retries.

use crate::common::{Rig, START, ask, join};
use do_core::{
    AlarmScheduler, DurableObject, ErrorKind, Failure, Namespace, ObjectState, Request, Response, Timestamp,
    reply, tokio::HostState,
};
use serde_json::{Value, json};
use std::time::Duration;

/// One run of a handler, in ms since the start of the test.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
struct Run {
    at: i64,
    scheduled: i64,
    retries: u64,
}

fn run(at: i64, scheduled: i64, retries: u64) -> Run {
    Run { at, scheduled, retries }
}

async fn runs(rig: &Rig, name: &str) -> Vec<Run> {
    let all = rig.last(name, json!(["runs"])).await;
    let read = |run: &Value| Run {
        at: run["at"].as_i64().unwrap() - START,
        scheduled: run["scheduled"].as_i64().unwrap() - START,
        retries: run["retries"].as_u64().unwrap(),
    };
    all.as_array().unwrap().iter().map(read).collect()
}

async fn lines(rig: &Rig, name: &str) -> Value {
    rig.last(name, json!([{"sql": "SELECT line FROM log ORDER BY rowid"}])).await
}

async fn alarm(rig: &Rig, name: &str) -> Value {
    rig.last(name, json!(["get_alarm"])).await
}

#[tokio::test]
async fn e1_setting_replaces_and_what_is_set_last_counts() {
    let rig = Rig::new();
    rig.run("later", json!([{"set_alarm": 1_000}, {"set_alarm": 3_000}])).await.unwrap();
    rig.run("sooner", json!([{"set_alarm": 3_000}])).await.unwrap();
    rig.run("sooner", json!([{"set_alarm": 1_000}])).await.unwrap();
    rig.run("twice", json!([{"set_alarm": 1_000}, {"set_alarm": 1_000}])).await.unwrap();
    rig.run("deleted", json!([{"set_alarm": 1_000}])).await.unwrap();
    rig.run("deleted", json!(["delete_alarm"])).await.unwrap();
    assert_eq!(alarm(&rig, "later").await, json!(START + 3_000));
    assert_eq!(alarm(&rig, "deleted").await, Value::Null);
    rig.pass_in_steps(5_000, 500).await;
    assert_eq!(runs(&rig, "later").await, [run(3_000, 3_000, 0)]);
    assert_eq!(runs(&rig, "sooner").await, [run(1_000, 1_000, 0)]);
    assert_eq!(runs(&rig, "twice").await, [run(1_000, 1_000, 0)]);
    assert_eq!(runs(&rig, "deleted").await, []);
}

#[tokio::test]
async fn e1_times_that_are_none_are_refused_and_change_nothing() {
    let rig = Rig::new();
    rig.run("x", json!([{"set_alarm": 1_000}])).await.unwrap();
    for wrong in [0, -1, i64::MIN, 6_942_758_400_000, i64::MAX] {
        let error = rig.run("x", json!([{"set_alarm_at": wrong}])).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{wrong}");
    }
    assert_eq!(alarm(&rig, "x").await, json!(START + 1_000));
    rig.run("x", json!([{"set_alarm_at": 6_942_758_399_999_i64}])).await.unwrap();
    rig.pass(1_000).await;
    assert_eq!(runs(&rig, "x").await, []);
}

#[tokio::test]
async fn e2_a_past_time_runs_at_once_and_no_alarm_early() {
    let rig = Rig::new();
    rig.run("x", json!([{"set_alarm": -5_000}])).await.unwrap();
    rig.settle().await;
    assert_eq!(runs(&rig, "x").await, [run(0, 0, 0)], "stored as now");
    rig.run("y", json!([{"set_alarm": 1_000}])).await.unwrap();
    rig.pass(999).await;
    assert_eq!(runs(&rig, "y").await, []);
    rig.pass(1).await;
    assert_eq!(runs(&rig, "y").await, [run(1_000, 1_000, 0)]);
    let days = 60 * 24 * 3_600 * 1_000;
    rig.run("z", json!([{"set_alarm": days}])).await.unwrap();
    rig.pass(u64::try_from(days).unwrap() - 1).await;
    assert_eq!(runs(&rig, "z").await, []);
    rig.pass(1).await;
    assert_eq!(runs(&rig, "z").await, [run(days + 1_000, days + 1_000, 0)]);
}

#[tokio::test]
async fn e2_a_clock_that_is_set_back_makes_no_alarm_early() {
    let rig = Rig::new();
    rig.run("x", json!([{"set_alarm": 10_000}])).await.unwrap();
    rig.clock.step_wall(Timestamp::from_millis(START - 3_600_000));
    rig.pass(20_000).await;
    assert_eq!(runs(&rig, "x").await, []);
    rig.clock.step_wall(Timestamp::from_millis(START + 10_000));
    rig.settle().await;
    assert_eq!(runs(&rig, "x").await, [run(10_000, 10_000, 0)]);
}

#[tokio::test]
async fn e3_the_slot_is_empty_while_the_handler_runs_unless_set_anew() {
    let rig = Rig::new();
    let handler = json!(["note_alarm", {"sleep": 100}, "note_alarm", {"set_alarm": 5_000}, "note_alarm", {"sleep": 100}]);
    rig.run("x", json!([{"on_alarm": handler}, {"set_alarm": 1_000}])).await.unwrap();
    rig.pass(1_000).await;
    assert_eq!(alarm(&rig, "x").await, Value::Null, "for requests too");
    rig.pass(100).await;
    assert_eq!(alarm(&rig, "x").await, json!(START + 6_100));
    rig.pass(100).await;
    assert_eq!(alarm(&rig, "x").await, json!(START + 6_100));
    assert_eq!(lines(&rig, "x").await, json!(["none", "none", (START + 6_100).to_string()]));
}

#[tokio::test]
async fn e3_the_constructor_that_an_alarm_woke_sees_its_time() {
    let rig = Rig::new();
    rig.run("x", json!([{"on_new": ["note_alarm"]}, {"set_alarm": 20_000}])).await.unwrap();
    rig.pass(10_200).await;
    assert!(!rig.is_awake("x").await);
    rig.pass(9_800).await;
    assert_eq!(lines(&rig, "x").await, json!([(START + 20_000).to_string()]));
    assert_eq!(runs(&rig, "x").await, [run(20_000, 20_000, 0)]);
}

#[tokio::test]
async fn e4_success_empties_the_slot_unless_it_was_set_in_the_run() {
    let rig = Rig::new();
    rig.run("once", json!([{"set_alarm": 1_000}])).await.unwrap();
    rig.run(
        "again",
        json!([{"on_alarm": [{"up_to_runs": [2, [{"set_alarm": 1_000}]]}]}, {"set_alarm": 1_000}]),
    )
    .await
    .unwrap();
    // The time that it has already, and now.
    let same =
        json!([{"on_alarm": [{"up_to_runs": [1, [{"set_alarm_at": START + 1_000}]]}]}, {"set_alarm": 1_000}]);
    rig.run("same", same).await.unwrap();
    rig.run("now", json!([{"on_alarm": [{"up_to_runs": [20, [{"set_alarm": 0}]]}]}, {"set_alarm": 1_000}]))
        .await
        .unwrap();
    rig.pass_in_steps(10_000, 500).await;
    assert_eq!(runs(&rig, "once").await, [run(1_000, 1_000, 0)]);
    assert_eq!(alarm(&rig, "once").await, Value::Null);
    assert_eq!(runs(&rig, "again").await, [1_000, 2_000, 3_000].map(|at| run(at, at, 0)));
    assert_eq!(runs(&rig, "same").await, [run(1_000, 1_000, 0); 2]);
    assert_eq!(runs(&rig, "now").await, [run(1_000, 1_000, 0); 21]);
    assert_eq!(alarm(&rig, "now").await, Value::Null);
}

#[tokio::test]
async fn e5_requests_interleave_with_a_run_and_runs_never_overlap() {
    let rig = Rig::new();
    let handler = json!([{"note": "begin"}, {"sleep": 1_000}, {"note": "end"}]);
    rig.run("x", json!([{"on_alarm": handler}, {"set_alarm": 1_000}])).await.unwrap();
    rig.pass(1_000).await;
    rig.run("x", json!([{"note": "request"}, {"set_alarm": 100}])).await.unwrap();
    rig.pass_in_steps(900, 100).await;
    assert_eq!(lines(&rig, "x").await, json!(["begin", "request"]));
    rig.pass(100).await;
    assert_eq!(lines(&rig, "x").await, json!(["begin", "request", "end", "begin"]));
    rig.pass(1_000).await;
    assert_eq!(runs(&rig, "x").await, [run(1_000, 1_000, 0), run(2_000, 1_100, 0)]);
    assert_eq!(alarm(&rig, "x").await, Value::Null);
}

#[tokio::test]
async fn e8_six_retries_with_back_off_and_then_the_alarm_is_dropped() {
    let rig = Rig::new();
    rig.run("x", json!([{"on_alarm": [{"fail": "always"}]}, {"set_alarm": 1_000}])).await.unwrap();
    rig.pass(1_000).await;
    assert_eq!(alarm(&rig, "x").await, json!(START + 1_000), "during back-off the old time is seen");
    rig.pass_in_steps(170_000, 250).await;
    let all = runs(&rig, "x").await;
    assert_eq!(all.iter().map(|run| run.retries).collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5, 6]);
    assert!(all.iter().all(|run| run.scheduled == 1_000));
    let gaps: Vec<_> = all.windows(2).map(|pair| pair[1].at - pair[0].at).collect();
    for (gap, base) in gaps.iter().zip([2_000, 4_000, 8_000, 16_000, 32_000, 64_000]) {
        assert!((base..=base + base / 4 + 250).contains(gap), "{gaps:?}");
    }
    assert_eq!(alarm(&rig, "x").await, Value::Null);
    rig.pass_in_steps(2_000_000, 100_000).await;
    assert_eq!(runs(&rig, "x").await.len(), 7);
    // The next alarm begins anew.
    rig.run("x", json!([{"on_alarm": []}, {"set_alarm": 0}])).await.unwrap();
    rig.settle().await;
    assert_eq!(runs(&rig, "x").await[7].retries, 0);
}

#[tokio::test]
async fn e7_panics_and_failed_commits_are_retried_too() {
    let rig = Rig::new();
    for (name, fault) in [
        ("panic", json!({"panic": "in alarm"})),
        ("commit", json!({"sql": "INSERT INTO child VALUES (99)"})),
        ("reset", json!({"reset": "in alarm"})),
        ("gate", json!({"gate": [{"fail": "in gate"}]})),
    ] {
        let start = i64::try_from(rig.clock_ms()).unwrap();
        rig.run(name, json!([{"on_alarm": [{"sleep": 0}, fault]}, {"set_alarm": 0}])).await.unwrap();
        rig.settle().await;
        let instance = rig.last(name, json!(["instance"])).await;
        rig.pass_in_steps(8_000, 100).await;
        let all = runs(&rig, name).await;
        assert_eq!(all.iter().map(|run| run.retries).collect::<Vec<_>>(), [0, 1, 2], "{name}");
        assert!((2_000..=2_600).contains(&(all[1].at - start)), "{name}: {all:?}");
        assert!((4_000..=5_100).contains(&(all[2].at - all[1].at)), "{name}: {all:?}");
        assert_ne!(rig.last(name, json!(["instance"])).await, instance, "{name}");
        rig.run(name, json!(["delete_alarm"])).await.unwrap();
    }
}

#[tokio::test]
async fn e7_a_last_retry_that_ends_in_a_reset_drops_the_alarm_as_well() {
    let rig = Rig::new();
    rig.run("x", json!([{"on_alarm": [{"sleep": 0}, {"panic": "always"}]}, {"set_alarm": 0}])).await.unwrap();
    rig.pass_in_steps(200_000, 500).await;
    assert_eq!(runs(&rig, "x").await.len(), 7);
    assert_eq!(alarm(&rig, "x").await, Value::Null);
}

#[tokio::test]
async fn e7_background_work_and_undone_sets_of_a_run_do_not_count() {
    let rig = Rig::new();
    let handler = json!([{"wait_until": [{"sleep": 10}, {"fail": "unseen"}]}]);
    rig.run("x", json!([{"on_alarm": handler}, {"set_alarm": 0}])).await.unwrap();
    rig.pass_in_steps(10_000, 1_000).await;
    assert_eq!(runs(&rig, "x").await.len(), 1);
}

#[tokio::test]
async fn e7_a_run_of_fifteen_minutes_has_failed() {
    let rig = Rig::new();
    rig.run("x", json!([{"on_alarm": [{"up_to_runs": [1, [{"sleep": 36_000_000}]]}]}, {"set_alarm": 0}]))
        .await
        .unwrap();
    rig.pass_in_steps(899_000, 31_000).await;
    assert_eq!(rig.why_awake("x").await, Some(vec!["alarm", "a pending sleep"]));
    let before = rig.last("x", json!(["instance"])).await;
    rig.pass_in_steps(5_000, 100).await;
    let all = runs(&rig, "x").await;
    assert_eq!(all.len(), 2);
    assert_eq!(all[1].retries, 1);
    assert!((902_000..=902_600).contains(&all[1].at), "{all:?}");
    assert_eq!(rig.last("x", json!(["instance"])).await, before, "the object goes on");
    assert_eq!(alarm(&rig, "x").await, Value::Null);
    rig.pass(10_200).await;
    assert!(!rig.is_awake("x").await);
}

#[tokio::test]
async fn e9_memory_and_writes_of_a_failed_run_stay() {
    let rig = Rig::new();
    rig.run(
        "x",
        json!([{"on_alarm": [{"add": 1}, {"note": "stays"}, {"fail": "always"}]}, {"set_alarm": 0}]),
    )
    .await
    .unwrap();
    rig.pass_in_steps(3_000, 500).await;
    assert_eq!(rig.last("x", json!([{"add": 0}])).await, json!(2));
    assert_eq!(lines(&rig, "x").await, json!(["stays", "stays"]));
}

#[tokio::test]
async fn e9_a_constructor_that_fails_on_wake_is_retried_without_being_counted() {
    let rig = Rig::new();
    for (name, fails) in [
        ("new", json!([{"fail_before": START + 100_000}])),
        ("init", json!([{"sleep": 0}, {"fail_before": START + 100_000}])),
    ] {
        rig.run(name, json!([{"on_new": fails}, {"set_alarm_at": START + 20_000}])).await.unwrap();
    }
    rig.pass_in_steps(180_000, 500).await;
    for name in ["new", "init"] {
        // Tries at 20 s and after 2, 4, 8, 16, 32 and 64 s more, each with up to a quarter on top.
        let all = runs(&rig, name).await;
        assert_eq!(all.len(), 1, "{name}: {all:?}");
        assert_eq!((all[0].scheduled, all[0].retries), (20_000, 0), "{name}");
        assert!((146_000..=181_000).contains(&all[0].at), "{name}: {all:?}");
        assert_eq!(alarm(&rig, name).await, Value::Null);
    }
}

#[tokio::test]
async fn e10_touching_the_slot_in_a_failing_run_gives_the_retries_up() {
    let rig = Rig::new();
    rig.run("set", json!([{"on_alarm": [{"up_to_runs": [1, [{"set_alarm": 60_000}, {"fail": "x"}]]}]}, {"set_alarm": 0}])).await.unwrap();
    rig.run("delete", json!([{"on_alarm": ["delete_alarm", {"fail": "x"}]}, {"set_alarm": 0}]))
        .await
        .unwrap();
    rig.run("by request", json!([{"on_alarm": [{"sleep": 100}, {"fail": "x"}]}, {"set_alarm": 0}]))
        .await
        .unwrap();
    rig.settle().await;
    rig.run("by request", json!(["delete_alarm"])).await.unwrap();
    rig.pass_in_steps(70_000, 500).await;
    assert_eq!(runs(&rig, "set").await, [run(0, 0, 0), run(60_000, 60_000, 0)]);
    assert_eq!(runs(&rig, "delete").await, [run(0, 0, 0)]);
    assert_eq!(runs(&rig, "by request").await, [run(0, 0, 0)]);
}

#[tokio::test]
async fn e10_a_panic_after_a_set_undoes_it_and_does_not_spin() {
    let rig = Rig::new();
    // In the turn of the panic: undone, so the retries go on.
    rig.run(
        "undone",
        json!([{"on_alarm": [{"sleep": 0}, {"set_alarm": 0}, {"panic": "x"}]}, {"set_alarm": 0}]),
    )
    .await
    .unwrap();
    // Before it: only the new time counts.
    rig.run(
        "kept",
        json!([{"on_alarm": [{"set_alarm": 7_000}, {"sleep": 0}, {"panic": "x"}]}, {"set_alarm": 0}]),
    )
    .await
    .unwrap();
    rig.pass_in_steps(3_000, 500).await;
    let undone = runs(&rig, "undone").await;
    assert_eq!(undone.iter().map(|run| run.retries).collect::<Vec<_>>(), [0, 1], "{undone:?}");
    rig.pass_in_steps(4_500, 500).await;
    assert_eq!(runs(&rig, "kept").await, [run(0, 0, 0), run(7_000, 7_000, 0)]);
}

#[tokio::test]
async fn e11_in_back_off_a_delete_cancels_and_a_set_waits_for_the_retry() {
    let rig = Rig::new();
    for name in ["delete", "soon", "late"] {
        rig.run(name, json!([{"on_alarm": [{"up_to_runs": [1, [{"fail": "once"}]]}]}, {"set_alarm": 0}]))
            .await
            .unwrap();
    }
    rig.settle().await;
    rig.pass(100).await;
    rig.run("delete", json!(["delete_alarm"])).await.unwrap();
    rig.run("soon", json!([{"set_alarm": 200}])).await.unwrap();
    rig.run("late", json!([{"set_alarm": 30_000}])).await.unwrap();
    rig.pass_in_steps(40_000, 200).await;
    assert_eq!(runs(&rig, "delete").await, [run(0, 0, 0)]);
    let soon = runs(&rig, "soon").await;
    assert_eq!(soon.len(), 2, "{soon:?}");
    assert_eq!((soon[1].scheduled, soon[1].retries), (0, 1));
    assert!((2_000..=2_700).contains(&soon[1].at), "{soon:?}");
    assert_eq!(alarm(&rig, "soon").await, Value::Null);
    assert_eq!(runs(&rig, "late").await, [run(0, 0, 0), run(30_100, 30_100, 0)]);
}

#[tokio::test]
async fn e12_a_constructor_that_moves_or_empties_the_slot_prevents_the_run() {
    let rig = Rig::new();
    rig.run("later", json!([{"on_new": [{"set_alarm_at": START + 40_000}]}, {"set_alarm": 20_000}]))
        .await
        .unwrap();
    rig.run("empty", json!([{"on_new": ["delete_alarm"]}, {"set_alarm": 20_000}])).await.unwrap();
    rig.pass(10_200).await;
    rig.pass(9_800).await;
    assert!(rig.is_awake("later").await && rig.is_awake("empty").await);
    assert_eq!(runs(&rig, "later").await, []);
    assert_eq!(runs(&rig, "empty").await, []);
    rig.pass(20_000).await;
    assert_eq!(runs(&rig, "empty").await, []);
}

#[tokio::test]
async fn e12_the_moved_alarm_runs_at_its_new_time() {
    let rig = Rig::new();
    rig.run("x", json!([{"on_new": [{"set_alarm_at": START + 25_000}]}, {"set_alarm": 20_000}]))
        .await
        .unwrap();
    rig.pass(10_200).await;
    rig.pass(9_800).await;
    rig.pass(4_999).await;
    assert_eq!(runs(&rig, "x").await, []);
    rig.pass(1).await;
    assert_eq!(runs(&rig, "x").await, [run(25_000, 25_000, 0)]);
}

#[tokio::test]
async fn e13_a_rollback_undoes_what_was_done_to_the_slot() {
    let rig = Rig::new();
    rig.run("set", json!([{"catch": [{"transaction": [{"set_alarm": 1_000}, {"fail": "x"}]}]}]))
        .await
        .unwrap();
    rig.run("delete", json!([{"set_alarm": 1_000}])).await.unwrap();
    rig.run("delete", json!([{"catch": [{"transaction": ["delete_alarm", {"fail": "x"}]}]}])).await.unwrap();
    let handler = json!([{"catch": [{"transaction": [{"set_alarm": 1_000}, {"fail": "x"}]}]}]);
    rig.run("in run", json!([{"on_alarm": handler}, {"set_alarm": 1_000}])).await.unwrap();
    let handler =
        json!([{"catch": [{"transaction": ["delete_alarm", {"fail": "x"}]}]}, {"fail": "retry me"}]);
    rig.run("in failing run", json!([{"on_alarm": handler}, {"set_alarm": 1_000}])).await.unwrap();
    rig.pass_in_steps(4_000, 500).await;
    assert_eq!(runs(&rig, "set").await, []);
    assert_eq!(runs(&rig, "delete").await, [run(1_000, 1_000, 0)]);
    assert_eq!(runs(&rig, "in run").await, [run(1_000, 1_000, 0)]);
    assert_eq!(alarm(&rig, "in run").await, Value::Null);
    assert_eq!(runs(&rig, "in failing run").await.len(), 2, "not touched, so it is retried");
}

#[tokio::test]
async fn e14_delete_all_empties_the_slot_in_a_run_too() {
    let rig = Rig::new();
    rig.run("x", json!([{"set_alarm": 1_000}])).await.unwrap();
    rig.run("x", json!(["delete_all"])).await.unwrap();
    assert_eq!(alarm(&rig, "x").await, Value::Null);
    rig.run("in run", json!([{"on_alarm": ["delete_all", {"note": "ran"}]}, {"set_alarm": 1_000}]))
        .await
        .unwrap();
    rig.run(
        "failing",
        json!([{"on_alarm": ["delete_all", {"note": "ran"}, {"fail": "x"}]}, {"set_alarm": 1_000}]),
    )
    .await
    .unwrap();
    rig.run("set after", json!([{"on_alarm": ["delete_all", {"set_alarm": 500}]}, {"set_alarm": 1_000}]))
        .await
        .unwrap();
    rig.pass_in_steps(10_000, 500).await;
    assert_eq!(runs(&rig, "x").await, []);
    for name in ["in run", "failing"] {
        assert_eq!(runs(&rig, name).await, [], "its rows are gone");
        assert_eq!(lines(&rig, name).await, json!(["ran"]));
        assert_eq!(alarm(&rig, name).await, Value::Null);
    }
    assert_eq!(runs(&rig, "set after").await, [run(1_500, 1_500, 0)], "the handler went with the rest");
}

/// A class without an alarm handler.
struct Bare(HostState);

impl DurableObject<HostState> for Bare {
    fn new(state: HostState) -> Result<Self, Failure> {
        Ok(Self(state))
    }

    async fn fetch(&self, _: Request) -> Result<Response, Failure> {
        let alarms = self.0.alarms();
        let before = alarms.get().await?;
        if before.is_none() {
            alarms.set(self.0.now() + Duration::from_secs(1)).await?;
        }
        Ok(reply::json(&before)?)
    }
}

#[tokio::test]
async fn e15_without_a_handler_runs_fail_until_the_alarm_is_dropped() {
    let rig = Rig::with_class::<Bare>();
    let stub = rig.namespace("OTHER").named("x").unwrap();
    assert_eq!(ask(&stub, json!(null)).await.unwrap(), Value::Null);
    rig.pass(1_000).await;
    assert_eq!(ask(&stub, json!(null)).await.unwrap(), json!(START + 1_000), "in back-off");
    rig.pass_in_steps(120_000, 500).await;
    assert_eq!(ask(&stub, json!(null)).await.unwrap(), json!(START + 1_000), "before the last retry");
    rig.pass_in_steps(40_000, 500).await;
    assert_eq!(ask(&stub, json!(null)).await.unwrap(), Value::Null);
}

#[tokio::test]
async fn e16_alarms_survive_restarts_and_overdue_ones_fire_at_the_start() {
    for graceful in [true, false] {
        let mut rig = Rig::new();
        rig.run("due", json!([{"set_alarm": 5_000}])).await.unwrap();
        rig.run("later", json!([{"set_alarm": 60_000}])).await.unwrap();
        rig.run("moved", json!([{"set_alarm": 5_000}, {"sleep": 0}, {"set_alarm": 60_000}])).await.unwrap();
        rig.run("deleted", json!([{"set_alarm": 5_000}, {"sleep": 0}, "delete_alarm"])).await.unwrap();
        if graceful {
            rig.shut_down().await;
        } else {
            rig.stop();
        }
        rig.clock.advance(Duration::from_secs(20));
        rig.start();
        rig.settle().await;
        assert!(rig.is_awake("due").await);
        assert!(!rig.is_awake("later").await && !rig.is_awake("deleted").await);
        assert_eq!(runs(&rig, "due").await, [run(20_000, 5_000, 0)]);
        rig.pass(40_000).await;
        assert_eq!(runs(&rig, "later").await, [run(60_000, 60_000, 0)]);
        assert_eq!(runs(&rig, "moved").await, [run(60_000, 60_000, 0)]);
        assert_eq!(runs(&rig, "deleted").await, []);
    }
}

#[tokio::test]
async fn e16_a_run_that_a_crash_cut_off_runs_again_as_a_first_one() {
    let mut rig = Rig::new();
    rig.run("failed", json!([{"on_alarm": [{"up_to_runs": [2, [{"fail": "twice"}]]}]}, {"set_alarm": 0}]))
        .await
        .unwrap();
    rig.pass(3_000).await;
    assert_eq!(runs(&rig, "failed").await.len(), 2);
    rig.run("cut", json!([{"on_alarm": [{"up_to_runs": [1, [{"sleep": 100_000}]]}]}, {"set_alarm": 0}]))
        .await
        .unwrap();
    rig.settle().await;
    rig.stop();
    rig.start();
    rig.settle().await;
    assert_eq!(runs(&rig, "cut").await, [run(3_000, 3_000, 0); 2]);
    assert_eq!(alarm(&rig, "cut").await, Value::Null);
    let failed = runs(&rig, "failed").await;
    assert_eq!(failed.iter().map(|run| run.retries).collect::<Vec<_>>(), [0, 1, 0], "{failed:?}");
}

#[tokio::test]
async fn e18_an_alarm_waits_for_a_closed_gate() {
    let rig = Rig::new();
    rig.run("x", json!([{"set_alarm": 1_000}])).await.unwrap();
    let gate = rig.begin("x", json!([{"gate": [{"sleep": 3_000}]}]));
    rig.settle().await;
    rig.pass_in_steps(3_000, 500).await;
    join(gate).await.unwrap();
    assert_eq!(runs(&rig, "x").await, [run(3_000, 1_000, 0)]);
}

#[tokio::test]
async fn e18_an_alarm_behind_a_failing_gate_is_not_lost() {
    let rig = Rig::new();
    rig.run("x", json!([{"set_alarm": 1_000}])).await.unwrap();
    let gate = rig.begin("x", json!([{"gate": [{"sleep": 3_000}, {"fail": "x"}]}]));
    rig.settle().await;
    rig.pass_in_steps(6_000, 500).await;
    join(gate).await.unwrap_err();
    let all = runs(&rig, "x").await;
    assert_eq!(all.len(), 1, "{all:?}");
    assert_eq!((all[0].scheduled, all[0].retries), (1_000, 0));
}

#[tokio::test]
async fn many_alarms_of_sleeping_objects_fire_each_once() {
    let rig = Rig::new();
    for n in 0..100 {
        rig.run(&format!("o{n}"), json!([{"set_alarm_at": START + 30_000 + n % 10}])).await.unwrap();
    }
    rig.pass(11_000).await;
    rig.pass(18_999).await;
    assert!(!rig.is_awake("o0").await);
    rig.pass(1_000).await;
    for n in 0..100 {
        let all = runs(&rig, &format!("o{n}")).await;
        assert_eq!((all.len(), all[0].scheduled), (1, 30_000 + n % 10));
    }
}

#[tokio::test]
async fn an_alarm_that_always_sets_itself_to_now_starves_nobody() {
    let mut rig = Rig::new();
    for name in ["x", "y"] {
        rig.run(name, json!([{"on_alarm": [{"add": 1}, {"set_alarm": 0}]}, {"set_alarm": 0}])).await.unwrap();
    }
    rig.run("z", json!([])).await.unwrap();
    rig.settle().await;
    let count = rig.last("x", json!(["delete_alarm", {"add": 0}])).await.as_i64().unwrap();
    assert!(count > 0);
    rig.settle().await;
    assert_eq!(rig.last("x", json!([{"add": 0}])).await, json!(count), "stopped");
    rig.shut_down().await; // although the other one goes on
}

#[tokio::test]
async fn an_alarm_is_not_lost_when_its_object_is_reset_before_the_run() {
    let rig = Rig::new();
    rig.run("x", json!([{"set_alarm": 1_000}])).await.unwrap();
    rig.run("x", json!([{"reset": "away"}])).await.unwrap_err();
    rig.run("x", json!([{"sql": "INSERT INTO child VALUES (99)"}])).await.unwrap_err();
    rig.run("x", json!([{"set_alarm": 500}, {"panic": "undone"}])).await.unwrap_err();
    rig.run("x", json!(["delete_alarm", {"panic": "undone"}])).await.unwrap_err();
    rig.pass(500).await;
    assert_eq!(runs(&rig, "x").await, []);
    rig.pass(500).await;
    assert_eq!(runs(&rig, "x").await, [run(1_000, 1_000, 0)]);
}
