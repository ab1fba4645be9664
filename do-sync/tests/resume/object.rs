//! An object with a room, which does what requests say.

use do_core::{
    kit::{Builder, Kit},
    prelude::*,
    tokio::HostStub,
};
use do_sync::{Event, History, Member, Members, OnDuplicate, Outbound, Published, Room};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// How the room is made.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Config {
    pub(crate) max_messages: u64,
    pub(crate) max_bytes: u64,
    pub(crate) max_age_ms: Option<u64>,
    pub(crate) replay: u64,
    pub(crate) outbound_bytes: usize,
    pub(crate) outbound_messages: usize,
    pub(crate) snapshot: bool,
    pub(crate) grace_ms: u64,
    pub(crate) max_sockets: usize,
    pub(crate) duplicates: bool,
    /// With a slot of a schedule.
    pub(crate) alarm: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            max_messages: 1_000,
            max_bytes: 1 << 20,
            max_age_ms: None,
            replay: 0,
            outbound_bytes: 256 * 1_024,
            outbound_messages: 1_000,
            snapshot: false,
            grace_ms: 0,
            max_sockets: 10_000,
            duplicates: false,
            alarm: false,
        }
    }
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Command {
    Publish(Value),
    /// So many texts of so many bytes.
    Many(u64, usize),
    Binary(Vec<u8>),
    /// All or none.
    All(Vec<Value>),
    Event(Value),
    /// Publishes in a transaction that fails.
    Undone(Value),
    /// Publishes in one that fails, and then another.
    UndoneThen(Value, Value),
    DeleteAll,
    Position,
    Messages(Option<String>, u64),
    /// The numbers that are stored, and how many bytes.
    Rows,
    /// When the alarm comes.
    Alarm,
    /// What was published, by number.
    Audit,
}

pub(crate) struct Chat<S: ObjectState> {
    state: S,
    schedule: Schedule<S>,
    room: Room<S>,
    config: Config,
}

impl<S: ObjectState> Chat<S> {
    /// Publishes, and notes it in the same turn.
    fn publish(&self, value: &Value, from: Option<&SocketOf<S>>) -> Result<()> {
        let mut publication = self.room.publishing(value);
        if let Some(from) = from {
            publication = publication.from(from);
        }
        let published = publication.send()?;
        self.state.sql().exec(
            "INSERT INTO audit (position, value) VALUES (?, ?)",
            (published.position.to_string(), value.to_string()),
        )?;
        Ok(())
    }

    fn all_published(&self) -> Result<Vec<(String, String)>> {
        let rows = self.state.sql().exec("SELECT position, value FROM audit ORDER BY id", ())?;
        rows.iter().map(|row| Ok((row.at(0)?, row.at(1)?))).collect()
    }

    async fn run(&self, command: Command) -> Result<Value> {
        let sql = self.state.sql();
        let undone = |value: &Value| {
            let failed = sql.transaction(|| {
                self.room.publish(value)?;
                Err::<(), _>(Failure::from(Error::new(ErrorKind::Application, "undone")))
            });
            assert_eq!(Error::from(failed.unwrap_err()).to_string(), "undone");
        };
        Ok(match command {
            Command::Publish(value) => {
                self.publish(&value, None)?;
                Value::Null
            }
            Command::Many(count, bytes) => {
                for n in 0..count {
                    self.publish(&Value::from(format!("{n:0>bytes$}")), None)?;
                }
                Value::Null
            }
            Command::Binary(bytes) => {
                self.room.publish_binary(bytes)?;
                Value::Null
            }
            Command::All(values) => {
                let published = self.room.publish_all(values)?;
                let at = |published: &Published| (published.position.seq(), published.report.queued);
                serde_json::to_value(published.iter().map(at).collect::<Vec<_>>())?
            }
            Command::Event(value) => self.room.send_all(&Event::new(&value)?).queued.into(),
            Command::Undone(value) => {
                undone(&value);
                Value::Null
            }
            Command::UndoneThen(value, then) => {
                undone(&value);
                self.publish(&then, None)?;
                Value::Null
            }
            Command::DeleteAll => {
                self.state.delete_all()?;
                audit(&self.state)?;
                Value::Null
            }
            Command::Position => self.room.position()?.to_string().into(),
            Command::Messages(after, limit) => {
                let after = after.map(|text| text.parse()).transpose()?;
                serde_json::to_value(self.room.messages(after, limit)?)?
            }
            Command::Rows => {
                let rows = sql.exec("SELECT seq, length(frame) FROM _room_log ORDER BY seq", ())?;
                let rows: Result<Vec<(i64, i64)>, Error> =
                    rows.iter().map(|row| Ok((row.at(0)?, row.at(1)?))).collect();
                serde_json::to_value(rows?)?
            }
            Command::Alarm => serde_json::to_value(self.state.alarms().get().await?)?,
            Command::Audit => serde_json::to_value(self.all_published()?)?,
        })
    }
}

