use super::wire::{self, Answer, Arguments, Name};
use crate::{
    lease::{Acquired, Grant, Held, Lease, Release, Token},
    once::{Once, RequestKey},
    semaphore::{Permits, Semaphore},
};
use do_core::{
    AlarmInfo, DurableObject, Error, Failure, ObjectState, Request, Response, Schedule, Timestamp,
};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// An object that holds [leases](Lease) and [semaphores](Semaphore), for [`LockStub`](crate::LockStub) and for anything
/// that speaks HTTP.
///
/// `do_core::export!(Locks = do_sync::LockObject<_>)` makes it a class of a Worker, `.object::<LockObject<_>>("LOCKS")` one
/// of a native host. It does not ask who is calling: put a route in front of it, as of any object.
///
/// Operations are `POST` requests with a JSON object, changes with a request key in the header `idempotency-key` if they
/// are to be done once. Times are milliseconds, `until` of the Unix time by the object's clock.
///
/// | path | arguments | answer |
/// |---|---|---|
/// | `/lease/acquire` | `name`, `holder`, `ttl_ms`, `tell_holder` | `{"token": 1, "until": 2}`; 409 `held` with `until`, and `holder` if it is to be told |
/// | `/lease/renew` | `name`, `token`, `ttl_ms` | `{"token": 1, "until": 2}`; 409 `not_held` |
/// | `/lease/release` | `name`, `token` | `{"released": true}`, or `false` if nobody holds it; 409 `stale` |
/// | `/lease/check` | `name`, `token` | `{"held": true}` |
/// | `/lease/get` | `name` | `{"holder": {"holder": "ann", "token": 1, "until": 2, "weight": 1}}` or `null` |
/// | `/semaphore/capacity` | `name`, `permits` | `{}` |
/// | `/semaphore/acquire` | `name`, `holder`, `weight` (1 if absent), `ttl_ms` | as of a lease; 409 `exhausted` with `free` and `until`; 404 `not_found` without a capacity |
/// | `/semaphore/renew`, `/release`, `/check` | | as of a lease |
/// | `/semaphore/get` | `name` | `{"usage": {"capacity": 3, "free": 1, "holders": [..]}}` or `null` |
///
/// Refusals are 400, 404, 405, 409, 413 or 422 with `{"error": "held", "message": ".."}` and what else there is to say;
/// `key_reused` is 422.
///
/// ```
/// use do_core::prelude::*;
/// use do_sync::{Acquired, LockObject, LockStub};
///
/// do_core::export!(Locks = do_sync::LockObject<_>);
///
/// # #[cfg(not(target_arch = "wasm32"))]
/// # fn main() -> Result<()> {
/// let kit = do_core::kit::Kit::builder().object::<LockObject<_>>("LOCKS").start()?;
/// kit.run(async {
///     let locks = LockStub::new(kit.namespace("LOCKS")?.named("printers")?);
///     let minute = Duration::from_secs(60);
///     let Acquired::Granted(grant) = locks.acquire("laser", "ann", minute).await? else { panic!() };
///     assert!(matches!(locks.acquire("laser", "bob", minute).await?, Acquired::Held(_)));
///     locks.release("laser", grant.token).await?;
///     assert!(locks.acquire("laser", "bob", minute).await?.granted().unwrap().token > grant.token);
///     Ok(())
/// })
/// # }
/// # #[cfg(target_arch = "wasm32")]
/// # fn main() {}
/// ```
pub struct LockObject<S: ObjectState> {
    schedule: Schedule<S>,
    lease: Lease<S>,
    semaphore: Semaphore<S>,
}

/// The slots of the schedule.
const LEASE: &str = "lease";
const SEMAPHORE: &str = "semaphore";

#[derive(Serialize, Deserialize)]
pub(super) struct Acquire {
    pub(super) name: String,
    pub(super) holder: String,
    #[serde(default = "one")]
    pub(super) weight: u32,
    pub(super) ttl_ms: u64,
    #[serde(default)]
    pub(super) tell_holder: bool,
}

fn one() -> u32 {
    1
}

#[derive(Serialize, Deserialize)]
pub(super) struct Renew {
    pub(super) name: String,
    pub(super) token: Token,
    pub(super) ttl_ms: u64,
}

#[derive(Serialize, Deserialize)]
pub(super) struct OfToken {
    pub(super) name: String,
    pub(super) token: Token,
}

#[derive(Serialize, Deserialize)]
pub(super) struct Capacity {
    pub(super) name: String,
    pub(super) permits: u32,
}

#[derive(Serialize, Deserialize)]
pub(super) struct Released {
    pub(super) released: bool,
}

#[derive(Serialize, Deserialize)]
pub(super) struct Checked {
    pub(super) held: bool,
}

