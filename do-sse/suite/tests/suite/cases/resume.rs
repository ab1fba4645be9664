//! Clients that come back are shown what they missed, or told that it is gone.

use crate::{
    feeds::{A_WHILE, Feeds, ONE, SOON, parts},
    stream::{Ask, Stream, ms},
};
use do_core::testing::{Case, Driver, Fault, HostKind, Lab, Leave, Local, Outcome, all, holds, same};
use serde_json::{Value, json};

pub(super) fn cases<D: Driver>() -> Vec<Case<D>> {
    vec![
        Case::new("resume flaw5 whoever comes back is shown what was missed, once and in order", |lab| {
            Box::pin(resumes(lab, Kept::InMemory))
        }),
        Case::new("resume flaw5 by the parameter, and the header counts where both are", |lab| {
            Box::pin(by_parameter(lab, Kept::InMemory))
        }),
        Case::new("resume flaw19 who was cut off before the first event missed nothing", |lab| {
            Box::pin(before_the_first(lab, Kept::InMemory))
        }),
        Case::new("resume flaw5 whoever was away for too long is told how much is gone", |lab| {
            Box::pin(gap(lab, Kept::InMemory))
        }),
        Case::new("resume flaw5 a position that is none, or of elsewhere, is a gap of unknown size", |lab| {
            Box::pin(unknown(lab, Kept::InMemory))
        }),
        Case::new("resume w10 raw ids that are not ASCII are told apart", |lab| Box::pin(raw(lab))),
        Case::new("resume the snapshot is for newcomers and after a gap", |lab| Box::pin(snapshot(lab))),
        Case::new("resume newcomers are shown the latest where that is asked for", |lab| {
            Box::pin(replay(lab, Kept::InMemory))
        }),
        Case::new("resume topics hold for what was missed too", |lab| Box::pin(topics(lab, Kept::InMemory))),
        Case::new("resume what is too old is gone", |lab| Box::pin(old(lab, Kept::InMemory))),
        Case::new("resume a long history comes in pages, and nothing is lost or twice", |lab| {
            Box::pin(pages(lab, Kept::InMemory))
        }),
        Case::new("resume a history in memory ends with its instance", |lab| Box::pin(crashed(lab)))
            .crashes(),
        Case::new("resume a history in memory ends with its instance, also when that was idle", |lab| {
            Box::pin(evicted(lab))
        })
        .evicts(),
        Case::new("resume the application's own history", |lab| Box::pin(backlog(lab))),
        Case::new(
            "resume s2 what is published while many come back is lost by none and twice for none",
            |lab| Box::pin(storm(lab, Kept::InMemory, 100)),
        ),
        Case::new("resume flaw5 a thousand come back at once, again and again", |lab| {
            Box::pin(storm(lab, Kept::InMemory, 1_000))
        })
        .differs(&[HostKind::Kit, HostKind::Tokio], "many-clients"),
    ]
}

const HISTORY: &str = "a";

/// Where a history is: the same is promised of either.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kept {
    InMemory,
    InDatabase,
}

/// With a history of this kind.
pub(super) async fn keeps<D: Driver>(lab: &Lab<D>, kept: Kept, history: Value) -> Outcome {
    let stored = matches!(kept, Kept::InDatabase);
    lab.configure(HISTORY, json!({ "history": history, "stored": stored })).await
}

/// Publishes the numbers from one to before another.
pub(super) async fn publish<D: Driver>(lab: &Lab<D>, from: u64, to: u64) -> Outcome {
    let told = (from..to).map(|n| json!({"send": {"publish": {"data": n.to_string()}}}));
    lab.tell(HISTORY, Value::Array(told.collect())).await.map(drop)
}

