//! B: how instances come, stay and go.

use crate::testing::{
    case::{Case, Fault, Outcome, holds, same},
    difference::HostKind,
    driver::{Client, Driver, Received},
    lab::{ClientExt, Lab},
    tasks::both,
    thrown::Thrown,
};
use serde_json::{Value, json};
use std::time::Duration;

/// Longer than an idle object stays in memory, also where it is looked at only now and then.
const BEYOND_IDLE: Duration = Duration::from_millis(12_500);
/// In which something that is not to come would have come.
const A_WHILE: Duration = Duration::from_millis(300);
/// In which something that is to come has come.
const SOON: Duration = Duration::from_secs(10);

pub(super) fn cases<D: Driver>() -> Vec<Case<D>> {
    [construction(), staying(), failing_constructors(), gates(), failures(), resets()]
        .into_iter()
        .flatten()
        .collect()
}

fn construction<D: Driver>() -> Vec<Case<D>> {
    vec![
        Case::new("b1 the first events construct one instance and wait for it", |lab| Box::pin(b1_once(lab))),
        Case::new("b1 what the constructor made is there for the first event", |lab| {
            Box::pin(b1_before(lab))
        }),
        Case::new("b1 a socket message constructs", |lab| Box::pin(b1_message(lab))).evicts(),
        Case::new("b2 an evicted object loses its memory and keeps its data", |lab| {
            Box::pin(b2_evicted(lab))
        })
        .evicts(),
        Case::new("b2 an idle object leaves memory after ten seconds", |lab| Box::pin(b2_idle(lab))).long(),
        Case::new("b2 what is asked of it keeps an object in memory for ten seconds more", |lab| {
            Box::pin(b2_asked(lab))
        })
        .long(),
    ]
}

fn staying<D: Driver>() -> Vec<Case<D>> {
    vec![
        Case::new("b3 a pending sleep keeps its object in memory", |lab| {
            Box::pin(b3_keeps(lab, json!([{"life": {"hold_sleep": 600_000}}])))
        }),
        Case::new("b3 background work keeps its object in memory", |lab| {
            Box::pin(b3_keeps(lab, json!([{"wait_until": [{"sleep": 600_000}]}])))
        }),
        Case::new("b3 background work that waits for nothing keeps its object in memory", |lab| {
            Box::pin(b3_keeps(lab, json!([{"wait_until": [{"life": "never"}]}])))
        }),
        Case::new("b3 a call that is awaited keeps the caller in memory", |lab| {
            let steps = json!([{"wait_until": [{"call": [lab.name("c"), [{"sleep": 600_000}]]}]}]);
            Box::pin(b3_keeps(lab, steps))
        }),
        Case::new("b3 a call that nobody awaits keeps the caller in memory", |lab| {
            Box::pin(b3_keeps(lab, json!([{"call_detached": [lab.name("c"), [{"sleep": 600_000}]]}])))
        }),
        Case::new("b3 a call keeps the object that is called in memory", |lab| Box::pin(b3_called(lab))),
        Case::new("b3 a request under way keeps its object in memory", |lab| Box::pin(b3_request(lab))),
        Case::new("b3 a message handler that awaits keeps its object in memory", |lab| {
            Box::pin(b3_message(lab))
        }),
        Case::new("b3 what a slow socket was not sent yet keeps its object in memory", |lab| {
            Box::pin(b3_unsent(lab))
        })
        .differs(&[HostKind::Tokio, HostKind::Workerd], "no-network"),
        Case::new("b3 a stored alarm does not keep its object in memory", |lab| Box::pin(b3_alarm(lab))),
        Case::new("b3 sockets do not keep their object in memory", |lab| Box::pin(b3_sockets(lab))),
        Case::new("b3 an object that was called and has answered leaves memory", |lab| {
            Box::pin(b3_over(lab))
        }),
        Case::new("b4 background work alone keeps an object for as long as it takes", |lab| {
            Box::pin(b4_stays(lab))
        })
        .long()
        .differs(&[HostKind::Kit, HostKind::Tokio], "background"),
        Case::new("b4 background work alone keeps an object for 70 to 140 s", |lab| Box::pin(b4_leaves(lab)))
            .long()
            .differs(&[HostKind::Workerd], "background"),
        Case::new("b6 a hibernated socket is open after minutes and wakes its object", |lab| {
            Box::pin(b6_minutes(lab))
        })
        .long(),
    ]
}

