//! The Worker in the real runtime: `DO_WORKERD` names the program `workerd`, and `DO_WORKER_INVITE_CODES` the folder with
//! the Worker, as `cargo xtask workers build` writes it.
#![cfg(not(target_arch = "wasm32"))]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "clippy.toml allows these in tests, not in their helpers"
)]

mod common;

use common::{KEY, Server, codes_are_redeemed_once_over_kill_9};
use serde_json::Value;
use std::{ffi::OsString, fs, path::PathBuf};
use tokio::process::Command;

fn variable(name: &str) -> PathBuf {
    std::env::var_os(name)
        .map_or_else(|| panic!("{name} is not set: run `cargo xtask workers test`"), PathBuf::from)
}

#[tokio::test]
async fn codes_are_redeemed_once_over_kill_9_of_workerd() {
    let (data, worker) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    // The Worker with a secret, which its configuration does not have.
    let built = variable("DO_WORKER_INVITE_CODES");
    for name in ["index.js", "index_bg.wasm"] {
        fs::copy(built.join(name), worker.path().join(name)).unwrap();
    }
    let config = fs::read_to_string(built.join("worker.capnp")).unwrap();
    let binding = format!("bindings = [(name = \"ADMIN_KEY\", text = \"{KEY}\"), ");
    assert_eq!(config.matches("bindings = [").count(), 1);
    let config = config.replace("bindings = [", &binding);
    fs::write(worker.path().join("worker.capnp"), config).unwrap();

    codes_are_redeemed_once_over_kill_9(async |address| {
        let mut folder = OsString::from("--directory-path=data=");
        folder.push(data.path());
        let mut workerd = Command::new(variable("DO_WORKERD"));
        workerd
            .arg("serve")
            .arg(worker.path().join("worker.capnp"))
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
