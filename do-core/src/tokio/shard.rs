//! A shard: one thread with an engine and the connections of its objects.

use super::ws::{ConnEvent, Connections};
use crate::{
    CloseCode, CloseFrame, ObjectId, ObjectName, Request,
    engine::{Clock, ConnId, Engine, ObjectKey, ReadyQueue, Reply, SocketEvent, SocketKey, Timers},
};
use std::{
    collections::VecDeque,
    rc::Rc,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, Thread},
    time::{Duration, Instant},
};
use tokio::sync::oneshot;

/// An object that is in memory, and why; without a reason it is idle.
pub(crate) type Awake = (ObjectId, Vec<&'static str>);

/// What other threads ask of a shard.
pub(crate) enum Command {
    Fetch {
        key: ObjectKey,
        name: Option<ObjectName>,
        request: Box<Request>,
        reply: Reply,
    },
    Delay {
        until: Duration,
        done: oneshot::Sender<()>,
    },
    WhyAwake {
        key: ObjectKey,
        answer: oneshot::Sender<Option<Vec<&'static str>>>,
    },
    /// Which objects of a class are in memory, and why.
    InMemory {
        class: u16,
        answer: oneshot::Sender<Vec<Awake>>,
    },
    /// Finish within the time, then stop.
    Shutdown {
        grace: Duration,
    },
    /// Stop now.
    Stop,
}

#[cfg(feature = "testing")]
impl Command {
    /// The object that it is about.
    pub(crate) fn object(&self) -> Option<ObjectKey> {
        match self {
            Self::Fetch { key, .. } | Self::WhyAwake { key, .. } => Some(*key),
            Self::InMemory { .. } | Self::Delay { .. } | Self::Shutdown { .. } | Self::Stop => None,
        }
    }
}

/// The way to a shard from any thread.
pub(crate) struct ShardQueue {
    inbound: Mutex<Inbound>,
    thread: OnceLock<Thread>,
    /// There may be something to do. The thread's own token does not tell: whatever parks the thread inside a
    /// handler takes it.
    woken: AtomicBool,
}

#[derive(Default)]
struct Inbound {
    commands: VecDeque<Command>,
    /// Connections on which something may be possible.
    conns: Vec<ConnId>,
    closed: bool,
}

/// Commands that may wait for one shard. Beyond it requests are refused, before memory is.
const COMMANDS_MAX: usize = 65_536;

impl ShardQueue {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { inbound: Mutex::default(), thread: OnceLock::new(), woken: AtomicBool::new(false) })
    }

    fn lock(&self) -> MutexGuard<'_, Inbound> {
        self.inbound.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn push(&self, command: Command) {
        let mut inbound = self.lock();
        let refused = match &command {
            _ if inbound.closed => Some((crate::ErrorKind::Shutdown, "the host has shut down")),
            Command::Fetch { .. } if inbound.commands.len() >= COMMANDS_MAX => {
                Some((crate::ErrorKind::Overloaded, "too many requests wait for this shard"))
            }
            _ => None,
        };
        match refused {
            None => inbound.commands.push_back(command),
            Some((kind, message)) => {
                drop(inbound);
                if let Command::Fetch { reply, .. } = command {
                    reply.send(Err(crate::Error::new(kind, message)));
                }
                return;
            }
        }
        drop(inbound);
        self.wake();
    }

    pub(super) fn conn_ready(&self, conn: ConnId) {
        self.lock().conns.push(conn);
        self.wake();
    }

    pub(super) fn wake(&self) {
        self.woken.store(true, Ordering::Release);
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }

    /// What was asked for since the last time.
    #[cfg(feature = "testing")]
    pub(crate) fn take_commands(&self) -> VecDeque<Command> {
        std::mem::take(&mut self.lock().commands)
    }

    /// Nothing is taken any more; what waited is given back to be dropped, which answers it.
    pub(crate) fn close(&self) -> VecDeque<Command> {
        let mut inbound = self.lock();
        inbound.closed = true;
        std::mem::take(&mut inbound.commands)
    }
}

