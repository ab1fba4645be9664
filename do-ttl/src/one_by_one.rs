//! Runs one after the other, whoever begins them: the alarm, and an event that does not wait for it.

use std::{
    cell::{Cell, RefCell},
    future::poll_fn,
    task::{Poll, Waker},
};

/// Lets one in at a time.
#[derive(Debug, Default)]
pub(crate) struct OneByOne {
    taken: Cell<bool>,
    /// All of those who wait, and some that do not any more: whoever comes first is in.
    waiting: RefCell<Vec<Waker>>,
}

/// Whoever has it is in.
pub(crate) struct Turn<'a>(&'a OneByOne);

impl OneByOne {
    /// Waits until nobody is in.
    ///
    /// # Cancellation
    /// Safe.
    pub(crate) async fn turn(&self) -> Turn<'_> {
        poll_fn(|cx| {
            if self.taken.replace(true) {
                self.waiting.borrow_mut().push(cx.waker().clone());
                return Poll::Pending;
            }
            Poll::Ready(Turn(self))
        })
        .await
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.taken.set(false);
        for waiting in self.0.waiting.take() {
            waiting.wake();
        }
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
        assert!(second.as_mut().poll(&mut cx).is_pending());
        drop(first);
        assert!(second.as_mut().poll(&mut cx).is_ready());
        assert!(pin!(runs.turn()).poll(&mut cx).is_ready());
    }
}
