//! A history in the object's database: the same is promised as of one in memory, and that it outlives its instance.

use super::resume::{self, Kept, collects, keeps, publish};
use crate::{
    feeds::{Feeds, SOON, parts},
    stream::Ask,
};
use do_core::testing::{Case, Driver, Fault, HostKind, Lab, Leave, Outcome, same};
use serde_json::{Value, json};

pub(super) fn cases<D: Driver>() -> Vec<Case<D>> {
    let mut all = as_in_memory();
    all.extend([
        Case::new("stored flaw5 whoever comes back to a new instance is shown what was missed", |lab| {
            Box::pin(evicted(lab))
        })
        .evicts(),
        Case::new("stored flaw5 a crash takes nothing away that was published", |lab| Box::pin(crashed(lab)))
            .crashes(),
        Case::new("stored pages go on after a crash", |lab| Box::pin(pages_over_crash(lab))).crashes(),
        Case::new("stored c4 what is published in a turn whose commit fails never was", |lab| {
            Box::pin(unpublished(lab))
        }),
        Case::new("stored a rollback ends the epoch, and all come back and are told", |lab| {
            Box::pin(rolled_back(lab))
        }),
        Case::new("stored e14 when everything was deleted the history begins anew", |lab| {
            Box::pin(deleted(lab))
        }),
        Case::new("stored what is too old is deleted by the alarm", |lab| Box::pin(aged(lab))),
        Case::new("stored flaw13 the rows of publishing and of resuming", |lab| Box::pin(rows(lab)))
            .differs(&[HostKind::Workerd], "rows-counted"),
    ]);
    all
}

const KEPT: Kept = Kept::InDatabase;

fn as_in_memory<D: Driver>() -> Vec<Case<D>> {
    vec![
        Case::new("stored flaw5 whoever comes back is shown what was missed, once and in order", |lab| {
            Box::pin(resume::resumes(lab, KEPT))
        }),
        Case::new("stored flaw5 by the parameter, and the header counts where both are", |lab| {
            Box::pin(resume::by_parameter(lab, KEPT))
        }),
        Case::new("stored flaw5 whoever was away for too long is told how much is gone", |lab| {
            Box::pin(resume::gap(lab, KEPT))
        }),
        Case::new("stored flaw5 a position that is none, or of elsewhere, is a gap of unknown size", |lab| {
            Box::pin(resume::unknown(lab, KEPT))
        }),
        Case::new("stored newcomers are shown the latest where that is asked for", |lab| {
            Box::pin(resume::replay(lab, KEPT))
        }),
        Case::new("stored topics hold for what was missed too", |lab| Box::pin(resume::topics(lab, KEPT))),
        Case::new("stored what is too old is gone", |lab| Box::pin(resume::old(lab, KEPT))),
        Case::new("stored a long history comes in pages, and nothing is lost or twice", |lab| {
            Box::pin(resume::pages(lab, KEPT))
        }),
        Case::new(
            "stored what is published while many come back is lost by none and twice for none",
            |lab| Box::pin(resume::storm(lab, KEPT, 100)),
        ),
        Case::new("stored flaw5 a thousand come back at once, again and again", |lab| {
            Box::pin(resume::storm(lab, KEPT, 1_000))
        })
        .differs(&[HostKind::Kit, HostKind::Tokio], "many-clients"),
    ]
}

/// The same sequence goes on in a new instance: `id` had everything up to number 3.
async fn goes_on<D: Driver>(lab: &Lab<D>, id: &str) -> Outcome {
    publish(lab, 4, 6).await?;
    let mut stream = Ask::of("a").after(id).open(lab).await?;
    same("where it goes on", stream.event().await?.id, id)?;
    publish(lab, 6, 7).await?;
    for n in 4..7 {
        let event = stream.event().await?;
        same("what was missed", (&*event.data, parts(&event.id)?), (&*n.to_string(), (parts(id)?.0, n)))?;
    }
    same("gaps", lab.stats("a", ["gaps", "resumed"]).await?, [0, 1])
}

async fn evicted<D: Driver>(lab: &Lab<D>) -> Outcome {
    keeps(lab, KEPT, json!({})).await?;
    let mut stream = Ask::of("a").ready(lab).await?;
    publish(lab, 1, 4).await?;
    stream.hears("live", 1..4).await?;
    let id = stream.last_id().to_owned();
    stream.leave(Leave::Reset);
    lab.until("a", "gone", 1).await?;
    lab.evict().await?;
    same("a new instance", lab.tell("a", json!("boots")).await?.as_array().map(Vec::len), 2)?;
    goes_on(lab, &id).await
}

async fn crashed<D: Driver>(lab: &Lab<D>) -> Outcome {
    keeps(lab, KEPT, json!({})).await?;
    let mut stream = Ask::of("a").ready(lab).await?;
    publish(lab, 1, 4).await?;
    stream.hears("live", 1..4).await?;
    lab.crash().await?;
    stream.is_over().await?;
    let id = stream.last_id().to_owned();
    goes_on(lab, &id).await
}

