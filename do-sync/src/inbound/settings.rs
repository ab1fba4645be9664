use std::time::Duration;

/// The bounds of what one socket may send.
///
/// ```
/// use do_sync::{Inbound, OnExcess, OnMalformed};
///
/// // 16 KiB; 20 messages a second on the average, 40 at once; whoever sends more, or no JSON, is shown out.
/// let strict = Inbound::new().max_bytes(16 * 1_024).rate(20.0, 40);
/// let strict = strict.on_excess(OnExcess::Close).on_malformed(OnMalformed::Close);
/// # drop(strict);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Inbound {
    pub(crate) max_bytes: usize,
    pub(crate) rate: Option<Rate>,
    pub(crate) on_excess: OnExcess,
    pub(crate) on_malformed: OnMalformed,
}

/// What happens to a message that comes too soon.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum OnExcess {
    /// It is ignored.
    #[default]
    Drop,
    /// The socket closes with 1008, which tells a client not to come back.
    Close,
}

/// What happens to a message that is not of the expected type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum OnMalformed {
    /// It is logged and ignored.
    #[default]
    Ignore,
    /// It is logged, and the socket closes with 1007, or with 1003 when the message is binary.
    Close,
}

/// A rate as the token bucket needs it: in whole nanoseconds, so that the same messages are always judged alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rate {
    /// From one message to the next on the average. Not 0.
    pub(crate) interval: u64,
    /// How far ahead of the average a socket may be.
    pub(crate) tolerance: u64,
}

/// The slowest rate: a message an hour.
const SLOWEST: Duration = Duration::from_secs(3_600);

const NANOS: f64 = 1e9;

impl Rate {
    /// `None` when there is no limit.
    fn new(per_second: f64, burst: u32) -> Option<Self> {
        if per_second == f64::INFINITY {
            return None;
        }
        let slowest = SLOWEST.as_nanos() as f64;
        // Also for what is no number: a slip must not open the door.
        let usable = per_second > 0.0;
        let interval = if usable { (NANOS / per_second).clamp(1.0, slowest) } else { slowest };
        if !usable || burst == 0 {
            tracing::warn!(per_second, burst, "a rate that lets nothing through was made the slowest");
        }
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // clamped to an hour
        let interval = interval.round() as u64;
        Some(Self { interval, tolerance: interval.saturating_mul(u64::from(burst.max(1)) - 1) })
    }
}

impl Default for Inbound {
    fn default() -> Self {
        Self {
            max_bytes: 64 * 1_024,
            rate: None,
            on_excess: OnExcess::Drop,
            on_malformed: OnMalformed::Ignore,
        }
    }
}

impl Inbound {
    /// At most 64 KiB each, as often as they like; what is malformed is logged and ignored.
    pub fn new() -> Self {
        Self::default()
    }

    /// The longest message in bytes; a longer one closes the socket with 1009. Clients of the protocol are told, and refuse
    /// to send it. What is to be [published](crate::Room::publish) has a bound of its own. What is beyond the host's own limit, on
    /// Workers [`limits::MESSAGE_BYTES`](do_core::limits::MESSAGE_BYTES), is closed by the host.
    #[must_use]
    pub fn max_bytes(mut self, bytes: usize) -> Self {
        self.max_bytes = bytes;
        self
    }

    /// Most messages per second on the average, and at once: a token bucket for each socket.
    ///
    /// The buckets are in memory. An instance that comes back from hibernation finds them full, so one whole burst more
    /// is possible after each ten seconds in which nobody sends anything.
    ///
    /// An infinite rate is no limit. One that is no positive number, and a burst of 0, let nothing through: they count as
    /// a message an hour, and as a burst of 1, with a warning in the log. A rate from outside is best checked before.
    #[must_use]
    pub fn rate(mut self, per_second: f64, burst: u32) -> Self {
        self.rate = Rate::new(per_second, burst);
        self
    }

    /// What happens to one that comes too soon.
    #[must_use]
    pub fn on_excess(mut self, on_excess: OnExcess) -> Self {
        self.on_excess = on_excess;
        self
    }

    /// What happens to one of another shape.
    #[must_use]
    pub fn on_malformed(mut self, on_malformed: OnMalformed) -> Self {
        self.on_malformed = on_malformed;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_an_interval_and_how_far_ahead_of_it_one_may_be() {
        let rate = |per_second, burst| Inbound::new().rate(per_second, burst).rate;
        assert_eq!(rate(20.0, 40), Some(Rate { interval: 50_000_000, tolerance: 39 * 50_000_000 }));
        assert_eq!(rate(0.5, 1), Some(Rate { interval: 2_000_000_000, tolerance: 0 }));
        assert_eq!(rate(1e30, u32::MAX), Some(Rate { interval: 1, tolerance: u64::from(u32::MAX) - 1 }));
    }

    #[test]
    fn a_rate_that_is_none_is_the_slowest_and_an_infinite_one_is_no_limit() {
        let hour = 3_600 * 1_000_000_000;
        for wrong in [0.0, -0.0, -1.0, f64::NAN, f64::NEG_INFINITY, f64::MIN_POSITIVE] {
            let rate = Inbound::new().rate(wrong, 0).rate;
            assert_eq!(rate, Some(Rate { interval: hour, tolerance: 0 }), "{wrong}");
        }
        assert_eq!(Inbound::new().rate(1.0, 1).rate(f64::INFINITY, 0).rate, None);
    }
}
