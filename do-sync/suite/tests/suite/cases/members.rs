//! Members join and leave exactly once, whatever becomes of their connections.

use crate::rooms::{Rooms, SOON, ask, next};
use do_core::{
    Message,
    testing::{Case, Client, ClientExt, Driver, Fault, Lab, Opened, Outcome, closed, same},
};
use serde_json::{Value, json};
use std::time::Duration;

pub(super) fn cases<D: Driver>() -> Vec<Case<D>> {
    vec![
        Case::new("flaw7 members one of several sockets joins once and leaves with the last", |lab| {
            Box::pin(several(lab))
        }),
        Case::new("flaw7 members the newest connection replaces the older and nobody hears of it", |lab| {
            Box::pin(replaced(lab))
        }),
        Case::new("flaw7 members a duplicate and one too many are refused", |lab| Box::pin(refused(lab))),
        Case::new("d19 members the close that wakes the object is one leaving", |lab| Box::pin(woken(lab)))
            .evicts(),
        Case::new("d25 members whoever went with a crash is missed by the next", |lab| Box::pin(crash(lab)))
            .crashes(),
        Case::new("members who return within the grace have never left", |lab| Box::pin(returns(lab)))
            .evicts(),
        Case::new("members who return after a crash within the grace have never left", |lab| {
            Box::pin(returns_crashed(lab))
        })
        .crashes(),
        Case::new("members the grace ends by the alarm", |lab| Box::pin(grace_ends(lab))),
        Case::new("members the kicked are told to stay away and have left", |lab| Box::pin(kicked(lab))),
        Case::new("d27 members data and attachments survive eviction", |lab| Box::pin(data(lab))).evicts(),
        Case::new("members sockets that joined are foreign and hear nothing of members", |lab| {
            Box::pin(foreign(lab))
        }),
        Case::new("members rooms of one object have their own", |lab| Box::pin(rooms(lab))),
    ]
}

/// Comes in, and passes over the hello.
async fn enter<D: Driver>(lab: &Lab<D>, query: &[(&str, &str)]) -> Result<D::Client, Fault> {
    let mut client = lab.join("a", query).await?;
    same("the first frame", &next(&mut client).await?["t"], json!("hello"))?;
    Ok(client)
}

/// Hears that somebody joined, left, or is seen otherwise.
async fn hears<C: Client>(client: &mut C, kind: &str, member: &str) -> Outcome {
    let frame = next(client).await?;
    same("what is said", (&frame["t"], &frame["member"]), (&json!(kind), &json!(member)))
}

/// Who is there, as soon as it is so.
async fn there<D: Driver>(lab: &Lab<D>, expected: &[&str]) -> Outcome {
    let look = async || {
        let there = lab.tell("a", json!({"members": "presence"})).await?;
        Ok(there.as_array().map(|all| all.iter().map(|it| it["id"].clone()).collect::<Vec<_>>()))
    };
    let expected: Vec<Value> = expected.iter().map(|id| json!(id)).collect();
    lab.eventually("who is there", SOON, look, |there| there.as_ref() == Some(&expected)).await.map(drop)
}

/// All that was said of members, in order: `+ann`, `~ann`, `-ann`.
async fn said<D: Driver>(lab: &Lab<D>) -> Result<Vec<String>, Fault> {
    let told = lab.tell("a", json!({"history": {"messages": [null, 1_000]}})).await?;
    let said = told["entries"].as_array().into_iter().flatten().filter_map(|entry| {
        let kind = ["joined", "updated", "left"].into_iter().zip(["+", "~", "-"]);
        let mut found =
            kind.filter_map(|(kind, sign)| Some(format!("{sign}{}", entry[kind]["member"].as_str()?)));
        found.next()
    });
    Ok(said.collect())
}

async fn status<D: Driver>(lab: &Lab<D>, member: &str) -> Result<u16, Fault> {
    match lab.driver().open(&lab.queried(&lab.address("/room", "a"), &[("member", member)])).await? {
        Opened::Client(_) => Err(Fault::new("it was opened")),
        Opened::Refused(status, _) => Ok(status),
    }
}

