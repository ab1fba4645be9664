//! For patterns: the alarm of what expires, set for the soonest deadline or before, and moved only earlier by a change.
//!
//! What is due is in the database, written and rolled back together with the alarm. An early wake costs less than a write
//! for each renewal: it finds nothing and is set for what is soonest then.
//!
//! What this instance believes of the alarm ([`Known`]) spares asking for it. What an instance finds at its first event is
//! compared with the alarm itself, and each `set` at the end of its turn; until then nothing is believed any more once a
//! transaction was rolled back, which may have taken the alarm with it. Nothing is believed of an alarm that is a minute
//! late.
//!
//! No decision depends on the alarm. It tidies and gives notice, so one that cannot be set does not fail the call: that is
//! tried again for as long as the instance lives.

use crate::{Alarm, AlarmScheduler, Error, ObjectState, SqlStorage, Timestamp, limits::ALARM_MAX_MS};
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
    /// A [`Run`] is under way, whose end sets the alarm (rule E10).
    running: Cell<bool>,
    /// In this run changes set the alarm all the same.
    forsaken: Cell<bool>,
    known: Cell<Known>,
    /// What is known is of this turn, which had rolled so many transactions back: the next one may take it away.
    unsettled: Cell<Option<u64>>,
    /// It is compared at the end of this turn.
    looking: Cell<bool>,
    repairing: Cell<bool>,
    sets: Cell<u64>,
    faults: Cell<u64>,
}

/// What this instance knows of the alarm without asking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Known {
    /// Nothing.
    Unknown,
    /// It is not set, or only for what is not there any more.
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
            running: Cell::new(false),
            forsaken: Cell::new(false),
            known: Cell::new(Known::Unknown),
            unsettled: Cell::new(None),
            looking: Cell::new(false),
            repairing: Cell::new(false),
            sets: Cell::new(0),
            faults: Cell::new(0),
        }
    }

    /// The alarm runs, or another event does.
    pub fn is_awake(&self) {
        self.awake.set(true);
    }

    /// Everything was deleted, the alarm with it (rule E14). One that runs does not come again if it is cut off, so that
    /// from here on changes set it also during the run.
    pub fn forget(&self) {
        self.known.set(Known::Unknown);
        self.forsaken.set(self.running.get());
    }

    /// What is known. An alarm that is long past is lost, so nothing is known of it.
    pub fn known(&self) -> Known {
        let is_shaken = self.unsettled.get().is_some_and(|since| since != self.state.sql().rollbacks());
        match self.known.get() {
            _ if is_shaken => Known::Unknown,
            Known::By(at) if self.is_lost(at) => Known::Unknown,
            known => known,
        }
    }

    /// How often this instance has set the alarm.
    pub fn sets(&self) -> u64 {
        self.sets.get()
    }

    fn is_lost(&self, at: Timestamp) -> bool {
        at + LOST_AFTER < self.state.now()
    }

    /// A time that the slot takes: one at the present moment or before may come late (rule E4b).
    fn time(&self, at: Timestamp) -> Timestamp {
        at.max(self.state.now() + Duration::from_millis(1)).min(Timestamp::from_millis(ALARM_MAX_MS))
    }

    /// Takes effect at the call.
    fn set(&self, at: Timestamp) -> impl Future<Output = Result<(), Error>> + use<S> {
        let at = self.time(at);
        self.known.set(Known::By(at));
        self.sets.set(self.sets.get() + 1);
        self.alarm.set(at)
    }
}

/// The first event that is not the alarm's: mends what an earlier instance could not, or what the constructor put.
pub fn wake<D: Due>(due: &Rc<D>) {
    let deadline = due.deadline();
    deadline.is_awake();
    if deadline.running.get() {
        return;
    }
    match due.soonest() {
        Ok(None) => deadline.known.set(Known::Idle),
        Ok(Some(soonest)) => {
            // Until it is compared: rows and alarm were one commit.
            deadline.known.set(Known::By(deadline.time(soonest)));
            compare_later(due);
        }
        Err(error) => failed(due, &error),
    }
}

