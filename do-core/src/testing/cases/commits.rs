//! C: what a turn's writes have to do with other events, with each other and with what leaves.

use crate::testing::{
    case::{Case, Fault, Outcome, holds, same},
    difference::HostKind,
    driver::{Driver, Received},
    exchange::{Exchange, Piece},
    lab::{ClientExt, Lab, closed},
    route::percent_encoded,
    tasks::both,
};
use http::{Request, header};
use serde_json::{Value, json};
use std::time::Duration;

/// A foreign key that is checked at the commit, which therefore fails.
const BREAK: &str = "INSERT INTO child VALUES (99)";

/// What it points to.
const REPAIR: &str = "INSERT INTO parent VALUES (99)";

const SOON: Duration = Duration::from_secs(3);

pub(super) fn cases<D: Driver>() -> Vec<Case<D>> {
    vec![
        Case::new("c1 nothing gets in between storage awaits, however many", |lab| Box::pin(c1_awaits(lab))),
        Case::new("c2 a call to another object lets other events in", |lab| Box::pin(c2_call(lab))),
        Case::new("c2 a body that is read lets other events in", |lab| Box::pin(c2_body(lab))),
        Case::new("c2 nothing gets in between the awaits of a gate", |lab| Box::pin(c2_gate(lab))),
        Case::new("c4 what precedes the write leaves although the commit fails", |lab| {
            Box::pin(c4_before(lab))
        }),
        Case::new("c4 a reply does not leave when the commit before it fails", |lab| Box::pin(c4_reply(lab))),
        Case::new("c4 a message does not leave when the commit before it fails", |lab| {
            Box::pin(c4_send(lab))
        }),
        Case::new("c4 a close does not leave when the commit before it fails", |lab| Box::pin(c4_close(lab))),
        Case::new("c4 a call does not leave when the commit before it fails", |lab| Box::pin(c4_call(lab))),
        Case::new("c4 a chunk of a body does not leave when the commit before it fails", |lab| {
            Box::pin(c4_chunk(lab))
        }),
        Case::new("c4 the end of a body does not leave when the commit before it fails", |lab| {
            Box::pin(c4_end(lab))
        }),
        Case::new("c4 a chunk of a call's body does not leave when the commit before it fails", |lab| {
            Box::pin(c4_upload(lab))
        }),
        Case::new("c5 a constraint may be broken within a turn as long as it holds at its end", |lab| {
            Box::pin(c5_repaired(lab))
        }),
        Case::new("c5 a sleep ends the commit", |lab| Box::pin(c5_sleep(lab))),
        Case::new("c5 a call ends the commit", |lab| Box::pin(c5_call(lab))),
        Case::new("c5 a storage await does not end the commit", |lab| Box::pin(c5_storage(lab))),
        Case::new("c5 rows and alarm are one commit", |lab| Box::pin(c5_alarm(lab))),
        Case::new("c6 a failed commit makes a new instance", |lab| Box::pin(c6_instance(lab))),
        Case::new("c6 a failed commit fails whoever is in flight", |lab| Box::pin(c6_in_flight(lab))),
        Case::new("c6 a call's body that a failed commit cuts off is an error for its reader", |lab| {
            Box::pin(c6_upload(lab, "Reset"))
        })
        .differs(&[HostKind::Kit, HostKind::Tokio], "cut-body"),
        Case::new("c6 a call's body that a failed commit cuts off is complete for its reader", |lab| {
            Box::pin(c6_upload(lab, "0 bytes"))
        })
        .differs(&[HostKind::Workerd], "cut-body"),
        Case::new("c6 a commit that fails behind the answer resets the object too", |lab| {
            Box::pin(c6_background(lab))
        }),
        Case::new("c6 the commit of a message's handler is no exception", |lab| Box::pin(c6_message(lab))),
        Case::new("c8 what a message was answered with survives a kill", |lab| Box::pin(c8_message(lab)))
            .crashes(),
        Case::new("c10 messages keep their order over the awaits of a handler", |lab| {
            Box::pin(c10_awaits(lab))
        }),
        Case::new("c10 a close comes after what was sent before it", |lab| Box::pin(c10_close(lab))),
    ]
}

