//! B8 to B10: what a closed gate holds back, and what its failure costs.

use super::told::{A_WHILE, SOON, go_on, gone, is_reset, until_told, waits};
use crate::testing::{
    case::{Case, Outcome, holds, same},
    driver::{Driver, Received},
    lab::{ClientExt, Lab},
    tasks::both,
    thrown::Thrown,
};
use serde_json::{Value, json};
use std::time::Duration;

pub(super) fn cases<D: Driver>() -> Vec<Case<D>> {
    vec![
        Case::new("b8 a gate gives its value", |lab| Box::pin(b8_value(lab))),
        Case::new("b8 a closed gate holds back requests, and the turn that closed it goes on", |lab| {
            Box::pin(b8_gate(lab))
        }),
        Case::new("b8 a closed gate holds back socket messages", |lab| Box::pin(b8_messages(lab))),
        Case::new("b8 a closed gate holds back the alarm", |lab| Box::pin(b8_alarm(lab))),
        Case::new("b8 a closed gate holds back handlers that are under way", |lab| {
            Box::pin(b8_under_way(lab))
        }),
        Case::new("b8 a closed gate holds back no other object", |lab| Box::pin(b8_others(lab))),
        Case::new("b8 gates asked for in one turn run one after the other", |lab| Box::pin(b8_two(lab))),
        Case::new("b8 work that a gate spawned runs in it", |lab| Box::pin(b8_spawned(lab))),
        Case::new("b8 init in the constructor holds back the first requests", |lab| Box::pin(b8_init(lab))),
        Case::new("b8 init holds back the message that woke the object", |lab| {
            Box::pin(b8_init_message(lab))
        })
        .evicts(),
        Case::new("b8 init holds back the alarm that woke the object", |lab| Box::pin(b8_init_alarm(lab)))
            .evicts(),
        Case::new("b9 a failing gate resets the object although the error is caught", |lab| {
            Box::pin(b9_failing_gate(lab))
        }),
        Case::new("b9 a failing gate that nobody awaits resets the object", |lab| Box::pin(b9_detached(lab))),
        Case::new("b9 what waits for a failing gate gets its error", |lab| Box::pin(b9_held_back(lab))),
        Case::new("b9 the error of a failing gate keeps its name", |lab| Box::pin(b9_name(lab))),
        Case::new("b10 gates nested 64 deep give their value", |lab| Box::pin(b10_deep(lab))),
        Case::new("b10 gates nested deeper than 64 reset the object", |lab| Box::pin(b10_depth(lab))),
        Case::new("b10 a gate of 30 s resets the object as overloaded, for whoever waits too", |lab| {
            Box::pin(b10_thirty(lab))
        })
        .long(),
    ]
}

async fn b8_value<D: Driver>(lab: &Lab<D>) -> Outcome {
    let steps = json!([{"add": 1}, {"gate": [{"sleep": 50}, {"add": 3}]}, {"gate": []}, {"add": 0}]);
    let (values, time) = both(lab.run("a", steps), lab.advance(Duration::from_millis(200))).await;
    time?;
    same("the values", values?, json!([1, [null, 4], [], 4]))
}

async fn b8_gate<D: Driver>(lab: &Lab<D>) -> Outcome {
    // The turn that asks goes on to its end.
    let gate = json!([{"gate_detached": [{"sleep": 300}, {"note": "gate"}]}, {"note": "first"}]);
    lab.run("a", gate).await?;
    let second = lab.run("a", json!([{"note": "second"}]));
    let (second, time) = both(second, async {
        lab.advance(Duration::from_millis(200)).await?;
        lab.advance(Duration::from_millis(300)).await
    })
    .await;
    second.and(time)?;
    same("the order", lab.lines("a").await?, json!(["first", "gate", "second"]))
}

async fn b8_messages<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut client = lab.open("a", &[]).await?;
    let gate = lab.run("a", json!([{"gate": [until_told(lab, "c"), {"note": "gate"}]}]));
    let (gate, rest) = both(gate, async {
        waits(lab, "c").await?;
        for text in ["one", "two"] {
            client.text(&json!([{"note": text}]).to_string()).await?;
        }
        lab.advance(A_WHILE).await?;
        go_on(lab, "c").await?;
        for what in ["one", "two"] {
            client.hears_text(what, "[null]").await?;
        }
        Ok(())
    })
    .await;
    gate.map(drop).and(rest)?;
    same("the order", lab.lines("a").await?, json!(["gate", "one", "two"]))
}

