//! Server-sent events: feeds of a Durable Object, or of any server, with one bounded writer per connection. The same code
//! runs on Cloudflare Workers and on native tokio servers.
//!
//! | to | use |
//! |---|---|
//! | send events from an object | [`Feed`], made from its state in `new` and kept in a field |
//! | send events from a server without objects | `Hub`, in any axum, hyper or tower service |
//! | write one event | [`Event`], which nothing that is put into it can turn into two |
//! | read a stream, in a native client or in a test | [`Decoder`] |
//!
//! # A feed
//! ```
//! use do_core::prelude::*;
//! use do_sse::{Event, Feed, History, Settings};
//!
//! struct News<S: ObjectState> { feed: Feed<S> }
//!
//! impl<S: ObjectState> DurableObject<S> for News<S> {
//!     fn new(state: S) -> Result<Self> {
//!         let settings = Settings::new().history(History::new().max_events(500).replay(10));
//!         Ok(Self { feed: Feed::new(&state, settings, Alarm::raw(&state)) })
//!     }
//!     async fn fetch(&self, request: Request) -> Result<Response> {
//!         if request.method() == Method::GET {
//!             return Ok(self.feed.open(&request).start().await?); // 200, text/event-stream
//!         }
//!         let line = request.into_body().text(4_096).await?;
//!         let published = self.feed.publish(Event::named("headline")?.data(line))?;
//!         Ok(reply::text(format!("{} readers", published.report.queued)))
//!     }
//!     async fn alarm(&self, _: AlarmInfo) -> Result<()> {
//!         Ok(self.feed.on_alarm().await?) // heartbeats
//!     }
//! }
//!
//! // In a `#[test]`.
//! # fn main() -> Result<()> {
//! let kit = do_core::kit::Kit::builder().object::<News<_>>("NEWS").start()?;
//! kit.run(async {
//!     let news = kit.namespace("NEWS")?.named("today")?;
//!     let get = http::Request::get("http://news/").body(Body::empty())?;
//!     let mut reader = news.fetch(get).await?.into_body();
//!     let post = http::Request::post("http://news/").body(Body::from("It rains"))?;
//!     assert_eq!(news.fetch(post).await?.into_body().text(100).await?, "1 readers");
//!
//!     let mut decoder = do_sse::Decoder::new();
//!     use http_body_util::BodyExt as _;
//!     while let Some(frame) = reader.frame().await {
//!         decoder.push(frame?.data_ref().expect("data"))?;
//!         while let Some(event) = decoder.next_event()? {
//!             if event.event == "headline" {
//!                 assert_eq!(event.data, "It rains");
//!                 return Ok::<_, Failure>(());
//!             } // the first is `ready`
//!         }
//!     }
//!     panic!("the stream ended");
//! })
//! # }
//! ```
//! In a page, `new EventSource("/news").addEventListener("headline", ({ data }) => ..)` is all that it takes.
//!
//! # What a stream begins with
//! One named event with data at once, so that proxies pass the head on, `open` fires, and a client whose stream breaks before
//! anything happened knows where it was:
//!
//! | event | id | data |
//! |---|---|---|
//! | `ready`, with `retry:` | where what follows continues | `{"connection":"ID"}` |
//! | `reset`, when something was missed for good, or there is a [snapshot](Opening::snapshot) for a newcomer | what it is right at | `{"lost":12}`, `null` when nobody knows how many, and the `"snapshot"` if there is one |
//! | what was missed | | |
//! | what happens from now on | | |
//!
//! Whoever is [replaced](OnDuplicate::Replace) is told by `replaced`. No other names are used.
//!
//! # Coming back
//! What is [published](Feed::publish) has an id, `EPOCH-NUMBER` in short ASCII, and is kept in the [`History`]: in memory
//! ([`Feed::new`]), or in the object's database ([`Feed::stored`]). A client that comes back says which it had last, in
//! `Last-Event-ID` or, where headers cannot be set, in the parameter `lastEventId`, and is shown what is behind it, in the turn
//! in which it is let in: nothing is lost in between, and nothing comes twice. The epoch is drawn when a sequence begins, so
//! that a number of another one is not taken for one of this. What does not fit one page (512 KiB) comes in pages: the
//! stream ends behind the first, and the client comes back for the next after 10 ms.
//!
//! What is [broadcast](Feed::broadcast) or [sent to one](Feed::send_to) has no id and is not kept: for what matters now or not
//! at all.
//!
//! # Slow readers
//! Each connection has one queue, into which broadcasts, messages for it alone and heartbeats go in the order in which they
//! were sent, and out of which its response's body is read. It is bounded in bytes and events ([`Settings::max_bytes`],
//! [`Settings::max_events`]), and in the time without progress ([`Settings::stall`]). Sending never waits, so that no reader
//! delays another. At a bound, a published event ends the stream (its client comes back for it), and others are treated as
//! [`OnFull`] says; [`BroadcastReport`](do_core::BroadcastReport) tells what became of each.
//!
//! In front of the queue stands what the server and the operating system hold: with hyper about 400 KiB, and megabytes for
//! each connection in the kernel, unless the listener is made with a smaller send buffer (`SO_SNDBUF`, which accepted
//! sockets inherit).
//!
//! # Who left
//! A client that closes its connection is noticed with the first write after it, a millisecond later; one whose connection is
//! reset, at once (rule B17). The body of its response is dropped then, and with it the connection is gone from the feed,
//! exactly once, whatever else is under way for it. Heartbeats see to it that there is a write: after
//! [15 seconds](Settings::heartbeat) of silence, by the object's alarm. One whose machine vanished is noticed when the
//! operating system gives it up, or when its queue stalls; `TCP_USER_TIMEOUT` on the listener makes it sooner. A client that
//! ends only its own side goes on reading, on Workers and from `Host::serve`; other servers of hyper, as axum's is, take it for
//! one that left.
//!
//! # Who is not let in
//! An `EventSource` takes 429 or 503 for the end, and never comes back by itself. So who comes when there is no place, or
//! while the heartbeat's alarm cannot be set, gets 200, the time to come back, and the end: [`Opening::later`], which is there
//! for the application as well, [`Opening::stop`] (204) for who is to stay away, and [`Opening::refuse`] for the rest. An
//! entry in front of the object answers the failures of its stub by [`error`].
//!
//! # What it costs on Workers
//! **An open stream keeps its object in memory**: it cannot hibernate, and its time is paid for, whether anything is sent or
//! not, where a room of idle WebSockets costs nothing. By the list of November 2026 (128 MB for each object, 12.50 dollars for
//! a million GB-s of which 400,000 a month are included, 0.15 dollars for a million requests, alarms among them, 1 dollar
//! for a million rows written):
//!
//! | | a month of 30 days |
//! |---|---|
//! | an object with at least one open stream | 331,776 GB-s: 4.15 dollars beyond what is included |
//! | its heartbeats at 15 s, by the raw alarm | 172,800 wakes, 0.03 dollars, and as many rows, 0.17 dollars |
//! | by a slot of a schedule | the same wakes, and four rows for each, 0.69 dollars |
//! | at 25 s | 103,680 wakes, 0.02 dollars, and as many rows, 0.10 dollars |
//! | further streams that are quiet at other times | up to five such rows in the place of one, however many streams there are: those due within a fifth of the interval are sent theirs together |
//! | each further stream beyond that | nothing but its request: they share the object's time and its one alarm |
//! | a published event | 1 request; with [`Feed::stored`] also the rows in its documentation |
//! | the same readers on a `Room` of `do-sync`, idle | 0 |
//!
//! So one stream that is open all month is within what is included, a thousand objects with a reader each cost 4,000
//! dollars, and one object with a thousand readers 4. Let few objects have many readers, end streams that have nothing to say
//! ([`Settings::max_age`] with [`stop`]), and use WebSockets for what is idle for long.
//!
//! # Several parts in one object
//! The alarm may be a slot of a [`Schedule`](do_core::Schedule): then [`Feed::on_alarm`] is called when its job comes, and
//! nothing here touches other jobs. An object that deletes everything ([`delete_all`](do_core::ObjectState::delete_all))
//! deletes the alarm too: call `on_alarm` behind it.
//!
//! # Limits
//! | | |
//! |---|---|
//! | names and ids of events | no CR, LF or NUL; anything else |
//! | data | any text; line ends arrive as LF |
//! | what waits for one connection | [`Settings::max_bytes`], [`Settings::max_events`]; one event always |
//! | what a newcomer is shown | 512 KiB over one connection, the rest over the next ones |
//! | history | [`History`]: 1,000 events and 1 MiB by default |
//! | connections | [`Settings::max_connections`]; none by default |
//!
//! Browsers open six connections to a server at a time over HTTP/1.1, in all tabs together: one stream for a page and no
//! more, or HTTP/2.
//!
//! # Mistakes that it avoids
//! - **A value with a line end in it forges events.** [`Event`] refuses it in names and ids, and splits data at all three.
//! - **A client that is slow, and everything that it was ever sent, in memory.** Each queue has bounds.
//! - **One stuck client delays all.** Sending never waits.
//! - **The late failure of an old connection removes the new one.** A connection is known by a number, not by its id.
//! - **Heartbeats that end for ever with the first failing alarm**, or with the last client: see [`Feed::on_alarm`].
//! - **A restart, and a number that resumes at another place.** Ids have an epoch.
//! - **All clients come back in the same second.** `retry` and [ages](Settings::max_age) are jittered.
//! - **Proxies that collect.** `X-Accel-Buffering: no`, `no-transform`, and a first event at once.

mod answer;
mod asked;
mod connection;
mod core;
mod decoder;
mod event;
mod feed;
mod history;
#[cfg(not(target_arch = "wasm32"))]
mod hub;
mod opening;
mod send;
mod settings;
mod stats;

pub use answer::{cors, error, later, preflight, refuse, stop};
pub use connection::EventStream;
pub use core::{Backlog, Info};
pub use decoder::{Decoded, Decoder, Item};
pub use event::Event;
pub use feed::Feed;
pub use history::History;
#[cfg(not(target_arch = "wasm32"))]
pub use hub::Hub;
pub use opening::Opening;
pub use send::{Broadcast, Publication, Published};
pub use settings::{OnDuplicate, OnFull, Settings};
pub use stats::Stats;