async fn c1_awaits<D: Driver>(lab: &Lab<D>) -> Outcome {
    let steps =
        json!([{"note": "begins"}, "get_alarm", "get_alarm", "delete_alarm", "get_alarm", {"note": "ends"}]);
    lab.many("a", steps, 20).await?;
    let expected: Vec<_> = ["begins", "ends"].into_iter().cycle().take(40).collect();
    same("the order", lab.lines("a").await?, json!(expected))
}

/// Runs the steps, which must not end before the object was asked again.
async fn interrupted<D: Driver>(lab: &Lab<D>, steps: Value, then: impl Future<Output = Outcome>) -> Outcome {
    let (ran, asked) = both(lab.run("a", steps), async {
        lab.begun("a", 1).await?;
        lab.run("a", json!([{"note": "in between"}])).await?;
        then.await
    })
    .await;
    asked?;
    ran?;
    same("the order", lab.lines("a").await?, json!(["begins", "in between", "ends"]))
}

async fn c2_call<D: Driver>(lab: &Lab<D>) -> Outcome {
    let call = json!({"call": [lab.name("b"), [{"wait_for": 1}]]});
    let steps = json!([{"note": "begins"}, {"add": 1}, call, {"note": "ends"}]);
    interrupted(lab, steps, async {
        lab.run("b", json!([{"add": 1}])).await?;
        lab.advance(Duration::from_millis(20)).await
    })
    .await
}

async fn c2_body<D: Driver>(lab: &Lab<D>) -> Outcome {
    let steps = json!([{"note": "begins"}, {"body": "count"}, {"note": "ends"}]);
    let path = format!("{}?steps={}", lab.path("run", "a"), percent_encoded(&steps.to_string()));
    let head = Request::post(path).header(header::CONTENT_LENGTH, 2).body(())?;
    let mut exchange = lab.driver().begin(head).await?;
    exchange.send(b"x").await?;
    lab.until("a", lines(), SOON, |lines| *lines == json!(["begins"])).await?;
    lab.run("a", json!([{"note": "in between"}])).await?;
    exchange.send(b"y").await?;
    same("the status", exchange.head().await?.status().as_u16(), 200)?;
    same("the order", lab.lines("a").await?, json!(["begins", "in between", "ends"]))
}

fn lines() -> Value {
    json!([{"sql": "SELECT line FROM log ORDER BY rowid"}])
}

async fn c2_gate<D: Driver>(lab: &Lab<D>) -> Outcome {
    let call = json!({"call": [lab.name("b"), [{"sleep": 20}]]});
    let steps = json!([{"gate": [{"note": "begins"}, {"sleep": 20}, call, "get_alarm", {"note": "ends"}]}]);
    let (calls, time) = both(lab.many("a", steps, 3), lab.advance(Duration::from_millis(300))).await;
    calls.and(time)?;
    same("the order", lab.lines("a").await?, json!(["begins", "ends", "begins", "ends", "begins", "ends"]))
}

async fn c4_before<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut client = lab.open("a", &[]).await?;
    client.text(&json!([{"send": ["this", "before"]}, {"sql": BREAK}]).to_string()).await?;
    client.hears_text("before the write", "before").await
}

async fn c4_reply<D: Driver>(lab: &Lab<D>) -> Outcome {
    same("the kind", lab.thrown("a", json!([{"sql": BREAK}])).await?.kind, "Sql")
}

async fn c4_send<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut client = lab.open("a", &[]).await?;
    client.text(&json!([{"sql": BREAK}, {"send": ["this", "after"]}]).to_string()).await?;
    client.hears("what follows the write", Received::Lost).await
}

async fn c4_close<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut client = lab.open("a", &[]).await?;
    client.text(&json!([{"sql": BREAK}, {"close_sockets": ["this", [4_001, ""]]}]).to_string()).await?;
    client.hears("what follows the write", Received::Lost).await
}

async fn c4_call<D: Driver>(lab: &Lab<D>) -> Outcome {
    let call = json!({"call_detached": [lab.name("b"), [{"note": "called"}]]});
    lab.thrown("a", json!([{"sql": BREAK}, call])).await?;
    lab.advance(Duration::from_millis(200)).await?;
    same("what the other was asked", lab.lines("b").await?, json!([]))
}

