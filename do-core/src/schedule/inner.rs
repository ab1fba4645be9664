//! What a schedule knows beside its tables, and the rule that it keeps with the raw slot: rows pending, then the raw
//! alarm is set for the soonest or before.
//!
//! The rule makes it unnecessary to know what the slot is set to: as long as it holds, a change must set the slot only
//! when the soonest row becomes sooner by it. Row and alarm are one commit, and roll back as one (rule E13).

use super::{Settings, Stats, store::Store};
use crate::{AlarmScheduler, Error, ObjectState, Timestamp, limits::ALARM_MAX_MS};
use std::{
    cell::Cell,
    pin::Pin,
    rc::Rc,
    task::{Context, Poll, ready},
    time::Duration,
};

/// An alarm that was to run so long ago is taken for lost: the platform has dropped it, or forgotten.
const LOST_AFTER: Duration = Duration::from_secs(60);

/// Raw slots are set beyond the present moment: one at it or before, set while the alarm runs, may come late (rule E4b).
const SOON: Duration = Duration::from_millis(1);

/// When arming is tried again after it failed, if nothing else does before; the last one again and again.
const REPAIRS: [Duration; 4] =
    [Duration::from_secs(1), Duration::from_secs(4), Duration::from_secs(16), Duration::from_secs(64)];

pub(super) struct Inner<S: ObjectState> {
    pub(super) state: S,
    pub(super) store: Store<S::Sql>,
    pub(super) settings: Settings,
    /// The constructor is over, so that the raw slot may be touched (rule E12).
    awake: Cell<bool>,
    /// The rule may not hold: the constructor put rows, or the slot could not be set.
    pub(super) doubt: Cell<bool>,
    /// The alarm runs: its end sets the raw slot (rule E10).
    pub(super) running: Cell<bool>,
    /// In this run changes set the slot all the same.
    pub(super) forsaken: Cell<bool>,
    repairing: Cell<bool>,
    /// How often the slot could not be set.
    faults: Cell<u64>,
    /// Runs in a row that the storage made fail.
    pub(super) failures: Cell<u32>,
    pub(super) stats: Cell<Stats>,
}

impl<S: ObjectState> Inner<S> {
    pub(super) fn new(state: &S, settings: Settings) -> Rc<Self> {
        let inner = Rc::new(Self {
            state: state.clone(),
            store: Store::new(state.sql().clone()),
            settings,
            awake: Cell::new(false),
            doubt: Cell::new(false),
            running: Cell::new(false),
            forsaken: Cell::new(false),
            repairing: Cell::new(false),
            faults: Cell::new(0),
            failures: Cell::new(0),
            stats: Cell::default(),
        });
        let woken = Rc::clone(&inner);
        state.at_first_event(move || woken.wake());
        inner
    }

    /// From here on changes arm the raw slot.
    pub(super) fn is_awake(&self) {
        self.awake.set(true);
    }

    /// The first event that is not the alarm's: what the constructor put, and what an earlier instance left undone.
    fn wake(self: &Rc<Self>) {
        self.is_awake();
        // In the turn of the event, so that nothing is committed before it.
        let set = if self.doubt.get() && !self.running.get() {
            self.store.soonest().map(|due| self.arm(None, due))
        } else {
            Ok(self.armed(None))
        };
        let inner = Rc::clone(self);
        self.state.wait_until(async move {
            let checked = async {
                set?.await?;
                inner.check().await
            };
            if let Err(error) = checked.await {
                inner.failed_to_arm(&error);
            }
        });
    }

    pub(super) fn count(&self, change: impl FnOnce(&mut Stats)) {
        let mut stats = self.stats.get();
        change(&mut stats);
        self.stats.set(stats);
    }

    pub(super) fn set(&self, at: Timestamp) -> impl Future<Output = Result<(), Error>> + use<S> {
        self.count(|stats| stats.alarms_set += 1);
        self.state.alarms().set(at)
    }

    /// What the raw slot is to be set to for a deadline.
    pub(super) fn raw_time(&self, due: Timestamp) -> Timestamp {
        // A row that nobody here wrote may say a time that no alarm can have (rule E1).
        due.max(self.state.now() + SOON).min(Timestamp::from_millis(ALARM_MAX_MS))
    }

    /// Whether what was to come at that time did not, and nothing will.
    fn is_lost(&self, at: Timestamp) -> bool {
        at < self.state.now() - LOST_AFTER
    }

    /// Changes rows, all of it or nothing, and sets the raw slot if that makes the soonest sooner. Never moves it later:
    /// a wake for nothing costs less than a set for every change, and moves it then.
    ///
    /// Takes effect at the call; what is returned says whether the platform took it.
    ///
    /// `body` says when what it put is due; nothing if it left all as it was.
    pub(super) fn change<T>(
        self: &Rc<Self>,
        body: impl FnOnce() -> Result<(T, Option<Timestamp>), Error>,
    ) -> Result<(T, Armed<S>), Error> {
        self.store.together(|| {
            let before = self.store.soonest()?;
            let (value, due) = body()?;
            Ok((value, self.arm(before, due)))
        })
    }

