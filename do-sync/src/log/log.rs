use super::{Entry, History, HistoryStats, Logged, Position};
use crate::{Room, codes, member::close};
use do_core::{
    AlarmScheduler, Error, ErrorKind, Message, ObjectState,
    journal::{ENTRY_BYTES, Facts, Journal, Kept, Newest, Table},
};
use std::cell::Cell;

/// The frames of all rooms, by the room's key. A frame is what is sent.
const TABLE: Table = Table::new("_room_log").columns("room", "frame");

const TEXT: u8 = 1;
const BINARY: u8 = 2;

/// What the log of a room remembers while the instance lives: only what may be forgotten.
pub(crate) struct Memory<S: ObjectState> {
    journal: Journal<S>,
    /// An alarm comes for the oldest message, whichever it is.
    armed: Cell<bool>,
}

impl<S: ObjectState> Memory<S> {
    pub(crate) fn new(state: &S, room: &str, history: &History) -> Self {
        Self { journal: Journal::new(state, TABLE, room, history.bounds), armed: Cell::default() }
    }
}

/// The log of one room.
pub(crate) struct Log<'a, S: ObjectState> {
    pub(super) room: &'a Room<S>,
}

impl<S: ObjectState> Room<S> {
    /// Sets how much of what is published is kept.
    #[must_use]
    pub fn history(self, history: History) -> Self {
        self.with(|settings| settings.history = history)
    }

    /// What the history cost since this instance began.
    pub fn history_stats(&self) -> HistoryStats {
        self.inner().log.journal.stats()
    }

    pub(crate) fn log(&self) -> Log<'_, S> {
        Log { room: self }
    }
}

impl<'a, S: ObjectState> Log<'a, S> {
    pub(crate) fn journal(&self) -> &'a Journal<S> {
        &self.memory().journal
    }

    pub(super) fn settings(&self) -> &'a History {
        &self.room.inner().settings.history
    }

    fn memory(&self) -> &'a Memory<S> {
        &self.room.inner().log
    }

    /// Numbers and keeps an entry, as the next one. What is sent of it is sent after this: then a commit that fails
    /// takes both away (rule C4).
    ///
    /// # Errors
    /// [`ErrorKind::Limit`] when it is too long; as [`SqlStorage::exec`](do_core::SqlStorage::exec). Nothing has happened
    /// then.
    pub(crate) fn append(&self, entry: Entry<'_>) -> Result<Logged, Error> {
        let before = self.newest()?;
        let at = self.room.state().now().max(before.at);
        let frame = entry.frame(before.seq + 1, at)?;
        let most = match entry {
            Entry::Json { .. } | Entry::Binary { .. } => {
                ENTRY_BYTES.min(self.room.inner().settings.outbound.max_bytes / 2)
            }
            // An attachment bounds them. Who comes and goes has to be said, however little may wait.
            Entry::Joined { .. } | Entry::Updated { .. } | Entry::Left { .. } => ENTRY_BYTES,
        };
        if frame.len() > most {
            let message =
                format!("the message is {} bytes long in its frame, the limit is {most}", frame.len());
            return Err(Error::new(ErrorKind::Limit, message));
        }
        let kind = if frame.as_text().is_some() { TEXT } else { BINARY };
        let newest = self.journal().append(&before, at, kind, frame.as_bytes())?;
        if before.is_blank() {
            self.memory().armed.set(false);
        }
        self.look_later();
        Ok(Logged { position: newest.position(), at, frame })
    }

    /// [`append`](Self::append) for several, all or none.
    ///
    /// # Errors
    /// As [`append`](Self::append); of the first that cannot be kept.
    pub(crate) fn append_all<'e>(
        &self,
        entries: impl IntoIterator<Item = Entry<'e>>,
    ) -> Result<Vec<Logged>, Error> {
        let all = || entries.into_iter().map(|entry| Ok(self.append(entry)?)).collect();
        self.journal().transaction(all).map_err(Error::from)
    }

    /// The position of the newest entry.
    ///
    /// # Errors
    /// As [`SqlStorage::exec`](do_core::SqlStorage::exec).
    pub(crate) fn position(&self) -> Result<Position, Error> {
        self.newest().map(|newest| newest.position())
    }

    /// The newest row, of a log that begins with the first call.
    pub(super) fn newest(&self) -> Result<Facts, Error> {
        let newest = self.follow(self.journal().newest()?);
        if self.has_to_arm() {
            self.look_later();
        }
        Ok(newest)
    }

    /// When entries are gone that were given numbers, everybody has to ask anew where they are.
    fn follow(&self, newest: Newest) -> Facts {
        if newest.is_renewed {
            self.memory().armed.set(false);
            tracing::warn!(object = %self.room.state().id(), "messages of a room were rolled back: a new epoch begins");
            for socket in self.room.entered() {
                close(&socket, codes::RESYNC, "a new epoch");
            }
        }
        newest.facts
    }

    /// Looks at the end of the turn whether what was kept is still there, and sees to the alarm.
    fn look_later(&self) {
        let room = self.room.clone();
        self.journal().look_later(async move |newest| {
            let log = room.log();
            match newest {
                Ok(newest) => _ = log.follow(newest),
                Err(error) => tracing::warn!(%error, "the log of a room could not be read"),
            }
            if let Err(error) = log.arm().await {
                log.memory().armed.set(false);
                tracing::warn!(%error, "no alarm is set for the old messages of a room");
            }
        });
    }

    /// Whether the alarm has to be looked at: where there was no message before, and at the first use in each instance, in
    /// case that the settings are others or the last one did not come to it. For messages after that the alarm is set
    /// when it comes.
    fn has_to_arm(&self) -> bool {
        self.room.inner().alarm.is_some()
            && self.settings().bounds.max_age.is_some()
            && !self.memory().armed.get()
    }

    /// Sets the alarm for the oldest message, if it is not to come earlier.
    async fn arm(&self) -> Result<(), Error> {
        let Some(alarm) = self.room.inner().alarm.as_ref().filter(|_| self.has_to_arm()) else {
            return Ok(());
        };
        self.memory().armed.set(true);
        match self.journal().due()? {
            Some(due) => alarm.set_earlier(due).await,
            None => Ok(()),
        }
    }
}

/// What is sent of an entry.
///
/// # Errors
/// [`ErrorKind::Platform`] when it is not what was appended.
pub(super) fn frame_of(kept: Kept) -> Result<Message, Error> {
    if kept.facts.kind == BINARY {
        return Ok(Message::binary(kept.bytes));
    }
    String::from_utf8(kept.bytes)
        .map(Message::text)
        .map_err(|_| Error::new(ErrorKind::Platform, "a message of the room's log is no UTF-8"))
}
