//! The language, and what the clocks of several zones do to it; `oracle.rs` has random ones.

use crate::{ErrorKind, Timestamp, schedule::cadence::Cadence};
use jiff::tz::{TimeZone, TimeZoneDatabase};

pub(super) fn zone(name: &str) -> TimeZone {
    TimeZoneDatabase::bundled().get(name).unwrap()
}

/// The moment of an RFC 3339 time.
fn at(text: &str) -> Timestamp {
    Timestamp::from_millis(text.parse::<jiff::Timestamp>().unwrap().as_millisecond())
}

fn shown(t: Timestamp, zone: &TimeZone) -> String {
    let offset = jiff::Timestamp::from_millisecond(t.as_millis()).unwrap().to_zoned(zone.clone());
    offset.strftime("%Y-%m-%d %H:%M:%S%:z").to_string()
}

/// The next `n` as the clock of the zone shows them, after a moment; checks that going back finds the same.
fn next(expression: &str, name: &str, after: &str, n: usize) -> Vec<String> {
    let cadence = Cadence::cron(expression, name).unwrap();
    let (zone, start) = (zone(name), at(after));
    let mut found = Vec::new();
    while let Some(t) =
        (found.len() < n).then(|| cadence.next_after(*found.last().unwrap_or(&start)).unwrap()).flatten()
    {
        found.push(t);
    }
    let last = *found.last().unwrap_or(&start);
    assert_eq!(cadence.latest(start, last, n + 1).unwrap(), found);
    assert_eq!(cadence.count(start, last, 1_000).unwrap(), found.len() as u64);
    found.into_iter().map(|t| shown(t, &zone)).collect()
}

fn refused(expression: &str, zone: &str) -> String {
    let error = Cadence::cron(expression, zone).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    error.to_string()
}

#[test]
fn five_fields_or_six_with_seconds_or_a_nickname() {
    let after = "2026-01-01T00:00:00.500Z";
    assert_eq!(
        next("*/20 * * * *", "UTC", after, 2),
        ["2026-01-01 00:20:00+00:00", "2026-01-01 00:40:00+00:00"]
    );
    assert_eq!(
        next("*/20 * * * * *", "UTC", after, 2),
        ["2026-01-01 00:00:20+00:00", "2026-01-01 00:00:40+00:00"]
    );
    assert_eq!(
        next(" 5-7/2  1,3 * jan,Mar ? ", "UTC", after, 2),
        ["2026-01-01 01:05:00+00:00", "2026-01-01 01:07:00+00:00"]
    );
    let nicknames = ["@hourly", "@daily", "@weekly", "@monthly", "@yearly", "@Annually"];
    let first = nicknames.map(|nickname| next(nickname, "UTC", after, 1).remove(0));
    assert_eq!(
        first.map(|t| t[..16].to_owned()),
        [
            "2026-01-01 01:00",
            "2026-01-02 00:00",
            "2026-01-04 00:00",
            "2026-02-01 00:00",
            "2027-01-01 00:00",
            "2027-01-01 00:00",
        ]
    );
}

#[test]
fn a_moment_between_two_seconds_has_the_second_before_and_the_second_after() {
    let cadence = Cadence::cron("* * * * * *", "UTC").unwrap();
    let ms = Timestamp::from_millis;
    assert_eq!(cadence.next_after(ms(1_999)).unwrap(), Some(ms(2_000)));
    assert_eq!(cadence.next_after(ms(2_000)).unwrap(), Some(ms(3_000)));
    assert_eq!(cadence.latest(ms(0), ms(1_999), 9).unwrap(), [ms(1_000)]);
    assert_eq!(cadence.latest(ms(1_000), ms(2_000), 9).unwrap(), [ms(2_000)]);
    assert_eq!(cadence.next_after(ms(i64::MIN)).unwrap(), Some(ms(1_000)));
    assert_eq!(cadence.latest(ms(i64::MIN), ms(0), 9).unwrap(), []);
}

