//! What concerns many keys at once.

use crate::{
    GivenTtl, GivenValue, TtlProbe,
    given::{told_entry, told_put, told_value},
};
use do_core::{Failure, ObjectState, SqlStorage, Value as Sql};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// What can be told about many keys at once.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ManyCommand {
    /// Keys, values, times. What each put did.
    Put(Vec<(String, GivenValue, GivenTtl)>),
    /// Puts the numbers from one to before another as [`Fill`](crate::StoreCommand::Fill) does, all at once.
    Fill(u32, u32, usize, GivenTtl),
    /// The values, `null` for those that are not there.
    Get(Vec<String>),
    /// `{value, expires, version}` or `null` for each.
    GetEntries(Vec<String>),
    /// How many were there.
    Remove(Vec<String>),
    /// Removes the numbers from one to before another.
    RemoveFilled(u32, u32),
    /// The rows that a statement reads that asks for all of these, `null` where they are not counted.
    InOneStatement(Vec<String>),
    /// Key and value of numbers, in a typed view.
    PutNumbers(Vec<(String, u64)>),
    /// Numbers.
    GetNumbers(Vec<String>),
}

impl<S: ObjectState> TtlProbe<S> {
    pub(crate) fn many_command(&self, store: &str, command: ManyCommand) -> Result<Value, Failure> {
        use ManyCommand as C;
        let store = self.store(store)?;
        let key = |number: u32| format!("{number:08}");
        Ok(match command {
            C::Put(items) => store.put_many(items)?.into_iter().map(told_put).collect(),
            C::Fill(from, to, length, ttl) => {
                let items = (from..to).map(|number| (key(number), vec![b'.'; length], ttl));
                store.put_many(items)?;
                Value::Null
            }
            C::Get(keys) => {
                let told = |value: &Option<_>| value.as_ref().map_or(Value::Null, told_value);
                store.get_many(keys)?.iter().map(told).collect()
            }
            C::GetEntries(keys) => {
                store.get_entries(keys)?.iter().map(|entry| told_entry(entry.as_ref())).collect()
            }
            C::Remove(keys) => json!(store.remove_many(keys)?),
            C::RemoveFilled(from, to) => json!(store.remove_many((from..to).map(key))?),
            C::InOneStatement(keys) => {
                let places = vec!["?"; keys.len()].join(", ");
                let sql = format!("SELECT value FROM _ttl WHERE store = ? AND key IN ({places})");
                let params = std::iter::once(store.name()).chain(keys.iter().map(String::as_str));
                let params: Vec<Sql> = params.map(Sql::from).collect();
                json!(self.state.sql().exec(&sql, params)?.rows_read())
            }
            C::PutNumbers(items) => {
                let items = items.into_iter().map(|(key, number)| (key, number, GivenTtl::Never(())));
                store.typed::<u64>().put_many(items)?.into_iter().map(told_put).collect()
            }
            C::GetNumbers(keys) => json!(store.typed::<u64>().get_many(keys)?),
        })
    }
}
