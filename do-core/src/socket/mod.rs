//! WebSockets that hibernate: owned by the host, found again by tag, never held in a field.

mod accept;
mod auto_response;
mod close;
mod message;
mod upgrade;

pub use accept::Accept;
pub use auto_response::AutoResponse;
pub use close::{Close, CloseCode, CloseFrame};
pub use message::{Message, Text};
pub use upgrade::{Handshaken, Upgrade, offers_protocol};

use crate::{Error, ErrorKind, Request, Response, Tag, Timestamp};
use serde::{Serialize, de::DeserializeOwned};

/// Where a socket is in its life, as in the browser's `readyState`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReadyState {
    /// Messages pass.
    Open,
    /// One side sent a Close; or the connection is gone or broken, and this object had not closed it (rules D16, D17).
    Closing,
    /// This object closed it, and the peer's Close came or the connection is gone.
    Closed,
}

/// One of an object's sockets. A handle: clones and handles from different look-ups are equal when they mean
/// the same connection.
pub trait Socket: Clone + PartialEq + 'static {
    /// Queues a message. It leaves once everything that the object wrote before is durable (rule C4), in the
    /// order of the calls (rule C10). Never waits for the peer.
    ///
    /// # Errors
    /// [`ErrorKind::Closed`] after [`close`](Self::close) (rule D20). [`ErrorKind::Overloaded`] when the peer
    /// reads too slowly and its outbox is full; natively the socket is then dropped. Sending to a peer that is
    /// gone already is no error: its close event follows (rule D17).
    fn send(&self, message: impl Into<Message>) -> Result<(), Error>;

    /// Starts closing, or answers the peer's Close. Messages of the peer still arrive until its own Close
    /// (rule D14). A second call does nothing.
    ///
    /// # Errors
    /// Faults of the platform; natively none, because a [`CloseFrame`] is valid by construction.
    fn close(&self, frame: impl Into<CloseFrame>) -> Result<(), Error>;

    /// The tags it was accepted with, in order.
    fn tags(&self) -> Vec<Tag>;

    /// The attachment as it is stored.
    #[doc(hidden)]
    fn attachment_bytes(&self) -> Option<Vec<u8>>;

    /// Stores bytes that were checked against [`limits::ATTACHMENT_BYTES`](crate::limits::ATTACHMENT_BYTES).
    #[doc(hidden)]
    fn set_attachment_bytes(&self, bytes: Vec<u8>) -> Result<(), Error>;

    /// Where it is in its life.
    fn ready_state(&self) -> ReadyState;

    /// Bytes that were sent and have not left this machine's process yet; `None` where the platform does not tell.
    ///
    /// Natively and in the test kit it is always known: messages that wait for a commit (rule C4) and what the outbox
    /// holds, with a few bytes of framing for each message. On Workers it is the runtime's `bufferedAmount`, the bytes
    /// of the messages alone; a runtime without that property gives `None`. Cheap enough to be asked before each send.
    fn buffered_bytes(&self) -> Option<u64>;

    /// Whether a message of that length would be taken now: [`send`](Self::send) would not fail as overloaded, and
    /// the socket would not be dropped for it. Always where the platform has no bound (rule D11b).
    fn has_room(&self, bytes: usize) -> bool {
        let _ = bytes;
        true
    }

    /// Whether it was accepted with this tag.
    fn has_tag(&self, tag: &Tag) -> bool {
        self.tags().contains(tag)
    }

    /// A number that no other socket of this object has, equal for equal handles, as long as the instance lives: to
    /// keep what is known about a socket in a map. Take it out again when the socket closes.
    fn number(&self) -> u64;

    /// When the host last answered this socket by [`SocketRegistry::set_auto_response`], if ever (rule D30).
    fn auto_response_at(&self) -> Option<Timestamp>;

    /// The attached value; `None` when there is none. Readable in the close handler too (rule D17).
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] when what is attached is of another type.
    fn attachment<T: DeserializeOwned>(&self) -> Result<Option<T>, Error> {
        let Some(bytes) = self.attachment_bytes() else { return Ok(None) };
        serde_json::from_slice(&bytes)
            .map(Some)
            .map_err(|e| Error::new(ErrorKind::Invalid, format!("the attachment is not of that type: {e}")))
    }

    /// Attaches a value in place of the old one. It survives hibernation, and is lost with the connection
    /// (rule D27). Not part of a transaction.
    ///
    /// # Errors
    /// [`ErrorKind::Limit`] when it is longer than
    /// [`limits::ATTACHMENT_BYTES`](crate::limits::ATTACHMENT_BYTES) as JSON; the old value stays (rule D26).
    fn set_attachment<T: Serialize + ?Sized>(&self, value: &T) -> Result<(), Error> {
        self.set_attachment_bytes(accept::attachment_to_bytes(value)?)
    }
}

/// The sockets of one object, whichever of its instances accepted them.
///
/// Ask again whenever they are needed. A collection of sockets in a field is wrong after the first hibernation.
pub trait SocketRegistry: Clone + 'static {
    /// The handle to one socket.
    type Socket: Socket;

    /// Accepts the WebSocket that a request asks for, and gives the 101 to return from `fetch` and the socket,
    /// to greet it. The socket is in the lists from here on; what is sent before the handshake completes waits.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] when the request is no right upgrade (see [`Upgrade::of`]) or its upgrade was
    /// taken already, [`ErrorKind::Limit`] at [`limits::SOCKETS_PER_OBJECT`](crate::limits::SOCKETS_PER_OBJECT).
    fn accept(&self, request: &Request, with: Accept) -> Result<(Response, Self::Socket), Error>;

    /// All sockets, in no particular order. Those that are closing are among them until the first await of
    /// their close handler (rules D18, D21).
    fn all(&self) -> Vec<Self::Socket>;

    /// Those with a tag, in no particular order.
    fn tagged(&self, tag: &Tag) -> Vec<Self::Socket>;

    /// All but one: for the close handler, where the closing socket is no longer to be counted (rule D18).
    fn others(&self, socket: &Self::Socket) -> Vec<Self::Socket> {
        let mut sockets = self.all();
        sockets.retain(|other| other != socket);
        sockets
    }

    /// Lets the host answer one exact text by another without waking the object (rules D28, D29). One pair per
    /// object; `None` removes it.
    ///
    /// # Errors
    /// Faults of the platform; natively none.
    fn set_auto_response(&self, pair: Option<AutoResponse>) -> Result<(), Error>;
}
