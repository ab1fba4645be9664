use super::Cause;
use crate::Position;
use bytes::Bytes;
use do_core::{Message, Timestamp};
use serde_json::value::RawValue;
use std::{ops::RangeInclusive, time::Duration};

/// What happens on a [`Client`](super::Client), in order.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Event {
    /// A connection is open, and the room said hello: for the first time, or again.
    Connected(Connected),
    /// A published value.
    Message {
        /// Its number.
        position: Position,
        /// When it was published, by the room's clock.
        at: Timestamp,
        /// The member who published it; `None` for the object itself.
        from: Option<String>,
        /// The value: `serde_json::from_str(data.get())` reads it.
        data: Box<RawValue>,
    },
    /// Published bytes.
    Binary {
        /// Its number.
        position: Position,
        /// When it was published.
        at: Timestamp,
        /// The member who published it; `None` for the object itself.
        from: Option<String>,
        /// The bytes.
        data: Bytes,
    },
    /// A member came.
    Joined {
        /// Its number.
        position: Position,
        /// When.
        at: Timestamp,
        /// Who.
        member: Peer,
    },
    /// What others see of a member changed.
    Updated {
        /// Its number.
        position: Position,
        /// When.
        at: Timestamp,
        /// Who, with what is seen now.
        member: Peer,
    },
    /// A member went.
    Left {
        /// Its number.
        position: Position,
        /// When.
        at: Timestamp,
        /// Who.
        member: String,
    },
    /// A value without a number, such as where a pointer is: some may have been left out.
    Ephemeral(Box<RawValue>),
    /// The application's own message, unread.
    Raw(Message),
    /// A message that waited for the connection is longer than the room takes, which was not known when it was
    /// [sent](super::Sender::send). It is not written.
    Refused {
        /// Its receipt.
        receipt: u64,
        /// The message.
        message: Message,
        /// The longest that the room takes, in bytes.
        limit: usize,
    },
    /// The connection ended, or an attempt failed. The client comes back.
    Disconnected {
        /// Why.
        cause: Cause,
        /// After this time.
        retry_in: Duration,
        /// Messages that were written to this connection and of which nobody knows whether they arrived, by their
        /// [receipts](super::Sender::send), also if one between them was [refused](Self::Refused). They are not sent
        /// again.
        unconfirmed: Option<RangeInclusive<u64>>,
    },
    /// The end: the last event.
    Stopped {
        /// Why.
        cause: Cause,
        /// As in [`Disconnected`](Self::Disconnected).
        unconfirmed: Option<RangeInclusive<u64>>,
        /// Messages that were never written.
        unsent: Option<RangeInclusive<u64>>,
    },
}

/// What the room says to one who comes.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Connected {
    /// Whether the messages that follow continue those that came before, without a gap. `false` for the first connection
    /// of a client that was not given a [position](super::Builder::after).
    pub resumed: bool,
    /// Messages that this client missed for good: take the snapshot, or read the state anew.
    pub gap: Option<Gap>,
    /// Where the room is before the messages that follow.
    pub at: Position,
    /// How many of the messages that follow are old ones.
    pub replay: u64,
    /// Whether this connection brings only a part of what was missed. The room closes it behind that, and the client
    /// comes back for the next part at once. Until then it is not in the room, nobody is named here, and what is sent
    /// waits.
    pub more: bool,
    /// The id by which this client is a member.
    pub member: Option<String>,
    /// The id of this connection.
    pub socket: Option<String>,
    /// Members who are there; at most 256 of them.
    pub members: Vec<Peer>,
    /// How many there are.
    pub count: u64,
    /// The application's state for newcomers, where it gives one.
    pub snapshot: Option<Box<RawValue>>,
}

/// Messages that are lost to this client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Gap {
    /// The position that could not be continued.
    pub after: Position,
    /// How many are lost, where that is known.
    pub lost: Option<u64>,
}

/// A member, as others see them.
#[derive(Debug, Clone, serde::Deserialize)]
#[non_exhaustive]
pub struct Peer {
    /// The id.
    pub id: String,
    /// What the application tells about them.
    #[serde(default)]
    pub data: Option<Box<RawValue>>,
}
