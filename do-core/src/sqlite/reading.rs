//! The reads of a turn in one transaction of SQLite, when there are several.
//!
//! A read outside of a transaction takes and releases a lock of the file, two calls of the system that cost more than a
//! short read itself. The transaction is not the object's implicit one, which begins with the first write (rule F14), but
//! becomes it then: nobody else writes to the file, so that it is still the newest state. What tells whether a transaction
//! is open, pragmas above all, meets none.
//!
//! `locking_mode = EXCLUSIVE` would save a single read the same. But whoever reads the file in the same process, to copy
//! it for one, takes such a lock away without anybody's notice, and a handle of an instance that is gone would keep the
//! next one out.

use super::database::Database;
use crate::Error;
use rusqlite::Connection;
use std::cell::Cell;

/// So many reads of a turn have no transaction: beginning and ending one costs about as much as it saves them.
const READS_ALONE: u32 = 2;

/// How far a turn has come in its reads.
#[derive(Debug, Default)]
pub(super) struct Reading {
    /// Reads since the last statement of another kind.
    reads: Cell<u32>,
    /// A transaction is open that has only read.
    is_open: Cell<bool>,
}

impl Reading {
    /// Whether a transaction that was only for reading is taken over by somebody else.
    pub(super) fn take(&self) -> bool {
        self.reads.set(0);
        self.is_open.take()
    }
}

/// What a statement does, by its first word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Reads,
    /// It writes, or may.
    Writes,
    /// It may depend on whether a transaction is open.
    Other,
}

impl Kind {
    /// Of a text that begins with its first word. Of any other nothing is known.
    fn of(sql: &str) -> Self {
        let begins_with = |word: &str| {
            let bytes = sql.as_bytes();
            bytes.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word.as_bytes()))
                && bytes.get(word.len()).is_some_and(u8::is_ascii_whitespace)
        };
        match sql.as_bytes().first().map(u8::to_ascii_lowercase) {
            Some(b's') if begins_with("select") => Self::Reads,
            Some(b'i') if begins_with("insert") => Self::Writes,
            Some(b'u') if begins_with("update") => Self::Writes,
            Some(b'd') if begins_with("delete") => Self::Writes,
            Some(b'w') if begins_with("with") => Self::Writes,
            _ => Self::Other,
        }
    }
}

impl Database {
    /// Before a statement of the object is prepared.
    pub(super) fn before_statement(&self, conn: &Connection, sql: &str) -> Result<(), Error> {
        match Kind::of(sql) {
            Kind::Reads => self.before_read(conn),
            Kind::Writes => Ok(()),
            Kind::Other => {
                self.end_read();
                Ok(())
            }
        }
    }

    fn before_read(&self, conn: &Connection) -> Result<(), Error> {
        let reading = self.reading();
        if reading.reads.get() < READS_ALONE {
            reading.reads.set(reading.reads.get() + 1);
        } else if conn.is_autocommit() {
            if self.has_begun() {
                return Ok(()); // SQLite threw the implicit transaction away, and the object is to be told
            }
            self.control(conn, "BEGIN")?;
            reading.is_open.set(true);
        }
        Ok(())
    }

    /// Ends the transaction if it has only read.
    pub(super) fn end_read(&self) {
        if !self.reading().take() {
            return;
        }
        // After a fault SQLite may have ended it by itself.
        let Some(conn) = self.opened().filter(|conn| !conn.is_autocommit()) else { return };
        if let Err(error) = self.control(conn, "COMMIT") {
            tracing::error!(%error, "a transaction that has only read cannot be ended");
            self.rollback_now(conn);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_known_to_read_or_write_stays_in_a_transaction() {
        for (sql, kind) in [
            ("SELECT 1", Kind::Reads),
            ("select\n1", Kind::Reads),
            ("SELECT(1)", Kind::Other),
            ("selected 1", Kind::Other),
            ("WITH n AS (SELECT 1) SELECT * FROM n", Kind::Writes),
            ("Insert INTO t VALUES (1)", Kind::Writes),
            ("UPDATE t SET a = 1", Kind::Writes),
            ("DELETE FROM t", Kind::Writes),
            ("PRAGMA foreign_keys = off", Kind::Other),
            ("/* a */ SELECT 1", Kind::Other),
            ("; SELECT 1", Kind::Other),
            ("é", Kind::Other),
            ("", Kind::Other),
        ] {
            assert_eq!(Kind::of(sql), kind, "{sql}");
        }
    }
}
