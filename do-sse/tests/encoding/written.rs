//! What is put into events arrives, and nothing else does.

use crate::{
    made::{arriving, hostile, made, normal},
    reading::{all_splits, read, read_chunks},
};
use do_core::ErrorKind;
use do_sse::{Event, Item};
use proptest::{collection::vec, prelude::*};

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn f3_whatever_is_in_the_fields_exactly_that_arrives(events in vec(made(), 1..4)) {
        let bytes: Vec<u8> = events.iter().flat_map(|made| made.event().to_bytes()).collect();
        let expected = arriving(&events);
        prop_assert!(!expected.cut);
        for chunks in all_splits(&bytes) {
            prop_assert_eq!(&read_chunks(chunks.iter().copied()), &expected, "{:?}", chunks);
        }
    }

    #[test]
    fn f3_an_event_is_one_block_of_known_fields_and_lf(made in made()) {
        let bytes = made.event().to_bytes();
        let text = std::str::from_utf8(&bytes).unwrap();
        prop_assert!(!text.contains('\r'));
        let block = text.strip_suffix('\n').unwrap();
        for line in block.split_terminator('\n') {
            let known = ["event: ", "data: ", "id: ", "retry: ", ": "];
            prop_assert!(known.iter().any(|label| line.starts_with(label)), "{:?} in {:?}", line, text);
        }
        for (label, times) in [("event: ", &made.name), ("id: ", &made.id)] {
            let lines = block.lines().filter(|line| line.starts_with(label)).count();
            prop_assert!(lines <= usize::from(times.is_some()), "{:?}", text);
        }
    }

    #[test]
    fn f3_names_and_ids_are_refused_for_exactly_three_characters(text in hostile()) {
        let bad = text.bytes().position(|b| matches!(b, b'\r' | b'\n' | 0));
        for (field, result) in [("name", Event::named(&text)), ("id", Event::new().id(&text))] {
            match (bad, result) {
                (Some(at), Err(error)) => {
                    prop_assert_eq!(error.kind(), ErrorKind::Invalid);
                    let what = match text.as_bytes()[at] { b'\r' => "CR", b'\n' => "LF", _ => "NUL" };
                    let why = format!("{what} is not allowed in the {field} of an event (byte {at})");
                    prop_assert_eq!(error.to_string(), why);
                }
                (None, Ok(event)) => prop_assert!(event.to_bytes().ends_with(b"\n")),
                (_, result) => prop_assert!(false, "{:?}: {:?}", text, result),
            }
        }
    }

    #[test]
    fn json_arrives_as_it_was(text in hostile()) {
        let event = Event::new().json(&serde_json::json!({ "text": text })).unwrap();
        let reading = read(&event.to_bytes());
        prop_assert_eq!(reading.items.len(), 1);
        let value: serde_json::Value = serde_json::from_str(reading.data()[0]).unwrap();
        prop_assert_eq!(value["text"].as_str().unwrap(), text);
    }

    #[test]
    fn w4_an_event_is_dispatched_exactly_when_it_has_data(made in made()) {
        let reading = read(&made.event().to_bytes());
        let data: Vec<String> = made.data.iter().map(|data| normal(data)).collect();
        prop_assert_eq!(reading.data(), data);
    }
}

#[test]
fn setters_replace() {
    let event = Event::named("a").unwrap().id("1").unwrap().data("x").comment("c");
    let event = event.event("b").unwrap().id("2").unwrap().data("y").comment("d");
    assert_eq!(event.to_bytes(), ": d\nevent: b\nid: 2\ndata: y\n\n");
    assert_eq!(event.json(&[1, 2]).unwrap().to_bytes(), ": d\nevent: b\nid: 2\ndata: [1,2]\n\n");
}

#[test]
fn events_of_the_same_fields_are_equal() {
    assert_eq!(Event::from("x"), Event::new().data(String::from("x")));
    assert_eq!(Event::from(String::from("x")), Event::new().data("x"));
    assert_ne!(Event::new(), Event::new().data(""));
    assert_eq!(Event::default(), Event::named("").unwrap());
}

#[test]
fn what_has_no_form_in_json_is_refused() {
    let map = std::collections::HashMap::from([((1, 2), 3)]);
    let error = Event::new().json(&map).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.to_string().starts_with("the data of an event has no form in JSON: "), "{error}");
}

#[test]
fn json_of_several_lines_stays_one_event() {
    let raw = serde_json::value::RawValue::from_string("{\n  \"a\": 1\r\n}".to_owned()).unwrap();
    let event = Event::new().json(&raw).unwrap();
    assert_eq!(event.to_bytes(), "data: {\ndata:   \"a\": 1\ndata: }\n\n");
    assert_eq!(read(&event.to_bytes()).data(), ["{\n  \"a\": 1\n}"]);
}

#[test]
fn comments_are_written_line_by_line() {
    let reading = read(&Event::from("x").comment("a\r\rb\ndata: no").to_bytes());
    let comment = |text: &str| Item::Comment(text.to_owned());
    assert_eq!(reading.items[..4], ["a", "", "b", "data: no"].map(comment));
    assert_eq!(reading.data(), ["x"]);
}
