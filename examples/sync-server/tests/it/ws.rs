//! What editors see of the native server alone: it is stricter than Workers with a broken protocol, and with those who
//! do not read.

use crate::{
    both::ws::{editors, expect_close, one_does_not_read, raw_editor},
    common::{Editor, Place, within},
};
use tokio_tungstenite::tungstenite::{
    Message,
    protocol::frame::{
        Frame,
        coding::{CloseCode, Data, OpCode},
    },
};

#[tokio::test]
async fn invalid_utf8_ends_its_connection_with_1007() {
    let place = Place::new();
    let server = place.start().await;
    let (mut other, _) = Editor::join(&server).await;
    let (mut editor, _) = Editor::join(&server).await;
    assert_eq!(other.next().await, editors(2));
    editor.send(Message::Frame(Frame::message(&b"caf\xe9"[..], OpCode::Data(Data::Text), true))).await;
    assert_eq!(editor.close_code().await, CloseCode::Invalid);
    assert_eq!(other.next().await, editors(1));
}

#[tokio::test]
async fn a_broken_protocol_ends_its_connection_at_once() {
    let place = Place::new();
    let server = place.start().await;
    for (what, bytes) in [
        ("an unmasked frame", &[0x81, 0x01, b'x'][..]),
        ("a reserved bit", &[0xc1, 0x80, 0, 0, 0, 0]),
        ("a reserved opcode", &[0x83, 0x80, 0, 0, 0, 0]),
        ("a continuation of nothing", &[0x80, 0x80, 0, 0, 0, 0]),
        ("a control frame in pieces", &[0x09, 0x80, 0, 0, 0, 0]),
        ("a Close frame of one byte", &[0x88, 0x81, 0, 0, 0, 0, 3]),
    ] {
        println!("{what}");
        let mut http = raw_editor(&server).await;
        http.send(bytes).await.unwrap();
        expect_close(&mut http, 1002).await;
        assert_eq!(within("the end", http.rest()).await.unwrap(), b"");
    }
}

#[tokio::test]
async fn who_does_not_read_is_dropped_and_holds_nobody_up() {
    let place = Place::new();
    let server = place.start().await;
    let (mut reader, mut mute) = one_does_not_read(&server).await;
    assert_eq!(reader.next().await, editors(1));
    // What had left arrives, or the connection is reset: it ends in any case. It is not much, because the listener keeps
    // the system's buffers small: the room knows what waits.
    if let Ok(rest) = within("the end", mute.rest()).await {
        assert!(rest.len() < 1_024 * 1_024, "{}", rest.len());
    }
    let (_other, hello) = Editor::join(&server).await;
    assert_eq!(hello["editors"], 2);
}
