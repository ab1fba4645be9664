//! A small key-value store: a table of JSON texts that any object can have beside its own tables.
//!
//! On SQL instead of the platform's storage of keys, so that it takes part in transactions and is the same on every
//! host.

use super::{Keys, SqlStorage, Value};
use crate::{Error, ErrorKind, Failure, ObjectState, limits};
use serde::{Serialize, de::DeserializeOwned};
use std::{collections::BTreeMap, fmt};

/// Typed values under keys, in a table of the object's database that is made with the first write.
///
/// Keys are texts, in the order of their UTF-8 bytes (rule G1); any text is a key, the empty one too. Values are what
/// serde makes JSON of: one that JSON has no word for, like NaN, is read back as `null`. A write of several keys is
/// all or nothing, and every call takes part in a [`transaction`](SqlStorage::transaction) around it.
///
/// Keys have at most [`KEY_BYTES`](Self::KEY_BYTES), and a key with its value at most
/// [`ENTRY_BYTES`](Self::ENTRY_BYTES) as JSON, on every host; a call takes at most
/// [`KEYS_PER_CALL`](Self::KEYS_PER_CALL) keys.
///
/// ```
/// use do_core::{KeyValue, Keys, prelude::*};
///
/// struct Settings<S: ObjectState> { values: KeyValue<S::Sql> }
///
/// impl<S: ObjectState> DurableObject<S> for Settings<S> {
///     fn new(state: S) -> Result<Self> {
///         Ok(Self { values: KeyValue::open(&state, "settings")? })
///     }
///     async fn fetch(&self, _: Request) -> Result<Response> {
///         self.values.put("color/sky", "blue")?;
///         self.values.put_many([("size/s", 10), ("size/m", 20), ("size/l", 30)])?;
///         self.values.delete("size/l")?;
///         assert_eq!(self.values.get::<String>("color/sky")?.as_deref(), Some("blue"));
///         Ok(reply::json(&self.values.list::<u32>(Keys::prefix("size/"))?)?)
///     }
/// }
/// # #[cfg(all(feature = "tokio", not(target_arch = "wasm32")))]
/// # fn main() -> Result<()> {
/// # let data = tempfile::tempdir()?;
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// let host = do_core::tokio::Host::builder(data.path()).object::<Settings<_>>("SETTINGS").start()?;
/// let response = host.namespace("SETTINGS")?.named("a")?.fetch(Request::default()).await?;
/// let sizes: Vec<(String, u32)> = response.into_body().json(1_000).await?;
/// assert_eq!(sizes, [("size/m".to_owned(), 20), ("size/s".to_owned(), 10)]);
/// # Ok(()) }) }
/// # #[cfg(not(all(feature = "tokio", not(target_arch = "wasm32"))))]
/// # fn main() {}
/// ```
#[derive(Clone)]
pub struct KeyValue<Q> {
    sql: Q,
    table: String,
}

impl<Q: SqlStorage> KeyValue<Q> {
    /// Longest key, in UTF-8 bytes.
    pub const KEY_BYTES: usize = 2_048;

    /// Most bytes of a key and its value as JSON together (rule F16, less what the row itself takes).
    pub const ENTRY_BYTES: usize = limits::SQL_VALUE_BYTES - 64;

    /// Most keys of one call; [`list`](Self::list) gives as many as its result holds.
    pub const KEYS_PER_CALL: usize = limits::SQL_PARAMETERS;

    /// The store in a table of the object's; several names are several stores. Touches nothing yet.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] for a name that is no word of ASCII letters, digits and `_`, is longer than 64 bytes, or
    /// is reserved: beginning with a digit, `_cf_` or `sqlite_`.
    pub fn open<S: ObjectState<Sql = Q>>(state: &S, table: &str) -> Result<Self, Error> {
        let is_word = table.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        let lower = table.to_ascii_lowercase();
        let is_reserved = lower.starts_with(|c: char| c.is_ascii_digit())
            || lower.starts_with("_cf_")
            || lower.starts_with("sqlite_");
        if !is_word || is_reserved || !(1..=64).contains(&table.len()) {
            return Err(Error::new(ErrorKind::Invalid, format!("{table:?} cannot be the name of a table")));
        }
        Ok(Self { sql: state.sql().clone(), table: table.to_owned() })
    }

    /// The value of a key, if there is one.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`], naming the key, when the value is of another type; as [`SqlStorage::exec`].
    pub fn get<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>, Error> {
        let sql = format!("SELECT key, value FROM \"{}\" WHERE key = ?", self.table);
        Ok(self.read(&sql, vec![key.into()])?.pop().map(|(_, value)| value))
    }

    /// The values of several keys, without those that are not there.
    ///
    /// # Errors
    /// As [`get`](Self::get), and [`ErrorKind::Limit`] for too many keys.
    pub fn get_many<T: DeserializeOwned>(&self, keys: &[&str]) -> Result<BTreeMap<String, T>, Error> {
        let (places, params) = self.listed(keys)?;
        let sql = format!("SELECT key, value FROM \"{}\" WHERE key IN ({places})", self.table);
        Ok(self.read(&sql, params)?.into_iter().collect())
    }

    /// Sets the value of a key.
    ///
    /// # Errors
    /// [`ErrorKind::Limit`] for a key or a value that is too large and [`ErrorKind::Invalid`] for a value that cannot
    /// be JSON, both naming the key; as [`SqlStorage::exec`]. Nothing is stored then.
    pub fn put<T: Serialize + ?Sized>(&self, key: &str, value: &T) -> Result<(), Error> {
        let value = Self::encoded(key, value)?;
        self.write(&self.upsert(), &[key.into(), value.into()]).map(drop)
    }

