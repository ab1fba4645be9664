//! Everything that `cargo test` knows of. Plain `cargo test` and no other runner: it also runs the examples in
//! the documentation.

use crate::command::run;
use crate::problem::Outcome;
use crate::workspace::Workspace;

pub(crate) fn test(workspace: &Workspace) -> Outcome {
    run(&mut workspace.cargo(&["test", "--workspace", "--all-features"]))
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