fn failing_constructors<D: Driver>() -> Vec<Case<D>> {
    vec![
        Case::new("b7 two requests are two attempts to construct", |lab| Box::pin(b7_attempts(lab))),
        Case::new("b7 the caller of a failed constructor gets its error", |lab| Box::pin(b7_error(lab))),
        Case::new("b7 an object caller of a failed constructor gets its error", |lab| {
            Box::pin(b7_called(lab))
        }),
        Case::new("b7 a constructor that failed for a while is followed by one that does not", |lab| {
            Box::pin(b7_recovers(lab))
        }),
        Case::new("b7 what a failed constructor wrote is undone", |lab| Box::pin(b7_undone(lab))),
        Case::new("b7 d28 sockets are lost without an event when the constructor fails on waking", |lab| {
            Box::pin(b7_sockets(lab))
        })
        .evicts(),
        Case::new("b9 init that fails resets, and the next request tries it again", |lab| {
            Box::pin(b9_init(lab))
        }),
        Case::new("b9 all that waited for an init that fails get its error", |lab| Box::pin(b9_waiting(lab))),
    ]
}

fn gates<D: Driver>() -> Vec<Case<D>> {
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

fn failures<D: Driver>() -> Vec<Case<D>> {
    vec![
        Case::new("b11 c5 an error of a request keeps memory and the writes before it", |lab| {
            Box::pin(b11_error(lab))
        }),
        Case::new("b11 an error of a message handler keeps memory, writes and socket", |lab| {
            Box::pin(b11_message(lab))
        }),
        Case::new("b11 an error of the alarm keeps memory and writes", |lab| Box::pin(b11_alarm(lab))),
        Case::new("b12 an error crosses a stub with its name and message", |lab| Box::pin(b12_error(lab))),
        Case::new("b12 every kind of error crosses a stub with what it tells", |lab| {
            Box::pin(b12_kinds(lab))
        }),
        Case::new("b12 an error crosses from object to object to the entry", |lab| Box::pin(b12_hops(lab))),
        Case::new("b12 the code of an SQL error crosses stubs", |lab| Box::pin(b12_sql(lab))),
        Case::new("b12 the text of an error crosses whatever it is", |lab| Box::pin(b12_texts(lab))),
        Case::new("b15 failing background work is nobody's error", |lab| Box::pin(b15_background(lab))),
    ]
}

fn resets<D: Driver>() -> Vec<Case<D>> {
    vec![
        Case::new("b13 a reset fails what is in flight with its reason", |lab| Box::pin(b13_in_flight(lab))),
        Case::new("b13 a reset loses memory and keeps writes", |lab| Box::pin(b13_reset(lab))),
        Case::new("b13 nothing runs after a reset", |lab| Box::pin(b13_nothing_after(lab))),
        Case::new("b13 a reset without a reason says that it was one", |lab| Box::pin(b13_no_reason(lab))),
        Case::new("b13 a reset ends background work", |lab| Box::pin(b13_background(lab))),
        Case::new("b13 a reset in background work resets the object", |lab| Box::pin(b13_by_background(lab))),
        Case::new("b13 a reset inside a gate resets the object", |lab| Box::pin(b13_in_gate(lab))),
        Case::new("b13 a reset in init fails the request that woke the object", |lab| {
            Box::pin(b13_in_init(lab))
        }),
        Case::new("b13 d25 a reset in a message handler loses all sockets", |lab| Box::pin(b13_message(lab))),
        Case::new("b13 e7 a reset in the alarm's run fails it, and it is tried again", |lab| {
            Box::pin(b13_alarm(lab))
        }),
        Case::new("b13 a reset keeps the alarm that is set", |lab| Box::pin(b13_keeps_alarm(lab))),
        Case::new("b13 a reset touches no other object", |lab| Box::pin(b13_others(lab))),
        Case::new("b14 a stub goes on working after a reset", |lab| Box::pin(b14_stub(lab))),
        Case::new("b14 a stub kept by the entry serves later requests, after a reset too", |lab| {
            Box::pin(b14_kept(lab))
        }),
        Case::new("b14 calls made at once on one stub fail with a reset each and alone", |lab| {
            Box::pin(b14_at_once(lab))
        }),
        Case::new("b14 an object goes on calling one that failed to construct", |lab| {
            Box::pin(b14_constructor(lab))
        }),
    ]
}

/// Lets the next event construct.
async fn gone<D: Driver>(lab: &Lab<D>, object: &str) -> Outcome {
    lab.thrown(object, json!([{"reset": "to be constructed again"}])).await.map(drop)
}

/// The kind and the text of a reset, which may have taken effect.
fn is_reset(thrown: &Thrown, text: &str) -> Outcome {
    let seen = (thrown.kind.as_str(), thrown.message.as_str());
    same(&format!("{thrown:?}"), seen, ("Reset", text))?;
    let flags = (thrown.remote, thrown.retryable, thrown.overloaded, thrown.indefinite);
    same(
        &format!("remote, retryable, overloaded, indefinite of {thrown:?}"),
        flags,
        (true, true, false, true),
    )
}

async fn b1_once<D: Driver>(lab: &Lab<D>) -> Outcome {
    let call = || lab.run("a", json!([{"add": 1}, "instance", "boots"]));
    let (one, (two, three)) = both(call(), both(call(), call())).await;
    let (one, two, three) = (one?, two?, three?);
    for other in [&two, &three] {
        same("instance and constructions", &one[1..], &other[1..])?;
    }
    same("constructions", &one[2], 1)?;
    let mut counted: Vec<_> = [&one, &two, &three].iter().filter_map(|seen| seen[0].as_i64()).collect();
    counted.sort_unstable();
    same("in one memory", counted, [1, 2, 3])
}

async fn b1_before<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.run("a", json!([{"on_new": [{"add": 7}, {"note": "made"}]}])).await?;
    gone(lab, "a").await?;
    let seen = lab.run("a", json!([{"add": 1}, {"note": "called"}, {"sql": "SELECT line FROM log"}])).await?;
    same("memory and data", [&seen[0], &seen[2]], json!([8, ["made", "called"]]))
}

