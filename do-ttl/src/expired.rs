//! What is told of entries that expired or were evicted, at least once.
//!
//! A row that expired waits in its store, where nobody sees it, and goes when it was told. One that cannot wait there,
//! because another takes its place or its handler failed, waits in a table beside it.

use crate::{TtlStore, Version, rows::Found, rows::RowId};
use bytes::Bytes;
use do_core::{Error, ObjectState, Timestamp, deadline};

/// Why an entry is not there any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cause {
    /// Its time was over.
    Expired,
    /// It made room for another.
    Evicted,
}

/// An entry that is not there any more, for the handler of [`Sweeper::on_alarm_with`](crate::Sweeper::on_alarm_with).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Expired {
    /// The name of its store.
    pub store: String,
    /// Its key, which can have another value by now.
    pub key: String,
    /// What it had.
    pub value: Bytes,
    /// Which of the values of the key it was: the same each time that it is told, and of no other.
    pub version: Version,
    /// When its time was over, or would have been.
    pub expires: Timestamp,
    /// Why it is not there any more.
    pub cause: Cause,
    /// Which attempt to tell it this is: 1 for the first, also of another run when one was cut off.
    pub attempt: u32,
}

impl<S: ObjectState> TtlStore<S> {
    /// An expired row is about to be overwritten, of which nobody was told yet. Within a transaction.
    pub(crate) fn replace_expired(&self, key: &str, found: &Found) -> Result<(), Error> {
        self.keep_for_handler(key, found, Cause::Expired)
    }

    /// A row is about to go: it is kept for the handler, if the store has one. Within a transaction.
    pub(crate) fn keep_for_handler(&self, key: &str, found: &Found, cause: Cause) -> Result<(), Error> {
        if !self.shared.settings.notify {
            return Ok(());
        }
        let inner = &self.sweeper.0;
        let now = inner.state.now();
        let evicted = cause == Cause::Evicted && found.is_live(now);
        let row = RowId { store: self.name(), key, version: found.version };
        inner.rows.keep_notice(row, now, evicted, 0)?;
        deadline::arm_by(inner, now + inner.pace.slack);
        Ok(())
    }
}
