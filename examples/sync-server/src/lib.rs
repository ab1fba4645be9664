//! Broadcasts the changes of a folder to every connected editor: the part that runs on every host.
//!
//! [`SyncRoom`] is the object, one for each watched root: it numbers and keeps the changes and sends them to the
//! editors. [`route`](route()) is the HTTP interface before it. Both are written over the traits of `do_core`,
//! so the same code is the native server and a Worker; who watches the folder is not their business.
//!
//! # Interface
//! | address | |
//! |---|---|
//! | `GET /`, `GET /client.js` | the page, and the client of `do_sync` that it uses |
//! | `GET /ws` | a WebSocket, in one of the two ways below |
//! | `GET /events` | the same as server-sent events: `new EventSource("/events")`, or `curl -N` |
//! | `POST /notify` | reports one change `{"kind":"created","path":"a.rs"}` or a list of up to 1,000; `{"seq":7}` is the number of the last |
//! | `GET /healthz` | `ok` |
//!
//! Editors that offer the sub-protocol `do-sync.1` speak the protocol of `do_sync`: they come with `?after=` and their
//! position, and get what they missed, at most 1,000 changes of the last seven days, or are told of a gap. A change is
//! the value of a numbered message, `{"type":"change","kind":"renamed","path":"b.rs","from":"a.rs"}`; how many editors
//! there are is the event `{"editors":2}`. The clients of `do_sync` do all that.
//!
//! The others get these messages, in which `seq` is the same number, and nothing of what they missed but the latest 100:
//!
//! | message | |
//! |---|---|
//! | `{"type":"hello","editors":2,"recent":[..]}` | the first; the latest changes, oldest first |
//! | `{"type":"change","seq":7,"kind":"created","path":"a.rs","at":1764000000000}` | a rename has `from` too |
//! | `{"type":"editors","editors":1}` | somebody came or went |
//!
//! Who reads `GET /events` gets the events `change` and `editors` with the JSON of these messages as data, the latest 100
//! changes first. The id of a change is its position, from which an `EventSource` goes on by itself when it comes back: it
//! gets what it missed, as those with the sub-protocol do. When that is gone it is told by the event `reset`, whose data is
//! `{"lost":12}`, or `{"lost":null}` when nobody knows how many. They count as editors.
//!
//! To both kinds of WebSockets the text `ping` is answered by `pong`, and `{"type":"ping"}` by `{"type":"pong"}`. A socket for
//! which more than 1 MiB waits is closed with 1013; a stream for which that waits ends, and its client comes back.

#[cfg(all(doctest, not(target_arch = "wasm32")))]
#[doc = include_str!("../../../README.md")]
mod readme {}

mod answer;
pub mod change;
#[cfg(not(target_arch = "wasm32"))]
pub mod native;
mod origin;
mod page;
mod report;
mod room;
mod route;
mod worker;

pub use change::Change;
pub use room::{SyncRoom, notify_requests};
pub use route::{Phase, route, route_in};

/// The value of a future that has nothing to wait for.
#[cfg(test)]
fn ready<F: Future>(future: F) -> F::Output {
    match std::pin::pin!(future).poll(&mut std::task::Context::from_waker(std::task::Waker::noop())) {
        std::task::Poll::Ready(value) => value,
        std::task::Poll::Pending => panic!("the future waits for something"),
    }
}
