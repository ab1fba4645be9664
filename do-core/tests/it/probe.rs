//! The object under test: each request brings the steps that it runs, and what each step gave is the answer.
//!
//! Generic over the state, and driven by requests alone, so that it can run on any host.

use do_core::prelude::*;
use futures::{FutureExt, future::LocalBoxFuture};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::{
    cell::{Cell, RefCell},
    rc::Rc,
};

/// One thing to do. Times are in ms, alarms relative to now.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Step {
    /// Which instance this is.
    Instance,
    /// The name and the id that the object sees.
    Name,
    Id,
    Now,
    /// The URI of the request.
    Uri,
    /// A number in memory.
    Add(i64),
    /// Runs SQL and gives the first column of all rows.
    Sql(String),
    /// Notes a line with the time: `log` gives all of them.
    Note(String),
    Log,
    Sleep(u64),
    /// Reads the number in SQL, awaits storage alone or a pause as well, and writes it back plus one.
    Increment(Option<u64>),
    /// Gives way to everything else until the number in memory is at least this.
    SpinUntil(i64),
    SetAlarm(i64),
    SetAlarmAt(i64),
    GetAlarm,
    DeleteAlarm,
    /// Notes what the slot is set to.
    NoteAlarm,
    /// The steps, as long as the alarm has not run more often than this.
    UpToRuns(i64, Vec<Step>),
    /// What the alarm handler does from now on.
    OnAlarm(Vec<Step>),
    /// What the constructor does from now on.
    OnNew(Vec<Step>),
    /// What alarm handlers were told: time, scheduled, retries.
    Runs,
    /// Fails before that time, each time with another text.
    FailBefore(i64),
    Fail(String),
    /// Fails with a type of its own.
    FailTyped,
    Panic(String),
    Reset(String),
    WaitUntil(Vec<Step>),
    Gate(Vec<Step>),
    /// Closes the gate and does not wait.
    GateDetached(Vec<Step>),
    /// Two gates asked for in one turn, both awaited.
    TwoGates(Vec<Step>, Vec<Step>),
    /// A gate that waits for work that it spawned.
    GateOverBackground(Vec<Step>),
    /// Gates within gates, this many.
    Nest(u32),
    /// Inside a transaction; steps that await are refused there.
    Transaction(Vec<Step>),
    /// The steps, whose error is given as a text.
    Catch(Vec<Step>),
    DeleteAll,
    /// The answer is a body that stays open.
    Open,
    Chunk(String),
    Close,
    /// A request to another object of the class: waits for the answer.
    Call(String, Vec<Step>),
    /// The same without waiting.
    CallDetached(String, Vec<Step>),
}

#[derive(Debug, thiserror::Error)]
#[error("the probe was told to fail")]
pub(crate) struct ProbeError;

pub(crate) struct Probe<S: ObjectState>(Rc<Inner<S>>);

struct Inner<S> {
    state: S,
    instance: u64,
    memory: Cell<i64>,
    sender: RefCell<Option<do_core::BodySender>>,
    body: RefCell<Option<Body>>,
    uri: RefCell<String>,
}

type Steps = LocalBoxFuture<'static, Result<Vec<Value>>>;

