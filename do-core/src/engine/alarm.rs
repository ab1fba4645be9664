//! The alarm slot's life: waiting, running, backing off (rules E1 to E12).
//!
//! The time itself is in the object's database, inside the turn's transaction. Here is what the database does not
//! know: whether a run is under way, whether the slot was touched since it began, and the retries. All of this
//! outlives the instance, because retries outlive it, and none of it outlives the process (rule E16).

use crate::{AlarmInfo, Timestamp, limits};
use std::time::Duration;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Idle,
    Running {
        info: AlarmInfo,
        /// Set or deleted since the run began.
        touched: bool,
    },
    Backoff {
        /// What the next run is told.
        info: AlarmInfo,
        at: Timestamp,
    },
}

/// What the engine does about a due alarm.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Begin {
    Run(AlarmInfo),
    /// Nothing is due: the slot was emptied or moved later, perhaps by the constructor (rule E12).
    Nothing,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RunEnd {
    Succeeded,
    Failed,
}

#[derive(Debug)]
pub(crate) struct AlarmSlot {
    /// The committed time in the object's database.
    stored: Option<Timestamp>,
    phase: Phase,
    /// Failures that were not the application's, such as a constructor that throws (rule E9).
    uncounted: u32,
}

impl AlarmSlot {
    pub(super) fn new(stored: Option<Timestamp>) -> Self {
        Self { stored, phase: Phase::Idle, uncounted: 0 }
    }

    /// A commit changed the time.
    pub(super) fn committed(&mut self, stored: Option<Timestamp>) {
        self.stored = stored;
        if stored.is_none() && matches!(self.phase, Phase::Backoff { .. }) {
            self.rest(); // E11: a delete cancels the pending retry
        }
    }

    /// When the engine must look at the slot again. Never while a run is under way: runs do not overlap (rule
    /// E5). A time set during back-off waits for the pending retry (rule E11).
    pub(super) fn due(&self) -> Option<Timestamp> {
        match self.phase {
            Phase::Idle => self.stored,
            Phase::Running { .. } => None,
            Phase::Backoff { at, .. } => Some(at),
        }
    }

    /// The alarm is due and the object constructed.
    pub(super) fn begin(&mut self, now: Timestamp) -> Begin {
        match self.stored {
            Some(stored) if stored <= now => {
                let info = match self.phase {
                    Phase::Backoff { info, .. } => info,
                    Phase::Idle | Phase::Running { .. } => AlarmInfo::new(stored, 0),
                };
                self.phase = Phase::Running { info, touched: false };
                Begin::Run(info)
            }
            _ => {
                self.rest();
                Begin::Nothing
            }
        }
    }

    /// What `get` shows of the time that the turn sees (rule E3).
    pub(super) fn visible(&self, in_turn: Option<Timestamp>) -> Option<Timestamp> {
        match self.phase {
            Phase::Running { touched: false, .. } => None,
            _ => in_turn,
        }
    }

    /// The slot was set or deleted.
    pub(super) fn touch(&mut self) {
        if let Phase::Running { touched, .. } = &mut self.phase {
            *touched = true;
        }
    }

    pub(super) fn is_touched(&self) -> bool {
        matches!(self.phase, Phase::Running { touched: true, .. })
    }

    /// A rollback undid a touch (rule E13).
    pub(super) fn restore_touched(&mut self, before: bool) {
        if let Phase::Running { touched, .. } = &mut self.phase {
            *touched = before;
        }
    }

    /// Whether the slot is to be emptied when the run ends so: after a success unless something new was set
    /// (rule E4), after a failure when it was the last retry (rule E8).
    pub(super) fn clears(&self, end: RunEnd) -> bool {
        match (self.phase, end) {
            (Phase::Running { touched, .. }, RunEnd::Succeeded) => !touched,
            (Phase::Running { info, touched }, RunEnd::Failed) => {
                !touched && info.retry_count >= limits::ALARM_RETRIES
            }
            _ => false,
        }
    }

    /// The run ended, and what it wrote is committed. A failure is followed by a retry, unless it was the last
    /// one or the slot was touched, which gives the retries up (rule E10). `jitter` is within 0 to 1.
    pub(super) fn ended(&mut self, end: RunEnd, now: Timestamp, jitter: f64) {
        let Phase::Running { info, touched } = self.phase else { return };
        self.uncounted = 0;
        if end == RunEnd::Succeeded || touched || info.retry_count >= limits::ALARM_RETRIES {
            self.phase = Phase::Idle;
            return;
        }
        let next = AlarmInfo::new(info.scheduled, info.retry_count + 1);
        self.phase = Phase::Backoff { info: next, at: now + backoff(info.retry_count, jitter) };
    }

    /// No run and no retry is pending: the next one begins anew.
    fn rest(&mut self) {
        self.phase = Phase::Idle;
        self.uncounted = 0;
    }

    /// The run could not even begin: tried again without end, with growing delay (rule E9). Unless the slot was
    /// emptied or moved later meanwhile, by the gate that the run waited for: then there is nothing to try.
    pub(super) fn failed_uncounted(&mut self, now: Timestamp, jitter: f64) {
        if self.stored.is_none_or(|stored| stored > now) {
            return self.rest();
        }
        let info = match self.phase {
            Phase::Backoff { info, .. } | Phase::Running { info, .. } => info,
            Phase::Idle => AlarmInfo::new(self.stored.unwrap_or(now), 0),
        };
        self.phase = Phase::Backoff { info, at: now + backoff(self.uncounted, jitter) };
        self.uncounted = self.uncounted.saturating_add(1);
    }
}

