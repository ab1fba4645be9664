//! Who is sent what, what becomes of it, and when it leaves.

use crate::{
    feeds::{Feeds, NOBODY, ONE, parts},
    stream::Ask,
};
use do_core::testing::{Case, Driver, Lab, Outcome, same};
use serde_json::{Value, json};

pub(super) fn cases<D: Driver>() -> Vec<Case<D>> {
    vec![
        Case::new("s1 flaw16 a broadcast is for everyone, and says what became of it", |lab| {
            Box::pin(everyone(lab))
        }),
        Case::new("s1 topics, exceptions and filters choose", |lab| Box::pin(chosen(lab))),
        Case::new("flaw9 an event is encoded once, however many it is for", |lab| Box::pin(once(lab))),
        Case::new("flaw3 names and ids that would forge are refused, and nothing is sent", |lab| {
            Box::pin(forged(lab))
        }),
        Case::new("flaw4 w1 w2 w3 w4 data of any line ends arrives whole, in one event", |lab| {
            Box::pin(lines(lab))
        }),
        Case::new("w4 o3 an event without data is no event, one with empty data is", |lab| {
            Box::pin(empty(lab))
        }),
        Case::new("w5 the id of an event of the application stays until the next", |lab| Box::pin(ids(lab))),
        Case::new("c4 what is sent in a turn with writes arrives in order with all else", |lab| {
            Box::pin(written(lab))
        }),
        Case::new("c4 what is broadcast in a turn whose commit fails never arrives", |lab| {
            Box::pin(undone(lab))
        }),
        Case::new("c4 what is published in a turn whose commit fails never was", |lab| {
            Box::pin(unpublished(lab))
        }),
    ]
}

async fn everyone<D: Driver>(lab: &Lab<D>) -> Outcome {
    same("nobody", lab.broadcast("a", "hi").await?, NOBODY)?;
    let mut ann = Ask::of("a").id("ann").ready(lab).await?;
    let mut bob = Ask::of("a").id("bob").topic("x").ready(lab).await?;
    let _other_object = Ask::of("b").ready(lab).await?;
    same("two", lab.broadcast("a", "one").await?, [2, 2, 0, 0, 0])?;
    same("one", lab.send("a", json!({"to": ["bob", {"event": "e", "data": "two"}]})).await?, ONE)?;
    same("a stranger", lab.send("a", json!({"to": ["cid", {"data": "three"}]})).await?, NOBODY)?;
    lab.broadcast("a", "four").await?;
    ann.hears("ann", ["one", "four"]).await?;
    bob.hears("bob", ["one"]).await?;
    let event = bob.event().await?;
    same("bob's own", (&*event.event, &*event.data), ("e", "two"))?;
    bob.hears("bob", ["four"]).await?;
    same("delivered", lab.stats("a", ["delivered", "dropped", "connections"]).await?, [5, 0, 2])
}

async fn chosen<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut ann = Ask::of("a").id("ann").topic("x").ready(lab).await?;
    let mut bob = Ask::of("a").id("bob").topic("x").topic("y").ready(lab).await?;
    let mut cid = Ask::of("a").id("cid").ready(lab).await?;
    let send = async |what: Value, expected: [usize; 5]| {
        same(&what.to_string(), lab.send("a", json!({"broadcast": what})).await?, expected)
    };
    send(json!({"data": "1", "to": ["x"]}), [2, 2, 0, 0, 0]).await?;
    send(json!({"data": "2", "to": ["y"]}), ONE).await?;
    send(json!({"data": "3", "to": ["x", "y"]}), [2, 2, 0, 0, 0]).await?;
    send(json!({"data": "4", "to": ["z"]}), NOBODY).await?;
    send(json!({"data": "5", "except": ["ann"]}), [2, 2, 0, 0, 0]).await?;
    send(json!({"data": "6", "except": ["ann", "bob", "nobody"]}), ONE).await?;
    send(json!({"data": "7", "begins": "b"}), ONE).await?;
    send(json!({"data": "8", "to": ["x"], "except": ["bob"], "begins": ""}), ONE).await?;
    send(json!({"data": "9", "to": ["x"], "begins": "c"}), NOBODY).await?;
    send(json!({"data": "10"}), [3, 3, 0, 0, 0]).await?;
    ann.hears("ann", [1, 3, 8, 10]).await?;
    bob.hears("bob", [1, 2, 3, 5, 7, 10]).await?;
    cid.hears("cid", [5, 6, 10]).await
}

async fn once<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.configure("a", json!({"history": {}})).await?;
    let mut streams = Vec::new();
    for _ in 0..20 {
        streams.push(Ask::of("a").ready(lab).await?);
    }
    let before = lab.stats("a", ["encoded", "delivered"]).await?;
    lab.broadcast("a", "one").await?;
    lab.publish("a", "two").await?;
    let after = lab.stats("a", ["encoded", "delivered"]).await?;
    same("encoded, delivered", [after[0] - before[0], after[1] - before[1]], [2, 40])?;
    for stream in &mut streams {
        stream.hears("each", ["one", "two"]).await?;
    }
    Ok(())
}

