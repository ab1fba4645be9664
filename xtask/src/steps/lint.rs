//! What needs no run: formatting, lints, documentation. Warnings are faults here, and only here: a user's newer
//! compiler may warn about more and must still build.

use crate::command::run;
use crate::problem::Outcome;
use crate::workspace::Workspace;

/// The flags after `--` that make a lint a fault.
pub(crate) const DENY: [&str; 3] = ["--", "-D", "warnings"];

pub(crate) fn fmt(workspace: &Workspace) -> Outcome {
    run(&mut workspace.cargo(&["fmt", "--all", "--check"]))
}

pub(crate) fn clippy(workspace: &Workspace) -> Outcome {
    let all = ["clippy", "--workspace", "--all-targets", "--all-features"];
    run(workspace.cargo(&all).args(DENY))?;
    // Outside `--all-targets`, because plain `cargo test` leaves them out. With the same features, so that nothing is
    // checked twice.
    let left_out = ["clippy", "--workspace", "--test", "browser", "--test", "worker", "--all-features"];
    run(workspace.cargo(&left_out).args(DENY))?;
    // One by one: in one build the features of one crate would hide what is missing in another.
    for library in workspace.libraries() {
        run(workspace.cargo(&["clippy", "--lib", "--package", library]).args(DENY))?;
    }
    // The native host as its users have it: without what is for tests.
    run(workspace.cargo(&["clippy", "--lib", "--package", "do-core", "--features", "tokio"]).args(DENY))
}

pub(crate) fn doc(workspace: &Workspace) -> Outcome {
    let mut command = workspace.cargo(&["doc", "--workspace", "--no-deps", "--all-features"]);
    run(command.env("RUSTDOCFLAGS", "-D warnings"))
}
