//! The same code for Workers: every member's library on wasm32, with the default features and with all of them.

use crate::command::run;
use crate::problem::Outcome;
use crate::steps::lint::DENY;
use crate::wasm::{self, Panic};
use crate::workspace::Workspace;

/// What both steps build: libraries, because programs and tests are native.
const LIBRARIES: [&str; 4] = ["--workspace", "--exclude", "xtask", "--lib"];

pub(crate) fn check(workspace: &Workspace) -> Outcome {
    run(wasm::toolchain(workspace, Panic::Abort)?.cargo(workspace, "check").args(LIBRARIES))
}

pub(crate) fn clippy(workspace: &Workspace) -> Outcome {
    let toolchain = wasm::toolchain(workspace, Panic::Abort)?;
    if toolchain.has_clippy() {
        return run(toolchain.cargo(workspace, "clippy").args(LIBRARIES).arg("--all-features").args(DENY));
    }
    println!("no clippy for this toolchain ({toolchain:?}): compiling only");
    run(toolchain.cargo(workspace, "check").args(LIBRARIES).arg("--all-features"))
}
