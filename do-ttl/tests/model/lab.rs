//! An object that does what a test hands it, and writes down the table before and after each call: what was committed and
//! what was not, from all instances, in the order in which it happened.

use crate::ops::{Call, Done, Got, Handler, KEYS, STORES, Setup, Turn};
use do_core::{
    ErrorKind, Keys,
    kit::{Builder, Failing, Kit},
    prelude::*,
    tokio::{HostState, HostStub},
};
use do_ttl::{Cause, Expired, Sweeper, TtlStore, Version};
use std::{
    cell::{Cell, RefCell},
    collections::{BTreeMap, BTreeSet},
    future::{Future, poll_fn},
    pin::pin,
    rc::Rc,
    task::{Context, Poll, Waker},
};

/// A row as the table has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Kept {
    pub(crate) value: Vec<u8>,
    pub(crate) expires: Option<i64>,
    pub(crate) version: Version,
    pub(crate) idle: Option<i64>,
    pub(crate) until: Option<i64>,
}

/// Store and key.
pub(crate) type Slot = (String, String);

pub(crate) type Table = BTreeMap<Slot, Kept>;

/// A call, with what it did.
#[derive(Debug, Clone)]
pub(crate) struct Step {
    pub(crate) call: Call,
    pub(crate) done: std::result::Result<Done, (ErrorKind, String)>,
    pub(crate) after: Table,
}

/// Rows that a clear takes.
pub(crate) type Going = BTreeSet<(Slot, Version)>;

const TOLD_TABLE: &str = "CREATE TABLE IF NOT EXISTS told (store TEXT NOT NULL, key TEXT NOT NULL, \
    version INTEGER NOT NULL, value BLOB NOT NULL, expires INTEGER NOT NULL, evicted INTEGER NOT NULL)";

/// What the handler was told of, as it was committed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) slot: Slot,
    pub(crate) version: Version,
    pub(crate) value: Vec<u8>,
    pub(crate) expires: i64,
    pub(crate) is_evicted: bool,
}

/// A turn, with what it did.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) number: u32,
    /// Which poll of an event it was in: all that is seen in one is committed together.
    pub(crate) poll: u32,
    pub(crate) instance: u32,
    pub(crate) now: i64,
    pub(crate) before: Table,
    pub(crate) steps: Vec<Step>,
    pub(crate) after: Table,
    pub(crate) armed_before: Option<i64>,
    pub(crate) armed: Option<i64>,
    /// Up to when a sweep may have deleted since the turn before.
    pub(crate) swept: Option<i64>,
    /// The alarm's handler is under way.
    pub(crate) sweeping: bool,
    /// What a clear began with that has ended in this turn.
    pub(crate) cleared: Option<Going>,
    /// What those began with that were under way since the turn before.
    pub(crate) going: Going,
    /// Asked for by a turn that does nothing.
    pub(crate) told: Vec<Told>,
}

thread_local! {
    static SETUP: Cell<Option<Setup>> = const { Cell::new(None) };
    static KIT: RefCell<Option<Kit>> = const { RefCell::new(None) };
    static TURNS: RefCell<BTreeMap<String, (u32, Turn)>> = RefCell::default();
    static SEEN: RefCell<Vec<Seen>> = RefCell::default();
    static INSTANCES: Cell<u32> = const { Cell::new(0) };
    static POLLS: Cell<u32> = const { Cell::new(0) };
    static SWEPT: Cell<Option<i64>> = const { Cell::new(None) };
    static SWEEPING: Cell<u32> = const { Cell::new(0) };
    static ALARMS: Cell<u32> = const { Cell::new(0) };
    static CLEARING: RefCell<Vec<(Rc<Going>, bool)>> = RefCell::default();
    static CLEARED: RefCell<Option<Going>> = RefCell::default();
    static TOLD: Cell<u32> = const { Cell::new(0) };
    static HANDLER: Cell<Handler> = const { Cell::new(Handler { fails: 0, waits: 0 }) };
}

pub(crate) struct Lab {
    state: HostState,
    schedule: Option<Schedule<HostState>>,
    alarm: Alarm<HostState>,
    sweeper: Sweeper<HostState>,
    stores: Vec<TtlStore<HostState>>,
    instance: u32,
}

/// The alarm's handler, until it ends, however it does.
struct Sweeping(HostState);

impl Sweeping {
    fn begin(state: &HostState) -> Self {
        SWEEPING.set(SWEEPING.get() + 1);
        ALARMS.set(ALARMS.get() + 1);
        Self(state.clone())
    }
}

impl Drop for Sweeping {
    fn drop(&mut self) {
        SWEEPING.set(SWEEPING.get() - 1);
        SWEPT.set(SWEPT.get().max(Some(self.0.now().as_millis())));
    }
}

