//! D: registration, messages and attachments of sockets.

use crate::testing::{
    case::{Case, Outcome, holds, same},
    driver::{Client, Driver, Received},
    lab::{ClientExt, Lab},
};
use crate::{Message, limits};
use serde_json::{Value, json};
use std::time::Duration;

pub(super) fn cases<D: Driver>() -> Vec<Case<D>> {
    vec![
        Case::new("d1 ten distinct tags, and the eleventh is an error that harms nobody", |lab| {
            Box::pin(d1_eleven(lab))
        }),
        Case::new("d1 tags keep their order, count once, may be empty and have a length", |lab| {
            Box::pin(d1_tags(lab))
        }),
        Case::new("d3 d4 sockets are found by tag", |lab| Box::pin(d3_lookup(lab))),
        Case::new("d7 the sub-protocol is the one that the object names", |lab| Box::pin(d7_protocol(lab))),
        Case::new("d8 text, bytes and nothing arrive as they were sent", |lab| Box::pin(d8_kinds(lab))),
        Case::new("d9 messages begin in order and overlap at awaits", |lab| Box::pin(d9_order(lab))),
        Case::new("d10 a failing handler leaves socket and object as they are", |lab| {
            Box::pin(d10_failing(lab))
        }),
        Case::new("d26 an attachment of the limit is kept and one byte more refused", |lab| {
            Box::pin(d26_attachment(lab))
        }),
        Case::new("d28 d30 the auto-response answers the exact text alone", |lab| Box::pin(d28_exact(lab))),
    ]
}

async fn d1_eleven<D: Driver>(lab: &Lab<D>) -> Outcome {
    let bystander = lab.run("b", json!([{"add": 1}, "instance"])).await?;
    let tags: Vec<_> = (0..11).map(|n| n.to_string()).collect();
    let query: Vec<_> = tags.iter().map(|tag| ("tag", tag.as_str())).collect();
    let ten = lab.open("a", &query[..10]).await?;
    let before = lab.last("a", json!([{"add": 1}])).await?;
    let thrown = lab.refused("a", &query).await?;
    same("the kind", thrown.kind, "Limit")?;
    same("the object's memory", lab.last("a", json!([{"add": 0}])).await?, before)?;
    same("the sockets", lab.last("a", json!([{"tags": "all"}])).await?, json!([tags[..10]]))?;
    same("another object", lab.run("b", json!([{"add": 0}, "instance"])).await?, bystander)?;
    ten.lose();
    Ok(())
}

async fn d1_tags<D: Driver>(lab: &Lab<D>) -> Outcome {
    let longest = "é".repeat(limits::TAG_BYTES / 2);
    let query = [("tag", "b"), ("tag", ""), ("tag", "a"), ("tag", "b"), ("tag", longest.as_str())];
    let _client = lab.open("a", &query).await?;
    same("the tags", lab.last("a", json!([{"tags": "all"}])).await?, json!([["b", "", "a", longest]]))?;
    let thrown = lab.refused("a", &[("tag", &format!("{longest}x"))]).await?;
    same("the kind of a long one", thrown.kind, "Limit")
}

async fn d3_lookup<D: Driver>(lab: &Lab<D>) -> Outcome {
    let one = lab.open("a", &[("tag", "x"), ("tag", "y"), ("attach", "1")]).await?;
    let two = lab.open("a", &[("tag", "y"), ("attach", "2")]).await?;
    let three = lab.open("a", &[("tag", ""), ("attach", "3")]).await?;
    let mut four = lab.open("a", &[("attach", "4")]).await?;
    let look = |tag: &str| json!([{"attachments": {"tagged": tag}}]);
    for (tag, found) in [
        ("x", json!(["1"])),
        ("y", json!(["1", "2"])),
        ("", json!(["3"])),
        ("X", json!([])),
        ("unknown", json!([])),
    ] {
        same(&format!("tagged {tag:?}"), lab.last("a", look(tag)).await?, found)?;
    }
    same("all", lab.last("a", json!([{"attachments": "all"}])).await?, json!(["1", "2", "3", "4"]))?;
    let others = four.steps(json!([{"attachments": "others"}, {"attachments": "this"}])).await?;
    same("others and this", others, json!([["1", "2", "3"], ["4"]]))?;
    // A broadcast to a tag reaches those and no other.
    let (mut one, mut two) = (one, two);
    lab.run("a", json!([{"send": [{"tagged": "y"}, "hello"]}, {"send": ["all", "end"]}])).await?;
    one.hears_text("one", "hello").await?;
    two.hears_text("two", "hello").await?;
    four.hears_text("four", "end").await?;
    three.lose();
    Ok(())
}

