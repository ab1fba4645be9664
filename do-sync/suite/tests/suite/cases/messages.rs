//! R5: what comes in.

use crate::rooms::Rooms;
use do_core::{
    Message,
    testing::{Case, Client, ClientExt, Driver, Lab, Outcome, same},
};
use serde_json::{Value, json};

pub(super) fn cases<D: Driver>() -> Vec<Case<D>> {
    vec![
        Case::new("r5 a ping as JSON is answered, however it is written", |lab| Box::pin(r5_ping(lab))),
        Case::new("r5 malformed messages are told apart and leave the connection open", |lab| {
            Box::pin(r5_malformed(lab))
        }),
        Case::new("r5 flaw8 a binary message that looks like a ping is none", |lab| Box::pin(r5_binary(lab))),
        Case::new("r5 a long malformed message is as harmless", |lab| Box::pin(r5_long(lab))),
    ]
}

const PONG: &str = r#"{"type":"pong"}"#;

async fn r5_ping<D: Driver>(lab: &Lab<D>) -> Outcome {
    let (mut ann, mut bob) = (lab.join("a", &[]).await?, lab.join("a", &[]).await?);
    for text in [r#"{"type":"ping"}"#, r#" { "n": 1, "type" : "p\u0069ng" } "#] {
        ann.text(text).await?;
        ann.hears_text("the answer", PONG).await?;
    }
    lab.noted("a", "ping", 2).await?;
    lab.broadcast("a", json!({"text": "first"})).await?;
    bob.hears_text("bob hears no pong", "first").await
}

async fn r5_malformed<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut ann = lab.join("a", &[]).await?;
    for text in ["", "{", "nul", r#"{"type":"ping""#, "\u{FEFF}{}", "{}{}"] {
        ann.text(text).await?;
    }
    ann.text(r#"{"good":1}"#).await?;
    ann.text(r#"{"type":"ping"}"#).await?;
    ann.hears_text("it is open", PONG).await?;
    lab.noted("a", "malformed", 6).await?;
    let noted = lab.noted("a", "message", 1).await?;
    same("the good one", &noted[0]["value"], json!({"good": 1}))?;
    same("the count", lab.tell("a", json!({"room": "count"})).await?, json!(1))
}

async fn r5_binary<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut ann = lab.join("a", &[]).await?;
    ann.send(Message::binary(&br#"{"type":"ping"}"#[..])).await?;
    ann.text(r#"{"type":"ping"}"#).await?;
    ann.hears_text("one answer", PONG).await?;
    lab.noted("a", "malformed", 1).await?;
    same("pings", lab.noted("a", "ping", 1).await?.len(), 1)
}

async fn r5_long<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.configure("a", json!({"inbound": {"max_bytes": 2 << 20}})).await?;
    let mut ann = lab.join("a", &[]).await?;
    ann.text(&format!("\"{}", "x".repeat(1 << 20))).await?;
    ann.text(r#"{"type":"ping"}"#).await?;
    ann.hears_text("it is open", PONG).await?;
    let noted = lab.noted("a", "malformed", 1).await?;
    same("its value", &noted[0]["value"], Value::Null)
}
