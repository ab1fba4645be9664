use super::{
    event::Event,
    queue::{Queue, SendError},
};
use do_core::Message;
use futures::task::AtomicWaker;
use std::{
    collections::VecDeque,
    ops::RangeInclusive,
    sync::{Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
};

/// What the handles and the driver share. No lock is held across an await, nor while the other is taken.
#[derive(Debug)]
pub(super) struct Shared {
    queue: Mutex<Queue>,
    events: Mutex<Events>,
    /// Woken when there is something to send, room for events, or the wish to close.
    driver: AtomicWaker,
    /// Woken when there are events.
    reader: AtomicWaker,
}

#[derive(Debug)]
struct Events {
    waiting: VecDeque<Event>,
    /// As many may wait before nothing more is read.
    most: usize,
    over: bool,
    close: bool,
}

impl Shared {
    pub(super) fn new(queue: Queue, most: usize) -> Self {
        let events = Events { waiting: VecDeque::new(), most, over: false, close: false };
        Self {
            queue: Mutex::new(queue),
            events: Mutex::new(events),
            driver: AtomicWaker::new(),
            reader: AtomicWaker::new(),
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn events(&self) -> MutexGuard<'_, Events> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn send(&self, message: Message) -> Result<u64, SendError> {
        let sent = self.queue().push(message);
        if sent.is_ok() {
            self.driver.wake();
        }
        sent
    }

    /// The application wants the end.
    pub(super) fn close(&self) {
        self.queue().close();
        self.events().close = true;
        self.driver.wake();
    }

    pub(super) fn poll_event(&self, cx: &mut Context<'_>) -> Poll<Option<Event>> {
        self.reader.register(cx.waker());
        let mut events = self.events();
        match events.waiting.pop_front() {
            Some(event) => {
                // The driver looks again when it may read on.
                let reads_on = events.waiting.len() + 1 == events.most;
                drop(events);
                if reads_on {
                    self.driver.wake();
                }
                Poll::Ready(Some(event))
            }
            None if events.over => Poll::Ready(None),
            None => Poll::Pending,
        }
    }

    /// For the driver: to be called before it looks at anything here.
    pub(super) fn register(&self, cx: &Context<'_>) {
        self.driver.register(cx.waker());
    }

    pub(super) fn wants_close(&self) -> bool {
        self.events().close
    }

    /// Whether so many events wait that nothing more is to be read.
    pub(super) fn is_full(&self) -> bool {
        let events = self.events();
        events.waiting.len() >= events.most
    }

    pub(super) fn emit(&self, event: Event) {
        self.events().waiting.push_back(event);
        self.reader.wake();
    }

    pub(super) fn has_message(&self) -> bool {
        !self.queue().is_empty()
    }

    /// The next message with its receipt, and what the longest may be if it is longer.
    pub(super) fn next_message(&self) -> Option<(u64, Message, Option<usize>)> {
        let mut queue = self.queue();
        let (receipt, message) = queue.pop()?;
        let limit = Some(queue.longest()).filter(|longest| message.len() > *longest);
        Some((receipt, message, limit))
    }

    pub(super) fn set_longest(&self, bytes: usize) {
        self.queue().set_longest(bytes);
    }

    /// Nothing more is sent: the receipts of what was not.
    pub(super) fn stop(&self) -> Option<RangeInclusive<u64>> {
        let mut queue = self.queue();
        queue.close();
        queue.clear()
    }

    /// Nothing more happens.
    pub(super) fn finish(&self) {
        self.events().over = true;
        self.reader.wake();
    }
}
