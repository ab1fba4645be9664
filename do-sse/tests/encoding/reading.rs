//! Everything that can be observed of a stream that is read to its end.

use do_core::Error;
use do_sse::{Decoded, Decoder, Item};
use std::time::Duration;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Reading {
    pub(crate) items: Vec<Item>,
    pub(crate) last_event_id: String,
    pub(crate) retry: Option<Duration>,
    /// There was something incomplete at the end.
    pub(crate) cut: bool,
}

impl Reading {
    fn events(&self) -> impl Iterator<Item = &Decoded> {
        self.items.iter().filter_map(|item| match item {
            Item::Event(event) => Some(event),
            _ => None,
        })
    }

    /// Name, data and id of each event.
    pub(crate) fn triples(&self) -> Vec<(&str, &str, &str)> {
        self.events().map(|e| (e.event.as_str(), e.data.as_str(), e.id.as_str())).collect()
    }

    pub(crate) fn data(&self) -> Vec<&str> {
        self.events().map(|event| event.data.as_str()).collect()
    }
}

pub(crate) fn read(bytes: &[u8]) -> Reading {
    read_chunks([bytes])
}

pub(crate) fn read_chunks<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> Reading {
    try_read(Decoder::new(), chunks).1.unwrap()
}

/// The items until the end or an error, and the rest if there was none.
pub(crate) fn try_read<'a>(
    mut decoder: Decoder,
    chunks: impl IntoIterator<Item = &'a [u8]>,
) -> (Vec<Item>, Result<Reading, Error>) {
    let mut items = Vec::new();
    for chunk in chunks {
        let taken = decoder.push(chunk).and_then(|()| {
            while let Some(item) = decoder.next_item()? {
                items.push(item);
            }
            Ok(())
        });
        if let Err(error) = taken {
            return (items, Err(error));
        }
    }
    let cut = decoder.finish();
    let last_event_id = decoder.last_event_id().to_owned();
    (items.clone(), Ok(Reading { items, last_event_id, retry: decoder.retry(), cut }))
}

/// All chunk sizes, and all ways to cut it in two.
pub(crate) fn all_splits(bytes: &[u8]) -> impl Iterator<Item = Vec<&[u8]>> {
    let sizes = (1..=bytes.len()).map(|size| bytes.chunks(size).collect());
    let halves = (0..=bytes.len()).map(|at| vec![&bytes[..at], &bytes[at..]]);
    sizes.chain(halves)
}
