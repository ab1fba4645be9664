//! What waits for one reader, and what happens when it is too much.

use crate::{OnFull, Settings, stats::Cause};
use bytes::{Bytes, BytesMut};
use do_core::{Delivered, Timestamp};
use std::{collections::VecDeque, sync::Arc, task::Waker, time::Duration};

/// Most bytes that are joined into one chunk: enough that many small events cost one, and few, for they are a copy: hyper
/// takes 16 chunks before it waits for a slow reader.
const CHUNK: usize = 4 * 1_024;

/// Room for so many entries is kept when the queue is empty: a connection that once was shown a long history must not hold
/// its place for ever.
const KEPT: usize = 16;

/// What an entry is to the bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// What a newcomer is told first and shown of the history, and what is said at the end: bounded elsewhere, never left
    /// out.
    Preface,
    /// One of a sequence: when it does not fit, the stream ends.
    Numbered,
    /// By the policy.
    Plain,
    /// A heartbeat: only when nothing else waits, which would do as well.
    Beat,
}

#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) bytes: Bytes,
    pub(crate) kind: Kind,
    pub(crate) key: Option<Arc<str>>,
    /// The output of the object that it belongs to: it is not read before that may leave.
    pub(crate) ticket: u64,
}

/// The bounds of a queue.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) max_bytes: usize,
    pub(crate) max_events: usize,
    pub(crate) stall: Duration,
    pub(crate) on_full: OnFull,
}

impl Limits {
    pub(crate) fn of(settings: &Settings) -> Self {
        let Settings { max_bytes, max_events, stall, on_full, .. } = *settings;
        Self { max_bytes, max_events, stall, on_full }
    }

    /// Whether there is room for an entry beside so many of so many bytes. One alone always has it.
    fn hold(&self, entry: &Entry, events: usize, bytes: usize) -> bool {
        events == 0 || (events < self.max_events && bytes.saturating_add(entry.bytes.len()) <= self.max_bytes)
    }
}

/// What became of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pushed {
    pub(crate) delivered: Delivered,
    /// How many earlier ones were left out for it.
    pub(crate) displaced: u64,
    /// Set when the connection ended by it.
    pub(crate) ended: Option<Cause>,
}