impl<S: ObjectState> Inner<S> {
    /// A step that awaits nothing; `None` for the others.
    fn now(&self, step: &Step) -> Result<Option<Value>> {
        let sql = self.state.sql();
        let alarms = self.state.alarms();
        Ok(Some(match step {
            Step::Instance => json!(self.instance.to_string()),
            Step::Name => json!(self.state.id().name().map(ObjectName::as_str)),
            Step::Id => json!(self.state.id().to_string()),
            Step::Now => json!(self.state.now()),
            Step::Uri => json!(*self.uri.borrow()),
            Step::Add(n) => {
                self.memory.set(self.memory.get() + n);
                json!(self.memory.get())
            }
            Step::Sql(text) => {
                let rows = sql.exec(text, ())?;
                let first =
                    rows.iter().map(|row| row.at::<do_core::Value>(0)).collect::<Result<Vec<_>, _>>()?;
                Value::Array(first.into_iter().map(to_json).collect())
            }
            Step::Note(text) => {
                sql.exec("INSERT INTO log VALUES (?, ?)", (self.state.now(), text.as_str()))?;
                Value::Null
            }
            Step::Log => json!(sql.query::<LogLine>("SELECT at, line FROM log ORDER BY rowid", ())?),
            Step::SetAlarm(after) => {
                let at = self.state.now().as_millis() + after;
                alarms.set(Timestamp::from_millis(at)).now_or_never().transpose()?;
                json!(at)
            }
            Step::SetAlarmAt(at) => {
                alarms.set(Timestamp::from_millis(*at)).now_or_never().transpose()?;
                Value::Null
            }
            Step::NoteAlarm => {
                let alarm = alarms.get().now_or_never().transpose()?.flatten();
                let line = alarm.map_or_else(|| "none".to_owned(), |at| at.to_string());
                sql.exec("INSERT INTO log VALUES (?, ?)", (self.state.now(), line))?;
                Value::Null
            }
            Step::DeleteAlarm => {
                alarms.delete().now_or_never().transpose()?;
                Value::Null
            }
            Step::OnAlarm(steps) => self.keep("alarm", steps)?,
            Step::OnNew(steps) => self.keep("new", steps)?,
            Step::Runs => {
                json!(sql.query::<Run>("SELECT at, scheduled, retries FROM runs ORDER BY rowid", ())?)
            }
            Step::FailBefore(at) if self.state.now().as_millis() < *at => {
                return Err(Failure::msg(format!("too early, attempt {}", self.state.random())));
            }
            Step::FailBefore(_) => Value::Null,
            Step::Fail(text) => return Err(Failure::msg(text)),
            Step::FailTyped => return Err(ProbeError.into()),
            Step::Panic(text) => panic!("{text}"),
            Step::Transaction(steps) => sql.transaction(|| {
                let all = steps
                    .iter()
                    .map(|step| self.now(step)?.ok_or_else(|| Failure::msg("a transaction cannot await")));
                Ok(Value::Array(all.collect::<Result<_>>()?))
            })?,
            Step::DeleteAll => {
                self.state.delete_all()?;
                make_tables(&self.state)?;
                Value::Null
            }
            Step::Open => {
                let (sender, body) = Body::channel(1_000);
                *self.sender.borrow_mut() = Some(sender);
                *self.body.borrow_mut() = Some(body);
                Value::Null
            }
            Step::Chunk(text) => match &*self.sender.borrow() {
                Some(sender) => json!(sender.try_send(text.clone()).is_ok()),
                None => json!(null),
            },
            Step::Close => {
                *self.sender.borrow_mut() = None;
                Value::Null
            }
            _ => return Ok(None),
        }))
    }

    fn keep(&self, event: &str, steps: &[Step]) -> Result<Value> {
        let text = serde_json::to_string(steps)?;
        self.state.sql().exec("INSERT OR REPLACE INTO script VALUES (?, ?)", (event, text))?;
        Ok(Value::Null)
    }

    fn kept(&self, event: &str) -> Result<Vec<Step>> {
        let text: Option<String> =
            self.state.sql().scalar("SELECT steps FROM script WHERE event = ?", [event])?;
        Ok(text.map(|text| serde_json::from_str(&text)).transpose()?.unwrap_or_default())
    }

    fn steps(self: &Rc<Self>, steps: Vec<Step>) -> Steps {
        let this = Rc::clone(self);
        async move {
            let mut out = Vec::new();
            for step in steps {
                out.push(match this.now(&step)? {
                    Some(value) => value,
                    None => this.later(step).await?,
                });
            }
            Ok(out)
        }
        .boxed_local()
    }

    async fn later(self: &Rc<Self>, step: Step) -> Result<Value> {
        let state = &self.state;
        Ok(match step {
            Step::Sleep(ms) => {
                state.sleep(Duration::from_millis(ms)).await;
                Value::Null
            }
            Step::Increment(pause) => {
                let n = state.sql().scalar::<i64>("SELECT n FROM n", ())?.unwrap_or(0);
                state.alarms().get().await?;
                if let Some(ms) = pause {
                    state.sleep(Duration::from_millis(ms)).await;
                }
                state.sql().exec("DELETE FROM n", ())?;
                state.sql().exec("INSERT INTO n VALUES (?)", (n + 1,))?;
                Value::Null
            }
            Step::SpinUntil(n) => {
                while self.memory.get() < n {
                    give_way().await;
                }
                Value::Null
            }
            Step::UpToRuns(most, steps) => {
                let runs = state.sql().scalar::<i64>("SELECT count(*) FROM runs", ())?;
                if runs.is_some_and(|runs| runs <= most) {
                    json!(self.steps(steps).await?)
                } else {
                    Value::Null
                }
            }
            Step::GetAlarm => json!(state.alarms().get().await?),
            Step::Reset(reason) => match state.reset(&reason).await {},
            Step::WaitUntil(steps) => {
                let work = self.steps(steps);
                state.wait_until(async move { drop(work.await) });
                Value::Null
            }
            Step::Gate(steps) => json!(state.block_concurrency_while(self.steps(steps)).await?),
            Step::GateDetached(steps) => {
                drop(state.block_concurrency_while(self.steps(steps)));
                Value::Null
            }
            Step::TwoGates(one, two) => {
                let one = state.block_concurrency_while(self.steps(one));
                let two = state.block_concurrency_while(self.steps(two));
                let (one, two) = futures::future::join(one, two).await;
                json!([one?, two?])
            }
            Step::GateOverBackground(steps) => {
                let (this, inner) = (Rc::clone(self), self.state.clone());
                let work = async move {
                    // Another gate was asked for in between.
                    let other = inner.block_concurrency_while(async { Ok(7) });
                    let (done, waited) = futures::channel::oneshot::channel();
                    let work = this.steps(steps);
                    inner.wait_until(async move { drop(done.send(work.await.unwrap_or_default())) });
                    let result = waited.await?;
                    Ok(json!([other.await?, result]))
                };
                state.block_concurrency_while(work).await?
            }
            Step::Nest(depth) => {
                nest(state.clone(), depth).await?;
                Value::Null
            }
            Step::Catch(steps) => match self.steps(steps).await {
                Ok(values) => json!(values),
                Err(failure) => json!(failure.to_string()),
            },
            Step::Call(name, steps) => {
                let answer = self.call(&name, &steps)?.await?;
                answer.into_body().json(1 << 20).await?
            }
            Step::CallDetached(name, steps) => {
                drop(self.call(&name, &steps)?);
                Value::Null
            }
            other => return Err(Failure::msg(format!("not a step: {other:?}"))),
        })
    }

