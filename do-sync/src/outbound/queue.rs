//! What a room keeps for one socket until its host takes it: in order, bounded, and the policy for when it is full.

use super::{Kind, OnFull, Outbound, Outgoing};
use do_core::Message;
use std::{
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
};

/// See the [module](self).
///
/// Numbered rather than a ring: one may leave the middle, and then neither the rest is moved nor a hole is kept.
#[derive(Debug, Default)]
pub(super) struct Queue {
    waiting: BTreeMap<u64, Waiting>,
    next: u64,
    /// Of all that wait.
    bytes: usize,
    /// Those that the bounds are about: all but replays.
    bounded: Sum,
    /// Those that may be left out, where the policy leaves out old ones.
    droppable: BTreeSet<u64>,
    droppable_bytes: usize,
    /// Which has a key, where the policy keeps the latest of each.
    keys: BTreeMap<Rc<str>, u64>,
}

#[derive(Debug, Default, Clone, Copy)]
struct Sum {
    messages: usize,
    bytes: usize,
}

#[derive(Debug)]
struct Waiting {
    message: Message,
    kind: Kind,
    key: Option<Rc<str>>,
}

/// What became of a message that had to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pushed {
    /// It waits, and so many older ones were left out for it.
    Queued { dropped: u64 },
    /// It waits in place of an earlier one with its key.
    Coalesced,
    /// It is left out.
    Dropped,
    /// There is no room, and it must not be left out alone.
    Full,
}

impl Queue {
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(super) fn messages(&self) -> usize {
        self.waiting.len()
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The length of the message that is next.
    pub(super) fn next_len(&self) -> Option<usize> {
        self.waiting.first_key_value().map(|(_, waiting)| waiting.message.len())
    }

    pub(super) fn pop(&mut self) -> Option<Message> {
        let number = *self.waiting.first_key_value()?.0;
        self.remove(number).map(|waiting| waiting.message)
    }

    /// Adds a message at the end, behind the `held` bytes that the host still has.
    pub(super) fn push(&mut self, outgoing: Outgoing<'_>, held: usize, bounds: &Outbound) -> Pushed {
        if outgoing.kind == Kind::Replay {
            self.insert(outgoing, bounds);
            return Pushed::Queued { dropped: 0 };
        }
        // Behind a replay the host is busy with that, which is nobody's excess.
        let held = if self.waiting.len() > self.bounded.messages { 0 } else { held };
        let earlier = key_of(outgoing, bounds).and_then(|key| self.keys.get(key).copied());
        // Its place in the order is lost with it: what comes later must not arrive earlier.
        let coalesced = earlier.and_then(|number| self.remove(number)).is_some();
        let len = outgoing.message.len();
        let mut dropped = 0;
        if !fits(self.bounded, len, held, bounds) {
            match (bounds.on_full, outgoing.kind) {
                (OnFull::DropNewest, Kind::Plain) => return Pushed::Dropped,
                (OnFull::DropOldest, kind) => match self.make_room(len, held, bounds) {
                    Some(left_out) => dropped = left_out,
                    None if kind == Kind::Plain => return Pushed::Dropped,
                    None => return Pushed::Full,
                },
                _ => return Pushed::Full,
            }
        }
        self.insert(outgoing, bounds);
        if coalesced { Pushed::Coalesced } else { Pushed::Queued { dropped } }
    }

    /// Leaves out the oldest until `len` bytes fit, and gives how many; `None`, and nothing is left out, when that
    /// would not help.
    fn make_room(&mut self, len: usize, held: usize, bounds: &Outbound) -> Option<u64> {
        let rest = Sum {
            messages: self.bounded.messages - self.droppable.len(),
            bytes: self.bounded.bytes - self.droppable_bytes,
        };
        if !fits(rest, len, held, bounds) {
            return None;
        }
        let mut dropped = 0;
        while !fits(self.bounded, len, held, bounds) {
            let oldest = *self.droppable.first()?;
            self.remove(oldest);
            dropped += 1;
        }
        Some(dropped)
    }

    fn insert(&mut self, outgoing: Outgoing<'_>, bounds: &Outbound) {
        let (number, len) = (self.next, outgoing.message.len());
        self.next += 1;
        self.bytes += len;
        if outgoing.kind != Kind::Replay {
            self.bounded.messages += 1;
            self.bounded.bytes += len;
        }
        if outgoing.kind == Kind::Plain && bounds.on_full == OnFull::DropOldest {
            self.droppable.insert(number);
            self.droppable_bytes += len;
        }
        let key = key_of(outgoing, bounds).map(Rc::<str>::from);
        if let Some(key) = &key {
            self.keys.insert(Rc::clone(key), number);
        }
        let waiting = Waiting { message: outgoing.message.clone(), kind: outgoing.kind, key };
        self.waiting.insert(number, waiting);
    }

    fn remove(&mut self, number: u64) -> Option<Waiting> {
        let waiting = self.waiting.remove(&number)?;
        let len = waiting.message.len();
        self.bytes -= len;
        if waiting.kind != Kind::Replay {
            self.bounded.messages -= 1;
            self.bounded.bytes -= len;
        }
        if self.droppable.remove(&number) {
            self.droppable_bytes -= len;
        }
        if let Some(key) = &waiting.key {
            self.keys.remove(key);
        }
        Some(waiting)
    }
}

fn key_of<'a>(outgoing: Outgoing<'a>, bounds: &Outbound) -> Option<&'a str> {
    outgoing.key.filter(|_| outgoing.kind == Kind::Plain && bounds.on_full == OnFull::LatestPerKey)
}

/// Whether `len` bytes more fit behind what waits here and the `held` bytes of the host. One that would not even fit
/// beside a full window may wait alone, or it could never be sent to somebody who was sent something just now.
fn fits(waits: Sum, len: usize, held: usize, bounds: &Outbound) -> bool {
    let bytes = waits.bytes.saturating_add(held).saturating_add(len);
    let within = bytes <= bounds.max_bytes && waits.messages < bounds.max_messages.max(1);
    within || (waits.messages == 0 && len > bounds.max_bytes.saturating_sub(bounds.window_bytes()))
}
