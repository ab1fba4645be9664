//! D: what is about frames: control frames, fragments, and what breaks the protocol.

use crate::{
    limits,
    testing::{
        case::{Case, Fault, Outcome, holds, same},
        difference::HostKind,
        driver::{Client, Driver, Received},
        exchange::Exchange,
        lab::{ClientExt, Lab},
    },
};
use http::{Request, header};
use serde_json::{Value, json};
use std::time::Duration;

/// Hosts with a wire.
const WIRED: &[HostKind] = &[HostKind::Tokio, HostKind::Workerd];

const SOON: Duration = Duration::from_secs(3);

const FIN: u8 = 0x80;
const RESERVED: u8 = 0x40;
const CONTINUATION: u8 = 0x0;
const TEXT: u8 = 0x1;
const BINARY: u8 = 0x2;
const UNKNOWN: u8 = 0x3;
const CLOSE: u8 = 0x8;
const PING: u8 = 0x9;
const PONG: u8 = 0xA;

pub(super) fn cases<D: Driver>() -> Vec<Case<D>> {
    let wire = [
        Case::new("d8 fragments are one message", |lab| Box::pin(d8_fragments(lab))),
        Case::new("d11 fragments count together", |lab| Box::pin(d11_fragments(lab))),
        Case::new("d13 a ping is answered, also within a message, and not told", |lab| {
            Box::pin(d13_ping(lab))
        }),
        Case::new("d13 a pong that nobody asked for means nothing", |lab| Box::pin(d13_pong(lab))),
        Case::new("d13 a ping does not wake the object", |lab| Box::pin(d13_asleep(lab))).evicts(),
        Case::new("d16 a peer that breaks the protocol is an error without a close", |lab| {
            Box::pin(d16_faults(lab))
        }),
        Case::new("d16 after the error nothing is told, whatever the peer does", |lab| {
            Box::pin(d16_no_close(lab))
        }),
        Case::new(
            "d16 what is sent to a peer that broke the protocol is no error and does not arrive",
            |lab| Box::pin(d16_send(lab)),
        ),
        Case::new("d16 what the handler of a fault sees", |lab| Box::pin(d16_handler(lab))),
    ];
    let mut cases: Vec<_> = wire.into_iter().map(|case| case.differs(WIRED, "kit-wire")).collect();
    cases.extend([
        Case::new("d7 a client that offers permessage-deflate gets none", |lab| {
            Box::pin(d7_deflate(lab, None))
        })
        .differs(&[HostKind::Tokio], "deflate"),
        Case::new("d7 a client that offers permessage-deflate gets it", |lab| {
            Box::pin(d7_deflate(lab, Some("permessage-deflate")))
        })
        .differs(&[HostKind::Workerd], "deflate"),
        Case::new("d8 text that is not UTF-8 is an error and 1007", |lab| Box::pin(d8_refused(lab)))
            .differs(&[HostKind::Tokio], "not-utf8"),
        Case::new("d8 text that is not UTF-8 arrives with replacement characters", |lab| {
            Box::pin(d8_replaced(lab))
        })
        .differs(&[HostKind::Workerd], "not-utf8"),
        Case::new("d11 a message of 32 MiB arrives", |lab| Box::pin(d11_longest(lab))),
        Case::new("d11 a message of one byte more is an error and 1009", |lab| Box::pin(d11_longer(lab))),
        Case::new("d15 a close whose payload must not be sent is an error and 1002 or 1007", |lab| {
            Box::pin(d15_refused(lab))
        })
        .differs(&[HostKind::Tokio], "close-codes"),
        Case::new("d15 a close whose payload must not be sent is clean", |lab| Box::pin(d15_taken(lab)))
            .differs(&[HostKind::Workerd], "close-codes"),
        Case::new("d16 a control frame of more than 125 bytes breaks the protocol", |lab| {
            Box::pin(d16_long_control(lab, false))
        })
        .differs(&[HostKind::Tokio], "long-control"),
        Case::new("d16 a ping of more than 125 bytes is answered", |lab| {
            Box::pin(d16_long_control(lab, true))
        })
        .differs(&[HostKind::Workerd], "long-control"),
    ]);
    cases
}

