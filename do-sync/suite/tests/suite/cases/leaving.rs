//! R4 and R6: whoever goes keeps nobody from anything, is told once and counts no more.

use crate::rooms::{Rooms, all_of, hears_close, next};
use do_core::{
    limits,
    testing::{
        Case, Client, ClientExt, Driver, Fault, HostKind, Lab, Outcome, Received, closed, holds, same,
    },
};
use serde_json::{Value, json};
use std::time::Duration;

pub(super) fn cases<D: Driver>() -> Vec<Case<D>> {
    vec![
        Case::new("r4 flaw15 a dead socket does not keep the others from theirs and closes once", |lab| {
            Box::pin(r4_dead(lab))
        }),
        Case::new("r4 half of many die and the other half hears everything", |lab| Box::pin(r4_many(lab))),
        Case::new("r4 flaw10 pain21 a closing socket is in no broadcast and closes once", |lab| {
            Box::pin(r4_closing(lab))
        }),
        Case::new("flaw10 pain21 members who do not answer a close are not back after evictions", |lab| {
            Box::pin(unanswered(lab))
        })
        .evicts()
        .differs(&[HostKind::Kit, HostKind::Workerd], "close-wait"),
        Case::new("flaw10 pain21 whoever does not answer a close gets nothing more and is given up", |lab| {
            Box::pin(given_up(lab))
        })
        .differs(&[HostKind::Kit, HostKind::Tokio], "close-wait"),
        Case::new("flaw15 members who are lost have left, each once", |lab| Box::pin(lost_members(lab))),
        Case::new("flaw15 whoever breaks the protocol has left, once, and the others go on", |lab| {
            Box::pin(broken(lab))
        })
        .differs(&[HostKind::Tokio, HostKind::Workerd], "kit-wire"),
        Case::new("r4 whoever closes twice is told once", |lab| Box::pin(r4_twice(lab))),
        Case::new("r6 the close handler counts without the one that leaves", |lab| Box::pin(r6_count(lab))),
        Case::new("r6 of one that is lost too", |lab| Box::pin(r6_lost(lab))),
        Case::new("r6 the close that wakes the object counts without it too", |lab| Box::pin(r6_woken(lab)))
            .evicts(),
        Case::new("r6 of the last one nobody is left", |lab| Box::pin(r6_last(lab))),
    ]
}

async fn r4_dead<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut ann = lab.join("a", &[]).await?;
    let dead = lab.join("a", &[("tag", "dead")]).await?;
    let mut cid = lab.join("a", &[]).await?;
    dead.lose();
    let report = lab.broadcast("a", json!({"text": "one"})).await?;
    // Whether the loss is known by now is the network's business.
    let queued = report["matched"].as_u64().zip(report["dropped"].as_u64()).map(|(all, no)| all - no);
    holds(format!("{report}"), queued.is_some_and(|queued| queued == 2 || queued == 3))?;
    ann.hears_text("ann", "one").await?;
    cid.hears_text("cid", "one").await?;
    let noted = lab.noted("a", "close", 1).await?;
    let told = (&noted[0]["tags"], &noted[0]["code"], &noted[0]["clean"]);
    same("what was told", told, (["dead"], 1_006, false))?;
    lab.noted("a", "error", 0).await?;
    same("without it", lab.broadcast("a", json!({"text": "two"})).await?, all_of(2))?;
    ann.hears_text("ann", "two").await?;
    cid.hears_text("cid", "two").await
}

async fn r4_many<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut live = Vec::new();
    for n in 0..20 {
        live.push(lab.join("a", &[]).await?);
        let dead = lab.join("a", &[("tag", &n.to_string())]).await?;
        dead.lose();
    }
    for text in ["one", "two", "three"] {
        lab.broadcast("a", json!({"text": text})).await?;
    }
    for client in &mut live {
        for text in ["one", "two", "three"] {
            client.hears_text("who lives", text).await?;
        }
    }
    let noted = lab.noted("a", "close", 20).await?;
    let mut tags: Vec<_> = noted.iter().map(|line| line["tags"][0].to_string()).collect();
    tags.sort();
    tags.dedup();
    same("different ones", tags.len(), 20)?;
    same("the count", lab.tell("a", json!({"room": "count"})).await?, json!(20))
}

