//! D: how sockets end.

use crate::{
    limits,
    testing::{
        case::{Case, Fault, Outcome, holds, same},
        difference::HostKind,
        driver::{Client, Driver, Received},
        lab::{ClientExt, Lab, closed},
        tasks::both,
    },
};
use serde_json::{Value, json};
use std::time::Duration;

/// What the object is told when the connection is lost.
const LOST: &str = r#": close 1006 "WebSocket disconnected without sending Close frame." lost"#;

const SOON: Duration = Duration::from_secs(3);

pub(super) fn cases<D: Driver>() -> Vec<Case<D>> {
    let mut cases = of_the_peer();
    cases.extend(of_the_object());
    cases
}

/// Closes that the peer begins, and losses.
fn of_the_peer<D: Driver>() -> Vec<Case<D>> {
    vec![
        Case::new("d15 a close is told with code and reason", |lab| Box::pin(d15_clean(lab))),
        Case::new("d15 a close is told after the messages that came before it", |lab| {
            Box::pin(d15_after_messages(lab))
        }),
        Case::new("d15 a close without a code is told as 1005", |lab| Box::pin(d15_no_code(lab))),
        Case::new("d15 a lost connection is 1006 and not clean", |lab| Box::pin(d15_lost(lab))),
        Case::new("d15 a loss after the close is no second event", |lab| Box::pin(d15_once(lab))),
        Case::new("d17 the socket of a close is closing, with its tags and attachment", |lab| {
            Box::pin(d17_peer(lab))
        }),
        Case::new("d17 the socket of a lost connection is closing, with its tags and attachment", |lab| {
            Box::pin(d17_lost(lab))
        }),
        Case::new("d17 the socket of a close that the object answered is closed", |lab| {
            Box::pin(d17_answered(lab))
        }),
        Case::new("d17 what the close handler sends arrives before the answer", |lab| {
            Box::pin(d17_send(lab))
        }),
        Case::new("d17 what is sent to a lost connection is no error", |lab| Box::pin(d17_send_lost(lab))),
        Case::new("d18 the others are all but the closing socket", |lab| Box::pin(d18_others(lab))),
        Case::new("d18 the closing socket is in the lists until the first await", |lab| {
            Box::pin(d18_lists(lab))
        }),
        Case::new("d22 a close is answered after the handler, by its code and reason", |lab| {
            Box::pin(d22_answer(lab))
        }),
        Case::new("d22 the object's own answer to a close is the one that counts", |lab| {
            Box::pin(d22_own_answer(lab))
        }),
        Case::new("d22 a close is answered although the handler fails", |lab| Box::pin(d22_failing(lab))),
        Case::new("d23 a close without a code is answered without one", |lab| Box::pin(d23_no_code(lab))),
        Case::new("d23 a slow handler's close is answered when it ends", |lab| Box::pin(d23_slow(lab))),
        Case::new("d24 after the answer the connection ends at once", |lab| Box::pin(d24_answered(lab))),
    ]
}