/// E8: 2 s, doubled with each retry up to the cap, plus up to a quarter.
fn backoff(retry: u32, jitter: f64) -> Duration {
    let base = limits::ALARM_BACKOFF.saturating_mul(1 << retry.min(9)).min(limits::ALARM_BACKOFF_CAP);
    base + base.mul_f64(0.25 * jitter.clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    fn running(stored: i64) -> AlarmSlot {
        let mut slot = AlarmSlot::new(Some(at(stored)));
        assert_eq!(slot.begin(at(stored)), Begin::Run(AlarmInfo::new(at(stored), 0)));
        slot
    }

    #[test]
    fn e3_the_time_is_hidden_while_the_handler_runs_unless_set_anew() {
        let mut slot = running(10);
        assert_eq!(slot.visible(Some(at(10))), None);
        slot.touch();
        assert_eq!(slot.visible(Some(at(99))), Some(at(99)));
    }

    #[test]
    fn e4_success_empties_the_slot_unless_it_was_set_in_the_run() {
        assert!(running(10).clears(RunEnd::Succeeded));
        let mut slot = running(10);
        slot.touch();
        assert!(!slot.clears(RunEnd::Succeeded));
        slot.ended(RunEnd::Succeeded, at(10), 0.0);
        assert_eq!(slot.due(), Some(at(10)));
    }

    #[test]
    fn e8_six_retries_with_doubling_delays_then_it_is_given_up() {
        let mut slot = running(0);
        let mut now = at(0);
        let mut gaps = Vec::new();
        loop {
            let last = slot.clears(RunEnd::Failed);
            slot.ended(RunEnd::Failed, now, 1.0);
            if last {
                break;
            }
            let due = slot.due().unwrap();
            gaps.push(now.until(due).as_millis());
            now = due;
            let retry = u32::try_from(gaps.len()).unwrap();
            assert_eq!(slot.begin(now), Begin::Run(AlarmInfo::new(at(0), retry)));
        }
        assert_eq!(gaps, [2_500, 5_000, 10_000, 20_000, 40_000, 80_000]);
    }

    #[test]
    fn e10_touching_the_slot_in_a_failing_run_gives_the_retries_up() {
        let mut slot = running(10);
        slot.touch();
        slot.committed(Some(at(60_000)));
        assert!(!slot.clears(RunEnd::Failed));
        slot.ended(RunEnd::Failed, at(20), 0.0);
        assert_eq!(slot.due(), Some(at(60_000)));
    }

    #[test]
    fn e11_a_time_set_in_back_off_waits_for_the_retry_which_consumes_it() {
        let mut slot = running(10);
        slot.ended(RunEnd::Failed, at(100), 0.0);
        slot.committed(Some(at(300)));
        assert_eq!(slot.due(), Some(at(2_100)));
        assert_eq!(slot.begin(at(2_100)), Begin::Run(AlarmInfo::new(at(10), 1)));
        assert!(slot.clears(RunEnd::Succeeded));

        let mut slot = running(10);
        slot.ended(RunEnd::Failed, at(100), 0.0);
        slot.committed(None);
        assert_eq!(slot.due(), None);
    }

    #[test]
    fn e12_a_slot_moved_later_or_emptied_before_the_run_does_not_run() {
        let mut slot = AlarmSlot::new(Some(at(10)));
        slot.committed(Some(at(500)));
        assert_eq!(slot.begin(at(10)), Begin::Nothing);
        assert_eq!(slot.due(), Some(at(500)));
        slot.committed(None);
        assert_eq!(slot.begin(at(500)), Begin::Nothing);
        assert_eq!(slot.due(), None);
    }

    #[test]
    fn e9_delays_begin_anew_for_an_alarm_that_is_set_after_the_failing_one_was_deleted() {
        let mut slot = AlarmSlot::new(Some(at(0)));
        for _ in 0..5 {
            slot.failed_uncounted(at(0), 0.0);
        }
        slot.committed(None);
        slot.committed(Some(at(100)));
        slot.failed_uncounted(at(100), 0.0);
        assert_eq!(slot.due(), Some(at(2_100)));
    }

    #[test]
    fn e9_a_run_that_was_taken_back_before_it_could_begin_is_not_tried() {
        let mut slot = AlarmSlot::new(Some(at(0)));
        slot.committed(None);
        slot.failed_uncounted(at(10), 0.0);
        assert_eq!(slot.due(), None);
        slot.committed(Some(at(500)));
        slot.failed_uncounted(at(20), 0.0);
        assert_eq!(slot.due(), Some(at(500)));
    }

    #[test]
    fn e9_failures_before_the_run_are_not_counted_and_never_give_up() {
        let mut slot = AlarmSlot::new(Some(at(0)));
        for _ in 0..40 {
            slot.failed_uncounted(at(0), 0.0);
        }
        assert_eq!(slot.due(), Some(at(1_024_000)));
        assert_eq!(slot.begin(at(1_024_000)), Begin::Run(AlarmInfo::new(at(0), 0)));
    }
}
