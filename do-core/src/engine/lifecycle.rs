//! How instances come and go: construction, eviction, reset (rules B1 to B11, D25 to D28).

use super::{
    Engine, Storage,
    alarm::RunEnd,
    core::{Core, Due, Within},
    events::Event,
    gate::Output,
    place::{Live, Outcome, Task, TaskKind},
    turn::{cut_off, finish, run_in_turn},
};
use crate::{Error, Failure, ObjectId, first_event::FirstEvent, limits};
use std::{
    collections::{BTreeMap, VecDeque},
    rc::Rc,
    time::Duration,
};

/// How many of the longest idle objects are looked at to find one that can leave early.
const EVICT_LOOKS: usize = 64;

/// The least time between two looks at an object that is busy: with an idle time of zero the looks would never end.
const IDLE_CHECK: Duration = Duration::from_millis(100);

/// The platform's own words (rule B10).
const GATE_EXPIRED: &str = "A call to blockConcurrencyWhile() in a Durable Object waited for too long. The call was \
     canceled and the Durable Object was reset.";

impl Engine {
    /// Makes an instance for the event at the front of the inbox. On failure that event alone fails (rule B7).
    pub(super) fn construct(&mut self, index: u32) {
        match self.try_construct(index) {
            Ok(()) => {}
            Err(error) => {
                tracing::warn!(object = index, %error, "the constructor failed");
                if let Some(place) = self.places.get(index as usize) {
                    let id = ObjectId::from_parts(place.key.id, place.name.clone());
                    self.shared.note(&id, format_args!("is not constructed: {error}"));
                }
                self.construction_failed(index, &error);
            }
        }
    }

    fn try_construct(&mut self, index: u32) -> Result<(), Error> {
        let Some(place) = self.place(index) else { return Ok(()) };
        let (key, name) = (place.key, place.name.clone());
        let (sockets, alarm) = (Rc::clone(&place.sockets), Rc::clone(&place.alarm));
        self.make_room();
        let storage = (self.ports.storage)(&key)?;
        let id = ObjectId::from_parts(key.id, name);
        let (shared, first_event) = (Rc::clone(&self.shared), Rc::<FirstEvent>::default());
        let waiting = Rc::downgrade(&first_event);
        let core = Core::new(id, index, shared, Rc::clone(&storage), sockets, alarm, waiting);
        let class =
            Rc::clone(self.classes.get(usize::from(key.class)).ok_or_else(|| {
                Error::new(crate::ErrorKind::NotFound, "the object's class is not registered")
            })?);
        let made = run_in_turn(&core, Within::default(), || {
            class.make(Rc::clone(&core)).map_err(Failure::into_error)
        });
        let made = made.flatten().map_err(Error::remote);
        let instance = match made {
            Ok(instance) => instance,
            Err(error) => {
                core.die();
                storage.rollback();
                cut_off(core.spawned.take());
                cut_off(first_event.take());
                return Err(error);
            }
        };
        let live = Live {
            core: Rc::clone(&core),
            storage,
            instance,
            first_event,
            tasks: BTreeMap::new(),
            gates: Vec::new(),
            waiting_gates: VecDeque::new(),
            deferred: VecDeque::new(),
            streams: std::sync::Arc::default(),
        };
        if let Some(place) = self.places.get_mut(index as usize) {
            place.live = Some(live);
            self.awake.insert((place.last_active, index));
        }
        tracing::debug!(object = %core.id, "constructed");
        self.shared.note(&core.id, format_args!("is constructed"));
        self.end_turn(index, &core);
        Ok(())
    }

    fn construction_failed(&mut self, index: u32, error: &Error) {
        let Some(place) = self.place(index) else { return };
        match place.inbox.pop_front() {
            Some(Event::Fetch(_, reply)) => reply.send(Err(error.clone())),
            Some(Event::Alarm) => self.alarm_not_begun(index),
            _ => {}
        }
        self.drop_sockets(index);
        self.relist_alarm(index);
    }

    /// E9: a run that could not begin through no fault of its handler is tried again without being counted.
    pub(super) fn alarm_not_begun(&mut self, index: u32) {
        let now = self.shared.clock.now();
        let jitter = self.shared.random.borrow_mut().f64();
        if let Some(place) = self.place(index) {
            place.alarm_queued = false;
            place.alarm.borrow_mut().failed_uncounted(now, jitter);
        }
    }