    /// Sets the values of several keys, all of them or none. Of a key that comes twice the last value counts.
    ///
    /// # Errors
    /// As [`put`](Self::put) and [`SqlStorage::transaction`], and [`ErrorKind::Limit`] for too many keys.
    pub fn put_many<K: AsRef<str>, T: Serialize>(
        &self,
        entries: impl IntoIterator<Item = (K, T)>,
    ) -> Result<(), Error> {
        let mut encoded = Vec::new();
        for (key, value) in entries {
            let key = key.as_ref();
            encoded.push([Value::from(key), Self::encoded(key, &value)?.into()]);
            self.check_count(encoded.len())?;
        }
        let all = || {
            encoded
                .iter()
                .try_for_each(|entry| self.write(&self.upsert(), entry).map(drop))
                .map_err(Failure::from)
        };
        self.sql.transaction(all).map_err(Error::from)
    }

    /// Removes a key; whether it was there.
    ///
    /// # Errors
    /// As [`SqlStorage::exec`].
    pub fn delete(&self, key: &str) -> Result<bool, Error> {
        Ok(self.delete_many(&[key])? > 0)
    }

    /// Removes several keys; how many were there.
    ///
    /// # Errors
    /// [`ErrorKind::Limit`] for too many keys; as [`SqlStorage::exec`].
    pub fn delete_many(&self, keys: &[&str]) -> Result<usize, Error> {
        let (places, params) = self.listed(keys)?;
        let sql = format!("DELETE FROM \"{}\" WHERE key IN ({places}) RETURNING 1", self.table);
        self.present(self.sql.exec(&sql, params)).map(|rows| rows.map_or(0, |rows| rows.len()))
    }

    /// Keys in order with their values.
    ///
    /// # Errors
    /// As [`get`](Self::get), and [`ErrorKind::Limit`] when they are larger together than a result may be: set
    /// [`Keys::limit`].
    pub fn list<T: DeserializeOwned>(&self, keys: Keys<'_>) -> Result<Vec<(String, T)>, Error> {
        let (condition, params) = keys.condition();
        let sql = format!("SELECT key, value FROM \"{}\" WHERE {condition}", self.table);
        self.read(&sql, params)
    }

    fn upsert(&self) -> String {
        format!(
            "INSERT INTO \"{}\" VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value",
            self.table
        )
    }

    fn encoded<T: Serialize + ?Sized>(key: &str, value: &T) -> Result<String, Error> {
        if key.len() > Self::KEY_BYTES {
            let start: String = key.chars().take(32).collect();
            let message =
                format!("the key {start:?}.. has {} bytes, more than {}", key.len(), Self::KEY_BYTES);
            return Err(Error::new(ErrorKind::Limit, message));
        }
        let value = serde_json::to_string(value).map_err(|error| {
            Error::new(ErrorKind::Invalid, format!("the value of {key:?} cannot be JSON: {error}"))
        })?;
        let bytes = key.len() + value.len();
        if bytes > Self::ENTRY_BYTES {
            let message =
                format!("{key:?} and its value have {bytes} bytes, more than {}", Self::ENTRY_BYTES);
            return Err(Error::new(ErrorKind::Limit, message));
        }
        Ok(value)
    }

    /// Runs a write, and makes the table for it if there is none. Not before: it can be gone again at any time, with
    /// everything else that the object has.
    fn write(&self, sql: &str, params: &[Value]) -> Result<(), Error> {
        if self.present(self.sql.exec(sql, params.to_vec()))?.is_none() {
            let create = format!(
                "CREATE TABLE \"{}\" (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID",
                self.table
            );
            self.sql.exec(&create, ())?;
            self.sql.exec(sql, params.to_vec())?;
        }
        Ok(())
    }

    fn read<T: DeserializeOwned>(&self, sql: &str, params: Vec<Value>) -> Result<Vec<(String, T)>, Error> {
        let rows = self.present(self.sql.exec(sql, params))?.unwrap_or_default();
        let entry = |row: super::Row<'_>| {
            let (key, text) = (row.at::<String>(0)?, row.at::<String>(1)?);
            let value = serde_json::from_str(&text).map_err(|error| {
                Error::new(ErrorKind::Invalid, format!("the value of {key:?} is not of that type: {error}"))
            })?;
            Ok((key, value))
        };
        rows.iter().map(entry).collect()
    }

    /// The result, or `None` if the table is not there.
    fn present<T>(&self, result: Result<T, Error>) -> Result<Option<T>, Error> {
        match result {
            Ok(value) => Ok(Some(value)),
            Err(error) if error.to_string() == format!("no such table: {}: SQLITE_ERROR", self.table) => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    fn listed(&self, keys: &[&str]) -> Result<(String, Vec<Value>), Error> {
        self.check_count(keys.len())?;
        Ok((vec!["?"; keys.len()].join(", "), keys.iter().map(|key| (*key).into()).collect()))
    }

    fn check_count(&self, keys: usize) -> Result<(), Error> {
        if keys > Self::KEYS_PER_CALL {
            let message =
                format!("{keys} keys in one call to {:?}, more than {}", self.table, Self::KEYS_PER_CALL);
            return Err(Error::new(ErrorKind::Limit, message));
        }
        Ok(())
    }
}

impl<Q> fmt::Debug for KeyValue<Q> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyValue").field("table", &self.table).finish_non_exhaustive()
    }
}
