//! A heartbeat, a sweep and a report: three jobs over the one alarm of an object, on every host.
//!
//! [`Pulse`] is the object and the file to read. People leave notes that live for a while; everyone connected gets a
//! beat; every working day ends up with a report. [`route`] is the HTTP interface before it, `main.rs` the native
//! server and `worker.rs` the Worker.
//!
//! ```sh
//! cargo run --bin pulse                          # on this machine
//! cargo xtask workers dev examples/three-jobs    # the same in workerd
//! curl http://127.0.0.1:8080/notes -d '{"text":"deploys are frozen","seconds":3600}'
//! ```
//!
//! | request | what |
//! |---|---|
//! | `GET /` | what is scheduled, what ran, and what failed for good |
//! | `GET /ws` | a WebSocket that gets `{"beat":MS}` every `BEAT_SECONDS` |
//! | `GET /notes`, `POST /notes` | the notes; a new one: `{"text":"deploys are frozen","seconds":3600}` |
//! | `GET /reports` | the latest 100 reports |
//! | `POST /replay` | runs a dead letter again; the body is its id |

mod expiring;
mod jobs;
mod pulse;
mod reports;
mod route;
mod worker;

pub use expiring::{Expiring, Note};
pub use pulse::Pulse;
pub use reports::Report;
pub use route::route;
