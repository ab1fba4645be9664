//! The rules of the format one by one: what is read (first half of each test) and what is written.

use crate::reading::{all_splits, read, read_chunks};
use do_core::ErrorKind;
use do_sse::{Decoder, Event, Item};
use std::time::Duration;

fn bytes(event: &Event) -> String {
    String::from_utf8(event.to_bytes().to_vec()).unwrap()
}

#[test]
fn w1_one_bom_is_left_out_and_none_is_written() {
    assert_eq!(read(b"\xEF\xBB\xBFdata: a\n\n\xEF\xBB\xBFdata: b\n\ndata: c\n\n").data(), ["a", "c"]);
    assert_eq!(read(b"\xEF\xBB\xBF\xEF\xBB\xBFdata: a\n\ndata: b\n\n").data(), ["b"]);
    let bom = "\u{feff}";
    let event = Event::named(bom).unwrap().id(bom).unwrap().data(bom).comment(bom);
    for first in [event.clone(), Event::named(bom).unwrap().data(bom), Event::from(bom)] {
        assert!(!bytes(&first).starts_with(bom));
    }
    let reading = read(&event.to_bytes());
    assert_eq!(reading.triples(), [(bom, bom, bom)]);
    assert_eq!(reading.items[0], Item::Comment(bom.to_owned()));
}

#[test]
fn w1_text_is_utf_8_and_what_is_not_is_replaced() {
    assert_eq!(
        read(b"data: \xC3\n\ndata: \xF0\x9F\x98\r\rdata: \xC3\xA9\n\n").data(),
        ["\u{fffd}", "\u{fffd}", "é"]
    );
    assert_eq!(
        read(b"event: \xFF\nid: \xFE\ndata: \xE2\x80\xA8\n\n").triples(),
        [("\u{fffd}", "\u{2028}", "\u{fffd}")]
    );
}

#[test]
fn w2_lines_end_with_crlf_lf_or_cr_also_across_chunks() {
    let stream = b"data: a\r\ndata: b\rdata: c\n\r\ndata: d\r\rdata: e\n\ndata: f\r\n\r\n";
    for chunks in all_splits(stream) {
        assert_eq!(read_chunks(chunks).data(), ["a\nb\nc", "d", "e", "f"]);
    }
    // A CR ends its line at once: nobody waits for an LF that may never come.
    let mut decoder = Decoder::new();
    decoder.push(b"data: a\r\r").unwrap();
    assert_eq!(decoder.next_event().unwrap().unwrap().data, "a");
    decoder.push(b"\ndata: b\n").unwrap();
    assert_eq!(decoder.next_event().unwrap(), None);
    decoder.push(b"\n").unwrap();
    assert_eq!(decoder.next_event().unwrap().unwrap().data, "b");
    assert!(!decoder.finish());
}

#[test]
fn w2_only_lf_is_written_and_arrives() {
    assert_eq!(
        bytes(&Event::from("a\r\nb\rc\nd\n\re")),
        "data: a\ndata: b\ndata: c\ndata: d\ndata: \ndata: e\n\n"
    );
    assert_eq!(read(&Event::from("a\r\nb\rc\nd\n\re").to_bytes()).data(), ["a\nb\nc\nd\n\ne"]);
}

#[test]
fn w3_one_space_is_removed_and_one_is_written() {
    assert_eq!(read(b"data:a\n\ndata: a\n\ndata:  a\n\ndata:\ta\n\n").data(), ["a", "a", " a", "\ta"]);
    assert_eq!(bytes(&Event::from("  a\n b")), "data:   a\ndata:  b\n\n");
    let event = Event::named(" n").unwrap().id(" i").unwrap().data(" d");
    assert_eq!(read(&event.to_bytes()).triples(), [(" n", " d", " i")]);
}

#[test]
fn w4_without_data_nothing_is_dispatched_and_empty_data_is_data() {
    assert_eq!(read(b"event: e\nid: 1\n\n").items, []);
    assert_eq!(read(b"data\n\ndata:\n\ndata: \ndata\n\n").data(), ["", "", "\n"]);
    let named = Event::named("e").unwrap();
    assert_eq!(read(&named.to_bytes()).items, []);
    assert_eq!(bytes(&named.clone().data("")), "event: e\ndata: \n\n");
    assert_eq!(read(&named.data("").to_bytes()).triples(), [("e", "", "")]);
    assert_eq!(bytes(&Event::new()), "\n");
}

