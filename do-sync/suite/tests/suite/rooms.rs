//! How cases speak to the probe.

use do_core::{
    Message,
    testing::{Client, Driver, Fault, Lab, Outcome, Received, Thrown, holds},
};
use serde_json::{Value, json};
use std::time::Duration;

/// In which something that is to come has come.
pub(crate) const SOON: Duration = Duration::from_secs(10);
/// In which something that is not to come would have come.
pub(crate) const A_WHILE: Duration = Duration::from_millis(300);

pub(crate) trait Rooms<D: Driver> {
    /// What a command gives, or each of a list of them, which must succeed.
    async fn tell(&self, object: &str, commands: Value) -> Result<Value, Fault>;

    /// The same for another room of the object.
    async fn tell_in(&self, object: &str, room: &str, commands: Value) -> Result<Value, Fault>;

    /// The error of a command.
    async fn refused(&self, object: &str, commands: Value) -> Result<Thrown, Fault>;

    /// Makes the object's rooms by these settings.
    async fn configure(&self, object: &str, settings: Value) -> Outcome;

    /// Joins with what the query says.
    async fn join(&self, object: &str, query: &[(&str, &str)]) -> Result<D::Client, Fault>;

    /// Broadcasts and gives the report.
    async fn broadcast(&self, object: &str, send: Value) -> Result<Value, Fault>;

    /// What handlers were told of one kind, once it was so often, and no more a while later.
    async fn noted(&self, object: &str, event: &str, times: usize) -> Result<Vec<Value>, Fault>;
}

impl<D: Driver> Rooms<D> for Lab<D> {
    async fn tell(&self, object: &str, commands: Value) -> Result<Value, Fault> {
        self.value(&self.address("/room", object), &commands).await
    }

    async fn tell_in(&self, object: &str, room: &str, commands: Value) -> Result<Value, Fault> {
        self.value(&self.queried(&self.address("/room", object), &[("in", room)]), &commands).await
    }

    async fn refused(&self, object: &str, commands: Value) -> Result<Thrown, Fault> {
        match self.ask(&self.address("/room", object), &commands).await? {
            Ok(value) => Err(Fault::new(format!("{commands} gave {value} instead of an error"))),
            Err(thrown) => Ok(thrown),
        }
    }

    async fn configure(&self, object: &str, settings: Value) -> Outcome {
        self.tell(object, json!({ "configure": settings })).await.map(drop)
    }

    async fn join(&self, object: &str, query: &[(&str, &str)]) -> Result<D::Client, Fault> {
        self.connect(&self.queried(&self.address("/room", object), query)).await
    }

    async fn broadcast(&self, object: &str, send: Value) -> Result<Value, Fault> {
        self.tell(object, json!({"room": {"broadcast": send}})).await
    }

    async fn noted(&self, object: &str, event: &str, times: usize) -> Result<Vec<Value>, Fault> {
        let look = async || {
            let log = self.tell(object, json!("log")).await?;
            let lines = log.as_array().cloned().unwrap_or_default();
            Ok(lines.into_iter().filter(|line| line["event"] == event).collect::<Vec<_>>())
        };
        let what = format!("the log of {event:?}");
        self.eventually(&what, SOON, look, |lines| lines.len() >= times).await?;
        self.advance(A_WHILE).await?;
        let lines = look().await?;
        holds(format!("{what}: {lines:?}, expected {times}"), lines.len() == times)?;
        Ok(lines)
    }
}

/// A report of a broadcast that all took.
pub(crate) fn all_of(sockets: usize) -> Value {
    json!({"matched": sockets, "queued": sockets, "dropped": 0})
}

/// Receives a message that is JSON text.
pub(crate) async fn hears_json<C: Client>(client: &mut C, what: &str, expected: &Value) -> Outcome {
    match client.receive().await.map_err(|fault| fault.during(what))? {
        Received::Message(message @ Message::Text(_)) => {
            let got: Value = message.parse_json()?;
            holds(format!("{what}: got {got}, expected {expected}"), got == *expected)
        }
        other => Err(Fault::new(format!("{what}: got {other:?}, expected {expected}"))),
    }
}

/// The next message, as JSON.
pub(crate) async fn next<C: Client>(client: &mut C) -> Result<Value, Fault> {
    match client.receive().await? {
        Received::Message(message @ Message::Text(_)) => Ok(message.parse_json()?),
        other => Err(Fault::new(format!("expected a frame, got {other:?}"))),
    }
}

/// Receives a Close frame with this code, whatever the reason.
pub(crate) async fn hears_close<C: Client>(client: &mut C, what: &str, code: u16) -> Outcome {
    match client.receive().await.map_err(|fault| fault.during(what))? {
        Received::Close(Some((got, _))) if got == code => Ok(()),
        other => Err(Fault::new(format!("{what}: got {other:?}, expected a close with {code}"))),
    }
}

/// Sends commands over the socket and gives the values.
pub(crate) async fn ask<C: Client>(client: &mut C, commands: &Value) -> Result<Value, Fault> {
    client.send(Message::text(commands.to_string())).await?;
    match client.receive().await? {
        Received::Message(message) => Ok(message.parse_json()?),
        other => Err(Fault::new(format!("{commands} was answered with {other:?}"))),
    }
}
