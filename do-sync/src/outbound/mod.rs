//! What waits for a peer that reads slowly: bounded for each socket, with a policy for when it is full.

mod settings;

pub use settings::{OnFull, Outbound};

use crate::Room;
use do_core::{Message, ObjectState, Socket, SocketOf};

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
    /// By the room's policy.
    Plain,
}

/// What became of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Delivered {
    Queued,
    /// Queued in place of an earlier one with the same key.
    Coalesced,
    Dropped,
    /// The socket was closed because it is too slow.
    Disconnected,
}

impl<S: ObjectState> Room<S> {
    /// Sets the bounds of what waits for a slow reader.
    #[must_use]
    pub fn outbound(self, outbound: Outbound) -> Self {
        self.with(|settings| settings.outbound = outbound)
    }

    /// Every message of the room leaves through here.
    #[allow(clippy::unused_self)]
    pub(crate) fn deliver(&self, socket: &SocketOf<S>, outgoing: Outgoing<'_>) -> Delivered {
        match socket.send(outgoing.message) {
            Ok(()) => Delivered::Queued,
            Err(error) => {
                tracing::debug!(%error, "a socket did not take a message");
                Delivered::Dropped
            }
        }
    }
}
