use crate::{
    BroadcastReport, Room,
    outbound::{Kind, Outgoing, speaks_protocol},
};
use do_core::{Error, Message, ObjectState, Socket, SocketOf, Tag};
use serde::de::DeserializeOwned;
use std::fmt;

type Predicate<'a, S> = Box<dyn Fn(&SocketOf<S>) -> bool + 'a>;

/// A message on its way to the sockets of a room. Made by [`Room::broadcast`]; nothing happens before
/// [`send`](Self::send).
#[must_use = "nothing is sent before `send`"]
pub struct Broadcast<'a, S: ObjectState> {
    room: &'a Room<S>,
    message: Message,
    key: Option<String>,
    /// Empty: everyone in the room.
    tags: Vec<Tag>,
    except: Vec<SocketOf<S>>,
    except_tags: Vec<Tag>,
    predicates: Vec<Predicate<'a, S>>,
}

impl<'a, S: ObjectState> Broadcast<'a, S> {
    pub(crate) fn new(room: &'a Room<S>, message: Message) -> Self {
        Self {
            room,
            message,
            key: None,
            tags: Vec::new(),
            except: Vec::new(),
            except_tags: Vec::new(),
            predicates: Vec::new(),
        }
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

    /// Not to sockets that have this tag. May be called again.
    pub fn except_tag(mut self, tag: impl Into<Tag>) -> Self {
        self.except_tags.push(tag.into());
        self
    }

    /// Only to sockets for which this holds. Called again, to those for which all hold. Asked once for each socket that
    /// is addressed otherwise.
    pub fn filter(mut self, holds: impl Fn(&SocketOf<S>) -> bool + 'a) -> Self {
        self.predicates.push(Box::new(holds));
        self
    }

    /// Only to sockets to which the application attached a `T` for which this holds, before they came in or
    /// [later](Room::set_attached); those with none or another are left alone.
    ///
    /// ```
    /// # use do_core::prelude::*;
    /// # use do_sync::Room;
    /// #[derive(serde::Deserialize)]
    /// struct Player { team: u8 }
    ///
    /// # fn example<S: ObjectState>(room: &Room<S>) {
    /// room.broadcast("goal!").filter_by(|player: &Player| player.team == 1).send();
    /// # }
    /// ```
    pub fn filter_by<T: DeserializeOwned>(self, holds: impl Fn(&T) -> bool + 'a) -> Self {
        let room = self.room;
        self.filter(move |socket| match room.attached::<T>(socket) {
            Ok(Some(attached)) => holds(&attached),
            // One that entered carries the room's own beside it, which must not be taken for a `T`.
            Ok(None) if !speaks_protocol(socket) => {
                matches!(socket.attachment::<T>(), Ok(Some(attached)) if holds(&attached))
            }
            Ok(None) | Err(_) => false,
        })
    }

    /// Only to sockets of members whose data, as others see it, is a `T` for which this holds.
    pub fn filter_member<T: DeserializeOwned>(self, holds: impl Fn(&T) -> bool + 'a) -> Self {
        let room = self.room;
        self.filter(move |socket| matches!(room.data_of::<T>(socket), Ok(Some(data)) if holds(&data)))
    }

    /// While it waits for a slow reader, a later message with the same key takes its place, in a room with
    /// [`OnFull::LatestPerKey`](crate::OnFull::LatestPerKey): for positions, progress and other values of which only
    /// the latest matters.
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// Sends the message to each open socket that is addressed, in no particular order. Never waits, and a socket that
    /// does not take it does not keep the others from theirs.
    #[allow(clippy::must_use_candidate)] // the report is for those who want it
    pub fn send(self) -> BroadcastReport {
        self.send_as(Kind::Plain)
    }

    pub(crate) fn send_as(self, kind: Kind) -> BroadcastReport {
        let mut report = BroadcastReport::default();
        let outgoing = Outgoing { message: &self.message, key: self.key.as_deref(), kind };
        for socket in self.room.open(&self.tags) {
            if self.addresses(&socket) {
                report.count(self.room.deliver(&socket, outgoing));
            }
        }
        report
    }

    fn addresses(&self, socket: &SocketOf<S>) -> bool {
        !self.except.contains(socket)
            && !self.except_tags.iter().any(|tag| socket.has_tag(tag))
            && self.predicates.iter().all(|holds| holds(socket))
    }
}

/// Not derived, because sockets and states need not have it.
impl<S: ObjectState> fmt::Debug for Broadcast<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Broadcast")
            .field("room", &self.room.tag())
            .field("bytes", &self.message.len())
            .field("key", &self.key)
            .field("tags", &self.tags)
            .field("except", &self.except.len())
            .field("except_tags", &self.except_tags)
            .field("predicates", &self.predicates.len())
            .finish()
    }
}
