//! What a panic in one object costs the others, for each way that a host is built. Library code never panics; an
//! application's may.

use crate::testing::{
    case::{Case, Fault, Outcome, holds, same},
    difference::HostKind,
    driver::{Driver, PanicCost, Received},
    lab::{ClientExt, Lab},
    tasks::both,
    thrown::Thrown,
};
use serde_json::{Value, json};
use std::time::Duration;

pub(super) fn cases<D: Driver>() -> Vec<Case<D>> {
    vec![
        Case::new("b11 a panic resets its object alone where panics unwind", |lab| {
            Box::pin(resets_its_object(lab))
        })
        .panics(PanicCost::Object),
        Case::new("b11 a panic in a socket handler resets its object alone where panics unwind", |lab| {
            Box::pin(in_a_socket_handler(lab))
        })
        .panics(PanicCost::Object),
        Case::new(
            "b11 a panic in the entry is answered with 500 and costs nobody else where panics unwind",
            |lab| Box::pin(in_the_entry(lab)),
        )
        .panics(PanicCost::Object),
        Case::new("b11 b7 a panic in the constructor fails its request where panics unwind", |lab| {
            Box::pin(in_the_constructor(lab))
        })
        .panics(PanicCost::Object),
        Case::new("b11 a panic in init resets its object where panics unwind", |lab| Box::pin(in_init(lab)))
            .panics(PanicCost::Object),
        Case::new("b11 a panic in background work resets its object where panics unwind", |lab| {
            Box::pin(in_background(lab))
        })
        .panics(PanicCost::Object),
        Case::new("b11 a panic in a gate resets its object where panics unwind", |lab| {
            Box::pin(in_a_gate(lab))
        })
        .panics(PanicCost::Object),
        Case::new("b11 e7 a panic in the alarm's run fails it where panics unwind", |lab| {
            Box::pin(in_the_alarm(lab))
        })
        .panics(PanicCost::Object),
        Case::new("b11 f18 a panic in a transaction undoes it where panics unwind", |lab| {
            Box::pin(in_a_transaction(lab))
        })
        .panics(PanicCost::Object),
        Case::new("b11 c5 a panic undoes what its turn wrote", |lab| Box::pin(writes(lab, json!(["kept"]))))
            .panics(PanicCost::Object)
            .differs(&[HostKind::Kit, HostKind::Tokio], "panic"),
        Case::new("b11 c5 a panic keeps what its turn wrote where panics unwind", |lab| {
            Box::pin(writes(lab, json!(["kept", "too"])))
        })
        .panics(PanicCost::Object)
        .differs(&[HostKind::Workerd], "panic"),
        Case::new("b11 a panic costs every object its memory and its requests where panics abort", |lab| {
            Box::pin(costs_all(lab))
        })
        .panics(PanicCost::Isolate),
        Case::new(
            "b11 b8 a panic of another object leaves init before requests where panics unwind",
            |lab| Box::pin(init_first(lab)),
        )
        .panics(PanicCost::Object),
        Case::new("b11 b8 a panic of another object leaves init before requests where panics abort", |lab| {
            Box::pin(init_first(lab))
        })
        .panics(PanicCost::Isolate),
    ]
}

async fn resets_its_object<D: Driver>(lab: &Lab<D>) -> Outcome {
    let before = lab.run("a", json!([{"note": "kept"}, {"add": 5}, "instance"])).await?;
    let other = lab.run("b", json!([{"add": 5}, "instance"])).await?;
    let slow = lab.run("b", json!([{"add": 1}, {"sleep": 300}, {"add": 1}]));
    let (slow, thrown) = both(slow, async {
        lab.begun("b", 6).await?;
        let thrown = lab.thrown("a", json!([{"panic": "on demand"}])).await?;
        lab.advance(Duration::from_millis(400)).await?;
        Ok::<_, Fault>(thrown)
    })
    .await;
    let thrown = thrown?;
    let what = format!("{thrown:?}");
    same(&what, thrown.kind, "Reset")?;
    holds(&what, thrown.message.contains("on demand"))?;
    same("a request in flight in another object", slow?, [json!(6), json!(null), json!(7)])?;
    same(
        "another object's memory",
        lab.run("b", json!([{"add": 0}, "instance"])).await?,
        [json!(7), other[1].clone()],
    )?;
    let after = lab.run("a", json!([{"add": 0}, "instance"])).await?;
    same("its own memory", &after[0], json!(0))?;
    holds("the instance is the same", after[1] != before[2])?;
    same("what it had written", lab.lines("a").await?, json!(["kept"]))
}

