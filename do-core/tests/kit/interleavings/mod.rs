//! Random interleavings: requests, sockets, alarms, time and faults in any order, held to rules that need no knowledge
//! of what the engine does inside.
//!
//! What objects did is told by a [witness] outside of the simulated process; what is true in the end is what their
//! tables hold. The same rules are held against objects that are wrong on purpose, to see that they can fail.

mod check;
mod object;
mod ops;
mod run;
mod slot;
mod witness;

use object::flaw;
use ops::{Case, case};
use proptest::{
    prelude::*,
    strategy::ValueTree as _,
    test_runner::{Config, TestRunner},
};

/// So many cases, unless the variable `PROPTEST_CASES` says otherwise.
fn cases(default: u32) -> Config {
    let config = Config::default();
    let cases = if std::env::var_os("PROPTEST_CASES").is_some() { config.cases } else { default };
    Config { cases, failure_persistence: None, max_shrink_iters: 4_000, ..config }
}

proptest! {
    #![proptest_config(cases(100))]

    #[test]
    fn whatever_happens_the_promises_hold(case in case()) {
        let record = run::play::<{ flaw::NONE }>(&case);
        let verdict = check::check(&case, &record);
        prop_assert!(verdict.is_ok(), "{}\n{:#?}\n{}", verdict.unwrap_err(), record.seen, record.history);
    }
}

proptest! {
    #![proptest_config(cases(16))]

    #[test]
    fn whatever_happens_it_happens_again_with_the_same_seed(case in case()) {
        let (one, two) = (run::play::<{ flaw::NONE }>(&case), run::play::<{ flaw::NONE }>(&case));
        prop_assert_eq!(&one.history, &two.history);
        prop_assert_eq!(format!("{one:?}"), format!("{two:?}"));
    }
}

/// Objects with that flaw break that rule in one of so many cases.
///
/// # Panics
/// They do not.
fn is_caught<const FLAW: u8>(rule: char) {
    let mut runner = TestRunner::deterministic();
    let cases = case();
    let caught = (0..300).any(|_| {
        let case: Case = cases.new_tree(&mut runner).unwrap().current();
        check::check(&case, &run::play::<FLAW>(&case)).is_err_and(|complaint| complaint.starts_with(rule))
    });
    assert!(caught, "nothing was said about rule {rule}");
}

#[test]
fn an_object_that_acknowledges_before_it_writes_is_caught() {
    is_caught::<{ flaw::ACK_FIRST }>('1');
}

#[test]
fn an_object_that_answers_from_a_memory_that_outlives_it_is_caught() {
    is_caught::<{ flaw::FROM_MEMORY }>('3');
}

#[test]
fn an_object_that_tears_what_belongs_together_is_caught() {
    is_caught::<{ flaw::TORN }>('2');
}

#[test]
fn an_object_that_sends_before_it_commits_is_caught() {
    is_caught::<{ flaw::NO_GATE }>('3');
}

#[test]
fn an_object_whose_alarm_is_early_is_caught() {
    is_caught::<{ flaw::EARLY_ALARM }>('6');
}

#[test]
fn an_object_that_handles_messages_twice_is_caught() {
    is_caught::<{ flaw::TWICE }>('2');
}

#[test]
fn an_object_that_is_not_told_of_an_end_is_caught() {
    is_caught::<{ flaw::DEAF }>('5');
}

#[test]
fn an_object_that_handles_messages_out_of_order_is_caught() {
    is_caught::<{ flaw::DISORDER }>('4');
}

#[test]
fn an_object_whose_deleted_alarm_runs_is_caught() {
    is_caught::<{ flaw::UNDEAD_ALARM }>('6');
}

#[test]
fn zz_stats() {
    let mut runner = TestRunner::deterministic();
    let cases = case();
    let mut n = std::collections::BTreeMap::<String, usize>::new();
    for _ in 0..300 {
        let case: Case = cases.new_tree(&mut runner).unwrap().current();
        let r = run::play::<{ flaw::NONE }>(&case);
        for s in &r.seen {
            let text = format!("{:?}", s.what);
            let text: String = text.chars().filter(|c| !c.is_ascii_digit()).take(16).collect();
            *n.entry(text).or_default() += 1;
        }
        for p in &r.peers {
            *n.entry(format!("peer conn={} left={} end={} van={}", p.connection.is_some(), p.left, p.saw_end, p.vanished)).or_default() += 1;
            *n.entry("received".into()).or_default() += p.received.len();
            *n.entry("sent".into()).or_default() += p.sent as usize;
        }
        for (_, a) in r.calls.values() { let t = format!("{:?}", a[0]); let t: String = t.chars().filter(|c| !c.is_ascii_digit()).collect(); *n.entry(t.chars().take(130).collect()).or_default() += 1; }
        for l in ["is reset", "is not constructed", "the process is", "the power", "another prog", "leaves memory", "is constructed"] {
            *n.entry(format!("H {l}")).or_default() += r.history.matches(l).count();
        }
        if let Err(e) = check::check(&case, &r) { println!("{e}"); }
    }
    println!("{n:#?}");
}
