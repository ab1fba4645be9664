//! Many named deadlines over the object's one alarm.
//!
//! An object has one alarm slot, and setting it overwrites it: two patterns in one object destroy each other's. A
//! [`Schedule`] owns the slot and keeps any number of named deadlines in the object's own database: jobs, which are
//! [put](Schedule::put) with a [`Plan`] and run once, at an interval or by a cron expression, and [slots](Schedule::slot),
//! each of which is an [`AlarmScheduler`](crate::AlarmScheduler) by itself, for patterns that bring their own deadlines.
//!
//! ```
//! use do_core::prelude::*;
//!
//! struct Shop<S: ObjectState> { state: S, schedule: Schedule<S> }
//!
//! impl<S: ObjectState> DurableObject<S> for Shop<S> {
//!     fn new(state: S) -> Result<Self> {
//!         state.sql().migrate(&["CREATE TABLE log (line TEXT NOT NULL)"])?;
//!         let schedule = Schedule::open(&state)?;
//!         schedule.declare("tidy", Plan::every(Duration::from_secs(3_600))?)?; // changes nothing when it is there
//!         Ok(Self { state, schedule })
//!     }
//!     async fn fetch(&self, _: Request) -> Result<Response> {
//!         let in_a_minute = Plan::at(self.state.now() + Duration::from_secs(60)).payload("order 7")?;
//!         self.schedule.put("remind", in_a_minute).await?;
//!         Ok(reply::text("I will"))
//!     }
//!     async fn alarm(&self, info: AlarmInfo) -> Result<()> {
//!         self.schedule.run_due(info, async |job| match job.name() {
//!             "tidy" => Ok(()),
//!             "remind" => {
//!                 self.state.sql().exec("INSERT INTO log VALUES (?)", (job.payload::<String>()?,))?;
//!                 Ok(())
//!             }
//!             _ => job.unknown(),
//!         }).await
//!     }
//! }
//! # #[cfg(all(feature = "testing", not(target_arch = "wasm32")))]
//! # fn main() -> Result<()> {
//! let kit = do_core::kit::Kit::builder().object::<Shop<_>>("SHOP").start()?;
//! kit.run(async {
//!     let shop = kit.namespace("SHOP")?.named("a")?;
//!     shop.fetch(Request::default()).await?;
//!     kit.evict(&shop);
//!     kit.advance(Duration::from_secs(60)).await; // the alarm wakes it
//!     # Ok(())
//! })
//! # }
//! # #[cfg(not(all(feature = "testing", not(target_arch = "wasm32"))))]
//! # fn main() {}
//! ```
//!
//! # What it promises
//! - **While rows are pending, the raw alarm is set for the soonest of them or before.** Row and alarm are one commit. It
//!   is checked after each change, at the end of each run on whatever path, and at an instance's first event that is not
//!   the alarm's, where also an alarm is mended that the platform dropped, forgot or left in the past. One that cannot be
//!   set is tried again for as long as the instance lives, which that keeps in memory. Without pending rows there is no
//!   alarm; only what a constructor takes away lets it come once for nothing.
//! - **A job runs at least once.** It is claimed in a commit of its own before it begins, so a crash counts as a failed
//!   run; it is tried again with growing waits ([`Retry`]), and after the last run it is a
//!   [dead letter](Schedule::dead_letters), which can be read and [replayed](Schedule::replay). What it writes behind its
//!   last await commits together with its end, unless the storage takes the one and refuses the other.
//! - **Jobs do not disturb each other.** An error, a panic where panics unwind, a run without an end, a name without code
//!   and a row that cannot be read are each the matter of one job. A panic that does not unwind takes the whole isolate; the
//!   run that follows, whenever the platform makes it, finds the claim and counts it.
//! - **A name is there once.** Putting the same plan again writes nothing; another one takes its place.
//!
//! # What it costs
//! On Workers rows written are what is paid for; setting the alarm counts as one. The raw slot is only ever moved earlier
//! by a change: a deadline that is put off, again and again, sets it once and then wakes the object once for nothing.
//!
//! | | rows written, alarm sets included |
//! |---|---|
//! | the first of all, which makes the tables | 3 more |
//! | a deadline that becomes the soonest | 2 for the row, 1 for the alarm |
//! | another deadline, sooner or later | 2 |
//! | another payload at the same time | 1 |
//! | the same again | 0 |
//! | an idempotency key | 2 |
//! | cancelling | 1, and the alarm's deletion with the last row |
//! | a run of what runs once | 1 before, 1 after |
//! | a run of what recurs, or that fails | 1 before (2 after missed ticks), 2 after |
//! | the end of a wake | 1, or 0 if nothing is left |
//! | a run in the history | 1, and 1 when one is forgotten for it |
//! | a dead letter | 2 |
//!
//! Slots have no history. An instance's first event reads up to two rows, three if its constructor put something new.
//!
//! # Limits
//! Names have [`NAME_BYTES`], payloads [`PAYLOAD_BYTES`]; [`DEAD_LETTERS_KEPT`] dead letters, with their payloads, and
//! [`KEYS_KEPT`] idempotency keys are kept; any number of deadlines may be pending. A job runs for [`TIME_LIMIT`] unless its
//! plan says otherwise. The tables are called `_schedule` and `_schedule_*`.

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
mod stored;

pub use alarm::Alarm;
pub use dead::{DEAD_LETTERS_KEPT, DeadLetter};
#[doc(hidden)]
pub use guard::guarded;
pub use history::{Outcome, Run};
pub use job::Job;
pub use pending::Pending;
pub use plan::{CATCH_UP_MAX, Missed, NAME_BYTES, PAYLOAD_BYTES, Plan, TIME_LIMIT, TIME_LIMIT_MAX};
pub use retry::Retry;
pub use schedule::{KEYS_KEPT, Schedule};
pub use settings::{Settings, Stats};
pub use slot::Slot;
