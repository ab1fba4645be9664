//! Numbers that are exact: each change is one SQL statement, which gives the result.

use crate::once::{Once, RequestKey, check_name};
use do_core::{Error, ErrorKind, ObjectState, Value, limits::SQL_INTEGER_MAX, tables::Tables};
use serde::{Deserialize, Serialize};
use std::{fmt, ops::RangeInclusive, rc::Rc};

const CREATE: &str = "
CREATE TABLE IF NOT EXISTS _counter (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID;
";

/// Counters by name, in the object's database.
///
/// A counter that nobody changed yet is 0, or the bound that is nearest to 0. All calls are synchronous: what one does is
/// part of the turn's transaction and of a [`transaction`](do_core::SqlStorage::transaction) around it, and is durable
/// before the object's answer leaves it (rule C4). On Workers a call reads 1 or 2 rows and writes at most 1; with a
/// [request key](Self::keyed) 1 more of each. One that is refused reads 1 more.
///
/// Values go from -(2^53-1) to 2^53-1, which is what every host holds exactly (rule F3), or are
/// [bounded](Self::bounds) closer. A counter stays until it is [reset](Self::reset): make names from what is bounded.
///
/// ```
/// use do_core::prelude::*;
/// use do_sync::Counter;
///
/// struct Page<S: ObjectState> { hits: Counter<S> }
///
/// impl<S: ObjectState> DurableObject<S> for Page<S> {
///     fn new(state: S) -> Result<Self> { Ok(Self { hits: Counter::new(&state) }) }
///     async fn fetch(&self, request: Request) -> Result<Response> {
///         Ok(reply::json(&self.hits.add(request.uri().path(), 1)?)?)
///     }
/// }
/// # #[cfg(not(target_arch = "wasm32"))]
/// # fn main() -> Result<()> {
/// let kit = do_core::kit::Kit::builder().object::<Page<_>>("PAGE").start()?;
/// kit.run(async {
///     let page = kit.namespace("PAGE")?.named("a")?;
///     page.fetch(Request::default()).await?;
///     kit.crash();
///     let hits: i64 = page.fetch(Request::default()).await?.into_body().json(100).await?;
///     assert_eq!(hits, 2);
///     Ok(())
/// })
/// # }
/// # #[cfg(target_arch = "wasm32")]
/// # fn main() {}
/// ```
pub struct Counter<S: ObjectState> {
    tables: Rc<Tables<S::Sql>>,
    once: Once<S>,
    min: i64,
    max: i64,
    key: Option<RequestKey>,
}

/// What became of a [`Counter::compare_and_set`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CompareAndSet {
    /// The value was the expected one, and is the new one now.
    Done,
    /// The value is this one, and was left as it is.
    Differs(i64),
}

/// What is remembered of a call: a refusal is an answer too.
#[derive(Clone, Copy, Serialize, Deserialize)]
enum Answer {
    Value(i64),
    /// The value that was left as it is.
    Beyond(i64),
}

impl<S: ObjectState> Counter<S> {
    /// The counters of an object. Touches nothing yet. Clones, and others made of the same state, are the same counters.
    pub fn new(state: &S) -> Self {
        Self {
            tables: Rc::new(Tables::new(state.sql(), "_counter", CREATE)),
            once: Once::new(state),
            min: -SQL_INTEGER_MAX,
            max: SQL_INTEGER_MAX,
            key: None,
        }
    }

    /// The same counters with calls through this that keep to bounds; what is stored already may be outside. Of bounds
    /// beyond ±(2^53-1), and of empty ones, the part that can be kept to counts.
    #[must_use]
    pub fn bounds(self, bounds: RangeInclusive<i64>) -> Self {
        let min = *bounds.start().clamp(&-SQL_INTEGER_MAX, &SQL_INTEGER_MAX);
        Self { min, max: (*bounds.end()).clamp(min, SQL_INTEGER_MAX), ..self }
    }

    /// The same counters with another memory for request keys.
    #[must_use]
    pub fn once(self, once: Once<S>) -> Self {
        Self { once, ..self }
    }

    /// The same counters for one request: the call that changes something is done once under this key, and repeated
    /// calls give the first answer, refusals included. See [`Once`].
    #[must_use]
    pub fn keyed(&self, key: RequestKey) -> Self {
        Self { key: Some(key), ..self.clone() }
    }

    /// The value.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] and [`ErrorKind::Limit`] for a name that is empty, has control characters or more than
    /// [`NAME_BYTES`](crate::NAME_BYTES); as [`SqlStorage::exec`](do_core::SqlStorage::exec).
    pub fn get(&self, name: &str) -> Result<i64, Error> {
        check_name("the counter's name", name)?;
        let rows = self.tables.query("SELECT value FROM _counter WHERE name = ?", (name,))?;
        Ok(rows.first().map(|row| row.at(0)).transpose()?.unwrap_or_else(|| self.initial()))
    }

    /// Adds to the value, a negative number too, and gives the new one.
    ///
    /// # Errors
    /// [`ErrorKind::Limit`] when the sum would be out of bounds, and [`ErrorKind::Invalid`] for a number beyond
    /// ±(2^53-1): the counter is left as it is. As [`get`](Self::get), and as [`Once::run`] with a key.
    pub fn add(&self, name: &str, by: i64) -> Result<i64, Error> {
        check_name("the counter's name", name)?;
        Value::from(by).check_bind()?;
        let answer = self.run(&("counter.add", name, by), || self.add_now(name, by))?;
        self.value(name, answer, || format!("adding {by} to"))
    }

