use crate::{Error, ErrorKind, limits};
use std::time::Duration;

/// How often a job is run until it succeeds, and how long it waits in between: first so long, then twice as long each
/// time, up to a bound, and up to a quarter more by chance, so that what failed together does not come again together.
///
/// By default as the platform does with alarms: seven runs, 2 s doubling, at most 1,024 s (rule E8).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retry {
    runs: u32,
    /// In ms.
    first: u64,
    /// In ms.
    longest: u64,
}

impl Default for Retry {
    fn default() -> Self {
        Self {
            runs: limits::ALARM_RETRIES + 1,
            first: ms(limits::ALARM_BACKOFF),
            longest: ms(limits::ALARM_BACKOFF_CAP),
        }
    }
}

/// As plans are stored.
pub(super) fn ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

impl Retry {
    /// `runs` in all, the first included, and the wait before the second.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] for no run at all, or a wait of less than a millisecond or more than a year.
    pub fn new(runs: u32, first: Duration) -> Result<Self, Error> {
        const YEAR: Duration = Duration::from_secs(366 * 24 * 3_600);
        if runs == 0 {
            return Err(Error::new(ErrorKind::Invalid, "a job that may not run at all: runs must not be 0"));
        }
        if first < Duration::from_millis(1) || first > YEAR {
            let message = format!("a wait of {first:?} before a retry: it must be from 1 ms to a year");
            return Err(Error::new(ErrorKind::Invalid, message));
        }
        let first = ms(first);
        Ok(Self { runs, first, longest: first.max(ms(limits::ALARM_BACKOFF_CAP)) })
    }

    /// One run and no other.
    pub fn never() -> Self {
        Self { runs: 1, ..Self::default() }
    }

    /// The longest wait, before the part that chance adds. Never shorter than the first.
    #[must_use]
    pub fn longest(mut self, longest: Duration) -> Self {
        self.longest = ms(longest).clamp(self.first, i64::MAX.unsigned_abs());
        self
    }

    /// The wait before the second run, and the longest one.
    pub(super) fn waits(&self) -> (Duration, Duration) {
        (Duration::from_millis(self.first), Duration::from_millis(self.longest))
    }

    /// How many runs there are at most.
    pub fn runs(&self) -> u32 {
        self.runs
    }

    /// How long to wait after this many failed runs; `random` is any number.
    pub(super) fn wait(&self, failed: u32, random: u64) -> Duration {
        let doublings = failed.saturating_sub(1).min(40);
        let wait = self.first.saturating_mul(1 << doublings).min(self.longest).max(1);
        Duration::from_millis(wait.saturating_add(random % (wait / 4 + 1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn e8_the_default_is_the_platforms() {
        let retry = Retry::default();
        assert_eq!(retry.runs(), 7);
        let waits: Vec<_> = (1..=6).map(|failed| retry.wait(failed, 0).as_secs()).collect();
        assert_eq!(waits, [2, 4, 8, 16, 32, 64]);
        assert_eq!(retry.wait(20, 0), Duration::from_secs(1_024));
    }

    #[test]
    fn chance_adds_up_to_a_quarter() {
        let retry = Retry::new(3, Duration::from_secs(4)).unwrap();
        let waits: Vec<_> = (0..5_000).map(|random| retry.wait(1, random).as_millis()).collect();
        assert_eq!((waits.iter().min(), waits.iter().max()), (Some(&4_000), Some(&5_000)));
        assert_eq!(Retry::new(3, Duration::from_millis(1)).unwrap().wait(1, 7), Duration::from_millis(1));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for (runs, first) in [(0, 1_000), (1, 0), (1, 400 * 24 * 3_600 * 1_000)] {
            assert_eq!(
                Retry::new(runs, Duration::from_millis(first)).unwrap_err().kind(),
                ErrorKind::Invalid
            );
        }
        let retry = Retry::new(u32::MAX, Duration::from_secs(365 * 24 * 3_600)).unwrap();
        assert_eq!(retry.wait(u32::MAX, u64::MAX), retry.wait(1, u64::MAX));
        assert_eq!(retry.longest(Duration::ZERO), retry.longest(Duration::from_secs(365 * 24 * 3_600)));
    }
}
