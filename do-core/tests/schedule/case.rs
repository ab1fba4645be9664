//! What a random run is made of, and how a failing one becomes short.

use do_core::kit::Failing;
use fastrand::Rng;

/// Names of jobs and of slots; a small world makes collisions.
pub(crate) const JOBS: [&str; 3] = ["a", "b", "c"];
pub(crate) const SLOTS: [&str; 2] = ["x", "y"];

/// Relative to the moment at which it is asked for, in ms.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum When {
    /// The present moment, or before it.
    Ago(u32),
    In(u32),
    /// So many ms after the beginning of the run: the same one again and again.
    Fixed(u32),
    /// Recurring.
    Every(u32),
}

/// What is done with the future that tells of success.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum How {
    Awaited,
    Dropped,
    /// Called in a transaction that fails.
    RolledBack,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Step {
    /// Which name, when, and which behaviour.
    Put(u8, When, u8, How),
    Set(u8, When, How),
    SetEarlier(u8, When),
    Delete(u8),
    /// A job, or a slot behind the jobs.
    Cancel(u8),
    /// The first dead letter.
    Replay,
    Discard,
    Check,
    Sleep(u16),
    Fail(Fault),
    /// What nobody but the schedule should do: the raw slot is set, so many ms from now, or deleted.
    Raw(Option<u32>),
    DeleteAll,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Fault {
    /// The n-th statement of the schedule from now.
    Sql(u8),
    /// Of the kit.
    Kit(Failing),
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum End {
    Fail,
    Panic,
    Hang,
    GiveUp,
    Unknown,
}

/// What becomes of missed ticks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Missed {
    Once,
    Skip(u16),
    CatchUp(u8),
}

/// What a job does and how it is planned.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Behaviour {
    pub(crate) script: Vec<Step>,
    /// So many attempts end so, the others well.
    pub(crate) bad: u32,
    pub(crate) end: End,
    /// Not of slots, as those that follow.
    pub(crate) runs: u32,
    /// In ms.
    pub(crate) wait: u16,
    pub(crate) missed: Missed,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Strike {
    Hibernate,
    Evict,
    Crash,
    LosePower,
    /// Not at a step: there it is a crash.
    Deploy,
}

pub(crate) const STRIKES: [Strike; 4] = [Strike::Hibernate, Strike::Evict, Strike::Crash, Strike::LosePower];

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Op {
    /// A request that is not waited for.
    Call(Vec<Step>),
    /// In ms.
    Advance(u32),
    /// So many steps of the world.
    Yield(u8),
    Strike(Strike),
    /// In so many steps.
    StrikeIn(u16, Strike),
    /// Before any step from now on, with this probability in thousandths.
    Storm(Strike, u8),
    Fail(Fault),
    Late(u16),
    Repeat(u8),
    /// In ms.
    StepWall(i32),
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Case {
    pub(crate) seed: u64,
    /// What the constructor declares: a name, when, and which behaviour.
    pub(crate) declared: Vec<(u8, When, u8)>,
    pub(crate) behaviours: Vec<Behaviour>,
    /// By slot.
    pub(crate) slots: [u8; SLOTS.len()],
    pub(crate) per_wake: u32,
    pub(crate) history: u32,
    /// After so many seconds without work the object leaves memory.
    pub(crate) idle: u64,
    /// The handler drops a run that takes so long, in ms.
    pub(crate) cut: Option<u16>,
    pub(crate) ops: Vec<Op>,
}

impl Behaviour {
    /// Well at once.
    pub(crate) const fn well() -> Self {
        Self { script: Vec::new(), bad: 0, end: End::Fail, runs: 3, wait: 500, missed: Missed::Once }
    }
}

fn one_of<T: Clone>(rng: &mut Rng, all: &[T]) -> T {
    all[rng.usize(..all.len())].clone()
}

fn ms(rng: &mut Rng) -> u32 {
    match rng.u8(..8) {
        0 => 0,
        1 => 1,
        2 => rng.u32(2..10),
        3 | 4 => rng.u32(10..3_000),
        5 | 6 => rng.u32(3_000..15_000),
        _ => rng.u32(15_000..90_000),
    }
}

fn once(rng: &mut Rng) -> When {
    match rng.u8(..6) {
        0 => When::Ago(one_of(rng, &[0, 0, 1, 500, 61_000, 1_000_000])),
        1 | 2 => When::Fixed(one_of(rng, &[1_000, 20_000])),
        _ => When::In(ms(rng)),
    }
}

fn when(rng: &mut Rng) -> When {
    if rng.u8(..3) == 0 { When::Every(one_of(rng, &[2_000, 7_000, 40_000, 3_600_000])) } else { once(rng) }
}

fn how(rng: &mut Rng) -> How {
    one_of(rng, &[How::Awaited, How::Awaited, How::Dropped, How::RolledBack])
}

fn fault(rng: &mut Rng) -> Fault {
    match rng.u8(..10) {
        0..=3 => Fault::Sql(rng.u8(..8)),
        4 | 5 => Fault::Kit(Failing::SetAlarm),
        6 | 7 => Fault::Kit(Failing::Commit),
        8 => Fault::Kit(Failing::CrashBeforeCommit),
        _ => Fault::Kit(Failing::CrashAfterCommit),
    }
}

/// How much goes wrong.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum Weather {
    Calm,
    Rough,
    Storm,
}

fn step(rng: &mut Rng, weather: Weather) -> Step {
    let (job, slot) = (rng.u8(..3), rng.u8(..2));
    match rng.u8(..24) {
        0..=6 => Step::Put(job, when(rng), rng.u8(..3), how(rng)),
        7..=9 => Step::Set(slot, once(rng), how(rng)),
        10 => Step::SetEarlier(slot, once(rng)),
        11 => Step::Delete(slot),
        12 | 13 => Step::Cancel(rng.u8(..5)),
        14 => Step::Replay,
        15 => one_of(rng, &[Step::Discard, Step::Check]),
        16..=18 => Step::Sleep(one_of(rng, &[0, 0, 1, 5, 300, 4_000])),
        19 | 20 if weather == Weather::Storm => Step::Fail(fault(rng)),
        21 if weather == Weather::Storm && rng.u8(..2) == 0 => {
            let in_ms = ms(rng);
            Step::Raw(one_of(rng, &[None, Some(in_ms)]))
        }
        22 if rng.u8(..4) == 0 => Step::DeleteAll,
        _ => Step::Put(job, once(rng), rng.u8(..3), How::Awaited),
    }
}

fn script(rng: &mut Rng, most: usize, weather: Weather) -> Vec<Step> {
    (0..rng.usize(..=most)).map(|_| step(rng, weather)).collect()
}

fn behaviour(rng: &mut Rng, weather: Weather) -> Behaviour {
    Behaviour {
        script: script(rng, 2, weather),
        bad: one_of(rng, &[0, 0, 0, 1, 2, 4]),
        end: one_of(
            rng,
            &[End::Fail, End::Fail, End::Fail, End::Panic, End::Hang, End::GiveUp, End::Unknown],
        ),
        runs: rng.u32(1..4),
        wait: one_of(rng, &[1, 500, 2_000, 20_000]),
        missed: one_of(rng, &[Missed::Once, Missed::Once, Missed::Skip(2_000), Missed::CatchUp(2)]),
    }
}

fn op(rng: &mut Rng, weather: Weather) -> Op {
    let strike = one_of(
        rng,
        &[
            Strike::Hibernate,
            Strike::Hibernate,
            Strike::Evict,
            Strike::Crash,
            Strike::LosePower,
            Strike::Deploy,
        ],
    );
    match rng.u8(..24) {
        0..=7 => Op::Call(script(rng, 3, weather)),
        8..=12 => Op::Advance(ms(rng)),
        13 | 14 => Op::Yield(rng.u8(1..12)),
        15 => Op::Strike(Strike::Hibernate),
        16 => Op::Late(one_of(rng, &[0, 3, 5_000])),
        17 if weather >= Weather::Rough => Op::Strike(strike),
        18 | 19 if weather >= Weather::Rough => Op::StrikeIn(rng.u16(..30), strike),
        20 if weather >= Weather::Rough => Op::Repeat(rng.u8(1..3)),
        21 if weather >= Weather::Rough => {
            Op::StepWall(one_of(rng, &[-90_000, -4_000, -5, 5, 4_000, 90_000]))
        }
        22 if weather >= Weather::Storm => Op::Fail(fault(rng)),
        23 if weather >= Weather::Storm => match rng.u8(..4) {
            0 => Op::Storm(strike, rng.u8(1..30)),
            _ => Op::Fail(fault(rng)),
        },
        _ => Op::Call(script(rng, 2, weather)),
    }
}

impl Case {
    /// Three behaviours, of which slots have the first two.
    pub(crate) fn fixed(behaviours: [Behaviour; 3], ops: Vec<Op>) -> Self {
        let behaviours = Vec::from(behaviours);
        Self {
            seed: 1,
            declared: Vec::new(),
            behaviours,
            slots: [0, 1],
            per_wake: 64,
            history: 2,
            idle: 10,
            cut: None,
            ops,
        }
    }

    pub(crate) fn random(seed: u64) -> Self {
        let rng = &mut Rng::with_seed(seed);
        let weather =
            one_of(rng, &[Weather::Calm, Weather::Rough, Weather::Rough, Weather::Storm, Weather::Storm]);
        let declared =
            (0..rng.u8(..5).saturating_sub(2)).map(|_| (rng.u8(..3), when(rng), rng.u8(..3))).collect();
        Self {
            seed,
            declared,
            behaviours: (0..3).map(|_| behaviour(rng, weather)).collect(),
            slots: [rng.u8(..3), rng.u8(..3)],
            per_wake: one_of(rng, &[1, 2, 64]),
            history: one_of(rng, &[0, 2]),
            idle: one_of(rng, &[10, 3_600, 3_600]),
            cut: one_of(rng, &[None, None, None, Some(0), Some(2_000)]),
            ops: (0..rng.usize(4..14)).map(|_| op(rng, weather)).collect(),
        }
    }

    /// Those that are a little simpler.
    fn simpler(&self) -> Vec<Self> {
        let mut all = Vec::new();
        let mut with = |change: &dyn Fn(&mut Self)| {
            let mut case = self.clone();
            change(&mut case);
            if case != *self {
                all.push(case);
            }
        };
        let ops = self.ops.len();
        for len in [8, 4, 2, 1] {
            for at in (0..ops).step_by(len).filter(|at| at + len <= ops) {
                with(&|case| drop(case.ops.drain(at..at + len)));
            }
        }
        with(&|case| case.declared.clear());
        with(&|case| case.declared.truncate(1));
        with(&|case| case.cut = None);
        with(&|case| case.per_wake = 64);
        with(&|case| case.history = 0);
        with(&|case| case.idle = 3_600);
        for (at, op) in self.ops.iter().enumerate() {
            if let Op::Call(script) = op {
                for step in 0..script.len() {
                    with(&|case| {
                        if let Op::Call(script) = &mut case.ops[at] {
                            script.remove(step);
                        }
                    });
                }
            }
        }
        for (at, behaviour) in self.behaviours.iter().enumerate() {
            with(&|case| case.behaviours[at].bad = 0);
            with(&|case| case.behaviours[at].end = End::Fail);
            with(&|case| case.behaviours[at].missed = Missed::Once);
            with(&|case| case.behaviours[at].runs = 3);
            for step in 0..behaviour.script.len() {
                with(&|case| {
                    case.behaviours[at].script.remove(step);
                });
            }
        }
        all
    }

    /// The simplest that still fails, after at most so many trials.
    pub(crate) fn shrunk(mut self, mut trials: u32, fails: impl Fn(&Self) -> bool) -> Self {
        'simpler: loop {
            for case in self.simpler() {
                if trials == 0 {
                    return self;
                }
                trials -= 1;
                if fails(&case) {
                    self = case;
                    continue 'simpler;
                }
            }
            return self;
        }
    }
}
