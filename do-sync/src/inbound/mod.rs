//! What a peer may send: how long, how often, and what becomes of what is malformed.
//!
//! The room judges a message when the object hands it over, before anything is parsed: what is dropped costs no more
//! than looking at its length and at one number.

mod bucket;
mod ping;
mod received;
mod settings;

pub use received::{InboundStats, Received, Rejected};
pub use settings::{Inbound, OnExcess, OnMalformed};

use crate::{Room, member::close};
use bucket::Buckets;
use do_core::{CloseCode, Error, Message, ObjectState, ReadyState, Socket, SocketOf, Timestamp};
use serde::de::DeserializeOwned;
use settings::Rate;
use std::cell::{Cell, RefCell};

/// Text of an error that is logged about a message: the message may be 32 MiB of the peer's choice, and parsers
/// quote it.
const LOGGED_CHARS: usize = 200;

/// Lines about malformed messages: ten at once, then one in six seconds. A peer must not fill the log.
const LOGGED: Rate = Rate { interval: 6_000_000_000, tolerance: 9 * 6_000_000_000 };

/// Acknowledgements, in rooms that limit the rate of messages: no client has reason to send as many.
const ACKNOWLEDGEMENTS: Rate = Rate { interval: 1_000_000, tolerance: 1_000_000_000 };

/// What a room remembers about its peers' messages, as long as the instance lives.
pub(crate) struct Watch<S: ObjectState> {
    buckets: RefCell<Buckets>,
    acknowledgements: RefCell<Buckets>,
    /// Those that the room closed and whose peers may still send: about as many as there are such connections.
    expelled: RefCell<Vec<SocketOf<S>>>,
    log: RefCell<Buckets>,
    /// Malformed messages that were not logged since the last that was.
    unlogged: Cell<u64>,
    stats: Cell<InboundStats>,
}

impl<S: ObjectState> Default for Watch<S> {
    fn default() -> Self {
        Self {
            buckets: RefCell::default(),
            acknowledgements: RefCell::default(),
            expelled: RefCell::default(),
            log: RefCell::default(),
            unlogged: Cell::default(),
            stats: Cell::default(),
        }
    }
}

impl<S: ObjectState> Watch<S> {
    fn count(&self, add: impl FnOnce(&mut InboundStats)) {
        let mut stats = self.stats.get();
        add(&mut stats);
        self.stats.set(stats);
    }

    /// A socket that is open was not closed by the room, so that the list is hardly ever searched.
    fn is_expelled(&self, socket: &SocketOf<S>) -> bool {
        socket.ready_state() != ReadyState::Open && self.expelled.borrow().contains(socket)
    }

    pub(crate) fn expel(&self, socket: &SocketOf<S>) {
        let mut expelled = self.expelled.borrow_mut();
        // Those whose peers have gone, before the list would grow.
        if expelled.len() == expelled.capacity() {
            expelled.retain(|other| other.ready_state() != ReadyState::Closed);
        }
        expelled.push(socket.clone());
    }
}

fn nanos(now: Timestamp) -> u64 {
    u64::try_from(now.as_millis()).unwrap_or(0).saturating_mul(1_000_000)
}

impl<S: ObjectState> Room<S> {
    /// Sets the bounds of what each socket may send. They hold for what is handed to [`receive`](Self::receive) or
    /// [`admit`](Self::admit).
    #[must_use]
    pub fn inbound(self, inbound: Inbound) -> Self {
        self.with(|settings| settings.inbound = inbound)
    }

    /// Reads a message as JSON, within the room's [`Inbound`] bounds. `None` when there is nothing to act on:
    ///
    /// - the message is too long: the socket closes with 1009;
    /// - it came too soon: by [`OnExcess`] it is dropped or the socket closes with 1008;
    /// - it is binary, malformed or of another shape: it is logged as a warning, and by [`OnMalformed`] ignored or the
    ///   socket closes with 1007 or 1003. The log has the beginning of the parser's complaint, not the message, and not
    ///   more than ten lines a minute;
    /// - it was for the room itself, which has dealt with it;
    /// - the room closed the socket before, and the peer has not noticed yet.
    pub fn receive<T: DeserializeOwned>(&self, socket: &SocketOf<S>, message: &Message) -> Option<T> {
        self.try_receive(socket, message).value()
    }

    /// [`receive`](Self::receive) for those who want to know why there is nothing.
    pub fn try_receive<T: DeserializeOwned>(&self, socket: &SocketOf<S>, message: &Message) -> Received<T> {
        match self.judge(socket, message) {
            Received::Value(()) => {}
            Received::Control => return Received::Control,
            Received::Dropped(reason) => return Received::Dropped(reason),
        }
        match message.parse_json() {
            Ok(value) => {
                self.watch().count(|stats| stats.admitted += 1);
                Received::Value(value)
            }
            Err(error) => {
                self.malformed(socket, message, &error);
                Received::Dropped(Rejected::Malformed)
            }
        }
    }

