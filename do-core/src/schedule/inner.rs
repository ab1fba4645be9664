//! What a schedule knows beside its tables, and the rule that it keeps with the raw slot: rows pending, then the raw
//! alarm is armed at or before the soonest.
//!
//! What the raw slot was set to is written down beside the rows, in the same commit, so that it holds over evictions,
//! crashes and transactions that are rolled back, and no change needs to ask for it.

use super::{Settings, Stats, store::Store};
use crate::{AlarmScheduler, Error, ObjectState, Timestamp};
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

/// When arming is tried again after it failed, if no other event comes before.
const REPAIRS: [Duration; 4] =
    [Duration::from_secs(1), Duration::from_secs(4), Duration::from_secs(16), Duration::from_secs(64)];

pub(super) struct Inner<S: ObjectState> {
    pub(super) state: S,
    pub(super) store: Store<S::Sql>,
    pub(super) settings: Settings,
    /// The constructor is over, so that the raw slot may be touched (rule E12).
    awake: Cell<bool>,
    /// The alarm runs: its end sets the raw slot (rule E10).
    pub(super) running: Cell<bool>,
    repairing: Cell<bool>,
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
            running: Cell::new(false),
            repairing: Cell::new(false),
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

    /// The first event that is not the alarm's: what an earlier instance left undone, and what the constructor put.
    ///
    /// What is known to be missing is set at once, in the event's own turn: a crash right behind it must not leave rows
    /// without an alarm. What the raw slot really is, is asked for behind it.
    fn wake(self: &Rc<Self>) {
        self.is_awake();
        if self.running.get() {
            return; // its end looks at all of it
        }
        let set = match self.store.soonest() {
            Ok((None, None)) => return,
            Ok((Some(due), marked)) if !self.is_armed_for(marked, due) => {
                self.set(self.raw_time(due)).map(Some)
            }
            known => known.map(|_| None),
        };
        let inner = Rc::clone(self);
        self.state.wait_until(async move {
            let checked = async {
                if let Some(set) = set? {
                    set.await?;
                }
                inner.compare().await
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

    /// Sets the raw slot and writes that down.
    pub(super) fn set(
        &self,
        at: Timestamp,
    ) -> Result<impl Future<Output = Result<(), Error>> + use<S>, Error> {
        self.store.mark(Some(at))?;
        self.count(|stats| stats.alarms_set += 1);
        Ok(self.state.alarms().set(at))
    }

    /// What the raw slot is to be set to for a deadline.
    pub(super) fn raw_time(&self, due: Timestamp) -> Timestamp {
        due.max(self.state.now() + SOON)
    }

    fn is_armed_for(&self, armed: Option<Timestamp>, due: Timestamp) -> bool {
        armed.is_some_and(|at| at <= self.raw_time(due) && at >= self.state.now() - LOST_AFTER)
    }

    /// After a change: sets the raw slot if the soonest deadline is sooner than it. Never moves it later: a wake for
    /// nothing costs less than a set for every change, and moves it then.
    ///
    /// Takes effect at the call; what is returned says whether the platform took it.
    pub(super) fn arm(&self) -> Result<Option<impl Future<Output = Result<(), Error>> + use<S>>, Error> {
        if self.running.get() || !self.awake.get() {
            return Ok(None);
        }
        match self.store.soonest()? {
            (Some(due), armed) if !self.is_armed_for(armed, due) => self.set(self.raw_time(due)).map(Some),
            _ => Ok(None),
        }
    }

    /// Waits for what [`arm`](Self::arm) gave; also when nobody waits for what this gives.
    pub(super) fn armed(
        self: &Rc<Self>,
        set: Option<impl Future<Output = Result<(), Error>> + 'static>,
    ) -> Armed<S> {
        Armed { inner: Rc::clone(self), set: set.map(|set| Box::pin(set) as _) }
    }

    /// The rows are there and no alarm: tries it again and again, unless another change or event does before.
    pub(super) fn failed_to_arm(self: &Rc<Self>, error: &Error) {
        tracing::warn!(object = %self.state.id(), %error, "the alarm of the schedule could not be set");
        if let Err(error) = self.store.mark(None) {
            tracing::warn!(object = %self.state.id(), %error, "nor could that be written down");
        }
        if self.repairing.replace(true) {
            return;
        }
        let inner = Rc::clone(self);
        self.state.wait_until(async move {
            for wait in REPAIRS {
                inner.state.sleep(wait).await;
                if inner.check().await.is_ok() {
                    break;
                }
            }
            inner.repairing.set(false);
        });
    }

    /// Compares with the raw slot itself. Whether something was wrong.
    pub(super) async fn check(&self) -> Result<bool, Error> {
        if self.running.get() || !self.awake.get() {
            return Ok(false);
        }
        if self.store.soonest()? == (None, None) {
            return Ok(false);
        }
        self.compare().await
    }

    async fn compare(&self) -> Result<bool, Error> {
        let armed = self.state.alarms().get().await?;
        if self.running.get() {
            return Ok(false);
        }
        // Read again: from here to the `set` or `delete` nothing is awaited.
        let (soonest, marked) = self.store.soonest()?;
        match soonest {
            Some(due) if !self.is_armed_for(armed, due) => {
                self.set(self.raw_time(due))?.await?;
                return Ok(true);
            }
            Some(_) if armed != marked => self.store.mark(armed)?,
            Some(_) => {}
            None => self.disarm(armed).await?,
        }
        Ok(false)
    }

    /// Nothing is pending: then there is no alarm.
    pub(super) async fn disarm(&self, armed: Option<Timestamp>) -> Result<(), Error> {
        self.store.mark(None)?;
        if armed.is_some() {
            self.count(|stats| stats.alarms_deleted += 1);
            self.state.alarms().delete().await?;
        }
        Ok(())
    }

    /// After something was taken away.
    pub(super) async fn disarm_if_empty(&self) -> Result<(), Error> {
        if self.running.get() || !self.awake.get() {
            return Ok(());
        }
        match self.store.soonest()? {
            (None, Some(marked)) => self.disarm(Some(marked)).await,
            _ => Ok(()),
        }
    }
}

/// What a `set` of the raw slot gave.
type Setting = Pin<Box<dyn Future<Output = Result<(), Error>>>>;

/// The raw slot is being set. If this is dropped, its failure is seen all the same: the rows say that it is set.
pub(super) struct Armed<S: ObjectState> {
    inner: Rc<Inner<S>>,
    set: Option<Setting>,
}

impl<S: ObjectState> Future for Armed<S> {
    type Output = Result<(), Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(set) = &mut self.set else { return Poll::Ready(Ok(())) };
        let result = ready!(set.as_mut().poll(cx));
        self.set = None;
        Poll::Ready(result.inspect_err(|error| self.inner.failed_to_arm(error)))
    }
}

impl<S: ObjectState> Drop for Armed<S> {
    fn drop(&mut self) {
        if let Some(set) = self.set.take() {
            let inner = Rc::clone(&self.inner);
            self.inner.state.wait_until(async move {
                if let Err(error) = set.await {
                    inner.failed_to_arm(&error);
                }
            });
        }
    }
}
