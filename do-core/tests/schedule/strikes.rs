//! Fixed scenarios that are struck at every step, each way.

use super::{
    case::{Behaviour, Case, End, Fault, How, Missed, Op, STRIKES, Step, When},
    flaw, kind, play,
};
use do_core::kit::Failing;

fn put(name: u8, when: When, behaviour: u8) -> Step {
    Step::Put(name, when, behaviour, How::Awaited)
}

fn struck_everywhere(case: &Case) {
    let play = |strike| play::play::<{ flaw::NONE }>(case, strike, false);
    let undisturbed = play(None);
    assert_eq!(undisturbed.complaint, None);
    assert!(undisturbed.steps > 10, "{}", undisturbed.steps);
    for step in 0..=undisturbed.steps {
        for strike in STRIKES {
            let complaint = play(Some((step, strike))).complaint;
            assert_eq!(complaint, None, "{strike:?} at step {step}, {:?}", complaint.as_deref().map(kind));
        }
    }
}

/// Well, failing once, and failing for the last time, with an await in the middle.
fn behaviours() -> [Behaviour; 3] {
    let await_first = |bad, end| Behaviour { script: vec![Step::Sleep(5)], bad, end, ..Behaviour::well() };
    [await_first(0, End::Fail), await_first(1, End::Panic), await_first(9, End::Fail)]
}

#[test]
fn jobs_that_succeed_fail_and_die_survive_a_strike_at_any_step() {
    let begin = vec![
        put(0, When::In(1_000), 0),
        put(1, When::In(1_000), 1),
        put(2, When::In(1_500), 2),
        Step::Set(0, When::In(1_500), How::Awaited),
    ];
    struck_everywhere(&Case::fixed(
        behaviours(),
        vec![Op::Call(begin), Op::Advance(9_000), Op::Call(vec![Step::Replay])],
    ));
}

#[test]
fn jobs_that_plan_others_and_themselves_survive_a_strike_at_any_step() {
    let mut behaviours = behaviours();
    behaviours[0].script = vec![
        Step::Set(0, When::In(700), How::Dropped),
        Step::Sleep(0),
        put(1, When::Ago(0), 1),
        Step::Cancel(2),
    ];
    behaviours[1].script.push(put(1, When::In(900), 1));
    let begin = vec![put(0, When::In(100), 0), put(2, When::In(50), 2)];
    struck_everywhere(&Case::fixed(
        behaviours,
        vec![Op::Call(begin), Op::Advance(4_000), Op::Call(vec![Step::Delete(0)])],
    ));
}

#[test]
fn what_the_constructor_declares_survives_a_strike_at_any_step() {
    let mut behaviours = behaviours();
    behaviours[1].missed = Missed::CatchUp(2);
    let mut case = Case::fixed(
        behaviours,
        vec![Op::Call(Vec::new()), Op::Advance(16_000), Op::Call(vec![Step::DeleteAll]), Op::Advance(16_000)],
    );
    case.declared = vec![(0, When::Every(7_000), 1), (1, When::In(500), 0)];
    struck_everywhere(&case);
}

#[test]
fn failing_alarms_and_commits_survive_a_strike_at_any_step() {
    let fail = |what| Step::Fail(Fault::Kit(what));
    let begin = vec![
        fail(Failing::SetAlarm),
        put(0, When::In(100), 1),
        Step::Sleep(10),
        fail(Failing::Commit),
        put(1, When::In(50), 0),
    ];
    let mut behaviours = behaviours();
    behaviours[1].script.push(fail(Failing::SetAlarm));
    struck_everywhere(&Case::fixed(
        behaviours,
        vec![Op::Call(begin), Op::Advance(6_000), Op::Call(Vec::new())],
    ));
}

#[test]
fn a_run_survives_the_failure_of_each_of_its_statements() {
    let begin = vec![
        put(0, When::In(1_000), 1),
        put(2, When::In(1_000), 2),
        Step::Set(1, When::In(1_000), How::Awaited),
    ];
    for n in 0..40 {
        let ops =
            vec![Op::Call(begin.clone()), Op::Advance(999), Op::Fail(Fault::Sql(n)), Op::Advance(9_000)];
        let played = play::play::<{ flaw::NONE }>(&Case::fixed(behaviours(), ops), None, false);
        assert_eq!(played.complaint, None, "statement {n}");
    }
}
