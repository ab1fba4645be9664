use super::{
    cadence::Cadence,
    retry::{Retry, ms},
};
use crate::{Error, ErrorKind, Timestamp};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Longest payload of a job, in bytes of its JSON.
pub const PAYLOAD_BYTES: usize = 1_000_000;
/// Longest name of a job or a slot, and longest idempotency key, in UTF-8 bytes.
pub const NAME_BYTES: usize = 256;
/// How long a job may run by default.
pub const TIME_LIMIT: Duration = Duration::from_secs(5 * 60);
/// How long a job may run at most: a wake's other jobs and the end of the run fit into the platform's
/// [`ALARM_RUN`](crate::limits::ALARM_RUN) with it.
pub const TIME_LIMIT_MAX: Duration = Duration::from_secs(14 * 60);

/// Most ticks that [`Missed::CatchUp`] runs.
pub const CATCH_UP_MAX: u32 = 1_000;

/// What becomes of the ticks of a recurring job that nobody ran when they came, because the object or its host was not
/// there or the job before was still running.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Missed {
    /// One run for all of them, told the latest; [`Job::missed`](super::Job::missed) counts the others.
    #[default]
    Once,
    /// A tick that is later than this is not run at all: a report that nobody wants in the afternoon. A retry of one
    /// that was begun in time is, however late. Alarms come some ms late, so with nothing a job may never run.
    Skip(Duration),
    /// A run for each of the latest ones, oldest first, at most so many; those before are dropped. At least one is run,
    /// and at most [`CATCH_UP_MAX`]. They come before other jobs that were due later.
    CatchUp(u32),
}

/// When a job runs and what is done when it cannot or fails: what [`Schedule::put`](super::Schedule::put) takes.
///
/// ```
/// use do_core::{Plan, schedule::{Missed, Retry}, Timestamp};
/// use std::time::Duration;
///
/// # fn main() -> Result<(), do_core::Error> {
/// let once = Plan::at(Timestamp::from_millis(1_800_000_000_000)).payload(&("order", 42))?;
/// let beat = Plan::every(Duration::from_secs(25))?;
/// let patient = beat.retry(Retry::new(10, Duration::from_secs(1))?).missed(Missed::CatchUp(3));
/// # let _ = (once, patient);
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    pub(super) when: When,
    pub(super) terms: Terms,
    pub(super) payload: Option<String>,
    pub(super) key: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum When {
    At(Timestamp),
    /// Without an anchor it is the moment of the first put.
    Every {
        every: Duration,
        anchor: Option<Timestamp>,
    },
    #[cfg(feature = "cron")]
    Cron(Cadence),
}

impl When {
    /// As it is stored: an interval without an anchor keeps the one that it has, or begins now.
    pub(super) fn cadence(&self, old: Option<&Cadence>, now: Timestamp) -> Result<Option<Cadence>, Error> {
        match self {
            Self::At(_) => Ok(None),
            Self::Every { every, anchor } => {
                let anchor = anchor.or_else(|| old.and_then(|old| old.anchor(*every))).unwrap_or(now);
                Cadence::every(*every, anchor).map(Some)
            }
            #[cfg(feature = "cron")]
            Self::Cron(cadence) => Ok(Some(cadence.clone())),
        }
    }
}

/// What is stored of a plan beside its time and payload: JSON, without what is as by default.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(super) struct Terms {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) cadence: Option<Cadence>,
    #[serde(default, skip_serializing_if = "is_default", with = "super::stored::missed")]
    pub(super) missed: Missed,
    #[serde(default, skip_serializing_if = "is_default", with = "super::stored::retry")]
    pub(super) retry: Retry,
    /// In ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) limit: Option<u64>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(super) quiet: bool,
}

impl Terms {
    pub(super) fn time_limit(&self) -> Duration {
        self.limit.map_or(TIME_LIMIT, Duration::from_millis).min(TIME_LIMIT_MAX)
    }

    pub(super) fn to_text(&self) -> Result<String, Error> {
        serde_json::to_string(self)
            .map_err(|error| Error::new(ErrorKind::Invalid, format!("a plan that cannot be stored: {error}")))
    }

