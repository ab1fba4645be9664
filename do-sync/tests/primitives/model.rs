//! Random calls with keys, repeated until they are answered, against a model, while everything happens that can: the
//! object leaves memory, is evicted, the process is killed, power and storage fail, alarms are late or come twice, and
//! the clock is set forward and back.

use crate::lab::{Lab, alarms, builder, expired, stub, try_within};
use do_core::{
    kit::{Failing, Kit, Strike},
    prelude::*,
    tokio::HostState,
};
use do_sync::{Acquired, Grant, Permits, Release, RequestKey, Token};
use proptest::{prelude::*, test_runner::Config};
use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
};

#[derive(Debug, Clone)]
enum Op {
    Add(u8, i64),
    Set(u8, i64),
    Reset(u8),
    Acquire(u8, u16),
    /// Of one of the tokens that were granted.
    Renew(u8, u8, u16),
    Release(u8, u8),
    Check(u8, u8),
    Capacity(u8, u8),
    Take(u8, u8, u16),
    RenewPermits(u8, u8, u16),
    ReleasePermits(u8, u8),
    CheckPermits(u8, u8),
    Advance(u16),
    StepWall(i32),
    Late(u16),
    Twice,
    Hibernate,
    Strike(u8, u8),
    Fail(u8),
}

fn op() -> impl Strategy<Value = Op> {
    let name = || 0..2_u8;
    prop_oneof![
        3 => (name(), -4..5_i64).prop_map(|(name, by)| Op::Add(name, by)),
        1 => (name(), -4..5_i64).prop_map(|(name, value)| Op::Set(name, value)),
        1 => name().prop_map(Op::Reset),
        4 => (name(), 1..400_u16).prop_map(|(name, ttl)| Op::Acquire(name, ttl)),
        2 => (name(), any::<u8>(), 1..400_u16).prop_map(|(name, of, ttl)| Op::Renew(name, of, ttl)),
        2 => (name(), any::<u8>()).prop_map(|(name, of)| Op::Release(name, of)),
        1 => (name(), any::<u8>()).prop_map(|(name, of)| Op::Check(name, of)),
        1 => (name(), 0..5_u8).prop_map(|(name, permits)| Op::Capacity(name, permits)),
        3 => (name(), 1..4_u8, 1..400_u16).prop_map(|(name, weight, ttl)| Op::Take(name, weight, ttl)),
        1 => (name(), any::<u8>(), 1..400_u16).prop_map(|(name, of, ttl)| Op::RenewPermits(name, of, ttl)),
        1 => (name(), any::<u8>()).prop_map(|(name, of)| Op::ReleasePermits(name, of)),
        1 => (name(), any::<u8>()).prop_map(|(name, of)| Op::CheckPermits(name, of)),
        4 => (0..300_u16).prop_map(Op::Advance),
        1 => (-2_000..2_000_i32).prop_map(Op::StepWall),
        1 => (0..400_u16).prop_map(Op::Late),
        1 => Just(Op::Twice),
        1 => Just(Op::Hibernate),
        3 => (0..4_u8, 0..12_u8).prop_map(|(what, steps)| Op::Strike(what, steps)),
        2 => (0..5_u8).prop_map(Op::Fail),
    ]
}

#[derive(Debug, Clone, PartialEq)]
enum Answer {
    Value(Option<i64>),
    Lease(Option<Grant>),
    Held(i64),
    Permits(Permits),
    Unknown,
    Released(Release),
    Checked(bool),
    Done,
}

/// What is held, as it should be.
#[derive(Debug, Clone)]
struct Held {
    token: i64,
    weight: u32,
    until: i64,
    ttl: i64,
}

#[derive(Debug, Clone, Default)]
struct Holds {
    of: BTreeMap<u8, Vec<Held>>,
    last: i64,
    /// Tokens that were seen to be over.
    over: BTreeSet<i64>,
    /// All that were granted, in their order.
    granted: Vec<i64>,
}

impl Holds {
    /// What is held of a name; writes down what is over, and what the alarm took away.
    fn live(&mut self, name: u8, now: i64, taken: &BTreeSet<i64>) -> &mut Vec<Held> {
        let held = self.of.entry(name).or_default();
        held.retain(|one| {
            let live = one.until > now && !taken.contains(&one.token);
            if !live {
                self.over.insert(one.token);
            }
            live
        });
        for one in held.iter_mut() {
            one.until = one.until.min(now + one.ttl);
        }
        held
    }

