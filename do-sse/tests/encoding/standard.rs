//! The standard's algorithm over a whole stream: decode all of it, cut it into lines, go through them. Nothing of it is
//! shared with the decoder, which must agree with it on any bytes in any chunks.

use crate::reading::{Reading, all_splits, read_chunks};
use do_sse::{Decoded, Item};
use proptest::{collection::vec, prelude::*};
use std::time::Duration;

pub(crate) fn read(bytes: &[u8]) -> Reading {
    let text = String::from_utf8_lossy(bytes);
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text).replace("\r\n", "\n").replace('\r', "\n");
    let mut lines: Vec<&str> = text.split('\n').collect();
    let unfinished = lines.pop().unwrap();
    let mut reading = Reading::default();
    let (mut data, mut event, mut id) = (String::new(), String::new(), String::new());
    for line in &lines {
        if line.is_empty() {
            reading.last_event_id = id.clone();
            if data.is_empty() {
                event = String::new();
                continue;
            }
            let data = std::mem::take(&mut data).strip_suffix('\n').unwrap().to_owned();
            let event = Some(std::mem::take(&mut event)).filter(|event| !event.is_empty());
            let event = event.unwrap_or_else(|| "message".to_owned());
            reading.items.push(decoded(&event, &data, &id));
            continue;
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        if line.starts_with(':') {
            reading.items.push(Item::Comment(value.to_owned()));
        } else if field == "event" {
            event = value.to_owned();
        } else if field == "data" {
            data = format!("{data}{value}\n");
        } else if field == "id" && !value.contains('\0') {
            id = value.to_owned();
        } else if field == "retry" && !value.is_empty() && value.chars().all(|c| c.is_ascii_digit()) {
            let retry = Duration::from_millis(value.parse().unwrap_or(u64::MAX));
            reading.retry = Some(retry);
            reading.items.push(Item::Retry(retry));
        }
    }
    reading.cut = !unfinished.is_empty() || lines.last().is_some_and(|line| !line.is_empty());
    reading
}

pub(crate) fn decoded(event: &str, data: &str, id: &str) -> Item {
    Item::Event(Decoded { event: event.to_owned(), data: data.to_owned(), id: id.to_owned() })
}

fn piece() -> impl Strategy<Value = Vec<u8>> {
    let likely: Vec<&[u8]> = vec![
        b"\r",
        b"\n",
        b"\r\n",
        b"\n\n",
        b"\r\r",
        b"\n\r",
        b":",
        b" ",
        b"\0",
        b"data",
        b"data:",
        b"data: x",
        b"event",
        b"event: e",
        b"id",
        b"id: 1",
        b"id: \0",
        b"retry",
        b"retry: 5",
        b"retry: 99999999999999999999",
        b"retry:-1",
        b"Data: x",
        b"\xEF\xBB\xBF",
        b"\xEF\xBB",
        b"\xBF",
        b"\xFF",
        b"\xF0\x9F\x98\x80",
        b"\xF0\x9F\x98",
        b"\xC3",
        b"\xED\xA0\x80",
        b"\xE2\x80\xA8",
        b"x",
    ];
    prop_oneof![
        8 => proptest::sample::select(likely).prop_map(<[u8]>::to_vec),
        1 => vec(any::<u8>(), 0..6),
    ]
}

pub(crate) fn stream() -> impl Strategy<Value = Vec<u8>> {
    vec(piece(), 0..24).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_in_any_chunks_are_read_as_the_standard_says(bytes in stream()) {
        let expected = read(&bytes);
        for chunks in all_splits(&bytes) {
            prop_assert_eq!(&read_chunks(chunks.iter().copied()), &expected, "{:?}", chunks);
        }
    }

    #[test]
    fn any_bytes_in_random_chunks_are_read_as_the_standard_says(chunks in vec(stream(), 0..12)) {
        let expected = read(&chunks.concat());
        prop_assert_eq!(read_chunks(chunks.iter().map(Vec::as_slice)), expected);
    }
}
