//! The kit's driver of the engine: one thread, one step at a time, in an order that the seed picks.

use super::{
    director::Director,
    disk::Disk,
    executor::Spawned,
    index::{Index, Port},
    net::{Moved, Net},
};
use crate::{
    Error, ErrorKind,
    engine::{Clock, Config, Director as _, Engine, ManualClock, ObjectKey, Ports, ReadyQueue, Timers},
    tokio::{Command, HostEnv, MakeClass, Manifest, Plan, ShardQueue},
};
use std::{
    cell::{Cell, RefCell},
    collections::{BTreeMap, VecDeque},
    rc::Rc,
    sync::Arc,
    time::Duration,
};
use tokio::sync::oneshot;

/// Something that happens to an object, or to all, between two steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Strike {
    Hibernate(ObjectKey),
    Evict(ObjectKey),
    Crash,
    LosePower,
}

pub(super) struct World {
    pub(super) seed: u64,
    pub(super) clock: ManualClock,
    pub(super) net: Rc<Net>,
    pub(super) director: Rc<Director>,
    disk: Disk,
    index: Rc<Index>,
    manifest: RefCell<Manifest>,
    program: RefCell<Program>,
    /// None while it crashes.
    engine: RefCell<Option<Engine>>,
    commands: RefCell<VecDeque<Command>>,
    delays: RefCell<Timers<oneshot::Sender<()>>>,
    /// Futures of the test beside its main one, by number.
    spawned: RefCell<BTreeMap<u64, Spawned>>,
    spawns: Cell<u64>,
    /// Runs that are under way, one inside the other.
    runs: Cell<u32>,
    steps: Cell<u64>,
    /// The step at which the clock last moved, and to what.
    restless: Cell<(u64, Duration)>,
    /// By the step before which they happen.
    planned: RefCell<BTreeMap<u64, Vec<Strike>>>,
    /// Each may happen before every step, with its probability.
    random: RefCell<Vec<(Strike, f64)>>,
}

/// The code that runs, and how it is set up: what a deployment replaces.
#[derive(Clone)]
struct Program {
    env: HostEnv,
    queue: Arc<ShardQueue>,
    classes: Vec<MakeClass>,
    keys: Rc<[String]>,
    config: Config,
}

/// What a world is made of.
pub(super) struct Parts {
    pub(super) seed: u64,
    pub(super) clock: ManualClock,
    pub(super) net: Rc<Net>,
    pub(super) director: Rc<Director>,
    pub(super) disk: Disk,
    pub(super) queue: Arc<ShardQueue>,
    pub(super) plan: Plan,
}

/// Things that may happen while the clock stands still, before that is taken for a fault.
const RESTLESS: u64 = 100_000;

/// As many more for each client.
const RESTLESS_CLIENT: u64 = 100;

const FROM_INSIDE: &str = "the kit cannot be driven from inside an object";

impl World {
    pub(super) fn new(parts: Parts) -> Self {
        let Parts { seed, clock, net, director, disk, queue, plan } = parts;
        disk.limit(plan.sql);
        let this = Self {
            seed,
            clock,
            net,
            director,
            disk,
            index: Rc::default(),
            manifest: RefCell::new(plan.manifest),
            program: RefCell::new(Program {
                env: plan.env,
                queue,
                classes: plan.classes,
                keys: plan.keys.into(),
                config: plan.config,
            }),
            engine: RefCell::new(None),
            commands: RefCell::default(),
            delays: RefCell::new(Timers::new()),
            spawned: RefCell::default(),
            spawns: Cell::new(0),
            runs: Cell::new(0),
            steps: Cell::new(0),
            restless: Cell::default(),
            planned: RefCell::default(),
            random: RefCell::default(),
        };
        this.boot();
        this
    }

    pub(super) fn env(&self) -> HostEnv {
        self.program.borrow().env.clone()
    }

