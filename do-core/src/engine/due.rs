//! What time brings: timers, and the alarms of objects (rules E1 to E17).

use super::{
    Engine, SocketEvent, SocketKey,
    alarm::Begin,
    core::{Due, Handshake},
    events::Event,
};
use crate::{AlarmInfo, Error, Timestamp};
use std::{rc::Rc, time::Duration};

impl Engine {
    /// Fires what is due, so that what arrives after this comes after it. True when something was.
    pub(crate) fn tick(&mut self) -> bool {
        self.shared.elapsed.set(self.shared.clock.elapsed());
        let fired = self.fire_timers();
        self.fire_alarms() || fired
    }

    /// When [`poll`](Self::poll) has something to do again, in monotonic time, if nothing else happens.
    pub(crate) fn next_deadline(&self) -> Option<Duration> {
        let alarm = self.alarms.first().filter(|_| !self.draining).map(|(at, _)| {
            let wait = self.shared.clock.now().until(*at + self.shared.alarms_late());
            self.shared.elapsed.get().saturating_add(wait)
        });
        let timer = self.shared.timers.borrow().next();
        [alarm, timer].into_iter().flatten().min()
    }

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
                Due::Handshakes => self.handshakes_expired(),
                Due::Vacuum => self.vacuum_due(),
            }
        }
    }

    fn handshakes_expired(&mut self) {
        let now = self.shared.elapsed.get();
        loop {
            let due = self.shared.handshakes.borrow_mut().pop_front_if(|first| first.until <= now);
            let Some(Handshake { key, task, .. }) = due else { break };
            self.handshake_expired(key, task);
        }
        let mut handshakes = self.shared.handshakes.borrow_mut();
        match handshakes.front() {
            Some(next) => {
                self.shared.after(next.until - now, Due::Handshakes);
            }
            None => {
                handshakes.shrink_to_fit();
                self.shared.handshakes_armed.set(false);
            }
        }
    }

    fn handshake_expired(&mut self, key: SocketKey, task: u64) {
        if self.live(key.object).is_some_and(|(_, live)| live.tasks.contains_key(&task)) {
            return self.shared.expect_handshake(key, task); // the handler has not answered yet
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

    pub(super) fn forget_socket(&mut self, key: SocketKey) {
        if let Some(place) = self.place(key.object) {
            place.sockets.remove(key.socket);
        }
    }

    fn fire_alarms(&mut self) -> bool {
        let mut fired = false;
        while !self.draining
            && let Some(&(at, index)) = self.alarms.first()
            && at + self.shared.alarms_late() <= self.shared.clock.now()
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
    pub(super) fn begin_alarm(&mut self, index: u32, now: Timestamp) -> Option<AlarmInfo> {
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
    pub(super) fn alarm_was_early(&mut self, index: u32) -> bool {
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

    /// E17: the index is never later than the object, so an earlier time goes there first. So does a name that the
    /// alarm did not have yet, because after a restart the index is where it comes from (rule A10).
    pub(super) fn index_before_commit(&mut self, index: u32, at: Option<Timestamp>) -> Result<(), Error> {
        let Some(place) = self.places.get_mut(index as usize) else { return Ok(()) };
        let Some(at) = at else { return Ok(()) };
        let is_named_now = place.alarm_name.is_none() && place.name.is_some();
        if is_named_now || place.indexed.is_none_or(|indexed| at < indexed) {
            self.ports.index.earlier(&place.key, place.name.as_ref(), at)?;
            place.indexed = Some(place.indexed.map_or(at, |indexed| indexed.min(at)));
        }
        Ok(())
    }

    /// A turn that changed the slot has committed.
    pub(super) fn alarm_changed(&mut self, index: u32, at: Option<Timestamp>) {
        if let Some(place) = self.places.get_mut(index as usize) {
            let known = place.name.clone().or_else(|| place.alarm_name.take());
            place.alarm_name = at.and(known);
        }
        self.alarm_committed(index, at);
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

#[cfg(test)]
mod tests;
