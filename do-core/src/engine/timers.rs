//! Deadlines in the order in which they are due. Ties fire in the order in which they were set, so that a run can
//! be replayed.

use std::{collections::BTreeMap, time::Duration};

/// Names one entry of [`Timers`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TimerId {
    at: Duration,
    serial: u64,
}

/// Deadlines in monotonic time, each with what it is for.
pub(crate) struct Timers<T> {
    entries: BTreeMap<TimerId, T>,
    serial: u64,
}

impl<T> Timers<T> {
    pub(crate) fn new() -> Self {
        Self { entries: BTreeMap::new(), serial: 0 }
    }

    pub(crate) fn insert(&mut self, at: Duration, what: T) -> TimerId {
        self.serial += 1;
        let id = TimerId { at, serial: self.serial };
        self.entries.insert(id, what);
        id
    }

    pub(crate) fn remove(&mut self, id: TimerId) {
        self.entries.remove(&id);
    }

    /// Replaces what a pending entry is for. False when it has fired or was removed.
    pub(crate) fn replace(&mut self, id: TimerId, what: T) -> bool {
        let entry = self.entries.get_mut(&id);
        entry.map(|entry| *entry = what).is_some()
    }

    pub(crate) fn pop_due(&mut self, now: Duration) -> Option<T> {
        let first = self.entries.first_entry()?;
        (first.key().at <= now).then(|| first.remove())
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn retain(&mut self, keep: impl Fn(&T) -> bool) {
        self.entries.retain(|_, what| keep(what));
    }

    pub(crate) fn next(&self) -> Option<Duration> {
        self.entries.first_key_value().map(|(id, _)| id.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fires_by_time_then_by_order_of_setting() {
        let mut timers = Timers::new();
        let ms = Duration::from_millis;
        timers.insert(ms(20), "c");
        timers.insert(ms(10), "a");
        let dropped = timers.insert(ms(10), "x");
        let changed = timers.insert(ms(10), "y");
        timers.remove(dropped);
        assert!(timers.replace(changed, "b"));
        assert!(!timers.replace(dropped, "x"));
        assert_eq!(timers.next(), Some(ms(10)));
        assert_eq!(timers.pop_due(ms(9)), None);
        let due: Vec<_> = std::iter::from_fn(|| timers.pop_due(ms(30))).collect();
        assert_eq!(due, ["a", "b", "c"]);
        assert_eq!(timers.next(), None);
    }
}