#[test]
fn w4_line_ends_at_the_end_of_data_are_kept() {
    for (data, arrives) in
        [("a\n", "a\n"), ("a\r\n", "a\n"), ("a\n\n", "a\n\n"), ("\n", "\n"), ("\r\r\n\n", "\n\n\n")]
    {
        assert_eq!(read(&Event::from(data).to_bytes()).data(), [arrives], "{data:?}");
    }
}

#[test]
fn w5_an_id_persists_also_from_a_block_without_data_and_the_empty_one_takes_it_back() {
    let reading = read(b"id: 1\n\ndata: a\n\nid: 2\ndata: b\n\nid: x\0y\ndata: c\n\nid\ndata: d\n\n");
    assert_eq!(
        reading.triples(),
        [("message", "a", "1"), ("message", "b", "2"), ("message", "c", "2"), ("message", "d", "")]
    );
    let only = Event::new().id("7-1").unwrap();
    assert_eq!(bytes(&only), "id: 7-1\n\n");
    assert_eq!(read(&only.to_bytes()).last_event_id, "7-1");
    let reset = Event::new().id("").unwrap();
    assert_eq!(read(&[only.to_bytes(), reset.to_bytes()].concat()).last_event_id, "");
    assert_eq!(Event::new().id("x\0y").unwrap_err().kind(), ErrorKind::Invalid);
}

#[test]
fn w5_an_id_counts_when_its_block_is_complete_and_taken() {
    let mut decoder = Decoder::new().with_last_event_id("0");
    decoder.push(b"data: a\n\nid: 1\ndata: b\n\nid: 2\ndata: c\n").unwrap();
    assert_eq!(decoder.last_event_id(), "0");
    assert_eq!(decoder.next_event().unwrap().unwrap().id, "0");
    assert_eq!(decoder.last_event_id(), "0");
    assert_eq!(decoder.next_event().unwrap().unwrap().id, "1");
    assert_eq!(decoder.next_event().unwrap(), None);
    assert!(decoder.finish());
    assert_eq!(decoder.last_event_id(), "1");
}

#[test]
fn w5_ids_and_times_outlive_the_connection_and_nothing_else_does() {
    let mut decoder = Decoder::new();
    decoder.push(b"\xEF\xBB\xBFretry: 10\nid: 1\n\nevent: e\ndata: lost\nid: 2\r").unwrap();
    assert_eq!(decoder.next_event().unwrap(), None);
    assert!(decoder.finish());
    decoder.push(b"\xEF\xBB\xBFdata: a\n\n").unwrap();
    let event = decoder.next_event().unwrap().unwrap();
    assert_eq!((event.event.as_str(), event.data.as_str(), event.id.as_str()), ("message", "a", "1"));
    assert_eq!(decoder.retry(), Some(Duration::from_millis(10)));
    assert!(!decoder.finish());
}

#[test]
fn w6_a_time_is_of_digits_and_counts_at_once() {
    let reading = read(b"retry: 10\ndata: lost");
    assert_eq!(
        (reading.items, reading.retry),
        (vec![Item::Retry(Duration::from_millis(10))], Some(Duration::from_millis(10)))
    );
    for wrong in ["", "-1", "+1", "1.5", "1e3", "0x1", " 1", "1 ", "1\0", "\u{661}"] {
        assert_eq!(
            read(format!("retry: 3\nretry: {wrong}\n\n").as_bytes()).retry,
            Some(Duration::from_millis(3)),
            "{wrong:?}"
        );
    }
    let digits = "9".repeat(100);
    assert_eq!(read(format!("retry: {digits}\n\n").as_bytes()).retry, Some(Duration::from_millis(u64::MAX)));
    assert_eq!(read(b"retry: 0007\n\n").retry, Some(Duration::from_millis(7)));
}

#[test]
fn w6_times_are_written_in_whole_milliseconds_up_to_what_timers_take() {
    let retry = |wait| bytes(&Event::new().retry(wait));
    assert_eq!(retry(Duration::ZERO), "retry: 0\n\n");
    assert_eq!(retry(Duration::from_nanos(1)), "retry: 1\n\n");
    assert_eq!(retry(Duration::from_micros(2_000)), "retry: 2\n\n");
    assert_eq!(retry(Duration::from_micros(2_001)), "retry: 3\n\n");
    assert_eq!(retry(Duration::from_secs(3_600)), "retry: 3600000\n\n");
    assert_eq!(retry(Duration::from_millis(2_147_483_647)), "retry: 2147483647\n\n");
    assert_eq!(retry(Duration::from_millis(2_147_483_648)), "retry: 2147483647\n\n");
    assert_eq!(retry(Duration::MAX), "retry: 2147483647\n\n");
}

