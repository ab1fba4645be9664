//! An object with a feed, which does in one turn what requests say, and a client that comes back.

use do_core::{
    kit::{Builder, Kit},
    prelude::*,
    tokio::HostStub,
};
use do_sse::{Decoder, Event, Feed, History, Item, Settings, Stats};
use futures::FutureExt;
use http_body_util::BodyExt;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Config {
    pub(crate) is_stored: bool,
    /// The alarm is a slot of a schedule.
    pub(crate) is_slot: bool,
    pub(crate) max_events: u64,
    pub(crate) queue: usize,
    pub(crate) max_age_ms: Option<u64>,
}

impl Config {
    pub(crate) fn new(is_stored: bool) -> Self {
        Self { is_stored, is_slot: false, max_events: 1_000, queue: 1_000, max_age_ms: None }
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Op {
    /// Notes it in the database, then publishes it.
    Publish(String),
    Broadcast(String),
    /// Publishes in a transaction that fails.
    Undone(String),
    CloseAll,
    DeleteAll,
    Beat,
    Position,
    Count,
    Alarm,
    /// What was published and committed, by position.
    Audit,
    /// How many were opened, and how many of these are there or have ended.
    Sums,
}

pub(crate) struct Log<S: ObjectState> {
    state: S,
    schedule: Option<Schedule<S>>,
    feed: Feed<S>,
}

fn audit<S: ObjectState>(state: &S) -> Result<()> {
    let text = "CREATE TABLE IF NOT EXISTS audit (id INTEGER PRIMARY KEY, position TEXT, text TEXT)";
    state.sql().exec(text, ())?;
    Ok(())
}

pub(crate) fn sums(stats: &Stats) -> (u64, u64) {
    let Stats { connections, opened, gone, full, stalled, aged, replaced, closed, .. } = *stats;
    (opened, connections as u64 + gone + full + stalled + aged + replaced + closed)
}

impl<S: ObjectState> Log<S> {
    async fn run(&self, op: Op) -> Result<Value> {
        let sql = self.state.sql();
        Ok(match op {
            Op::Publish(text) => {
                sql.exec("INSERT INTO audit (text) VALUES (?)", (&*text,))?;
                let position = self.feed.publish(&*text)?.position.to_string();
                sql.exec("UPDATE audit SET position = ? WHERE text = ?", (&*position, &*text))?;
                json!(position)
            }
            Op::Broadcast(text) => {
                json!(self.feed.broadcast(Event::named("plain")?.data(text)).send().queued)
            }
            Op::Undone(text) => {
                let failed = sql.transaction(|| {
                    self.feed.publish(text)?;
                    Err::<(), _>(Failure::from(Error::new(ErrorKind::Application, "undone")))
                });
                json!(Error::from(failed.unwrap_err()).to_string())
            }
            Op::CloseAll => json!(self.feed.close_all()),
            Op::DeleteAll => {
                self.state.delete_all()?;
                audit(&self.state)?;
                Value::Null
            }
            Op::Beat => {
                self.feed.on_alarm().await?;
                Value::Null
            }
            Op::Position => json!(self.feed.position()?.unwrap().to_string()),
            Op::Count => json!(self.feed.count()),
            Op::Alarm => serde_json::to_value(self.state.alarms().get().await?)?,
            Op::Audit => {
                let rows = sql.exec("SELECT position, text FROM audit ORDER BY id", ())?;
                let rows: Result<Vec<(String, String)>, Error> =
                    rows.iter().map(|row| Ok((row.at(0)?, row.at(1)?))).collect();
                serde_json::to_value(rows?)?
            }
            Op::Sums => json!(sums(&self.feed.stats())),
        })
    }
}

impl<S: ObjectState> DurableObject<S> for Log<S> {
    fn new(state: S) -> Result<Self> {
        let config: Config = serde_json::from_str(&state.env().var("CONFIG")?)?;
        audit(&state)?;
        let mut history = History::new().max_events(config.max_events);
        if let Some(ms) = config.max_age_ms {
            history = history.max_age(Duration::from_millis(ms));
        }
        let settings = Settings::new().history(history).max_events(config.queue);
        let schedule = config.is_slot.then(|| Schedule::open(&state)).transpose()?;
        let alarm =
            schedule.as_ref().map_or_else(|| Alarm::raw(&state), |schedule| schedule.slot("feed").into());
        let feed = match config.is_stored {
            true => Feed::stored(&state, settings, alarm),
            false => Feed::new(&state, settings, alarm),
        };
        Ok(Self { state, schedule, feed })
    }

    async fn fetch(&self, request: Request) -> Result<Response> {
        if request.method() == Method::POST {
            let ops: Vec<Op> = request.into_body().json(1 << 22).await?;
            let mut last = Value::Null;
            for op in ops {
                last = self.run(op).await?;
            }
            return Ok(reply::json(&last)?);
        }
        if let Some(text) = request.query("write") {
            self.state.sql().exec("INSERT INTO audit (position, text) VALUES ('', ?)", (text,))?;
        }
        let mut opening = self.feed.open(&request);
        if let Some(id) = request.query("id") {
            opening = opening.id(id);
        }
        Ok(opening.start().await?)
    }

    async fn alarm(&self, info: AlarmInfo) -> Result<()> {
        match &self.schedule {
            Some(schedule) => schedule.run_due(info, async |_| Ok(self.feed.on_alarm().await?)).await,
            None => Ok(self.feed.on_alarm().await?),
        }
    }
}

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

    /// Lets time pass while the reader reads.
    pub(crate) async fn pass(&self, seconds: u64, reader: &mut Reader) {
        for _ in 0..seconds.div_ceil(5) {
            self.kit.advance(Duration::from_secs(5)).await;
            reader.drain();
        }
    }

    pub(crate) async fn ask(&self, ops: &[Op]) -> Result<Value, Error> {
        let request = http::Request::post("/").body(serde_json::to_vec(ops).unwrap().into()).unwrap();
        self.log.fetch(request).await?.into_body().json(1 << 24).await
    }
}

/// One client, and what it was told: the name, the id and the data of each event.
pub(crate) struct Reader {
    path: String,
    pub(crate) id: String,
    body: Option<Body>,
    decoder: Decoder,
    pub(crate) told: Vec<(String, String, String)>,
    pub(crate) beats: usize,
}

impl Reader {
    pub(crate) fn new(path: &str) -> Self {
        let (path, decoder) = (path.into(), Decoder::new());
        Self { path, id: String::new(), body: None, decoder, told: Vec::new(), beats: 0 }
    }

