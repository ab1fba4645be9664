use crate::{Entry, Version, ttl::Expiry};
use bytes::Bytes;
use do_core::{Error, ErrorKind, FromValue, Row, Timestamp, Value};

/// What is known of a row without its value, expired or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) expires: Option<Timestamp>,
    /// Of key and value.
    pub(crate) bytes: u64,
    pub(crate) version: Version,
    pub(crate) idle: Option<i64>,
    pub(crate) until: Option<Timestamp>,
}

/// The columns of a [`Found`], in their order.
macro_rules! found {
    () => {
        "expires, bytes, version, idle, until"
    };
}
pub(super) use found;

/// The value of a row of `_ttl`, wherever it is.
macro_rules! value {
    () => {
        "CASE WHEN big IS NULL THEN value ELSE (SELECT b.value FROM _ttl_big b WHERE b.id = _ttl.big) END"
    };
}
pub(super) use value;

impl Found {
    pub(super) fn read(row: &Row<'_>) -> Result<Self, Error> {
        Ok(Self {
            expires: time(row, 0)?,
            bytes: row.at(1)?,
            version: Version(row.at(2)?),
            idle: row.at(3)?,
            until: time(row, 4)?,
        })
    }

    pub(crate) fn is_live(&self, now: Timestamp) -> bool {
        self.expires.is_none_or(|expires| expires > now)
    }
}

/// A row with its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Whole {
    pub(crate) found: Found,
    pub(crate) value: Bytes,
}

impl Whole {
    /// A [`Found`], and the value behind it.
    pub(super) fn read(mut values: Vec<Value>) -> Result<Self, Error> {
        let value = Vec::<u8>::from_value(values.pop().unwrap_or(Value::Null))?;
        let found = Found::read(&Row::new(&[], &values))?;
        Ok(Self { found, value: value.into() })
    }

    pub(crate) fn into_entry(self) -> Entry {
        Entry { value: self.value, expires: self.found.expires, version: self.found.version }
    }
}

/// A row to be written.
#[derive(Debug)]
pub(crate) struct NewRow<'a> {
    pub(crate) store: &'a str,
    pub(crate) key: &'a str,
    pub(crate) value: Bytes,
    pub(crate) version: Version,
    pub(crate) expiry: Expiry,
}

impl NewRow<'_> {
    /// Of key and value.
    pub(crate) fn bytes(&self) -> u64 {
        (self.key.len() + self.value.len()) as u64
    }
}

/// A row in the order of expiry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Overdue {
    pub(crate) expires: Timestamp,
    pub(crate) bytes: u64,
    pub(crate) key: String,
}

impl Overdue {
    pub(super) fn read(row: &Row<'_>) -> Result<Self, Error> {
        Ok(Self { expires: row.at(0)?, bytes: row.at(1)?, key: row.at(2)? })
    }
}

/// A time, or none.
fn time(row: &Row<'_>, column: usize) -> Result<Option<Timestamp>, Error> {
    row.at(column)
}

/// Numbers that SQL holds.
pub(crate) fn number(n: u64) -> Result<Value, Error> {
    let n =
        i64::try_from(n).map_err(|_| Error::new(ErrorKind::Limit, format!("{n} is too large for SQL")))?;
    Ok(Value::Integer(n))
}
