use do_core::{Timestamp, limits::SQL_INTEGER_MAX};
use std::time::Duration;

/// How long an entry is there: a time from now on, until a moment, for ever, or since it was last used.
///
/// Milliseconds, as the platform counts them. Arithmetic saturates, and what is too far away to be a moment is
/// [`NEVER`](Self::NEVER). A time that is not positive, or a moment that is not in the future, is over: to put or to touch
/// an entry with it removes the entry, and is no error.
///
/// ```
/// use do_ttl::Ttl;
/// use std::time::Duration;
///
/// let hour: Ttl = Duration::from_secs(3_600).into();
/// assert_eq!(hour, Ttl::millis(3_600_000));
/// assert_eq!(Ttl::from(Duration::MAX), Ttl::NEVER);
/// // A session that ends after half an hour without use, and after a day in any case.
/// let session = Ttl::sliding(Duration::from_secs(1_800)).max_age(Duration::from_secs(86_400));
/// # drop(session);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub struct Ttl {
    pub(crate) life: Life,
    /// In percent.
    pub(crate) jitter: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Life {
    Never,
    For(i64),
    Until(i64),
    Sliding { idle: i64, max_age: Option<i64> },
}

/// What a [`Ttl`] says at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Expiry {
    /// From then on it is not there any more; `None` for never.
    pub(crate) expires: Option<Timestamp>,
    /// A use moves the expiry to so many milliseconds later..
    pub(crate) idle: Option<i64>,
    /// ..but not beyond this.
    pub(crate) until: Option<Timestamp>,
}

impl Ttl {
    /// It stays until it is removed.
    pub const NEVER: Self = Self { life: Life::Never, jitter: 0 };

    /// So many milliseconds from now on.
    pub const fn millis(ms: i64) -> Self {
        Self { life: Life::For(ms), jitter: 0 }
    }

    /// So many seconds from now on.
    pub const fn secs(secs: i64) -> Self {
        Self::millis(secs.saturating_mul(1_000))
    }

    /// Until a moment: from then on it is not there any more.
    pub const fn until(at: Timestamp) -> Self {
        Self { life: Life::Until(at.as_millis()), jitter: 0 }
    }

    /// Until it was not used for so long: each [`get`](crate::TtlStore::get) moves the expiry, written down not more often
    /// than [`Settings::throttle`](crate::Settings::throttle) says.
    pub fn sliding(idle: Duration) -> Self {
        Self { life: Life::Sliding { idle: as_millis(idle), max_age: None }, jitter: 0 }
    }

    /// Of a sliding one: never longer than this from now on, however often it is used. Of others, the sooner counts, except
    /// that a moment stays the moment that it is.
    pub fn max_age(self, max_age: Duration) -> Self {
        let most = as_millis(max_age);
        let life = match self.life {
            Life::Never => Life::For(most),
            Life::For(ms) => Life::For(ms.min(most)),
            Life::Until(at) => Life::Until(at),
            Life::Sliding { idle, max_age } => {
                Life::Sliding { idle, max_age: Some(max_age.map_or(most, |set| set.min(most))) }
            }
        };
        Self { life, ..self }
    }

    /// Shorter by chance, by up to so many percent (at most 100), so that what was put together does not expire together. Not
    /// of a moment, nor of what never expires.
    pub fn jitter(self, percent: u8) -> Self {
        Self { jitter: percent.min(100), ..self }
    }

    /// `None` when it is over at once. `random` is used for the jitter.
    pub(crate) fn at(self, now: Timestamp, random: impl FnOnce() -> u64) -> Option<Expiry> {
        let never = Expiry { expires: None, idle: None, until: None };
        let shortened = |ms: i64| if self.jitter == 0 { ms } else { shortened(ms, self.jitter, random()) };
        let (ms, idle, until) = match self.life {
            Life::Never => return Some(never),
            Life::Until(at) => {
                let expires = moment(at);
                return (at > now.as_millis()).then_some(Expiry { expires, ..never });
            }
            Life::For(ms) => (shortened(ms), None, None),
            Life::Sliding { idle, max_age } => {
                let idle = shortened(idle);
                let until = max_age.and_then(|age| moment(now.as_millis().saturating_add(age)));
                (max_age.map_or(idle, |age| age.min(idle)), Some(idle), until)
            }
        };
        if ms <= 0 {
            return None;
        }
        let expires = moment(now.as_millis().saturating_add(ms));
        // One that slides and has no end is one that never expires.
        Some(if expires.is_none() { never } else { Expiry { expires, idle, until } })
    }
}

impl From<Duration> for Ttl {
    /// Parts of a millisecond count as one.
    fn from(ttl: Duration) -> Self {
        match as_millis(ttl) {
            i64::MAX => Self::NEVER,
            ms => Self::millis(ms),
        }
    }
}

impl From<Option<Duration>> for Ttl {
    /// `None` is never.
    fn from(ttl: Option<Duration>) -> Self {
        ttl.map_or(Self::NEVER, Self::from)
    }
}

/// Whole milliseconds, rounded up.
fn as_millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(i64::MAX)
}

/// A moment that SQL holds exactly; none beyond that.
fn moment(ms: i64) -> Option<Timestamp> {
    (ms < SQL_INTEGER_MAX).then_some(Timestamp::from_millis(ms))
}

/// Shorter by up to so many percent, but not over at once if it was not.
fn shortened(ms: i64, percent: u8, random: u64) -> i64 {
    let most = i128::from(ms.max(0)) * i128::from(percent) / 100;
    let less = i128::from(random) % (most + 1);
    i64::try_from(i128::from(ms) - less).unwrap_or(ms).max(ms.min(1))
}
