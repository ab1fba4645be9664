//! The probe's steps over a schedule that it hosts, and what its jobs do.

use super::{probe::Inner, run::At, tasks::now_or_never};
use crate::{
    AlarmInfo, AlarmScheduler, Error, Failure, Job, ObjectState, Plan, Schedule, SqlExt, SqlStorage,
    Timestamp,
    schedule::{DeadLetter, Missed, Pending, Retry, Run, Settings, Slot, Stats},
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::{rc::Rc, time::Duration};

/// What to do with the schedule. Times are in ms from now where nothing else is said.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ScheduleStep {
    /// From here on, and in all instances to come, the object has a schedule, and its alarm runs what is due: then the
    /// steps that were kept for the alarm.
    Host(HostStep),
    /// What the job of this name does from now on, after it was recorded.
    OnJob(String, Vec<super::step::Step>),
    /// Sets a slot, and gives the time.
    Set(String, i64),
    /// The same to a time of its own.
    SetAt(String, i64),
    /// Drops what it gives unawaited.
    SetUnawaited(String, i64),
    SetEarlier(String, i64),
    Get(String),
    Delete(String),
    /// Sets a slot to one time after the other.
    SetEach(String, Vec<i64>),
    Put(String, PlanStep),
    /// A job of its own, once at each of these times.
    PutEach(Vec<i64>),
    Declare(String, PlanStep),
    Cancel(String),
    Retire(String),
    /// What is pending under a name.
    Show(String),
    Pending(String, u32),
    Check,
    Stats,
    /// How much [`Stats`] grow by the steps; background work that they began counts from then on.
    Cost(Vec<super::step::Step>),
    DeadLetters(i64, u32),
    Replay(i64),
    Discard(i64),
    History(u32),
    /// What jobs were told, oldest first.
    Ran,
    /// Of the job at hand.
    Unknown,
    GiveUp(String),
    /// Notes the payload of the job at hand, read as a number.
    NoteNumber,
    /// Notes its idempotency key.
    NoteKey,
    /// The steps, as long as this job was begun at most so often, whatever its time.
    UpTo(i64, Vec<super::step::Step>),
}

/// What the schedule is opened with.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct HostStep {
    history: Option<u32>,
    jobs_per_wake: Option<u32>,
}

/// A plan in JSON: one of the first four, and what is to be otherwise than by default.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct PlanStep {
    at: Option<i64>,
    /// A time of its own.
    on: Option<i64>,
    every: Option<u64>,
    /// An expression and a zone, where the feature is there.
    cron: Option<(String, String)>,
    anchor: Option<i64>,
    payload: Option<Value>,
    /// How many runs, and the wait before the second.
    retry: Option<(u32, u64)>,
    missed: Option<MissedStep>,
    limit: Option<u64>,
    key: Option<String>,
    failures_only: bool,
}

/// [`Missed`] in JSON; late in ms.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum MissedStep {
    Once,
    Skip(u64),
    CatchUp(u32),
}

/// The slots that there are, because their names live as long as the program.
const SLOTS: &[&str] = &["ttl", "beat", "sweep"];

impl<S: ObjectState> Inner<S> {
    /// Opens the schedule that an earlier instance was told to host.
    pub(super) fn rehost(&self) -> Result<(), Failure> {
        let text: Option<String> =
            self.state.sql().scalar("SELECT steps FROM script WHERE event = 'schedule'", ())?;
        text.map_or(Ok(()), |text| self.host(&serde_json::from_str(&text)?))
    }

    fn host(&self, with: &HostStep) -> Result<(), Failure> {
        let mut settings = Settings::default();
        if let Some(runs) = with.history {
            settings = settings.history(runs);
        }
        if let Some(jobs) = with.jobs_per_wake {
            settings = settings.jobs_per_wake(jobs);
        }
        *self.schedule.borrow_mut() = Some(Schedule::with(&self.state, settings)?);
        Ok(())
    }

    fn schedule(&self) -> Result<Schedule<S>, Failure> {
        self.schedule.borrow().clone().ok_or_else(|| Failure::msg("the object hosts no schedule"))
    }

    fn slot(&self, name: &str) -> Result<Slot<S>, Failure> {
        let known = SLOTS.iter().find(|slot| **slot == name);
        Ok(self.schedule()?.slot(known.ok_or_else(|| Failure::msg("there is no such slot"))?))
    }

    /// The alarm's run of what is due, if the object hosts a schedule.
    pub(super) async fn run_due(self: &Rc<Self>, info: AlarmInfo) -> Result<(), Failure> {
        let schedule = self.schedule.borrow().clone();
        let Some(schedule) = schedule else { return Ok(()) };
        schedule.run_due(info, async |job| self.run_job(job).await).await
    }

