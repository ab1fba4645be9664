//! Events of whatever text, and what is to arrive of them.

use crate::{reading::Reading, standard::decoded};
use do_sse::{Event, Item};
use proptest::{collection::vec, option, prelude::*};
use std::time::Duration;

/// What was put into an event.
#[derive(Debug, Clone)]
pub(crate) struct Made {
    pub(crate) name: Option<String>,
    pub(crate) id: Option<String>,
    pub(crate) data: Option<String>,
    pub(crate) comment: Option<String>,
    pub(crate) retry: Option<Duration>,
}

impl Made {
    pub(crate) fn event(&self) -> Event {
        let mut event = Event::new();
        // Not in the order in which they are written.
        if let Some(data) = &self.data {
            event = event.data(data);
        }
        if let Some(id) = &self.id {
            event = event.id(id).unwrap();
        }
        if let Some(name) = &self.name {
            event = event.event(name).unwrap();
        }
        if let Some(retry) = self.retry {
            event = event.retry(retry);
        }
        if let Some(comment) = &self.comment {
            event = event.comment(comment);
        }
        event
    }
}

/// With the line ends that arrive.
pub(crate) fn normal(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\r', "\n")
}

/// What a client has when it has read all of them.
pub(crate) fn arriving(events: &[Made]) -> Reading {
    let mut reading = Reading::default();
    for made in events {
        let lines = made.comment.as_ref().map(|comment| normal(comment)).into_iter();
        let lines = lines.flat_map(|text| text.split('\n').map(str::to_owned).collect::<Vec<_>>());
        reading.items.extend(lines.map(Item::Comment));
        if let Some(retry) = made.retry {
            let ms = retry.as_nanos().div_ceil(1_000_000).min(2_147_483_647);
            reading.retry = Some(Duration::from_millis(u64::try_from(ms).unwrap()));
            reading.items.extend(reading.retry.map(Item::Retry));
        }
        if let Some(id) = &made.id {
            reading.last_event_id.clone_from(id);
        }
        if let Some(data) = &made.data {
            let name = made.name.as_deref().filter(|name| !name.is_empty()).unwrap_or("message");
            reading.items.push(decoded(name, &normal(data), &reading.last_event_id));
        }
    }
    reading
}

pub(crate) fn hostile() -> impl Strategy<Value = String> {
    let likely = vec![
        "\r",
        "\n",
        "\r\n",
        "\n\n",
        "\r\r",
        "\0",
        "\u{feff}",
        "\u{2028}",
        "\u{2029}",
        "\u{85}",
        "\u{b}",
        "\u{c}",
        ":",
        " ",
        "  ",
        "\t",
        "data:",
        "data: x",
        "id: 9",
        "retry: 1",
        "event: e",
        "\ndata: forged\n\n",
        "\rid: forged\r",
        "😀",
        "é",
        "a",
        "\\n",
        "\u{fffd}",
    ];
    let piece = prop_oneof![
        6 => proptest::sample::select(likely).prop_map(str::to_owned),
        1 => any::<char>().prop_map(String::from),
    ];
    vec(piece, 0..8).prop_map(|pieces| pieces.concat())
}

fn of_one_line() -> impl Strategy<Value = String> {
    hostile().prop_map(|text| text.replace(['\r', '\n', '\0'], ""))
}

fn retry() -> impl Strategy<Value = Duration> {
    prop_oneof![
        (0..5_000_u64).prop_map(Duration::from_millis),
        (0..3_000_000_u64).prop_map(Duration::from_micros),
        any::<u64>().prop_map(Duration::from_secs),
    ]
}

pub(crate) fn made() -> impl Strategy<Value = Made> {
    let fields = (
        option::of(of_one_line()),
        option::of(of_one_line()),
        option::weighted(0.8, hostile()),
        option::weighted(0.3, hostile()),
        option::weighted(0.3, retry()),
    );
    fields.prop_map(|(name, id, data, comment, retry)| Made { name, id, data, comment, retry })
}
