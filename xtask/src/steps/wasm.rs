//! The same code for Workers: every member's library on wasm32.

use crate::command::run;
use crate::problem::Outcome;
use crate::steps::lint::DENY;
use crate::wasm::{self, Panic};
use crate::workspace::Workspace;

/// All libraries: programs and tests are native, and so are the tools under xtask.
const LIBRARIES: [&str; 6] = ["--workspace", "--exclude", "xtask", "--exclude", "xtask-bindgen", "--lib"];
/// How users ask for the half of do-core that is for Workers.
const FEATURES: [&str; 2] = ["workers", "workers,testing"];

/// Each library by itself, because in one build the features of one crate would hide what is missing in another; then
/// all members.
pub(crate) fn check(workspace: &Workspace) -> Outcome {
    let toolchain = wasm::toolchain(workspace, Panic::Abort)?;
    for library in workspace.libraries() {
        run(toolchain.cargo(workspace, "check").args(["--lib", "--package", library]))?;
    }
    for features in FEATURES {
        let mut check = toolchain.cargo(workspace, "check");
        run(check.args(["--lib", "--package", "do-core", "--features", features]))?;
    }
    run(toolchain.cargo(workspace, "check").args(LIBRARIES))
}

pub(crate) fn clippy(workspace: &Workspace) -> Outcome {
    let toolchain = wasm::toolchain(workspace, Panic::Abort)?;
    if toolchain.has_clippy() {
        return run(toolchain.cargo(workspace, "clippy").args(LIBRARIES).arg("--all-features").args(DENY));
    }
    println!("no clippy for this toolchain ({toolchain:?}): compiling only");
    run(toolchain.cargo(workspace, "check").args(LIBRARIES).arg("--all-features"))
}

/// The documentation that a native build leaves out.
pub(crate) fn doc(workspace: &Workspace) -> Outcome {
    let mut doc = wasm::toolchain(workspace, Panic::Abort)?.cargo(workspace, "doc");
    doc.args(["--lib", "--no-deps", "--package", "do-core", "--features", "workers,testing"]);
    run(doc.env("RUSTDOCFLAGS", "-D warnings"))
}
