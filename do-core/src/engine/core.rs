//! What one instance and the engine share: the engine drives it from outside, the state handles from inside.
//!
//! No borrow of a cell here is ever held while the application's code runs.

use super::{
    ConnId, Director, ReadyQueue, SocketKey, Storage, Transport,
    alarm::{AlarmSlot, RunEnd},
    class::LocalFuture,
    clock::Clock,
    gate::{Output, OutputGate},
    sockets::{SocketCell, SocketTable},
    timers::{TimerId, Timers},
};
use crate::{
    CloseFrame, Error, ErrorKind, Failure, Message, ObjectId, Timestamp, first_event::FirstEvent, limits,
    sql::rules::check_depth,
};
use std::{
    cell::{Cell, RefCell},
    collections::VecDeque,
    fmt,
    future::{Future, poll_fn},
    rc::{Rc, Weak},
    sync::{Arc, atomic::AtomicUsize},
    task::{Context, Poll, Waker},
    time::Duration,
};

/// What a timer of the engine is for.
pub(super) enum Due {
    Wake(Waker),
    /// Look whether the object at this place is idle.
    Idle(u32),
    /// A gate task has run for too long.
    Gate {
        object: u32,
        task: u64,
    },
    /// The alarm's handler at this place has run for too long.
    AlarmRun(u32),
    /// The peer had its time to answer our Close, or to close the connection.
    CloseWait(SocketKey, ConnId),
    /// Some clients had their time to complete the handshake.
    Handshakes,
    /// A file may give back some of what it does not use.
    Vacuum,
}

/// What all objects of an engine share.
pub(crate) struct Shared {
    pub(super) clock: Arc<dyn Clock>,
    pub(super) transport: Rc<dyn Transport>,
    pub(super) ready: Arc<ReadyQueue>,
    pub(super) timers: RefCell<Timers<Due>>,
    pub(super) random: RefCell<fastrand::Rng>,
    /// Sockets that were accepted a while ago, in the order of their deadlines, which all have the same distance:
    /// cheaper than a timer for each.
    pub(super) handshakes: RefCell<VecDeque<Handshake>>,
    /// The timer of the first of them runs.
    pub(super) handshakes_armed: Cell<bool>,
    /// The monotonic time of the present round, read once for it.
    pub(super) elapsed: Cell<Duration>,
    serial: Cell<u64>,
    director: Option<Rc<dyn Director>>,
}

impl Shared {
    pub(super) fn new(
        clock: Arc<dyn Clock>,
        transport: Rc<dyn Transport>,
        ready: Arc<ReadyQueue>,
        seed: u64,
        director: Option<Rc<dyn Director>>,
    ) -> Self {
        let elapsed = Cell::new(clock.elapsed());
        let random = RefCell::new(fastrand::Rng::with_seed(seed));
        Self {
            clock,
            transport,
            ready,
            timers: RefCell::new(Timers::new()),
            handshakes: RefCell::default(),
            handshakes_armed: Cell::new(false),
            random,
            elapsed,
            serial: Cell::new(0),
            director,
        }
    }

    /// The next of what waits: the first, unless a director says otherwise.
    pub(super) fn next<T>(&self, waiting: &mut VecDeque<T>) -> Option<T> {
        match &self.director {
            Some(director) if waiting.len() > 1 => waiting.remove(director.pick(waiting.len())),
            _ => waiting.pop_front(),
        }
    }

    /// Whether a director picks what is next.
    pub(super) fn is_directed(&self) -> bool {
        self.director.is_some()
    }

    /// Which of so many the director takes; the first when there is none.
    pub(super) fn pick(&self, of: usize) -> usize {
        self.director.as_ref().map_or(0, |director| director.pick(of))
    }

    /// For the history of a test.
    pub(super) fn note(&self, id: &ObjectId, what: fmt::Arguments<'_>) {
        if let Some(director) = &self.director {
            match id.name() {
                Some(name) => director.note(format_args!("{:?} {what}", name.as_str())),
                None => director.note(format_args!("{id} {what}")),
            }
        }
    }

    pub(super) fn alarms_late(&self) -> Duration {
        self.director.as_ref().map_or(Duration::ZERO, |director| director.alarms_late())
    }

    pub(super) fn alarm_again(&self) -> bool {
        self.director.as_ref().is_some_and(|director| director.alarm_again())
    }

    /// A number never given before; never 0.
    pub(super) fn next_serial(&self) -> u64 {
        self.serial.set(self.serial.get() + 1);
        self.serial.get()
    }

    /// Gives the client its time to complete the handshake.
    pub(super) fn expect_handshake(&self, key: SocketKey, task: u64) {
        let until = self.elapsed.get().saturating_add(limits::CLOSE_WAIT);
        self.handshakes.borrow_mut().push_back(Handshake { until, key, task });
        if !self.handshakes_armed.replace(true) {
            self.after(limits::CLOSE_WAIT, Due::Handshakes);
        }
    }

