//! What editors see: greeting, counts and changes, and what becomes of those who speak wrongly or go away.

use crate::common::{Editor, HANDSHAKE, Http, Place, Server, created, eventually, request, within};
use serde_json::{Value, json};
use std::time::{SystemTime, UNIX_EPOCH};
use tokio_tungstenite::tungstenite::{
    Message,
    protocol::frame::{
        Frame,
        coding::{CloseCode, Data, OpCode},
    },
};

fn unix_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis().try_into().unwrap()
}

pub(crate) fn editors(count: usize) -> Value {
    json!({ "type": "editors", "editors": count })
}

/// A WebSocket that speaks in bytes, after its greeting.
pub(crate) async fn raw_editor(server: &Server) -> Http {
    greeted(server, Http::connect(server.address).await).await
}

pub(crate) async fn greeted(server: &Server, mut http: Http) -> Http {
    let host = server.address.to_string();
    let mut headers = vec![("host", host.as_str())];
    headers.extend(HANDSHAKE);
    http.send(request("GET", "/ws", &headers, "").as_bytes()).await.unwrap();
    assert_eq!(within("the handshake", http.answer("GET")).await.unwrap().status, 101);
    let (opcode, hello) = within("the greeting", http.frame()).await.unwrap();
    assert_eq!(opcode, 0x81);
    assert!(hello.starts_with(br#"{"type":"hello","#));
    http
}

/// What comes next is a Close frame with this code.
pub(crate) async fn expect_close(http: &mut Http, code: u16) {
    let (opcode, payload) = within("a Close frame", http.frame()).await.unwrap();
    assert_eq!((opcode, payload.get(..2)), (0x88, Some(&code.to_be_bytes()[..])), "{payload:?}");
}

#[tokio::test]
async fn editors_are_greeted_counted_and_told_each_change() {
    let place = Place::new();
    let server = place.start().await;
    let (mut first, hello) = Editor::join(&server).await;
    assert_eq!(hello, json!({ "type": "hello", "editors": 1, "recent": [] }));
    let (mut second, hello) = Editor::join(&server).await;
    assert_eq!(hello, json!({ "type": "hello", "editors": 2, "recent": [] }));
    assert_eq!(first.next().await, editors(2));

    let before = unix_ms();
    assert_eq!(server.notify_created("a.txt").await, 1);
    let renamed = json!({ "kind": "renamed", "path": "b.txt", "from": "a.txt" }).to_string();
    assert_eq!(server.notify(&renamed).await, (200, json!({ "seq": 2 })));
    let after = unix_ms();
    let mut seen = Vec::new();
    for editor in [&mut first, &mut second] {
        let (one, two) = (editor.next().await, editor.next().await);
        let (at, later) = (one["at"].as_i64().unwrap(), two["at"].as_i64().unwrap());
        assert!(before <= at && at <= later && later <= after, "{before} {at} {later} {after}");
        assert_eq!(one, json!({ "type": "change", "seq": 1, "kind": "created", "path": "a.txt", "at": at }));
        assert_eq!(
            two,
            json!({ "type": "change", "seq": 2, "kind": "renamed", "path": "b.txt", "at": later, "from": "a.txt" })
        );
        seen.push(json!([one, two]));
    }
    assert_eq!(seen[0], seen[1]);

    let (third, hello) = Editor::join(&server).await;
    assert_eq!(hello, json!({ "type": "hello", "editors": 3, "recent": seen[0] }));
    for editor in [&mut first, &mut second] {
        assert_eq!(editor.next().await, editors(3));
    }
    third.leave().await;
    for editor in [&mut first, &mut second] {
        assert_eq!(editor.next().await, editors(2));
    }
    first.leave().await;
    assert_eq!(second.next().await, editors(1));
    second.leave().await;
    server.stop().await;
}

#[tokio::test]
async fn a_joiner_sees_the_last_100_oldest_first_and_numbers_go_on_after_a_restart() {
    let place = Place::new();
    let server = place.start().await;
    let list: Vec<Value> = (1..=150).map(|n| json!({ "kind": "created", "path": format!("f{n}") })).collect();
    assert_eq!(server.notify(&json!(list).to_string()).await, (200, json!({ "seq": 150 })));
    let shown = |hello: &Value| -> Vec<(i64, String)> {
        let recent = hello["recent"].as_array().unwrap();
        recent.iter().map(|c| (c["seq"].as_i64().unwrap(), c["path"].as_str().unwrap().to_owned())).collect()
    };
    let expected: Vec<_> = (51..=150).map(|n| (n, format!("f{n}"))).collect();
    let (_editor, hello) = Editor::join(&server).await;
    assert_eq!(shown(&hello), expected);
    server.stop().await;

    let server = place.start().await;
    let (_editor, again) = Editor::join(&server).await;
    assert_eq!(again["recent"], hello["recent"]);
    assert_eq!(server.notify_created("next").await, 151);
    server.kill().await;
    assert_eq!(place.start().await.notify_created("last").await, 152);
}

#[tokio::test]
async fn a_report_reaches_editors_in_one_piece_and_in_order() {
    let place = Place::new();
    let server = place.start().await;
    let (mut editor, _) = Editor::join(&server).await;
    let report = |name: &str| {
        let list: Vec<Value> =
            (0..500).map(|n| json!({ "kind": "modified", "path": format!("{name}/{n}") })).collect();
        json!(list).to_string()
    };
    let (a, b) = (report("a"), report("b"));
    let (a, b) = tokio::join!(server.notify(&a), server.notify(&b));
    assert_eq!((a.0, b.0), (200, 200));
    let mut last = String::new();
    for n in 0..1_000 {
        let change = editor.next().await;
        assert_eq!(change["seq"], n + 1);
        let (name, index) = change["path"].as_str().unwrap().split_once('/').unwrap();
        assert_eq!(index, (n % 500).to_string());
        assert!(index == "0" || last == name, "the reports are mixed at {n}");
        name.clone_into(&mut last);
    }
}

#[tokio::test]
async fn a_text_ping_is_answered_while_the_room_sleeps_and_a_json_ping_wakes_it() {
    let place = Place::new();
    let server = place.start_drowsy().await;
    let (mut editor, _) = Editor::join(&server).await;
    server.asleep().await;
    let woken = async || (server.constructed().await, server.messages().await);
    assert_eq!(woken().await, (1, 0));
    for _ in 0..3 {
        editor.send("ping").await;
        assert_eq!(editor.text().await, "pong");
    }
    editor.send(Message::Ping("p".into())).await;
    assert!(matches!(editor.message().await, Some(Ok(Message::Pong(payload))) if payload == "p"));
    assert_eq!(woken().await, (1, 0), "it is still asleep");

    editor.send(r#"{"type":"ping"}"#).await;
    assert_eq!(editor.text().await, r#"{"type":"pong"}"#);
    assert_eq!(woken().await, (2, 1));
    server.asleep().await;
}

#[tokio::test]
async fn what_comes_with_the_handshake_is_not_lost() {
    let place = Place::new();
    let server = place.start().await;
    let host = server.address.to_string();
    let mut headers = vec![("host", host.as_str())];
    headers.extend(HANDSHAKE);
    let mut bytes = request("GET", "/ws", &headers, "").into_bytes();
    bytes.extend(b"\x81\x84\0\0\0\0ping\x89\x80\0\0\0\0");
    let mut http = Http::connect(server.address).await;
    http.send(&bytes).await.unwrap();
    assert_eq!(within("the handshake", http.answer("GET")).await.unwrap().status, 101);
    let hello = within("the greeting", http.frame()).await.unwrap();
    assert_eq!(hello, (0x81, br#"{"type":"hello","editors":1,"recent":[]}"#.to_vec()));
    let mut answers = [http.frame().await.unwrap(), http.frame().await.unwrap()];
    answers.sort();
    assert_eq!(answers, [(0x81, b"pong".to_vec()), (0x8a, Vec::new())]);
}

#[tokio::test]
async fn malformed_messages_are_survived() {
    let place = Place::new();
    let server = place.start().await;
    let (mut editor, _) = Editor::join(&server).await;
    for bad in [
        Message::text(""),
        Message::text("pong"),
        Message::text("PING"),
        Message::text("ping "),
        Message::text("{"),
        Message::text("null"),
        Message::text(r#"{"type":"ping","#),
        Message::text(r#"{"type":"hello"}"#),
        Message::text(r#"{"type":"change","kind":"created","path":"x"}"#),
        Message::text("[".repeat(100_000)),
        Message::binary(vec![]),
        Message::binary(vec![0xff; 1_000]),
        Message::binary("ping"),
    ] {
        editor.send(bad).await;
    }
    editor.send(r#"{"type":"ping"}"#).await;
    assert_eq!(editor.text().await, r#"{"type":"pong"}"#, "nothing came before");
    assert_eq!(server.notify_created("x").await, 1, "editors report nothing");
    assert_eq!(editor.next().await["path"], "x");
}

#[tokio::test]
async fn a_message_that_is_too_long_ends_its_connection_with_1009() {
    let place = Place::new();
    let server = place.start().await;
    let (mut other, _) = Editor::join(&server).await;
    let most: u64 = 32 * 1_024 * 1_024;

    let mut announced = raw_editor(&server).await;
    assert_eq!(other.next().await, editors(2));
    let mut head = vec![0x81, 0x80 | 127];
    head.extend((most + 1).to_be_bytes());
    head.extend([0; 4]);
    announced.send(&head).await.unwrap();
    expect_close(&mut announced, 1009).await;
    assert_eq!(other.next().await, editors(1));

    // In pieces that are short enough each.
    let (mut pieces, _) = Editor::join(&server).await;
    assert_eq!(other.next().await, editors(2));
    let half = vec![b' '; usize::try_from(most / 2).unwrap()];
    let piece =
        |opcode, is_final| Message::Frame(Frame::message(half.clone(), OpCode::Data(opcode), is_final));
    pieces.send(piece(Data::Text, false)).await;
    pieces.send(piece(Data::Continue, false)).await;
    pieces.send(Message::Frame(Frame::message(" ", OpCode::Data(Data::Continue), true))).await;
    assert_eq!(pieces.close_code().await, CloseCode::Size);
    assert_eq!(other.next().await, editors(1));

    // The longest that is taken is no malformed frame, only a malformed message.
    other.send("x".repeat(usize::try_from(most).unwrap())).await;
    other.send(r#"{"type":"ping"}"#).await;
    assert_eq!(other.text().await, r#"{"type":"pong"}"#);
}

#[tokio::test]
async fn a_broken_protocol_ends_its_connection_with_1002() {
    let place = Place::new();
    let server = place.start().await;
    let (mut other, _) = Editor::join(&server).await;
    for (what, bytes) in [
        ("a reserved bit", &[0xc1, 0x80, 0, 0, 0, 0][..]),
        ("a reserved opcode", &[0x83, 0x80, 0, 0, 0, 0]),
        ("a continuation of nothing", &[0x80, 0x80, 0, 0, 0, 0]),
        ("a control frame in pieces", &[0x09, 0x80, 0, 0, 0, 0]),
    ] {
        println!("{what}");
        let mut http = raw_editor(&server).await;
        assert_eq!(other.next().await, editors(2));
        http.send(bytes).await.unwrap();
        expect_close(&mut http, 1002).await;
        assert_eq!(other.next().await, editors(1));
    }
}

#[tokio::test]
async fn a_close_is_answered_with_its_code() {
    let place = Place::new();
    let server = place.start().await;
    for (sent, answered) in [
        (&b"\x88\x82\0\0\0\0\x03\xe8"[..], &b"\x03\xe8"[..]),
        (b"\x88\x82\0\0\0\0\x03\xe9", b"\x03\xe9"),
        (b"\x88\x86\0\0\0\0\x0b\xb8late", b"\x0b\xb8late"),
        (b"\x88\x82\0\0\0\0\x13\x87", b"\x13\x87"),
        (b"\x88\x80\0\0\0\0", b""),
    ] {
        let mut http = raw_editor(&server).await;
        http.send(sent).await.unwrap();
        let (opcode, payload) = within("the answer", http.frame()).await.unwrap();
        assert_eq!((opcode, payload.as_slice()), (0x88, answered));
        assert_eq!(within("the end", http.rest()).await.unwrap(), b"");
    }
}

#[tokio::test]
async fn an_evicted_room_comes_back_with_its_sockets_and_right_counts() {
    let place = Place::new();
    let server = place.start_drowsy().await;
    let (mut first, _) = Editor::join(&server).await;
    let (mut second, _) = Editor::join(&server).await;
    assert_eq!(first.next().await, editors(2));
    server.asleep().await;
    assert_eq!(server.constructed().await, 1);

    assert_eq!(server.notify_created("x").await, 1);
    assert_eq!(server.constructed().await, 2);
    for editor in [&mut first, &mut second] {
        let change = editor.next().await;
        assert_eq!((&change["seq"], &change["path"]), (&json!(1), &json!("x")));
    }

    server.asleep().await;
    let (mut third, hello) = Editor::join(&server).await;
    assert_eq!((&hello["editors"], hello["recent"].as_array().unwrap().len()), (&json!(3), 1));
    for editor in [&mut first, &mut second] {
        assert_eq!(editor.next().await, editors(3));
    }

    // Numbers go on, though the room's memory is lost each time.
    server.asleep().await;
    assert_eq!(server.notify_created("y").await, 2);
    for editor in [&mut first, &mut second, &mut third] {
        assert_eq!(editor.next().await["seq"], 2);
    }

    // One leaves politely and one without a word, each while the room is not there.
    server.asleep().await;
    first.leave().await;
    for editor in [&mut second, &mut third] {
        assert_eq!(editor.next().await, editors(2));
    }
    server.asleep().await;
    drop(second);
    assert_eq!(third.next().await, editors(1));
    let (_fourth, hello) = Editor::join(&server).await;
    assert_eq!(hello["editors"], 2);
}

#[tokio::test]
async fn the_last_who_vanishes_wakes_the_room_that_hears_of_it() {
    let place = Place::new();
    let server = place.start_drowsy().await;
    let (mut editor, _) = Editor::join(&server).await;
    let (mut other, _) = Editor::join(&server).await;
    assert_eq!(editor.next().await, editors(2));
    drop(editor);
    assert_eq!(other.next().await, editors(1));
    server.asleep().await;
    assert_eq!(server.constructed().await, 1);
    drop(other);
    // Nobody is left to see it, so the log tells that the room was woken to hear it.
    eventually("the room hears of the last one", async || server.constructed().await == 2).await;
    server.asleep().await;
}

#[tokio::test]
async fn who_leaves_by_a_reset_is_counted_out() {
    let place = Place::new();
    let server = place.start().await;
    let (mut watcher, _) = Editor::join(&server).await;
    let gone = raw_editor(&server).await;
    assert_eq!(watcher.next().await, editors(2));
    gone.reset();
    assert_eq!(watcher.next().await, editors(1));
    assert_eq!(server.notify_created("x").await, 1);
    assert_eq!(watcher.next().await["path"], "x");
}

#[tokio::test]
async fn two_hundred_who_vanish_are_counted_out() {
    let place = Place::new();
    let server = place.start().await;
    let (mut watcher, _) = Editor::join(&server).await;
    #[cfg(target_os = "linux")]
    let before = server.open_files();
    let mut crowd = Vec::new();
    for n in 2..=201 {
        let mut editor = raw_editor(&server).await;
        assert_eq!(watcher.next().await, editors(n));
        if n % 3 == 0 {
            editor.send(&[0x81, 0xfe]).await.unwrap(); // it vanishes amid a frame
        }
        crowd.push(editor);
    }
    drop(crowd);
    // Each is told once; those who vanish at the same moment are all gone by then.
    let mut count = 201;
    for _ in 0..200 {
        let left = watcher.next().await;
        assert!(left["type"] == "editors" && left["editors"].as_u64().unwrap() <= count, "{left}");
        count = left["editors"].as_u64().unwrap();
    }
    assert_eq!(count, 1);
    #[cfg(target_os = "linux")]
    eventually("their connections are closed", async || server.open_files() <= before).await;
    let (_last, hello) = Editor::join(&server).await;
    assert_eq!(hello["editors"], 2);
    assert_eq!(watcher.next().await, editors(2));
    assert_eq!(server.notify_created("x").await, 1);
    assert_eq!(watcher.next().await["path"], "x");
}

#[tokio::test]
async fn those_who_vanish_during_the_handshake_are_counted_out() {
    let place = Place::new();
    let server = place.start().await;
    let (mut watcher, _) = Editor::join(&server).await;
    let host = server.address.to_string();
    let mut headers = vec![("host", host.as_str())];
    headers.extend(HANDSHAKE);
    for _ in 0..50 {
        let mut http = Http::connect(server.address).await;
        http.send(request("GET", "/ws", &headers, "").as_bytes()).await.unwrap();
        drop(http);
    }
    // Later than all of them, because each of these takes a round trip that theirs did not wait for.
    assert_eq!(server.notify(&created("mark")).await.0, 200);
    let (last, _) = Editor::join(&server).await;
    last.leave().await;
    within("the count is right again", async {
        loop {
            let (probe, hello) = Editor::join(&server).await;
            probe.leave().await;
            if hello["editors"] == 2 {
                break;
            }
        }
    })
    .await;
    let mut text = watcher.next().await;
    while text["type"] != "change" {
        text = watcher.next().await;
    }
}

/// Two editors and 2,100 long changes, more than the buffers of the system and the outbox of a host take. One reads
/// them as they come; the other, which is given back, reads nothing.
pub(crate) async fn one_does_not_read(server: &Server) -> (Editor, Http) {
    let (mut reader, _) = Editor::join(server).await;
    let mute = greeted(server, Http::connect_narrow(server.address).await).await;
    assert_eq!(reader.next().await, editors(2));
    let long = "x".repeat(4_000);
    let list = json!(vec![json!({ "kind": "created", "path": long }); 15]).to_string();
    for last in (15..=2_100).step_by(15) {
        assert_eq!(server.notify(&list).await, (200, json!({ "seq": last })));
        for seq in last - 14..=last {
            assert_eq!(reader.next().await["seq"], seq, "the other one reads on");
        }
    }
    (reader, mute)
}
