//! The logs of builds as server-sent events, on every host.
//!
//! [`BuildLog`] is the object and the file to read: one for each build. Whoever reads a log is shown what there is of it,
//! then each line as it comes, and in the end the result; whoever loses the connection goes on where they were, also when
//! the server was killed meanwhile. [`route`] is the HTTP interface before it, `main.rs` the native server and `worker.rs`
//! the Worker. The page is a plain `EventSource`.
//!
//! ```sh
//! cargo run --bin build-log                     # on this machine: open http://127.0.0.1:8080/?build=main-17
//! cargo xtask workers dev examples/build-log    # the same in workerd
//! cargo build 2>&1 | while IFS= read -r line; do
//!     printf '%s\n' "$line" | curl -s http://127.0.0.1:8080/builds/main-17/lines --data-binary @-
//! done
//! curl http://127.0.0.1:8080/builds/main-17/end -d 'it works'
//! ```
//!
//! | request | what |
//! |---|---|
//! | `GET /`, `GET /?build=main-17` | the page |
//! | `POST /builds/main-17/lines` | adds lines, at most 64 KiB of them at once, in one commit |
//! | `POST /builds/main-17/end` | ends the log with a result; 409 for whatever comes behind it |
//! | `GET /builds/main-17/log` | the events `line` and `end`, their data the text, by `EventSource` or `curl -N` |
//!
//! Of a log the latest 10,000 lines and 4 MiB are kept.

mod build_log;
mod route;
mod worker;

pub use build_log::BuildLog;
pub use route::route;
