//! Objects' files give back what they do not use, while their thread has nothing else to do.

use super::{Engine, core::Due};
use std::{collections::BTreeSet, ops::Bound, time::Duration};

/// The least time between two steps on one thread. A step takes up to 2 ms, and a wait for the disk.
const PAUSE: Duration = Duration::from_millis(10);

/// The places whose files are to become smaller.
///
/// One step of one object at a time, so that what a thread spends on it does not depend on how many there are. It keeps
/// no object in memory: one that leaves goes on when it is back.
#[derive(Debug, Default)]
pub(super) struct Vacuums {
    waiting: BTreeSet<u32>,
    /// Whose turn it was last.
    last: Option<u32>,
    /// The pause is over.
    is_due: bool,
}

impl Vacuums {
    /// The next in the circle.
    fn next(&mut self) -> Option<u32> {
        let after = self.last.map_or(Bound::Unbounded, Bound::Excluded);
        let next =
            self.waiting.range((after, Bound::Unbounded)).next().or_else(|| self.waiting.first()).copied();
        self.last = next;
        next
    }
}

impl Engine {
    /// After a turn of the object at this place, which may have committed.
    pub(super) fn vacuum_if_wanted(&mut self, index: u32) {
        let wants = self.live(index).is_some_and(|(_, live)| live.storage.wants_vacuum());
        if wants && self.vacuums.waiting.insert(index) && self.vacuums.waiting.len() == 1 {
            self.vacuum_later();
        }
    }

    fn vacuum_later(&mut self) {
        self.shared.after(PAUSE, Due::Vacuum);
    }

    pub(super) fn vacuum_due(&mut self) {
        self.vacuums.is_due = true;
    }

    /// Does one step, if it is time. There is nothing else to do at the moment.
    pub(super) fn vacuum(&mut self) {
        if !std::mem::take(&mut self.vacuums.is_due) {
            return;
        }
        if self.draining {
            return self.vacuums.waiting.clear();
        }
        let Some(index) = self.vacuums.next() else { return };
        if !self.vacuum_one(index) {
            self.vacuums.waiting.remove(&index);
        }
        if !self.vacuums.waiting.is_empty() {
            self.shared.elapsed.set(self.shared.clock.elapsed()); // the pause begins when the step is over
            self.vacuum_later();
        }
    }

    /// Whether there is more to be done.
    fn vacuum_one(&mut self, index: u32) -> bool {
        let Some((_, live)) = self.live(index) else { return false };
        if let Err(error) = live.storage.vacuum() {
            tracing::warn!(object = %live.core.id, %error, "what its file does not use stays there");
        }
        live.storage.wants_vacuum()
    }
}
