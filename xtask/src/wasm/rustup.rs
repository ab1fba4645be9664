//! The active toolchain of rustup: the target's standard library as it is shipped, or its source.

use super::{Panic, TARGET, has_source, new_enough, printed};
use crate::command::run_within;
use crate::workspace::Workspace;
use std::process::Command;
use std::time::Duration;

/// For one call of rustup, which downloads up to 25 MB and may have no server that answers.
const LIMIT: Duration = Duration::from_mins(3);

/// Whether it has what builds for this kind of panic.
pub(super) fn ready(panic: Panic) -> bool {
    new_enough("rustc")
        && match panic {
            Panic::Abort => has_library(),
            Panic::Unwind => has_source("rustc"),
        }
}

/// Asks rustup for what is missing.
pub(super) fn install(workspace: &Workspace, panic: Panic) -> bool {
    let mut command = Command::new("rustup");
    if let Err(problem) = run_within(command.args(wanted(panic)).current_dir(&workspace.root), LIMIT) {
        println!("{problem}");
    }
    ready(panic)
}

/// The arguments of rustup that install what is needed.
pub(super) fn wanted(panic: Panic) -> [&'static str; 3] {
    match panic {
        Panic::Abort => ["target", "add", TARGET],
        Panic::Unwind => ["component", "add", "rust-src"],
    }
}

fn has_library() -> bool {
    let Some(folder) = printed(Command::new("rustc").args(["--print", "target-libdir", "--target", TARGET]))
    else {
        return false;
    };
    let Ok(files) = std::fs::read_dir(folder) else { return false };
    files.flatten().any(|file| file.file_name().to_string_lossy().starts_with("libstd-"))
}
