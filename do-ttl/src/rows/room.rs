//! The rows that make room for others, and those that a clear takes: what is deleted by the many for other reasons than time.

use super::{
    row::{Overdue, number},
    table::Rows,
};
use crate::Version;
use do_core::{Error, Row, SqlStorage, Timestamp};

/// A row without what only its readers need.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Brief {
    pub(crate) key: String,
    pub(crate) bytes: u64,
    pub(crate) version: Version,
    pub(crate) expires: Option<Timestamp>,
}

/// Which rows a clear takes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Taken {
    /// Those that are there for longer than that..
    pub(crate) behind: Timestamp,
    /// ..but not those that were put after it began: with versions above this..
    pub(crate) began: Version,
    /// ..up to the newest that there is.
    pub(crate) newest: Version,
}

impl Taken {
    pub(crate) fn takes(&self, row: &Brief) -> bool {
        (row.version <= self.began || row.version > self.newest)
            && row.expires.is_none_or(|expires| expires > self.behind)
    }
}

impl<Q: SqlStorage> Rows<Q> {
    /// What expires first in a store, up to a moment and without a key, at most so many. 2 read for each.
    pub(crate) fn first_to_go(
        &self,
        store: &str,
        upto: Timestamp,
        except: &str,
        most: u32,
    ) -> Result<Vec<Overdue>, Error> {
        const SQL: &str = "SELECT expires, bytes, key FROM _ttl INDEXED BY _ttl_due WHERE store = ? \
             AND expires IS NOT NULL AND expires <= ? AND key <> ? ORDER BY expires, key LIMIT ?";
        self.query(SQL, (store, upto, except, most))?.iter().map(|row| Overdue::read(&row)).collect()
    }

    /// Deletes all that [`first_to_go`](Self::first_to_go) gave up to this one. 2 read and 1 written for each.
    pub(crate) fn let_go(&self, store: &str, last: &Overdue, except: &str) -> Result<(), Error> {
        const SQL: &str = "DELETE FROM _ttl INDEXED BY _ttl_due WHERE store = ? AND expires IS NOT NULL \
             AND (expires, key) <= (?, ?) AND key <> ?";
        self.query(SQL, (store, last.expires, last.key.as_str(), except)).map(drop)
    }

    /// Rows of a store in the order of their keys, from a key on, at most so many. 1 read for each.
    pub(crate) fn briefs(&self, store: &str, from: &str, most: u32) -> Result<Vec<Brief>, Error> {
        const SQL: &str = "SELECT key, bytes, version, expires FROM _ttl WHERE store = ? AND key >= ? \
             ORDER BY key LIMIT ?";
        self.query(SQL, (store, from, most))?.iter().map(|row| Brief::read(&row)).collect()
    }

    /// Deletes those of the keys from one to another that are taken. 2 read and 1 written for each.
    pub(crate) fn take_range(&self, store: &str, from: &str, to: &str, taken: &Taken) -> Result<(), Error> {
        const SQL: &str = "DELETE FROM _ttl WHERE store = ? AND key >= ? AND key <= ? \
             AND (version <= ? OR version > ?) AND (expires IS NULL OR expires > ?)";
        let (began, newest) = (number(taken.began.get())?, number(taken.newest.get())?);
        self.query(SQL, (store, from, to, began, newest, taken.behind)).map(drop)
    }
}

impl Brief {
    fn read(row: &Row<'_>) -> Result<Self, Error> {
        Ok(Self { key: row.at(0)?, bytes: row.at(1)?, version: Version(row.at(2)?), expires: row.at(3)? })
    }
}
