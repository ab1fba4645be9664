//! The probe's steps over identity and lifecycle.

use super::{
    probe::Inner,
    run::At,
    step::{Step, Who},
    tasks::Local,
    thrown::Thrown,
};
use crate::{
    Env, Error, ErrorKind, Failure, Namespace, ObjectId, ObjectName, ObjectState, Socket, SqlExt, SqlStorage,
    Stub,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::{
    cell::Cell,
    collections::BTreeMap,
    future::pending,
    rc::Rc,
    sync::{Mutex, PoisonError},
    time::Duration,
};

/// What to do with ids, stubs and the instance.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum LifeStep {
    /// Makes a stub of the name's object and gives its id, and calls nothing.
    Stub(String),
    /// A stub here of the object that has this name in another namespace.
    ForeignStub(String, String),
    /// Whether the ids of two names, each read from its text as well, are equal in each way.
    EqualIds(String, String),
    /// A request with this address, and this `Host` if there is one.
    CallAt(String, String, Option<String>, Vec<Step>),
    /// Each steps as a call on one stub, none awaited before all were made.
    Calls(String, Vec<Vec<Step>>),
    /// Sets what all objects of the thread share, or only gives it.
    Global(Option<i64>),
    /// A sleep that was begun and that nobody awaits.
    HoldSleep(u64),
    /// Notes what the steps gave or failed with, as `try` gives it.
    NoteTry(Vec<Step>),
    /// Waits for ever, and for nothing.
    Never,
    /// Gates within gates, this many, each of which adds one to what is in it.
    NestSum(u32),
    /// Transactions within transactions, this many, each of which writes a row: how many were kept.
    NestTransactions(u32),
    /// Fails the first so many times that the object of this id runs it in this process.
    FailTimes(u32),
    /// Panics as often.
    PanicTimes(u32),
    /// Resets the object as often.
    ResetTimes(u32),
    /// Fails with an error of the library of this kind.
    FailKind(String, String),
    /// Sends so many bytes.
    SendSize(Who, usize),
    Buffered(Who),
}

/// Beside all instances, so that a constructor that fails can count.
static ATTEMPTS: Mutex<BTreeMap<[u8; 32], u32>> = Mutex::new(BTreeMap::new());

thread_local! {
    static GLOBAL: Cell<i64> = const { Cell::new(0) };
}

/// Every kind, whose names are what they show as.
const KINDS: [ErrorKind; 13] = [
    ErrorKind::Invalid,
    ErrorKind::Limit,
    ErrorKind::NotFound,
    ErrorKind::NotInEvent,
    ErrorKind::Closed,
    ErrorKind::Sql,
    ErrorKind::Application,
    ErrorKind::Reset,
    ErrorKind::Transient,
    ErrorKind::Overloaded,
    ErrorKind::Deadline,
    ErrorKind::Shutdown,
    ErrorKind::Platform,
];

impl<S: ObjectState> Inner<S> {
    /// A step that awaits; `None` for the others.
    pub(super) async fn life_step(
        self: &Rc<Self>,
        step: &LifeStep,
        at: &At<S>,
    ) -> Result<Option<Value>, Failure> {
        Ok(Some(match step {
            LifeStep::CallAt(name, uri, host, steps) => {
                let mut request = http::Request::post(uri.as_str());
                if let Some(host) = host {
                    request = request.header(http::header::HOST, host);
                }
                let request = request.body(serde_json::to_vec(steps)?.into())?;
                let stub = self.state.env().namespace("PROBE")?.named(name.as_str())?;
                stub.fetch(request).await?.into_body().json(super::probe::MOST).await?
            }
            LifeStep::Calls(name, calls) => {
                let stub = self.state.env().namespace("PROBE")?.named(name.as_str())?;
                calls_on(&stub, calls).await?
            }
            LifeStep::HoldSleep(ms) => {
                let mut sleep: Local<'static, ()> = Box::pin(self.state.sleep(Duration::from_millis(*ms)));
                // Polled in this task, so that it is begun.
                std::future::poll_fn(|cx| {
                    let _ = sleep.as_mut().poll(cx);
                    std::task::Poll::Ready(())
                })
                .await;
                self.held.borrow_mut().push(sleep);
                Value::Null
            }
            LifeStep::NoteTry(steps) => {
                let outcome = match self.steps(steps.clone(), at.clone()).await {
                    Ok(values) => json!({ "ok": values }),
                    Err(failure) => json!({ "error": Thrown::from(&Error::from(failure)) }),
                };
                self.note(&outcome.to_string())?
            }
            LifeStep::NestSum(depth) => json!(nest_sum(self.state.clone(), *depth).await?),
            LifeStep::ResetTimes(times) => match self.attempt() {
                attempt if attempt <= *times => {
                    match self.state.reset(&format!("attempt {attempt}")).await {}
                }
                _ => Value::Null,
            },
            LifeStep::Never => pending().await,
            _ => return Ok(None),
        }))
    }

