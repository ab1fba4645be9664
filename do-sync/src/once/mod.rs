//! Requests that are done once however often they arrive.
//!
//! A caller that got no answer cannot know whether its request took effect. With a key it can ask again: the object
//! remembers the key with the answer, in the same commit as what the request wrote, and answers the repetition from
//! there. Also an answer that says no is remembered: otherwise a late duplicate could do what its sender was told did
//! not happen.

mod key;

pub use key::RequestKey;

use do_core::{Error, ErrorKind, ObjectState, Timestamp, tables::Tables};
use serde::{Serialize, de::DeserializeOwned};
use std::{cell::Cell, fmt, rc::Rc, time::Duration};

/// `n` counts up in the order in which keys were first seen, whatever the clock does.
const CREATE: &str = "
CREATE TABLE IF NOT EXISTS _once (
    key TEXT PRIMARY KEY, n INTEGER NOT NULL, at INTEGER NOT NULL, request TEXT NOT NULL, answer TEXT NOT NULL
) STRICT, WITHOUT ROWID;
";

/// New keys between two looks at what can be forgotten.
const FORGET_EVERY: u32 = 256;

/// The answers that an object gave, by request key.
///
/// One table in the object's database for all its patterns and for operations of its own: a key means one request of
/// that object. Make it in `new` and clone it: clones are the same memory.
///
/// A key is kept for [`max_age`](Self::max_age) and until there are [`max_keys`](Self::max_keys) newer ones, whichever
/// ends first; up to 256 more may be kept. Choose both beyond the time in which callers repeat.
///
/// A new key reads 1 row and writes 1; a known one reads 1. An instance's first new key, and each 256th, reads all of
/// them to find what can be forgotten, and forgetting writes 1 row for each.
///
/// ```
/// # use do_core::prelude::*;
/// use do_sync::{Once, RequestKey};
///
/// # struct Shop<S: ObjectState> { state: S, once: Once<S> }
/// # impl<S: ObjectState> Shop<S> {
/// fn order(&self, key: &RequestKey, item: &str) -> Result<u64> {
///     Ok(self.once.run(Some(key), &("order", item), || {
///         let id = self.state.sql().scalar("INSERT INTO orders (item) VALUES (?) RETURNING id", (item,))?;
///         Ok(id.unwrap_or(0))
///     })?)
/// }
/// # }
/// ```
pub struct Once<S: ObjectState> {
    inner: Rc<Inner<S>>,
    max_keys: u32,
    max_age: Duration,
}

struct Inner<S: ObjectState> {
    state: S,
    tables: Tables<S::Sql>,
    /// The last `n` that is known; the table may have fewer after a rollback.
    last: Cell<Option<i64>>,
    /// New keys since the last look.
    since: Cell<u32>,
}

impl<S: ObjectState> Once<S> {
    /// Most characters of a request written as JSON, in bytes.
    pub const REQUEST_BYTES: usize = 8 * 1_024;

    /// Most characters of an answer written as JSON, in bytes.
    pub const ANSWER_BYTES: usize = 64 * 1_024;

    /// The answers of an object. Touches nothing yet. 10,000 keys for an hour.
    pub fn new(state: &S) -> Self {
        let inner = Inner {
            state: state.clone(),
            tables: Tables::new(state.sql(), "_once", CREATE),
            last: Cell::new(None),
            since: Cell::new(0),
        };
        Self { inner: Rc::new(inner), max_keys: 10_000, max_age: Duration::from_secs(3_600) }
    }

    /// So many of the newest keys are kept; at least 1.
    #[must_use]
    pub fn max_keys(self, keys: u32) -> Self {
        Self { max_keys: keys.max(1), ..self }
    }

    /// Keys are kept for so long.
    #[must_use]
    pub fn max_age(self, age: Duration) -> Self {
        Self { max_age: age, ..self }
    }

    /// Does `work` and remembers what it gives under the key; when the key is known already, gives that instead and does
    /// nothing. Without a key it only does the work.
    ///
    /// `request` says what is asked for, the operation and everything that it depends on: the same key for another
    /// request is an error. What `work` writes and the memory of it are one transaction, and take part in one around it.
    ///
    /// # Errors
    /// Those of `work`: then nothing is written and nothing remembered. [`ErrorKind::Invalid`] for a key that was used
    /// for another request ([`is_reused_key`](Self::is_reused_key)) and for what cannot be JSON, [`ErrorKind::Limit`] for
    /// a request or an answer that is too large, and as [`SqlStorage::exec`](do_core::SqlStorage::exec): nothing is
    /// written then either.
    pub fn run<T: Serialize + DeserializeOwned>(
        &self,
        key: Option<&RequestKey>,
        request: &impl Serialize,
        work: impl FnOnce() -> Result<T, Error>,
    ) -> Result<T, Error> {
        let Some(key) = key else { return self.inner.tables.together(work) };
        let request = json("the request", request, Self::REQUEST_BYTES)?;
        self.inner.tables.together(|| {
            if let Some(answer) = self.known(key, &request)? {
                return serde_json::from_str(&answer).map_err(|error| {
                    Error::new(ErrorKind::Invalid, "the answer that was remembered is of another type")
                        .with_source(error)
                });
            }
            let value = work()?;
            let answer = json("the answer", &value, Self::ANSWER_BYTES)?;
            self.remember(key, request, answer)?;
            Ok(value)
        })
    }

