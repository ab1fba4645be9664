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
    phase: Cell<Phase>,
    waiting: RefCell<VecDeque<Work>>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Phase {
    #[default]
    Awaited,
    Came,
    /// The instance goes.
    #[cfg(not(target_arch = "wasm32"))]
    Over,
}

impl FirstEvent {
    /// Calls `work` when the event comes, or now if it came.
    pub(crate) fn call(&self, work: impl FnOnce() + 'static) {
        match self.phase.get() {
            Phase::Awaited => self.waiting.borrow_mut().push_back(Box::new(work)),
            Phase::Came => work(),
            #[cfg(not(target_arch = "wasm32"))]
            Phase::Over => {}
        }
    }

    /// The handler of an event that is not the alarm's is about to begin. Runs code of the application.
    pub(crate) fn comes(&self) {
        if self.phase.get() != Phase::Awaited {
            return;
        }
        while let Some(work) = self.next() {
            work();
        }
        self.phase.set(Phase::Came); // the last: what the work asks for in its turn comes behind what waits already
    }

    fn next(&self) -> Option<Work> {
        self.waiting.borrow_mut().pop_front()
    }

    /// What is left, to be dropped with the instance: nothing is called from here on.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn end(&self) -> VecDeque<Work> {
        self.phase.set(Phase::Over);
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
    fn nothing_is_called_or_kept_after_the_end() {
        let (first, log) = (FirstEvent::default(), Rc::default());
        first.call(noting(&log, 1));
        assert_eq!(first.end().len(), 1);
        first.call(noting(&log, 2));
        first.comes();
        assert!(log.borrow().is_empty());
        assert_eq!(Rc::strong_count(&log), 1);
    }
}
