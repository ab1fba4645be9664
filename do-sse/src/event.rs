//! What is sent: one block of a stream, which cannot become two whatever is put into it.
//!
//! The fields are kept apart until they are written, and the two that have no way to express a line end refuse it: so
//! nothing has to be escaped, replaced or left out.

use bytes::Bytes;
use do_core::{Error, ErrorKind, Position};
use memchr::{memchr2, memchr2_iter, memchr3};
use serde::Serialize;
use std::{io::Write, time::Duration};

/// A comment of no words: what a quiet connection is kept alive with. No listener of a client sees it.
pub(crate) const BEAT: &[u8] = b":\n\n";

/// The longest time that timers of JavaScript take, in milliseconds. Node's fire at once when they are given more, which
/// would turn the wish for a long pause into a storm.
const LONGEST_RETRY: u32 = i32::MAX.unsigned_abs();

/// What a position takes at the most: 13 digits, a hyphen, 20 digits.
const POSITION_LEN: usize = 34;

/// What is sent to clients as one event: its data, and optionally a name, an id, a time to reconnect after, a comment.
///
/// Each setter replaces what an earlier one set. A value cannot become another field or a second event (rule F3): names
/// and ids with a line end or NUL are refused; data and comments are written line by line.
///
/// ```
/// use do_sse::Event;
///
/// let event = Event::named("build")?.id("17")?.data("compiling\nlinking");
/// assert_eq!(event.to_bytes(), "event: build\nid: 17\ndata: compiling\ndata: linking\n\n");
///
/// let tick = Event::new().json(&serde_json::json!({ "n": 1 }))?;
/// assert_eq!(tick.to_bytes(), "data: {\"n\":1}\n\n");
///
/// let error = Event::named("a\ndata: forged").unwrap_err();
/// assert_eq!(error.to_string(), "LF is not allowed in the name of an event (byte 1)");
/// # Ok::<(), do_core::Error>(())
/// ```
///
/// # What clients make of it
/// - Without data nothing is dispatched: no listener is called, whatever the name. The id and the time to reconnect after
///   count nevertheless. *Empty* data is data: `data("")` calls listeners with `""`.
/// - Every line end in data arrives as LF: CR and CRLF cannot be expressed. Everything else arrives as it is: leading
///   spaces, NUL, and a line end at the end. In JSON line ends are escaped, hence [`json`](Self::json) loses nothing.
/// - Without a name, or with an empty one, it is a `message`: what `onmessage` takes. The client's own names, `open` and
///   `error`, reach the listeners that it calls for a connection that opens or fails, and are thus better not used.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[must_use]
pub struct Event {
    comment: Option<String>,
    /// In milliseconds.
    retry: Option<u32>,
    /// Never empty.
    name: Option<String>,
    id: Option<String>,
    data: Option<String>,
}

impl Event {
    /// One with nothing in it yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// One with a name: what `addEventListener` of the client is given. See [`event`](Self::event).
    ///
    /// # Errors
    /// As [`event`](Self::event).
    pub fn named(name: impl Into<String>) -> Result<Self, Error> {
        Self::new().event(name)
    }

    /// Its name. An empty one takes the name away: clients cannot tell the two apart.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] when there is CR, LF or NUL in it.
    pub fn event(mut self, name: impl Into<String>) -> Result<Self, Error> {
        let name = name.into();
        of_one_line("name", &name)?;
        self.name = Some(name).filter(|name| !name.is_empty());
        Ok(self)
    }

    /// Its data, of any number of lines, which end with CRLF, CR or LF (rule F4).
    pub fn data(mut self, data: impl Into<String>) -> Self {
        self.data = Some(data.into());
        self
    }

    /// Its data as JSON, in one line.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] when the value has no form in JSON.
    pub fn json(self, value: &(impl Serialize + ?Sized)) -> Result<Self, Error> {
        let text = serde_json::to_string(value).map_err(|e| {
            Error::new(ErrorKind::Invalid, format!("the data of an event has no form in JSON: {e}"))
                .with_source(e)
        })?;
        Ok(self.data(text))
    }

    /// What a client that comes back says it has seen last. It holds for the events behind it as well, until one has
    /// another; the empty one takes it back, so that the client comes back without any. Published events are given
    /// positions for ids, instead of this.
    ///
    /// Keep it short and ASCII: clients send it as a header. Those of npm (eventsource 4, undici 7) cannot send one with
    /// characters beyond U+00FF: they try for ever. And a browser may ask another origin for permission first (a
    /// [preflight](crate::preflight)) when it is longer than 128 bytes or has bytes that are called unsafe; Chromium does not.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] when there is CR, LF or NUL in it.
    pub fn id(mut self, id: impl Into<String>) -> Result<Self, Error> {
        let id = id.into();
        of_one_line("id", &id)?;
        self.id = Some(id);
        Ok(self)
    }

    /// How long clients are to wait before they reconnect, from now on. Written in whole milliseconds, rounded up, and at
    /// the most 2 147 483 647 (24.8 days), beyond which some clients would not wait at all.
    pub fn retry(mut self, wait: Duration) -> Self {
        let ms = wait.as_nanos().div_ceil(1_000_000);
        self.retry = Some(u32::try_from(ms).map_or(LONGEST_RETRY, |ms| ms.min(LONGEST_RETRY)));
        self
    }

    /// Words for who looks at the stream itself; clients leave them out. Of any number of lines, as data.
    pub fn comment(mut self, comment: impl Into<String>) -> Self {
        self.comment = Some(comment.into());
        self
    }