    pub(super) fn after(&self, delay: Duration, what: Due) -> TimerId {
        self.timers.borrow_mut().insert(self.elapsed.get().saturating_add(delay), what)
    }
}

/// A handshake that may not be complete yet.
pub(super) struct Handshake {
    pub(super) until: Duration,
    pub(super) key: SocketKey,
    /// The task that accepted: while it runs, the client has no answer to complete.
    pub(super) task: u64,
}

/// Work that a turn asked for beside its own.
pub(super) enum Spawn {
    Background { work: LocalFuture<()>, within: Within },
    Gate(GateWork),
}

/// What is to run behind a gate.
pub(super) struct GateWork {
    pub(super) work: LocalFuture<Result<(), Failure>>,
    /// Where it was asked for.
    pub(super) within: Within,
}

/// The gate that a task belongs to: it is the gate's work, or was spawned by it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Within {
    pub(super) gate: Option<u64>,
    /// How deep in gates that is.
    pub(super) depth: usize,
}

/// One instance of one object.
pub(crate) struct Core {
    pub(super) id: ObjectId,
    pub(super) object: u32,
    pub(super) shared: Rc<Shared>,
    pub(super) storage: Rc<dyn Storage>,
    pub(super) sockets: Rc<SocketTable>,
    pub(super) alarm: Rc<RefCell<AlarmSlot>>,
    pub(super) gate: RefCell<OutputGate>,
    pub(super) spawned: RefCell<Vec<Spawn>>,
    /// Pending sleeps: they keep the object in memory (rule B3).
    pub(super) sleeping: Cell<usize>,
    /// Calls to other objects that were not answered: they do, too.
    pub(super) calls: Arc<AtomicUsize>,
    /// The turn set or deleted the alarm, or rolled back: read the slot again before the commit.
    pub(super) alarm_changed: Cell<bool>,
    /// The alarm's handler ended in this turn; what that means is decided by the commit.
    pub(super) alarm_ended: Cell<Option<RunEnd>>,
    /// The task whose turn runs, or ran last.
    pub(super) task: Cell<u64>,
    /// The task whose first turn runs and is not committed: nothing of it has taken effect.
    pub(super) beginning: Cell<Option<u64>>,
    /// Whether the alarm was touched in its run before this turn: a turn that is undone undoes its touch.
    touched_before: Cell<bool>,
    pub(super) rolled_back: Cell<bool>,
    /// A transaction that failed could not be undone: the turn must not be committed.
    doomed: Cell<bool>,
    /// Set while a turn runs.
    turn: Cell<Option<Within>>,
    now: Cell<Timestamp>,
    /// How many transactions are open, one inside the other.
    transactions: Cell<usize>,
    /// How many were undone.
    pub(crate) rollbacks: Cell<u64>,
    /// Why the instance must go, once the turn is over.
    fault: RefCell<Option<Error>>,
    dead: Cell<bool>,
    /// Work that waits for it; it is part of the instance, which the work must not outlive.
    first_event: Weak<FirstEvent>,
}

impl Core {
    pub(super) fn new(
        id: ObjectId,
        object: u32,
        shared: Rc<Shared>,
        storage: Rc<dyn Storage>,
        sockets: Rc<SocketTable>,
        alarm: Rc<RefCell<AlarmSlot>>,
        first_event: Weak<FirstEvent>,
    ) -> Rc<Self> {
        let now = Cell::new(shared.clock.now());
        Rc::new(Self {
            id,
            object,
            shared,
            storage,
            sockets,
            alarm,
            gate: RefCell::default(),
            spawned: RefCell::default(),
            sleeping: Cell::new(0),
            calls: Arc::default(),
            alarm_changed: Cell::new(false),
            alarm_ended: Cell::new(None),
            task: Cell::new(0),
            beginning: Cell::new(None),
            touched_before: Cell::new(false),
            rolled_back: Cell::new(false),
            doomed: Cell::new(false),
            turn: Cell::new(None),
            now,
            transactions: Cell::new(0),
            rollbacks: Cell::new(0),
            fault: RefCell::new(None),
            dead: Cell::new(false),
            first_event,
        })
    }

    // ---- driven by the engine

    pub(super) fn begin_turn(&self, turn: Within) {
        self.turn.set(Some(turn));
        self.touched_before.set(self.alarm.borrow().is_touched());
        self.now.set(self.now.get().max(self.shared.clock.now())); // never back within an instance
    }

    pub(super) fn end_turn(&self) {
        self.turn.set(None);
    }

