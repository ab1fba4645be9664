//! What handlers were told, in SQL, so that it can be asked for after the instance is gone.

use do_core::{Error, Failure, ObjectState, SqlExt, SqlStorage};
use serde::Deserialize;
use serde_json::Value;

#[derive(Debug)]
pub(crate) struct Log;

impl Log {
    /// Its tables, and that an instance was constructed.
    pub(crate) fn open<S: ObjectState>(state: &S) -> Result<Self, Error> {
        state.sql().exec(
            "CREATE TABLE IF NOT EXISTS probe_log (line TEXT NOT NULL);
             CREATE TABLE IF NOT EXISTS probe_boots (at INTEGER NOT NULL)",
            (),
        )?;
        state.sql().exec("INSERT INTO probe_boots VALUES (?)", [state.now()])?;
        Ok(Self)
    }

    #[allow(clippy::needless_pass_by_value)] // so that `json!` can stand in the call
    pub(crate) fn note<S: ObjectState>(&self, state: &S, line: Value) -> Result<(), Error> {
        state.sql().exec("INSERT INTO probe_log VALUES (?)", [line.to_string()]).map(drop)
    }

    pub(crate) fn lines<S: ObjectState>(&self, state: &S) -> Result<Value, Failure> {
        #[derive(Deserialize)]
        struct Row {
            line: String,
        }
        let rows: Vec<Row> = state.sql().query("SELECT line FROM probe_log ORDER BY rowid", ())?;
        let lines = rows.iter().map(|row| serde_json::from_str(&row.line));
        Ok(Value::Array(lines.collect::<Result<_, _>>()?))
    }

    pub(crate) fn boots<S: ObjectState>(&self, state: &S) -> Result<Value, Failure> {
        #[derive(Deserialize)]
        struct Row {
            at: i64,
        }
        let rows: Vec<Row> = state.sql().query("SELECT at FROM probe_boots ORDER BY rowid", ())?;
        Ok(rows.into_iter().map(|row| Value::from(row.at)).collect())
    }
}
