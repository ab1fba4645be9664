use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What a store did since the instance began, and what it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Stats {
    /// What it did.
    pub counters: Counters,
    /// What it has, as its limits count it: with what is expired and not swept yet. `None` in a store without limits, which
    /// counts nothing.
    pub usage: Option<Usage>,
    /// Entries that are expired and not swept yet, counted up to [`BACKLOG_MAX`](crate::BACKLOG_MAX).
    pub backlog: u64,
    /// How long ago the oldest of them expired; `None` if there is none.
    pub oldest_overdue: Option<Duration>,
    /// What is not in the store any more and still waits to be [told](crate::Settings::notify), counted up to
    /// [`BACKLOG_MAX`](crate::BACKLOG_MAX). Neither limits nor the [usage](Self::usage) count it, and it is kept until a handler
    /// succeeds.
    pub notices: u64,
    /// How often this instance has set the sweeper's alarm, for all stores.
    pub alarms_set: u64,
    /// Rows that the sweeper's stores have read in this instance, as the platform bills them; 0 where the host does not
    /// count. Of [lists](crate::TtlStore::list) those that they looked at, without the parts in which large values lie.
    pub rows_read: u64,
    /// Rows that they have written.
    pub rows_written: u64,
    /// Bytes of the object's database. It keeps what was deleted for what comes: on Workers only deleting everything makes
    /// it smaller.
    pub database_size: u64,
}

/// What a store did since the instance began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Counters {
    /// Uses that found the key.
    pub hits: u64,
    /// Uses that did not.
    pub misses: u64,
    /// Entries that were stored.
    pub puts: u64,
    /// Entries that made room for others before their time was over.
    pub evicted: u64,
    /// Entries that were refused because there was no room.
    pub refused: u64,
    /// Entries that were deleted because their time was over.
    pub expired: u64,
}

/// What a store has, expired entries included that are not swept yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Usage {
    /// Entries.
    pub entries: u64,
    /// Bytes of their keys and values.
    pub bytes: u64,
}

/// Entries that [`Stats::backlog`] and [`Stats::notices`] count at most.
pub const BACKLOG_MAX: u32 = 1_000;
