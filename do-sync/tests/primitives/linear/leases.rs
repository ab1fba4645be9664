//! Histories of one lease: a state machine with time.

use super::{
    checker::{Call, Model, complaint},
    world::{Dice, History, pause, play},
};
use do_core::{kit::Kit, kit::for_seeds, prelude::*, tokio::HostState};
use do_sync::{Acquired, LockObject, LockStub, Release, Token};
use std::rc::Rc;

#[derive(Debug, Clone, Copy)]
enum Op {
    Acquire(i64),
    Renew(i64, i64),
    Release(i64),
    Check(i64),
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Answer {
    Granted(i64, i64),
    Held(i64),
    Renewed(Option<i64>),
    Released(Release),
    Checked(bool),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct State {
    /// The time of the last call.
    now: i64,
    /// Token and end of the one that holds it; it may be over.
    held: Option<(i64, i64)>,
    last: i64,
}

/// All ends that were told of, and all times of calls: when a call without an answer may have happened.
struct Lock {
    ends: Vec<i64>,
    moments: Vec<i64>,
}

impl Lock {
    fn of(calls: &[Call<Op, Answer>]) -> Self {
        let ends = calls.iter().filter_map(|call| match call.result {
            Some(Answer::Granted(_, until) | Answer::Held(until) | Answer::Renewed(Some(until))) => {
                Some(until)
            }
            _ => None,
        });
        let moments = calls.iter().flat_map(|call| [call.from, call.to]);
        Self { ends: ends.collect(), moments: moments.collect() }
    }

    /// When a call may happen: at the earliest, or when it is told by its end that it did.
    fn times(&self, state: &State, call: &Call<Op, Answer>, ttl: i64) -> Vec<i64> {
        let earliest = state.now.max(call.from);
        let latest = if call.result.is_some() { call.to } else { i64::MAX };
        let over = state.held.map(|(_, until)| until);
        let mut times: Vec<i64> = [earliest].into_iter().chain(over).collect();
        if call.result.is_none() || ttl > 0 {
            times.extend(self.ends.iter().map(|end| end - ttl));
        }
        if call.result.is_none() {
            times.extend(&self.moments);
        }
        times.retain(|time| (earliest..=latest).contains(time));
        times.sort_unstable();
        times.dedup();
        times
    }
}

/// What an object does at a time.
fn step(state: &State, now: i64, op: Op) -> (State, Answer) {
    let live = state.held.filter(|(_, until)| now < *until);
    let state = State { now, held: live, ..*state };
    match (op, live) {
        (Op::Acquire(ttl), None) => {
            let token = if state.last == 0 { now } else { state.last + 1 };
            (
                State { held: Some((token, now + ttl)), last: token, ..state },
                Answer::Granted(token, now + ttl),
            )
        }
        (Op::Acquire(_), Some((_, until))) => (state, Answer::Held(until)),
        (Op::Renew(token, ttl), Some((held, _))) if held == token => {
            (State { held: Some((token, now + ttl)), ..state }, Answer::Renewed(Some(now + ttl)))
        }
        (Op::Renew(..), _) => (state, Answer::Renewed(None)),
        (Op::Release(token), Some((held, _))) if held == token => {
            (State { held: None, ..state }, Answer::Released(Release::Released))
        }
        (Op::Release(_), Some(_)) => (state, Answer::Released(Release::Stale)),
        (Op::Release(_), None) => (state, Answer::Released(Release::NotHeld)),
        (Op::Check(token), held) => (state, Answer::Checked(held.is_some_and(|(held, _)| held == token))),
    }
}

impl Model for Lock {
    type Op = Op;
    type Answer = Answer;
    type State = State;

    fn begin(&self) -> State {
        State { now: 0, held: None, last: 0 }
    }

    fn after(&self, state: &State, call: &Call<Op, Answer>) -> Vec<State> {
        let ttl = match call.op {
            Op::Acquire(ttl) | Op::Renew(_, ttl) => ttl,
            _ => 0,
        };
        let outcomes = self.times(state, call, ttl).into_iter().map(|now| step(state, now, call.op));
        let right = outcomes.filter(|(_, answer)| call.result.is_none_or(|given| given == *answer));
        right.map(|(after, _)| after).collect()
    }
}

fn histories<O: DurableObject<HostState>>(seed: u64) -> Vec<Call<Op, Answer>> {
    let kit = Kit::builder().object::<O>("OBJECT").seed(seed).start().unwrap();
    play(&kit, seed, |number, stub, history: Rc<History<Op, Answer>>| async move {
        let mut dice = Dice::new(seed * 37 + number as u64);
        let locks = LockStub::new(stub.clone()).seed(seed * 19 + number as u64);
        let mut token = 1;
        for _ in 0..6 {
            pause(&stub, &mut dice, 120).await;
            let ttl = [40, 150, 400][dice.roll(3) as usize];
            let op = match dice.roll(6) {
                0 => Op::Check(token),
                1 | 2 if token > 1 => Op::Release(token),
                3 if token > 1 => Op::Renew(token, ttl),
                _ => Op::Acquire(ttl),
            };
            let given = history.call(number, op, ask(&locks, number, op)).await;
            if let Some(Answer::Granted(new, _)) = given {
                token = new;
            }
        }
        Ok(())
    })
}

async fn ask(locks: &LockStub<do_core::tokio::HostStub>, number: usize, op: Op) -> Result<Answer, Error> {
    let span = |ttl: i64| Duration::from_millis(ttl as u64);
    Ok(match op {
        Op::Acquire(ttl) => match locks.acquire("l", &number.to_string(), span(ttl)).await? {
            Acquired::Granted(grant) => Answer::Granted(grant.token.get(), grant.until.as_millis()),
            Acquired::Held(held) => Answer::Held(held.until.as_millis()),
        },
        Op::Renew(token, ttl) => {
            let renewed = locks.renew("l", Token::new(token)?, span(ttl)).await?;
            Answer::Renewed(renewed.map(|grant| grant.until.as_millis()))
        }
        Op::Release(token) => Answer::Released(locks.release("l", Token::new(token)?).await?),
        Op::Check(token) => Answer::Checked(locks.check("l", Token::new(token)?).await?),
    })
}

fn wrong<O: DurableObject<HostState>>(seed: u64) -> Option<String> {
    let calls = histories::<O>(seed);
    complaint(&Lock::of(&calls), &calls)
}

#[test]
fn concurrent_calls_of_a_lease_are_as_calls_one_after_another_whatever_strikes() {
    for_seeds(0..60, |seed| assert_eq!(wrong::<LockObject<_>>(seed), None));
}

/// Does a repeated request again: a holder is then told that it does not hold what it holds.
struct Forgetful<S: ObjectState>(LockObject<S>);

impl<S: ObjectState> DurableObject<S> for Forgetful<S> {
    fn new(state: S) -> Result<Self> {
        Ok(Self(LockObject::new(state)?))
    }

    async fn fetch(&self, mut request: Request) -> Result<Response> {
        request.headers_mut().remove("idempotency-key");
        self.0.fetch(request).await
    }

    async fn alarm(&self, info: AlarmInfo) -> Result<()> {
        self.0.alarm(info).await
    }
}

/// Holds leases in memory: each instance begins anew.
struct InMemory<S: ObjectState> {
    state: S,
    held: std::cell::Cell<Option<(i64, i64)>>,
    rest: LockObject<S>,
}

impl<S: ObjectState> DurableObject<S> for InMemory<S> {
    fn new(state: S) -> Result<Self> {
        Ok(Self { held: std::cell::Cell::new(None), rest: LockObject::new(state.clone())?, state })
    }

    async fn fetch(&self, request: Request) -> Result<Response> {
        if request.uri().path() != "/lease/acquire" {
            return self.rest.fetch(request).await;
        }
        let arguments: serde_json::Value = request.into_body().json(1_000).await?;
        let now = self.state.now().as_millis();
        if let Some((_, until)) = self.held.get().filter(|(_, until)| now < *until) {
            let body = serde_json::json!({"error": "held", "message": "", "until": until});
            let mut response = reply::json(&body)?;
            *response.status_mut() = StatusCode::CONFLICT;
            return Ok(response);
        }
        let token = self.held.get().map_or(now, |(last, _)| last + 1);
        let until = now + arguments["ttl_ms"].as_i64().unwrap();
        self.held.set(Some((token, until)));
        Ok(reply::json(&serde_json::json!({"token": token, "until": until}))?)
    }

    async fn alarm(&self, info: AlarmInfo) -> Result<()> {
        self.rest.alarm(info).await
    }
}

#[test]
fn a_lease_that_does_a_repeated_request_again_is_caught() {
    assert!((0..40).any(|seed| wrong::<Forgetful<_>>(seed).is_some()));
}

#[test]
fn a_lease_that_is_held_in_memory_is_caught() {
    assert!((0..40).any(|seed| wrong::<InMemory<_>>(seed).is_some()));
}
