//! How cases speak to the probe.

use do_core::testing::{Driver, Fault, Lab, Outcome, Thrown};
use serde_json::{Value, json};

/// The store that cases speak to which need only one.
pub(crate) const MAIN: &str = "main";

pub(crate) trait Stores<D: Driver> {
    /// What a command gives, or each of a list of them, which must succeed.
    async fn tell(&self, object: &str, commands: Value) -> Result<Value, Fault>;

    /// The error of a command.
    async fn refused(&self, object: &str, commands: Value) -> Result<Thrown, Fault>;

    /// Makes the object's sweeper and stores by these settings.
    async fn configure(&self, object: &str, settings: Value) -> Outcome;

    /// What a command for the [`MAIN`] store gives.
    async fn main(&self, object: &str, command: Value) -> Result<Value, Fault>;

    /// Rows read, rows written, and alarms set by a command for the [`MAIN`] store.
    async fn cost(&self, object: &str, command: Value) -> Result<[u64; 3], Fault>;

    /// How many rows there are in all stores, expired or not.
    async fn rows(&self, object: &str) -> Result<u64, Fault>;

    /// The object's time, in ms.
    async fn now(&self, object: &str) -> Result<i64, Fault>;

    /// The lines of the log of one kind.
    async fn noted(&self, object: &str, event: &str) -> Result<Vec<Value>, Fault>;
}

impl<D: Driver> Stores<D> for Lab<D> {
    async fn tell(&self, object: &str, commands: Value) -> Result<Value, Fault> {
        self.value(&self.address("/ttl", object), &commands).await
    }

    async fn refused(&self, object: &str, commands: Value) -> Result<Thrown, Fault> {
        match self.ask(&self.address("/ttl", object), &commands).await? {
            Ok(value) => Err(Fault::new(format!("{commands} gave {value} instead of an error"))),
            Err(thrown) => Ok(thrown),
        }
    }

    async fn configure(&self, object: &str, settings: Value) -> Outcome {
        self.tell(object, json!({ "configure": settings })).await.map(drop)
    }

    async fn main(&self, object: &str, command: Value) -> Result<Value, Fault> {
        self.tell(object, on_main(command)).await
    }

    async fn cost(&self, object: &str, command: Value) -> Result<[u64; 3], Fault> {
        let cost = self.tell(object, json!({"cost": on_main(command)})).await?;
        Ok(serde_json::from_value(cost)?)
    }

    async fn rows(&self, object: &str) -> Result<u64, Fault> {
        Ok(self.tell(object, json!({"stored": "rows"})).await?.as_u64().unwrap_or(0))
    }

    async fn now(&self, object: &str) -> Result<i64, Fault> {
        Ok(serde_json::from_value(self.tell(object, json!("now")).await?)?)
    }

    async fn noted(&self, object: &str, event: &str) -> Result<Vec<Value>, Fault> {
        let log = self.tell(object, json!("log")).await?;
        let lines = log.as_array().cloned().unwrap_or_default();
        Ok(lines.into_iter().filter(|line| line["event"] == event).collect())
    }
}

/// A command for the [`MAIN`] store.
pub(crate) fn on_main(command: Value) -> Value {
    named("store", vec![MAIN.into(), command])
}

/// An object with one field.
pub(crate) fn named(name: &str, value: impl Into<Value>) -> Value {
    [(name, value)].into_iter().collect()
}