    /// A step that awaits nothing; `None` for the others.
    pub(super) fn life_now(&self, step: &LifeStep, at: &At<S>) -> Result<Option<Value>, Failure> {
        let env = self.state.env();
        Ok(Some(match step {
            LifeStep::Stub(name) => json!(env.namespace("PROBE")?.named(name.as_str())?.id().to_string()),
            LifeStep::ForeignStub(namespace, name) => {
                let id = env.namespace(namespace)?.id_of(&ObjectName::new(name)?)?;
                json!(env.namespace("PROBE")?.get(&id)?.id().to_string())
            }
            LifeStep::EqualIds(one, two) => {
                let objects = env.namespace("PROBE")?;
                let both = |name: &String| {
                    let named = objects.id_of(&ObjectName::new(name)?)?;
                    let read = objects.parse_id(&named.to_string())?;
                    Ok::<_, Error>([named, read])
                };
                let (one, two) = (both(one)?, both(two)?);
                let pairs = one.iter().flat_map(|a| two.iter().map(move |b| (a, b)));
                json!(pairs.map(|(a, b)| [a == b, hash(a) == hash(b), a.cmp(b).is_eq()]).collect::<Vec<_>>())
            }
            LifeStep::Global(set) => {
                if let Some(set) = set {
                    GLOBAL.set(*set);
                }
                json!(GLOBAL.get())
            }
            LifeStep::NestTransactions(depth) => {
                self.nest_transactions(*depth)?;
                json!(self.state.sql().scalar::<i64>("SELECT count(*) FROM n", ())?)
            }
            LifeStep::FailTimes(times) => match self.attempt() {
                attempt if attempt <= *times => return Err(Failure::msg(format!("attempt {attempt}"))),
                _ => Value::Null,
            },
            LifeStep::PanicTimes(times) => match self.attempt() {
                #[allow(clippy::panic)] // it is what the step is for
                attempt if attempt <= *times => panic!("attempt {attempt}"),
                _ => Value::Null,
            },
            LifeStep::FailKind(kind, text) => {
                let kind = KINDS.into_iter().find(|known| format!("{known:?}") == *kind);
                let kind = kind.ok_or_else(|| Failure::msg("there is no such kind"))?;
                return Err(Error::new(kind, text).into());
            }
            LifeStep::SendSize(who, bytes) => self.each(who, at, |socket| socket.send(vec![b'x'; *bytes]))?,
            LifeStep::Buffered(who) => self.list(who, at, |socket| Ok(json!(socket.buffered_bytes())))?,
            _ => return Ok(None),
        }))
    }

    /// The number of this attempt of the object, over all its instances.
    fn attempt(&self) -> u32 {
        let mut attempts = ATTEMPTS.lock().unwrap_or_else(PoisonError::into_inner);
        let attempt = attempts.entry(*self.state.id().as_bytes()).or_default();
        *attempt += 1;
        *attempt
    }

    fn nest_transactions(&self, depth: u32) -> Result<(), Failure> {
        let sql = self.state.sql();
        if depth == 0 {
            return Ok(());
        }
        sql.transaction(|| {
            sql.exec("INSERT INTO n VALUES (?)", (depth,))?;
            self.nest_transactions(depth - 1)
        })
    }
}

fn nest_sum<S: ObjectState>(state: S, depth: u32) -> Local<'static, Result<u32, Failure>> {
    Box::pin(async move {
        if depth == 0 {
            return Ok(0);
        }
        Ok(1 + state.block_concurrency_while(nest_sum(state.clone(), depth - 1)).await?)
    })
}

/// What each call gave or failed with, in the order of the calls. They leave before one is awaited.
pub(super) async fn calls_on<T: Serialize>(stub: &impl Stub, calls: &[T]) -> Result<Value, Failure> {
    let mut under_way = Vec::with_capacity(calls.len());
    for steps in calls {
        let request = http::Request::post("http://probe/").body(serde_json::to_vec(steps)?.into())?;
        under_way.push(stub.fetch(request));
    }
    let mut given = Vec::with_capacity(calls.len());
    for call in under_way {
        given.push(match call.await {
            Ok(response) => response.into_body().json::<Value>(super::probe::MOST).await?,
            Err(error) => json!({ "error": Thrown::from(&error) }),
        });
    }
    Ok(json!(given))
}

fn hash(id: &ObjectId) -> u64 {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    id.hash(&mut hasher);
    hasher.finish()
}
