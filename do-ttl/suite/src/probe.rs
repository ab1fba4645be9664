use crate::Settings;
use do_core::{prelude::*, testing::Log};
use do_ttl::{Sweeper, TtlStore};
use serde_json::{Value, json};
use std::{cell::RefCell, fmt};

/// Most bytes of commands.
const MOST: usize = 8 << 20;

/// The object under test: it holds stores, and does what it is told.
///
/// | request | answer |
/// |---|---|
/// | POST `/ttl/NAME` | what the [`Command`](crate::Command)s in the body gave, as JSON |
///
/// The sweeper's alarm is the object's own, or by its settings the slot `ttl` of a schedule that may have other jobs.
pub struct TtlProbe<S: ObjectState> {
    pub(crate) state: S,
    pub(crate) log: Log<S>,
    pub(crate) schedule: Schedule<S>,
    made: RefCell<Made<S>>,
}

/// What is made by the settings.
struct Made<S: ObjectState> {
    settings: Settings,
    sweeper: Sweeper<S>,
}

impl<S: ObjectState> Made<S> {
    fn new(state: &S, schedule: &Schedule<S>, settings: Settings) -> Result<Self> {
        let alarm = match settings.slot {
            true => Alarm::from(schedule.slot(Settings::SLOT)),
            false => Alarm::raw(state),
        };
        let sweeper = Sweeper::with(state, settings.pace.made(), alarm);
        for (name, store) in &settings.stores {
            let _ = sweeper.store(name, store.made())?;
        }
        Ok(Self { settings, sweeper })
    }
}

impl<S: ObjectState> TtlProbe<S> {
    pub(crate) fn configure(&self, settings: &Settings) -> Result<Value> {
        settings.keep(&self.state)?;
        *self.made.borrow_mut() = Made::new(&self.state, &self.schedule, settings.clone())?;
        Ok(Value::Null)
    }

    /// After everything was deleted: the probe's own tables. Its sweeper and its stores are those that they were.
    pub(crate) fn remake(&self) -> Result<()> {
        open(&self.state)?;
        Settings::kept(&self.state)?;
        self.settings().keep(&self.state)
    }

    pub(crate) fn sweeper(&self) -> Sweeper<S> {
        self.made.borrow().sweeper.clone()
    }

    /// The store of this name.
    pub(crate) fn store(&self, name: &str) -> Result<TtlStore<S>, Error> {
        let made = self.made.borrow();
        let settings = made.settings.stores.get(name).copied().unwrap_or_default();
        made.sweeper.store(name, settings.made())
    }

    pub(crate) fn settings(&self) -> Settings {
        self.made.borrow().settings.clone()
    }

    /// A run of the sweeper's alarm, and a line of how it ended.
    async fn swept(&self, retries: u32) -> Result<()> {
        let run = self.sweep().await;
        self.log.note(json!({"event": "alarm", "retries": retries, "failed": run.is_err()}))?;
        Ok(run?)
    }
}

/// The probe's own tables.
fn open<S: ObjectState>(state: &S) -> Result<Log<S>> {
    // For commits that fail: a foreign key that is checked at the end of the turn.
    state.sql().exec(
        "CREATE TABLE IF NOT EXISTS parent (id INTEGER PRIMARY KEY);
         CREATE TABLE IF NOT EXISTS child (id INTEGER REFERENCES parent DEFERRABLE INITIALLY DEFERRED)",
        (),
    )?;
    Ok(Log::open(state)?)
}

impl<S: ObjectState> DurableObject<S> for TtlProbe<S> {
    fn new(state: S) -> Result<Self> {
        let log = open(&state)?;
        let schedule = Schedule::open(&state)?;
        let made = Made::new(&state, &schedule, Settings::kept(&state)?)?;
        Ok(Self { state, log, schedule, made: RefCell::new(made) })
    }

    async fn fetch(&self, request: Request) -> Result<Response> {
        let commands = request.into_body().json(MOST).await?;
        Ok(reply::json(&self.commands(commands).await?)?)
    }

    async fn alarm(&self, info: AlarmInfo) -> Result<()> {
        if !self.settings().slot {
            return self.swept(info.retry_count).await;
        }
        let run = async |job: Job| {
            if job.name() != Settings::SLOT {
                return Ok(self.log.note(json!({"event": "job", "name": job.name()}))?);
            }
            self.swept(job.attempt() - 1).await
        };
        self.schedule.run_due(info, run).await
    }
}

impl<S: ObjectState> fmt::Debug for TtlProbe<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TtlProbe").field("log", &self.log).finish_non_exhaustive()
    }
}
