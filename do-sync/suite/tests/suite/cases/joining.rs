//! R1: who comes in, and as what.

use crate::rooms::{Rooms, all_of, hears_json};
use do_core::testing::{
    Case, Client, ClientExt, Driver, Exchange, Fault, Head, HostKind, Lab, Opened, Outcome, Thrown, both,
    holds, same,
};
use http::{Method, Request};
use serde_json::json;

pub(super) fn cases<D: Driver>() -> Vec<Case<D>> {
    vec![
        Case::new("r1 an upgrade is accepted with its tags and its attachment", |lab| {
            Box::pin(r1_accepted(lab))
        }),
        Case::new("r1 a POST to the notify path is broadcast as JSON", |lab| Box::pin(r1_notify(lab))),
        Case::new("r1 another address is not found", |lab| Box::pin(r1_not_found(lab))),
        Case::new("r1 a request for the room that is no upgrade is told what is spoken there", |lab| {
            Box::pin(r1_no_upgrade(lab))
        })
        .shows("upgrade-header"),
        Case::new("r1 flaw12 a full room refuses until somebody leaves", |lab| Box::pin(r1_full(lab))),
        Case::new("r1 flaw11 a socket with all ten tags is refused and is nowhere", |lab| {
            Box::pin(r1_ten_tags(lab))
        }),
        Case::new("r1 flaw11 a tag that is too long is refused before anybody is in", |lab| {
            Box::pin(r1_long_tag(lab))
        }),
        Case::new("r1 many may join at once", |lab| Box::pin(r1_at_once(lab))),
        Case::new("rooms of one object do not hear each other", |lab| Box::pin(rooms_apart(lab))),
        Case::new("rooms may share a socket", |lab| Box::pin(rooms_shared(lab))),
        Case::new("rooms may be all sockets of the object", |lab| Box::pin(rooms_all(lab))),
    ]
}

async fn r1_accepted<D: Driver>(lab: &Lab<D>) -> Outcome {
    let _ann = lab.join("a", &[("tag", "editors"), ("tag", "ann"), ("attach", "Ann")]).await?;
    let _bob = lab.join("a", &[]).await?;
    let look = json!([{"room": "tags"}, {"room": {"attachments": ["ann"]}}, {"room": "count"}]);
    same("tags, attachment, count", lab.tell("a", look).await?, json!([[["ann", "editors"], []], ["Ann"], 2]))
}

async fn r1_notify<D: Driver>(lab: &Lab<D>) -> Outcome {
    let (mut ann, mut bob) = (lab.join("a", &[]).await?, lab.join("a", &[("tag", "t")]).await?);
    let _elsewhere = lab.join("b", &[]).await?;
    let value = json!({"changed": ["a.txt", 1, null, "é"]});
    same("the report", lab.value(&lab.address("/notify", "a"), &value).await?, all_of(2))?;
    hears_json(&mut ann, "ann", &value).await?;
    hears_json(&mut bob, "bob", &value).await
}

/// The status of a GET.
async fn get<D: Driver>(lab: &Lab<D>, path: &str) -> Result<http::Response<()>, Fault> {
    let head: Head = Request::builder().method(Method::GET).uri(path).body(())?;
    lab.driver().begin(head).await?.head().await
}

async fn r1_not_found<D: Driver>(lab: &Lab<D>) -> Outcome {
    for path in ["/", "/rooms/a", "/room"] {
        let (status, _) = lab.driver().post(path, b"{}".to_vec()).await?;
        same(&format!("POST {path}"), status, 404)?;
    }
    for path in ["/".to_owned(), "/nothing".to_owned(), lab.address("/notify", "a")] {
        same(&format!("GET {path}"), get(lab, &path).await?.status().as_u16(), 404)?;
    }
    match lab.driver().open("/nothing").await? {
        Opened::Refused(status, _) => same("an upgrade", status, 404),
        Opened::Client(_) => Err(Fault::new("it was opened")),
    }
}

async fn r1_no_upgrade<D: Driver>(lab: &Lab<D>) -> Outcome {
    let answer = get(lab, &lab.address("/room", "a")).await?;
    let header = |name: &str| answer.headers().get(name).and_then(|value| value.to_str().ok());
    let told = (answer.status().as_u16(), header("upgrade"), header("sec-websocket-version"));
    let upgrade = (lab.driver().kind() != HostKind::Workerd).then_some("websocket");
    same("status and headers", told, (426, upgrade, "13"))
}

async fn r1_full<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.configure("a", json!({"max_sockets": 2})).await?;
    let mut ann = lab.join("a", &[]).await?;
    let _bob = lab.join("a", &[]).await?;
    match lab.driver().open(&lab.queried(&lab.address("/room", "a"), &[])).await? {
        Opened::Client(_) => return Err(Fault::new("it was opened")),
        Opened::Refused(status, _) => same("the status", status, 503)?,
    }
    same("the report", lab.broadcast("a", json!({"text": "hi"})).await?, all_of(2))?;
    ann.hears_text("ann", "hi").await?;
    ann.close(Some((1_000, ""))).await?;
    lab.noted("a", "close", 1).await?;
    lab.join("a", &[]).await.map(drop)
}

