//! The native server, as a process of its own: killed as `kill -9` does, with its data left.
#![cfg(not(target_arch = "wasm32"))]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "clippy.toml allows these in tests, not in their helpers"
)]

mod common;

use common::{Server, the_log_goes_on_after_kill_9};
use tokio::process::Command;

#[tokio::test]
async fn the_log_goes_on_after_kill_9_of_the_native_server() {
    let data = tempfile::tempdir().unwrap();
    the_log_goes_on_after_kill_9(async |address| {
        let mut build_log = Command::new(env!("CARGO_BIN_EXE_build-log"));
        build_log.arg(address.to_string()).arg(data.path());
        Server::start(&mut build_log, |line| line.strip_prefix("listening on http://")?.parse().ok()).await
    })
    .await;
}
