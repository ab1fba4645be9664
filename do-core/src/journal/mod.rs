//! A numbered log in the object's own database, within bounds: for patterns and applications that number what they
//! publish and let others come back for what they missed.
//!
//! One table holds the [`Journal`]s of any number of keys, and everything that the next entry needs is in the newest row:
//! its number, the running sum of bytes, the time, and the epoch. So nothing has to be remembered in memory that a rollback
//! or [`delete_all`](crate::ObjectState::delete_all) could make wrong, and the sequence cannot be parted from what it
//! numbers. The newest row is never deleted. Sums run over the rows, so what is beyond the [`Bounds`] is found by binary
//! search over the key, without an index of its own, which would be billed.
//!
//! # Epochs
//! An entry's [`Position`](crate::Position) is its number and the epoch, drawn at random when a journal begins. Numbers that
//! were given and are gone end the epoch: those of a transaction that was rolled back, and all of them after
//! [`delete_all`](crate::ObjectState::delete_all). Somebody may have been told of them, and they will be given again to
//! other entries. [`Journal::newest`] finds it out and [says so](Newest::is_renewed), once: whoever was told of a position
//! has to be told to begin anew. A crash needs no such care: what was not committed was never sent either (rule C4).
//!
//! # Cost
//! | what | rows read | rows written |
//! |---|---|---|
//! | [`newest`](Journal::newest) | 1 | 0; 1 when the journal or an epoch begins |
//! | [`append`](Journal::append) | 0 | 1, and 1 for its deletion some day |
//! | its pruning, after each eighth of a bound | 2 to 40 | those that are deleted |
//! | [`after`](Journal::after) | those that are given | 0 |
//! | [`floor`](Journal::floor) | 1, or the logarithm of how many there are | 0 |
//!
//! ```
//! use do_core::journal::{Bounds, Journal, Table};
//! use do_core::prelude::*;
//! use std::ops::ControlFlow;
//!
//! struct Diary<S: ObjectState> { state: S, journal: Journal<S> }
//!
//! const LINE: u8 = 1; // what the bytes of an entry are is the application's
//!
//! impl<S: ObjectState> DurableObject<S> for Diary<S> {
//!     fn new(state: S) -> Result<Self> {
//!         let bounds = Bounds { max_entries: 1_000, ..Bounds::default() };
//!         Ok(Self { journal: Journal::new(&state, Table::new("_diary"), "me", bounds), state })
//!     }
//!     async fn fetch(&self, request: Request) -> Result<Response> {
//!         let newest = self.journal.newest()?.facts;
//!         if request.method() == Method::POST {
//!             let line = request.into_body().bytes(1_000).await?;
//!             let newest = self.journal.newest()?.facts; // others may have written while the body came
//!             let written = self.journal.append(&newest, self.state.now(), LINE, &line)?;
//!             return Ok(reply::json(&written.position())?);
//!         }
//!         let mut lines = Vec::new();
//!         self.journal.after(self.journal.floor(&newest)? - 1, 100, |kept| {
//!             lines.push(String::from_utf8_lossy(&kept.bytes).into_owned());
//!             Ok(ControlFlow::Continue(()))
//!         })?;
//!         Ok(reply::json(&lines)?)
//!     }
//! }
//! # #[cfg(all(feature = "testing", not(target_arch = "wasm32")))]
//! # fn main() -> Result<()> {
//! # let kit = do_core::kit::Kit::builder().object::<Diary<_>>("DIARY").start()?;
//! # let diary = kit.namespace("DIARY")?.named("me")?;
//! # kit.run(async {
//! for line in ["Dear diary", "it rained"] {
//!     diary.fetch(http::Request::post("/").body(line.into()).unwrap()).await.unwrap();
//! }
//! let lines: Vec<String> = diary.fetch(Request::default()).await.unwrap().into_body().json(1_000).await.unwrap();
//! assert_eq!(lines, ["Dear diary", "it rained"]);
//! # });
//! # Ok(()) }
//! # #[cfg(not(all(feature = "testing", not(target_arch = "wasm32"))))]
//! # fn main() {}
//! ```

mod bounds;
mod facts;
#[allow(clippy::module_inception)] // the type's own file
mod journal;
mod kept;
mod newest;
mod rows;
mod stats;
mod table;

pub use bounds::Bounds;
pub use facts::Facts;
pub use journal::{ENTRY_BYTES, Journal};
pub use kept::Kept;
pub use newest::Newest;
pub use stats::Stats;
pub use table::Table;