    /// Whether an error of [`run`](Self::run), or of a pattern, says that the key was used for another request.
    pub fn is_reused_key(error: &Error) -> bool {
        error.kind() == ErrorKind::Invalid && error.to_string() == REUSED
    }

    fn known(&self, key: &RequestKey, request: &str) -> Result<Option<String>, Error> {
        let rows = self
            .inner
            .tables
            .query("SELECT at, request, answer FROM _once WHERE key = ?", (key.as_str(),))?;
        let Some(row) = rows.first() else { return Ok(None) };
        if row.at::<Timestamp>(0)? <= self.oldest() {
            return Ok(None);
        }
        if row.at::<String>(1)? != request {
            return Err(Error::new(ErrorKind::Invalid, REUSED));
        }
        row.at(2).map(Some)
    }

    fn oldest(&self) -> Timestamp {
        self.inner.state.now() - self.max_age
    }

    fn remember(&self, key: &RequestKey, request: String, answer: String) -> Result<(), Error> {
        let since = self.inner.since.get().saturating_add(1);
        let last = match self.inner.last.get() {
            Some(last) if since < FORGET_EVERY => {
                self.inner.since.set(since);
                last
            }
            _ => {
                let last = self.forget()?;
                self.inner.since.set(0);
                last
            }
        };
        // By the clock, because others write to the same table: a number that only they know to be old would be forgotten
        // first, however fresh its key is.
        let now = self.inner.state.now();
        let next = (last + 1).max(now.as_millis());
        let params = (key.as_str(), next, now, request, answer);
        self.inner.tables.write("INSERT OR REPLACE INTO _once VALUES (?, ?, ?, ?, ?)", params)?;
        self.inner.last.set(Some(next));
        Ok(())
    }

    /// Forgets what is too old or too much, and gives the last `n`.
    fn forget(&self) -> Result<i64, Error> {
        let tables = &self.inner.tables;
        let rows = tables.query("SELECT max(n), min(at), count(*) FROM _once", ())?;
        let Some(row) = rows.first() else { return Ok(0) };
        let (last, oldest) = (row.at::<Option<i64>>(0)?, row.at::<Option<Timestamp>>(1)?);
        if oldest.is_some_and(|at| at <= self.oldest()) {
            tables.query("DELETE FROM _once WHERE at <= ?", (self.oldest(),))?;
        }
        if row.at::<i64>(2)? > i64::from(self.max_keys) {
            let sql = "DELETE FROM _once WHERE n <= (SELECT n FROM _once ORDER BY n DESC LIMIT 1 OFFSET ?)";
            tables.query(sql, (self.max_keys,))?;
        }
        Ok(last.unwrap_or(0).max(self.inner.last.get().unwrap_or(0)))
    }
}

const REUSED: &str = "the request key was used for another request";

impl<S: ObjectState> Clone for Once<S> {
    fn clone(&self) -> Self {
        Self { inner: Rc::clone(&self.inner), ..*self }
    }
}

impl<S: ObjectState> fmt::Debug for Once<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Once")
            .field("max_keys", &self.max_keys)
            .field("max_age", &self.max_age)
            .finish_non_exhaustive()
    }
}

fn json(what: &str, value: &impl Serialize, most: usize) -> Result<String, Error> {
    let text = serde_json::to_string(value)
        .map_err(|error| Error::new(ErrorKind::Invalid, format!("{what} cannot be JSON: {error}")))?;
    if text.len() > most {
        let message = format!("{what} has {} bytes as JSON, more than {most}", text.len());
        return Err(Error::new(ErrorKind::Limit, message));
    }
    Ok(text)
}

/// Longest name of a counter, a lease, a semaphore or a holder, in UTF-8 bytes.
pub const NAME_BYTES: usize = 256;

/// Refuses what cannot be a name: the empty one, one that is too long, and one with control characters.
pub(crate) fn check_name(what: &str, name: &str) -> Result<(), Error> {
    if name.is_empty() {
        return Err(Error::new(ErrorKind::Invalid, format!("{what} is empty")));
    }
    if name.len() > NAME_BYTES {
        let message = format!("{what} has {} bytes, more than {NAME_BYTES}", name.len());
        return Err(Error::new(ErrorKind::Limit, message));
    }
    if name.chars().any(char::is_control) {
        return Err(Error::new(ErrorKind::Invalid, format!("{what} has control characters")));
    }
    Ok(())
}
