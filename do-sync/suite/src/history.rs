//! Entering, publishing and what is kept of it.

use crate::{RoomProbe, probe::At, query::accept, room::me};
use do_core::{Error, ErrorKind, Failure, ObjectState, Request, Response, SqlStorage, testing::Query};
use do_sync::{Entering, Event, History, Member, Outbound, Position, Published, Room};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::time::Duration;

/// What a room can be told about its sequence.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HistoryCommand {
    /// Publishes a value in the name of the one that asks, or of the object. Gives the position.
    Publish(Value),
    /// Publishes several values: all or none. Gives the positions.
    All(Vec<Value>),
    /// So many texts of so many bytes, in one turn.
    Many(u64, usize),
    /// Bytes.
    Binary(Vec<u8>),
    /// Something that has no number.
    Event(Value),
    /// Publishes in a transaction that is rolled back.
    Undone(Value),
    /// Deletes everything that the object has.
    DeleteAll,
    /// Where the sequence is.
    Position,
    /// What is shown of it.
    Messages(Option<String>, u64),
    /// How many rows are stored.
    Stored,
    /// Rows read and written by a command, where the host counts.
    Cost(Box<HistoryCommand>),
}

/// How much is kept. What is not said is as do-sync has it by default.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HistorySettings {
    /// Most messages.
    pub max_messages: Option<u64>,
    /// Most bytes.
    pub max_bytes: Option<u64>,
    /// The oldest, in ms.
    pub max_age: Option<u64>,
    /// What newcomers are shown.
    pub replay: u64,
    /// Most bytes that wait for a socket.
    pub outbound: Option<usize>,
    /// Newcomers get this as the snapshot.
    pub snapshot: Option<Value>,
    /// Old messages are deleted by the object's own alarm.
    pub alarm: bool,
}

impl HistorySettings {
    pub(crate) fn apply<S: ObjectState>(&self, room: Room<S>, state: &S) -> Room<S> {
        let mut history = History::new().replay(self.replay);
        if let Some(most) = self.max_messages {
            history = history.max_messages(most);
        }
        if let Some(most) = self.max_bytes {
            history = history.max_bytes(most);
        }
        if let Some(ms) = self.max_age {
            history = history.max_age(Duration::from_millis(ms));
        }
        let room = room.history(history);
        let room = if self.alarm { room.alarm(do_core::Alarm::raw(state)) } else { room };
        match self.outbound {
            Some(most) => room.outbound(Outbound::new().max_bytes(most)),
            None => room,
        }
    }
}

/// Lets somebody in whose query says who they are.
pub(crate) fn enter<S: ObjectState>(
    room: &Room<S>,
    request: &Request,
    query: &Query,
    member: &str,
    settings: &HistorySettings,
) -> Result<Response, Error> {
    let mut member = Member::new(member)?.accept(accept(query)?);
    if let Some(data) = query.first("data") {
        member = member.data(data)?;
    }
    done(room.entering(request, member), settings)
}

/// Lets somebody in who only listens.
pub(crate) fn follow<S: ObjectState>(
    room: &Room<S>,
    request: &Request,
    query: &Query,
    settings: &HistorySettings,
) -> Result<Response, Error> {
    done(room.following(request, accept(query)?), settings)
}

fn done<S: ObjectState>(entering: Entering<'_, S>, settings: &HistorySettings) -> Result<Response, Error> {
    match settings.snapshot.clone() {
        Some(snapshot) => entering.snapshot(move || snapshot).done(),
        None => entering.done(),
    }
}

fn told(published: Published) -> Value {
    json!(published.position.to_string())
}

impl<S: ObjectState> RoomProbe<S> {
    pub(crate) fn history_command(&self, command: HistoryCommand, at: &At<S>) -> Result<Value, Failure> {
        let room = &at.room;
        Ok(match command {
            HistoryCommand::Publish(value) => {
                let publication = room.publishing(&value);
                let publication = if at.socket.is_some() { publication.from(me(at)?) } else { publication };
                told(publication.send()?)
            }
            HistoryCommand::All(values) => {
                json!(room.publish_all(values)?.into_iter().map(told).collect::<Vec<_>>())
            }
            HistoryCommand::Many(count, bytes) => {
                for n in 0..count {
                    room.publish(&format!("{n:0>bytes$}"))?;
                }
                Value::Null
            }
            HistoryCommand::Binary(bytes) => told(room.publish_binary(bytes)?),
            HistoryCommand::Event(value) => crate::room::told(room.send_all(Event::new(&value)?)),
            HistoryCommand::Undone(value) => {
                let undone: Result<(), Failure> = self.state.sql().transaction(|| {
                    room.publish(&value)?;
                    Err(Error::new(ErrorKind::Application, "undone").into())
                });
                json!(undone.is_err())
            }
            HistoryCommand::DeleteAll => {
                self.state.delete_all()?;
                self.remake()?;
                Value::Null
            }
            HistoryCommand::Position => json!(room.position()?),
            HistoryCommand::Messages(after, limit) => {
                let after = after.map(|text| text.parse::<Position>()).transpose()?;
                serde_json::to_value(room.messages(after, limit)?)?
            }
            HistoryCommand::Stored => {
                let rows = self.state.sql().exec("SELECT count(*) FROM _room_log", ())?;
                json!(rows.first().map(|row| row.at::<i64>(0)).transpose()?)
            }
            HistoryCommand::Cost(command) => {
                let before = room.history_stats();
                self.history_command(*command, at)?;
                let after = room.history_stats();
                json!([after.rows_read - before.rows_read, after.rows_written - before.rows_written])
            }
        })
    }
}
