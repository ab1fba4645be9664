//! Invite codes that are good for some time and for one guest, on every host.
//!
//! [`Invites`] is the object and the file to read: one for each event. A code is an entry that expires. Who brings it while
//! it is there is written into it in the same turn that looked, so that of many who bring it at the same time one is let in,
//! whatever fails in the middle. [`route`] is the HTTP interface before it, `main.rs` the native server and `worker.rs` the
//! Worker.
//!
//! ```sh
//! ADMIN_KEY=sesame cargo run --bin invite-codes                              # on this machine
//! cargo xtask workers dev examples/invite-codes --var ADMIN_KEY=sesame       # the same in workerd
//! curl -H 'authorization: Bearer sesame' 'http://127.0.0.1:8080/events/gala/codes?minutes=60' -d 'for Ann'
//! curl http://127.0.0.1:8080/events/gala/codes/7G2K-M4QX-0TZ9-EW3B -d 'Ann'
//! ```
//!
//! | request | what |
//! |---|---|
//! | `POST /events/gala/codes?minutes=60` | makes a code, good for so long (a day without it); the body says who for |
//! | `GET /events/gala/codes` | the codes that are there, with their guests; more behind `?after=` what `next` says |
//! | `DELETE /events/gala/codes/CODE` | revokes a code; 409 if somebody came with it |
//! | `POST /events/gala/codes/CODE` | redeems a code for the guest in the body: 200, also when the same guest asks again; 409 if somebody else has; 404 if it is none, or not good any more |
//!
//! All but the last need `authorization: Bearer` and the secret `ADMIN_KEY`. Who came with a code stays in the list for 30
//! days. An event has at most 10,000 codes at a time.

mod code;
mod invite;
mod invites;
mod route;
mod worker;

pub use invite::Invite;
pub use invites::Invites;
pub use route::route;
