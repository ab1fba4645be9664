//! The JavaScript client of do-sync: its tests in Node's own runner, and its types. Apart from `cargo test`, which
//! needs nothing but Rust.

use crate::command::{on_path, run};
use crate::problem::{Doing, Outcome, Problem};
use crate::workers::npm;
use crate::workspace::Workspace;
use std::path::PathBuf;
use std::process::Command;

pub(crate) fn check(workspace: &Workspace) -> Outcome {
    if !on_path("node") {
        return Err(Problem::new("node is not on PATH: install Node.js 20 or later"));
    }
    let folder = workspace.root.join("do-sync/client");
    let tests = folder.join("test");
    // One by one: what a folder means to the runner has changed between versions.
    let mut files: Vec<PathBuf> = std::fs::read_dir(&tests)
        .doing(tests.display())?
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.to_string_lossy().ends_with(".test.js"))
        .collect();
    files.sort();
    run(Command::new("node").args(["--test", "--test-reporter=spec"]).args(files).current_dir(&folder))?;
    run(Command::new("node").arg(npm::tsc(workspace)?).arg("--project").arg(&tests).current_dir(&folder))
}
