//! Chat rooms with presence and history, on every host.
//!
//! [`Chat`] is the object and the file to read: one for each room. [`route`] is the HTTP interface before it, `main.rs`
//! the native server and `worker.rs` the Worker. The page is plain JavaScript over the client of `do-sync`.
//!
//! ```sh
//! cargo run --bin chat                     # on this machine: open http://127.0.0.1:8080 twice
//! cargo xtask workers dev examples/chat    # the same in workerd
//! ```
//!
//! | request | what |
//! |---|---|
//! | `GET /` | the page |
//! | `GET /client.js` | the client of `do-sync` |
//! | `GET /ws?room=lobby&name=ann` | comes into a room; `&after=POSITION` comes back |
//! | `GET /history?room=lobby` | the latest messages as JSON |

mod chat;
mod route;
mod worker;

pub use chat::Chat;
pub use route::route;
