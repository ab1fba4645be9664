use super::{
    Entry, History, Logged, Position,
    store::{Bounds, Facts, HistoryStats, Store},
};
use crate::{Room, codes, member::close};
use do_core::{AlarmScheduler, Error, ErrorKind, ObjectState, SqlStorage, Timestamp, limits};
use std::{cell::Cell, time::Duration};

/// Longest frame: a row holds the room's tag and some numbers beside it.
const FRAME_BYTES: usize = limits::SQL_VALUE_BYTES - 1_024;

/// After so many parts of a bound what is beyond it is deleted: then the log holds up to an eighth more than it shows.
const PARTS: u64 = 8;

/// What the log of a room remembers while the instance lives: only what may be forgotten.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    /// The newest position that was given to an entry.
    given: Cell<Option<Position>>,
    /// A look at the end of the turn is under way.
    looking: Cell<bool>,
    /// An alarm comes for the oldest message, whichever it is.
    armed: Cell<bool>,
    stats: Cell<HistoryStats>,
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
        self.inner().log.stats.get()
    }

    pub(crate) fn log(&self) -> Log<'_, S> {
        Log { room: self }
    }
}

impl<S: ObjectState> Log<'_, S> {
    pub(super) fn store(&self) -> Store<'_, S::Sql> {
        Store { sql: self.room.state().sql(), room: self.room.key(), stats: &self.memory().stats }
    }

    pub(super) fn settings(&self) -> &History {
        &self.room.inner().settings.history
    }

    fn memory(&self) -> &Memory {
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
                FRAME_BYTES.min(self.room.inner().settings.outbound.max_bytes / 2)
            }
            // An attachment bounds them. Who comes and goes has to be said, however little may wait.
            Entry::Joined { .. } | Entry::Updated { .. } | Entry::Left { .. } => FRAME_BYTES,
        };
        if frame.len() > most {
            let message =
                format!("the message is {} bytes long in its frame, the limit is {most}", frame.len());
            return Err(Error::new(ErrorKind::Limit, message));
        }
        let newest = self.store().append(&before, at, &frame)?;
        let position = Position::new(newest.epoch, newest.seq);
        self.memory().given.set(Some(position));
        if before.is_blank() {
            self.memory().armed.set(false);
        }
        self.look_later();
        if self.is_time_to_prune(&before, &newest)
            && let Err(error) = self.prune(&newest)
        {
            tracing::warn!(%error, "old messages of a room are kept for longer");
        }
        Ok(Logged { position, at, frame })
    }

    /// [`append`](Self::append) for several, all or none.
    ///
    /// # Errors
    /// As [`append`](Self::append); of the first that cannot be kept.
    pub(crate) fn append_all<'e>(
        &self,
        entries: impl IntoIterator<Item = Entry<'e>>,
    ) -> Result<Vec<Logged>, Error> {
        let given = self.given();
        let all = || entries.into_iter().map(|entry| Ok(self.append(entry)?)).collect();
        // None of them was sent: the numbers that are rolled back can be given again.
        let logged = self.store().sql.transaction(all).inspect_err(|_| self.take_back(given));
        logged.map_err(Error::from)
    }

    /// The newest position that was given, for [`take_back`](Self::take_back).
    pub(crate) fn given(&self) -> Option<Position> {
        self.memory().given.get()
    }

    /// What was appended since is rolled back, and nobody was sent any of it: its numbers can be given again.
    pub(crate) fn take_back(&self, given: Option<Position>) {
        self.memory().given.set(given);
    }

    /// The position of the newest entry.
    ///
    /// # Errors
    /// As [`SqlStorage::exec`](do_core::SqlStorage::exec).
    pub(crate) fn position(&self) -> Result<Position, Error> {
        self.newest().map(|newest| Position::new(newest.epoch, newest.seq))
    }

    /// The newest row, of a log that begins with the first call. Ends the epoch when entries are gone that were given
    /// numbers: they may have been sent, and their numbers will be given again.
    pub(super) fn newest(&self) -> Result<Facts, Error> {
        let store = self.store();
        let given = self.memory().given.get();
        let (newest, is_lost) = match (store.newest()?, given) {
            (None, given) => (store.begin(self.new_epoch(), self.room.state().now())?, given.is_some()),
            (Some(newest), Some(given)) if newest.epoch != given.epoch() || newest.seq < given.seq() => {
                (store.set_epoch(&newest, self.new_epoch())?, true)
            }
            (Some(newest), _) => (newest, false),
        };
        if is_lost {
            self.memory().given.set(Some(Position::new(newest.epoch, newest.seq)));
            self.memory().armed.set(false);
            self.resync();
        }
        if self.has_to_arm() {
            self.look_later();
        }
        Ok(newest)
    }

    /// A number that no earlier epoch has; as large as SQL holds exactly.
    fn new_epoch(&self) -> u64 {
        self.room.state().random() >> 11
    }

    /// Everybody has to ask anew where they are.
    fn resync(&self) {
        tracing::warn!(object = %self.room.state().id(), "messages of a room were rolled back: a new epoch begins");
        for socket in self.room.entered() {
            close(&socket, codes::RESYNC, "a new epoch");
        }
    }

    /// Looks once at the end of the turn whether what was kept is still there: a transaction around it may have been
    /// rolled back, and the next instance would not know. Then sees to the alarm.
    fn look_later(&self) {
        if self.memory().looking.replace(true) {
            return;
        }
        let room = self.room.clone();
        self.room.state().wait_until(async move {
            let log = room.log();
            let looked = log.newest();
            log.memory().looking.set(false);
            if let Err(error) = looked {
                tracing::warn!(%error, "the log of a room could not be read");
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
        self.room.inner().alarm.is_some() && self.settings().max_age.is_some() && !self.memory().armed.get()
    }

    /// Sets the alarm for the oldest message, if it is not to come earlier.
    async fn arm(&self) -> Result<(), Error> {
        let Some(alarm) = self.room.inner().alarm.as_ref().filter(|_| self.has_to_arm()) else {
            return Ok(());
        };
        self.memory().armed.set(true);
        match self.due()? {
            Some(due) => alarm.set_earlier(due).await,
            None => Ok(()),
        }
    }

    pub(super) fn bounds(&self, newest: &Facts) -> Bounds {
        let History { max_messages, max_bytes, max_age, .. } = *self.settings();
        let now = self.room.state().now().max(newest.at);
        Bounds { max_messages, max_bytes, since: max_age.map(|age| now - age) }
    }

    /// Whether an entry passed an eighth of a bound. Known from the two rows alone: so it does not depend on what an
    /// instance remembers, and costs nothing.
    fn is_time_to_prune(&self, before: &Facts, newest: &Facts) -> bool {
        let History { max_messages, max_bytes, max_age, .. } = *self.settings();
        let passes = |from: u64, to: u64, bound: u64| {
            let part = (bound / PARTS).max(1);
            from / part != to / part
        };
        passes(before.seq, newest.seq, max_messages)
            || passes(before.total, newest.total, max_bytes)
            || max_age.is_some_and(|age| passes(millis(before.at), millis(newest.at), slack(age)))
    }

    /// Deletes what is beyond the bounds, some thousands at most; the newest row stays. Whether it is all.
    ///
    /// # Errors
    /// As [`SqlStorage::exec`](do_core::SqlStorage::exec).
    pub(super) fn prune(&self, newest: &Facts) -> Result<bool, Error> {
        let store = self.store();
        store.cut(store.floor(&self.bounds(newest), newest)?, newest)
    }
}

fn millis(at: Timestamp) -> u64 {
    u64::try_from(at.as_millis()).unwrap_or(0)
}

/// How much longer than its age something is kept, in ms, so that much is deleted at once.
pub(super) fn slack(age: Duration) -> u64 {
    u64::try_from(age.as_millis()).unwrap_or(u64::MAX) / PARTS
}