async fn b1_message<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.run("a", json!([{"on_new": [{"add": 7}]}])).await?;
    let mut client = lab.open("a", &[]).await?;
    lab.evict().await?;
    let boots = client.steps(json!([{"add": 1}, "boots"])).await?;
    same("memory and constructions", boots, json!([8, 2]))
}

async fn b2_evicted<D: Driver>(lab: &Lab<D>) -> Outcome {
    let before = lab.run("a", json!([{"add": 5}, {"sql": "INSERT INTO n VALUES (5)"}, "instance"])).await?;
    lab.evict().await?;
    let after = lab.run("a", json!([{"add": 0}, {"sql": "SELECT n FROM n"}, "instance", "boots"])).await?;
    same("memory and data", &after[..2], [json!(0), json!([5])])?;
    holds("the instance is the same", before[2] != after[2])?;
    same("constructions", &after[3], json!(2))
}

async fn b2_idle<D: Driver>(lab: &Lab<D>) -> Outcome {
    // workerd counts the ten seconds from when it last looked at the clock, which it does rarely while all the cases
    // begin at once.
    lab.advance(Duration::from_secs(8)).await?;
    let before = lab.last("a", json!(["instance"])).await?;
    lab.advance(Duration::from_millis(8_500)).await?;
    same("after 8.5 s", lab.last("a", json!(["instance"])).await?, &before)?;
    lab.advance(Duration::from_millis(11_500)).await?;
    holds("the instance is the same", lab.last("a", json!(["instance"])).await? != before)
}

async fn b2_asked<D: Driver>(lab: &Lab<D>) -> Outcome {
    let before = lab.last("a", json!(["instance"])).await?;
    for _ in 0..3 {
        lab.advance(Duration::from_secs(7)).await?;
        same("within ten seconds", lab.last("a", json!(["instance"])).await?, &before)?;
    }
    Ok(())
}

/// Runs the steps, lets the time pass after which an idle object is gone, and looks whether it stayed.
async fn b3_keeps<D: Driver>(lab: &Lab<D>, steps: Value) -> Outcome {
    lab.run("a", steps).await?;
    let before = lab.last("a", json!([{"add": 5}, "instance"])).await?;
    lab.advance(BEYOND_IDLE).await?;
    let after = lab.run("a", json!([{"add": 0}, "instance"])).await;
    gone(lab, "a").await?;
    same("memory and instance", after?, json!([5, before]))
}

/// Fails unless the object left memory in that time.
async fn leaves<D: Driver>(lab: &Lab<D>, object: &str, before: &Value) -> Outcome {
    lab.advance(BEYOND_IDLE).await?;
    holds("the instance is the same", lab.last(object, json!(["instance"])).await? != *before)
}

async fn b3_called<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.run("b", json!([{"call_detached": [lab.name("a"), [{"add": 5}, {"wait_for": 6}]]}])).await?;
    lab.begun("a", 5).await?;
    let before = lab.last("a", json!(["instance"])).await?;
    lab.advance(BEYOND_IDLE).await?;
    same("memory and instance", lab.run("a", json!([{"add": 1}, "instance"])).await?, json!([6, before]))
}

async fn b3_request<D: Driver>(lab: &Lab<D>) -> Outcome {
    let (during, seen) = both(lab.run("a", json!([{"add": 5}, {"wait_for": 6}, "instance"])), async {
        lab.begun("a", 5).await?;
        lab.advance(BEYOND_IDLE).await?;
        let seen = lab.run("a", json!([{"add": 1}, "instance"])).await?;
        lab.advance(Duration::from_millis(50)).await?;
        Ok::<_, Fault>(seen)
    })
    .await;
    let seen = seen?;
    same("memory", &seen[0], 6)?;
    same("the instance", &during?[2], &seen[1])
}

async fn b3_message<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut client = lab.open("a", &[]).await?;
    client.text(&json!([{"add": 5}, {"wait_for": 6}, "instance"]).to_string()).await?;
    lab.begun("a", 5).await?;
    lab.advance(BEYOND_IDLE).await?;
    let seen = lab.run("a", json!([{"add": 1}, "instance"])).await?;
    same("memory", &seen[0], 6)?;
    lab.advance(Duration::from_millis(50)).await?;
    client.hears_text("the handler", &json!([5, null, seen[1]]).to_string()).await
}

