//! What can happen, and how it is drawn.

use do_core::{Timestamp, kit::Failing};
use do_ttl::{Entry, OnFull, Pace, Put, PutIfAbsent, Settings, Swap, Ttl, Version};
use proptest::prelude::*;
use std::time::Duration;

pub(crate) const STORES: usize = 2;

/// Few, so that calls meet each other.
pub(crate) const KEYS: [&str; 4] = ["a", "b", "b\0", "ü"];

const STORE_NUMBERS: u8 = 2;
const KEY_NUMBERS: u8 = 4;

/// The life of an entry, as it is drawn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Life {
    Never,
    Millis(i64),
    /// At that distance from now on.
    Until(i64),
    Sliding(u32, Option<u32>),
    Jitter(u16, u8),
}

impl Life {
    pub(crate) fn ttl(self, now: i64) -> Ttl {
        let span = |ms: u32| Duration::from_millis(ms.into());
        match self {
            Self::Never => Ttl::NEVER,
            Self::Millis(ms) => Ttl::millis(ms),
            Self::Until(ms) => Ttl::until(Timestamp::from_millis(now.saturating_add(ms))),
            Self::Sliding(idle, None) => Ttl::sliding(span(idle)),
            Self::Sliding(idle, Some(age)) => Ttl::sliding(span(idle)).max_age(span(age)),
            Self::Jitter(ms, percent) => Ttl::millis(ms.into()).jitter(percent),
        }
    }
}

/// A value, as it is drawn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Drawn(pub(crate) u8, pub(crate) u16);

impl Drawn {
    pub(crate) fn bytes(self) -> Vec<u8> {
        vec![self.0; usize::from(self.1)]
    }
}

/// A call of a store, by the numbers of store and key.
#[derive(Debug, Clone)]
pub(crate) enum Call {
    Put(u8, u8, Drawn, Life),
    Get(u8, u8),
    Contains(u8, u8),
    Touch(u8, u8, Life),
    Remove(u8, u8),
    Take(u8, u8),
    PutIfAbsent(u8, u8, Drawn, Life),
    /// With the version that it has, or another one.
    Swap(u8, u8, bool, Drawn, Life),
    /// Of the whole object.
    DeleteAll,
    PutMany(u8, Vec<(u8, Drawn, Life)>),
    GetMany(u8, Vec<u8>),
    RemoveMany(u8, Vec<u8>),
    /// A page of so many, from a key on.
    List(u8, u8, u8),
    Count(u8),
    Usage(u8),
}

/// An entry, as it was given.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Got {
    pub(crate) value: Vec<u8>,
    pub(crate) expires: Option<i64>,
    pub(crate) version: Version,
}

impl From<Entry> for Got {
    fn from(entry: Entry) -> Self {
        let expires = entry.expires.map(Timestamp::as_millis);
        Self { value: entry.value.to_vec(), expires, version: entry.version }
    }
}

/// What a call gave.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Done {
    Put(Put),
    Entry(Option<Got>),
    Is(bool),
    /// Of what was to be absent.
    Present(Got),
    /// Of what was to have a version.
    Differs(Option<Got>),
    Nothing,
    Puts(Vec<Put>),
    Entries(Vec<Option<Got>>),
    /// Whether there is more.
    Listed(Vec<(String, Got)>, bool),
    Number(u64),
    Usage(u64, u64),
}

impl From<PutIfAbsent> for Done {
    fn from(done: PutIfAbsent) -> Self {
        match done {
            PutIfAbsent::Done(put) => Self::Put(put),
            PutIfAbsent::Present(entry) => Self::Present(entry.into()),
        }
    }
}

impl From<Swap> for Done {
    fn from(done: Swap) -> Self {
        match done {
            Swap::Done(put) => Self::Put(put),
            Swap::Differs(entry) => Self::Differs(entry.map(Got::from)),
        }
    }
}

/// What one turn of the object does.
#[derive(Debug, Clone, Default)]
pub(crate) struct Turn {
    /// So many ms after its request came, and so many turns of others after that.
    pub(crate) delay: u16,
    pub(crate) yields: u8,
    /// Done and undone before its calls.
    pub(crate) undone: Vec<Call>,
    /// In one transaction.
    pub(crate) atomic: bool,
    /// Which is undone.
    pub(crate) fail: bool,
    /// A statement fails, after so many.
    pub(crate) fails: Option<u8>,
    /// Runs what is due, as the alarm does, before its calls.
    pub(crate) sweeps: bool,
    /// Clears a store before its calls, which is many turns.
    pub(crate) clears: Option<u8>,
    pub(crate) calls: Vec<Call>,
}

