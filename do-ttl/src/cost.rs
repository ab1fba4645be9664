//! What the work of a sweeper cost so far, for tests that hold it to that.

use crate::Sweeper;
use do_core::{ObjectState, deadline::Due};

impl<S: ObjectState> Sweeper<S> {
    /// Rows read and written, as the platform bills them and 0 where the host does not count, and how often the alarm was
    /// set, since it was made.
    #[doc(hidden)]
    pub fn cost(&self) -> [u64; 3] {
        let (read, written) = self.0.rows.cost();
        [read, written, self.0.deadline().sets()]
    }
}
