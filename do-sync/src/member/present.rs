use super::mark::was_closed;
use crate::Room;
use do_core::{Error, ObjectState, ReadyState, Socket, SocketOf, SocketRegistry, Tag};
use serde_json::value::RawValue;

/// A member who is there.
#[derive(Debug, Clone, serde::Serialize)]
#[non_exhaustive]
pub struct Present {
    /// The id.
    pub id: String,
    /// What others may see.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<Box<RawValue>>,
}

impl<S: ObjectState> Room<S> {
    /// Who is there, in the order of their ids, each once: those who have an open socket that entered, and those who are
    /// waited for within their [grace](crate::Members::grace).
    ///
    /// Writes nothing. In an instance where nobody came or went yet it reads a row for each.
    ///
    /// # Errors
    /// Faults of the storage.
    pub fn presence(&self) -> Result<Vec<Present>, Error> {
        let mut there = Vec::new();
        self.roster()
            .visit(|id, data| there.push(Present { id: id.to_owned(), data: data.map(ToOwned::to_owned) }))?;
        Ok(there)
    }

    /// How many are there.
    ///
    /// # Errors
    /// As [`presence`](Self::presence).
    pub fn member_count(&self) -> Result<usize, Error> {
        let mut count = 0;
        self.roster().visit(|_, _| count += 1)?;
        Ok(count)
    }

    /// Whether this member is there.
    ///
    /// # Errors
    /// As [`presence`](Self::presence).
    pub fn is_present(&self, member: &str) -> Result<bool, Error> {
        if !self.sockets_of(member).is_empty() {
            return Ok(true);
        }
        self.roster().is_awaited(member)
    }

    /// The member whose socket this is; `None` for sockets that did not enter this room, or only
    /// [follow](Self::follow) it. Right in the close handler
    /// too.
    pub fn member_of(&self, socket: &SocketOf<S>) -> Option<Present> {
        let mark = self.mark_of(socket)?.mark;
        Some(Present { id: mark.m?, data: mark.d })
    }

    /// The open sockets of a member, in no particular order. They are found by a tag of their own, whatever the size of
    /// the room.
    pub fn sockets_of(&self, member: &str) -> Vec<SocketOf<S>> {
        self.open_with(self.member_tag(member))
    }

    /// The open sockets of those who only [follow](Self::follow), in no particular order.
    pub fn followers(&self) -> Vec<SocketOf<S>> {
        self.open_with(self.follower_tag())
    }

    /// The open sockets that entered, which are those that get what is in the sequence.
    pub(crate) fn entered(&self) -> Vec<SocketOf<S>> {
        self.open_with(self.entered_tag())
    }

    /// Those with a tag; none if it is too long for anybody to have it.
    fn open_with(&self, tag: Result<Tag, Error>) -> Vec<SocketOf<S>> {
        let Ok(tag) = tag else { return Vec::new() };
        let mut found = self.state().sockets().tagged(&tag);
        self.retain_open(&mut found);
        found
    }

    /// Leaves those that are open, and no revenants: what is sent to one of these goes nowhere, and keeps the object in
    /// memory.
    pub(crate) fn retain_open(&self, sockets: &mut Vec<SocketOf<S>>) {
        sockets.retain(|socket| socket.ready_state() == ReadyState::Open);
        let revenants = self.inner().members.revenants.get_or_init(|| self.look_for_revenants());
        if !revenants.is_empty() {
            sockets.retain(|socket| !revenants.contains(&socket.number()));
        }
    }

    /// The sockets that the room [closed](super::close) in an earlier instance and that the host takes for open. Looked for
    /// once in an instance: whatever closes in it is known to.
    fn look_for_revenants(&self) -> Vec<u64> {
        let Ok(tag) = self.entered_tag() else { return Vec::new() }; // nobody can have it
        let sockets = self.state().sockets().tagged(&tag);
        let open = sockets.iter().filter(|socket| socket.ready_state() == ReadyState::Open);
        open.filter(|socket| was_closed(*socket)).map(Socket::number).collect()
    }
}
