//! Faults that the random runs have found, each in its shortest form.

use super::{
    case::{Behaviour, Case, End, Fault, How, Op, Step, Strike, When},
    flaw, play,
};
use do_core::{
    Plan, Schedule,
    kit::{Failing, Kit},
    prelude::*,
};

fn is_sound(case: &Case) {
    let (complaint, history) = play::told::<{ flaw::NONE }>(case);
    assert_eq!(complaint, None, "{history}");
}

fn well() -> [Behaviour; 3] {
    [Behaviour::well(), Behaviour::well(), Behaviour::well()]
}

#[test]
fn what_the_constructor_declares_is_armed_with_the_first_event_and_not_behind_it() {
    let mut case = Case::fixed(well(), vec![Op::Call(Vec::new()), Op::Advance(10_000)]);
    case.declared = vec![(0, When::In(5_000), 0)];
    is_sound(&case);
}

#[test]
fn a_run_for_missed_ticks_runs_the_last_of_them_once() {
    let mut behaviours = well();
    behaviours[1] = Behaviour { bad: 1, end: End::Hang, ..Behaviour::well() };
    let begin = vec![
        Step::Put(0, When::Every(2_000), 0, How::Awaited),
        Step::Put(1, When::In(1_999), 1, How::Awaited), // in front of it, for three seconds
    ];
    is_sound(&Case::fixed(behaviours, vec![Op::Call(begin), Op::Advance(20_000)]));
}

#[test]
fn an_alarm_whose_set_failed_unseen_is_set_again() {
    let begin = vec![
        Step::Fail(Fault::Kit(Failing::SetAlarm)),
        Step::Put(0, When::In(100), 0, How::Dropped),
        Step::Fail(Fault::Kit(Failing::SetAlarm)),
        Step::Set(0, When::In(50), How::Dropped),
    ];
    is_sound(&Case::fixed(
        well(),
        vec![Op::Call(Vec::new()), Op::Advance(1), Op::Call(begin), Op::Advance(3_000)],
    ));
}

#[test]
fn another_job_that_takes_the_place_of_a_failing_one_is_not_run_early_as_its_retry() {
    let mut behaviours = well();
    behaviours[1] = Behaviour {
        script: vec![Step::Put(0, When::In(60_000), 0, How::Awaited), Step::Sleep(5)],
        bad: 1,
        ..Behaviour::well()
    };
    let begin = vec![Step::Put(0, When::In(100), 1, How::Awaited)];
    is_sound(&Case::fixed(behaviours, vec![Op::Call(begin), Op::Advance(10_000), Op::Strike(Strike::Crash)]));
}

#[test]
fn a_run_that_is_dropped_while_the_storage_fails_is_armed_again() {
    let mut behaviours = well();
    behaviours[0].script = vec![Step::Fail(Fault::Sql(0)), Step::Sleep(4_000)];
    let begin = vec![Step::Put(0, When::In(100), 0, How::Awaited)];
    let mut case = Case::fixed(behaviours, vec![Op::Call(begin), Op::Advance(1_000)]);
    case.cut = Some(10);
    is_sound(&case);
}

#[test]
fn jobs_that_cut_off_run_after_run_do_not_use_up_the_alarm() {
    let cut_off = || Behaviour { script: vec![Step::Fail(Fault::Kit(Failing::Commit))], ..Behaviour::well() };
    let set = |slot| Step::Set(slot, When::In(100), How::Awaited);
    let ops = vec![Op::Call(vec![set(0), set(1)]), Op::Advance(3_600_000)];
    is_sound(&Case::fixed([cut_off(), cut_off(), cut_off()], ops));
}

struct Busy<S: ObjectState> {
    state: S,
    schedule: Schedule<S>,
}

impl<S: ObjectState> DurableObject<S> for Busy<S> {
    fn new(state: S) -> Result<Self> {
        Ok(Self { schedule: Schedule::open(&state)?, state })
    }

    async fn fetch(&self, _: Request) -> Result<Response> {
        for name in ["a", "b", "c"] {
            self.schedule.put(name, Plan::at(self.state.now())).await?;
        }
        Ok(reply::json(&self.schedule.stats().alarms_set)?)
    }

    async fn alarm(&self, info: AlarmInfo) -> Result<()> {
        self.schedule.run_due(info, async |_| Ok(())).await
    }
}

#[test]
fn what_is_due_now_sets_the_alarm_once_and_does_not_move_it_on() {
    let kit = Kit::builder().object::<Busy<_>>("BUSY").start().unwrap();
    kit.run(async {
        let busy = kit.namespace("BUSY").unwrap().named("a").unwrap();
        let set: u64 = busy.fetch(Request::default()).await.unwrap().into_body().json(100).await.unwrap();
        assert_eq!(set, 1);
    });
}