async fn b3_unsent<D: Driver>(lab: &Lab<D>) -> Outcome {
    /// More than the way to a client that does not read holds.
    const BYTES: usize = 24 << 20;
    let mut client = lab.open("a", &[]).await?;
    lab.run("a", json!([{"life": {"send_size": ["all", BYTES]}}])).await?;
    let before = lab.last("a", json!([{"add": 5}, "instance"])).await?;
    lab.advance(BEYOND_IDLE).await?;
    same("memory and instance", lab.run("a", json!([{"add": 0}, "instance"])).await?, json!([5, before]))?;
    match client.receive().await? {
        Received::Message(message) => same("what arrives", message.len(), BYTES),
        other => Err(Fault::new(format!("{other:?} instead of the message"))),
    }
}

async fn b3_alarm<D: Driver>(lab: &Lab<D>) -> Outcome {
    let before = lab.run("a", json!([{"set_alarm": 600_000}, "instance"])).await?;
    leaves(lab, "a", &before[1]).await?;
    same("the alarm", lab.last("a", json!(["get_alarm"])).await?, &before[0])
}

async fn b3_sockets<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut client = lab.open("a", &[("attach", "ada")]).await?;
    let before = client.steps(json!([{"add": 5}, "instance"])).await?;
    lab.advance(BEYOND_IDLE).await?;
    let after = client.steps(json!([{"add": 0}, "instance", "boots", {"attachments": "this"}])).await?;
    same("memory, constructions and attachment", [&after[0], &after[2], &after[3]], json!([0, 2, ["ada"]]))?;
    holds("the instance is the same", before[1] != after[1])
}

async fn b3_over<D: Driver>(lab: &Lab<D>) -> Outcome {
    let to_a = |steps: Value| json!([{"call": [lab.name("a"), steps]}]);
    let called = lab.last("b", to_a(json!(["instance"]))).await?;
    let caller = lab.last("b", json!([{"call_detached": [lab.name("a"), []]}, "instance"])).await?;
    lab.advance(BEYOND_IDLE).await?;
    let stays = |what| format!("the instance of {what} is the same");
    holds(stays("the caller"), lab.last("b", json!(["instance"])).await? != caller)?;
    holds(stays("the one that was called"), lab.last("b", to_a(json!(["instance"]))).await? != called)
}

/// What only background work keeps, this long after the last request.
async fn b4_after<D: Driver>(lab: &Lab<D>, seconds: u64) -> Result<bool, Fault> {
    lab.run("a", json!([{"wait_until": [{"life": "never"}]}, {"life": {"hold_sleep": 600_000}}])).await?;
    let before = lab.last("a", json!(["instance"])).await?;
    lab.advance(Duration::from_secs(seconds)).await?;
    Ok(lab.last("a", json!(["instance"])).await? == before)
}

async fn b4_stays<D: Driver>(lab: &Lab<D>) -> Outcome {
    holds("it left", b4_after(lab, 170).await?)
}

async fn b4_leaves<D: Driver>(lab: &Lab<D>) -> Outcome {
    holds("it is still there after 150 s", !b4_after(lab, 150).await?)
}

async fn b6_minutes<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut client = lab.open("a", &[("tag", "t"), ("attach", "ada")]).await?;
    client.steps(json!([{"add": 5}])).await?;
    lab.advance(Duration::from_secs(170)).await?;
    let seen = client.steps(json!([{"add": 0}, "boots", {"tags": "this"}, {"attachments": "this"}])).await?;
    same("memory, constructions, tags, attachment", seen, json!([0, 2, [["t"]], ["ada"]]))
}

/// Makes the object's constructor run these steps and fail so many times, with another text each time.
async fn fails<D: Driver>(lab: &Lab<D>, object: &str, times: u32, steps: Value) -> Outcome {
    let mut steps = steps.as_array().cloned().unwrap_or_default();
    steps.push(json!({"life": {"fail_times": times}}));
    lab.run(object, json!([{"on_new": steps}])).await?;
    gone(lab, object).await
}

/// Steps that go on when the case [tells](go_on) the other object so.
fn until_told<D: Driver>(lab: &Lab<D>, by: &str) -> Value {
    json!({"call": [lab.name(by), [{"add": 1}, {"wait_for": 1_000}]]})
}

/// Returns when those steps have begun.
async fn waits<D: Driver>(lab: &Lab<D>, by: &str) -> Outcome {
    lab.begun(by, 1).await
}

async fn go_on<D: Driver>(lab: &Lab<D>, by: &str) -> Outcome {
    lab.run(by, json!([{"add": 1_000}])).await?;
    lab.advance(A_WHILE).await
}