#[test]
fn days_of_month_and_of_week() {
    let days = |expression: &str, n: usize| {
        let found = next(expression, "UTC", "2026-01-01T12:00:00Z", n);
        found.iter().map(|t| t[..10].to_owned()).collect::<Vec<_>>()
    };
    // January 2026 begins on a Thursday.
    assert_eq!(days("0 0 13 * FRI", 4), ["2026-01-02", "2026-01-09", "2026-01-13", "2026-01-16"]);
    assert_eq!(days("0 0 13 * +FRI", 2), ["2026-02-13", "2026-03-13"]);
    assert_eq!(days("0 0 */31 * FRI", 2), ["2026-01-02", "2026-01-09"]);
    assert_eq!(days("0 0 * * 1-5", 3), ["2026-01-02", "2026-01-05", "2026-01-06"]);
    assert_eq!(days("0 0 * * SAT-SUN", 3), ["2026-01-03", "2026-01-04", "2026-01-10"]);
    assert_eq!(days("0 0 * * 7", 1), ["2026-01-04"]);
    assert_eq!(days("0 0 L * *", 3), ["2026-01-31", "2026-02-28", "2026-03-31"]);
    assert_eq!(days("0 0 LW * *", 2), ["2026-01-30", "2026-02-27"]);
    assert_eq!(days("0 0 1W 8 *", 1), ["2026-08-03"]);
    assert_eq!(days("0 0 * * FRI#2", 2), ["2026-01-09", "2026-02-13"]);
    assert_eq!(days("0 0 * * 5L", 2), ["2026-01-30", "2026-02-27"]);
    assert_eq!(days("0 0 31 * *", 3), ["2026-01-31", "2026-03-31", "2026-05-31"]);
    assert_eq!(days("0 0 29 2 *", 2), ["2028-02-29", "2032-02-29"]);
    assert_eq!(next("0 0 29 2 *", "UTC", "2096-03-01T00:00:00Z", 1), ["2104-02-29 00:00:00+00:00"]);
    assert_eq!(days("0 0 29 2 +MON", 1), ["2044-02-29"]);
}

#[test]
fn what_is_wrong_is_said() {
    let why = |expression: &str| {
        let message = refused(expression, "UTC");
        let prefix = format!("cron expression {expression:?}: ");
        message.strip_prefix(&prefix).expect("names the expression").to_owned()
    };
    assert_eq!(why(""), "it has 0 fields instead of 5, or 6 with seconds");
    assert_eq!(why("* * * *"), "it has 4 fields instead of 5, or 6 with seconds");
    assert_eq!(why("* * * * * * 2027"), "it has 7 fields instead of 5, or 6 with seconds");
    assert_eq!(why("@reboot"), "\"@REBOOT\" is no nickname");
    assert_eq!(why("60 * * * *"), "Component error: Number out of bounds.");
    assert_eq!(why("0 0 1,,2 * *"), "\"1,,2\" is no day of month");
    assert_eq!(why("0 , * * *"), "\",\" is no hour");
    assert_eq!(why("0 9 MON * *"), "\"MON\" is no day of month");
    assert_eq!(why("0 9 * JAN1 *"), "\"JAN1\" is no month");
    assert_eq!(why("0 9 * * L"), "\"L\" is no day of week");
    assert_eq!(why("ä * * * *"), "\"ä\" is no minute");
    assert_eq!(why("*/90 * * * *"), "a step of 90 is longer than the field minute");
    assert_eq!(why("*/0 * * * *"), "Component error: Step cannot be zero.");
    for never in ["0 0 30 2 *", "0 0 31 4,6 *", "0 0 29 2 +MON#1", "0 0 1 * +TUE#2"] {
        assert_eq!(why(never), "there is no such day in any year");
    }
    let long = format!("{} * * * *", "1,".repeat(130));
    assert_eq!(refused(&long, "UTC"), "cron expression is 268 bytes long, the limit is 256");
}

#[test]
fn zones_are_those_of_the_database() {
    for unknown in
        ["", "Mars/Phobos", "Etc/Unknown", "CET-1CEST,M3.5.0,M10.5.0/3", "../../etc/passwd", "+02:00"]
    {
        assert_eq!(refused("* * * * *", unknown), format!("unknown time zone {unknown:?}"));
    }
    let known = Cadence::cron(" * * * * * ", "europe/zurich").unwrap();
    let written = Cadence::Cron { cron: "* * * * *".to_owned(), zone: "Europe/Zurich".to_owned() };
    assert_eq!(known, written);
}

