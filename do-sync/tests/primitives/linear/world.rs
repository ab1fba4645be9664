//! Clients in the kit that call one object at once, while it is struck.

use super::checker::Call;
use do_core::{
    Error, Failure, Namespace, Stub,
    kit::{Failing, Kit, Strike},
    tokio::HostStub,
};
use std::{cell::Cell, cell::RefCell, rc::Rc, time::Duration};

pub(super) const CLIENTS: usize = 4;

/// A small generator, so that a seed decides what clients do.
pub(super) struct Dice(u64);

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(super) fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % sides
    }
}

/// What the clients did, in the order of their answers.
pub(super) struct History<O, R> {
    kit: Kit,
    ticks: Cell<u64>,
    calls: RefCell<Vec<Call<O, R>>>,
}

impl<O: Clone + 'static, R: Clone + 'static> History<O, R> {
    fn tick(&self) -> u64 {
        self.ticks.set(self.ticks.get() + 1);
        self.ticks.get()
    }

    /// Makes a call and writes it down; its answer, if it has one.
    pub(super) async fn call(
        &self,
        client: usize,
        op: O,
        answer: impl Future<Output = Result<R, Error>>,
    ) -> Option<R> {
        let (invoked, from) = (self.tick(), self.kit.now().as_millis());
        let answer = answer.await;
        let (answered, to) = (self.tick(), self.kit.now().as_millis());
        let result = match answer {
            Ok(result) => Some(result),
            Err(error) if error.is_indefinite() => None,
            Err(_) => return None, // it did nothing
        };
        let call = Call { client, op, invoked, answered, from, to, result: result.clone() };
        self.calls.borrow_mut().push(call);
        result
    }
}

/// Plays clients against the object of a kit, with strikes that the seed decides.
pub(super) fn play<O, R, F>(
    kit: &Kit,
    seed: u64,
    client: impl Fn(usize, HostStub, Rc<History<O, R>>) -> F,
) -> Vec<Call<O, R>>
where
    O: Clone + 'static,
    R: Clone + 'static,
    F: Future<Output = Result<(), Failure>> + 'static,
{
    let stub = kit.namespace("OBJECT").unwrap().named("o").unwrap();
    let history = Rc::new(History { kit: kit.clone(), ticks: Cell::new(0), calls: RefCell::new(Vec::new()) });
    let mut dice = Dice::new(seed ^ 0xfa17);
    if dice.roll(4) > 0 {
        kit.at_random(&Strike::Evict(stub.clone()), 0.02);
        kit.at_random(&Strike::Hibernate(stub.clone()), 0.05);
        kit.at_random(&Strike::Crash, 0.01);
    }
    kit.run(async {
        let left = Rc::new(Cell::new(CLIENTS));
        for number in 0..CLIENTS {
            let (client, left) = (client(number, stub.clone(), Rc::clone(&history)), Rc::clone(&left));
            drop(kit.spawn(async move {
                client.await.unwrap();
                left.set(left.get() - 1);
            }));
        }
        while left.get() > 0 {
            match dice.roll(12) {
                0 => kit.fail_next(&stub, Failing::Commit),
                1 => kit.fail_next(&stub, Failing::CrashAfterCommit),
                2 => kit.fail_next(&stub, Failing::CrashBeforeCommit),
                3 => kit.fail_next(&stub, Failing::SetAlarm),
                4 => kit.fail_next(&stub, Failing::Sql),
                5 => kit.repeat_alarms(1),
                6 => kit.late_alarms(Duration::from_millis(dice.roll(500))),
                _ => {}
            }
            kit.advance(Duration::from_millis(dice.roll(60))).await;
        }
    });
    history.calls.take()
}

/// A pause of a client.
pub(super) async fn pause(stub: &HostStub, dice: &mut Dice, most: u64) {
    stub.delay(Duration::from_millis(dice.roll(most))).await;
}