    /// Throws the instance away with everything that is under way in it.
    pub(super) fn reset(&mut self, index: u32, error: &Error) {
        let error = &error.clone().remote(); // whatever its reason, it is the object's own (rule B13)
        let in_doubt = &error.clone().of_reset(); // for calls of which an earlier turn was committed
        let Some(place) = self.places.get_mut(index as usize) else { return };
        let Some(live) = place.live.take() else { return };
        self.awake.remove(&(place.last_active, index));
        self.shared.note(&live.core.id, format_args!("is reset: {error}"));
        let inbox = std::mem::take(&mut place.inbox);
        place.alarm_queued = false;
        live.core.die();
        live.core.roll_back();
        // E7: also when it ended and its commit failed
        let mut alarm_ran = live.core.alarm_ended.take().is_some();
        let beginning = live.core.beginning.take();
        let mut remains = Vec::new();
        for (_, task) in live.tasks {
            match task.kind {
                TaskKind::Fetch(reply) => {
                    let undone = beginning == Some(task.serial);
                    reply.send(Err(if undone { error } else { in_doubt }.clone()));
                }
                TaskKind::Alarm(timer) => {
                    alarm_ran = true;
                    live.core.cancel(timer);
                }
                TaskKind::Gate(timer) => live.core.cancel(timer),
                // Out of the table already (rule D18), so that nobody else would end its connection.
                TaskKind::Closed(socket, _) | TaskKind::Failed(socket) => {
                    socket.drop_connection(&*self.shared.transport);
                }
                TaskKind::Message(..) | TaskKind::Background => {}
            }
            remains.push(task.future);
        }
        let lost = live.core.gate.borrow_mut().drain_lost();
        for (_, output) in lost {
            match output {
                // Of the turn whose commit failed.
                Output::Reply(reply, _) => {
                    reply.send(Err(if beginning.is_some() { error } else { in_doubt }.clone()));
                }
                Output::Body(held) => held.fail(),
                Output::Send(..) | Output::Close(..) | Output::Failure(..) | Output::Call(_) => {}
            }
        }
        for event in inbox {
            match event {
                Event::Fetch(_, reply) => reply.send(Err(error.clone())), // B10: whoever waits gets the same
                Event::Alarm => self.alarm_not_begun(index),
                Event::Message(..) | Event::Closed(..) | Event::Failed(..) => {}
            }
        }
        cut_off(remains);
        cut_off(live.waiting_gates);
        cut_off(live.core.spawned.take());
        cut_off(live.first_event.take());
        cut_off([live.instance]); // the last: the handlers had shares of it
        self.drop_sockets(index);
        if alarm_ran {
            self.alarm_run_lost(index, &*live.storage);
        }
        self.relist_alarm(index);
        self.forget_if_possible(index);
    }

    /// At the end of the thread: what was not begun is refused, so that its caller knows that nothing of it
    /// happened.
    pub(crate) fn refuse_waiting(&mut self) {
        for (_, place) in &mut self.places {
            for event in std::mem::take(&mut place.inbox) {
                if let Event::Fetch(_, reply) = event {
                    reply.send(Err(Error::new(crate::ErrorKind::Shutdown, "the host has shut down")));
                }
            }
        }
    }

    /// E7: a run that a reset cut short has failed and is tried again.
    fn alarm_run_lost(&mut self, index: u32, storage: &dyn Storage) {
        let now = self.shared.clock.now();
        let jitter = self.shared.random.borrow_mut().f64();
        let Some(place) = self.place(index) else { return };
        let given_up = place.alarm.borrow().clears(RunEnd::Failed);
        place.alarm.borrow_mut().ended(RunEnd::Failed, now, jitter);
        if given_up {
            match storage.set_alarm(None).and_then(|()| storage.commit()) {
                Ok(()) => self.alarm_committed(index, None),
                Err(error) => {
                    storage.rollback();
                    tracing::error!(object = index, %error, "an alarm that was given up stays stored");
                }
            }
        }
    }

    /// All sockets end with 1006 and without an event (rules D25, D28).
    fn drop_sockets(&mut self, index: u32) {
        let transport = Rc::clone(&self.shared.transport);
        let Some(place) = self.place(index) else { return };
        for socket in place.sockets.all() {
            socket.drop_connection(&*transport);
            place.sockets.remove(socket.id());
        }
        place.sockets.set_auto_response(None);
        place.inbox.retain(|event| matches!(event, Event::Fetch(..) | Event::Alarm));
    }

    /// Something ended in the object: from now on it may be idle.
    pub(super) fn after_activity(&mut self, index: u32) {
        let (now, idle) = (self.shared.elapsed.get(), self.config.idle);
        let Some(place) = self.places.get_mut(index as usize) else { return };
        let before = std::mem::replace(&mut place.last_active, now);
        if place.live.is_some() && before != now {
            self.awake.remove(&(before, index));
            self.awake.insert((now, index));
        }
        if place.live.is_some() && !place.idle_check {
            place.idle_check = true;
            self.shared.after(idle, Due::Idle(index));
        }
    }

