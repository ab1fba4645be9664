use super::{
    caller::{Caller, more, unexpected},
    counter_object::{Add, Compare, Counters, List, Set, Value},
    settings,
    wire::Name,
};
use crate::counter::CompareAndSet;
use do_core::{Error, Stub};

/// A handle to a [`CounterObject`](crate::CounterObject), from anywhere.
///
/// Each change is done once: it has a request key, which the object remembers for an hour, and is repeated with the same
/// key after a passing failure; see [`Retries`](crate::Retries). Calls fail as
/// [`Stub::fetch`] does, and after the last attempt an error that [`is_indefinite`](Error::is_indefinite) says that the
/// change may have been made.
///
/// Dropping a future does not stop the object: the change may be made.
#[derive(Debug, Clone)]
pub struct CounterStub<St>(Caller<St>);

settings!(CounterStub);

impl<St: Stub> CounterStub<St> {
    /// The value; see [`Counter::get`](crate::Counter::get).
    ///
    /// # Errors
    /// As there, and as [`Stub::fetch_within`].
    pub async fn get(&self, name: &str) -> Result<i64, Error> {
        let found: Value<i64> = self.0.read("/get", &Name { name: name.to_owned() }).await?;
        Ok(found.value)
    }

    /// Adds, and gives the new value; see [`Counter::add`](crate::Counter::add).
    ///
    /// # Errors
    /// As there, and as [`Stub::fetch_within`].
    pub async fn add(&self, name: &str, by: i64) -> Result<i64, Error> {
        self.changed("/add", &Add { name: name.to_owned(), by }).await
    }

    /// Sets the value; see [`Counter::set`](crate::Counter::set).
    ///
    /// # Errors
    /// As there, and as [`Stub::fetch_within`].
    pub async fn set(&self, name: &str, value: i64) -> Result<i64, Error> {
        self.changed("/set", &Set { name: name.to_owned(), value }).await
    }

    /// Sets the value if it is the expected one; see [`Counter::compare_and_set`](crate::Counter::compare_and_set).
    ///
    /// # Errors
    /// As there, and as [`Stub::fetch_within`].
    pub async fn compare_and_set(
        &self,
        name: &str,
        expected: i64,
        value: i64,
    ) -> Result<CompareAndSet, Error> {
        let arguments = Compare { name: name.to_owned(), expected, value };
        match self.0.change::<Value<i64>>("/compare_and_set", &arguments).await? {
            Ok(_) => Ok(CompareAndSet::Done),
            Err(refused) if refused.error == "differs" => {
                Ok(CompareAndSet::Differs(more::<Value<i64>>(refused)?.value))
            }
            Err(refused) => Err(unexpected(&refused)),
        }
    }

    /// Takes the counter away; see [`Counter::reset`](crate::Counter::reset).
    ///
    /// # Errors
    /// As there, and as [`Stub::fetch_within`].
    pub async fn reset(&self, name: &str) -> Result<Option<i64>, Error> {
        self.changed("/reset", &Name { name: name.to_owned() }).await
    }

    /// Counters after a name, at most `limit`, of which the object gives at most 1,000; see
    /// [`Counter::list`](crate::Counter::list).
    ///
    /// # Errors
    /// As there, and as [`Stub::fetch_within`].
    pub async fn list(&self, after: &str, limit: u32) -> Result<Vec<(String, i64)>, Error> {
        let found: Counters = self.0.read("/list", &List { after: after.to_owned(), limit }).await?;
        Ok(found.counters)
    }

    async fn changed<T: serde::de::DeserializeOwned>(
        &self,
        operation: &'static str,
        arguments: &(impl serde::Serialize + Sync),
    ) -> Result<T, Error> {
        match self.0.change::<Value<T>>(operation, arguments).await? {
            Ok(value) => Ok(value.value),
            Err(refused) => Err(unexpected(&refused)),
        }
    }
}
