use super::{
    bodies::{Web, steps_in},
    run::At,
    step::Step,
    tasks::Local,
};
use crate::{
    AlarmInfo, Body, BodySender, Close, DurableObject, Error, Failure, Message, ObjectState, Request,
    Response, Schedule, Socket, SocketOf, SqlExt, SqlStorage, Tag, Upgrade, reply,
};
use serde_json::{Value, json};
use std::{
    cell::{Cell, RefCell},
    fmt,
    rc::{Rc, Weak},
};

/// Most bytes of a request's steps, and of the answers of calls.
pub(super) const MOST: usize = 1 << 20;

/// Most bytes of a message that are told in full.
const SHOWN: usize = 1_000;

/// The object under test: each request brings the steps that it runs, and what each step gave is the answer.
///
/// Steps that use the body of their request are in its query instead, as `steps`.
///
/// A request for a WebSocket is accepted with what its query says: any number of `tag`, `attach` (a text),
/// `protocol`, `steps` to run with the new socket at hand, and what else becomes of it: `then=drop`, its 101 is not
/// returned; `then=again`, it is accepted twice. A message that is a JSON array is steps too, and
/// what they gave is sent back; any other one, like alarms, closes, faults and constructions, runs the steps that were
/// kept for it. What happened is kept in SQL, so that it can be asked for after the instance is gone.
pub struct Probe<S: ObjectState>(Rc<Inner<S>>);

pub(super) struct Inner<S: ObjectState> {
    /// For work that outlives the step that asks for it.
    pub(super) this: Weak<Self>,
    pub(super) state: S,
    pub(super) instance: u64,
    pub(super) memory: Cell<i64>,
    pub(super) sender: RefCell<Option<BodySender>>,
    pub(super) body: RefCell<Option<Body>>,
    pub(super) uri: RefCell<String>,
    /// Work that was begun and that nobody awaits.
    pub(super) held: RefCell<Vec<Local<'static, ()>>>,
    /// What it hosts, if it was told to.
    pub(super) schedule: RefCell<Option<Schedule<S>>>,
}

pub(super) type Steps = Local<'static, Result<Vec<Value>, Failure>>;

impl<S: ObjectState> Inner<S> {
    pub(super) fn keep(&self, event: &str, steps: &[Step]) -> Result<Value, Failure> {
        let text = serde_json::to_string(steps)?;
        self.state.sql().exec("INSERT OR REPLACE INTO script VALUES (?, ?)", (event, text))?;
        Ok(Value::Null)
    }

    pub(super) fn kept(&self, event: &str) -> Result<Vec<Step>, Failure> {
        let text: Option<String> =
            self.state.sql().scalar("SELECT steps FROM script WHERE event = ?", [event])?;
        Ok(text.map(|text| serde_json::from_str(&text)).transpose()?.unwrap_or_default())
    }

    /// Keeps what a socket handler was told, with the tags of the socket in front.
    fn record(&self, socket: &SocketOf<S>, what: &str) -> Result<(), Error> {
        let tags: Vec<_> = socket.tags().iter().map(Tag::to_string).collect();
        let line = format!("{}: {what}", tags.join(","));
        self.state.sql().exec("INSERT INTO events (line) VALUES (?)", [line]).map(drop)
    }
}

/// What the probe needs in SQL; again after it was emptied.
pub(super) fn make_tables<S: ObjectState>(state: &S) -> Result<(), Error> {
    state.sql().exec(
        "CREATE TABLE IF NOT EXISTS script (event TEXT PRIMARY KEY, steps TEXT);
         CREATE TABLE IF NOT EXISTS log (at INTEGER, line TEXT);
         CREATE TABLE IF NOT EXISTS runs (at INTEGER, scheduled INTEGER, retries INTEGER);
         CREATE TABLE IF NOT EXISTS jobs (
             at INTEGER, name TEXT, scheduled INTEGER, attempt INTEGER, missed INTEGER, last INTEGER
         );
         CREATE TABLE IF NOT EXISTS events (line TEXT);
         CREATE TABLE IF NOT EXISTS boots (instance TEXT);
         CREATE TABLE IF NOT EXISTS parent (id INTEGER PRIMARY KEY);
         CREATE TABLE IF NOT EXISTS child (id INTEGER REFERENCES parent DEFERRABLE INITIALLY DEFERRED);
         CREATE TABLE IF NOT EXISTS n (n INTEGER)",
        (),
    )?;
    Ok(())
}

