//! R3: a message is written once and reaches each of those who are meant, once.

use crate::rooms::{Rooms, all_of, ask, hears_json, next};
use do_core::{
    Message,
    testing::{Case, Client, ClientExt, Driver, Lab, Outcome, Received, same},
};
use serde_json::json;

pub(super) fn cases<D: Driver>() -> Vec<Case<D>> {
    vec![
        Case::new("r3 flaw16 the sender is left out and the report counts the others", |lab| {
            Box::pin(r3_except_me(lab))
        }),
        Case::new("r3 several are left out", |lab| Box::pin(r3_except(lab))),
        Case::new("r3 a tag chooses who gets it", |lab| Box::pin(r3_to(lab))),
        Case::new("r3 whoever has several of the tags gets it once", |lab| Box::pin(r3_once(lab))),
        Case::new("r3 a tag that nobody has and an empty room report nobody", |lab| Box::pin(r3_nobody(lab))),
        Case::new("r3 a tag that nobody can have is an error", |lab| Box::pin(r3_wrong_tag(lab))),
        Case::new("r3 a value arrives as JSON text", |lab| Box::pin(r3_json(lab))),
        Case::new("r3 flaw9 pain10 a value is written once, however many get it", |lab| {
            Box::pin(r3_written(lab))
        }),
        Case::new("r3 messages arrive in the order in which they were sent", |lab| Box::pin(r3_order(lab))),
        Case::new("r3 a thousand sockets get it, each once", |lab| Box::pin(r3_thousand(lab))),
        Case::new("binary messages arrive binary and texts as texts", |lab| Box::pin(binary_sent(lab))),
        Case::new("binary messages of a member are passed on as they are", |lab| {
            Box::pin(binary_relayed(lab))
        }),
    ]
}

async fn r3_except_me<D: Driver>(lab: &Lab<D>) -> Outcome {
    let (mut ann, mut bob) = (lab.join("a", &[]).await?, lab.join("a", &[]).await?);
    let mut cid = lab.join("a", &[]).await?;
    let send = json!([{"room": {"broadcast": {"text": "hi", "except_me": true}}}]);
    // Ann hears the answer and nothing before it.
    same("the report", ask(&mut ann, &send).await?, [all_of(2)])?;
    bob.hears_text("bob", "hi").await?;
    cid.hears_text("cid", "hi").await
}

async fn r3_except<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut ann = lab.join("a", &[("tag", "x")]).await?;
    let mut bob = lab.join("a", &[("tag", "y"), ("tag", "z")]).await?;
    let mut cid = lab.join("a", &[("tag", "z")]).await?;
    let send = json!({"text": "hi", "except": ["x", "y"]});
    same("the report", lab.broadcast("a", send).await?, all_of(1))?;
    cid.hears_text("cid", "hi").await?;
    same("after it", lab.broadcast("a", json!({"text": "all"})).await?, all_of(3))?;
    for client in [&mut ann, &mut bob, &mut cid] {
        client.hears_text("the next one", "all").await?;
    }
    Ok(())
}

async fn r3_to<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut ann = lab.join("a", &[("tag", "x")]).await?;
    let mut bob = lab.join("a", &[("tag", "y")]).await?;
    same("to x", lab.broadcast("a", json!({"text": "x", "to": ["x"]})).await?, all_of(1))?;
    let both = json!({"text": "y", "to": ["x", "y"], "except": ["x"]});
    same("to both but x", lab.broadcast("a", both).await?, all_of(1))?;
    ann.hears_text("ann", "x").await?;
    bob.hears_text("bob", "y").await
}

async fn r3_once<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut ann = lab.join("a", &[("tag", "x"), ("tag", "y"), ("tag", "z")]).await?;
    let mut bob = lab.join("a", &[("tag", "y")]).await?;
    let send = json!({"text": "one", "to": ["x", "y", "z", "x"]});
    same("the report", lab.broadcast("a", send).await?, all_of(2))?;
    lab.broadcast("a", json!({"text": "two"})).await?;
    for client in [&mut ann, &mut bob] {
        client.hears_text("the message", "one").await?;
        client.hears_text("the next one", "two").await?;
    }
    Ok(())
}