async fn b7_attempts<D: Driver>(lab: &Lab<D>) -> Outcome {
    fails(lab, "a", 2, json!([])).await?;
    for text in ["attempt 1", "attempt 2"] {
        same("the attempt", lab.thrown("a", json!([])).await?.message, text)?;
    }
    same("constructions", lab.last("a", json!(["boots"])).await?, 2)
}

async fn b7_error<D: Driver>(lab: &Lab<D>) -> Outcome {
    let cases = [
        ("a", json!({"fail": "no é"}), ("Application", "Error", "no é", false)),
        ("b", json!("fail_typed"), ("Application", "ProbeError", "the probe was told to fail", false)),
        ("c", json!({"life": {"fail_kind": ["Limit", "too much"]}}), ("Limit", "Error", "too much", false)),
        ("d", json!({"life": {"fail_kind": ["Transient", "later"]}}), ("Transient", "Error", "later", true)),
    ];
    for (object, step, expected) in cases {
        lab.run(object, json!([{"on_new": [step]}])).await?;
        gone(lab, object).await?;
        for _ in 0..2 {
            let thrown = lab.thrown(object, json!([])).await?;
            let seen = (&*thrown.kind, &*thrown.name, &*thrown.message, thrown.retryable);
            same(&format!("{thrown:?}"), seen, expected)?;
            same("remote", thrown.remote, true)?;
        }
    }
    Ok(())
}

async fn b7_called<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.run("a", json!([{"on_new": ["fail_typed"]}])).await?;
    gone(lab, "a").await?;
    let direct = lab.thrown("a", json!([])).await?;
    for _ in 0..2 {
        let called = lab.last("b", json!([{"try": [{"call": [lab.name("a"), []]}]}])).await?;
        same("the error", &called["error"], &direct)?;
    }
    Ok(())
}

async fn b7_recovers<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.run("a", json!([{"note": "kept"}])).await?;
    fails(lab, "a", 1, json!([])).await?;
    lab.thrown("a", json!([])).await?;
    let after = lab.run("a", json!(["boots", {"sql": "SELECT line FROM log"}])).await?;
    same("constructions, and what was written before", after, json!([2, ["kept"]]))
}

async fn b7_undone<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.run("a", json!([{"note": "kept"}])).await?;
    fails(lab, "a", 2, json!([{"note": "half"}, {"set_alarm": 600_000}])).await?;
    for _ in 0..2 {
        lab.thrown("a", json!([])).await?;
    }
    // The construction that succeeds runs the same steps.
    same("what was written", lab.lines("a").await?, json!(["kept", "half"]))
}

async fn b7_sockets<D: Driver>(lab: &Lab<D>) -> Outcome {
    let (mut one, mut two) = (lab.open("a", &[]).await?, lab.open("a", &[]).await?);
    lab.run("a", json!([{"on_new": [{"life": {"fail_times": 1}}]}])).await?;
    lab.evict().await?;
    one.text("wake up").await?;
    one.hears("the one that woke it", Received::Lost).await?;
    two.hears("the other one", Received::Lost).await?;
    let after = lab.run("a", json!([{"count": "all"}, "events", "boots"])).await?;
    same("sockets, events and constructions", after, json!([0, [], 2]))
}

async fn b9_init<D: Driver>(lab: &Lab<D>) -> Outcome {
    fails(lab, "a", 2, json!([{"sleep": 1}])).await?;
    let time = || lab.advance(Duration::from_millis(100));
    for text in ["attempt 1", "attempt 2"] {
        let (thrown, time) = both(lab.thrown("a", json!([])), time()).await;
        time?;
        is_reset(&thrown?, text)?;
    }
    let (after, time) = both(lab.last("a", json!([{"add": 1}])), time()).await;
    time?;
    same("memory after it", after?, 1)
}

async fn b9_waiting<D: Driver>(lab: &Lab<D>) -> Outcome {
    fails(lab, "a", 100, json!([{"sleep": 1_000}])).await?;
    let call = || lab.thrown("a", json!([]));
    let ((one, two), time) = both(both(call(), call()), lab.advance(Duration::from_millis(2_500))).await;
    time?;
    let (one, two) = (one?, two?);
    is_reset(&one, &two.message)?;
    is_reset(&one, "attempt 1")
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

async fn b11_message<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut client = lab.open("a", &[]).await?;
    let before = client.steps(json!([{"add": 3}, "instance"])).await?;
    client.text(&json!([{"add": 1}, {"note": "written"}, {"fail": "no"}]).to_string()).await?;
    same("memory and instance", client.steps(json!([{"add": 0}, "instance"])).await?, json!([4, before[1]]))?;
    same("what was written", lab.lines("a").await?, json!(["written"]))
}

