use do_core::{Job, Schedule, prelude::*, testing::Log};
use do_sync::{Acquired, Lease, Token};
use serde_json::{Value, json};
use std::fmt;

/// Most bytes of a question.
const MOST: usize = 1_024;

/// An object with leases of its own, that notes what its alarm finds to be over.
///
/// | request | answer |
/// |---|---|
/// | POST `["acquire", NAME, HOLDER, MS]` | the token, or `null` |
/// | POST `["renew", NAME, TOKEN, MS]` | whether it is held |
/// | POST `["over"]` | what expired, as name, holder and token |
pub struct LeaseProbe<S: ObjectState> {
    schedule: Schedule<S>,
    lease: Lease<S>,
    log: Log<S>,
}

impl<S: ObjectState> LeaseProbe<S> {
    fn told(&self, told: &Value) -> Result<Value> {
        let text = |n: usize| told[n].as_str().unwrap_or_default();
        let ms = || Duration::from_millis(told[3].as_u64().unwrap_or_default());
        Ok(match text(0) {
            "acquire" => match self.lease.acquire(text(1), text(2), ms())? {
                Acquired::Granted(grant) => json!(grant.token),
                Acquired::Held(_) => Value::Null,
            },
            "renew" => {
                let token = Token::new(told[2].as_i64().unwrap_or_default())?;
                json!(self.lease.renew(text(1), token, ms())?.is_some())
            }
            "over" => self.log.lines()?,
            other => return Err(Failure::msg(format!("{other:?} is nothing that can be asked"))),
        })
    }
}

impl<S: ObjectState> DurableObject<S> for LeaseProbe<S> {
    fn new(state: S) -> Result<Self> {
        let schedule = Schedule::open(&state)?;
        let lease = Lease::new(&state, schedule.slot("lease"));
        Ok(Self { schedule, lease, log: Log::open(&state)? })
    }

    async fn fetch(&self, request: Request) -> Result<Response> {
        let told: Value = request.into_body().json(MOST).await?;
        Ok(reply::json(&self.told(&told)?)?)
    }

    async fn alarm(&self, info: AlarmInfo) -> Result<()> {
        let run = async |job: Job| {
            if job.name() != "lease" {
                return job.unknown();
            }
            for over in self.lease.on_alarm()? {
                self.log.note(json!([over.name, over.held.holder, over.held.token]))?;
            }
            Ok(())
        };
        self.schedule.run_due(info, run).await
    }
}

impl<S: ObjectState> fmt::Debug for LeaseProbe<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeaseProbe").field("lease", &self.lease).finish_non_exhaustive()
    }
}
