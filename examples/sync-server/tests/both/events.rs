//! What those see who read along by server-sent events: the same changes as the others, and what they missed.

use super::ws::editors;
use crate::common::{Editor, Place, Reader, Server};
use serde_json::{Value, json};

/// The epoch and the number of a position.
fn position(id: &str) -> (String, u64) {
    let (epoch, seq) = id.split_once('-').unwrap();
    (epoch.to_owned(), seq.parse().unwrap())
}

/// Reports changes of this length each, one for each number up to this one.
async fn report_up_to(server: &Server, first: usize, last: usize, length: usize, at_once: usize) {
    for first in (first..=last).step_by(at_once) {
        let end = last.min(first + at_once - 1);
        let change = |n| json!({ "kind": "created", "path": format!("{n:0length$}") });
        let report = json!((first..=end).map(change).collect::<Vec<_>>()).to_string();
        assert_eq!(server.notify(&report).await, (200, json!({ "seq": end })));
    }
}

/// Reads changes from this number up to that one, and that each has its position as id.
async fn expect(reader: &mut Reader, epoch: &str, first: u64, last: u64) {
    for seq in first..=last {
        assert_eq!(reader.data("change").await["seq"], seq);
        assert_eq!(reader.last(), format!("{epoch}-{seq}"));
    }
}

#[tokio::test]
async fn who_reads_along_is_told_each_change_in_the_words_of_plain_editors() {
    let place = Place::new();
    let server = place.start().await;
    let (mut plain, _) = Editor::join(&server).await;
    let (mut reader, ready) = Reader::open(&server).await;
    let (epoch, seq) = position(&ready.id);
    assert_eq!((seq, plain.next().await), (0, editors(2)));
    assert_eq!(reader.data("editors").await, editors(2));

    let renamed = json!({ "kind": "renamed", "path": "b\r\ndata: c", "from": "a" });
    let list = json!([{ "kind": "created", "path": "a" }, renamed]).to_string();
    assert_eq!(server.notify(&list).await, (200, json!({ "seq": 2 })));
    let mut recent = Vec::new();
    for seq in 1..=2 {
        let change = plain.next().await;
        assert_eq!(change["seq"], seq);
        assert_eq!(reader.data("change").await, change);
        assert_eq!(reader.last(), format!("{epoch}-{seq}"));
        recent.push(change);
    }

    // Who comes now is told the same, whichever way, and each counts.
    let (mut late, ready) = Reader::open(&server).await;
    assert_eq!(position(&ready.id), (epoch, 0));
    for change in &recent {
        assert_eq!(late.data("change").await, *change);
    }
    for reader in [&mut reader, &mut late] {
        assert_eq!(reader.data("editors").await, editors(3));
    }
    assert_eq!(plain.next().await, editors(3));
    let (_plain, hello) = Editor::join(&server).await;
    assert_eq!(hello, json!({ "type": "hello", "editors": 4, "recent": recent }));
    assert_eq!(reader.data("editors").await, editors(4));
}

#[tokio::test]
async fn a_newcomer_is_shown_the_last_100_and_who_comes_back_all_that_they_missed() {
    let place = Place::new();
    let server = place.start().await;
    report_up_to(&server, 1, 600, 5, 1_000).await;
    let (mut newcomer, ready) = Reader::open(&server).await;
    let (epoch, seq) = position(&ready.id);
    assert_eq!(seq, 500);
    expect(&mut newcomer, &epoch, 501, 600).await;
    assert_eq!(newcomer.data("editors").await, editors(1));

    let last = format!("{epoch}-7");
    let (mut back, ready) = Reader::resume(&server, &last).await;
    assert_eq!(ready.id, last);
    expect(&mut back, &epoch, 8, 600).await;
    assert_eq!(back.data("editors").await, editors(2));
    let (mut there, _) = Reader::resume(&server, &format!("{epoch}-600")).await;
    assert_eq!(there.data("editors").await, editors(3));
    report_up_to(&server, 601, 601, 5, 1).await;
    expect(&mut there, &epoch, 601, 601).await;
}

