//! When a flush has to wait: writing to very many connections costs so much more than what is written that it is
//! done for several messages at once.
//!
//! A write costs microseconds whatever it carries, so a room of a thousand sockets and a hundred messages a second
//! spends half a second a second in it. Connections that an expensive flush has written to wait until nine times that
//! flush's duration has passed: flushing gets at most a tenth of the shard's time. What a small room sends, and any
//! connection that took no part in that flush, leaves at once; and nobody waits when messages come so rarely that they
//! would not share a write anyway.

use crate::engine::Clock;
use std::{cell::Cell, fmt, sync::Arc, time::Duration};

/// A flush shorter than this is repeated at once.
const LEAST: Duration = Duration::from_millis(1);

/// What one write counts at most: when the thread was interrupted meanwhile, that is no cost of flushing.
const WRITE_MOST: Duration = Duration::from_micros(50);

/// So many times its duration passes between an expensive flush and the next.
const SHARE: u32 = 9;

/// Messages for each connection that must be expected during the wait.
const SHARED: u128 = 2;

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
    /// When the last expensive flush began.
    last: Option<Duration>,
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

    /// So many frames were written to so many connections, beginning at `from`. Gives the period in which they are to
    /// wait, if they are. One that has begun may become longer by it, but never longer than a period may be.
    pub(super) fn flushed(&self, connections: usize, frames: usize, from: Duration) -> Option<u32> {
        let now = self.clock.elapsed();
        let counted = WRITE_MOST.saturating_mul(u32::try_from(connections).unwrap_or(u32::MAX));
        let cost = now.saturating_sub(from).min(counted);
        if cost < LEAST || self.most.is_zero() {
            return None;
        }
        let wait = cost.saturating_mul(SHARE).min(self.most);
        let until = now.saturating_add(wait);
        self.clock.real_wait(until)?; // a clock that is moved by hand might never get there
        let mut state = self.state.get();
        let last = state.last.replace(from);
        self.state.set(state);
        // As many as came since the last one are expected to come again.
        let interval = from.saturating_sub(last?).as_nanos();
        if frames as u128 * wait.as_nanos() < SHARED * connections as u128 * interval {
            return None;
        }
        let next = if state.active {
            let latest = state.since.saturating_add(self.most);
            State { until: until.min(latest).max(state.until), ..state }
        } else {
            State { period: state.period.wrapping_add(1).max(1), active: true, since: now, until, ..state }
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

    /// A flush of one message to a thousand, from one millisecond to another.
    fn flush(cork: &Cork, hand: &Hand, from: u32, to: u32) -> Option<u32> {
        hand.put(to);
        cork.flushed(1_000, 1_000, MS * from)
    }

    #[test]
    fn what_an_expensive_flush_wrote_to_waits_nine_times_as_long() {
        let (cork, hand) = cork(50);
        assert!(!cork.holds(0));
        assert_eq!(flush(&cork, &hand, 0, 2), None, "nobody knows whether more will come");
        assert_eq!(flush(&cork, &hand, 5, 7), Some(1));
        assert!(cork.holds(1) && !cork.holds(0));
        assert_eq!(cork.until(), MS * 25);
        hand.put(24);
        assert!(!cork.ends());
        hand.put(25);
        assert!(cork.ends() && !cork.ends() && !cork.holds(1));
        assert_eq!(flush(&cork, &hand, 25, 45), Some(2));
        assert_eq!(cork.until(), MS * 95, "and at most as long as it may");
    }

    #[test]
    fn what_is_cheap_or_was_interrupted_waits_not() {
        let (cork, hand) = cork(50);
        assert_eq!(flush(&cork, &hand, 0, 10), None);
        hand.put(1_000);
        assert_eq!(cork.flushed(19, 1_000_000, MS), None);
        assert_eq!(cork.flushed(1_000, 1_000_000, Duration::from_micros(999_001)), None);
        let off = Cork::new(Duration::ZERO, Arc::clone(&hand) as _);
        assert_eq!((flush(&off, &hand, 0, 10), flush(&off, &hand, 10, 20)), (None, None));
    }

    #[test]
    fn nobody_waits_for_company_that_is_not_expected() {
        let (cork, hand) = cork(50);
        // One message in 30 ms is less than two in 50.
        assert_eq!(flush(&cork, &hand, 0, 10), None);
        assert_eq!(flush(&cork, &hand, 30, 40), None);
        assert_eq!(flush(&cork, &hand, 55, 65), Some(1), "one in 25 ms is not");
        hand.put(115);
        assert!(cork.ends());
        // What came while they waited counts.
        hand.put(120);
        assert_eq!(cork.flushed(1_000, 3_000, MS * 115), Some(2));
        hand.put(165);
        assert!(cork.ends());
        assert_eq!(flush(&cork, &hand, 165, 170), None);
    }

    #[test]
    fn a_second_room_makes_the_wait_longer_but_not_endless() {
        let (cork, hand) = cork(50);
        assert_eq!(flush(&cork, &hand, 0, 1), None);
        assert_eq!(flush(&cork, &hand, 1, 3), Some(1));
        assert_eq!(flush(&cork, &hand, 9, 12), Some(1));
        assert_eq!(cork.until(), MS * 39);
        assert_eq!(flush(&cork, &hand, 18, 38), Some(1));
        assert_eq!(cork.until(), MS * 53);
        assert_eq!(flush(&cork, &hand, 40, 51), Some(1));
        assert_eq!(cork.until(), MS * 53);
    }

    #[test]
    fn a_clock_that_is_moved_by_hand_makes_nobody_wait() {
        let clock = ManualClock::at(Timestamp::EPOCH);
        let cork = Cork::new(MS * 50, Arc::new(clock.clone()));
        for _ in 0..2 {
            let from = clock.elapsed();
            clock.advance(MS * 10);
            assert_eq!(cork.flushed(1_000, 1_000, from), None);
        }
    }
}
