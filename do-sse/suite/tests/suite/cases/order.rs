//! One queue for each connection: what is put in first comes out first.

use crate::{
    feeds::{Feeds, SOON},
    stream::{Ask, ms},
};
use do_core::testing::{Case, Driver, Fault, Lab, Local, Outcome, all, same};
use do_sse::Item;
use serde_json::{Value, json};

pub(super) fn cases<D: Driver>() -> Vec<Case<D>> {
    vec![
        Case::new("s1 s2 broadcasts, direct sends and publications of one turn keep their order", |lab| {
            Box::pin(one_turn(lab))
        }),
        Case::new("s1 s2 a heartbeat has its place between events", |lab| Box::pin(with_beats(lab))),
        Case::new("s2 what is sent by many at once comes to all in the same order", |lab| {
            Box::pin(same_order(lab))
        }),
        Case::new("s2 what comes first of all is what the stream begins with", |lab| {
            Box::pin(behind_ready(lab))
        }),
    ]
}

async fn one_turn<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.configure("a", json!({"history": {}})).await?;
    let mut stream = Ask::of("a").id("ann").ready(lab).await?;
    let command = |n: u32| match n % 3 {
        0 => json!({"send": {"broadcast": {"data": n.to_string()}}}),
        1 => json!({"send": {"to": ["ann", {"data": n.to_string()}]}}),
        _ => json!({"send": {"publish": {"data": n.to_string()}}}),
    };
    lab.tell("a", Value::Array((0..100).map(command).collect())).await?;
    stream.hears("in order", 0..100).await
}

async fn with_beats<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.configure("a", json!({"heartbeat_ms": 400})).await?;
    let mut stream = Ask::of("a").id("ann").ready(lab).await?;
    for turn in 0..3 {
        lab.broadcast("a", &format!("{turn} one")).await?;
        lab.send("a", json!({"to": ["ann", {"data": format!("{turn} two")}]})).await?;
        // Read, so that a heartbeat has something to do where a client reads only then.
        stream.hears("before it", [format!("{turn} one"), format!("{turn} two")]).await?;
        let look = async || Ok(lab.stats("a", ["beats"]).await?[0]);
        lab.eventually("heartbeats", SOON, look, |beats| *beats > turn).await?;
        lab.broadcast("a", &format!("{turn} three")).await?;
        stream.beat().await?;
        // On a machine that is busy there may be one more.
        stream.hears("behind it", [format!("{turn} three")]).await?;
    }
    Ok(())
}

async fn same_order<D: Driver>(lab: &Lab<D>) -> Outcome {
    const EACH: usize = 5;
    let send = |sender: usize| -> Local<'_, Outcome> {
        Box::pin(async move {
            for n in 0..EACH {
                lab.broadcast("a", &format!("{sender}/{n}")).await?;
            }
            Ok(())
        })
    };
    let mut streams = Vec::new();
    for n in 0..5 {
        streams.push(Ask::of("a").id(["a", "b", "c", "d", "e"][n]).ready(lab).await?);
    }
    all((0..6).map(send).collect()).await.into_iter().collect::<Outcome>()?;
    let mut first: Option<Vec<String>> = None;
    for stream in &mut streams {
        let mut heard = Vec::new();
        while heard.len() < 6 * EACH {
            heard.push(stream.event().await?.data);
        }
        for sender in 0..6 {
            let begins = format!("{sender}/");
            let own: Vec<_> = heard.iter().filter(|line| line.starts_with(&begins)).cloned().collect();
            same("of one sender", own, (0..EACH).map(|n| format!("{sender}/{n}")).collect::<Vec<_>>())?;
        }
        match &first {
            None => first = Some(heard),
            Some(first) => same("as the first heard", heard, first)?,
        }
    }
    Ok(())
}

async fn behind_ready<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.configure("a", json!({"history": {}})).await?;
    let opening = |n: usize| -> Local<'_, Result<(), Fault>> {
        Box::pin(async move {
            if n.is_multiple_of(2) {
                return lab.publish("a", &n.to_string()).await.map(drop);
            }
            let mut stream = Ask::of("a").open(lab).await?;
            let first = stream.item().await?;
            let second = stream.item().await?;
            let (Some(Item::Retry(_)), Some(Item::Event(event))) = (first, second) else {
                return Err(Fault::new("a stream begins otherwise"));
            };
            same("the first event", event.event, "ready")
        })
    };
    all((0..16).map(opening).collect()).await.into_iter().collect::<Outcome>()?;
    lab.advance(ms(10)).await
}
