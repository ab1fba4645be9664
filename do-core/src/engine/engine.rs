//! The engine of one thread: the objects that live on it, and what is to be done next.

use super::{
    ReadyQueue, SocketKey, Storage, Transport,
    alarm::Begin,
    class::{Class, LocalFuture, SocketSeed},
    clock::Clock,
    core::{Due, Shared, Within},
    events::{Event, Reply},
    gate::Output,
    place::{Live, ObjectKey, Outcome, Place, Task, TaskKind},
    ready::{TaskKey, TaskWaker},
    sockets::{SocketCell, SocketTable},
    turn::cut_off,
};
use crate::{
    AlarmInfo, Close, CloseFrame, Error, ErrorKind, Failure, Message, ObjectName, Request, Timestamp, limits,
};
use slab::Slab;
use std::{
    collections::{BTreeSet, HashMap, VecDeque},
    rc::Rc,
    sync::Arc,
    time::Duration,
};

/// The host's index of alarms: what finds them after a restart. It may be earlier than an object's own slot, never
/// later (rule E17).
pub(crate) trait AlarmIndex {
    /// Durable when it returns.
    fn earlier(&self, key: &ObjectKey, name: Option<&ObjectName>, at: Timestamp) -> Result<(), Error>;

    /// May be lost: then the index is early.
    fn settle(&self, key: &ObjectKey, at: Option<Timestamp>);
}

/// What a driver brings.
pub(crate) struct Ports {
    /// Opens an object's database.
    pub(crate) storage: OpenStorage,
    pub(crate) index: Box<dyn AlarmIndex>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) transport: Rc<dyn Transport>,
    pub(crate) ready: Arc<ReadyQueue>,
    pub(crate) seed: u64,
}

/// The driver stops: what is under way is cut off.
impl Drop for Engine {
    fn drop(&mut self) {
        for live in self.places.drain().filter_map(|place| place.live) {
            cut_off(live.tasks);
            cut_off(live.waiting_gates);
            cut_off([live.instance]);
        }
    }
}

/// How an object's database is opened.
pub(crate) type OpenStorage = Box<dyn Fn(&ObjectKey) -> Result<Rc<dyn Storage>, Error>>;

/// What an embedder may choose.
#[derive(Debug, Clone)]
pub(crate) struct Config {
    pub(crate) idle: Duration,
    /// Events that may wait or be under way in one object.
    pub(crate) waiting: usize,
    /// Objects in memory before those that are idle leave early.
    pub(crate) awake: usize,
}

/// What the network says about one socket.
#[derive(Debug)]
pub(crate) enum SocketEvent {
    Message(Message),
    /// The peer's Close frame.
    Close(Close),
    /// The peer broke the protocol, and the frame that tells it so.
    Error(Error, CloseFrame),
    /// The connection is gone.
    Lost,
}

/// Turns of one [`Engine::poll`]: each may take as long as a commit, and the network waits meanwhile.
const TURNS: usize = 256;

/// See the [module](self).
pub(crate) struct Engine {
    pub(super) shared: Rc<Shared>,
    pub(super) ports: PortsLeft,
    pub(super) classes: Vec<Rc<Class>>,
    pub(super) config: Config,
    pub(super) places: Slab<Place>,
    /// The places with an instance, by the time of their last activity.
    pub(super) awake: BTreeSet<(Duration, u32)>,
    by_key: HashMap<ObjectKey, u32>,
    /// Places with events to deliver.
    runnable: VecDeque<u32>,
    /// When which place's alarm is due.
    alarms: BTreeSet<(Timestamp, u32)>,
    woken: VecDeque<TaskKey>,
    /// Room for the next woken ones.
    woken_next: Vec<TaskKey>,
    /// Turns that are left in this poll.
    budget: usize,
    /// No new work is taken.
    draining: bool,
}

/// The ports that are not shared with objects.
pub(super) struct PortsLeft {
    pub(super) storage: OpenStorage,
    pub(super) index: Box<dyn AlarmIndex>,
}

impl Engine {
    pub(crate) fn new(ports: Ports, classes: Vec<Class>, config: Config) -> Self {
        let Ports { storage, index, clock, transport, ready, seed } = ports;
        Self {
            shared: Rc::new(Shared::new(clock, transport, ready, seed)),
            ports: PortsLeft { storage, index },
            classes: classes.into_iter().map(Rc::new).collect(),
            config,
            places: Slab::new(),
            awake: BTreeSet::new(),
            by_key: HashMap::new(),
            runnable: VecDeque::new(),
            alarms: BTreeSet::new(),
            woken: VecDeque::new(),
            woken_next: Vec::new(),
            budget: 0,
            draining: false,
        }
    }