/// A clear, until it ends, however it does.
struct Clearing(Rc<Going>);

impl Clearing {
    fn begin(going: Going) -> Self {
        let going = Rc::new(going);
        CLEARING.with_borrow_mut(|all| all.push((Rc::clone(&going), true)));
        Self(going)
    }

    /// Those that were under way since this was asked last.
    fn all() -> Going {
        CLEARING.with_borrow_mut(|all| {
            let going = all.iter().flat_map(|(going, _)| going.iter().cloned()).collect();
            all.retain(|(_, is_under_way)| *is_under_way);
            going
        })
    }
}

impl Drop for Clearing {
    fn drop(&mut self) {
        CLEARING.with_borrow_mut(|all| {
            for (_, is_under_way) in all.iter_mut().filter(|(going, _)| Rc::ptr_eq(going, &self.0)) {
                *is_under_way = false;
            }
        });
    }
}

impl DurableObject<HostState> for Lab {
    fn new(state: HostState) -> Result<Self> {
        let setup = SETUP.get().unwrap();
        let schedule = setup.scheduled.then(|| Schedule::open(&state)).transpose()?;
        let alarm = match &schedule {
            Some(schedule) => schedule.slot("ttl").into(),
            None => Alarm::raw(&state),
        };
        let sweeper = Sweeper::with(&state, setup.pace(), alarm.clone());
        let stores = (0..STORES)
            .map(|n| sweeper.store(&store_name(n), setup.stores[n].settings()))
            .collect::<std::result::Result<_, _>>()?;
        INSTANCES.set(INSTANCES.get() + 1);
        Ok(Self { schedule, alarm, sweeper, stores, instance: INSTANCES.get(), state })
    }

    async fn fetch(&self, request: Request) -> Result<Response> {
        let mut asked = pin!(self.asked(request));
        poll_fn(|context| {
            POLLS.set(POLLS.get() + 1);
            asked.as_mut().poll(context)
        })
        .await
    }

    async fn alarm(&self, info: AlarmInfo) -> Result<()> {
        let sweeping = Sweeping::begin(&self.state);
        let result = match &self.schedule {
            Some(schedule) => {
                let run = async |job: Job| match job.name() {
                    "ttl" => self.sweep().await,
                    _ => job.unknown(),
                };
                schedule.run_due(info, run).await
            }
            None => self.sweep().await,
        };
        drop(sweeping);
        result
    }
}

impl Lab {
    async fn asked(&self, request: Request) -> Result<Response> {
        let Some((number, turn)) = TURNS.with_borrow_mut(|turns| turns.remove(request.uri().path())) else {
            return Ok(reply::text("")); // asked again after its answer was lost
        };
        if turn.delay > 0 {
            self.state.sleep(Duration::from_millis(turn.delay.into())).await;
        }
        for _ in 0..turn.yields {
            self.state.sleep(Duration::ZERO).await;
        }
        if turn.sweeps {
            let _sweeping = Sweeping::begin(&self.state);
            let _ = self.sweep().await; // fails where a test says so
        }
        if let Some(store) = turn.clears {
            self.clear(number, store).await;
        }
        self.turn(number, &turn);
        Ok(reply::text(""))
    }

    async fn sweep(&self) -> Result<()> {
        if SETUP.get().unwrap().stores.iter().any(|rules| rules.notify) {
            return Ok(self.sweeper.on_alarm_with(async |expired| self.told(expired).await).await?);
        }
        Ok(self.sweeper.on_alarm().await?)
    }

    /// Writes down who it is told of, in the commit that forgets it.
    async fn told(&self, expired: Expired) -> Result<()> {
        let Expired { store, key, version, value, expires, cause, .. } = expired;
        let handler = HANDLER.get();
        if handler.waits > 0 {
            self.state.sleep(Duration::from_millis(handler.waits.into())).await;
        }
        TOLD.set(TOLD.get() + 1);
        if handler.fails > 0 && TOLD.get().is_multiple_of(handler.fails.into()) {
            return Err(Failure::msg("not now"));
        }
        let is_evicted = cause == Cause::Evicted;
        let now = self.state.now();
        assert!(is_evicted || expires <= now, "{key:?} is told at {now}, before {expires}");
        self.state.sql().exec(TOLD_TABLE, ())?;
        let row = (store, key, version.get().cast_signed(), value.to_vec(), expires, is_evicted);
        self.state.sql().exec("INSERT INTO told VALUES (?, ?, ?, ?, ?, ?)", row)?;
        Ok(())
    }