pub(super) async fn resumes<D: Driver>(lab: &Lab<D>, kept: Kept) -> Outcome {
    keeps(lab, kept, json!({})).await?;
    let mut stream = Ask::of("a").ready(lab).await?;
    publish(lab, 1, 4).await?;
    stream.hears("live", 1..3).await?;
    let id = stream.last_id().to_owned();
    stream.leave(Leave::Close);
    publish(lab, 4, 7).await?;
    let mut stream = Ask::of("a").after(&id).open(lab).await?;
    let ready = stream.event().await?;
    same("where it goes on", (&*ready.event, &ready.id), ("ready", &id))?;
    publish(lab, 7, 9).await?;
    for n in 3..9 {
        let event = stream.event().await?;
        same("what was missed", (&*event.data, parts(&event.id)?.1), (&*n.to_string(), n))?;
    }
    // What was not numbered is not kept.
    lab.broadcast("a", "passing").await?;
    stream.hears("live", ["passing"]).await?;
    same("the position", stream.last_id(), lab.tell("a", json!({"feed": "position"})).await?)?;
    same("statistics", lab.stats("a", ["resumed", "gaps", "replayed"]).await?, [1, 0, 4])?;
    let id = stream.last_id().to_owned();
    let mut stream = Ask::of("a").after(&id).ready(lab).await?;
    publish(lab, 9, 10).await?;
    stream.hears("nothing was missed", [9]).await
}

pub(super) async fn by_parameter<D: Driver>(lab: &Lab<D>, kept: Kept) -> Outcome {
    keeps(lab, kept, json!({})).await?;
    let mut first = Vec::new();
    for n in 1..=4 {
        first.push(lab.publish("a", &n.to_string()).await?);
    }
    let mut stream = Ask::of("a").query("lastEventId", &first[0]).ready(lab).await?;
    stream.hears("by the parameter", 2..=4).await?;
    // The address of an `EventSource` that comes back still has the parameter of the beginning.
    let mut stream = Ask::of("a").query("lastEventId", &first[0]).after(&first[2]).ready(lab).await?;
    stream.hears("by the header", [4]).await?;
    // Without a value it is none.
    let mut stream = Ask::of("a").query("lastEventId", "").header("last-event-id", b"").ready(lab).await?;
    publish(lab, 5, 6).await?;
    stream.hears("fresh", [5]).await
}

async fn before_the_first<D: Driver>(lab: &Lab<D>, kept: Kept) -> Outcome {
    keeps(lab, kept, json!({})).await?;
    publish(lab, 1, 4).await?;
    let stream = Ask::of("a").ready(lab).await?;
    let id = stream.last_id().to_owned();
    stream.leave(Leave::Reset);
    publish(lab, 4, 6).await?;
    let mut stream = Ask::of("a").after(&id).ready(lab).await?;
    stream.hears("what was missed", 4..6).await
}

pub(super) async fn gap<D: Driver>(lab: &Lab<D>, kept: Kept) -> Outcome {
    keeps(lab, kept, json!({"max_events": 5})).await?;
    let first = lab.publish("a", "1").await?;
    publish(lab, 2, 21).await?;
    let mut stream = Ask::of("a").after(&first).open(lab).await?;
    let ready = stream.event().await?;
    same(
        "a position that has a gap behind it is not to be remembered",
        (&*ready.event, &*ready.id),
        ("ready", ""),
    )?;
    same("what is gone", stream.reset().await?, json!({"lost": 14}))?;
    same("where it begins", parts(stream.last_id())?.1, 15)?;
    stream.hears("what is left", 16..21).await?;
    publish(lab, 21, 22).await?;
    stream.hears("live", [21]).await?;
    // The last one that is without a gap.
    let (epoch, _) = parts(&first)?;
    let mut stream = Ask::of("a").after(&format!("{epoch}-16")).ready(lab).await?;
    stream.hears("nothing is gone", 17..22).await?;
    let mut stream = Ask::of("a").after(&format!("{epoch}-15")).ready(lab).await?;
    same("one is gone", stream.reset().await?, json!({"lost": 1}))?;
    same("statistics", lab.stats("a", ["resumed", "gaps"]).await?, [1, 2])
}

pub(super) async fn unknown<D: Driver>(lab: &Lab<D>, kept: Kept) -> Outcome {
    keeps(lab, kept, json!({})).await?;
    let position = lab.publish("a", "1").await?;
    let (epoch, _) = parts(&position)?;
    let ahead = format!("{epoch}-7");
    let padded = format!(" {position} x");
    let ids = [
        "zzz-1",
        "1",
        "-",
        "x-y-z",
        "\u{e9}",
        &ahead,
        "99999999999999999999999999-1",
        &padded,
        &"9".repeat(4_000),
    ];
    for id in ids {
        let mut stream = Ask::of("a").after(id).ready(lab).await?;
        same(id, stream.reset().await?, json!({"lost": null}))?;
        same("where it begins", stream.last_id(), &position)?;
    }
    let mut stream = Ask::of("a").after(ids[0]).ready(lab).await?;
    stream.reset().await?;
    publish(lab, 2, 3).await?;
    stream.hears("live", [2]).await?;
    same("gaps", lab.stats("a", ["gaps", "resumed"]).await?, [10, 0])
}