async fn forged<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.configure("a", json!({"history": {}})).await?;
    let mut stream = Ask::of("a").ready(lab).await?;
    for field in ["event", "id"] {
        for bad in ["a\ndata: forged", "a\rdata: forged", "a\r\ndata: forged\r\n\r\n", "a\0b", "\n", "\r"] {
            for how in ["broadcast", "publish"] {
                let thrown = lab.refused("a", json!({"send": {how: {field: bad, "data": "x"}}})).await?;
                same(&format!("{field} {bad:?}"), thrown.kind, "Invalid")?;
            }
        }
    }
    let thrown = lab.refused("a", json!({"send": {"publish": {"id": "own", "data": "x"}}})).await?;
    same("an id of its own", thrown.kind, "Invalid")?;
    let position = lab.publish("a", "next").await?;
    same("the first number", parts(&position)?.1, 1)?;
    stream.hears("nothing but", ["next"]).await?;
    same("encoded", lab.stats("a", ["encoded"]).await?, [1])
}

async fn lines<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut stream = Ask::of("a").ready(lab).await?;
    let cases = [
        ("a\nb\rc\r\nd", "a\nb\nc\nd"),
        ("\n", "\n"),
        ("\r\n\r\n", "\n\n"),
        ("end\n", "end\n"),
        ("  two spaces", "  two spaces"),
        ("id: 7\n\nevent: forged\rdata: x", "id: 7\n\nevent: forged\ndata: x"),
        ("\u{feff}bom", "\u{feff}bom"),
        (":comment\n:", ":comment\n:"),
        ("nul\0\u{e9}\u{2026}\u{1f600}", "nul\0\u{e9}\u{2026}\u{1f600}"),
    ];
    for (sent, expected) in cases {
        lab.broadcast("a", sent).await?;
        let event = stream.event().await?;
        same(&format!("{sent:?}"), (&*event.event, &*event.data, &*event.id), ("message", expected, ""))?;
    }
    Ok(())
}

async fn empty<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut stream = Ask::of("a").ready(lab).await?;
    lab.send("a", json!({"broadcast": {"event": "nothing"}})).await?;
    lab.broadcast("a", "").await?;
    let event = stream.event().await?;
    same("the event", (&*event.event, &*event.data), ("message", ""))
}

async fn ids<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut stream = Ask::of("a").ready(lab).await?;
    for (event, expected) in [
        (json!({"id": "one", "data": "1"}), "one"),
        (json!({"data": "2"}), "one"),
        (json!({"id": "", "data": "3"}), ""),
        (json!({"id": "\u{2026}", "data": "4"}), "\u{2026}"),
    ] {
        lab.send("a", json!({ "broadcast": event })).await?;
        same("the id", stream.event().await?.id, expected)?;
    }
    lab.send("a", json!({"broadcast": {"id": "alone"}})).await?;
    lab.broadcast("a", "5").await?;
    same("the id of what had no data", stream.event().await?.id, "alone")
}

fn told(data: &str) -> Value {
    json!({"send": {"broadcast": {"data": data}}})
}

async fn written<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut stream = Ask::of("a").id("ann").ready(lab).await?;
    lab.tell("a", json!([told("1"), {"written": [told("2"), told("3")]}, told("4")])).await?;
    lab.tell("a", told("5")).await?;
    lab.tell("a", json!({"written": [told("6"), {"feed": {"close": "ann"}}]})).await?;
    stream.hears("in order", 1..=6).await?;
    stream.ends().await
}

async fn undone<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut stream = Ask::of("a").ready(lab).await?;
    lab.broadcast("a", "before").await?;
    stream.hears("before it", ["before"]).await?;
    lab.refused("a", json!({"undone": [told("never")]})).await?;
    stream.is_over().await?;
    // The next instance goes on.
    let mut stream = Ask::of("a").ready(lab).await?;
    same("a broadcast", lab.broadcast("a", "after").await?, ONE)?;
    stream.hears("after it", ["after"]).await
}

async fn unpublished<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.configure("a", json!({"history": {}})).await?;
    let mut stream = Ask::of("a").ready(lab).await?;
    let position = lab.publish("a", "kept").await?;
    stream.hears("before it", ["kept"]).await?;
    lab.refused("a", json!({"undone": [{"send": {"publish": {"data": "never"}}}]})).await?;
    stream.is_over().await?;
    // Its history was in memory.
    let mut stream = Ask::of("a").after(&position).ready(lab).await?;
    same("what is lost", stream.reset().await?, json!({"lost": null}))?;
    lab.publish("a", "after").await?;
    stream.hears("after it", ["after"]).await
}
