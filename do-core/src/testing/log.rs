//! What handlers were told, in SQL, so that it can be asked for after the instance is gone.

use crate::{Error, Failure, ObjectState, SqlExt, SqlStorage};
use serde::Deserialize;
use serde_json::Value;
use std::fmt;

/// For the probe objects of suites: lines of JSON, and when instances were constructed.
pub struct Log<S: ObjectState>(S);

impl<S: ObjectState> Log<S> {
    /// That of an object whose tables are there.
    pub fn of(state: &S) -> Self {
        Self(state.clone())
    }

    /// Makes its tables, `probe_log` and `probe_boots`, and notes that an instance was constructed.
    ///
    /// # Errors
    /// As [`SqlStorage::exec`].
    pub fn open(state: &S) -> Result<Self, Error> {
        state.sql().exec(
            "CREATE TABLE IF NOT EXISTS probe_log (line TEXT NOT NULL);
             CREATE TABLE IF NOT EXISTS probe_boots (at INTEGER NOT NULL)",
            (),
        )?;
        state.sql().exec("INSERT INTO probe_boots VALUES (?)", [state.now()])?;
        Ok(Self(state.clone()))
    }

    /// Adds a line.
    ///
    /// # Errors
    /// As [`SqlStorage::exec`].
    #[allow(clippy::needless_pass_by_value)] // so that `json!` can stand in the call
    pub fn note(&self, line: Value) -> Result<(), Error> {
        self.0.sql().exec("INSERT INTO probe_log VALUES (?)", [line.to_string()]).map(drop)
    }

    /// All lines, as a list.
    ///
    /// # Errors
    /// As [`SqlStorage::exec`].
    pub fn lines(&self) -> Result<Value, Failure> {
        #[derive(Deserialize)]
        struct Row {
            line: String,
        }
        let rows: Vec<Row> = self.0.sql().query("SELECT line FROM probe_log ORDER BY rowid", ())?;
        let lines = rows.iter().map(|row| serde_json::from_str(&row.line));
        Ok(Value::Array(lines.collect::<Result<_, _>>()?))
    }

    /// When instances were constructed, as a list of milliseconds.
    ///
    /// # Errors
    /// As [`SqlStorage::exec`].
    pub fn boots(&self) -> Result<Value, Failure> {
        #[derive(Deserialize)]
        struct Row {
            at: i64,
        }
        let rows: Vec<Row> = self.0.sql().query("SELECT at FROM probe_boots ORDER BY rowid", ())?;
        Ok(rows.into_iter().map(|row| Value::from(row.at)).collect())
    }
}

impl<S: ObjectState> fmt::Debug for Log<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Log").finish_non_exhaustive()
    }
}