    pub(super) fn manifest(&self) -> Manifest {
        self.manifest.borrow().clone()
    }

    /// The process ends as by a kill, and another program starts on its data. Stubs of the one before are refused.
    pub(super) fn deploy(&self, queue: Arc<ShardQueue>, plan: Plan) {
        self.shut_down("another program is deployed");
        for namespace in &plan.removed {
            self.disk.forget(namespace);
            self.index.forget(namespace);
        }
        self.disk.limit(plan.sql);
        self.net.limit(plan.limits);
        *self.manifest.borrow_mut() = plan.manifest;
        let program = Program {
            env: plan.env,
            queue,
            classes: plan.classes,
            keys: plan.keys.into(),
            config: plan.config,
        };
        let before = self.program.replace(program);
        drop(before.queue.close());
        self.boot();
    }

    /// A process begins, on what the one before left.
    fn boot(&self) {
        let Program { env, classes, keys, config, .. } = self.program.borrow().clone();
        let (disk, namespaces) = (self.disk.clone(), Rc::clone(&keys));
        let ports = Ports {
            storage: Box::new(move |key| {
                let namespace = namespaces.get(usize::from(key.class));
                let missing = || Error::new(ErrorKind::NotFound, "there is no such namespace");
                disk.open(namespace.ok_or_else(missing)?, key)
            }),
            index: Box::new(Port { index: Rc::clone(&self.index), keys: Rc::clone(&keys) }),
            clock: Arc::new(self.clock.clone()),
            transport: Rc::clone(&self.net) as _,
            ready: ReadyQueue::new(|| ()), // the kit asks for itself
            seed: u64::from_le_bytes(self.director.bytes()),
            director: Some(Rc::clone(&self.director) as _),
        };
        let classes = classes.iter().map(|make| make(env.clone(), Rc::clone(&self.net) as _));
        let mut engine = Engine::new(ports, classes.collect(), config);
        for (key, name, at) in self.index.known(&keys) {
            engine.known_alarm(key, name, at);
        }
        *self.engine.borrow_mut() = Some(engine);
    }

    /// # Panics
    /// From inside an object: what the engine runs cannot drive it.
    #[allow(clippy::panic)] // a mistake in the test, which must not go on
    pub(super) fn with_engine<R>(&self, f: impl FnOnce(&mut Engine) -> R) -> R {
        match self.engine.try_borrow_mut().ok().as_mut().and_then(|engine| engine.as_mut()) {
            Some(engine) => f(engine),
            None => panic!("{FROM_INSIDE}"),
        }
    }

