//! The programs from npm, pinned by the `package-lock.json` of xtask/npm and of the folders in it.

use crate::command::{is_program, on_path, run_within};
use crate::problem::{Doing, Outcome, Problem};
use crate::workers::lock;
use crate::workspace::Workspace;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// About 70 MB to download, and as much again with the optimiser.
const LIMIT: Duration = Duration::from_mins(10);
/// A copy of the lock file that the folder was installed from, and how.
const STAMP: &str = "node_modules/.installed";

/// The programs, as the files that the system runs: a signal to a JavaScript wrapper would not reach them.
#[derive(Debug)]
pub(crate) struct Tools {
    /// The runtime.
    pub(crate) workerd: PathBuf,
    /// The bundler.
    pub(crate) esbuild: PathBuf,
    /// The optimiser, a program for node; only where it was asked for.
    pub(crate) wasm_opt: PathBuf,
}

/// The programs; npm installs them when the lock file has changed. The optimiser is as large as everything else
/// together, so it is left out until something needs it, and then stays.
///
/// # Errors
/// There is no npm, its registry does not answer, or it has no programs for this machine.
pub(crate) fn tools(workspace: &Workspace, optimiser: bool) -> Outcome<Tools> {
    let modules = modules(&workspace.root.join("xtask/npm"), optimiser)?;
    Ok(Tools {
        workerd: native(&modules.join("@cloudflare"), "workerd-", "bin/workerd")?,
        esbuild: native(&modules.join("@esbuild"), "", "bin/esbuild")?,
        wasm_opt: modules.join("binaryen/bin/wasm-opt"),
    })
}

/// The compiler of TypeScript, a program for node. It has a folder of its own: a Worker needs none of it.
///
/// # Errors
/// There is no npm, or its registry does not answer.
pub(crate) fn tsc(workspace: &Workspace) -> Outcome<PathBuf> {
    Ok(modules(&workspace.root.join("xtask/npm/types"), true)?.join("typescript/bin/tsc"))
}

/// The folder of the clients of feeds that others wrote, installed.
///
/// # Errors
/// There is no npm, or its registry does not answer.
pub(crate) fn clients(workspace: &Workspace) -> Outcome<PathBuf> {
    let folder = workspace.root.join("xtask/npm/clients");
    modules(&folder, true)?;
    Ok(folder)
}

/// The packages of a folder; npm installs them when the lock file has changed.
fn modules(folder: &Path, development: bool) -> Outcome<PathBuf> {
    let lock_file = folder.join("package-lock.json");
    let wanted = std::fs::read_to_string(&lock_file).doing(lock_file.display())?;
    let _lock = lock(&lock_file)?;
    let stamp = folder.join(STAMP);
    let installed = std::fs::read_to_string(&stamp).unwrap_or_default();
    let has = |development| installed == stamp_text(&wanted, development);
    if !(has(true) || has(false) && !development) {
        install(folder, development)?;
        std::fs::write(&stamp, stamp_text(&wanted, development)).doing(stamp.display())?;
    }
    Ok(folder.join("node_modules"))
}

fn install(folder: &Path, development: bool) -> Outcome {
    if !on_path("npm") || !on_path("node") {
        return Err(Problem::new("npm is not on PATH: install Node.js 20 or later, which brings it"));
    }
    let mut npm = Command::new("npm");
    // Without the packages' scripts: they only put the native programs where their JavaScript wrappers look.
    npm.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier"]);
    npm.arg(if development { "--include=dev" } else { "--omit=dev" });
    run_within(npm.current_dir(folder), LIMIT)
}

fn stamp_text(lock_file: &str, development: bool) -> String {
    format!("{}\n{lock_file}", if development { "all" } else { "without the optimiser" })
}

/// The program in the one package for this machine: npm leaves out those for others.
fn native(scope: &Path, package: &str, program: &str) -> Outcome<PathBuf> {
    let packages = std::fs::read_dir(scope).doing(scope.display())?.flatten();
    packages
        .filter(|found| found.file_name().to_string_lossy().starts_with(package))
        .map(|found| found.path().join(program))
        .find(|program| is_program(program))
        .ok_or_else(|| Problem::new(format!("npm has no {program} for this machine in {}", scope.display())))
}
