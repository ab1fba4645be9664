use super::{plan::Terms, store::Row};
use crate::{Error, ErrorKind, Timestamp};
use serde::{Serialize, Serializer, de::DeserializeOwned};

/// What is pending, from [`Schedule::pending`](super::Schedule::pending).
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Pending {
    /// What [`Schedule::cancel`](super::Schedule::cancel) takes: the name, but of a dead letter that is replayed.
    pub id: String,
    /// The name that its job has.
    pub name: String,
    /// When it runs next.
    pub due: Timestamp,
    /// The time or tick that it runs for: after a failure, it is due later.
    pub scheduled: Timestamp,
    /// How many runs for that time were begun.
    pub attempts: u32,
    /// Whether it runs now, or was cut off running.
    pub is_running: bool,
    /// Whether it comes again and again.
    pub recurs: bool,
    /// Whether it is a [`Slot`](super::Slot).
    pub is_slot: bool,
    #[serde(serialize_with = "as_json")]
    payload: Option<String>,
}

impl Pending {
    pub(super) fn new(row: Row) -> Self {
        let terms = row.terms.as_deref().and_then(|text| Terms::parse(text).ok());
        Self {
            name: row.name().to_owned(),
            due: row.due,
            scheduled: row.tick,
            attempts: row.attempt,
            is_running: row.running,
            recurs: terms.is_some_and(|terms| terms.cadence.is_some()),
            is_slot: row.terms.is_none(),
            id: row.key,
            payload: row.payload,
        }
    }

    /// As [`Job::payload`](super::Job::payload).
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] when it is of another type.
    pub fn payload<T: DeserializeOwned>(&self) -> Result<T, Error> {
        read_payload(&self.name, self.payload.as_deref())
    }
}

/// A payload as a type of one's own; none is `null`.
pub(super) fn read_payload<T: DeserializeOwned>(name: &str, payload: Option<&str>) -> Result<T, Error> {
    serde_json::from_str(payload.unwrap_or("null")).map_err(|error| {
        Error::new(ErrorKind::Invalid, format!("the payload of {name:?} is not of that type: {error}"))
    })
}

/// For what is shown to people: the payload as it was given.
pub(super) fn as_json<S: Serializer>(payload: &Option<String>, serializer: S) -> Result<S::Ok, S::Error> {
    read_payload::<serde_json::Value>("", payload.as_deref()).unwrap_or_default().serialize(serializer)
}
