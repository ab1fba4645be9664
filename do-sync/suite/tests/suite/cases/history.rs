//! What is published has a number, is kept, and is resumed without loss and without duplicates.

use crate::rooms::{Rooms, SOON, ask, next};
use do_core::Message;
use do_core::testing::{Case, Client, Driver, Fault, HostKind, Lab, Outcome, Received, holds, same};
use serde_json::{Value, json};
use std::time::Duration;

pub(super) fn cases<D: Driver>() -> Vec<Case<D>> {
    vec![
        Case::new("history the hello is first and everybody hears of the newcomer once", |lab| {
            Box::pin(hello(lab))
        }),
        Case::new("pain14 history whoever comes back gets what was missed, once and in order", |lab| {
            Box::pin(resumes(lab))
        }),
        Case::new("history whoever comes back to a new instance gets what was missed", |lab| {
            Box::pin(resumes_evicted(lab))
        })
        .evicts(),
        Case::new("history a crash takes nothing away that was published", |lab| Box::pin(crash(lab)))
            .crashes(),
        Case::new("pain16 history whoever was away for too long is told of a gap", |lab| Box::pin(gap(lab))),
        Case::new("pain14 history a position of another epoch is a gap of unknown size", |lab| {
            Box::pin(epoch(lab))
        }),
        Case::new("history a rollback ends the epoch", |lab| Box::pin(rollback(lab))),
        Case::new("e14 history begins anew when everything was deleted", |lab| Box::pin(deleted(lab))),
        Case::new("history a mebibyte is resumed in parts over small connections", |lab| {
            Box::pin(parts(lab))
        }),
        Case::new("history bytes arrive in a binary frame and sockets that joined get none", |lab| {
            Box::pin(binary(lab))
        }),
        Case::new("history a snapshot is for newcomers", |lab| Box::pin(snapshot(lab))),
        Case::new("history is deleted by the alarm when it is too old", |lab| Box::pin(aged(lab))),
        Case::new("history a hundred come back at once", |lab| Box::pin(storm(lab))),
        Case::new("history the rows of publishing and resuming", |lab| Box::pin(rows(lab)))
            .differs(&[HostKind::Workerd], "rows-counted"),
    ]
}

