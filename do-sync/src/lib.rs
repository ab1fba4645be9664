//! State that many clients share, inside Durable Objects: WebSocket rooms with members and history, exact counters,
//! leases and semaphores. The same code runs on Cloudflare Workers and on native tokio servers.
//!
//! Nothing here is an object: each type is a part of *your* object, made from its state in `new` and kept in a field.
//! ([`CounterObject`] and [`LockObject`] are whole objects, for those who want no more than that.)
//!
//! | to | use |
//! |---|---|
//! | send to the sockets of an object, in a format of your own | [`Room::join`] and [`Room::broadcast`] |
//! | have members, a history, and clients that continue where they were | [`Room::enter`] and [`Room::publish`] |
//! | feed readers who are nobody in particular | [`Room::follow`] and [`Room::publish`] |
//! | tell something of the moment: a pointer, who is typing | [`Event`] and [`Room::broadcast`] |
//! | connect to a room | [`client_js`] for pages, the module `client` (feature `client`) for native programs |
//! | count exactly | [`Counter`]; from elsewhere [`CounterStub`] |
//! | let one at a time, or so many, do something | [`Lease`], [`Semaphore`]; from elsewhere [`LockStub`] |
//! | do a request once however often it arrives | [`Once`] |
//!
//! # A room with members and history
//! ```
//! use do_core::prelude::*;
//! use do_sync::{History, Inbound, Member, Members, Room};
//!
//! struct Chat<S: ObjectState> { room: Room<S> }
//!
//! impl<S: ObjectState> DurableObject<S> for Chat<S> {
//!     fn new(state: S) -> Result<Self> {
//!         let room = Room::new(&state)
//!             .history(History::new().max_messages(500).max_age(Duration::from_secs(86_400)).replay(50))
//!             .members(Members::new().grace(Duration::from_secs(5)))
//!             .inbound(Inbound::new().max_bytes(16 * 1_024).rate(10.0, 20))
//!             .alarm(Alarm::raw(&state)); // ends graces, deletes what is too old
//!         room.auto_ping("ping", "pong")?; // answered by the host, without waking the object
//!         Ok(Self { room })
//!     }
//!     async fn fetch(&self, request: Request) -> Result<Response> {
//!         let name = request.require("name")?; // who it is has to be proven: see `Refusal` and `Origins`
//!         Ok(self.room.enter(&request, Member::new(name)?)?) // 101, or 400, 409, 426, 503
//!     }
//!     async fn websocket_message(&self, from: SocketOf<S>, message: Message) -> Result<()> {
//!         if let Some(text) = self.room.receive::<String>(&from, &message) {
//!             self.room.publishing(&text).from(&from).send()?;
//!         }
//!         Ok(())
//!     }
//!     async fn websocket_close(&self, gone: SocketOf<S>, _: Close) -> Result<()> {
//!         self.room.leave(&gone).await?;
//!         Ok(())
//!     }
//!     async fn websocket_error(&self, gone: SocketOf<S>, _: Error) -> Result<()> {
//!         self.room.leave(&gone).await?;
//!         Ok(())
//!     }
//!     async fn alarm(&self, _: AlarmInfo) -> Result<()> {
//!         Ok(self.room.on_alarm().await?)
//!     }
//! }
//!
//! // In a `#[test]`.
//! # fn main() -> Result<()> {
//! let kit = do_core::kit::Kit::builder().object::<Chat<_>>("CHAT").start()?;
//! kit.run(async {
//!     let lobby = kit.namespace("CHAT")?.named("lobby")?;
//!     let ann = kit.connect(&lobby, "/?name=ann").await?;
//!     assert!(ann.text().await?.starts_with(r#"{"t":"hello""#)); // where the sequence is, who is there
//!     assert!(ann.text().await?.starts_with(r#"{"t":"joined","s":1"#));
//!     ann.send(r#""hello""#)?;
//!     assert!(ann.text().await?.ends_with(r#""from":"ann","d":"hello"}"#));
//!     kit.crash();
//!     let bob = kit.connect(&lobby, "/?name=bob").await?; // later, in another process
//!     while !bob.text().await?.contains(r#""d":"hello""#) {} // he is shown what was said
//!     Ok(())
//! })
//! # }
//! ```
//!
//! # A room in a format of your own
//! [`join`](Room::join) and [`broadcast`](Room::broadcast) add nothing to what is sent, and write no rows:
//!
//! ```
//! use do_core::prelude::*;
//! use do_sync::{Refusal, Room};
//!
//! struct Board<S: ObjectState> { room: Room<S> }
//!
//! impl<S: ObjectState> DurableObject<S> for Board<S> {
//!     fn new(state: S) -> Result<Self> {
//!         Ok(Self { room: Room::new(&state).max_sockets(1_000) })
//!     }
//!     async fn fetch(&self, request: Request) -> Result<Response> {
//!         if let Some(refusal) = self.room.refusal(&request) {
//!             return Ok(refusal.reply()); // 426, 400 or 503
//!         }
//!         Ok(self.room.join(&request, Accept::new())?.0)
//!     }
//!     async fn websocket_message(&self, from: SocketOf<S>, message: Message) -> Result<()> {
//!         if self.room.admit(&from, &message) {
//!             self.room.broadcast(message).except(&from).send();
//!         }
//!         Ok(())
//!     }
//!     async fn websocket_close(&self, gone: SocketOf<S>, _: Close) -> Result<()> {
//!         self.room.send_all(format!("{} still here", self.room.count_without(&gone)));
//!         Ok(())
//!     }
//! }
//! ```
//!
//! Both ways work in one room: a broadcast reaches those who entered too. Their clients hand it to the application unread,
//! unless it looks like the room's own frames: text must not be a JSON object with a member `t`, and bytes must not begin
//! with `0x01`.
//!
//! # What is promised
//! To a client that comes back with its position, over any number of connections, evictions, crashes and deployments:
//!
//! - Every published message, and every `joined`, `updated` and `left`, comes once and in order; where some cannot be had
//!   any more the client is told of a gap, and of how many are lost where that is known.
//! - A message is sent when it is durable, not before (rule C4): nobody sees what a failed commit takes back.
//! - Nothing is shown that is beyond the bounds of the [`History`].
//! - `joined` and `left` alternate for each member, also over resets, which end sockets without an event (rule D25): whoever
//!   went with one is found out at the first use of the room in the next instance.
//!
//! Not promised: that what a client *sends* arrives. It is confirmed by what the object publishes. What
//! [`broadcast`](Room::broadcast) sends, [`Event`]s too, is for those who are there, may be left out for a slow reader, and
//! is never repeated. `PROTOCOL.md` in the crate's folder has all of it, for those who write another client.
//!
//! # Slow readers
//! What waits for one socket is bounded by [`Outbound`]: 256 KiB and 1,000 messages unless said otherwise. Beyond that
//! [`OnFull`] decides about broadcasts: close (the default), leave out the newest or the oldest, or keep the latest for each
//! [key](Broadcast::key). Published messages are never left out alone: the socket closes with 1013, and its client comes
//! back and resumes. A reader that stands still for 30 s is closed. Nobody else waits for it. Where Workers do not tell what
//! waits, clients acknowledge; sockets that came by [`join`](Room::join) do not, and there nothing is bounded.
//!
//! # What comes in
//! [`receive`](Room::receive) and [`admit`](Room::admit) hold each socket to the room's [`Inbound`] bounds: length, rate, and
//! what becomes of malformed messages. Without settings that is 64 KiB each, as often as peers like: set a rate in a room
//! for strangers. Every message has to pass one of them: they take the acknowledgements out. What comes before the handshake is in [`Refusal`] and [`Origins`].
//! A [registry](Room::connections) that several rooms share, and streams beside them, asks both, holds caps over all of them
//! and for each visitor, and tells the application who comes and goes.
//!
//! # Counters, leases, semaphores
//! They are rows in the object's SQLite and synchronous calls: part of the turn's transaction, durable before the answer
//! leaves. A lease has a fencing [`Token`] that grows with each grant, and needs no alarm to be right: the alarm tidies and
//! gives notice. From elsewhere a stub calls with a [`RequestKey`] of its own, so that a call whose answer was lost is
//! repeated and done once.
//!
//! ```
//! # use do_core::prelude::*;
//! use do_sync::{Acquired, CounterStub, LockStub};
//!
//! # async fn example<N: Namespace>(counters: N, locks: N) -> Result<()> {
//! let stock = CounterStub::new(counters.named("shop")?);
//! let left = stock.add("chairs", -1).await?;
//!
//! let locks = LockStub::new(locks.named("printers")?);
//! if let Acquired::Granted(grant) = locks.acquire("laser", "ann", Duration::from_secs(60)).await? {
//!     // Whatever the lease guards refuses a token that is smaller than the largest one that it has seen.
//!     locks.release("laser", grant.token).await?;
//! }
//! # drop(left); Ok(()) }
//! ```
//!
//! # What it costs
//! On Workers rows written are most of the bill, and each wake-up is time in memory. Nothing polls.
//!
//! | | rows read | rows written |
//! |---|---|---|
//! | `broadcast`, [`Event`], `join`, `follow` without history to show | 0 to 4 | 0 |
//! | `publish` | 2 | 1, and 1 when it is deleted some day |
//! | a member comes, or leaves | a few | 2, and 1 later for the message |
//! | a member is waited for, and is back | a few | 2, and the alarm |
//! | whoever resumes | 1 for each message shown, and a few | 0 |
//! | the first use of members in an instance | 1 for each member | 0 |
//! | [`Counter`], [`Lease`], [`Semaphore`] | in their documentation | |
//!
//! An idle room leaves memory and keeps its sockets. It is woken by a message, by a connection that comes or ends, and by
//! its alarm; not by the pings of [`auto_ping`](Room::auto_ping). It stays in memory while something waits for a slow
//! reader that reads, and at most [`Outbound::stall`] when that one does not. Acknowledgements are messages and wake it:
//! four for each [credit](Outbound::credit) that a client reads.
//!
//! # Limits
//! | | |
//! |---|---|
//! | tags of a socket | ten (rule D1); [`join`](Room::join) takes one, [`enter`](Room::enter) and [`follow`](Room::follow) three, a [registry](Room::connections) one more. None has the character U+001F |
//! | id of a member | 1 to 128 bytes, no control characters; with the room's tag at most 255 |
//! | data of a member, with what is attached to a socket | [`limits::ATTACHMENT_BYTES`](do_core::limits::ATTACHMENT_BYTES) as JSON, less what the room adds |
//! | a published message in its frame | half of [`Outbound::max_bytes`] (128 KiB by default), never more than 2 MB |
//! | a [snapshot](Entering::snapshot) | half of [`Outbound::max_bytes`] |
//! | members in a hello | 256; all are counted |
//! | history | [`History`]: 1,000 messages and 1 MiB by default; up to an eighth more is stored |
//! | names of counters, leases, semaphores, holders | 1 to [`NAME_BYTES`] bytes |
//! | time of a lease | 1 ms to [`TTL_MAX`] |
//! | grants of a semaphore | [`GRANTS_MAX`] |
//! | remembered requests | [`Once`]: 10,000 keys for an hour by default |
//!
//! Tables have names that begin with `_room`, `_counter`, `_lease`, `_semaphore` and `_once`. They are made with the first
//! write, so that an object that deletes everything (rule E14) begins anew without further ado.
//!
//! # Mistakes that it avoids
//! - **Sockets in a field.** They are gone after the first hibernation; here they are looked up each time.
//! - **Counting the one who leaves.** The platform lists a closing socket while its close handler runs (rule D18). Here only
//!   open sockets count.
//! - **One dead socket stops the broadcast.** A failing send is counted and the loop goes on; [`BroadcastReport`] tells.
//! - **Encoding once per recipient.** A message is written once; recipients share its bytes.
//! - **Foreign sockets get the room's messages.** A room has a tag of its own, so an object can hold other sockets, or
//!   several rooms.
//! - **Waking for each ping.** [`Room::auto_ping`] leaves the answer to the host.
//! - **A malformed message ends the connection, or an object.** [`Room::receive`] logs it and goes on.
//! - **Two connections of one member are two members.** [`OnDuplicate`] says what a second one means; a short loss within
//!   the [grace](Members::grace) is no leaving.
//! - **A lock that expires under its holder.** Fencing [`Token`]s let what it guards refuse the late one.
//!
//! A peer's Close needs no code: hosts answer it when `websocket_close` returns (rules D22, D23).
//!
//! # Testing
//! With the feature `testing` of `do-core`, [the kit](../do_core/kit/index.html) runs a room without a network, in virtual
//! time: `kit.hibernate(&stub)` takes the object out of memory between two messages, `kit.crash()` takes the process,
//! `kit.advance(time)` brings graces, ages and expiries. The first example above is such a test.
//!
//! # Features
//! `client`: the module `client`, for native programs. It does nothing on wasm32. Without it the crate has neither
//! tokio nor a WebSocket library in its tree.

