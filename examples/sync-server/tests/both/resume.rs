//! What those see who follow by the protocol of `do_sync`: the same changes as the others, and what they missed.

use super::ws::editors;
use crate::common::{Editor, HANDSHAKE, Http, PROTOCOL, Place, Server, request, within};
use do_sync::client::{Backoff, Cause, Client, Event, Io};
use serde_json::{Value, json};
use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::net::TcpSocket;

/// What those who follow are told of the count.
fn event(editors: usize) -> Value {
    json!({ "t": "ev", "d": { "editors": editors } })
}

/// A report of changes of this length each.
fn report(names: impl IntoIterator<Item = usize>, length: usize) -> String {
    let change = |n| json!({ "kind": "created", "path": format!("{n:0length$}") });
    json!(names.into_iter().map(change).collect::<Vec<_>>()).to_string()
}

/// Reports changes, one more for each number up to this one.
async fn report_up_to(server: &Server, last: usize) {
    for first in (1..=last).step_by(1_000) {
        let end = last.min(first + 999);
        assert_eq!(server.notify(&report(first..=end, 5)).await, (200, json!({ "seq": end })));
    }
}

/// The epoch and the number of a position.
fn position(hello: &Value) -> (&str, u64) {
    let (epoch, seq) = hello["at"].as_str().unwrap().split_once('-').unwrap();
    (epoch, seq.parse().unwrap())
}

/// Takes what was announced, and gives the first and the last number.
async fn replayed(editor: &mut Editor, hello: &Value) -> (u64, u64) {
    let (first, count) = (position(hello).1 + 1, hello["replay"].as_u64().unwrap());
    for seq in first..first + count {
        let message = editor.next().await;
        assert_eq!((&message["t"], &message["s"]), (&json!("msg"), &json!(seq)));
    }
    (first, first + count - 1)
}

#[tokio::test]
async fn plain_and_following_editors_each_get_everything_once_in_their_own_words() {
    let place = Place::new();
    let server = place.start().await;
    let (mut plain, hello) = Editor::join(&server).await;
    assert_eq!(hello, json!({ "type": "hello", "editors": 1, "recent": [] }));
    let (mut follower, hello) = Editor::follow(&server, None).await;
    assert_eq!((position(&hello).1, &hello["replay"], &hello["gap"]), (0, &json!(0), &Value::Null));
    assert_eq!(hello["ping"], json!(["ping", "pong"]));
    assert_eq!(follower.next().await, event(2));
    assert_eq!(plain.next().await, editors(2));

    let renamed = json!({ "type": "change", "kind": "renamed", "path": "b", "from": "a" });
    let list = json!([{ "kind": "created", "path": "a" }, renamed]).to_string();
    assert_eq!(server.notify(&list).await, (200, json!({ "seq": 2 })));
    let (one, two) = (plain.next().await, plain.next().await);
    assert_eq!(one, json!({ "type": "change", "seq": 1, "kind": "created", "path": "a", "at": one["at"] }));
    let expected =
        json!({ "type": "change", "seq": 2, "kind": "renamed", "path": "b", "from": "a", "at": two["at"] });
    assert_eq!(two, expected);
    let created = json!({ "type": "change", "kind": "created", "path": "a" });
    for (seq, change, at) in [(1, created, &one["at"]), (2, renamed, &two["at"])] {
        assert_eq!(follower.next().await, json!({ "t": "msg", "s": seq, "at": at, "d": change }));
    }

    // Who comes now is told the same, whichever way: the same numbers and times.
    let (late, hello) = Editor::join(&server).await;
    assert_eq!(hello, json!({ "type": "hello", "editors": 3, "recent": [one, two] }));
    let (mut late_follower, hello) = Editor::follow(&server, None).await;
    assert_eq!((position(&hello).1, &hello["replay"]), (0, &json!(2)));
    for shown in [&one, &two] {
        let message = late_follower.next().await;
        assert_eq!((&message["s"], &message["at"]), (&shown["seq"], &shown["at"]));
        assert_eq!(message["d"]["path"], shown["path"]);
    }
    assert_eq!(late_follower.next().await, event(4));

    late.leave().await;
    late_follower.leave().await;
    for count in [3, 4, 3, 2] {
        assert_eq!(plain.next().await, editors(count));
        assert_eq!(follower.next().await, event(count));
    }
    follower.send("ping").await;
    assert_eq!(follower.text().await, "pong");
    follower.leave().await;
    assert_eq!(plain.next().await, editors(1));
    server.stop().await;
}

