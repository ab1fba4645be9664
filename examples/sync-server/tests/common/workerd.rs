//! The Worker in the real runtime: `DO_WORKERD` names the program `workerd`, and `DO_WORKER_SYNC` the folder with the
//! Worker, as `cargo xtask workers build` writes it.
//!
//! The configuration of that folder is used as it is written, but for what a test adds: a copy is made with it.

use std::{
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    sync::Mutex,
};
use tokio::process::Command;

/// What the line that says the port contains.
pub(crate) const LISTENS: &str = r#""event":"listen","socket":"http""#;

/// What a test adds to the Worker as it is deployed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Added {
    /// The variable by which `cargo xtask workers dev` tells the route that only this machine reaches it.
    pub(crate) loopback: bool,
    /// `GET /__evict` and `GET /__seen`, see `worker/observed.js`.
    pub(crate) observed: bool,
}

/// The value of a variable that `cargo xtask workers test` sets.
pub(crate) fn variable(name: &str) -> Result<PathBuf, String> {
    let value: Option<OsString> = std::env::var_os(name).filter(|value| !value.is_empty());
    value.map(PathBuf::from).ok_or_else(|| {
        format!("skipped: {name} is not set; `cargo xtask workers test` builds the Worker and runs this test")
    })
}

/// `workerd`, serving the Worker.
///
/// # Errors
/// A variable is missing, or the folder is not what was expected.
pub(crate) fn serve(added: Added, data: &Path, listen: &str) -> Result<Command, String> {
    let workerd = variable("DO_WORKERD")?;
    let config = configuration(added)?;
    fs::create_dir_all(data).map_err(|error| format!("{}: {error}", data.display()))?;
    let mut folder = OsString::from("--directory-path=data=");
    folder.push(data);
    let mut command = Command::new(workerd);
    command.arg("serve").arg(config).args(["config", "--control-fd=1"]).arg(folder);
    command.arg(format!("--socket-addr=http={listen}"));
    if added.observed {
        command.arg("--experimental"); // the switch that evicts is for tests only
    }
    command.kill_on_drop(true);
    Ok(command)
}

/// The port in a line with [`LISTENS`].
pub(crate) fn port(line: &str) -> Option<u16> {
    let line: serde_json::Value = serde_json::from_str(line).ok()?;
    line["port"].as_u64()?.try_into().ok()
}

/// A copy of the Worker with the addition; the same for all tests of this process.
fn configuration(added: Added) -> Result<PathBuf, String> {
    static WRITTEN: Mutex<Vec<(Added, PathBuf)>> = Mutex::new(Vec::new());
    let mut written = WRITTEN.lock().map_err(|_| "another test failed to write the configuration")?;
    if let Some((_, config)) = written.iter().find(|(known, _)| *known == added) {
        return Ok(config.clone());
    }
    let config = write(added, &variable("DO_WORKER_SYNC")?)?;
    written.push((added, config.clone()));
    Ok(config)
}

fn write(added: Added, worker: &Path) -> Result<PathBuf, String> {
    let name = format!("worker-{}-{}-{}", env!("CARGO_CRATE_NAME"), added.loopback, added.observed);
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let failed = |path: &Path| format!("{}: ", path.display());
    fs::create_dir_all(&folder).map_err(|error| failed(&folder) + &error.to_string())?;
    for file in ["index.js", "index_bg.wasm"] {
        let from = worker.join(file);
        fs::copy(&from, folder.join(file)).map_err(|error| failed(&from) + &error.to_string())?;
    }
    let from = worker.join("worker.capnp");
    let mut text = fs::read_to_string(&from).map_err(|error| failed(&from) + &error.to_string())?;
    if added.loopback {
        add(&mut text, "bindings = [", r#"(name = "LOOPBACK", text = "1"), "#)?;
    }
    if added.observed {
        let module = r#"(name = "observed.js", esModule = embed "observed.js"), "#;
        add(&mut text, "modules = [", module)?; // the first is the entry
        add(&mut text, "compatibilityFlags = [", r#""unsafe_module", "#)?;
        let script = folder.join("observed.js");
        fs::write(&script, include_str!("../worker/observed.js"))
            .map_err(|error| failed(&script) + &error.to_string())?;
    }
    let config = folder.join("worker.capnp");
    fs::write(&config, text).map_err(|error| failed(&config) + &error.to_string())?;
    Ok(config)
}

/// Adds to the only list of that name.
fn add(text: &mut String, list: &str, item: &str) -> Result<(), String> {
    match (text.find(list), text.matches(list).count()) {
        (Some(at), 1) => {
            text.insert_str(at + list.len(), item);
            Ok(())
        }
        (_, times) => Err(format!("worker.capnp has {list:?} {times} times: this was written for once")),
    }
}
