//! Rows that expire: caches, sessions and codes in a Durable Object, swept by its one alarm. The same code runs on
//! Cloudflare Workers and on native tokio servers.
//!
//! | to | use |
//! |---|---|
//! | keep what is there for a time, in an object of one's own | [`Sweeper`], made in `new` and kept, and its [`TtlStore`]s |
//! | keep values of a type | [`TtlStore::typed`] |
//! | load a value once, however many ask for it | [`TtlStore::get_or_insert_with`] |
//! | learn of what expired | [`Settings::notify`] and [`Sweeper::on_alarm_with`] |
//! | have a cache without writing an object | [`TtlCache`] and its stub, [`TtlCacheStub`] |
//!
//! # A store
//! ```
//! use do_core::prelude::*;
//! use do_ttl::{Settings, Sweeper, Ttl, TtlStore};
//!
//! struct Sessions<S: ObjectState>(TtlStore<S>);
//!
//! impl<S: ObjectState> DurableObject<S> for Sessions<S> {
//!     fn new(state: S) -> Result<Self> {
//!         let sweeper = Sweeper::new(&state, Alarm::raw(&state));
//!         Ok(Self(sweeper.store("sessions", Settings::new())?))
//!     }
//!     async fn fetch(&self, request: Request) -> Result<Response> {
//!         let user = request.require("user")?;
//!         if request.method() == Method::GET {
//!             let session = self.0.get(&user)?; // a use, which makes it last longer
//!             return Ok(reply::text(if session.is_some() { "welcome" } else { "log in" }));
//!         }
//!         let ttl = Ttl::sliding(Duration::from_secs(1_800)).max_age(Duration::from_secs(86_400));
//!         self.0.put(&user, request.into_body().bytes(4_096).await?, ttl)?;
//!         Ok(reply::status(StatusCode::NO_CONTENT))
//!     }
//!     async fn alarm(&self, _: AlarmInfo) -> Result<()> {
//!         Ok(self.0.sweeper().on_alarm().await?) // the last line: what fails behind it gives up the retries
//!     }
//! }
//!
//! // In a `#[test]`.
//! # fn main() -> Result<()> {
//! let kit = do_core::kit::Kit::builder().object::<Sessions<_>>("SESSIONS").start()?;
//! kit.run(async {
//!     let sessions = kit.namespace("SESSIONS")?.named("eu")?;
//!     let ask = |method| http::Request::builder().method(method).uri("http://s/?user=ann").body(Body::empty());
//!     sessions.fetch(ask(Method::POST)?).await?;
//!     for (minutes, expected) in [(29, "welcome"), (29, "welcome"), (31, "log in")] {
//!         kit.advance(Duration::from_secs(minutes * 60)).await;
//!         assert_eq!(sessions.fetch(ask(Method::GET)?).await?.into_body().text(100).await?, expected);
//!     }
//!     # Ok(())
//! })
//! # }
//! ```
//!
//! # What it promises
//! - **What is expired is never seen**: not by a `get`, not in a list, not in a count, from the very millisecond on,
//!   however late the sweep. An instance's time never goes back. Between instances the clock can: what no sweep has taken is
//!   there again then, for as long as the clock went back.
//! - **Row and alarm are one commit**, and every call is synchronous: it takes part in a
//!   [`transaction`](do_core::SqlStorage::transaction) around it, with the object's own rows.
//! - **No put moves the alarm later**, and one that comes after it does not set it. It comes a [slack](Pace::slack) after the
//!   soonest expiry and takes with it all that expired meanwhile: a thousand puts a second are one wake a second. A store
//!   that is empty, or in which nothing expires, has no alarm. One that the platform lost or gave up is set again by the next
//!   use of a store.
//! - **A sweep holds nobody up**: it works in [slices](Pace::slice_rows), each a turn of its own, and leaves what is too much
//!   for one run to the next, at once. Bounded in rows and bytes, and not in time: on Workers the clock stands still while a
//!   turn runs.
//! - **Limits hold at every moment**, behind every rollback and crash.
//! - **Of what expired in a store that notifies, the handler is told at least once**, and exactly once of what it only writes
//!   into the object's own database.
//!
//! # What it costs on Workers
//! Rows read and written, as workerd counts them, at 10,000 entries:
//!
//! | | read | written |
//! |---|---|---|
//! | [`put`](TtlStore::put), new or over another | 0 | 2 |
//! | that never expires | 0 | 1 |
//! | of a large value (with its key and the store's name over 768 bytes), new | 0 | 3 |
//! | over another large one | 1 | 4 |
//! | the soonest of all | | 1 more, for the alarm |
//! | in a store with limits | up to 2 more | 1 more |
//! | in a store that notifies | 1 more | |
//! | [`get`](TtlStore::get), [`contains`](TtlStore::contains): there, or absent | 1, or 0 | 0 |
//! | that moves the expiry of a sliding entry | 2 | 2 |
//! | [`touch`](TtlStore::touch) | 1 | 2 |
//! | [`remove`](TtlStore::remove); [`take`](TtlStore::take) | 1; 2 | 1 |
//! | [`put_if_absent`](TtlStore::put_if_absent): done, or present | 0, or 1 | 2, or 0 |
//! | [`compare_and_swap`](TtlStore::compare_and_swap): done, or differs | 1, or 2 | 2, or 0 |
//! | [`list`](TtlStore::list) | 1 for each entry, and 1 | 0 |
//! | a sweep | 2 for each entry, and a few | 1 for each entry |
//! | the first event of an instance | 1 for each store | 0 |
//!
//! So a million entries that are put once and expire cost 3 million rows written, 3 dollars by the list of November 2026, and
//! at a thousand puts a second about 700 to 1,000 wakes. More slack, or [`Ttl::NEVER`] with removals of one's own, costs less.
//! An object of which nobody wants anything sleeps until its soonest entry expires.
//!
//! # Several stores
//! An object has one [`Sweeper`], and any number of stores of it, each a kind of thing: keys say whose. Open them in `new`.
//! The alarm may be a slot of a [`Schedule`](do_core::Schedule), beside a feed's heartbeats or jobs:
//!
//! ```
//! use do_core::prelude::*;
//! use do_ttl::{Settings, Sweeper, TtlStore};
//!
//! struct Shop<S: ObjectState> { schedule: Schedule<S>, carts: TtlStore<S>, codes: TtlStore<S> }
//!
//! impl<S: ObjectState> DurableObject<S> for Shop<S> {
//!     fn new(state: S) -> Result<Self> {
//!         let schedule = Schedule::open(&state)?;
//!         let sweeper = Sweeper::new(&state, schedule.slot("sweep"));
//!         let (carts, codes) = (sweeper.store("carts", Settings::new())?, sweeper.store("codes", Settings::new())?);
//!         Ok(Self { schedule, carts, codes })
//!     }
//!     async fn alarm(&self, info: AlarmInfo) -> Result<()> {
//!         self.schedule.run_due(info, async |job| match job.name() {
//!             "sweep" => Ok(self.carts.sweeper().on_alarm().await?), // the codes too
//!             _ => job.unknown(),
//!         }).await
//!     }
//! }
//! ```
//!
//! # Limits of a store
//! A store may have [most entries](Settings::max_entries) and [most bytes](Settings::max_bytes). Entries count until they are
//! swept. When it is full, those that expire soonest make room, at most [`EVICTED_PER_PUT`] for each put; what never expires
//! stays. A put that needs more room is refused with an error that is retryable, and gets on with each try, but not within a
//! transaction that its error rolls back. [`OnFull::Refuse`] refuses instead. Limits may come, go and change with the code: a
//! new one counts what is there once, a lower one is reached by the puts that follow. A store that is counted often is given a
//! limit that it never reaches, which makes [`count`](TtlStore::count) cheap.
//!
//! # Notices
//! What expired or was evicted in a store that [notifies](Settings::notify) is told to the handler of
//! [`Sweeper::on_alarm_with`], one after the other, those of a store in the order of expiry. What a handler writes after its
//! last await is one commit with the forgetting of the notice; a handler with other effects uses the
//! [version](Expired::version) to see what it has done. One that fails is told again after 1, 2, 4.. seconds, at most an
//! hour, for ever, and the others do not wait for it. All that waits to be told is lost with
//! [`delete_all`](do_core::ObjectState::delete_all).
//!
//! # Limits
//! | | |
//! |---|---|
//! | names of stores | 1 to [`NAME_BYTES`] |
//! | keys | any text of up to [`KEY_BYTES`] |
//! | a key and its value | [`ENTRY_BYTES`] |
//! | one page of a list | [`PAGE_ENTRIES`], [`PAGE_BYTES`] |
//! | times | up to 2^53 ms; beyond that, never |
//!
//! The tables are called `_ttl` and `_ttl_*`. What is deleted is used again; on Workers only deleting everything makes an
//! object's database smaller, natively the host gives the space back while it is idle.
//!
//! # Mistakes that it avoids
//! - **The soonest expiry looked for with each put**: ten thousand rows read where none is needed.
//! - **The alarm set with each put**, a row written each time, and a wake for each expiry.
//! - **One `DELETE` for the whole backlog**, which keeps the object from answering for many seconds.
//! - **A sweep that failed once and never comes again**, because its alarm was given up.
//! - **An alarm that overwrites another part's.** Slots.
//! - **A thousand callers that load the same value** when it expires; a stale value that a slow load puts over a newer one.
//! - **Times that are 0, negative or endless**: the first two remove, the last is never.
//! - **Large values between small ones**, which make every search slow: they have a table of their own.

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
