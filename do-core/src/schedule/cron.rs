//! Cron expressions on the clock of a time zone: the language is croner's, the way through the year is our own.
//!
//! croner's search goes second by second through a gap, on to the year 5000 for what never comes, and loses a Saturday's
//! job in a gap that ends on Sunday. This one goes from one change of the clock to the next. Between two of them local
//! time runs evenly, so looking for a match there is arithmetic on the fields, and the two kinds of change are one
//! comparison each. It is bounded, and it is the same forwards and backwards.

mod fields;

use crate::{Error, ErrorKind, Timestamp, limits::ALARM_MAX_MS};
use croner::{
    CronComponent, CronPattern, Weekday,
    parser::{CronParser, Seconds, Year},
};
use jiff::{
    civil::Date,
    tz::{Offset, TimeZone, TimeZoneDatabase},
};
use std::ops::Range;

/// Longest expression, in bytes.
const EXPRESSION_BYTES: usize = 256;
const DAY: i64 = 24 * 60 * 60;
/// The last second that an alarm can be set to (rule E1).
const LAST: i64 = ALARM_MAX_MS / 1_000;

/// A parsed expression with its time zone. All moments in here are whole seconds; a local time is the number of seconds
/// that a clock which shows it would be after 1970-01-01 00:00 without any change.
#[derive(Debug, Clone)]
pub(super) struct Rule {
    pattern: CronPattern,
    zone: TimeZone,
    time: TimeOfDay,
    /// Neither hour, minute nor second is a `*` or `*/n`: what a change of the clock skips comes at its end, what the
    /// clock shows twice comes the first time. As in Vixie's cron.
    fixed: bool,
}

/// The times of the day that match, as one bit for each value.
#[derive(Debug, Clone, Copy)]
struct TimeOfDay {
    hours: u64,
    minutes: u64,
    seconds: u64,
}

/// A stretch of time in which the clock of a zone is not changed.
#[derive(Debug, Clone, Copy)]
struct Stretch {
    start: i64,
    /// The first second after it.
    end: i64,
    /// Local time less UTC, in seconds, in it and before it.
    offset: i64,
    before: i64,
}

impl Rule {
    /// Reads an expression: minute, hour, day of month, month and day of week, with a leading field for seconds if there
    /// are six, or one of `@yearly`, `@annually`, `@monthly`, `@weekly`, `@daily` and `@hourly`. A field is `*` or a
    /// list of numbers and ranges, each with `/step`; months and days of the week also by their English names, `L`,
    /// `15W`, `FRI#2`, `5L`, and `+MON` for a day that matches day of month and day of week. Otherwise one of the two is
    /// enough when neither is `*` (but `*/2` is not `*`).
    ///
    /// Stricter than croner, which takes a name in any field and reads nothing between two commas.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] when it is too long, malformed or on no day of any year, and for a name that is no time
    /// zone of the database in the binary.
    pub(super) fn parse(expression: &str, zone: &str) -> Result<Self, Error> {
        let rule = Self::read(expression, zone)?;
        // Every combination of a date and a day of the week that there is, is in these 28 years from 2001 on.
        if rule.first_match(Range { start: 11_323 * DAY, end: 21_550 * DAY }).is_none() {
            let message = format!("cron expression {expression:?}: there is no such day in any year");
            return Err(Error::new(ErrorKind::Invalid, message));
        }
        Ok(rule)
    }

    /// [`parse`](Self::parse) for what was parsed before: one that never comes is taken.
    pub(super) fn read(expression: &str, zone: &str) -> Result<Self, Error> {
        let bytes = expression.len();
        if bytes > EXPRESSION_BYTES {
            let message = format!("cron expression is {bytes} bytes long, the limit is {EXPRESSION_BYTES}");
            return Err(Error::new(ErrorKind::Invalid, message));
        }
        let refuse =
            |why: String| Error::new(ErrorKind::Invalid, format!("cron expression {expression:?}: {why}"));
        // The seventh field is the year, of which nothing is asked here. For the "*" that it would be otherwise, croner
        // marks 5,000 years, which takes longer than all the rest.
        let fields = fields::read(expression).map_err(refuse)? + " 2000";
        let parser = CronParser::builder().seconds(Seconds::Required).year(Year::Required).build();
        let pattern = parser.parse(&fields).map_err(|e| refuse(e.to_string()))?.pattern;
        let time = [&pattern.hours, &pattern.minutes, &pattern.seconds];
        Ok(Self {
            fixed: time.iter().all(|field| !field.from_wildcard),
            time: TimeOfDay {
                hours: bits(&pattern.hours),
                minutes: bits(&pattern.minutes),
                seconds: bits(&pattern.seconds),
            },
            pattern,
            zone: time_zone(zone)?,
        })
    }