/// Comes as a member, after a position if one is given, and gives the hello.
async fn enter<D: Driver>(
    lab: &Lab<D>,
    member: &str,
    after: Option<&str>,
) -> Result<(D::Client, Value), Fault> {
    let mut query = vec![("member", member)];
    query.extend(after.map(|after| ("after", after)));
    let mut client = lab.join("a", &query).await?;
    let hello = next(&mut client).await?;
    same("the first frame", &hello["t"], json!("hello"))?;
    Ok((client, hello))
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The position of a number in the same epoch.
fn position(hello: &Value, seq: u64) -> String {
    format!("{}-{seq}", text(&hello["at"]).split('-').next().unwrap_or_default())
}

#[allow(clippy::needless_pass_by_value)] // so that `json!` can stand in the call
fn command(command: Value) -> Value {
    json!({ "history": command })
}

async fn publish<D: Driver>(lab: &Lab<D>, value: Value) -> Result<String, Fault> {
    Ok(text(&lab.tell("a", command(json!({ "publish": value }))).await?).to_owned())
}

/// The numbered frames that come next: their numbers, which follow one another, and what they say.
async fn frames<C: Client>(client: &mut C, from: u64, count: usize) -> Result<Vec<Value>, Fault> {
    let mut said = Vec::new();
    for seq in (from..).take(count) {
        let frame = next(client).await?;
        same("the number", &frame["s"], json!(seq))?;
        said.push(if frame["t"] == "msg" { frame["d"].clone() } else { frame["t"].clone() });
    }
    Ok(said)
}

async fn left<D: Driver>(lab: &Lab<D>, times: usize) -> Outcome {
    lab.noted("a", "close", times).await.map(drop)
}

async fn hello<D: Driver>(lab: &Lab<D>) -> Outcome {
    let (mut ann, hello) = enter(lab, "ann", None).await?;
    same("her place", text(&hello["at"]), position(&hello, 1).as_str())?;
    same(
        "who",
        (&hello["member"], &hello["count"], &hello["replay"]),
        (&json!("ann"), &json!(1), &json!(0)),
    )?;
    let (mut bob, hello) = enter(lab, "bob", None).await?;
    same("members", &hello["members"], json!([{"id": "ann"}, {"id": "bob"}]))?;
    same("ann hears", frames(&mut ann, 2, 1).await?, vec![json!("joined")])?;
    let answer = ask(&mut bob, &json!([command(json!({"publish": {"n": 1}}))])).await;
    // His own message comes before the answer.
    same("the frame", answer?["d"].clone(), json!({"n": 1}))?;
    same("the answer", next(&mut bob).await?, json!([position(&hello, 3)]))?;
    let frame = next(&mut ann).await?;
    same(
        "ann hears him",
        (&frame["s"], &frame["from"], &frame["d"]["n"]),
        (&json!(3), &json!("bob"), &json!(1)),
    )
}

async fn resumes<D: Driver>(lab: &Lab<D>) -> Outcome {
    let (ann, hello) = enter(lab, "ann", None).await?;
    ann.lose();
    left(lab, 1).await?;
    for n in 0..5 {
        publish(lab, json!(n)).await?;
    }
    let (mut ann, again) = enter(lab, "ann", Some(text(&hello["at"]))).await?;
    publish(lab, json!("live")).await?;
    same("no gap", (&again["gap"], &again["at"], &again["replay"]), (&Value::Null, &hello["at"], &json!(7)))?;
    let said = frames(&mut ann, 2, 8).await?;
    same("what was missed", json!(said), json!(["left", 0, 1, 2, 3, 4, "joined", "live"]))
}

async fn resumes_evicted<D: Driver>(lab: &Lab<D>) -> Outcome {
    let (ann, hello) = enter(lab, "ann", None).await?;
    let (mut bob, _) = enter(lab, "bob", None).await?;
    ann.lose();
    left(lab, 1).await?;
    lab.evict().await?;
    publish(lab, json!("woken")).await?;
    lab.evict().await?;
    same("bob, who stayed", json!(frames(&mut bob, 3, 2).await?), json!(["left", "woken"]))?;
    let (mut ann, _) = enter(lab, "ann", Some(text(&hello["at"]))).await?;
    same("ann", json!(frames(&mut ann, 2, 4).await?), json!(["joined", "left", "woken", "joined"]))?;
    same("bob again", json!(frames(&mut bob, 5, 1).await?), json!(["joined"]))
}

async fn crash<D: Driver>(lab: &Lab<D>) -> Outcome {
    let (_ann, hello) = enter(lab, "ann", None).await?;
    publish(lab, json!("kept")).await?;
    lab.crash().await?;
    // She never said that she left; the next who comes finds out.
    let (mut ann, again) = enter(lab, "ann", Some(text(&hello["at"]))).await?;
    same("no gap", (&again["gap"], &again["replay"]), (&Value::Null, &json!(3)))?;
    same("what was missed", json!(frames(&mut ann, 2, 3).await?), json!(["kept", "left", "joined"]))
}

async fn gap<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.configure("a", json!({"history": {"max_messages": 4}})).await?;
    let (ann, hello) = enter(lab, "ann", None).await?;
    ann.lose();
    left(lab, 1).await?;
    lab.tell("a", command(json!({"many": [10, 3]}))).await?;
    let (mut ann, again) = enter(lab, "ann", Some(text(&hello["at"]))).await?;
    // 13 messages, of which the last four are shown.
    same("the gap", &again["gap"], json!({"after": hello["at"], "lost": 8}))?;
    same("the place", text(&again["at"]), position(&hello, 9).as_str())?;
    same("what is left", json!(frames(&mut ann, 10, 4).await?), json!(["007", "008", "009", "joined"]))?;
    // Told once, and not again by the next connection.
    let (_ann, third) = enter(lab, "ann", Some(&position(&hello, 13))).await?;
    same("after it", (&third["gap"], &third["at"]), (&Value::Null, &json!(position(&hello, 13))))
}

async fn epoch<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.configure("a", json!({"history": {"replay": 2}})).await?;
    publish(lab, json!("a")).await?;
    publish(lab, json!("b")).await?;
    let (mut ann, hello) = enter(lab, "ann", Some("0-1")).await?;
    same("the gap", &hello["gap"], json!({"after": "0-1", "lost": null}))?;
    same("the latest", json!(frames(&mut ann, 2, 2).await?), json!(["b", "joined"]))?;
    let ahead = position(&hello, 99);
    let (_, hello) = enter(lab, "ann", Some(&ahead)).await?;
    same("ahead", &hello["gap"], json!({"after": ahead, "lost": null}))
}

async fn rollback<D: Driver>(lab: &Lab<D>) -> Outcome {
    let (mut ann, hello) = enter(lab, "ann", None).await?;
    lab.tell("a", command(json!({"undone": "x"}))).await?;
    same("it was sent", json!(frames(&mut ann, 2, 1).await?), json!(["x"]))?;
    match ann.receive().await? {
        Received::Close(Some((4_000, _))) => {}
        other => return Err(Fault::new(format!("expected to be told to come back, got {other:?}"))),
    }
    let (_, again) = enter(lab, "ann", Some(&position(&hello, 2))).await?;
    same("the gap", &again["gap"]["lost"], &Value::Null)?;
    holds("another epoch", again["gap"].is_object() && position(&again, 0) != position(&hello, 0))
}

async fn deleted<D: Driver>(lab: &Lab<D>) -> Outcome {
    let before = publish(lab, json!("old")).await?;
    lab.tell("a", command(json!("delete_all"))).await?;
    let after = publish(lab, json!("new")).await?;
    holds(format!("{before}, {after}"), after.ends_with("-1") && before.ends_with("-1") && before != after)
}