/// The error of a panic, and that the next instance knows nothing of it.
async fn panicked<D: Driver>(lab: &Lab<D>, thrown: &Thrown, text: &str) -> Outcome {
    let seen = (&*thrown.kind, &*thrown.message, thrown.remote);
    same(&format!("{thrown:?}"), seen, ("Reset", &*format!("the object panicked: {text}"), true))?;
    same("memory", lab.last("a", json!([{"add": 0}])).await?, 0)
}

async fn in_the_constructor<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.run("a", json!([{"note": "kept"}, {"on_new": [{"note": "half"}, {"life": {"panic_times": 2}}]}]))
        .await?;
    lab.thrown("a", json!([{"reset": "to be constructed again"}])).await?;
    let one = lab.thrown("a", json!([])).await?;
    let two = lab.thrown("a", json!([])).await?;
    panicked(lab, &one, "attempt 1").await?;
    panicked(lab, &two, "attempt 2").await?;
    same(
        "what was written",
        lab.run("a", json!(["boots", {"sql": "SELECT line FROM log"}])).await?,
        json!([2, ["kept", "half"]]),
    )
}

async fn in_init<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.run("a", json!([{"on_new": [{"sleep": 1}, {"life": {"panic_times": 1}}]}])).await?;
    lab.thrown("a", json!([{"reset": "to be constructed again"}])).await?;
    let time = || lab.advance(Duration::from_millis(100));
    let (thrown, passed) = both(lab.thrown("a", json!([{"add": 1}])), time()).await;
    passed?;
    let (after, passed) = both(lab.run("a", json!([{"add": 1}])), time()).await;
    passed.and(after.map(drop))?;
    lab.thrown("a", json!([{"on_new": []}, {"reset": "to be constructed again"}])).await?;
    panicked(lab, &thrown?, "attempt 1").await
}

async fn in_background<D: Driver>(lab: &Lab<D>) -> Outcome {
    let other = lab.last("b", json!([{"add": 5}, "instance"])).await?;
    let steps =
        json!([{"add": 5}, {"wait_until": [{"sleep": 50}, {"panic": "on demand"}]}, {"sleep": 60_000}]);
    let (thrown, time) = both(lab.thrown("a", steps), lab.advance(Duration::from_millis(200))).await;
    time?;
    panicked(lab, &thrown?, "on demand").await?;
    same("another object", lab.last("b", json!(["instance"])).await?, other)
}

async fn in_a_gate<D: Driver>(lab: &Lab<D>) -> Outcome {
    let steps = json!([{"add": 5}, {"catch": [{"gate": [{"sleep": 10}, {"panic": "on demand"}]}]}]);
    let (thrown, time) = both(lab.thrown("a", steps), lab.advance(Duration::from_millis(200))).await;
    time?;
    panicked(lab, &thrown?, "on demand").await
}

async fn in_the_alarm<D: Driver>(lab: &Lab<D>) -> Outcome {
    let handler = json!([{"sleep": 1}, {"life": {"panic_times": 1}}, {"note_of": [{"add": 1}, "boots"]}]);
    lab.run("a", json!([{"add": 5}, {"on_alarm": handler}, {"set_alarm": 50}])).await?;
    lab.advance(Duration::from_millis(2_500)).await?;
    let lines = json!([{"sql": "SELECT line FROM log"}]);
    let within = Duration::from_secs(10);
    lab.until_over_reset("a", lines, within, |lines| *lines == json!(["[1,2]"])).await?;
    let runs = json!([{"sql": "SELECT retries FROM runs ORDER BY rowid"}]);
    same("retries", lab.last("a", runs).await?, json!([0, 1]))
}

async fn in_a_transaction<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.run("a", json!([{"note": "kept"}])).await?;
    let within =
        json!([{"note": "undone"}, {"transaction": [{"note": "undone too"}]}, {"panic": "on demand"}]);
    let thrown = lab.thrown("a", json!([{"transaction": within}])).await?;
    panicked(lab, &thrown, "on demand").await?;
    same("what was written", lab.lines("a").await?, json!(["kept"]))
}

