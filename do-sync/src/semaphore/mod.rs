//! Semaphores: several holders at a time, each with a weight, a time and a fencing token.

use crate::{
    lease::{Expired, Grant, Holder, Holds, Release, Statements, Token, check_ttl, millis, statements},
    once::{Once, RequestKey, check_name},
};
use do_core::{Alarm, Error, ErrorKind, ObjectState, Timestamp};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::{fmt, rc::Rc, time::Duration};

/// Most grants of one semaphore that are held at a time, whatever their weights: each is a row that an `acquire` reads.
pub const GRANTS_MAX: usize = 10_000;

const STATEMENTS: Statements = statements!(
    "_semaphore",
    "CREATE TABLE IF NOT EXISTS _semaphore_capacity (name TEXT PRIMARY KEY, permits INTEGER NOT NULL) STRICT, WITHOUT ROWID;"
);

/// Semaphores by name, in the object's database: so many permits each, held until they are released or their time is over.
///
/// A semaphore is there when it has a [capacity](Self::set_capacity). Calls are synchronous and atomic, time is treated
/// and the alarm is used as by [`Lease`](crate::Lease); with both in one object they have slots of a
/// [`Schedule`](do_core::Schedule). There is no queue: who finds too few permits asks again, and a small request can
/// overtake a large one.
///
/// An `acquire` reads 3 rows and 1 for each grant that is held; it writes 3, and the alarm when it becomes the soonest.
/// The others cost as with a lease, and read the grants of the name.
///
/// ```
/// # use do_core::prelude::*;
/// use do_sync::{Permits, Semaphore};
///
/// # struct Pool<S: ObjectState> { semaphore: Semaphore<S> }
/// # impl<S: ObjectState> DurableObject<S> for Pool<S> {
/// fn new(state: S) -> Result<Self> {
///     let semaphore = Semaphore::new(&state, Alarm::raw(&state));
///     semaphore.set_capacity("workers", 3)?;
///     Ok(Self { semaphore })
/// }
/// async fn fetch(&self, _: Request) -> Result<Response> {
///     Ok(match self.semaphore.acquire("workers", "ann", 2, Duration::from_secs(60))? {
///         Permits::Granted(grant) => reply::json(&grant.token)?,
///         Permits::Exhausted { free, .. } => reply::text(format!("only {free} left")),
///     })
/// }
/// async fn alarm(&self, _: AlarmInfo) -> Result<()> {
///     self.semaphore.on_alarm()?;
///     Ok(())
/// }
/// # }
/// # #[cfg(not(target_arch = "wasm32"))]
/// # fn main() -> Result<()> {
/// # let kit = do_core::kit::Kit::builder().object::<Pool<_>>("POOL").start()?;
/// # kit.run(async {
/// # let pool = kit.namespace("POOL")?.named("p")?;
/// # pool.fetch(Request::default()).await?;
/// # let text = pool.fetch(Request::default()).await?.into_body().text(100).await?;
/// # assert_eq!(text, "only 1 left");
/// # Ok(()) })
/// # }
/// # #[cfg(target_arch = "wasm32")]
/// # fn main() {}
/// ```
pub struct Semaphore<S: ObjectState> {
    holds: Rc<Holds<S>>,
    once: Once<S>,
    key: Option<RequestKey>,
}

/// What became of a [`Semaphore::acquire`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Permits {
    /// The caller holds them now.
    Granted(Grant),
    /// There are too few. Nothing is changed.
    Exhausted {
        /// How many are free.
        free: u32,
        /// When the first grant expires, if any is held.
        until: Option<Timestamp>,
    },
}

/// What is remembered of an `acquire`: every refusal that may be another one later.
#[derive(Serialize, Deserialize)]
enum Answer {
    Permits(Permits),
    /// Without a capacity.
    Unknown,
    TooMany,
}

impl Permits {
    /// The grant, if there is one.
    pub fn granted(self) -> Option<Grant> {
        match self {
            Self::Granted(grant) => Some(grant),
            Self::Exhausted { .. } => None,
        }
    }
}

/// How a semaphore stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// How many permits there are.
    pub capacity: u32,
    /// How many of them are free: none after the capacity was set below what is held.
    pub free: u32,
    /// Who holds the others, in the order in which they were granted.
    pub holders: Vec<Holder>,
}

impl<S: ObjectState> Semaphore<S> {
    /// The semaphores of an object. Touches nothing yet.
    pub fn new(state: &S, alarm: impl Into<Alarm<S>>) -> Self {
        Self { holds: Holds::new(state, alarm.into(), &STATEMENTS), once: Once::new(state), key: None }
    }

    /// The same semaphores with another memory for request keys.
    #[must_use]
    pub fn once(self, once: Once<S>) -> Self {
        Self { once, ..self }
    }

    /// The same semaphores for one request, as [`Lease::keyed`](crate::Lease::keyed).
    #[must_use]
    pub fn keyed(&self, key: RequestKey) -> Self {
        Self { key: Some(key), ..self.clone() }
    }

    /// Says how many permits there are, also while some are held. Below what is held nobody loses any: nothing is granted
    /// until enough have come back. The same capacity again writes nothing.
    ///
    /// # Errors
    /// As [`acquire`](Self::acquire).
    pub fn set_capacity(&self, name: &str, permits: u32) -> Result<(), Error> {
        check_name("the semaphore's name", name)?;
        self.run(&("semaphore.set_capacity", name, permits), || {
            if self.capacity(name)? != Some(permits) {
                let sql = "INSERT OR REPLACE INTO _semaphore_capacity VALUES (?, ?)";
                self.holds.tables.write(sql, (name, permits))?;
            }
            Ok(())
        })
    }