async fn raw<D: Driver>(lab: &Lab<D>) -> Outcome {
    // The id of an application, which has its own history.
    lab.configure("a", json!({"backlog": 12})).await?;
    let mut stream = Ask::of("a").after("\u{2026}").ready(lab).await?;
    same("what is lost", stream.reset().await?, json!({"lost": null}))?;
    same("where it begins", stream.last_id(), "n12")?;
    let asked = lab.noted("a", "backlog").await?;
    same("what the application was asked", &asked[0]["after"], "\u{2026}")?;
    // Bytes that are no text are nobody's position, and no reason to fail.
    lab.configure("b", json!({"history": {}})).await?;
    let mut stream = Ask::of("b").header("last-event-id", b"\xff\xfe\x80").ready(lab).await?;
    same("what is lost", stream.reset().await?, json!({"lost": null}))?;
    let mut stream = Ask::of("b").query("lastEventId", "\u{2026}").ready(lab).await?;
    same("what is lost", stream.reset().await?, json!({"lost": null}))
}

async fn snapshot<D: Driver>(lab: &Lab<D>) -> Outcome {
    let state = json!({"members": ["ann"], "n": 1.5});
    lab.configure("a", json!({"history": {"max_events": 3, "replay": 2}, "snapshot": state})).await?;
    let first = lab.publish("a", "1").await?;
    publish(lab, 2, 11).await?;
    // Who is new gets it instead of a history.
    let mut fresh = Ask::of("a").ready(lab).await?;
    same("for who is new", fresh.reset().await?, json!({"lost": null, "snapshot": state}))?;
    same("where it begins", parts(fresh.last_id())?.1, 10)?;
    let id = fresh.last_id().to_owned();
    // Who missed something that is gone gets it, and needs none of what is before it.
    let mut late = Ask::of("a").after(&first).ready(lab).await?;
    same("after a gap", late.reset().await?, json!({"lost": 9, "snapshot": state}))?;
    let mut stranger = Ask::of("a").after("other-1").ready(lab).await?;
    same("for a stranger", stranger.reset().await?, json!({"lost": null, "snapshot": state}))?;
    // Who can go on does not.
    let mut resumed = Ask::of("a").after(&id).ready(lab).await?;
    publish(lab, 11, 12).await?;
    for stream in [&mut fresh, &mut late, &mut stranger, &mut resumed] {
        stream.hears("live", [11]).await?;
    }
    Ok(())
}

pub(super) async fn replay<D: Driver>(lab: &Lab<D>, kept: Kept) -> Outcome {
    keeps(lab, kept, json!({"replay": 3})).await?;
    publish(lab, 1, 3).await?;
    let mut stream = Ask::of("a").ready(lab).await?;
    stream.hears("all there is", 1..3).await?;
    publish(lab, 3, 9).await?;
    stream.hears("live", 3..9).await?;
    let mut stream = Ask::of("a").open(lab).await?;
    let ready = stream.event().await?;
    same("where it begins", parts(&ready.id)?.1, 5)?;
    stream.hears("the latest", 6..9).await?;
    publish(lab, 9, 10).await?;
    stream.hears("live", [9]).await
}

pub(super) async fn topics<D: Driver>(lab: &Lab<D>, kept: Kept) -> Outcome {
    keeps(lab, kept, json!({})).await?;
    let mut stream = Ask::of("a").topic("x").ready(lab).await?;
    let id = stream.last_id().to_owned();
    for (data, to) in [
        ("1", json!(["x"])),
        ("2", json!(["y"])),
        ("3", json!([])),
        ("4", json!(["y", "x"])),
        ("5", json!(["y"])),
    ] {
        lab.send("a", json!({"publish": {"data": data, "to": to}})).await?;
    }
    stream.hears("live", [1, 3, 4]).await?;
    let mut again = Ask::of("a").topic("x").after(&id).ready(lab).await?;
    again.hears("what was missed", [1, 3, 4]).await?;
    let mut none = Ask::of("a").after(&id).ready(lab).await?;
    none.hears("without a topic", [3]).await?;
    publish(lab, 6, 7).await?;
    for stream in [&mut stream, &mut again, &mut none] {
        stream.hears("live", [6]).await?;
    }
    Ok(())
}

