//! Which tasks were woken: the only part of the engine that other threads touch.

use std::{
    fmt,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::{Wake, Waker},
};

/// Names a task within an engine: the object's place and the task's serial number, which is never used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TaskKey {
    pub(super) object: u32,
    pub(super) task: u64,
}

/// No task's number: waking it only tells that something ended.
pub(super) const NOBODY: u64 = 0;

/// Woken tasks in the order of their waking, and how to wake the driver.
pub(crate) struct ReadyQueue {
    woken: Mutex<Vec<TaskKey>>,
    driver: Box<dyn Fn() + Send + Sync>,
}

impl ReadyQueue {
    /// `driver` is called whenever the engine must be polled; it may be called at any time from any thread.
    pub(crate) fn new(driver: impl Fn() + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self { woken: Mutex::default(), driver: Box::new(driver) })
    }

    pub(super) fn push(&self, key: TaskKey) {
        self.woken.lock().unwrap_or_else(PoisonError::into_inner).push(key);
        (self.driver)();
    }

    /// Moves the woken tasks into `into`, which is empty.
    pub(super) fn take(&self, into: &mut Vec<TaskKey>) {
        std::mem::swap(&mut *self.woken.lock().unwrap_or_else(PoisonError::into_inner), into);
    }
}

impl fmt::Debug for ReadyQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ReadyQueue")
    }
}

/// The waker of one task.
pub(super) struct TaskWaker {
    queue: Arc<ReadyQueue>,
    key: TaskKey,
    /// In the queue already: waking twice before a poll polls once.
    queued: AtomicBool,
}

impl TaskWaker {
    pub(super) fn new(queue: &Arc<ReadyQueue>, key: TaskKey) -> Arc<Self> {
        Arc::new(Self { queue: Arc::clone(queue), key, queued: AtomicBool::new(false) })
    }

    pub(super) fn waker(self: &Arc<Self>) -> Waker {
        Arc::clone(self).into()
    }

    /// Before a poll: what wakes from here on is a new wake-up.
    pub(super) fn polling(&self) {
        self.queued.store(false, Ordering::Release);
    }
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.queued.swap(true, Ordering::AcqRel) {
            self.queue.push(self.key);
        }
    }
}