    /// Who was told of.
    fn all_told(&self) -> Vec<Told> {
        let rows = self.state.sql().exec("SELECT store, key, version, value, expires, evicted FROM told", ());
        let Ok(rows) = rows else { return Vec::new() };
        let read = |row: do_core::Row<'_>| -> std::result::Result<_, do_core::Error> {
            let version = Version::from_raw(row.at(2)?);
            Ok(Told {
                slot: (row.at(0)?, row.at(1)?),
                version,
                value: row.at(3)?,
                expires: row.at(4)?,
                is_evicted: row.at(5)?,
            })
        };
        rows.iter().map(|row| read(row).unwrap()).collect()
    }

    /// Between two turns that do nothing else.
    async fn clear(&self, number: u32, store: u8) {
        self.turn(number, &Turn::default());
        let name = store_name(store.into());
        let going = self.table().into_iter().filter(|(slot, _)| slot.0 == name);
        let going: Going = going.map(|(slot, row)| (slot, row.version)).collect();
        let clearing = Clearing::begin(going.clone());
        let cleared = self.stores[usize::from(store)].clear().await;
        drop(clearing);
        if cleared.is_ok() {
            CLEARED.set(Some(going));
        }
    }

    fn turn(&self, number: u32, turn: &Turn) {
        let now = self.state.now().as_millis();
        let sweeping = SWEEPING.get() > 0;
        let swept = SWEPT.take().max(sweeping.then_some(now));
        let (before, armed_before) = (self.table(), self.armed());
        if !turn.undone.is_empty() {
            self.undo(&turn.undone);
            assert_eq!(self.table(), before, "{:?} was undone", turn.undone);
        }
        let mut steps = Vec::new();
        if let Some(after) = turn.fails {
            fail(Failing::SqlAfter(after.into()));
        }
        if turn.atomic {
            let _ = self.state.sql().transaction(|| {
                self.calls(&turn.calls, &mut steps);
                if turn.fail { Err(undone()) } else { Ok(()) }
            });
        } else {
            self.calls(&turn.calls, &mut steps);
        }
        let (after, armed) = (self.table(), self.armed());
        let seen = Seen {
            number,
            poll: POLLS.get(),
            instance: self.instance,
            now,
            before,
            steps,
            after,
            armed_before,
            armed,
            swept,
            sweeping,
            cleared: CLEARED.take(),
            going: Clearing::all(),
            told: if turn.calls.is_empty() { self.all_told() } else { Vec::new() },
        };
        SEEN.with_borrow_mut(|all| all.push(seen));
    }

    fn undo(&self, calls: &[Call]) {
        let ended: Result<()> = self.state.sql().transaction(|| {
            self.calls(calls, &mut Vec::new());
            Err(undone())
        });
        assert!(ended.is_err());
    }

    fn calls(&self, calls: &[Call], steps: &mut Vec<Step>) {
        for call in calls {
            let done = self.call(call).map_err(|error| (error.kind(), error.to_string()));
            steps.push(Step { call: call.clone(), done, after: self.table() });
        }
    }

    fn call(&self, call: &Call) -> std::result::Result<Done, do_core::Error> {
        let store = |n: &u8| &self.stores[usize::from(*n)];
        let now = self.state.now().as_millis();
        let key = |n: &u8| KEYS[usize::from(*n)];
        Ok(match call {
            Call::Put(s, k, value, ttl) => Done::Put(store(s).put(key(k), value.bytes(), ttl.ttl(now))?),
            Call::Get(s, k) => Done::Entry(store(s).get_entry(key(k))?.map(Got::from)),
            Call::Contains(s, k) => Done::Is(store(s).contains(key(k))?),
            Call::Touch(s, k, ttl) => Done::Is(store(s).touch(key(k), ttl.ttl(now))?),
            Call::Remove(s, k) => Done::Is(store(s).remove(key(k))?),
            Call::Take(s, k) => Done::Entry(store(s).take(key(k))?.map(Got::from)),
            Call::PutIfAbsent(s, k, value, ttl) => {
                store(s).put_if_absent(key(k), value.bytes(), ttl.ttl(now))?.into()
            }
            Call::Swap(s, k, which, value, ttl) => {
                let table = self.table();
                let version = version_of(&table, *s, *k, *which);
                store(s).compare_and_swap(key(k), version, value.bytes(), ttl.ttl(now))?.into()
            }
            Call::PutMany(s, items) => {
                let items = items.iter().map(|(k, value, life)| (key(k), value.bytes(), life.ttl(now)));
                Done::Puts(store(s).put_many(items)?)
            }
            Call::GetMany(s, keys) => {
                let entries = store(s).get_entries(keys.iter().map(key))?;
                Done::Entries(entries.into_iter().map(|entry| entry.map(Got::from)).collect())
            }
            Call::RemoveMany(s, keys) => Done::Number(store(s).remove_many(keys.iter().map(key))?),
            Call::List(s, from, most) => {
                let page = store(s).list(Keys::all().start(key(from)).limit((*most).into()))?;
                let entries = page.entries.into_iter().map(|(key, entry)| (key, entry.into()));
                Done::Listed(entries.collect(), page.next.is_some())
            }
            Call::Count(s) => Done::Number(store(s).count()?),
            Call::Usage(s) => {
                let usage = store(s).usage()?;
                Done::Usage(usage.entries, usage.bytes)
            }
            Call::DeleteAll => {
                self.state.delete_all()?;
                Done::Nothing
            }
        })
    }

    /// The alarm as the stores see it.
    fn armed(&self) -> Option<i64> {
        loop {
            match pin!(self.alarm.get()).poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(Ok(armed)) => return armed.map(Timestamp::as_millis),
                Poll::Ready(Err(error)) => assert!(is_planned(&error), "{error}"),
                Poll::Pending => panic!("the alarm cannot be read at once"),
            }
        }
    }

    /// All rows, expired ones too. What fails meanwhile was meant for others.
    fn table(&self) -> Table {
        const SQL: &str = "SELECT store, key, expires, bytes, version, idle, until, \
            coalesce(value, (SELECT value FROM _ttl_big WHERE id = big)), \
            (SELECT count(*) FROM _ttl_big) - (SELECT count(big) FROM _ttl) FROM _ttl";
        let rows = loop {
            match self.state.sql().exec(SQL, ()) {
                Ok(rows) => break rows,
                Err(error) if error.to_string().starts_with("no such table") => return Table::new(),
                Err(error) => assert!(is_planned(&error), "{error}"),
            }
        };
        let read = |row: do_core::Row<'_>| -> std::result::Result<_, do_core::Error> {
            let (store, key): (String, String) = (row.at(0)?, row.at(1)?);
            let (bytes, value): (u64, Vec<u8>) = (row.at(3)?, row.at(7)?);
            assert_eq!(row.at::<i64>(8)?, 0, "large values that are nobody's");
            assert_eq!(bytes, (key.len() + value.len()) as u64, "{store} {key}");
            let version = Version::from_raw(row.at(4)?);
            let kept = Kept { value, expires: row.at(2)?, version, idle: row.at(5)?, until: row.at(6)? };
            Ok(((store, key), kept))
        };
        rows.iter().map(|row| read(row).unwrap()).collect()
    }
}

