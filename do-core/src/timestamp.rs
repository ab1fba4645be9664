use crate::{Error, ErrorKind, limits};
use serde::{Deserialize, Serialize};
use std::{
    fmt,
    ops::{Add, Sub},
    time::Duration,
};

/// A moment in Unix time, in whole milliseconds: the unit of the platform's alarms and of `Date.now()`.
///
/// A plain signed count, so that it goes into an SQL `INTEGER` column and into JSON as it is. Arithmetic
/// saturates: a deadline far away stays far away instead of becoming one in the past.
///
/// ```
/// use do_core::Timestamp;
/// use std::time::Duration;
///
/// let t = Timestamp::from_millis(1_000);
/// assert_eq!((t + Duration::from_secs(2)).as_millis(), 3_000);
/// assert_eq!(Timestamp::MAX + Duration::from_secs(1), Timestamp::MAX);
/// assert_eq!(t.until(t + Duration::from_secs(2)), Duration::from_secs(2));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(i64);

impl Timestamp {
    /// The Unix epoch.
    pub const EPOCH: Self = Self(0);
    /// The latest moment that can be expressed.
    pub const MAX: Self = Self(i64::MAX);

    /// The moment `ms` milliseconds after the Unix epoch.
    pub const fn from_millis(ms: i64) -> Self {
        Self(ms)
    }

    /// Milliseconds since the Unix epoch.
    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// For adapters: refuses a time that no alarm can have (rule E1).
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`].
    #[doc(hidden)]
    pub fn check_alarm(self) -> Result<(), Error> {
        let ms = self.0;
        if (1..=limits::ALARM_MAX_MS).contains(&ms) {
            return Ok(());
        }
        let message =
            format!("an alarm cannot be set to {ms} ms: it must be positive and before the year 2190");
        Err(Error::new(ErrorKind::Invalid, message))
    }

    /// How long it is from here to `later`; zero when `later` is not later.
    pub fn until(self, later: Self) -> Duration {
        Duration::from_millis(u64::try_from(later.0.saturating_sub(self.0)).unwrap_or(0))
    }
}

impl Add<Duration> for Timestamp {
    type Output = Self;

    /// Fractions of a millisecond are dropped.
    fn add(self, d: Duration) -> Self {
        Self(self.0.saturating_add(i64::try_from(d.as_millis()).unwrap_or(i64::MAX)))
    }
}

impl Sub<Duration> for Timestamp {
    type Output = Self;

    fn sub(self, d: Duration) -> Self {
        Self(self.0.saturating_sub(i64::try_from(d.as_millis()).unwrap_or(i64::MAX)))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
