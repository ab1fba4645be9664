//! The native server, as a process of its own: killed as `kill -9` does, with its data left.
#![cfg(not(target_arch = "wasm32"))]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "clippy.toml allows these in tests, not in their helpers"
)]

mod common;

use common::{Server, eventually};
use serde_json::json;
use std::path::Path;
use tokio::process::Command;

async fn start(data: &Path) -> Server {
    let mut pulse = Command::new(env!("CARGO_BIN_EXE_pulse"));
    pulse.env("BEAT_SECONDS", "1").arg("127.0.0.1:0").arg(data);
    Server::start(&mut pulse, |line| line.strip_prefix("listening on http://")?.parse().ok()).await
}

#[tokio::test]
async fn jobs_go_on_after_kill_9_at_a_restart() {
    let data = tempfile::tempdir().unwrap();
    let server = start(data.path()).await;
    assert_eq!(server.get("/notes").await, json!([]));
    server.note("a", 1).await;
    server.note("b", 3_600).await;
    eventually("a beat", async || server.beats().await > 0).await;
    let beats = server.beats().await;
    server.kill().await;

    let server = start(data.path()).await;
    eventually("another beat", async || server.beats().await > beats).await;
    eventually("the sweep", async || server.notes().await == ["b"]).await;
    let mut client = server.connect().await;
    let (first, second) = (server.next_beat(&mut client).await, server.next_beat(&mut client).await);
    assert!(second > first && (second - first) % 1_000 == 0, "{first} {second}");
    server.kill().await;
}

#[tokio::test]
async fn a_second_process_on_the_same_data_is_refused() {
    let data = tempfile::tempdir().unwrap();
    let server = start(data.path()).await;
    let mut second = Command::new(env!("CARGO_BIN_EXE_pulse"));
    let ended = common::within("it ends", second.arg("127.0.0.1:0").arg(data.path()).output()).await.unwrap();
    assert!(!ended.status.success());
    assert!(String::from_utf8_lossy(&ended.stderr).contains("in use by process"), "{ended:?}");
    server.kill().await;
}
