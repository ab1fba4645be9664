//! The tables of the schedule in the object's own database.
//!
//! Made with the first write: they can be gone again at any time with everything else that the object has (rule E14).
//! Each statement is counted as the platform bills it.

use crate::{Error, Params, Rows, SqlStorage, Timestamp, Value, limits, tables::is_missing};
use std::cell::Cell;

/// What begins the names of all tables.
const PREFIX: &str = "_schedule";

/// Pending ones by key, and in the order of their time.
///
/// Ids grow by one: where the latest row is never taken away, without `AUTOINCREMENT`, which writes one row more.
///
/// `due` is when a row runs next, `tick` the deadline or occurrence that it runs for: after a failure it is due later than
/// its tick. `running` is set from before a run until after it, so that a run that was cut off is known for one.
const TABLES: &str = "
CREATE TABLE IF NOT EXISTS _schedule (
    key TEXT PRIMARY KEY, name TEXT, due INTEGER NOT NULL, tick INTEGER NOT NULL, attempt INTEGER NOT NULL,
    running INTEGER NOT NULL, terms TEXT, payload TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS _schedule_due ON _schedule (due);
CREATE TABLE IF NOT EXISTS _schedule_dead (
    id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL, at INTEGER NOT NULL, tick INTEGER NOT NULL,
    attempts INTEGER NOT NULL, error TEXT NOT NULL, terms TEXT, payload TEXT
) STRICT;
CREATE TABLE IF NOT EXISTS _schedule_runs (
    id INTEGER PRIMARY KEY, name TEXT NOT NULL, tick INTEGER NOT NULL, began INTEGER NOT NULL,
    ended INTEGER NOT NULL, attempt INTEGER NOT NULL, outcome TEXT NOT NULL, error TEXT
) STRICT;
CREATE TABLE IF NOT EXISTS _schedule_keys (id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE) STRICT;
";

const COLUMNS: &str = "key, name, due, tick, attempt, running, terms, payload";

/// A pending row.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Row {
    pub(super) key: String,
    /// `None` when it is the key.
    pub(super) name: Option<String>,
    pub(super) due: Timestamp,
    pub(super) tick: Timestamp,
    /// Runs that were begun for this tick.
    pub(super) attempt: u32,
    pub(super) running: bool,
    /// `None` for a slot.
    pub(super) terms: Option<String>,
    pub(super) payload: Option<String>,
}

impl Row {
    /// One that nobody ran yet.
    pub(super) fn new(key: &str, due: Timestamp) -> Self {
        let key = key.to_owned();
        Self { key, name: None, due, tick: due, attempt: 0, running: false, terms: None, payload: None }
    }

    pub(super) fn name(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.key)
    }

    fn read(row: crate::Row<'_>) -> Result<Self, Error> {
        Ok(Self {
            key: row.at(0)?,
            name: row.at(1)?,
            // What nobody here wrote must not stop the rows behind it.
            due: Timestamp::from_millis(number(&row, 2)?),
            tick: Timestamp::from_millis(number(&row, 3)?),
            attempt: u32::try_from(number(&row, 4)?).unwrap_or(u32::MAX),
            running: number(&row, 5)? != 0,
            terms: row.at(6)?,
            payload: row.at(7)?,
        })
    }
}

/// An integer, or the largest one where it is beyond what is read exactly.
fn number(row: &crate::Row<'_>, column: usize) -> Result<i64, Error> {
    Ok(match row.at(column)? {
        Value::Integer(number) => number,
        _ => limits::SQL_INTEGER_MAX,
    })
}

pub(super) struct Store<Q> {
    sql: Q,
    read: Cell<u64>,
    written: Cell<u64>,
}

impl<Q: SqlStorage> Store<Q> {
    pub(super) fn new(sql: Q) -> Self {
        Self { sql, read: Cell::new(0), written: Cell::new(0) }
    }

    /// Rows read and written since the instance began, where the host counts.
    pub(super) fn counts(&self) -> (u64, u64) {
        (self.read.get(), self.written.get())
    }