    pub(crate) async fn at(world: &World, path: &str) -> Self {
        let mut reader = Self::new(path);
        reader.connect(world).await.unwrap();
        reader.drain();
        reader
    }

    pub(crate) fn is_there(&self) -> bool {
        self.body.is_some()
    }

    pub(crate) fn leave(&mut self) {
        self.body = None;
    }

    pub(crate) async fn connect(&mut self, world: &World) -> Result<(), Error> {
        let mut request = http::Request::get(&self.path);
        if !self.id.is_empty() {
            request = request.header("last-event-id", &self.id);
        }
        let response = world.log.fetch(request.body(Body::empty()).unwrap()).await?;
        assert_eq!(response.status(), 200);
        self.decoder = Decoder::new().with_last_event_id(&self.id);
        self.body = Some(response.into_body());
        Ok(())
    }

    /// Takes what is there now.
    pub(crate) fn drain(&mut self) {
        while let Some(body) = &mut self.body {
            let Some(frame) = body.frame().now_or_never() else { return };
            let Some(Ok(frame)) = frame else {
                self.body = None;
                return;
            };
            self.decoder.push(frame.data_ref().unwrap()).unwrap();
            while let Some(item) = self.decoder.next_item().unwrap() {
                match item {
                    Item::Comment(_) => self.beats += 1,
                    Item::Event(event) => {
                        self.id.clone_from(&event.id);
                        self.told.push((event.event, event.id, event.data));
                    }
                    _ => {}
                }
            }
        }
    }

    /// Is there, and has everything; comes back as often as it takes.
    pub(crate) async fn catch_up(&mut self, world: &World) {
        for _ in 0..50 {
            world.kit.settle().await;
            self.drain();
            if self.is_there() {
                return;
            }
            let _ = self.connect(world).await;
        }
        panic!("it never gets there: {:?}", self.told);
    }

    pub(crate) fn has(&self, text: &str) -> bool {
        self.told.iter().any(|(_, _, data)| data == text)
    }
}