/// For reads, which change nothing: an alarm that is long past is mended. Costs nothing otherwise.
pub fn watch<D: Due>(due: &Rc<D>) {
    let deadline = due.deadline();
    if let Known::By(at) = deadline.known.get()
        && deadline.is_lost(at)
        && deadline.awake.get()
        && !deadline.running.get()
    {
        compare_later(due);
    }
}

/// Compares with the alarm itself, at the end of the turn: a transaction may have been rolled back, and the alarm with it.
fn compare_later<D: Due>(due: &Rc<D>) {
    let deadline = due.deadline();
    deadline.unsettled.set(Some(deadline.state.sql().rollbacks()));
    if deadline.looking.replace(true) {
        return;
    }
    let (of, looking) = (Rc::clone(due), Flag(Rc::clone(due), |deadline| &deadline.looking));
    deadline.state.wait_until(async move {
        drop(looking);
        if let Err(error) = compare(&*of).await {
            failed(&of, &error);
        }
    });
}

/// Cleared with the work that it is for, which need not be begun: an instance that goes takes none any more.
struct Flag<D: Due>(Rc<D>, fn(&Deadline<D::State>) -> &Cell<bool>);

impl<D: Due> Drop for Flag<D> {
    fn drop(&mut self) {
        self.1(self.0.deadline()).set(false);
    }
}

/// Makes it so that the alarm comes when it has to, and known what it is.
async fn compare<D: Due>(due: &D) -> Result<(), Error> {
    let deadline = due.deadline();
    let armed = loop {
        let sets = deadline.sets.get();
        let armed = deadline.alarm.get().await?;
        if deadline.running.get() {
            return Ok(()); // its end compares
        }
        if deadline.sets.get() == sets {
            break armed.filter(|armed| !deadline.is_lost(*armed));
        }
    };
    // Nothing is awaited from here on, and no transaction is open.
    deadline.unsettled.set(None);
    if armed.is_some() && armed == by(deadline.known.get()) {
        return Ok(());
    }
    let Some(soonest) = due.soonest()? else {
        deadline.known.set(armed.map_or(Known::Idle, Known::By));
        return Ok(());
    };
    match armed {
        Some(armed) if armed <= deadline.time(soonest) => {
            deadline.known.set(Known::By(armed));
            Ok(())
        }
        _ => deadline.set(soonest).await,
    }
}

fn by(known: Known) -> Option<Timestamp> {
    match known {
        Known::By(at) => Some(at),
        Known::Idle | Known::Unknown => None,
    }
}

/// Sets the alarm in the turn of the call; the raw slot in a constructor with the first event.
pub fn arm<D: Due>(due: &Rc<D>, at: Timestamp) {
    let deadline = due.deadline();
    if !deadline.awake.get() {
        return;
    }
    let set = deadline.set(at);
    let of = Rc::clone(due);
    deadline.state.wait_until(async move {
        if let Err(error) = set.await {
            failed(&of, &error);
        }
    });
}

/// Sees to it that the alarm comes at this time or before, for something that is in the database by now. Sets it only when
/// it does not yet, and not in a [`Run`]. Looks into the database when this instance knows nothing: what is there has its
/// alarm. When that fails, what was written stays, and it is tried again.
pub fn arm_by<D: Due>(due: &Rc<D>, at: Timestamp) {
    let deadline = due.deadline();
    if !deadline.awake.get() || (deadline.running.get() && !deadline.forsaken.get()) {
        return;
    }
    match deadline.known() {
        Known::By(known) if known <= deadline.time(at) => return,
        Known::Unknown => {
            // Looked at in the turn in which it is in doubt, and compared with the alarm itself behind it.
            match due.soonest() {
                Ok(Some(soonest)) if soonest < at => {
                    if !deadline.repairing.get() {
                        deadline.known.set(Known::By(deadline.time(soonest)));
                        compare_later(due);
                    }
                    return;
                }
                Ok(_) => {}
                Err(error) => return failed(due, &error),
            }
        }
        Known::Idle | Known::By(_) => {}
    }
    arm(due, at);
    compare_later(due);
}

