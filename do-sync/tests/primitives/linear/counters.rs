//! Histories of one counter.

use super::{
    checker::{Call, Model, complaint},
    world::{Dice, History, pause, play},
};
use do_core::{kit::Kit, kit::for_seeds, prelude::*, tokio::HostState};
use do_sync::{CompareAndSet, Counter, CounterObject, CounterStub};
use std::rc::Rc;

#[derive(Debug, Clone, Copy)]
enum Op {
    Get,
    Add(i64),
    Set(i64),
    Swap(i64, i64),
}

/// The value, or of a swap what was found, if it was not done.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Answer {
    Value(i64),
    Swapped(Option<i64>),
}

struct Register;

impl Model for Register {
    type Op = Op;
    type Answer = Answer;
    type State = i64;

    fn begin(&self) -> i64 {
        0
    }

    fn after(&self, state: &i64, call: &Call<Op, Answer>) -> Vec<i64> {
        let (after, answer) = match call.op {
            Op::Get => (*state, Answer::Value(*state)),
            Op::Add(by) => (state + by, Answer::Value(state + by)),
            Op::Set(value) => (value, Answer::Value(value)),
            Op::Swap(expected, value) if *state == expected => (value, Answer::Swapped(None)),
            Op::Swap(..) => (*state, Answer::Swapped(Some(*state))),
        };
        if call.result.is_none_or(|given| given == answer) { vec![after] } else { Vec::new() }
    }
}

fn histories<O: DurableObject<HostState>>(seed: u64) -> Vec<Call<Op, Answer>> {
    let kit = Kit::builder().object::<O>("OBJECT").seed(seed).start().unwrap();
    play(&kit, seed, |number, stub, history: Rc<History<Op, Answer>>| async move {
        let mut dice = Dice::new(seed * 31 + number as u64);
        let counters = CounterStub::new(stub.clone()).seed(seed * 17 + number as u64);
        for _ in 0..7 {
            pause(&stub, &mut dice, 30).await;
            let small = dice.roll(4) as i64;
            let op = match dice.roll(8) {
                0 => Op::Get,
                1 => Op::Set(small),
                2 => Op::Swap(small, small + 1),
                _ => Op::Add(small + 1),
            };
            let call = async {
                Ok(match op {
                    Op::Get => Answer::Value(counters.get("n").await?),
                    Op::Add(by) => Answer::Value(counters.add("n", by).await?),
                    Op::Set(value) => Answer::Value(counters.set("n", value).await?),
                    Op::Swap(expected, value) => {
                        match counters.compare_and_set("n", expected, value).await? {
                            CompareAndSet::Done => Answer::Swapped(None),
                            CompareAndSet::Differs(found) => Answer::Swapped(Some(found)),
                        }
                    }
                })
            };
            history.call(number, op, call).await;
        }
        Ok(())
    })
}

#[test]
fn concurrent_calls_of_a_counter_are_as_calls_one_after_another_whatever_strikes() {
    let (mut answered, mut unknown) = (0, 0);
    for_seeds(0..60, |seed| {
        let calls = histories::<CounterObject<_>>(seed);
        assert_eq!(complaint(&Register, &calls), None);
    });
    for seed in 0..10 {
        for call in histories::<CounterObject<_>>(seed) {
            *if call.result.is_some() { &mut answered } else { &mut unknown } += 1;
        }
    }
    // The strikes leave most calls with an answer.
    assert!(answered > 200 && unknown < 60, "{answered} answered, {unknown} unknown");
}

/// Reads, awaits, and writes what it read.
struct Torn<S: ObjectState> {
    state: S,
    counter: Counter<S>,
    rest: CounterObject<S>,
}

impl<S: ObjectState> DurableObject<S> for Torn<S> {
    fn new(state: S) -> Result<Self> {
        Ok(Self { counter: Counter::new(&state), rest: CounterObject::new(state.clone())?, state })
    }

    async fn fetch(&self, request: Request) -> Result<Response> {
        if request.uri().path() != "/add" {
            return self.rest.fetch(request).await;
        }
        let arguments: serde_json::Value = request.into_body().json(1_000).await?;
        let sum = self.counter.get("n")? + arguments["by"].as_i64().unwrap();
        self.state.sleep(Duration::from_millis(1)).await;
        Ok(reply::json(&serde_json::json!({"value": self.counter.set("n", sum)?}))?)
    }
}