async fn b11_alarm<D: Driver>(lab: &Lab<D>) -> Outcome {
    let handler = json!([{"up_to_runs": [1, [{"add": 1}, {"note": "written"}, {"fail": "no"}]]}]);
    let before =
        lab.run("a", json!([{"add": 3}, "instance", {"on_alarm": handler}, {"set_alarm": 50}])).await?;
    let runs = json!([{"sql": "SELECT count(*) FROM runs"}]);
    lab.until("a", runs, SOON, |runs| runs[0].as_i64() >= Some(1)).await?;
    same("memory and instance", lab.run("a", json!([{"add": 0}, "instance"])).await?, json!([4, before[1]]))?;
    same("what was written", lab.lines("a").await?, json!(["written"]))
}

/// What an error is to the entry, and to another object.
async fn both_ways<D: Driver>(lab: &Lab<D>, steps: Value) -> Result<[Thrown; 2], Fault> {
    let direct = lab.thrown("a", steps.clone()).await?;
    let called = lab.last("b", json!([{"try": [{"call": [lab.name("a"), steps]}]}])).await?;
    Ok([direct, serde_json::from_value(called["error"].clone())?])
}

async fn b12_error<D: Driver>(lab: &Lab<D>) -> Outcome {
    let cases = [
        (json!({"fail": "as told é"}), "Application", "Error", "as told é"),
        (json!("fail_typed"), "Application", "ProbeError", "the probe was told to fail"),
        (json!({"set_alarm_at": 0}), "Invalid", "Error", ""),
    ];
    for (step, kind, name, message) in cases {
        for thrown in both_ways(lab, json!([step])).await? {
            let what = format!("{thrown:?}");
            same(&what, (thrown.kind.as_str(), thrown.name.as_str()), (kind, name))?;
            holds(&what, message.is_empty() || thrown.message == message)?;
            same(&what, (thrown.remote, thrown.retryable, thrown.overloaded), (true, false, false))?;
        }
    }
    Ok(())
}

async fn b12_kinds<D: Driver>(lab: &Lab<D>) -> Outcome {
    // Retryable, overloaded, indefinite.
    let cases = [
        ("Invalid", (false, false, false)),
        ("Limit", (false, false, false)),
        ("NotFound", (false, false, false)),
        ("NotInEvent", (false, false, false)),
        ("Closed", (false, false, false)),
        ("Sql", (false, false, false)),
        ("Application", (false, false, false)),
        ("Reset", (true, false, true)),
        ("Transient", (true, false, true)),
        ("Overloaded", (false, true, false)),
        ("Deadline", (false, false, true)),
        ("Shutdown", (false, false, false)),
        ("Platform", (false, false, false)),
    ];
    for (kind, flags) in cases {
        for thrown in both_ways(lab, json!([{"life": {"fail_kind": [kind, "as told"]}}])).await? {
            let what = format!("{thrown:?}");
            same(&what, (&*thrown.kind, &*thrown.name, &*thrown.message), (kind, "Error", "as told"))?;
            same(&what, (thrown.retryable, thrown.overloaded, thrown.indefinite), flags)?;
            same(&what, (thrown.remote, thrown.sql_code), (true, Value::Null))?;
        }
    }
    same("the object goes on", lab.last("a", json!(["boots"])).await?, 1)
}

async fn b12_hops<D: Driver>(lab: &Lab<D>) -> Outcome {
    for step in [
        json!("fail_typed"),
        json!({"life": {"fail_kind": ["Overloaded", "full"]}}),
        json!({"reset": "because"}),
    ] {
        let direct = lab.thrown("a", json!([step])).await?;
        let over_two = json!([{"call": [lab.name("b"), [{"call": [lab.name("a"), [step]]}]]}]);
        same("over two objects", lab.thrown("c", over_two).await?, &direct)?;
    }
    same("the objects between", lab.last("b", json!(["boots"])).await?, 1)
}

async fn b12_sql<D: Driver>(lab: &Lab<D>) -> Outcome {
    let twice = json!([{"sql": "INSERT INTO parent VALUES (1)"}, {"sql": "INSERT INTO parent VALUES (1)"}]);
    for thrown in both_ways(lab, twice).await? {
        let what = format!("{thrown:?}");
        same(&what, (&*thrown.kind, thrown.remote), ("Sql", true))?;
        same(&what, thrown.sql_code, "SQLITE_CONSTRAINT_PRIMARYKEY")?;
    }
    Ok(())
}

async fn b12_texts<D: Driver>(lab: &Lab<D>) -> Outcome {
    for text in ["", "line\nline\u{0}", "\u{1f980} \u{2028}", "TypeError: x", &"x".repeat(10_000)] {
        for thrown in both_ways(lab, json!([{"fail": text}])).await? {
            same("the text", thrown.message, text)?;
        }
    }
    Ok(())
}

