//! What the feed keeps in the object's database, and what is done to that behind its back.

use crate::FeedProbe;
use do_core::{Error, ErrorKind, Failure, ObjectState, SqlStorage};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// What can be told about the database.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StoredCommand {
    /// Publishes in a transaction that is rolled back.
    Undone(String),
    /// Deletes everything that the object has.
    DeleteAll,
    /// How many events are stored, without the row that has the place where the sequence is.
    Count,
    /// Rows read and written for the history since the instance began, where the host counts.
    Stats,
}

impl<S: ObjectState> FeedProbe<S> {
    pub(crate) fn stored_command(&self, command: StoredCommand) -> Result<Value, Failure> {
        let feed = self.feed();
        Ok(match command {
            StoredCommand::Undone(data) => {
                let undone: Result<(), Failure> = self.state.sql().transaction(|| {
                    feed.publish(data.as_str())?;
                    Err(Error::new(ErrorKind::Application, "undone").into())
                });
                json!(undone.is_err())
            }
            StoredCommand::DeleteAll => {
                self.state.delete_all()?;
                self.remake()?;
                Value::Null
            }
            StoredCommand::Count => {
                let rows =
                    self.state.sql().exec("SELECT count(*) FROM _feed_log WHERE length(event) > 0", ())?;
                json!(rows.first().map(|row| row.at::<i64>(0)).transpose()?)
            }
            StoredCommand::Stats => {
                let stats = feed.history_stats();
                json!([stats.rows_read, stats.rows_written])
            }
        })
    }
}
