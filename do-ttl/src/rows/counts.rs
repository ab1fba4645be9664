//! How much a limited store has, in a row of its own: exact, because it is written with each row of the store.
//!
//! The table is made by the first limited store that grows. A store without such a row is counted when a limit first has to
//! know; nothing else makes one, so that stores without limits never pay for it.

use super::{row::number, table::Rows};
use do_core::{Error, Params, SqlStorage, tables};

/// What this module's statements do without.
const TABLE: &str = "_ttl_stores";

impl<Q: SqlStorage> Rows<Q> {
    /// So many rows of so many bytes of a store are gone. 1 read and 1 written; nothing where it is not counted.
    pub(crate) fn discharge(&self, store: &str, entries: u64, bytes: u64) -> Result<(), Error> {
        const SQL: &str = "UPDATE _ttl_stores SET entries = max(entries - ?, 0), bytes = max(bytes - ?, 0) \
             WHERE store = ?";
        self.on_counts(SQL, (number(entries)?, number(bytes)?, store)).map(drop)
    }

    /// Runs what needs no table to be there. That it is missing does not mean that anything is gone.
    fn on_counts(&self, sql: &str, params: impl Params) -> Result<do_core::Rows, Error> {
        match self.sql.exec(sql, params) {
            Err(error) if tables::is_missing(&error, TABLE) => Ok(do_core::Rows::default()),
            result => self.counted(result),
        }
    }
}