/// Opens a body with one chunk in it and gives what comes of it after further steps, which fail.
async fn rest_of_body<D: Driver>(lab: &Lab<D>, steps: Value) -> Result<(String, Piece), Fault> {
    let open = json!([{"body": {"channel": 1_000}}, {"body": {"write": "open "}}]);
    let path = format!("{}?steps={}", lab.path("run", "a"), percent_encoded(&open.to_string()));
    let mut exchange = lab.driver().begin(Request::get(path).body(())?).await?;
    same("the status", exchange.head().await?.status().as_u16(), 200)?;
    let mut text = String::new();
    while text != "open " {
        match exchange.read(100).await? {
            Piece::Bytes(bytes) => text.push_str(&String::from_utf8(bytes)?),
            other => return Err(Fault::new(format!("{other:?} after {text:?}"))),
        }
    }
    lab.thrown("a", steps).await?;
    loop {
        match exchange.read(100).await? {
            Piece::Bytes(bytes) => text.push_str(&String::from_utf8(bytes)?),
            end => return Ok((text, end)),
        }
    }
}

async fn c4_chunk<D: Driver>(lab: &Lab<D>) -> Outcome {
    let steps = json!([{"body": {"write": "before "}}, {"sql": BREAK}, {"body": {"write": "after"}}]);
    let (text, end) = rest_of_body(lab, steps).await?;
    holds(format!("it got {text:?}"), !text.contains("after"))?;
    holds(format!("it ended with {end:?}"), end == Piece::Lost)
}

async fn c4_end<D: Driver>(lab: &Lab<D>) -> Outcome {
    let (text, end) = rest_of_body(lab, json!([{"sql": BREAK}, "close"])).await?;
    holds(format!("it ended with {end:?} after {text:?}"), end == Piece::Lost)
}

/// What a reader makes of a call's body whose second chunk follows a write that does not commit.
async fn cut_upload<D: Driver>(lab: &Lab<D>) -> Result<Value, Fault> {
    let reads = json!([{"body": "first"}, {"note": "first"}, {"body": "note_count"}]);
    let steps = json!([{"body": {"upload": [lab.name("b"), reads]}}, {"body": {"write": "one"}}]);
    lab.run("a", steps).await?;
    lab.until("b", lines(), SOON, |lines| *lines == json!(["first"])).await?;
    lab.thrown("a", json!([{"sql": BREAK}, {"body": {"write": "two"}}])).await?;
    let both = |lines: &Value| lines.as_array().is_some_and(|lines| lines.len() == 2);
    let mut lines = lab.until("b", lines(), SOON, both).await?;
    Ok(lines[1].take())
}

async fn c4_upload<D: Driver>(lab: &Lab<D>) -> Outcome {
    let read = cut_upload(lab).await?;
    holds(format!("the other read {read}"), read != json!("3 bytes"))
}

async fn c6_upload<D: Driver>(lab: &Lab<D>, expected: &str) -> Outcome {
    same("the end of the body", cut_upload(lab).await?, expected)
}

async fn c5_repaired<D: Driver>(lab: &Lab<D>) -> Outcome {
    let values =
        lab.run("a", json!([{"sql": BREAK}, {"sql": REPAIR}, {"sql": "SELECT id FROM child"}])).await?;
    same("what was written", &values[2], json!([99]))
}

async fn c5_sleep<D: Driver>(lab: &Lab<D>) -> Outcome {
    let steps = json!([{"note": "before"}, {"add": 1}, {"wait_for": 2}, {"note": "after"}, {"sql": BREAK}]);
    let (thrown, told) = both(lab.thrown("a", steps), async {
        lab.begun("a", 1).await?; // no look is in flight at the reset
        goes_on(lab).await
    })
    .await;
    told.and(thrown.map(drop))?;
    same("what is left", lab.lines("a").await?, json!(["before"]))
}

/// Lets what waits for 2 in the number in memory go on and reset the object, which may overtake the answer to this.
async fn goes_on<D: Driver>(lab: &Lab<D>) -> Outcome {
    drop(lab.answer("a", json!([{"add": 1}])).await?);
    lab.advance(Duration::from_millis(20)).await
}

async fn c5_call<D: Driver>(lab: &Lab<D>) -> Outcome {
    let call = json!({"call": [lab.name("b"), []]});
    lab.thrown("a", json!([{"note": "before"}, call, {"note": "after"}, {"sql": BREAK}])).await?;
    same("what is left", lab.lines("a").await?, json!(["before"]))
}