#[tokio::test]
async fn a_position_that_is_too_old_or_unknown_is_a_gap() {
    let place = Place::new();
    let server = place.start().await;
    report_up_to(&server, 1, 1_300, 5, 1_000).await;
    let (_newcomer, ready) = Reader::open(&server).await;
    let (epoch, _) = position(&ready.id);

    let (mut late, ready) = Reader::resume(&server, &format!("{epoch}-10")).await;
    assert_eq!(ready.id, "", "where it is it is told with what is lost");
    assert_eq!(late.data("reset").await, json!({ "lost": 290 }));
    assert_eq!(position(&late.last()), (epoch.clone(), 300));
    expect(&mut late, &epoch, 301, 1_300).await;
    for unknown in [format!("{epoch}-1301"), format!("1{epoch}-10"), "what".to_owned(), "\u{2026}".to_owned()]
    {
        let (mut reader, _) = Reader::resume(&server, &unknown).await;
        assert_eq!(reader.data("reset").await, json!({ "lost": Value::Null }), "{unknown}");
        expect(&mut reader, &epoch, 1_201, 1_300).await;
    }
}

#[tokio::test]
async fn after_kill_9_and_a_restart_a_reader_continues_where_it_was() {
    let place = Place::new();
    let server = place.start().await;
    let (mut reader, ready) = Reader::open(&server).await;
    let (epoch, _) = position(&ready.id);
    assert_eq!(reader.data("editors").await, editors(1));
    report_up_to(&server, 1, 3, 5, 3).await;
    expect(&mut reader, &epoch, 1, 3).await;
    server.kill().await;
    assert_eq!(reader.try_next().await, None);

    // More than one stream shows at once: the rest comes in parts.
    let server = place.start().await;
    report_up_to(&server, 4, 603, 4_000, 15).await;
    let (mut next, mut streams) = (4, 0);
    while next <= 603 {
        (reader, _) = Reader::resume(&server, &reader.last()).await;
        streams += 1;
        while next <= 603
            && let Some(event) = reader.try_next().await
        {
            assert_eq!((event.event.as_str(), &event.id), ("change", &format!("{epoch}-{next}")));
            next += 1;
        }
    }
    assert!(streams > 1, "it came at once");
    assert_eq!(reader.data("editors").await, editors(1));
    assert_eq!(server.notify_created("live").await, 604);
    assert_eq!(reader.data("change").await["path"], "live");
}

#[tokio::test]
async fn full_reports_reach_who_reads_along_in_one_piece() {
    let place = Place::new();
    let server = place.start().await;
    let (mut reader, ready) = Reader::open(&server).await;
    let (epoch, _) = position(&ready.id);
    assert_eq!(reader.data("editors").await, editors(1));
    // Nobody reads before the second is answered.
    report_up_to(&server, 1, 2_000, 5, 1_000).await;
    expect(&mut reader, &epoch, 1, 2_000).await;
}

#[tokio::test]
async fn who_comes_and_goes_by_socket_is_told_to_who_reads_along() {
    let place = Place::new();
    let server = place.start().await;
    let (mut reader, _) = Reader::open(&server).await;
    assert_eq!(reader.data("editors").await, editors(1));
    let (mut follower, _) = Editor::follow(&server, None).await;
    assert_eq!(follower.next().await["d"], json!({ "editors": 2 }));
    assert_eq!(reader.data("editors").await, editors(2));
    follower.leave().await;
    assert_eq!(reader.data("editors").await, editors(1));
}

#[tokio::test]
async fn who_stops_reading_along_counts_no_longer() {
    let place = Place::new();
    let server = place.start().await;
    let (mut plain, _) = Editor::join(&server).await;
    let (reader, _) = Reader::open(&server).await;
    assert_eq!(plain.next().await, editors(2));
    drop(reader);
    // By what is written to it is known that a client is gone.
    let told = loop {
        let seq = server.notify_created("x").await;
        let message = plain.next().await;
        if message["type"] == "editors" {
            break message;
        }
        assert_eq!(message["seq"], seq);
    };
    assert_eq!(told, editors(1));
}

#[tokio::test]
async fn head_and_foreign_pages_are_no_readers() {
    let place = Place::new();
    let server = place.start().await;
    let (_, head) = Reader::ask(&server, "HEAD", "").await;
    assert_eq!((head.status, head.header("content-type")), (200, Some("text/event-stream")));
    assert_eq!(head.header("cache-control"), Some("no-store, no-transform"));
    let foreign = server.ask("GET", "/events", &[("origin", "http://evil.example")], "").await;
    assert_eq!((foreign.status, foreign.error().as_str()), (403, "the Origin is not this server"));
    let (mut reader, _) = Reader::open(&server).await;
    assert_eq!(reader.data("editors").await, editors(1), "HEAD is no reader");
}