    /// What the turn did is committed: a rollback from here on does not undo it.
    pub(super) fn kept(&self) {
        self.touched_before.set(self.alarm.borrow().is_touched());
        self.beginning.set(None);
    }

    /// Undoes what the turn wrote. The instance must go: what it sent since then may never leave.
    pub(super) fn roll_back(&self) {
        self.rolled_back.set(true);
        self.storage.rollback();
        self.alarm.borrow_mut().restore_touched(self.touched_before.get());
    }

    pub(super) fn cancel(&self, timer: TimerId) {
        let cancelled = self.shared.timers.borrow_mut().remove(timer);
        drop(cancelled); // with nothing borrowed: it may be a waker of the application's
    }

    pub(super) fn die(&self) {
        self.dead.set(true);
    }

    /// The first fault wins: what follows is often its consequence.
    pub(super) fn fault(&self, error: Error) {
        self.fault.borrow_mut().get_or_insert(error);
    }

    /// Whether the turn must be undone instead of committed.
    pub(super) fn is_doomed(&self) -> bool {
        self.doomed.get()
    }

    pub(super) fn take_fault(&self) -> Option<Error> {
        self.fault.borrow_mut().take()
    }

    pub(super) fn push(&self, output: Output) {
        self.gate.borrow_mut().push(output, self.storage.is_dirty());
    }

    // ---- driven by the state handles

    pub(crate) fn id(&self) -> &ObjectId {
        &self.id
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.now.get()
    }

    pub(crate) fn random(&self) -> u64 {
        self.shared.random.borrow_mut().u64(..)
    }

    pub(crate) fn sockets(&self) -> &SocketTable {
        &self.sockets
    }

    pub(crate) fn transport(&self) -> &dyn Transport {
        &*self.shared.transport
    }

    /// D3: the order of sockets is nobody's to rely on, so a director makes sure that nobody does.
    pub(crate) fn in_any_order<T>(&self, mut all: Vec<T>) -> Vec<T> {
        if let Some(director) = &self.shared.director {
            for last in (1..all.len()).rev() {
                all.swap(last, director.pick(last + 1));
            }
        }
        all
    }

    /// A socket's name for the driver.
    pub(crate) fn new_socket_key(&self) -> Result<SocketKey, Error> {
        self.in_turn()?;
        let key = SocketKey { object: self.object, socket: self.shared.next_serial() };
        self.shared.expect_handshake(key, self.task.get());
        Ok(key)
    }

    fn in_turn(&self) -> Result<Within, Error> {
        if self.dead.get() {
            return Err(Error::new(ErrorKind::Reset, "this instance of the object is gone"));
        }
        self.turn.get().ok_or_else(|| {
            Error::new(ErrorKind::NotInEvent, "an object's state can only be used inside its own handlers")
        })
    }

    /// The database, inside an event only.
    pub(crate) fn storage(&self) -> Result<&dyn Storage, Error> {
        self.in_turn()?;
        Ok(&*self.storage)
    }

    pub(crate) fn database_size(&self) -> u64 {
        self.storage.size()
    }

    /// F18: with a savepoint around `body`; the alarm rolls back with the rest (rule E13).
    pub(crate) fn transaction<T>(&self, body: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
        let storage = self.storage()?;
        let depth = self.transactions.get();
        check_depth(depth)?;
        storage.savepoint()?;
        self.transactions.set(depth + 1);
        let mut undo = Savepoint { core: self, touched: self.alarm.borrow().is_touched(), armed: true };
        let value = body()?;
        undo.armed = false;
        storage.release()?;
        Ok(value)
    }

    pub(crate) fn delete_all(&self) -> Result<(), Error> {
        self.storage()?.delete_all()?;
        self.alarm.borrow_mut().touch();
        self.alarm_changed.set(true);
        Ok(())
    }

    pub(crate) fn alarm(&self) -> Result<Option<Timestamp>, Error> {
        let stored = self.storage()?.alarm()?;
        Ok(self.alarm.borrow().visible(stored))
    }

    /// E1, E2: a time in the past is stored as now.
    pub(crate) fn set_alarm(&self, at: Option<Timestamp>) -> Result<(), Error> {
        if let Some(at) = at {
            at.check_alarm()?;
        }
        let at = at.map(|at| at.max(self.now.get()));
        self.storage()?.set_alarm(at)?;
        self.alarm.borrow_mut().touch();
        self.alarm_changed.set(true);
        Ok(())
    }

    pub(crate) fn send(&self, socket: &Rc<SocketCell>, message: Message) -> Result<(), Error> {
        self.in_turn()?;
        match socket.send(message, self.must_hold(), self.transport()) {
            Ok(output) => {
                output.into_iter().for_each(|o| self.push(o));
                Ok(())
            }
            Err(error) => {
                if error.is_overloaded() {
                    // The frame is small and goes past the bound; if it does not get through either, the
                    // connection is dropped after the usual wait for the peer's Close.
                    let frame = CloseFrame::from(crate::CloseCode::TRY_AGAIN_LATER);
                    socket.close(frame).into_iter().for_each(|o| self.push(o));
                }
                Err(error)
            }
        }
    }

