//! The native server, as a process of its own: killed as `kill -9` does, with its data left.
#![cfg(not(target_arch = "wasm32"))]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "clippy.toml allows these in tests, not in their helpers"
)]

mod common;

use common::{KEY, Server, codes_are_redeemed_once_over_kill_9};
use tokio::process::Command;

#[tokio::test]
async fn codes_are_redeemed_once_over_kill_9_of_the_native_server() {
    let data = tempfile::tempdir().unwrap();
    codes_are_redeemed_once_over_kill_9(async |address| {
        let mut invite_codes = Command::new(env!("CARGO_BIN_EXE_invite-codes"));
        invite_codes.arg(address.to_string()).arg(data.path()).env("ADMIN_KEY", KEY);
        Server::start(&mut invite_codes, |line| line.strip_prefix("listening on http://")?.parse().ok()).await
    })
    .await;
}
