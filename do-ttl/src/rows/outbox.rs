//! The table of what is still to be told, of rows that are not in the store any more.

use super::{
    Rows,
    row::{Found, Whole, found, number, value},
};
use crate::Version;
use do_core::{Error, SqlStorage, Timestamp};
use std::time::Duration;

const TABLE: &str = "_ttl_notices";

const CREATE: &str = "
CREATE TABLE IF NOT EXISTS _ttl_notices (
    store TEXT NOT NULL, key TEXT NOT NULL, version INTEGER NOT NULL, due INTEGER NOT NULL, attempts INTEGER NOT NULL,
    evicted INTEGER NOT NULL, expires INTEGER NOT NULL, value BLOB NOT NULL, PRIMARY KEY (store, key, version)
) STRICT;
CREATE INDEX IF NOT EXISTS _ttl_notices_due ON _ttl_notices (due);
";

/// By the time, and of one time by the order in which they came, which the index has.
const FIRST: &str = "SELECT store, key, version, expires, evicted, attempts, value FROM _ttl_notices \
     WHERE due <= ? ORDER BY due, rowid LIMIT 1";

/// What one version of a row is known by.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowId<'a> {
    pub(crate) store: &'a str,
    pub(crate) key: &'a str,
    pub(crate) version: Version,
}

/// A row that is still to be told of.
#[derive(Debug)]
pub(crate) struct Notice {
    pub(crate) store: String,
    pub(crate) key: String,
    pub(crate) version: Version,
    pub(crate) expires: Timestamp,
    pub(crate) value: bytes::Bytes,
    pub(crate) evicted: bool,
    /// How often that failed.
    pub(crate) attempts: u32,
}

impl<Q: SqlStorage> Rows<Q> {
    /// What expired first in a store, up to a moment. 2 read.
    pub(crate) fn first_expired(
        &self,
        store: &str,
        upto: Timestamp,
    ) -> Result<Option<(String, Whole)>, Error> {
        const SQL: &str = concat!(
            "SELECT key, ",
            found!(),
            ", ",
            value!(),
            " FROM _ttl INDEXED BY _ttl_due WHERE store = ? AND expires IS NOT NULL AND expires <= ? \
             ORDER BY expires, key LIMIT 1"
        );
        let Some(mut values) = self.query(SQL, (store, upto))?.into_values().next() else { return Ok(None) };
        let key = do_core::FromValue::from_value(values.remove(0))?;
        Ok(Some((key, Whole::read(values)?)))
    }

    /// Deletes an expired row if it is still that one; what it had. 1 read, 1 written.
    pub(crate) fn delete_expired(&self, row: RowId<'_>, upto: Timestamp) -> Result<Option<Found>, Error> {
        const SQL: &str = concat!(
            "DELETE FROM _ttl WHERE store = ? AND key = ? AND version = ? AND expires IS NOT NULL AND expires <= ? \
             RETURNING ",
            found!()
        );
        let version = number(row.version.get())?;
        let rows = self.query(SQL, (row.store, row.key, version, upto))?;
        rows.first().map(|row| Found::read(&row)).transpose()
    }

    /// Copies a row that is about to go to what is to be told: at a moment, after so many attempts. Nothing when it is not in
    /// the store any more. 1 read, 3 written.
    pub(crate) fn keep_notice(
        &self,
        row: RowId<'_>,
        due: Timestamp,
        evicted: bool,
        attempts: u32,
    ) -> Result<(), Error> {
        const SQL: &str = concat!(
            "INSERT INTO _ttl_notices SELECT store, key, version, ?, ?, ?, expires, ",
            value!(),
            " FROM _ttl WHERE store = ? AND key = ? AND version = ? AND expires IS NOT NULL \
             ON CONFLICT DO UPDATE SET due = excluded.due, attempts = excluded.attempts"
        );
        let version = number(row.version.get())?;
        let params =
            vec![due.into(), attempts.into(), evicted.into(), row.store.into(), row.key.into(), version];
        self.write_beside((TABLE, CREATE), SQL, params)
    }

    /// When something is to be told next. 1 read.
    pub(crate) fn soonest_notice(&self) -> Result<Option<Timestamp>, Error> {
        let rows = self.query_beside(TABLE, "SELECT due FROM _ttl_notices ORDER BY due LIMIT 1", vec![])?;
        rows.first().map(|row| row.at(0)).transpose()
    }

    /// The first that is to be told by a moment. 2 read.
    pub(crate) fn first_notice(&self, upto: Timestamp) -> Result<Option<Notice>, Error> {
        let rows = self.query_beside(TABLE, FIRST, vec![upto.into()])?;
        let Some(row) = rows.first() else { return Ok(None) };
        Ok(Some(Notice {
            store: row.at(0)?,
            key: row.at(1)?,
            version: Version(row.at(2)?),
            expires: row.at(3)?,
            evicted: row.at(4)?,
            attempts: row.at(5)?,
            value: row.at::<Vec<u8>>(6)?.into(),
        }))
    }

    /// How many of a store are still to be told, counted up to so many. 1 read for each.
    pub(crate) fn count_notices(&self, store: &str, most: u32) -> Result<u64, Error> {
        const SQL: &str = "SELECT count(*) FROM (SELECT 1 FROM _ttl_notices WHERE store = ? LIMIT ?)";
        self.query_beside(TABLE, SQL, vec![store.into(), most.into()])?.first().map_or(Ok(0), |row| row.at(0))
    }

    /// It was told. 1 read, 1 written.
    pub(crate) fn forget_notice(&self, row: RowId<'_>) -> Result<(), Error> {
        const SQL: &str = "DELETE FROM _ttl_notices WHERE store = ? AND key = ? AND version = ?";
        self.query_beside(TABLE, SQL, vec![row.store.into(), row.key.into(), number(row.version.get())?])
            .map(drop)
    }

    /// It could not be told, so often: it is tried again after a while. 1 read, 2 written.
    pub(crate) fn postpone_notice(&self, row: RowId<'_>, attempts: u32, due: Timestamp) -> Result<(), Error> {
        const SQL: &str =
            "UPDATE _ttl_notices SET attempts = ?, due = ? WHERE store = ? AND key = ? AND version = ?";
        let version = number(row.version.get())?;
        let params = vec![attempts.into(), due.into(), row.store.into(), row.key.into(), version];
        self.query_beside(TABLE, SQL, params).map(drop)
    }
}

/// How long after an attempt that failed the next one comes: a second, twice as long each time, at most an hour.
pub(crate) fn wait(attempts: u32) -> Duration {
    Duration::from_secs(1_u64.checked_shl(attempts.saturating_sub(1)).unwrap_or(u64::MAX).min(3_600))
}

#[cfg(all(test, not(target_arch = "wasm32")))]
mod tests {
    use super::*;
    use crate::inside::inside;
    use do_core::ObjectState;

    #[test]
    fn the_first_notice_is_found_without_sorting_those_of_its_moment() {
        inside(0, |object| async move {
            let sql = object.state.sql();
            sql.exec(CREATE, ())?;
            let rows = sql.exec(&format!("EXPLAIN QUERY PLAN {FIRST}"), (0,))?;
            let plan: Vec<String> = rows.iter().map(|row| row.at(3)).collect::<Result<_, _>>()?;
            assert_eq!(plan, ["SEARCH _ttl_notices USING INDEX _ttl_notices_due (due<?)"]);
            Ok(())
        });
    }
}