async fn b8_alarm<D: Driver>(lab: &Lab<D>) -> Outcome {
    let gate = json!({"gate": [until_told(lab, "c"), {"note": "gate"}]});
    lab.run("a", json!([{"on_alarm": [{"note": "alarm"}]}])).await?;
    let gate = lab.run("a", json!([{"set_alarm": 300}, gate]));
    let (gate, rest) = both(gate, async {
        waits(lab, "c").await?;
        lab.advance(Duration::from_millis(600)).await?;
        go_on(lab, "c").await
    })
    .await;
    gate.map(drop).and(rest)?;
    let lines = json!([{"sql": "SELECT line FROM log ORDER BY rowid"}]);
    let all = |lines: &Value| lines.as_array().is_some_and(|lines| lines.len() == 2);
    same("the order", lab.until("a", lines, SOON, all).await?, json!(["gate", "alarm"]))
}

async fn b8_under_way<D: Driver>(lab: &Lab<D>) -> Outcome {
    let early = lab.run("a", json!([until_told(lab, "c"), {"note": "early"}]));
    let (early, gate) = both(early, async {
        waits(lab, "c").await?;
        let gate = lab.run("a", json!([{"gate": [until_told(lab, "d"), {"note": "gate"}]}]));
        let (gate, rest) = both(gate, async {
            waits(lab, "d").await?;
            go_on(lab, "c").await?;
            go_on(lab, "d").await
        })
        .await;
        gate.map(drop).and(rest)
    })
    .await;
    early.map(drop).and(gate)?;
    same("the order", lab.lines("a").await?, json!(["gate", "early"]))
}

async fn b8_others<D: Driver>(lab: &Lab<D>) -> Outcome {
    let gate = lab.run("a", json!([{"gate": [until_told(lab, "c")]}]));
    let (gate, other) = both(gate, async {
        waits(lab, "c").await?;
        same("another object", lab.last("b", json!([{"add": 1}])).await?, 1)?;
        go_on(lab, "c").await
    })
    .await;
    gate.map(drop).and(other)
}

async fn b8_two<D: Driver>(lab: &Lab<D>) -> Outcome {
    let one = json!([{"note": "one"}, {"sleep": 100}, {"note": "one again"}]);
    let steps = json!([{"two_gates": [one, [{"note": "two"}]]}]);
    let (values, time) = both(lab.last("a", steps), lab.advance(Duration::from_millis(300))).await;
    time?;
    same("their values", values?, json!([[null, null, null], [null]]))?;
    same("the order", lab.lines("a").await?, json!(["one", "one again", "two"]))
}

async fn b8_spawned<D: Driver>(lab: &Lab<D>) -> Outcome {
    let steps = json!([{"gate_over_background": [{"sleep": 50}, {"note": "spawned"}]}]);
    let (values, time) = both(lab.last("a", steps), lab.advance(Duration::from_millis(300))).await;
    time?;
    same("the values", values?, json!([7, [null, null]]))
}

async fn b8_init<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.run("a", json!([{"on_new": [{"sleep": 200}, {"add": 10}]}])).await?;
    gone(lab, "a").await?;
    let call = || lab.last("a", json!([{"add": 1}]));
    let ((one, two), time) = both(both(call(), call()), lab.advance(Duration::from_millis(500))).await;
    time?;
    let mut seen = [one?.as_i64(), two?.as_i64()];
    seen.sort_unstable();
    same("the numbers in memory", seen, [11, 12])
}

async fn b8_init_message<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.run("a", json!([{"on_new": [{"sleep": 200}, {"add": 10}]}, {"add": 0}])).await?;
    let mut client = lab.open("a", &[]).await?;
    lab.evict().await?;
    for _ in 0..2 {
        client.text(&json!([{"add": 1}, "boots"]).to_string()).await?;
    }
    lab.advance(Duration::from_millis(500)).await?;
    client.hears_text("the first", "[11,2]").await?;
    client.hears_text("the second", "[12,2]").await
}

async fn b8_init_alarm<D: Driver>(lab: &Lab<D>) -> Outcome {
    let ms = lab.after_eviction(1_500);
    let handler = json!([{"note_of": [{"add": 1}, "boots"]}]);
    lab.run(
        "a",
        json!([{"on_new": [{"sleep": 200}, {"add": 10}]}, {"on_alarm": handler}, {"set_alarm": ms}]),
    )
    .await?;
    lab.evict().await?;
    lab.advance(Duration::from_millis(2_000)).await?;
    let lines = json!([{"sql": "SELECT line FROM log"}]);
    lab.until("a", lines, SOON, |lines| *lines == json!(["[11,2]"])).await.map(drop)
}

async fn b9_failing_gate<D: Driver>(lab: &Lab<D>) -> Outcome {
    let before = lab.run("a", json!([{"add": 1}, {"note": "kept"}, "instance"])).await?;
    let steps = json!([{"catch": [{"gate": [{"fail": "the gate fails"}]}]}, {"note": "after it"}]);
    is_reset(&lab.thrown("a", steps).await?, "the gate fails")?;
    let after = lab.run("a", json!([{"add": 0}, "instance"])).await?;
    same("memory", &after[0], json!(0))?;
    holds("the instance is the same", before[2] != after[1])?;
    same("what was written", lab.lines("a").await?, json!(["kept"]))
}

