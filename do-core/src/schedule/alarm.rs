use super::Slot;
use crate::{AlarmScheduler, Error, ObjectState, Timestamp};
use std::fmt;

/// The alarm of a pattern: the object's raw slot, or a named one of a [`Schedule`](super::Schedule) that it shares with
/// others.
///
/// A pattern takes `impl Into<Alarm<S>>` and keeps one parameter. With the raw slot it must be alone in its object.
///
/// A pattern looks for its soonest deadline after each change and sets it, which costs nothing when it is the same:
///
/// ```
/// use do_core::prelude::*;
///
/// struct Notes<S: ObjectState> { state: S, alarm: Alarm<S> }
///
/// impl<S: ObjectState> Notes<S> {
///     fn new(state: &S, alarm: impl Into<Alarm<S>>) -> Self {
///         Self { state: state.clone(), alarm: alarm.into() }
///     }
///     async fn arm(&self) -> Result<()> {
///         match self.state.sql().scalar::<i64>("SELECT until FROM notes ORDER BY until LIMIT 1", ())? {
///             Some(until) => Ok(self.alarm.set(Timestamp::from_millis(until)).await?),
///             None => Ok(self.alarm.delete().await?),
///         }
///     }
/// }
/// ```
pub enum Alarm<S: ObjectState> {
    /// The object's one slot.
    Raw(S::Alarms),
    /// One of many.
    Slot(Slot<S>),
}

impl<S: ObjectState> Alarm<S> {
    /// The object's one slot.
    pub fn raw(state: &S) -> Self {
        Self::Raw(state.alarms().clone())
    }
}

impl<S: ObjectState> From<Slot<S>> for Alarm<S> {
    fn from(slot: Slot<S>) -> Self {
        Self::Slot(slot)
    }
}

impl<S: ObjectState> Clone for Alarm<S> {
    fn clone(&self) -> Self {
        match self {
            Self::Raw(alarms) => Self::Raw(alarms.clone()),
            Self::Slot(slot) => Self::Slot(slot.clone()),
        }
    }
}

impl<S: ObjectState> fmt::Debug for Alarm<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Raw(_) => f.write_str("Raw"),
            Self::Slot(slot) => slot.fmt(f),
        }
    }
}

impl<S: ObjectState> AlarmScheduler for Alarm<S> {
    fn set(&self, at: Timestamp) -> impl Future<Output = Result<(), Error>> + use<S> {
        // Called here, so that it takes effect at the call.
        let set = match self {
            Self::Raw(alarms) => Ok(alarms.set(at)),
            Self::Slot(slot) => Err(slot.set(at)),
        };
        async move {
            match set {
                Ok(raw) => raw.await,
                Err(slot) => slot.await,
            }
        }
    }

    async fn get(&self) -> Result<Option<Timestamp>, Error> {
        match self {
            Self::Raw(alarms) => alarms.get().await,
            Self::Slot(slot) => slot.get().await,
        }
    }

    async fn delete(&self) -> Result<(), Error> {
        match self {
            Self::Raw(alarms) => alarms.delete().await,
            Self::Slot(slot) => slot.delete().await,
        }
    }
}
