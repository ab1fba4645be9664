//! WebSocket rooms inside Durable Objects, for Cloudflare Workers and for native tokio servers.
//!
//! A [`Room`] is not an object: it is a view of the sockets that *your* object holds. It keeps none of
//! them, and is right in a fresh instance too: an object leaves memory when it is idle while its sockets stay open, and
//! whoever kept them in a field has lost them. The room asks the host for them, by tag, each time. Make it in `new`, once
//! for each tag.
//!
//! ```
//! use do_core::prelude::*;
//! use do_sync::{Refusal, Room};
//!
//! struct Chat<S: ObjectState> { room: Room<S> }
//!
//! impl<S: ObjectState> DurableObject<S> for Chat<S> {
//!     fn new(state: S) -> Result<Self> {
//!         let room = Room::new(&state);
//!         room.auto_ping("ping", "pong")?; // answered by the host, without waking the object
//!         Ok(Self { room })
//!     }
//!     async fn fetch(&self, request: Request) -> Result<Response> {
//!         if let Some(refusal) = Refusal::of(&request) {
//!             return Ok(refusal.response(reply::text(refusal.to_string()))); // 426 or 400
//!         }
//!         Ok(self.room.join(&request, Accept::new())?.0)
//!     }
//!     async fn websocket_message(&self, from: SocketOf<S>, message: Message) -> Result<()> {
//!         self.room.broadcast(message).except(&from).send();
//!         Ok(())
//!     }
//!     async fn websocket_close(&self, gone: SocketOf<S>, _: Close) -> Result<()> {
//!         self.room.send_all(format!("{} still here", self.room.count_without(&gone)));
//!         Ok(())
//!     }
//! }
//! ```
//!
//! # Mistakes that it avoids
//! - **Sockets in a field.** They are gone after the first hibernation; here they are looked up each time.
//! - **Counting the one who leaves.** The platform lists a closing socket while its close handler runs (rule
//!   D18), so the obvious count is one too high. Here only open sockets count.
//! - **One dead socket stops the broadcast.** A failing send is counted and logged, the loop goes on, and the
//!   [`BroadcastReport`] tells.
//! - **Encoding once per recipient.** A message is written once; recipients share its bytes.
//! - **Foreign sockets get the room's messages.** A room has a tag of its own, so an object can hold other
//!   sockets, or several rooms.
//! - **Waking for each ping.** [`Room::auto_ping`] leaves the answer to the host.
//! - **A malformed message ends the connection, or an object.** [`Room::receive`] logs it and goes on.
//! - **Claiming that every upgrade is right.** [`Refusal`] tells 426 from 400, with the headers that a client
//!   needs.
//!
//! A peer's Close needs no code: hosts answer it when `websocket_close` returns (rules D22, D23).
//!
//! # Testing
//! With the feature `testing` of `do-core`, [the kit](../do_core/kit/index.html) runs a room without a network, in virtual
//! time, and takes it out of memory between two messages:
//!
//! ```
//! # use do_core::prelude::*;
//! # use do_sync::Room;
//! # struct Chat<S: ObjectState> { room: Room<S> }
//! # impl<S: ObjectState> DurableObject<S> for Chat<S> {
//! #     fn new(state: S) -> Result<Self> { Ok(Self { room: Room::new(&state) }) }
//! #     async fn fetch(&self, request: Request) -> Result<Response> { Ok(self.room.join(&request, Accept::new())?.0) }
//! #     async fn websocket_message(&self, from: SocketOf<S>, message: Message) -> Result<()> {
//! #         self.room.broadcast(message).except(&from).send();
//! #         Ok(())
//! #     }
//! # }
//! use do_core::kit::Kit;
//!
//! // In a `#[test]`.
//! # fn main() -> Result<()> {
//! let kit = Kit::builder().object::<Chat<_>>("CHAT").start()?;
//! kit.run(async {
//!     let lobby = kit.namespace("CHAT")?.named("lobby")?;
//!     let (ann, bob) = (kit.connect(&lobby, "/").await?, kit.connect(&lobby, "/").await?);
//!     ann.send("hello")?;
//!     assert_eq!(bob.text().await?, "hello");
//!     kit.hibernate(&lobby).await?; // leaves memory; the sockets stay
//!     ann.send("still there?")?;
//!     assert_eq!(bob.text().await?, "still there?");
//!     Ok(())
//! })
//! # }
//! ```
//!
//! # Limits
//! Of the ten tags of a socket (rule D1) a room takes one of those that join, and three of those that enter or follow. A
//! room's tag and a member's id are together 255 bytes long at most, and no tag has the character U+001F. What is published
//! is at most half of [`Outbound::max_bytes`] long. Nothing here waits: what a slow peer may leave unread has the bounds of
//! [`Outbound`].

mod broadcast;
#[cfg(all(feature = "client", not(target_arch = "wasm32")))]
pub mod client;
mod client_js;
pub mod codes;
mod counter;
mod enter;
#[cfg(test)]
mod fake;
mod inbound;
mod lease;
mod log;
mod member;
mod once;
mod origin;
mod outbound;
mod publish;
mod refusal;
mod remote;
mod report;
mod room;
mod semaphore;
mod settings;
mod wire;

pub use broadcast::Broadcast;
pub use client_js::{CLIENT_JS, client_js};
pub use counter::{CompareAndSet, Counter};
pub use enter::Entering;
pub use inbound::{Inbound, InboundStats, OnExcess, OnMalformed, Received, Rejected};
pub use lease::{Acquired, Expired, Grant, Held, Holder, Lease, Release, TTL_MAX, Token};
pub use log::{Excerpt, Gap, History, HistoryStats, NoPosition, Position, Recorded, What};
pub use member::{Member, Members, OnDuplicate, Present};
pub use once::{NAME_BYTES, Once, RequestKey};
pub use origin::Origins;
pub use outbound::{OnFull, Outbound, OutboundStats};
pub use publish::{Publication, Published};
pub use refusal::Refusal;
pub use remote::{CounterObject, CounterStub, LockObject, LockStub, Retries};
pub use report::BroadcastReport;
pub use room::Room;
pub use semaphore::{GRANTS_MAX, Permits, Semaphore, Usage};
pub use wire::Event;
