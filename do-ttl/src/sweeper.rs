use crate::{Pace, Settings, TtlStore, one_by_one::OneByOne, rows::Rows, store::Shared};
use do_core::{
    Alarm, Error, ErrorKind, ObjectState, Timestamp,
    deadline::{self, Deadline, Due},
};
use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    fmt,
    rc::Rc,
};

/// The stores of an object, and the alarm that sweeps what expires in all of them.
///
/// Make it in `new` and keep it, with its stores. Whoever gives it an alarm calls [`on_alarm`](Self::on_alarm) when that
/// comes. Clones are the same sweeper, and an object has one.
///
/// Each store costs a row read in each run: stores are kinds of things, their keys say whose.
pub struct Sweeper<S: ObjectState>(pub(crate) Rc<Inner<S>>);

pub(crate) struct Inner<S: ObjectState> {
    pub(crate) state: S,
    pub(crate) rows: Rows<S::Sql>,
    pub(crate) pace: Pace,
    pub(crate) deadline: Deadline<S>,
    pub(crate) stores: RefCell<BTreeMap<String, Rc<Shared>>>,
    /// The newest version that was given.
    newest: Cell<u64>,
    pub(crate) runs: OneByOne,
    /// The store that the last run ended with: the next one begins behind it.
    pub(crate) last: RefCell<String>,
    /// There is, or was, somebody to tell of what expires.
    pub(crate) tells: Cell<bool>,
}

/// Longest name of a store, in bytes.
pub const NAME_BYTES: usize = 64;

impl<S: ObjectState> Due for Inner<S> {
    type State = S;

    fn deadline(&self) -> &Deadline<S> {
        &self.deadline
    }

    /// Somewhat after the soonest expiry, so that what expires soon after is swept with it.
    fn soonest(&self) -> Result<Option<Timestamp>, Error> {
        let mut soonest = if self.tells.get() { self.rows.soonest_notice()? } else { None };
        let mut at = String::new();
        while let Some((store, expires)) = self.rows.soonest_behind(&at)? {
            soonest = Some(soonest.map_or(expires, |soonest| soonest.min(expires)));
            at = store;
        }
        Ok(soonest.map(|soonest| soonest + self.pace.slack))
    }
}

impl<S: ObjectState> Sweeper<S> {
    /// With the default [`Pace`]. The alarm is the object's own ([`Alarm::raw`]), or a slot of its schedule. Touches nothing
    /// yet.
    pub fn new(state: &S, alarm: impl Into<Alarm<S>>) -> Self {
        Self::with(state, Pace::new(), alarm)
    }

    /// With another pace.
    pub fn with(state: &S, pace: Pace, alarm: impl Into<Alarm<S>>) -> Self {
        let inner = Rc::new(Inner {
            state: state.clone(),
            rows: Rows::new(state.sql()),
            pace,
            deadline: Deadline::new(state, alarm.into()),
            stores: RefCell::default(),
            newest: Cell::default(),
            runs: OneByOne::default(),
            last: RefCell::default(),
            tells: Cell::default(),
        });
        let woken = Rc::clone(&inner);
        state.at_first_event(move || deadline::wake(&woken));
        Self(inner)
    }

    /// The store of a name. Touches nothing yet. Asked again, it is the same store.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] for a name that is empty or longer than [`NAME_BYTES`], and for a store that was opened with
    /// other settings.
    pub fn store(&self, name: &str, settings: Settings) -> Result<TtlStore<S>, Error> {
        if !(1..=NAME_BYTES).contains(&name.len()) {
            let message = format!("{name:?} cannot be the name of a store: it has 1 to {NAME_BYTES} bytes");
            return Err(Error::new(ErrorKind::Invalid, message));
        }
        let mut stores = self.0.stores.borrow_mut();
        let shared = stores.entry(name.to_owned()).or_insert_with(|| Rc::new(Shared::new(name, settings)));
        if shared.settings != settings {
            let message = format!("the store {name:?} was opened with other settings");
            return Err(Error::new(ErrorKind::Invalid, message));
        }
        if settings.notify {
            self.0.tells.set(true);
        }
        Ok(TtlStore::new(self.clone(), Rc::clone(shared)))
    }
}

impl<S: ObjectState> Inner<S> {
    /// A version that was not given before.
    pub(crate) fn version(&self) -> crate::Version {
        // 10 bits below the milliseconds: enough for what one turn does, and 2^53 is in the year 2248.
        let now = u64::try_from(self.state.now().as_millis()).unwrap_or(0) << 10;
        let version = (now | (self.state.random() & 0xff)).max(self.newest.get() + 1);
        self.newest.set(version);
        crate::Version(version)
    }

    /// The time, for a call: an alarm that was lost is mended by it.
    pub(crate) fn now(self: &Rc<Self>) -> Timestamp {
        deadline::watch(self);
        self.state.now()
    }

    /// The newest version that was given in this instance.
    pub(crate) fn newest(&self) -> crate::Version {
        crate::Version(self.newest.get())
    }

    /// What is put from now on has a version above this, and what was put before, by this clock, has none.
    pub(crate) fn fence(&self) -> crate::Version {
        let now = u64::try_from(self.state.now().as_millis()).unwrap_or(0) << 10;
        self.newest.set(self.newest.get().max(now | 0x3ff));
        self.newest()
    }

    /// Something is there that expires then.
    pub(crate) fn arm(self: &Rc<Self>, expires: Option<Timestamp>) {
        if self.rows.take_gone() {
            self.deadline.forget();
        }
        if let Some(expires) = expires {
            deadline::arm_by(self, expires + self.pace.slack);
        }
    }
}

impl<S: ObjectState> Clone for Sweeper<S> {
    fn clone(&self) -> Self {
        Self(Rc::clone(&self.0))
    }
}

/// Not derived, because states need not have it.
impl<S: ObjectState> fmt::Debug for Sweeper<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stores = self.0.stores.borrow();
        f.debug_struct("Sweeper").field("stores", &stores.keys()).finish_non_exhaustive()
    }
}
