//! Joining, sockets and broadcasts.

use crate::{
    RoomProbe,
    probe::{At, tags_of},
};
use do_core::{
    CloseCode, CloseFrame, Error, Failure, Message, ObjectState, ReadyState, Socket, SocketOf,
    SocketRegistry, Tag,
};
use do_sync::{BroadcastReport, Room};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::cell::Cell;

/// What a room can be told. Tags choose sockets: those that have any of them; without tags, all of the room.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RoomCommand {
    /// Gives the report.
    Broadcast(Send),
    /// How many there are.
    Count,
    /// How many without the one that asks.
    CountWithout,
    /// The tags of each socket, without the main room's own, sorted.
    Tags,
    /// The attachment of each socket that has any of the tags, sorted.
    Attachments(Vec<String>),
    /// Attaches to them.
    Attach(Vec<String>, Value),
    /// Closes them.
    Close(Vec<String>, u16, String),
    /// Broadcasts a value, and publishes it: how often it was written by each.
    Written,
    /// How many sockets the object lists with the tag, closing ones too.
    Listed(String),
}

/// A message on its way to a room.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Send {
    /// The message.
    #[serde(flatten)]
    pub content: Content,
    /// Only to those that have any of the tags.
    #[serde(default)]
    pub to: Vec<String>,
    /// Not to those that have any of the tags.
    #[serde(default)]
    pub except: Vec<String>,
    /// Not to the one that asks.
    #[serde(default)]
    pub except_me: bool,
}

/// A message in one of its forms.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Content {
    /// A text.
    Text(String),
    /// A text with this value.
    Json(Value),
    /// A binary message.
    Bytes(Vec<u8>),
}

impl Content {
    /// As it is sent.
    pub(crate) fn message(self) -> Result<Message, Error> {
        Ok(match self {
            Self::Text(text) => text.into(),
            Self::Json(value) => Message::json(&value)?,
            Self::Bytes(bytes) => bytes.into(),
        })
    }
}

/// A value that counts how often it is written.
#[derive(Default)]
struct Counting(Cell<u32>);

impl Serialize for Counting {
    fn serialize<W: serde::Serializer>(&self, to: W) -> Result<W::Ok, W::Error> {
        self.0.set(self.0.get() + 1);
        to.serialize_str("counted")
    }
}

impl<S: ObjectState> RoomProbe<S> {
    pub(crate) fn room_command(&self, command: RoomCommand, at: &At<S>) -> Result<Value, Failure> {
        let room = &at.room;
        Ok(match command {
            RoomCommand::Broadcast(send) => told(broadcast(send, at)?),
            RoomCommand::Count => json!(room.count()),
            RoomCommand::CountWithout => json!(room.count_without(me(at)?)),
            RoomCommand::Tags => sorted(room.sockets().iter().map(|socket| Ok(tags_of(socket))))?,
            RoomCommand::Attachments(tags) => {
                sorted(with(room, &tags)?.iter().map(|it| Ok(it.attachment::<Value>()?.unwrap_or_default())))?
            }
            RoomCommand::Attach(tags, value) => {
                with(room, &tags)?.iter().try_for_each(|socket| socket.set_attachment(&value))?;
                Value::Null
            }
            RoomCommand::Close(tags, code, reason) => {
                let frame = CloseFrame::new(CloseCode::new(code)?, reason)?;
                with(room, &tags)?.iter().try_for_each(|socket| socket.close(frame.clone()))?;
                Value::Null
            }
            RoomCommand::Written => {
                let counting = Counting::default();
                room.broadcast_json(&counting)?.send();
                let by_broadcast = counting.0.replace(0);
                room.publish(&counting)?;
                json!([by_broadcast, counting.0.get()])
            }
            RoomCommand::Listed(tag) => json!(self.state.sockets().tagged(&Tag::new(tag)?).len()),
        })
    }
}

fn broadcast<S: ObjectState>(send: Send, at: &At<S>) -> Result<BroadcastReport, Failure> {
    let mut broadcast = at.room.broadcast(send.content.message()?);
    for tag in send.to {
        broadcast = broadcast.to_tag(tag)?;
    }
    if !send.except.is_empty() {
        for socket in with(&at.room, &send.except)? {
            broadcast = broadcast.except(&socket);
        }
    }
    if send.except_me {
        broadcast = broadcast.except(me(at)?);
    }
    Ok(broadcast.send())
}

/// The report as JSON.
pub(crate) fn told(report: BroadcastReport) -> Value {
    json!({"matched": report.matched, "queued": report.queued, "dropped": report.dropped})
}

/// The socket that asks.
pub(crate) fn me<S: ObjectState>(at: &At<S>) -> Result<&SocketOf<S>, Failure> {
    at.socket.as_ref().ok_or_else(|| Failure::msg("no socket asks"))
}

/// The open sockets of the room that have any of the tags; all without tags.
pub(crate) fn with<S: ObjectState>(room: &Room<S>, tags: &[String]) -> Result<Vec<SocketOf<S>>, Failure> {
    let tags = tags.iter().map(|tag| Tag::new(tag.as_str())).collect::<Result<Vec<_>, _>>()?;
    let mut sockets = room.sockets();
    sockets.retain(|socket| {
        let has = socket.tags();
        socket.ready_state() == ReadyState::Open
            && (tags.is_empty() || tags.iter().any(|tag| has.contains(tag)))
    });
    Ok(sockets)
}

/// In an order that does not depend on the host.
fn sorted(values: impl Iterator<Item = Result<Value, Error>>) -> Result<Value, Error> {
    let mut values = values.collect::<Result<Vec<_>, _>>()?;
    values.sort_by_cached_key(Value::to_string);
    Ok(Value::Array(values))
}
