//! Faults that random interleavings found once, each with the test that keeps it from coming back.

use crate::common::{ask, kit, lines, probe};
use do_core::{ErrorKind, kit::Failing};
use serde_json::json;
use std::time::Duration;

#[test]
fn c6_a_call_of_which_an_earlier_turn_was_kept_is_in_doubt_when_a_commit_fails() {
    let kit = kit();
    let a = probe(&kit, "a");
    kit.run(async {
        ask(&a, json!([])).await.unwrap();
        let call = |steps| {
            let a = a.clone();
            kit.spawn(async move { ask(&a, steps).await.unwrap_err() })
        };
        let waits = call(json!([{"note": "kept"}, {"sleep": 60_000}]));
        let ends = call(json!([{"note": "kept too"}, {"sleep": 10}, {"note": "undone"}]));
        kit.settle().await;
        kit.fail_next(&a, Failing::Commit);
        kit.advance(Duration::from_millis(10)).await;
        for error in [waits.await, ends.await] {
            assert_eq!((error.kind(), error.is_indefinite()), (ErrorKind::Platform, true));
        }
        // Nothing of a call was kept that is undone in its first turn, whether that is its last or not.
        for steps in [json!([{"note": "undone"}]), json!([{"note": "undone"}, {"sleep": 10}])] {
            kit.fail_next(&a, Failing::Commit);
            let error = ask(&a, steps).await.unwrap_err();
            assert_eq!((error.kind(), error.is_indefinite()), (ErrorKind::Platform, false));
        }
        let mut kept = lines(&a).await;
        kept.sort();
        assert_eq!(kept, ["kept", "kept too"]);
    });
}

#[test]
fn what_is_sent_to_a_client_that_is_gone_does_not_keep_the_world_busy() {
    let kit = kit();
    let a = probe(&kit, "a");
    for _ in 0..20 {
        kit.run(async {
            let client = kit.connect(&a, "/?tag=x").await.unwrap();
            let send = {
                let a = a.clone();
                kit.spawn(async move { ask(&a, json!([{"send": ["all", "too late"]}])).await.unwrap() })
            };
            client.lose();
            kit.settle().await;
            send.await;
            assert_eq!(ask(&a, json!([{"count": "all"}])).await.unwrap(), [json!(0)]);
        });
    }
}
