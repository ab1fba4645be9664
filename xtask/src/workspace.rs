//! What cargo says about this workspace.

use crate::command::capture;
use crate::problem::{Doing, Outcome, Problem};
use serde_json::Value;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Folders and members, read once.
#[derive(Debug)]
pub(crate) struct Workspace {
    /// The folder of the root manifest.
    pub(crate) root: PathBuf,
    /// Where cargo builds.
    pub(crate) target: PathBuf,
    /// All members but xtask itself.
    pub(crate) members: Vec<Member>,
}

/// A package of the workspace.
#[derive(Debug)]
pub(crate) struct Member {
    /// Its name, for `-p`.
    pub(crate) name: String,
    /// Whether it is published for others, not an example or a measurement.
    pub(crate) is_library: bool,
}

impl Workspace {
    /// Asks cargo.
    ///
    /// # Errors
    /// Cargo cannot read the manifests.
    pub(crate) fn open() -> Outcome<Self> {
        let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
        let mut command = Command::new(cargo());
        command.args(["metadata", "--no-deps", "--format-version", "1", "--manifest-path"]).arg(here);
        Self::read(&capture(&mut command)?)
    }

    fn read(metadata: &str) -> Outcome<Self> {
        let metadata: Value = serde_json::from_str(metadata).doing("cargo metadata")?;
        let text = |value: &Value, key: &str| {
            let found = value.get(key).and_then(Value::as_str).map(str::to_owned);
            found.ok_or_else(|| Problem::new(format!("cargo metadata has no {key}")))
        };
        let root = PathBuf::from(text(&metadata, "workspace_root")?);
        let mut members = Vec::new();
        for package in metadata.get("packages").and_then(Value::as_array).into_iter().flatten() {
            let name = text(package, "name")?;
            let folder = PathBuf::from(text(package, "manifest_path")?);
            let is_library = !["benches", "examples"].iter().any(|own| folder.starts_with(root.join(own)));
            if name != env!("CARGO_PKG_NAME") {
                members.push(Member { name, is_library });
            }
        }
        Ok(Self { target: PathBuf::from(text(&metadata, "target_directory")?), root, members })
    }

    /// Cargo, in the root folder.
    pub(crate) fn cargo(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(cargo());
        command.args(arguments).current_dir(&self.root);
        command
    }

    /// The members that are published for others.
    pub(crate) fn libraries(&self) -> impl Iterator<Item = &str> {
        self.members.iter().filter(|member| member.is_library).map(|member| member.name.as_str())
    }

    /// The folder for what the checks install and write, made when it is not there.
    ///
    /// # Errors
    /// It cannot be made.
    pub(crate) fn scratch(&self, name: &str) -> Outcome<PathBuf> {
        let folder = self.target.join("xtask").join(name);
        std::fs::create_dir_all(&folder).doing(folder.display())?;
        Ok(folder)
    }
}

/// The cargo that runs us, else the one on `PATH`.
fn cargo() -> OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_are_told_from_libraries() {
        let workspace = Workspace::read(
            r#"{"workspace_root": "/w", "target_directory": "/t", "packages": [
                {"name": "do-core", "manifest_path": "/w/do-core/Cargo.toml"},
                {"name": "benches", "manifest_path": "/w/benches/Cargo.toml"},
                {"name": "sync-server", "manifest_path": "/w/examples/sync-server/Cargo.toml"},
                {"name": "xtask", "manifest_path": "/w/xtask/Cargo.toml"}]}"#,
        )
        .unwrap();
        assert_eq!(workspace.libraries().collect::<Vec<_>>(), ["do-core"]);
        assert_eq!(workspace.members.len(), 3);
        assert_eq!(workspace.target, Path::new("/t"));
    }
}
