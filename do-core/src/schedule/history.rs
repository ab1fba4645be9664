use super::{
    Schedule,
    dead::cut,
    store::{Row, Store},
};
use crate::{Error, ObjectState, SqlStorage, Timestamp};
use serde::Serialize;

/// One run of a job that ended, from [`Schedule::history`].
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Run {
    /// Later ones have larger numbers.
    pub id: i64,
    /// The job's name.
    pub name: String,
    /// The time that it was to run at.
    pub scheduled: Timestamp,
    /// When it began; for one that was cut off, when it was due.
    pub began: Timestamp,
    /// When it ended, or was found cut off.
    pub ended: Timestamp,
    /// Which run it was for that time, from 1. 0 if it was skipped.
    pub attempt: u32,
    /// What came of it.
    pub outcome: Outcome,
    /// The text of the error of a run that failed.
    pub error: Option<String>,
}

/// What came of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Outcome {
    /// It succeeded.
    Done,
    /// It failed, and is tried again unless it was cancelled or replaced meanwhile.
    Failed,
    /// It failed for the last time: see [`Schedule::dead_letters`].
    Dead,
    /// It was too late to run, see [`Missed::Skip`](super::Missed::Skip).
    Skipped,
}

impl Outcome {
    fn word(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Dead => "dead",
            Self::Skipped => "skipped",
        }
    }

    fn of(word: &str) -> Self {
        match word {
            "done" => Self::Done,
            "failed" => Self::Failed,
            "skipped" => Self::Skipped,
            _ => Self::Dead,
        }
    }
}

impl<Q: SqlStorage> Store<Q> {
    /// Writes a run down, and forgets the one that is one too many.
    pub(super) fn record(
        &self,
        keep: u32,
        row: &Row,
        (began, ended): (Timestamp, Timestamp),
        outcome: Outcome,
        error: Option<&str>,
    ) -> Result<(), Error> {
        if keep == 0 || row.terms.is_none() {
            return Ok(());
        }
        // Without its table everything was deleted in the run: so it stays.
        self.query(
            "INSERT INTO _schedule_runs (name, tick, began, ended, attempt, outcome, error) VALUES (?, ?, ?, ?, ?, ?, ?)",
            (row.name(), row.tick.min(row.due), began, ended, row.attempt, outcome.word(), error.map(cut)),
        )?;
        self.trim("_schedule_runs", keep)
    }
}

impl<S: ObjectState> Schedule<S> {
    /// The latest runs of jobs, the latest first, at most `limit` of those that
    /// [`Settings::history`](super::Settings::history) keeps. Runs of slots are not kept, and one that cannot be written
    /// is missing.
    ///
    /// # Errors
    /// As [`SqlStorage::exec`].
    pub fn history(&self, limit: u32) -> Result<Vec<Run>, Error> {
        let sql = "SELECT id, name, tick, began, ended, attempt, outcome, error FROM _schedule_runs ORDER BY id DESC LIMIT ?";
        let run = |row: crate::Row<'_>| {
            Ok(Run {
                id: row.at(0)?,
                name: row.at(1)?,
                scheduled: Timestamp::from_millis(row.at(2)?),
                began: Timestamp::from_millis(row.at(3)?),
                ended: Timestamp::from_millis(row.at(4)?),
                attempt: row.at(5)?,
                outcome: Outcome::of(&row.at::<String>(6)?),
                error: row.at(7)?,
            })
        };
        self.inner.store.query(sql, (limit,))?.iter().map(run).collect()
    }
}
