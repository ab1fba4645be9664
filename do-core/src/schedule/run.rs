//! The run of the alarm: jobs that are due, one after the other, each on its own.

use super::{
    Job, Outcome, Schedule,
    cadence::Cadence,
    guard::guarded,
    inner::Inner,
    job::{End, Ended},
    plan::{CATCH_UP_MAX, Missed, Terms},
    store::Row,
};
use crate::{
    AlarmInfo, AlarmScheduler, Error, ErrorKind, Failure, ObjectState, Timestamp,
    limits::{self, ALARM_MAX_MS},
};
use std::{rc::Rc, time::Duration};

/// After this no further job begins whose limit would not fit: the platform ends a run after
/// [`ALARM_RUN`](crate::limits::ALARM_RUN).
const BUDGET: Duration = super::TIME_LIMIT_MAX;

/// How many missed ticks are counted.
const COUNTED: u64 = 1_000;

/// Between runs that the storage made fail: so long first, then twice as long each time, so many times.
const RECOVERY: Duration = Duration::from_secs(2);
const RECOVERY_DOUBLINGS: u32 = 9;

/// The platform drops an alarm after seven runs that were cut off, also if each by another job (rule E8). Before it comes
/// to that, a run sets the alarm anew, which begins that count again (rule E10), so long after itself.
const CUT_OFF: u32 = limits::ALARM_RETRIES / 2;
const AFTER_CUT_OFF: Duration = Duration::from_secs(64);

impl<S: ObjectState> Schedule<S> {
    /// Runs what is due: the whole of an object's `alarm()`. `run` is given one job after the other and returns when it is
    /// done.
    ///
    /// Each job is on its own: one that fails, panics (where panics unwind) or takes too long is tried again later by its
    /// [`Retry`](super::Retry), the others run meanwhile, and after its last run it is a
    /// [dead letter](Self::dead_letters). A run that a crash or an eviction cut off counts as a failed one, so that a job
    /// that kills the process does not do so for ever. Jobs run in the order of their time; more than
    /// [`Settings::jobs_per_wake`](super::Settings::jobs_per_wake), or more than fit into 14 min, leave the rest to a
    /// further alarm. However it ends, also when its future is dropped, the raw slot is set for the soonest of what is
    /// pending.
    ///
    /// # Errors
    /// Those of the storage and of the alarm, never a job's: return them from `alarm()`. [`ErrorKind::Invalid`] while it
    /// runs already.
    ///
    /// # Cancellation
    /// The job that runs is dropped at its await, and counts as a failed run when the next wake finds it.
    pub async fn run_due(
        &self,
        info: AlarmInfo,
        mut run: impl AsyncFnMut(Job) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let inner = &self.inner;
        let rearm = Rearm::begin(inner)?;
        tracing::debug!(object = %inner.state.id(), scheduled = %info.scheduled, retry = info.retry_count, "schedule");
        let worked = async {
            if info.retry_count >= CUT_OFF {
                inner.set(inner.state.now() + AFTER_CUT_OFF).await?;
            }
            inner.work(&mut run).await
        };
        let worked = worked.await;
        let armed = rearm.end(worked.is_err()).await;
        Ok(worked.and(armed)?)
    }
}

/// A row that was written down as running.
struct Claim {
    row: Row,
    terms: Terms,
    began: Timestamp,
}

/// Why a run failed.
enum Fault {
    /// Tried again if there is an attempt left.
    Failed(String),
    /// For the last time.
    GivenUp(String),
    /// No code for it.
    Unknown(String),
}

impl From<Failure> for Fault {
    fn from(failure: Failure) -> Self {
        let text = failure.to_string();
        match failure.downcast_ref::<Ended>().map(|ended| ended.why) {
            Some(End::Unknown) => Self::Unknown(text),
            Some(End::GivenUp) => Self::GivenUp(text),
            None => Self::Failed(text),
        }
    }
}

/// What is done about a row that is due.
enum Step {
    Run(Box<(Claim, Job)>),
    /// Nothing is to be run for it, or not now.
    Settled,
    /// What is left of this wake's time is too short.
    Later,
}

impl<S: ObjectState> Inner<S> {
    async fn work(&self, run: &mut impl AsyncFnMut(Job) -> Result<(), Failure>) -> Result<(), Error> {
        let began = self.state.now();
        for _ in 0..self.settings.jobs_per_wake {
            let now = self.state.now();
            let Some(row) = self.store.next_due(now)? else { break };
            let (claim, job) = *match self.store.together(|| self.claim(row, now, began))? {
                Step::Run(claimed) => claimed,
                Step::Settled => continue,
                Step::Later => break,
            };
            // The claim is a commit of its own: whatever the job does to the process, it has begun.
            self.state.sleep(Duration::ZERO).await;
            if !self.store.row(&claim.row.key)?.is_some_and(|row| row.running) {
                continue; // taken away or put anew meanwhile
            }
            self.count(|stats| stats.jobs += 1);
            let limit = claim.terms.time_limit();
            let ended = guarded(async { run(job).await }, limit, self.state.sleep(limit)).await;
            self.store.together(|| self.settle(&claim, ended.map_err(Fault::from)))?;
        }
        Ok(())
    }