fn audit<S: ObjectState>(state: &S) -> Result<()> {
    state.sql().exec(
        "CREATE TABLE IF NOT EXISTS audit (id INTEGER PRIMARY KEY, position TEXT NOT NULL, value TEXT NOT NULL)",
        (),
    )?;
    Ok(())
}

impl<S: ObjectState> DurableObject<S> for Chat<S> {
    fn new(state: S) -> Result<Self> {
        let config: Config = serde_json::from_str(&state.env().var("CONFIG")?)?;
        audit(&state)?;
        let schedule = Schedule::open(&state)?;
        let history = History::new().max_messages(config.max_messages).max_bytes(config.max_bytes);
        let history = history.replay(config.replay);
        let history = match config.max_age_ms {
            Some(ms) => history.max_age(Duration::from_millis(ms)),
            None => history,
        };
        let outbound =
            Outbound::new().max_bytes(config.outbound_bytes).max_messages(config.outbound_messages);
        let members = Members::new().grace(Duration::from_millis(config.grace_ms));
        let members = if config.duplicates { members.on_duplicate(OnDuplicate::Allow) } else { members };
        let mut room = Room::new(&state)
            .history(history)
            .outbound(outbound)
            .members(members)
            .max_sockets(config.max_sockets);
        if config.alarm {
            room = room.alarm(schedule.slot("room"));
        }
        room.auto_ping("ping", "pong")?;
        Ok(Self { state, schedule, room, config })
    }

    async fn fetch(&self, request: Request) -> Result<Response> {
        if request.method() == Method::POST {
            let command: Command = request.into_body().json(1 << 22).await?;
            return Ok(reply::json(&self.run(command).await?)?);
        }
        if request.uri().path() == "/raw" {
            return Ok(self.room.join(&request, Accept::new())?.0);
        }
        let mut entering = match request.query("member") {
            Some(member) => self.room.entering(&request, Member::new(member)?),
            None => self.room.following(&request, Accept::new()),
        };
        if self.config.snapshot {
            entering = entering.try_snapshot(|| self.all_published().map_err(Error::from));
        }
        Ok(entering.attach(&"private")?.done()?)
    }

    async fn alarm(&self, info: AlarmInfo) -> Result<()> {
        self.schedule.run_due(info, async |_| Ok(self.room.on_alarm().await?)).await
    }

    async fn websocket_message(&self, from: SocketOf<S>, message: Message) -> Result<()> {
        if let Some(value) = self.room.receive::<Value>(&from, &message) {
            self.publish(&value, Some(&from))?;
        }
        Ok(())
    }

    async fn websocket_close(&self, gone: SocketOf<S>, _: Close) -> Result<()> {
        self.room.leave(&gone).await?;
        Ok(())
    }

    async fn websocket_error(&self, gone: SocketOf<S>, _: Error) -> Result<()> {
        self.room.leave(&gone).await?;
        Ok(())
    }
}

/// A world with one such object.
pub(crate) struct World {
    pub(crate) kit: Kit,
    pub(crate) room: HostStub,
}

pub(crate) fn builder(config: &Config) -> Builder {
    Kit::builder().object::<Chat<_>>("CHAT").var("CONFIG", serde_json::to_string(config).unwrap())
}

impl World {
    /// The same after a deployment with another configuration.
    pub(crate) fn deployed(&self, config: &Config) -> Self {
        self.kit.deploy(builder(config)).unwrap();
        let room = self.kit.namespace("CHAT").unwrap().named("room").unwrap();
        Self { kit: self.kit.clone(), room }
    }

    pub(crate) fn new(config: &Config) -> Self {
        Self::of(builder(config))
    }

    pub(crate) fn of(builder: Builder) -> Self {
        let kit = builder.start().unwrap();
        let room = kit.namespace("CHAT").unwrap().named("room").unwrap();
        Self { kit, room }
    }

    pub(crate) fn run(&self, test: impl Future<Output = ()>) {
        self.kit.run(test);
    }

    pub(crate) async fn try_ask(&self, command: &Command) -> Result<Value, Error> {
        let request = http::Request::post("/").body(serde_json::to_vec(command).unwrap().into()).unwrap();
        self.room.fetch(request).await?.into_body().json(1 << 24).await
    }

    pub(crate) async fn ask(&self, command: Command) -> Value {
        self.try_ask(&command).await.unwrap()
    }

    pub(crate) async fn position(&self) -> String {
        self.ask(Command::Position).await.as_str().unwrap().to_owned()
    }
}
