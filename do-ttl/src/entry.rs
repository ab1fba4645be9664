use bytes::Bytes;
use do_core::Timestamp;
use serde::{Deserialize, Serialize};
use std::{fmt, time::Duration};

/// Which of the values that a key had it is: another one with each put.
///
/// Later ones of an instance are larger; across instances only as far as the clock does not go back. For comparing with
/// [`TtlStore::compare_and_swap`](crate::TtlStore::compare_and_swap), and for telling whether something was handled before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Version(pub(crate) u64);

impl Version {
    /// As it is written down. Below 2^53.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// As it was written down.
    pub const fn from_raw(version: u64) -> Self {
        Self(version)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A value with what is known of it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Entry<T = Bytes> {
    /// The value.
    pub value: T,
    /// From when on it is not there any more; `None` for never.
    pub expires: Option<Timestamp>,
    /// Which one it is.
    pub version: Version,
}

impl<T> Entry<T> {
    /// How long it will be there, unless it is used or changed; `None` for ever.
    pub fn remaining(&self, now: Timestamp) -> Option<Duration> {
        self.expires.map(|expires| now.until(expires))
    }

    /// The same with another value.
    pub fn map<U>(self, map: impl FnOnce(T) -> U) -> Entry<U> {
        Entry { value: map(self.value), expires: self.expires, version: self.version }
    }
}

/// What a put did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Put {
    /// It is there.
    Stored {
        /// Its version.
        version: Version,
        /// From when on it is not there any more; `None` for never.
        expires: Option<Timestamp>,
    },
    /// Its time was over at once: the key is removed.
    Removed,
}

/// What [`TtlStore::put_if_absent`](crate::TtlStore::put_if_absent) did.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum PutIfAbsent<T = Bytes> {
    /// There was none.
    Done(Put),
    /// There is one.
    Present(Entry<T>),
}

/// What [`TtlStore::compare_and_swap`](crate::TtlStore::compare_and_swap) did.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum Swap<T = Bytes> {
    /// It had that version.
    Done(Put),
    /// It is another one, or not there any more.
    Differs(Option<Entry<T>>),
}