    pub(super) fn parse(text: &str) -> Result<Self, Error> {
        serde_json::from_str(text)
            .map_err(|error| Error::new(ErrorKind::Invalid, format!("a plan that cannot be read: {error}")))
    }
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl Plan {
    fn new(when: When) -> Self {
        Self { when, terms: Terms::default(), payload: None, key: None }
    }

    /// Once, at or after a time. One in the past is as soon as possible.
    pub fn at(time: Timestamp) -> Self {
        Self::new(When::At(time))
    }

    /// Again and again, every so many whole milliseconds: one interval after the plan was first put, and from there on
    /// without drift. Putting it again changes nothing.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] for less than a millisecond, a fraction of one, or more than fits.
    pub fn every(interval: Duration) -> Result<Self, Error> {
        Cadence::every(interval, Timestamp::EPOCH)?; // checks it
        Ok(Self::new(When::Every { every: interval, anchor: None }))
    }

    /// Where the clock on the wall of a time zone shows what a cron expression says, with the crate feature `cron`:
    /// `Plan::cron("0 9 * * MON-FRI", "Europe/Zurich")`. Five fields from the minute to the day of the week, or six that
    /// begin with the second, or a nickname like `@daily`; zones by their IANA names, from a database in the binary that is
    /// the same on every host.
    ///
    /// Where the clock is changed:
    /// - A fixed time, without `*` in hour, minute and second, that the clock skips comes once, at the end of the gap:
    ///   02:30 in Zurich comes at 03:00 on that day. One that the clock shows twice comes the first time.
    /// - An expression with `*` or `*/n` in one of the three follows the clock: what is skipped does not come, what is
    ///   shown twice comes twice.
    /// - Several fixed times in one gap are one.
    ///
    /// Of day of month and day of week one is enough, unless one of them is `*`; `+MON` demands both.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`], naming what is wrong: an expression that is none or never comes, an unknown zone.
    #[cfg(feature = "cron")]
    pub fn cron(expression: &str, zone: &str) -> Result<Self, Error> {
        Ok(Self::new(When::Cron(Cadence::cron(expression, zone)?)))
    }

    /// Puts the ticks of an interval at a time and at whole intervals behind it: every hour on the hour. The first one is
    /// the first of them that is to come, so none is before an anchor in the future. Without effect on other plans.
    #[must_use]
    pub fn anchored(mut self, at: Timestamp) -> Self {
        if let When::Every { anchor, .. } = &mut self.when {
            *anchor = Some(at);
        }
        self
    }

    /// What the job is given: anything that serde makes JSON of.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] for what cannot be JSON, [`ErrorKind::Limit`] for more than [`PAYLOAD_BYTES`].
    pub fn payload<T: Serialize + ?Sized>(mut self, payload: &T) -> Result<Self, Error> {
        let text = serde_json::to_string(payload).map_err(|error| {
            Error::new(ErrorKind::Invalid, format!("the payload cannot be JSON: {error}"))
        })?;
        if text.len() > PAYLOAD_BYTES {
            let message = format!("the payload has {} bytes as JSON, more than {PAYLOAD_BYTES}", text.len());
            return Err(Error::new(ErrorKind::Limit, message));
        }
        self.payload = Some(text);
        Ok(self)
    }

    /// How often it is tried again after a failure, and when. By default as the platform does with alarms.
    #[must_use]
    pub fn retry(mut self, retry: Retry) -> Self {
        self.terms.retry = retry;
        self
    }

    /// What becomes of missed ticks. Without effect on what runs once: that is always run, however late.
    #[must_use]
    pub fn missed(mut self, missed: Missed) -> Self {
        self.terms.missed = missed;
        self
    }

    /// How long a run may take before it counts as failed and its future is dropped: [`TIME_LIMIT`] by default, at most
    /// [`TIME_LIMIT_MAX`], which stands for anything longer. Only ends a job that awaits; one that may take no time at all
    /// fails at its first await.
    #[must_use]
    pub fn time_limit(mut self, limit: Duration) -> Self {
        self.terms.limit = (limit != TIME_LIMIT).then(|| ms(limit.min(TIME_LIMIT_MAX)));
        self
    }

    /// Keeps runs that fail in the [history](super::Schedule::history) and none that succeed: for a job that is so
    /// frequent that its runs would push out those of the others. Saves up to two rows written for each run.
    #[must_use]
    pub fn record_failures_only(mut self) -> Self {
        self.terms.quiet = true;
        self
    }

    /// Puts it only if no plan with this key was put before, whether that one is pending, has run or was cancelled: for
    /// a request that may come twice. Otherwise it succeeds without effect. Keys are one set for all names; the object
    /// remembers the latest
    /// [`KEYS_KEPT`](super::KEYS_KEPT) keys.
    #[must_use]
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }
}

/// What a job, a slot or a key may be called.
pub(super) fn check_name(what: &str, name: &str) -> Result<(), Error> {
    if name.is_empty() || name.contains(char::is_control) {
        let message = format!("{what} {name:?} is refused: it must not be empty or hold control characters");
        return Err(Error::new(ErrorKind::Invalid, message));
    }
    if name.len() > NAME_BYTES {
        let message = format!("{what} is {} bytes long, the limit is {NAME_BYTES}", name.len());
        return Err(Error::new(ErrorKind::Limit, message));
    }
    Ok(())
}