    /// The name of the zone as the database writes it.
    pub(super) fn zone(&self) -> Option<&str> {
        self.zone.iana_name()
    }

    /// The first occurrence after `t`, a moment that is not before the epoch.
    pub(super) fn next_after(&self, t: Timestamp) -> Option<Timestamp> {
        let mut from = t.as_millis().div_euclid(1_000) + 1;
        while from <= LAST {
            let stretch = self.stretch(from);
            if let Some(found) = self.first_in(stretch, from) {
                return Some(Timestamp::from_millis(found * 1_000));
            }
            from = stretch.end;
        }
        None
    }

    /// The last occurrence at or before `t`, and after the epoch.
    pub(super) fn latest_until(&self, t: Timestamp) -> Option<Timestamp> {
        let mut until = t.as_millis().div_euclid(1_000).min(LAST);
        while until > 0 {
            let stretch = self.stretch(until);
            if let Some(found) = self.last_in(stretch, until) {
                return Some(Timestamp::from_millis(found * 1_000)).filter(|_| found > 0);
            }
            until = stretch.start - 1;
        }
        None
    }

    /// The stretch that `at` is in, as far as it is between the epoch and the last alarm.
    fn stretch(&self, at: i64) -> Stretch {
        let offset_at = |t: i64| i64::from(self.zone.to_offset(moment(t)).seconds());
        let offset = offset_at(at);
        let start = self.zone.preceding(moment(at + 1)).next().map_or(0, |t| t.timestamp().as_second());
        let end = self.zone.following(moment(at)).next().map_or(LAST + 1, |t| t.timestamp().as_second());
        Stretch {
            start: start.max(0),
            end: end.min(LAST + 1),
            offset,
            before: if start > 0 { offset_at(start - 1) } else { offset },
        }
    }

    fn first_in(&self, stretch: Stretch, from: i64) -> Option<i64> {
        let Stretch { start, end, offset, before } = stretch;
        if self.fixed && from == start && self.in_gap(stretch) {
            return Some(start);
        }
        let seen = if self.fixed { start + before } else { i64::MIN };
        self.first_match(seen.max(from + offset)..end + offset).map(|local| local - offset)
    }

    fn last_in(&self, stretch: Stretch, until: i64) -> Option<i64> {
        let Stretch { start, offset, before, .. } = stretch;
        let seen = if self.fixed { start + before } else { i64::MIN };
        self.last_match(seen.max(start + offset)..until + offset + 1)
            .map(|local| local - offset)
            .or_else(|| (self.fixed && self.in_gap(stretch)).then_some(start))
    }

    /// Whether a match is among the local times that the clock skipped when the stretch began.
    fn in_gap(&self, Stretch { start, offset, before, .. }: Stretch) -> bool {
        self.first_match(start + before..start + offset).is_some()
    }

    /// The first local time in the range that matches.
    fn first_match(&self, Range { start: mut from, end }: Range<i64>) -> Option<i64> {
        let mut day = from.div_euclid(DAY);
        let mut date = date(day);
        while day * DAY < end {
            if self.month_matches(date) {
                if self.day_matches(date)
                    && let Some(time) = self.time.first((from - day * DAY).max(0))
                {
                    return Some(day * DAY + time).filter(|found| *found < end);
                }
                day += 1;
                date = date.tomorrow().ok()?;
            } else {
                let last = date.last_of_month();
                day += i64::from(last.day() - date.day()) + 1;
                date = last.tomorrow().ok()?;
            }
            from = from.max(day * DAY);
        }
        None
    }