    pub(crate) fn close(&self, socket: &Rc<SocketCell>, frame: CloseFrame) -> Result<(), Error> {
        self.in_turn()?;
        socket.close(frame).into_iter().for_each(|o| self.push(o));
        Ok(())
    }

    pub(crate) fn wait_until(&self, work: impl Future<Output = ()> + 'static) {
        match self.in_turn() {
            Ok(within) => {
                self.spawned.borrow_mut().push(Spawn::Background { work: Box::pin(work), within });
            }
            Err(error) => tracing::warn!(object = ?self.id, %error, "wait_until: the work is dropped"),
        }
    }

    pub(crate) fn block_concurrency_while<T, F>(
        &self,
        work: F,
    ) -> impl Future<Output = Result<T, Failure>> + use<T, F>
    where
        T: 'static,
        F: Future<Output = Result<T, Failure>> + 'static,
    {
        let slot = Rc::new(Slot { value: RefCell::new(None), waiter: RefCell::new(None) });
        let filled = Rc::clone(&slot);
        let refused = match self.in_turn() {
            Err(error) => Some(error),
            Ok(turn) if turn.depth >= limits::BLOCK_CONCURRENCY_DEPTH => {
                let message = format!(
                    "block_concurrency_while is nested deeper than {}: the object is reset",
                    limits::BLOCK_CONCURRENCY_DEPTH
                );
                self.fault(Error::new(ErrorKind::Reset, message));
                None
            }
            Ok(within) => {
                let work = Box::pin(async move {
                    filled.put(work.await?);
                    Ok(())
                });
                self.spawned.borrow_mut().push(Spawn::Gate(GateWork { work, within }));
                None
            }
        };
        // When the work fails the object is reset and this is never polled again (rule B9).
        poll_fn(move |cx| match &refused {
            Some(error) => Poll::Ready(Err(error.clone().into())),
            None => slot.poll(cx).map(Ok),
        })
    }

    pub(crate) fn at_first_event(&self, work: impl FnOnce() + 'static) {
        // What a destructor of a lost instance asks for is dropped.
        if !self.dead.get()
            && let Some(first) = self.first_event.upgrade()
        {
            first.call(work);
        }
    }

    /// Never resolves: after this turn the instance is gone.
    pub(crate) fn reset(&self, reason: &str) -> impl Future<Output = std::convert::Infallible> + use<> {
        let reason = if reason.is_empty() { "the object reset itself" } else { reason };
        self.fault(Error::new(ErrorKind::Reset, reason));
        std::future::pending()
    }

    /// Leaves with the outputs of this turn.
    pub(crate) fn call(&self, call: impl FnOnce() + 'static) {
        self.push(Output::Call(Box::new(call)));
    }

    /// Whether an output made now must wait for a commit.
    pub(super) fn must_hold(&self) -> bool {
        self.storage.is_dirty() || !self.gate.borrow().is_empty()
    }
}

impl fmt::Debug for Core {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Core").field("id", &self.id).finish_non_exhaustive()
    }
}

/// Undoes a transaction when it is dropped, also by a panic that the object catches.
struct Savepoint<'a> {
    core: &'a Core,
    touched: bool,
    armed: bool,
}

impl Drop for Savepoint<'_> {
    fn drop(&mut self) {
        self.core.transactions.set(self.core.transactions.get() - 1);
        if !self.armed {
            return;
        }
        self.core.rollbacks.set(self.core.rollbacks.get() + 1);
        self.core.alarm.borrow_mut().restore_touched(self.touched);
        self.core.alarm_changed.set(true);
        if let Err(error) = self.core.storage.rollback_to() {
            // What was to be undone cannot be: nothing of this turn may be kept.
            self.core.doomed.set(true);
            self.core.fault(error);
        }
    }
}

/// Where the value of a gate waits for whoever asked for it.
struct Slot<T> {
    value: RefCell<Option<T>>,
    waiter: RefCell<Option<Waker>>,
}

impl<T> Slot<T> {
    fn put(&self, value: T) {
        *self.value.borrow_mut() = Some(value);
        let waiter = self.waiter.borrow_mut().take();
        if let Some(waiter) = waiter {
            waiter.wake();
        }
    }

    fn poll(&self, cx: &Context<'_>) -> Poll<T> {
        if let Some(value) = self.value.borrow_mut().take() {
            return Poll::Ready(value);
        }
        *self.waiter.borrow_mut() = Some(cx.waker().clone());
        Poll::Pending
    }
}
