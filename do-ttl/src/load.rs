//! One load of a key at a time.

use crate::TtlStore;
use do_core::ObjectState;

impl<S: ObjectState> TtlStore<S> {
    /// A key was written or removed: what is being loaded for it is out of date.
    pub(crate) fn changed(&self, _key: &str) {}
}
