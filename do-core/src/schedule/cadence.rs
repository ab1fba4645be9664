//! When a recurring job comes: pure arithmetic on moments, without a clock, so that every host computes the same.
//!
//! A cadence is kept as data and answers from any moment, forwards and backwards, instead of being an iterator with a
//! position: after a long sleep the next occurrence is one question, however many were missed.

#[cfg(feature = "cron")]
use super::cron::Rule;
use crate::{Error, ErrorKind, Timestamp, limits::ALARM_MAX_MS};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// When a recurring job comes. Kept in the object's database as the JSON that serde makes of it, for example
/// `{"every":{"ms":60000,"anchor":0}}` and `{"cron":{"at":"0 9 * * MON-FRI","zone":"Europe/Zurich"}}`.
///
/// Every occurrence is a time that an alarm can have (rule E1): positive and at most [`ALARM_MAX_MS`]. A value that was
/// read from a database and makes no sense gives [`ErrorKind::Invalid`] where it is used, never a panic.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Cadence {
    /// At `anchor`, and then again and again `every` later.
    Every {
        /// The distance between two occurrences in ms, at least 1.
        #[serde(rename = "ms")]
        every: i64,
        /// The first occurrence, in ms since the Unix epoch.
        anchor: i64,
    },
    /// Where the clock on the wall of `zone` shows what `cron` says. There in a build without the feature `cron` as
    /// well, which can keep and show it, but not compute it.
    Cron {
        /// Five fields from minute to day of week, or six with leading seconds.
        #[serde(rename = "at")]
        cron: String,
        /// The IANA name of a time zone.
        zone: String,
    },
}

impl Cadence {
    /// At `anchor`, and then again and again `every` later.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] for less than 1 ms, a fraction of one, and for more than an `i64` holds in ms.
    pub(super) fn every(every: Duration, anchor: Timestamp) -> Result<Self, Error> {
        if !every.subsec_nanos().is_multiple_of(1_000_000) {
            return Err(invalid(format!("every {every:?}: it must be whole milliseconds")));
        }
        let ms = i64::try_from(every.as_millis())
            .map_err(|_| invalid(format!("every {} s is too long", every.as_secs())))?;
        check_every(ms)?;
        Ok(Self::Every { every: ms, anchor: anchor.as_millis() })
    }

    /// Where the clock on the wall of `zone` shows what `cron` says; see [`Rule::parse`](super::cron::Rule::parse)
    /// for the language. The zone is kept as the database writes it.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`], saying which expression or zone and why.
    #[cfg(feature = "cron")]
    pub(super) fn cron(cron: &str, zone: &str) -> Result<Self, Error> {
        let rule = Rule::parse(cron, zone)?;
        Ok(Self::Cron { cron: cron.trim().to_owned(), zone: rule.zone().unwrap_or(zone).to_owned() })
    }

    /// Where the ticks of an interval are put, if this is that interval.
    pub(super) fn anchor(&self, interval: Duration) -> Option<Timestamp> {
        match self {
            Self::Every { every, anchor } if u128::try_from(*every).ok() == Some(interval.as_millis()) => {
                Some(Timestamp::from_millis(*anchor))
            }
            _ => None,
        }
    }

    /// The first occurrence after `t`, never `t` itself. `None`: there is none any more.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] for a cadence that makes no sense in this build.
    pub(super) fn next_after(&self, t: Timestamp) -> Result<Option<Timestamp>, Error> {
        let t = t.max(Timestamp::EPOCH);
        match self {
            Self::Every { every, anchor } => Ok(Every::new(*every, *anchor)?.next_after(t)),
            #[cfg(feature = "cron")]
            Self::Cron { cron, zone } => Ok(Rule::read(cron, zone)?.next_after(t)),
            #[cfg(not(feature = "cron"))]
            Self::Cron { cron, .. } => Err(without_cron(cron)),
        }
    }

    /// The latest `n` of the occurrences in (`after`, `until`], oldest first. The work is in proportion to `n`, however
    /// long the span is.
    ///
    /// # Errors
    /// As [`next_after`](Self::next_after).
    #[cfg(test)]
    pub(super) fn latest(
        &self,
        after: Timestamp,
        until: Timestamp,
        n: usize,
    ) -> Result<Vec<Timestamp>, Error> {
        let mut found = Vec::new();
        self.walk_back(after, until, n, |t| found.push(t))?;
        found.reverse();
        Ok(found)
    }

