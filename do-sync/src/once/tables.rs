//! The tables of a pattern in the object's own database: made with the first write, because everything that the object
//! has can be gone again at any time (rule E14).

use do_core::{Error, Params, Rows, SqlStorage};
use std::cell::Cell;

/// Tables whose names begin with `prefix`. Counts what the platform bills.
pub(crate) struct Tables<Q> {
    sql: Q,
    prefix: &'static str,
    create: &'static str,
    read: Cell<u64>,
    written: Cell<u64>,
}

impl<Q: SqlStorage> Tables<Q> {
    pub(crate) fn new(sql: &Q, prefix: &'static str, create: &'static str) -> Self {
        Self { sql: sql.clone(), prefix, create, read: Cell::new(0), written: Cell::new(0) }
    }

    /// Rows read and written since the instance began, where the host counts.
    #[cfg(test)]
    pub(crate) fn counts(&self) -> (u64, u64) {
        (self.read.get(), self.written.get())
    }

    /// All of what `body` writes, or nothing of it.
    pub(crate) fn together<T>(&self, body: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
        self.sql.transaction(|| Ok(body()?)).map_err(Error::from)
    }

    /// Runs what needs no table to be there: without them there is nothing.
    pub(crate) fn query(&self, sql: &str, params: impl Params) -> Result<Rows, Error> {
        match self.exec(sql, params) {
            Err(error) if self.are_missing(&error) => Ok(Rows::default()),
            result => result,
        }
    }

    /// Runs what makes the tables if they are not there.
    pub(crate) fn write(&self, sql: &str, params: impl Params) -> Result<Rows, Error> {
        let params = params.into_values();
        match self.exec(sql, params.clone()) {
            Err(error) if self.are_missing(&error) => {
                self.exec(self.create, ())?;
                self.exec(sql, params)
            }
            result => result,
        }
    }

    fn exec(&self, sql: &str, params: impl Params) -> Result<Rows, Error> {
        let rows = self.sql.exec(sql, params)?;
        self.read.set(self.read.get() + rows.rows_read().unwrap_or(0));
        self.written.set(self.written.get() + rows.rows_written().unwrap_or(0));
        Ok(rows)
    }

    fn are_missing(&self, error: &Error) -> bool {
        let text = error.to_string();
        text.strip_prefix("no such table: ").is_some_and(|name| name.starts_with(self.prefix))
    }
}
