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
        let after = |ms: i64| moment(now.as_millis().saturating_add(ms));
        let shortened = |ms: i64| match self.jitter {
            0 => ms,
            // What never expires.
            _ if after(ms).is_none() => ms,
            percent => shortened(ms, percent, random()),
        };
        let fixed = |expires| Expiry { expires, idle: None, until: None };
        match self.life {
            Life::Never => Some(fixed(None)),
            Life::Until(at) => (at > now.as_millis()).then(|| fixed(moment(at))),
            Life::For(ms) => {
                let ms = shortened(ms);
                (ms > 0).then(|| fixed(after(ms)))
            }
            Life::Sliding { idle, max_age } => {
                let idle = shortened(idle);
                let ms = max_age.map_or(idle, |age| age.min(idle));
                // What cannot be moved does not slide: it is at its cap, or it never expires.
                let slides = max_age.is_none_or(|age| age > idle) && after(idle).is_some();
                (ms > 0).then(|| match slides {
                    true => Expiry { expires: after(idle), idle: Some(idle), until: max_age.and_then(after) },
                    false => fixed(after(ms)),
                })
            }
        }
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
pub(crate) fn as_millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(i64::MAX)
}

/// The latest moment at which something can expire.
pub(crate) const LATEST: Timestamp = Timestamp::from_millis(SQL_INTEGER_MAX - 1);

/// A moment that SQL holds exactly; none beyond that.
pub(crate) fn moment(ms: i64) -> Option<Timestamp> {
    (ms < SQL_INTEGER_MAX).then_some(Timestamp::from_millis(ms))
}

/// Shorter by up to so many percent, but not over at once if it was not.
fn shortened(ms: i64, percent: u8, random: u64) -> i64 {
    let most = i128::from(ms.max(0)) * i128::from(percent) / 100;
    let less = i128::from(random) % (most + 1);
    i64::try_from(i128::from(ms) - less).unwrap_or(ms).max(ms.min(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_000_000);
    /// The latest that expires at all.
    const LAST: i64 = SQL_INTEGER_MAX - 1;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// When it expires, its idle time, and its cap.
    fn told(ttl: Ttl) -> Option<(Option<i64>, Option<i64>, Option<i64>)> {
        let expiry = ttl.at(NOW, || 0)?;
        let ms = |at: Option<Timestamp>| at.map(Timestamp::as_millis);
        Some((ms(expiry.expires), expiry.idle, ms(expiry.until)))
    }

    /// When something expires that does not slide.
    fn fixed(ttl: impl Into<Ttl>) -> Option<i64> {
        let (expires, idle, until) = told(ttl.into()).unwrap();
        assert_eq!((idle, until), (None, None));
        expires
    }

    #[test]
    fn t10_what_is_not_positive_or_not_in_the_future_is_over() {
        for over in [
            Ttl::millis(0),
            Ttl::millis(-1),
            Ttl::millis(i64::MIN),
            Ttl::secs(i64::MIN),
            Ttl::from(Duration::ZERO),
            Ttl::until(NOW),
            Ttl::until(Timestamp::from_millis(i64::MIN)),
            Ttl::sliding(Duration::ZERO),
            Ttl::sliding(ms(10)).max_age(Duration::ZERO),
            Ttl::NEVER.max_age(Duration::ZERO),
            Ttl::millis(-5).jitter(100),
        ] {
            assert_eq!(told(over), None, "{over:?}");
        }
        assert_eq!(fixed(Ttl::millis(1)), Some(1_000_001));
        assert_eq!(fixed(Ttl::until(NOW + ms(1))), Some(1_000_001));
        assert_eq!(fixed(Duration::from_nanos(1)), Some(1_000_001));
    }

    #[test]
    fn t10_what_is_too_far_away_never_expires() {
        for never in [
            Ttl::NEVER,
            Ttl::millis(i64::MAX),
            Ttl::secs(i64::MAX),
            Ttl::millis(LAST - 1_000_000 + 1),
            Ttl::from(Duration::MAX),
            Ttl::from(None),
            Ttl::until(Timestamp::MAX),
            Ttl::sliding(Duration::MAX),
            Ttl::sliding(Duration::MAX).max_age(Duration::MAX),
        ] {
            assert_eq!(fixed(never), None, "{never:?}");
        }
        assert_eq!(fixed(Ttl::millis(LAST - 1_000_000)), Some(LAST));
        assert_eq!(fixed(Ttl::until(LATEST)), Some(LAST));
        assert_eq!(fixed(Some(ms(5))), Some(1_000_005));
    }

    #[test]
    fn what_slides_has_an_idle_time_that_is_below_its_cap() {
        assert_eq!(told(Ttl::sliding(ms(10))), Some((Some(1_000_010), Some(10), None)));
        let capped = Ttl::sliding(ms(10)).max_age(ms(30));
        assert_eq!(told(capped), Some((Some(1_000_010), Some(10), Some(1_000_030))));
        assert_eq!(told(capped.max_age(ms(40))), told(capped), "the sooner counts");
        assert_eq!(fixed(Ttl::sliding(ms(30)).max_age(ms(30))), Some(1_000_030));
        assert_eq!(fixed(Ttl::sliding(Duration::MAX).max_age(ms(30))), Some(1_000_030));
        let endless = Ttl::sliding(ms(10)).max_age(Duration::MAX);
        assert_eq!(told(endless), Some((Some(1_000_010), Some(10), None)));
    }

    #[test]
    fn a_greatest_age_of_what_does_not_slide_is_its_time_if_that_is_longer() {
        assert_eq!(fixed(Ttl::millis(50).max_age(ms(30))), Some(1_000_030));
        assert_eq!(fixed(Ttl::millis(20).max_age(ms(30))), Some(1_000_020));
        assert_eq!(fixed(Ttl::NEVER.max_age(ms(30))), Some(1_000_030));
        assert_eq!(fixed(Ttl::until(NOW + ms(50)).max_age(ms(30))), Some(1_000_050));
    }

    #[test]
    fn jitter_shortens_by_at_most_its_percentage_and_leaves_a_millisecond() {
        let at = |ttl: Ttl, random| {
            ttl.at(NOW, || random).and_then(|expiry| expiry.expires).map(|at| NOW.until(at))
        };
        let jittered = Ttl::secs(10).jitter(10);
        assert_eq!(at(jittered, 0), Some(ms(10_000)));
        assert_eq!(at(jittered, 1_000), Some(ms(9_000)));
        assert_eq!(at(jittered, 1_001), Some(ms(10_000)));
        assert_eq!(at(Ttl::millis(10).jitter(200), 10), Some(ms(1)));
        assert_eq!(at(Ttl::until(NOW + ms(10)).jitter(100), 10), Some(ms(10)));
        assert_eq!(at(Ttl::millis(i64::MAX).jitter(100), u64::MAX), at(Ttl::NEVER, 0));
        assert_eq!(at(Ttl::sliding(ms(10)).jitter(50), 5), Some(ms(5)));
    }
}
