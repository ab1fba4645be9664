//! Alarms that are late, doubled, or found again after a crash.

use crate::common::{ask, kit, lines, probe};
use do_core::kit::{Failing, Kit};
use serde_json::{Value, json};
use std::time::Duration;

async fn runs(stub: &do_core::tokio::HostStub) -> Vec<Value> {
    ask(stub, json!(["runs"])).await.unwrap()[0].as_array().unwrap().clone()
}

#[test]
fn time_passes_in_the_order_of_what_is_due() {
    let kit = kit();
    let (a, b) = (probe(&kit, "a"), probe(&kit, "b"));
    kit.run(async {
        let log = |name: &str| json!([{"on_alarm": [{"call": ["log", [{"note": name}]]}]}, {"set_alarm": if name == "a" { 3_600_000 } else { 60_000 }}]);
        ask(&a, log("a")).await.unwrap();
        ask(&b, log("b")).await.unwrap();
        let begin = kit.now();
        kit.advance(Duration::from_secs(4_000)).await;
        assert_eq!(lines(&probe(&kit, "log")).await, ["b", "a"]);
        assert_eq!(begin.until(kit.now()), Duration::from_secs(4_000));
        assert_eq!(runs(&a).await[0]["at"], json!(begin.as_millis() + 3_600_000));
    });
}

#[test]
fn late_alarms_are_late_and_never_early() {
    let kit = kit();
    let a = probe(&kit, "a");
    kit.run(async {
        kit.late_alarms(Duration::from_secs(5));
        let due = ask(&a, json!([{"set_alarm": 1_000}])).await.unwrap()[0].as_i64().unwrap();
        kit.advance(Duration::from_millis(5_999)).await;
        assert_eq!(runs(&a).await, [] as [Value; 0]);
        kit.advance(Duration::from_millis(1)).await;
        let run = runs(&a).await.remove(0);
        assert_eq!((&run["scheduled"], &run["at"]), (&json!(due), &json!(due + 5_000)));
    });
}

#[test]
fn a_repeated_alarm_runs_twice_and_then_no_more() {
    let kit = kit();
    let a = probe(&kit, "a");
    kit.run(async {
        kit.repeat_alarms(1);
        ask(&a, json!([{"on_alarm": [{"note": "ran"}]}, {"set_alarm": 1_000}])).await.unwrap();
        kit.advance(Duration::from_secs(10)).await;
        assert_eq!(lines(&a).await, ["ran", "ran"]);
        let runs = runs(&a).await;
        assert_eq!(runs[0]["scheduled"], runs[1]["scheduled"]);
        assert_eq!([&runs[0]["retries"], &runs[1]["retries"]], [&json!(0), &json!(0)]);
        assert_eq!(ask(&a, json!(["get_alarm"])).await.unwrap(), [Value::Null]);
    });
}

/// What is lost when the power fails, beside nothing: that an alarm was moved later, or taken back.
#[test]
fn e17_after_a_power_failure_the_index_is_early_and_no_alarm_is_lost() {
    let after = |fault: fn(&Kit)| {
        let kit = kit();
        let a = probe(&kit, "a");
        kit.run(async {
            ask(&a, json!([{"set_alarm": 1_000}])).await.unwrap();
            ask(&a, json!([{"set_alarm": 60_000}])).await.unwrap();
            let boots = ask(&a, json!(["boots"])).await.unwrap();
            fault(&kit);
            kit.advance(Duration::from_secs(2)).await;
            let woken = kit.history().contains("\"a\" alarm begins");
            kit.advance(Duration::from_secs(70)).await;
            assert_eq!(boots, [json!(1)]);
            (woken, runs(&a).await.len())
        })
    };
    assert_eq!(after(Kit::crash), (false, 1));
    assert_eq!(after(Kit::lose_power), (false, 1));
}

#[test]
fn e16_a_crash_in_a_run_runs_it_again_from_the_beginning() {
    let kit = kit();
    let a = probe(&kit, "a");
    kit.run(async {
        ask(&a, json!([{"on_alarm": [{"note": "begun"}, {"sleep": 100}, {"note": "ended"}]}, {"set_alarm": 1_000}]))
            .await
            .unwrap();
        kit.advance(Duration::from_millis(1_050)).await;
        kit.crash();
        kit.advance(Duration::from_secs(1)).await;
        assert_eq!(lines(&a).await, ["begun", "begun", "ended"]);
        let runs = runs(&a).await;
        assert_eq!([&runs[0]["retries"], &runs[1]["retries"]], [&json!(0), &json!(0)]);
    });
}

#[test]
fn e7_an_alarm_whose_commit_fails_is_tried_again() {
    let kit = kit();
    let a = probe(&kit, "a");
    kit.run(async {
        ask(&a, json!([{"on_alarm": [{"note": "ran"}]}, {"set_alarm": 1_000}])).await.unwrap();
        kit.fail_next(&a, Failing::Commit);
        kit.advance(Duration::from_secs(10)).await;
        assert_eq!(lines(&a).await, ["ran"]);
        assert_eq!(runs(&a).await[0]["retries"], json!(1));
    });
}

#[test]
fn a_wall_clock_that_steps_back_makes_nothing_early() {
    let kit = kit();
    let a = probe(&kit, "a");
    kit.run(async {
        let due = ask(&a, json!([{"set_alarm": 1_000}])).await.unwrap()[0].as_i64().unwrap();
        kit.step_wall(do_core::Timestamp::from_millis(due - 11_000));
        kit.advance(Duration::from_secs(10)).await;
        assert_eq!(runs(&a).await.len(), 0);
        kit.advance(Duration::from_secs(1)).await;
        assert_eq!(runs(&a).await[0]["at"], json!(due));
    });
}