impl Pushed {
    fn new(delivered: Delivered) -> Self {
        Self { delivered, displaced: 0, ended: None }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum End {
    #[default]
    No,
    /// Behind what waits, and when this output may leave.
    Draining(u64),
    /// At once: what waited is gone.
    Now,
}

#[derive(Debug)]
pub(super) struct Queue {
    entries: VecDeque<Entry>,
    /// Bytes and number of those that are bounded.
    bytes: usize,
    events: usize,
    end: End,
    /// Chunks that were read.
    reads: u64,
    /// How many had been read when the writer last looked, and since when it is so many.
    seen: (u64, Timestamp),
    pub(super) reader: Option<Waker>,
    pub(super) is_reader_gone: bool,
}

impl Queue {
    pub(super) fn new(now: Timestamp) -> Self {
        Self {
            entries: VecDeque::new(),
            bytes: 0,
            events: 0,
            end: End::No,
            reads: 0,
            seen: (0, now),
            reader: None,
            is_reader_gone: false,
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// What a newcomer is told first.
    pub(super) fn begin(&mut self, preface: Vec<Bytes>, ticket: u64) {
        let entry = |bytes| Entry { bytes, kind: Kind::Preface, key: None, ticket };
        self.entries.extend(preface.into_iter().map(entry));
    }

    pub(super) fn push(&mut self, entry: Entry, now: Timestamp, limits: &Limits) -> Pushed {
        if self.end != End::No || self.is_reader_gone {
            return Pushed::new(Delivered::Dropped);
        }
        if self.is_stalled(now, limits.stall) {
            return self.close(Cause::Stalled);
        }
        match entry.kind {
            Kind::Preface => self.append(entry),
            Kind::Beat if !self.entries.is_empty() => return Pushed::new(Delivered::Dropped),
            Kind::Beat => self.append(entry),
            Kind::Numbered if self.fits(&entry, limits) => self.append(entry),
            Kind::Numbered => return self.close(Cause::Full),
            Kind::Plain => return self.push_plain(entry, limits),
        }
        Pushed::new(Delivered::Queued)
    }

    fn push_plain(&mut self, entry: Entry, limits: &Limits) -> Pushed {
        let mut delivered = Delivered::Queued;
        let mut displaced = 0;
        if limits.on_full == OnFull::LatestPerKey && entry.key.is_some() {
            let same = |waits: &Entry| waits.kind == Kind::Plain && waits.key == entry.key;
            if let Some(at) = self.entries.iter().position(same) {
                self.remove(at);
                delivered = Delivered::Coalesced;
            }
        }
        if !self.fits(&entry, limits) {
            match limits.on_full {
                OnFull::Close | OnFull::LatestPerKey => return self.close(Cause::Full),
                OnFull::DropNewest => return Pushed::new(Delivered::Dropped),
                OnFull::DropOldest => match self.make_room(&entry, limits) {
                    Some(left_out) => displaced = left_out,
                    None => return Pushed::new(Delivered::Dropped),
                },
            }
        }
        self.append(entry);
        Pushed { delivered, displaced, ended: None }
    }

    /// Whether there is room for it.
    fn fits(&self, entry: &Entry, limits: &Limits) -> bool {
        limits.hold(entry, self.events, self.bytes)
    }

    /// Leaves out the oldest plain ones until it fits; none of them when all would not be enough. How many.
    fn make_room(&mut self, entry: &Entry, limits: &Limits) -> Option<u64> {
        let plain = self.entries.iter().filter(|waits| waits.kind == Kind::Plain);
        let (mut bytes, mut events, mut most) = (self.bytes, self.events, 0);
        for oldest in plain {
            bytes -= oldest.bytes.len();
            events -= 1;
            most += 1;
            if limits.hold(entry, events, bytes) {
                let mut left = most;
                self.entries.retain(|waits| {
                    let goes = left > 0 && waits.kind == Kind::Plain;
                    left -= u64::from(goes);
                    !goes
                });
                (self.bytes, self.events) = (bytes, events);
                return Some(most);
            }
        }
        None
    }

    fn append(&mut self, entry: Entry) {
        if Self::counts(&entry) {
            self.bytes += entry.bytes.len();
            self.events += 1;
        }
        self.entries.push_back(entry);
    }

    /// Takes one out.
    fn remove(&mut self, at: usize) -> Option<Bytes> {
        let entry = self.entries.remove(at)?;
        if Self::counts(&entry) {
            self.bytes -= entry.bytes.len();
            self.events -= 1;
        }
        Some(entry.bytes)
    }

    fn counts(entry: &Entry) -> bool {
        matches!(entry.kind, Kind::Numbered | Kind::Plain)
    }

    /// Whether something waits and nothing was read for so long. To be asked before anything is added.
    pub(super) fn is_stalled(&mut self, now: Timestamp, stall: Duration) -> bool {
        if self.entries.is_empty() || self.seen.0 != self.reads {
            self.seen = (self.reads, now);
            return false;
        }
        self.seen.1.until(now) >= stall
    }

    /// When it is stalled if nothing is read until then; `None` when nothing waits.
    pub(super) fn stalls_at(&self, stall: Duration) -> Option<Timestamp> {
        (!self.entries.is_empty()).then(|| self.seen.1 + stall)
    }

    fn close(&mut self, cause: Cause) -> Pushed {
        self.end();
        Pushed { delivered: Delivered::Disconnected, displaced: 0, ended: Some(cause) }
    }

    /// Ends at once. Nothing more is read, also not of what waited: after the decision the rest would only be late.
    pub(super) fn end(&mut self) {
        self.end = End::Now;
        self.entries = VecDeque::new();
        (self.bytes, self.events) = (0, 0);
    }

    /// Ends behind what waits.
    pub(super) fn drain(&mut self, ticket: u64) {
        if self.end == End::No {
            self.end = End::Draining(ticket);
        }
    }

    /// The outputs from this one on never leave, because their object is gone; it ends behind the rest.
    pub(super) fn forget_from(&mut self, ticket: u64) {
        self.entries.retain(|entry| entry.ticket < ticket);
        if self.end != End::Now {
            self.end = End::Draining(0);
        }
    }

    /// The next chunk: of what may leave, as much as is worth joining. `Some(None)` at the end.
    #[allow(clippy::option_option)] // a chunk, the end, or neither yet
    pub(super) fn read(&mut self, durable: u64) -> Option<Option<Bytes>> {
        let may_leave = self.entries.iter().take_while(|entry| entry.ticket <= durable);
        let (mut count, mut length) = (0, 0);
        for entry in may_leave {
            if count > 0 && length + entry.bytes.len() > CHUNK {
                break;
            }
            count += 1;
            length += entry.bytes.len();
        }
        if count == 0 {
            let is_over = match self.end {
                End::No => false,
                End::Draining(ticket) => self.entries.is_empty() && ticket <= durable,
                End::Now => true,
            };
            return is_over.then_some(None);
        }
        self.reads += 1;
        let chunk = self.take(count, length);
        if self.entries.is_empty() && self.entries.capacity() > KEPT {
            self.entries = VecDeque::new();
        }
        Some(chunk)
    }

    /// The first ones, of this length together.
    fn take(&mut self, count: usize, length: usize) -> Option<Bytes> {
        if count == 1 {
            return self.remove(0);
        }
        let mut chunk = BytesMut::with_capacity(length);
        for _ in 0..count {
            chunk.extend_from_slice(&self.remove(0)?);
        }
        Some(chunk.freeze())
    }
}

#[cfg(test)]
mod tests;
