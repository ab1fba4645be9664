//! D: registration, messages and attachments of sockets.

use crate::testing::{
    case::{Case, Fault, Outcome, holds, same},
    difference::HostKind,
    driver::{Client, Driver, Opened, Received},
    lab::{ClientExt, Lab, closed},
    tasks::both,
};
use crate::{Message, limits};
use serde_json::{Value, json};
use std::time::Duration;

pub(super) fn cases<D: Driver>() -> Vec<Case<D>> {
    vec![
        Case::new("d1 ten distinct tags, and the eleventh is an error that harms nobody", |lab| {
            Box::pin(d1_eleven(lab))
        }),
        Case::new("d1 a tag that comes again does not count", |lab| Box::pin(d1_again(lab))),
        Case::new("d1 tags keep their order", |lab| Box::pin(d1_order(lab))),
        Case::new("d1 a tag has a limit in bytes, not in characters", |lab| Box::pin(d1_length(lab))),
        Case::new("d2 a request is accepted once", |lab| Box::pin(d2_again(lab))),
        Case::new("d3 d4 a tag finds its sockets and no others", |lab| Box::pin(d3_tag(lab))),
        Case::new("d3 a broadcast to a tag reaches its sockets and no others", |lab| {
            Box::pin(d3_broadcast(lab))
        }),
        Case::new("d4 the empty tag is a tag, not all sockets", |lab| Box::pin(d4_empty(lab))),
        Case::new("d4 an unknown tag finds nothing", |lab| Box::pin(d4_unknown(lab))),
        Case::new("d4 handles of one socket are equal and those of two are not", |lab| {
            Box::pin(d4_handles(lab))
        }),
        Case::new("d5 an object takes 32,768 sockets and not one more", |lab| Box::pin(d5_limit(lab)))
            .long()
            .differs(&[HostKind::Kit], "many-sockets"),
        Case::new("d6 a socket whose 101 is not returned is lost", |lab| Box::pin(d6_lost(lab)))
            .differs(&[HostKind::Kit, HostKind::Tokio], "dropped-101"),
        Case::new(
            "d6 a socket whose 101 is not returned stays in the list, open, until its other end is collected",
            |lab| Box::pin(d6_stays(lab)),
        )
        .differs(&[HostKind::Workerd], "dropped-101"),
        Case::new("d7 the sub-protocol is the one that the object names", |lab| Box::pin(d7_protocol(lab))),
        Case::new("d8 text, bytes and nothing arrive as they were sent", |lab| Box::pin(d8_kinds(lab))),
        Case::new("d9 a message begins while the handler of the one before waits", |lab| {
            Box::pin(d9_overlap(lab))
        }),
        Case::new("d9 handlers of two sockets overlap too", |lab| Box::pin(d9_two(lab))),
        Case::new("d9 fifty messages begin in the order in which they came", |lab| Box::pin(d9_order(lab))),
        Case::new("d10 a failing handler leaves socket and object as they are", |lab| {
            Box::pin(d10_failing(lab))
        }),
        Case::new(
            "d11b what is sent to a peer that does not read is bounded, and the peer closed with 1013",
            |lab| Box::pin(d11b_bounded(lab)),
        )
        .differs(&[HostKind::Kit, HostKind::Tokio], "outbox"),
        Case::new("d11b what is sent to a peer that does not read is taken and told", |lab| {
            Box::pin(d11b_buffered(lab))
        })
        .differs(&[HostKind::Workerd], "outbox"),
        Case::new("d26 an attachment of the limit is kept and one byte more refused", |lab| {
            Box::pin(d26_limit(lab))
        }),
        Case::new("d26 there is no attachment at first", |lab| Box::pin(d26_none(lab))),
        Case::new("d26 an attachment is what was attached last", |lab| Box::pin(d26_value(lab))),
        Case::new("d26 a socket is accepted with its attachment", |lab| Box::pin(d26_accepted(lab))),
        Case::new("d27 an attachment is lost with its connection", |lab| Box::pin(d27_lost(lab))),
        Case::new("d28 the auto-response answers the exact text alone", |lab| Box::pin(d28_exact(lab))),
        Case::new("d28 the auto-response answers no bytes", |lab| Box::pin(d28_bytes(lab))),
        Case::new("d28 the auto-response can be removed", |lab| Box::pin(d28_removed(lab))),
        Case::new("d28 a new auto-response takes the place of the one before, for all sockets", |lab| {
            Box::pin(d28_replaced(lab))
        }),
        Case::new("d28 the auto-response answers while a gate is closed", |lab| Box::pin(d28_gate(lab))),
        Case::new(
            "d28 after the object's own close the text of the auto-response is neither answered nor told",
            |lab| Box::pin(d28_closed(lab)),
        ),
        Case::new("d28 both sides of the auto-response have a limit in bytes", |lab| {
            Box::pin(d28_limits(lab))
        }),
        Case::new("d30 the time of the auto-response is kept for its socket alone", |lab| {
            Box::pin(d30_time(lab))
        }),
    ]
}