#[derive(Serialize, Deserialize)]
pub(super) struct OfLease {
    pub(super) holder: Option<crate::lease::Holder>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct OfSemaphore {
    pub(super) usage: Option<crate::semaphore::Usage>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct Exhausted {
    pub(super) free: u32,
    pub(super) until: Option<Timestamp>,
}

impl<S: ObjectState> LockObject<S> {
    fn of_lease(
        &self,
        operation: &str,
        key: Option<RequestKey>,
        arguments: &Arguments,
    ) -> Result<Option<Answer>, Error> {
        let lease = match key {
            Some(key) => self.lease.keyed(key),
            None => self.lease.clone(),
        };
        Ok(Some(match operation {
            "acquire" => {
                let Acquire { name, holder, ttl_ms, tell_holder, .. } = arguments.read()?;
                match lease.acquire(&name, &holder, Duration::from_millis(ttl_ms))? {
                    Acquired::Granted(grant) => Answer::done(&grant),
                    Acquired::Held(Held { until, holder }) => {
                        let held = Held { until, holder: holder.filter(|_| tell_holder) };
                        Answer::not_now("held", "the lease is held", &held)
                    }
                }
            }
            "renew" => {
                let Renew { name, token, ttl_ms } = arguments.read()?;
                renewed(lease.renew(&name, token, Duration::from_millis(ttl_ms))?)
            }
            "release" => {
                let OfToken { name, token } = arguments.read()?;
                released(lease.release(&name, token)?)
            }
            "check" => {
                let OfToken { name, token } = arguments.read()?;
                Answer::done(&Checked { held: lease.check(&name, token)? })
            }
            "get" => Answer::done(&OfLease { holder: lease.get(&arguments.read::<Name>()?.name)? }),
            _ => return Ok(None),
        }?))
    }

    fn of_semaphore(
        &self,
        operation: &str,
        key: Option<RequestKey>,
        arguments: &Arguments,
    ) -> Result<Option<Answer>, Error> {
        let semaphore = match key {
            Some(key) => self.semaphore.keyed(key),
            None => self.semaphore.clone(),
        };
        Ok(Some(match operation {
            "capacity" => {
                let Capacity { name, permits } = arguments.read()?;
                semaphore.set_capacity(&name, permits)?;
                Answer::done(&wire::Nothing {})
            }
            "acquire" => {
                let Acquire { name, holder, weight, ttl_ms, .. } = arguments.read()?;
                match semaphore.acquire(&name, &holder, weight, Duration::from_millis(ttl_ms))? {
                    Permits::Granted(grant) => Answer::done(&grant),
                    Permits::Exhausted { free, until } => {
                        let more = Exhausted { free, until };
                        Answer::not_now("exhausted", "too few permits are free", &more)
                    }
                }
            }
            "renew" => {
                let Renew { name, token, ttl_ms } = arguments.read()?;
                renewed(semaphore.renew(&name, token, Duration::from_millis(ttl_ms))?)
            }
            "release" => {
                let OfToken { name, token } = arguments.read()?;
                released(semaphore.release(&name, token)?)
            }
            "check" => {
                let OfToken { name, token } = arguments.read()?;
                Answer::done(&Checked { held: semaphore.check(&name, token)? })
            }
            "get" => Answer::done(&OfSemaphore { usage: semaphore.usage(&arguments.read::<Name>()?.name)? }),
            _ => return Ok(None),
        }?))
    }

    fn operation(&self, path: &str, key: Option<RequestKey>, arguments: &Arguments) -> Result<Answer, Error> {
        let answer = if let Some(operation) = path.strip_prefix("/lease/") {
            self.of_lease(operation, key, arguments)?
        } else if let Some(operation) = path.strip_prefix("/semaphore/") {
            self.of_semaphore(operation, key, arguments)?
        } else {
            None
        };
        Ok(answer.unwrap_or_else(|| Answer::unknown(path)))
    }
}

fn renewed(grant: Option<Grant>) -> Result<Answer, Error> {
    match grant {
        Some(grant) => Answer::done(&grant),
        None => Answer::not_now("not_held", "nothing is held with this token any more", &wire::Nothing {}),
    }
}

fn released(release: Release) -> Result<Answer, Error> {
    match release {
        Release::Released => Answer::done(&Released { released: true }),
        Release::NotHeld => Answer::done(&Released { released: false }),
        Release::Stale => Answer::not_now("stale", "somebody else holds the lease", &wire::Nothing {}),
    }
}

impl<S: ObjectState> DurableObject<S> for LockObject<S> {
    fn new(state: S) -> Result<Self, Failure> {
        let schedule = Schedule::open(&state)?;
        let once = Once::new(&state);
        let lease = Lease::new(&state, schedule.slot(LEASE)).once(once.clone());
        let semaphore = Semaphore::new(&state, schedule.slot(SEMAPHORE)).once(once);
        Ok(Self { schedule, lease, semaphore })
    }

    async fn fetch(&self, request: Request) -> Result<Response, Failure> {
        wire::serve::<S>(request, |path, key, arguments| self.operation(path, key, arguments)).await
    }

    async fn alarm(&self, info: AlarmInfo) -> Result<(), Failure> {
        let run = async |job: do_core::Job| {
            let expired = match job.name() {
                LEASE => self.lease.on_alarm()?,
                SEMAPHORE => self.semaphore.on_alarm()?,
                _ => return job.unknown(),
            };
            tracing::debug!(expired = expired.len(), what = job.name(), "expired");
            Ok(())
        };
        self.schedule.run_due(info, run).await
    }
}

/// Not derived, because schedules and states need not have it.
impl<S: ObjectState> std::fmt::Debug for LockObject<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LockObject").finish_non_exhaustive()
    }
}