/// How a shard ends.
enum Phase {
    Running,
    /// Handlers may finish until then.
    Draining(Instant),
    /// Close frames are on their way until then.
    Closing(Instant),
}

/// Events or commands that are handed to the engine before it works on them.
const AT_ONCE: usize = 128;

/// How long a shard sleeps at most while something is due at some time.
const LOOK_AGAIN: Duration = Duration::from_secs(30);

/// Below this, delays are not worth a sweep.
const DELAYS_MIN: usize = 1_024;

/// How long peers have to take our Close and to end the connection, at the end of a shutdown.
const CLOSING: Duration = Duration::from_secs(2);

pub(super) struct Shard {
    queue: Arc<ShardQueue>,
    clock: Arc<dyn Clock>,
    connections: Rc<Connections>,
    engine: Engine,
    delays: Timers<oneshot::Sender<()>>,
    /// Delays after which those that nobody waits for any more are thrown out.
    delays_max: usize,
    events: Vec<(SocketKey, ConnEvent)>,
    conns: Vec<ConnId>,
    phase: Phase,
}

impl Shard {
    pub(super) fn new(
        queue: Arc<ShardQueue>,
        clock: Arc<dyn Clock>,
        connections: Rc<Connections>,
        engine: Engine,
    ) -> Self {
        let _ = queue.thread.set(thread::current());
        Self {
            queue,
            clock,
            connections,
            engine,
            delays: Timers::new(),
            delays_max: DELAYS_MIN,
            events: Vec::new(),
            conns: Vec::new(),
            phase: Phase::Running,
        }
    }

    /// What wakes the engine's tasks wakes the shard.
    pub(super) fn ready_queue(queue: &Arc<ShardQueue>) -> Arc<ReadyQueue> {
        let queue = Arc::clone(queue);
        ReadyQueue::new(move || queue.wake())
    }

    /// Runs until it is told to stop. The order within a round: what arrived is taken in; then comes time, so that
    /// what was due before it is done before it; then it is delivered; then one flush, which coalesces what the
    /// round has sent. It rests only when the engine has nothing left. Work that takes long does not come first: it would
    /// have two turns for each that others have.
    pub(super) fn run(mut self) {
        // Whatever ends this thread, callers must get an answer.
        let _closer = Closer(Arc::clone(&self.queue));
        self.rounds();
        self.connections.flush_all(); // nothing that was sent is lost by having waited for company
        self.engine.refuse_waiting();
    }

    fn rounds(&mut self) {
        loop {
            let (commands, idle) = self.take_inbound();
            if !self.engine.is_cut_off() {
                self.engine.poll();
            }
            self.network();
            if self.commands(commands) {
                return;
            }
            let more = self.engine.poll();
            while let Some(done) = self.delays.pop_due(self.clock.elapsed()) {
                let _ = done.send(());
            }
            self.connections.flush();
            if self.advance_shutdown() {
                return;
            }
            if idle && !more {
                self.park();
            }
        }
    }

    /// Hands what arrived on the connections to the engine. Every so often the answers leave: a peer that sends
    /// much at once is not to be taken for one that reads nothing.
    fn network(&mut self) {
        let mut handed = 0_usize;
        for conn in std::mem::take(&mut self.conns) {
            self.connections.poll(conn, &mut self.events);
            if !self.events.is_empty() {
                self.engine.tick(); // what was due when they came goes first
            }
            for (key, event) in self.events.drain(..) {
                self.engine.socket_event(key, socket_event(event));
                handed += 1;
                if handed.is_multiple_of(AT_ONCE) {
                    self.engine.poll();
                    self.connections.flush();
                }
            }
        }
    }

    /// Executes what other threads ask. True when the shard must end.
    fn commands(&mut self, mut commands: VecDeque<Command>) -> bool {
        let mut executed = 0_usize;
        while let Some(command) = commands.pop_front() {
            if self.execute(command) {
                self.queue.lock().commands.append(&mut commands); // refused with all the others
                return true;
            }
            executed += 1;
            if executed.is_multiple_of(AT_ONCE) {
                self.engine.poll(); // so that a burst is not refused by an object that keeps up
                self.connections.flush();
            }
        }
        false
    }

