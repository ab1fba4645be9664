//! What a random run is made of, and how it shrinks.

use do_core::kit::Failing;
use proptest::{collection::vec, option, prelude::*};

/// Objects of a run.
pub(crate) const OBJECTS: u8 = 3;

/// What a handler does, in order.
pub(crate) type Script = Vec<Step>;

#[derive(Debug, Clone)]
pub(crate) enum Step {
    /// So many rows, in one turn.
    Write(u8),
    /// A transaction that writes a row and fails.
    Undone,
    /// Reads the whole table, for the answer.
    Read,
    /// Milliseconds.
    Sleep(u16),
    Call(u8, Script),
    /// Two calls that are both under way before the first is answered.
    CallTwice(u8, Script, Script),
    /// In so many milliseconds; its first runs fail, so many; what it does.
    SetAlarm(u32, u8, Script),
    DeleteAlarm,
    /// To whoever it is about, or to all.
    Send(Whom),
    Close(Whom),
    Reset,
    Fail,
    Panic,
    Gate(Script),
    Background(Script),
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Whom {
    All,
    /// The socket whose event it is.
    Own,
}

#[derive(Debug, Clone)]
pub(crate) enum Op {
    Call(u8, Script),
    Connect(u8, Script),
    /// To one of the clients there are, counted around.
    Message(u8, Script),
    CloseClient(u8, Option<u16>),
    Lose(u8),
    Vanish(u8),
    Stall(u8, bool),
    /// It does not answer a Close.
    Mute(u8),
    /// It reads what there is.
    Drain(u8),
    /// Milliseconds.
    Advance(u32),
    /// So many steps of the world.
    Yield(u8),
    Strike(Fault),
    /// In so many steps.
    StrikeIn(u8, Fault),
    Fail(u8, Failing),
    LateAlarms(u16),
    RepeatAlarms(u8),
    /// Milliseconds back.
    StepWall(u16),
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Fault {
    Hibernate(u8),
    Evict(u8),
    Crash,
    LosePower,
    /// Not at a step: there it is a crash.
    Deploy,
}

/// A run: the kit's seed and what is done.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    pub(crate) seed: u64,
    pub(crate) ops: Vec<Op>,
}

fn object() -> impl Strategy<Value = u8> {
    0..OBJECTS
}

fn ms() -> impl Strategy<Value = u16> {
    prop_oneof![4 => 0_u16..4, 4 => 0_u16..100, 1 => 0_u16..12_000, 1 => Just(35_000_u16)]
}

fn whom() -> impl Strategy<Value = Whom> {
    prop_oneof![Just(Whom::All), Just(Whom::Own)]
}

/// In a storm handlers fail, too.
fn leaf(storm: u32) -> impl Strategy<Value = Step> {
    prop_oneof![
        16 => (1_u8..4).prop_map(Step::Write),
        2 => Just(Step::Undone),
        6 => Just(Step::Read),
        10 => ms().prop_map(Step::Sleep),
        2 => Just(Step::DeleteAlarm),
        10 => whom().prop_map(Step::Send),
        1 => whom().prop_map(Step::Close),
        1 + storm => Just(Step::Fail),
        storm => prop_oneof![Just(Step::Reset), Just(Step::Panic)],
    ]
}

fn fails() -> impl Strategy<Value = u8> {
    prop_oneof![6 => Just(0_u8), 3 => 1_u8..4, 1 => Just(9_u8)]
}

fn step(storm: u32) -> impl Strategy<Value = Step> {
    leaf(storm).prop_recursive(3, 20, 4, |step| {
        let script = || vec(step.clone(), 0..4);
        prop_oneof![
            6 => step.clone(),
            3 => (object(), script()).prop_map(|(to, script)| Step::Call(to, script)),
            1 => (object(), script(), script()).prop_map(|(to, one, two)| Step::CallTwice(to, one, two)),
            4 => (ms(), fails(), script()).prop_map(|(ms, fails, script)| Step::SetAlarm(ms.into(), fails, script)),
            1 => script().prop_map(Step::Gate), // whose failure resets
            1 => script().prop_map(Step::Background),
        ]
    })
}

fn script(storm: u32) -> impl Strategy<Value = Script> {
    vec(step(storm), 0..6)
}

fn fault() -> impl Strategy<Value = Fault> {
    prop_oneof![
        4 => object().prop_map(Fault::Hibernate),
        3 => object().prop_map(Fault::Evict),
        2 => Just(Fault::Crash),
        1 => Just(Fault::LosePower),
        1 => Just(Fault::Deploy),
    ]
}

fn failing() -> impl Strategy<Value = Failing> {
    prop_oneof![
        2 => Just(Failing::Sql),
        1 => Just(Failing::SetAlarm),
        4 => Just(Failing::Commit),
        2 => Just(Failing::CrashBeforeCommit),
        1 => Just(Failing::CrashAfterCommit),
    ]
}

/// What clients, callers and time do.
fn calm(storm: u32) -> impl Strategy<Value = Op> {
    let client = || 0_u8..6;
    let code = prop_oneof![Just(1_000_u16), Just(4_000), Just(5_000)];
    prop_oneof![
        10 => (object(), script(storm)).prop_map(|(to, script)| Op::Call(to, script)),
        4 => (object(), script(storm)).prop_map(|(to, script)| Op::Connect(to, script)),
        10 => (client(), script(storm)).prop_map(|(client, script)| Op::Message(client, script)),
        2 => (client(), option::of(code)).prop_map(|(client, code)| Op::CloseClient(client, code)),
        2 => client().prop_map(Op::Lose),
        1 => client().prop_map(Op::Vanish),
        1 => (client(), any::<bool>()).prop_map(|(client, stalled)| Op::Stall(client, stalled)),
        1 => client().prop_map(Op::Mute),
        2 => client().prop_map(Op::Drain),
        8 => prop_oneof![3 => 0_u32..20, 2 => 0_u32..15_000, 1 => 0_u32..100_000].prop_map(Op::Advance),
        8 => (1_u8..12).prop_map(Op::Yield),
        1 => object().prop_map(|object| Op::Strike(Fault::Hibernate(object))),
        1 => (0_u8..40, object()).prop_map(|(steps, object)| Op::StrikeIn(steps, Fault::Hibernate(object))),
        1 => (0_u16..5_000).prop_map(Op::LateAlarms),
    ]
}

fn storm() -> impl Strategy<Value = Op> {
    prop_oneof![
        20 => calm(1),
        1 => fault().prop_map(Op::Strike),
        3 => (0_u8..40, fault()).prop_map(|(steps, fault)| Op::StrikeIn(steps, fault)),
        4 => (object(), failing()).prop_map(|(of, what)| Op::Fail(of, what)),
        1 => prop_oneof![
            (0_u8..3).prop_map(Op::RepeatAlarms),
            (0_u16..5_000).prop_map(Op::StepWall),
        ],
    ]
}

/// Some clients to begin with, or most of what follows would be about none.
fn begin() -> impl Strategy<Value = Vec<Op>> {
    vec((object(), vec(leaf(0), 0..3)).prop_map(|(to, script)| Op::Connect(to, script)), 0..4)
}

pub(crate) fn case() -> impl Strategy<Value = Case> {
    let rest = prop_oneof![1 => vec(calm(0), 0..25), 2 => vec(storm(), 0..30)];
    (0_u64..1_000, begin(), rest).prop_map(|(seed, mut ops, rest)| {
        ops.push(Op::Advance(50));
        ops.extend(rest);
        Case { seed, ops }
    })
}
