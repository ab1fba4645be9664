//! [`Cadence::Every`] and what both kinds have in common; the clocks of time zones are in `cron/tests.rs`.

use super::*;
use proptest::prelude::*;

const fn at(ms: i64) -> Timestamp {
    Timestamp::from_millis(ms)
}

fn every(every: i64, anchor: i64) -> Cadence {
    Cadence::Every { every, anchor }
}

#[test]
fn the_anchor_is_the_first_occurrence_and_the_next_one_is_never_the_same_moment() {
    let cadence = every(1_000, 5_300);
    let next = |t| cadence.next_after(at(t)).unwrap();
    assert_eq!(next(0), Some(at(5_300)));
    assert_eq!(next(5_299), Some(at(5_300)));
    assert_eq!(next(5_300), Some(at(6_300)));
    assert_eq!(next(1_000_000), Some(at(1_000_300)));
}

#[test]
fn e1_every_occurrence_is_a_time_that_an_alarm_can_have() {
    assert_eq!(every(10, -25).next_after(at(i64::MIN)).unwrap(), Some(at(5)));
    assert_eq!(every(10, -25).latest(at(i64::MIN), at(5), 9).unwrap(), [at(5)]);
    assert_eq!(every(10, 0).count(at(i64::MIN), at(20), 9).unwrap(), 2);
    let last = every(1, 0);
    assert_eq!(last.next_after(at(ALARM_MAX_MS - 1)).unwrap(), Some(at(ALARM_MAX_MS)));
    assert_eq!(last.next_after(at(ALARM_MAX_MS)).unwrap(), None);
    assert_eq!(last.latest(at(0), Timestamp::MAX, 1).unwrap(), [at(ALARM_MAX_MS)]);
    assert_eq!(last.count(at(ALARM_MAX_MS - 5), Timestamp::MAX, 99).unwrap(), 5);
    assert_eq!(every(1, i64::MAX).next_after(at(0)).unwrap(), None);
}

#[test]
fn the_latest_are_given_oldest_first_and_counted_up_to_the_bound() {
    let cadence = every(10, 100);
    assert_eq!(cadence.latest(at(100), at(140), 2).unwrap(), [at(130), at(140)]);
    assert_eq!(cadence.latest(at(100), at(140), 9).unwrap(), [at(110), at(120), at(130), at(140)]);
    assert_eq!(cadence.latest(at(140), at(100), 9).unwrap(), []);
    assert_eq!(cadence.latest(at(0), at(99), 9).unwrap(), []);
    assert_eq!(cadence.latest(at(0), at(140), 0).unwrap(), []);
    assert_eq!(cadence.count(at(100), at(140), 9).unwrap(), 4);
    assert_eq!(cadence.count(at(100), at(140), 3).unwrap(), 3);
    assert_eq!(cadence.count(at(140), at(100), 3).unwrap(), 0);
}

#[test]
fn the_oldest_of_the_latest_is_found_without_the_others() {
    let cadence = every(10, 100);
    assert_eq!(cadence.oldest_of_latest(at(100), at(140), 2).unwrap(), Some(at(130)));
    assert_eq!(cadence.oldest_of_latest(at(100), at(140), u64::MAX).unwrap(), Some(at(110)));
    assert_eq!(cadence.oldest_of_latest(at(100), at(140), 0).unwrap(), None);
    assert_eq!(cadence.oldest_of_latest(at(140), at(100), 9).unwrap(), None);
    let years = every(1, 0).oldest_of_latest(at(i64::MIN), Timestamp::MAX, u64::MAX);
    assert_eq!(years.unwrap(), Some(at(1)));
}

#[test]
fn an_interval_is_at_least_a_millisecond() {
    let made = |d| Cadence::every(d, at(7)).map_err(|e| (e.kind(), e.to_string()));
    assert_eq!(made(Duration::from_millis(1)), Ok(every(1, 7)));
    let refused = |message: &str| Err((ErrorKind::Invalid, message.to_owned()));
    assert_eq!(made(Duration::from_micros(1_999)), refused("every 1.999ms: it must be whole milliseconds"));
    assert_eq!(made(Duration::from_micros(999)), refused("every 999µs: it must be whole milliseconds"));
    assert_eq!(made(Duration::ZERO), refused("every 0 ms: it must be at least 1 ms"));
    assert_eq!(made(Duration::from_secs(u64::MAX)), refused("every 18446744073709551615 s is too long"));
}