async fn d1_eleven<D: Driver>(lab: &Lab<D>) -> Outcome {
    let tags: Vec<_> = (0..11).map(|n| n.to_string()).collect();
    let query: Vec<_> = tags.iter().map(|tag| ("tag", tag.as_str())).collect();
    // Both wait meanwhile: an object that is idle may leave memory before its time on a host that is busy.
    let waits = || json!([{"add": 1}, {"wait_for": 2}]);
    let ((own, other), refused) = both(both(lab.run("a", waits()), lab.run("b", waits())), async {
        let _ten = lab.open("a", &query[..10]).await?;
        lab.begun("a", 1).await?;
        lab.begun("b", 1).await?;
        same("the kind", lab.refused("a", &query).await?.kind, "Limit")?;
        same("the sockets", lab.last("a", json!([{"tags": "all"}])).await?, json!([tags[..10]]))?;
        same("the object's memory", lab.last("a", json!([{"add": 1}])).await?, json!(2))?;
        same("another object's", lab.last("b", json!([{"add": 1}])).await?, json!(2))?;
        lab.advance(Duration::from_millis(20)).await
    })
    .await;
    refused?;
    own.and(other).map(drop)
}

async fn d1_again<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut tags: Vec<_> = (0..10).map(|n| n.to_string()).collect();
    tags.push("3".to_owned());
    let query: Vec<_> = tags.iter().map(|tag| ("tag", tag.as_str())).collect();
    let _client = lab.open("a", &query).await?;
    same("the tags", lab.last("a", json!([{"tags": "all"}])).await?, json!([tags[..10]]))
}

async fn d1_order<D: Driver>(lab: &Lab<D>) -> Outcome {
    let _client =
        lab.open("a", &[("tag", "b"), ("tag", "é"), ("tag", "a"), ("tag", "b"), ("tag", "B")]).await?;
    same("the tags", lab.last("a", json!([{"tags": "all"}])).await?, json!([["b", "é", "a", "B"]]))
}

async fn d1_length<D: Driver>(lab: &Lab<D>) -> Outcome {
    let longest = "é".repeat(limits::TAG_BYTES / 2);
    let _client = lab.open("a", &[("tag", longest.as_str())]).await?;
    same("the tag", lab.last("a", json!([{"tags": {"tagged": longest}}])).await?, json!([[longest]]))?;
    let thrown = lab.refused("a", &[("tag", &format!("{longest}x"))]).await?;
    same("the kind of a longer one", thrown.kind, "Limit")
}

async fn d2_again<D: Driver>(lab: &Lab<D>) -> Outcome {
    same("the kind", lab.refused("a", &[("then", "again")]).await?.kind, "Invalid")?;
    let mut client = lab.open("a", &[]).await?;
    client.text("[]").await?;
    client.hears_text("another one", "[]").await
}