pub(super) async fn old<D: Driver>(lab: &Lab<D>, kept: Kept) -> Outcome {
    keeps(lab, kept, json!({"max_age_ms": 800})).await?;
    let first = lab.publish("a", "1").await?;
    publish(lab, 2, 4).await?;
    lab.advance(ms(1_000)).await?;
    let mut stream = Ask::of("a").after(&first).ready(lab).await?;
    same("what is gone", stream.reset().await?, json!({"lost": 2}))?;
    publish(lab, 4, 5).await?;
    stream.hears("live", [4]).await
}

/// Comes back, as an `EventSource` does, until it has the numbers up to before this one. How many streams it took.
pub(super) async fn collects<D: Driver>(
    lab: &Lab<D>,
    mut stream: Stream<D::Exchange>,
    numbers: std::ops::Range<u64>,
) -> Result<(Stream<D::Exchange>, u64), Fault> {
    let mut streams = 1;
    for number in numbers {
        let event = loop {
            match stream.next().await? {
                Some(event) if event.event == "ready" => {}
                Some(event) => break event,
                None => {
                    let id = stream.last_id().to_owned();
                    same("the time to come back after", stream.retry, 10)?;
                    stream = Ask::of("a").after(&id).open(lab).await?;
                    streams += 1;
                }
            }
        };
        same("the next", event.event, number.to_string())?;
    }
    Ok((stream, streams))
}

pub(super) async fn pages<D: Driver>(lab: &Lab<D>, kept: Kept) -> Outcome {
    const LENGTH: u64 = 100 * 1_024;
    keeps(lab, kept, json!({"max_bytes": 10 << 20})).await?;
    let stream = Ask::of("a").ready(lab).await?;
    let id = stream.last_id().to_owned();
    stream.leave(Leave::Reset);
    lab.send("a", json!({"many": [0, 23, LENGTH]})).await?;
    let stream = Ask::of("a").after(&id).open(lab).await?;
    let (mut stream, streams) = collects(lab, stream, 0..23).await?;
    // Five to a page, of which the last is not full.
    same("streams", streams, 5)?;
    lab.publish("a", "live").await?;
    stream.hears("live", ["live"]).await?;
    same("statistics", lab.stats("a", ["replayed", "gaps"]).await?, [23, 0])
}

async fn is_new_epoch<D: Driver>(lab: &Lab<D>, before: &str) -> Outcome {
    let mut stream = Ask::of("a").after(before).ready(lab).await?;
    same("what is gone", stream.reset().await?, json!({"lost": null}))?;
    let now = stream.last_id().to_owned();
    holds(format!("{now} after {before}"), parts(&now)?.0 != parts(before)?.0)?;
    publish(lab, 1, 2).await?;
    stream.hears("live", [1]).await?;
    stream.leave(Leave::Reset);
    let mut stream = Ask::of("a").after(&now).ready(lab).await?;
    stream.hears("of the new one", [1]).await
}

async fn crashed<D: Driver>(lab: &Lab<D>) -> Outcome {
    keeps(lab, Kept::InMemory, json!({})).await?;
    let mut stream = Ask::of("a").ready(lab).await?;
    publish(lab, 1, 4).await?;
    stream.hears("live", 1..4).await?;
    lab.crash().await?;
    stream.is_over().await?;
    let id = stream.last_id().to_owned();
    is_new_epoch(lab, &id).await
}

async fn evicted<D: Driver>(lab: &Lab<D>) -> Outcome {
    keeps(lab, Kept::InMemory, json!({})).await?;
    let mut stream = Ask::of("a").ready(lab).await?;
    publish(lab, 1, 4).await?;
    stream.hears("live", 1..4).await?;
    let id = stream.last_id().to_owned();
    stream.leave(Leave::Reset);
    lab.until("a", "gone", 1).await?;
    lab.evict().await?;
    is_new_epoch(lab, &id).await
}