    /// Whether a message is within the room's [`Inbound`] bounds and for the application: for rooms that read text or
    /// bytes themselves. What is not is dealt with as by [`receive`](Self::receive). Call one of the two, once a message.
    ///
    /// ```
    /// # use do_core::prelude::*;
    /// # use do_sync::Room;
    /// # fn example<S: ObjectState>(room: &Room<S>, from: &SocketOf<S>, message: &Message) {
    /// if room.admit(from, message) {
    ///     room.broadcast(message).except(from).send();
    /// }
    /// # }
    /// ```
    #[must_use]
    pub fn admit(&self, socket: &SocketOf<S>, message: &Message) -> bool {
        self.try_admit(socket, message).value().is_some()
    }

    /// [`admit`](Self::admit) for those who want to know why not.
    pub fn try_admit(&self, socket: &SocketOf<S>, message: &Message) -> Received<()> {
        let judged = self.judge(socket, message);
        if judged == Received::Value(()) {
            self.watch().count(|stats| stats.admitted += 1);
        }
        judged
    }

    /// Says that a message that was admitted is malformed after all: for rooms with a format of their own. It is logged
    /// with the reason, and the socket closes, as [`OnMalformed`] has it.
    pub fn reject_malformed(&self, socket: &SocketOf<S>, message: &Message, reason: &Error) {
        self.watch().count(|stats| stats.admitted = stats.admitted.saturating_sub(1));
        self.malformed(socket, message, reason);
    }

    /// What came in since the instance began. Memory like the rest: hibernation begins a new count.
    pub fn inbound_stats(&self) -> InboundStats {
        self.watch().stats.get()
    }

    fn watch(&self) -> &Watch<S> {
        &self.inner().watch
    }

    /// All that can be said before it is read.
    fn judge(&self, socket: &SocketOf<S>, message: &Message) -> Received<()> {
        let (watch, bounds) = (self.watch(), &self.inner().settings.inbound);
        if watch.is_expelled(socket) {
            watch.count(|stats| stats.closing += 1);
            return Received::Dropped(Rejected::Closing);
        }
        // Before the bounds: a peer must be able to say that it has read what the room sent, however much that was.
        let is_control = acknowledgement(message).is_some_and(|bytes| self.acknowledged(socket, bytes));
        if !is_control && message.len() > bounds.max_bytes {
            watch.count(|stats| stats.too_big += 1);
            self.expel(socket, CloseCode::TOO_BIG, "the message is too long");
            return Received::Dropped(Rejected::TooBig);
        }
        let on_time = |rate| {
            let (buckets, rate) = match is_control {
                true => (&watch.acknowledgements, ACKNOWLEDGEMENTS),
                false => (&watch.buckets, rate),
            };
            buckets.borrow_mut().take(socket.number(), rate, nanos(self.state().now()))
        };
        if bounds.rate.is_none_or(on_time) {
            if is_control {
                watch.count(|stats| stats.control += 1);
                return Received::Control;
            }
            return Received::Value(());
        }
        watch.count(|stats| stats.too_often += 1);
        if bounds.on_excess == OnExcess::Close {
            self.expel(socket, CloseCode::POLICY, "too many messages");
        }
        Received::Dropped(Rejected::TooOften)
    }

    /// Logs, counts, and closes if the room is strict.
    fn malformed(&self, socket: &SocketOf<S>, message: &Message, error: &Error) {
        let watch = self.watch();
        watch.count(|stats| stats.malformed += 1);
        if watch.log.borrow_mut().take(0, LOGGED, nanos(self.state().now())) {
            let reason: String = error.to_string().chars().take(LOGGED_CHARS).collect();
            let (bytes, tags, before) = (message.len(), socket.tags(), watch.unlogged.take());
            // Debug form: the text is partly the peer's, and must not forge log lines.
            tracing::warn!(object = %self.state().id(), bytes, ?tags, ?reason, not_logged_before = before, "malformed message");
        } else {
            watch.unlogged.set(watch.unlogged.get().saturating_add(1));
        }
        if self.inner().settings.inbound.on_malformed == OnMalformed::Close {
            match message {
                Message::Text(_) => {
                    self.expel(socket, CloseCode::INVALID_DATA, "the message is malformed");
                }
                Message::Binary(_) => {
                    self.expel(socket, CloseCode::UNSUPPORTED, "binary messages are not read here");
                }
            }
        }
    }

    /// Closes a socket for what its peer sent, and reads nothing more of it.
    fn expel(&self, socket: &SocketOf<S>, code: CloseCode, reason: &'static str) {
        let watch = self.watch();
        watch.count(|stats| stats.closed += 1);
        watch.expel(socket);
        close(socket, code.get(), reason);
    }
}

/// The bytes of `{"t":"ack","b":N}`, written exactly so: whatever else looks like it is the application's.
fn acknowledgement(message: &Message) -> Option<u64> {
    /// The longest has twenty digits.
    const MOST: usize = 36;
    let bytes = message.as_text().filter(|_| message.len() <= MOST)?;
    let digits = bytes.strip_prefix(r#"{"t":"ack","b":"#)?.strip_suffix('}')?;
    // `parse` alone would take a plus sign.
    digits.bytes().all(|b| b.is_ascii_digit()).then(|| digits.parse().ok()).flatten()
}

#[cfg(test)]
mod tests;