async fn d3_tag<D: Driver>(lab: &Lab<D>) -> Outcome {
    let _one = lab.open("a", &[("tag", "x"), ("tag", "y"), ("attach", "1")]).await?;
    let _two = lab.open("a", &[("tag", "y"), ("attach", "2")]).await?;
    let mut three = lab.open("a", &[("attach", "3")]).await?;
    let look = |tag: &str| json!([{"attachments": {"tagged": tag}}]);
    same("x", lab.last("a", look("x")).await?, json!(["1"]))?;
    same("y", lab.last("a", look("y")).await?, json!(["1", "2"]))?;
    same("all", lab.last("a", json!([{"attachments": "all"}])).await?, json!(["1", "2", "3"]))?;
    let others = three.steps(json!([{"attachments": "others"}, {"attachments": "this"}])).await?;
    same("others and this", others, json!([["1", "2"], ["3"]]))
}

async fn d3_broadcast<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut one = lab.open("a", &[("tag", "x"), ("tag", "y")]).await?;
    let mut two = lab.open("a", &[("tag", "y")]).await?;
    let mut three = lab.open("a", &[("tag", "Y")]).await?;
    lab.run("a", json!([{"send": [{"tagged": "y"}, "hello"]}, {"send": ["all", "end"]}])).await?;
    for client in [&mut one, &mut two] {
        client.hears_text("to the tag", "hello").await?;
        client.hears_text("to all", "end").await?;
    }
    three.hears_text("to all alone", "end").await
}

async fn d4_empty<D: Driver>(lab: &Lab<D>) -> Outcome {
    let _one = lab.open("a", &[("tag", ""), ("attach", "1")]).await?;
    let _two = lab.open("a", &[("attach", "2")]).await?;
    let _three = lab.open("a", &[("tag", "x"), ("attach", "3")]).await?;
    same("found", lab.last("a", json!([{"attachments": {"tagged": ""}}])).await?, json!(["1"]))
}

async fn d4_unknown<D: Driver>(lab: &Lab<D>) -> Outcome {
    same("of none", lab.last("a", json!([{"count": {"tagged": "x"}}])).await?, json!(0))?;
    let _one = lab.open("a", &[("tag", "x")]).await?;
    for tag in ["X", "x ", "y", "null"] {
        same(tag, lab.last("a", json!([{"count": {"tagged": tag}}])).await?, json!(0))?;
    }
    Ok(())
}

async fn d4_handles<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut one = lab.open("a", &[("tag", "x")]).await?;
    let _two = lab.open("a", &[("tag", "y")]).await?;
    let common = |one: Value, other: Value| json!({"sockets": {"common": [one, other]}});
    let (x, y) = (json!({"tagged": "x"}), json!({"tagged": "y"}));
    let steps = json!([
        common(json!("this"), x.clone()), common(json!("all"), json!("all")), common(x.clone(), json!("all")),
        common(x, y), common(json!("this"), json!("others")), {"sleep": 1}, common(json!("this"), json!("all"))
    ]);
    one.text(&steps.to_string()).await?;
    lab.advance(Duration::from_millis(10)).await?;
    one.hears_text("how many are in both", "[1,2,1,0,0,null,1]").await
}

async fn d5_limit<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut clients = Vec::new();
    for _ in 0..limits::SOCKETS_PER_OBJECT {
        clients.push(lab.open("a", &[]).await?);
    }
    same("one more", lab.refused("a", &[]).await?.kind, "Limit")?;
    same("the count", lab.last("a", json!([{"count": "all"}])).await?, json!(limits::SOCKETS_PER_OBJECT))?;
    if let Some(client) = clients.pop() {
        client.lose();
    }
    let fewer = |count: &Value| count.as_u64() < Some(limits::SOCKETS_PER_OBJECT as u64);
    lab.until("a", json!([{"count": "all"}]), Duration::from_secs(3), fewer).await?;
    lab.open("a", &[]).await.map(drop)
}

