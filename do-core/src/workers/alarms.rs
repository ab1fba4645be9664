//! The alarm slot.

use super::{error::caught, state::Inner};
use crate::{AlarmScheduler, Error, Timestamp};
use std::{cell::Cell, fmt, rc::Rc, time::Duration};
use wasm_bindgen_futures::JsFuture;

/// The [`AlarmScheduler`] of a Worker's object.
#[derive(Clone)]
pub struct WorkersAlarms(Rc<Inner>);

impl WorkersAlarms {
    pub(super) fn new(inner: Rc<Inner>) -> Self {
        Self(inner)
    }

    /// The handler begins to run, for this time.
    pub(super) fn begin_run(&self, scheduled: Timestamp) {
        self.0.alarm_run.0.set(Some(Run { scheduled, touched: false, rolled_back: false }));
    }

    /// It ended.
    pub(super) async fn end_run(&self, succeeded: bool) -> Result<(), Error> {
        let is_left = self.0.alarm_run.is_hidden();
        self.0.alarm_run.0.set(None);
        // The retry after a failure needs it where it is.
        if is_left && succeeded { self.clear().await } else { Ok(()) }
    }

    async fn clear(&self) -> Result<(), Error> {
        let deleted = self.0.storage.delete_alarm().map_err(|e| caught(&e))?;
        JsFuture::from(deleted).await.map(drop).map_err(|e| caught(&e))
    }
}

/// What the platform does not know of a run: while the handler runs it shows the slot as empty and empties it after a
/// success (rules E3, E4), but no longer once the slot was touched, and it takes a touch that was rolled back for one
/// (rule E13). Then both are done here, or the time of the run would stay in the slot and never come due.
///
/// It does not take a set to the very time of the run for a change, and forgets it with the run (rule E4b).
#[derive(Default)]
pub(super) struct AlarmRun(Cell<Option<Run>>);

#[derive(Clone, Copy)]
struct Run {
    scheduled: Timestamp,
    /// Set or deleted since the run began.
    touched: bool,
    /// Touched in a transaction that was rolled back.
    rolled_back: bool,
}

impl AlarmRun {
    /// The slot was set or deleted.
    pub(super) fn touch(&self) {
        self.update(|run| run.touched = true);
    }

    /// A transaction begins; give what this gave to [`leave`](Self::leave).
    pub(super) fn enter(&self) -> bool {
        let before = self.0.get().is_some_and(|run| run.touched);
        self.update(|run| run.touched = false);
        before
    }

    /// It ended.
    pub(super) fn leave(&self, before: bool, kept: bool) {
        self.update(|run| {
            run.rolled_back |= run.touched && !kept;
            run.touched = before || (run.touched && kept);
        });
    }

    /// What to set the slot to for `at`: a millisecond after the time of the run at the earliest. The platform takes now for
    /// what is past, and that may still be the time of the run.
    fn time(&self, at: Timestamp) -> Timestamp {
        self.0.get().map_or(at, |run| at.max(run.scheduled + Duration::from_millis(1)))
    }

    /// Whether the slot holds nothing but the time of the run, which the platform shows.
    fn is_hidden(&self) -> bool {
        self.0.get().is_some_and(|run| run.rolled_back && !run.touched)
    }

    fn update(&self, change: impl FnOnce(&mut Run)) {
        self.0.set(self.0.get().map(|mut run| {
            change(&mut run);
            run
        }));
    }
}

impl fmt::Debug for WorkersAlarms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WorkersAlarms")
    }
}

impl AlarmScheduler for WorkersAlarms {
    fn set(&self, at: Timestamp) -> impl Future<Output = Result<(), Error>> + use<> {
        #[allow(clippy::cast_precision_loss)] // exact: times of alarms are far below 2^53
        let set = |at: Timestamp| self.0.storage.set_alarm(at.as_millis() as f64).map_err(|e| caught(&e));
        let set = at.check_alarm().and_then(|()| set(self.0.alarm_run.time(at))).map(JsFuture::from);
        if set.is_ok() {
            self.0.alarm_run.touch();
        }
        async move { set?.await.map(drop).map_err(|e| caught(&e)) }
    }

    async fn get(&self) -> Result<Option<Timestamp>, Error> {
        if self.0.alarm_run.is_hidden() {
            return Ok(None);
        }
        let got = self.0.storage.get_alarm().map_err(|e| caught(&e))?;
        let got = JsFuture::from(got).await.map_err(|e| caught(&e))?;
        #[allow(clippy::cast_possible_truncation)] // whole milliseconds, as they were set
        Ok(got.as_f64().map(|ms| Timestamp::from_millis(ms as i64)))
    }

    async fn delete(&self) -> Result<(), Error> {
        self.0.alarm_run.touch();
        self.clear().await
    }
}