async fn writes<D: Driver>(lab: &Lab<D>, expected: Value) -> Outcome {
    lab.run("a", json!([{"note": "kept"}, {"sleep": 0}])).await?;
    let thrown = lab.thrown("a", json!([{"note": "too"}, {"panic": "on demand"}])).await?;
    panicked(lab, &thrown, "on demand").await?;
    same("what was written", lab.lines("a").await?, expected)
}

async fn in_a_socket_handler<D: Driver>(lab: &Lab<D>) -> Outcome {
    let other = lab.last("b", json!([{"add": 5}])).await?;
    let mut client = lab.open("a", &[]).await?;
    client.steps(json!([{"add": 5}])).await?;
    client.text(&json!([{"panic": "on demand"}]).to_string()).await?;
    client.hears("after it", Received::Lost).await?;
    same("another object", lab.last("b", json!([{"add": 0}])).await?, other)?;
    same("the object", lab.run("a", json!([{"add": 0}, "events"])).await?, [json!(0), json!([])])
}

/// Where panics abort, the instance that is made anew is not behind the platform's own gate. Reading a body would wait for
/// that, so the requests have none.
async fn init_first<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.run("a", json!([{"on_new": [{"sleep": 200}, {"add": 10}]}])).await?;
    lab.thrown("a", json!([{"reset": "to be constructed again"}])).await?;
    let three = || async {
        let call = || lab.run_at_once("a", json!([{"add": 0}, "instance"]));
        let (calls, time) =
            both(both(call(), both(call(), call())), lab.advance(Duration::from_millis(400))).await;
        time?;
        let (one, (two, three)) = calls;
        Ok::<_, Fault>([one?, two?, three?])
    };
    let [before, ..] = three().await?;
    same("the first", &before[0], json!(10))?;
    let panicked = lab.answer("b", json!([{"panic": "on demand"}]));
    match lab.driver().panic_cost() {
        PanicCost::Object => drop(panicked.await?),
        PanicCost::Isolate => lab.silent("what panics", panicked, Duration::from_millis(500)).await?,
    }
    let after = three().await?;
    for after in &after {
        same("what a request after the panic sees of init", &after[0], json!(10))?;
    }
    let lost = lab.driver().panic_cost() == PanicCost::Isolate;
    same("the instance is another one", after[0][1] != before[1], lost)
}

async fn in_the_entry<D: Driver>(lab: &Lab<D>) -> Outcome {
    let before = lab.run("a", json!([{"add": 5}, "instance"])).await?;
    let (status, body) = lab.driver().post("/panic/PROBE/", Vec::new()).await?;
    same("the answer", (status, String::from_utf8_lossy(&body)), (500, "internal error"))?;
    same("an object", lab.run("a", json!([{"add": 0}, "instance"])).await?, before)
}

async fn costs_all<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.run("a", json!([{"note": "kept"}])).await?;
    let other = lab.last("b", json!([{"note": "kept"}, "instance"])).await?;
    let mut client = lab.open("b", &[("tag", "t"), ("attach", "ada")]).await?;
    // Its answer is due after the panic, also on a busy machine, and before the end of the silence.
    let slow = lab.answer("b", json!([{"add": 1}, {"sleep": 1_500}, {"add": 1}]));
    let slow = lab.silent("a request in flight in another object", slow, Duration::from_secs(3));
    let (slow, panic) = both(slow, async {
        lab.begun("b", 1).await?;
        let call = lab.answer("a", json!([{"panic": "on demand"}]));
        lab.silent("the request that panics", call, Duration::from_secs(2)).await
    })
    .await;
    slow.and(panic)?;
    same("its memory", lab.last("a", json!([{"add": 0}])).await?, json!(0))?;
    same("what it had written", lab.lines("a").await?, json!(["kept"]))?;
    let after = lab.run("b", json!([{"add": 0}, "instance"])).await?;
    same("another object's memory", &after[0], json!(0))?;
    holds("the other object's instance is the same", after[1] != other)?;
    same("its data", lab.lines("b").await?, json!(["kept"]))?;
    let seen = client.steps(json!([{"tags": "this"}, {"attachments": "this"}])).await?;
    same("its socket", seen, json!([[["t"]], ["ada"]]))
}
