//! One socket that is behind: its queue, what its host still holds, and since when that does not sink.

use super::{Outbound, queue::Queue};
use do_core::{Error, Message, Socket};
use std::time::Duration;

/// How it is known what has not arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    /// The host tells.
    Host,
    /// The client tells what it has read: of `limit` bytes, `sent` are not acknowledged.
    Credit { limit: u64, sent: u64 },
    /// Nobody tells: everything goes to the host at once.
    Nobody,
}

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Outlet<T> {
    pub(super) socket: T,
    pub(super) queue: Queue,
    source: Source,
    /// What was held when it was last looked at.
    seen: u64,
    /// Since the pump last looked, less is held than before, or this is new.
    pub(super) moved: bool,
    /// For how long nothing has moved.
    pub(super) still: Duration,
}

/// Whether the host takes `len` bytes more beside the `held` ones. It never holds more than a window, except for one
/// longer message: what it holds is out of reach for the policy.
pub(super) fn host_takes(socket: &impl Socket, held: u64, len: usize, bounds: &Outbound) -> bool {
    held == 0 || (to_usize(held).saturating_add(len) <= bounds.window_bytes() && socket.has_room(len))
}

pub(super) fn to_usize(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

impl<T: Socket> Outlet<T> {
    pub(super) fn new(socket: T, source: Source) -> Self {
        let mut outlet =
            Self { socket, queue: Queue::default(), source, seen: 0, moved: true, still: Duration::ZERO };
        outlet.seen = outlet.held();
        outlet
    }

    /// Whether nothing is lost when it is forgotten.
    pub(super) fn is_spent(&self) -> bool {
        self.queue.is_empty() && self.source == Source::Host
    }

    /// Bytes that left the room and have not arrived, as far as is known.
    pub(super) fn held(&self) -> u64 {
        match self.source {
            Source::Host => self.socket.buffered_bytes().unwrap_or(0),
            Source::Credit { sent, .. } => sent,
            Source::Nobody => 0,
        }
    }

    /// Whether `len` bytes may leave the room, if nothing waits before them.
    fn takes(&self, len: usize, bounds: &Outbound) -> bool {
        match self.source {
            Source::Nobody => true,
            // Less than a quarter may be read and not acknowledged, for ever: nothing may wait for that.
            Source::Credit { limit, sent } => {
                sent < limit.div_ceil(4).max(1) || sent.saturating_add(len as u64) <= limit
            }
            Source::Host => host_takes(&self.socket, self.held(), len, bounds),
        }
    }

    /// Notes whether the peer has read.
    fn look(&mut self) {
        let held = self.held();
        if held < self.seen {
            self.moved = true;
            self.still = Duration::ZERO;
        }
        self.seen = held;
    }

    /// Gives the host what it takes of what waits.
    pub(super) fn drain(&mut self, bounds: &Outbound) -> Result<(), Error> {
        self.look();
        while let Some(len) = self.queue.next_len() {
            if !self.takes(len, bounds) {
                break;
            }
            let Some(message) = self.queue.pop() else { break };
            self.hand_over(message)?;
        }
        Ok(())
    }

    /// Sends a message at once, if it may overtake nothing and be taken: `false` when it has to wait.
    pub(super) fn send(&mut self, message: &Message, bounds: &Outbound) -> Result<bool, Error> {
        let goes = self.queue.is_empty() && self.takes(message.len(), bounds);
        if goes {
            self.hand_over(message.clone())?;
        }
        Ok(goes)
    }

    fn hand_over(&mut self, message: Message) -> Result<(), Error> {
        let len = message.len() as u64;
        self.socket.send(message)?;
        if let Source::Credit { sent, .. } = &mut self.source {
            *sent = sent.saturating_add(len);
        }
        self.seen = self.held();
        Ok(())
    }

    /// The client has read so many bytes more.
    pub(super) fn acknowledge(&mut self, bytes: u64) {
        if let Source::Credit { sent, .. } = &mut self.source {
            // It counts what others sent too, such as answers of the host: never below nothing.
            *sent = sent.saturating_sub(bytes);
        }
        self.look();
    }

    pub(super) fn credit(&self) -> Option<u64> {
        match self.source {
            Source::Credit { limit, .. } => Some(limit),
            Source::Host | Source::Nobody => None,
        }
    }
}
