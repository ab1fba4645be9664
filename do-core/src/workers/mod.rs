//! The adapter for Cloudflare Workers: the traits of this crate over the platform's own objects.
//!
//! A Worker is a `cdylib` whose objects and entry are exported:
//!
//! ```ignore
//! do_core::export!(ChatRoom = Room<_>);   // the class that wrangler.toml binds
//! do_core::export!(fetch = route);        // what answers requests from outside
//! ```
//!
//! Calls of the platform that throw become errors: none leaves a request without an answer. Bodies pass through as
//! the streams they are, and enter this program's memory only when they are read.
//!
//! # Panics
//! This crate does not panic. For code that does, the two ways to build differ:
//! - **panic=unwind** (recommended; about an eighth more wasm): the request that panicked fails, its object is reset as
//!   on the native host, and all others go on.
//! - **panic=abort** (what a plain build gives): every request in flight in the isolate, to whichever object, stays
//!   without an answer, and the memory of all its objects is lost. Storage, sockets, tags and attachments stay.
//!   So give calls to objects a limit with [`fetch_within`](crate::Stub::fetch_within).
//!
//! # What differs from the native host
//! - A 101 that is dropped instead of returned leaves its socket in the lists (rule D6).
//! - What a peer does not read is buffered without bound (rule D11); see [`WorkersSocket`].
//! - Objects of one Worker share an isolate, and with it `static`s (rule A14).
//! - Wrong WebSocket handshakes are answered by the platform and never seen.

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
