//! An object that does with its schedule what scripts say, and tells the watch what it did.

use super::{
    case::{End, Fault, How, JOBS, Missed, SLOTS, Step, When},
    flaw,
    rows::Rows,
    state::Watched,
    watch::{self, Event, Kind},
};
use do_core::{
    Plan, Schedule,
    prelude::*,
    schedule::{self, Job, Retry, Settings},
};
use futures::future::Either;
use std::{cell::Cell, panic::resume_unwind, pin::pin};

pub(crate) struct Planner<S: ObjectState, const FLAW: u8> {
    state: Watched<S>,
    schedule: Schedule<Watched<S>>,
    /// A job failed in the run before.
    failed: Cell<bool>,
    _alive: Alive,
}

struct Alive(u32);

impl Drop for Alive {
    fn drop(&mut self) {
        watch::goes(self.0);
    }
}

/// Slots end a run that hangs after five minutes.
const JOB_LIMIT: Duration = Duration::from_secs(3);

impl<S: ObjectState, const FLAW: u8> DurableObject<S> for Planner<S, FLAW> {
    fn new(raw: S) -> Result<Self> {
        let instance = watch::constructs(Rows::read(raw.sql()));
        let state = Watched::new(raw, instance, FLAW);
        let case = watch::case();
        let settings = Settings::default().history(case.history).jobs_per_wake(case.per_wake);
        let schedule = Schedule::with(&state, settings)?;
        let this = Self { schedule, state, failed: Cell::new(false), _alive: Alive(instance) };
        for (name, when, behaviour) in &case.declared {
            let name = JOBS[usize::from(*name)];
            let plan = this.plan(name, *when, *behaviour)?;
            this.schedule.declare(name, plan)?;
        }
        if FLAW == flaw::DOUBLED {
            let name = format!("tidy {instance}");
            watch::saw(Event::Written(name.clone()));
            this.schedule.declare(&name, Plan::every(Duration::from_secs(3_600))?)?;
        }
        this.state.turn_ended(Kind::Constructor, None);
        Ok(this)
    }

    async fn fetch(&self, request: Request) -> Result<Response> {
        let number: usize = request.uri().path().trim_start_matches('/').parse()?;
        let work = async {
            for step in &*watch::script(number) {
                let _ = self.step(step).await; // what cannot be done is not done
            }
        };
        self.state.turns(Kind::Fetch, work, |()| true).await;
        Ok(reply::text(""))
    }

    async fn alarm(&self, info: AlarmInfo) -> Result<()> {
        watch::run_begins(info.retry_count);
        let run = async {
            if FLAW == flaw::EARLY_RETURN && self.failed.take() {
                return Ok(());
            }
            let run = self.schedule.run_due(info, async |job| self.job::<FLAW>(job).await);
            match watch::case().cut {
                None => run.await,
                Some(ms) => {
                    let cut = self.state.sleep(Duration::from_millis(ms.into()));
                    match futures::future::select(pin!(run), pin!(cut)).await {
                        Either::Left((ended, _)) => ended,
                        Either::Right(_) => Ok(()),
                    }
                }
            }
        };
        self.state.turns(Kind::Alarm, run, Result::is_ok).await
    }
}

impl<S: ObjectState, const FLAW: u8> Planner<S, FLAW> {
    fn time(&self, when: When) -> Timestamp {
        let now = self.state.now();
        match when {
            When::Ago(ms) => now - Duration::from_millis(ms.into()),
            When::In(ms) | When::Every(ms) => now + Duration::from_millis(ms.into()),
            When::Fixed(ms) => watch::beginning() + Duration::from_millis(ms.into()),
        }
    }

    /// The plan, told to the watch as put.
    fn plan(&self, name: &str, when: When, behaviour: u8) -> Result<Plan> {
        let plan = match when {
            When::Every(ms) => Plan::every(Duration::from_millis(ms.into()))?,
            _ => Plan::at(self.time(when)),
        };
        let at = (!matches!(when, When::Every(_))).then(|| self.time(when).as_millis());
        watch::saw(Event::Put { key: name.to_owned(), at });
        let case = watch::case();
        let does = &case.behaviours[usize::from(behaviour)];
        let missed = match does.missed {
            Missed::Once => schedule::Missed::Once,
            Missed::Skip(ms) => schedule::Missed::Skip(Duration::from_millis(ms.into())),
            Missed::CatchUp(most) => schedule::Missed::CatchUp(most.into()),
        };
        let retry = Retry::new(does.runs, Duration::from_millis(does.wait.into()))?;
        Ok(plan.payload(&behaviour)?.retry(retry).missed(missed).time_limit(JOB_LIMIT))
    }

    async fn done(&self, how: How, set: impl Future<Output = Result<(), Error>>) {
        match how {
            How::Awaited => drop(set.await),
            How::Dropped | How::RolledBack => drop(set),
        }
    }

