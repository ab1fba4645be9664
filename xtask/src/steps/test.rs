//! Everything that `cargo test` knows of. Plain `cargo test` and no other runner: it also runs the examples in
//! the documentation.

use crate::command::run;
use crate::problem::Outcome;
use crate::workspace::Workspace;

pub(crate) fn test(workspace: &Workspace) -> Outcome {
    run(&mut workspace.cargo(&["test", "--workspace", "--all-features"]))
}

/// The property tests with many more cases than the 256 that each run has time for, and more cycles of killing.
pub(crate) fn test_long(workspace: &Workspace) -> Outcome {
    let mut command = workspace.cargo(&["test", "--workspace", "--all-features", "--tests"]);
    run(command.env("PROPTEST_CASES", "10000").env("DO_LONG", "1"))
}

/// Builds the programs as a user does, with the features that each package asks for itself.
pub(crate) fn examples(workspace: &Workspace) -> Outcome {
    for member in workspace.members.iter().filter(|member| !member.is_library) {
        run(&mut workspace.cargo(&["build", "--bins", "--package", &member.name]))?;
    }
    for library in workspace.libraries() {
        run(&mut workspace.cargo(&["build", "--examples", "--all-features", "--package", library]))?;
    }
    Ok(())
}