/// The version that the row has, or another one.
pub(crate) fn version_of(table: &Table, store: u8, key: u8, is_current: bool) -> Version {
    let row = table.get(&(store_name(store.into()), KEYS[usize::from(key)].to_owned()));
    let version = row.map_or(7, |row| row.version.get());
    Version::from_raw(if is_current { version } else { version + 1 })
}

pub(crate) fn store_name(n: usize) -> String {
    format!("store {n}")
}

/// With it a transaction is rolled back.
fn undone() -> Failure {
    Failure::msg("undone")
}

/// Whether a test asked for it.
fn is_planned(error: &do_core::Error) -> bool {
    error.to_string().starts_with("the kit was told")
}

fn fail(what: Failing) {
    let kit = KIT.with_borrow(Clone::clone).unwrap();
    kit.fail_next(&stub(&kit), what);
}

pub(crate) fn stub(kit: &Kit) -> HostStub {
    kit.namespace("LAB").unwrap().named("lab").unwrap()
}

pub(crate) fn start(setup: Setup, seed: u64) -> Kit {
    SETUP.set(Some(setup));
    TURNS.take();
    SEEN.take();
    SWEPT.take();
    INSTANCES.set(0);
    POLLS.set(0);
    ALARMS.set(0);
    CLEARING.take();
    CLEARED.take();
    TOLD.set(0);
    HANDLER.set(setup.handler);
    let builder: Builder = Kit::builder().object::<Lab>("LAB");
    let kit = builder.seed(seed).start().unwrap();
    KIT.set(Some(kit.clone()));
    kit
}

/// The handler does what it should from here on.
pub(crate) fn heal() {
    HANDLER.set(Handler::default());
}

/// The kit of this thread ends.
pub(crate) fn end() {
    KIT.take();
}

/// Has a turn done; what is given is whether it was answered.
pub(crate) async fn ask(kit: &Kit, number: u32, turn: Turn) -> std::result::Result<(), do_core::Error> {
    let path = format!("/{number}");
    TURNS.with_borrow_mut(|turns| turns.insert(path.clone(), (number, turn)));
    let request = http::Request::get(format!("http://lab{path}")).body(Body::empty()).unwrap();
    stub(kit).fetch(request).await.map(drop)
}

/// What was done since this was asked last.
pub(crate) fn seen() -> Vec<Seen> {
    SEEN.take()
}

/// How often the alarm came since this was asked last.
pub(crate) fn alarms() -> u32 {
    ALARMS.take()
}
