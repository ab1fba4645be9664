//! A test kit for objects: the engine of the native host in one thread, with virtual time, a seed that decides every
//! order that nobody may rely on, and faults at any moment.
//!
//! What an object does in the kit it does on the [native host](crate::tokio): both drive one engine over real SQLite
//! files, and one suite of cases ([`testing`](crate::testing)) holds both, and Workers, to the same rules. The kit has
//! no network: clients are [handles](Client), requests go to stubs.
//!
//! ```
//! # use do_core::prelude::*;
//! # struct Chat<S: ObjectState>(S);
//! # impl<S: ObjectState> DurableObject<S> for Chat<S> {
//! #     fn new(state: S) -> Result<Self> { Ok(Self(state)) }
//! #     async fn fetch(&self, request: Request) -> Result<Response> {
//! #         Ok(self.0.sockets().accept(&request, Accept::new())?.0)
//! #     }
//! #     async fn websocket_message(&self, from: SocketOf<S>, message: Message) -> Result<()> {
//! #         for socket in self.0.sockets().others(&from) { socket.send(&message)?; }
//! #         Ok(())
//! #     }
//! # }
//! use do_core::kit::Kit;
//!
//! fn main() -> Result<()> {
//!     let kit = Kit::builder().object::<Chat<_>>("CHAT").start()?;
//!     kit.run(async {
//!         let lobby = kit.namespace("CHAT")?.named("lobby")?;
//!         let (ann, bob) = (kit.connect(&lobby, "/").await?, kit.connect(&lobby, "/").await?);
//!         ann.send("hello")?;
//!         assert_eq!(bob.text().await?, "hello");
//!
//!         kit.hibernate(&lobby).await?; // the object leaves memory; its sockets stay
//!         ann.send("still there?")?;
//!         assert_eq!(bob.text().await?, "still there?");
//!         Ok(())
//!     })
//! }
//! ```
//!
//! # Time
//! stands still until [`Kit::advance`] moves it: alarms, sleeps, time limits and the ten seconds after which an idle
//! object leaves memory happen in their order on the way, and a test of an hour takes milliseconds.
//!
//! # Order
//! What the platform leaves open is decided by the seed: which of several woken tasks goes on, which object and which
//! connection comes next, the order of [`SocketRegistry::all`](crate::SocketRegistry::all). What it promises holds: one
//! caller's calls, one socket's messages, and the starts of handlers and of background work stay in order.
//!
//! [`Builder::seed`] or the variable `DO_KIT_SEED` chooses; the same seed gives the same run, and the same
//! [`history`](Kit::history) byte for byte, as long as the objects take time and chance from their state alone. A test
//! that panics prints the seed. To look for the order that breaks an object, run its test with many seeds:
//! [`for_seeds`].
//!
//! # Faults
//! | what | how |
//! |---|---|
//! | an object leaves memory, sockets stay | [`Kit::hibernate`] |
//! | an object is moved: memory and sockets are lost, what is under way fails | [`Kit::evict`] |
//! | the process is killed; what was committed stays | [`Kit::crash`] |
//! | the power fails; what was not synced is lost | [`Kit::lose_power`] |
//! | one of these at the n-th step, or at random | [`Kit::at_step`], [`Kit::at_random`] |
//! | alarms that fire late, or twice | [`Kit::late_alarms`], [`Kit::repeat_alarms`] |
//! | a client that is slow, half-open, or gone | [`Client::stall`], [`Client::vanish`], [`Client::lose`] |
//! | SQL, commits or the setting of an alarm fail, a crash in a commit | [`Kit::fail_next`] |
//! | no more of all this | [`Kit::heal`] |
//!
//! What was acknowledged must survive a power failure at any moment: run the test once to count its steps, then
//! strike at each.
//!
//! ```
//! # use do_core::prelude::*;
//! # struct Counter<S: ObjectState>(S);
//! # impl<S: ObjectState> DurableObject<S> for Counter<S> {
//! #     fn new(state: S) -> Result<Self> {
//! #         state.sql().migrate(&["CREATE TABLE count (id INTEGER PRIMARY KEY)"])?;
//! #         Ok(Self(state))
//! #     }
//! #     async fn fetch(&self, request: Request) -> Result<Response> {
//! #         if request.method() == Method::POST { self.0.sql().exec("INSERT INTO count DEFAULT VALUES", ())?; }
//! #         Ok(reply::json(&self.0.sql().scalar::<i64>("SELECT count(*) FROM count", ())?)?)
//! #     }
//! # }
//! use do_core::kit::{Kit, Strike};
//!
//! fn test(strike_at: Option<u64>) -> Result<u64> {
//!     let kit = Kit::builder().object::<Counter<_>>("COUNTER").start()?;
//!     if let Some(step) = strike_at { kit.at_step(step, &Strike::LosePower); }
//!     kit.run(async {
//!         let counter = kit.namespace("COUNTER")?.named("c")?;
//!         let post = http::Request::post("/").body(Body::empty())?;
//!         let acknowledged = counter.fetch(post).await.is_ok();
//!         let steps = kit.steps();
//!         kit.heal();
//!         let count: i64 = counter.fetch(Request::default()).await?.into_body().json(100).await?;
//!         assert!(!acknowledged || count == 1, "acknowledged and lost");
//!         Ok(steps)
//!     })
//! }
//!
//! fn main() -> Result<()> {
//!     (0..test(None)?).try_for_each(|step| test(Some(step)).map(drop))
//! }
//! ```
//!
//! # Differences from the native host
//! - There is no wire: no frames, no HTTP of a real connection, no TCP buffers.
//! - All objects share the thread of the test; on the host they are spread over several.
//! - Objects must not wait for threads or I/O of their own: the kit finds that nothing is left to happen.
//! - SQL's own clock (`datetime('now')`) is the machine's; `random()` is the seed's.

mod builder;
mod client;
mod director;
mod disk;
mod executor;
mod index;
#[allow(clippy::module_inception)] // the type that the module is about
mod kit;
mod link;
mod net;
mod world;

pub use crate::testing::Received;
pub use builder::Builder;
pub use client::{Client, Opening};
pub use disk::Failing;
pub use executor::for_seeds;
pub use kit::{Kit, Strike};