    fn arm(self: &Rc<Self>, before: Option<Timestamp>, due: Option<Timestamp>) -> Armed<S> {
        if self.running.get() {
            // Without the row that runs the slot was emptied, as by `delete_all`: then this run does not come again if it
            // is cut off, and nobody would set the slot (rules E10, E14).
            self.forsaken.set(self.forsaken.get() || (before.is_none() && due.is_some()));
            if !self.forsaken.get() {
                return self.armed(None);
            }
        }
        if !self.awake.get() {
            self.doubt.set(self.doubt.get() || due.is_some());
            return self.armed(None);
        }
        let is_earlier =
            before.is_none_or(|before| due.is_some_and(|due| due < before) || self.is_lost(before));
        let soonest = before.into_iter().chain(due).min().filter(|_| is_earlier || self.doubt.get());
        self.armed(soonest)
    }

    /// Sets the raw slot for a deadline. Its failure is seen also when nobody waits for what this gives.
    pub(super) fn armed(self: &Rc<Self>, due: Option<Timestamp>) -> Armed<S> {
        let set = due.map(|due| Box::pin(self.set(self.raw_time(due))) as _);
        Armed { inner: Rc::clone(self), set, faults: self.faults.get() }
    }

    /// A `set` that was made when there had been so many faults.
    fn set_ended(self: &Rc<Self>, result: Result<(), Error>, faults: u64) -> Result<(), Error> {
        match &result {
            Ok(()) => self.holds_since(faults),
            Err(error) => self.failed_to_arm(error),
        }
        result
    }

    /// The rule held when there had been so many faults: one since then was of something that came later.
    fn holds_since(&self, faults: u64) {
        if self.faults.get() == faults {
            self.doubt.set(false);
        }
    }

    /// The rows are there and no alarm: tries it again and again, unless another change or event does before.
    pub(super) fn failed_to_arm(self: &Rc<Self>, error: &Error) {
        tracing::warn!(object = %self.state.id(), %error, "the alarm of the schedule could not be set");
        self.doubt.set(true);
        self.faults.set(self.faults.get() + 1);
        if self.repairing.replace(true) {
            return;
        }
        let inner = Rc::clone(self);
        self.state.wait_until(async move {
            let mut waits = REPAIRS.into_iter();
            let mut wait = Duration::ZERO;
            while inner.doubt.get() {
                wait = waits.next().unwrap_or(wait);
                inner.state.sleep(wait).await;
                drop(inner.check().await); // which tells
            }
            inner.repairing.set(false);
        });
    }

    /// Compares with the raw slot itself. Whether something was wrong.
    pub(super) async fn check(self: &Rc<Self>) -> Result<bool, Error> {
        if self.store.soonest()?.is_none() {
            self.doubt.set(false);
            return Ok(false);
        }
        let armed = self.state.alarms().get().await?;
        if self.running.get() || !self.awake.get() {
            return Ok(false);
        }
        // Read again: from here to the `set` nothing is awaited.
        let Some(due) = self.store.soonest()? else {
            self.doubt.set(false);
            return Ok(false);
        };
        let wrong = armed.is_none_or(|armed| armed > self.raw_time(due) || self.is_lost(armed));
        if wrong {
            self.armed(Some(due)).await?;
        } else {
            self.doubt.set(false);
        }
        Ok(wrong)
    }

    /// Something was taken away: when nothing is pending any more there is no alarm.
    pub(super) async fn disarm_if_empty(&self) -> Result<(), Error> {
        if self.running.get() || !self.awake.get() || self.store.soonest()?.is_some() {
            return Ok(());
        }
        self.disarm().await
    }

    pub(super) async fn disarm(&self) -> Result<(), Error> {
        self.count(|stats| stats.alarms_deleted += 1);
        self.state.alarms().delete().await
    }
}

/// What a `set` of the raw slot gave.
type Setting = Pin<Box<dyn Future<Output = Result<(), Error>>>>;

/// The raw slot is being set. If this is dropped, its failure is seen all the same: the rows say that it is set.
pub(super) struct Armed<S: ObjectState> {
    inner: Rc<Inner<S>>,
    set: Option<Setting>,
    faults: u64,
}

impl<S: ObjectState> Future for Armed<S> {
    type Output = Result<(), Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(set) = &mut self.set else { return Poll::Ready(Ok(())) };
        let result = ready!(set.as_mut().poll(cx));
        self.set = None;
        Poll::Ready(self.inner.set_ended(result, self.faults))
    }
}

impl<S: ObjectState> Drop for Armed<S> {
    fn drop(&mut self) {
        if let Some(set) = self.set.take() {
            let (inner, faults) = (Rc::clone(&self.inner), self.faults);
            self.inner.state.wait_until(async move { drop(inner.set_ended(set.await, faults)) });
        }
    }
}
