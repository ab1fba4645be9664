//! What concerns sweeps, and what they tell.

use crate::TtlProbe;
use do_core::{Error, ErrorKind, Failure, ObjectState, SqlStorage};
use do_ttl::{Cause, Expired};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::time::Duration;

/// What can be told about sweeps, and what they tell.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SweepCommand {
    /// Sweeps now; what notifies is told to the log.
    Now,
    /// Sweeps now and tells nobody.
    Quietly,
    /// How many entries wait to be told beside their stores.
    Waiting,
}

impl<S: ObjectState> TtlProbe<S> {
    pub(crate) async fn sweep_command(&self, command: SweepCommand) -> Result<Value, Failure> {
        Ok(match command {
            SweepCommand::Now => {
                self.sweep().await?;
                Value::Null
            }
            SweepCommand::Quietly => {
                self.sweeper().on_alarm().await?;
                Value::Null
            }
            SweepCommand::Waiting => {
                let sql = self.state.sql();
                let is_there = "SELECT 1 FROM sqlite_master WHERE name = '_ttl_notices'";
                if sql.exec(is_there, ())?.is_empty() {
                    return Ok(json!(0));
                }
                let rows = sql.exec("SELECT count(*) FROM _ttl_notices", ())?;
                json!(rows.first().map(|row| row.at::<i64>(0)).transpose()?)
            }
        })
    }

    /// A run of the sweeper: with a handler if there is somebody to be told.
    pub(crate) async fn sweep(&self) -> Result<(), Error> {
        if !self.settings().stores.values().any(|store| store.notify) {
            return self.sweeper().on_alarm().await;
        }
        self.sweeper().on_alarm_with(async |one| self.told(one).await).await
    }

    /// Notes it, and does what the beginning of its value says: "slow", "bad", "bad once".
    async fn told(&self, one: Expired) -> Result<(), Failure> {
        let value = String::from_utf8_lossy(&one.value).into_owned();
        let evicted = one.cause == Cause::Evicted;
        self.log.note(json!({"event": "told", "store": one.store, "key": one.key, "value": value,
            "version": one.version, "expires": one.expires, "evicted": evicted, "attempt": one.attempt}))?;
        if value.starts_with("slow") {
            self.state.sleep(Duration::from_millis(400)).await;
        }
        if value.starts_with("bad") && (one.attempt == 1 || !value.starts_with("bad once")) {
            return Err(Error::new(ErrorKind::Application, "as its value says").into());
        }
        Ok(())
    }
}
