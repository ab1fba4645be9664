//! E17 as a property: wherever a crash falls, the host's index has every alarm, and none later than its object does.

use crate::{
    AlarmInfo, Body, Close, CloseFrame, Error, ErrorKind, Failure, Message, ObjectName, Request, Response,
    Row, Rows, Timestamp, Value,
    engine::{
        AlarmIndex, Class, Config, ConnId, Core, Engine, ManualClock, ObjectKey, Ports, ReadyQueue, Reply,
        SocketSeed, Storage, Transport,
        class::{Instance, LocalFuture},
    },
};
use proptest::prelude::*;
use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    ops::ControlFlow,
    rc::Rc,
    sync::Arc,
    time::Duration,
};

const START: i64 = 1_000_000;
const OBJECTS: u8 = 3;

/// What an object is asked to do in one turn; times are in ms from now.
#[derive(Debug, Clone, Copy)]
enum Act {
    Set(i64),
    SetLaterInTurn(i64, i64),
    Delete,
    DeleteAll,
    RollBack(i64),
    Panic(i64),
    Reset(i64),
    Fail(i64),
}

/// What its handler does from now on.
#[derive(Debug, Clone, Copy)]
enum Mode {
    Succeed,
    Fail,
    SetAgain(i64),
    DeleteAndFail,
}

#[derive(Debug, Clone, Copy)]
enum Op {
    Ask(u8, Act),
    /// The same where the commit fails.
    AskBroken(u8, Act),
    /// The same where the index cannot be written.
    AskUnindexed(u8, Act),
    Mode(u8, Mode),
    Pass(u64),
    /// Of what the index did not wait for, this much was kept.
    Crash(prop::sample::Index),
}

/// What outlives the process.
#[derive(Default)]
struct Disk {
    slots: RefCell<BTreeMap<ObjectKey, Timestamp>>,
    index: RefCell<BTreeMap<ObjectKey, Timestamp>>,
    /// Written to the index since, without waiting for the disk. A crash keeps some of the first of them.
    settled: RefCell<Vec<(ObjectKey, Option<Timestamp>)>>,
    modes: RefCell<BTreeMap<ObjectKey, Mode>>,
    next: Cell<Option<Act>>,
    breaks_commit: Cell<bool>,
    breaks_index: Cell<bool>,
    runs: Cell<usize>,
}

impl Disk {
    fn keep_settled(&self, count: usize) {
        let mut index = self.index.borrow_mut();
        let mut settled = self.settled.borrow_mut();
        for (key, at) in settled.drain(..count) {
            settle_in(&mut index, key, at);
        }
        settled.clear();
    }

    /// The property, for a crash that falls now, however much of the index it keeps.
    fn check(&self) {
        let mut index = self.index.borrow().clone();
        let settled = self.settled.borrow();
        let steps = std::iter::once(None).chain(settled.iter().map(Some));
        for step in steps {
            if let Some((key, at)) = step {
                settle_in(&mut index, *key, *at);
            }
            for (key, slot) in &*self.slots.borrow() {
                let known = index.get(key);
                assert!(known.is_some_and(|known| known <= slot), "{known:?} for an alarm at {slot:?}");
            }
        }
    }
}

/// Settling makes no entry.
fn settle_in(index: &mut BTreeMap<ObjectKey, Timestamp>, key: ObjectKey, at: Option<Timestamp>) {
    match at {
        Some(at) => drop(index.get_mut(&key).map(|entry| *entry = at)),
        None => drop(index.remove(&key)),
    }
}

struct Index(Rc<Disk>);

impl AlarmIndex for Index {
    fn earlier(&self, key: &ObjectKey, _: Option<&ObjectName>, at: Timestamp) -> Result<(), Error> {
        if self.0.breaks_index.take() {
            return Err(Error::new(ErrorKind::Platform, "the index is broken"));
        }
        let settled = self.0.settled.borrow().len();
        self.0.keep_settled(settled); // the log is synced as a whole
        let mut index = self.0.index.borrow_mut();
        let entry = index.entry(*key).or_insert(at);
        *entry = at.min(*entry);
        drop(index);
        self.0.check();
        Ok(())
    }