    fn grant(&mut self, name: u8, weight: u32, now: i64, ttl: i64) -> Grant {
        self.last = if self.last == 0 { now } else { self.last + 1 };
        let (token, until) = (self.last, now + ttl);
        self.granted.push(token);
        self.of.entry(name).or_default().push(Held { token, weight, until, ttl });
        Grant { token: Token::new(token).unwrap(), until: Timestamp::from_millis(until) }
    }

    fn token(&self, of: u8) -> i64 {
        self.granted.get(usize::from(of) % self.granted.len().max(1)).copied().unwrap_or(1)
    }
}

#[derive(Debug, Clone, Default)]
struct Model {
    counters: BTreeMap<u8, i64>,
    leases: Holds,
    permits: Holds,
    capacity: BTreeMap<u8, u32>,
}

impl Model {
    fn apply(&mut self, op: &Op, now: i64, taken: &BTreeSet<i64>) -> Answer {
        match *op {
            Op::Add(name, by) => {
                let value = self.counters.entry(name).or_default();
                *value += by;
                Answer::Value(Some(*value))
            }
            Op::Set(name, value) => {
                self.counters.insert(name, value);
                Answer::Value(Some(value))
            }
            Op::Reset(name) => Answer::Value(self.counters.remove(&name)),
            Op::Acquire(name, ttl) => match self.leases.live(name, now, taken).first() {
                Some(held) => Answer::Held(held.until),
                None => Answer::Lease(Some(self.leases.grant(name, 1, now, ttl.into()))),
            },
            Op::Renew(name, of, ttl) => renew(&mut self.leases, name, of, now, ttl.into(), taken),
            Op::Release(name, of) => {
                let token = self.leases.token(of);
                let held = self.leases.live(name, now, taken);
                match held.first().map(|held| held.token) {
                    None => Answer::Released(Release::NotHeld),
                    Some(held) if held != token => Answer::Released(Release::Stale),
                    Some(_) => {
                        held.clear();
                        Answer::Released(Release::Released)
                    }
                }
            }
            Op::Check(name, of) => check(&mut self.leases, name, of, now, taken),
            Op::Capacity(name, permits) => {
                self.capacity.insert(name, permits.into());
                Answer::Done
            }
            Op::Take(name, weight, ttl) => {
                let Some(capacity) = self.capacity.get(&name) else { return Answer::Unknown };
                let held = self.permits.live(name, now, taken);
                let free = capacity.saturating_sub(held.iter().map(|held| held.weight).sum());
                let until = held.iter().map(|held| Timestamp::from_millis(held.until)).min();
                if u32::from(weight) > free {
                    return Answer::Permits(Permits::Exhausted { free, until });
                }
                Answer::Permits(Permits::Granted(self.permits.grant(name, weight.into(), now, ttl.into())))
            }
            Op::RenewPermits(name, of, ttl) => renew(&mut self.permits, name, of, now, ttl.into(), taken),
            Op::ReleasePermits(name, of) => {
                let token = self.permits.token(of);
                let held = self.permits.live(name, now, taken);
                let before = held.len();
                held.retain(|held| held.token != token);
                let release = if held.len() < before { Release::Released } else { Release::NotHeld };
                Answer::Released(release)
            }
            Op::CheckPermits(name, of) => check(&mut self.permits, name, of, now, taken),
            _ => Answer::Done,
        }
    }
}

fn renew(holds: &mut Holds, name: u8, of: u8, now: i64, ttl: i64, taken: &BTreeSet<i64>) -> Answer {
    let token = holds.token(of);
    let held = holds.live(name, now, taken).iter_mut().find(|held| held.token == token);
    Answer::Lease(held.map(|held| {
        (held.until, held.ttl) = (now + ttl, ttl);
        Grant { token: Token::new(token).unwrap(), until: Timestamp::from_millis(held.until) }
    }))
}

fn check(holds: &mut Holds, name: u8, of: u8, now: i64, taken: &BTreeSet<i64>) -> Answer {
    let token = holds.token(of);
    Answer::Checked(holds.live(name, now, taken).iter().any(|held| held.token == token))
}