/// The message as events tell it; of a long one only its length.
fn shown(message: &Message) -> String {
    match message {
        long if long.len() > SHOWN => format!("message of {} bytes", long.len()),
        Message::Text(text) => format!("message {:?}", text.as_str()),
        Message::Binary(bytes) => format!("message {:?}", &**bytes),
    }
}

impl<S: ObjectState> DurableObject<S> for Probe<S> {
    fn new(state: S) -> Result<Self, Failure> {
        make_tables(&state)?;
        let inner = Rc::new_cyclic(|this| Inner {
            this: Weak::clone(this),
            instance: state.random(),
            memory: Cell::new(0),
            sender: RefCell::default(),
            body: RefCell::default(),
            uri: RefCell::default(),
            held: RefCell::default(),
            schedule: RefCell::default(),
            state,
        });
        inner.rehost()?;
        let mut steps = inner.kept("new")?.into_iter();
        while let Some(step) = steps.next() {
            if inner.now(&step, &At::nothing())?.is_none() {
                let rest = [step].into_iter().chain(steps).collect();
                let work = inner.steps(rest, At::nothing());
                inner.state.init(async move { work.await.map(drop) });
                break;
            }
        }
        let instance = inner.instance.to_string();
        inner.state.sql().exec("INSERT INTO boots VALUES (?)", [instance])?;
        Ok(Self(inner))
    }

    async fn fetch(&self, request: Request) -> Result<Response, Failure> {
        *self.0.uri.borrow_mut() = request.uri().to_string();
        if Upgrade::of(&request) != Upgrade::None {
            return self.0.accept(&request).await;
        }
        let (head, body) = request.into_parts();
        let (steps, body) = match steps_in(head.uri.query())? {
            Some(steps) => (steps, body),
            None => (body.json(MOST).await?, Body::empty()),
        };
        let web = Rc::new(Web::new(head.headers, body));
        let values = self.0.steps(steps, At::web(&web)).await?;
        if let Some(response) = web.answer() {
            return Ok(response);
        }
        match self.0.body.borrow_mut().take() {
            Some(body) => Ok(reply::stream(body, "text/plain")),
            None => Ok(reply::json(&values)?),
        }
    }

    async fn alarm(&self, info: AlarmInfo) -> Result<(), Failure> {
        let run = (self.0.state.now(), info.scheduled, info.retry_count);
        self.0.state.sql().exec("INSERT INTO runs VALUES (?, ?, ?)", run)?;
        self.0.run_due(info).await?;
        self.0.steps(self.0.kept("alarm")?, At::nothing()).await?;
        Ok(())
    }

    async fn websocket_message(&self, socket: SocketOf<S>, message: Message) -> Result<(), Failure> {
        if let Some(text) = message.as_text().filter(|text| text.starts_with('[')) {
            let values = self.0.steps(serde_json::from_str(text)?, At::socket(socket.clone())).await?;
            return Ok(socket.send(json!(values).to_string())?);
        }
        self.0.record(&socket, &shown(&message))?;
        self.0.steps(self.0.kept("message")?, At::message(socket, message)).await?;
        Ok(())
    }

    async fn websocket_close(&self, socket: SocketOf<S>, close: Close) -> Result<(), Failure> {
        let how = if close.was_clean { "clean" } else { "lost" };
        self.0.record(&socket, &format!("close {} {:?} {how}", close.code, close.reason))?;
        self.0.steps(self.0.kept("close")?, At::socket(socket)).await?;
        Ok(())
    }

    async fn websocket_error(&self, socket: SocketOf<S>, error: Error) -> Result<(), Failure> {
        self.0.record(&socket, &format!("error {:?}: {error}", error.kind()))?;
        self.0.steps(self.0.kept("error")?, At::socket(socket)).await?;
        Ok(())
    }
}

impl<S: ObjectState> fmt::Debug for Probe<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Probe").field("instance", &self.0.instance).finish_non_exhaustive()
    }
}