#[derive(Debug, Clone)]
pub(crate) enum Op {
    /// Awaited.
    Turn(Turn),
    /// Beside what follows.
    Beside(Turn),
    Advance(u32),
    /// Hours.
    Leap(u16),
    StepWall(i64),
    Late(u16),
    Twice,
    Hibernate,
    /// Before the step that is so far away.
    Strike(u8, u8),
    Fail(Failing),
    /// All is well again, for long enough: nothing that is expired is left.
    Rest,
}

/// A whole run.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    pub(crate) seed: u64,
    pub(crate) setup: Setup,
    pub(crate) ops: Vec<Op>,
}

fn life() -> impl Strategy<Value = Life> {
    prop_oneof![
        2 => Just(Life::Never),
        8 => (1..4_000_i64).prop_map(Life::Millis),
        1 => prop_oneof![
            Just(0), Just(-1), Just(i64::MIN), Just(i64::MAX), Just(1 << 53), Just(1 << 52), Just(i64::MAX - 1)
        ].prop_map(Life::Millis),
        2 => (-100..4_000_i64).prop_map(Life::Until),
        3 => (0..4_000_u32, prop::option::of(0..10_000_u32)).prop_map(|(idle, age)| Life::Sliding(idle, age)),
        1 => (1..4_000_u16, 0..=110_u8).prop_map(|(ms, percent)| Life::Jitter(ms, percent)),
    ]
}

fn value() -> impl Strategy<Value = Drawn> {
    // Some of them are large enough to be kept elsewhere.
    let len = prop_oneof![12 => 0..40_u16, 1 => 700..1_500_u16];
    (any::<u8>(), len).prop_map(|(byte, len)| Drawn(byte, len))
}

fn call() -> impl Strategy<Value = Call> {
    let at = || (0..STORE_NUMBERS, 0..KEY_NUMBERS);
    prop_oneof![
        10 => (at(), value(), life()).prop_map(|((s, k), value, life)| Call::Put(s, k, value, life)),
        5 => at().prop_map(|(s, k)| Call::Get(s, k)),
        1 => at().prop_map(|(s, k)| Call::Contains(s, k)),
        3 => (at(), life()).prop_map(|((s, k), life)| Call::Touch(s, k, life)),
        2 => at().prop_map(|(s, k)| Call::Remove(s, k)),
        2 => at().prop_map(|(s, k)| Call::Take(s, k)),
        3 => (at(), value(), life()).prop_map(|((s, k), value, life)| Call::PutIfAbsent(s, k, value, life)),
        3 => (at(), prop::bool::weighted(0.7), value(), life())
            .prop_map(|((s, k), is, value, life)| Call::Swap(s, k, is, value, life)),
    ]
}

/// Calls with several keys, and those of a whole store.
fn call_of_many() -> impl Strategy<Value = Call> {
    let store = || 0..STORE_NUMBERS;
    let key = || 0..KEY_NUMBERS;
    // Of what fails, nobody knows what chance gave.
    let sure =
        life().prop_map(|life| if let Life::Jitter(ms, _) = life { Life::Millis(ms.into()) } else { life });
    let item = (key(), value(), sure);
    prop_oneof![
        3 => (store(), prop::collection::vec(item, 0..6)).prop_map(|(s, items)| Call::PutMany(s, items)),
        2 => (store(), prop::collection::vec(key(), 0..6)).prop_map(|(s, keys)| Call::GetMany(s, keys)),
        1 => (store(), prop::collection::vec(key(), 0..6)).prop_map(|(s, keys)| Call::RemoveMany(s, keys)),
        2 => (store(), key(), 1..5_u8).prop_map(|(s, from, most)| Call::List(s, from, most)),
        1 => store().prop_map(Call::Count),
        1 => store().prop_map(Call::Usage),
    ]
}

/// What the calls of a turn do; a deletion of everything only outside of transactions, which it is not for.
fn turn() -> impl Strategy<Value = Turn> {
    let calls = |most| prop::collection::vec(prop_oneof![4 => call(), 1 => call_of_many()], most);
    let undone = prop_oneof![4 => Just(Vec::new()), 1 => calls(1..3)];
    let fails = prop::option::weighted(0.1, 0..8_u8);
    (
        undone,
        prop::bool::weighted(0.25),
        prop::bool::weighted(0.3),
        fails,
        calls(1..5),
        prop::bool::weighted(0.03),
    )
        .prop_map(|(undone, atomic, fail, fails, mut calls, delete_all)| {
            if delete_all && !atomic {
                calls.insert(calls.len() / 2, Call::DeleteAll);
            }
            Turn { undone, atomic, fail: atomic && fail, fails, calls, ..Turn::default() }
        })
}

