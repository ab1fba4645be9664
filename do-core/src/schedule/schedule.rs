use super::{
    Settings, Slot, Stats,
    inner::{Armed, Inner},
    pending::Pending,
    plan::{self, Plan, Terms, When},
    store::Row,
};
use crate::{Error, ErrorKind, ObjectState, Timestamp};
use std::{fmt, rc::Rc};

/// How many idempotency keys an object remembers: the oldest makes room for the next one.
pub const KEYS_KEPT: u32 = 1_000;

/// Named deadlines over the object's one alarm; see the [module](super).
///
/// Open it once in an instance, in `new`, and clone it: clones are the same schedule. It owns the raw slot, which
/// nobody else sets or deletes then, and the object's `alarm()` calls [`run_due`](Self::run_due) in each run.
pub struct Schedule<S: ObjectState> {
    pub(super) inner: Rc<Inner<S>>,
}

impl<S: ObjectState> Schedule<S> {
    /// The schedule of an object. Touches nothing: tables are made with the first write, and the alarm is looked at with
    /// the first event that is not the alarm's (rule E12), which mends what an earlier instance could not.
    ///
    /// # Errors
    /// None today; a later version may find a table that it cannot read.
    pub fn open(state: &S) -> Result<Self, Error> {
        Self::with(state, Settings::default())
    }

