//! A client of rooms for native programs: it comes back by itself and continues where it was.
//!
//! It speaks the protocol of [`Room`](crate::Room)s that members enter. What a program sees is one stream of [`Event`]s,
//! whatever happens to the connections below it:
//!
//! ```no_run
//! use do_sync::client::{Client, Event};
//!
//! # async fn example(token: &str) -> Result<(), Box<dyn std::error::Error>> {
//! let mut client = Client::builder("wss://example.com/rooms/lobby").bearer(token).query("name", "Ann").connect()?;
//! client.send_json(&"hello")?;
//! while let Some(event) = client.next_event().await {
//!     match event {
//!         Event::Connected(room) if room.gap.is_some() => println!("some messages are lost: read everything anew"),
//!         Event::Connected(room) => println!("{} members are here", room.count),
//!         Event::Message { from, data, .. } => println!("{}: {data}", from.as_deref().unwrap_or("the room")),
//!         Event::Disconnected { cause, retry_in, .. } => println!("{cause}, again in {retry_in:?}"),
//!         Event::Stopped { cause, .. } => println!("that was it: {cause}"),
//!         _ => {}
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # What it does by itself
//! - **It comes back** after a lost connection, in random waits up to a bound that doubles ([`Backoff`]), not before the
//!   time that a server asks for by `Retry-After`. It stops for what would be the same again: the
//!   [close codes](crate::codes) that say so, and the statuses 400 to 499 but 408, 425 and 429.
//! - **It continues**: messages have numbers, and each comes once and in order, or [`Connected::gap`] says that some are
//!   lost for good. When a number is missing it does not go on, but resumes from where it was.
//! - **It notices silence**: a server that says nothing is asked, and left when it does not answer.
//! - **It acknowledges** what it has read, where the host cannot tell what still waits for it.
//!
//! # What it never does
//! - **Lose a message in silence.** What it takes to be sent is written once, or named: in [`Event::Disconnected`] as
//!   written to a connection that ended before the server had confirmed it, in [`Event::Stopped`] as never written. After
//!   messages of the application it sends a Ping, whose Pong confirms all that was before: they have reached the host.
//! - **Grow.** The queue is bounded and says so; when the application does not take its events, nothing more is read.
//! - **Leak.** There is one task, and it ends when the [`Client`] is dropped.
//!
//! # TLS
//! `wss` needs a feature of `tokio-tungstenite` in the program's own `Cargo.toml`, at the version that this crate uses:
//! `tokio-tungstenite = { version = "0.30", features = ["rustls-tls-webpki-roots"] }`, or `native-tls`. This crate does
//! not choose. [`Builder::connector`] is for streams of one's own.

mod backoff;
mod builder;
mod cause;
mod connect;
mod core;
mod driver;
mod event;
mod frame;
mod handle;
mod queue;
mod shared;

pub use backoff::Backoff;
pub use builder::Builder;
pub use cause::Cause;
pub use connect::Io;
pub use event::{Connected, Event, Gap, Peer};
pub use handle::{Client, Sender};
pub use queue::{NotSent, SendError};
