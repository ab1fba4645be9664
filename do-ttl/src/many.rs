//! Several keys at once.
//!
//! Statement by statement: a list of keys in one costs two rows read for each key, each of them by itself one.

use crate::{Entry, Put, Ttl, TtlStore, store::checked};
use bytes::Bytes;
use do_core::{Error, ErrorKind, ObjectState, limits};

impl<S: ObjectState> TtlStore<S> {
    /// Sets the values of several keys, each with its time, all of them or none. Of a key that comes twice the last value
    /// counts. What each of them did, in their order.
    ///
    /// As many as one likes: each costs what a [`put`](Self::put) costs, and the alarm is set once at most.
    ///
    /// # Errors
    /// As [`put`](Self::put). Nothing has changed then.
    pub fn put_many<K: AsRef<str>, V: Into<Bytes>, T: Into<Ttl>>(
        &self,
        items: impl IntoIterator<Item = (K, V, T)>,
    ) -> Result<Vec<Put>, Error> {
        let mut taken = Vec::new();
        for (key, value, ttl) in items {
            let value = checked(key.as_ref(), value.into())?;
            taken.push((key, value, ttl.into()));
        }
        self.sweeper.0.rows.together(|| {
            let mut puts = Vec::with_capacity(taken.len());
            let mut soonest = None;
            for (key, value, ttl) in taken {
                let put = self.set_row(key.as_ref(), value, ttl)?;
                if let Put::Stored { expires: Some(expires), .. } = put {
                    soonest = Some(soonest.map_or(expires, |soonest| expires.min(soonest)));
                }
                puts.push(put);
            }
            self.sweeper.0.arm(soonest)?;
            Ok(puts)
        })
    }

    /// The values of several keys, in the order of the keys. Each is a use, as [`get`](Self::get) is.
    ///
    /// # Errors
    /// As [`get`](Self::get), and [`ErrorKind::Limit`] when the values are larger together than
    /// [`limits::SQL_RESULT_BYTES`].
    pub fn get_many<K: AsRef<str>>(
        &self,
        keys: impl IntoIterator<Item = K>,
    ) -> Result<Vec<Option<Bytes>>, Error> {
        let entries = self.get_entries(keys)?;
        Ok(entries.into_iter().map(|entry| entry.map(|entry| entry.value)).collect())
    }

    /// [`get_many`](Self::get_many) with expiries and versions.
    ///
    /// # Errors
    /// As [`get_many`](Self::get_many).
    pub fn get_entries<K: AsRef<str>>(
        &self,
        keys: impl IntoIterator<Item = K>,
    ) -> Result<Vec<Option<Entry>>, Error> {
        let mut bytes = 0_usize;
        let get = |key: K| {
            let entry = self.get_entry(key.as_ref())?;
            bytes += entry.as_ref().map_or(0, |entry| entry.value.len());
            if bytes > limits::SQL_RESULT_BYTES {
                let message =
                    format!("the values have more than {} bytes together", limits::SQL_RESULT_BYTES);
                return Err(Error::new(ErrorKind::Limit, message));
            }
            Ok(entry)
        };
        keys.into_iter().map(get).collect()
    }

    /// Removes several keys, all of them or none. How many were there.
    ///
    /// # Errors
    /// As [`remove`](Self::remove). Nothing has changed then.
    pub fn remove_many<K: AsRef<str>>(&self, keys: impl IntoIterator<Item = K>) -> Result<u64, Error> {
        self.sweeper.0.rows.together(|| {
            let mut removed = 0;
            for key in keys {
                removed += u64::from(self.remove(key.as_ref())?);
            }
            Ok(removed)
        })
    }
}
