//! Proves what is absent: a pattern crate brings no runtime, and the native host brings nothing to wasm32.

use crate::command::capture;
use crate::problem::{Outcome, Problem};
use crate::workspace::Workspace;

/// A library's default tree has none of these, on any target.
const RUNTIMES: [&str; 7] =
    ["hyper", "libsqlite3-sys", "notify", "rusqlite", "tokio", "wasm-bindgen", "worker"];
/// No member has these on wasm32, whatever its features. Not tokio itself, whose channels `worker` uses, but what its
/// runtime stands on.
const NATIVE: [&str; 6] = ["hyper", "ignore", "libsqlite3-sys", "mio", "notify", "rusqlite"];
const WASM: &str = "wasm32-unknown-unknown";

pub(crate) fn check(workspace: &Workspace) -> Outcome {
    for library in workspace.libraries() {
        absent(
            &RUNTIMES,
            library,
            "with its default features",
            &tree(workspace, library, &["--target", "all"])?,
        )?;
    }
    for member in &workspace.members {
        let tree = tree(workspace, &member.name, &["--all-features", "--target", WASM])?;
        absent(&NATIVE, &member.name, "on wasm32", &tree)?;
    }
    // The control: where they belong, the same look-up finds them.
    let native = tree(workspace, "do-core", &["--features", "tokio", "--target", "all"])?;
    match absent(&RUNTIMES, "do-core", "with feature tokio", &native) {
        Err(_) => Ok(()),
        Ok(()) => Err(Problem::new("this check finds nothing, not even tokio in do-core with feature tokio")),
    }
}

fn tree(workspace: &Workspace, package: &str, more: &[&str]) -> Outcome<String> {
    let fixed = ["tree", "--edges", "normal", "--prefix", "none", "--format", "{p}", "--package", package];
    capture(workspace.cargo(&fixed).args(more))
}

/// # Errors
/// A line of the tree starts with one of the names.
fn absent(names: &[&str], package: &str, how: &str, tree: &str) -> Outcome {
    if !tree.starts_with(package) {
        return Err(Problem::new(format!("cargo tree says nothing about {package}:\n{tree}")));
    }
    let first_words = tree.lines().filter_map(|line| line.split(' ').next());
    let found: Vec<&str> = first_words.filter(|word| names.contains(word)).collect();
    if found.is_empty() {
        println!("{package} {how}: none of {}", names.join(", "));
        return Ok(());
    }
    Err(Problem::new(format!("{package} {how} depends on {}", found.join(", "))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_found_whole() {
        let tree = "do-sync v0.1.0 (/w/do-sync)\ntokio-util v0.7.0\nserde v1.0.0\n";
        assert!(absent(&["tokio"], "do-sync", "", tree).is_ok());
        assert!(absent(&["serde"], "do-sync", "", tree).is_err());
        assert!(absent(&["serde"], "do-core", "", "").is_err());
    }
}