async fn d6_lost<D: Driver>(lab: &Lab<D>) -> Outcome {
    same("the answer", refusal(lab).await?, (200, "null".to_owned()))?;
    let lost = json!([r#": close 1006 "WebSocket disconnected without sending Close frame." lost"#]);
    lab.until("a", json!(["events"]), Duration::from_secs(3), |events| *events == lost).await?;
    same("the count", lab.last("a", json!([{"count": "all"}])).await?, json!(0))
}

async fn d6_stays<D: Driver>(lab: &Lab<D>) -> Outcome {
    same("the answer", refusal(lab).await?, (200, "null".to_owned()))?;
    lab.advance(Duration::from_millis(500)).await?;
    let seen = lab.run("a", json!([{"states": "all"}, "events"])).await?;
    // Its other end is garbage: when that is collected, which is seldom so soon, the socket is lost.
    let lost = json!([r#": close 1006 "WebSocket disconnected without sending Close frame." lost"#]);
    let (open, collected) = (json!([["Open"], []]), json!([[], lost]));
    holds(format!("it is {seen:?}"), [open, collected].contains(&json!(seen)))
}

/// What a client gets whose 101 is dropped.
async fn refusal<D: Driver>(lab: &Lab<D>) -> Result<(u16, String), Fault> {
    match lab.driver().open(&format!("{}?then=drop", lab.path("ws", "a"))).await? {
        Opened::Refused(status, body) => Ok((status, String::from_utf8(body)?)),
        Opened::Client(_) => Err(Fault::new("it was opened")),
    }
}

async fn d7_protocol<D: Driver>(lab: &Lab<D>) -> Outcome {
    same("none", lab.open("a", &[]).await?.protocol(), Value::Null)?;
    same("one", lab.open("a", &[("protocol", "chat.v2")]).await?.protocol(), Some("chat.v2"))
}

async fn d8_kinds<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.run("a", json!([{"on_message": ["echo"]}])).await?;
    let mut client = lab.open("a", &[]).await?;
    let long = "é".repeat(50_000);
    let messages: [Message; 6] = [
        "hello\0é".into(),
        "".into(),
        vec![0, 255].into(),
        vec![].into(),
        long.into(),
        vec![7; 70_000].into(),
    ];
    for message in messages {
        client.send(message.clone()).await?;
        client.hears("the echo", Received::Message(message)).await?;
    }
    let events = lab.last("a", json!([{"sql": "SELECT line FROM events ORDER BY rowid LIMIT 4"}])).await?;
    let expected = [r#": message "hello\0é""#, r#": message """#, ": message [0, 255]", ": message []"];
    same("what the object saw", events, json!(expected))
}

async fn d9_overlap<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut client = lab.open("a", &[]).await?;
    client.text(&json!([{"note": "1 begins"}, {"sleep": 1_000}, {"note": "1 ends"}]).to_string()).await?;
    client.text(&json!([{"note": "2"}]).to_string()).await?;
    client.hears_text("the answer to the second", "[null]").await?;
    lab.advance(Duration::from_millis(1_100)).await?;
    client.hears_text("the answer to the first", "[null,null,null]").await?;
    same("the order", lab.lines("a").await?, json!(["1 begins", "2", "1 ends"]))
}

async fn d9_two<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut one = lab.open("a", &[]).await?;
    let mut two = lab.open("a", &[]).await?;
    one.text(&json!([{"add": 1}, {"wait_for": 2}]).to_string()).await?;
    lab.begun("a", 1).await?;
    same("the second", two.steps(json!([{"add": 1}])).await?, json!([2]))?;
    lab.advance(Duration::from_millis(20)).await?;
    one.hears_text("the first", "[1,null]").await
}

async fn d9_order<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut client = lab.open("a", &[]).await?;
    let texts: Vec<_> = (0..50).map(|n| n.to_string()).collect();
    for text in &texts {
        client.text(text).await?;
    }
    client.steps(json!([])).await?;
    let events: Vec<_> = texts.iter().map(|text| format!(": message {text:?}")).collect();
    same("fifty messages", lab.events("a").await?, json!(events))
}

async fn d10_failing<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut client = lab.open("a", &[]).await?;
    client.steps(json!([{"add": 1}])).await?;
    client.text(&json!([{"note": "kept"}, {"fail": "unseen"}]).to_string()).await?;
    same("memory", client.steps(json!([{"add": 1}])).await?, json!([2]))?;
    same("what was written", lab.lines("a").await?, json!(["kept"]))?;
    same("events", lab.events("a").await?, json!([]))
}

/// One message of 64 KiB for each of 16 MiB.
const MESSAGES: usize = 256;