async fn d7_deflate<D: Driver>(lab: &Lab<D>, expected: Option<&str>) -> Outcome {
    let head = Request::get(lab.path("ws", "a"))
        .header(header::UPGRADE, "websocket")
        .header(header::CONNECTION, "upgrade")
        .header(header::SEC_WEBSOCKET_VERSION, "13")
        .header(header::SEC_WEBSOCKET_KEY, "dGhlIHNhbXBsZSBub25jZQ==")
        .header(header::SEC_WEBSOCKET_EXTENSIONS, "permessage-deflate; client_max_window_bits");
    let mut exchange = lab.driver().begin(head.body(())?).await?;
    let head = exchange.head().await?;
    same("the status", head.status().as_u16(), 101)?;
    let extensions = head.headers().get(header::SEC_WEBSOCKET_EXTENSIONS);
    let extensions = extensions.map(|value| value.to_str()).transpose()?;
    same("the extension", extensions.and_then(|value| value.split(';').next()), expected)
}

/// The only event of the object, once it is there and some time passed in which another one could come.
async fn only_event<D: Driver>(lab: &Lab<D>, object: &str) -> Result<String, Fault> {
    lab.until(object, json!(["events"]), SOON, |events| *events != json!([])).await?;
    lab.advance(Duration::from_millis(200)).await?;
    let events = lab.events(object).await?;
    match events.as_array().map(Vec::as_slice) {
        Some([Value::String(event)]) => Ok(event.clone()),
        _ => Err(Fault::new(format!("{object} has the events {events}"))),
    }
}

/// The only event is a fault of the peer.
async fn only_error<D: Driver>(lab: &Lab<D>, object: &str) -> Outcome {
    let event = only_event(lab, object).await?;
    holds(format!("the event of {object} is {event:?}"), event.starts_with(": error Invalid: "))
}

/// The code with which the host closes, and nothing after it.
async fn ends_with<C: Client>(client: &mut C, what: &str, code: u16) -> Outcome {
    match client.receive().await.map_err(|fault| fault.during(what))? {
        Received::Close(Some((got, _))) => same(what, got, code),
        other => Err(Fault::new(format!("{what}: got {other:?} instead of a close with {code}"))),
    }
}

async fn d8_fragments<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.run("a", json!([{"on_message": ["echo"]}])).await?;
    let mut client = lab.open("a", &[]).await?;
    for (first, part) in [(TEXT, "hé"), (CONTINUATION, ""), (FIN | CONTINUATION, "llo")] {
        client.frame(first, part.as_bytes()).await?;
    }
    client.hears_text("a text, cut between characters", "héllo").await?;
    client.frame(TEXT, &[0xC3]).await?;
    client.frame(FIN | CONTINUATION, &[0xA9]).await?;
    client.hears_text("a text, cut within one", "é").await?;
    client.frame(BINARY, &[1]).await?;
    client.frame(FIN | CONTINUATION, &[2]).await?;
    client.hears("bytes", Received::Message(vec![1, 2].into())).await
}

async fn d8_refused<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut client = lab.open("a", &[]).await?;
    client.frame(FIN | TEXT, b"a\xFFb").await?;
    ends_with(&mut client, "the end", 1_007).await?;
    only_error(lab, "a").await
}

async fn d8_replaced<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.run("a", json!([{"on_message": ["echo"]}])).await?;
    let mut client = lab.open("a", &[]).await?;
    client.frame(FIN | TEXT, b"a\xFFb").await?;
    client.hears_text("the echo", "a\u{FFFD}b").await
}

async fn d11_longest<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut client = lab.open("a", &[]).await?;
    client.send(vec![b'x'; limits::MESSAGE_BYTES].into()).await?;
    let event = only_event(lab, "a").await?;
    same("the event", event, format!(": message of {} bytes", limits::MESSAGE_BYTES))?;
    client.steps(json!([])).await.map(drop)
}

