use super::row::{Found, NewRow, Overdue, Whole, found, number, value};
use crate::{store::KEY_BYTES, ttl::Expiry};
use do_core::{Error, Failure, Params, SqlStorage, Timestamp, Value, tables};
use std::cell::Cell;

/// What begins the names of all tables.
pub(super) const PREFIX: &str = "_ttl";

/// Cells of the tree stay below a quarter of a page with it, whatever the key: a larger one goes on in pages of its own, which
/// every search that passes it has to read.
pub(crate) const INLINE_BYTES: usize = 768;

const CREATE: &str = "
CREATE TABLE IF NOT EXISTS _ttl (
    store TEXT NOT NULL, key TEXT NOT NULL, expires INTEGER, bytes INTEGER NOT NULL, version INTEGER NOT NULL,
    idle INTEGER, until INTEGER, big INTEGER, value BLOB, PRIMARY KEY (store, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS _ttl_due ON _ttl (store, expires) WHERE expires IS NOT NULL;
CREATE TABLE IF NOT EXISTS _ttl_big (id INTEGER PRIMARY KEY, value BLOB NOT NULL) STRICT;
CREATE TRIGGER IF NOT EXISTS _ttl_deleted AFTER DELETE ON _ttl WHEN old.big IS NOT NULL
    BEGIN DELETE FROM _ttl_big WHERE id = old.big; END;
CREATE TRIGGER IF NOT EXISTS _ttl_replaced AFTER UPDATE OF big ON _ttl
    WHEN old.big IS NOT NULL AND old.big IS NOT new.big
    BEGIN DELETE FROM _ttl_big WHERE id = old.big; END;
";

/// Where the value is: the columns `big` and `value`.
macro_rules! upsert {
    ($value:literal) => {
        concat!(
            "INSERT INTO _ttl (store, key, expires, bytes, version, idle, until, big, value) VALUES (?, ?, ?, ?, ?, ?, ?, ",
            $value,
            ") ON CONFLICT DO UPDATE SET expires = excluded.expires, bytes = excluded.bytes, version = excluded.version, \
             idle = excluded.idle, until = excluded.until, big = excluded.big, value = excluded.value"
        )
    };
}

/// No entry has a longer key, and the database refuses to look for one that is longer than its values may be.
fn may_be(key: &str) -> bool {
    key.len() <= KEY_BYTES
}

/// The table and what it cost.
pub(crate) struct Rows<Q> {
    pub(crate) sql: Q,
    read: Cell<u64>,
    written: Cell<u64>,
    /// Rows of ranges, which no host counts.
    ranged: Cell<u64>,
    /// The host counts.
    counts: Cell<bool>,
    /// It was found missing: everything that the object had is gone (rule E14).
    is_gone: Cell<bool>,
}

impl<Q: SqlStorage> Rows<Q> {
    pub(crate) fn new(sql: &Q) -> Self {
        let (read, written, ranged, counts, is_gone) = Default::default();
        Self { sql: sql.clone(), read, written, ranged, counts, is_gone }
    }

    /// All of what `body` writes, or nothing of it.
    pub(crate) fn together<T>(&self, body: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
        self.sql.transaction(|| body().map_err(Failure::from)).map_err(Error::from)
    }

    /// Rows read and written so far, as the platform bills them; 0 where the host does not count.
    pub(crate) fn cost(&self) -> (u64, u64) {
        let ranged = if self.counts.get() { self.ranged.get() } else { 0 };
        (self.read.get() + ranged, self.written.get())
    }

    /// Whether the table was made anew since this was asked last.
    pub(crate) fn take_gone(&self) -> bool {
        self.is_gone.take()
    }

    /// Runs what needs no table to be there: without it there is nothing.
    pub(crate) fn query(&self, sql: &str, params: impl Params) -> Result<do_core::Rows, Error> {
        match self.sql.exec(sql, params) {
            Err(error) if tables::is_missing(&error, PREFIX) => {
                self.is_gone.set(true);
                Ok(do_core::Rows::default())
            }
            result => self.counted(result),
        }
    }

    /// Runs what makes the tables if they are not there. The parameters are made again then, which is seldom, instead of
    /// copied every time: a value may be large.
    pub(crate) fn write(&self, sql: &str, params: impl Fn() -> Vec<Value>) -> Result<do_core::Rows, Error> {
        match self.sql.exec(sql, params()) {
            Err(error) if tables::is_missing(&error, PREFIX) => {
                self.is_gone.set(true);
                self.sql.exec(CREATE, ())?;
                self.counted(self.sql.exec(sql, params()))
            }
            result => self.counted(result),
        }
    }

    /// [`query`](Self::query) on a table that is made when something first needs it: that it is missing does not mean that
    /// anything is gone.
    pub(super) fn query_beside(
        &self,
        table: &str,
        sql: &str,
        params: impl Params,
    ) -> Result<do_core::Rows, Error> {
        match self.sql.exec(sql, params) {
            Err(error) if tables::is_missing(&error, table) => Ok(do_core::Rows::default()),
            result => self.counted(result),
        }
    }

    /// [`write`](Self::write) to such a table, which `create` makes.
    pub(super) fn write_beside(
        &self,
        (table, create): (&str, &str),
        sql: &str,
        params: Vec<Value>,
    ) -> Result<(), Error> {
        let written = match self.sql.exec(sql, params.clone()) {
            Err(error) if tables::is_missing(&error, table) => {
                self.sql.exec(create, ())?;
                self.sql.exec(sql, params)
            }
            result => result,
        };
        self.counted(written).map(drop)
    }

    /// Runs what changes a row, or none; whether it did. That is asked for apart, which reads no row, while `RETURNING`
    /// would count one; together, so that nothing has changed when the asking fails.
    fn changes(&self, sql: &str, params: impl Params) -> Result<bool, Error> {
        self.together(|| {
            match self.sql.exec(sql, params) {
                Err(error) if tables::is_missing(&error, PREFIX) => {
                    self.is_gone.set(true);
                    return Ok(false);
                }
                result => self.counted(result)?,
            };
            let changed = self.counted(self.sql.exec("SELECT changes()", ()))?;
            Ok(changed.first().map_or(Ok(0), |row| row.at::<u64>(0))? > 0)
        })
    }

    /// A row of a range was read.
    pub(super) fn ranged(&self) {
        self.ranged.set(self.ranged.get() + 1);
    }

    pub(super) fn counted(&self, result: Result<do_core::Rows, Error>) -> Result<do_core::Rows, Error> {
        if let Ok(rows) = &result {
            self.counts.set(self.counts.get() || rows.rows_read().is_some());
            self.read.set(self.read.get() + rows.rows_read().unwrap_or(0));
            self.written.set(self.written.get() + rows.rows_written().unwrap_or(0));
        }
        result
    }

    /// A row, expired or not. 1 read, or 0.
    pub(crate) fn find(&self, store: &str, key: &str) -> Result<Option<Found>, Error> {
        if !may_be(key) {
            return Ok(None);
        }
        const SQL: &str = concat!("SELECT ", found!(), " FROM _ttl WHERE store = ? AND key = ?");
        self.query(SQL, (store, key))?.first().map(|row| Found::read(&row)).transpose()
    }

    /// A row that is not expired. 1 read, or 0.
    pub(crate) fn live(&self, store: &str, key: &str, now: Timestamp) -> Result<Option<Whole>, Error> {
        if !may_be(key) {
            return Ok(None);
        }
        const SQL: &str = concat!(
            "SELECT ",
            found!(),
            ", ",
            value!(),
            " FROM _ttl WHERE store = ? AND key = ? AND (expires IS NULL OR expires > ?)"
        );
        self.query(SQL, (store, key, now))?.into_values().next().map(Whole::read).transpose()
    }

    /// Writes a row over whatever is there. 0 read, 2 written; 1 if it never expires. A large value is one more written, and
    /// one more of both when it is replaced or deleted.
    pub(crate) fn upsert(&self, row: &NewRow<'_>) -> Result<(), Error> {
        const INLINE: &str = upsert!("NULL, ?");
        const BIG: &str = upsert!("last_insert_rowid(), NULL");
        let (bytes, version) = (number(row.bytes())?, number(row.version.get())?);
        let columns = || {
            vec![
                row.store.into(),
                row.key.into(),
                row.expiry.expires.into(),
                bytes.clone(),
                version.clone(),
                row.expiry.idle.into(),
                row.expiry.until.into(),
            ]
        };
        let value = || Value::from(&*row.value);
        if row.store.len() + row.key.len() + row.value.len() <= INLINE_BYTES {
            let all = || columns().into_iter().chain([value()]).collect();
            return self.write(INLINE, all).map(drop);
        }
        self.together(|| {
            self.write("INSERT INTO _ttl_big (value) VALUES (?)", || vec![value()])?;
            self.write(BIG, columns).map(drop)
        })
    }

    /// Sets the expiry of a row that is not expired; whether there is one. 1 read, 2 written.
    pub(crate) fn touch(
        &self,
        store: &str,
        key: &str,
        now: Timestamp,
        expiry: &Expiry,
    ) -> Result<bool, Error> {
        if !may_be(key) {
            return Ok(false);
        }
        const SQL: &str = "UPDATE _ttl SET expires = ?, idle = ?, until = ? \
             WHERE store = ? AND key = ? AND (expires IS NULL OR expires > ?)";
        self.changes(SQL, (expiry.expires, expiry.idle, expiry.until, store, key, now))
    }

    /// Deletes a row, expired or not. 1 read, 1 written; nothing if it is not there.
    pub(crate) fn delete(&self, store: &str, key: &str) -> Result<(), Error> {
        self.query("DELETE FROM _ttl WHERE store = ? AND key = ?", (store, key)).map(drop)
    }

    /// Deletes a row that is not expired; whether there was one. 1 read, 1 written.
    pub(crate) fn delete_live(&self, store: &str, key: &str, now: Timestamp) -> Result<bool, Error> {
        if !may_be(key) {
            return Ok(false);
        }
        const SQL: &str = "DELETE FROM _ttl WHERE store = ? AND key = ? AND (expires IS NULL OR expires > ?)";
        self.changes(SQL, (store, key, now))
    }

    /// The soonest expiry of the first store behind `store` that has one. 1 read, or 0.
    pub(crate) fn soonest_behind(&self, store: &str) -> Result<Option<(String, Timestamp)>, Error> {
        const SQL: &str = "SELECT store, expires FROM _ttl INDEXED BY _ttl_due WHERE expires IS NOT NULL AND store > ? \
             ORDER BY store, expires LIMIT 1";
        let rows = self.query(SQL, (store,))?;
        rows.first().map(|row| Ok((row.at(0)?, row.at(1)?))).transpose()
    }

    /// What expires first in a store, up to a moment, at most so many. 1 read for each.
    pub(crate) fn due(&self, store: &str, upto: Timestamp, most: u32) -> Result<Vec<Overdue>, Error> {
        const SQL: &str = "SELECT expires, bytes, key FROM _ttl INDEXED BY _ttl_due WHERE store = ? \
             AND expires IS NOT NULL AND expires <= ? ORDER BY expires, key LIMIT ?";
        self.query(SQL, (store, upto, most))?.iter().map(|row| Overdue::read(&row)).collect()
    }

    /// Deletes what [`due`](Self::due) gave. 1 read and 1 written for each: one statement for all of them would find them
    /// first and then again, because the table has a trigger.
    pub(crate) fn delete_each(&self, store: &str, due: &[Overdue]) -> Result<(), Error> {
        due.iter().try_for_each(|row| self.delete(store, &row.key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Version;
    use std::{cell::RefCell, ops::ControlFlow, rc::Rc};

    /// An empty database that remembers the texts of statements.
    #[derive(Clone, Default)]
    struct Texts(Rc<RefCell<Vec<String>>>);

    impl SqlStorage for Texts {
        fn exec(&self, sql: &str, _: impl Params) -> Result<do_core::Rows, Error> {
            self.0.borrow_mut().push(sql.to_owned());
            Ok(do_core::Rows::default())
        }

        fn for_each(
            &self,
            sql: &str,
            params: impl Params,
            _: impl FnMut(do_core::Row<'_>) -> Result<ControlFlow<()>, Error>,
        ) -> Result<(), Error> {
            self.exec(sql, params).map(drop)
        }

        fn transaction<T>(&self, body: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
            body()
        }

        fn rollbacks(&self) -> u64 {
            0
        }

        fn database_size(&self) -> u64 {
            0
        }
    }

    fn texts(store: &str, key: &str, ms: i64, value: usize) -> Vec<String> {
        let rows = Rows::new(&Texts::default());
        let at = Timestamp::from_millis(ms);
        let expiry = Expiry { expires: Some(at), idle: Some(ms), until: None };
        let due = Overdue { expires: at, bytes: 1, key: key.to_owned() };
        let row = NewRow { store, key, value: vec![0; value].into(), version: Version(1), expiry };
        rows.find(store, key).unwrap();
        rows.live(store, key, at).unwrap();
        rows.upsert(&row).unwrap();
        rows.touch(store, key, at, &expiry).unwrap();
        rows.delete(store, key).unwrap();
        rows.delete_live(store, key, at).unwrap();
        rows.soonest_behind(store).unwrap();
        rows.due(store, at, 7).unwrap();
        rows.delete_each(store, &[due]).unwrap();
        rows.sql.0.take()
    }

    #[test]
    fn t18_the_texts_of_statements_are_the_same_whatever_they_are_about() {
        let first = texts("s", "k", 1, 1);
        assert_eq!(first.len(), 11);
        assert_eq!(texts("other", "it's", 2, 100), first);
        let large = texts("s", "k", 1, 5_000);
        assert_eq!(texts("other", "it's", 2, 90_000), large);
        assert!(large.iter().filter(|text| !first.contains(*text)).count() == 2, "{large:?}");
    }
}