    fn settle(&self, key: &ObjectKey, at: Option<Timestamp>) {
        self.0.settled.borrow_mut().push((*key, at));
        self.0.check();
    }
}

/// What the open transaction has made of the slot.
#[derive(Clone, Copy, Default)]
enum Pending {
    #[default]
    Nothing,
    Written(Option<Timestamp>),
}

/// A database that has nothing but the slot.
struct Slot {
    disk: Rc<Disk>,
    key: ObjectKey,
    pending: Cell<Pending>,
    savepoints: RefCell<Vec<Pending>>,
}

fn no_sql<T>() -> Result<T, Error> {
    Err(Error::new(ErrorKind::Sql, "there is no SQL here"))
}

impl Storage for Slot {
    fn exec(&self, _: &str, _: &[Value]) -> Result<Rows, Error> {
        no_sql()
    }

    fn for_each(
        &self,
        _: &str,
        _: &[Value],
        _: &mut dyn FnMut(Row<'_>) -> Result<ControlFlow<()>, Error>,
    ) -> Result<(), Error> {
        no_sql()
    }

    fn savepoint(&self) -> Result<(), Error> {
        self.savepoints.borrow_mut().push(self.pending.get());
        Ok(())
    }

    fn release(&self) -> Result<(), Error> {
        self.savepoints.borrow_mut().pop();
        Ok(())
    }

    fn rollback_to(&self) -> Result<(), Error> {
        self.pending.set(self.savepoints.borrow_mut().pop().unwrap_or_default());
        Ok(())
    }

    fn depth(&self) -> usize {
        self.savepoints.borrow().len()
    }

    fn wants_vacuum(&self) -> bool {
        false
    }

    fn vacuum(&self) -> Result<(), Error> {
        Ok(())
    }

    fn is_dirty(&self) -> bool {
        matches!(self.pending.get(), Pending::Written(_))
    }

    fn commit(&self) -> Result<(), Error> {
        let Pending::Written(at) = self.pending.take() else { return Ok(()) };
        if self.disk.breaks_commit.take() {
            return Err(Error::new(ErrorKind::Sql, "the commit is broken"));
        }
        let mut slots = self.disk.slots.borrow_mut();
        match at {
            Some(at) => slots.insert(self.key, at),
            None => slots.remove(&self.key),
        };
        drop(slots);
        self.disk.check();
        Ok(())
    }

    fn rollback(&self) {
        self.pending.set(Pending::Nothing);
        self.savepoints.borrow_mut().clear();
    }

    fn alarm(&self) -> Result<Option<Timestamp>, Error> {
        Ok(match self.pending.get() {
            Pending::Nothing => self.disk.slots.borrow().get(&self.key).copied(),
            Pending::Written(at) => at,
        })
    }

    fn set_alarm(&self, at: Option<Timestamp>) -> Result<(), Error> {
        if self.alarm()? != at {
            self.pending.set(Pending::Written(at));
        }
        Ok(())
    }

    fn delete_all(&self) -> Result<(), Error> {
        self.pending.set(Pending::Written(None));
        Ok(())
    }

    fn size(&self) -> u64 {
        0
    }
}

struct Object {
    core: Rc<Core>,
    disk: Rc<Disk>,
    key: ObjectKey,
}

impl Object {
    fn set(&self, ms: i64) -> Result<(), Error> {
        self.core.set_alarm(Some(Timestamp::from_millis(self.core.now().as_millis() + ms)))
    }
}

impl Instance for Object {
    fn fetch(self: Rc<Self>, _: Request) -> LocalFuture<Result<Response, Failure>> {
        Box::pin(async move {
            match self.disk.next.take() {
                None => {}
                Some(Act::Set(ms)) => self.set(ms)?,
                Some(Act::SetLaterInTurn(first, then)) => {
                    self.set(first)?;
                    self.set(then)?;
                }
                Some(Act::Delete) => self.core.set_alarm(None)?,
                Some(Act::DeleteAll) => self.core.delete_all()?,
                Some(Act::RollBack(ms)) => {
                    let undone: Result<(), Failure> = self.core.transaction(|| {
                        self.set(ms)?;
                        Err(Failure::msg("undo it"))
                    });
                    assert!(undone.is_err());
                }
                Some(Act::Panic(ms)) => {
                    self.set(ms)?;
                    panic!("on purpose");
                }
                Some(Act::Reset(ms)) => {
                    self.set(ms)?;
                    match self.core.reset("on purpose").await {}
                }
                Some(Act::Fail(ms)) => {
                    self.set(ms)?;
                    return Err(Failure::msg("on purpose"));
                }
            }
            Ok(Response::new(Body::empty()))
        })
    }