    async fn run_job(self: &Rc<Self>, job: Job) -> Result<(), Failure> {
        let missed = i64::try_from(job.missed())?;
        let told =
            (self.state.now(), job.name(), job.scheduled(), job.attempt(), missed, job.is_last_attempt());
        self.state.sql().exec("INSERT INTO jobs VALUES (?, ?, ?, ?, ?, ?)", told)?;
        let steps = self.kept(&format!("job {}", job.name()))?;
        self.steps(steps, At::of_job(job)).await.map(drop)
    }

    fn plan(&self, plan: &PlanStep) -> Result<Plan, Failure> {
        let time = |ms: Option<i64>| ms.map(Timestamp::from_millis);
        let mut made = match (plan.at, plan.on, plan.every) {
            (Some(after), ..) => Plan::at(self.after(after)),
            (_, Some(at), _) => Plan::at(Timestamp::from_millis(at)),
            (.., Some(every)) => Plan::every(Duration::from_millis(every))?,
            _ => match &plan.cron {
                #[cfg(feature = "cron")]
                Some((expression, zone)) => Plan::cron(expression, zone)?,
                _ => return Err(Failure::msg("a plan without a time")),
            },
        };
        if let Some(anchor) = time(plan.anchor) {
            made = made.anchored(anchor);
        }
        if let Some(payload) = &plan.payload {
            made = made.payload(payload)?;
        }
        if let Some((runs, first)) = plan.retry {
            made = made.retry(Retry::new(runs, Duration::from_millis(first))?);
        }
        if let Some(missed) = plan.missed {
            made = made.missed(match missed {
                MissedStep::Once => Missed::Once,
                MissedStep::Skip(late) => Missed::Skip(Duration::from_millis(late)),
                MissedStep::CatchUp(most) => Missed::CatchUp(most),
            });
        }
        if let Some(limit) = plan.limit {
            made = made.time_limit(Duration::from_millis(limit));
        }
        if let Some(key) = &plan.key {
            made = made.key(key);
        }
        if plan.failures_only {
            made = made.record_failures_only();
        }
        Ok(made)
    }

    pub(super) async fn schedule_step(
        self: &Rc<Self>,
        step: &ScheduleStep,
        at: &At<S>,
    ) -> Result<Value, Failure> {
        Ok(match step {
            ScheduleStep::Set(name, after) => self.set_slot(name, self.after(*after)).await?,
            ScheduleStep::SetAt(name, ms) => self.set_slot(name, Timestamp::from_millis(*ms)).await?,
            ScheduleStep::SetEarlier(name, after) => {
                let at = self.after(*after);
                self.slot(name)?.set_earlier(at).await?;
                json!(at)
            }
            ScheduleStep::Get(name) => json!(self.slot(name)?.get().await?),
            ScheduleStep::Delete(name) => {
                self.slot(name)?.delete().await?;
                Value::Null
            }
            ScheduleStep::SetEach(name, times) => {
                let slot = self.slot(name)?;
                for ms in times {
                    slot.set(Timestamp::from_millis(*ms)).await?;
                }
                Value::Null
            }
            ScheduleStep::Put(name, plan) => {
                let plan = self.plan(plan)?;
                self.schedule()?.put(name, plan).await?;
                Value::Null
            }
            ScheduleStep::PutEach(times) => {
                let schedule = self.schedule()?;
                for (n, ms) in times.iter().enumerate() {
                    schedule.put(&format!("job {n}"), Plan::at(Timestamp::from_millis(*ms))).await?;
                }
                Value::Null
            }
            ScheduleStep::Retire(name) => json!(self.schedule()?.retire(name)?),
            ScheduleStep::Cancel(name) => json!(self.schedule()?.cancel(name).await?),
            ScheduleStep::Check => json!(self.schedule()?.check().await?),
            ScheduleStep::Cost(steps) => {
                let schedule = self.schedule()?;
                let before = schedule.stats();
                self.steps(steps.clone(), at.clone()).await?;
                stats(schedule.stats(), before)
            }
            ScheduleStep::Replay(id) => json!(self.schedule()?.replay(*id).await?),
            ScheduleStep::UpTo(most, steps) => {
                let name = at.job()?.name().to_owned();
                let begun: Option<i64> =
                    self.state.sql().scalar("SELECT count(*) FROM jobs WHERE name = ?", (name,))?;
                if begun.is_some_and(|begun| begun <= *most) {
                    self.steps(steps.clone(), at.clone()).await?;
                }
                Value::Null
            }
            other => {
                self.schedule_now(other, at)?.ok_or_else(|| Failure::msg(format!("not here: {other:?}")))?
            }
        })
    }

