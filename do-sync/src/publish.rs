use crate::{
    BroadcastReport, Position, Room,
    log::{Entry, Logged},
    outbound::{Kind, Outgoing},
    wire,
};
use bytes::Bytes;
use do_core::{Error, ErrorKind, ObjectState, SocketOf};
use serde::Serialize;
use std::fmt;

/// A message that was numbered and sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Published {
    /// Its place in the sequence.
    pub position: Position,
    /// What became of it at each socket that entered.
    pub report: BroadcastReport,
}

/// A message that is about to be numbered. Made by [`Room::publishing`]; nothing happens before [`send`](Self::send).
///
/// There is no way to leave somebody out: the sequence would have a hole for them, and they would come back for what is
/// missing. A client knows its own messages by their sender; what is not for all is for
/// [`broadcast`](Room::broadcast).
#[must_use = "nothing is sent before `send`"]
pub struct Publication<'a, S: ObjectState> {
    room: &'a Room<S>,
    content: Content,
    from: Option<SocketOf<S>>,
}

#[derive(Debug)]
enum Content {
    /// JSON, or why the value is none.
    Json(Result<String, Error>),
    Binary(Bytes),
}

impl<S: ObjectState> Room<S> {
    /// Numbers a value, keeps it in the history and sends it as JSON to all who [entered](Self::enter): whoever is
    /// away gets it when they are back. A text is a JSON string.
    ///
    /// Costs two rows read and one written, and one more for its deletion some day.
    ///
    /// Do not publish inside [`transaction`](do_core::SqlStorage::transaction), but after it: when it is rolled back, the
    /// message has been sent and is in no history. Then the room begins a new epoch and closes every socket with
    /// [`RESYNC`](crate::codes::RESYNC): clients come back and are told of a gap.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] when the value cannot be written as JSON, [`ErrorKind::Limit`] when it is longer, with what
    /// frames it, than half of [`Outbound::max_bytes`](crate::Outbound::max_bytes), which is 128 KiB unless said otherwise,
    /// or than about 2 MB; as [`SqlStorage::exec`](do_core::SqlStorage::exec). Nothing was sent then.
    pub fn publish<T: Serialize + ?Sized>(&self, value: &T) -> Result<Published, Error> {
        self.publishing(value).send()
    }

    /// [`publish`](Self::publish) for several values, in their order: all of them or none.
    ///
    /// # Errors
    /// As [`publish`](Self::publish), of the first that cannot be published. Nothing was sent then.
    pub fn publish_all<T: Serialize>(
        &self,
        values: impl IntoIterator<Item = T>,
    ) -> Result<Vec<Published>, Error> {
        let values = values.into_iter().map(|value| wire::to_json(&value));
        let values = values.collect::<Result<Vec<_>, Error>>()?;
        let entries = values.iter().map(|data| Entry::Json { from: None, data });
        let sockets = self.entered();
        let published = self.log().append_all(entries)?.into_iter().map(|logged| Published {
            position: logged.position,
            report: self.deliver_to(&sockets, &logged),
        });
        Ok(published.collect())
    }

    /// [`publish`](Self::publish) for bytes, which are sent as they are in a binary message.
    ///
    /// # Errors
    /// As [`publish`](Self::publish).
    pub fn publish_binary(&self, bytes: impl Into<Bytes>) -> Result<Published, Error> {
        self.publishing_binary(bytes).send()
    }

    /// Begins what [`publish`](Self::publish) does at once, to say who publishes.
    ///
    /// ```
    /// # use do_core::prelude::*;
    /// # use do_sync::Room;
    /// # fn example<S: ObjectState>(room: &Room<S>, sender: &SocketOf<S>) -> Result<()> {
    /// let published = room.publishing("hello").from(sender).send()?;
    /// assert_eq!(published.report.dropped, 0);
    /// # Ok(())
    /// # }
    /// ```
    pub fn publishing<T: Serialize + ?Sized>(&self, value: &T) -> Publication<'_, S> {
        Publication { room: self, content: Content::Json(wire::to_json(value)), from: None }
    }

    /// [`publishing`](Self::publishing) for bytes.
    pub fn publishing_binary(&self, bytes: impl Into<Bytes>) -> Publication<'_, S> {
        Publication { room: self, content: Content::Binary(bytes.into()), from: None }
    }

    /// Where the sequence is: the position of the latest message, number 0 before the first one.
    ///
    /// # Errors
    /// As [`SqlStorage::exec`](do_core::SqlStorage::exec).
    pub fn position(&self) -> Result<Position, Error> {
        self.log().position()
    }

    /// Sends what was numbered to all who entered.
    pub(crate) fn deliver_all(&self, logged: &Logged) -> BroadcastReport {
        self.deliver_to(&self.entered(), logged)
    }

    fn deliver_to(&self, sockets: &[SocketOf<S>], logged: &Logged) -> BroadcastReport {
        let mut report = BroadcastReport::default();
        let sequenced = Outgoing { message: &logged.frame, key: None, kind: Kind::Sequenced };
        for socket in sockets {
            report.count(self.deliver(socket, sequenced));
        }
        report
    }
}

impl<S: ObjectState> Publication<'_, S> {
    /// Says who publishes: the member to whom this socket belongs. Clients see the id.
    pub fn from(mut self, socket: &SocketOf<S>) -> Self {
        self.from = Some(socket.clone());
        self
    }

    /// Numbers it, keeps it, and queues it for each open socket that entered. Never waits.
    ///
    /// # Errors
    /// As [`Room::publish`], and [`ErrorKind::Invalid`] when the socket did not enter the room.
    pub fn send(self) -> Result<Published, Error> {
        let from =
            self.from.as_ref().map(|socket| self.room.member_of(socket).ok_or_else(foreign)).transpose()?;
        let from = from.as_ref().map(|member| member.id.as_str());
        let logged = match &self.content {
            Content::Json(Ok(data)) => self.room.log().append(Entry::Json { from, data })?,
            Content::Json(Err(error)) => return Err(error.clone()),
            Content::Binary(data) => self.room.log().append(Entry::Binary { from, data })?,
        };
        Ok(Published { position: logged.position, report: self.room.deliver_all(&logged) })
    }
}

fn foreign() -> Error {
    Error::new(ErrorKind::Invalid, "the publisher's socket did not enter this room")
}

/// Not derived, because sockets and states need not have it.
impl<S: ObjectState> fmt::Debug for Publication<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Publication")
            .field("room", &self.room.tag())
            .field("content", &self.content)
            .field("from", &self.from.is_some())
            .finish()
    }
}
