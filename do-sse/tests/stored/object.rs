//! An object with two stored feeds, which does what requests say.

use do_core::{
    kit::{Builder, Kit},
    prelude::*,
    tokio::HostStub,
};
use do_sse::{Event, Feed, History, Settings};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Config {
    pub(crate) max_events: u64,
    pub(crate) max_bytes: u64,
    pub(crate) max_age_ms: Option<u64>,
    pub(crate) replay: u64,
    /// What waits for one reader.
    pub(crate) queue: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self { max_events: 1_000, max_bytes: 1 << 20, max_age_ms: None, replay: 0, queue: 1_000 }
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Command {
    Publish(String),
    /// For a topic.
    To(String, String),
    /// To the second feed.
    Other(String),
    /// So many, of so many bytes.
    Many(u64, usize),
    /// In a transaction that fails.
    Undone(String),
    /// In one that fails, and then another.
    UndoneThen(String, String),
    DeleteAll,
    Beat,
    Position,
    /// Numbers and bytes of the rows.
    Rows,
    /// Rows read that were events.
    Read,
    Count,
    Alarm,
    /// What was published, by position.
    Audit,
    Sql(String),
}

pub(crate) struct Log<S: ObjectState> {
    state: S,
    schedule: Schedule<S>,
    feed: Feed<S>,
    other: Feed<S>,
}

impl<S: ObjectState> Log<S> {
    /// Publishes, and notes it in the same turn.
    fn publish(&self, event: impl Into<Event>, text: &str) -> Result<Value> {
        let published = self.feed.publish(event)?;
        self.note(&published.position.to_string(), text)?;
        Ok(published.position.to_string().into())
    }

    fn note(&self, position: &str, text: &str) -> Result<()> {
        self.state.sql().exec("INSERT INTO audit (position, text) VALUES (?, ?)", (position, text))?;
        Ok(())
    }

    fn undo(&self, text: &str) {
        let failed = self.state.sql().transaction(|| {
            self.feed.publish(text)?;
            Err::<(), _>(Failure::from(Error::new(ErrorKind::Application, "undone")))
        });
        assert_eq!(Error::from(failed.unwrap_err()).to_string(), "undone");
    }

    async fn run(&self, command: Command) -> Result<Value> {
        let sql = self.state.sql();
        Ok(match command {
            Command::Publish(text) => self.publish(&*text, &text)?,
            Command::To(topic, text) => {
                let published = self.feed.publishing(&*text).to(topic).send()?;
                self.note(&published.position.to_string(), &text)?;
                published.position.to_string().into()
            }
            Command::Other(text) => self.other.publish(text)?.position.to_string().into(),
            Command::Many(count, bytes) => {
                for n in 0..count {
                    let digits = n.to_string();
                    let text = "0".repeat(bytes.saturating_sub(digits.len())) + &digits;
                    self.publish(&*text, &text)?;
                }
                Value::Null
            }
            Command::Undone(text) => {
                self.undo(&text);
                Value::Null
            }
            Command::UndoneThen(text, then) => {
                self.undo(&text);
                self.publish(&*then, &then)?
            }
            Command::DeleteAll => {
                self.state.delete_all()?;
                audit(&self.state)?;
                Value::Null
            }
            Command::Beat => {
                self.feed.on_alarm().await?;
                Value::Null
            }
            Command::Position => self.feed.position()?.unwrap().to_string().into(),
            Command::Rows => {
                let text = "SELECT seq, length(event) FROM _feed_log WHERE feed = 'feed' ORDER BY seq";
                let rows = sql.exec(text, ())?;
                let rows: Result<Vec<(i64, i64)>, Error> =
                    rows.iter().map(|row| Ok((row.at(0)?, row.at(1)?))).collect();
                serde_json::to_value(rows?)?
            }
            Command::Read => json!(self.feed.history_stats().rows_read),
            Command::Count => json!(self.feed.count()),
            Command::Alarm => serde_json::to_value(self.state.alarms().get().await?)?,
            Command::Audit => {
                let rows = sql.exec("SELECT position, text FROM audit ORDER BY id", ())?;
                let rows: Result<Vec<(String, String)>, Error> =
                    rows.iter().map(|row| Ok((row.at(0)?, row.at(1)?))).collect();
                serde_json::to_value(rows?)?
            }
            Command::Sql(text) => json!(sql.exec(&text, ())?.len()),
        })
    }
}

fn audit<S: ObjectState>(state: &S) -> Result<()> {
    state.sql().exec(
        "CREATE TABLE IF NOT EXISTS audit (id INTEGER PRIMARY KEY, position TEXT NOT NULL, text TEXT NOT NULL)",
        (),
    )?;
    Ok(())
}

impl<S: ObjectState> DurableObject<S> for Log<S> {
    fn new(state: S) -> Result<Self> {
        let config: Config = serde_json::from_str(&state.env().var("CONFIG")?)?;
        audit(&state)?;
        let schedule = Schedule::open(&state)?;
        let history = History::new().max_events(config.max_events).max_bytes(config.max_bytes);
        let history = history.replay(config.replay);
        let history = match config.max_age_ms {
            Some(ms) => history.max_age(Duration::from_millis(ms)),
            None => history,
        };
        let settings = Settings::new().history(history).max_events(config.queue);
        let feed = Feed::stored(&state, settings.clone(), schedule.slot("feed"));
        let other = Feed::stored_as(&state, "other", settings, schedule.slot("other"));
        Ok(Self { state, schedule, feed, other })
    }

    async fn fetch(&self, request: Request) -> Result<Response> {
        if request.method() == Method::POST {
            let command: Command = request.into_body().json(1 << 22).await?;
            return Ok(reply::json(&self.run(command).await?)?);
        }
        let feed = if request.uri().path() == "/other" { &self.other } else { &self.feed };
        let mut opening = feed.open(&request);
        if let Some(topic) = request.query("topic") {
            opening = opening.topic(topic);
        }
        if request.query("snapshot").is_some() {
            opening = opening.snapshot(|| Ok("all"));
        }
        Ok(opening.start().await?)
    }

    async fn alarm(&self, info: AlarmInfo) -> Result<()> {
        let feed = async |job: Job| {
            let feed = if job.name() == "other" { &self.other } else { &self.feed };
            Ok(feed.on_alarm().await?)
        };
        self.schedule.run_due(info, feed).await
    }
}

/// A world with one such object.
pub(crate) struct World {
    pub(crate) kit: Kit,
    pub(crate) log: HostStub,
}

pub(crate) fn builder(config: &Config) -> Builder {
    Kit::builder().object::<Log<_>>("LOG").var("CONFIG", serde_json::to_string(config).unwrap())
}

impl World {
    pub(crate) fn new(config: &Config) -> Self {
        Self::of(builder(config).start().unwrap())
    }

    pub(crate) fn of(kit: Kit) -> Self {
        let log = kit.namespace("LOG").unwrap().named("log").unwrap();
        Self { kit, log }
    }

    /// The same after a deployment with another configuration.
    pub(crate) fn deployed(&self, config: &Config) -> Self {
        self.kit.deploy(builder(config)).unwrap();
        Self::of(self.kit.clone())
    }

    pub(crate) async fn try_ask(&self, command: Command) -> Result<Value, Error> {
        let request = http::Request::post("/").body(serde_json::to_vec(&command).unwrap().into()).unwrap();
        self.log.fetch(request).await?.into_body().json(1 << 24).await
    }

    pub(crate) async fn ask(&self, command: Command) -> Value {
        self.try_ask(command).await.unwrap()
    }

    pub(crate) async fn publish(&self, text: &str) -> String {
        self.ask(Command::Publish(text.into())).await.as_str().unwrap().to_owned()
    }

    pub(crate) async fn position(&self) -> String {
        self.ask(Command::Position).await.as_str().unwrap().to_owned()
    }
}
