//! The engine of one thread: the objects that live on it, and what is to be done next.

use super::{
    Director, ReadyQueue, SocketKey, Storage, Transport,
    class::Class,
    clock::Clock,
    core::{Due, Shared},
    events::{Event, Reply},
    gate::Output,
    place::{Live, ObjectKey, Place},
    ready::TaskKey,
    sockets::SocketTable,
    turn::cut_off,
    vacuum::Vacuums,
};
use crate::{Close, CloseFrame, Error, ErrorKind, Message, ObjectId, ObjectName, Request, Timestamp, limits};
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
    /// Durable when it returns. An entry that is earlier stays so, and takes a name if it has none.
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
    /// Only in tests.
    pub(crate) director: Option<Rc<dyn Director>>,
}

/// The driver stops: what is under way is cut off.
impl Drop for Engine {
    fn drop(&mut self) {
        for live in self.places.drain().filter_map(|place| place.live) {
            live.core.die();
            cut_off(live.tasks);
            cut_off(live.waiting_gates);
            cut_off(live.first_event.take());
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
    /// How long after its last event background work alone keeps an object in memory; `None` for as long as it takes.
    pub(crate) background: Option<Duration>,
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

/// Time after which it begins no further round, however few turns that were: long work in many turns, which sleeps for no
/// time between them, would keep out what comes from outside for as long as [`TURNS`] of them take.
const SPAN: Duration = Duration::from_millis(1);

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
    pub(super) runnable: VecDeque<u32>,
    /// When which place's alarm is due.
    pub(super) alarms: BTreeSet<(Timestamp, u32)>,
    woken: VecDeque<TaskKey>,
    /// Room for the next woken ones.
    woken_next: Vec<TaskKey>,
    /// Turns that are left in this poll.
    pub(super) budget: usize,
    /// The last poll ended because it took long.
    cut_off: bool,
    /// No new work is taken.
    pub(super) draining: bool,
    pub(super) vacuums: Vacuums,
}

/// The ports that are not shared with objects.
pub(super) struct PortsLeft {
    pub(super) storage: OpenStorage,
    pub(super) index: Box<dyn AlarmIndex>,
}

impl Engine {
    pub(crate) fn new(ports: Ports, classes: Vec<Class>, config: Config) -> Self {
        let Ports { storage, index, clock, transport, ready, seed, director } = ports;
        Self {
            shared: Rc::new(Shared::new(clock, transport, ready, seed, director)),
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
            cut_off: false,
            draining: false,
            vacuums: Vacuums::default(),
        }
    }

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
                if let Some(answer) = place.sockets.auto_response(&message) {
                    // After the object's own Close nothing more is sent, and the text is not the object's either.
                    if socket.is_open() && socket.has_room(answer.len(), transport) {
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
        self.poll_turns(TURNS)
    }

    /// [`poll`](Self::poll) with another bound. With one turn, true means that there was one to do.
    pub(crate) fn poll_turns(&mut self, most: usize) -> bool {
        self.budget = most;
        let mut began = None;
        loop {
            let mut busy = self.tick();
            let now = self.shared.elapsed.get();
            if now.saturating_sub(*began.get_or_insert(now)) >= SPAN {
                self.cut_off = true;
                return true;
            }
            let directed = self.shared.is_directed();
            if self.woken.is_empty() || directed {
                self.shared.ready.take(&mut self.woken_next);
                self.woken.extend(self.woken_next.drain(..));
            }
            // A director lets an event begin before a task goes on that was woken: on the host either may be first. After
            // long work, what came meanwhile is.
            let picked = directed && !self.runnable.is_empty() && self.shared.pick(2) == 1;
            let came_first = std::mem::take(&mut self.cut_off);
            if came_first {
                busy |= self.run_places();
            }
            if !picked {
                busy |= self.run_woken();
            }
            busy |= self.run_places();
            if self.budget == 0 {
                return true;
            }
            if !busy {
                self.vacuum();
                return false;
            }
        }
    }

    /// The last [`poll`](Self::poll) ended because it took long. What has come meanwhile is to be handed over now.
    pub(crate) fn is_cut_off(&self) -> bool {
        self.cut_off
    }

    fn run_woken(&mut self) -> bool {
        let before = self.budget;
        while self.budget > 0
            && let Some(key) = self.next_woken()
        {
            self.budget -= 1;
            self.run_task(key);
        }
        self.budget < before
    }

    fn run_places(&mut self) -> bool {
        let mut ran = false;
        while self.budget > 0
            && let Some(index) = self.shared.next(&mut self.runnable)
        {
            ran = true;
            self.run_place(index);
        }
        ran
    }

    /// The task that goes on next. Work that was asked for begins in the order in which it was, whatever a director
    /// picks.
    fn next_woken(&mut self) -> Option<TaskKey> {
        let picked = self.shared.next(&mut self.woken)?;
        let begins = |engine: &mut Self, key: &TaskKey| {
            let live = engine.live(key.object);
            live.is_some_and(|(_, live)| live.tasks.get(&key.task).is_some_and(|task| !task.started))
        };
        if self.shared.is_directed() && begins(self, &picked) {
            let waiting: Vec<TaskKey> = self.woken.iter().copied().collect();
            let earlier = waiting
                .into_iter()
                .enumerate()
                .filter(|(_, key)| key.object == picked.object && key.task < picked.task && begins(self, key))
                .min_by_key(|(_, key)| key.task);
            if let Some((at, key)) = earlier {
                self.woken[at] = picked;
                return Some(key);
            }
        }
        Some(picked)
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

    /// The objects of a class that are in memory, and why each of them is.
    pub(crate) fn awake_of(&self, class: u16) -> Vec<(ObjectId, Vec<&'static str>)> {
        let places = self.awake.iter().filter_map(|(_, index)| self.places.get(*index as usize));
        let of_class = places.filter(|place| place.key.class == class);
        of_class.map(|place| (place.id(), place.why_awake())).collect()
    }

    pub(super) fn place(&mut self, index: u32) -> Option<&mut Place> {
        self.places.get_mut(index as usize)
    }

    /// The place and what is in memory of it.
    pub(super) fn live(&mut self, index: u32) -> Option<(&SocketTable, &mut Live)> {
        let place = self.places.get_mut(index as usize)?;
        let Place { live, sockets, .. } = place;
        live.as_mut().map(|live| (&**sockets, live))
    }

    #[cfg(feature = "testing")]
    pub(super) fn index_of(&self, key: &ObjectKey) -> Option<u32> {
        self.by_key.get(key).copied()
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
}
