use do_core::Message;
use std::{collections::VecDeque, fmt, ops::RangeInclusive};

/// What waits to be written: bounded, in order, each with a number of its own.
#[derive(Debug)]
pub(super) struct Queue {
    waiting: VecDeque<Message>,
    bytes: usize,
    /// The receipt of the next message; the waiting ones have those before it.
    next: u64,
    max_messages: usize,
    max_bytes: usize,
    /// The longest message that the room takes, as far as it has said so.
    longest: usize,
    closed: bool,
}

/// Why a message was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotSent {
    /// Too much waits already, because there is no connection or the server reads slowly.
    #[error("too much is waiting to be sent")]
    Full,
    /// The room, or the queue, takes none that long.
    #[error("the message is longer than {limit} bytes")]
    TooLong {
        /// The longest, in bytes.
        limit: usize,
    },
    /// The client has stopped, or was told to.
    #[error("the client has stopped")]
    Stopped,
    /// The value cannot be written as JSON.
    #[error("the value is not expressible as JSON")]
    Json,
}

/// A message that was not taken, and why.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct SendError {
    pub(super) reason: NotSent,
    pub(super) message: Option<Message>,
}

impl SendError {
    /// Why.
    pub fn reason(&self) -> NotSent {
        self.reason
    }

    /// The message; `None` when there never was one, because its value could not be written as JSON.
    pub fn into_message(self) -> Option<Message> {
        self.message
    }
}

/// Without the message, which may be long.
impl fmt::Debug for SendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SendError").field("reason", &self.reason).finish_non_exhaustive()
    }
}

impl Queue {
    pub(super) fn new(max_messages: usize, max_bytes: usize) -> Self {
        Self {
            waiting: VecDeque::new(),
            bytes: 0,
            next: 1,
            max_messages,
            max_bytes,
            longest: usize::MAX,
            closed: false,
        }
    }

    /// Takes a message and gives its receipt.
    pub(super) fn push(&mut self, message: Message) -> Result<u64, SendError> {
        let limit = self.longest.min(self.max_bytes);
        let reason = if self.closed {
            NotSent::Stopped
        } else if message.len() > limit {
            NotSent::TooLong { limit }
        } else if self.waiting.len() >= self.max_messages || message.len() > self.max_bytes - self.bytes {
            NotSent::Full
        } else {
            self.bytes += message.len();
            self.waiting.push_back(message);
            self.next += 1;
            return Ok(self.next - 1);
        };
        Err(SendError { reason, message: Some(message) })
    }

    /// How long messages may be, as far as it is known.
    pub(super) fn longest(&self) -> usize {
        self.longest
    }

    /// The oldest, with its receipt. One that came before it was known how long they may be can be longer.
    pub(super) fn pop(&mut self) -> Option<(u64, Message)> {
        let receipt = self.next - self.waiting.len() as u64;
        let message = self.waiting.pop_front()?;
        self.bytes -= message.len();
        Some((receipt, message))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// The room said how long messages may be.
    pub(super) fn set_longest(&mut self, bytes: usize) {
        self.longest = bytes;
    }

    /// Takes no more.
    pub(super) fn close(&mut self) {
        self.closed = true;
    }

    /// The receipts of all that still wait, who are then forgotten.
    pub(super) fn clear(&mut self) -> Option<RangeInclusive<u64>> {
        let first = self.next - self.waiting.len() as u64;
        self.waiting = VecDeque::new();
        self.bytes = 0;
        (first < self.next).then(|| first..=self.next - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(queue: &mut Queue, message: &str) -> Result<u64, NotSent> {
        queue.push(message.into()).map_err(|error| {
            assert_eq!(error.clone().into_message(), Some(message.into()), "it comes back");
            error.reason()
        })
    }

    #[test]
    fn a_queue_is_bounded_by_messages_and_bytes_and_says_so() {
        let mut queue = Queue::new(3, 10);
        assert_eq!(reason(&mut queue, "12345678901"), Err(NotSent::TooLong { limit: 10 }));
        assert_eq!([reason(&mut queue, "12345"), reason(&mut queue, "1234")], [Ok(1), Ok(2)]);
        assert_eq!([reason(&mut queue, "12"), reason(&mut queue, "1")], [Err(NotSent::Full), Ok(3)]);
        assert_eq!(reason(&mut queue, ""), Err(NotSent::Full));
        assert_eq!(queue.pop(), Some((1, "12345".into())));
        assert_eq!(reason(&mut queue, "12345"), Ok(4));
        queue.pop();
        assert_eq!(queue.clear(), Some(3..=4));
        assert_eq!((queue.clear(), queue.pop()), (None, None));
        queue.set_longest(2);
        assert_eq!(
            [reason(&mut queue, "123"), reason(&mut queue, "12")],
            [Err(NotSent::TooLong { limit: 2 }), Ok(5)]
        );
        queue.close();
        assert_eq!(reason(&mut queue, ""), Err(NotSent::Stopped));
    }
}
