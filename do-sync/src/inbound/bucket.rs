//! How often each socket sends: a token bucket as one number for each that sent lately.
//!
//! A full bucket is like none, so only sockets that are ahead of their rate have an entry: a closed one needs no
//! notice, because its bucket fills up and is forgotten like any other.

use super::settings::Rate;
use std::collections::BTreeMap;

/// The buckets of a room's sockets, by their numbers.
#[derive(Debug)]
pub(crate) struct Buckets {
    /// When each would be full, in nanoseconds of any clock.
    ahead: BTreeMap<u64, u64>,
    /// How many there may be before full ones are looked for.
    most: usize,
    /// When they are looked for in any case.
    next: u64,
}

/// As many are kept without looking for full ones.
const FEW: usize = 64;

impl Default for Buckets {
    fn default() -> Self {
        Self { ahead: BTreeMap::new(), most: FEW, next: 0 }
    }
}

impl Buckets {
    /// Takes a token from a bucket; `false` when it is empty.
    ///
    /// The number of a socket is the time at which its bucket would be full: each message moves it one interval on,
    /// from now at the earliest, and it must not get further ahead of now than the burst allows.
    pub(crate) fn take(&mut self, socket: u64, rate: Rate, now: u64) -> bool {
        self.tidy(rate, now);
        let full = self.ahead.get(&socket).map_or(now, |full| (*full).max(now));
        if full - now > rate.tolerance {
            return false;
        }
        self.ahead.insert(socket, full.saturating_add(rate.interval));
        true
    }

    /// Forgets full buckets: whenever there are twice as many as were left the last time, and once in the time that an
    /// empty one takes. Each look is paid for by the messages since the one before.
    fn tidy(&mut self, rate: Rate, now: u64) {
        if now < self.next && self.ahead.len() < self.most {
            return;
        }
        self.ahead.retain(|_, full| *full > now);
        self.most = self.ahead.len().saturating_mul(2).max(FEW);
        self.next = now.saturating_add(rate.tolerance.saturating_add(rate.interval));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVERY_10: Rate = Rate { interval: 10, tolerance: 20 };

    #[test]
    fn a_burst_passes_at_once_and_then_one_each_interval() {
        let mut buckets = Buckets::default();
        let mut take = |now| buckets.take(1, EVERY_10, now);
        assert_eq!([take(100), take(100), take(100), take(100)], [true, true, true, false]);
        assert_eq!([take(109), take(110), take(110)], [false, true, false]);
        assert_eq!([take(140), take(140), take(140), take(140)], [true, true, true, false], "full after 30");
    }

    #[test]
    fn one_socket_does_not_use_up_the_tokens_of_another() {
        let mut buckets = Buckets::default();
        for _ in 0..10 {
            buckets.take(1, EVERY_10, 0);
        }
        assert!(!buckets.take(1, EVERY_10, 0) && buckets.take(2, EVERY_10, 0));
    }

    #[test]
    fn buckets_that_are_full_again_are_forgotten() {
        let mut buckets = Buckets::default();
        for key in 0..100_000_u64 {
            // One message each, one after the other: at any time ten of them are ahead.
            assert!(buckets.take(key, EVERY_10, key));
            assert!(buckets.ahead.len() <= 2 * FEW, "{}", buckets.ahead.len());
        }
        buckets.take(0, EVERY_10, 200_000);
        assert_eq!(buckets.ahead.len(), 1);
    }

    #[test]
    fn a_crowd_keeps_its_buckets() {
        let mut buckets = Buckets::default();
        for key in 0..1_000 {
            assert!(buckets.take(key, EVERY_10, 0));
        }
        for key in 0..1_000 {
            assert_eq!([0; 3].map(|now| buckets.take(key, EVERY_10, now)), [true, true, false], "{key}");
        }
        assert_eq!(buckets.ahead.len(), 1_000);
    }

    #[test]
    fn the_end_of_time_does_no_harm() {
        let mut buckets = Buckets::default();
        let slow = Rate { interval: u64::MAX, tolerance: u64::MAX };
        assert!(buckets.take(1, slow, u64::MAX) && buckets.take(1, slow, 0));
    }
}
