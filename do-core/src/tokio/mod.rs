//! The native host: Durable Objects on threads of a tokio server, one SQLite file each.
//!
//! ```no_run
//! use do_core::{Stub, prelude::*, tokio::Host};
//!
//! struct Hello;
//! impl<S: ObjectState> DurableObject<S> for Hello {
//!     fn new(_: S) -> Result<Self> { Ok(Self) }
//!     async fn fetch(&self, _: Request) -> Result<Response> { Ok(reply::text("hello")) }
//! }
//!
//! # async fn serve() -> Result<()> {
//! let host = Host::builder("data").object::<Hello>("HELLO").start()?;
//! let listener = tokio::net::TcpListener::bind("127.0.0.1:8080").await?;
//! host.serve(listener, async |request, env| Ok(env.namespace("HELLO")?.named("world")?.fetch(request).await?));
//! tokio::signal::ctrl_c().await?;
//! host.shutdown(Duration::from_secs(10)).await?;
//! # Ok(()) }
//! ```
//!
//! Objects live on shard threads of the host's own, each object on one, chosen by its id. Connections stay with
//! the runtime that accepted them. `Hello` is written for every host; a class that is generic over its state is
//! registered as `object::<Counter<_>>`.
//!
//! # In a server of your own
//! A namespace is a service of tower and of hyper ([`HostNamespace::service`]), so one line mounts it. In axum:
//!
//! ```no_run
//! # async fn serve(host: do_core::tokio::Host, listener: tokio::net::TcpListener) -> Result<(), Box<dyn std::error::Error>> {
//! use do_core::ObjectName;
//! use std::time::Duration;
//!
//! // `/rooms/lobby` is the room "lobby"; `nest_service` takes the prefix off.
//! let rooms = host.namespace("ROOM")?.service(|request| ObjectName::new(request.uri.path().trim_matches('/')));
//! let app = axum::Router::new().nest_service("/rooms", rooms);
//! axum::serve(listener, app).with_graceful_shutdown(async { tokio::signal::ctrl_c().await.ok(); }).await?;
//! host.shutdown(Duration::from_secs(10)).await?; // the server first, then the host, which closes the sockets
//! # Ok(()) }
//! ```
//!
//! In plain hyper the same service goes to `serve_connection(io, service).with_upgrades()`. Handlers of your own
//! use stubs: `host.env()` goes anywhere, and [`Stub::fetch`](crate::Stub::fetch) takes and gives `http` types.
//!
//! # Testing without sleeping
//! Give the host a [`ManualClock`] and a temporary folder. A shard does what is due before it looks at later
//! requests, so after `clock.advance(..)` the answer to any request to an object means that what came due in it
//! before was begun. Only the grace of a shutdown and the time for a request's head are real.
//!
//! ```
//! # use do_core::{Stub, prelude::*, tokio::{Host, ManualClock}};
//! # struct Hello;
//! # impl<S: ObjectState> DurableObject<S> for Hello {
//! #     fn new(_: S) -> Result<Self> { Ok(Self) }
//! #     async fn fetch(&self, _: Request) -> Result<Response> { Ok(reply::text("hello")) }
//! # }
//! # #[tokio::main] async fn main() -> Result<()> {
//! let (folder, clock) = (tempfile::tempdir()?, ManualClock::at(Timestamp::from_millis(1_000)));
//! let host = Host::builder(folder.path()).clock(clock.clone()).object::<Hello>("HELLO").start()?;
//! let hellos = host.namespace("HELLO")?;
//! let world = hellos.named("world")?;
//! assert_eq!(world.fetch(Request::default()).await?.into_body().text(100).await?, "hello");
//! assert_eq!(hellos.why_awake(world.id()).await?, Some(vec![])); // in memory, idle
//! clock.advance(Duration::from_secs(11));
//! assert_eq!(hellos.why_awake(world.id()).await?, None); // evicted
//! # Ok(()) }
//! ```
//!
//! # The data directory
//! A file `host.lock` (one process at a time), `alarms.sqlite` (which alarms are due when), and a SQLite file for
//! each object that has data, in a folder for each namespace. Once [migrations](Builder::migrations) are used,
//! `namespaces.json` says which were applied and which folder is whose. Alarms that came due while no host ran fire at
//! the start. Do not remove anything of it while a host runs: what is written then fails.
//!
//! # When a commit fails
//! The object is reset: whoever waits for it gets an error, its sockets end with 1006, and nothing that it sent
//! after the write has left. What was acknowledged before stays. The next event makes a new instance.
//!
//! # Differences from Workers
//! In short; PLATFORM.md, in the root of the repository, has each with its other side and the cases that show it.
//! - The first caller of each instance decides which name it sees; on Workers a name outlives the instance for a while
//!   (rule A9).
//! - Objects live on several threads and share no thread-locals that they could rely on; on Workers those of a process
//!   share all (rule A14).
//! - Background work keeps its object for as long as it takes, unless [`Builder::background`] says otherwise; on Workers
//!   for 70 to 140 s without a client (rule B4).
//! - A panic in a handler resets its object alone and undoes its turn; on Workers it undoes nothing, and in a build with
//!   panic=abort it takes the isolate (rule B11).
//! - The body of a call that a reset of the caller cuts off is an error for its reader; on Workers it may look complete
//!   (rules B13, C6).
//! - A server of your own may take a client that closes only its side of a connection for gone, as axum does; with
//!   Workers and [`Host::serve`] it goes on reading (rule B17).
//! - Calls to other objects that were made before a write whose commit fails leave; on Workers the reset may overtake
//!   them (rule C4).
//! - A response whose status cannot be sent (1xx, 600 and above) is 500 for a client on both; between objects Workers
//!   fails the call, and natively the caller sees the status. Header values that are not UTF-8 pass, which Workers
//!   refuses.
//! - A wrong WebSocket handshake is the object's to see and [refused](crate::SocketRegistry::accept) by it; Workers
//!   answers some by itself and lets others pass (rule D2).
//! - A 101 that is dropped loses its socket, with 1006; on Workers it stays in the lists for a while (rule D6).
//! - No compression of WebSocket messages is negotiated (rule D7).
//! - Close frames with a payload that is forbidden, text that is not UTF-8, control frames of more than 125 bytes and
//!   frames that are not masked break the protocol: the peer gets 1002 or 1007 and the object
//!   [`websocket_error`](crate::DurableObject::websocket_error) (rules D8, D13, D15, D16). Workers takes them.
//! - A peer that reads too slowly is dropped when its outbox is full; Workers buffers without a bound (rule D11b).
//! - TCP ends when both sides have said Close, and 10 s after the object's own if the peer does not answer; Workers keeps
//!   the connection (rules D21, D24).
//! - A run of an alarm that takes fifteen minutes has failed; of Workers that is only read (rule E7).
//! - The bundled SQLite knows no `LIMIT` of `UPDATE` and `DELETE` (rule F12), and has the limits of production rather
//!   than those of the local runtime unless [`Builder::local_sql_limits`] says so (rules F15, F16).

mod builder;
mod host;
mod lock;
mod manifest;
mod migration;
mod namespace;
mod serve;
mod service;
mod shard;
mod state;
mod upgrade;
mod wire;
mod ws;
#[cfg(feature = "testing")]
pub(crate) use ws::decoder::fuzz as ws_fuzz;

pub use crate::engine::{Clock, ManualClock, SystemClock};
pub use builder::Builder;
pub use host::Host;
pub use migration::Migration;
pub use namespace::{HostEnv, HostNamespace, HostStub};
pub use service::NamespaceService;
pub use state::{HostAlarms, HostSleep, HostSocket, HostSockets, HostSql, HostState};
#[cfg(feature = "testing")]
pub(crate) use {
    builder::{MakeClass, Plan},
    manifest::Manifest,
    serve::sendable,
    shard::{Command, ShardQueue},
    upgrade::Accepts,
    ws::{ConnLimits, peer_close, too_long},
};