    /// A run begins, and ends when what is returned is dropped. With the last one ends what was spawned: it would
    /// keep the world, which it has handles of, for ever.
    pub(super) fn running(&self) -> Running<'_> {
        self.runs.set(self.runs.get() + 1);
        Running(self)
    }

    /// How far the world has come.
    pub(super) fn moment(&self) -> (u64, Duration) {
        (self.steps.get(), self.clock.elapsed())
    }

    /// For who waits in vain.
    pub(super) fn whats_due(&self) -> String {
        match self.next_deadline() {
            Some(at) => {
                let wait = at.saturating_sub(self.clock.elapsed());
                format!("the next thing is due in {wait:?}: `advance` the clock")
            }
            None => "and nothing is due".to_owned(),
        }
    }

    pub(super) fn steps(&self) -> u64 {
        self.steps.get()
    }

    pub(super) fn plan(&self, step: u64, strike: Strike) {
        self.planned.borrow_mut().entry(step).or_default().push(strike);
    }

    pub(super) fn at_random(&self, strike: Strike, probability: f64) {
        let mut random = self.random.borrow_mut();
        match random.iter_mut().find(|(known, _)| *known == strike) {
            Some((_, known)) => *known = probability,
            None => random.push((strike, probability)),
        }
        random.retain(|(_, probability)| *probability > 0.0);
    }

    pub(super) fn heal(&self) {
        self.planned.borrow_mut().clear();
        self.random.borrow_mut().clear();
        self.director.heal();
    }

    /// Does one thing of those that can be done without the clock; false when there is none.
    pub(super) fn step(&self) -> bool {
        self.director.at(self.clock.elapsed());
        self.crash_if_due(); // by a commit outside of a step
        self.strikes();
        let moved = self.move_one();
        if moved {
            self.steps.set(self.steps.get() + 1);
            self.check_rest();
        }
        self.crash_if_due();
        moved
    }

    fn crash_if_due(&self) {
        if self.disk.take_crash() {
            self.strike(Strike::Crash);
        }
    }

    /// # Panics
    /// An object, or the test, wakes itself again and again.
    #[allow(clippy::panic)] // a test that would hang must end
    fn check_rest(&self) {
        let now = self.clock.elapsed();
        let (since, at) = self.restless.get();
        if at != now {
            return self.restless.set((self.steps.get(), now));
        }
        // Where there are many clients, one message to all of them is much work.
        if self.steps.get() - since > RESTLESS + RESTLESS_CLIENT * u64::from(self.net.connections()) {
            let history = self.director.history();
            let lines: Vec<_> = history.lines().rev().take(20).collect();
            let last = lines.into_iter().rev().collect::<Vec<_>>().join("\n");
            panic!(
                "{} things happened without any time passing: something wakes itself again and again, or a test \
                 that has much to do should let some pass (`advance`)\n{last}",
                self.steps.get() - since
            );
        }
    }

    fn strikes(&self) {
        let due = {
            let mut planned = self.planned.borrow_mut();
            let later = planned.split_off(&(self.steps.get() + 1));
            std::mem::replace(&mut *planned, later)
        };
        for strike in due.into_values().flatten() {
            self.strike(strike);
        }
        let random = self.random.borrow().clone();
        for (strike, probability) in random {
            if self.director.chance(probability) {
                self.strike(strike);
            }
        }
    }

    fn move_one(&self) -> bool {
        let mut ways = [Self::command, Self::network, Self::turn, Self::test];
        for last in (1..ways.len()).rev() {
            ways.swap(last, self.director.pick(last + 1));
        }
        let due = self.delays.borrow_mut().pop_due(self.clock.elapsed());
        match due {
            Some(done) => {
                let _ = done.send(()); // nobody waits any more
                true
            }
            None => ways.iter().any(|way| way(self)),
        }
    }

    /// What a stub asked for reaches its object: in order for one object, in any order for several (rule A13).
    fn command(&self) -> bool {
        let mut commands = self.commands.borrow_mut();
        commands.extend(self.program.borrow().queue.take_commands());
        if commands.is_empty() {
            return false;
        }
        let picked = commands.get(self.director.pick(commands.len())).and_then(Command::object);
        let first = commands.iter().position(|command| command.object() == picked).unwrap_or(0);
        let Some(command) = commands.remove(first) else { return false };
        drop(commands);
        match command {
            Command::Fetch { key, name, request, reply } => {
                let whom = name.as_ref().map_or("an id", |name| name.as_str());
                self.director.write(format_args!(
                    "{:?} is asked {} {}",
                    whom,
                    request.method(),
                    request.uri()
                ));
                self.with_engine(|engine| {
                    engine.tick(); // what was due before it comes before it
                    engine.fetch(key, name, request, reply);
                });
            }
            Command::Delay { until, done } => drop(self.delays.borrow_mut().insert(until, done)),
            Command::WhyAwake { key, answer } => {
                let _ = answer.send(self.with_engine(|engine| engine.why_awake(&key)));
            }
            Command::InMemory { class, answer } => {
                let _ = answer.send(self.with_engine(|engine| engine.awake_of(class)));
            }
            Command::Shutdown { .. } | Command::Stop => {} // of the threads of a host, which there are none of
        }
        true
    }

    fn network(&self) -> bool {
        match self.net.step() {
            Moved::Nothing => return false,
            Moved::Silently => {}
            Moved::Event(key, event) => self.with_engine(|engine| {
                engine.tick();
                engine.socket_event(key, event);
            }),
        }
        true
    }

    fn turn(&self) -> bool {
        self.with_engine(|engine| engine.poll_turns(1))
    }

    pub(super) fn spawn(&self, future: impl Future<Output = ()> + 'static) {
        let number = self.spawns.get();
        self.spawns.set(number + 1);
        self.spawned.borrow_mut().insert(number, Spawned::new(future));
    }

    /// A future of the test goes on. It is out of the list meanwhile: it may drive the world itself.
    fn test(&self) -> bool {
        let woken: Vec<u64> = {
            let spawned = self.spawned.borrow();
            spawned.iter().filter(|(_, spawned)| spawned.is_woken()).map(|(number, _)| *number).collect()
        };
        let Some(number) = woken.get(self.director.pick(woken.len())).copied() else { return false };
        let Some(mut spawned) = self.spawned.borrow_mut().remove(&number) else { return false };
        if !spawned.poll() {
            self.spawned.borrow_mut().insert(number, spawned);
        }
        true
    }

    /// When something is due, if nothing else happens.
    pub(super) fn next_deadline(&self) -> Option<Duration> {
        let engine = self.with_engine(|engine| engine.next_deadline());
        [engine, self.delays.borrow().next()].into_iter().flatten().min()
    }

    pub(super) fn strike(&self, strike: Strike) {
        match strike {
            Strike::Hibernate(key) => drop(self.with_engine(|engine| engine.evict_idle(&key))),
            Strike::Evict(key) => {
                let error = Error::new(ErrorKind::Reset, "the object was moved to another machine");
                self.with_engine(|engine| engine.evict_now(&key, &error));
            }
            Strike::Crash => self.crash("the process is killed"),
            Strike::LosePower => {
                self.index.lose_power();
                self.crash("the power fails");
            }
        }
    }

    fn crash(&self, how: &str) {
        self.shut_down(how);
        self.boot();
    }

    #[allow(clippy::panic)] // without its files a run means nothing, and neither does an object that drives the kit
    fn shut_down(&self, how: &str) {
        assert!(self.engine.try_borrow_mut().is_ok(), "{FROM_INSIDE}"); // before anything has changed
        self.director.write(format_args!("{how}"));
        if let Err(error) = self.disk.crash() {
            panic!("the kit's files cannot be copied: {error}");
        }
        let engine = self.engine.borrow_mut().take();
        drop(engine); // what was under way is cut off, and whoever waits for it is told
        self.net.die();
        let mut asked = std::mem::take(&mut *self.commands.borrow_mut());
        asked.extend(self.program.borrow().queue.take_commands());
        for command in asked {
            // Whoever asked is told by the drop. Only who waits for time to pass goes on waiting: it is outside.
            if let Command::Delay { until, done } = command {
                self.delays.borrow_mut().insert(until, done);
            }
        }
        let _ = self.disk.take_crash(); // this was it
        self.disk.tidy();
    }
}

/// A run of the test is under way.
pub(super) struct Running<'a>(&'a World);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let runs = self.0.runs.get() - 1;
        self.0.runs.set(runs);
        if runs == 0 {
            let spawned = std::mem::take(&mut *self.0.spawned.borrow_mut());
            drop(spawned); // with nothing borrowed: what they own may be clients
        }
    }
}

/// Whoever waits for something of this world is told that it ended.
impl Drop for World {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let (seed, steps) = (self.seed, self.steps());
            eprintln!(
                "the kit's seed was {seed}, after {steps} steps: DO_KIT_SEED={seed} runs the test again"
            );
        }
        drop(self.engine.take());
        drop(self.program.get_mut().queue.close());
        self.commands.get_mut().clear();
        self.net.die();
    }
}