    /// Writes down that a row runs, or does what is to be done instead.
    fn claim(&self, row: Row, now: Timestamp, wake: Timestamp) -> Result<Step, Error> {
        let terms = match row.terms.as_deref().map_or_else(|| Ok(Terms::default()), Terms::parse) {
            Ok(terms) => terms,
            Err(error) => return self.refuse(&row, now, &error),
        };
        // Whatever becomes of it, its next tick is asked for.
        if let Some(Err(error)) = terms.cadence.as_ref().map(|cadence| cadence.next_after(now)) {
            return self.refuse(&row, now, &error);
        }
        if row.running {
            let claim = Claim { began: row.due, row, terms };
            let fault = Fault::Failed("its run was cut off".to_owned());
            return self.settle(&claim, Err(fault)).map(|()| Step::Settled);
        }
        if wake.until(now) + terms.time_limit() > BUDGET {
            return Ok(Step::Later);
        }
        let (tick, missed) = match &terms.cadence {
            // Due before its tick: a run that failed before the row was put anew is tried again.
            Some(cadence) if row.tick <= now => tick(cadence, terms.missed, &row, now)?,
            _ => (row.tick, 0),
        };
        // From here on a row that is due before its tick is one whose tick is still to come.
        let due = if tick <= now { row.due.max(tick) } else { row.due };
        let next = Row { due, tick, ..row.clone() };
        if let (Missed::Skip(late), Some(_), 0) = (terms.missed, &terms.cadence, row.attempt)
            && tick.until(now) > late
        {
            self.record(&next, (now, now), Outcome::Skipped, None)?;
            return self.succeed(&row, &terms, now).map(|()| Step::Settled);
        }
        let next = Row { attempt: row.attempt.saturating_add(1), running: true, ..next };
        self.store.update(&row, &next)?;
        let job = Job::new(&next, terms.retry.runs(), missed);
        Ok(Step::Run(Box::new((Claim { row: next, terms, began: now }, job))))
    }

    /// A row that cannot be run, whatever is tried: it must not stand in the way of the others.
    fn refuse(&self, row: &Row, now: Timestamp, error: &Error) -> Result<Step, Error> {
        self.bury(row, row.terms.as_deref(), &error.to_string(), now)?;
        self.store.delete(&row.key)?;
        Ok(Step::Settled)
    }

    fn bury(&self, row: &Row, terms: Option<&str>, error: &str, now: Timestamp) -> Result<(), Error> {
        tracing::warn!(object = %self.state.id(), job = row.name(), attempts = row.attempt, error, "a job is given up");
        self.store.bury(row, terms, error, now)
    }

    /// What a run that ended leaves of its row.
    fn settle(&self, claim: &Claim, ended: Result<(), Fault>) -> Result<(), Error> {
        let Claim { row, terms, began } = claim;
        let now = self.state.now();
        let current = self.store.row(&row.key)?;
        let (outcome, error) = match (ended, &current) {
            (Ok(()), Some(current)) if current.running => {
                self.succeed(current, terms, current.tick)?;
                (Outcome::Done, None)
            }
            // Put anew meanwhile, or taken away.
            (Ok(()), _) => (Outcome::Done, None),
            (Err(Fault::Failed(error) | Fault::GivenUp(error) | Fault::Unknown(error)), None) => {
                (Outcome::Failed, Some(error))
            }
            (Err(Fault::Failed(error)), Some(current)) if row.attempt < terms.retry.runs() => {
                self.retry(row, current, terms, now)?;
                (Outcome::Failed, Some(error))
            }
            (Err(Fault::Failed(error) | Fault::GivenUp(error)), Some(current)) => {
                let once = Terms { cadence: None, ..terms.clone() };
                let once = row.terms.is_some().then(|| once.to_text()).transpose()?;
                self.bury(row, once.as_deref(), &error, now)?;
                if current.running {
                    self.succeed(current, terms, current.tick)?;
                }
                (Outcome::Dead, Some(error))
            }
            (Err(Fault::Unknown(error)), Some(current)) => {
                self.bury(row, row.terms.as_deref(), &error, now)?;
                if current.running {
                    self.store.delete(&row.key)?;
                }
                (Outcome::Dead, Some(error))
            }
        };
        if terms.quiet && outcome == Outcome::Done {
            return Ok(());
        }
        self.record(row, (*began, now), outcome, error.as_deref())
    }

    /// Writes a run into the history. One that has no room, on a full disk for instance, is no reason to run a job again
    /// that has ended, nor to keep those behind it, one of which may be there to make room.
    fn record(
        &self,
        row: &Row,
        times: (Timestamp, Timestamp),
        outcome: Outcome,
        error: Option<&str>,
    ) -> Result<(), Error> {
        match self.store.together(|| self.store.record(self.settings.history, row, times, outcome, error)) {
            Err(error) if !matches!(error.kind(), ErrorKind::Reset | ErrorKind::NotInEvent) => {
                tracing::warn!(object = %self.state.id(), job = row.name(), %error, "a run is missing in the history");
                Ok(())
            }
            recorded => recorded,
        }
    }

