//! What the stores keep in the object's database, and what is done to that behind their back.

use crate::{StoreSettings, TtlProbe};
use do_core::{Failure, ObjectState, SqlStorage, Value as Sql};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// What can be told about the database.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StoredCommand {
    /// Deletes everything that the object has.
    DeleteAll,
    /// Makes a key of a store expire in so many ms from now, and tells the object's time.
    Age(String, String, i64),
    /// Opens a store that may be open already, with these settings.
    Reopen(String, StoreSettings),
    /// How many rows there are, expired or not; `null` without a table.
    Rows,
    /// How many rows a store has, expired or not.
    RowsOf(String),
    /// The rows that a statement gives, as lists; blobs as their lengths.
    Sql(String),
    /// The rows that a statement reads and writes.
    Cost(String),
}

impl<S: ObjectState> TtlProbe<S> {
    pub(crate) fn stored_command(&self, command: StoredCommand) -> Result<Value, Failure> {
        Ok(match command {
            StoredCommand::DeleteAll => {
                self.state.delete_all()?;
                self.remake()?;
                Value::Null
            }
            StoredCommand::Age(store, key, ms) => {
                const SQL: &str = "UPDATE _ttl SET expires = ? WHERE store = ? AND key = ?";
                let now = self.state.now();
                self.state.sql().exec(SQL, (now.as_millis() + ms, store, key))?;
                json!(now)
            }
            StoredCommand::Reopen(store, settings) => {
                let _ = self.store(&store)?;
                let _ = self.sweeper().store(&store, settings.made())?;
                Value::Null
            }
            StoredCommand::Rows => {
                const TABLE: &str = "SELECT name FROM sqlite_master WHERE name = '_ttl'";
                if self.state.sql().exec(TABLE, ())?.first().is_none() {
                    return Ok(Value::Null);
                }
                self.one("SELECT count(*) FROM _ttl", ())?
            }
            StoredCommand::RowsOf(store) => {
                self.one("SELECT count(*) FROM _ttl WHERE store = ?", (store,))?
            }
            StoredCommand::Cost(sql) => {
                let rows = self.state.sql().exec(&sql, ())?;
                json!([rows.rows_read(), rows.rows_written()])
            }
            StoredCommand::Sql(sql) => {
                let rows = self.state.sql().exec(&sql, ())?.into_values();
                rows.map(|row| row.into_iter().map(told).collect::<Value>()).collect()
            }
        })
    }

    fn one(&self, sql: &str, params: impl do_core::Params) -> Result<Value, Failure> {
        let rows = self.state.sql().exec(sql, params)?;
        Ok(json!(rows.first().map(|row| row.at::<i64>(0)).transpose()?))
    }
}

fn told(value: Sql) -> Value {
    match value {
        Sql::Null => Value::Null,
        Sql::Integer(n) => json!(n),
        Sql::Real(x) => json!(x),
        Sql::Text(text) => json!(text),
        Sql::Blob(bytes) => json!({"length": bytes.len()}),
    }
}
