//! The statements: each reads and writes as few rows as it can, and counts them.

use super::{Facts, Kept, Stats, Table};
use crate::{Error, Params, Rows as Found, SqlStorage, Timestamp, Value, limits, tables::is_missing};
use std::{cell::Cell, ops::ControlFlow};

/// The kind of a row without bytes.
pub(super) const BLANK: u8 = 0;

/// Most rows that are deleted at once: the rest goes the next time. After the bounds were made much smaller there may
/// be millions.
const CUT: u64 = 10_000;

/// The rows of one key.
#[derive(Debug)]
pub(super) struct Rows<Q> {
    pub(super) sql: Q,
    pub(super) table: Table,
    pub(super) key: Box<str>,
    pub(super) stats: Cell<Stats>,
}

impl<Q: SqlStorage> Rows<Q> {
    fn count(&self, read: u64, written: u64) {
        let Stats { rows_read, rows_written } = self.stats.get();
        self.stats.set(Stats { rows_read: rows_read + read, rows_written: rows_written + written });
    }

    fn exec(&self, sql: &str, params: impl Params) -> Result<Found, Error> {
        let found = self.sql.exec(sql, params)?;
        self.count(found.rows_read().unwrap_or(0), found.rows_written().unwrap_or(0));
        Ok(found)
    }

    /// Runs what needs no table to be there.
    fn query(&self, sql: &str, params: impl Params) -> Result<Found, Error> {
        self.exec(sql, params).or_else(|error| {
            if is_missing(&error, self.table.name) { Ok(Found::default()) } else { Err(error) }
        })
    }

    /// The columns that [`Facts`] reads. `length` of a blob does not read it.
    fn facts(&self) -> String {
        format!("seq, at, total, epoch, kind, length({})", self.table.bytes)
    }

    /// `SELECT` of those, of this key.
    fn select(&self, rest: &str) -> String {
        let Table { name, key, .. } = self.table;
        format!("SELECT {} FROM {name} WHERE {key} = ? {rest}", self.facts())
    }

    fn key(&self) -> &str {
        &self.key
    }

    /// One row read.
    pub(super) fn newest(&self) -> Result<Option<Facts>, Error> {
        let sql = self.select("ORDER BY seq DESC LIMIT 1");
        self.query(&sql, (self.key(),))?.first().map(|row| Facts::read(&row)).transpose()
    }

    /// One row read.
    pub(super) fn first_from(&self, seq: u64) -> Result<Option<Facts>, Error> {
        let sql = self.select("AND seq >= ? ORDER BY seq LIMIT 1");
        self.query(&sql, (self.key(), number(seq)))?.first().map(|row| Facts::read(&row)).transpose()
    }

    /// A blank row with the number 0, so that there is always a newest one. One row written.
    pub(super) fn begin(&self, epoch: u64, at: Timestamp) -> Result<Facts, Error> {
        let Table { name, key, bytes } = self.table;
        // Without rows of their own for an index: each would be billed.
        let create = format!(
            "CREATE TABLE IF NOT EXISTS {name} (
                {key} TEXT NOT NULL, seq INTEGER NOT NULL, at INTEGER NOT NULL, total INTEGER NOT NULL,
                epoch INTEGER NOT NULL, kind INTEGER NOT NULL, {bytes} BLOB NOT NULL, PRIMARY KEY ({key}, seq)
            ) STRICT, WITHOUT ROWID"
        );
        self.exec(&create, ())?;
        let facts = Facts { seq: 0, at, total: 0, epoch, kind: BLANK, bytes: 0 };
        self.insert(&facts, &[])?;
        Ok(facts)
    }

    /// One row written.
    pub(super) fn insert(&self, facts: &Facts, content: &[u8]) -> Result<(), Error> {
        let Table { name, key, bytes } = self.table;
        let Facts { seq, at, total, epoch, kind, .. } = *facts;
        let sql = format!(
            "INSERT INTO {name} ({key}, seq, at, total, epoch, kind, {bytes}) VALUES (?, ?, ?, ?, ?, ?, ?)"
        );
        let row = (self.key(), number(seq), at, number(total), number(epoch), kind, content);
        self.exec(&sql, row).map(drop)
    }

    /// One row written.
    pub(super) fn set_epoch(&self, newest: &Facts, epoch: u64) -> Result<Facts, Error> {
        let Table { name, key, .. } = self.table;
        let sql = format!("UPDATE {name} SET epoch = ? WHERE {key} = ? AND seq = ?");
        self.exec(&sql, (number(epoch), self.key(), number(newest.seq)))?;
        Ok(Facts { epoch, ..*newest })
    }

    /// Takes the bytes out of a row, whose number stays.
    pub(super) fn blank(&self, facts: &Facts) -> Result<(), Error> {
        let Table { name, key, bytes } = self.table;
        let sql = format!("UPDATE {name} SET kind = {BLANK}, {bytes} = x'' WHERE {key} = ? AND seq = ?");
        self.exec(&sql, (self.key(), number(facts.seq))).map(drop)
    }

    /// Rows behind a number, at most so many. Blank ones are left out.
    pub(super) fn after(
        &self,
        seq: u64,
        most: u64,
        mut each: impl FnMut(Kept) -> Result<ControlFlow<()>, Error>,
    ) -> Result<(), Error> {
        let Table { name, key, bytes } = self.table;
        let sql = format!(
            "SELECT {}, {bytes} FROM {name} WHERE {key} = ? AND seq > ? ORDER BY seq LIMIT ?",
            self.facts()
        );
        let params = (self.key(), number(seq), number(most));
        self.sql.for_each(&sql, params, |row| {
            self.count(1, 0); // no host tells here
            let kept = Kept::read(&row)?;
            if kept.facts.is_blank() { Ok(ControlFlow::Continue(())) } else { each(kept) }
        })
    }

    /// Deletes what is before a number, but never the newest; at most some thousands at once. Whether it is all.
    pub(super) fn cut(&self, before: u64, newest: &Facts) -> Result<bool, Error> {
        let Table { name, key, .. } = self.table;
        let before = before.min(newest.seq);
        let Some(oldest) = self.first_from(0)?.filter(|oldest| oldest.seq < before) else { return Ok(true) };
        let upto = before.min(oldest.seq + CUT);
        self.exec(&format!("DELETE FROM {name} WHERE {key} = ? AND seq < ?"), (self.key(), number(upto)))
            .map(|_| upto == before)
    }

    /// The oldest row that is not blank. At most two rows read: only the oldest can be.
    pub(super) fn oldest(&self) -> Result<Option<Facts>, Error> {
        for row in self.query(&self.select("ORDER BY seq LIMIT 2"), (self.key(),))?.iter() {
            let facts = Facts::read(&row)?;
            if !facts.is_blank() {
                return Ok(Some(facts));
            }
        }
        Ok(None)
    }
}

/// As large as SQL takes (rule F3): no number of a journal comes near, but one that a client asks for may.
fn number(n: u64) -> Value {
    Value::Integer(i64::try_from(n).unwrap_or(i64::MAX).min(limits::SQL_INTEGER_MAX))
}