#[test]
fn a_stored_interval_that_makes_no_sense_is_an_error() {
    for ms in [0, -1, i64::MIN] {
        let message = format!("every {ms} ms: it must be at least 1 ms");
        assert_eq!(every(ms, 0).next_after(at(0)).unwrap_err().to_string(), message);
        assert_eq!(every(ms, 0).latest(at(0), at(9), 1).unwrap_err().kind(), ErrorKind::Invalid);
        assert_eq!(every(ms, 0).count(at(0), at(9), 1).unwrap_err().kind(), ErrorKind::Invalid);
    }
}

#[test]
fn the_stored_form_is_stable() {
    let cron = Cadence::Cron { cron: "0 9 * * MON".to_owned(), zone: "Europe/Zurich".to_owned() };
    let forms = [
        (every(60_000, -5), r#"{"every":{"ms":60000,"anchor":-5}}"#),
        (cron, r#"{"cron":{"at":"0 9 * * MON","zone":"Europe/Zurich"}}"#),
    ];
    for (cadence, json) in forms {
        assert_eq!(serde_json::to_string(&cadence).unwrap(), json);
        assert_eq!(serde_json::from_str::<Cadence>(json).unwrap(), cadence);
    }
}

#[cfg(not(feature = "cron"))]
#[test]
fn cron_is_kept_without_the_feature_but_not_computed() {
    let json = r#"{"cron":{"at":"0 9 * * *","zone":"UTC"}}"#;
    let cadence: Cadence = serde_json::from_str(json).unwrap();
    assert_eq!(serde_json::to_string(&cadence).unwrap(), json);
    let errors = [
        cadence.next_after(at(0)).unwrap_err(),
        cadence.latest(at(0), at(9), 1).unwrap_err(),
        cadence.count(at(0), at(9), 1).unwrap_err(),
    ];
    for error in errors {
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert_eq!(
            error.to_string(),
            "the cron expression \"0 9 * * *\" cannot be computed: built without the feature cron"
        );
    }
}

/// Few values that are extreme, and many that are near each other.
fn ms() -> impl Strategy<Value = i64> {
    prop_oneof![
        any::<i64>(),
        -50_i64..5_000,
        Just(i64::MIN),
        Just(i64::MAX),
        (ALARM_MAX_MS - 50)..=ALARM_MAX_MS
    ]
}

proptest! {
    #[test]
    fn no_interval_overflows_and_the_next_one_is_the_first(ms in ms(), anchor in ms(), t in ms(), u in ms()) {
        let cadence = every(ms, anchor);
        if ms < 1 {
            prop_assert_eq!(cadence.next_after(at(t)).unwrap_err().kind(), ErrorKind::Invalid);
            return Ok(());
        }
        if let Some(next) = cadence.next_after(at(t)).unwrap() {
            prop_assert!(next > at(t) && next.check_alarm().is_ok());
            let since = i128::from(next.as_millis()) - i128::from(anchor);
            prop_assert!(since >= 0 && since % i128::from(ms) == 0);
            // None between `t` and it: the one before is not after `t`, or is before the anchor or the epoch.
            let before = since - i128::from(ms);
            prop_assert!(before < 0 || before + i128::from(anchor) <= i128::from(t.max(0)));
        }
        let latest = cadence.latest(at(t), at(u), 3).unwrap();
        let mut walked = Vec::new();
        let mut from = latest.first().map_or(at(u).max(at(t)), |first| *first - Duration::from_millis(1));
        while let Some(next) = cadence.next_after(from).unwrap().filter(|next| *next <= at(u)) {
            walked.push(next);
            from = next;
        }
        prop_assert_eq!(&walked, &latest);
        prop_assert_eq!(cadence.count(at(t), at(u), 3).unwrap(), latest.len() as u64);
        prop_assert_eq!(cadence.oldest_of_latest(at(t), at(u), 3).unwrap(), latest.first().copied());
    }
}
