//! The Worker in the real runtime: `DO_WORKERD` names the program `workerd`, and `DO_WORKER_BUILD_LOG` the folder with the
//! Worker, as `cargo xtask workers build` writes it.
#![cfg(not(target_arch = "wasm32"))]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "clippy.toml allows these in tests, not in their helpers"
)]

mod common;

use common::{Server, the_log_goes_on_after_kill_9};
use serde_json::Value;
use std::{ffi::OsString, path::PathBuf};
use tokio::process::Command;

fn variable(name: &str) -> PathBuf {
    std::env::var_os(name)
        .map_or_else(|| panic!("{name} is not set: run `cargo xtask workers test`"), PathBuf::from)
}

#[tokio::test]
async fn the_log_goes_on_after_kill_9_of_workerd() {
    let data = tempfile::tempdir().unwrap();
    the_log_goes_on_after_kill_9(async |address| {
        let mut folder = OsString::from("--directory-path=data=");
        folder.push(data.path());
        let mut workerd = Command::new(variable("DO_WORKERD"));
        workerd
            .arg("serve")
            .arg(variable("DO_WORKER_BUILD_LOG").join("worker.capnp"))
            .args(["config", "--control-fd=1"])
            .arg(format!("--socket-addr=http={address}"))
            .arg(folder);
        Server::start(&mut workerd, |line| {
            let line: Value = serde_json::from_str(line).ok()?;
            Some(([127, 0, 0, 1], u16::try_from(line["port"].as_u64()?).ok()?).into())
        })
        .await
    })
    .await;
}