async fn pages_over_crash<D: Driver>(lab: &Lab<D>) -> Outcome {
    const LENGTH: u64 = 100 * 1_024;
    keeps(lab, KEPT, json!({"max_bytes": 10 << 20})).await?;
    let first = Ask::of("a").ready(lab).await?;
    let id = first.last_id().to_owned();
    first.leave(Leave::Reset);
    lab.send("a", json!({"many": [0, 13, LENGTH]})).await?;
    let mut stream = Ask::of("a").after(&id).ready(lab).await?;
    for number in 0..3 {
        same("the first page", stream.event().await?.event, number.to_string())?;
    }
    let id = stream.last_id().to_owned();
    lab.crash().await?;
    let stream = Ask::of("a").after(&id).open(lab).await?;
    let (mut stream, streams) = collects(lab, stream, 3..13).await?;
    same("streams", streams, 2)?;
    lab.publish("a", "live").await?;
    stream.hears("live", ["live"]).await
}

async fn unpublished<D: Driver>(lab: &Lab<D>) -> Outcome {
    keeps(lab, KEPT, json!({})).await?;
    let mut stream = Ask::of("a").ready(lab).await?;
    let position = lab.publish("a", "kept").await?;
    stream.hears("before it", ["kept"]).await?;
    lab.refused("a", json!({"undone": [{"send": {"publish": {"data": "never"}}}]})).await?;
    stream.is_over().await?;
    same("the position", lab.tell("a", json!({"feed": "position"})).await?, &position)?;
    let mut stream = Ask::of("a").after(&position).ready(lab).await?;
    let next = lab.publish("a", "after").await?;
    same("the next number", parts(&next)?, (parts(&position)?.0, 2))?;
    stream.hears("nothing was missed", ["after"]).await
}

async fn rolled_back<D: Driver>(lab: &Lab<D>) -> Outcome {
    keeps(lab, KEPT, json!({})).await?;
    let mut stream = Ask::of("a").ready(lab).await?;
    let position = lab.publish("a", "kept").await?;
    stream.hears("before it", ["kept"]).await?;
    same("undone", lab.tell("a", json!({"stored": {"undone": "undone"}})).await?, true)?;
    let next = lab.publish("a", "after").await?;
    let (before, after) = (parts(&position)?.0, parts(&next)?.0);
    same("the epoch is the same", before == after, false)?;
    // It may have been told what was undone: it has to come back and ask.
    let id = loop {
        match stream.next().await? {
            Some(event) => same("what it may have heard", event.data, "undone")?,
            None => break stream.last_id().to_owned(),
        }
    };
    let mut stream = Ask::of("a").after(&id).ready(lab).await?;
    same("what is lost", stream.reset().await?["lost"].clone(), Value::Null)?;
    lab.publish("a", "live").await?;
    let mut heard = stream.event().await?.data;
    if heard == "after" {
        heard = stream.event().await?.data;
    }
    same("live", heard, "live")
}

async fn deleted<D: Driver>(lab: &Lab<D>) -> Outcome {
    keeps(lab, KEPT, json!({})).await?;
    let mut stream = Ask::of("a").ready(lab).await?;
    publish(lab, 1, 4).await?;
    stream.hears("live", 1..4).await?;
    let id = stream.last_id().to_owned();
    lab.tell("a", json!({"stored": "delete_all"})).await?;
    let next = lab.publish("a", "anew").await?;
    same("the epoch is the same", parts(&next)?.0 == parts(&id)?.0, false)?;
    stream.is_over().await?;
    let mut stream = Ask::of("a").after(&id).ready(lab).await?;
    same("what is lost", stream.reset().await?["lost"].clone(), Value::Null)?;
    same("how many are stored", lab.tell("a", json!({"stored": "count"})).await?, 1)
}

async fn aged<D: Driver>(lab: &Lab<D>) -> Outcome {
    keeps(lab, KEPT, json!({"max_age_ms": 1_000})).await?;
    let stream = Ask::of("a").ready(lab).await?;
    publish(lab, 1, 6).await?;
    same("how many are stored", lab.tell("a", json!({"stored": "count"})).await?, 5)?;
    let look = async || Ok(lab.tell("a", json!({"stored": "count"})).await?.as_u64());
    lab.eventually("how many are stored", SOON, look, |count| *count == Some(0)).await?;
    stream.leave(Leave::Reset);
    Ok(())
}

async fn rows<D: Driver>(lab: &Lab<D>) -> Outcome {
    keeps(lab, KEPT, json!({})).await?;
    let position = lab.publish("a", "1").await?;
    let stats = async || -> Result<[u64; 2], Fault> {
        Ok(serde_json::from_value(lab.tell("a", json!({"stored": "stats"})).await?)?)
    };
    let before = stats().await?;
    publish(lab, 2, 12).await?;
    let after = stats().await?;
    same(
        "rows of ten that were published in one turn",
        [after[0] - before[0], after[1] - before[1]],
        [11, 10],
    )?;
    let mut stream = Ask::of("a").after(&position).ready(lab).await?;
    stream.hears("what was missed", 2..12).await?;
    let resumed = stats().await?;
    same("rows of one who comes back", [resumed[0] - after[0], resumed[1] - after[1]], [1, 0])
}
