//! What an object has of the platform.

use super::{
    alarms::{AlarmRun, WorkersAlarms},
    env::{WorkersEnv, id_in},
    error::{caught, thrown},
    ext::{ObjectContext, Storage},
    sockets::{SocketNumbers, WorkersSockets},
    sql::WorkersSql,
    timer::Timer,
    turn,
};
use crate::{
    Error, ErrorKind, Failure, Message, ObjectId, ObjectState, Timestamp, first_event::FirstEvent, limits,
    sql::rules::check_erase,
};
use js_sys::Promise;
use std::{
    cell::{Cell, RefCell},
    convert::Infallible,
    fmt,
    future::{pending, poll_fn},
    pin::pin,
    rc::{Rc, Weak},
    task::{Poll, Waker},
    time::Duration,
};
use wasm_bindgen::{JsCast, JsValue, prelude::Closure};
use wasm_bindgen_futures::{JsFuture, spawn_local};

/// The [`ObjectState`] of a Worker's object.
#[derive(Clone)]
pub struct WorkersState(Rc<Handles>);

struct Handles {
    inner: Rc<Inner>,
    id: ObjectId,
    env: WorkersEnv,
    sockets: WorkersSockets,
    alarms: WorkersAlarms,
    sql: WorkersSql,
}

/// What the parts of a state share.
pub(super) struct Inner {
    pub(super) context: ObjectContext,
    pub(super) storage: Storage,
    /// The time of this turn, once somebody asked for it.
    now: Cell<Option<Timestamp>>,
    /// The latest time that was given.
    latest: Cell<Timestamp>,
    /// How many transactions are open, one inside the other.
    transactions: Cell<usize>,
    /// How many were undone.
    pub(super) rollbacks: Cell<u64>,
    /// How many row callbacks run, one inside the other.
    iterating: Cell<usize>,
    /// The text that was sent last, as JavaScript has it: a broadcast translates it once.
    sent: RefCell<Option<(Message, JsValue)>>,
    pub(super) socket_numbers: SocketNumbers,
    /// How deep in gates the code is that runs.
    depth: Cell<usize>,
    /// `new` runs.
    constructing: Cell<bool>,
    opening: Opening,
    pub(super) alarm_run: AlarmRun,
    /// Work that waits for it; it is part of the instance, which the work must not outlive.
    first_event: Weak<FirstEvent>,
}

/// One more on a count of what is open, until it is dropped.
struct Within<'a>(&'a Cell<usize>);

impl<'a> Within<'a> {
    fn enter(count: &'a Cell<usize>) -> Self {
        count.set(count.get() + 1);
        Self(count)
    }
}

impl Drop for Within<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

/// The gates that `new` closed. The platform holds events back until they open, but for an instance that is made
/// again after a panic of another object (with panic=abort) it does not: then the handlers wait by themselves.
#[derive(Default)]
struct Opening {
    gates: Cell<u32>,
    waiting: RefCell<Vec<Waker>>,
}

impl Inner {
    /// A new poll of something that the object does.
    pub(super) fn begin_turn(&self) {
        self.now.set(None);
        self.sent.take();
    }

    pub(super) fn now(&self) -> Timestamp {
        if let Some(now) = self.now.get() {
            return now;
        }
        #[allow(clippy::cast_possible_truncation)] // whole milliseconds, far below 2^53
        let clock = Timestamp::from_millis(js_sys::Date::now() as i64);
        let now = clock.max(self.latest.get());
        self.latest.set(now);
        self.now.set(Some(now));
        now
    }

    /// Resets the object with this error: memory is lost, sockets close with 1006, requests in flight fail.
    ///
    /// Not by `ctx.abort()`, whose exception nothing can catch: thrown from inside a poll, it would leave the queue of
    /// all futures of the isolate standing still. A failed gate does the same to this object alone.
    pub(super) fn fault(&self, error: &Error) {
        let error = thrown(error);
        drop(self.block(move || Promise::reject(&error)));
    }

    /// Closes the gate until the promise of `work` settles. The future that is given back may be dropped: it has taken
    /// the rejection, which would otherwise be logged as a fault that nobody handles.
    ///
    /// `work` must begin what it does inside the call: what was begun before stands outside of the gate and waits for it
    /// to open.
    fn block(&self, work: impl FnOnce() -> Promise + 'static) -> Option<JsFuture> {
        let callback = Closure::once_assert_unwind_safe(move || JsValue::from(work())).into_js_value();
        match self.context.block_concurrency_while(&callback) {
            Ok(blocked) => Some(blocked.into()),
            Err(exception) => {
                tracing::error!(error = %caught(&exception), "the gate of an object cannot be closed");
                None
            }
        }
    }

