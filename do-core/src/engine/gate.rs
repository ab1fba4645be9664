//! The output gate: what an object sends waits for what it wrote.
//!
//! Commits are numbered. An output carries the number of the highest commit at the time it was made, the one
//! still open included if the turn had written by then; it leaves when that commit is durable (rule C4). So an
//! output made before a write does not wait for it, and one that only reads data not yet durable does.

use super::{events::Reply, sockets::SocketCell};
use crate::{CloseFrame, Error, Message, Response, body::Held};
use std::{collections::VecDeque, rc::Rc};

/// Something that leaves the object.
pub(super) enum Output {
    Reply(Reply, Result<Response, Error>),
    Send(Rc<SocketCell>, Message),
    Close(Rc<SocketCell>, CloseFrame),
    /// The end of a connection whose peer broke the protocol.
    Failure(Rc<SocketCell>, CloseFrame),
    /// A call to another object, or anything else that runs once.
    Call(Box<dyn FnOnce()>),
    Body(Held),
}

/// The outputs of one instance that wait for their commit.
#[derive(Default)]
pub(super) struct OutputGate {
    waiting: VecDeque<(u64, Output)>,
    committed: u64,
    durable: u64,
}

impl OutputGate {
    /// Takes an output made now. `dirty`: the turn has written and not committed.
    pub(super) fn push(&mut self, output: Output, dirty: bool) {
        let last = self.waiting.back().map_or(0, |(last, _)| *last);
        let needs = last.max(self.committed + u64::from(dirty));
        self.waiting.push_back((needs, output));
    }

    /// Whether something waits for the commit that is still open, although nothing may be left to commit: the
    /// turn can have discarded what it wrote.
    pub(super) fn awaits_open(&self) -> bool {
        self.waiting.back().is_some_and(|(last, _)| *last > self.committed)
    }

    /// The open commit was made; its number.
    pub(super) fn committed(&mut self) -> u64 {
        self.committed += 1;
        self.committed
    }

    /// Commits up to `number` are on the disk.
    pub(super) fn durable(&mut self, number: u64) {
        debug_assert!(number <= self.committed);
        self.durable = self.durable.max(number);
    }

    /// The next output that may leave.
    pub(super) fn pop(&mut self) -> Option<Output> {
        let (needs, _) = self.waiting.front()?;
        if *needs > self.durable {
            return None;
        }
        self.waiting.pop_front().map(|(_, output)| output)
    }

    /// What may never leave, because its commit failed.
    pub(super) fn drain_lost(&mut self) -> VecDeque<(u64, Output)> {
        std::mem::take(&mut self.waiting)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    #[test]
    fn c4_an_output_waits_for_the_highest_commit_at_its_making() {
        let log = Rc::new(RefCell::new(Vec::new()));
        let call = |name: &'static str| {
            let log = Rc::clone(&log);
            Output::Call(Box::new(move || log.borrow_mut().push(name)))
        };
        let run = |gate: &mut OutputGate| {
            while let Some(Output::Call(call)) = gate.pop() {
                call();
            }
            std::mem::take(&mut *log.borrow_mut())
        };
        let mut gate = OutputGate::default();
        gate.push(call("before the write"), false);
        gate.push(call("after the write"), true);
        assert_eq!(run(&mut gate), ["before the write"]);
        let first = gate.committed();
        gate.push(call("reads what is not durable"), false);
        gate.push(call("second write"), true);
        let second = gate.committed();
        assert_eq!(run(&mut gate), [""; 0]);
        gate.durable(first);
        assert_eq!(run(&mut gate), ["after the write", "reads what is not durable"]);
        gate.durable(second);
        assert_eq!(run(&mut gate), ["second write"]);
        assert!(gate.is_empty());
    }
}
