//! Broadcasts the changes of a folder to every connected editor: the part that runs on every host.
//!
//! [`SyncRoom`] is the object, one for each watched root: it numbers and keeps the changes and sends them to the
//! editors. [`route`](route()) is the HTTP interface before it. Both are written over the traits of `do_core`,
//! so the same code is the native server and a Worker; who watches the folder is not their business.

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