#[tokio::test]
async fn another_sub_protocol_is_not_chosen_and_its_editor_a_plain_one() {
    let place = Place::new();
    let server = place.start().await;
    let host = server.address.to_string();
    for (offered, is_chosen) in
        [("do-sync.2, chat", false), ("DO-SYNC.1", false), ("chat, do-sync.1", true), (PROTOCOL, true)]
    {
        let mut headers = vec![("host", host.as_str()), ("sec-websocket-protocol", offered)];
        headers.extend(HANDSHAKE);
        let mut http = Http::connect(server.address).await;
        http.send(request("GET", "/ws", &headers, "").as_bytes()).await.unwrap();
        let answer = within("the handshake", http.answer("GET")).await.unwrap();
        assert_eq!(answer.status, 101);
        assert_eq!(answer.header("sec-websocket-protocol"), is_chosen.then_some(PROTOCOL), "{offered}");
        let (_, hello) = within("the greeting", http.frame()).await.unwrap();
        let begin = if is_chosen { &br#"{"t":"hello""#[..] } else { br#"{"type":"hello""# };
        assert!(hello.starts_with(begin), "{offered}");
    }
}

#[tokio::test]
async fn full_reports_reach_both_kinds_in_one_piece() {
    let place = Place::new();
    let server = place.start().await;
    let (mut plain, _) = Editor::join(&server).await;
    let (mut follower, _) = Editor::follow(&server, None).await;
    assert_eq!((follower.next().await, plain.next().await), (event(2), editors(2)));
    // Nobody reads before the second is answered.
    report_up_to(&server, 2_000).await;
    for seq in 1..=2_000 {
        let (change, message) = (plain.next().await, follower.next().await);
        assert_eq!((&change["seq"], &message["s"]), (&json!(seq), &json!(seq)));
        assert_eq!(change["path"], format!("{seq:05}"));
        assert_eq!((&change["path"], &change["at"]), (&message["d"]["path"], &message["at"]));
    }
}

#[tokio::test]
async fn a_newcomer_is_shown_the_last_100_and_who_comes_back_all_that_they_missed() {
    let place = Place::new();
    let server = place.start().await;
    let (first, hello) = Editor::follow(&server, None).await;
    let epoch = position(&hello).0.to_owned();
    first.leave().await;
    report_up_to(&server, 600).await;

    let (mut newcomer, hello) = Editor::follow(&server, None).await;
    assert_eq!((position(&hello).0, &hello["gap"]), (epoch.as_str(), &Value::Null));
    assert_eq!(replayed(&mut newcomer, &hello).await, (501, 600));
    let (mut back, hello) = Editor::follow(&server, Some(&format!("{epoch}-7"))).await;
    assert_eq!((&hello["at"], &hello["gap"]), (&json!(format!("{epoch}-7")), &Value::Null));
    assert_eq!(replayed(&mut back, &hello).await, (8, 600));
    let (_there, hello) = Editor::follow(&server, Some(&format!("{epoch}-600"))).await;
    assert_eq!((&hello["replay"], &hello["gap"]), (&json!(0), &Value::Null));
}

#[tokio::test]
async fn a_position_that_is_too_old_or_unknown_is_a_gap() {
    let place = Place::new();
    let server = place.start().await;
    report_up_to(&server, 1_300).await;
    let (_newcomer, hello) = Editor::follow(&server, None).await;
    let (epoch, _) = position(&hello);

    let after = format!("{epoch}-10");
    let (mut late, hello) = Editor::follow(&server, Some(&after)).await;
    assert_eq!(hello["gap"], json!({ "after": after, "lost": 290 }));
    assert_eq!(replayed(&mut late, &hello).await, (301, 1_300));
    for unknown in [format!("{epoch}-1301"), format!("1{epoch}-10"), "what".to_owned()] {
        let (mut editor, hello) = Editor::follow(&server, Some(&unknown)).await;
        assert_eq!(hello["gap"], json!({ "after": unknown, "lost": null }));
        assert_eq!(replayed(&mut editor, &hello).await, (1_201, 1_300));
    }
}

#[tokio::test]
async fn who_follows_a_room_that_sleeps_is_told_when_it_wakes() {
    let place = Place::new();
    let server = place.start_drowsy().await;
    let (mut plain, _) = Editor::join(&server).await;
    let (mut follower, _) = Editor::follow(&server, None).await;
    assert_eq!((follower.next().await, plain.next().await), (event(2), editors(2)));
    server.asleep().await;
    assert_eq!(server.notify_created("x").await, 1);
    assert_eq!((&follower.next().await["s"], &plain.next().await["seq"]), (&json!(1), &json!(1)));
    server.asleep().await;
    drop(plain);
    assert_eq!(follower.next().await, event(1));
}

/// A client whose server may be elsewhere with each connection, and for which the system keeps little that it has not
/// read.
fn client(address: &Arc<Mutex<SocketAddr>>) -> Client {
    let address = Arc::clone(address);
    Client::builder("ws://localhost/ws")
        .header("sec-websocket-protocol", PROTOCOL)
        .connector(move |_| {
            let address = *address.lock().unwrap();
            async move {
                let socket = TcpSocket::new_v4()?;
                socket.set_recv_buffer_size(16 * 1_024)?;
                Ok(Box::new(socket.connect(address).await?) as Box<dyn Io>)
            }
        })
        .max_events(4)
        .backoff(Backoff::new().base(Duration::from_millis(20)))
        .connect()
        .unwrap()
}

/// The numbers of messages up to this one; whatever else comes is no gap and no end.
async fn seen_up_to(client: &mut Client, last: u64) -> Vec<u64> {
    let mut seen = Vec::new();
    while seen.last() != Some(&last) {
        match within("an event", client.next_event()).await.unwrap() {
            Event::Message { position, .. } => seen.push(position.seq()),
            Event::Connected(room) => assert!(room.gap.is_none(), "{room:?}"),
            Event::Stopped { cause, .. } => panic!("{cause}"),
            _ => {}
        }
    }
    seen
}

#[tokio::test]
async fn after_kill_9_and_a_restart_a_client_continues_where_it_was() {
    let place = Place::new();
    let server = place.start().await;
    let address = Arc::new(Mutex::new(server.address));
    let mut client = client(&address);
    let (mut plain, _) = Editor::join(&server).await;
    report_up_to(&server, 3).await;
    assert_eq!(seen_up_to(&mut client, 3).await, [1, 2, 3]);
    server.kill().await;
    while let Some(Ok(_)) = plain.message().await {}

    // More than one connection takes at once: the rest comes in parts.
    let server = place.start().await;
    for first in (4..=603).step_by(15) {
        assert_eq!(server.notify(&report(first..first + 15, 4_000)).await.0, 200);
    }
    *address.lock().unwrap() = server.address;
    assert_eq!(seen_up_to(&mut client, 603).await, (4..=603).collect::<Vec<_>>());
    assert_eq!(client.position().map(do_sync::Position::seq), Some(603));
    assert_eq!(server.notify_created("live").await, 604);
    assert_eq!(seen_up_to(&mut client, 604).await, [604]);
}

#[tokio::test]
async fn who_follows_too_slowly_is_closed_and_loses_nothing() {
    let place = Place::new();
    let server = place.start().await;
    let mut client = client(&Arc::new(Mutex::new(server.address)));
    assert!(matches!(within("an event", client.next_event()).await, Some(Event::Connected(_))));
    let (mut plain, _) = Editor::join(&server).await;
    // The longest changes that there are, and more of them than waits for anybody, here and in the buffers of the system.
    // The client takes none of them meanwhile.
    let worst = "\u{1}".repeat(4_096);
    let change = json!({ "kind": "renamed", "path": worst, "from": worst }).to_string();
    for seq in 1..=150 {
        assert_eq!(server.notify(&change).await, (200, json!({ "seq": seq })));
        assert_eq!(plain.next().await["seq"], seq, "the other one reads on");
    }
    let (mut next, mut was_closed) = (1, false);
    while next <= 150 {
        match within("an event", client.next_event()).await.unwrap() {
            Event::Message { position, .. } => {
                assert_eq!(position.seq(), next);
                next += 1;
            }
            Event::Disconnected { cause: Cause::Closed { code, .. }, .. } => {
                was_closed |= code == 1_013;
            }
            Event::Connected(room) => assert!(room.gap.is_none() && room.resumed, "{room:?}"),
            Event::Stopped { cause, .. } => panic!("{cause}"),
            _ => {}
        }
    }
    assert!(was_closed, "it was not too slow");
}
