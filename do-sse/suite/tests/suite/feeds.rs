//! How cases speak to the probe.

use do_core::testing::{Driver, Fault, Lab, Outcome, Thrown, holds, same};
use serde_json::{Value, json};
use std::time::Duration;

/// In which something that is to come has come.
pub(crate) const SOON: Duration = Duration::from_secs(10);
/// In which something that is not to come would have come.
pub(crate) const A_WHILE: Duration = Duration::from_millis(300);

/// What became of an event that one connection took.
pub(crate) const ONE: [usize; 5] = [1, 1, 0, 0, 0];
/// Of one that nobody was there for.
pub(crate) const NOBODY: [usize; 5] = [0; 5];
/// Of one that was left out.
pub(crate) const DROPPED: [usize; 5] = [1, 0, 1, 0, 0];
/// Of one that took the place of another.
pub(crate) const COALESCED: [usize; 5] = [1, 0, 0, 1, 0];
/// Of one that ended a connection.
pub(crate) const ENDED: [usize; 5] = [1, 0, 0, 0, 1];

pub(crate) trait Feeds<D: Driver> {
    /// What a command gives, or each of a list of them, which must succeed.
    async fn tell(&self, object: &str, commands: Value) -> Result<Value, Fault>;

    /// The error of a command.
    async fn refused(&self, object: &str, commands: Value) -> Result<Thrown, Fault>;

    /// Makes the object's feed by these settings.
    async fn configure(&self, object: &str, settings: Value) -> Outcome;

    /// What a command for events gives.
    async fn send(&self, object: &str, command: Value) -> Result<Value, Fault>;

    /// Broadcasts a text to everyone and gives the report.
    async fn broadcast(&self, object: &str, data: &str) -> Result<Value, Fault>;

    /// Publishes a text and gives its position.
    async fn publish(&self, object: &str, data: &str) -> Result<String, Fault>;

    /// Some of the statistics.
    async fn stats<const N: usize>(&self, object: &str, names: [&str; N]) -> Result<[u64; N], Fault>;

    /// Waits until a number of the statistics is this, and no more than it.
    async fn until(&self, object: &str, name: &str, wanted: u64) -> Outcome;

    /// What an alarm command gives.
    async fn alarm(&self, object: &str, command: Value) -> Result<Value, Fault>;

    /// The lines of the log of one kind.
    async fn noted(&self, object: &str, event: &str) -> Result<Vec<Value>, Fault>;
}

impl<D: Driver> Feeds<D> for Lab<D> {
    async fn tell(&self, object: &str, commands: Value) -> Result<Value, Fault> {
        self.value(&self.address("/feed", object), &commands).await
    }

    async fn refused(&self, object: &str, commands: Value) -> Result<Thrown, Fault> {
        match self.ask(&self.address("/feed", object), &commands).await? {
            Ok(value) => Err(Fault::new(format!("{commands} gave {value} instead of an error"))),
            Err(thrown) => Ok(thrown),
        }
    }

    async fn configure(&self, object: &str, settings: Value) -> Outcome {
        self.tell(object, json!({ "configure": settings })).await.map(drop)
    }

    async fn send(&self, object: &str, command: Value) -> Result<Value, Fault> {
        self.tell(object, json!({ "send": command })).await
    }

    async fn broadcast(&self, object: &str, data: &str) -> Result<Value, Fault> {
        self.send(object, json!({"broadcast": {"data": data}})).await
    }

    async fn publish(&self, object: &str, data: &str) -> Result<String, Fault> {
        let published = self.send(object, json!({"publish": {"data": data}})).await?;
        Ok(text(&published[0]).to_owned())
    }

    async fn stats<const N: usize>(&self, object: &str, names: [&str; N]) -> Result<[u64; N], Fault> {
        let stats = self.tell(object, json!({"feed": "stats"})).await?;
        Ok(names.map(|name| stats[name].as_u64().unwrap_or(u64::MAX)))
    }

    async fn until(&self, object: &str, name: &str, wanted: u64) -> Outcome {
        let look = async || Ok(self.stats(object, [name]).await?[0]);
        let seen = self.eventually(name, SOON, look, |seen| *seen >= wanted).await?;
        same(name, seen, wanted)
    }

    async fn alarm(&self, object: &str, command: Value) -> Result<Value, Fault> {
        self.tell(object, json!({ "alarm": command })).await
    }

    async fn noted(&self, object: &str, event: &str) -> Result<Vec<Value>, Fault> {
        let log = self.tell(object, json!("log")).await?;
        let lines = log.as_array().cloned().unwrap_or_default();
        Ok(lines.into_iter().filter(|line| line["event"] == event).collect())
    }
}

pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The epoch and the number of a position.
pub(crate) fn parts(position: &str) -> Result<(&str, u64), Fault> {
    let (epoch, number) = position.split_once('-').ok_or_else(|| Fault::new(format!("{position:?}")))?;
    Ok((epoch, number.parse()?))
}

/// Whether a number is within bounds, both included.
pub(crate) fn within(what: &str, got: u64, least: u64, most: u64) -> Outcome {
    holds(format!("{what}: {got}, expected {least} to {most}"), (least..=most).contains(&got))
}