/// A run of what is due, in the alarm's handler or another. While it is there changes do not set the alarm: a handler that
/// sets it and fails then is not tried again (rule E10). Its [`end`](Self::end) does; one that is dropped without is a run
/// that failed, after which the alarm comes again by itself or is mended.
///
/// One that another event begins cannot be told from the alarm's own. When its process dies, what was put meanwhile has an
/// alarm all the same, as long as something was due: for that the alarm was set, for a time before any that a change could
/// ask for now, and it comes again. Only what is put between the look that found nothing due and the end of the run has none
/// then, until the next event.
#[must_use]
#[derive(Debug)]
pub struct Run<D: Due> {
    due: Rc<D>,
    ended: bool,
}

impl<D: Due> Run<D> {
    /// Begins. Not while another one is there.
    pub fn begin(due: &Rc<D>) -> Self {
        let deadline = due.deadline();
        deadline.is_awake();
        deadline.running.set(true);
        deadline.forsaken.set(false);
        Self { due: Rc::clone(due), ended: false }
    }

    /// Sets the alarm for what is soonest then; for now if `at_once`, because something is left to do.
    ///
    /// # Errors
    /// Those of the alarm and of [`Due::soonest`]. The handler is to fail with them: then the alarm comes again.
    pub async fn end(mut self, at_once: bool) -> Result<(), Error> {
        let deadline = self.due.deadline();
        // Asked for, because this need not be the alarm's handler, and the alarm can come twice.
        let armed = deadline.alarm.get().await?;
        // From here on nothing is awaited before it is set, and from here on changes set it by themselves.
        let soonest = if at_once { Some(deadline.state.now()) } else { self.due.soonest()? };
        self.ended = true;
        deadline.running.set(false);
        let armed = armed.filter(|armed| *armed > deadline.state.now());
        let set = match (soonest, armed) {
            (Some(soonest), armed) if armed.is_none_or(|armed| armed > deadline.time(soonest)) => {
                deadline.set(soonest)
            }
            (_, armed) => {
                deadline.known.set(armed.map_or(Known::Idle, Known::By));
                return Ok(());
            }
        };
        let set = set.await;
        if let Err(error) = &set {
            failed(&self.due, error);
        }
        set
    }
}

impl<D: Due> Drop for Run<D> {
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        let deadline = self.due.deadline();
        deadline.running.set(false);
        deadline.known.set(Known::Unknown);
        repair(&self.due);
    }
}

fn failed<D: Due>(due: &Rc<D>, error: &Error) {
    let deadline = due.deadline();
    tracing::warn!(object = %deadline.state.id(), %error, "an expiry's alarm could not be set");
    deadline.known.set(Known::Unknown);
    repair(due);
}

/// Tries again, as long as the instance lives, which that keeps in memory.
fn repair<D: Due>(due: &Rc<D>) {
    let deadline = due.deadline();
    deadline.faults.set(deadline.faults.get() + 1);
    if deadline.repairing.replace(true) {
        return;
    }
    let (of, repairing) = (Rc::clone(due), Flag(Rc::clone(due), |deadline| &deadline.repairing));
    deadline.state.wait_until(async move {
        let (deadline, _repairing) = (of.deadline(), repairing);
        for wait in REPAIRS.into_iter().chain(std::iter::repeat(64)) {
            deadline.state.sleep(Duration::from_secs(wait)).await;
            let faults = deadline.faults.get();
            match compare(&*of).await {
                // What failed meanwhile is not mended by this.
                Ok(()) if deadline.faults.get() == faults => break,
                Ok(()) => {}
                Err(error) => {
                    deadline.known.set(Known::Unknown);
                    tracing::warn!(object = %deadline.state.id(), %error, "an expiry's alarm still cannot be set");
                }
            }
        }
    });
}

/// Not derived, because states need not have it.
impl<S: ObjectState> fmt::Debug for Deadline<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Deadline").field("known", &self.known.get()).finish_non_exhaustive()
    }
}
