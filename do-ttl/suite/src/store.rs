//! One key at a time.

use crate::{
    GivenTtl, GivenValue, TtlProbe,
    given::{told_entry, told_put, told_put_if_absent, told_swap, told_value},
};
use do_core::{Failure, ObjectState};
use do_ttl::Version;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// What a store can be told.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StoreCommand {
    /// Key, value, time. Gives `{version, expires}` or `"removed"`.
    Put(String, GivenValue, GivenTtl),
    /// Puts the numbers from one to before another, as keys of eight digits, with values of so many bytes and this time.
    /// One turn.
    Fill(u32, u32, usize, GivenTtl),
    /// The value or `null`.
    Get(String),
    /// `{value, expires, version}` or `null`.
    GetEntry(String),
    /// Whether it is there.
    Contains(String),
    /// Whether it was there.
    Touch(String, GivenTtl),
    /// Whether it was there.
    Remove(String),
    /// `{value, expires, version}` or `null`.
    Take(String),
    /// `{"done": put}` or `{"present": entry}`.
    PutIfAbsent(String, GivenValue, GivenTtl),
    /// Key, version, value, time. `{"done": put}` or `{"differs": entry}`.
    CompareAndSwap(String, Version, GivenValue, GivenTtl),
}

impl<S: ObjectState> TtlProbe<S> {
    pub(crate) fn store_command(&self, store: &str, command: StoreCommand) -> Result<Value, Failure> {
        use StoreCommand as C;
        let store = self.store(store)?;
        Ok(match command {
            C::Put(key, value, ttl) => told_put(store.put(&key, value, ttl)?),
            C::Fill(from, to, length, ttl) => {
                for number in from..to {
                    store.put(&format!("{number:08}"), vec![b'.'; length], ttl)?;
                }
                Value::Null
            }
            C::Get(key) => store.get(&key)?.as_ref().map_or(Value::Null, told_value),
            C::GetEntry(key) => told_entry(store.get_entry(&key)?.as_ref()),
            C::Contains(key) => json!(store.contains(&key)?),
            C::Touch(key, ttl) => json!(store.touch(&key, ttl)?),
            C::Remove(key) => json!(store.remove(&key)?),
            C::Take(key) => told_entry(store.take(&key)?.as_ref()),
            C::PutIfAbsent(key, value, ttl) => told_put_if_absent(&store.put_if_absent(&key, value, ttl)?),
            C::CompareAndSwap(key, version, value, ttl) => {
                told_swap(&store.compare_and_swap(&key, version, value, ttl)?)
            }
        })
    }
}