async fn r3_nobody<D: Driver>(lab: &Lab<D>) -> Outcome {
    same("an empty room", lab.broadcast("a", json!({"text": "hi"})).await?, all_of(0))?;
    let _ann = lab.join("a", &[("tag", "x")]).await?;
    same("a tag", lab.broadcast("a", json!({"text": "hi", "to": ["y"]})).await?, all_of(0))
}

async fn r3_wrong_tag<D: Driver>(lab: &Lab<D>) -> Outcome {
    let send = json!({"room": {"broadcast": {"text": "hi", "to": ["x".repeat(257)]}}});
    same("the kind", lab.refused("a", send).await?.kind, "Limit")
}

async fn r3_json<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut ann = lab.join("a", &[]).await?;
    for value in [json!({"a": [1.5, "\u{1F600}\n\"", null]}), json!("text"), json!(null), json!(-7)] {
        same("the report", lab.broadcast("a", json!({"json": value})).await?, all_of(1))?;
        hears_json(&mut ann, "the value", &value).await?;
    }
    Ok(())
}

async fn r3_written<D: Driver>(lab: &Lab<D>) -> Outcome {
    let (mut joined, mut entered) = (Vec::new(), Vec::new());
    for n in 0..5 {
        joined.push(lab.join("a", &[]).await?);
        entered.push(lab.join("a", &[("follow", "1"), ("tag", &n.to_string())]).await?);
    }
    same("how often", lab.tell("a", json!({"room": "written"})).await?, [1, 1])?;
    for client in &mut joined {
        client.hears_text("the broadcast", "\"counted\"").await?;
    }
    for client in &mut entered {
        same("the hello", &next(client).await?["t"], "hello")?;
        client.hears_text("the broadcast", "\"counted\"").await?;
        same("what was published", &next(client).await?["d"], "counted")?;
    }
    Ok(())
}

async fn r3_order<D: Driver>(lab: &Lab<D>) -> Outcome {
    let (mut ann, mut bob) = (lab.join("a", &[]).await?, lab.join("a", &[]).await?);
    let sends: Vec<_> = (0..100).map(|n| json!({"room": {"broadcast": {"text": n.to_string()}}})).collect();
    lab.tell("a", json!(sends)).await?;
    for n in 0..100 {
        ann.hears_text("ann", &n.to_string()).await?;
        bob.hears_text("bob", &n.to_string()).await?;
    }
    Ok(())
}

async fn r3_thousand<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut clients = Vec::new();
    for _ in 0..1_000 {
        clients.push(lab.join("a", &[]).await?);
    }
    same("the report", lab.broadcast("a", json!({"text": "one"})).await?, all_of(1_000))?;
    lab.broadcast("a", json!({"text": "two"})).await?;
    for client in &mut clients {
        client.hears_text("the message", "one").await?;
        client.hears_text("the next one", "two").await?;
    }
    Ok(())
}

async fn binary_sent<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut ann = lab.join("a", &[]).await?;
    let bytes: Vec<u8> = (0..=255).collect();
    for bytes in [bytes, vec![], b"text".to_vec()] {
        lab.broadcast("a", json!({"bytes": bytes})).await?;
        ann.hears("bytes", Received::Message(Message::binary(bytes))).await?;
    }
    for text in ["", "é\0"] {
        lab.broadcast("a", json!({"text": text})).await?;
        ann.hears_text("a text", text).await?;
    }
    Ok(())
}

async fn binary_relayed<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.configure("a", json!({"relay": true})).await?;
    let (mut ann, mut bob) = (lab.join("a", &[]).await?, lab.join("a", &[]).await?);
    for message in [Message::binary(vec![0, 255, 10]), Message::text("\0"), Message::binary(vec![])] {
        ann.send(message.clone()).await?;
        bob.hears("bob", Received::Message(message)).await?;
    }
    Ok(())
}