/// The call itself, with tokens that the model knows.
fn ask(lab: &Lab<HostState>, op: &Op, key: RequestKey, token: Token) -> do_core::Result<Answer> {
    let name = |n: u8| n.to_string();
    let permits = |n: u8| format!("s{n}");
    let span = |ttl: u16| Duration::from_millis(ttl.into());
    let (counter, lease) = (lab.counter.keyed(key.clone()), lab.lease.keyed(key.clone()));
    let semaphore = lab.semaphore.keyed(key);
    Ok(match *op {
        Op::Add(n, by) => Answer::Value(Some(counter.add(&name(n), by)?)),
        Op::Set(n, value) => Answer::Value(Some(counter.set(&name(n), value)?)),
        Op::Reset(n) => Answer::Value(counter.reset(&name(n))?),
        Op::Acquire(n, ttl) => match lease.acquire(&name(n), "a", span(ttl))? {
            Acquired::Granted(grant) => Answer::Lease(Some(grant)),
            Acquired::Held(held) => Answer::Held(held.until.as_millis()),
        },
        Op::Renew(n, _, ttl) => Answer::Lease(lease.renew(&name(n), token, span(ttl))?),
        Op::Release(n, _) => Answer::Released(lease.release(&name(n), token)?),
        Op::Check(n, _) => Answer::Checked(lease.check(&name(n), token)?),
        Op::Capacity(n, most) => {
            semaphore.set_capacity(&permits(n), most.into())?;
            Answer::Done
        }
        Op::Take(n, weight, ttl) => match semaphore.acquire(&permits(n), "a", weight.into(), span(ttl)) {
            Err(error) if error.kind() == ErrorKind::NotFound => Answer::Unknown,
            permits => Answer::Permits(permits?),
        },
        Op::RenewPermits(n, _, ttl) => Answer::Lease(semaphore.renew(&permits(n), token, span(ttl))?),
        Op::ReleasePermits(n, _) => Answer::Released(semaphore.release(&permits(n), token)?),
        Op::CheckPermits(n, _) => Answer::Checked(semaphore.check(&permits(n), token)?),
        _ => Answer::Done,
    })
}

struct Player {
    kit: Kit,
    model: Model,
    /// What the alarms gave, with all of their retries.
    taken: [BTreeSet<i64>; 2],
    latest: Timestamp,
    calls: u32,
}

impl Player {
    /// Tokens of leases are not those of semaphores, but may be the same numbers.
    fn collect(&mut self) {
        for one in expired() {
            self.taken[usize::from(one.name.starts_with('s'))].insert(one.held.token.get());
        }
    }

    async fn play(&mut self, op: &Op) -> Result<(), String> {
        let kit = self.kit.clone();
        self.latest = self.latest.max(kit.now());
        match op {
            Op::Advance(ms) => kit.advance(Duration::from_millis((*ms).into())).await,
            Op::StepWall(ms) => kit.step_wall(Timestamp::from_millis(kit.now().as_millis() + i64::from(*ms))),
            Op::Late(ms) => kit.late_alarms(Duration::from_millis((*ms).into())),
            Op::Twice => kit.repeat_alarms(1),
            Op::Hibernate => drop(kit.hibernate(&stub(&kit)).await),
            Op::Strike(what, steps) => {
                let all = [
                    Strike::Hibernate(stub(&kit)),
                    Strike::Evict(stub(&kit)),
                    Strike::Crash,
                    Strike::LosePower,
                ];
                kit.at_step(kit.steps() + u64::from(*steps), &all[usize::from(*what)]);
            }
            Op::Fail(what) => {
                let all = [
                    Failing::Sql,
                    Failing::Commit,
                    Failing::CrashBeforeCommit,
                    Failing::CrashAfterCommit,
                    Failing::SetAlarm,
                ];
                kit.fail_next(&stub(&kit), all[usize::from(*what)]);
            }
            call => return self.call(call).await,
        }
        Ok(())
    }

