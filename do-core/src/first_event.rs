//! What waits for an instance's first event, kept beside the state and not in it: the work holds clones of the state, and
//! would keep itself alive.

use std::{
    cell::{Cell, RefCell},
    collections::VecDeque,
};

type Work = Box<dyn FnOnce()>;

/// Owned by what owns the instance; the state has a weak reference.
#[derive(Default)]
pub(crate) struct FirstEvent {
    came: Cell<bool>,
    waiting: RefCell<VecDeque<Work>>,
}

impl FirstEvent {
    /// Calls `work` when the event comes, or now if it came.
    pub(crate) fn call(&self, work: impl FnOnce() + 'static) {
        if self.came.get() {
            work();
        } else {
            self.waiting.borrow_mut().push_back(Box::new(work));
        }
    }

    /// The handler of an event that is not the alarm's is about to begin. Runs code of the application.
    pub(crate) fn comes(&self) {
        if self.came.get() {
            return;
        }
        while let Some(work) = self.next() {
            work();
        }
        self.came.set(true); // the last: what the work asks for in its turn comes behind what waits already
    }

    fn next(&self) -> Option<Work> {
        self.waiting.borrow_mut().pop_front()
    }

    /// What waits in vain, to be dropped piece by piece.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn take(&self) -> VecDeque<Work> {
        self.waiting.take()
    }
}

#[cfg(all(test, not(target_arch = "wasm32")))]
mod tests {
    use super::*;
    use std::rc::Rc;

    fn noting(log: &Rc<RefCell<Vec<u8>>>, n: u8) -> impl FnOnce() + use<> {
        let log = Rc::clone(log);
        move || log.borrow_mut().push(n)
    }

    #[test]
    fn waits_in_order_and_is_called_once() {
        let (first, log) = (FirstEvent::default(), Rc::default());
        first.call(noting(&log, 1));
        first.call(noting(&log, 2));
        assert!(log.borrow().is_empty());
        first.comes();
        assert_eq!(*log.borrow(), [1, 2]);
        first.comes();
        first.call(noting(&log, 3));
        assert_eq!(*log.borrow(), [1, 2, 3]);
    }

    #[test]
    fn what_the_work_asks_for_comes_behind_what_waits() {
        let (first, log) = (Rc::new(FirstEvent::default()), Rc::default());
        let (inner, inner_log) = (Rc::clone(&first), Rc::clone(&log));
        first.call(move || inner.call(noting(&inner_log, 2)));
        first.call(noting(&log, 1));
        first.comes();
        assert_eq!(*log.borrow(), [1, 2]);
    }

    #[test]
    fn what_was_taken_is_not_called() {
        let (first, log) = (FirstEvent::default(), Rc::default());
        first.call(noting(&log, 1));
        assert_eq!(first.take().len(), 1);
        first.comes();
        assert!(log.borrow().is_empty());
        assert_eq!(Rc::strong_count(&log), 1);
    }
}