async fn b13_in_flight<D: Driver>(lab: &Lab<D>) -> Outcome {
    let waiting = |n: i64| {
        let call = lab.thrown("a", json!([{"add": 1}, {"sleep": 60_000}]));
        async move { call.await.map_err(|fault| fault.during(&n.to_string())) }
    };
    let called = json!([{"try": [{"call": [lab.name("a"), [{"add": 1}, {"sleep": 60_000}]]}]}]);
    let (all, reset) = both(both(both(waiting(1), waiting(2)), lab.last("b", called)), async {
        lab.begun("a", 3).await?;
        lab.thrown("a", json!([{"reset": "because é"}])).await
    })
    .await;
    let ((one, two), three) = all;
    let three = serde_json::from_value(three?["error"].clone())?;
    for thrown in [one?, two?, three, reset?] {
        is_reset(&thrown, "because é")?;
    }
    Ok(())
}

async fn b13_reset<D: Driver>(lab: &Lab<D>) -> Outcome {
    let before = lab.run("a", json!([{"note": "kept"}, {"add": 5}, "instance"])).await?;
    lab.thrown("a", json!([{"note": "too"}, {"reset": "because"}])).await?;
    let after = lab.run("a", json!([{"add": 0}, "instance", "boots"])).await?;
    same("memory and constructions", [&after[0], &after[2]], json!([0, 2]))?;
    holds("the instance is the same", before[2] != after[1])?;
    same("what was written before", lab.lines("a").await?, json!(["kept", "too"]))
}

async fn b13_nothing_after<D: Driver>(lab: &Lab<D>) -> Outcome {
    let other = lab.thrown("a", json!([until_told(lab, "c"), {"note": "another"}]));
    let (other, reset) = both(other, async {
        waits(lab, "c").await?;
        lab.thrown("a", json!([{"catch": [{"reset": "because"}]}, {"note": "after it"}])).await?;
        go_on(lab, "c").await
    })
    .await;
    reset?;
    is_reset(&other?, "because")?;
    same("what ran", lab.lines("a").await?, json!([]))
}

async fn b13_no_reason<D: Driver>(lab: &Lab<D>) -> Outcome {
    is_reset(&lab.thrown("a", json!([{"reset": ""}])).await?, "the object reset itself")
}

async fn b13_background<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.run("a", json!([{"wait_until": [until_told(lab, "c"), {"note": "background"}]}])).await?;
    waits(lab, "c").await?;
    gone(lab, "a").await?;
    go_on(lab, "c").await?;
    same("what ran", lab.lines("a").await?, json!([]))
}

async fn b13_by_background<D: Driver>(lab: &Lab<D>) -> Outcome {
    let steps =
        json!([{"add": 1}, {"wait_until": [{"sleep": 100}, {"reset": "because"}]}, {"sleep": 60_000}]);
    let (thrown, time) = both(lab.thrown("a", steps), lab.advance(Duration::from_millis(300))).await;
    time?;
    is_reset(&thrown?, "because")?;
    same("memory", lab.last("a", json!([{"add": 0}])).await?, 0)
}

async fn b13_in_gate<D: Driver>(lab: &Lab<D>) -> Outcome {
    let steps = json!([{"add": 1}, {"gate": [{"note": "kept"}, {"reset": "because"}]}, {"note": "after it"}]);
    is_reset(&lab.thrown("a", steps).await?, "because")?;
    same("memory", lab.last("a", json!([{"add": 0}])).await?, 0)?;
    same("what was written", lab.lines("a").await?, json!(["kept"]))
}

async fn b13_in_init<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.run("a", json!([{"on_new": [{"sleep": 1}, {"life": {"reset_times": 1}}]}])).await?;
    gone(lab, "a").await?;
    let (thrown, time) = both(lab.thrown("a", json!([])), lab.advance(Duration::from_millis(100))).await;
    time?;
    is_reset(&thrown?, "attempt 1")?;
    let (after, time) =
        both(lab.last("a", json!([{"add": 1}])), lab.advance(Duration::from_millis(100))).await;
    time?;
    same("after it", after?, 1)
}

async fn b13_message<D: Driver>(lab: &Lab<D>) -> Outcome {
    let (mut one, mut two) = (lab.open("a", &[]).await?, lab.open("a", &[]).await?);
    one.text(&json!([{"note": "kept"}, {"reset": "because"}]).to_string()).await?;
    one.hears("the one that told it", Received::Lost).await?;
    two.hears("the other one", Received::Lost).await?;
    let after = lab.run("a", json!(["events", {"count": "all"}])).await?;
    same("events and sockets", after, json!([[], 0]))?;
    same("what was written", lab.lines("a").await?, json!(["kept"]))
}

