//! How a stream is read: line by line as the HTML standard says it, from chunks that end anywhere, in bounded memory.
//!
//! Nothing is decoded before it is asked for. So [`Decoder::last_event_id`] is always that of what the caller has taken,
//! and never of events which it would lose by reconnecting.

use bytes::{Buf, BytesMut};
use do_core::{Error, ErrorKind};
use memchr::{memchr, memchr2};
use std::{mem, time::Duration};

/// The mark that a stream may begin with, once.
const BOM: &[u8] = b"\xEF\xBB\xBF";

/// An event as a client's listener gets it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Decoded {
    /// Its name; `message` when it was sent without one.
    pub event: String,
    /// Its data. Lines are separated by LF.
    pub data: String,
    /// The last event id by then, of this event or an earlier one; empty when there is none.
    pub id: String,
}

/// What a [`Decoder`] finds in a stream.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Item {
    /// An event, which the empty line behind it completed.
    Event(Decoded),
    /// A comment's line, without the colon and one space behind it: empty for the heartbeats of this crate. Clients leave
    /// it out, other than to see that the connection lives.
    Comment(String),
    /// How long to wait before reconnecting, from now on: counts when it is read, whether or not an event follows. Up to
    /// `u64::MAX` milliseconds, as the stream says: bound it before adding it to an `Instant`.
    Retry(Duration),
}

/// Reads event streams, for native clients and for tests: give it the bytes in chunks of any size by
/// [`push`](Self::push), then take what they complete by [`next_event`](Self::next_event), or by
/// [`next_item`](Self::next_item) with comments and times, until there is none.
///
/// It holds to the HTML standard: one BOM at the start is left out, lines end with CRLF, CR or LF, invalid UTF-8 becomes
/// U+FFFD, unknown fields and malformed values are ignored, a block without data is no event. Hence no stream is wrong;
/// one can only be too large.
///
/// ```
/// use do_sse::Decoder;
///
/// let mut decoder = Decoder::new();
/// decoder.push(b"id: 7\nevent: build\nda")?;
/// assert_eq!(decoder.next_event()?, None); // not yet
/// decoder.push(b"ta: ok\r\n\r\n:\n\ndata: cut off")?;
/// let event = decoder.next_event()?.ok_or("none")?;
/// assert_eq!((event.event.as_str(), event.data.as_str(), event.id.as_str()), ("build", "ok", "7"));
/// assert_eq!(decoder.next_event()?, None);
///
/// assert!(decoder.finish()); // the connection is gone, in the middle of an event
/// assert_eq!(decoder.last_event_id(), "7"); // what to send as `Last-Event-ID`
/// decoder.push(b"data: again\n\n")?; // the next connection
/// assert_eq!(decoder.next_event()?.ok_or("none")?.data, "again");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Decoder {
    limit: usize,
    /// What has been pushed and not been decoded.
    input: BytesMut,
    /// So much of it has no line end.
    scanned: usize,
    /// Nothing of the stream has been decoded, not even a BOM.
    begins: bool,
    /// The last line ended with CR: an LF right behind it is of the same line end.
    after_cr: bool,
    block: Block,
    last_event_id: String,
    retry: Option<Duration>,
    failed: Option<Error>,
}

/// What has been read since the last empty line.
#[derive(Debug, Clone, Default)]
struct Block {
    any: bool,
    event: String,
    /// Each line of it with an LF.
    data: String,
    id: Option<String>,
}

impl Block {
    fn len(&self) -> usize {
        self.event.len() + self.data.len() + self.id.as_ref().map_or(0, String::len)
    }
}

impl Default for Decoder {
    fn default() -> Self {
        Self::new()
    }
}

impl Decoder {
    /// The bytes that an event can have in [`Decoder::new`]: 1 MiB.
    pub const DEFAULT_LIMIT: usize = 1_024 * 1_024;

    /// One that takes events of up to 1 MiB.
    pub fn new() -> Self {
        Self::with_limit(Self::DEFAULT_LIMIT)
    }