    /// The oldest of the latest `n` occurrences in (`after`, `until`]. The work does not grow with the span, and only for
    /// cron with `n`, up to the number of seconds in it.
    ///
    /// # Errors
    /// As [`next_after`](Self::next_after).
    pub(super) fn oldest_of_latest(
        &self,
        after: Timestamp,
        until: Timestamp,
        n: u64,
    ) -> Result<Option<Timestamp>, Error> {
        let (after, until) = (after.max(Timestamp::EPOCH), until.min(Timestamp::from_millis(ALARM_MAX_MS)));
        if let Self::Every { every, anchor } = self {
            return Ok(Every::new(*every, *anchor)?.oldest_of_latest(after, until, n));
        }
        // No two are in one second, so that this many are all there can be.
        if n > after.until(until).as_secs() {
            return Ok(self.next_after(after)?.filter(|t| *t <= until));
        }
        let mut oldest = None;
        self.walk_back(after, until, usize::try_from(n).unwrap_or(usize::MAX), |t| oldest = Some(t))?;
        Ok(oldest)
    }

    /// How many occurrences there are in (`after`, `until`], but at most `at_most`: that many means "or more". Only for
    /// cron the work is in proportion to the answer.
    ///
    /// # Errors
    /// As [`next_after`](Self::next_after).
    pub(super) fn count(&self, after: Timestamp, until: Timestamp, at_most: u64) -> Result<u64, Error> {
        if let Self::Every { every, anchor } = self {
            let (after, until) =
                (after.max(Timestamp::EPOCH), until.min(Timestamp::from_millis(ALARM_MAX_MS)));
            return Ok(Every::new(*every, *anchor)?.count(after, until).min(at_most));
        }
        let mut count = 0;
        self.walk_back(after, until, usize::try_from(at_most).unwrap_or(usize::MAX), |_| count += 1)?;
        Ok(count)
    }

    /// Gives the latest `n` occurrences in (`after`, `until`], latest first.
    fn walk_back(
        &self,
        after: Timestamp,
        until: Timestamp,
        n: usize,
        mut found: impl FnMut(Timestamp),
    ) -> Result<(), Error> {
        let after = after.max(Timestamp::EPOCH);
        let mut walk = |latest: &dyn Fn(Timestamp) -> Option<Timestamp>| {
            let mut at = until.min(Timestamp::from_millis(ALARM_MAX_MS));
            for _ in 0..n {
                // One below the other in whole ms, so that the walk always ends.
                let Some(t) = latest(at).filter(|t| *t > after) else { break };
                found(t);
                at = t - Duration::from_millis(1);
            }
        };
        match self {
            Self::Every { every, anchor } => {
                let every = Every::new(*every, *anchor)?;
                walk(&|t| every.latest_until(t));
                Ok(())
            }
            #[cfg(feature = "cron")]
            Self::Cron { cron, zone } => {
                let rule = Rule::read(cron, zone)?;
                walk(&|t| rule.latest_until(t));
                Ok(())
            }
            #[cfg(not(feature = "cron"))]
            Self::Cron { cron, .. } => Err(without_cron(cron)),
        }
    }
}

/// The arithmetic of [`Cadence::Every`]: in `i128`, where no difference or sum of two `i64` overflows.
#[derive(Debug, Clone, Copy)]
struct Every {
    every: i128,
    anchor: i128,
}

impl Every {
    fn new(every: i64, anchor: i64) -> Result<Self, Error> {
        check_every(every)?;
        Ok(Self { every: every.into(), anchor: anchor.into() })
    }

    fn next_after(self, t: Timestamp) -> Option<Timestamp> {
        // How many come until `t`, is the number of the one after it.
        alarm_time(self.anchor + self.until(t) * self.every)
    }

    fn latest_until(self, t: Timestamp) -> Option<Timestamp> {
        let n = self.until(t);
        if n == 0 { None } else { alarm_time(self.anchor + (n - 1) * self.every) }
    }

    fn oldest_of_latest(self, after: Timestamp, until: Timestamp, n: u64) -> Option<Timestamp> {
        let end = self.until(until);
        let first = self.until(after).max(end - i128::from(n));
        if first < end { alarm_time(self.anchor + first * self.every) } else { None }
    }

    fn count(self, after: Timestamp, until: Timestamp) -> u64 {
        u64::try_from((self.until(until) - self.until(after)).max(0)).unwrap_or(u64::MAX)
    }

    /// How many occurrences there are up to and at `t`.
    fn until(self, t: Timestamp) -> i128 {
        let since = i128::from(t.as_millis()) - self.anchor;
        if since < 0 { 0 } else { since / self.every + 1 }
    }
}

fn alarm_time(ms: i128) -> Option<Timestamp> {
    i64::try_from(ms).ok().filter(|ms| (1..=ALARM_MAX_MS).contains(ms)).map(Timestamp::from_millis)
}

fn check_every(ms: i64) -> Result<(), Error> {
    if ms >= 1 { Ok(()) } else { Err(invalid(format!("every {ms} ms: it must be at least 1 ms"))) }
}

fn invalid(message: String) -> Error {
    Error::new(ErrorKind::Invalid, message)
}

#[cfg(not(feature = "cron"))]
fn without_cron(cron: &str) -> Error {
    invalid(format!("the cron expression {cron:?} cannot be computed: built without the feature cron"))
}

#[cfg(test)]
mod tests;
