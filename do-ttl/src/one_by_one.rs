//! Runs one after the other, whoever begins them: the alarm, and an event that does not wait for it.

use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    future::poll_fn,
    task::{Poll, Waker},
};

/// Lets one in at a time, in the order in which they came: nobody waits for longer than those take who were there before.
#[derive(Debug, Default)]
pub(crate) struct OneByOne {
    taken: Cell<bool>,
    /// The number of the next one who comes.
    next: Cell<u64>,
    /// Those who wait, by their numbers.
    waiting: RefCell<BTreeMap<u64, Waker>>,
}

/// Whoever has it is in.
pub(crate) struct Turn<'a>(&'a OneByOne);

/// Somebody who waits. Whoever stops waiting lets the others by.
struct Place<'a> {
    of: &'a OneByOne,
    number: u64,
}

impl OneByOne {
    /// Waits until nobody is in, and nobody waits who came before.
    ///
    /// # Cancellation
    /// Safe.
    pub(crate) async fn turn(&self) -> Turn<'_> {
        let place = Place { of: self, number: self.next.replace(self.next.get() + 1) };
        poll_fn(|cx| {
            let mut waiting = self.waiting.borrow_mut();
            let is_first = waiting.first_key_value().is_none_or(|(first, _)| *first >= place.number);
            if self.taken.get() || !is_first {
                waiting.insert(place.number, cx.waker().clone());
                return Poll::Pending;
            }
            self.taken.set(true);
            Poll::Ready(Turn(self))
        })
        .await
    }

    /// Nobody is in any more, or one does not wait any more.
    fn wake(&self) {
        if self.taken.get() {
            return;
        }
        let first = self.waiting.borrow().first_key_value().map(|(_, waker)| waker.clone());
        if let Some(first) = first {
            first.wake();
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.taken.set(false);
        self.0.wake();
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.of.waiting.borrow_mut().remove(&self.number);
        self.of.wake();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{pin::pin, task::Context};

    #[test]
    fn the_second_waits_for_the_first_and_one_that_is_dropped_is_in_nobodys_way() {
        let runs = OneByOne::default();
        let mut cx = Context::from_waker(Waker::noop());
        let Poll::Ready(first) = pin!(runs.turn()).poll(&mut cx) else { panic!("nobody is in") };
        assert!(pin!(runs.turn()).poll(&mut cx).is_pending());
        let mut second = pin!(runs.turn());
        for _ in 0..1_000 {
            assert!(second.as_mut().poll(&mut cx).is_pending());
        }
        assert_eq!(runs.waiting.borrow().len(), 1);
        let mut third = pin!(runs.turn());
        assert!(third.as_mut().poll(&mut cx).is_pending());
        drop(first);
        assert!(third.as_mut().poll(&mut cx).is_pending(), "the second was there before");
        let Poll::Ready(second) = second.as_mut().poll(&mut cx) else { panic!("nobody is in") };
        assert!(third.as_mut().poll(&mut cx).is_pending());
        drop(second);
        assert!(third.as_mut().poll(&mut cx).is_ready());
        assert!(pin!(runs.turn()).poll(&mut cx).is_ready());
    }
}