    // ---- what the driver calls

    /// An alarm that the host's index knows of, at the start. It may be early; the object's own slot decides.
    pub(crate) fn known_alarm(&mut self, key: ObjectKey, name: Option<ObjectName>, at: Timestamp) {
        let index = self.place_of(key);
        if let Some(place) = self.place(index) {
            place.alarm_name = name;
            place.indexed = Some(at);
            place.unverified = true;
            place.alarm.borrow_mut().committed(Some(at));
        }
        self.relist_alarm(index);
    }

    /// A request for an object.
    pub(crate) fn fetch(
        &mut self,
        key: ObjectKey,
        name: Option<ObjectName>,
        request: Box<Request>,
        reply: Reply,
    ) {
        if self.draining {
            return reply.send(Err(Error::new(ErrorKind::Shutdown, "the host is shutting down")));
        }
        let (index, most) = (self.place_of(key), self.config.waiting);
        let Some(place) = self.place(index) else { return };
        let under_way = place.live.as_ref().map_or(0, |live| live.tasks.len());
        if place.inbox.len() + under_way >= most {
            let message = format!("{most} events are under way in this object already");
            return reply.send(Err(Error::new(ErrorKind::Overloaded, message)));
        }
        place.reached_by(name);
        self.deliver(index, Event::Fetch(request, reply));
    }

    /// Something happened on a socket.
    pub(crate) fn socket_event(&mut self, key: SocketKey, event: SocketEvent) {
        let shared = Rc::clone(&self.shared);
        let transport = &*shared.transport;
        let Some(place) = self.place(key.object) else { return };
        let Some(socket) = place.sockets.find(key.socket) else { return };
        let event = match event {
            SocketEvent::Message(message) => {
                if socket.is_open()
                    && let Some(answer) = place.sockets.auto_response(&message)
                {
                    if socket.has_room(answer.len(), transport) {
                        transport.send(socket.conn(), &answer);
                    }
                    return socket.answered_automatically(shared.clock.now()); // D29: the object sleeps on
                }
                if self.draining || socket.has_ended() {
                    return;
                }
                socket.arrived(message.len(), transport);
                Event::Message(socket, message)
            }
            SocketEvent::Close(close) => {
                if !socket.peer_closed(transport) {
                    return;
                }
                if self.draining
                    && let Some(Output::Close(_, frame)) = socket.answer(&close)
                {
                    socket.release_close(&frame, transport); // the object is not asked any more
                }
                Event::Closed(socket, close)
            }
            SocketEvent::Error(error, frame) => {
                if !socket.fails() {
                    return;
                }
                shared.after(limits::CLOSE_WAIT, Due::CloseWait(key, socket.conn()));
                if self.draining {
                    socket.release_failure(&frame, transport);
                }
                Event::Failed(socket, error, frame)
            }
            SocketEvent::Lost => {
                if !socket.lost() {
                    return; // after the peer's Close a lost connection is no news
                }
                Event::Closed(socket, Close::lost())
            }
        };
        if self.draining {
            return self.forget_socket(key);
        }
        self.deliver(key.object, event);
    }

    /// Does what can be done now. True when more may be left: a task that wakes itself again and again must not
    /// keep out what comes from outside.
    pub(crate) fn poll(&mut self) -> bool {
        self.budget = TURNS;
        loop {
            let mut busy = self.tick();
            if self.woken.is_empty() {
                self.shared.ready.take(&mut self.woken_next);
                self.woken.extend(self.woken_next.drain(..));
            }
            while self.budget > 0
                && let Some(key) = self.woken.pop_front()
            {
                busy = true;
                self.budget -= 1;
                self.run_task(key);
            }
            while self.budget > 0
                && let Some(index) = self.runnable.pop_front()
            {
                busy = true;
                self.run_place(index);
            }
            if self.budget == 0 {
                return true;
            }
            if !busy {
                return false;
            }
        }
    }

    /// Fires what is due, so that what arrives after this comes after it. True when something was.
    pub(crate) fn tick(&mut self) -> bool {
        self.shared.elapsed.set(self.shared.clock.elapsed());
        let fired = self.fire_timers();
        self.fire_alarms() || fired
    }

