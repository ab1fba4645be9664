//! The parser of the crate `sse-parse` reads what is written.

use crate::{
    made::{arriving, made},
    reading::all_splits,
    standard::stream,
};
use proptest::{collection::vec, prelude::*};
use sse_parse::SseParser;
use std::time::Duration;

type Seen = (Vec<(String, String, String)>, String, Option<Duration>);

fn read(chunks: &[&[u8]]) -> Seen {
    let mut parser = SseParser::new();
    chunks.iter().for_each(|chunk| parser.feed(chunk));
    parser.finish();
    let events = std::iter::from_fn(|| parser.next_event()).map(|e| (e.event, e.data, e.id)).collect();
    (events, parser.last_event_id().to_owned(), parser.retry())
}

fn seen(reading: &crate::reading::Reading) -> Seen {
    let owned = |(name, data, id): (&str, &str, &str)| (name.to_owned(), data.to_owned(), id.to_owned());
    let events = reading.triples().into_iter().map(owned).collect();
    (events, reading.last_event_id.clone(), reading.retry)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn another_parser_gets_from_events_what_was_put_in(events in vec(made(), 1..4)) {
        let bytes: Vec<u8> = events.iter().flat_map(|made| made.event().to_bytes()).collect();
        let expected = seen(&arriving(&events));
        for chunks in all_splits(&bytes) {
            prop_assert_eq!(&read(&chunks), &expected, "{:?}", chunks);
        }
    }

    #[test]
    fn another_parser_reads_any_bytes_as_the_decoder(bytes in stream()) {
        // It ignores times of more than 64 bits, which are the longest there is for the decoder.
        prop_assume!(!bytes.windows(20).any(|part| part.iter().all(u8::is_ascii_digit)));
        prop_assert_eq!(read(&[&bytes]), seen(&crate::reading::read(&bytes)));
    }
}