    /// How many transactions of the object's own code are open, one inside the other.
    pub(super) fn own_transactions(&self) -> usize {
        let around_new = self.constructing.get() && cfg!(not(panic = "unwind"));
        self.transactions.get() - usize::from(around_new && self.transactions.get() > 0)
    }

    /// Counts a transaction until the guard is dropped.
    pub(super) fn enter_transaction(&self) -> impl Drop {
        Within::enter(&self.transactions)
    }

    /// Counts a row callback until the guard is dropped.
    pub(super) fn enter_iteration(&self) -> impl Drop {
        Within::enter(&self.iterating)
    }

    /// The message as JavaScript has it. The same text is translated once in a turn, however many sockets get it.
    pub(super) fn to_js(&self, message: Message) -> JsValue {
        let text = match message {
            Message::Binary(bytes) => return js_sys::Uint8Array::from(&bytes[..]).into(),
            Message::Text(text) => text,
        };
        let same = |sent: &Message| {
            sent.as_bytes().as_ptr() == text.as_bytes().as_ptr() && sent.len() == text.as_bytes().len()
        };
        if let Some((sent, js)) = &*self.sent.borrow()
            && same(sent)
        {
            return js.clone();
        }
        let js = JsValue::from_str(&text);
        // The message is kept with it, so that its memory cannot become that of another text meanwhile.
        self.sent.replace(Some((Message::Text(text), js.clone())));
        js
    }

    /// Whether the gates that `new` closed are open.
    pub(super) fn is_open(&self) -> bool {
        self.opening.gates.get() == 0
    }

    /// Completes when they are.
    pub(super) async fn opened(&self) {
        poll_fn(|cx| {
            if self.is_open() {
                return Poll::Ready(());
            }
            self.opening.waiting.borrow_mut().push(cx.waker().clone());
            Poll::Pending
        })
        .await;
    }
}

/// B9: whoever waits for the object learns that it is reset, and why.
fn reset_by(failure: Failure) -> JsValue {
    let error = failure.into_error();
    thrown(&Error::new(ErrorKind::Reset, error.to_string()).with_name(error.name()))
}

/// A gate that `new` closed. One whose work fails stays closed: the object is reset, and nothing more of it is to run.
struct OpeningGate(Rc<Inner>);

impl OpeningGate {
    fn close(inner: &Rc<Inner>) -> Option<Self> {
        inner.constructing.get().then(|| {
            inner.opening.gates.set(inner.opening.gates.get() + 1);
            Self(Rc::clone(inner))
        })
    }

    fn open(self) {
        let opening = &self.0.opening;
        opening.gates.set(opening.gates.get() - 1);
        for waiting in opening.waiting.take() {
            waiting.wake();
        }
    }
}

impl WorkersState {
    pub(super) fn new(context: JsValue, env: JsValue, first_event: Weak<FirstEvent>) -> Result<Self, Error> {
        let context: ObjectContext = context.unchecked_into();
        let storage = context.storage().map_err(|e| caught(&e))?;
        let sql = storage.sql().map_err(|e| caught(&e))?;
        let id = id_in(&context.id().map_err(|e| caught(&e))?)?;
        let inner = Rc::new(Inner {
            context,
            storage,
            now: Cell::new(None),
            latest: Cell::new(Timestamp::EPOCH),
            transactions: Cell::new(0),
            rollbacks: Cell::new(0),
            iterating: Cell::new(0),
            sent: RefCell::default(),
            socket_numbers: SocketNumbers::default(),
            depth: Cell::new(0),
            constructing: Cell::new(false),
            opening: Opening::default(),
            alarm_run: AlarmRun::default(),
            first_event,
        });
        Ok(Self(Rc::new(Handles {
            id,
            env: WorkersEnv::new(env),
            sockets: WorkersSockets::new(Rc::clone(&inner)),
            alarms: WorkersAlarms::new(Rc::clone(&inner)),
            sql: WorkersSql::new(sql, Rc::clone(&inner)),
            inner,
        })))
    }

    pub(super) fn inner(&self) -> &Rc<Inner> {
        &self.0.inner
    }

    /// Runs the constructor of the object.
    pub(super) fn construct<T>(&self, new: impl FnOnce() -> T) -> T {
        let inner = &self.0.inner;
        let _turn = turn::enter(inner);
        inner.constructing.set(true);
        let made = new();
        inner.constructing.set(false);
        made
    }

    /// The handler of an event that is not the alarm's is about to begin.
    pub(super) fn first_event_comes(&self) {
        if let Some(first) = self.inner().first_event.upgrade() {
            first.comes();
        }
    }

    /// The platform's own `ctx`, for what this crate does not cover.
    pub fn as_raw(&self) -> &JsValue {
        self.0.inner.context.as_ref()
    }
}