    /// When [`poll`](Self::poll) has something to do again, in monotonic time, if nothing else happens.
    pub(crate) fn next_deadline(&self) -> Option<Duration> {
        let alarm = self.alarms.first().filter(|_| !self.draining).map(|(at, _)| {
            let wait = self.shared.clock.now().until(*at);
            self.shared.elapsed.get().saturating_add(wait)
        });
        let timer = self.shared.timers.borrow().next();
        [alarm, timer].into_iter().flatten().min()
    }

    /// Takes no new requests, messages and alarms from here on.
    pub(crate) fn drain(&mut self) {
        self.draining = true;
    }

    /// Whether no handler is under way.
    pub(crate) fn is_quiet(&self) -> bool {
        let busy = |live: &Live| !live.tasks.is_empty() || !live.waiting_gates.is_empty();
        self.places.iter().all(|(_, place)| place.inbox.is_empty() && !place.live.as_ref().is_some_and(busy))
    }

    /// Closes every socket of every object, without an event for the objects.
    pub(crate) fn close_sockets(&mut self, frame: &CloseFrame) {
        let transport = Rc::clone(&self.shared.transport);
        for (_, place) in &self.places {
            for socket in place.sockets.all() {
                if socket.is_open() {
                    transport.close(socket.conn(), frame);
                }
                transport.finish(socket.conn());
                socket.lost();
                socket.told();
            }
        }
    }