async fn c5_storage<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.thrown("a", json!([{"note": "before"}, "get_alarm", {"sql": BREAK}])).await?;
    same("what is left", lab.lines("a").await?, json!([]))?;
    lab.run("a", json!([{"sql": BREAK}, "get_alarm", {"sql": REPAIR}])).await.map(drop)
}

async fn c5_alarm<D: Driver>(lab: &Lab<D>) -> Outcome {
    let before = lab.last("a", json!([{"note": "kept"}, {"set_alarm": 60_000}, "get_alarm"])).await?;
    lab.thrown("a", json!([{"note": "lost"}, {"set_alarm": 90_000}, {"sql": BREAK}])).await?;
    same("the rows", lab.lines("a").await?, json!(["kept"]))?;
    same("the alarm", lab.last("a", json!(["get_alarm"])).await?, &before)?;
    lab.thrown("a", json!(["delete_alarm", {"sql": BREAK}])).await?;
    same("the alarm again", lab.last("a", json!(["get_alarm"])).await?, before)
}

async fn c6_instance<D: Driver>(lab: &Lab<D>) -> Outcome {
    let before = lab.run("a", json!([{"add": 1}, "instance"])).await?;
    lab.thrown("a", json!([{"sql": BREAK}])).await?;
    let after = lab.run("a", json!([{"add": 0}, "instance"])).await?;
    same("memory", &after[0], json!(0))?;
    holds("the instance is the same", after[1] != before[1])
}

async fn c6_in_flight<D: Driver>(lab: &Lab<D>) -> Outcome {
    let waiting = lab.thrown("a", json!([{"add": 1}, {"sleep": 60_000}]));
    let (waiting, own) = both(waiting, async {
        lab.begun("a", 1).await?;
        lab.thrown("a", json!([{"sql": BREAK}])).await
    })
    .await;
    let (waiting, own) = (waiting?, own?);
    same("the text", waiting.message, own.message)
}

async fn c6_background<D: Driver>(lab: &Lab<D>) -> Outcome {
    let work = json!({"wait_until": [{"wait_for": 2}, {"note": "lost"}, {"sql": BREAK}]});
    let before = lab.last("a", json!([{"add": 1}, work, "instance"])).await?;
    goes_on(lab).await?;
    lab.until_over_reset("a", json!(["instance"]), SOON, |instance| *instance != before).await?;
    same("what is left", lab.lines("a").await?, json!([]))
}

async fn c6_message<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut client = lab.open("a", &[]).await?;
    let before = lab.last("a", json!([{"on_message": [{"sql": BREAK}]}, "instance"])).await?;
    client.text("go").await?;
    client.hears("the end", Received::Lost).await?;
    let after = lab.run("a", json!(["instance", "events"])).await?;
    holds("the instance is the same", after[0] != before)?;
    same("the events, of which that one was undone", &after[1], json!([]))
}

async fn c8_message<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut client = lab.open("a", &[]).await?;
    client.steps(json!([{"note": "kept"}])).await?;
    lab.crash().await?;
    same("what was acknowledged", lab.lines("a").await?, json!(["kept"]))
}

async fn c10_awaits<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut client = lab.open("a", &[]).await?;
    let call = json!({"call": [lab.name("b"), []]});
    let steps = json!([
        {"send": ["this", "1"]}, {"note": "w"}, "get_alarm", {"send": ["this", "2"]}, call, {"send": ["this", "3"]},
        {"note": "w"}, {"send": ["this", "4"]}
    ]);
    client.text(&steps.to_string()).await?;
    for text in ["1", "2", "3", "4"] {
        client.hears_text("in order", text).await?;
    }
    Ok(())
}

async fn c10_close<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut client = lab.open("a", &[]).await?;
    let close = json!({"close_sockets": ["this", [4_001, ""]]});
    lab.run(
        "a",
        json!([{"on_message": [{"send": ["this", "1"]}, {"note": "w"}, {"send": ["this", "2"]}, close]}]),
    )
    .await?;
    client.text("go").await?;
    client.hears_text("first", "1").await?;
    client.hears_text("second", "2").await?;
    client.hears("third", closed(4_001, "")).await
}