async fn d11b_bounded<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut client = lab.open("a", &[]).await?;
    let steps = json!([
        {"sockets": {"flood": ["all", MESSAGES, 65_536]}}, {"try": [{"send": ["all", "late"]}]}, {"states": "all"}
    ]);
    let values = lab.run("a", steps).await?;
    let taken = values[0][0][0].as_u64().unwrap_or_default();
    holds(format!("{taken} messages were taken"), (1..MESSAGES as u64).contains(&taken))?;
    same("the next one", &values[0][0][1], json!("Overloaded"))?;
    same("and after it", &values[1]["error"]["kind"], json!("Closed"))?;
    same("the state", &values[2], json!(["Closing"]))?;
    for _ in 0..taken {
        client.hears("what was taken", Received::Message(vec![0; 65_536].into())).await?;
    }
    client.hears("the end", closed(1_013, "")).await
}

async fn d11b_buffered<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut client = lab.open("a", &[]).await?;
    let steps = json!([{"sockets": {"flood": ["all", MESSAGES, 65_536]}}, {"sockets": {"buffered": "all"}}]);
    let values = lab.run("a", steps).await?;
    same("what was taken", &values[0], json!([[MESSAGES, null]]))?;
    let waits = values[1][0].as_u64().unwrap_or_default();
    holds(format!("{waits} bytes wait"), waits > 1 << 20)?;
    for _ in 0..MESSAGES {
        client.hears("what was taken", Received::Message(vec![0; 65_536].into())).await?;
    }
    let none = |buffered: &Value| *buffered == json!([0]);
    lab.until("a", json!([{"sockets": {"buffered": "all"}}]), Duration::from_secs(3), none).await.map(drop)
}

async fn d26_limit<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut client = lab.open("a", &[]).await?;
    let (most, more) = (limits::ATTACHMENT_BYTES, limits::ATTACHMENT_BYTES + 1);
    client.steps(json!([{"attach_bytes": ["this", most]}])).await?;
    let refused = client.steps(json!([{"try": [{"attach_bytes": ["this", more]}]}])).await?;
    same("the kind", &refused[0]["error"]["kind"], json!("Limit"))?;
    let kept = client.steps(json!([{"attachments": "this"}])).await?;
    same("its length", kept[0][0].as_str().map(str::len), Some(most - 2))?;
    // The longest when every byte is a character that a JavaScript string needs two bytes for.
    let wide = "é".repeat((most - 2) / 2);
    client.steps(json!([{"attach": ["this", wide]}])).await?;
    same("wide", client.steps(json!([{"attachments": "this"}])).await?, json!([[wide]]))
}

async fn d26_none<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut client = lab.open("a", &[]).await?;
    same("none", client.steps(json!([{"attachments": "this"}])).await?, json!([[null]]))
}

async fn d26_value<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut client = lab.open("a", &[]).await?;
    for value in [json!({"name": "Ada", "n": [1, 2.5, null, true], "é": {}}), json!(null), json!("")] {
        client.steps(json!([{"attach": ["this", value]}])).await?;
        same("a value", client.steps(json!([{"attachments": "this"}])).await?, json!([[value]]))?;
    }
    Ok(())
}

async fn d26_accepted<D: Driver>(lab: &Lab<D>) -> Outcome {
    let steps = json!([{"note_of": [{"attachments": "this"}, {"attachments": "all"}]}]).to_string();
    let _client = lab.open("a", &[("attach", "ada"), ("steps", &steps)]).await?;
    same("within its request", lab.lines("a").await?, json!([r#"[["ada"],["ada"]]"#]))
}

async fn d27_lost<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.open("a", &[("attach", "one"), ("tag", "x")]).await?.lose();
    let none = |count: &Value| *count == json!(0);
    lab.until("a", json!([{"count": "all"}]), Duration::from_secs(3), none).await?;
    let mut again = lab.open("a", &[("tag", "x")]).await?;
    same("the next one", again.steps(json!([{"attachments": "this"}])).await?, json!([[null]]))
}

/// A socket of an object that answers "ping" by itself and echoes what else comes.
async fn pinged<D: Driver>(lab: &Lab<D>) -> Result<D::Client, Fault> {
    lab.run("a", json!([{"auto_response": ["ping", "pong"]}, {"on_message": ["echo"]}])).await?;
    lab.open("a", &[]).await
}

async fn d28_exact<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut client = pinged(lab).await?;
    client.text("ping").await?;
    client.hears_text("ping", "pong").await?;
    for text in ["PING", "ping ", " ping", "", "pin", "pingping", "pong"] {
        client.text(text).await?;
        client.hears_text("another text", text).await?;
    }
    same("the events but for those", lab.events("a").await?.as_array().map(Vec::len), Some(7))
}

async fn d28_bytes<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut client = pinged(lab).await?;
    client.send(b"ping".to_vec().into()).await?;
    client.hears("bytes", Received::Message(b"ping".to_vec().into())).await
}

