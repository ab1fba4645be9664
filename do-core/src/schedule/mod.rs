//! Many named deadlines over the object's one alarm.
mod alarm;
mod cadence;
#[cfg(feature = "cron")]
mod cron;
mod dead;
mod guard;
mod history;
mod inner;
mod job;
mod pending;
mod plan;
mod retry;
mod run;
#[allow(clippy::module_inception)] // the type that all of it is about
mod schedule;
mod settings;
mod slot;
mod store;

pub use alarm::Alarm;
pub use dead::{DEAD_LETTERS_KEPT, DeadLetter};
pub use history::{Outcome, Run};
pub use job::Job;
pub use pending::Pending;
pub use plan::{Missed, NAME_BYTES, PAYLOAD_BYTES, Plan, TIME_LIMIT, TIME_LIMIT_MAX};
pub use retry::Retry;
pub use schedule::{KEYS_KEPT, Schedule};
pub use settings::{Settings, Stats};
pub use slot::Slot;