mod broadcast;
#[cfg(all(feature = "client", not(target_arch = "wasm32")))]
pub mod client;
mod client_js;
pub mod codes;
mod counter;
mod enter;
mod inbound;
mod lease;
mod log;
mod member;
mod once;
mod outbound;
mod publish;
mod remote;
mod room;
mod semaphore;
mod settings;
mod wire;

pub use broadcast::Broadcast;
pub use client_js::{CLIENT_JS, client_js};
pub use counter::{CompareAndSet, Counter};
pub use do_core::{BroadcastReport, Gap, Origins, Position, Refusal, Retries};
pub use enter::Entering;
pub use inbound::{Inbound, InboundStats, OnExcess, OnMalformed, Received, Rejected};
pub use lease::{Acquired, Expired, Grant, Held, Holder, Lease, Release, TTL_MAX, Token};
pub use log::{Excerpt, History, HistoryStats, Recorded, What};
pub use member::{Member, Members, OnDuplicate, Present};
pub use once::{NAME_BYTES, Once, RequestKey};
pub use outbound::{OnFull, Outbound, OutboundStats};
pub use publish::{Publication, Published};
pub use remote::{CounterObject, CounterStub, LockObject, LockStub};
pub use room::Room;
pub use semaphore::{GRANTS_MAX, Permits, Semaphore, Usage};
pub use wire::Event;
