//! A stream cannot make the decoder grow, nor can a caller who does not take what there is.

use crate::{
    reading::{all_splits, try_read},
    standard::{self, stream},
};
use do_core::ErrorKind;
use do_sse::{Decoder, Item};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_too_large_is_so_in_any_chunks(bytes in stream(), limit in 0..40_usize) {
        let whole = try_read(Decoder::with_limit(limit), [bytes.as_slice()]);
        let expected = standard::read(&bytes);
        match &whole.1 {
            Ok(reading) => prop_assert_eq!(reading, &expected),
            Err(error) => {
                prop_assert_eq!(error.kind(), ErrorKind::Limit);
                prop_assert!(expected.items.starts_with(&whole.0));
            }
        }
        for size in 1..=bytes.len() {
            let (items, end) = try_read(Decoder::with_limit(limit), bytes.chunks(size));
            prop_assert_eq!(&items, &whole.0, "chunks of {}", size);
            prop_assert_eq!(end.map_err(|e| e.to_string()), whole.1.clone().map_err(|e| e.to_string()));
        }
    }
}

#[test]
fn an_event_of_just_the_limit_is_read() {
    // 4 + 1 of the first line are kept, the second takes 10.
    let stream = b"data: abcd\ndata: efgh\n\n";
    for chunks in all_splits(stream) {
        let (items, end) = try_read(Decoder::with_limit(15), chunks.iter().copied());
        assert_eq!((items, end.is_ok()), (vec![standard::decoded("message", "abcd\nefgh", "")], true));
        let (items, end) = try_read(Decoder::with_limit(14), chunks);
        assert_eq!((items, end.unwrap_err().kind()), (vec![], ErrorKind::Limit));
    }
}

#[test]
fn the_events_before_one_that_is_too_large_are_read_and_then_it_is_over() {
    let mut decoder = Decoder::with_limit(20);
    decoder.push(b"id: 1\ndata: a\n\nid: 2\ndata: far too long a line\n\ndata: b\n\n").unwrap();
    assert_eq!(decoder.next_event().unwrap().unwrap().data, "a");
    for _ in 0..2 {
        let error = decoder.next_event().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Limit);
        assert_eq!(error.to_string(), "an event of the stream is larger than 20 bytes");
        assert_eq!(decoder.push(b"\n\n").unwrap_err().kind(), ErrorKind::Limit);
    }
    assert_eq!(decoder.last_event_id(), "1");
    assert!(decoder.finish());
    decoder.push(b"data: c\n\n").unwrap();
    assert_eq!(decoder.next_event().unwrap().unwrap().id, "1");
}

#[test]
fn every_part_of_a_block_counts() {
    let long = "x".repeat(100);
    for part in ["", ":", "data:", "event:", "id:", "unknown:", "\r\ndata:", "data:\ndata:\ndata: "] {
        let mut decoder = Decoder::with_limit(64);
        decoder.push(format!("{part}{long}").as_bytes()).unwrap();
        assert_eq!(decoder.next_item().unwrap_err().kind(), ErrorKind::Limit, "{part:?}");
    }
    let mut many = Decoder::with_limit(64);
    many.push("data\n".repeat(65).as_bytes()).unwrap();
    assert_eq!(many.next_item().unwrap_err().kind(), ErrorKind::Limit);
    // What is not kept does not count.
    let mut comments = Decoder::with_limit(64);
    comments.push(": beat\nevent: e\nunknown: u\n".repeat(65).as_bytes()).unwrap();
    let read: Vec<Item> = std::iter::from_fn(|| comments.next_item().unwrap()).collect();
    assert_eq!(read, vec![Item::Comment("beat".to_owned()); 65]);
}

#[test]
fn invalid_bytes_count_as_what_they_become() {
    let stream = [b"data:".as_slice(), &[0xFF; 30], b"\n\n"].concat();
    let (_, end) = try_read(Decoder::with_limit(91), [stream.as_slice()]);
    assert_eq!(end.unwrap().data(), ["\u{fffd}".repeat(30)]);
    let (_, end) = try_read(Decoder::with_limit(90), [stream.as_slice()]);
    assert_eq!(end.unwrap_err().kind(), ErrorKind::Limit);
}

#[test]
fn who_takes_nothing_is_stopped_and_loses_nothing() {
    let mut decoder = Decoder::with_limit(10);
    decoder.push(b"data: a\n\ndata: b\n\n").unwrap();
    let error = decoder.push(b"data: c\n\n").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Limit);
    assert_eq!(error.to_string(), "18 bytes of the event stream wait to be decoded, the limit is 10");
    assert_eq!(decoder.next_event().unwrap().unwrap().data, "a");
    assert_eq!(decoder.next_event().unwrap().unwrap().data, "b");
    assert_eq!(decoder.next_event().unwrap(), None);
    decoder.push(b"data: c\n\n").unwrap();
    assert_eq!(decoder.next_event().unwrap().unwrap().data, "c");
}
