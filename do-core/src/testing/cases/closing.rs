//! D: how sockets end.

use crate::testing::{
    case::{Case, Fault, Outcome, same},
    driver::{Client, Driver, Received},
    lab::{ClientExt, Lab, closed},
};
use serde_json::{Value, json};
use std::time::Duration;

/// What the object is told when the connection is lost.
const LOST: &str = r#": close 1006 "WebSocket disconnected without sending Close frame." lost"#;

pub(super) fn cases<D: Driver>() -> Vec<Case<D>> {
    vec![
        Case::new("d14 messages arrive after the object's own close", |lab| Box::pin(d14_after_close(lab))),
        Case::new("d15 d22 a clean close is told and answered at once", |lab| Box::pin(d15_clean(lab))),
        Case::new("d15 d23 a close without a code is 1005 and answered without one", |lab| {
            Box::pin(d15_no_code(lab))
        }),
        Case::new("d15 a lost connection is 1006 and not clean", |lab| Box::pin(d15_lost(lab))),
        Case::new("d17 d18 what the close handler sees, sends and counts", |lab| Box::pin(d17_handler(lab))),
        Case::new("d20 d21 the object's own close: what it does to send, to close and to the lists", |lab| {
            Box::pin(d20_own(lab))
        }),
        Case::new("d22 the object's own answer to a close is the one that counts", |lab| {
            Box::pin(d22_own_answer(lab))
        }),
        Case::new("d22 a close is answered although the handler fails", |lab| Box::pin(d22_failing(lab))),
        Case::new("d25 a reset loses the sockets without an event", |lab| Box::pin(d25_reset(lab))),
    ]
}

/// The events, once there is one: they may come after the client heard of the end.
async fn events<D: Driver>(lab: &Lab<D>, object: &str) -> Result<Value, Fault> {
    lab.until(object, json!(["events"]), Duration::from_secs(3), |events| *events != json!([])).await
}

async fn d14_after_close<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut client = lab.open("a", &[]).await?;
    lab.run("a", json!([{"close_sockets": ["all", [4_001, "done"]]}])).await?;
    client.hears("the close", closed(4_001, "done")).await?;
    client.text("still here").await?;
    client.close(Some((4_001, "done"))).await?;
    let both = [r#": message "still here""#, r#": close 4001 "done" clean"#];
    let seen = lab.until("a", json!(["events"]), Duration::from_secs(3), |events| *events == json!(both));
    seen.await.map(drop)
}

async fn d15_clean<D: Driver>(lab: &Lab<D>) -> Outcome {
    for (code, reason) in [(1_000, "bye é"), (4_321, "")] {
        let object = code.to_string();
        let mut client = lab.open(&object, &[]).await?;
        client.close(Some((code, reason))).await?;
        client.hears("the answer", closed(code, reason)).await?;
        let told = format!(": close {code} {reason:?} clean");
        same("events", events(lab, &object).await?, json!([told]))?;
    }
    Ok(())
}

async fn d15_no_code<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut client = lab.open("a", &[]).await?;
    client.close(None).await?;
    client.hears("the answer", Received::Close(None)).await?;
    same("events", events(lab, "a").await?, json!([r#": close 1005 "" clean"#]))
}

async fn d15_lost<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.open("a", &[]).await?.lose();
    same("events", events(lab, "a").await?, json!([LOST]))?;
    let none = lab.until("a", json!([{"count": "all"}]), Duration::from_secs(3), |count| *count == json!(0));
    none.await.map(drop)
}

async fn d17_handler<D: Driver>(lab: &Lab<D>) -> Outcome {
    let look = json!({"note_of": [
        {"count": "others"}, {"states": "this"}, {"tags": "this"}, {"attachments": "this"}
    ]});
    lab.run("a", json!([{"on_close": [look, {"send": ["this", "last words"]}]}])).await?;
    let other = lab.open("a", &[("tag", "other")]).await?;
    let mut client = lab.open("a", &[("tag", "t"), ("attach", "ada")]).await?;
    client.close(Some((1_000, ""))).await?;
    client.hears_text("before the answer", "last words").await?;
    client.hears("the answer", closed(1_000, "")).await?;
    same("what it saw", lab.lines("a").await?, json!([r#"[1,["Closing"],[["t"]],["ada"]]"#]))?;
    let gone =
        lab.until("a", json!([{"tags": "all"}]), Duration::from_secs(3), |tags| *tags == json!([["other"]]));
    gone.await?;
    other.lose();
    Ok(())
}

async fn d20_own<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut client = lab.open("a", &[]).await?;
    let steps = json!([
        {"close_sockets": ["all", [4_001, "ours"]]}, {"try": [{"send": ["all", "late"]}]},
        {"close_sockets": ["all", [4_002, "again"]]}, {"states": "all"}, {"count": "all"}
    ]);
    let values = lab.run("a", steps).await?;
    same("a send after it", &values[1]["error"]["kind"], json!("Closed"))?;
    same("state and count", &values[3..], [json!(["Closing"]), json!(1)])?;
    client.hears("the first close", closed(4_001, "ours")).await?;
    client.close(Some((4_001, "ours"))).await?;
    same("events", events(lab, "a").await?, json!([r#": close 4001 "ours" clean"#]))?;
    let none = lab.until("a", json!([{"count": "all"}]), Duration::from_secs(3), |count| *count == json!(0));
    none.await?;
    for (code, kind) in
        [(999, "Invalid"), (1_005, "Invalid"), (1_006, "Invalid"), (1_015, "Invalid"), (5_000, "Invalid")]
    {
        let refused = lab.last("a", json!([{"try": [{"close_sockets": ["all", [code, ""]]}]}])).await?;
        same(&format!("code {code}"), &refused["error"]["kind"], json!(kind))?;
    }
    let long =
        lab.last("a", json!([{"try": [{"close_sockets": ["all", [1_000, "x".repeat(124)]]}]}])).await?;
    same("a long reason", &long["error"]["kind"], json!("Limit"))
}

async fn d22_own_answer<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.run("a", json!([{"on_close": [{"sleep": 200}, {"close_sockets": ["this", [4_444, "own"]]}]}]))
        .await?;
    let mut client = lab.open("a", &[]).await?;
    client.close(Some((4_001, ""))).await?;
    same("events", events(lab, "a").await?, json!([r#": close 4001 "" clean"#]))?;
    lab.advance(Duration::from_millis(300)).await?;
    client.hears("the answer", closed(4_444, "own")).await
}

async fn d22_failing<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.run("a", json!([{"on_close": [{"fail": "unseen"}]}])).await?;
    let mut client = lab.open("a", &[]).await?;
    client.close(Some((1_000, "x"))).await?;
    client.hears("the answer", closed(1_000, "x")).await
}

async fn d25_reset<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut one = lab.open("a", &[]).await?;
    let mut two = lab.open("a", &[]).await?;
    lab.thrown("a", json!([{"reset": "because"}])).await?;
    one.hears("one", Received::Lost).await?;
    two.hears("two", Received::Lost).await?;
    same("events and count", lab.run("a", json!(["events", {"count": "all"}])).await?, [json!([]), json!(0)])
}