async fn r4_closing<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut ann = lab.join("a", &[]).await?;
    let mut gone = lab.join("a", &[("tag", "gone")]).await?;
    let commands = json!([
        {"room": {"close": [["gone"], 4_001, "go"]}}, {"room": {"broadcast": {"text": "hi"}}},
        {"room": "count"}, {"room": {"listed": "gone"}},
    ]);
    // The platform lists it as long as the peer has not answered.
    same("while it closes", lab.tell("a", commands).await?, json!([null, all_of(1), 1, 1]))?;
    gone.hears("who is closed", closed(4_001, "go")).await?;
    ann.hears_text("ann", "hi").await?;
    gone.close(Some((4_001, "go"))).await?;
    let noted = lab.noted("a", "close", 1).await?;
    same("what was told", (&noted[0]["code"], &noted[0]["clean"]), (4_001, true))
}

async fn r4_twice<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut ann = lab.join("a", &[("tag", "ann")]).await?;
    ann.close(Some((4_001, "once"))).await?;
    ann.hears("the answer", closed(4_001, "once")).await?;
    ann.lose();
    let noted = lab.noted("a", "close", 1).await?;
    same("what was told", (&noted[0]["code"], &noted[0]["reason"]), (4_001, "once"))
}

/// Ann hears what comes; neither the kicked bob nor the replaced connection of cid answers its close.
async fn unanswered<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut ann = lab.join("a", &[("member", "ann")]).await?;
    let mut bob = lab.join("a", &[("member", "bob")]).await?;
    let mut old = lab.join("a", &[("member", "cid")]).await?;
    let mut cid = lab.join("a", &[("member", "cid")]).await?;
    same("sockets", lab.tell("a", json!({"members": {"kick": ["bob", "go"]}})).await?, 1)?;
    cid.close(Some((1_000, ""))).await?;
    lab.noted("a", "close", 1).await?;
    for expected in ["hello", "joined", "joined", "left", "left"] {
        same("ann hears", &next(&mut ann).await?["t"], expected)?;
    }
    let look =
        json!([{"members": "presence"}, {"members": {"sockets": "bob"}}, {"members": {"sockets": "cid"}}]);
    for said in ["one", "two", "three"] {
        lab.evict().await.map_err(|fault| fault.during(said))?;
        lab.tell("a", json!({"history": {"publish": said}})).await?;
        same("ann hears what is said", &next(&mut ann).await?["d"], said)?;
        same("who is there", lab.tell("a", look.clone()).await?, json!([[{"id": "ann"}], 0, 0]))?;
    }
    same("who has left", departures(lab).await?, ["bob", "cid"])?;
    for (client, before, code) in [(&mut bob, 3, 4_501), (&mut old, 1, 4_500)] {
        for _ in 0..before {
            next(client).await?;
        }
        hears_close(client, "whoever was closed", code).await?;
    }
    Ok(())
}

async fn given_up<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut ann = lab.join("a", &[]).await?;
    let mut gone = lab.join("a", &[("tag", "gone")]).await?;
    let commands = json!([{"room": {"close": [["gone"], 4_001, "go"]}}, {"room": "count"}]);
    same("while it closes", lab.tell("a", commands).await?, json!([null, 1]))?;
    lab.advance(limits::CLOSE_WAIT - Duration::from_secs(1)).await?;
    same("the report", lab.broadcast("a", json!({"text": "on"})).await?, all_of(1))?;
    ann.hears_text("ann", "on").await?;
    same("before", lab.tell("a", json!({"room": {"listed": "gone"}})).await?, 1)?;
    lab.advance(Duration::from_secs(2)).await?;
    let told = lab.noted("a", "close", 1).await?;
    same("what was told", (&told[0]["tags"], &told[0]["clean"]), (["gone"], false))?;
    same("after", lab.tell("a", json!({"room": {"listed": "gone"}})).await?, 0)?;
    gone.hears("the close", closed(4_001, "go")).await?;
    gone.hears("and nothing else", Received::Lost).await
}

