//! One object's place in the engine. It outlives instances: sockets, alarm and waiting events stay when the
//! instance goes.

use super::{
    Storage,
    alarm::AlarmSlot,
    class::{Instance, LocalFuture},
    core::{Core, GateWork, Within},
    events::{Event, Reply},
    ready::TaskWaker,
    sockets::{SocketCell, SocketTable},
    timers::TimerId,
};
use crate::{Close, Error, ObjectId, ObjectName, Response, Timestamp, first_event::FirstEvent};
use std::{
    cell::RefCell,
    collections::{BTreeMap, VecDeque},
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

/// Which object: its class by number, and the bytes of its id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ObjectKey {
    pub(crate) class: u16,
    pub(crate) id: [u8; 32],
}

pub(super) struct Place {
    pub(super) key: ObjectKey,
    /// The name that the present instance was first reached by, or the next one is (rule A9).
    pub(super) name: Option<ObjectName>,
    pub(super) inbox: VecDeque<Event>,
    pub(super) live: Option<Live>,
    pub(super) sockets: Rc<SocketTable>,
    pub(super) alarm: Rc<RefCell<AlarmSlot>>,
    /// The name that the object had when it set its alarm: what an alarm constructs it with (rule A10).
    pub(super) alarm_name: Option<ObjectName>,
    /// The time in the host's index, which may be earlier than the slot, never later (rule E17).
    pub(super) indexed: Option<Timestamp>,
    /// The time under which the place stands in the engine's own list of alarms.
    pub(super) listed: Option<Timestamp>,
    /// The time is the index's, not yet compared with the object's own, which may be later.
    pub(super) unverified: bool,
    /// An alarm event is in the inbox.
    pub(super) alarm_queued: bool,
    /// In the engine's list of places to run.
    pub(super) queued: bool,
    /// A look at whether it is idle is due at some time.
    pub(super) idle_check: bool,
    pub(super) last_active: Duration,
    /// When something from outside came last, or was last seen to be under way.
    pub(super) last_attended: Duration,
}

/// What is in memory of an object that is awake.
pub(super) struct Live {
    pub(super) core: Rc<Core>,
    pub(super) storage: Rc<dyn Storage>,
    pub(super) instance: Rc<dyn Instance>,
    /// Whether an event came that is not the alarm's, and the work that waits for it.
    pub(super) first_event: Rc<FirstEvent>,
    pub(super) tasks: BTreeMap<u64, Task>,
    /// The gates that are closed, the innermost last. Only its task runs (rule B8).
    pub(super) gates: Vec<u64>,
    /// Gates that were asked for beside a closed one, in order.
    pub(super) waiting_gates: VecDeque<GateWork>,
    /// Tasks that were woken while a gate was closed.
    pub(super) deferred: VecDeque<u64>,
    /// Response bodies that are not used up.
    pub(super) streams: Arc<AtomicUsize>,
}

impl Live {
    /// Whether `gate` has not ended.
    pub(super) fn is_held_by(&self, gate: Option<u64>) -> bool {
        gate.is_some_and(|gate| self.gates.contains(&gate))
    }

    /// Whether `task` may run now.
    pub(super) fn may_run(&self, task: u64) -> bool {
        let Some(gate) = self.gates.last() else { return true };
        *gate == task || self.tasks.get(&task).is_some_and(|task| task.within.gate == Some(*gate))
    }
}

/// A handler or other work of an instance, between two polls.
pub(super) struct Task {
    pub(super) serial: u64,
    pub(super) kind: TaskKind,
    pub(super) future: LocalFuture<Outcome>,
    pub(super) waker: Arc<TaskWaker>,
    /// The gate with which it runs: its own, or the one whose work spawned it.
    pub(super) within: Within,
    /// It was polled before.
    pub(super) started: bool,
}

pub(super) enum TaskKind {
    Fetch(Reply),
    /// With the timer that ends a run that takes too long.
    Alarm(TimerId),
    /// With the length of the message.
    Message(Rc<SocketCell>, usize),
    Closed(Rc<SocketCell>, Close),
    Failed(Rc<SocketCell>),
    Background,
    Gate(TimerId),
}

