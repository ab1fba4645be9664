use super::{Schedule, plan};
use crate::{AlarmScheduler, Error, ObjectState, Timestamp};
use std::fmt;

/// A named deadline that is itself an [`AlarmScheduler`]: a pattern cannot tell it from the raw slot.
///
/// When it comes, [`Schedule::run_due`] runs a [`Job`](super::Job) of that name. As with the raw slot, one that is set
/// while its job runs survives the run, a failed run is tried again as the platform does (rule E8), and deleting it
/// meanwhile gives the retries up. What the platform does otherwise is hidden: a deadline that is set in a run that then
/// fails does not give the retries up (rule E10), one that is set during back-off comes at its own time (rule E11), and
/// one that is set in a constructor is kept (rule E12). After the last failure the deadline is gone and a
/// [dead letter](super::DeadLetter) tells why.
pub struct Slot<S: ObjectState> {
    schedule: Schedule<S>,
    name: &'static str,
}

impl<S: ObjectState> Slot<S> {
    pub(super) fn new(schedule: Schedule<S>, name: &'static str) -> Self {
        Self { schedule, name }
    }

    /// The name that its job has.
    pub fn name(&self) -> &'static str {
        self.name
    }
}

impl<S: ObjectState> Clone for Slot<S> {
    fn clone(&self) -> Self {
        Self { schedule: self.schedule.clone(), name: self.name }
    }
}

impl<S: ObjectState> fmt::Debug for Slot<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Slot").field(&self.name).finish()
    }
}

impl<S: ObjectState> AlarmScheduler for Slot<S> {
    /// A row of the object's database, and the raw slot if this is now the soonest. The same time again writes nothing.
    fn set(&self, at: Timestamp) -> impl Future<Output = Result<(), Error>> + use<S> {
        self.schedule.set_slot(self.name, at)
    }

    async fn get(&self) -> Result<Option<Timestamp>, Error> {
        plan::check_name("the slot", self.name)?;
        let row = self.schedule.inner.store.row(self.name)?;
        Ok(row.filter(|row| !row.running).map(|row| row.tick))
    }

    async fn delete(&self) -> Result<(), Error> {
        self.schedule.cancel(self.name).await.map(drop)
    }
}