    fn call(
        &self,
        name: &str,
        steps: &[Step],
    ) -> Result<impl Future<Output = Result<Response, Error>> + use<S>> {
        let stub = self.state.env().namespace("PROBE")?.named(name)?;
        let request = http::Request::post("http://probe/").body(serde_json::to_vec(steps)?.into())?;
        Ok(stub.fetch(request))
    }
}

fn nest<S: ObjectState>(state: S, depth: u32) -> LocalBoxFuture<'static, Result<()>> {
    async move {
        if depth > 0 {
            state.block_concurrency_while(nest(state.clone(), depth - 1)).await?;
        }
        Ok(())
    }
    .boxed_local()
}

/// Wakes itself and is pending once.
async fn give_way() {
    let mut first = true;
    std::future::poll_fn(move |cx| {
        if std::mem::take(&mut first) {
            cx.waker().wake_by_ref();
            return std::task::Poll::Pending;
        }
        std::task::Poll::Ready(())
    })
    .await;
}

#[derive(Serialize, Deserialize)]
struct LogLine {
    at: i64,
    line: String,
}

#[derive(Serialize, Deserialize)]
struct Run {
    at: i64,
    scheduled: i64,
    retries: u32,
}

fn to_json(value: do_core::Value) -> Value {
    match value {
        do_core::Value::Integer(i) => json!(i),
        do_core::Value::Real(r) => json!(r),
        do_core::Value::Text(text) => json!(text),
        _ => Value::Null,
    }
}

fn make_tables<S: ObjectState>(state: &S) -> Result<()> {
    state.sql().exec(
        "CREATE TABLE IF NOT EXISTS script (event TEXT PRIMARY KEY, steps TEXT);
         CREATE TABLE IF NOT EXISTS log (at INTEGER, line TEXT);
         CREATE TABLE IF NOT EXISTS runs (at INTEGER, scheduled INTEGER, retries INTEGER);
         CREATE TABLE IF NOT EXISTS parent (id INTEGER PRIMARY KEY);
         CREATE TABLE IF NOT EXISTS child (id INTEGER REFERENCES parent DEFERRABLE INITIALLY DEFERRED);
         CREATE TABLE IF NOT EXISTS n (n INTEGER)",
        (),
    )?;
    Ok(())
}

impl<S: ObjectState> DurableObject<S> for Probe<S> {
    fn new(state: S) -> Result<Self> {
        make_tables(&state)?;
        let inner = Rc::new(Inner {
            instance: state.random(),
            memory: Cell::new(0),
            sender: RefCell::default(),
            body: RefCell::default(),
            uri: RefCell::default(),
            state,
        });
        let mut steps = inner.kept("new")?.into_iter();
        while let Some(step) = steps.next() {
            if inner.now(&step)?.is_none() {
                let rest = [step].into_iter().chain(steps).collect();
                let work = inner.steps(rest);
                inner.state.init(async move { work.await.map(drop) });
                break;
            }
        }
        Ok(Self(inner))
    }

    async fn fetch(&self, request: Request) -> Result<Response> {
        *self.0.uri.borrow_mut() = request.uri().to_string();
        let steps = request.into_body().json(1 << 20).await?;
        let values = self.0.steps(steps).await?;
        match self.0.body.borrow_mut().take() {
            Some(body) => Ok(reply::stream(body, "text/plain")),
            None => Ok(reply::json(&values)?),
        }
    }

    async fn alarm(&self, info: AlarmInfo) -> Result<()> {
        let run = (self.0.state.now(), info.scheduled, info.retry_count);
        self.0.state.sql().exec("INSERT INTO runs VALUES (?, ?, ?)", run)?;
        self.0.steps(self.0.kept("alarm")?).await?;
        Ok(())
    }
}