async fn parts<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.configure("a", json!({"history": {"max_bytes": 4 << 20, "outbound": 256 * 1_024}})).await?;
    let (ann, hello) = enter(lab, "ann", None).await?;
    ann.lose();
    left(lab, 1).await?;
    lab.tell("a", command(json!({"many": [64, 16 * 1_024]}))).await?;
    let (mut seq, mut connections) = (1, 0);
    loop {
        connections += 1;
        let (mut ann, hello) = enter(lab, "ann", Some(&position(&hello, seq))).await?;
        let replay = hello["replay"].as_u64().unwrap_or(0);
        frames(&mut ann, seq + 1, usize::try_from(replay).unwrap_or(0)).await?;
        seq += replay;
        if hello["more"].is_null() {
            break;
        }
        let closed = ann.receive().await?;
        holds(format!("{closed:?}"), matches!(closed, Received::Close(Some((4_000, _)))))?;
    }
    // 11 messages of 16 KiB fit 192 KiB with the hello.
    same("parts and messages", (connections, seq), (6, 1 + 1 + 64 + 1))
}

async fn binary<D: Driver>(lab: &Lab<D>) -> Outcome {
    let (mut ann, _) = enter(lab, "ann", None).await?;
    let mut raw = lab.join("a", &[]).await?;
    lab.tell("a", command(json!({"binary": [7, 8, 9]}))).await?;
    lab.tell("a", command(json!({"event": "seen by both"}))).await?;
    let Received::Message(Message::Binary(bytes)) = ann.receive().await? else {
        return Err(Fault::new("expected a binary message"));
    };
    let frame = (bytes.get(..9), bytes.get(17), bytes.get(18..));
    same("the frame", frame, (Some(&[1, 0, 0, 0, 0, 0, 0, 0, 2][..]), Some(&0), Some(&[7, 8, 9][..])))?;
    for client in [&mut ann, &mut raw] {
        same("the event", next(client).await?, json!({"t": "ev", "d": "seen by both"}))?;
    }
    Ok(())
}

async fn snapshot<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.configure("a", json!({"history": {"snapshot": {"board": [1, 2]}}})).await?;
    let (_, hello) = enter(lab, "ann", None).await?;
    same("of one who is new", &hello["snapshot"], json!({"board": [1, 2]}))?;
    let (_, again) = enter(lab, "ann", Some(text(&hello["at"]))).await?;
    same("of one who was here", &again["snapshot"], &Value::Null)
}

async fn aged<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.configure("a", json!({"history": {"max_age": 800, "alarm": true}})).await?;
    lab.tell("a", command(json!({"many": [5, 1]}))).await?;
    let stored = async || lab.tell("a", command(json!("stored"))).await;
    lab.advance(Duration::from_millis(1_000)).await?;
    // All but the newest, whose number stays.
    lab.eventually("what is stored", SOON, stored, |rows| *rows == 1).await?;
    let shown = lab.tell("a", command(json!({"messages": [null, 10]}))).await?;
    same("what is shown", (&shown["entries"], text(&shown["newest"]).ends_with("-5")), (&json!([]), true))
}

async fn storm<D: Driver>(lab: &Lab<D>) -> Outcome {
    let (mut ann, hello) = enter(lab, "ann", None).await?;
    lab.tell("a", command(json!({"many": [50, 100]}))).await?;
    let mut clients = Vec::new();
    for n in 0..100_u64 {
        let (client, again) = enter(lab, &format!("m{n}"), Some(text(&hello["at"]))).await?;
        same("what is replayed", &again["replay"], json!(50 + n + 1))?;
        clients.push(client);
    }
    publish(lab, json!("last")).await?;
    for client in &mut clients {
        let said = frames(client, 2, 151).await?;
        same("the last one", said.last(), Some(&json!("last")))?;
    }
    frames(&mut ann, 2, 151).await.map(drop)
}

async fn rows<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.configure("a", json!({"history": {"max_messages": 80}})).await?;
    let cost = async |what: Value| lab.tell("a", command(json!({ "cost": what }))).await;
    // Beside the message: the table, which is two, and the row before the first.
    same("the first of all", cost(json!({"publish": 1})).await?, json!([1, 4]))?;
    for _ in 0..7 {
        same("another", cost(json!({"publish": 1})).await?, json!([1, 1]))?;
    }
    let mut total = (0, 0);
    for _ in 0..400 {
        let cost = cost(json!({"publish": 1})).await?;
        let cost = (cost[0].as_u64().unwrap_or(99), cost[1].as_u64().unwrap_or(99));
        holds(format!("{cost:?}"), cost.0 <= 40 && cost.1 <= 11)?;
        total = (total.0 + cost.0, total.1 + cost.1);
    }
    // One read and one written, and for each ten one search and the deletion of ten.
    holds(format!("{total:?}"), total.0 <= 400 * 4 && total.1 <= 400 * 2)?;
    let (_ann, hello) = enter(lab, "ann", None).await?;
    let shown = cost(json!({"messages": [position(&hello, 405), 100]})).await?;
    same("the last four", shown, json!([1 + 1 + 1 + 4, 0]))
}