async fn d7_protocol<D: Driver>(lab: &Lab<D>) -> Outcome {
    same("none", lab.open("a", &[]).await?.protocol(), Value::Null)?;
    same("one", lab.open("a", &[("protocol", "chat.v2")]).await?.protocol(), Some("chat.v2"))
}

async fn d8_kinds<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.run("a", json!([{"on_message": ["echo"]}])).await?;
    let mut client = lab.open("a", &[]).await?;
    let long = "é".repeat(50_000);
    let messages: [Message; 6] = [
        "hello\0é".into(),
        "".into(),
        vec![0, 255].into(),
        vec![].into(),
        long.into(),
        vec![7; 70_000].into(),
    ];
    for message in messages {
        client.send(message.clone()).await?;
        client.hears("the echo", Received::Message(message)).await?;
    }
    let events = lab.last("a", json!([{"sql": "SELECT line FROM events ORDER BY rowid LIMIT 4"}])).await?;
    let expected = [r#": message "hello\0é""#, r#": message """#, ": message [0, 255]", ": message []"];
    same("what the object saw", events, json!(expected))
}

async fn d9_order<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut client = lab.open("a", &[]).await?;
    client.text(&json!([{"note": "1 begins"}, {"sleep": 1_000}, {"note": "1 ends"}]).to_string()).await?;
    client.text(&json!([{"note": "2"}]).to_string()).await?;
    client.hears_text("the answer to the second", "[null]").await?;
    lab.advance(Duration::from_millis(1_100)).await?;
    client.hears_text("the answer to the first", "[null,null,null]").await?;
    same("the order", lab.lines("a").await?, json!(["1 begins", "2", "1 ends"]))?;
    let texts: Vec<_> = (0..50).map(|n| n.to_string()).collect();
    for text in &texts {
        client.text(text).await?;
    }
    client.steps(json!([])).await?;
    let events: Vec<_> = texts.iter().map(|text| format!(": message {text:?}")).collect();
    same("fifty messages", lab.events("a").await?, json!(events))
}

async fn d10_failing<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut client = lab.open("a", &[]).await?;
    client.steps(json!([{"add": 1}])).await?;
    client.text(&json!([{"note": "kept"}, {"fail": "unseen"}]).to_string()).await?;
    same("memory", client.steps(json!([{"add": 1}])).await?, json!([2]))?;
    same("what was written", lab.lines("a").await?, json!(["kept"]))?;
    same("events", lab.events("a").await?, json!([]))
}

async fn d26_attachment<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut client = lab.open("a", &[]).await?;
    same("none", client.steps(json!([{"attachments": "this"}])).await?, json!([[null]]))?;
    let (most, more) = (limits::ATTACHMENT_BYTES, limits::ATTACHMENT_BYTES + 1);
    client.steps(json!([{"attach_bytes": ["this", most]}])).await?;
    let refused = client.steps(json!([{"try": [{"attach_bytes": ["this", more]}]}])).await?;
    same("the kind", &refused[0]["error"]["kind"], json!("Limit"))?;
    let kept = client.steps(json!([{"attachments": "this"}])).await?;
    same("its length", kept[0][0].as_str().map(str::len), Some(most - 2))?;
    // The longest when every byte is a character that a JavaScript string needs two bytes for.
    let wide = "é".repeat((most - 2) / 2);
    client.steps(json!([{"attach": ["this", wide]}])).await?;
    same("wide", client.steps(json!([{"attachments": "this"}])).await?, json!([[wide]]))?;
    let value = json!({"name": "Ada", "n": [1, 2.5, null, true], "é": {}});
    client.steps(json!([{"attach": ["this", value]}])).await?;
    same("a value", client.steps(json!([{"attachments": "this"}])).await?, json!([[value]]))
}

async fn d28_exact<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.run("a", json!([{"auto_response": ["ping", "pong"]}, {"on_message": ["echo"]}])).await?;
    let mut client = lab.open("a", &[]).await?;
    same("before", client.steps(json!([{"auto_responses_at": "this"}])).await?, json!([[null]]))?;
    client.text("ping").await?;
    client.hears_text("ping", "pong").await?;
    for text in ["PING", "ping ", "", "pingping"] {
        client.text(text).await?;
        client.hears_text("another text", text).await?;
    }
    client.send(b"ping".to_vec().into()).await?;
    client.hears("bytes", Received::Message(b"ping".to_vec().into())).await?;
    let at = client.steps(json!([{"auto_responses_at": "this"}, "now"])).await?;
    let (at, now) = (at[0][0].as_i64(), at[1].as_i64());
    holds(format!("{at:?} is no time before {now:?}"), at.is_some() && at <= now)?;
    lab.run("a", json!([{"auto_response": null}])).await?;
    client.text("ping").await?;
    client.hears_text("without it", "ping").await
}
