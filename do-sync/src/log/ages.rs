//! Messages that are too old are deleted by the alarm, many at once. Nobody is shown them before either.

use super::{Log, log::slack};
use crate::Room;
use do_core::{AlarmScheduler, Error, ObjectState, Timestamp, limits};
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
        let ages = self.log().expire()?;
        let due = [graces, ages].into_iter().flatten().min();
        let Some((alarm, due)) = self.inner().alarm.as_ref().zip(due) else { return Ok(()) };
        // Never later, and never away: another room may share it. One that comes for nothing does no harm. Not for now or
        // earlier, which may be late (rule E4b).
        alarm.set_earlier(due.max(self.state().now() + Duration::from_millis(1))).await
    }
}

impl<S: ObjectState> Log<'_, S> {
    /// Deletes what is too old, also from the newest row, whose number stays. Gives when the next is due.
    fn expire(&self) -> Result<Option<Timestamp>, Error> {
        let newest = self.newest()?;
        let is_all = self.prune(&newest)?;
        if self.bounds(&newest).since.is_some_and(|since| newest.at < since) && !newest.is_blank() {
            self.store().blank(&newest)?;
        }
        let now = self.room.state().now();
        self.due().map(|due| if is_all { due } else { Some(now) })
    }

    /// When the oldest message is to be deleted: somewhat after its time, so that those soon after go with it. `None`
    /// without a [`max_age`](crate::History::max_age), or without messages.
    pub(super) fn due(&self) -> Result<Option<Timestamp>, Error> {
        let Some(age) = self.settings().max_age else { return Ok(None) };
        let oldest = self.store().oldest()?;
        let due =
            oldest.map(|row| row.at + age + Duration::from_millis(slack(age)).max(Duration::from_millis(1)));
        Ok(due.filter(|due| due.as_millis() <= limits::ALARM_MAX_MS))
    }
}