async fn backlog<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.configure("a", json!({"backlog": 14})).await?;
    let mut fresh = Ask::of("a").open(lab).await?;
    same("where it begins", fresh.event().await?.id, "n14")?;
    let mut resumed = Ask::of("a").after("n12").open(lab).await?;
    same("where it goes on", resumed.event().await?.id, "n12")?;
    resumed.hears("what was missed", 13..=14).await?;
    let mut late = Ask::of("a").after("n7").ready(lab).await?;
    same("what is gone", late.reset().await?, json!({"lost": 3}))?;
    same("where it goes on", late.last_id(), "n10")?;
    late.hears("what is left", 11..=14).await?;
    same(
        "a broadcast",
        lab.send("a", json!({"broadcast": {"data": "15", "id": "n15"}})).await?,
        [3, 3, 0, 0, 0],
    )?;
    for stream in [&mut fresh, &mut resumed, &mut late] {
        stream.hears("live", [15]).await?;
        same("the id", stream.last_id(), "n15")?;
    }
    same("statistics", lab.stats("a", ["resumed", "gaps", "replayed"]).await?, [1, 1, 6])
}

/// Each number for each client once, while they drop and return and more is published.
pub(super) async fn storm<D: Driver>(lab: &Lab<D>, kept: Kept, clients: usize) -> Outcome {
    const ROUNDS: u64 = 4;
    const EACH: u64 = 6;
    keeps(lab, kept, json!({"max_events": 1_000})).await?;
    let first = Ask::of("a").ready(lab).await?.last_id().to_owned();
    let mut ids = vec![first; clients];
    let mut heard = vec![0_u64; clients];
    for round in 0..ROUNDS {
        // In waves, so that some are there, some on their way and some away while it is published.
        for (wave, of) in
            (0..EACH).zip(ids.chunks_mut(clients.div_ceil(6)).zip(heard.chunks_mut(clients.div_ceil(6))))
        {
            let (ids, heard) = of;
            let clients = ids.iter_mut().zip(heard).enumerate();
            let coming = clients.map(|(n, (id, heard))| -> Local<'_, Outcome> {
                Box::pin(async move {
                    let mut stream = Ask::of("a").after(id).ready(lab).await?;
                    // Some read a part, some nothing.
                    let there = round * EACH + wave;
                    let wanted = if n.is_multiple_of(3) { there / 2 } else { there };
                    while *heard < wanted {
                        stream.hears("the next", [*heard + 1]).await?;
                        *heard += 1;
                    }
                    id.clone_from(&stream.last_id().to_owned());
                    stream.leave(if n.is_multiple_of(2) { Leave::Close } else { Leave::Reset });
                    Ok(())
                })
            });
            let mut work: Vec<Local<'_, Outcome>> = coming.collect();
            let next = round * EACH + wave + 1;
            let publishing: Local<'_, Outcome> = Box::pin(publish(lab, next, next + 1));
            let half = work.len() / 2;
            work.insert(half, publishing);
            all(work).await.into_iter().collect::<Outcome>()?;
        }
    }
    let last = ROUNDS * EACH;
    let ends = ids.iter().zip(heard).map(|(id, heard)| -> Local<'_, Outcome> {
        Box::pin(async move {
            let mut stream = Ask::of("a").after(id).ready(lab).await?;
            stream.hears("the rest", heard + 1..=last).await?;
            stream.leave(Leave::Reset);
            Ok(())
        })
    });
    all(ends.collect()).await.into_iter().collect::<Outcome>()?;
    same("gaps", lab.stats("a", ["gaps", "full", "stalled", "dropped"]).await?, [0, 0, 0, 0])?;
    let mut stream = Ask::of("a").ready(lab).await?;
    lab.advance(A_WHILE).await?;
    lab.publish("a", "last").await?;
    stream.hears("the last", ["last"]).await?;
    let look = async || Ok(lab.stats("a", ["connections"]).await?[0]);
    lab.eventually("connections", SOON, look, |connections| *connections == 1).await?;
    same("a broadcast", lab.broadcast("a", "only").await?, ONE)
}