    /// One that takes events of up to so many bytes: those of the fields that are read, and of the line being read,
    /// comments and unknown fields as well.
    pub fn with_limit(bytes: usize) -> Self {
        Self {
            limit: bytes,
            input: BytesMut::new(),
            scanned: 0,
            begins: true,
            after_cr: false,
            block: Block::default(),
            last_event_id: String::new(),
            retry: None,
            failed: None,
        }
    }

    /// The same with what a former client has seen last: the id of events that come without one.
    #[must_use]
    pub fn with_last_event_id(mut self, id: impl Into<String>) -> Self {
        self.last_event_id = id.into();
        self
    }

    /// The next bytes of the stream, however many.
    ///
    /// # Errors
    /// [`ErrorKind::Limit`] when more than the limit waits already, that is, when not everything was taken that there was;
    /// and after such an error of [`next_item`](Self::next_item). The bytes are then not taken.
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.check()?;
        // Half a BOM waits whatever the limit is.
        if self.input.len() > self.limit.max(BOM.len()) {
            let len = self.input.len();
            let why =
                format!("{len} bytes of the event stream wait to be decoded, the limit is {}", self.limit);
            return Err(Error::new(ErrorKind::Limit, why));
        }
        self.input.extend_from_slice(bytes);
        Ok(())
    }

    /// What comes next in the stream, or `None` until more is pushed.
    ///
    /// # Errors
    /// [`ErrorKind::Limit`] when an event or a line is larger than the limit, however it is cut into chunks. What was before
    /// it has been returned by then. The stream cannot be read any further: reconnect, or give up, as the event is probably
    /// sent again. The memory is released.
    pub fn next_item(&mut self) -> Result<Option<Item>, Error> {
        self.check()?;
        while let Some(line) = self.next_line()? {
            let item = self.read_line(&line);
            if self.block.len() > self.limit {
                return Err(self.fail());
            }
            if item.is_some() {
                return Ok(item);
            }
        }
        Ok(None)
    }

    /// The next event in the stream, or `None` until more is pushed. Comments are passed over, and so are times to
    /// reconnect after, which [`retry`](Self::retry) tells nevertheless.
    ///
    /// # Errors
    /// As [`next_item`](Self::next_item).
    pub fn next_event(&mut self) -> Result<Option<Decoded>, Error> {
        while let Some(item) = self.next_item()? {
            if let Item::Event(event) = item {
                return Ok(Some(event));
            }
        }
        Ok(None)
    }

    /// What to send as `Last-Event-ID`; without the header when it is empty. It is that of the last complete block that has
    /// been taken, also where the block was no event.
    pub fn last_event_id(&self) -> &str {
        &self.last_event_id
    }

    /// How long to wait before reconnecting, if the stream has said so: anything up to `u64::MAX` milliseconds.
    pub fn retry(&self) -> Option<Duration> {
        self.retry
    }

    /// The stream has ended. What is incomplete is discarded, as the standard wants it, and so is what was not taken; the
    /// answer is whether there was anything of the kind, comments included.
    ///
    /// The next bytes are those of another stream of the same source. The last event id is kept, as browsers keep it, and so
    /// is the time to reconnect after.
    pub fn finish(&mut self) -> bool {
        let next = Self::with_limit(self.limit).with_last_event_id(mem::take(&mut self.last_event_id));
        let retry = self.retry;
        let last = mem::replace(self, next);
        self.retry = retry;
        last.block.any || !last.input.is_empty() || last.failed.is_some()
    }

    fn check(&self) -> Result<(), Error> {
        self.failed.clone().map_or(Ok(()), Err)
    }

    fn fail(&mut self) -> Error {
        let why = format!("an event of the stream is larger than {} bytes", self.limit);
        let error = Error::new(ErrorKind::Limit, why);
        self.failed = Some(error.clone());
        self.input = BytesMut::new();
        self.block = Block::default();
        error
    }

    /// The next line, without its end; none while it is not known where it ends.
    fn next_line(&mut self) -> Result<Option<BytesMut>, Error> {
        if self.begins && !self.begin() {
            return Ok(None);
        }
        if self.after_cr && !self.input.is_empty() {
            self.after_cr = false;
            if self.input.starts_with(b"\n") {
                self.input.advance(1);
            }
        }
        let unseen = self.input.get(self.scanned..).unwrap_or_default();
        let end = memchr2(b'\r', b'\n', unseen).map(|at| self.scanned + at);
        let len = end.unwrap_or(self.input.len());
        if len > self.limit.saturating_sub(self.block.len()) {
            return Err(self.fail());
        }
        if end.is_none() {
            self.scanned = len;
            return Ok(None);
        }
        self.scanned = 0;
        let line = self.input.split_to(len);
        self.after_cr = self.input.starts_with(b"\r");
        self.input.advance(1);
        Ok(Some(line))
    }

    /// Whether it is known by now if the stream begins with a BOM, which is taken off.
    fn begin(&mut self) -> bool {
        if self.input.len() < BOM.len() && BOM.starts_with(&self.input) {
            return false;
        }
        if self.input.starts_with(BOM) {
            self.input.advance(BOM.len());
        }
        self.begins = false;
        true
    }

    fn read_line(&mut self, line: &[u8]) -> Option<Item> {
        if line.is_empty() {
            return self.dispatch();
        }
        self.block.any = true;
        let (field, value) =
            memchr(b':', line).and_then(|at| line.split_at_checked(at)).unwrap_or((line, b""));
        let value = value.strip_prefix(b":").unwrap_or(value);
        let value = value.strip_prefix(b" ").unwrap_or(value);
        let text = || String::from_utf8_lossy(value);
        match field {
            b"" => return Some(Item::Comment(text().into_owned())),
            b"event" => self.block.event = text().into_owned(),
            b"data" => {
                self.block.data.push_str(&text());
                self.block.data.push('\n');
            }
            b"id" if memchr(0, value).is_none() => self.block.id = Some(text().into_owned()),
            b"retry" => {
                let retry = Duration::from_millis(whole_number(value)?);
                self.retry = Some(retry);
                return Some(Item::Retry(retry));
            }
            _ => {} // unknown, an id with NUL included
        }
        None
    }

    fn dispatch(&mut self) -> Option<Item> {
        let Block { event, mut data, id, .. } = mem::take(&mut self.block);
        if let Some(id) = id {
            self.last_event_id = id;
        }
        data.pop()?; // the LF of the last line; there is none without data
        let event = if event.is_empty() { String::from("message") } else { event };
        Some(Item::Event(Decoded { event, data, id: self.last_event_id.clone() }))
    }
}

