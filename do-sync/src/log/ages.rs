//! Messages that are too old are deleted by the alarm, many at once. Nobody is shown them before either.

use crate::Room;
use do_core::{AlarmScheduler, Error, ObjectState};
use std::time::Duration;

impl<S: ObjectState> Room<S> {
    /// What an object does when the room's [alarm](Self::alarm) comes: tells who left, deletes what is too old, and sets
    /// the alarm for what is due next. Right at any other time too.
    ///
    /// # Errors
    /// As [`SqlStorage::exec`](do_core::SqlStorage::exec), and those of the alarm. Return it from the handler: the
    /// platform tries again.
    ///
    /// # Cancellation
    /// All but the setting of the alarm happens at the first poll.
    pub async fn on_alarm(&self) -> Result<(), Error> {
        let graces = self.roster().on_alarm()?;
        let log = self.log();
        let ages = log.journal().expire(&log.newest()?)?;
        let due = [graces, ages].into_iter().flatten().min();
        let Some((alarm, due)) = self.inner().alarm.as_ref().zip(due) else { return Ok(()) };
        // Never later, and never away: another room may share it. One that comes for nothing does no harm. Not for now or
        // earlier, which may be late (rule E4b).
        alarm.set_earlier(due.max(self.state().now() + Duration::from_millis(1))).await
    }
}