    async fn set_slot(&self, name: &str, at: Timestamp) -> Result<Value, Failure> {
        self.slot(name)?.set(at).await?;
        Ok(json!(at))
    }

    /// A step that awaits nothing; `None` for the others.
    pub(super) fn schedule_now(&self, step: &ScheduleStep, at: &At<S>) -> Result<Option<Value>, Failure> {
        Ok(Some(match step {
            ScheduleStep::Host(with) => {
                let text = serde_json::to_string(with)?;
                self.state.sql().exec("INSERT OR REPLACE INTO script VALUES ('schedule', ?)", (text,))?;
                self.host(with)?;
                Value::Null
            }
            ScheduleStep::OnJob(name, steps) => self.keep(&format!("job {name}"), steps)?,
            ScheduleStep::Set(name, after) | ScheduleStep::SetUnawaited(name, after) => {
                let at = self.after(*after);
                now_or_never(self.slot(name)?.set(at)).transpose()?;
                json!(at)
            }
            ScheduleStep::SetAt(name, ms) => {
                now_or_never(self.slot(name)?.set(Timestamp::from_millis(*ms))).transpose()?;
                json!(ms)
            }
            ScheduleStep::Delete(name) => {
                now_or_never(self.slot(name)?.delete()).transpose()?;
                Value::Null
            }
            ScheduleStep::Put(name, plan) => {
                now_or_never(self.schedule()?.put(name, self.plan(plan)?)).transpose()?;
                Value::Null
            }
            ScheduleStep::Declare(name, plan) => {
                self.schedule()?.declare(name, self.plan(plan)?)?;
                Value::Null
            }
            ScheduleStep::Show(name) => json!(self.schedule()?.get(name)?.as_ref().map(pending)),
            ScheduleStep::Pending(after, limit) => {
                let all = self.schedule()?.pending(after, *limit)?;
                json!(all.iter().map(pending).collect::<Vec<_>>())
            }
            ScheduleStep::Stats => stats(self.schedule()?.stats(), Stats::default()),
            ScheduleStep::DeadLetters(after, limit) => {
                let all = self.schedule()?.dead_letters(*after, *limit)?;
                json!(all.iter().map(dead_letter).collect::<Result<Vec<_>, _>>()?)
            }
            ScheduleStep::Discard(id) => json!(self.schedule()?.discard(*id)?),
            ScheduleStep::History(limit) => {
                json!(self.schedule()?.history(*limit)?.iter().map(run).collect::<Vec<_>>())
            }
            ScheduleStep::Ran => {
                json!(self.state.sql().query::<Told>("SELECT * FROM jobs ORDER BY rowid", ())?)
            }
            ScheduleStep::Unknown => at.job()?.unknown()?,
            ScheduleStep::GiveUp(why) => at.job()?.give_up(why)?,
            ScheduleStep::NoteNumber => self.note(&at.job()?.payload::<i64>()?.to_string())?,
            ScheduleStep::NoteKey => self.note(&at.job()?.idempotency_key())?,
            _ => return Ok(None),
        }))
    }
}

/// What a job was told.
#[derive(Serialize, Deserialize)]
struct Told {
    at: i64,
    name: String,
    scheduled: i64,
    attempt: u32,
    missed: u64,
    last: i64,
}

fn stats(now: Stats, before: Stats) -> Value {
    json!({
        "wakes": now.wakes - before.wakes,
        "jobs": now.jobs - before.jobs,
        "set": now.alarms_set - before.alarms_set,
        "deleted": now.alarms_deleted - before.alarms_deleted,
        "read": now.rows_read - before.rows_read,
        "written": now.rows_written - before.rows_written,
    })
}

fn pending(pending: &Pending) -> Value {
    json!({
        "id": pending.id,
        "name": pending.name,
        "due": pending.due,
        "scheduled": pending.scheduled,
        "attempts": pending.attempts,
        "running": pending.is_running,
        "recurs": pending.recurs,
        "slot": pending.is_slot,
        "payload": pending.payload::<Value>().unwrap_or_else(|_| json!("unreadable")),
    })
}

fn dead_letter(letter: &DeadLetter) -> Result<Value, Error> {
    Ok(json!({
        "id": letter.id,
        "name": letter.name,
        "at": letter.at,
        "scheduled": letter.scheduled,
        "attempts": letter.attempts,
        "error": letter.error,
        "payload": letter.payload::<Value>()?,
    }))
}

fn run(run: &Run) -> Value {
    json!({
        "id": run.id,
        "name": run.name,
        "scheduled": run.scheduled,
        "began": run.began,
        "ended": run.ended,
        "attempt": run.attempt,
        "outcome": format!("{:?}", run.outcome),
        "error": run.error,
    })
}
