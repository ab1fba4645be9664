//! How the probe runs its steps.

use super::{
    bodies::Web,
    probe::{Inner, MOST, Steps, make_tables},
    step::{Cell as SqlCell, Step},
    tasks::{both, give_way, now_or_never},
    thrown::Thrown,
};
use crate::{
    AlarmScheduler, Body, Env, Error, Failure, Job, Message, Namespace, ObjectName, ObjectState, Response,
    SocketOf, SqlExt, SqlStorage, Stub, Timestamp,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::{cell::RefCell, future::poll_fn, rc::Rc, task::Poll, task::Waker, time::Duration};

/// An error of a type of the object's own.
#[derive(Debug, thiserror::Error)]
#[error("the probe was told to fail")]
struct ProbeError;

/// What steps have at hand: the socket whose event runs them, and the message, or the bodies of their request, or the job.
pub(super) struct At<S: ObjectState> {
    pub(super) socket: Option<SocketOf<S>>,
    pub(super) message: Option<Message>,
    pub(super) web: Rc<Web>,
    job: Option<Rc<Job>>,
}

impl<S: ObjectState> At<S> {
    pub(super) fn nothing() -> Self {
        Self { socket: None, message: None, web: Rc::default(), job: None }
    }

    pub(super) fn socket(socket: SocketOf<S>) -> Self {
        Self { socket: Some(socket), ..Self::nothing() }
    }

    pub(super) fn message(socket: SocketOf<S>, message: Message) -> Self {
        Self { message: Some(message), ..Self::socket(socket) }
    }

    pub(super) fn web(web: &Rc<Web>) -> Self {
        Self { web: Rc::clone(web), ..Self::nothing() }
    }

    pub(super) fn of_job(job: Job) -> Self {
        Self { job: Some(Rc::new(job)), ..Self::nothing() }
    }

    /// The job whose run this is.
    pub(super) fn job(&self) -> Result<&Job, Failure> {
        self.job.as_deref().ok_or_else(|| Failure::msg("this is no run of a job"))
    }
}

impl<S: ObjectState> Clone for At<S> {
    fn clone(&self) -> Self {
        let (socket, message) = (self.socket.clone(), self.message.clone());
        Self { socket, message, web: Rc::clone(&self.web), job: self.job.clone() }
    }
}

impl<S: ObjectState> Inner<S> {
    /// Runs steps one after the other.
    pub(super) fn steps(self: &Rc<Self>, steps: Vec<Step>, at: At<S>) -> Steps {
        let this = Rc::clone(self);
        Box::pin(async move {
            let mut out = Vec::new();
            for step in steps {
                out.push(this.step(step, &at).await?);
            }
            Ok(out)
        })
    }

    async fn step(self: &Rc<Self>, step: Step, at: &At<S>) -> Result<Value, Failure> {
        let state = &self.state;
        Ok(match step {
            Step::Sleep(ms) => {
                state.sleep(Duration::from_millis(ms)).await;
                Value::Null
            }
            Step::WaitFor(n) => {
                while self.memory.get() < n {
                    state.sleep(Duration::from_millis(5)).await;
                }
                Value::Null
            }
            Step::SpinUntil(n) => {
                while self.memory.get() < n {
                    give_way().await;
                }
                Value::Null
            }
            Step::Increment(pause) => self.increment(pause).await?,
            Step::UpToRuns(most, steps) => {
                let runs = state.sql().scalar::<i64>("SELECT count(*) FROM runs", ())?;
                if runs.is_some_and(|runs| runs <= most) {
                    json!(self.steps(steps, at.clone()).await?)
                } else {
                    Value::Null
                }
            }
            // Awaited where it can be: on a host whose storage is behind promises, a failure shows only there.
            Step::SetAlarm(after) => self.set_alarm(self.after(after)).await?,
            Step::SetAlarmAt(ms) => self.set_alarm(Timestamp::from_millis(ms)).await?,
            Step::GetAlarm => json!(state.alarms().get().await?),
            Step::NoteAlarm => {
                let alarm = state.alarms().get().await?;
                self.note(&alarm.map_or_else(|| "none".to_owned(), |at| at.to_string()))?
            }
            Step::DeleteAlarm => {
                state.alarms().delete().await?;
                Value::Null
            }
            Step::Catch(steps) => match self.steps(steps, at.clone()).await {
                Ok(values) => json!(values),
                Err(failure) => json!(failure.to_string()),
            },
            Step::Try(steps) => match self.steps(steps, at.clone()).await {
                Ok(values) => json!({ "ok": values }),
                Err(failure) => json!({ "error": Thrown::from(&Error::from(failure)) }),
            },
            Step::Alarm(step) => self.alarm_step(&step).await?,
            Step::Schedule(step) => self.schedule_step(&step, at).await?,
            Step::Body(step) => self.body_step(&step, at).await?,
            Step::Call(name, steps) => {
                let answer = self.call(&name, &steps)?.await?;
                answer.into_body().json(MOST).await?
            }
            Step::CallDetached(name, steps) => {
                drop(self.call(&name, &steps)?);
                Value::Null
            }
            other => match self.lifecycle(&other, at).await? {
                Some(value) => value,
                None => self
                    .now(&other, at)?
                    .ok_or_else(|| Failure::msg(format!("this step cannot run here: {other:?}")))?,
            },
        })
    }

    /// A step over gates, resets and background work; `None` for the others.
    async fn lifecycle(self: &Rc<Self>, step: &Step, at: &At<S>) -> Result<Option<Value>, Failure> {
        let state = &self.state;
        let run = |steps: &[Step]| self.steps(steps.to_vec(), at.clone());
        Ok(Some(match step {
            Step::Life(step) => return self.life_step(step, at).await,
            Step::Reset(reason) => match state.reset(reason).await {},
            Step::WaitUntil(steps) => {
                let work = run(steps);
                state.wait_until(async move { drop(work.await) });
                Value::Null
            }
            Step::Gate(steps) => json!(state.block_concurrency_while(run(steps)).await?),
            Step::GateDetached(steps) => {
                drop(state.block_concurrency_while(run(steps)));
                Value::Null
            }
            Step::TwoGates(one, two) => {
                let one = state.block_concurrency_while(run(one));
                let two = state.block_concurrency_while(run(two));
                let (one, two) = both(one, two).await;
                json!([one?, two?])
            }
            Step::GateOverBackground(steps) => {
                let (work, inner) = (run(steps), state.clone());
                let work = async move {
                    // Another gate was asked for in between.
                    let other = inner.block_concurrency_while(async { Ok(7) });
                    let (done, mut waited) = hand_over();
                    inner.wait_until(async move { done(work.await.unwrap_or_default()) });
                    let result = poll_fn(move |cx| waited(cx.waker())).await;
                    Ok(json!([other.await?, result]))
                };
                state.block_concurrency_while(work).await?
            }
            Step::Nest(depth) => {
                nest(state.clone(), *depth).await?;
                Value::Null
            }
            _ => return Ok(None),
        }))
    }

    async fn increment(&self, pause: Option<u64>) -> Result<Value, Failure> {
        let sql = self.state.sql();
        let n = sql.scalar::<i64>("SELECT n FROM n", ())?.unwrap_or(0);
        self.state.alarms().get().await?;
        if let Some(ms) = pause {
            self.state.sleep(Duration::from_millis(ms)).await;
        }
        sql.exec("DELETE FROM n", ())?;
        sql.exec("INSERT INTO n VALUES (?)", (n + 1,))?;
        Ok(Value::Null)
    }

    pub(super) fn call(
        &self,
        name: &str,
        steps: &[Step],
    ) -> Result<impl Future<Output = Result<Response, Error>> + use<S>, Failure> {
        let stub = self.state.env().namespace("PROBE")?.named(name)?;
        let request = http::Request::post("http://probe/").body(serde_json::to_vec(steps)?.into())?;
        Ok(stub.fetch(request))
    }

    pub(super) fn after(&self, ms: i64) -> Timestamp {
        Timestamp::from_millis(self.state.now().as_millis().saturating_add(ms))
    }

    async fn set_alarm(&self, at: Timestamp) -> Result<Value, Failure> {
        self.state.alarms().set(at).await?;
        Ok(json!(at))
    }

    pub(super) fn note(&self, line: &str) -> Result<Value, Failure> {
        self.state.sql().exec("INSERT INTO log VALUES (?, ?)", (self.state.now(), line))?;
        Ok(Value::Null)
    }

    /// A step that awaits nothing, as a constructor and a transaction need it; `None` for the others.
    pub(super) fn now(&self, step: &Step, at: &At<S>) -> Result<Option<Value>, Failure> {
        let value = self.plain(step)?;
        let value = if value.is_some() { value } else { self.data(step, at)? };
        if value.is_some() { Ok(value) } else { self.socket_step(step, at) }
    }

    fn plain(&self, step: &Step) -> Result<Option<Value>, Failure> {
        Ok(Some(match step {
            Step::Instance => json!(self.instance.to_string()),
            Step::Name => json!(self.state.id().name().map(ObjectName::as_str)),
            Step::Id => json!(self.state.id().to_string()),
            Step::Now => json!(self.state.now()),
            Step::Uri => json!(*self.uri.borrow()),
            Step::Var(name) => json!(self.state.env().var(name)?),
            Step::Add(n) => {
                self.memory.set(self.memory.get().saturating_add(*n));
                json!(self.memory.get())
            }
            Step::FailBefore(at) if self.state.now().as_millis() < *at => {
                return Err(Failure::msg(format!("too early, attempt {}", self.state.random())));
            }
            Step::FailBefore(_) => Value::Null,
            Step::Fail(text) => return Err(Failure::msg(text)),
            Step::FailTyped => return Err(ProbeError.into()),
            #[allow(clippy::panic)] // it is what the step is for
            Step::Panic(text) => panic!("{text}"),
            Step::Open => {
                let (sender, body) = Body::channel(1_000);
                *self.sender.borrow_mut() = Some(sender);
                *self.body.borrow_mut() = Some(body);
                Value::Null
            }
            Step::Chunk(text) => match &*self.sender.borrow() {
                Some(sender) => json!(sender.try_send(text.clone()).is_ok()),
                None => Value::Null,
            },
            Step::Close => {
                *self.sender.borrow_mut() = None;
                Value::Null
            }
            _ => return Ok(None),
        }))
    }

    fn data(&self, step: &Step, at: &At<S>) -> Result<Option<Value>, Failure> {
        let (sql, alarms) = (self.state.sql(), self.state.alarms());
        Ok(Some(match step {
            Step::Life(step) => return self.life_now(step, at),
            Step::FirstEvent(step) => self.first_event_step(step, at)?,
            Step::Schedule(step) => return self.schedule_now(step, at),
            Step::Sql(text) => {
                let rows = sql.exec(text, ())?;
                let first =
                    rows.iter().map(|row| row.at::<crate::Value>(0)).collect::<Result<Vec<_>, _>>()?;
                Value::Array(first.into_iter().map(to_json).collect())
            }
            Step::Query(text, params) => {
                let params: Vec<crate::Value> = params.iter().cloned().map(Into::into).collect();
                let rows = sql.exec(text, params)?;
                let cells = rows.iter().map(|row| row.values().iter().map(SqlCell::from).collect::<Vec<_>>());
                json!({ "columns": rows.columns(), "rows": cells.collect::<Vec<_>>() })
            }
            Step::Note(line) => self.note(line)?,
            Step::NoteOf(steps) => self.note(&json!(self.all_now(steps, at)?).to_string())?,
            Step::Log => json!(sql.query::<LogLine>("SELECT at, line FROM log ORDER BY rowid", ())?),
            Step::Runs => {
                json!(sql.query::<Ran>("SELECT at, scheduled, retries FROM runs ORDER BY rowid", ())?)
            }
            Step::Events => self.column("SELECT line FROM events ORDER BY rowid")?,
            Step::Boots => json!(sql.scalar::<i64>("SELECT count(*) FROM boots", ())?),
            Step::OnAlarm(steps) => self.keep("alarm", steps)?,
            Step::OnNew(steps) => self.keep("new", steps)?,
            Step::OnMessage(steps) => self.keep("message", steps)?,
            Step::OnClose(steps) => self.keep("close", steps)?,
            Step::SetAlarm(after) => {
                let at = self.after(*after);
                now_or_never(alarms.set(at)).transpose()?;
                json!(at)
            }
            Step::SetAlarmAt(ms) => {
                now_or_never(alarms.set(Timestamp::from_millis(*ms))).transpose()?;
                Value::Null
            }
            Step::DeleteAlarm => {
                now_or_never(alarms.delete()).transpose()?;
                Value::Null
            }
            Step::Db(step) => self.sql_step(step, at)?,
            Step::Transaction(steps) => json!(sql.transaction(|| self.all_now(steps, at))?),
            Step::DeleteAll => {
                self.state.delete_all()?;
                make_tables(&self.state)?;
                Value::Null
            }
            _ => return Ok(None),
        }))
    }

    pub(super) fn all_now(&self, steps: &[Step], at: &At<S>) -> Result<Vec<Value>, Failure> {
        let awaits = |step: &Step| Failure::msg(format!("this step would have to await: {step:?}"));
        steps.iter().map(|step| self.now(step, at)?.ok_or_else(|| awaits(step))).collect()
    }

    fn column(&self, query: &str) -> Result<Value, Failure> {
        let rows = self.state.sql().exec(query, ())?;
        Ok(json!(rows.iter().map(|row| row.at::<String>(0)).collect::<Result<Vec<_>, _>>()?))
    }
}

fn nest<S: ObjectState>(state: S, depth: u32) -> super::tasks::Local<'static, Result<(), Failure>> {
    Box::pin(async move {
        if depth > 0 {
            state.block_concurrency_while(nest(state.clone(), depth - 1)).await?;
        }
        Ok(())
    })
}

/// A value that one task hands to another.
fn hand_over<T>() -> (impl FnOnce(T), impl FnMut(&Waker) -> Poll<T>) {
    let shared = Rc::new(RefCell::new((None, None::<Waker>)));
    let give = {
        let shared = Rc::clone(&shared);
        move |value| {
            let mut shared = shared.borrow_mut();
            shared.0 = Some(value);
            if let Some(waker) = shared.1.take() {
                waker.wake();
            }
        }
    };
    let take = move |waker: &Waker| {
        let mut shared = shared.borrow_mut();
        match shared.0.take() {
            Some(value) => Poll::Ready(value),
            None => {
                shared.1 = Some(waker.clone());
                Poll::Pending
            }
        }
    };
    (give, take)
}

#[derive(Serialize, Deserialize)]
struct LogLine {
    at: i64,
    line: String,
}

#[derive(Serialize, Deserialize)]
struct Ran {
    at: i64,
    scheduled: i64,
    retries: u32,
}

fn to_json(value: crate::Value) -> Value {
    match value {
        crate::Value::Integer(i) => json!(i),
        crate::Value::Real(r) => json!(r),
        crate::Value::Text(text) => json!(text),
        crate::Value::Null | crate::Value::Blob(_) => Value::Null,
    }
}
