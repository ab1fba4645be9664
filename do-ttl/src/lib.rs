//! Rows that expire: caches, sessions and codes in a Durable Object, swept by its one alarm. The same code runs on
//! Cloudflare Workers and on native tokio servers.

mod cache;
mod cost;
mod entry;
mod expired;
#[cfg(all(test, not(target_arch = "wasm32")))]
mod inside;
mod limits;
mod list;
mod load;
mod many;
mod one_by_one;
mod pace;
mod rows;
mod settings;
mod stats;
mod store;
mod sweep;
mod sweeper;
mod ttl;
mod typed;
mod write;

pub use cache::{CacheSettings, TtlCache, TtlCacheStub};
pub use entry::{Entry, Put, PutIfAbsent, Swap, Version};
pub use expired::{Cause, Expired};
pub use limits::{EVICTED_PER_PUT, FULL};
pub use list::{PAGE_BYTES, PAGE_ENTRIES, Page};
pub use pace::Pace;
pub use settings::{OnFull, Settings};
pub use stats::{BACKLOG_MAX, Counters, Stats, Usage};
pub use store::{ENTRY_BYTES, KEY_BYTES, TtlStore};
pub use sweep::HANDLER_LIMIT;
pub use sweeper::{NAME_BYTES, Sweeper};
pub use ttl::Ttl;
pub use typed::Typed;
