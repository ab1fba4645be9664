//! What concerns the limits of a store, and its statistics.

use crate::TtlProbe;
use do_core::{Failure, ObjectState, SqlStorage};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// What can be told about the limits of a store, and its statistics.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitsCommand {
    /// How many entries are there.
    Count,
    /// `[entries, bytes]` as the limits count them.
    Usage,
    /// Whether what is counted is what is there.
    Exact,
    /// Removes all; how many.
    Clear,
    /// What [`Stats`](do_ttl::Stats) has, as an object.
    Stats,
}

impl<S: ObjectState> TtlProbe<S> {
    pub(crate) async fn limits_command(&self, store: &str, command: LimitsCommand) -> Result<Value, Failure> {
        let store = self.store(store)?;
        Ok(match command {
            LimitsCommand::Count => json!(store.count()?),
            LimitsCommand::Usage => {
                let usage = store.usage()?;
                json!([usage.entries, usage.bytes])
            }
            LimitsCommand::Exact => {
                let counted = store.usage()?;
                json!([counted.entries, counted.bytes] == self.summed(store.name())?)
            }
            LimitsCommand::Clear => json!(store.clear().await?),
            LimitsCommand::Stats => {
                let stats = store.stats()?;
                let counters = stats.counters;
                json!({
                    "hits": counters.hits, "misses": counters.misses, "puts": counters.puts,
                    "evicted": counters.evicted, "refused": counters.refused, "expired": counters.expired,
                    "usage": stats.usage.map(|usage| [usage.entries, usage.bytes]),
                    "backlog": stats.backlog, "notices": stats.notices,
                    "overdue_ms": stats.oldest_overdue.map(|overdue| overdue.as_millis()),
                    "alarms_set": stats.alarms_set, "rows_read": stats.rows_read,
                    "rows_written": stats.rows_written, "database_size": stats.database_size,
                })
            }
        })
    }

    /// Entries and bytes of the rows of a store, one by one.
    fn summed(&self, store: &str) -> Result<[u64; 2], Failure> {
        const SQL: &str = "SELECT count(*), coalesce(sum(length(CAST(key AS BLOB)) + length(value)), 0) FROM _ttl WHERE store = ?";
        let rows = self.state.sql().exec(SQL, (store,))?;
        Ok(match rows.first() {
            Some(row) => [row.at(0)?, row.at(1)?],
            None => [0, 0],
        })
    }
}
