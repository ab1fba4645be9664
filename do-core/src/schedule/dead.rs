use super::{
    Schedule,
    pending::{as_json, read_payload},
    plan::Terms,
    store::{Row, Store},
};
use crate::{Error, ErrorKind, ObjectState, SqlStorage, Timestamp};
use serde::{Serialize, de::DeserializeOwned};

/// How many dead letters an object keeps: the oldest makes room for the next one.
pub const DEAD_LETTERS_KEPT: u32 = 1_000;
/// Longest text of an error that is kept, in bytes.
const ERROR_BYTES: usize = 1_024;

/// A job, or one tick of a recurring one, that failed for the last time.
///
/// [`Schedule::replay`] runs it again, [`Schedule::discard`] forgets it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct DeadLetter {
    /// For [`Schedule::replay`]; later ones have larger numbers.
    pub id: i64,
    /// The job's name.
    pub name: String,
    /// When it was given up.
    pub at: Timestamp,
    /// The time that it was to run at.
    pub scheduled: Timestamp,
    /// How many runs it had.
    pub attempts: u32,
    /// The text of the last error.
    pub error: String,
    #[serde(serialize_with = "as_json")]
    payload: Option<String>,
}

impl DeadLetter {
    /// As [`Job::payload`](super::Job::payload).
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] when it is of another type.
    pub fn payload<T: DeserializeOwned>(&self) -> Result<T, Error> {
        read_payload(&self.name, self.payload.as_deref())
    }

    fn read(row: crate::Row<'_>) -> Result<Self, Error> {
        Ok(Self {
            id: row.at(0)?,
            name: row.at(1)?,
            at: Timestamp::from_millis(row.at(2)?),
            scheduled: Timestamp::from_millis(row.at(3)?),
            attempts: row.at(4)?,
            error: row.at(5)?,
            payload: row.at(6)?,
        })
    }
}

/// The beginning of a text.
pub(super) fn cut(text: &str) -> &str {
    text.get(..text.floor_char_boundary(ERROR_BYTES)).unwrap_or_default()
}

impl<Q: SqlStorage> Store<Q> {
    /// Keeps what failed; `terms` for what comes back as a whole when it is replayed.
    pub(super) fn bury(
        &self,
        row: &Row,
        terms: Option<&str>,
        error: &str,
        now: Timestamp,
    ) -> Result<(), Error> {
        let scheduled = row.tick.min(row.due);
        self.write(
            "INSERT INTO _schedule_dead (name, at, tick, attempts, error, terms, payload) VALUES (?, ?, ?, ?, ?, ?, ?)",
            (row.name(), now, scheduled, row.attempt, cut(error), terms, row.payload.clone()),
        )?;
        // Not by distance: those that were replayed or discarded leave gaps, and must not push out what is left.
        let sql = "DELETE FROM _schedule_dead WHERE id <= \
            (SELECT id FROM _schedule_dead ORDER BY id DESC LIMIT 1 OFFSET ?)";
        self.query(sql, (DEAD_LETTERS_KEPT,)).map(drop)
    }

    /// Keeps the latest rows of a table whose ids grow by one and of which only the oldest are ever taken away.
    pub(super) fn trim(&self, table: &str, keep: u32) -> Result<(), Error> {
        self.query(&format!("DELETE FROM {table} WHERE id <= (SELECT max(id) FROM {table}) - ?"), (keep,))
            .map(drop)
    }
}

impl<S: ObjectState> Schedule<S> {
    /// The dead letters with larger ids than `after`, oldest first, at most `limit`. 0 is before all.
    ///
    /// # Errors
    /// As [`SqlStorage::exec`].
    pub fn dead_letters(&self, after: i64, limit: u32) -> Result<Vec<DeadLetter>, Error> {
        let sql = "SELECT id, name, at, tick, attempts, error, payload FROM _schedule_dead WHERE id > ? ORDER BY id LIMIT ?";
        self.inner.store.query(sql, (after, limit))?.iter().map(DeadLetter::read).collect()
    }

    /// Runs a dead letter again, as soon as possible, with all its attempts: beside a job of the same name that is
    /// pending. A recurring job that became one as a whole, because its name was unknown, recurs again. Whether there
    /// was such a letter; it is no longer one.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] when it recurs and a job of that name is there again, and when its plan cannot be read; as
    /// [`put`](Self::put).
    ///
    /// # Cancellation
    /// Happens at the first poll; a future that is never polled does nothing.
    pub async fn replay(&self, id: i64) -> Result<bool, Error> {
        let inner = &self.inner;
        let now = inner.state.now();
        let (found, armed) = inner.change(|| {
            let sql = "SELECT name, tick, terms, payload FROM _schedule_dead WHERE id = ?";
            let rows = inner.store.query(sql, (id,))?;
            let Some(letter) = rows.first() else { return Ok((false, None)) };
            let (name, tick, terms) =
                (letter.at::<String>(0)?, letter.at(1)?, letter.at::<Option<String>>(2)?);
            let recurs =
                terms.as_deref().map(Terms::parse).transpose()?.is_some_and(|terms| terms.cadence.is_some());
            // A key that no name can be.
            let (key, name) = if recurs { (name, None) } else { (format!("\u{1}replay {id}"), Some(name)) };
            if inner.store.row(&key)?.is_some() {
                let message =
                    format!("a job named {key:?} is pending: cancel it before the old one is replayed");
                return Err(Error::new(ErrorKind::Invalid, message));
            }
            let tick = Timestamp::from_millis(tick).min(now);
            let payload = letter.at(3)?;
            inner.store.insert(&Row { name, tick, terms, payload, ..Row::new(&key, now) })?;
            inner.store.query("DELETE FROM _schedule_dead WHERE id = ?", (id,))?;
            Ok((true, Some(now)))
        })?;
        armed.await.map(|()| found)
    }

    /// Forgets a dead letter. Whether it was there.
    ///
    /// # Errors
    /// As [`SqlStorage::exec`].
    pub fn discard(&self, id: i64) -> Result<bool, Error> {
        let rows = self.inner.store.query("DELETE FROM _schedule_dead WHERE id = ? RETURNING id", (id,))?;
        Ok(!rows.is_empty())
    }
}
