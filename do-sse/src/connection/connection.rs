use super::queue::{Entry, Limits, Pushed, Queue};
use crate::stats::Cause;
use bytes::Bytes;
use do_core::Timestamp;
use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll, Waker},
    time::Duration,
};

/// What all connections of a feed have in common with it.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    /// Outputs up to this one may leave.
    durable: AtomicU64,
    departed: Mutex<Departed>,
}

#[derive(Debug, Default)]
struct Departed {
    serials: Vec<u64>,
    waker: Option<Waker>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing panics while one is locked; if something did, what it guards would still be whole.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    pub(crate) fn durable(&self) -> u64 {
        self.durable.load(Ordering::Acquire)
    }

    pub(crate) fn release(&self, ticket: u64) {
        self.durable.fetch_max(ticket, Ordering::AcqRel);
    }

    /// Those whose readers went since the last time.
    pub(crate) fn take_departed(&self) -> Vec<u64> {
        std::mem::take(&mut lock(&self.departed).serials)
    }

    /// Ready when somebody went.
    pub(crate) fn poll_departed(&self, cx: &Context<'_>) -> Poll<()> {
        let mut departed = lock(&self.departed);
        if !departed.serials.is_empty() {
            return Poll::Ready(());
        }
        departed.waker = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Lets who waits for departures look again.
    pub(crate) fn nudge(&self) {
        let waker = lock(&self.departed).waker.take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// One connection: known by a number that is never used again.
#[derive(Debug)]
pub(crate) struct Connection {
    serial: u64,
    queue: Mutex<Queue>,
    shared: Arc<Shared>,
}

impl Connection {
    pub(crate) fn new(serial: u64, shared: &Arc<Shared>, now: Timestamp) -> Arc<Self> {
        Arc::new(Self { serial, queue: Mutex::new(Queue::new(now)), shared: Arc::clone(shared) })
    }

    /// Puts what a newcomer is told first into the queue, which is empty.
    pub(crate) fn begin(&self, preface: Vec<Bytes>, ticket: u64) {
        lock(&self.queue).begin(preface, ticket);
    }

    /// Puts an entry into the queue. It is read when the reader is [woken](Self::wake), which `may_leave` does at once.
    pub(crate) fn push(&self, entry: Entry, may_leave: bool, now: Timestamp, limits: &Limits) -> Pushed {
        let mut queue = lock(&self.queue);
        let pushed = queue.push(entry, now, limits);
        if may_leave || pushed.ended.is_some() {
            wake(queue);
        }
        pushed
    }

    /// Lets the reader look.
    pub(crate) fn wake(&self) {
        wake(lock(&self.queue));
    }

    /// [`Cause::Stalled`] and the end, if nothing was read for so long.
    pub(crate) fn end_if_stalled(&self, now: Timestamp, stall: Duration) -> Option<Cause> {
        let mut queue = lock(&self.queue);
        if !queue.is_stalled(now, stall) {
            return None;
        }
        queue.end();
        wake(queue);
        Some(Cause::Stalled)
    }

    pub(crate) fn stalls_at(&self, stall: Duration) -> Option<Timestamp> {
        lock(&self.queue).stalls_at(stall)
    }

    /// Ends behind what waits, and not before this output may leave.
    pub(crate) fn drain(&self, ticket: u64) {
        let mut queue = lock(&self.queue);
        queue.drain(ticket);
        wake(queue);
    }

    /// Its feed is gone: what may leave does, and then it ends.
    pub(crate) fn orphan(&self) {
        self.give_up(self.shared.durable().saturating_add(1));
    }

    /// The outputs from this one on never leave: what was before does, and then it ends.
    pub(crate) fn give_up(&self, ticket: u64) {
        let mut queue = lock(&self.queue);
        queue.forget_from(ticket);
        wake(queue);
    }

    pub(crate) fn waiting_bytes(&self) -> usize {
        lock(&self.queue).bytes()
    }

    pub(super) fn poll_read(&self, cx: &Context<'_>) -> Poll<Option<Bytes>> {
        let mut queue = lock(&self.queue);
        // Asked for under the lock: who releases wakes behind it.
        match queue.read(self.shared.durable()) {
            Some(chunk) => Poll::Ready(chunk),
            None => {
                queue.reader = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }

    pub(super) fn reader_is_gone(&self) {
        let mut queue = lock(&self.queue);
        queue.is_reader_gone = true;
        queue.end();
        // It keeps what it would wake in memory.
        let reader = queue.reader.take();
        drop(queue);
        drop(reader);
        let mut departed = lock(&self.shared.departed);
        departed.serials.push(self.serial);
        let waker = departed.waker.take();
        drop(departed);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

fn wake(mut queue: MutexGuard<'_, Queue>) {
    let reader = queue.reader.take();
    drop(queue);
    if let Some(reader) = reader {
        reader.wake();
    }
}
