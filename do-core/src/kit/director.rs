//! What decides a run: the seed's choices, the faults that were asked for, and the history of what happened.

use super::disk::Failing;
use crate::engine::{self, ObjectKey};
use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
    fmt::{self, Write},
    time::Duration,
};

/// See the [module](self).
pub(super) struct Director {
    random: RefCell<fastrand::Rng>,
    history: RefCell<String>,
    /// Virtual time, as the world moves it: what the lines of the history begin with.
    elapsed: Cell<Duration>,
    late: Cell<Duration>,
    /// Alarms that are still to be delivered twice.
    again: Cell<u32>,
    /// What fails next, by object.
    failing: RefCell<HashMap<ObjectKey, Vec<Failing>>>,
}

impl Director {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            random: RefCell::new(fastrand::Rng::with_seed(seed)),
            history: RefCell::default(),
            elapsed: Cell::default(),
            late: Cell::default(),
            again: Cell::default(),
            failing: RefCell::default(),
        }
    }

    pub(super) fn at(&self, elapsed: Duration) {
        self.elapsed.set(elapsed);
    }

    pub(super) fn history(&self) -> String {
        self.history.borrow().clone()
    }

    pub(super) fn chance(&self, probability: f64) -> bool {
        probability > 0.0 && self.random.borrow_mut().f64() < probability
    }

    pub(super) fn bytes<const N: usize>(&self) -> [u8; N] {
        let mut bytes = [0; N];
        self.random.borrow_mut().fill(&mut bytes);
        bytes
    }

    pub(super) fn late(&self, by: Duration) {
        self.late.set(by);
    }

    pub(super) fn again(&self, times: u32) {
        self.again.set(times);
    }

    pub(super) fn fail(&self, key: ObjectKey, what: Failing) {
        self.failing.borrow_mut().entry(key).or_default().push(what);
    }

    /// Nothing fails, is late or comes again from here on.
    pub(super) fn heal(&self) {
        self.failing.borrow_mut().clear();
        self.late.set(Duration::ZERO);
        self.again.set(0);
    }

    /// Whether this is to fail now; it does so once for each time it was asked for.
    pub(super) fn fails(&self, key: &ObjectKey, what: impl Fn(&Failing) -> bool) -> Option<Failing> {
        let mut failing = self.failing.borrow_mut();
        let planned = failing.get_mut(key)?;
        planned.iter().position(what).map(|index| planned.remove(index))
    }

    /// A statement ran: those that are to fail later are nearer.
    pub(super) fn statement(&self, key: &ObjectKey) {
        for planned in self.failing.borrow_mut().get_mut(key).into_iter().flatten() {
            if let Failing::SqlAfter(left) = planned {
                *left = left.saturating_sub(1);
            }
        }
    }

    pub(super) fn write(&self, line: fmt::Arguments<'_>) {
        let mut history = self.history.borrow_mut();
        let at = self.elapsed.get();
        let _ = writeln!(history, "{:>7}.{:03} {line}", at.as_secs(), at.subsec_millis()); // a String takes everything
    }
}

impl engine::Director for Director {
    fn pick(&self, of: usize) -> usize {
        self.random.borrow_mut().usize(..of.max(1))
    }

    fn note(&self, what: fmt::Arguments<'_>) {
        self.write(what);
    }

    fn alarms_late(&self) -> Duration {
        self.late.get()
    }

    fn alarm_again(&self) -> bool {
        let left = self.again.get();
        self.again.set(left.saturating_sub(1));
        left > 0
    }
}