async fn b9_detached<D: Driver>(lab: &Lab<D>) -> Outcome {
    let before = lab.last("a", json!([{"add": 1}, "instance"])).await?;
    let steps = json!([{"gate_detached": [{"sleep": 100}, {"fail": "the gate fails"}]}, {"sleep": 60_000}]);
    let (thrown, time) = both(lab.thrown("a", steps), lab.advance(Duration::from_millis(300))).await;
    time?;
    is_reset(&thrown?, "the gate fails")?;
    let after = lab.run("a", json!([{"add": 0}, "instance"])).await?;
    same("memory", &after[0], 0)?;
    holds("the instance is the same", before != after[1])
}

async fn b9_held_back<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut client = lab.open("a", &[]).await?;
    let gate = lab.thrown("a", json!([{"gate": [until_told(lab, "c"), {"fail": "the gate fails"}]}]));
    let (gate, rest) = both(gate, async {
        waits(lab, "c").await?;
        client.text(&json!([{"note": "message"}]).to_string()).await?;
        let waiting = lab.thrown("a", json!([{"note": "waits"}]));
        let (waiting, told) = both(waiting, async {
            lab.advance(A_WHILE).await?;
            go_on(lab, "c").await
        })
        .await;
        told?;
        is_reset(&waiting?, "the gate fails")
    })
    .await;
    rest?;
    is_reset(&gate?, "the gate fails")?;
    client.hears("the socket", Received::Lost).await?;
    same("what ran", lab.lines("a").await?, json!([]))
}

async fn b9_name<D: Driver>(lab: &Lab<D>) -> Outcome {
    let thrown = lab.thrown("a", json!([{"gate": ["fail_typed"]}])).await?;
    is_reset(&thrown, "the probe was told to fail")?;
    same("its name", &thrown.name, "ProbeError")
}

async fn b10_deep<D: Driver>(lab: &Lab<D>) -> Outcome {
    let before = lab.run("a", json!([{"add": 5}, {"life": {"nest_sum": 64}}, "instance"])).await?;
    same("the value", &before[1], 64)?;
    same("memory", lab.run("a", json!([{"add": 0}, "instance"])).await?, json!([5, before[2]]))
}

async fn b10_depth<D: Driver>(lab: &Lab<D>) -> Outcome {
    let before = lab.run("a", json!([{"add": 5}, "instance"])).await?;
    let thrown = lab.thrown("a", json!([{"nest": 65}])).await?;
    is_reset(&thrown, "block_concurrency_while is nested deeper than 64: the object is reset")?;
    let after = lab.run("a", json!([{"add": 0}, "instance"])).await?;
    same("its memory", &after[0], json!(0))?;
    holds("the instance is the same", after[1] != before[1])
}

async fn b10_thirty<D: Driver>(lab: &Lab<D>) -> Outcome {
    let before = lab.run("a", json!([{"add": 5}, "instance"])).await?;
    let call =
        |steps: Value| json!({"wait_until": [{"life": {"note_try": [{"call": [lab.name("a"), steps]}]}}]});
    let gate = json!([{"note": "kept"}, {"gate": [{"sleep": 60_000}]}]);
    lab.run("b", json!([call(gate), call(json!([{"note": "waits"}]))])).await?;
    lab.advance(Duration::from_secs(28)).await?;
    same("within the limit", lab.lines("b").await?, json!([]))?;
    lab.advance(Duration::from_secs(4)).await?;
    let lines = json!([{"sql": "SELECT line FROM log ORDER BY rowid"}]);
    let two = |lines: &Value| lines.as_array().is_some_and(|lines| lines.len() == 2);
    let lines = lab.until("b", lines, SOON, two).await?;
    let text = "A call to blockConcurrencyWhile() in a Durable Object waited for too long. The call was canceled and \
                the Durable Object was reset.";
    for line in lines.as_array().into_iter().flatten() {
        let seen: Value = serde_json::from_str(line.as_str().unwrap_or_default())?;
        let thrown: Thrown = serde_json::from_value(seen["error"].clone())?;
        let what = format!("{thrown:?}");
        same(&what, (&*thrown.kind, &*thrown.message), ("Overloaded", text))?;
        let flags = (thrown.remote, thrown.retryable, thrown.overloaded, thrown.indefinite);
        same(&what, flags, (true, false, true, true))?;
    }
    let after = lab.run("a", json!([{"add": 0}, "instance"])).await?;
    same("its memory", &after[0], json!(0))?;
    holds("the instance is the same", after[1] != before[1])?;
    same("what was written", lab.lines("a").await?, json!(["kept"]))
}
