//! What was published in a room: numbered, kept in the object's own SQLite within bounds, resumed from any number.

mod position;
mod settings;

pub use position::{NoPosition, Position};
pub use settings::History;

use crate::Room;
use do_core::{Error, Message, ObjectState};
use serde_json::value::RawValue;

/// What is to be numbered and kept.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Entry<'a> {
    /// A published value as JSON, and who published it.
    Json { from: Option<&'a str>, data: &'a str },
    /// Published bytes.
    Binary { from: Option<&'a str>, data: &'a [u8] },
    /// A member came.
    Joined { member: &'a str, data: Option<&'a RawValue> },
    /// A member went.
    Left { member: &'a str },
}

/// What was numbered and kept: the frame is ready to be sent.
#[derive(Debug, Clone)]
pub(crate) struct Logged {
    pub(crate) position: Position,
    pub(crate) frame: Message,
}

/// What one who comes is sent.
#[derive(Debug, Clone)]
pub(crate) struct Replay {
    /// Where they are before the first frame.
    pub(crate) at: Position,
    pub(crate) gap: Option<Gap>,
    pub(crate) frames: Vec<Message>,
}

/// They asked for more than there is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Gap {
    /// How many are lost, where that is known.
    pub(crate) lost: Option<u64>,
}

/// The log of one room.
pub(crate) struct Log<'a, S: ObjectState> {
    #[allow(dead_code)]
    room: &'a Room<S>,
}

impl<S: ObjectState> Room<S> {
    /// Sets how much of what is published is kept.
    #[must_use]
    pub fn history(self, history: History) -> Self {
        self.with(|settings| settings.history = history)
    }

    pub(crate) fn log(&self) -> Log<'_, S> {
        Log { room: self }
    }
}

#[allow(dead_code, clippy::unused_self)]
impl<S: ObjectState> Log<'_, S> {
    /// Numbers and keeps an entry.
    pub(crate) fn append(&self, _entry: Entry<'_>) -> Result<Logged, Error> {
        Err(Error::new(do_core::ErrorKind::Platform, "not here yet"))
    }
}
