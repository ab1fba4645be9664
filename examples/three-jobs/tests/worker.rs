//! The Worker in the real runtime: `DO_WORKERD` names the program `workerd`, and `DO_WORKER_PULSE` the folder with the
//! Worker, as `cargo xtask workers build` writes it.
#![cfg(not(target_arch = "wasm32"))]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "clippy.toml allows these in tests, not in their helpers"
)]

mod common;

use common::{Server, eventually};
use serde_json::{Value, json};
use std::{ffi::OsString, fs, path::Path, path::PathBuf};
use tokio::process::Command;

fn variable(name: &str) -> PathBuf {
    std::env::var_os(name)
        .map_or_else(|| panic!("{name} is not set: run `cargo xtask workers test`"), PathBuf::from)
}

/// A copy of the Worker that beats each second.
fn configuration() -> PathBuf {
    let (worker, copy) =
        (variable("DO_WORKER_PULSE"), Path::new(env!("CARGO_TARGET_TMPDIR")).join("pulse-worker"));
    fs::create_dir_all(&copy).unwrap();
    for file in ["index.js", "index_bg.wasm"] {
        fs::copy(worker.join(file), copy.join(file)).unwrap();
    }
    let config = fs::read_to_string(worker.join("worker.capnp")).unwrap();
    let beats = r#"(name = "BEAT_SECONDS", text = "30")"#;
    assert!(config.contains(beats), "{config}");
    let path = copy.join("worker.capnp");
    fs::write(&path, config.replace(beats, &beats.replace("30", "1"))).unwrap();
    path
}

async fn start(config: &Path, data: &Path) -> Server {
    let mut folder = OsString::from("--directory-path=data=");
    folder.push(data);
    let mut workerd = Command::new(variable("DO_WORKERD"));
    workerd
        .arg("serve")
        .arg(config)
        .args(["config", "--control-fd=1", "--socket-addr=http=127.0.0.1:0"])
        .arg(folder);
    let address = |line: &str| {
        let line: Value = serde_json::from_str(line).ok()?;
        Some(([127, 0, 0, 1], u16::try_from(line["port"].as_u64()?).ok()?).into())
    };
    Server::start(&mut workerd, address).await
}

#[tokio::test]
async fn jobs_run_in_workerd_and_go_on_after_kill_9() {
    let (config, data) = (configuration(), tempfile::tempdir().unwrap());
    let server = start(&config, data.path()).await;
    server.note("a", 1).await;
    server.note("b", 4).await;
    server.note("c", 3_600).await;
    let mut client = server.connect().await;
    let (first, second) = (server.next_beat(&mut client).await, server.next_beat(&mut client).await);
    assert!(second > first && (second - first) % 1_000 == 0, "{first} {second}");
    eventually("the sweep", async || !server.notes().await.contains(&"a".to_owned())).await;
    let beats = server.beats().await;
    server.kill().await;

    let server = start(&config, data.path()).await;
    eventually("the sweep after a restart", async || server.notes().await == ["c"]).await;
    eventually("a beat after a restart", async || server.beats().await > beats).await;
    let jobs = server.get("/").await;
    assert_eq!(jobs["dead"], json!([]));
    let pending: Vec<_> = jobs["pending"].as_array().unwrap().iter().map(|job| &job["name"]).collect();
    assert_eq!(pending, ["beat", "report", "sweep"]);
    assert_eq!(server.ask("POST", "/replay", "7").await.0, 404);
    server.kill().await;
}
