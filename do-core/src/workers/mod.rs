//! The adapter for Cloudflare Workers: the traits of this crate over the platform's own objects.
//!
//! # A Worker
//! A library with two lines beside its objects:
//!
//! ```ignore
//! do_core::export!(ChatRoom = Chat<_>);   // the class that wrangler.toml binds
//! do_core::export!(fetch = route);        // what answers requests from outside
//! ```
//!
//! Its `Cargo.toml` says what it is built as, and on which target it wants which host:
//!
//! ```toml
//! [lib]
//! crate-type = ["cdylib", "rlib"]
//!
//! [target.'cfg(target_arch = "wasm32")'.dependencies]
//! do-core = { version = "0.1", features = ["workers"] }
//! ```
//!
//! Its `wrangler.toml` binds the classes, each also named as one with SQLite:
//!
//! ```toml
//! name = "chat"
//! main = "build/index.js"
//! compatibility_date = "2026-11-17"
//!
//! [build]
//! command = "cargo install -q worker-build@^0.8 && worker-build --release"
//!
//! [[durable_objects.bindings]]
//! name = "CHAT"
//! class_name = "ChatRoom"
//!
//! [[migrations]]
//! tag = "v1"
//! new_sqlite_classes = ["ChatRoom"]
//! ```
//!
//! `npx wrangler dev` serves it, `npx wrangler deploy` puts it on Cloudflare's network. With a nightly Rust and its
//! component `rust-src`, `worker-build --release --panic-unwind` builds the recommended way (see Panics). What handlers
//! and this crate log with `tracing` at the levels `WARN` and `ERROR` goes to the Worker's console, unless a subscriber
//! was set before.
//!
//! Calls of the platform that throw become errors: none leaves a request without an answer. Bodies pass through as
//! the streams they are, and enter this program's memory only when they are read.
//!
//! # Panics
//! This crate does not panic. What a panic of other code costs depends on how the Worker is built:
//!
//! | | panic=unwind (recommended) | panic=abort (what a plain build gives) |
//! |---|---|---|
//! | the request that panicked | fails: [`ErrorKind::Reset`](crate::ErrorKind::Reset), "the object panicked" | no answer, ever |
//! | its object | is reset, as on the native host: memory is lost, sockets close with 1006 | memory is lost, sockets stay open |
//! | other requests to that object | fail with the same error | no answer, ever |
//! | requests to other objects of the isolate, and to the entry | go on | no answer, ever |
//! | memory of other objects | stays | is lost |
//! | what the panicking turn had written | stays | stays |
//! | storage, tags, attachments, alarms | stay | stay |
//! | size of the wasm | about an eighth more | |
//!
//! A stack that overflows and memory that runs out are no panics and cost what panic=abort costs, in both builds.
//!
//! "No answer" means that only a time-out of the client ends the wait: one inside the isolate, such as
//! [`fetch_within`](crate::Stub::fetch_within), dies with it. A panic in the entry itself, before any object is called, is
//! answered with 500 in both builds. On the native host a panic also undoes what its turn wrote.
//!
//! # What differs from the native host
//! Beside panics, in short; PLATFORM.md, in the root of the repository, has each with its other side and the cases that
//! show it.
//! - The name that an object sees outlives the instance by a minute or two (rule A9).
//! - Objects of one Worker share an isolate, and with it `static`s and thread-locals (rule A14).
//! - An object that only sleeps and background work keep, without a connected client, is gone 70 to 140 s after its last
//!   request (rule B4).
//! - The body of a call to another object that breaks off, because its source fails or a reset of the caller cuts it, may
//!   look complete to the object that gets it: send the length (rules B13, C6).
//! - A client that left is noticed with the first write after it, unless it reset the connection; that write still
//!   succeeds (rule B17).
//! - A call that was made before a write whose commit fails may be overtaken by the reset (rule C4).
//! - A response whose status cannot be sent, or with header values that are not UTF-8, fails the call with
//!   [`ErrorKind::Invalid`](crate::ErrorKind::Invalid).
//! - Some wrong WebSocket handshakes are answered by the platform and never seen; others are accepted (rule D2).
//! - A 101 that is dropped instead of returned leaves its socket in the lists, until its other end is collected as
//!   garbage (rule D6).
//! - Compression of messages is agreed on with clients that offer it (rule D7).
//! - Text that is not UTF-8 arrives with replacement characters; Close frames with a forbidden payload are clean closes,
//!   long pings are answered, and frames need not be masked (rules D8, D13, D15, D16).
//! - What a peer does not read is buffered without a bound (rule D11b); see [`WorkersSocket`].
//! - After the object's own close TCP stays until the object leaves memory, and with a peer that does not answer the socket
//!   stays, too (rules D21, D24).
//! - `UPDATE` and `DELETE` take a `LIMIT` (rule F12). Local limits of SQL are wider than those of production, which are
//!   the native host's default (rules F15, F16).

mod alarms;
mod body;
mod console;
mod entry;
mod env;
mod error;
mod ext;
mod http;
mod object;
mod sockets;
mod sql;
mod state;
mod timer;
mod turn;

pub use alarms::WorkersAlarms;
pub(crate) use body::JsBody;
pub use env::{WorkersEnv, WorkersNamespace, WorkersStub};
pub use sockets::{WorkersSocket, WorkersSockets};
pub use sql::WorkersSql;
pub use state::WorkersState;

/// What [`export!`](crate::export) expands to.
#[doc(hidden)]
pub mod rt {
    pub use super::{entry::entry, object::Object};
    pub use {js_sys, wasm_bindgen, wasm_bindgen_futures, web_sys};
}

/// No feature and no target changes a bound: objects stay on their thread, handles go anywhere.
const _: () = {
    const fn sendable<T: Send + Sync>() {}
    sendable::<WorkersEnv>();
    sendable::<WorkersNamespace>();
    sendable::<WorkersStub>();
    sendable::<crate::Body>();
    sendable::<crate::Request>();
    sendable::<crate::Response>();
};