    /// Why an object is in memory; `None` when it is not.
    pub(crate) fn why_awake(&self, key: &ObjectKey) -> Option<Vec<&'static str>> {
        let place = self.by_key.get(key).and_then(|index| self.places.get(*index as usize))?;
        place.live.as_ref().map(|_| place.why_awake())
    }

    // ---- places

    pub(super) fn place(&mut self, index: u32) -> Option<&mut Place> {
        self.places.get_mut(index as usize)
    }

    /// The place and what is in memory of it.
    pub(super) fn live(&mut self, index: u32) -> Option<(&SocketTable, &mut Live)> {
        let place = self.places.get_mut(index as usize)?;
        let Place { live, sockets, .. } = place;
        live.as_mut().map(|live| (&**sockets, live))
    }

    fn place_of(&mut self, key: ObjectKey) -> u32 {
        if let Some(index) = self.by_key.get(&key) {
            return *index;
        }
        #[allow(clippy::cast_possible_truncation)] // 2^32 objects do not fit memory
        let index = self.places.insert(Place::new(key)) as u32;
        self.by_key.insert(key, index);
        index
    }

    pub(super) fn forget_if_possible(&mut self, index: u32) {
        let Some(place) = self.place(index) else { return };
        if place.is_forgettable() && !place.queued && !place.idle_check {
            let key = place.key;
            self.places.remove(index as usize);
            self.by_key.remove(&key);
        }
    }

    // ---- delivery

    fn deliver(&mut self, index: u32, event: Event) {
        if let Some(place) = self.place(index) {
            place.inbox.push_back(event);
            self.schedule(index);
        }
    }

    pub(super) fn schedule(&mut self, index: u32) {
        let Some(place) = self.place(index) else { return };
        if !place.queued && !place.inbox.is_empty() {
            place.queued = true;
            self.runnable.push_back(index);
        }
    }

    /// Delivers what waits, as far as the gates allow.
    fn run_place(&mut self, index: u32) {
        let Some(place) = self.place(index) else { return };
        place.queued = false;
        loop {
            let rest = self.budget;
            let Some(place) = self.place(index) else { return };
            if place.inbox.is_empty() {
                return self.forget_if_possible(index);
            }
            match &place.live {
                None if rest == 0 => return self.schedule(index),
                None => {
                    self.budget -= 1;
                    if !self.alarm_was_early(index) {
                        self.construct(index);
                    }
                }
                Some(live) if !live.gates.is_empty() => return, // the gate's end comes back here
                Some(_) if rest == 0 => return self.schedule(index),
                Some(_) => {
                    self.budget -= 1;
                    self.start_event(index);
                }
            }
        }
    }

    fn start_event(&mut self, index: u32) {
        let now = self.shared.clock.now();
        let Some(place) = self.place(index) else { return };
        let Some(event) = place.inbox.pop_front() else { return };
        let Some(live) = &place.live else { return };
        let instance = Rc::clone(&live.instance);
        let seed = |cell: &Rc<SocketCell>| SocketSeed { core: Rc::clone(&live.core), cell: Rc::clone(cell) };
        let done = |work: LocalFuture<Result<(), Failure>>| -> LocalFuture<Outcome> {
            Box::pin(async move { Outcome::Done(work.await.map_err(Failure::into_remote)) })
        };
        tracing::trace!(object = %live.core.id, event = event.name(), "deliver");
        let (kind, future): (_, LocalFuture<Outcome>) = match event {
            Event::Fetch(request, reply) => {
                let work = instance.fetch(*request);
                (
                    TaskKind::Fetch(reply),
                    Box::pin(async move { Outcome::Response(work.await.map_err(Failure::into_remote)) }),
                )
            }
            Event::Alarm => {
                place.alarm_queued = false;
                let begin = self.begin_alarm(index, now);
                let Some(info) = begin else { return };
                let timer = self.shared.after(limits::ALARM_RUN, Due::AlarmRun(index));
                (TaskKind::Alarm(timer), done(instance.alarm(info)))
            }
            Event::Message(cell, message) => {
                let bytes = message.len();
                let work = instance.message(seed(&cell), message);
                (TaskKind::Message(cell, bytes), done(work))
            }
            Event::Closed(cell, close) => {
                cell.told();
                let work = instance.close(seed(&cell), close.clone());
                (TaskKind::Closed(cell, close), done(work))
            }
            Event::Failed(cell, error, frame) => {
                cell.told();
                // Behind what the handlers of earlier messages have sent.
                live.core.push(Output::Failure(Rc::clone(&cell), frame));
                let work = instance.error(seed(&cell), error);
                (TaskKind::Failed(cell), done(work))
            }
        };
        self.start_task(index, kind, future);
    }

    /// A handler's first poll happens at its delivery, so that handlers start in order (rule D9).
    fn start_task(&mut self, index: u32, kind: TaskKind, future: LocalFuture<Outcome>) {
        let serial = self.shared.next_serial();
        let waker = TaskWaker::new(&self.shared.ready, TaskKey { object: index, task: serial });
        let within = Within::default();
        self.turn(index, Task { serial, kind, future, waker, within, started: false });
    }

    fn run_task(&mut self, key: TaskKey) {
        let Some((_, live)) = self.live(key.object) else { return };
        if !live.may_run(key.task) {
            if live.tasks.contains_key(&key.task) {
                live.deferred.push_back(key.task);
            }
            return;
        }
        let Some(task) = live.tasks.remove(&key.task) else {
            return self.after_activity(key.object); // a response body ended, or a task that is over was woken
        };
        let was_gate = matches!(task.kind, TaskKind::Gate(_));
        self.turn(key.object, task);
        if was_gate {
            self.gate_may_have_opened(key.object);
        }
    }

    /// Goes on after a gate's end: with whoever awaited it, so that nobody else gets in between; then with the next
    /// gate that waits, or with what was woken meanwhile and may run now.
    fn gate_may_have_opened(&mut self, index: u32) {
        let mut woken = Vec::new();
        self.shared.ready.take(&mut woken);
        for key in woken {
            self.run_task(key);
        }
        let Some((_, live)) = self.live(index) else { return };
        let next = match live.gates.last() {
            None => live.waiting_gates.pop_front(),
            // What the work of the open gate asked for comes next, or it would wait for itself.
            open => live
                .waiting_gates
                .iter()
                .position(|w| w.within.gate.as_ref() == open)
                .and_then(|i| live.waiting_gates.remove(i)),
        };
        if let Some(next) = next {
            return self.start_gate(index, next);
        }
        let deferred = std::mem::take(&mut live.deferred);
        for task in deferred {
            self.run_task(TaskKey { object: index, task });
        }
        self.schedule(index);
    }

    // ---- time

    fn fire_timers(&mut self) -> bool {
        let mut fired = false;
        loop {
            let due = self.shared.timers.borrow_mut().pop_due(self.shared.elapsed.get());
            let Some(due) = due else { return fired };
            fired = true;
            match due {
                Due::Wake(waker) => waker.wake(),
                Due::Idle(index) => self.check_idle(index),
                Due::Gate { object, task } => self.gate_expired(object, task),
                Due::AlarmRun(index) => self.alarm_expired(index),
                Due::CloseWait(key, conn) => {
                    self.shared.transport.abort(conn);
                    self.socket_event(key, SocketEvent::Lost);
                }
                Due::Handshake(key, task) => self.handshake_expired(key, task),
            }
        }
    }

    fn handshake_expired(&mut self, key: SocketKey, task: u64) {
        if self.live(key.object).is_some_and(|(_, live)| live.tasks.contains_key(&task)) {
            self.shared.after(limits::CLOSE_WAIT, Due::Handshake(key, task)); // the handler has not answered yet
            return;
        }
        let transport = Rc::clone(&self.shared.transport);
        let Some(socket) = self.place(key.object).and_then(|place| place.sockets.find(key.socket)) else {
            return;
        };
        if transport.is_connecting(socket.conn()) {
            transport.abort(socket.conn());
            self.socket_event(key, SocketEvent::Lost);
        }
    }

    fn forget_socket(&mut self, key: SocketKey) {
        if let Some(place) = self.place(key.object) {
            place.sockets.remove(key.socket);
        }
    }

    // ---- alarms

    fn fire_alarms(&mut self) -> bool {
        let mut fired = false;
        while !self.draining
            && let Some(&(at, index)) = self.alarms.first()
            && at <= self.shared.clock.now()
        {
            fired = true;
            self.alarms.pop_first();
            if let Some(place) = self.place(index) {
                place.listed = None;
                if !place.alarm_queued {
                    place.alarm_queued = true;
                    place.reached_by(place.alarm_name.clone());
                    self.deliver(index, Event::Alarm);
                }
            }
        }
        fired
    }

    /// What the handler is told; `None` when nothing is due after all.
    fn begin_alarm(&mut self, index: u32, now: Timestamp) -> Option<AlarmInfo> {
        let place = self.place(index)?;
        let live = place.live.as_ref()?;
        let stored = match live.storage.alarm() {
            Ok(stored) => stored,
            Err(error) => {
                tracing::error!(object = %live.core.id, %error, "the alarm could not be read");
                self.alarm_not_begun(index);
                self.relist_alarm(index);
                return None;
            }
        };
        let _ = live.storage.commit(); // nothing was written: this ends the read
        let mut slot = place.alarm.borrow_mut();
        slot.committed(stored);
        let begin = slot.begin(now);
        drop(slot);
        match begin {
            Begin::Run(info) => Some(info),
            Begin::Nothing => {
                self.alarm_committed(index, stored);
                None
            }
        }
    }

    /// Whether the alarm at the front of the inbox came from the index and is not due by the object's own slot.
    /// Then it is taken back without constructing the object.
    fn alarm_was_early(&mut self, index: u32) -> bool {
        let Some(place) = self.place(index) else { return false };
        if !place.unverified || !matches!(place.inbox.front(), Some(Event::Alarm)) {
            return false;
        }
        let key = place.key;
        let stored = match (self.ports.storage)(&key).and_then(|storage| storage.alarm()) {
            Ok(stored) => stored,
            Err(error) => {
                tracing::error!(object = index, %error, "the alarm could not be read");
                return false; // the construction meets the same fault, and backs off
            }
        };
        let due = stored.is_some_and(|at| at <= self.shared.clock.now());
        let Some(place) = self.place(index) else { return false };
        place.unverified = false;
        if !due {
            place.inbox.pop_front();
            place.alarm_queued = false;
            self.alarm_committed(index, stored);
        }
        !due
    }

    /// E17: the index is never later than the object, so an earlier time goes there first.
    pub(super) fn index_before_commit(&mut self, index: u32, at: Option<Timestamp>) -> Result<(), Error> {
        let Some(place) = self.places.get_mut(index as usize) else { return Ok(()) };
        if let Some(at) = at
            && place.indexed.is_none_or(|indexed| at < indexed)
        {
            self.ports.index.earlier(&place.key, place.name.as_ref(), at)?;
            place.indexed = Some(at);
        }
        place.alarm_name = at.and(place.name.clone());
        Ok(())
    }

    pub(super) fn alarm_committed(&mut self, index: u32, at: Option<Timestamp>) {
        let Some(place) = self.places.get_mut(index as usize) else { return };
        place.alarm.borrow_mut().committed(at);
        if place.indexed != at {
            self.ports.index.settle(&place.key, at);
            place.indexed = at;
        }
        self.relist_alarm(index);
    }

    /// Brings the engine's list in line with the slot.
    pub(super) fn relist_alarm(&mut self, index: u32) {
        let Some(place) = self.places.get_mut(index as usize) else { return };
        let due = if place.alarm_queued { None } else { place.alarm.borrow().due() };
        if place.listed != due {
            if let Some(at) = place.listed {
                self.alarms.remove(&(at, index));
            }
            if let Some(at) = due {
                self.alarms.insert((at, index));
            }
            place.listed = due;
        }
    }
}
