use std::time::Duration;

/// How long a client waits before it comes back: at random up to a bound that doubles with each failure.
///
/// All of the wait is random ("full jitter"), so that a thousand clients that a server lost at once do not come back at
/// once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub struct Backoff {
    pub(super) base: Duration,
    pub(super) cap: Duration,
    pub(super) stable: Duration,
}

/// The longest wait that a server may ask for by `Retry-After`.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(3_600);

impl Default for Backoff {
    fn default() -> Self {
        Self {
            base: Duration::from_millis(500),
            cap: Duration::from_secs(30),
            stable: Duration::from_secs(10),
        }
    }
}

impl Backoff {
    /// Up to 500 ms first, up to 30 s at most, and from the beginning after a connection of 10 s.
    pub fn new() -> Self {
        Self::default()
    }

    /// The bound of the first wait.
    pub fn base(mut self, base: Duration) -> Self {
        self.base = base;
        self
    }

    /// The bound of the longest wait.
    pub fn cap(mut self, cap: Duration) -> Self {
        self.cap = cap;
        self
    }

    /// How long a connection has to last for the failures before it to be forgotten. A server that accepts and closes
    /// at once is thus not asked ever faster.
    pub fn stable(mut self, stable: Duration) -> Self {
        self.stable = stable;
        self
    }

    /// The wait after so many failures in a row, 0 for the first; no shorter than what the server asked for.
    pub(super) fn wait(&self, failures: u32, asked: Option<Duration>, rng: &mut fastrand::Rng) -> Duration {
        let bound = self.base.saturating_mul(1_u32.checked_shl(failures).unwrap_or(u32::MAX)).min(self.cap);
        let nanos = u64::try_from(bound.as_nanos()).unwrap_or(u64::MAX);
        let asked = asked.unwrap_or_default().min(RETRY_AFTER_MAX);
        asked.saturating_add(Duration::from_nanos(rng.u64(..=nanos)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_doubles_up_to_the_cap_and_all_of_it_is_random() {
        let (backoff, mut rng) = (Backoff::new(), fastrand::Rng::with_seed(1));
        for (failures, most) in [(0, 500), (1, 1_000), (5, 16_000), (6, 30_000), (31, 30_000), (99, 30_000)] {
            let waits: Vec<_> = (0..500).map(|_| backoff.wait(failures, None, &mut rng)).collect();
            let most = Duration::from_millis(most);
            assert!(waits.iter().all(|wait| *wait <= most), "{failures}");
            assert!(waits.iter().any(|wait| *wait < most / 10), "{failures}");
            assert!(waits.iter().any(|wait| *wait > most / 10 * 9), "{failures}");
        }
    }

    #[test]
    fn what_a_server_asks_for_is_added_and_bounded() {
        let mut rng = fastrand::Rng::with_seed(1);
        let none = Backoff::new().base(Duration::ZERO);
        let mut wait = |secs| none.wait(3, Some(Duration::from_secs(secs)), &mut rng);
        assert_eq!((wait(7), wait(u64::MAX)), (Duration::from_secs(7), RETRY_AFTER_MAX));
        let forever = Backoff::new().base(Duration::MAX).cap(Duration::MAX);
        assert!(forever.wait(99, None, &mut rng) > Duration::from_secs(1));
    }
}