async fn several<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.configure("a", json!({"members": {"duplicate": "allow"}})).await?;
    let mut bob = enter(lab, &[("member", "bob")]).await?;
    let mut first = enter(lab, &[("member", "ann")]).await?;
    let second = enter(lab, &[("member", "ann")]).await?;
    hears(&mut bob, "joined", "ann").await?;
    first.close(Some((1_000, ""))).await?;
    lab.noted("a", "close", 1).await?;
    there(lab, &["ann", "bob"]).await?;
    second.lose();
    hears(&mut bob, "left", "ann").await?;
    there(lab, &["bob"]).await?;
    same("what was said", said(lab).await?, ["+bob", "+ann", "-ann"])
}

async fn replaced<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut bob = enter(lab, &[("member", "bob")]).await?;
    let mut old = enter(lab, &[("member", "ann")]).await?;
    let mut new = enter(lab, &[("member", "ann")]).await?;
    hears(&mut bob, "joined", "ann").await?;
    old.hears("the old one", closed(4_500, "another connection took over")).await?;
    old.close(Some((4_500, ""))).await?;
    lab.noted("a", "close", 1).await?;
    same("sockets of hers", lab.tell("a", json!({"members": {"sockets": "ann"}})).await?, json!(1))?;
    new.close(None).await?;
    hears(&mut bob, "left", "ann").await?;
    same("what was said", said(lab).await?, ["+bob", "+ann", "-ann"])
}

async fn refused<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.configure("a", json!({"members": {"duplicate": "reject", "max_members": 2}})).await?;
    let ann = enter(lab, &[("member", "ann")]).await?;
    same("a duplicate", status(lab, "ann").await?, 409)?;
    let _bob = enter(lab, &[("member", "bob")]).await?;
    same("one too many", status(lab, "carl").await?, 503)?;
    ann.lose();
    there(lab, &["bob"]).await?;
    let _carl = enter(lab, &[("member", "carl")]).await?;
    same("what was said", said(lab).await?, ["+ann", "+bob", "-ann", "+carl"])
}

async fn woken<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut bob = enter(lab, &[("member", "bob")]).await?;
    let mut ann = enter(lab, &[("member", "ann")]).await?;
    hears(&mut bob, "joined", "ann").await?;
    lab.evict().await?;
    ann.close(Some((1_000, ""))).await?;
    hears(&mut bob, "left", "ann").await?;
    lab.noted("a", "close", 1).await?;
    there(lab, &["bob"]).await?;
    same("what was said", said(lab).await?, ["+bob", "+ann", "-ann"])
}

async fn crash<D: Driver>(lab: &Lab<D>) -> Outcome {
    let _gone = (enter(lab, &[("member", "ann")]).await?, enter(lab, &[("member", "bob")]).await?);
    lab.crash().await?;
    there(lab, &[]).await?;
    same("before anybody comes", said(lab).await?, ["+ann", "+bob"])?;
    let _bob = enter(lab, &[("member", "bob")]).await?;
    there(lab, &["bob"]).await?;
    same("after", said(lab).await?, ["+ann", "+bob", "-ann", "-bob", "+bob"])
}

async fn returns<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.configure("a", json!({"members": {"grace": 600_000}})).await?;
    let mut bob = enter(lab, &[("member", "bob")]).await?;
    let ann = enter(lab, &[("member", "ann"), ("data", "x")]).await?;
    hears(&mut bob, "joined", "ann").await?;
    ann.lose();
    lab.noted("a", "close", 1).await?;
    lab.evict().await?;
    there(lab, &["ann", "bob"]).await?;
    let mut ann = enter(lab, &[("member", "ann")]).await?;
    let me = json!([{"id": "ann", "data": "x", "attached": null}]);
    same("her data", ask(&mut ann, &json!([{"members": "me"}])).await?, me)?;
    same("what was said", said(lab).await?, ["+bob", "+ann"])
}

async fn returns_crashed<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.configure("a", json!({"members": {"grace": 600_000}})).await?;
    let _gone = (enter(lab, &[("member", "ann")]).await?, enter(lab, &[("member", "bob")]).await?);
    lab.crash().await?;
    let _bob = enter(lab, &[("member", "bob")]).await?;
    let _ann = enter(lab, &[("member", "ann")]).await?;
    there(lab, &["ann", "bob"]).await?;
    same("what was said", said(lab).await?, ["+ann", "+bob"])
}