    /// Repeats it with its key until it is answered.
    async fn call(&mut self, op: &Op) -> Result<(), String> {
        self.calls += 1;
        let token = match *op {
            Op::Renew(_, of, _) | Op::Release(_, of) | Op::Check(_, of) => self.model.leases.token(of),
            Op::RenewPermits(_, of, _) | Op::ReleasePermits(_, of) | Op::CheckPermits(_, of) => {
                self.model.permits.token(of)
            }
            _ => 1,
        };
        let token = Token::new(token).unwrap();
        let times: Rc<RefCell<BTreeSet<i64>>> = Rc::default();
        for _ in 0..40 {
            let (key, op, seen) =
                (RequestKey::new(self.calls.to_string()).unwrap(), op.clone(), Rc::clone(&times));
            let asked = op.clone();
            let (given, answered) = try_within(&self.kit, move |lab| {
                seen.borrow_mut().insert(lab.state.now().as_millis());
                ask(lab, &asked, key, token)
            })
            .await;
            self.collect();
            if let (Some(Ok(given)), Ok(())) = (given, answered) {
                return self.compare(&op, &given, &times.take());
            }
        }
        Err(format!("{op:?} is never answered"))
    }

    /// It happened in one of its attempts.
    fn compare(&mut self, op: &Op, given: &Answer, times: &BTreeSet<i64>) -> Result<(), String> {
        let of = usize::from(matches!(
            op,
            Op::Take(..) | Op::RenewPermits(..) | Op::ReleasePermits(..) | Op::CheckPermits(..)
        ));
        let mut wrong = Vec::new();
        for now in times {
            let mut model = self.model.clone();
            let answer = model.apply(op, *now, &self.taken[of]);
            if answer == *given {
                self.model = model;
                return Ok(());
            }
            wrong.push((*now, answer));
        }
        Err(format!("{op:?} gave {given:?}, which should be one of {wrong:?} of {:#?}", self.model))
    }

    /// When all is well again and everything is over, nothing is held, and each expiry was told of.
    async fn rest(&mut self) -> Result<(), String> {
        self.kit.heal();
        self.kit.step_wall(self.latest + Duration::from_secs(100));
        for op in [Op::Check(0, 0), Op::Check(1, 0), Op::CheckPermits(0, 0), Op::CheckPermits(1, 0)] {
            self.call(&op).await?; // an event that mends what the faults left
        }
        self.kit.advance(Duration::from_secs(3_600)).await;
        self.collect();
        let rows = try_within(&self.kit, |lab| {
            let table = |name: &str| {
                let there = lab
                    .state
                    .sql()
                    .scalar::<String>("SELECT name FROM sqlite_schema WHERE name = ?", (name,))?;
                let sql = format!("SELECT count(*) FROM {name}");
                there.map_or(Ok(Some(0)), |_| lab.state.sql().scalar::<i64>(&sql, ()))
            };
            (table("_lease").unwrap(), table("_semaphore").unwrap())
        });
        let rows = rows.await.0;
        if rows != Some((Some(0), Some(0))) {
            return Err(format!("rows are left: {rows:?}"));
        }
        for (holds, taken) in [&self.model.leases, &self.model.permits].into_iter().zip(&self.taken) {
            let granted: BTreeSet<i64> = holds.granted.iter().copied().collect();
            if !holds.over.is_subset(taken) || !taken.is_subset(&granted) {
                return Err(format!("told of {taken:?}, but over were {:?} of {granted:?}", holds.over));
            }
            if !holds.granted.is_sorted_by(|a, b| a < b) {
                return Err(format!("tokens do not grow: {:?}", holds.granted));
            }
        }
        Ok(())
    }
}

fn complaint(seed: u64, ops: &[Op]) -> Option<String> {
    let kit = builder().seed(seed).start().unwrap();
    alarms();
    let latest = kit.now();
    let mut player =
        Player { kit: kit.clone(), model: Model::default(), taken: Default::default(), latest, calls: 0 };
    let result = kit.run(async {
        for op in ops {
            player.play(op).await?;
            player.collect();
        }
        player.rest().await
    });
    result.err().map(|wrong| format!("{wrong}\n{}", kit.history()))
}

/// So many cases, unless the variable `PROPTEST_CASES` says otherwise.
fn cases(default: u32) -> Config {
    let config = Config::default();
    let cases = if std::env::var_os("PROPTEST_CASES").is_some() { config.cases } else { default };
    Config { cases, failure_persistence: None, max_shrink_iters: 2_000, ..config }
}

proptest! {
    #![proptest_config(cases(96))]

    #[test]
    fn whatever_happens_each_call_is_done_once_as_the_model_says(
        seed in any::<u64>(), ops in prop::collection::vec(op(), 1..40)
    ) {
        let complaint = complaint(seed, &ops);
        prop_assert!(complaint.is_none(), "{}", complaint.unwrap_or_default());
    }
}
