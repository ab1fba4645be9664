//! The alarm of what expires: set for the soonest deadline or before, and moved only earlier by a change.
//!
//! Whether it is set is in the database, written and rolled back together with what it is for. An early wake costs less
//! than a write for each renewal: it finds nothing and is set for what is soonest then.
//!
//! No decision depends on the alarm. It tidies and gives notice, so one that cannot be set does not fail the call: that is
//! tried again for as long as the instance lives.

use do_core::{Alarm, AlarmScheduler, Error, ObjectState, Timestamp, limits::ALARM_MAX_MS};
use std::{cell::Cell, time::Duration};

/// When setting it is tried again after it failed; the last one again and again.
const REPAIRS: [u64; 4] = [1, 4, 16, 64];

pub(crate) struct Deadline<S: ObjectState> {
    state: S,
    alarm: Alarm<S>,
    /// The alarm may be set. The raw slot not in a constructor (rule E12); a slot of a schedule knows that itself, and
    /// may be all that an instance has whose only events are alarms of other slots.
    awake: Cell<bool>,
    repairing: Cell<bool>,
}

/// What has deadlines.
pub(crate) trait Due: 'static {
    /// The host.
    type State: ObjectState;

    fn deadline(&self) -> &Deadline<Self::State>;

    /// The soonest deadline.
    fn soonest(&self) -> Result<Option<Timestamp>, Error>;
}

impl<S: ObjectState> Deadline<S> {
    pub(crate) fn new(state: &S, alarm: Alarm<S>) -> Self {
        let awake = Cell::new(matches!(alarm, Alarm::Slot(_)));
        Self { state: state.clone(), alarm, awake, repairing: Cell::new(false) }
    }

    /// The alarm runs, or another event does.
    pub(crate) fn is_awake(&self) {
        self.awake.set(true);
    }
}

/// The first event that is not the alarm's: mends what an earlier instance could not, or what the constructor put.
pub(crate) fn wake<D: Due>(due: std::rc::Rc<D>) {
    due.deadline().is_awake();
    match due.soonest() {
        Ok(None) => {}
        Ok(Some(_)) => {
            let state = due.deadline().state.clone();
            state.wait_until(async move {
                if let Err(error) = compare(&*due).await {
                    failed(&due, &error);
                }
            });
        }
        Err(error) => failed(&due, &error),
    }
}

async fn compare<D: Due>(due: &D) -> Result<(), Error> {
    let alarm = &due.deadline().alarm;
    let armed = alarm.get().await?;
    match due.soonest()? {
        Some(soonest) if armed.is_none_or(|armed| armed > time(&due.deadline().state, soonest)) => {
            alarm.set(time(&due.deadline().state, soonest)).await
        }
        _ => Ok(()),
    }
}

/// A time that the slot takes: one at the present moment or before may come late (rule E4b).
fn time<S: ObjectState>(state: &S, at: Timestamp) -> Timestamp {
    at.max(state.now() + Duration::from_millis(1)).min(Timestamp::from_millis(ALARM_MAX_MS))
}

/// Sets the alarm in the turn of the call; the raw slot in a constructor with the first event.
pub(crate) fn arm<D: Due>(due: &std::rc::Rc<D>, at: Timestamp) {
    let deadline = due.deadline();
    if !deadline.awake.get() {
        return;
    }
    let set = deadline.alarm.set(time(&deadline.state, at));
    let of = std::rc::Rc::clone(due);
    deadline.state.wait_until(async move {
        if let Err(error) = set.await {
            failed(&of, &error);
        }
    });
}

/// Tries again, as long as the instance lives, which that keeps in memory.
fn failed<D: Due>(due: &std::rc::Rc<D>, error: &Error) {
    let deadline = due.deadline();
    tracing::warn!(object = %deadline.state.id(), %error, "an expiry's alarm could not be set");
    if deadline.repairing.replace(true) {
        return;
    }
    let of = std::rc::Rc::clone(due);
    deadline.state.wait_until(async move {
        let deadline = of.deadline();
        for wait in REPAIRS.into_iter().chain(std::iter::repeat(64)) {
            deadline.state.sleep(Duration::from_secs(wait)).await;
            match compare(&*of).await {
                Ok(()) => break,
                Err(error) => {
                    tracing::warn!(object = %deadline.state.id(), %error, "an expiry's alarm still cannot be set");
                }
            }
        }
        deadline.repairing.set(false);
    });
}