    /// [`open`](Self::open) with settings.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn with(state: &S, settings: Settings) -> Result<Self, Error> {
        Ok(Self { inner: Inner::new(state, settings) })
    }

    /// A named deadline for a pattern. Nothing is pending by that.
    ///
    /// The name is checked when the slot is used: not empty, no control characters, at most
    /// [`NAME_BYTES`](super::NAME_BYTES).
    pub fn slot(&self, name: &'static str) -> Slot<S> {
        Slot::new(self.clone(), name)
    }

    /// Plans a job, in place of what is pending under that name. Takes effect at the call, row and alarm in one commit;
    /// await it to know that the platform took the alarm.
    ///
    /// Ticks are computed when they are put or run: after the clock was set back they stay where they are.
    ///
    /// The same plan again changes nothing and writes nothing: a recurring job keeps its next tick, and one that waits
    /// for a retry keeps that. With another cadence or time it begins anew; a run of the old one that is under way goes on
    /// and, if it fails and the payload is another now, is not tried again.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] and [`ErrorKind::Limit`] for a name or a key that cannot be one, for a time that no alarm
    /// can have (rule E1) and for a first tick beyond all of those; as [`SqlStorage::exec`](crate::SqlStorage::exec).
    /// Nothing is changed then. An error of the alarm itself leaves the row there, and the alarm is tried again in the
    /// background.
    pub fn put(&self, name: &str, plan: Plan) -> impl Future<Output = Result<(), Error>> + use<S> {
        let armed = self.put_now(name, plan);
        async move { armed?.await }
    }

    /// [`put`](Self::put) for `new`, where nothing can be awaited: the jobs that an object always has. The alarm is set
    /// with the first event, or by the end of the alarm's run. A later version of the object that declares another
    /// interval or time begins anew with it, and [retires](Self::retire) what it has no code for.
    ///
    /// # Errors
    /// As [`put`](Self::put), but not of the alarm.
    pub fn declare(&self, name: &str, plan: Plan) -> Result<(), Error> {
        self.put_now(name, plan).map(drop) // which tells of a failure and tries again
    }

    fn put_now(&self, name: &str, plan: Plan) -> Result<Armed<S>, Error> {
        plan::check_name("the job's name", name)?;
        if let Some(key) = &plan.key {
            plan::check_name("the idempotency key", key)?;
        }
        if let When::At(at) = plan.when {
            at.check_alarm()?;
        }
        let change = || match &plan.key {
            Some(key) if self.knows(key)? => Ok(((), None)),
            _ => self.write(name, plan).map(|due| ((), due)),
        };
        self.inner.change(change).map(|((), armed)| armed)
    }

    /// Whether a plan with this key was put before. Remembers it.
    fn knows(&self, key: &str) -> Result<bool, Error> {
        let store = &self.inner.store;
        if !store.query("SELECT id FROM _schedule_keys WHERE key = ?", (key,))?.is_empty() {
            return Ok(true);
        }
        store.write("INSERT INTO _schedule_keys (key) VALUES (?)", (key,))?;
        store.trim("_schedule_keys", KEYS_KEPT)?;
        Ok(false)
    }

    /// When what was put is due, if that is not as it was.
    fn write(&self, name: &str, plan: Plan) -> Result<Option<Timestamp>, Error> {
        let now = self.inner.state.now();
        let before = self.inner.store.row(name)?;
        let old =
            before.as_ref().and_then(|row| row.terms.as_deref()).and_then(|text| Terms::parse(text).ok());
        let old = old.and_then(|terms| terms.cadence);
        let mut terms = plan.terms;
        terms.cadence = plan.when.cadence(old.as_ref(), now)?;
        let due = match (&plan.when, &terms.cadence) {
            (When::At(at), _) => due_at(*at, now, before.as_ref().filter(|_| old.is_none())),
            (_, Some(cadence)) if old.as_ref() == Some(cadence) => None,
            (_, cadence) => {
                let first = cadence.as_ref().map_or(Ok(None), |cadence| cadence.next_after(now))?;
                let never = || Error::new(ErrorKind::Invalid, "a plan whose first tick never comes");
                Some(first.ok_or_else(never)?)
            }
        };
        self.replace(name, before.as_ref(), due, Some(terms.to_text()?), plan.payload)
    }

    pub(super) fn set_slot(
        &self,
        name: &'static str,
        at: Timestamp,
    ) -> impl Future<Output = Result<(), Error>> + use<S> {
        let change = || {
            let before = self.inner.store.row(name)?;
            let due = due_at(at, self.inner.state.now(), before.as_ref());
            self.replace(name, before.as_ref(), due, None, None).map(|due| ((), due))
        };
        let checked = plan::check_name("the slot", name).and_then(|()| at.check_alarm());
        let armed = checked.and_then(|()| self.inner.change(change));
        async move { armed?.1.await }
    }

    /// Writes a row; without a time it keeps the one that it has. Gives the time.
    fn replace(
        &self,
        name: &str,
        before: Option<&Row>,
        due: Option<Timestamp>,
        terms: Option<String>,
        payload: Option<String>,
    ) -> Result<Option<Timestamp>, Error> {
        let row = match (before, due) {
            (Some(before), None) => before.clone(),
            (_, due) => Row::new(name, due.unwrap_or_else(|| self.inner.state.now())),
        };
        let row = Row { terms, payload, ..row };
        match before {
            Some(before) => self.inner.store.update(before, &row)?,
            None => self.inner.store.insert(&row)?,
        }
        Ok(due)
    }

    /// Takes away what is pending under a name, also while it runs: then a failure of that run is not tried again.
    /// Whether there was something.
    ///
    /// # Errors
    /// As [`SqlStorage::exec`](crate::SqlStorage::exec), and those of the alarm, which is deleted with the last row.
    ///
    /// # Cancellation
    /// Happens at the first poll; a future that is never polled does nothing.
    pub async fn cancel(&self, name: &str) -> Result<bool, Error> {
        if !self.inner.store.delete(name)? {
            return Ok(false);
        }
        self.inner.disarm_if_empty().await?;
        Ok(true)
    }

    /// [`cancel`](Self::cancel) for `new`: a job that an earlier version of the object declared. If it was the last one,
    /// the alarm comes once for nothing.
    ///
    /// # Errors
    /// As [`SqlStorage::exec`](crate::SqlStorage::exec).
    pub fn retire(&self, name: &str) -> Result<bool, Error> {
        self.inner.store.delete(name)
    }

    /// What is pending under a name.
    ///
    /// # Errors
    /// As [`SqlStorage::exec`](crate::SqlStorage::exec).
    pub fn get(&self, name: &str) -> Result<Option<Pending>, Error> {
        Ok(self.inner.store.row(name)?.map(Pending::new))
    }

    /// What is pending, in the order of [`Pending::id`], after one of them, at most `limit`. `""` is before all.
    ///
    /// # Errors
    /// As [`SqlStorage::exec`](crate::SqlStorage::exec).
    pub fn pending(&self, after: &str, limit: u32) -> Result<Vec<Pending>, Error> {
        Ok(self.inner.store.after(after, limit)?.into_iter().map(Pending::new).collect())
    }

    /// Compares the rows with the raw slot and mends it. Whether something was wrong. An instance does it by itself at
    /// its first event that is not the alarm's; for a watchdog that calls from outside. Dropping the future leaves the
    /// alarm as it was or set.
    ///
    /// # Errors
    /// As [`SqlStorage::exec`](crate::SqlStorage::exec), and those of the alarm.
    pub async fn check(&self) -> Result<bool, Error> {
        self.inner.check().await
    }

    /// What this instance did so far.
    pub fn stats(&self) -> Stats {
        let (rows_read, rows_written) = self.inner.store.counts();
        Stats { rows_read, rows_written, ..self.inner.stats.get() }
    }
}

/// When what runs once is due, or `None` when that is pending already. While it runs its time is over, and the same one
/// is a new one (rule E4). All that is overdue is now (rule E2), but while a retry is waited for, a time after the one
/// that failed is another one (rule E11).
fn due_at(at: Timestamp, now: Timestamp, before: Option<&Row>) -> Option<Timestamp> {
    let is_overdue = |row: &Row| row.tick <= now && at <= if row.attempt == 0 { now } else { row.tick };
    let is_same = |row: &Row| !row.running && (row.tick == at || is_overdue(row));
    (!before.is_some_and(is_same)).then(|| at.max(now))
}

impl<S: ObjectState> Clone for Schedule<S> {
    fn clone(&self) -> Self {
        Self { inner: Rc::clone(&self.inner) }
    }
}

impl<S: ObjectState> fmt::Debug for Schedule<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Schedule").field("stats", &self.inner.stats.get()).finish_non_exhaustive()
    }
}