    /// The row goes on to the first tick after a time, or is done.
    fn succeed(&self, row: &Row, terms: &Terms, after: Timestamp) -> Result<(), Error> {
        let next = match &terms.cadence {
            _ if row.due < row.tick => Some(row.tick), // that one is still to come
            Some(cadence) => cadence.next_after(after)?,
            None => None,
        };
        match next {
            Some(tick) => {
                self.store.update(row, &Row { due: tick, tick, attempt: 0, running: false, ..row.clone() })
            }
            None => self.store.delete(&row.key).map(drop),
        }
    }

    /// The row is due again after a while: a recurring one at its next tick at the latest.
    fn retry(&self, row: &Row, current: &Row, terms: &Terms, now: Timestamp) -> Result<(), Error> {
        let last = Timestamp::from_millis(ALARM_MAX_MS);
        let mut due = (now + terms.retry.wait(row.attempt, self.state.random())).min(last);
        if current.running {
            let next = match &terms.cadence {
                _ if row.due < row.tick && row.tick > now => Some(row.tick),
                Some(cadence) => cadence.next_after(now)?,
                None => None,
            };
            due = next.map_or(due, |next| due.min(next));
            return self.store.update(current, &Row { due, running: false, ..current.clone() });
        }
        if current.payload != row.payload {
            return Ok(()); // another job has taken its place, which must not come before its time
        }
        // Put anew in the run that failed: both the retry and the new time come (rule E10 hidden).
        due = due.min(current.due);
        self.store.update(current, &Row { due, attempt: row.attempt, ..current.clone() })
    }

    /// Sets the raw slot at the end of a run.
    async fn rearm(&self, failed: bool) -> Result<(), Error> {
        let armed = self.state.alarms().get().await;
        // From here to the `set` nothing is awaited, and from here on changes set it by themselves.
        self.running.set(false);
        let armed = armed?;
        let soonest = self.store.soonest()?;
        let failures = if failed { self.failures.get().saturating_add(1) } else { 0 };
        self.failures.set(failures);
        self.doubt.set(false);
        let Some(due) = soonest else {
            return if armed.is_some() { self.disarm().await } else { Ok(()) };
        };
        let now = self.state.now();
        let mut at = self.raw_time(due);
        if failed {
            at = at.max(now + RECOVERY * (1 << (failures - 1).min(RECOVERY_DOUBLINGS)));
        }
        if armed.is_some_and(|armed| armed > now && armed <= at) {
            return Ok(());
        }
        self.set(at).await
    }
}

/// Which tick of a recurring row runs now, and how many before it nobody ran.
fn tick(cadence: &Cadence, missed: Missed, row: &Row, now: Timestamp) -> Result<(Timestamp, u64), Error> {
    let before = Duration::from_millis(1);
    let latest = match missed {
        Missed::CatchUp(_) if row.attempt > 0 => return Ok((row.tick, 0)),
        Missed::CatchUp(most) => most.clamp(1, CATCH_UP_MAX),
        Missed::Once | Missed::Skip(_) => 1,
    };
    match cadence.oldest_of_latest(row.tick - before, now, latest.into())? {
        Some(tick) if tick > row.tick => {
            Ok((tick, cadence.count(row.tick - before, tick - before, COUNTED)?))
        }
        _ => Ok((row.tick, 0)),
    }
}

/// While it is there, changes write rows alone; its end sets the raw slot, also when it is dropped.
struct Rearm<'a, S: ObjectState> {
    inner: &'a Rc<Inner<S>>,
    ended: bool,
}

impl<'a, S: ObjectState> Rearm<'a, S> {
    fn begin(inner: &'a Rc<Inner<S>>) -> Result<Self, Error> {
        if inner.running.replace(true) {
            return Err(Error::new(ErrorKind::Invalid, "this schedule runs what is due already"));
        }
        inner.is_awake();
        inner.forsaken.set(false);
        inner.count(|stats| stats.wakes += 1);
        Ok(Self { inner, ended: false })
    }

    async fn end(mut self, failed: bool) -> Result<(), Error> {
        let result = self.inner.rearm(failed).await;
        // The platform tries a run that failed again, unless the object lets it succeed or has touched the raw slot.
        let result = result.inspect_err(|error| self.inner.failed_to_arm(error));
        self.ended = true;
        result
    }
}

impl<S: ObjectState> Drop for Rearm<'_, S> {
    /// The run took longer than the platform lets it: the alarm is set at the call, and nobody waits for it. Where the
    /// whole instance goes, storage refuses, and the run comes again (rule E16).
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        self.inner.running.set(false);
        match self.inner.store.soonest() {
            Ok(due) => drop(self.inner.armed(due)),
            Err(error) if matches!(error.kind(), ErrorKind::Reset | ErrorKind::NotInEvent) => {}
            Err(error) => self.inner.failed_to_arm(&error),
        }
    }
}
