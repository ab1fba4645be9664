use super::wire::{self, Answer, Arguments, Name};
use crate::{
    counter::{CompareAndSet, Counter},
    once::RequestKey,
};
use do_core::{DurableObject, Error, Failure, ObjectState, Request, Response};
use serde::{Deserialize, Serialize};

/// An object that holds [counters](Counter), for [`CounterStub`](crate::CounterStub) and for anything that speaks HTTP.
///
/// `do_core::export!(Counters = do_sync::CounterObject<_>)` makes it a class of a Worker, `.object::<CounterObject<_>>
/// ("COUNTERS")` one of a native host. It does not ask who is calling: put a route in front of it, as of any object.
///
/// Operations are `POST` requests with a JSON object, changes with a request key in the header `idempotency-key` if they
/// are to be done once:
///
/// | path | arguments | answer |
/// |---|---|---|
/// | `/get` | `name` | `{"value": 7}` |
/// | `/add` | `name`, `by` | `{"value": 8}`; 422 `limit` out of bounds |
/// | `/set` | `name`, `value` | `{"value": 8}` |
/// | `/compare_and_set` | `name`, `expected`, `value` | `{"value": 8}`; 409 `differs` with the `value` that it has |
/// | `/reset` | `name` | `{"value": 8}`, what it was; `null` if it was not there |
/// | `/list` | `after`, `limit` (at most 1,000) | `{"counters": [["hits", 8]]}` |
///
/// Refusals are 400, 404, 405, 409, 413 or 422 with `{"error": "limit", "message": ".."}`; `key_reused` is 422.
///
/// ```
/// use do_core::prelude::*;
/// use do_sync::{CounterObject, CounterStub};
///
/// do_core::export!(Counters = do_sync::CounterObject<_>);
///
/// # #[cfg(not(target_arch = "wasm32"))]
/// # fn main() -> Result<()> {
/// let kit = do_core::kit::Kit::builder().object::<CounterObject<_>>("COUNTERS").start()?;
/// kit.run(async {
///     let counters = CounterStub::new(kit.namespace("COUNTERS")?.named("shop")?);
///     counters.set("stock", 3).await?;
///     assert_eq!(counters.add("stock", -1).await?, 2);
///     Ok(())
/// })
/// # }
/// # #[cfg(target_arch = "wasm32")]
/// # fn main() {}
/// ```
#[derive(Debug)]
pub struct CounterObject<S: ObjectState> {
    counter: Counter<S>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct Add {
    pub(super) name: String,
    pub(super) by: i64,
}

#[derive(Serialize, Deserialize)]
pub(super) struct Set {
    pub(super) name: String,
    pub(super) value: i64,
}

#[derive(Serialize, Deserialize)]
pub(super) struct Compare {
    pub(super) name: String,
    pub(super) expected: i64,
    pub(super) value: i64,
}

#[derive(Serialize, Deserialize)]
pub(super) struct List {
    #[serde(default)]
    pub(super) after: String,
    pub(super) limit: u32,
}

#[derive(Serialize, Deserialize)]
pub(super) struct Value<T> {
    pub(super) value: T,
}

#[derive(Serialize, Deserialize)]
pub(super) struct Counters {
    pub(super) counters: Vec<(String, i64)>,
}

/// Most counters of one answer.
const LISTED: u32 = 1_000;

impl<S: ObjectState> CounterObject<S> {
    fn operation(&self, path: &str, key: Option<RequestKey>, arguments: &Arguments) -> Result<Answer, Error> {
        let counter = match key {
            Some(key) => self.counter.keyed(key),
            None => self.counter.clone(),
        };
        let value = |value: i64| Answer::done(&Value { value });
        match path {
            "/get" => value(counter.get(&arguments.read::<Name>()?.name)?),
            "/add" => {
                let Add { name, by } = arguments.read()?;
                value(counter.add(&name, by)?)
            }
            "/set" => {
                let Set { name, value: new } = arguments.read()?;
                value(counter.set(&name, new)?)
            }
            "/compare_and_set" => {
                let Compare { name, expected, value: new } = arguments.read()?;
                match counter.compare_and_set(&name, expected, new)? {
                    CompareAndSet::Done => value(new),
                    CompareAndSet::Differs(found) => {
                        Answer::not_now("differs", "the value is another one", &Value { value: found })
                    }
                }
            }
            "/reset" => {
                let before = counter.reset(&arguments.read::<Name>()?.name)?;
                Answer::done(&Value { value: before })
            }
            "/list" => {
                let List { after, limit } = arguments.read()?;
                Answer::done(&Counters { counters: counter.list(&after, limit.min(LISTED))? })
            }
            _ => Ok(Answer::unknown(path)),
        }
    }
}

impl<S: ObjectState> DurableObject<S> for CounterObject<S> {
    fn new(state: S) -> Result<Self, Failure> {
        Ok(Self { counter: Counter::new(&state) })
    }

    async fn fetch(&self, request: Request) -> Result<Response, Failure> {
        wire::serve::<S>(request, |path, key, arguments| self.operation(path, key, arguments)).await
    }
}