    /// It as it is sent: lines that end with LF, and an empty one at the end. The order is: comment, retry, event, id,
    /// data.
    pub fn to_bytes(&self) -> Bytes {
        self.encode(None)
    }

    /// The same with a position for its id, instead of its own.
    pub(crate) fn encode(&self, position: Option<Position>) -> Bytes {
        let mut out = Vec::with_capacity(self.wire_len_hint());
        if let Some(comment) = &self.comment {
            push_lines(&mut out, b": ", comment);
        }
        // Writing to a vector cannot fail.
        if let Some(ms) = self.retry {
            let _ = writeln!(out, "retry: {ms}");
        }
        if let Some(name) = &self.name {
            push_line(&mut out, b"event: ", name.as_bytes());
        }
        if let Some(position) = position {
            let _ = writeln!(out, "id: {position}");
        } else if let Some(id) = &self.id {
            push_line(&mut out, b"id: ", id.as_bytes());
        }
        if let Some(data) = &self.data {
            push_lines(&mut out, b"data: ", data);
        }
        out.push(b'\n');
        out.into()
    }

    /// Whether a client that comes back behind it says so: an empty id takes it back.
    pub(crate) fn is_resumable(&self) -> bool {
        self.id.as_ref().is_some_and(|id| !id.is_empty())
    }

    /// Whether it has an id of its own.
    pub(crate) fn has_id(&self) -> bool {
        self.id.is_some()
    }

    /// How many bytes it takes at the most, with a position or without; more by a few than it does take.
    fn wire_len_hint(&self) -> usize {
        let field = |label: usize, text: &Option<String>, several: bool| {
            text.as_ref().map_or(0, |text| {
                let ends = if several { memchr2_iter(b'\r', b'\n', text.as_bytes()).count() } else { 0 };
                text.len() + (ends + 1) * (label + 1)
            })
        };
        field(2, &self.comment, true)
            + self.retry.map_or(0, |_| "retry: 2147483647\n".len())
            + field(7, &self.name, false)
            + field(4, &self.id, false).max("id: \n".len() + POSITION_LEN)
            + field(6, &self.data, true)
            + 1
    }
}

/// Its data.
impl From<String> for Event {
    fn from(data: String) -> Self {
        Self::new().data(data)
    }
}

/// Its data.
impl From<&str> for Event {
    fn from(data: &str) -> Self {
        Self::new().data(data)
    }
}

fn of_one_line(field: &str, text: &str) -> Result<(), Error> {
    let Some(at) = memchr3(b'\r', b'\n', 0, text.as_bytes()) else { return Ok(()) };
    let what = match text.as_bytes().get(at) {
        Some(b'\r') => "CR",
        Some(b'\n') => "LF",
        _ => "NUL",
    };
    let why = format!("{what} is not allowed in the {field} of an event (byte {at})");
    Err(Error::new(ErrorKind::Invalid, why))
}

/// The space behind the colon is always there, as clients remove one: so a value that begins with spaces keeps its own.
fn push_line(out: &mut Vec<u8>, label: &[u8], line: &[u8]) {
    out.extend_from_slice(label);
    out.extend_from_slice(line);
    out.push(b'\n');
}

/// A text that ends with a line end has an empty last line, which brings that line end over.
fn push_lines(out: &mut Vec<u8>, label: &[u8], text: &str) {
    let mut rest = text.as_bytes();
    while let Some((line, end)) = memchr2(b'\r', b'\n', rest).and_then(|at| rest.split_at_checked(at)) {
        push_line(out, label, line);
        rest = end.strip_prefix(b"\r\n").or_else(|| end.get(1..)).unwrap_or_default();
    }
    push_line(out, label, rest);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_takes_the_place_of_the_id() {
        let event = Event::from("x").id("own").unwrap();
        assert!(event.has_id() && !Event::from("x").has_id());
        assert_eq!(event.encode(Some(Position::new(36, 7))), "id: 10-7\ndata: x\n\n");
        assert_eq!(Event::from("x").encode(Some(Position::new(0, 0))), "id: 0-0\ndata: x\n\n");
        assert_eq!(event.encode(None), "id: own\ndata: x\n\n");
    }

    #[test]
    fn a_heartbeat_is_a_block_with_a_comment() {
        let mut decoder = crate::Decoder::new();
        decoder.push(BEAT).unwrap();
        assert_eq!(decoder.next_item().unwrap(), Some(crate::Item::Comment(String::new())));
        assert_eq!(decoder.next_item().unwrap(), None);
        assert!(!decoder.finish(), "it is complete");
    }

    #[test]
    fn the_room_that_is_made_suffices() {
        let longest = Position::new(u64::MAX, u64::MAX);
        assert_eq!(longest.to_string().len(), POSITION_LEN);
        let mixed = "\r\n\ra\n\n\r\r\n \u{2028}";
        let full = Event::named("n").unwrap().retry(Duration::MAX).comment(mixed).data(mixed);
        let short = full.clone().id("i").unwrap();
        let long = full.clone().id("i".repeat(100)).unwrap();
        for event in [Event::new(), full, short, long, Event::from("a\n"), Event::from("\n".repeat(99))] {
            for position in [None, Some(longest)] {
                let (room, len) = (event.wire_len_hint(), event.encode(position).len());
                assert!(len <= room, "{len} bytes, {room} were expected: {event:?}");
            }
        }
    }
}
