//! For patterns: the alarm of what expires, set for the soonest deadline or before, and moved only earlier by a change.
//!
//! What is due is in the database, written and rolled back together with the alarm. An early wake costs less than a write
//! for each renewal: it finds nothing and is set for what is soonest then.
//!
//! No decision depends on the alarm. It tidies and gives notice, so one that cannot be set does not fail the call: that is
//! tried again for as long as the instance lives.

use crate::{Alarm, AlarmScheduler, Error, ObjectState, Timestamp, limits::ALARM_MAX_MS};
use std::{cell::Cell, fmt, rc::Rc, time::Duration};

/// When setting it is tried again after it failed; the last one again and again.
const REPAIRS: [u64; 4] = [1, 4, 16, 64];

/// An alarm that was to run so long ago is taken for lost: the platform has dropped it, or forgotten.
const LOST_AFTER: Duration = Duration::from_secs(60);

/// The alarm, and what this instance knows of it.
pub struct Deadline<S: ObjectState> {
    state: S,
    alarm: Alarm<S>,
    /// The alarm may be set. The raw slot not in a constructor (rule E12); a slot of a schedule knows that itself, and
    /// may be all that an instance has whose only events are alarms of other slots.
    awake: Cell<bool>,
    repairing: Cell<bool>,
    known: Cell<Known>,
    sets: Cell<u64>,
}

/// What this instance knows of the alarm without asking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Known {
    /// Nothing.
    Unknown,
    /// It is not set, or later than anything.
    Idle,
    /// It comes at that time or before.
    By(Timestamp),
}

/// What has deadlines.
pub trait Due: 'static {
    /// The host.
    type State: ObjectState;

    /// Its alarm.
    fn deadline(&self) -> &Deadline<Self::State>;

    /// By when the alarm has to come.
    ///
    /// # Errors
    /// Those of the storage.
    fn soonest(&self) -> Result<Option<Timestamp>, Error>;
}

impl<S: ObjectState> Deadline<S> {
    /// One that has not been looked at. Touches nothing.
    pub fn new(state: &S, alarm: Alarm<S>) -> Self {
        let awake = Cell::new(matches!(alarm, Alarm::Slot(_)));
        Self {
            state: state.clone(),
            alarm,
            awake,
            repairing: Cell::new(false),
            known: Cell::new(Known::Unknown),
            sets: Cell::new(0),
        }
    }

    /// The alarm runs, or another event does.
    pub fn is_awake(&self) {
        self.awake.set(true);
    }

    /// The alarm came: nothing is set any more.
    pub fn came(&self) {
        self.is_awake();
        self.known.set(Known::Idle);
    }

    /// Everything was deleted, or changed by other code.
    pub fn forget(&self) {
        self.known.set(Known::Unknown);
    }

    /// What is known. An alarm that is long past is lost, so nothing is known of it.
    pub fn known(&self) -> Known {
        match self.known.get() {
            Known::By(at) if at + LOST_AFTER < self.state.now() => Known::Unknown,
            known => known,
        }
    }

    /// How often this instance has set the alarm.
    pub fn sets(&self) -> u64 {
        self.sets.get()
    }
}

/// The first event that is not the alarm's: mends what an earlier instance could not, or what the constructor put.
pub fn wake<D: Due>(due: Rc<D>) {
    let deadline = due.deadline();
    deadline.is_awake();
    match due.soonest() {
        Ok(None) => deadline.known.set(Known::Idle),
        Ok(Some(soonest)) => {
            // Until it is compared: rows and alarm were one commit.
            deadline.known.set(Known::By(time(&deadline.state, soonest)));
            compare_later(due);
        }
        Err(error) => failed(&due, &error),
    }
}

/// Compares with the alarm itself, at the end of the turn.
fn compare_later<D: Due>(due: Rc<D>) {
    let state = due.deadline().state.clone();
    state.wait_until(async move {
        if let Err(error) = compare(&*due).await {
            failed(&due, &error);
        }
    });
}

