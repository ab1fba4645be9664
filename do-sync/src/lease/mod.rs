//! Leases: one holder at a time, until it lets go or its time is over.
//!
//! Whether a lease is held is decided by the object's clock at each call. The alarm only tidies and gives notice.

mod grant;
mod holds;

pub use grant::{Expired, Grant, Held, Holder, Release, Token};
pub use holds::TTL_MAX;
pub(crate) use holds::{Holds, Statements, check_ttl, millis, statements};

use crate::once::{Once, RequestKey, check_name};
use do_core::{Alarm, Error, ObjectState};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::{fmt, rc::Rc, time::Duration};

const STATEMENTS: Statements = statements!("_lease");

/// Leases by name, in the object's database, with fencing tokens.
///
/// All calls are synchronous: what one does is part of the turn's transaction and of a
/// [`transaction`](do_core::SqlStorage::transaction) around it, and is durable before the object's answer leaves it (rule
/// C4). They need no alarm to be right: an expired lease is never seen as held, however late the alarm is.
///
/// Give it a slot of a [`Schedule`](do_core::Schedule), or [`Alarm::raw`] where nothing else uses the object's alarm, and
/// call [`on_alarm`](Self::on_alarm) when it comes. Make it once in an instance, in `new`, and clone it.
///
/// # The clock
/// A holder's time runs by the object's clock. A lease that was once seen to be over stays so when the clock is set back,
/// and what is left of one that is held is never more than its whole time. Where the clock jumps forward leases end early:
/// [tokens](Token) are what guards against a holder that does not know yet.
///
/// # What it costs
/// On Workers rows written are what is paid for, and setting the alarm counts as one; a slot's has a
/// [table of its own](do_core::schedule). A change sets it only for something sooner: a lease that is renewed again and
/// again wakes the object once in its time, and one that is released once, for nothing.
///
/// | | rows read | rows written |
/// |---|---|---|
/// | `acquire`, granted | 1 to 4 | 3, and the alarm if this is the soonest |
/// | `acquire`, held; `check`; `get` | 1 or 2 | 0 |
/// | `renew` | 2 or 3 | 2 |
/// | `release` | 2 or 3 | 1 |
/// | the first call that finds one to be over | 2 more | 2 more |
/// | the alarm | 2 for each that is over, and 2 | 1 for each that is over, 1, and the alarm if anything is left |
///
/// With a request key 1 more of each. An instance's first event that is not the alarm's reads 1 or 2 rows.
///
/// ```
/// use do_core::prelude::*;
/// use do_sync::{Acquired, Lease};
///
/// struct Printer<S: ObjectState> { schedule: Schedule<S>, lease: Lease<S> }
///
/// impl<S: ObjectState> DurableObject<S> for Printer<S> {
///     fn new(state: S) -> Result<Self> {
///         let schedule = Schedule::open(&state)?;
///         let lease = Lease::new(&state, schedule.slot("lease"));
///         Ok(Self { schedule, lease })
///     }
///     async fn fetch(&self, request: Request) -> Result<Response> {
///         let who = request.uri().path();
///         Ok(match self.lease.acquire("printer", who, Duration::from_secs(30))? {
///             Acquired::Granted(grant) => reply::json(&grant.token)?,
///             Acquired::Held(held) => reply::text(format!("in use until {}", held.until)),
///         })
///     }
///     async fn alarm(&self, info: AlarmInfo) -> Result<()> {
///         self.schedule.run_due(info, async |job| match job.name() {
///             "lease" => {
///                 for over in self.lease.on_alarm()? { println!("{} was too slow", over.held.holder); }
///                 Ok(())
///             }
///             _ => job.unknown(),
///         }).await
///     }
/// }
/// # #[cfg(not(target_arch = "wasm32"))]
/// # fn main() -> Result<()> {
/// let kit = do_core::kit::Kit::builder().object::<Printer<_>>("PRINTER").start()?;
/// let ask = async |who: &str| -> Result<String> {
///     let request = http::Request::get(format!("http://p/{who}")).body(Body::empty())?;
///     Ok(kit.namespace("PRINTER")?.named("p")?.fetch(request).await?.into_body().text(100).await?)
/// };
/// kit.run(async {
///     let ann: i64 = ask("ann").await?.parse()?;
///     assert!(ask("bob").await?.starts_with("in use until"));
///     kit.advance(Duration::from_secs(30)).await;
///     let bob: i64 = ask("bob").await?.parse()?;
///     assert!(bob > ann);
///     Ok(())
/// })
/// # }
/// # #[cfg(target_arch = "wasm32")]
/// # fn main() {}
/// ```
pub struct Lease<S: ObjectState> {
    holds: Rc<Holds<S>>,
    once: Once<S>,
    key: Option<RequestKey>,
}

/// What became of a [`Lease::acquire`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Acquired {
    /// The caller holds it now.
    Granted(Grant),
    /// Somebody holds it, which may be the caller itself. Nothing is changed.
    Held(Held),
}

impl Acquired {
    /// The grant, if there is one.
    pub fn granted(self) -> Option<Grant> {
        match self {
            Self::Granted(grant) => Some(grant),
            Self::Held(_) => None,
        }
    }
}