async fn d11_longer<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut client = lab.open("a", &[]).await?;
    // The host may end the connection before all of it is on its way.
    drop(client.send(vec![b'x'; limits::MESSAGE_BYTES + 1].into()).await);
    only_error(lab, "a").await?;
    ends_with(&mut client, "the end", 1_009).await
}

async fn d11_fragments<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut client = lab.open("a", &[]).await?;
    let half = vec![b'x'; limits::MESSAGE_BYTES / 2];
    client.frame(BINARY, &half).await?;
    client.frame(CONTINUATION, &half).await?;
    client.frame(FIN | CONTINUATION, b"x").await?;
    ends_with(&mut client, "the end", 1_009).await?;
    only_error(lab, "a").await
}

async fn d13_ping<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut client = lab.open("a", &[]).await?;
    for payload in [&b""[..], b"ping \xFF", &[7; 125]] {
        client.frame(FIN | PING, payload).await?;
        client.hears("the answer", Received::Pong(payload.to_vec())).await?;
    }
    client.frame(TEXT, b"[").await?;
    client.frame(FIN | PING, b"within").await?;
    client.hears("the answer within a message", Received::Pong(b"within".to_vec())).await?;
    client.frame(FIN | CONTINUATION, br#""events"]"#).await?;
    client.hears_text("the events", "[[]]").await
}

async fn d13_pong<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut client = lab.open("a", &[]).await?;
    client.frame(FIN | PONG, b"unasked").await?;
    same("the events", client.steps(json!(["events"])).await?, json!([[]]))
}

async fn d13_asleep<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut client = lab.open("a", &[]).await?;
    lab.evict().await?;
    client.frame(FIN | PING, b"hi").await?;
    client.hears("the answer", Received::Pong(b"hi".to_vec())).await?;
    // The question is the second construction itself.
    same("constructions", client.steps(json!(["boots"])).await?, json!([2]))
}

