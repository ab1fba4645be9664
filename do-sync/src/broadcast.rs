use crate::{
    BroadcastReport, Room,
    outbound::{Delivered, Kind, Outgoing},
};
use do_core::{Error, Message, ObjectState, SocketOf, Tag};
use std::fmt;

/// A message on its way to the sockets of a room. Made by [`Room::broadcast`]; nothing happens before
/// [`send`](Self::send).
#[must_use = "nothing is sent before `send`"]
pub struct Broadcast<'a, S: ObjectState> {
    room: &'a Room<S>,
    message: Message,
    /// Empty: everyone in the room.
    tags: Vec<Tag>,
    except: Vec<SocketOf<S>>,
}

impl<'a, S: ObjectState> Broadcast<'a, S> {
    pub(crate) fn new(room: &'a Room<S>, message: Message) -> Self {
        Self { room, message, tags: Vec::new(), except: Vec::new() }
    }

    /// Only to sockets of the room that have this tag. Called again, to those with any of the tags; nobody gets
    /// the message twice.
    pub fn to(mut self, tag: impl Into<Tag>) -> Self {
        self.tags.push(tag.into());
        self
    }

    /// [`to`](Self::to) for a tag that is not checked yet.
    ///
    /// # Errors
    /// [`ErrorKind::Limit`](do_core::ErrorKind::Limit) when it is too long to be anyone's.
    pub fn to_tag(self, tag: impl TryInto<Tag, Error: Into<Error>>) -> Result<Self, Error> {
        Ok(self.to(tag.try_into().map_err(Into::into)?))
    }

    /// Not to this socket, for instance the sender. May be called again.
    pub fn except(mut self, socket: &SocketOf<S>) -> Self {
        self.except.push(socket.clone());
        self
    }

    /// Queues the message for each open socket that is addressed, in no particular order. Never waits, and a
    /// socket that does not take it does not keep the others from theirs.
    #[allow(clippy::must_use_candidate)] // the report is for those who want it
    pub fn send(self) -> BroadcastReport {
        let mut report = BroadcastReport::default();
        for socket in self.room.open(&self.tags) {
            if self.except.contains(&socket) {
                continue;
            }
            report.matched += 1;
            let outgoing = Outgoing { message: &self.message, key: None, kind: Kind::Plain };
            match self.room.deliver(&socket, outgoing) {
                Delivered::Queued | Delivered::Coalesced => report.queued += 1,
                Delivered::Dropped | Delivered::Disconnected => report.dropped += 1,
            }
        }
        report
    }
}

/// Not derived, because sockets and states need not have it.
impl<S: ObjectState> fmt::Debug for Broadcast<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Broadcast")
            .field("room", &self.room.tag())
            .field("bytes", &self.message.len())
            .field("tags", &self.tags)
            .field("except", &self.except.len())
            .finish()
    }
}