#[test]
fn a_stored_expression_that_is_not_understood_any_more_is_an_error() {
    let stored = |cron: &str, zone: &str| Cadence::Cron { cron: cron.to_owned(), zone: zone.to_owned() };
    let (t, never) = (Timestamp::EPOCH, stored("0 0 30 2 *", "UTC")); // which nobody can have put
    assert_eq!((never.next_after(t).unwrap(), never.latest(t, Timestamp::MAX, 1).unwrap()), (None, vec![]));
    for (cron, zone) in [("", "UTC"), ("* * * * *", "Mars/Phobos")] {
        let cadence = stored(cron, zone);
        assert_eq!(cadence.next_after(t).unwrap_err().kind(), ErrorKind::Invalid);
        assert_eq!(cadence.latest(t, Timestamp::MAX, 1).unwrap_err().kind(), ErrorKind::Invalid);
        assert_eq!(cadence.count(t, Timestamp::MAX, 1).unwrap_err().kind(), ErrorKind::Invalid);
    }
}

#[test]
fn a_fixed_time_that_the_clock_skips_comes_at_the_end_of_the_gap() {
    // Zurich skips 02:00 to 03:00.
    let zurich = |expression, n| next(expression, "Europe/Zurich", "2026-03-28T00:00:00Z", n);
    assert_eq!(
        zurich("30 2 * * *", 3),
        ["2026-03-28 02:30:00+01:00", "2026-03-29 03:00:00+02:00", "2026-03-30 02:30:00+02:00"]
    );
    // Several in the gap are one, together with one at its end.
    assert_eq!(zurich("0,30 2,3 29 3 *", 2), ["2026-03-29 03:00:00+02:00", "2026-03-29 03:30:00+02:00"]);
    // Lord Howe skips only 02:00 to 02:30.
    let lord_howe = next("15,45 2 4 10 *", "Australia/Lord_Howe", "2026-10-01T00:00:00Z", 2);
    assert_eq!(lord_howe, ["2026-10-04 02:30:00+11:00", "2026-10-04 02:45:00+11:00"]);
    // Nuuk skips 23:00 to 24:00: the gap of a Saturday ends on Sunday.
    let nuuk = next("30 23 * * SAT", "America/Nuuk", "2026-03-28T12:00:00Z", 2);
    assert_eq!(nuuk, ["2026-03-29 00:00:00-01:00", "2026-04-04 23:30:00-01:00"]);
    // Apia skipped the whole 30 December 2011.
    let apia = next("0 9 * * *", "Pacific/Apia", "2011-12-29T12:00:00Z", 3);
    assert_eq!(apia, ["2011-12-29 09:00:00-10:00", "2011-12-31 00:00:00+14:00", "2011-12-31 09:00:00+14:00"]);
}

#[test]
fn a_fixed_time_that_the_clock_shows_twice_comes_the_first_time() {
    let new_york = |expression, n| next(expression, "America/New_York", "2026-10-31T12:00:00Z", n);
    assert_eq!(new_york("30 1 * * *", 2), ["2026-11-01 01:30:00-04:00", "2026-11-02 01:30:00-05:00"]);
    assert_eq!(
        new_york("30 0-2 1 11 *", 3),
        ["2026-11-01 00:30:00-04:00", "2026-11-01 01:30:00-04:00", "2026-11-01 02:30:00-05:00"]
    );
    // Asked within the second time, it is not there.
    let second = next("30 1 * * *", "America/New_York", "2026-11-01T06:10:00Z", 1);
    assert_eq!(second, ["2026-11-02 01:30:00-05:00"]);
    // Lord Howe shows 01:30 to 02:00 twice.
    let lord_howe = next("15,45 1 5 4 *", "Australia/Lord_Howe", "2026-04-04T00:00:00Z", 3);
    assert_eq!(lord_howe[..2], ["2026-04-05 01:15:00+11:00", "2026-04-05 01:45:00+11:00"]);
    assert_eq!(lord_howe[2], "2027-04-05 01:15:00+10:30");
}

