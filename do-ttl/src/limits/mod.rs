//! The limits of a store: exact counts in a row of their own, and room made by what expires soonest.
//!
//! The count is read and written in the transaction of the row that it counts, so a limit holds at every moment and behind
//! every rollback. What a put evicts is bounded; one that needs more is refused, and what it has evicted stays evicted.

mod clear;
mod count;
mod room;
#[cfg(all(test, not(target_arch = "wasm32")))]
mod tests;

pub use room::EVICTED_PER_PUT;

/// The [`Error::name`] of an [`ErrorKind::Limit`] that says that a store is full; others say that an entry is too large.
pub const FULL: &str = "full";

use crate::{TtlStore, Usage, rows::Found};
use do_core::{Error, ErrorKind, ObjectState};

/// What became of a row that wants to be written.
#[derive(Debug, Default)]
#[must_use]
pub(crate) struct Admission {
    /// Rows that made room for it, although their time was not over.
    evicted: u64,
    /// Rows that did because it was.
    expired: u64,
    /// Why it is not to be written. Not an error of the transaction, which would bring back what was evicted.
    refusal: Option<Error>,
}

impl Admission {
    pub(crate) fn is_granted(&self) -> bool {
        self.refusal.is_none()
    }
}

/// What an instance knows of the count that an earlier one with limits has left behind, in a store that has none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Leftover {
    #[default]
    Unknown,
    /// There is none, and nothing in this instance makes one.
    Absent,
    /// There was one. It is deleted with each write, because each may be rolled back.
    Found,
}

impl<S: ObjectState> TtlStore<S> {
    /// Counts a row of so many bytes in the place of `old`, and makes room for it. Within a transaction, before it is
    /// written.
    pub(crate) fn admit(&self, key: &str, old: Option<&Found>, bytes: u64) -> Result<Admission, Error> {
        if !self.shared.settings.is_limited() {
            return Ok(Admission::default());
        }
        let most = self.shared.settings.most();
        if bytes > most.bytes {
            let message = format!("the entry has {bytes} bytes, the store takes {} in all", most.bytes);
            return Err(Error::new(ErrorKind::Limit, message));
        }
        self.admit_within(most, key, old, bytes)
    }

    /// The transaction of the put is over.
    pub(crate) fn admitted(&self, admission: Admission) -> Result<(), Error> {
        self.shared.count(|counters| {
            counters.evicted += admission.evicted;
            counters.expired += admission.expired;
            counters.refused += u64::from(!admission.is_granted());
        });
        admission.refusal.map_or(Ok(()), Err)
    }

    /// So many rows of so many bytes are removed. Within a transaction.
    pub(crate) fn discharge(&self, entries: u64, bytes: u64) -> Result<(), Error> {
        self.sweeper.0.rows.discharge(self.name(), Usage { entries, bytes })
    }

    /// A store without limits is about to be written: its count, if an earlier instance has left one, is not right any more.
    pub(crate) fn uncount(&self) -> Result<(), Error> {
        let (rows, leftover) = (&self.sweeper.0.rows, &self.shared.leftover);
        if leftover.get() == Leftover::Unknown {
            let is_there = rows.usage(self.name())?.is_some();
            leftover.set(if is_there { Leftover::Found } else { Leftover::Absent });
        }
        if leftover.get() == Leftover::Found {
            rows.uncount(self.name())?;
        }
        Ok(())
    }
}