async fn grace_ends<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.configure("a", json!({"members": {"grace": 1_500}})).await?;
    let mut bob = enter(lab, &[("member", "bob")]).await?;
    let ann = enter(lab, &[("member", "ann")]).await?;
    hears(&mut bob, "joined", "ann").await?;
    ann.lose();
    lab.eventually(
        "the log",
        SOON,
        async || lab.tell("a", json!("log")).await,
        |log| log.to_string().contains("close"),
    )
    .await?;
    lab.advance(Duration::from_secs(2)).await?;
    hears(&mut bob, "left", "ann").await?;
    there(lab, &["bob"]).await?;
    same("what was said", said(lab).await?, ["+bob", "+ann", "-ann"])
}

async fn kicked<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut bob = enter(lab, &[("member", "bob")]).await?;
    let mut ann = enter(lab, &[("member", "ann")]).await?;
    hears(&mut bob, "joined", "ann").await?;
    same("sockets", lab.tell("a", json!({"members": {"kick": ["ann", "rude"]}})).await?, json!(1))?;
    there(lab, &["bob"]).await?;
    hears(&mut ann, "left", "ann").await?;
    ann.hears("the kicked", closed(4_501, "rude")).await?;
    ann.close(Some((4_501, ""))).await?;
    hears(&mut bob, "left", "ann").await?;
    lab.noted("a", "close", 1).await?;
    same("nobody", lab.tell("a", json!({"members": {"kick": ["ann", "rude"]}})).await?, json!(0))?;
    same("what was said", said(lab).await?, ["+bob", "+ann", "-ann"])
}

async fn data<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut ann = enter(lab, &[("member", "ann"), ("data", "x"), ("attach", "private")]).await?;
    let me = json!([{"members": "me"}]);
    let expected = json!([{"id": "ann", "data": "x", "attached": "private"}]);
    same("at first", ask(&mut ann, &me).await?, expected)?;
    let mut bob = enter(lab, &[("member", "bob")]).await?;
    hears(&mut ann, "joined", "bob").await?;
    let change = json!([{"members": {"data": {"n": 7}}}, {"members": {"attach": [1]}}]);
    ann.send(Message::text(change.to_string())).await?;
    hears(&mut ann, "updated", "ann").await?;
    same("the answer", next(&mut ann).await?, json!([3, null]))?;
    hears(&mut bob, "updated", "ann").await?;
    lab.evict().await?;
    let expected = json!([{"id": "ann", "data": {"n": 7}, "attached": [1]}]);
    same("later", ask(&mut ann, &me).await?, expected)?;
    let there = lab.tell("a", json!({"members": "presence"})).await?;
    same("who is there", there, json!([{"id": "ann", "data": {"n": 7}}, {"id": "bob"}]))
}

async fn foreign<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut foreign = lab.join("a", &[("attach", "mine")]).await?;
    let ann = enter(lab, &[("member", "ann")]).await?;
    let me = json!([{"id": null, "data": null, "attached": null}]);
    same("who it is", ask(&mut foreign, &json!([{"members": "me"}])).await?, me)?;
    let answer = ask(&mut foreign, &json!([{"members": {"attach": 1}}])).await?;
    same("attaching", &answer["error"]["kind"], json!("NotFound"))?;
    let attachments = lab.tell("a", json!({"room": {"attachments": []}})).await?;
    same("its own", attachments.to_string().contains("\"mine\""), true)?;
    ann.lose();
    there(lab, &[]).await?;
    lab.broadcast("a", json!({"text": "all"})).await?;
    foreign.hears_text("it hears what is for all", "all").await
}

async fn rooms<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.configure("a", json!({"rooms": ["red"]})).await?;
    let here = enter(lab, &[("member", "ann")]).await?;
    let _red = enter(lab, &[("member", "ann"), ("in", "red")]).await?;
    here.lose();
    there(lab, &[]).await?;
    let red = lab.tell_in("a", "red", json!({"members": "presence"})).await?;
    same("in the other room", red, json!([{"id": "ann"}]))?;
    same("what was said", said(lab).await?, ["+ann", "-ann"])
}
