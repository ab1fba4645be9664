//! The 36 vectors of the crate `sse-parse` 0.1.0, copied from its package with their licence (vectors/LICENSE).

use crate::reading::{Reading, all_splits, read_chunks};
use do_sse::Item;
use serde_json::Value;
use std::time::Duration;

const VECTORS: &str = include_str!("vectors/conformance.json");

/// Name, data, id, and the time to reconnect after that was read since the event before.
type Row = (String, String, String, Option<u64>);

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

fn count(value: &Value) -> usize {
    usize::try_from(value.as_u64().unwrap()).unwrap()
}

fn chunks(vector: &Value) -> Vec<Vec<u8>> {
    let Some(chunks) = vector["chunks"].as_array() else { return generated(&vector["generator"]) };
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    let chunk = |chunk: &Value| match chunk["hex"].as_str() {
        Some(hex) => hex.as_bytes().chunks(2).map(byte).collect(),
        None => text(&chunk["text"]).into_bytes(),
    };
    chunks.iter().map(chunk).collect()
}

fn generated(from: &Value) -> Vec<Vec<u8>> {
    let whole = match from["kind"].as_str().unwrap() {
        "repeat_stream" => text(&from["unit_text"]).repeat(count(&from["count"])),
        "long_line" => {
            let fill = text(&from["fill_char"]).repeat(count(&from["fill_count"]));
            format!("{}{fill}{}", text(&from["prefix"]), text(&from["suffix"]))
        }
        other => panic!("unknown kind of generator: {other}"),
    };
    whole.as_bytes().chunks(count(&from["chunk_bytes"])).map(<[u8]>::to_vec).collect()
}

fn expected(events: &Value) -> Vec<Row> {
    let row = |e: &Value| (text(&e["event"]), text(&e["data"]), text(&e["id"]), e["retry"].as_u64());
    if let Some(list) = events.as_array() {
        return list.iter().map(row).collect();
    }
    match events["kind"].as_str().unwrap() {
        "repeat" => vec![row(&events["event"]); count(&events["count"])],
        "single_fill_event" => {
            let data = text(&events["fill_char"]).repeat(count(&events["fill_count"]));
            vec![(text(&events["event"]), data, text(&events["id"]), events["retry"].as_u64())]
        }
        other => panic!("unknown kind of events: {other}"),
    }
}

fn rows(reading: &Reading) -> (Vec<Row>, Vec<u64>) {
    let (mut rows, mut retries, mut since) = (Vec::new(), Vec::new(), None);
    let ms = |retry: Duration| u64::try_from(retry.as_millis()).unwrap();
    for item in reading.items.clone() {
        match item {
            Item::Event(event) => rows.push((event.event, event.data, event.id, since.take())),
            Item::Retry(retry) => {
                since = Some(ms(retry));
                retries.push(ms(retry));
            }
            _ => {}
        }
    }
    (rows, retries)
}

fn check(vector: &Value, reading: &Reading, how: &str) {
    let id = text(&vector["id"]);
    let wanted = &vector["expected"];
    let (events, retries) = rows(reading);
    assert!(events == expected(&wanted["events"]), "{id}, {how}: {}", text(&vector["purpose"]));
    let wanted_retries: Vec<_> =
        wanted["retry_updates"].as_array().unwrap().iter().map(Value::as_u64).collect();
    assert_eq!(retries.iter().copied().map(Some).collect::<Vec<_>>(), wanted_retries, "{id}, {how}");
    assert_eq!(reading.retry, retries.last().copied().map(Duration::from_millis), "{id}, {how}");
    assert_eq!(reading.last_event_id, text(&wanted["final_last_event_id"]), "{id}, {how}");
}

#[test]
fn each_of_the_36_vectors_is_read_as_it_says_however_it_is_cut() {
    let root: Value = serde_json::from_str(VECTORS).unwrap();
    let vectors = root["vectors"].as_array().unwrap();
    assert_eq!(vectors.len(), 36);
    for vector in vectors {
        let chunks = chunks(vector);
        check(vector, &read_chunks(chunks.iter().map(Vec::as_slice)), "its own chunks");
        let whole = chunks.concat();
        if vector["generator"].is_null() {
            for (n, split) in all_splits(&whole).enumerate() {
                check(vector, &read_chunks(split), &format!("split {n}"));
            }
        } else {
            for size in [1, 2, 3, 7, 64, 1_000, 4_096, 65_536, whole.len()] {
                check(vector, &read_chunks(whole.chunks(size)), &format!("chunks of {size}"));
            }
        }
    }
}
