//! Those who only listen, and what is published together.

use crate::rooms::{Rooms, next};
use do_core::testing::{Case, Client, Driver, Fault, Lab, Outcome, same};
use serde_json::{Value, json};

pub(super) fn cases<D: Driver>() -> Vec<Case<D>> {
    vec![
        Case::new("follow a follower gets the sequence and is no member", |lab| Box::pin(follows(lab))),
        Case::new("follow a follower comes back to what was missed", |lab| Box::pin(resumes(lab))).evicts(),
        Case::new("follow what a follower sends is published by nobody", |lab| Box::pin(sends(lab))),
        Case::new("history several values are published in order, or none", |lab| Box::pin(together(lab))),
        Case::new(
            "pain17 newcomers get as much of the history as the room says, by default nothing",
            |lab| Box::pin(replay(lab)),
        ),
        Case::new("pain14 events have no number, and who comes back gets none that was missed", |lab| {
            Box::pin(events(lab))
        }),
    ]
}

async fn history<D: Driver>(lab: &Lab<D>, command: Value) -> Result<Value, Fault> {
    lab.tell("a", json!({ "history": command })).await
}

/// Comes with this query, and gives the hello.
async fn comes<D: Driver>(lab: &Lab<D>, query: &[(&str, &str)]) -> Result<(D::Client, Value), Fault> {
    let mut client = lab.join("a", query).await?;
    let hello = next(&mut client).await?;
    same("the first frame", &hello["t"], "hello")?;
    Ok((client, hello))
}

/// What the next frame says, which has this number.
async fn frame<C: Client>(client: &mut C, seq: u64) -> Result<Value, Fault> {
    let frame = next(client).await?;
    same(&format!("the number in {frame}"), &frame["s"], seq)?;
    Ok(if frame["t"] == "msg" { frame["d"].clone() } else { frame["t"].clone() })
}

fn seq(position: &Value) -> u64 {
    let seq = position.as_str().and_then(|at| at.split('-').nth(1));
    seq.and_then(|seq| seq.parse().ok()).unwrap_or(u64::MAX)
}

const FOLLOW: (&str, &str) = ("follow", "1");

async fn follows<D: Driver>(lab: &Lab<D>) -> Outcome {
    let (mut fan, hello) = comes(lab, &[FOLLOW]).await?;
    same("nobody", (&hello["member"], &hello["count"], seq(&hello["at"])), (&Value::Null, 0, 0))?;
    let (mut ann, hello) = comes(lab, &[("member", "ann")]).await?;
    same("members", (&hello["members"], &hello["count"]), (json!([{"id": "ann"}]), 1))?;
    same("the fan hears of her", frame(&mut fan, 1).await?, "joined")?;
    history(lab, json!({"publish": {"n": 1}})).await?;
    same("the fan", frame(&mut fan, 2).await?, json!({"n": 1}))?;
    same("ann", frame(&mut ann, 2).await?, json!({"n": 1}))?;
    let look = json!([{"room": "count"}, {"members": "presence"}, {"history": "position"}]);
    let seen = lab.tell("a", look).await?;
    same("sockets, members, sequence", (&seen[0], &seen[1], seq(&seen[2])), (2, json!([{"id": "ann"}]), 2))?;
    fan.lose();
    lab.noted("a", "close", 1).await?;
    same("nobody left", seq(&history(lab, json!("position")).await?), 2)?;
    history(lab, json!({"publish": 3})).await?;
    same("ann hears nothing of it", frame(&mut ann, 3).await?, 3)
}