    fn take_inbound(&mut self) -> (VecDeque<Command>, bool) {
        let mut inbound = self.queue.lock();
        std::mem::swap(&mut inbound.conns, &mut self.conns);
        let commands = std::mem::take(&mut inbound.commands);
        let idle = commands.is_empty() && self.conns.is_empty();
        (commands, idle)
    }

    /// True when the shard must end.
    #[allow(clippy::disallowed_methods)] // a shutdown waits for real peers in real time
    fn execute(&mut self, command: Command) -> bool {
        match command {
            Command::Fetch { key, name, request, reply } => self.engine.fetch(key, name, request, reply),
            Command::Delay { until, done } => self.delay(until, done),
            Command::WhyAwake { key, answer } => drop(answer.send(self.engine.why_awake(&key))),
            Command::InMemory { class, answer } => drop(answer.send(self.engine.awake_of(class))),
            Command::Shutdown { grace } => {
                self.engine.drain();
                self.phase = Phase::Draining(Instant::now() + grace);
            }
            Command::Stop => return true,
        }
        false
    }

    /// Most delays guard a call that ends long before them, so they are swept whenever they have doubled.
    fn delay(&mut self, until: Duration, done: oneshot::Sender<()>) {
        self.delays.insert(until, done);
        if self.delays.len() >= self.delays_max {
            self.delays.retain(|done| !done.is_closed());
            self.delays_max = DELAYS_MIN.max(self.delays.len() * 2);
        }
    }

    /// True when the shard has ended.
    #[allow(clippy::disallowed_methods)] // as above
    fn advance_shutdown(&mut self) -> bool {
        let now = Instant::now();
        if let Phase::Draining(until) = self.phase
            && (self.engine.is_quiet() || now >= until)
        {
            self.engine.close_sockets(&CloseFrame::from(CloseCode::GOING_AWAY));
            self.connections.flush();
            self.phase = Phase::Closing(now + CLOSING);
        }
        matches!(self.phase, Phase::Closing(until) if self.connections.is_empty() || now >= until)
    }

    #[allow(clippy::disallowed_methods)] // as above
    fn park(&self) {
        let deadlines = [self.engine.next_deadline(), self.delays.next(), self.connections.next_flush()];
        let virtual_deadline = deadlines.into_iter().flatten().min();
        // A sleeping machine or a step of its wall clock makes alarms due earlier than the monotonic time says.
        let wait =
            virtual_deadline.and_then(|until| self.clock.real_wait(until)).map(|wait| wait.min(LOOK_AGAIN));
        let shutdown = match self.phase {
            Phase::Running => None,
            Phase::Draining(until) | Phase::Closing(until) => {
                Some(until.saturating_duration_since(Instant::now()))
            }
        };
        if self.queue.woken.swap(false, Ordering::AcqRel) {
            return;
        }
        match [wait, shutdown].into_iter().flatten().min() {
            Some(wait) => thread::park_timeout(wait),
            None => thread::park(),
        }
    }
}

fn socket_event(event: ConnEvent) -> SocketEvent {
    match event {
        ConnEvent::Message(message) => SocketEvent::Message(message),
        ConnEvent::Close(close) => SocketEvent::Close(close),
        ConnEvent::Error(error, frame) => SocketEvent::Error(error, frame),
        ConnEvent::Lost => SocketEvent::Lost,
    }
}

/// Refuses what comes after the shard's end, and answers what it did not get to.
struct Closer(Arc<ShardQueue>);

impl Drop for Closer {
    fn drop(&mut self) {
        for command in self.0.close() {
            if let Command::Fetch { reply, .. } = command {
                reply.send(Err(crate::Error::new(crate::ErrorKind::Shutdown, "the host has shut down")));
            }
        }
    }
}
