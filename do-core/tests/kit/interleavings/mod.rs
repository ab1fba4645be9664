//! Random interleavings: requests, sockets, alarms, time and faults in any order, held to rules that need no knowledge
//! of what the engine does inside.
//!
//! What objects did is told by a [witness] outside of the simulated process; what is true in the end is what their
//! tables hold. The same rules are held against objects that are wrong on purpose, to see that they can fail.

mod check;
mod flaw;
mod object;
mod ops;
mod run;
mod slot;
mod witness;

use do_core::kit::Failing;
use ops::{Case, Fault, Op, Step, Whom, case};
use proptest::{prelude::*, test_runner::Config};

/// So many cases, unless the variable `PROPTEST_CASES` says otherwise.
fn cases(default: u32) -> Config {
    let config = Config::default();
    let cases = if std::env::var_os("PROPTEST_CASES").is_some() { config.cases } else { default };
    Config { cases, failure_persistence: None, max_shrink_iters: 4_000, ..config }
}

proptest! {
    #![proptest_config(cases(64))]

    #[test]
    fn whatever_happens_the_promises_hold(case in case()) {
        let record = run::play::<{ flaw::NONE }>(&case);
        let verdict = check::check(&case, &record);
        prop_assert!(verdict.is_ok(), "{}\n{:#?}\n{}", verdict.unwrap_err(), record.seen, record.history);
    }
}

proptest! {
    #![proptest_config(cases(12))]

    #[test]
    fn whatever_happens_it_happens_again_with_the_same_seed(case in case()) {
        let (one, two) = (run::play::<{ flaw::NONE }>(&case), run::play::<{ flaw::NONE }>(&case));
        prop_assert_eq!(&one.history, &two.history);
        prop_assert_eq!(format!("{one:?}"), format!("{two:?}"));
    }
}

/// What is said of a run of those operations by objects with that flaw. Sound ones keep all rules in it.
fn complaint<const FLAW: u8>(ops: impl IntoIterator<Item = Op>) -> Option<String> {
    let case = Case { seed: 1, ops: ops.into_iter().collect() };
    assert_eq!(check::check(&case, &run::play::<{ flaw::NONE }>(&case)), Ok(()));
    check::check(&case, &run::play::<FLAW>(&case)).err()
}

/// Objects with that flaw break that rule.
fn is_caught<const FLAW: u8>(rule: char, ops: impl IntoIterator<Item = Op>) {
    let complaint = complaint::<FLAW>(ops).unwrap();
    assert!(complaint.starts_with(rule), "expected a complaint about rule {rule}: {complaint}");
}

fn call(script: &[Step]) -> Op {
    Op::Call(0, script.to_vec())
}

const CONNECT: Op = Op::Connect(0, Vec::new());

/// Whatever can happen now does.
const SETTLE: Op = Op::Advance(0);

#[test]
fn an_object_that_acknowledges_before_it_writes_is_caught() {
    let crash = Op::Strike(Fault::Crash);
    is_caught::<{ flaw::ACK_FIRST }>('1', [call(&[Step::Write(1)]), SETTLE, crash]);
}

#[test]
fn an_object_that_answers_from_a_memory_that_outlives_it_is_caught() {
    let fail = Op::Fail(0, Failing::Commit);
    let ops = [call(&[]), SETTLE, fail, call(&[Step::Write(1)]), SETTLE, call(&[Step::Read])];
    is_caught::<{ flaw::FROM_MEMORY }>('3', ops);
}

#[test]
fn an_object_that_tears_what_belongs_together_is_caught() {
    // Struck between its two rows, whenever that is.
    let ops = |steps| {
        let fail = Op::Fail(0, Failing::Commit);
        [call(&[]), SETTLE, call(&[Step::Write(2)]), Op::Yield(steps), fail]
    };
    let all: Vec<_> = (0..8).filter_map(|steps| complaint::<{ flaw::TORN }>(ops(steps))).collect();
    assert!(all.iter().any(|complaint| complaint.starts_with('2')), "{all:?}");
}

#[test]
fn an_object_that_sends_before_it_commits_through_another_is_caught() {
    let (other, fail) = (Op::Connect(1, Vec::new()), Op::Fail(0, Failing::Commit));
    let ops = [CONNECT, other, SETTLE, fail, call(&[Step::Write(1), Step::Send(Whom::All)]), SETTLE];
    is_caught::<{ flaw::NO_GATE }>('3', ops);
}

#[test]
fn an_object_that_handles_messages_twice_is_caught() {
    is_caught::<{ flaw::TWICE }>('2', [CONNECT, SETTLE, Op::Message(0, Vec::new())]);
}

#[test]
fn an_object_that_handles_messages_out_of_order_is_caught() {
    let message = || Op::Message(0, Vec::new());
    is_caught::<{ flaw::DISORDER }>('4', [CONNECT, SETTLE, message(), message()]);
}

#[test]
fn an_object_that_is_not_told_of_an_end_is_caught() {
    is_caught::<{ flaw::DEAF }>('5', [CONNECT, SETTLE, Op::Lose(0)]);
}

#[test]
fn an_object_whose_alarm_is_early_is_caught() {
    is_caught::<{ flaw::EARLY_ALARM }>('6', [call(&[Step::SetAlarm(1_000, 0, Vec::new())])]);
}

#[test]
fn an_object_whose_deleted_alarm_runs_is_caught() {
    let set = Step::SetAlarm(1_000, 0, Vec::new());
    is_caught::<{ flaw::UNDEAD_ALARM }>('6', [call(&[set, Step::DeleteAlarm])]);
}
