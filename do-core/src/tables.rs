//! For patterns: their tables in the object's own database, made with the first write, because everything that the object
//! has can be gone again at any time (rule E14).

use crate::{Error, Params, Rows, SqlStorage};

/// Tables whose names begin with `prefix`.
#[derive(Debug)]
pub struct Tables<Q> {
    sql: Q,
    prefix: &'static str,
    create: &'static str,
}

impl<Q: SqlStorage> Tables<Q> {
    /// `create` makes them, where they are not there yet.
    pub fn new(sql: &Q, prefix: &'static str, create: &'static str) -> Self {
        Self { sql: sql.clone(), prefix, create }
    }

    /// All of what `body` writes, or nothing of it.
    ///
    /// # Errors
    /// As [`SqlStorage::transaction`].
    pub fn together<T>(&self, body: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
        self.sql.transaction(|| Ok(body()?)).map_err(Error::from)
    }

    /// Runs what needs no table to be there: without them there is nothing.
    ///
    /// # Errors
    /// As [`SqlStorage::exec`].
    pub fn query(&self, sql: &str, params: impl Params) -> Result<Rows, Error> {
        match self.sql.exec(sql, params) {
            Err(error) if self.are_missing(&error) => Ok(Rows::default()),
            result => result,
        }
    }

    /// Runs what makes the tables if they are not there.
    ///
    /// # Errors
    /// As [`SqlStorage::exec`].
    pub fn write(&self, sql: &str, params: impl Params) -> Result<Rows, Error> {
        let params = params.into_values();
        match self.sql.exec(sql, params.clone()) {
            Err(error) if self.are_missing(&error) => {
                self.sql.exec(self.create, ())?;
                self.sql.exec(sql, params)
            }
            result => result,
        }
    }

    fn are_missing(&self, error: &Error) -> bool {
        is_missing(error, self.prefix)
    }
}

/// Whether it says that there is no table whose name begins so.
pub fn is_missing(error: &Error, prefix: &str) -> bool {
    error.to_string().strip_prefix("no such table: ").is_some_and(|name| name.starts_with(prefix))
}
