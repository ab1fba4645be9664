use crate::Settings;
use do_core::{prelude::*, testing::Log};
use do_sse::Feed;
use serde_json::{Value, json};
use std::{cell::RefCell, fmt};

/// Most bytes of commands.
const MOST: usize = 1 << 20;

/// The object under test: it holds a feed, and does what it is told.
///
/// | request | answer |
/// |---|---|
/// | GET or HEAD `/feed/NAME` | the stream, with what the query says |
/// | POST `/feed/NAME` | what the [`Command`](crate::Command)s in the body gave, as JSON |
///
/// The feed's alarm is the object's own, or by its settings the slot `feed` of a schedule that may have other jobs.
pub struct FeedProbe<S: ObjectState> {
    pub(crate) state: S,
    pub(crate) log: Log<S>,
    pub(crate) schedule: Schedule<S>,
    made: RefCell<Made<S>>,
}

/// What is made by the settings.
struct Made<S: ObjectState> {
    settings: Settings,
    feed: Feed<S>,
}

impl<S: ObjectState> Made<S> {
    fn new(state: &S, schedule: &Schedule<S>, settings: Settings) -> Result<Self> {
        let alarm = match settings.slot {
            true => Alarm::from(schedule.slot(Settings::SLOT)),
            false => Alarm::raw(state),
        };
        let mut feed = match settings.stored {
            true => Feed::stored(state, settings.made()?, alarm),
            false => Feed::new(state, settings.made()?, alarm),
        };
        if let Some(registry) = &settings.registry {
            feed = feed.connections(&registry.made(state));
        }
        Ok(Self { settings, feed })
    }
}

impl<S: ObjectState> FeedProbe<S> {
    pub(crate) fn configure(&self, settings: &Settings) -> Result<Value> {
        settings.keep(&self.state)?;
        *self.made.borrow_mut() = Made::new(&self.state, &self.schedule, settings.clone())?;
        Ok(Value::Null)
    }

    /// After everything was deleted: the probe's own tables. Its feed is the one that it was.
    pub(crate) fn remake(&self) -> Result<()> {
        open(&self.state)?;
        Settings::kept(&self.state)?;
        self.settings().keep(&self.state)
    }

    pub(crate) fn feed(&self) -> Feed<S> {
        self.made.borrow().feed.clone()
    }

    pub(crate) fn settings(&self) -> Settings {
        self.made.borrow().settings.clone()
    }

    /// Notes how a run of the feed's alarm ended, unless that would count as the feed's own.
    fn note_alarm(&self, retries: u32, run: &Result<(), Error>) -> Result<()> {
        if !self.settings().quiet {
            self.log.note(json!({"event": "alarm", "retries": retries, "failed": run.is_err()}))?;
        }
        Ok(())
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

impl<S: ObjectState> DurableObject<S> for FeedProbe<S> {
    fn new(state: S) -> Result<Self> {
        let log = open(&state)?;
        let schedule = Schedule::open(&state)?;
        let made = Made::new(&state, &schedule, Settings::kept(&state)?)?;
        Ok(Self { state, log, schedule, made: RefCell::new(made) })
    }

    async fn fetch(&self, request: Request) -> Result<Response> {
        if *request.method() != Method::POST {
            return self.open(&request).await;
        }
        let commands = request.into_body().json(MOST).await?;
        Ok(reply::json(&self.commands(commands).await?)?)
    }

    async fn alarm(&self, info: AlarmInfo) -> Result<()> {
        if !self.settings().slot {
            let run = self.feed().on_alarm().await;
            self.note_alarm(info.retry_count, &run)?;
            return Ok(run?);
        }
        let run = async |job: Job| {
            if job.name() != Settings::SLOT {
                return Ok(self.log.note(json!({"event": "job", "name": job.name()}))?);
            }
            let run = self.feed().on_alarm().await;
            self.note_alarm(job.attempt() - 1, &run)?;
            Ok(run?)
        };
        self.schedule.run_due(info, run).await
    }
}

impl<S: ObjectState> fmt::Debug for FeedProbe<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FeedProbe").field("log", &self.log).finish_non_exhaustive()
    }
}
