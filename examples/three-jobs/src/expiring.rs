use do_core::prelude::*;
use serde::{Deserialize, Serialize};

/// A text that lives for a while.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Note {
    /// What it says.
    pub text: String,
    /// How long it lives, in seconds.
    pub seconds: u32,
}

/// Notes that vanish when their time is over: a pattern of one's own, which takes the alarm of its object as a
/// deadline. With [`Alarm::raw`] it has the alarm for itself, with a slot of a schedule it shares it, and the code is
/// the same.
#[derive(Debug)]
pub struct Expiring<S: ObjectState> {
    state: S,
    alarm: Alarm<S>,
}

impl<S: ObjectState> Expiring<S> {
    /// The table, for the object's migrations.
    pub const TABLE: &'static str = "
        CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT NOT NULL, seconds INTEGER NOT NULL, until INTEGER NOT NULL);
        CREATE INDEX notes_until ON notes (until)";

    /// Nothing is read or armed by that. Whoever runs the alarm calls [`sweep`](Self::sweep).
    pub fn new(state: &S, alarm: impl Into<Alarm<S>>) -> Self {
        Self { state: state.clone(), alarm: alarm.into() }
    }

    /// Keeps a note for as long as it is to live; until when.
    ///
    /// # Errors
    /// Those of the storage and of the alarm.
    pub async fn add(&self, note: Note) -> Result<Timestamp> {
        let until = self.state.now() + Duration::from_secs(note.seconds.into());
        let sql = "INSERT INTO notes (text, seconds, until) VALUES (?, ?, ?)";
        self.state.sql().exec(sql, (note.text, note.seconds, until))?;
        self.arm().await?;
        Ok(until)
    }

    /// Takes away what is over and arms for what is left.
    ///
    /// # Errors
    /// Those of the storage and of the alarm.
    pub async fn sweep(&self) -> Result<()> {
        self.state.sql().exec("DELETE FROM notes WHERE until <= ?", (self.state.now(),))?;
        self.arm().await
    }

    /// The notes, the oldest first, at most 100.
    ///
    /// # Errors
    /// Those of the storage.
    pub fn all(&self) -> Result<Vec<Note>> {
        Ok(self.state.sql().query("SELECT text, seconds FROM notes ORDER BY id LIMIT 100", ())?)
    }

    /// Arms for the soonest. A slot that is set to what it is set to already writes nothing.
    async fn arm(&self) -> Result<()> {
        let soonest = self.state.sql().scalar("SELECT until FROM notes ORDER BY until LIMIT 1", ())?;
        match soonest {
            Some(ms) => Ok(self.alarm.set(Timestamp::from_millis(ms)).await?),
            None => Ok(()),
        }
    }
}