    async fn step(&self, step: &Step) -> Result<()> {
        match step {
            Step::Put(name, when, behaviour, how) => {
                let name = JOBS[usize::from(*name)];
                let put = || Ok::<_, Failure>(self.schedule.put(name, self.plan(name, *when, *behaviour)?));
                self.maybe_undone(*how, put).await?;
            }
            Step::Set(slot, when, how) => {
                let name = SLOTS[usize::from(*slot)];
                let set = || {
                    let at = self.time(*when);
                    watch::saw(Event::Put { key: name.to_owned(), at: Some(at.as_millis()) });
                    Ok::<_, Failure>(self.schedule.slot(name).set(at))
                };
                self.maybe_undone(*how, set).await?;
            }
            Step::SetEarlier(slot, when) => {
                let name = SLOTS[usize::from(*slot)];
                watch::saw(Event::Written(name.to_owned()));
                self.schedule.slot(name).set_earlier(self.time(*when)).await?;
            }
            Step::Delete(slot) => {
                let name = SLOTS[usize::from(*slot)];
                watch::saw(Event::Cancelled(name.to_owned()));
                self.schedule.slot(name).delete().await?;
            }
            Step::Cancel(name) => {
                let key = JOBS.iter().chain(&SLOTS).nth(usize::from(*name)).unwrap();
                watch::saw(Event::Cancelled((*key).to_owned()));
                self.schedule.cancel(key).await?;
            }
            Step::Replay => {
                if let Some(letter) = self.schedule.dead_letters(0, 1)?.first() {
                    watch::saw(Event::Replayed(letter.id, letter.name.clone()));
                    self.schedule.replay(letter.id).await?;
                }
            }
            Step::Discard => {
                if let Some(letter) = self.schedule.dead_letters(0, 1)?.first() {
                    watch::saw(Event::Discarded(letter.id));
                    self.schedule.discard(letter.id)?;
                }
            }
            Step::Check => drop(self.schedule.check().await?),
            Step::Sleep(ms) => self.state.sleep(Duration::from_millis((*ms).into())).await,
            Step::Fail(Fault::Sql(n)) => watch::fail_statement(*n),
            Step::Fail(Fault::Kit(what)) => watch::fail(*what),
            Step::Raw(at) => {
                watch::raw_was_touched();
                let alarms = self.state.raw.alarms();
                match at {
                    Some(ms) => alarms.set(self.state.now() + Duration::from_millis((*ms).into())).await?,
                    None => alarms.delete().await?,
                }
            }
            Step::DeleteAll => {
                watch::saw(Event::DeletedAll);
                watch::writes();
                self.state.delete_all()?;
            }
        }
        Ok(())
    }

    async fn maybe_undone<F: Future<Output = Result<(), Error>>>(
        &self,
        how: How,
        set: impl FnOnce() -> Result<F>,
    ) -> Result<()> {
        if how == How::RolledBack {
            let events = watch::events();
            let undone = self.state.sql().transaction(|| -> Result<()> {
                drop(set()?);
                Err(Failure::msg("undone"))
            });
            watch::undo_events(events);
            return undone;
        }
        let set = set()?;
        self.done(how, set).await;
        Ok(())
    }

    async fn job<const F: u8>(&self, job: Job) -> Result<()> {
        let (name, is_last) = (job.name().to_owned(), job.is_last_attempt());
        let result = self.run(job).await;
        self.failed.set(self.failed.get() || result.is_err());
        if F == flaw::LOST && is_last && result.is_err() {
            self.schedule.cancel(&name).await?;
            return Ok(());
        }
        result
    }

    async fn run(&self, job: Job) -> Result<()> {
        let case = watch::case();
        let mut run = Run { name: job.name().to_owned(), over: false };
        watch::job_begins(
            job.name(),
            job.scheduled().as_millis(),
            job.attempt(),
            self.state.now().as_millis(),
        );
        let number = match SLOTS.iter().position(|slot| *slot == job.name()) {
            Some(slot) => case.slots[slot],
            None => job.payload::<u8>().unwrap_or_default(),
        };
        let does = &case.behaviours[usize::from(number)];
        for step in &watch::job_script(number.into()) {
            let _ = self.step(step).await;
        }
        if job.attempt() > does.bad {
            run.ends(true, false);
            return Ok(());
        }
        match does.end {
            End::Fail => {
                run.ends(false, false);
                Err(Failure::msg("as it should"))
            }
            End::Panic => {
                run.ends(false, false);
                resume_unwind(Box::new("as it should")) // without words on the screen
            }
            End::Hang => std::future::pending().await,
            End::GiveUp => {
                run.ends(false, true);
                job.give_up("as it should")
            }
            End::Unknown => {
                run.ends(false, true);
                job.unknown()
            }
        }
    }
}

/// A run of a job: one that is dropped before its end has failed.
struct Run {
    name: String,
    over: bool,
}

impl Run {
    fn ends(&mut self, well: bool, for_good: bool) {
        self.over = true;
        watch::saw(Event::Ended { name: self.name.clone(), well, for_good });
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        if !self.over {
            self.ends(false, false);
        }
    }
}
