//! The promises of [`do_core::Schedule`] over random operations and faults: rows pending, then the raw alarm is armed at
//! or before the soonest; nothing is lost, doubled, early or forgotten.
//!
//! Each turn of the object is looked at where it ends, so that what is checked is what commits. The same checks are held
//! against schedules that are broken on purpose, to see that they can fail.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // tests fail by panics

mod case;
mod flaw;
mod hostile;
mod object;
mod play;
mod regression;
mod rows;
mod state;
mod strikes;
mod watch;

use case::Case;
use std::{env, thread};

const CASES: u64 = 10_000;
const CASES_LONG: u64 = 1_000_000;

/// So many sequences, unless the variable `PROPTEST_CASES` says otherwise; many more in a long run.
fn cases() -> u64 {
    if env::var_os("DO_LONG").is_some() {
        return CASES_LONG;
    }
    env::var("PROPTEST_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(CASES)
}

/// What kind of complaint it is.
fn kind(complaint: &str) -> &str {
    complaint.split(':').next().unwrap_or_default()
}

/// The shortest sequence like it with the same kind of complaint, the complaint, and all that happened.
fn report<const FLAW: u8>(case: Case, complaint: &str) -> String {
    let fails =
        |case: &Case| play::complaint::<FLAW>(case).is_some_and(|found| kind(&found) == kind(complaint));
    let case = case.shrunk(400, fails); // some seconds
    let (complaint, history) = play::told::<FLAW>(&case);
    format!("{}\n{case:#?}\n{history}", complaint.unwrap_or_default())
}

fn try_seed(seed: u64) {
    let case = Case::random(seed);
    if let Some(complaint) = play::complaint::<{ flaw::NONE }>(&case) {
        let shorter = report::<{ flaw::NONE }>(case, &complaint);
        panic!("seed {seed}: {complaint}\nDO_KIT_SEED={seed} runs it alone. Made shorter:\n{shorter}");
    }
}

#[test]
fn whatever_happens_what_is_pending_is_armed_and_nothing_is_lost() {
    if let Some(seed) = env::var("DO_KIT_SEED").ok().and_then(|text| text.parse().ok()) {
        return try_seed(seed);
    }
    let cases = cases();
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for first in 0..threads as u64 {
            scope.spawn(move || (first..cases).step_by(threads).for_each(try_seed));
        }
    });
}

#[test]
fn the_same_seed_gives_the_same_run() {
    for seed in 0..40 {
        let case = Case::random(seed);
        assert_eq!(play::told::<{ flaw::NONE }>(&case), play::told::<{ flaw::NONE }>(&case), "seed {seed}");
    }
}

/// Complaints of one of these kinds come within so many sequences.
fn is_caught<const FLAW: u8>(within: u64, kinds: &[&str]) {
    let found: Vec<_> =
        (0..within).filter_map(|seed| play::complaint::<FLAW>(&Case::random(seed))).take(1).collect();
    let [complaint] = &found[..] else { panic!("not within {within} sequences") };
    assert!(kinds.contains(&kind(complaint)), "{complaint}");
}

#[test]
fn rearming_that_is_skipped_when_a_job_failed_is_caught() {
    is_caught::<{ flaw::NO_REARM_AFTER_FAILURE }>(100, &["armed"]);
}

#[test]
fn rearming_that_is_skipped_in_every_run_is_caught() {
    is_caught::<{ flaw::NO_REARM_IN_RUN }>(100, &["armed"]);
}

#[test]
fn a_handler_that_returns_early_after_an_error_is_caught() {
    is_caught::<{ flaw::EARLY_RETURN }>(100, &["armed"]);
}

#[test]
fn rows_that_are_doubled_on_every_wake_are_caught() {
    is_caught::<{ flaw::DOUBLED }>(100, &["doubled"]);
}

#[test]
fn jobs_that_are_lost_after_the_last_attempt_are_caught() {
    is_caught::<{ flaw::LOST }>(100, &["lost"]);
}

#[test]
fn alarms_in_the_past_that_never_fire_are_caught() {
    is_caught::<{ flaw::PAST_IS_NEVER }>(100, &["armed"]);
}
