//! Counters and locks, called by their typed stubs.

use do_core::{Env, Failure, Namespace};
use do_sync::{CounterStub, LockStub, RequestKey, Token};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::time::Duration;

/// A call of an object of the class `CounterObject` or `LockObject` of do-sync, with a request key of the caller's if there
/// is one.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PrimitiveCommand {
    /// The name of the object.
    pub object: String,
    /// The request key.
    #[serde(default)]
    pub key: Option<String>,
    /// What is called.
    pub call: Call,
}

/// A method of a stub. Times in ms.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)] // as in do-sync
pub enum Call {
    Get(String),
    Add(String, i64),
    Set(String, i64),
    CompareAndSet(String, i64, i64),
    Reset(String),
    List(String, u32),
    Acquire(String, String, u64),
    AcquireWithin(u64, String, String, u64),
    Renew(String, i64, u64),
    Release(String, i64),
    Check(String, i64),
    Holder(String),
    SetCapacity(String, u32),
    AcquirePermits(String, String, u32, u64),
    ReleasePermits(String, i64),
    Usage(String),
}

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

impl PrimitiveCommand {
    /// What the stub gives, as JSON.
    pub(crate) async fn run<E: Env>(self, env: &E) -> Result<Value, Failure> {
        let key = self.key.map(RequestKey::new).transpose()?;
        let object = self.object.as_str();
        let counters = CounterStub::new(env.namespace("COUNTERS")?.named(object)?);
        let locks = LockStub::new(env.namespace("LOCKS")?.named(object)?);
        let (counters, locks) = match key {
            Some(key) => (counters.keyed(key.clone()), locks.keyed(key)),
            None => (counters, locks),
        };
        Ok(match self.call {
            Call::Get(name) => json!(counters.get(&name).await?),
            Call::Add(name, by) => json!(counters.add(&name, by).await?),
            Call::Set(name, value) => json!(counters.set(&name, value).await?),
            Call::CompareAndSet(name, expected, value) => {
                json!(counters.compare_and_set(&name, expected, value).await?)
            }
            Call::Reset(name) => json!(counters.reset(&name).await?),
            Call::List(after, limit) => json!(counters.list(&after, limit).await?),
            Call::Acquire(name, holder, ttl) => json!(locks.acquire(&name, &holder, ms(ttl)).await?),
            Call::AcquireWithin(patience, name, holder, ttl) => {
                json!(locks.acquire_within(ms(patience), &name, &holder, ms(ttl)).await?)
            }
            Call::Renew(name, token, ttl) => json!(locks.renew(&name, Token::new(token)?, ms(ttl)).await?),
            Call::Release(name, token) => json!(locks.release(&name, Token::new(token)?).await?),
            Call::Check(name, token) => json!(locks.check(&name, Token::new(token)?).await?),
            Call::Holder(name) => json!(locks.holder(&name).await?),
            Call::SetCapacity(name, permits) => json!(locks.set_capacity(&name, permits).await?),
            Call::AcquirePermits(name, holder, weight, ttl) => {
                json!(locks.acquire_permits(&name, &holder, weight, ms(ttl)).await?)
            }
            Call::ReleasePermits(name, token) => {
                json!(locks.release_permits(&name, Token::new(token)?).await?)
            }
            Call::Usage(name) => json!(locks.usage(&name).await?),
        })
    }
}