/// How often each has left, by the history.
async fn departures<D: Driver>(lab: &Lab<D>) -> Result<Vec<String>, Fault> {
    let told = lab.tell("a", json!({"history": {"messages": [null, 1_000]}})).await?;
    let entries = told["entries"].as_array().cloned().unwrap_or_default();
    let mut left: Vec<_> =
        entries.iter().filter_map(|entry| entry["left"]["member"].as_str().map(str::to_owned)).collect();
    left.sort();
    Ok(left)
}

async fn lost_members<D: Driver>(lab: &Lab<D>) -> Outcome {
    let _stays = lab.join("a", &[("member", "dan")]).await?;
    for member in ["ann", "bob", "cid"] {
        lab.join("a", &[("member", member)]).await?.lose();
    }
    lab.noted("a", "close", 3).await?;
    lab.noted("a", "error", 0).await?;
    same("who has left", departures(lab).await?, ["ann", "bob", "cid"])?;
    let look = json!([{"room": "count"}, {"members": "presence"}]);
    same("who is there", lab.tell("a", look).await?, json!([1, [{"id": "dan"}]]))
}

async fn broken<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut dan = lab.join("a", &[("member", "dan")]).await?;
    let mut ann = lab.join("a", &[("member", "ann")]).await?;
    for expected in ["hello", "joined"] {
        same("before", &next(&mut dan).await?["t"], expected)?;
    }
    // With a reserved bit.
    ann.frame(0xC1, b"hi").await?;
    let left = next(&mut dan).await?;
    same("dan hears", (&left["t"], &left["member"]), ("left", "ann"))?;
    lab.tell("a", json!({"history": {"publish": "on"}})).await?;
    same("and what comes next", &next(&mut dan).await?["d"], "on")?;
    drop(ann);
    lab.noted("a", "error", 1).await?;
    lab.noted("a", "close", 0).await?;
    same("who has left", departures(lab).await?, ["ann"])
}

/// The counts that the handler saw.
fn counts(line: &Value) -> (&Value, &Value) {
    (&line["count"], &line["without"])
}

async fn r6_count<D: Driver>(lab: &Lab<D>) -> Outcome {
    let _bob = lab.join("a", &[]).await?;
    let _cid = lab.join("a", &[]).await?;
    let mut ann = lab.join("a", &[]).await?;
    ann.close(Some((1_000, ""))).await?;
    let noted = lab.noted("a", "close", 1).await?;
    same("count and without", counts(&noted[0]), (2, 2))?;
    same("later", lab.tell("a", json!({"room": "count"})).await?, json!(2))
}

async fn r6_lost<D: Driver>(lab: &Lab<D>) -> Outcome {
    let _bob = lab.join("a", &[]).await?;
    let ann = lab.join("a", &[]).await?;
    ann.lose();
    let noted = lab.noted("a", "close", 1).await?;
    same("count and without", counts(&noted[0]), (1, 1))
}

async fn r6_woken<D: Driver>(lab: &Lab<D>) -> Outcome {
    let _bob = lab.join("a", &[]).await?;
    let mut ann = lab.join("a", &[]).await?;
    lab.evict().await?;
    ann.close(None).await?;
    let noted = lab.noted("a", "close", 1).await?;
    same("count and without", counts(&noted[0]), (1, 1))
}

async fn r6_last<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut ann = lab.join("a", &[]).await?;
    ann.close(Some((1_001, "page left"))).await?;
    let noted = lab.noted("a", "close", 1).await?;
    same("count and without", counts(&noted[0]), (0, 0))?;
    same("a broadcast", lab.broadcast("a", json!({"text": "hi"})).await?, all_of(0))
}