    /// B2: an object without work leaves memory; its sockets, alarm and data stay.
    pub(super) fn check_idle(&mut self, index: u32) {
        let (now, idle, background) = (self.shared.elapsed.get(), self.config.idle, self.config.background);
        let Some(place) = self.place(index) else { return };
        place.idle_check = false;
        if place.live.is_none() {
            return self.forget_if_possible(index);
        }
        if !place.has_only_background() {
            place.last_attended = now;
        } else if let Some(limit) = background
            && !place.why_awake().is_empty()
            && place.last_attended.saturating_add(limit) <= now
        {
            let message = format!("background work alone kept the object for longer than {limit:?}");
            tracing::warn!(object = index, "{message}");
            return self.reset(index, &Error::new(crate::ErrorKind::Reset, message));
        }
        let rest = place.last_active.saturating_add(idle).saturating_sub(now);
        if !place.why_awake().is_empty() || !rest.is_zero() {
            place.idle_check = true;
            self.shared.after(if rest.is_zero() { idle.max(IDLE_CHECK) } else { rest }, Due::Idle(index));
            return;
        }
        self.evict(index);
        self.forget_if_possible(index);
    }

    fn evict(&mut self, index: u32) {
        let Some(place) = self.places.get_mut(index as usize) else { return };
        if let Some(live) = place.live.take() {
            tracing::debug!(object = %live.core.id, sockets = place.sockets.len(), "evicted");
            self.awake.remove(&(place.last_active, index));
            self.shared.note(&live.core.id, format_args!("leaves memory"));
            live.core.die();
            cut_off(live.first_event.take());
            cut_off([live.instance]);
        }
    }

    /// For tests: an object leaves memory as an idle one does. What keeps it there, if something does.
    #[cfg(feature = "testing")]
    pub(crate) fn evict_idle(&mut self, key: &super::ObjectKey) -> Result<(), Vec<&'static str>> {
        let Some(index) = self.index_of(key) else { return Ok(()) };
        let why = self.place(index).map(|place| place.why_awake()).unwrap_or_default();
        if !why.is_empty() {
            return Err(why);
        }
        self.evict(index);
        self.forget_if_possible(index);
        Ok(())
    }

    /// For tests: the objects that are in memory.
    #[cfg(feature = "testing")]
    pub(crate) fn in_memory(&self) -> Vec<super::ObjectKey> {
        let live = self.awake.iter().filter_map(|(_, index)| self.places.get(*index as usize));
        live.map(|place| place.key).collect()
    }

    /// For tests: an object is moved away, whatever is under way in it.
    #[cfg(feature = "testing")]
    pub(crate) fn evict_now(&mut self, key: &super::ObjectKey, error: &Error) {
        let Some(index) = self.index_of(key) else { return };
        if self.place(index).is_some_and(|place| place.live.is_some()) {
            return self.reset(index, error);
        }
        self.drop_sockets(index);
        self.forget_if_possible(index);
    }

    /// Objects in memory have open files. When there are as many as may be, those that have been idle for the
    /// longest leave early. When all have work, there are more for a while.
    fn make_room(&mut self) {
        if self.awake.len() < self.config.awake {
            return;
        }
        let longest: Vec<_> = self.awake.iter().take(EVICT_LOOKS).map(|(_, index)| *index).collect();
        for index in longest {
            if self.place(index).is_some_and(|place| place.why_awake().is_empty()) {
                self.evict(index);
                return; // its idle check, which is still due, forgets the place
            }
        }
    }

    /// E7: the alarm's handler did not end in time. It goes no further and has failed; the object goes on.
    pub(super) fn alarm_expired(&mut self, index: u32) {
        let Some((_, live)) = self.live(index) else { return };
        let running = live.tasks.values().find(|task| matches!(task.kind, TaskKind::Alarm(_)));
        let Some(serial) = running.map(|task| task.serial) else { return };
        let core = Rc::clone(&live.core);
        if let Some(Task { kind, future, .. }) = live.tasks.remove(&serial) {
            let message = format!("the alarm's handler took longer than {:?}", limits::ALARM_RUN);
            let late = Error::new(crate::ErrorKind::Deadline, message);
            let _ = run_in_turn(&core, Within::default(), || cut_off([future])); // which panics nowhere
            finish(&core, live, serial, kind, Outcome::Done(Err(late)));
            self.end_turn(index, &core);
        }
    }

    /// The gate's task did not end in time (rule B10).
    pub(super) fn gate_expired(&mut self, index: u32, task: u64) {
        let waits = self.live(index).is_some_and(|(_, live)| live.tasks.contains_key(&task));
        if waits {
            self.reset(index, &Error::new(crate::ErrorKind::Overloaded, GATE_EXPIRED).of_reset());
        }
    }
}