    /// Takes `weight` permits, or none.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] for a semaphore without a capacity; [`ErrorKind::Invalid`] and [`ErrorKind::Limit`] for a
    /// name or a holder that is empty, has control characters or more than [`NAME_BYTES`](crate::NAME_BYTES), for a weight
    /// of 0, for a `ttl` under a millisecond or over [`TTL_MAX`](crate::TTL_MAX), and with [`GRANTS_MAX`] held; as
    /// [`Once::run`]. Nothing is changed then.
    pub fn acquire(&self, name: &str, holder: &str, weight: u32, ttl: Duration) -> Result<Permits, Error> {
        check_name("the semaphore's name", name)?;
        check_name("the holder's name", holder)?;
        check_ttl(ttl)?;
        if weight == 0 {
            return Err(Error::new(ErrorKind::Invalid, "a weight of 0 permits"));
        }
        let request = ("semaphore.acquire", name, holder, weight, millis(ttl));
        match self.run(&request, || self.acquire_now(name, holder, weight, ttl))? {
            Answer::Permits(permits) => Ok(permits),
            Answer::Unknown => {
                let message = format!("there is no semaphore {name:?}: it has no capacity");
                Err(Error::new(ErrorKind::NotFound, message))
            }
            Answer::TooMany => {
                let message = format!("the semaphore {name:?} has {GRANTS_MAX} grants already");
                Err(Error::new(ErrorKind::Limit, message))
            }
        }
    }

    fn acquire_now(&self, name: &str, holder: &str, weight: u32, ttl: Duration) -> Result<Answer, Error> {
        let Some(usage) = self.usage_now(name)? else { return Ok(Answer::Unknown) };
        if weight > usage.free {
            let until = usage.holders.iter().map(|held| held.until).min();
            return Ok(Answer::Permits(Permits::Exhausted { free: usage.free, until }));
        }
        if usage.holders.len() >= GRANTS_MAX {
            return Ok(Answer::TooMany);
        }
        self.holds.grant(name, holder, weight, ttl).map(|grant| Answer::Permits(Permits::Granted(grant)))
    }

    /// Holds them for `ttl` from now on, with the same token; `None` when they are not held with this token any more.
    ///
    /// # Errors
    /// As [`acquire`](Self::acquire), but without a capacity nothing is held.
    pub fn renew(&self, name: &str, token: Token, ttl: Duration) -> Result<Option<Grant>, Error> {
        check_name("the semaphore's name", name)?;
        check_ttl(ttl)?;
        self.run(&("semaphore.renew", name, token, millis(ttl)), || {
            let held = self.holds.one(name, token)?;
            held.map(|held| self.holds.extend(name, &held, ttl)).transpose()
        })
    }

    /// Gives all permits of a grant back. May be repeated; never [`Release::Stale`].
    ///
    /// # Errors
    /// As [`renew`](Self::renew).
    pub fn release(&self, name: &str, token: Token) -> Result<Release, Error> {
        check_name("the semaphore's name", name)?;
        self.run(&("semaphore.release", name, token), || {
            if self.holds.one(name, token)?.is_none() {
                return Ok(Release::NotHeld);
            }
            self.holds.delete(name, token)?;
            Ok(Release::Released)
        })
    }

    /// Whether permits are held with this token, as [`Lease::check`](crate::Lease::check).
    ///
    /// # Errors
    /// For a name that is none, and as [`SqlStorage::exec`](do_core::SqlStorage::exec).
    #[must_use = "who holds no permits must not go on"]
    pub fn check(&self, name: &str, token: Token) -> Result<bool, Error> {
        check_name("the semaphore's name", name)?;
        self.holds.tables.together(|| Ok(self.holds.one(name, token)?.is_some()))
    }

    /// How it stands; `None` without a capacity.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    pub fn usage(&self, name: &str) -> Result<Option<Usage>, Error> {
        check_name("the semaphore's name", name)?;
        self.holds.tables.together(|| self.usage_now(name))
    }

    /// As [`Lease::on_alarm`](crate::Lease::on_alarm).
    ///
    /// # Errors
    /// As [`SqlStorage::exec`](do_core::SqlStorage::exec).
    pub fn on_alarm(&self) -> Result<Vec<Expired>, Error> {
        self.holds.expire()
    }

    fn usage_now(&self, name: &str) -> Result<Option<Usage>, Error> {
        let Some(capacity) = self.capacity(name)? else { return Ok(None) };
        let holders = self.holds.live(name)?;
        let held = holders.iter().fold(0_u32, |sum, held| sum.saturating_add(held.weight));
        Ok(Some(Usage { capacity, free: capacity.saturating_sub(held), holders }))
    }

    fn capacity(&self, name: &str) -> Result<Option<u32>, Error> {
        let sql = "SELECT permits FROM _semaphore_capacity WHERE name = ?";
        let rows = self.holds.tables.query(sql, (name,))?;
        rows.first().map(|row| row.at(0)).transpose()
    }

    fn run<T: Serialize + DeserializeOwned>(
        &self,
        request: &impl Serialize,
        work: impl FnOnce() -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.once.run(self.key.as_ref(), request, work)
    }
}

impl<S: ObjectState> Clone for Semaphore<S> {
    fn clone(&self) -> Self {
        Self { holds: Rc::clone(&self.holds), once: self.once.clone(), key: self.key.clone() }
    }
}

impl<S: ObjectState> fmt::Debug for Semaphore<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Semaphore").field("key", &self.key).finish_non_exhaustive()
    }
}
