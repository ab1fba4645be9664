//! SQL inside an object: synchronous on every host, one database per object.

mod keys;
mod kv;
mod params;
mod row;
#[cfg(any(
    all(feature = "tokio", not(target_arch = "wasm32")),
    all(feature = "workers", target_arch = "wasm32")
))]
pub(crate) mod rules;
#[cfg(any(
    all(feature = "tokio", not(target_arch = "wasm32")),
    all(feature = "workers", target_arch = "wasm32")
))]
pub(crate) mod statements;
mod typed;
mod value;

pub use keys::Keys;
pub use kv::KeyValue;
pub use params::Params;
pub use row::{Row, Rows};
pub use value::{FromValue, Value};

use crate::{Error, ErrorKind, Failure};
use serde::de::DeserializeOwned;
use std::ops::ControlFlow;

/// The object's own SQLite database.
///
/// Everything written between two awaits is one implicit transaction: it commits when the turn ends and is
/// durable before anything the object sends leaves it (rules C4, C5). An error that a handler returns does not
/// roll it back. `BEGIN` and its kin are refused: use [`transaction`](Self::transaction) (rule F11).
pub trait SqlStorage: Clone + 'static {
    /// Runs one or several statements. Only the last may have parameters, and only its rows are returned; an
    /// error in a later one leaves the earlier ones applied (rule F6).
    ///
    /// # Errors
    /// [`ErrorKind::Sql`] with SQLite's text and [`Error::sql_code`] (rule F10), [`ErrorKind::Invalid`] for
    /// parameters that do not match (rule F5), [`ErrorKind::Limit`], [`ErrorKind::NotInEvent`].
    fn exec(&self, sql: &str, params: impl Params) -> Result<Rows, Error>;

    /// Runs a statement and gives each row to `each`, which stops it with [`ControlFlow::Break`]. Memory holds the row
    /// at hand and the next one, so that an error while stepping comes before the last row that was read (rule F8);
    /// of a statement that writes it holds all, and everything is written before the first (rule F7).
    ///
    /// `each` may write (rule F9). Whether rows that it adds behind the next one are given depends on the statement; a
    /// table that is being read cannot be dropped, and the database cannot be emptied.
    ///
    /// # Errors
    /// As [`exec`](Self::exec), and the first error of `each`.
    fn for_each(
        &self,
        sql: &str,
        params: impl Params,
        each: impl FnMut(Row<'_>) -> Result<ControlFlow<()>, Error>,
    ) -> Result<(), Error>;

    /// Runs `body` and rolls back what it wrote to the database, alarm included, when it fails; its error is
    /// returned unchanged. Nests: an inner failure rolls back the inner part only (rule F18).
    ///
    /// # Errors
    /// The error of `body`, and as [`exec`](Self::exec). [`ErrorKind::Limit`] inside
    /// [`limits::TRANSACTION_DEPTH`](crate::limits::TRANSACTION_DEPTH) other ones: then `body` does not run.
    fn transaction<T>(&self, body: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure>;

    /// How many [`transaction`](Self::transaction)s of this instance have failed so far, inner ones too. What an instance
    /// remembers of what it wrote holds no longer when this has changed since: a transaction around it may be undone.
    fn rollbacks(&self) -> u64;

    /// Bytes in use: used pages times the page size (rule F17).
    fn database_size(&self) -> u64;
}

/// What can be said shorter about [`SqlStorage`], the same on every host.
///
/// A blanket implementation, so that no adapter can differ.
pub trait SqlExt: SqlStorage {
    /// All rows as a type of one's own, by column name.
    ///
    /// # Errors
    /// As [`SqlStorage::exec`], and [`ErrorKind::Invalid`] when a row is not of that type.
    fn query<T: DeserializeOwned>(&self, sql: &str, params: impl Params) -> Result<Vec<T>, Error> {
        self.exec(sql, params)?.iter().map(|row| row.typed()).collect()
    }

    /// The first row, if there is one.
    ///
    /// # Errors
    /// As [`query`](Self::query).
    fn query_optional<T: DeserializeOwned>(
        &self,
        sql: &str,
        params: impl Params,
    ) -> Result<Option<T>, Error> {
        self.exec(sql, params)?.first().map(|row| row.typed()).transpose()
    }

    /// The only row.
    ///
    /// # Errors
    /// As [`query`](Self::query), and [`ErrorKind::Invalid`] when there is none or more than one.
    fn query_one<T: DeserializeOwned>(&self, sql: &str, params: impl Params) -> Result<T, Error> {
        let rows = self.exec(sql, params)?;
        match (rows.first(), rows.len()) {
            (Some(row), 1) => row.typed(),
            (_, n) => Err(Error::new(ErrorKind::Invalid, format!("expected one row, there are {n}"))),
        }
    }

    /// The first column of the first row, if there is one.
    ///
    /// # Errors
    /// As [`SqlStorage::exec`], and [`ErrorKind::Invalid`] when the value is of another type.
    fn scalar<T: FromValue>(&self, sql: &str, params: impl Params) -> Result<Option<T>, Error> {
        self.exec(sql, params)?.first().map(|row| row.at(0)).transpose()
    }

    /// Brings the schema up to date: runs those of `steps` that this object has not run yet, in order, each once
    /// and in a transaction of its own, and
    /// remembers in the table `_migrations` how many it did. Append to the list; never change a step that has
    /// been released. Cheap when there is nothing to do, so call it in `new`.
    ///
    /// # Errors
    /// As [`SqlStorage::exec`]: a failing step leaves nothing of itself behind, and the ones before it applied.
    /// [`ErrorKind::Invalid`] when the object has run more steps than there are, which means that newer code
    /// ran before.
    fn migrate(&self, steps: &[&str]) -> Result<(), Error> {
        self.exec("CREATE TABLE IF NOT EXISTS _migrations (done INTEGER NOT NULL)", ())?;
        let done = self.scalar::<usize>("SELECT done FROM _migrations", ())?;
        let from = done.unwrap_or(0);
        if from > steps.len() {
            let message =
                format!("this object has run {from} migrations, but only {} are known", steps.len());
            return Err(Error::new(ErrorKind::Invalid, message));
        }
        if done.is_none() {
            self.exec("INSERT INTO _migrations (done) VALUES (0)", ())?;
        }
        for (step, count) in steps.iter().zip(1_u32..).skip(from) {
            self.transaction(|| {
                self.exec(step, ())?;
                Ok(self.exec("UPDATE _migrations SET done = ?", (count,))?)
            })
            .map_err(Error::from)?;
        }
        Ok(())
    }
}

impl<Q: SqlStorage> SqlExt for Q {}
