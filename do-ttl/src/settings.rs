use crate::Usage;
use do_core::limits::SQL_INTEGER_MAX;
use std::time::Duration;

/// The settings of one [`TtlStore`](crate::TtlStore).
///
/// ```
/// use do_ttl::Settings;
///
/// let settings = Settings::new().max_entries(10_000).max_bytes(64 << 20);
/// # drop(settings);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[must_use]
pub struct Settings {
    pub(crate) max_entries: Option<u64>,
    pub(crate) max_bytes: Option<u64>,
    pub(crate) on_full: OnFull,
    pub(crate) notify: bool,
    pub(crate) throttle: Option<Duration>,
}

/// What happens to an entry for which there is no room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum OnFull {
    /// Those that expire soonest make room for it, at most [`EVICTED_PER_PUT`](crate::EVICTED_PER_PUT) for each put. One that
    /// needs more is refused with [`ErrorKind::Transient`](do_core::ErrorKind::Transient), and what went for it stays away:
    /// the same put comes to its end when it is tried again, but not in a transaction that the error rolls back. What never
    /// expires stays; a store that is full of it refuses.
    #[default]
    Evict,
    /// It is refused with [`ErrorKind::Limit`](do_core::ErrorKind::Limit), of the name [`FULL`](crate::FULL), unless what is
    /// expired and not swept yet makes room, as above.
    Refuse,
}

impl Settings {
    /// Without limits; nothing is told of what expires.
    pub fn new() -> Self {
        Self::default()
    }

    /// Most entries, those included that are expired and not swept yet. Never more, not even for a moment.
    ///
    /// The count is a row of its own, written with each entry: a put costs 2 rows more read and 1 more written, and one that
    /// changes no size 1 more read. For each entry that makes room for it 4 more are read and 1 written.
    ///
    /// A limit that comes with new code counts what is there with the first put that makes it more, each row once, in one
    /// statement during which the object does nothing else: of a million rows about 0.2 s natively, and a million rows billed
    /// on Workers. It is counted again when the transaction around that put is rolled back. A limit
    /// that is lower than what is there is reached by the puts that follow, each of which makes more room than it takes; none is
    /// refused for that.
    pub fn max_entries(self, entries: u64) -> Self {
        Self { max_entries: Some(entries), ..self }
    }

    /// Most bytes of keys and values together, as [`max_entries`](Self::max_entries) counts them.
    ///
    /// A put that needs room looks for those that go: at 1 of them, which is among those 4 rows; and at 2, 4 and 8, which
    /// reads 4, 8 and 16 more, as long as they are not large enough together.
    pub fn max_bytes(self, bytes: u64) -> Self {
        Self { max_bytes: Some(bytes), ..self }
    }

    /// What happens when it is full. [`OnFull::Evict`] by default.
    pub fn on_full(self, on_full: OnFull) -> Self {
        Self { on_full, ..self }
    }

    /// What expires or is evicted is told to the handler of [`Sweeper::on_alarm_with`](crate::Sweeper::on_alarm_with), at
    /// least once. Costs a row read for each put.
    ///
    /// Open such a store in `new`: one that is opened later is swept without being told by an alarm that comes before and has
    /// no handler. What has left the store and waits to be told is kept until a handler succeeds, for ever if none does, and
    /// the limits do not count it: [`Stats::notices`](crate::Stats::notices) does.
    pub fn notify(self, notify: bool) -> Self {
        Self { notify, ..self }
    }

    /// A use moves the expiry of a [sliding](crate::Ttl::sliding) entry only when that makes it later by this. A twentieth of
    /// its idle time by default.
    pub fn throttle(self, throttle: Duration) -> Self {
        Self { throttle: Some(throttle), ..self }
    }

    /// The limits, each as large as SQL can count where there is none.
    pub(crate) fn most(&self) -> Usage {
        let most = |limit: Option<u64>| limit.unwrap_or(u64::MAX).min(SQL_INTEGER_MAX.unsigned_abs());
        Usage { entries: most(self.max_entries), bytes: most(self.max_bytes) }
    }

    pub(crate) fn is_limited(&self) -> bool {
        self.max_entries.is_some() || self.max_bytes.is_some()
    }
}
