//! A turn: one poll of one task, then the commit, then what it sent (rules C4, C5).

use super::{
    Engine,
    alarm::RunEnd,
    class::LocalFuture,
    core::{Core, Due, GateWork, Spawn, Within},
    gate::Output,
    place::{Live, Outcome, Task, TaskKind},
    ready::{NOBODY, TaskKey, TaskWaker},
    sockets::SocketTable,
};
use crate::{Error, ErrorKind, Failure, Response, answered::panic_text, body::Held, limits};
use std::{
    cell::{Cell, RefCell},
    panic::{AssertUnwindSafe, catch_unwind},
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
};

thread_local! {
    /// Instances are being thrown away: what they were writing is cut off, not finished.
    static CUTTING_OFF: Cell<bool> = const { Cell::new(false) };
    /// The instance whose turn runs on this thread. Bodies and stubs have no state of their own to ask.
    static CURRENT: RefCell<Option<Rc<Core>>> = const { RefCell::new(None) };
}

/// The instance whose turn runs on this thread, if one does.
pub(crate) fn current() -> Option<Rc<Core>> {
    CURRENT.with_borrow(Clone::clone)
}

/// Whether a chunk written into a body now must wait for the turn's commit; if so, `held` lets it through later.
pub(crate) fn hold_body(held: impl FnOnce() -> Held) -> bool {
    let Some(core) = current().filter(|core| core.must_hold()) else { return false };
    core.push(Output::Body(held()));
    true
}

/// Whether an output that is made now must wait for the turn's commit; if so, `leave` is called when it may leave.
pub(crate) fn hold_output(leave: impl FnOnce() + 'static) -> bool {
    let Some(core) = current().filter(|core| core.must_hold()) else { return false };
    core.push(Output::Call(Box::new(leave)));
    true
}

/// Runs application code as a turn of `core`. A panic is an error with its text.
pub(super) fn run_in_turn<T>(core: &Rc<Core>, turn: Within, code: impl FnOnce() -> T) -> Result<T, Error> {
    core.begin_turn(turn);
    CURRENT.set(Some(Rc::clone(core)));
    let result = catch_unwind(AssertUnwindSafe(code));
    CURRENT.set(None);
    core.end_turn();
    result.map_err(|panic| {
        Error::new(ErrorKind::Reset, format!("the object panicked: {}", panic_text(&*panic)))
    })
}

/// Whether a body whose writer goes now was cut off.
pub(crate) fn is_cutting_off() -> bool {
    CUTTING_OFF.get() || std::thread::panicking()
}

/// Drops what is left of an instance, piece by piece: were two of them to panic in one drop, the process would end.
pub(super) fn cut_off<T>(remains: impl IntoIterator<Item = T>) {
    CUTTING_OFF.set(true);
    remains.into_iter().for_each(drop_quietly);
    CUTTING_OFF.set(false);
}

/// Drops application values, whose destructors may panic too.
pub(super) fn drop_quietly<T>(value: T) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| drop(value))) {
        tracing::error!(panic = panic_text(&*panic), "a destructor of an object panicked");
    }
}

/// Counts something under way of an object until it is dropped, on whatever thread that happens: a response body
/// that is not used up, a call that was not answered.
pub(crate) struct UnderWay {
    open: Arc<AtomicUsize>,
    waker: Arc<TaskWaker>,
}

impl UnderWay {
    fn new(open: &Arc<AtomicUsize>, core: &Core, task: u64) -> Self {
        open.fetch_add(1, Ordering::AcqRel);
        let waker = TaskWaker::new(&core.shared.ready, TaskKey { object: core.object, task });
        Self { open: Arc::clone(open), waker }
    }

    /// B3: a call keeps the object that made it in memory, also when nobody awaits it.
    pub(crate) fn call(core: &Core) -> Self {
        Self::new(&core.calls, core, NOBODY)
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.open.fetch_sub(1, Ordering::AcqRel);
        std::task::Wake::wake_by_ref(&self.waker);
    }
}