fn failing() -> impl Strategy<Value = Failing> {
    prop_oneof![
        2 => Just(Failing::Sql),
        2 => (1..12_u32).prop_map(Failing::SqlAfter),
        2 => Just(Failing::Commit),
        2 => Just(Failing::CrashBeforeCommit),
        2 => Just(Failing::CrashAfterCommit),
        2 => Just(Failing::SetAlarm),
    ]
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        24 => turn().prop_map(Op::Turn),
        6 => (turn(), 0..3_000_u16, 0..5_u8, prop::bool::weighted(0.1), prop::option::weighted(0.15, 0..STORE_NUMBERS))
            .prop_map(|(turn, delay, yields, sweeps, clears)| Op::Beside(Turn { delay, yields, sweeps, clears, ..turn })),
        10 => (0..3_000_u32).prop_map(Op::Advance),
        1 => (0..100_u16).prop_map(Op::Leap),
        2 => (-5_000..5_000_i64).prop_map(Op::StepWall),
        1 => prop_oneof![Just(-3_600_000_i64), Just(3_600_000), Just(31_536_000_000)].prop_map(Op::StepWall),
        1 => (0..2_000_u16).prop_map(Op::Late),
        1 => Just(Op::Twice),
        1 => Just(Op::Hibernate),
        4 => (0..4_u8, 0..16_u8).prop_map(|(what, steps)| Op::Strike(what, steps)),
        2 => failing().prop_map(Op::Fail),
        2 => Just(Op::Rest),
    ]
}

/// The settings of a store, as they are drawn.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Rules {
    pub(crate) throttle: Option<u16>,
    pub(crate) entries: Option<u8>,
    pub(crate) bytes: Option<u8>,
    pub(crate) refuses: bool,
    pub(crate) notify: bool,
}

impl Rules {
    pub(crate) fn settings(self) -> Settings {
        let mut settings = Settings::new().notify(self.notify);
        settings = self.throttle.map_or(settings, |ms| settings.throttle(Duration::from_millis(ms.into())));
        settings = self.entries.map_or(settings, |most| settings.max_entries(most.into()));
        settings = self.bytes.map_or(settings, |most| settings.max_bytes(most.into()));
        if self.refuses { settings.on_full(OnFull::Refuse) } else { settings }
    }
}

/// What the handler of notices does, while not all is well.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Handler {
    /// Each of so many fails; none, if 0.
    pub(crate) fails: u8,
    /// So many ms before it writes.
    pub(crate) waits: u8,
}

/// What is set up for a whole run.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Setup {
    /// Over a slot of a schedule, not over the object's alarm itself.
    pub(crate) scheduled: bool,
    pub(crate) slack: i64,
    pub(crate) slice_rows: u32,
    pub(crate) slice_bytes: u64,
    pub(crate) rows_per_wake: u32,
    pub(crate) stores: [Rules; STORES],
    pub(crate) handler: Handler,
}

impl Setup {
    pub(crate) fn pace(&self) -> Pace {
        Pace::new()
            .slack(Duration::from_millis(self.slack.unsigned_abs()))
            .slice_rows(self.slice_rows)
            .slice_bytes(self.slice_bytes)
            .rows_per_wake(self.rows_per_wake)
    }
}

fn rules() -> impl Strategy<Value = Rules> {
    (
        prop::option::weighted(0.3, 0..500_u16),
        prop::option::weighted(0.3, 0..6_u8),
        prop::option::weighted(0.2, 0..120_u8),
        prop::bool::weighted(0.3),
        prop::bool::weighted(0.3),
    )
        .prop_map(|(throttle, entries, bytes, refuses, notify)| Rules {
            throttle,
            entries,
            bytes,
            refuses,
            notify,
        })
}

fn setup() -> impl Strategy<Value = Setup> {
    let slack = prop_oneof![Just(0_i64), Just(1), Just(1_000), Just(60_000)];
    let slices =
        (prop_oneof![Just(1_u32), Just(2), Just(64)], prop_oneof![Just(0_u64), Just(50), Just(1 << 20)]);
    let per_wake = prop_oneof![Just(1_u32), Just(3), Just(10_000)];
    let handler = (0..4_u8, prop_oneof![2 => Just(0_u8), 1 => any::<u8>()]);
    (any::<bool>(), slack, slices, per_wake, [rules(), rules()], handler).prop_map(
        |(scheduled, slack, (slice_rows, slice_bytes), rows_per_wake, stores, (fails, waits))| Setup {
            scheduled,
            slack,
            slice_rows,
            slice_bytes,
            rows_per_wake,
            stores,
            handler: Handler { fails, waits },
        },
    )
}

pub(crate) fn case() -> impl Strategy<Value = Case> {
    (any::<u64>(), setup(), prop::collection::vec(op(), 1..40)).prop_map(|(seed, setup, ops)| Case {
        seed,
        setup,
        ops,
    })
}
