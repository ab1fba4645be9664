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

    /// The handler begins to run.
    pub(super) fn begin_run(&self) {
        self.0.alarm_run.0.set(Some(Run::default()));
    }

    /// It ended.
    pub(super) async fn end_run(&self, succeeded: bool) -> Result<(), Error> {
        let is_left = self.0.alarm_run.is_hidden();
        self.0.alarm_run.0.set(None);
        // The retry after a failure needs it where it is.
        if is_left && succeeded { self.clear().await } else { Ok(()) }
    }

    /// What the slot is set to for `at`: while a run lasts, nothing that is now or past (rule E4b).
    fn time(&self, at: Timestamp) -> Timestamp {
        if self.0.alarm_run.is_under_way() { at.max(self.0.now() + Duration::from_millis(1)) } else { at }
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
/// A set to now, which may still be the time of the run, it may take for no change and forget with the run (rule E4b).
#[derive(Default)]
pub(super) struct AlarmRun(Cell<Option<Run>>);

#[derive(Clone, Copy, Default)]
struct Run {
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

    fn is_under_way(&self) -> bool {
        self.0.get().is_some()
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
        let set = at.check_alarm().and_then(|()| set(self.time(at))).map(JsFuture::from);
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
