//! What handlers were told, in SQL, so that it can be asked for after the instance is gone.

use do_core::{Error, Failure, ObjectState, SqlExt, SqlStorage};
use serde::Deserialize;
use serde_json::Value;
use std::fmt;

pub(crate) struct Log<S: ObjectState>(S);

impl<S: ObjectState> Log<S> {
    /// That of an object whose tables are there.
    pub(crate) fn of(state: &S) -> Self {
        Self(state.clone())
    }

    /// Its tables, and that an instance was constructed.
    pub(crate) fn open(state: &S) -> Result<Self, Error> {
        // The last two are for commits that fail: a foreign key that is checked at the end of the turn.
        state.sql().exec(
            "CREATE TABLE IF NOT EXISTS probe_log (line TEXT NOT NULL);
             CREATE TABLE IF NOT EXISTS probe_boots (at INTEGER NOT NULL);
             CREATE TABLE IF NOT EXISTS parent (id INTEGER PRIMARY KEY);
             CREATE TABLE IF NOT EXISTS child (id INTEGER REFERENCES parent DEFERRABLE INITIALLY DEFERRED)",
            (),
        )?;
        state.sql().exec("INSERT INTO probe_boots VALUES (?)", [state.now()])?;
        Ok(Self(state.clone()))
    }

    #[allow(clippy::needless_pass_by_value)] // so that `json!` can stand in the call
    pub(crate) fn note(&self, line: Value) -> Result<(), Error> {
        self.0.sql().exec("INSERT INTO probe_log VALUES (?)", [line.to_string()]).map(drop)
    }

    pub(crate) fn lines(&self) -> Result<Value, Failure> {
        #[derive(Deserialize)]
        struct Row {
            line: String,
        }
        let rows: Vec<Row> = self.0.sql().query("SELECT line FROM probe_log ORDER BY rowid", ())?;
        let lines = rows.iter().map(|row| serde_json::from_str(&row.line));
        Ok(Value::Array(lines.collect::<Result<_, _>>()?))
    }

    pub(crate) fn boots(&self) -> Result<Value, Failure> {
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