/// Closes that the object begins, and resets.
fn of_the_object<D: Driver>() -> Vec<Case<D>> {
    vec![
        Case::new("d14 messages arrive after the object's own close", |lab| Box::pin(d14_after_close(lab))),
        Case::new("d15 the echo of the object's own close is told", |lab| Box::pin(d15_echo(lab))),
        Case::new("d15 d21 a loss instead of the echo is 1006 and not clean", |lab| Box::pin(d21_lost(lab))),
        Case::new("d17 the socket is closed in the handler of the object's own close", |lab| {
            Box::pin(d17_own(lab))
        }),
        Case::new("d20 which codes can be sent", |lab| Box::pin(d20_codes(lab))),
        Case::new("d20 which codes cannot be sent", |lab| Box::pin(d20_reserved(lab))),
        Case::new("d20 a reason has 123 bytes at most", |lab| Box::pin(d20_reason(lab))),
        Case::new("d20 a close without a code arrives without one", |lab| Box::pin(d20_empty(lab))),
        Case::new("d20 a second close does nothing", |lab| Box::pin(d20_second(lab))),
        Case::new("d20 a send after the close is an error", |lab| Box::pin(d20_send(lab))),
        Case::new("d21 after the object's own close the socket stays until the peer's", |lab| {
            Box::pin(d21_listed(lab))
        }),
        Case::new("d24 after the object's own close and its echo the connection ends at once", |lab| {
            Box::pin(d24_echoed(lab))
        })
        .differs(&[HostKind::Tokio], "close-end"),
        Case::new("d24 after the object's own close and its echo the connection stays", |lab| {
            Box::pin(d24_stays(lab))
        })
        .differs(&[HostKind::Workerd], "close-end"),
        Case::new("d24 a peer that does not answer is lost after 10 s", |lab| Box::pin(d24_silent(lab)))
            .differs(&[HostKind::Kit, HostKind::Tokio], "close-wait"),
        Case::new("d24 a peer that does not answer stays", |lab| Box::pin(d24_waits(lab)))
            .differs(&[HostKind::Workerd], "close-wait"),
        Case::new("d25 a reset loses the sockets without an event", |lab| Box::pin(d25_reset(lab))),
    ]
}

/// The events, once there is one: they may come after the client heard of the end.
async fn events<D: Driver>(lab: &Lab<D>, object: &str) -> Result<Value, Fault> {
    lab.until(object, json!(["events"]), SOON, |events| *events != json!([])).await
}

/// Waits until the object notes this.
async fn notes<D: Driver>(lab: &Lab<D>, lines: Value) -> Outcome {
    let steps = json!([{"sql": "SELECT line FROM log ORDER BY rowid"}]);
    lab.until("a", steps, SOON, |noted| *noted == lines).await.map(drop)
}

async fn gone<D: Driver>(lab: &Lab<D>, object: &str) -> Outcome {
    lab.until(object, json!([{"count": "all"}]), SOON, |count| *count == json!(0)).await.map(drop)
}

async fn d15_clean<D: Driver>(lab: &Lab<D>) -> Outcome {
    let longest = "é".repeat(61);
    for (code, reason) in [
        (1_000, "bye é"),
        (1_001, ""),
        (1_003, ""),
        (1_011, "x"),
        (3_000, ""),
        (4_321, longest.as_str()),
        (4_999, ""),
    ] {
        let object = code.to_string();
        let mut client = lab.open(&object, &[]).await?;
        client.close(Some((code, reason))).await?;
        let told = format!(": close {code} {reason:?} clean");
        same("events", events(lab, &object).await?, json!([told]))?;
    }
    Ok(())
}