async fn resumes<D: Driver>(lab: &Lab<D>) -> Outcome {
    let (fan, hello) = comes(lab, &[FOLLOW]).await?;
    let (mut stays, _) = comes(lab, &[FOLLOW]).await?;
    fan.lose();
    lab.noted("a", "close", 1).await?;
    history(lab, json!({"all": ["a", "b"]})).await?;
    lab.evict().await?;
    history(lab, json!({"publish": "c"})).await?;
    for (n, said) in [(1, "a"), (2, "b"), (3, "c")] {
        same("one who stayed", frame(&mut stays, n).await?, said)?;
    }
    let after = hello["at"].as_str().unwrap_or_default();
    let (mut fan, hello) = comes(lab, &[FOLLOW, ("after", after)]).await?;
    same("the hello", (&hello["replay"], &hello["gap"], &hello["at"]), (3, Value::Null, after))?;
    for (n, said) in [(1, "a"), (2, "b"), (3, "c")] {
        same("one who came back", frame(&mut fan, n).await?, said)?;
    }
    history(lab, json!({"publish": "d"})).await?;
    same("live", frame(&mut fan, 4).await?, "d")
}

async fn sends<D: Driver>(lab: &Lab<D>) -> Outcome {
    let (mut fan, _) = comes(lab, &[FOLLOW]).await?;
    let told = crate::rooms::ask(&mut fan, &json!([{"history": {"publish": 1}}])).await?;
    same("in the follower's name", &told["error"]["kind"], "Invalid")?;
    same("nothing happened", seq(&history(lab, json!("position")).await?), 0)
}

async fn together<D: Driver>(lab: &Lab<D>) -> Outcome {
    let (mut fan, _) = comes(lab, &[FOLLOW]).await?;
    let given = history(lab, json!({"all": [1, null, {"n": "three"}]})).await?;
    let given: Vec<_> = given.as_array().into_iter().flatten().map(seq).collect();
    same("positions", given, [1, 2, 3])?;
    for (n, said) in [(1, json!(1)), (2, Value::Null), (3, json!({"n": "three"}))] {
        same("what was said", frame(&mut fan, n).await?, said)?;
    }
    // The second is longer than what may wait for a socket.
    let long = "x".repeat(200_000);
    let refused = lab.refused("a", json!({"history": {"all": ["fits", long, "fits"]}})).await?;
    same("the kind", refused.kind, "Limit")?;
    same("of none", history(lab, json!({"all": []})).await?, json!([]))?;
    let position = history(lab, json!({"publish": "next"})).await?;
    same("no number was used", seq(&position), 4)?;
    same("nothing else was said", frame(&mut fan, 4).await?, "next")
}

async fn replay<D: Driver>(lab: &Lab<D>) -> Outcome {
    history(lab, json!({"all": [0, 1, 2, 3]})).await?;
    let (_fan, hello) = comes(lab, &[FOLLOW]).await?;
    same("by default", (&hello["replay"], seq(&hello["at"]), &hello["gap"]), (0, 4, Value::Null))?;
    // Who asks for a position gets what follows it, at the first connection too.
    let first = hello["at"].as_str().unwrap_or_default().replace("-4", "-2");
    let (mut fan, hello) = comes(lab, &[FOLLOW, ("after", &first)]).await?;
    same("after the second", (&hello["replay"], seq(&hello["at"])), (2, 2))?;
    same("the third", frame(&mut fan, 3).await?, 2)?;
    lab.configure("a", json!({"history": {"replay": 3}})).await?;
    let (mut fan, hello) = comes(lab, &[FOLLOW]).await?;
    same("the last three", (&hello["replay"], seq(&hello["at"]), &hello["gap"]), (3, 1, Value::Null))?;
    same("the first of them", frame(&mut fan, 2).await?, 1)
}

async fn events<D: Driver>(lab: &Lab<D>) -> Outcome {
    let (mut fan, hello) = comes(lab, &[FOLLOW]).await?;
    history(lab, json!({"event": "typing"})).await?;
    history(lab, json!({"publish": "said"})).await?;
    same("an event", next(&mut fan).await?, json!({"t": "ev", "d": "typing"}))?;
    same("the first number", frame(&mut fan, 1).await?, "said")?;
    let after = hello["at"].as_str().unwrap_or_default();
    let (mut fan, _) = comes(lab, &[FOLLOW, ("after", after)]).await?;
    same("what was missed", frame(&mut fan, 1).await?, "said")?;
    history(lab, json!({"publish": "more"})).await?;
    same("and nothing else", frame(&mut fan, 2).await?, "more")
}