impl<S: ObjectState> Lease<S> {
    /// The leases of an object. Touches nothing yet.
    pub fn new(state: &S, alarm: impl Into<Alarm<S>>) -> Self {
        Self { holds: Holds::new(state, alarm.into(), &STATEMENTS), once: Once::new(state), key: None }
    }

    /// The same leases with another memory for request keys.
    #[must_use]
    pub fn once(self, once: Once<S>) -> Self {
        Self { once, ..self }
    }

    /// The same leases for one request: the call that changes something is done once under this key, and repeated calls
    /// give the first answer, also that somebody holds it, and also when what was granted is over by now: `until` tells.
    /// Whoever waits for a lease asks with a new key each time. See [`Once`].
    #[must_use]
    pub fn keyed(&self, key: RequestKey) -> Self {
        Self { key: Some(key), ..self.clone() }
    }

    /// Takes the lease if nobody holds it. `holder` says who it is, for [`get`](Self::get): the same holder asking again
    /// without the same key is told that it is held.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`](do_core::ErrorKind::Invalid) and [`ErrorKind::Limit`](do_core::ErrorKind::Limit) for a name
    /// or a holder that is empty, has control characters or more than [`NAME_BYTES`](crate::NAME_BYTES), and for a `ttl`
    /// under a millisecond or over [`TTL_MAX`]; as [`Once::run`]. Nothing is changed then.
    pub fn acquire(&self, name: &str, holder: &str, ttl: Duration) -> Result<Acquired, Error> {
        check_name("the lease's name", name)?;
        check_name("the holder's name", holder)?;
        check_ttl(ttl)?;
        self.run(&("lease.acquire", name, holder, millis(ttl)), || {
            match self.holds.live(name)?.into_iter().next() {
                Some(Holder { holder, until, .. }) => {
                    Ok(Acquired::Held(Held { until, holder: Some(holder) }))
                }
                None => self.holds.grant(name, holder, 1, ttl).map(Acquired::Granted),
            }
        })
    }

    /// Holds it for `ttl` from now on, shorter than before too, with the same token; `None` when it is not held with this
    /// token any more. An expired lease cannot be renewed, also if nobody else took it.
    ///
    /// # Errors
    /// As [`acquire`](Self::acquire).
    pub fn renew(&self, name: &str, token: Token, ttl: Duration) -> Result<Option<Grant>, Error> {
        check_name("the lease's name", name)?;
        check_ttl(ttl)?;
        self.run(&("lease.renew", name, token, millis(ttl)), || {
            let held = self.holds.one(name, token)?;
            held.map(|held| self.holds.extend(name, &held, ttl)).transpose()
        })
    }

    /// Lets go of it. May be repeated, with a key or without.
    ///
    /// # Errors
    /// As [`acquire`](Self::acquire).
    pub fn release(&self, name: &str, token: Token) -> Result<Release, Error> {
        check_name("the lease's name", name)?;
        self.run(&("lease.release", name, token), || {
            Ok(match self.holds.live(name)?.into_iter().next() {
                None => Release::NotHeld,
                Some(held) if held.token == token => {
                    self.holds.delete(name, token)?;
                    Release::Released
                }
                Some(_) => Release::Stale,
            })
        })
    }

    /// Whether it is held with this token. For writes of this object that only the holder may make: what is written before
    /// the next await is written while it is held. What other systems write is guarded by the token alone.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    #[must_use = "who does not hold the lease must not write"]
    pub fn check(&self, name: &str, token: Token) -> Result<bool, Error> {
        Ok(self.get(name)?.is_some_and(|held| held.token == token))
    }

    /// Who holds it.
    ///
    /// # Errors
    /// For a name that is none, and as [`SqlStorage::exec`](do_core::SqlStorage::exec).
    pub fn get(&self, name: &str) -> Result<Option<Holder>, Error> {
        check_name("the lease's name", name)?;
        self.holds.tables.together(|| Ok(self.holds.live(name)?.into_iter().next()))
    }

    /// For the object's `alarm()`: takes away what expired, sets the alarm for what is soonest, and gives what it took
    /// away, in no particular order, at most 1,000 in one run.
    ///
    /// Each expiry is given once, also when somebody took the lease before the alarm came; only if more than 64 of one
    /// name wait are the oldest forgotten. What the caller writes before its next await is one commit with the removal. For
    /// work that awaits [put](do_core::Schedule::put) a job there.
    ///
    /// # Errors
    /// As [`SqlStorage::exec`](do_core::SqlStorage::exec): then nothing was taken away, and the alarm's run is to fail.
    pub fn on_alarm(&self) -> Result<Vec<Expired>, Error> {
        self.holds.expire()
    }

    fn run<T: Serialize + DeserializeOwned>(
        &self,
        request: &impl Serialize,
        work: impl FnOnce() -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.once.run(self.key.as_ref(), request, work)
    }
}

impl<S: ObjectState> Clone for Lease<S> {
    fn clone(&self) -> Self {
        Self { holds: Rc::clone(&self.holds), once: self.once.clone(), key: self.key.clone() }
    }
}

impl<S: ObjectState> fmt::Debug for Lease<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease").field("key", &self.key).finish_non_exhaustive()
    }
}