impl Engine {
    /// Polls a task once, with everything that belongs to a turn.
    pub(super) fn turn(&mut self, index: u32, mut task: Task) {
        let Some((sockets, live)) = self.live(index) else { return drop_quietly(task) };
        let core = Rc::clone(&live.core);
        let first = !std::mem::replace(&mut task.started, true);
        task.waker.polling();
        core.task.set(task.serial);
        core.beginning.set(first.then_some(task.serial));
        let waker = task.waker.waker();
        core.shared.note(
            &core.id,
            format_args!("{} {}", task.kind.name(), if first { "begins" } else { "goes on" }),
        );
        let turn = if live.is_held_by(task.within.gate) { task.within } else { Within::default() };
        let begins = (first && task.kind.is_attending()).then(|| Rc::clone(&live.first_event));
        let poll = run_in_turn(&core, turn, || {
            if let Some(first_event) = begins {
                first_event.comes();
            }
            task.future.as_mut().poll(&mut Context::from_waker(&waker))
        });
        let unfinished = match poll {
            Err(panic) => {
                tracing::error!(object = %core.id, handler = task.kind.name(), error = %panic, "reset");
                core.roll_back();
                core.fault(panic);
                Some(task)
            }
            Ok(Poll::Pending) => {
                if first {
                    forget_socket(sockets, &task.kind); // D18: gone from the lists after the first await
                }
                Some(task)
            }
            Ok(Poll::Ready(outcome)) => {
                forget_socket(sockets, &task.kind);
                let Task { serial, kind, future, .. } = task;
                let is_gate = matches!(kind, TaskKind::Gate(_));
                finish(&core, live, serial, kind, outcome);
                drop_quietly(future);
                if is_gate {
                    live.gates.retain(|gate| *gate != serial);
                }
                None
            }
        };
        if let Some(task) = unfinished {
            live.tasks.insert(task.serial, task);
        }
        self.end_turn(index, &core);
    }

    /// Commits, lets the outputs out, starts what was asked for; or resets the object.
    pub(super) fn end_turn(&mut self, index: u32, core: &Rc<Core>) {
        if core.is_doomed() {
            core.roll_back();
        } else if let Err(error) = self.commit(index, core) {
            tracing::error!(object = %core.id, %error, "the commit failed: the object is reset");
            core.roll_back();
            core.fault(error);
        }
        release(core);
        if let Some(error) = core.take_fault() {
            return self.reset(index, &error);
        }
        self.start_spawned(index, core);
        self.after_activity(index);
        self.vacuum_if_wanted(index);
    }

    fn commit(&mut self, index: u32, core: &Core) -> Result<(), Error> {
        if core.storage.is_dirty() {
            core.shared.note(&core.id, format_args!("commits"));
        }
        let alarm_changed = core.alarm_changed.take();
        let mut alarm = None;
        if alarm_changed {
            let at = core.storage.alarm()?;
            self.index_before_commit(index, at)?;
            alarm = Some(at);
        }
        let discarded = core.gate.borrow().awaits_open() && !core.rolled_back.get();
        let dirty = core.storage.is_dirty() || discarded;
        core.storage.commit()?;
        core.kept();
        if dirty {
            let mut gate = core.gate.borrow_mut();
            let number = gate.committed();
            gate.durable(number); // one FULL commit: it is on the disk when it returns
        }
        if let Some(end) = core.alarm_ended.take() {
            let jitter = core.shared.random.borrow_mut().f64();
            core.alarm.borrow_mut().ended(end, core.now(), jitter);
        }
        if let Some(at) = alarm {
            self.alarm_changed(index, at);
        }
        Ok(())
    }

    fn start_spawned(&mut self, index: u32, core: &Rc<Core>) {
        loop {
            let spawned = std::mem::take(&mut *core.spawned.borrow_mut());
            if spawned.is_empty() {
                return;
            }
            for spawn in spawned {
                match spawn {
                    Spawn::Background { work, within } => {
                        let future = Box::pin(async move {
                            work.await;
                            Outcome::Done(Ok(()))
                        });
                        let serial = self.shared.next_serial();
                        self.add_task(index, serial, TaskKind::Background, future, within);
                    }
                    Spawn::Gate(gate) => {
                        let Some((_, live)) = self.live(index) else { return };
                        if live.gates.is_empty() || live.gates.last() == gate.within.gate.as_ref() {
                            self.start_gate(index, gate);
                        } else {
                            live.waiting_gates.push_back(gate);
                        }
                    }
                }
            }
        }
    }

