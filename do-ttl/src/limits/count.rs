//! How much there is.

use crate::{BACKLOG_MAX, Stats, TtlStore, Usage};
use do_core::{Error, ObjectState, SqlStorage, deadline::Due};

impl<S: ObjectState> TtlStore<S> {
    /// How many entries are there.
    ///
    /// In a store with limits 1 row read, and 1 for each entry that is expired and not swept yet. Without them all of the
    /// store's, in one statement during which the object does nothing else: of a million rows about 0.2 s natively, and a
    /// million rows billed on Workers. A store that is large and counted often has a limit, if only one that is never reached:
    /// `Settings::new().max_entries(u64::MAX)`.
    ///
    /// # Errors
    /// As [`SqlStorage::exec`].
    pub fn count(&self) -> Result<u64, Error> {
        let rows = &self.sweeper.0.rows;
        match self.counted()? {
            Some(has) => Ok(has.entries.saturating_sub(rows.overdue(self.name(), self.now(), u32::MAX)?)),
            None => rows.tally_live(self.name(), self.now()),
        }
    }

    /// How much there is as limits count it: with what is expired and not swept yet.
    ///
    /// In a store with limits 1 row read; otherwise all of the store's, as [`count`](Self::count) does it.
    ///
    /// # Errors
    /// As [`SqlStorage::exec`].
    pub fn usage(&self) -> Result<Usage, Error> {
        match self.counted()? {
            Some(has) => Ok(has),
            None => self.sweeper.0.rows.tally(self.name()),
        }
    }

    /// What it did since the instance began, and what it has. A few rows read, and one for each of the
    /// [`backlog`](Stats::backlog) and of the [`notices`](Stats::notices).
    ///
    /// # Errors
    /// As [`SqlStorage::exec`].
    pub fn stats(&self) -> Result<Stats, Error> {
        let (inner, now) = (&self.sweeper.0, self.now());
        let oldest = inner.rows.due(self.name(), now, 1)?;
        let usage = self.counted()?;
        let backlog = inner.rows.overdue(self.name(), now, BACKLOG_MAX)?;
        let (rows_read, rows_written) = inner.rows.cost();
        Ok(Stats {
            counters: self.shared.counters.get(),
            usage,
            backlog,
            notices: inner.rows.count_notices(self.name(), BACKLOG_MAX)?,
            oldest_overdue: oldest.first().map(|row| row.expires.until(now)),
            alarms_set: inner.deadline().sets(),
            rows_read,
            rows_written,
            database_size: inner.state.sql().database_size(),
        })
    }

    /// What is written down of how much there is. Only that of a store with limits is right.
    fn counted(&self) -> Result<Option<Usage>, Error> {
        if !self.shared.settings.is_limited() {
            return Ok(None);
        }
        self.sweeper.0.rows.usage(self.name())
    }
}