async fn b13_alarm<D: Driver>(lab: &Lab<D>) -> Outcome {
    let handler = json!([{"up_to_runs": [1, [{"reset": "because"}]]}]);
    lab.run("a", json!([{"on_alarm": handler}, {"set_alarm": 50}])).await?;
    let mut runs = Value::Null;
    for _ in 0..200 {
        // A request that is in flight at the reset fails with it.
        if let Ok(values) =
            lab.answer("a", json!([{"sql": "SELECT retries FROM runs ORDER BY rowid"}])).await?
        {
            runs = values.into_iter().next().unwrap_or_default();
        }
        if runs.as_array().is_some_and(|runs| runs.len() >= 2) {
            break;
        }
        lab.advance(Duration::from_millis(50)).await?;
    }
    same("retries", runs, json!([0, 1]))?;
    same("constructions", lab.last("a", json!(["boots"])).await?, 2)?;
    same("the slot", lab.last("a", json!(["get_alarm"])).await?, Value::Null)
}

async fn b13_keeps_alarm<D: Driver>(lab: &Lab<D>) -> Outcome {
    let set = lab.last("a", json!([{"set_alarm": 600_000}])).await?;
    gone(lab, "a").await?;
    same("the alarm", lab.last("a", json!(["get_alarm"])).await?, &set)?;
    lab.thrown("a", json!(["delete_alarm", {"set_alarm": 700_000}, {"reset": "because"}])).await?;
    let changed = lab.last("a", json!(["get_alarm"])).await?;
    holds(format!("the change is lost: {changed}"), changed.as_i64() > set.as_i64())
}

async fn b13_others<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut client = lab.open("b", &[]).await?;
    let before = client.steps(json!([{"add": 5}, "instance"])).await?;
    let slow = lab.run("b", json!([{"add": 1}, {"wait_for": 7}, "instance"]));
    let (slow, reset) = both(slow, async {
        lab.begun("b", 6).await?;
        gone(lab, "a").await?;
        lab.run("b", json!([{"add": 1}])).await?;
        lab.advance(Duration::from_millis(100)).await
    })
    .await;
    reset?;
    same("a request in flight", slow?, json!([6, null, before[1]]))?;
    same("its socket", client.steps(json!([{"add": 0}, "instance"])).await?, json!([7, before[1]]))
}

async fn b14_at_once<D: Driver>(lab: &Lab<D>) -> Outcome {
    let calls = json!([[{"add": 1}], [{"reset": "because"}], [{"sleep": 60_000}]]);
    let to = json!([{"life": {"calls": [lab.name("a"), calls]}}]);
    for _ in 0..2 {
        let seen = lab.last("b", to.clone()).await?;
        for n in [1, 2] {
            let thrown: Thrown = serde_json::from_value(seen[n]["error"].clone())?;
            is_reset(&thrown, "because")?;
        }
    }
    same("after it", lab.last("b", json!([{"call": [lab.name("a"), [{"add": 1}]]}])).await?, json!([1]))
}

async fn b14_constructor<D: Driver>(lab: &Lab<D>) -> Outcome {
    fails(lab, "a", 1, json!([])).await?;
    let first = lab.run_kept("a", json!([])).await?;
    same("the kind", &first["error"]["kind"], "Application")?;
    same("after it", lab.run_kept("a", json!([{"add": 1}])).await?, json!([1]))
}

async fn b11_error<D: Driver>(lab: &Lab<D>) -> Outcome {
    let before = lab.last("a", json!(["instance"])).await?;
    let thrown = lab.thrown("a", json!([{"add": 3}, {"note": "written"}, {"fail": "no"}])).await?;
    same("the text", thrown.message, "no")?;
    let after = lab.run("a", json!([{"add": 0}, "instance"])).await?;
    same("memory and instance", after, [json!(3), before])?;
    same("what was written", lab.lines("a").await?, json!(["written"]))
}

async fn b14_stub<D: Driver>(lab: &Lab<D>) -> Outcome {
    let to = |steps: Value| json!([{"try": [{"call": [lab.name("a"), steps]}]}]);
    let failed = lab.last("b", to(json!([{"reset": "because"}]))).await?;
    same("the kind", &failed["error"]["kind"], json!("Reset"))?;
    let again = lab.last("b", to(json!([{"add": 1}]))).await?;
    same("after it", again, json!({"ok": [[1]]}))
}

async fn b14_kept<D: Driver>(lab: &Lab<D>) -> Outcome {
    for n in 1..4 {
        same("a kept stub", lab.run_kept("a", json!([{"add": 1}])).await?, json!([n]))?;
    }
    let failed = lab.run_kept("a", json!([{"reset": "because"}])).await?;
    same("the kind", &failed["error"]["kind"], json!("Reset"))?;
    same("after it", lab.run_kept("a", json!([{"add": 1}])).await?, json!([1]))
}

async fn b15_background<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.run("a", json!([{"add": 1}, {"wait_until": [{"note": "begun"}, {"fail": "unseen"}]}])).await?;
    let memory = lab.last("a", json!([{"add": 0}])).await?;
    same("memory", memory, json!(1))?;
    let lines = lab.lines("a").await?;
    if lines == json!(["begun"]) { Ok(()) } else { Err(Fault::new(format!("it did not run: {lines}"))) }
}
