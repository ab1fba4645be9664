//! The limits of a store: exact counts in a row of their own, and room made by what expires soonest.

use crate::{
    TtlStore,
    rows::{Found, Rows},
};
use do_core::{Error, ObjectState, SqlStorage};

/// So many rows of so many bytes of a store are removed, in the transaction at hand. Whoever deletes rows calls it, for any
/// store: also for one that nobody opened. Nothing happens, and nothing is read, where nothing is counted.
pub(crate) fn discharge_any<Q: SqlStorage>(
    rows: &Rows<Q>,
    store: &str,
    entries: u64,
    bytes: u64,
) -> Result<(), Error> {
    rows.discharge(store, entries, bytes)
}

impl<S: ObjectState> TtlStore<S> {
    /// Counts a row of so many bytes in the place of `old`, and makes room for it. Within a transaction.
    pub(crate) fn admit(&self, _key: &str, _old: Option<&Found>, _bytes: u64) -> Result<(), Error> {
        Ok(())
    }

    /// So many rows of so many bytes are removed. Within a transaction.
    pub(crate) fn discharge(&self, entries: u64, bytes: u64) -> Result<(), Error> {
        discharge_any(&self.sweeper.0.rows, self.name(), entries, bytes)
    }
}
