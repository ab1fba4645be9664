//! Who loads which key, and who waits for it.
//!
//! A load runs in the future of the one who leads it: nothing is spawned, so a load ends with the caller that wanted it.
//! Those who wait hold a waker and nothing else. When a leader goes without a value, one of them, the longest waiting, is
//! called to lead; when that one goes too, the next.

use bytes::Bytes;
use do_core::{Error, ErrorKind};
use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    future::poll_fn,
    pin::pin,
    rc::Rc,
    task::{Context, Poll, Waker},
};

/// The loads of a store that are under way, by key. No more than there are callers.
#[derive(Debug, Default)]
pub(crate) struct Loads(RefCell<BTreeMap<String, Rc<Flight>>>);

#[derive(Debug, Default)]
struct Flight {
    state: RefCell<State>,
    /// The leader's load is being polled.
    is_polled: Cell<bool>,
}

#[derive(Debug, Default)]
struct State {
    stage: Stage,
    /// The key was written or removed since: the flight is not among the [`Loads`] any more, and what it loads is not stored.
    is_outdated: bool,
    waiting: BTreeMap<u64, Waker>,
    /// The number of the next who waits.
    next: u64,
}

#[derive(Debug, Default)]
enum Stage {
    #[default]
    Loading,
    /// Nobody loads; this one who waits is to.
    Called(u64),
    Loaded(Bytes),
    /// Without a value: everybody is to begin anew.
    Over,
}

/// How a caller takes part.
pub(super) enum Joined<'a> {
    Lead(Lead<'a>),
    Wait(Wait<'a>),
}

/// What one who waited is told.
pub(super) enum Told<'a> {
    Loaded(Bytes),
    Lead(Lead<'a>),
    Again,
}

impl Loads {
    /// Leads the load of a key, or waits for the one that is under way.
    pub(super) fn join<'a>(&'a self, key: &'a str) -> Result<Joined<'a>, Error> {
        let mut loads = self.0.borrow_mut();
        let Some(flight) = loads.get(key) else {
            let flight = Rc::new(Flight::default());
            loads.insert(key.to_owned(), Rc::clone(&flight));
            return Ok(Joined::Lead(Lead { loads: self, key, flight }));
        };
        if flight.is_polled.get() {
            let message = format!("the load of {key:?} waits for itself");
            return Err(Error::new(ErrorKind::Invalid, message));
        }
        let flight = Rc::clone(flight);
        let number = flight.state.borrow().next;
        flight.state.borrow_mut().next += 1;
        Ok(Joined::Wait(Wait { loads: self, key, flight, number }))
    }

    /// A key was written or removed: who comes from here on is not given what is being loaded.
    pub(super) fn changed(&self, key: &str) {
        let flight = self.0.borrow_mut().remove(key);
        if let Some(flight) = flight {
            flight.outdate();
        }
    }

    /// Every key was.
    pub(super) fn all_changed(&self) {
        for flight in self.0.take().into_values() {
            flight.outdate();
        }
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.0.borrow().is_empty()
    }

    /// Nobody loads any more.
    fn abandon(&self, key: &str, flight: &Flight) {
        let mut state = flight.state.borrow_mut();
        let first = state.waiting.first_key_value().map(|(number, waker)| (*number, waker.clone()));
        if let (false, Some((number, waker))) = (state.is_outdated, first) {
            state.stage = Stage::Called(number);
            drop(state);
            waker.wake();
            return;
        }
        if !state.is_outdated {
            self.0.borrow_mut().remove(key);
        }
        drop(state);
        flight.end(Stage::Over);
    }
}

impl Flight {
    fn outdate(&self) {
        let mut state = self.state.borrow_mut();
        state.is_outdated = true;
        let is_loading = matches!(state.stage, Stage::Loading);
        drop(state);
        // One that was called would load it anew for those who came before only.
        if !is_loading {
            self.end(Stage::Over);
        }
    }

    fn end(&self, stage: Stage) {
        let mut state = self.state.borrow_mut();
        state.stage = stage;
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        // Not while it is borrowed: nobody knows what a waker does.
        waiting.into_values().for_each(Waker::wake);
    }
}

/// The one who loads. Dropped without an end, another one takes over.
pub(super) struct Lead<'a> {
    loads: &'a Loads,
    key: &'a str,
    flight: Rc<Flight>,
}

impl Lead<'_> {
    /// Runs the load. One that asks for its own key is refused, for it would wait for ever.
    pub(super) async fn run<T>(&self, load: impl Future<Output = T>) -> T {
        let mut load = pin!(load);
        poll_fn(|cx| {
            let _polled = Polled::new(&self.flight.is_polled);
            load.as_mut().poll(cx)
        })
        .await
    }

    /// The key was written or removed since the load began.
    pub(super) fn is_outdated(&self) -> bool {
        self.flight.state.borrow().is_outdated
    }

    /// Gives the value to all who wait.
    pub(super) fn end(self, value: Bytes) {
        if !self.is_outdated() {
            self.loads.0.borrow_mut().remove(self.key);
        }
        self.flight.end(Stage::Loaded(value));
    }
}

impl Drop for Lead<'_> {
    fn drop(&mut self) {
        let is_loading = matches!(self.flight.state.borrow().stage, Stage::Loading);
        if is_loading {
            self.loads.abandon(self.key, &self.flight);
        }
    }
}

/// While it lives, the cell is set.
struct Polled<'a>(&'a Cell<bool>);

impl<'a> Polled<'a> {
    fn new(cell: &'a Cell<bool>) -> Self {
        cell.set(true);
        Self(cell)
    }
}

impl Drop for Polled<'_> {
    fn drop(&mut self) {
        self.0.set(false);
    }
}

/// One who waits.
pub(super) struct Wait<'a> {
    loads: &'a Loads,
    key: &'a str,
    flight: Rc<Flight>,
    number: u64,
}

impl<'a> Wait<'a> {
    /// What became of the load.
    pub(super) async fn told(self) -> Told<'a> {
        poll_fn(|cx| self.poll(cx)).await
    }

    fn poll(&self, cx: &Context<'_>) -> Poll<Told<'a>> {
        let mut state = self.flight.state.borrow_mut();
        let replaced = match &state.stage {
            Stage::Loaded(value) => return Poll::Ready(Told::Loaded(value.clone())),
            Stage::Over => return Poll::Ready(Told::Again),
            Stage::Called(number) if *number == self.number => {
                state.stage = Stage::Loading;
                let flight = Rc::clone(&self.flight);
                return Poll::Ready(Told::Lead(Lead { loads: self.loads, key: self.key, flight }));
            }
            Stage::Loading | Stage::Called(_) => match state.waiting.get(&self.number) {
                Some(waker) if waker.will_wake(cx.waker()) => None,
                _ => state.waiting.insert(self.number, cx.waker().clone()),
            },
        };
        drop(state);
        drop(replaced);
        Poll::Pending
    }
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        let mut state = self.flight.state.borrow_mut();
        let waker = state.waiting.remove(&self.number);
        let is_called = matches!(state.stage, Stage::Called(number) if number == self.number);
        drop(state);
        drop(waker);
        if is_called {
            self.loads.abandon(self.key, &self.flight);
        }
    }
}