async fn d15_after_messages<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.run("a", json!([{"on_message": [{"sleep": 10}]}])).await?;
    let mut client = lab.open("a", &[]).await?;
    for text in ["1", "2", "3"] {
        client.text(text).await?;
    }
    client.close(Some((1_000, ""))).await?;
    let all = json!([r#": message "1""#, r#": message "2""#, r#": message "3""#, r#": close 1000 "" clean"#]);
    lab.until("a", json!(["events"]), SOON, |events| *events == all).await.map(drop)
}

async fn d15_no_code<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut client = lab.open("a", &[]).await?;
    client.close(None).await?;
    same("events", events(lab, "a").await?, json!([r#": close 1005 "" clean"#]))
}

async fn d15_lost<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.open("a", &[]).await?.lose();
    same("events", events(lab, "a").await?, json!([LOST]))?;
    gone(lab, "a").await
}

async fn d15_once<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.run("a", json!([{"on_close": [{"sleep": 300}]}])).await?;
    let mut client = lab.open("a", &[]).await?;
    client.close(Some((1_000, ""))).await?;
    events(lab, "a").await?;
    client.lose();
    lab.advance(Duration::from_millis(600)).await?;
    same("events", lab.events("a").await?, json!([r#": close 1000 "" clean"#]))
}

/// What a handler sees of its socket.
fn look() -> Value {
    json!({"note_of": [{"states": "this"}, {"tags": "this"}, {"attachments": "this"}]})
}

async fn d17_peer<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.run("a", json!([{"on_close": [look(), {"sleep": 10}, look()]}])).await?;
    let mut client = lab.open("a", &[("tag", "t"), ("attach", "ada")]).await?;
    client.close(Some((1_000, ""))).await?;
    notes(lab, json!(vec![r#"[["Closing"],[["t"]],["ada"]]"#; 2])).await
}

async fn d17_lost<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.run("a", json!([{"on_close": [look(), {"sleep": 10}, look()]}])).await?;
    lab.open("a", &[("tag", "t"), ("attach", "ada")]).await?.lose();
    notes(lab, json!(vec![r#"[["Closing"],[["t"]],["ada"]]"#; 2])).await
}

async fn d17_answered<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.run(
        "a",
        json!([{"on_close": [{"close_sockets": ["this", null]}, {"note_of": [{"states": "this"}]}]}]),
    )
    .await?;
    let mut client = lab.open("a", &[]).await?;
    client.close(Some((1_000, ""))).await?;
    notes(lab, json!([r#"[["Closed"]]"#])).await
}

async fn d17_send<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.run(
        "a",
        json!([{"on_close": [{"send": ["this", "last"]}, {"sleep": 10}, {"send": ["this", "words"]}]}]),
    )
    .await?;
    let mut client = lab.open("a", &[]).await?;
    client.close(Some((1_000, ""))).await?;
    client.hears_text("before the first await", "last").await?;
    lab.advance(Duration::from_millis(50)).await?;
    client.hears_text("after it", "words").await?;
    client.hears("the answer", closed(1_000, "")).await
}

async fn d17_send_lost<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.run("a", json!([{"on_close": [{"send": ["this", "late"]}, {"sleep": 10}, {"send": ["this", "late"]}, {"note": "sent"}]}]))
        .await?;
    lab.open("a", &[]).await?.lose();
    notes(lab, json!(["sent"])).await
}

async fn d18_others<D: Driver>(lab: &Lab<D>) -> Outcome {
    let look = json!({"note_of": [{"tags": "others"}]});
    lab.run("a", json!([{"on_close": [look, {"sleep": 10}, look]}])).await?;
    let _other = lab.open("a", &[("tag", "other")]).await?;
    let mut client = lab.open("a", &[("tag", "t")]).await?;
    client.close(Some((1_000, ""))).await?;
    notes(lab, json!([r#"[[["other"]]]"#, r#"[[["other"]]]"#])).await
}

async fn d18_lists<D: Driver>(lab: &Lab<D>) -> Outcome {
    let look = json!({"note_of": [{"count": "all"}, {"count": {"tagged": "t"}}]});
    lab.run("a", json!([{"on_close": [look, "get_alarm", look, {"sleep": 1}, look]}])).await?;
    let _other = lab.open("a", &[]).await?;
    let mut client = lab.open("a", &[("tag", "t")]).await?;
    client.close(Some((1_000, ""))).await?;
    notes(lab, json!(["[2,1]", "[2,1]", "[1,0]"])).await
}

async fn d22_answer<D: Driver>(lab: &Lab<D>) -> Outcome {
    for (code, reason) in [(1_000, "bye é"), (4_321, ""), (1_011, "x")] {
        let mut client = lab.open("a", &[]).await?;
        client.close(Some((code, reason))).await?;
        client.hears("the answer", closed(code, reason)).await?;
    }
    Ok(())
}

async fn d22_own_answer<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.run("a", json!([{"on_close": [{"close_sockets": ["this", [4_444, "own"]]}]}])).await?;
    let mut client = lab.open("a", &[]).await?;
    client.close(Some((4_001, ""))).await?;
    client.hears("the answer", closed(4_444, "own")).await
}

async fn d22_failing<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.run("a", json!([{"on_close": [{"fail": "unseen"}]}])).await?;
    let mut client = lab.open("a", &[]).await?;
    client.close(Some((1_000, "x"))).await?;
    client.hears("the answer", closed(1_000, "x")).await
}

async fn d23_no_code<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut client = lab.open("a", &[]).await?;
    client.close(None).await?;
    client.hears("the answer", Received::Close(None)).await
}

async fn d23_slow<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.run("a", json!([{"on_close": [{"sleep": 200}, {"note": "ends"}]}])).await?;
    let mut client = lab.open("a", &[]).await?;
    client.close(Some((4_001, "x"))).await?;
    events(lab, "a").await?;
    lab.advance(Duration::from_millis(300)).await?;
    client.hears("the answer", closed(4_001, "x")).await?;
    same("the handler", lab.lines("a").await?, json!(["ends"]))
}

async fn d24_answered<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut client = lab.open("a", &[]).await?;
    client.close(Some((1_000, ""))).await?;
    client.hears("the answer", closed(1_000, "")).await?;
    client.hears("the end", Received::Lost).await
}

/// Closes from the object and hears it.
async fn closes<D: Driver>(lab: &Lab<D>) -> Result<D::Client, Fault> {
    let mut client = lab.open("a", &[]).await?;
    lab.run("a", json!([{"close_sockets": ["all", [4_001, "ours"]]}])).await?;
    client.hears("the close", closed(4_001, "ours")).await?;
    Ok(client)
}

async fn d14_after_close<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut client = closes(lab).await?;
    client.text("still here").await?;
    same("events", events(lab, "a").await?, json!([r#": message "still here""#]))
}

async fn d15_echo<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut client = closes(lab).await?;
    client.close(Some((4_001, "ours"))).await?;
    same("events", events(lab, "a").await?, json!([r#": close 4001 "ours" clean"#]))
}

async fn d21_lost<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.run("a", json!([{"on_close": [{"note_of": [{"states": "this"}]}]}])).await?;
    closes(lab).await?.lose();
    same("events", events(lab, "a").await?, json!([LOST]))?;
    notes(lab, json!([r#"[["Closed"]]"#])).await?;
    gone(lab, "a").await
}

async fn d17_own<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.run("a", json!([{"on_close": [{"note_of": [{"states": "this"}]}]}])).await?;
    let mut client = closes(lab).await?;
    client.close(Some((4_001, "ours"))).await?;
    notes(lab, json!([r#"[["Closed"]]"#])).await
}

async fn d20_codes<D: Driver>(lab: &Lab<D>) -> Outcome {
    for code in [1_000, 1_001, 1_002, 1_003, 1_007, 1_011, 1_014, 1_016, 2_999, 3_000, 4_999] {
        let object = code.to_string();
        let mut client = lab.open(&object, &[]).await?;
        lab.run(&object, json!([{"close_sockets": ["all", [code, "why"]]}])).await?;
        client.hears("the close", closed(code, "why")).await?;
    }
    Ok(())
}

async fn d20_reserved<D: Driver>(lab: &Lab<D>) -> Outcome {
    let _client = lab.open("a", &[]).await?;
    for code in [0, 999, 1_004, 1_005, 1_006, 1_015, 5_000, u16::MAX] {
        let refused = lab
            .run("a", json!([{"try": [{"close_sockets": ["all", [code, ""]]}]}, {"states": "all"}]))
            .await?;
        same(&format!("code {code}"), &refused[0]["error"]["kind"], json!("Invalid"))?;
        same("the state", &refused[1], json!(["Open"]))?;
    }
    Ok(())
}

async fn d20_reason<D: Driver>(lab: &Lab<D>) -> Outcome {
    let longest = "é".repeat(limits::CLOSE_REASON_BYTES / 2) + "x";
    let mut client = lab.open("a", &[]).await?;
    let longer = format!("{longest}x");
    let refused = lab.last("a", json!([{"try": [{"close_sockets": ["all", [1_000, longer]]}]}])).await?;
    same("a longer one", &refused["error"]["kind"], json!("Limit"))?;
    lab.run("a", json!([{"close_sockets": ["all", [1_000, longest]]}])).await?;
    client.hears("the longest", closed(1_000, &longest)).await
}

async fn d20_empty<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut client = lab.open("a", &[]).await?;
    lab.run("a", json!([{"close_sockets": ["all", null]}])).await?;
    client.hears("the close", Received::Close(None)).await
}

async fn d20_second<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut client = lab.open("a", &[]).await?;
    let close = |code: u16| json!({"close_sockets": ["all", [code, ""]]});
    lab.run("a", json!([close(4_001), close(4_002)])).await?;
    lab.run("a", json!([close(4_003)])).await?;
    client.hears("the first", closed(4_001, "")).await?;
    client.close(Some((4_001, ""))).await?;
    same("events", events(lab, "a").await?, json!([r#": close 4001 "" clean"#]))
}

async fn d20_send<D: Driver>(lab: &Lab<D>) -> Outcome {
    let _client = closes(lab).await?;
    let refused = lab.last("a", json!([{"try": [{"send": ["all", "late"]}]}])).await?;
    same("the kind", &refused["error"]["kind"], json!("Closed"))?;
    holds(format!("{refused}"), refused["error"]["remote"] == json!(false))
}

async fn d21_listed<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut client = closes(lab).await?;
    let look = json!([{"states": "all"}, {"count": "all"}]);
    same("state and count", lab.run("a", look).await?, [json!(["Closing"]), json!(1)])?;
    client.close(Some((4_001, "ours"))).await?;
    gone(lab, "a").await
}

async fn d24_echoed<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut client = closes(lab).await?;
    client.close(Some((4_001, "ours"))).await?;
    client.hears("the end", Received::Lost).await
}

async fn d24_stays<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut client = closes(lab).await?;
    client.close(Some((4_001, "ours"))).await?;
    gone(lab, "a").await?;
    // Busy meanwhile: the connection would end with the instance, which may leave early on a host that is busy itself.
    let (busy, silent) = both(
        lab.run("a", json!([{"sleep": 1_500}])),
        lab.silent("the connection", client.receive(), Duration::from_secs(1)),
    )
    .await;
    silent.and(busy.map(drop))
}

async fn d24_silent<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut client = closes(lab).await?;
    lab.advance(limits::CLOSE_WAIT - Duration::from_millis(200)).await?;
    same("before", lab.events("a").await?, json!([]))?;
    lab.advance(Duration::from_millis(400)).await?;
    client.hears("the end", Received::Lost).await?;
    same("events", events(lab, "a").await?, json!([LOST]))?;
    gone(lab, "a").await
}

async fn d24_waits<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut client = closes(lab).await?;
    lab.advance(limits::CLOSE_WAIT + Duration::from_secs(2)).await?;
    let after = lab.run("a", json!(["events", {"states": "all"}])).await?;
    same("events and state", after, [json!([]), json!(["Closing"])])?;
    client.close(Some((4_001, "ours"))).await?;
    same("a late answer", events(lab, "a").await?, json!([r#": close 4001 "ours" clean"#]))
}

async fn d25_reset<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut one = lab.open("a", &[]).await?;
    let mut two = lab.open("a", &[]).await?;
    lab.thrown("a", json!([{"reset": "because"}])).await?;
    one.hears("one", Received::Lost).await?;
    two.hears("two", Received::Lost).await?;
    same("events and count", lab.run("a", json!(["events", {"count": "all"}])).await?, [json!([]), json!(0)])
}
