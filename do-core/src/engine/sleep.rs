//! How objects wait: a timer of the engine, which keeps the object in memory (rule B3).

use super::{
    core::{Core, Due},
    timers::TimerId,
};
use std::{
    future::Future,
    pin::Pin,
    rc::Rc,
    task::{Context, Poll},
    time::Duration,
};

/// A sleep of an object. One of no time, too, lets other events in (rule C2).
pub(crate) struct Sleep {
    core: Rc<Core>,
    until: Duration,
    timer: Option<TimerId>,
    /// It keeps the object awake.
    pending: bool,
}

impl Sleep {
    pub(crate) fn new(core: Rc<Core>, duration: Duration) -> Self {
        let until = core.shared.elapsed.get().saturating_add(duration);
        Self { core, until, timer: None, pending: false }
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        let wake = Due::Wake(cx.waker().clone());
        let mut timers = this.core.shared.timers.borrow_mut();
        let Some(timer) = this.timer else {
            this.timer = Some(timers.insert(this.until, wake));
            this.pending = true;
            this.core.sleeping.set(this.core.sleeping.get() + 1);
            return Poll::Pending;
        };
        if timers.replace(timer, wake) {
            return Poll::Pending;
        }
        drop(timers);
        this.over();
        Poll::Ready(())
    }
}

impl Sleep {
    fn over(&mut self) {
        if std::mem::take(&mut self.pending) {
            self.core.sleeping.set(self.core.sleeping.get() - 1);
        }
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(timer) = self.timer {
            self.core.shared.timers.borrow_mut().remove(timer);
        }
        self.over();
    }
}