#[test]
fn a_wildcard_follows_the_clock_through_gap_and_fold() {
    let zurich = |expression, after, n| next(expression, "Europe/Zurich", after, n);
    // The elapsed time between two is always the same.
    assert_eq!(
        zurich("*/30 * * * *", "2026-03-29T00:00:00Z", 3),
        ["2026-03-29 01:30:00+01:00", "2026-03-29 03:00:00+02:00", "2026-03-29 03:30:00+02:00"]
    );
    assert_eq!(
        zurich("0 * * * *", "2026-10-24T23:30:00Z", 3),
        ["2026-10-25 02:00:00+02:00", "2026-10-25 02:00:00+01:00", "2026-10-25 03:00:00+01:00"]
    );
    // A wildcard in an hour that is fixed: not at all in the gap, in both hours of the fold.
    assert_eq!(
        zurich("*/30 2 * * *", "2026-03-28T23:00:00Z", 2),
        ["2026-03-30 02:00:00+02:00", "2026-03-30 02:30:00+02:00"]
    );
    assert_eq!(
        zurich("*/30 2 25 10 *", "2026-10-24T12:00:00Z", 4),
        [
            "2026-10-25 02:00:00+02:00",
            "2026-10-25 02:30:00+02:00",
            "2026-10-25 02:00:00+01:00",
            "2026-10-25 02:30:00+01:00"
        ]
    );
    // Lord Howe is put forward and back by half an hour, so the minute of an hourly job is missing or there twice.
    let lord_howe = |after, n| next("15 * * * *", "Australia/Lord_Howe", after, n);
    assert_eq!(
        lord_howe("2026-10-03T15:00:00Z", 2),
        ["2026-10-04 03:15:00+11:00", "2026-10-04 04:15:00+11:00"]
    );
    let apia = next("0 */12 * * *", "Pacific/Apia", "2011-12-29T12:00:00Z", 3);
    assert_eq!(apia, ["2011-12-29 12:00:00-10:00", "2011-12-31 00:00:00+14:00", "2011-12-31 12:00:00+14:00"]);
    let kolkata = next("0 0 * * *", "Asia/Kolkata", "2026-03-29T00:00:00Z", 1);
    assert_eq!(kolkata, ["2026-03-30 00:00:00+05:30"]);
}

#[test]
fn e1_there_is_none_after_the_last_time_of_an_alarm() {
    // That is 2190-01-02 23:59:59.999 in UTC, so in Auckland it is the day after.
    let utc = next("0 0 1 * *", "UTC", "2189-11-15T00:00:00Z", 9);
    assert_eq!(utc, ["2189-12-01 00:00:00+00:00", "2190-01-01 00:00:00+00:00"]);
    let auckland = next("0 12 * * *", "Pacific/Auckland", "2190-01-01T22:59:59Z", 9);
    assert_eq!(auckland, ["2190-01-02 12:00:00+13:00", "2190-01-03 12:00:00+13:00"]);
    let second = next("* * * * * *", "UTC", "2190-01-02T23:59:58Z", 9);
    assert_eq!(second, ["2190-01-02 23:59:59+00:00"]);
    // There is such a day, but each of them is in the gap.
    assert_eq!(next("* 2 25-31 3 +SUN", "Europe/Zurich", "2026-01-01T00:00:00Z", 9), [""; 0]);
    let cadence = Cadence::cron("* * * * *", "UTC").unwrap();
    assert_eq!(cadence.next_after(Timestamp::MAX).unwrap(), None);
}

#[test]
fn the_latest_of_many_years_are_found_from_the_end() {
    let cadence = Cadence::cron("* * * * * *", "Europe/Zurich").unwrap();
    let until = at("2189-01-01T00:00:00.999Z");
    let latest = cadence.latest(Timestamp::EPOCH, until, 2).unwrap();
    assert_eq!(latest, [at("2188-12-31T23:59:59Z"), at("2189-01-01T00:00:00Z")]);
    assert_eq!(cadence.count(Timestamp::EPOCH, until, 50).unwrap(), 50);
}