async fn d28_removed<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut client = pinged(lab).await?;
    lab.run("a", json!([{"auto_response": null}])).await?;
    client.text("ping").await?;
    client.hears_text("without it", "ping").await
}

async fn d28_replaced<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut one = pinged(lab).await?;
    lab.run("a", json!([{"auto_response": ["", "nothing"]}])).await?;
    let mut two = lab.open("a", &[]).await?;
    for client in [&mut one, &mut two] {
        client.text("ping").await?;
        client.hears_text("the one before", "ping").await?;
        client.text("").await?;
        client.hears_text("the new one", "nothing").await?;
    }
    Ok(())
}

async fn d28_gate<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut client = pinged(lab).await?;
    let (gated, answered) =
        both(lab.run("a", json!([{"gate": [{"sleep": 500}, {"note": "opens"}]}])), async {
            lab.advance(Duration::from_millis(50)).await?;
            client.text("ping").await?;
            client.hears_text("meanwhile", "pong").await?;
            lab.advance(Duration::from_millis(600)).await
        })
        .await;
    answered.and(gated.map(drop))
}

async fn d28_closed<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut client = pinged(lab).await?;
    lab.run("a", json!([{"on_message": []}, {"close_sockets": ["all", [4_001, ""]]}])).await?;
    client.hears("the close", closed(4_001, "")).await?;
    client.text("ping").await?;
    client.text("another").await?;
    let told = |events: &Value| *events == json!([r#": message "another""#]);
    lab.until("a", json!(["events"]), Duration::from_secs(3), told).await?;
    let at = lab.last("a", json!([{"auto_responses_at": "all"}])).await?;
    holds(format!("it came at {at}"), at[0].is_i64())?;
    lab.silent("an answer", client.receive(), Duration::from_millis(300)).await
}

async fn d28_limits<D: Driver>(lab: &Lab<D>) -> Outcome {
    const MOST: usize = limits::AUTO_RESPONSE_BYTES;
    let set = |request: usize, response: usize| json!({"sockets": {"auto_response_of": [request, response]}});
    let mut client = lab.open("a", &[]).await?;
    lab.run("a", json!([set(MOST, MOST)])).await?;
    for refused in [set(MOST + 1, 1), set(1, MOST + 1)] {
        let refused = lab.last("a", json!([{"try": [refused]}])).await?;
        same("the kind", &refused["error"]["kind"], json!("Limit"))?;
    }
    client.text(&"q".repeat(MOST)).await?;
    client.hears_text("the longest, which stayed", &"a".repeat(MOST)).await
}

async fn d30_time<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut client = pinged(lab).await?;
    let mut other = lab.open("a", &[]).await?;
    let ask = || json!([{"auto_responses_at": "this"}, "now"]);
    let before = client.steps(ask()).await?;
    same("before", &before[0], json!([null]))?;
    client.text("ping").await?;
    client.hears_text("ping", "pong").await?;
    let after = client.steps(ask()).await?;
    let at = after[0][0].as_i64();
    holds(format!("{after} after {before}"), before[1].as_i64() <= at && at <= after[1].as_i64())?;
    same("of the other", &other.steps(ask()).await?[0], json!([null]))?;
    lab.advance(Duration::from_millis(50)).await?;
    client.text("ping").await?;
    client.hears_text("ping", "pong").await?;
    let later = client.steps(ask()).await?[0][0].as_i64();
    holds(format!("{later:?} is not after {at:?}"), later > at)
}