    fn alarm(self: Rc<Self>, info: AlarmInfo) -> LocalFuture<Result<(), Failure>> {
        Box::pin(async move {
            assert!(info.scheduled <= self.core.now(), "early");
            self.disk.runs.set(self.disk.runs.get() + 1);
            let mode = self.disk.modes.borrow().get(&self.key).copied();
            match mode.unwrap_or(Mode::Succeed) {
                Mode::Succeed => Ok(()),
                Mode::Fail => Err(Failure::msg("on purpose")),
                Mode::SetAgain(ms) => Ok(self.set(ms)?),
                Mode::DeleteAndFail => {
                    self.core.set_alarm(None)?;
                    Err(Failure::msg("on purpose"))
                }
            }
        })
    }

    fn message(self: Rc<Self>, _: SocketSeed, _: Message) -> LocalFuture<Result<(), Failure>> {
        Box::pin(async { Ok(()) })
    }

    fn close(self: Rc<Self>, _: SocketSeed, _: Close) -> LocalFuture<Result<(), Failure>> {
        Box::pin(async { Ok(()) })
    }

    fn error(self: Rc<Self>, _: SocketSeed, _: Error) -> LocalFuture<Result<(), Failure>> {
        Box::pin(async { Ok(()) })
    }
}

struct NoNetwork;

impl Transport for NoNetwork {
    fn fits(&self, _: ConnId, _: usize, _: usize, _: usize) -> bool {
        true
    }
    fn send(&self, _: ConnId, _: &Message) {}
    fn close(&self, _: ConnId, _: &CloseFrame) {}
    fn finish(&self, _: ConnId) {}
    fn abort(&self, _: ConnId) {}
    fn is_connecting(&self, _: ConnId) -> bool {
        false
    }
    fn buffered(&self, _: ConnId) -> usize {
        0
    }
    fn set_paused(&self, _: ConnId, _: bool) {}
}

fn key(object: u8) -> ObjectKey {
    ObjectKey { class: 0, id: [object; 32] }
}

struct World {
    disk: Rc<Disk>,
    clock: ManualClock,
    engine: Engine,
}

impl World {
    fn start(disk: Rc<Disk>, clock: ManualClock) -> Self {
        let (of_storage, of_class) = (Rc::clone(&disk), Rc::clone(&disk));
        let storage = move |key: &ObjectKey| {
            let disk = Rc::clone(&of_storage);
            Ok(Rc::new(Slot { disk, key: *key, pending: Cell::default(), savepoints: RefCell::default() })
                as Rc<dyn Storage>)
        };
        let ports = Ports {
            storage: Box::new(storage),
            index: Box::new(Index(Rc::clone(&disk))),
            clock: Arc::new(clock.clone()),
            transport: Rc::new(NoNetwork),
            ready: ReadyQueue::new(|| {}),
            seed: 7,
            director: None,
        };
        let class = Class::of(move |core| {
            let id = core.id().as_bytes();
            Rc::new(Object { key: ObjectKey { class: 0, id: *id }, core, disk: Rc::clone(&of_class) })
        });
        let config = Config { idle: Duration::from_secs(10), waiting: 100, awake: 2, background: None };
        let mut engine = Engine::new(ports, vec![class], config);
        for (key, at) in &*disk.index.borrow() {
            engine.known_alarm(*key, None, *at);
        }
        Self { disk, clock, engine }
    }