    fn add_now(&self, name: &str, by: i64) -> Result<Answer, Error> {
        let first = self.initial().saturating_add(by);
        // Both statements keep the sum in integers: bound numbers are real (rule F1).
        let rows = if (self.min..=self.max).contains(&first) {
            let sql = "INSERT INTO _counter VALUES (?1, ?2) ON CONFLICT DO UPDATE \
                SET value = value + CAST(?3 AS INTEGER) \
                WHERE value + CAST(?3 AS INTEGER) BETWEEN ?4 AND ?5 RETURNING value";
            self.tables.write(sql, (name, first, by, self.min, self.max))?
        } else {
            let sql = "UPDATE _counter SET value = value + CAST(?2 AS INTEGER) \
                WHERE name = ?1 AND value + CAST(?2 AS INTEGER) BETWEEN ?3 AND ?4 RETURNING value";
            self.tables.query(sql, (name, by, self.min, self.max))?
        };
        match rows.first() {
            Some(row) => row.at(0).map(Answer::Value),
            None => self.get(name).map(Answer::Beyond),
        }
    }

    /// Sets the value and gives it back.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    pub fn set(&self, name: &str, value: i64) -> Result<i64, Error> {
        check_name("the counter's name", name)?;
        Value::from(value).check_bind()?;
        let answer = self.run(&("counter.set", name, value), || {
            if !(self.min..=self.max).contains(&value) {
                return self.get(name).map(Answer::Beyond);
            }
            let sql = "INSERT INTO _counter VALUES (?1, ?2) ON CONFLICT DO UPDATE SET value = excluded.value";
            self.tables.write(sql, (name, value))?;
            Ok(Answer::Value(value))
        })?;
        self.value(name, answer, || format!("{value} for"))
    }

    /// Sets the value if it is the expected one.
    ///
    /// # Errors
    /// As [`add`](Self::add): [`ErrorKind::Limit`] when `value` is out of bounds, whatever the counter holds.
    pub fn compare_and_set(&self, name: &str, expected: i64, value: i64) -> Result<CompareAndSet, Error> {
        check_name("the counter's name", name)?;
        Value::from(expected).check_bind()?;
        Value::from(value).check_bind()?;
        if !(self.min..=self.max).contains(&value) {
            let found = self.get(name)?;
            return Err(self.beyond(name, found, &format!("{value} for")));
        }
        self.run(&("counter.compare_and_set", name, expected, value), || {
            let rows = if expected == self.initial() {
                let sql = "INSERT INTO _counter VALUES (?1, ?3) ON CONFLICT DO UPDATE SET value = excluded.value \
                    WHERE value = ?2 RETURNING 1";
                self.tables.write(sql, (name, expected, value))?
            } else {
                let sql = "UPDATE _counter SET value = ?3 WHERE name = ?1 AND value = ?2 RETURNING 1";
                self.tables.query(sql, (name, expected, value))?
            };
            if rows.is_empty() { self.get(name).map(CompareAndSet::Differs) } else { Ok(CompareAndSet::Done) }
        })
    }

    /// Takes the counter away, so that it is as one that nobody changed; what its value was, if it was there.
    ///
    /// # Errors
    /// As [`get`](Self::get), and as [`Once::run`] with a key.
    pub fn reset(&self, name: &str) -> Result<Option<i64>, Error> {
        check_name("the counter's name", name)?;
        self.run(&("counter.reset", name), || {
            let rows = self.tables.query("DELETE FROM _counter WHERE name = ? RETURNING value", (name,))?;
            rows.first().map(|row| row.at(0)).transpose()
        })
    }

    /// Counters that were changed, with their values, in the order of their names' bytes, after a name, at most `limit`.
    /// `""` is before all. Reads as many rows as it gives.
    ///
    /// # Errors
    /// As [`SqlStorage::exec`](do_core::SqlStorage::exec).
    pub fn list(&self, after: &str, limit: u32) -> Result<Vec<(String, i64)>, Error> {
        let sql = "SELECT name, value FROM _counter WHERE name > ? ORDER BY name LIMIT ?";
        self.tables.query(sql, (after, limit))?.iter().map(|row| Ok((row.at(0)?, row.at(1)?))).collect()
    }

    fn run<T: Serialize + for<'a> Deserialize<'a>>(
        &self,
        request: &impl Serialize,
        work: impl FnOnce() -> Result<T, Error>,
    ) -> Result<T, Error> {
        match &self.key {
            None => work(), // one statement needs no transaction
            key => self.once.run(key.as_ref(), request, work),
        }
    }

    fn initial(&self) -> i64 {
        0.clamp(self.min, self.max)
    }

    fn value(&self, name: &str, answer: Answer, what: impl FnOnce() -> String) -> Result<i64, Error> {
        match answer {
            Answer::Value(value) => Ok(value),
            Answer::Beyond(found) => Err(self.beyond(name, found, &what())),
        }
    }

    fn beyond(&self, name: &str, found: i64, what: &str) -> Error {
        let (min, max) = (self.min, self.max);
        let message = format!("{what} the counter {name:?}, which is {found}, is out of {min} to {max}");
        Error::new(ErrorKind::Limit, message)
    }
}

impl<S: ObjectState> Clone for Counter<S> {
    fn clone(&self) -> Self {
        Self { tables: Rc::clone(&self.tables), once: self.once.clone(), key: self.key.clone(), ..*self }
    }
}

impl<S: ObjectState> fmt::Debug for Counter<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Counter")
            .field("bounds", &(self.min..=self.max))
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}