    /// Closes a gate and makes its task, which alone runs until it ends.
    pub(super) fn start_gate(&mut self, index: u32, gate: GateWork) {
        let GateWork { work, within } = gate;
        let serial = self.shared.next_serial();
        let timer = self.shared.after(limits::BLOCK_CONCURRENCY, Due::Gate { object: index, task: serial });
        let future = Box::pin(async move { Outcome::Done(work.await.map_err(Failure::into_remote)) });
        if let Some((_, live)) = self.live(index) {
            live.gates.push(serial);
        }
        let within = Within { gate: Some(serial), depth: within.depth + 1 };
        self.add_task(index, serial, TaskKind::Gate(timer), future, within);
    }

    fn add_task(
        &mut self,
        index: u32,
        serial: u64,
        kind: TaskKind,
        future: LocalFuture<Outcome>,
        within: Within,
    ) {
        let key = TaskKey { object: index, task: serial };
        let waker = TaskWaker::new(&self.shared.ready, key);
        if let Some((_, live)) = self.live(index) {
            live.tasks.insert(serial, Task { serial, kind, future, waker, within, started: false });
            self.shared.ready.push(key);
        }
    }
}

/// Lets out what may leave, in order.
fn release(core: &Rc<Core>) {
    loop {
        let output = core.gate.borrow_mut().pop();
        let Some(output) = output else { break };
        let transport = core.transport();
        match output {
            Output::Reply(reply, result) => reply.send(result),
            Output::Send(socket, message) => socket.release_send(&message, transport),
            Output::Close(socket, frame) => {
                socket.release_close(&frame, transport);
                let key = super::SocketKey { object: core.object, socket: socket.id() };
                // Either for the peer's Close, or for the connection to end after both.
                core.shared.after(limits::CLOSE_WAIT, Due::CloseWait(key, socket.conn()));
            }
            Output::Failure(socket, frame) => socket.release_failure(&frame, transport),
            Output::Call(call) => call(),
            Output::Body(held) => held.release(),
        }
    }
}

fn forget_socket(sockets: &SocketTable, kind: &TaskKind) {
    if let TaskKind::Closed(socket, _) | TaskKind::Failed(socket) = kind {
        sockets.remove(socket.id());
    }
}

/// What the end of a task means, still inside its turn's transaction.
pub(super) fn finish(core: &Rc<Core>, live: &Live, serial: u64, kind: TaskKind, outcome: Outcome) {
    let name = kind.name();
    let failed = |error: &Error| tracing::warn!(object = %core.id, handler = name, %error, "failed");
    match (kind, outcome) {
        (TaskKind::Fetch(reply), Outcome::Response(result)) => {
            let result = result.inspect_err(failed).map(|response| watch_body(core, live, serial, response));
            core.push(Output::Reply(reply, result));
        }
        (TaskKind::Alarm(timer), Outcome::Done(result)) => {
            core.cancel(timer);
            let end = if result.inspect_err(failed).is_ok() { RunEnd::Succeeded } else { RunEnd::Failed };
            let clears = core.alarm.borrow().clears(end);
            let again = clears && end == RunEnd::Succeeded && core.shared.alarm_again();
            if clears
                && !again
                && let Err(error) = core.storage.set_alarm(None)
            {
                core.fault(error);
            }
            core.alarm_ended.set(Some(end));
            core.alarm_changed.set(true);
        }
        (TaskKind::Message(socket, bytes), Outcome::Done(result)) => {
            let _ = result.inspect_err(failed); // D10: no reset, the socket stays open
            socket.handled(bytes, core.transport());
        }
        (TaskKind::Closed(socket, close), Outcome::Done(result)) => {
            let _ = result.inspect_err(failed);
            if let Some(answer) = socket.answer(&close) {
                core.push(answer);
            }
        }
        (TaskKind::Gate(timer), Outcome::Done(result)) => {
            core.cancel(timer);
            if let Err(error) = result.inspect_err(failed) {
                // B9: the object is reset, whoever catches the error
                core.fault(Error::new(ErrorKind::Reset, error.to_string()).with_name(error.name()));
            }
        }
        (_, Outcome::Done(result)) => {
            let _ = result.inspect_err(failed);
        }
        (_, Outcome::Response(_)) => debug_assert!(false, "only fetch gives a response"),
    }
}

/// B3: a response that is still being written keeps its object awake.
fn watch_body(core: &Rc<Core>, live: &Live, serial: u64, response: Response) -> Response {
    if response.body().is_complete() {
        return response;
    }
    let open = UnderWay::new(&live.streams, core, serial);
    response.map(|body| body.guarded(open))
}
