//! A [`Ttl`] as a header says it: `60000`, `never`, `until=1764538398000`, `sliding=1800000;max_age=86400000`, and with
//! each of them `;jitter=10`. Times are whole milliseconds.

use crate::{Ttl, ttl::Life};
use do_core::{Error, ErrorKind, Timestamp, limits::SQL_INTEGER_MAX};
use std::{fmt::Write, time::Duration};

/// What is longer or later than programs of all languages count is [`Ttl::NEVER`] before this and behind it.
fn clamped(ms: i64) -> i64 {
    ms.clamp(-SQL_INTEGER_MAX, SQL_INTEGER_MAX)
}

pub(super) fn write(ttl: &Ttl) -> String {
    let mut text = match ttl.life {
        Life::Never => "never".to_owned(),
        Life::For(ms) => clamped(ms).to_string(),
        Life::Until(at) => format!("until={}", clamped(at)),
        Life::Sliding { idle, .. } => format!("sliding={}", clamped(idle)),
    };
    // Writing to a string does not fail.
    if let Life::Sliding { max_age: Some(age), .. } = ttl.life {
        let _ = write!(text, ";max_age={}", clamped(age));
    }
    if ttl.jitter > 0 {
        let _ = write!(text, ";jitter={}", ttl.jitter);
    }
    text
}

/// # Errors
/// [`ErrorKind::Invalid`].
pub(super) fn read(text: &str) -> Result<Ttl, Error> {
    let wrong = || {
        let start: String = text.chars().take(64).collect();
        let message = format!(
            "{start:?} is no time to live: that is `never`, whole milliseconds below 2^53, `until=MS` or `sliding=MS`, \
             and behind it `;max_age=MS` or `;jitter=PERCENT`"
        );
        Error::new(ErrorKind::Invalid, message)
    };
    let mut parts = text.split(';').map(str::trim);
    let life = parts.next().unwrap_or_default();
    let mut ttl = match life.split_once('=') {
        None if life == "never" => Ttl::NEVER,
        None => Ttl::millis(number(life).ok_or_else(wrong)?),
        Some(("until", at)) => Ttl::until(Timestamp::from_millis(number(at).ok_or_else(wrong)?)),
        Some(("sliding", idle)) => Ttl::sliding(duration(idle).ok_or_else(wrong)?),
        Some(_) => return Err(wrong()),
    };
    for part in parts {
        ttl = match part.split_once('=') {
            Some(("max_age", age)) => ttl.max_age(duration(age).ok_or_else(wrong)?),
            Some(("jitter", percent)) => match number(percent) {
                Some(percent @ 0..=100) => ttl.jitter(u8::try_from(percent).map_err(|_| wrong())?),
                _ => return Err(wrong()),
            },
            _ => return Err(wrong()),
        };
    }
    Ok(ttl)
}

/// A whole number in decimal digits, as far as every program holds it exactly.
pub(super) fn number(text: &str) -> Option<i64> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_number = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
    let number = is_number.then(|| text.parse().ok())??;
    (-SQL_INTEGER_MAX..=SQL_INTEGER_MAX).contains(&number).then_some(number)
}

/// One that is not positive is over at once, as it is in code.
fn duration(text: &str) -> Option<Duration> {
    number(text).map(|ms| Duration::from_millis(u64::try_from(ms).unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let hour = Duration::from_secs(3_600);
        for (ttl, text) in [
            (Ttl::NEVER, "never"),
            (Ttl::millis(60_000), "60000"),
            (Ttl::millis(0), "0"),
            (Ttl::millis(-5), "-5"),
            (Ttl::until(Timestamp::from_millis(1_764_538_398_000)), "until=1764538398000"),
            (Ttl::sliding(hour), "sliding=3600000"),
            (Ttl::sliding(hour).max_age(hour * 24).jitter(7), "sliding=3600000;max_age=86400000;jitter=7"),
            (Ttl::secs(1).jitter(100), "1000;jitter=100"),
            (Ttl::millis(SQL_INTEGER_MAX), "9007199254740991"),
        ] {
            assert_eq!(write(&ttl), text);
            assert_eq!(read(text).unwrap(), ttl, "{text}");
        }
        assert_eq!(
            read(" sliding=5 ; max_age=9 ").unwrap(),
            Ttl::sliding(hour / 720_000).max_age(hour / 400_000)
        );
    }

    #[test]
    fn what_is_too_far_away_is_written_as_what_is_never_over() {
        let now = Timestamp::from_millis(1_764_538_398_000);
        for ttl in [
            Ttl::millis(i64::MAX),
            Ttl::until(Timestamp::MAX),
            Ttl::sliding(Duration::MAX),
            Ttl::sliding(Duration::MAX).max_age(Duration::MAX),
        ] {
            let read = read(&write(&ttl)).unwrap();
            assert_eq!(read.at(now, || 0), ttl.at(now, || 0), "{ttl:?}");
            assert_eq!(ttl.at(now, || 0).unwrap().expires, None);
        }
        assert_eq!(read(&write(&Ttl::millis(i64::MIN))).unwrap().at(now, || 0), None);
    }

    #[test]
    fn t10_what_is_no_number_of_milliseconds_is_refused() {
        for text in [
            "",
            "NaN",
            "Infinity",
            "-Infinity",
            "inf",
            "1.5",
            "1e3",
            "+1",
            "0x10",
            "--1",
            "-",
            "9007199254740992",
            "-9007199254740992",
            "99999999999999999999",
            "Never",
            "until",
            "until=",
            "until=x",
            "sliding",
            "1;",
            "1;x=1",
            "1;jitter=101",
            "1;jitter=-1",
            "sliding=5;max_age=x",
            "1,2",
            "\u{661}",
        ] {
            assert_eq!(read(text).unwrap_err().kind(), ErrorKind::Invalid, "{text:?}");
        }
    }
}