impl TaskKind {
    /// Whether it handles an event that is not the alarm's.
    pub(super) fn is_attending(&self) -> bool {
        matches!(self, Self::Fetch(_) | Self::Message(..) | Self::Closed(..) | Self::Failed(_))
    }

    /// For logs and for saying why an object is awake.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Fetch(_) => "fetch",
            Self::Alarm(_) => "alarm",
            Self::Message(..) => "websocket_message",
            Self::Closed(..) => "websocket_close",
            Self::Failed(_) => "websocket_error",
            Self::Background => "wait_until",
            Self::Gate(_) => "block_concurrency_while",
        }
    }
}

/// What a task's future gives. Failures are turned into errors inside it, because that runs code of the application.
pub(super) enum Outcome {
    Response(Result<Response, Error>),
    Done(Result<(), Error>),
}

impl Place {
    pub(super) fn new(key: ObjectKey) -> Self {
        Self {
            key,
            name: None,
            inbox: VecDeque::new(),
            live: None,
            sockets: Rc::default(),
            alarm: Rc::new(RefCell::new(AlarmSlot::new(None))),
            alarm_name: None,
            indexed: None,
            listed: None,
            unverified: false,
            alarm_queued: false,
            queued: false,
            idle_check: false,
            last_active: Duration::ZERO,
            last_attended: Duration::ZERO,
        }
    }

    /// An event is about to be queued that reaches the object by `name`. The first one of an instance decides
    /// (rule A9); one without a name is told the old name as long as sockets tie the instances together.
    pub(super) fn reached_by(&mut self, name: Option<ObjectName>) {
        let first = self.live.is_none() && self.inbox.is_empty();
        if first && (name.is_some() || self.sockets.len() == 0) {
            self.name = name;
        }
    }

    /// Its id, with the name that its instance was reached by.
    pub(super) fn id(&self) -> ObjectId {
        ObjectId::from_parts(self.key.id, self.name.clone())
    }

    /// Why the object stays in memory (rule B3); empty when it is idle.
    pub(super) fn why_awake(&self) -> Vec<&'static str> {
        let Some(live) = &self.live else { return Vec::new() };
        let mut why: Vec<_> = live.tasks.values().map(|task| task.kind.name()).collect();
        let mut add = |is: bool, reason| {
            if is {
                why.push(reason);
            }
        };
        add(!self.inbox.is_empty(), "events that wait");
        add(!live.waiting_gates.is_empty(), "gates that wait");
        add(live.core.sleeping.get() > 0, "a pending sleep");
        add(live.core.calls.load(Ordering::Relaxed) > 0, "a call under way");
        add(live.streams.load(Ordering::Relaxed) > 0, "an open response body");
        add(!live.core.gate.borrow().is_empty(), "outputs that wait for a commit");
        if why.is_empty() {
            let transport = live.core.transport();
            let unsent = self.sockets.all().iter().any(|socket| socket.buffered(transport) > 0);
            if unsent {
                why.push("unsent messages");
            }
        }
        why
    }

    /// Whether nothing but background work, sleeps and calls keep it in memory, and no client is connected (rule B4).
    pub(super) fn has_only_background(&self) -> bool {
        let Some(live) = &self.live else { return false };
        self.inbox.is_empty()
            && self.sockets.len() == 0
            && live.waiting_gates.is_empty()
            && live.streams.load(Ordering::Relaxed) == 0
            && live.core.gate.borrow().is_empty()
            && live.tasks.values().all(|task| matches!(task.kind, TaskKind::Background))
    }

    /// Whether nothing is left that a place must remember.
    pub(super) fn is_forgettable(&self) -> bool {
        self.live.is_none()
            && self.inbox.is_empty()
            && self.sockets.len() == 0
            && self.alarm.borrow().due().is_none()
            && !self.alarm_queued
    }
}
