//! When a flush has to wait: writing to very many connections costs so much more than what is written that it is
//! done for several messages at once.
//!
//! A write costs microseconds whatever it carries, so a room of a thousand sockets and a hundred messages a second
//! spends half a second a second in it. Connections that an expensive flush has written to wait until nine times that
//! flush's duration has passed: flushing gets at most a tenth of the shard's time. What a small room sends, and any
//! connection that took no part in that flush, leaves at once.

use crate::engine::Clock;
use std::{cell::Cell, fmt, sync::Arc, time::Duration};

/// A flush shorter than this is repeated at once.
const LEAST: Duration = Duration::from_millis(1);

/// What one write counts at most: when the thread was interrupted meanwhile, that is no cost of flushing.
const WRITE_MOST: Duration = Duration::from_micros(50);

/// So many times its duration passes between an expensive flush and the next.
const SHARE: u32 = 9;

/// Fewer connections than this cannot make a flush expensive, so it is not timed.
pub(super) const FEW: usize = 20;

/// The time between expensive flushes.
pub(crate) struct Cork {
    /// Longest time that anything waits.
    most: Duration,
    clock: Arc<dyn Clock>,
    state: Cell<State>,
}

#[derive(Clone, Copy, Default)]
struct State {
    /// Number of the present period, or of the last one. 0 before the first.
    period: u32,
    active: bool,
    since: Duration,
    until: Duration,
}

impl Cork {
    /// Nothing waits longer than `most`; zero for not at all.
    pub(crate) fn new(most: Duration, clock: Arc<dyn Clock>) -> Self {
        Self { most, clock, state: Cell::default() }
    }

    pub(super) fn now(&self) -> Duration {
        self.clock.elapsed()
    }

    /// Whether a connection that was written to in that period waits.
    pub(super) fn holds(&self, period: u32) -> bool {
        let state = self.state.get();
        state.active && state.period == period
    }

    /// When those that wait are to be written to.
    pub(super) fn until(&self) -> Duration {
        self.state.get().until
    }

    /// Whether the wait has just ended.
    pub(super) fn ends(&self) -> bool {
        let state = self.state.get();
        state.active && self.clock.elapsed() >= state.until && {
            self.end();
            true
        }
    }

    /// Nobody waits any longer.
    pub(super) fn end(&self) {
        self.state.set(State { active: false, ..self.state.get() });
    }

    /// So many connections were written to, beginning at `from`. Gives the period in which they are to wait, if they
    /// are. One that has begun may become longer by it, but never longer than a period may be.
    pub(super) fn flushed(&self, connections: usize, from: Duration) -> Option<u32> {
        let now = self.clock.elapsed();
        let counted = WRITE_MOST.saturating_mul(u32::try_from(connections).unwrap_or(u32::MAX));
        let cost = now.saturating_sub(from).min(counted);
        if cost < LEAST || self.most.is_zero() {
            return None;
        }
        let until = now.saturating_add(cost.saturating_mul(SHARE).min(self.most));
        self.clock.real_wait(until)?; // a clock that is moved by hand might never get there
        let state = self.state.get();
        let next = if state.active {
            let latest = state.since.saturating_add(self.most);
            State { until: until.min(latest).max(state.until), ..state }
        } else {
            State { period: state.period.wrapping_add(1).max(1), active: true, since: now, until }
        };
        self.state.set(next);
        Some(next.period)
    }
}

impl fmt::Debug for Cork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cork").field("most", &self.most).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Timestamp, engine::ManualClock};
    use std::sync::Mutex;

    const MS: Duration = Duration::from_millis(1);

    /// Stands where it was put, and is believed to flow.
    #[derive(Debug, Default)]
    struct Hand(Mutex<Duration>);

    impl Hand {
        fn put(&self, millis: u32) {
            *self.0.lock().unwrap() = MS * millis;
        }
    }

    impl Clock for Hand {
        fn now(&self) -> Timestamp {
            Timestamp::EPOCH
        }

        fn elapsed(&self) -> Duration {
            *self.0.lock().unwrap()
        }

        fn real_wait(&self, until: Duration) -> Option<Duration> {
            Some(until.saturating_sub(self.elapsed()))
        }
    }

    fn cork(most: u32) -> (Cork, Arc<Hand>) {
        let hand = Arc::new(Hand::default());
        (Cork::new(MS * most, Arc::clone(&hand) as _), hand)
    }

    #[test]
    fn what_an_expensive_flush_wrote_to_waits_nine_times_as_long() {
        let (cork, hand) = cork(50);
        assert!(!cork.holds(0));
        hand.put(2);
        assert_eq!(cork.flushed(1_000, Duration::ZERO), Some(1));
        assert!(cork.holds(1) && !cork.holds(0));
        assert_eq!(cork.until(), MS * 20);
        hand.put(19);
        assert!(!cork.ends());
        hand.put(20);
        assert!(cork.ends() && !cork.ends() && !cork.holds(1));
        hand.put(40);
        assert_eq!(cork.flushed(1_000, MS * 20), Some(2));
        assert_eq!(cork.until(), MS * 90, "and at most as long as it may");
    }

    #[test]
    fn what_is_cheap_or_was_interrupted_waits_not() {
        let (cork, hand) = cork(50);
        hand.put(1_000);
        assert_eq!(cork.flushed(19, Duration::ZERO), None);
        assert_eq!(cork.flushed(1_000, Duration::from_micros(999_001)), None);
        assert_eq!(Cork::new(Duration::ZERO, hand).flushed(1_000, Duration::ZERO), None);
    }

    #[test]
    fn a_second_room_makes_the_wait_longer_but_not_endless() {
        let (cork, hand) = cork(50);
        hand.put(2);
        assert_eq!(cork.flushed(1_000, Duration::ZERO), Some(1));
        hand.put(12);
        assert_eq!(cork.flushed(1_000, MS * 9), Some(1));
        assert_eq!(cork.until(), MS * 39);
        hand.put(38);
        assert_eq!(cork.flushed(1_000, MS * 18), Some(1));
        assert_eq!(cork.until(), MS * 52);
        hand.put(51);
        assert_eq!(cork.flushed(1_000, MS * 50), Some(1));
        assert_eq!(cork.until(), MS * 52);
    }

    #[test]
    fn a_clock_that_is_moved_by_hand_makes_nobody_wait() {
        let clock = ManualClock::at(Timestamp::EPOCH);
        let cork = Cork::new(MS * 50, Arc::new(clock.clone()));
        clock.advance(MS * 10);
        assert_eq!(cork.flushed(1_000, Duration::ZERO), None);
    }
}
