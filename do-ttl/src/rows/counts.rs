//! How much a limited store has, in a row of its own: exact, because it is written with each row of the store.
//!
//! The table is made by the first limited store that grows. A store without such a row is counted when a limit has to know;
//! nothing else makes one, so that stores without limits do not pay for it.

use super::{row::number, table::Rows};
use crate::Usage;
use do_core::{Error, Row, SqlStorage, Timestamp, Value};

/// The only table of these statements that may be missing without anything being gone.
const TABLE: &str = "_ttl_stores";

const CREATE: &str = "
CREATE TABLE IF NOT EXISTS _ttl_stores (
    store TEXT PRIMARY KEY, entries INTEGER NOT NULL, bytes INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
";

/// What a write adds to a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Growth {
    pub(crate) entries: i64,
    pub(crate) bytes: i64,
}

impl<Q: SqlStorage> Rows<Q> {
    /// What a store has, if it is counted. 1 read, or 0.
    pub(crate) fn usage(&self, store: &str) -> Result<Option<Usage>, Error> {
        let rows =
            self.query_beside(TABLE, "SELECT entries, bytes FROM _ttl_stores WHERE store = ?", (store,))?;
        rows.first().map(|row| usage(&row)).transpose()
    }

    /// What a store has, counted row by row.
    pub(crate) fn tally(&self, store: &str) -> Result<Usage, Error> {
        let rows =
            self.query("SELECT count(*), coalesce(sum(bytes), 0) FROM _ttl WHERE store = ?", (store,))?;
        rows.first().map_or(Ok(Usage::default()), |row| usage(&row))
    }

    /// Writes down what a store has. 0 read and 1 written.
    pub(crate) fn count(&self, store: &str, usage: Usage) -> Result<(), Error> {
        const SQL: &str = "INSERT INTO _ttl_stores (store, entries, bytes) VALUES (?, ?, ?) \
             ON CONFLICT DO UPDATE SET entries = excluded.entries, bytes = excluded.bytes";
        let params: Vec<Value> = vec![store.into(), number(usage.entries)?, number(usage.bytes)?];
        self.write_beside((TABLE, CREATE), SQL, params)
    }

    /// So many rows of so many bytes of a store are gone. 1 read and 1 written; nothing where it is not counted.
    pub(crate) fn discharge(&self, store: &str, gone: Usage) -> Result<(), Error> {
        const SQL: &str = "UPDATE _ttl_stores SET entries = max(entries - ?, 0), bytes = max(bytes - ?, 0) \
             WHERE store = ?";
        self.query_beside(TABLE, SQL, (number(gone.entries)?, number(gone.bytes)?, store)).map(drop)
    }

    /// A store is not counted any more. Nothing where it is not.
    pub(crate) fn uncount(&self, store: &str) -> Result<(), Error> {
        self.query_beside(TABLE, "DELETE FROM _ttl_stores WHERE store = ?", (store,)).map(drop)
    }

    /// Rows of a store that are not expired, counted one by one.
    pub(crate) fn tally_live(&self, store: &str, now: Timestamp) -> Result<u64, Error> {
        const SQL: &str = "SELECT count(*) FROM _ttl WHERE store = ? AND (expires IS NULL OR expires > ?)";
        self.query(SQL, (store, now))?.first().map_or(Ok(0), |row| row.at(0))
    }

    /// Rows of a store that are expired, at most so many. 1 read for each.
    pub(crate) fn overdue(&self, store: &str, now: Timestamp, most: u32) -> Result<u64, Error> {
        const SQL: &str = "SELECT count(*) FROM (SELECT 1 FROM _ttl INDEXED BY _ttl_due WHERE store = ? \
             AND expires IS NOT NULL AND expires <= ? LIMIT ?)";
        self.query(SQL, (store, now, most))?.first().map_or(Ok(0), |row| row.at(0))
    }
}

impl Usage {
    pub(crate) fn plus(self, growth: Growth) -> Self {
        Self {
            entries: self.entries.saturating_add_signed(growth.entries),
            bytes: self.bytes.saturating_add_signed(growth.bytes),
        }
    }
}

fn usage(row: &Row<'_>) -> Result<Usage, Error> {
    Ok(Usage { entries: row.at(0)?, bytes: row.at(1)? })
}
