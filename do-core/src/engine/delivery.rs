//! How events reach an object and tasks their turn, as far as the gates let them (rules B8, D9).

use super::{
    Engine,
    class::{LocalFuture, SocketSeed},
    core::{Due, Within},
    events::Event,
    gate::Output,
    place::{Outcome, Task, TaskKind},
    ready::{TaskKey, TaskWaker},
    sockets::SocketCell,
};
use crate::{Failure, limits};
use std::rc::Rc;

impl Engine {
    pub(super) fn deliver(&mut self, index: u32, event: Event) {
        let now = self.shared.elapsed.get();
        if let Some(place) = self.place(index) {
            place.last_attended = now;
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
    pub(super) fn run_place(&mut self, index: u32) {
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

    pub(super) fn run_task(&mut self, key: TaskKey) {
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
}
