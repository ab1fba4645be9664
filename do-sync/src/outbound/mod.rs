//! What waits for a peer that reads slowly: bounded for each socket, with a policy for when it is full.

mod flow;
mod outlet;
mod queue;
mod settings;
mod stats;
#[cfg(test)]
mod tests;

pub(crate) use flow::{Flow, speaks_protocol};
pub use settings::{OnFull, Outbound};
pub use stats::OutboundStats;

use crate::{BroadcastReport, Room};
use do_core::{Delivered, Message, ObjectState, SocketOf};

/// A message for one socket.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Outgoing<'a> {
    pub(crate) message: &'a Message,
    /// Of those with the same key only the latest has to arrive.
    pub(crate) key: Option<&'a str>,
    pub(crate) kind: Kind,
}

/// Whether a message may be left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// One of a sequence: all or none of those that follow. When it does not fit the socket closes with 1013.
    Sequenced,
    /// What a newcomer is told first, and shown of the history: bounded elsewhere, never left out.
    Replay,
    /// By the room's policy.
    Plain,
}

impl<S: ObjectState> Room<S> {
    /// Sets the bounds of what waits for a slow reader.
    #[must_use]
    pub fn outbound(self, outbound: Outbound) -> Self {
        self.with(|settings| settings.outbound = outbound)
    }

    /// Sends a message to one socket of the room, in order with what the room sends to it. What is sent by
    /// [`Socket::send`](do_core::Socket::send) instead knows no bounds but the host's, and overtakes what waits here.
    #[allow(clippy::must_use_candidate)] // the report is for those who want it
    pub fn send_to(&self, socket: &SocketOf<S>, message: impl Into<Message>) -> BroadcastReport {
        let outgoing = Outgoing { message: &message.into(), key: None, kind: Kind::Plain };
        let mut report = BroadcastReport::default();
        report.count(self.deliver(socket, outgoing));
        report
    }

    /// What waits in the room for slow readers, and what became of others since this instance began.
    pub fn outbound_stats(&self) -> OutboundStats {
        self.inner().flow.stats()
    }

    /// Every message of the room leaves through here.
    pub(crate) fn deliver(&self, socket: &SocketOf<S>, outgoing: Outgoing<'_>) -> Delivered {
        self.inner().flow.deliver(self, socket, outgoing)
    }

    /// The bytes that a client may be sent before it acknowledges any; `None` when it need not, because the host tells
    /// what waits. For sockets that speak the protocol, before anything is delivered to them.
    pub(crate) fn credit(&self, socket: &SocketOf<S>) -> Option<u64> {
        self.inner().flow.credit(socket, &self.inner().settings.outbound)
    }

    /// A client has read so many bytes more. `false` when this socket has no credit: then it is none of ours.
    pub(crate) fn acknowledged(&self, socket: &SocketOf<S>, bytes: u64) -> bool {
        self.inner().flow.acknowledged(socket, bytes, &self.inner().settings.outbound)
    }

    /// A socket has closed: what waits for it is let go. Those who do not say so are found out later.
    pub(crate) fn forget_outbound(&self, socket: &SocketOf<S>) {
        self.inner().flow.forget(socket);
    }
}