    fn settle(&mut self) {
        // What sets itself to now again and again never ends by itself.
        for _ in 0..3 {
            self.engine.poll();
        }
        self.disk.check();
    }

    fn ask(&mut self, object: u8, act: Act) {
        self.disk.next.set(Some(act));
        let request = http::Request::new(Body::empty());
        self.engine.fetch(key(object), None, Box::new(request), Reply::new(|_| ()));
        self.settle();
        self.disk.next.take();
        self.disk.breaks_commit.take();
        self.disk.breaks_index.take();
    }

    fn apply(self, op: Op) -> Self {
        let mut this = self;
        match op {
            Op::Ask(object, act) => this.ask(object, act),
            Op::AskBroken(object, act) => {
                this.disk.breaks_commit.set(true);
                this.ask(object, act);
            }
            Op::AskUnindexed(object, act) => {
                this.disk.breaks_index.set(true);
                this.ask(object, act);
            }
            Op::Mode(object, mode) => {
                this.disk.modes.borrow_mut().insert(key(object), mode);
            }
            Op::Pass(ms) => {
                this.clock.advance(Duration::from_millis(ms));
                this.settle();
            }
            Op::Crash(kept) => return this.crash(kept),
        }
        this
    }

    fn crash(self, kept: prop::sample::Index) -> Self {
        let Self { disk, clock, engine } = self;
        drop(engine);
        let kept = kept.index(disk.settled.borrow().len() + 1);
        disk.keep_settled(kept);
        let mut next = Self::start(disk, clock);
        next.settle();
        next
    }
}

fn act() -> impl Strategy<Value = Act> {
    let ms = -50_i64..5_000;
    prop_oneof![
        4 => ms.clone().prop_map(Act::Set),
        1 => (ms.clone(), ms.clone()).prop_map(|(first, then)| Act::SetLaterInTurn(first, then)),
        2 => Just(Act::Delete),
        1 => Just(Act::DeleteAll),
        1 => ms.clone().prop_map(Act::RollBack),
        1 => ms.clone().prop_map(Act::Panic),
        1 => ms.clone().prop_map(Act::Reset),
        1 => ms.prop_map(Act::Fail),
    ]
}

fn op() -> impl Strategy<Value = Op> {
    let mode = prop_oneof![
        Just(Mode::Succeed),
        Just(Mode::Fail),
        (-50_i64..3_000).prop_map(Mode::SetAgain),
        Just(Mode::DeleteAndFail),
    ];
    prop_oneof![
        6 => (0..OBJECTS, act()).prop_map(|(object, act)| Op::Ask(object, act)),
        2 => (0..OBJECTS, act()).prop_map(|(object, act)| Op::AskBroken(object, act)),
        1 => (0..OBJECTS, act()).prop_map(|(object, act)| Op::AskUnindexed(object, act)),
        2 => (0..OBJECTS, mode).prop_map(|(object, mode)| Op::Mode(object, mode)),
        4 => (0_u64..20_000).prop_map(Op::Pass),
        2 => any::<prop::sample::Index>().prop_map(Op::Crash),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn e16_e17_the_index_is_never_later_than_a_slot_and_no_alarm_is_lost(
        ops in prop::collection::vec(op(), 1..60),
        last in any::<prop::sample::Index>(),
    ) {
        let clock = ManualClock::at(Timestamp::from_millis(START));
        let mut world = World::start(Rc::default(), clock);
        for op in ops {
            world = world.apply(op);
        }
        world.disk.modes.borrow_mut().clear();
        let left = world.disk.slots.borrow().len();
        world = world.crash(last);
        let before = world.disk.runs.get();
        for _ in 0..10 {
            world = world.apply(Op::Pass(10_000));
        }
        prop_assert!(world.disk.slots.borrow().is_empty(), "an alarm never ran");
        prop_assert!(world.disk.runs.get() <= before + left, "an alarm ran twice");
    }
}