/// Does a repeated request again.
struct Forgetful<S: ObjectState>(CounterObject<S>);

impl<S: ObjectState> DurableObject<S> for Forgetful<S> {
    fn new(state: S) -> Result<Self> {
        Ok(Self(CounterObject::new(state)?))
    }

    async fn fetch(&self, mut request: Request) -> Result<Response> {
        request.headers_mut().remove("idempotency-key");
        self.0.fetch(request).await
    }
}

/// Acknowledges before it writes, in a turn of its own.
struct Hasty<S: ObjectState> {
    state: S,
    counter: Counter<S>,
    rest: CounterObject<S>,
}

impl<S: ObjectState> DurableObject<S> for Hasty<S> {
    fn new(state: S) -> Result<Self> {
        Ok(Self { counter: Counter::new(&state), rest: CounterObject::new(state.clone())?, state })
    }

    async fn fetch(&self, request: Request) -> Result<Response> {
        if request.uri().path() != "/add" {
            return self.rest.fetch(request).await;
        }
        let arguments: serde_json::Value = request.into_body().json(1_000).await?;
        let by = arguments["by"].as_i64().unwrap();
        let (counter, state) = (self.counter.clone(), self.state.clone());
        let sum = counter.get("n")? + by;
        self.state.wait_until(async move {
            state.sleep(Duration::from_millis(1)).await;
            let _ = counter.add("n", by);
        });
        Ok(reply::json(&serde_json::json!({"value": sum}))?)
    }
}

fn is_caught<O: DurableObject<HostState>>() -> usize {
    (0..40).filter(|seed| complaint(&Register, &histories::<O>(*seed)).is_some()).count()
}

#[test]
fn a_counter_that_awaits_between_reading_and_writing_is_caught() {
    assert!(is_caught::<Torn<_>>() > 0);
}

#[test]
fn a_counter_that_does_a_repeated_request_again_is_caught() {
    assert!(is_caught::<Forgetful<_>>() > 0);
}

#[test]
fn a_counter_that_answers_before_it_writes_is_caught() {
    assert!(is_caught::<Hasty<_>>() > 0);
}

#[test]
fn the_checker_knows_right_from_wrong() {
    let call =
        |op, invoked, answered, result| Call { client: 0, op, invoked, answered, from: 0, to: 0, result };
    let value = |value| Some(Answer::Value(value));
    let sound = |calls: &[Call<Op, Answer>]| complaint(&Register, calls).is_none();
    // One after another.
    assert!(sound(&[call(Op::Add(1), 1, 2, value(1)), call(Op::Get, 3, 4, value(1))]));
    assert!(!sound(&[call(Op::Add(1), 1, 2, value(1)), call(Op::Get, 3, 4, value(0))]));
    // At once: either is first.
    assert!(sound(&[call(Op::Add(1), 1, 4, value(1)), call(Op::Get, 2, 3, value(0))]));
    assert!(sound(&[call(Op::Add(1), 1, 4, value(1)), call(Op::Get, 2, 3, value(1))]));
    assert!(!sound(&[call(Op::Add(1), 1, 4, value(1)), call(Op::Add(1), 2, 3, value(1))]));
    // Without an answer: before, later or never, but not twice and not before it was made.
    let unknown = |invoked, answered| call(Op::Add(1), invoked, answered, None);
    for seen in [0, 1] {
        assert!(sound(&[unknown(1, 2), call(Op::Get, 3, 4, value(seen))]));
    }
    let later = [unknown(1, 2), call(Op::Get, 3, 4, value(0)), call(Op::Get, 5, 6, value(1))];
    assert!(sound(&later));
    assert!(!sound(&[unknown(1, 2), call(Op::Get, 3, 4, value(2))]));
    assert!(!sound(&[unknown(1, 2), call(Op::Get, 3, 4, value(1)), call(Op::Get, 5, 6, value(0))]));
    assert!(!sound(&[call(Op::Get, 1, 2, value(1)), unknown(3, 4)]));
}
