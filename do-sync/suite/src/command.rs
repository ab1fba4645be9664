use crate::{
    HistoryCommand, InboundCommand, MembersCommand, OutboundCommand, PrimitiveCommand, RoomCommand,
    RoomProbe, Settings, probe::At,
};
use do_core::{Failure, ObjectState};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// What a probe can be told: of each feature its own enum.
///
/// As JSON, `{"room": "count"}` or `{"room": {"broadcast": {"text": "hi"}}}`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Command {
    /// Keeps the settings, and makes the object's rooms anew by them. Before anyone joins.
    Configure(Box<Settings>),
    /// What handlers were told, an object for each call.
    Log,
    /// When instances were constructed, in ms.
    Boots,
    /// The object's time, in ms.
    Now,
    /// Over joining, sockets and broadcasts.
    Room(RoomCommand),
    /// Over the sequence.
    History(HistoryCommand),
    /// Over what comes in.
    Inbound(InboundCommand),
    /// Over slow readers.
    Outbound(OutboundCommand),
    /// Over members.
    Members(MembersCommand),
    /// Over counters and locks, by stubs of the object.
    Primitive(PrimitiveCommand),
}

impl<S: ObjectState> RoomProbe<S> {
    /// What one command gives.
    pub(crate) async fn command(&self, command: Command, at: &At<S>) -> Result<Value, Failure> {
        Ok(match command {
            Command::Configure(settings) => self.configure(&settings)?,
            Command::Log => self.log.lines()?,
            Command::Boots => self.log.boots()?,
            Command::Now => json!(self.state.now()),
            Command::Inbound(command) => self.inbound_command(&command, at)?,
            Command::Outbound(command) => self.outbound_command(&command, at)?,
            Command::Room(command) => self.room_command(command, at)?,
            Command::History(command) => self.history_command(command, at)?,
            Command::Members(command) => self.members_command(command, at).await?,
            Command::Primitive(command) => command.run(self.state.env()).await?,
        })
    }

    /// What a body or a message gives: a command, or a list of them, whose values are a list too.
    pub(crate) async fn commands(&self, told: Value, at: &At<S>) -> Result<Value, Failure> {
        let Value::Array(commands) = told else {
            return self.command(serde_json::from_value(told)?, at).await;
        };
        let mut values = Vec::with_capacity(commands.len());
        for command in commands {
            values.push(self.command(serde_json::from_value(command)?, at).await?);
        }
        Ok(Value::Array(values))
    }
}
