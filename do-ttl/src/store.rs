use crate::{
    Counters, Entry, Put, PutIfAbsent, Settings, Swap, Sweeper, Ttl, Version, limits::Leftover, load::Loads,
    rows::Found, ttl::Expiry,
};
use bytes::Bytes;
use do_core::{Error, ErrorKind, ObjectState, Timestamp, limits};
use std::{cell::Cell, fmt, rc::Rc};

/// Longest key, in UTF-8 bytes.
pub const KEY_BYTES: usize = 512;

/// Most bytes of a key and its value together (rule F16, less what the row itself takes).
pub const ENTRY_BYTES: usize = limits::SQL_VALUE_BYTES - 256;

/// A store of an object: values under keys, of which each is there for its time and never longer.
///
/// Its clones are the same store. Every call is synchronous and takes part in a transaction around it.
pub struct TtlStore<S: ObjectState> {
    pub(crate) sweeper: Sweeper<S>,
    pub(crate) shared: Rc<Shared>,
}

/// What the clones of a store share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) name: String,
    pub(crate) settings: Settings,
    pub(crate) counters: Cell<Counters>,
    pub(crate) leftover: Cell<Leftover>,
    pub(crate) loads: Loads,
}

impl Shared {
    pub(crate) fn new(name: &str, settings: Settings) -> Self {
        let name = name.to_owned();
        let (counters, leftover, loads) = Default::default();
        Self { name, settings, counters, leftover, loads }
    }

    pub(crate) fn count(&self, change: impl FnOnce(&mut Counters)) {
        let mut counters = self.counters.get();
        change(&mut counters);
        self.counters.set(counters);
    }
}

impl<S: ObjectState> TtlStore<S> {
    pub(crate) fn new(sweeper: Sweeper<S>, shared: Rc<Shared>) -> Self {
        Self { sweeper, shared }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// The sweeper that it is of.
    pub fn sweeper(&self) -> &Sweeper<S> {
        &self.sweeper
    }

    /// Sets the value of a key, whatever there was. With a time that is over it removes the key.
    ///
    /// 0 rows read and 2 written on Workers, 1 for what never expires.
    ///
    /// # Errors
    /// [`ErrorKind::Limit`] for a key or a value that is too large, and in a store that is full
    /// ([`OnFull`](crate::OnFull)); as [`SqlStorage::exec`](do_core::SqlStorage::exec). Nothing has changed then.
    /// [`ErrorKind::Transient`] when others made room, but not enough: try again.
    pub fn put(&self, key: &str, value: impl Into<Bytes>, ttl: impl Into<Ttl>) -> Result<Put, Error> {
        let value = checked(key, value.into())?;
        self.set(key, value, ttl.into())
    }

    /// The value of a key, if it is there. A use: it moves the expiry of what is [sliding](Ttl::sliding).
    ///
    /// # Errors
    /// As [`SqlStorage::exec`](do_core::SqlStorage::exec).
    pub fn get(&self, key: &str) -> Result<Option<Bytes>, Error> {
        Ok(self.get_entry(key)?.map(|entry| entry.value))
    }

    /// [`get`](Self::get) with the expiry and the version.
    ///
    /// # Errors
    /// As [`SqlStorage::exec`](do_core::SqlStorage::exec).
    pub fn get_entry(&self, key: &str) -> Result<Option<Entry>, Error> {
        let Some(mut whole) = self.sweeper.0.rows.live(self.name(), key, self.now())? else {
            self.shared.count(|counters| counters.misses += 1);
            return Ok(None);
        };
        self.shared.count(|counters| counters.hits += 1);
        whole.found.expires = self.slide(key, &whole.found)?;
        Ok(Some(whole.into_entry()))
    }

    /// Whether a key is there. No use.
    ///
    /// # Errors
    /// As [`SqlStorage::exec`](do_core::SqlStorage::exec).
    pub fn contains(&self, key: &str) -> Result<bool, Error> {
        Ok(self.found(key)?.is_some())
    }

    /// Sets the expiry of a key that is there; whether it is. Its version stays. With a time that is over it removes the key.
    ///
    /// # Errors
    /// As [`SqlStorage::exec`](do_core::SqlStorage::exec).
    pub fn touch(&self, key: &str, ttl: impl Into<Ttl>) -> Result<bool, Error> {
        match self.expiry(ttl.into()) {
            None => self.delete(key),
            Some(expiry) => self.retime(key, &expiry),
        }
    }

    /// Removes a key; whether it was there.
    ///
    /// # Errors
    /// As [`SqlStorage::exec`](do_core::SqlStorage::exec).
    pub fn remove(&self, key: &str) -> Result<bool, Error> {
        self.delete(key)
    }

    /// Removes a key and gives what it had.
    ///
    /// # Errors
    /// As [`SqlStorage::exec`](do_core::SqlStorage::exec).
    pub fn take(&self, key: &str) -> Result<Option<Entry>, Error> {
        let Some(whole) = self.sweeper.0.rows.live(self.name(), key, self.now())? else {
            self.changed(key);
            return Ok(None);
        };
        self.unset(key, &whole.found)?;
        Ok(Some(whole.into_entry()))
    }

    /// Sets the value of a key that is not there.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub fn put_if_absent(
        &self,
        key: &str,
        value: impl Into<Bytes>,
        ttl: impl Into<Ttl>,
    ) -> Result<PutIfAbsent, Error> {
        let value = checked(key, value.into())?;
        match self.get_entry(key)? {
            Some(entry) => Ok(PutIfAbsent::Present(entry)),
            None => Ok(PutIfAbsent::Done(self.set(key, value, ttl.into())?)),
        }
    }

    /// Sets the value of a key that still has this version.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub fn compare_and_swap(
        &self,
        key: &str,
        version: Version,
        value: impl Into<Bytes>,
        ttl: impl Into<Ttl>,
    ) -> Result<Swap, Error> {
        let value = checked(key, value.into())?;
        match self.found(key)? {
            Some(found) if found.version == version => Ok(Swap::Done(self.set(key, value, ttl.into())?)),
            _ => Ok(Swap::Differs(self.get_entry(key)?)),
        }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.sweeper.0.now()
    }

    pub(crate) fn expiry(&self, ttl: Ttl) -> Option<Expiry> {
        ttl.at(self.now(), || self.sweeper.0.state.random())
    }

    /// What a key has, if it is there.
    pub(crate) fn found(&self, key: &str) -> Result<Option<Found>, Error> {
        let now = self.now();
        Ok(self.sweeper.0.rows.find(self.name(), key)?.filter(|found| found.is_live(now)))
    }
}

impl<S: ObjectState> Clone for TtlStore<S> {
    fn clone(&self) -> Self {
        Self { sweeper: self.sweeper.clone(), shared: Rc::clone(&self.shared) }
    }
}

/// Not derived, because states need not have it.
impl<S: ObjectState> fmt::Debug for TtlStore<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TtlStore").field("name", &self.shared.name).finish_non_exhaustive()
    }
}

/// Whether they are within the limits.
pub(crate) fn checked(key: &str, value: Bytes) -> Result<Bytes, Error> {
    let bytes = key.len() + value.len();
    if key.len() > KEY_BYTES || bytes > ENTRY_BYTES {
        let start: String = key.chars().take(32).collect();
        let message = format!(
            "the key {start:?} has {} bytes, with its value {bytes}; the limits are {KEY_BYTES} and {ENTRY_BYTES}",
            key.len()
        );
        return Err(Error::new(ErrorKind::Limit, message));
    }
    Ok(value)
}