async fn r1_ten_tags<D: Driver>(lab: &Lab<D>) -> Outcome {
    let tags = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"].map(|tag| ("tag", tag));
    let path = lab.queried(&lab.address("/room", "a"), &tags);
    match lab.driver().open(&path).await? {
        Opened::Client(_) => return Err(Fault::new("it was opened")),
        Opened::Refused(status, body) => {
            let thrown: std::collections::BTreeMap<String, Thrown> = serde_json::from_slice(&body)?;
            let kinds: Vec<_> = thrown.values().map(|thrown| thrown.kind.as_str()).collect();
            same("the refusal", (status, kinds), (500, ["Limit"]))?;
        }
    }
    same("the count", lab.tell("a", json!({"room": "count"})).await?, json!(0))?;
    let _nine = lab.join("a", &tags[..9]).await?;
    same("the count with nine", lab.tell("a", json!({"room": "count"})).await?, json!(1))
}

async fn r1_long_tag<D: Driver>(lab: &Lab<D>) -> Outcome {
    let (fits, long) = ("x".repeat(256), "x".repeat(257));
    for query in [&[("tag", long.as_str())][..], &[("tag", &long), ("member", "ann")], &[("in", &long)]] {
        match lab.driver().open(&lab.queried(&lab.address("/room", "a"), query)).await? {
            Opened::Refused(status, _) => same("the status", status, 500)?,
            Opened::Client(_) => return Err(Fault::new("it was opened")),
        }
    }
    let look = json!([{"room": "count"}, {"members": "presence"}]);
    same("who is in", lab.tell("a", look).await?, json!([0, []]))?;
    let mut ann = lab.join("a", &[("tag", &fits), ("member", "ann")]).await?;
    ann.receive().await?;
    lab.broadcast("a", json!({"text": "hi", "to": [fits]})).await?;
    ann.hears_text("by the longest tag", "hi").await
}

async fn r1_at_once<D: Driver>(lab: &Lab<D>) -> Outcome {
    let (one, two) = both(lab.join("a", &[("tag", "1")]), lab.join("a", &[("tag", "2")])).await;
    let (mut one, mut two) = (one?, two?);
    same("the report", lab.broadcast("a", json!({"text": "hi"})).await?, all_of(2))?;
    one.hears_text("one", "hi").await?;
    two.hears_text("two", "hi").await
}

async fn rooms_apart<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.configure("a", json!({"rooms": ["red", "blue"]})).await?;
    let mut main = lab.join("a", &[]).await?;
    let mut red = lab.join("a", &[("in", "red")]).await?;
    let mut blue = lab.join("a", &[("in", "blue")]).await?;
    for (room, text) in [("red", "to red"), ("blue", "to blue")] {
        let report = lab.tell_in("a", room, json!({"room": {"broadcast": {"text": text}}})).await?;
        same(room, report, all_of(1))?;
    }
    same("main", lab.broadcast("a", json!({"text": "to main"})).await?, all_of(1))?;
    main.hears_text("main", "to main").await?;
    red.hears_text("red", "to red").await?;
    blue.hears_text("blue", "to blue").await?;
    // What came first was all.
    lab.tell("a", json!({"room": {"broadcast": {"text": "again"}}})).await?;
    main.hears_text("main", "again").await?;
    same("the count of red", lab.tell_in("a", "red", json!({"room": "count"})).await?, json!(1))?;
    let unknown =
        lab.ask(&lab.queried(&lab.address("/room", "a"), &[("in", "green")]), &json!("log")).await?;
    holds(format!("no such room: {unknown:?}"), unknown.is_err())
}

async fn rooms_shared<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.configure("a", json!({"rooms": ["red", "blue"]})).await?;
    let mut both = lab.join("a", &[("in", "red"), ("tag", "blue")]).await?;
    let count = json!({"room": "count"});
    for room in ["red", "blue"] {
        same(room, lab.tell_in("a", room, count.clone()).await?, json!(1))?;
        lab.tell_in("a", room, json!({"room": {"broadcast": {"text": room}}})).await?;
        both.hears_text(room, room).await?;
    }
    same("the main room", lab.tell("a", count).await?, json!(0))
}

async fn rooms_all<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.configure("a", json!({"rooms": ["red"], "all": true})).await?;
    let mut plain = lab.join("a", &[]).await?;
    let mut red = lab.join("a", &[("in", "red")]).await?;
    same("all", lab.broadcast("a", json!({"text": "hi"})).await?, all_of(2))?;
    plain.hears_text("plain", "hi").await?;
    red.hears_text("red", "hi").await?;
    same("red", lab.tell_in("a", "red", json!({"room": "count"})).await?, json!(1))
}