/// A Close frame that breaks RFC 6455, and what workerd makes of it.
struct BadClose {
    what: &'static str,
    payload: &'static [u8],
    told: &'static str,
    answer: Option<(u16, &'static str)>,
}

const BAD_CLOSES: &[BadClose] = &[
    bad_close("code 999", b"\x03\xE7why", r#"999 "why""#, Some((1_002, ""))),
    bad_close("code 1004", b"\x03\xECwhy", r#"1004 "why""#, Some((1_002, ""))),
    bad_close("code 1005", b"\x03\xEDwhy", r#"1005 "why""#, None),
    bad_close("code 1016", b"\x03\xF8why", r#"1016 "why""#, Some((1_016, "why"))),
    bad_close("code 2999", b"\x0B\xB7why", r#"2999 "why""#, Some((2_999, "why"))),
    bad_close("code 5000", b"\x13\x88why", r#"5000 "why""#, Some((1_002, ""))),
    bad_close("half a code", b"\x03", r#"1005 """#, None),
    bad_close(
        "a reason that is not UTF-8",
        b"\x0F\xA1a\xFF",
        "4001 \"a\u{FFFD}\"",
        Some((4_001, "a\u{FFFD}")),
    ),
];

const fn bad_close(
    what: &'static str,
    payload: &'static [u8],
    told: &'static str,
    answer: Option<(u16, &'static str)>,
) -> BadClose {
    BadClose { what, payload, told, answer }
}

async fn d15_refused<D: Driver>(lab: &Lab<D>) -> Outcome {
    for BadClose { what, payload, .. } in BAD_CLOSES {
        let mut client = lab.open(what, &[]).await?;
        client.frame(FIN | CLOSE, payload).await?;
        let code = if what.contains("UTF-8") { 1_007 } else { 1_002 };
        ends_with(&mut client, what, code).await?;
        only_error(lab, what).await?;
    }
    Ok(())
}

async fn d15_taken<D: Driver>(lab: &Lab<D>) -> Outcome {
    for BadClose { what, payload, told, answer } in BAD_CLOSES {
        let mut client = lab.open(what, &[]).await?;
        client.frame(FIN | CLOSE, payload).await?;
        same(what, only_event(lab, what).await?, format!(": close {told} clean"))?;
        let answer = answer.map(|(code, reason)| (code, reason.to_owned()));
        client.hears(what, Received::Close(answer)).await?;
    }
    Ok(())
}

async fn d16_faults<D: Driver>(lab: &Lab<D>) -> Outcome {
    type Frames = &'static [(u8, &'static [u8])];
    let faults: [(&str, Frames); 5] = [
        ("a reserved bit", &[(FIN | RESERVED | TEXT, b"x")]),
        ("a reserved kind", &[(FIN | UNKNOWN, b"x")]),
        ("a fragmented ping", &[(PING, b"x")]),
        ("a continuation of nothing", &[(FIN | CONTINUATION, b"x")]),
        ("a message within a message", &[(TEXT, b"x"), (FIN | TEXT, b"y")]),
    ];
    for (fault, frames) in faults {
        let mut client = lab.open(fault, &[]).await?;
        for (first, payload) in frames {
            client.frame(*first, payload).await?;
        }
        ends_with(&mut client, fault, 1_002).await?;
        only_error(lab, fault).await?;
    }
    Ok(())
}

async fn d16_no_close<D: Driver>(lab: &Lab<D>) -> Outcome {
    let mut client = lab.open("a", &[]).await?;
    client.frame(FIN | UNKNOWN, b"x").await?;
    ends_with(&mut client, "the end", 1_002).await?;
    client.close(Some((1_002, ""))).await?;
    client.lose();
    only_error(lab, "a").await?;
    same("the count", lab.last("a", json!([{"count": "all"}])).await?, json!(0))
}

async fn d16_long_control<D: Driver>(lab: &Lab<D>, taken: bool) -> Outcome {
    let mut client = lab.open("a", &[]).await?;
    client.frame(FIN | PING, &[7; 126]).await?;
    if taken {
        return client.hears("the answer", Received::Pong(vec![7; 126])).await;
    }
    ends_with(&mut client, "the end", 1_002).await?;
    only_error(lab, "a").await
}

async fn d16_send<D: Driver>(lab: &Lab<D>) -> Outcome {
    let steps = json!([{"send": ["this", "late"]}, {"note": "sent"}]);
    lab.run("a", json!([{"sockets": {"on_error": steps}}])).await?;
    let mut client = lab.open("a", &[]).await?;
    client.frame(FIN | UNKNOWN, b"x").await?;
    ends_with(&mut client, "the end", 1_002).await?;
    let noted = |lines: &Value| *lines == json!(["sent"]);
    lab.until("a", json!([{"sql": "SELECT line FROM log"}]), SOON, noted).await?;
    lab.silent("what was sent", messages(&mut client), Duration::from_millis(200)).await
}

/// Ends with a message and otherwise never.
async fn messages<C: Client>(client: &mut C) {
    loop {
        match client.receive().await {
            Ok(Received::Message(_)) => return,
            Ok(Received::Lost) | Err(_) => return std::future::pending().await,
            Ok(_) => {}
        }
    }
}

async fn d16_handler<D: Driver>(lab: &Lab<D>) -> Outcome {
    let note = json!({"note_of": [{"states": "this"}, {"tags": "this"}, {"attachments": "this"}, {"count": "others"}]});
    lab.run("a", json!([{"sockets": {"on_error": [note, {"sleep": 10}, note]}}])).await?;
    let mut client = lab.open("a", &[("tag", "t"), ("attach", "ada")]).await?;
    client.frame(FIN | UNKNOWN, b"x").await?;
    ends_with(&mut client, "the end", 1_002).await?;
    let seen = json!(vec![r#"[["Closing"],[["t"]],["ada"],0]"#; 2]);
    let lines = json!([{"sql": "SELECT line FROM log"}]);
    lab.until("a", lines, SOON, |lines| *lines == seen).await.map(drop)
}