/// Of digits only; the largest there is when it is larger.
fn whole_number(digits: &[u8]) -> Option<u64> {
    let plain = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    plain.then(|| {
        digits.iter().fold(0_u64, |n, digit| n.saturating_mul(10).saturating_add(u64::from(digit - b'0')))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_stream_needs_no_more_memory_than_a_short_one() {
        let stream = "id: 1\r\ndata: some words\r\n\r\n: beat\n\n".repeat(2_000);
        for size in [1, 7, 64] {
            let (mut decoder, mut largest, mut events) = (Decoder::with_limit(100), 0, 0);
            for chunk in stream.as_bytes().chunks(size) {
                decoder.push(chunk).unwrap();
                while decoder.next_event().unwrap().is_some() {
                    events += 1;
                }
                largest = largest.max(decoder.input.capacity());
            }
            assert_eq!(events, 2_000);
            assert!(largest <= 512, "{largest} bytes in chunks of {size}");
        }
    }

    #[test]
    fn a_line_without_an_end_is_given_up_at_the_limit() {
        let mut decoder = Decoder::with_limit(1_000);
        let read = |decoder: &mut Decoder| decoder.push(b"x").and_then(|()| decoder.next_item());
        assert_eq!((0..5_000).take_while(|_| read(&mut decoder).is_ok()).count(), 1_000);
        assert_eq!((decoder.input.len(), decoder.input.capacity()), (0, 0));
    }
}