async fn compare<D: Due>(due: &D) -> Result<(), Error> {
    let deadline = due.deadline();
    let armed = deadline.alarm.get().await?;
    let Some(soonest) = due.soonest()? else { return Ok(()) };
    let wanted = time(&deadline.state, soonest);
    let is_lost = |armed: Timestamp| armed + LOST_AFTER < deadline.state.now();
    if armed.is_none_or(|armed| armed > wanted || is_lost(armed)) {
        deadline.sets.set(deadline.sets.get() + 1);
        deadline.known.set(Known::By(wanted));
        deadline.alarm.set(wanted).await?;
    }
    Ok(())
}

/// A time that the slot takes: one at the present moment or before may come late (rule E4b).
fn time<S: ObjectState>(state: &S, at: Timestamp) -> Timestamp {
    at.max(state.now() + Duration::from_millis(1)).min(Timestamp::from_millis(ALARM_MAX_MS))
}

/// Sets the alarm in the turn of the call; the raw slot in a constructor with the first event.
pub fn arm<D: Due>(due: &Rc<D>, at: Timestamp) {
    let deadline = due.deadline();
    if !deadline.awake.get() {
        return;
    }
    let at = time(&deadline.state, at);
    let set = deadline.alarm.set(at);
    deadline.known.set(Known::By(at));
    deadline.sets.set(deadline.sets.get() + 1);
    let of = Rc::clone(due);
    deadline.state.wait_until(async move {
        if let Err(error) = set.await {
            failed(&of, &error);
        }
    });
}

/// Sees to it that the alarm comes at this time or before, for something that is in the database by now. Sets it only when
/// it does not yet. Looks into the database when this instance knows nothing: what is there has its alarm.
///
/// # Errors
/// Those of [`Due::soonest`].
pub fn arm_by<D: Due>(due: &Rc<D>, at: Timestamp) -> Result<(), Error> {
    let deadline = due.deadline();
    match deadline.known() {
        Known::By(known) if known <= time(&deadline.state, at) => return Ok(()),
        Known::Unknown => {
            // Looked at in the turn in which it is in doubt, and compared with the alarm itself behind it.
            if let Some(soonest) = due.soonest()?.filter(|soonest| *soonest < at) {
                deadline.known.set(Known::By(time(&deadline.state, soonest)));
                if deadline.awake.get() {
                    compare_later(Rc::clone(due));
                }
                return Ok(());
            }
        }
        Known::Idle | Known::By(_) => {}
    }
    arm(due, at);
    if deadline.awake.get() {
        // A transaction around it may be rolled back, and the alarm with it.
        look_later(due);
    }
    Ok(())
}

/// Looks at the end of the turn whether what was set is still there.
fn look_later<D: Due>(due: &Rc<D>) {
    let of = Rc::clone(due);
    due.deadline().state.wait_until(async move {
        let deadline = of.deadline();
        let armed = deadline.alarm.get().await;
        if let (Known::By(known), Ok(armed)) = (deadline.known.get(), armed)
            && armed.is_none_or(|armed| armed > known)
        {
            deadline.forget();
        }
    });
}

/// Tries again, as long as the instance lives, which that keeps in memory.
fn failed<D: Due>(due: &Rc<D>, error: &Error) {
    let deadline = due.deadline();
    deadline.forget();
    tracing::warn!(object = %deadline.state.id(), %error, "an expiry's alarm could not be set");
    if deadline.repairing.replace(true) {
        return;
    }
    let of = Rc::clone(due);
    deadline.state.wait_until(async move {
        let deadline = of.deadline();
        for wait in REPAIRS.into_iter().chain(std::iter::repeat(64)) {
            deadline.state.sleep(Duration::from_secs(wait)).await;
            match compare(&*of).await {
                Ok(()) => break,
                Err(error) => {
                    deadline.forget();
                    tracing::warn!(object = %deadline.state.id(), %error, "an expiry's alarm still cannot be set");
                }
            }
        }
        deadline.repairing.set(false);
    });
}

/// Not derived, because states need not have it.
impl<S: ObjectState> fmt::Debug for Deadline<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Deadline").field("known", &self.known.get()).finish_non_exhaustive()
    }
}
