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
//! the runtime that accepted them. In axum, one line mounts a namespace:
//! `Router::new().fallback_service(host.namespace("HELLO")?.service(name_of))`; in plain hyper the same service
//! goes to `serve_connection(io, service).with_upgrades()`.
//!
//! # Differences from Workers
//! - A panic in a handler resets its object alone; on Workers it takes the isolate.
//! - Objects of one process share nothing (rule A14).
//! - A Close frame with an invalid code, and text that is not UTF-8, break the protocol: the peer gets 1002 or 1007
//!   and the object [`websocket_error`](crate::DurableObject::websocket_error) (rules D8, D15).
//! - No compression of WebSocket messages is negotiated (rule D7).
//! - A peer that reads too slowly is dropped when its outbox is full (rule D11b).

mod builder;
mod host;
mod lock;
mod namespace;
mod serve;
mod service;
mod shard;
mod state;
mod upgrade;
mod ws;

pub use crate::engine::{Clock, ManualClock, SystemClock};
pub use builder::Builder;
pub use host::Host;
pub use namespace::{HostEnv, HostNamespace, HostStub};
pub use service::NamespaceService;
pub use state::{HostAlarms, HostSleep, HostSocket, HostSockets, HostSql, HostState};