    /// The last local time in the range that matches.
    fn last_match(&self, Range { start, end }: Range<i64>) -> Option<i64> {
        let until = end - 1;
        let mut day = until.div_euclid(DAY);
        let mut date = date(day);
        while (day + 1) * DAY > start {
            if self.month_matches(date) {
                if self.day_matches(date)
                    && let Some(time) = self.time.last((until - day * DAY).min(DAY - 1))
                {
                    return Some(day * DAY + time).filter(|found| *found >= start);
                }
                day -= 1;
                date = date.yesterday().ok()?;
            } else {
                day -= i64::from(date.day());
                date = date.first_of_month().yesterday().ok()?;
            }
        }
        None
    }

    // The questions below fail for a date that no calendar has.

    fn month_matches(&self, date: Date) -> bool {
        self.pattern.month_match(date.month().unsigned_abs().into()).unwrap_or(false)
    }

    fn day_matches(&self, date: Date) -> bool {
        let weekday =
            Weekday::from_days_from_sunday(date.weekday().to_sunday_zero_offset().unsigned_abs().into());
        let (month, day) = (date.month().unsigned_abs().into(), date.day().unsigned_abs().into());
        self.pattern.day_match(date.year().into(), month, day, weekday).unwrap_or(false)
    }
}

impl TimeOfDay {
    /// The first match at or after a second of the day.
    fn first(self, second: i64) -> Option<i64> {
        let (h, m, s) = split(second);
        let first = |bits| at_or_after(bits, 0);
        let in_minute = || at_or_after(self.seconds, s).map(|s| (m, s));
        let in_hour = || {
            let same = (at_or_after(self.minutes, m) == Some(m)).then(in_minute).flatten();
            same.or_else(|| Some((at_or_after(self.minutes, m + 1)?, first(self.seconds)?)))
        };
        let same = (at_or_after(self.hours, h) == Some(h)).then(in_hour).flatten();
        let (h, (m, s)) = match same {
            Some(rest) => (h, rest),
            None => (at_or_after(self.hours, h + 1)?, (first(self.minutes)?, first(self.seconds)?)),
        };
        Some(i64::from(h * 3_600 + m * 60 + s))
    }

    /// The last match at or before a second of the day.
    fn last(self, second: i64) -> Option<i64> {
        // What is counted from the other end of the day, is searched from the other end.
        let mirrored = Self {
            hours: self.hours.reverse_bits() >> (64 - 24),
            minutes: self.minutes.reverse_bits() >> (64 - 60),
            seconds: self.seconds.reverse_bits() >> (64 - 60),
        };
        mirrored.first(DAY - 1 - second).map(|second| DAY - 1 - second)
    }
}

/// Hour, minute and second of a second of the day.
fn split(second: i64) -> (u32, u32, u32) {
    let second = u32::try_from(second).unwrap_or(0);
    (second / 3_600, second / 60 % 60, second % 60)
}

/// The first bit that is set from `n` on.
fn at_or_after(bits: u64, n: u32) -> Option<u32> {
    let rest = bits.checked_shr(n).filter(|rest| *rest != 0)?;
    Some(n + rest.trailing_zeros())
}

fn bits(field: &CronComponent) -> u64 {
    field.values().into_iter().fold(0, |bits, n| bits | 1_u64.checked_shl(n.into()).unwrap_or(0))
}

/// A zone of the database in the binary, not of the system's: every host has to know the same.
fn time_zone(name: &str) -> Result<TimeZone, Error> {
    let found = TimeZoneDatabase::bundled().get(name).ok().filter(|zone| !zone.is_unknown());
    found.ok_or_else(|| Error::new(ErrorKind::Invalid, format!("unknown time zone {name:?}")))
}

/// The moment of a Unix time in seconds. All that occur are between the epoch and the year 2190, far inside the range.
fn moment(second: i64) -> jiff::Timestamp {
    jiff::Timestamp::from_second(second).unwrap_or(jiff::Timestamp::MAX)
}

/// The date of a local time, in days.
fn date(day: i64) -> Date {
    Offset::UTC.to_datetime(moment(day * DAY)).date()
}

#[cfg(test)]
mod oracle;
#[cfg(test)]
mod tests;