    /// All of what `body` writes, or nothing of it.
    pub(super) fn together<T>(&self, body: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
        self.sql.transaction(|| Ok(body()?)).map_err(Error::from)
    }

    fn exec(&self, sql: &str, params: impl Params) -> Result<Rows, Error> {
        let rows = self.sql.exec(sql, params)?;
        self.read.set(self.read.get() + rows.rows_read().unwrap_or(0));
        self.written.set(self.written.get() + rows.rows_written().unwrap_or(0));
        Ok(rows)
    }

    /// Runs what needs no table to be there: without them there is nothing.
    pub(super) fn query(&self, sql: &str, params: impl Params) -> Result<Rows, Error> {
        self.exec(sql, params)
            .or_else(|error| if is_missing(&error, PREFIX) { Ok(Rows::default()) } else { Err(error) })
    }

    /// Runs what makes the tables if they are not there.
    pub(super) fn write(&self, sql: &str, params: impl Params) -> Result<Rows, Error> {
        let params = params.into_values();
        match self.exec(sql, params.clone()) {
            Err(error) if is_missing(&error, PREFIX) => {
                self.exec(TABLES, ())?;
                self.exec(sql, params)
            }
            result => result,
        }
    }

    /// When the soonest row is due.
    pub(super) fn soonest(&self) -> Result<Option<Timestamp>, Error> {
        let rows = self.query("SELECT due FROM _schedule ORDER BY due LIMIT 1", ())?;
        rows.first().map(|row| number(&row, 0).map(Timestamp::from_millis)).transpose()
    }

    pub(super) fn row(&self, key: &str) -> Result<Option<Row>, Error> {
        let rows = self.query(&format!("SELECT {COLUMNS} FROM _schedule WHERE key = ?"), (key,))?;
        rows.first().map(Row::read).transpose()
    }

    /// The one that is due for the longest.
    pub(super) fn next_due(&self, now: Timestamp) -> Result<Option<Row>, Error> {
        let sql = format!("SELECT {COLUMNS} FROM _schedule WHERE due <= ? ORDER BY due, key LIMIT 1");
        self.query(&sql, (now,))?.first().map(Row::read).transpose()
    }

    /// Some after a key, in the order of keys.
    pub(super) fn after(&self, key: &str, limit: u32) -> Result<Vec<Row>, Error> {
        let sql = format!("SELECT {COLUMNS} FROM _schedule WHERE key > ? ORDER BY key LIMIT ?");
        self.query(&sql, (key, limit))?.iter().map(Row::read).collect()
    }

    pub(super) fn insert(&self, row: &Row) -> Result<(), Error> {
        let Row { key, name, due, tick, attempt, running, terms, payload } = row.clone();
        let sql = format!("INSERT INTO _schedule ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)");
        self.write(&sql, (key, name, due, tick, attempt, running, terms, payload)).map(drop)
    }

    /// Writes those columns that differ: a column of an index costs a row more.
    pub(super) fn update(&self, before: &Row, after: &Row) -> Result<(), Error> {
        let mut set: Vec<&str> = Vec::new();
        let mut values: Vec<Value> = Vec::new();
        let mut column = |differs: bool, assignment, value: Value| {
            if differs {
                set.push(assignment);
                values.push(value);
            }
        };
        column(before.due != after.due, "due = ?", after.due.into());
        column(before.tick != after.tick, "tick = ?", after.tick.into());
        column(before.attempt != after.attempt, "attempt = ?", after.attempt.into());
        column(before.running != after.running, "running = ?", after.running.into());
        column(before.terms != after.terms, "terms = ?", after.terms.clone().into());
        column(before.payload != after.payload, "payload = ?", after.payload.clone().into());
        if set.is_empty() {
            return Ok(());
        }
        values.push(before.key.as_str().into());
        self.write(&format!("UPDATE _schedule SET {} WHERE key = ?", set.join(", ")), values).map(drop)
    }

    /// Whether it was there.
    pub(super) fn delete(&self, key: &str) -> Result<bool, Error> {
        Ok(!self.query("DELETE FROM _schedule WHERE key = ? RETURNING key", (key,))?.is_empty())
    }
}