#[test]
fn w7_what_is_incomplete_at_the_end_is_discarded_and_each_event_ends_with_an_empty_line() {
    for end in ["data: x", "data: x\n", "data: x\r\n", "data: x\nid: 9", "data: x\nid: 9\n", ":", "data"] {
        let reading = read(format!("id: 1\ndata: a\n\n{end}").as_bytes());
        assert_eq!(
            (reading.triples(), reading.last_event_id.as_str(), reading.cut),
            (vec![("message", "a", "1")], "1", true)
        );
    }
    let full = Event::named("e").unwrap().id("1").unwrap().retry(Duration::ZERO).comment("c").data("d");
    for event in [full, Event::new().comment("c"), Event::new().retry(Duration::ZERO), Event::from("\n")] {
        assert!(bytes(&event).ends_with("\n\n") && !read(&event.to_bytes()).cut);
        let len = event.to_bytes().len();
        assert!(read(&event.to_bytes()[..len - 1]).cut);
    }
}

#[test]
fn w8_an_empty_name_is_message_names_of_fields_are_exact_and_colons_begin_comments() {
    assert_eq!(
        read(b"event:\ndata: a\n\nevent: e\nevent\ndata: b\n\n").triples(),
        [("message", "a", ""), ("message", "b", "")]
    );
    assert_eq!(read(b"Data: a\nDATA: b\n data: c\ndata : d\ndatum: e\n\n").items, []);
    assert_eq!(bytes(&Event::named("").unwrap().data("a")), "data: a\n\n");
    assert_eq!(bytes(&Event::named("e").unwrap().event("").unwrap().data("a")), "data: a\n\n");
    let comment = |text: &str| Item::Comment(text.to_owned());
    assert_eq!(read(b":\n\n: a\n:b\n:data: x\n\n").items, ["", "a", "b", "data: x"].map(comment));
    assert_eq!(bytes(&Event::new().comment("quiet")), ": quiet\n\n");
}

#[test]
fn f3_no_value_forges_an_event_or_a_field() {
    let forged = "x\ndata: forged\n\nevent: forged\nid: forged\nretry: 1\ndata: forged\n\n";
    for forged in [forged.to_owned(), forged.replace('\n', "\r"), forged.replace('\n', "\r\n")] {
        assert_eq!(Event::named(&forged).unwrap_err().kind(), ErrorKind::Invalid);
        assert_eq!(Event::new().id(&forged).unwrap_err().kind(), ErrorKind::Invalid);
        let event = Event::named("e").unwrap().id("1").unwrap().data(&forged).comment(&forged);
        let reading = read(&event.to_bytes());
        let arrives = forged.replace("\r\n", "\n").replace('\r', "\n");
        assert_eq!(reading.triples(), [("e", arrives.as_str(), "1")]);
        assert_eq!((reading.retry, reading.last_event_id.as_str()), (None, "1"));
    }
}

#[test]
fn f3_a_refusal_says_what_is_where() {
    let error = |result: Result<Event, do_core::Error>| result.unwrap_err().to_string();
    assert_eq!(error(Event::named("ab\rc\n")), "CR is not allowed in the name of an event (byte 2)");
    assert_eq!(error(Event::named("é\n")), "LF is not allowed in the name of an event (byte 2)");
    assert_eq!(error(Event::new().id("\0")), "NUL is not allowed in the id of an event (byte 0)");
}

#[test]
fn f4_a_bare_cr_in_data_does_not_end_it() {
    let event = Event::from("a\rb\rid: 9\r\rdata: c");
    assert_eq!(bytes(&event), "data: a\ndata: b\ndata: id: 9\ndata: \ndata: data: c\n\n");
    assert_eq!(read(&event.to_bytes()).triples(), [("message", "a\nb\nid: 9\n\ndata: c", "")]);
}

#[test]
fn f4_characters_that_only_look_like_line_ends_are_content() {
    let data = "a\u{85}b\u{2028}c\u{2029}d\u{b}e\u{c}f\0g";
    assert_eq!(bytes(&Event::from(data)), format!("data: {data}\n\n"));
    assert_eq!(read(&Event::from(data).to_bytes()).data(), [data]);
}
