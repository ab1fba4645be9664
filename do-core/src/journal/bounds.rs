use super::Facts;
use crate::Timestamp;
use std::time::Duration;

/// After so many parts of a bound what is beyond it is deleted: then a journal holds up to an eighth more than it shows.
const PARTS: u64 = 8;

/// How much a [`Journal`](super::Journal) keeps. What is beyond is not shown, and deleted many at once: there may be up
/// to an eighth more of each in the table, and with an age, what is older by up to an eighth of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Most entries; 0 keeps none, but numbers them.
    pub max_entries: u64,
    /// Most bytes of entries.
    pub max_bytes: u64,
    /// How long an entry is kept; `None` for ever.
    pub max_age: Option<Duration>,
}

/// 1,000 entries, 1 MiB, of any age.
impl Default for Bounds {
    fn default() -> Self {
        Self { max_entries: 1_000, max_bytes: 1_024 * 1_024, max_age: None }
    }
}

impl Bounds {
    /// Whether an entry is within them, while `newest` is the newest one. Those behind it are, too.
    pub(super) fn hold(&self, entry: &Facts, newest: &Facts, now: Timestamp) -> bool {
        !entry.is_blank()
            && newest.seq.saturating_sub(entry.seq) < self.max_entries
            && newest.total.saturating_sub(entry.total).saturating_add(entry.bytes) <= self.max_bytes
            && !self.is_too_old(entry, newest, now)
    }

    pub(super) fn is_too_old(&self, entry: &Facts, newest: &Facts, now: Timestamp) -> bool {
        self.max_age.is_some_and(|age| entry.at < now.max(newest.at) - age)
    }

    /// Whether the entry passed an eighth of a bound. Known from the two rows alone: so it does not depend on what an
    /// instance remembers, and costs nothing.
    pub(super) fn are_due(&self, before: &Facts, newest: &Facts) -> bool {
        let passes = |from: u64, to: u64, bound: u64| {
            let part = (bound / PARTS).max(1);
            from / part != to / part
        };
        passes(before.seq, newest.seq, self.max_entries)
            || passes(before.total, newest.total, self.max_bytes)
            || self.max_age.is_some_and(|age| passes(millis(before.at), millis(newest.at), slack(age)))
    }

    /// When something of this time is to be deleted: somewhat after its age, so that those soon after go with it.
    pub(super) fn deletion(&self, at: Timestamp) -> Option<Timestamp> {
        let age = self.max_age?;
        Some(at + age + Duration::from_millis(slack(age)).max(Duration::from_millis(1)))
    }
}

fn millis(at: Timestamp) -> u64 {
    u64::try_from(at.as_millis()).unwrap_or(0)
}

/// How much longer than its age something is kept, in ms, so that much is deleted at once.
fn slack(age: Duration) -> u64 {
    u64::try_from(age.as_millis()).unwrap_or(u64::MAX) / PARTS
}