impl ObjectState for WorkersState {
    type Sockets = WorkersSockets;
    type Alarms = WorkersAlarms;
    type Sql = WorkersSql;
    type Env = WorkersEnv;

    fn id(&self) -> &ObjectId {
        &self.0.id
    }

    fn env(&self) -> &WorkersEnv {
        &self.0.env
    }

    fn sockets(&self) -> &WorkersSockets {
        &self.0.sockets
    }

    fn alarms(&self) -> &WorkersAlarms {
        &self.0.alarms
    }

    fn sql(&self) -> &WorkersSql {
        &self.0.sql
    }

    fn now(&self) -> Timestamp {
        self.0.inner.now()
    }

    fn random(&self) -> u64 {
        random()
    }

    fn sleep(&self, duration: Duration) -> impl Future<Output = ()> + use<> {
        Timer::new(duration)
    }

    fn wait_until(&self, work: impl Future<Output = ()> + 'static) {
        let inner = self.inner();
        let work = async move {
            work.await;
            Ok(JsValue::UNDEFINED)
        };
        let work = turn::promise(inner, Box::pin(work));
        if let Err(exception) = inner.context.wait_until(&work) {
            tracing::warn!(object = ?self.id(), error = %caught(&exception), "wait_until: the work is not waited for");
        }
    }

    fn block_concurrency_while<T, F>(&self, work: F) -> impl Future<Output = Result<T, Failure>> + use<T, F>
    where
        T: 'static,
        F: Future<Output = Result<T, Failure>> + 'static,
    {
        let slot = Rc::new(Cell::new(None));
        let (filled, opening) = (Rc::clone(&slot), OpeningGate::close(self.inner()));
        let (inner, depth) = (Rc::clone(self.inner()), self.inner().depth.get());
        let within = Rc::clone(&inner);
        let work: turn::Work = Box::pin(async move {
            let mut work = pin!(work);
            let work = poll_fn(|cx| {
                let outside = within.depth.replace(depth + 1);
                let polled = work.as_mut().poll(cx);
                within.depth.set(outside);
                polled
            });
            filled.set(Some(work.await.map_err(reset_by)?));
            if let Some(opening) = opening {
                opening.open();
            }
            Ok(JsValue::UNDEFINED)
        });
        // B10. The platform's own limit would leave the gates around it closed until their time is over.
        let too_deep = depth >= limits::BLOCK_CONCURRENCY_DEPTH;
        let blocked = if too_deep { None } else { self.inner().block(move || turn::promise(&inner, work)) };
        async move {
            if too_deep {
                let message = format!(
                    "block_concurrency_while is nested deeper than {}: the object is reset",
                    limits::BLOCK_CONCURRENCY_DEPTH
                );
                return Err(Error::new(ErrorKind::Reset, message).into());
            }
            let Some(blocked) = blocked else {
                let closed = "block_concurrency_while can only be used inside the object's own handlers";
                return Err(Error::new(ErrorKind::NotInEvent, closed).into());
            };
            match (blocked.await, slot.take()) {
                (Ok(_), Some(value)) => Ok(value),
                // The gate around it must end for the object to be reset.
                (Err(exception), _) if depth > 0 => Err(caught(&exception).into()),
                // B9: the object is being reset, and what comes after the await does not run.
                _ => pending().await,
            }
        }
    }

    fn at_first_event(&self, work: impl FnOnce() + 'static) {
        if let Some(first) = self.inner().first_event.upgrade() {
            first.call(work);
        }
    }

    async fn reset(&self, reason: &str) -> Infallible {
        let reason = if reason.is_empty() { "the object reset itself" } else { reason };
        let (error, storage) = (Error::new(ErrorKind::Reset, reason), self.inner().storage.clone());
        let work = self.block_concurrency_while::<(), _>(async move {
            // What was written before stays, on every host; without this the platform would throw it away.
            if let Ok(synced) = storage.sync() {
                drop(JsFuture::from(synced).await);
            }
            Err(error.into())
        });
        drop(work.await);
        pending().await
    }

    fn delete_all(&self) -> Result<(), Error> {
        let inner = self.inner();
        check_erase(inner.own_transactions(), inner.iterating.get())?;
        let deleted = inner.storage.delete_all().map_err(|e| caught(&e))?;
        inner.alarm_run.touch();
        // Done at the call; what can still fail is the commit, which resets the object as any commit does.
        spawn_local(async move {
            if let Err(exception) = JsFuture::from(deleted).await {
                tracing::error!(error = %caught(&exception), "delete_all failed");
            }
        });
        Ok(())
    }
}

impl fmt::Debug for WorkersState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("WorkersState").field(&self.0.id).finish()
    }
}

pub(super) fn random() -> u64 {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // within 0 to 2^32
    let half = || (js_sys::Math::random() * 4_294_967_296.0) as u64;
    half() << 32 | half()
}
