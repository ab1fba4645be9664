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
    /// All members but xtask and its tools.
    pub(crate) members: Vec<Member>,
}

/// A package of the workspace.
#[derive(Debug)]
pub(crate) struct Member {
    /// Its name, for `-p`.
    pub(crate) name: String,
    /// The folder of its manifest.
    pub(crate) folder: PathBuf,
    /// Whether it is published for others, not an example, a test or a measurement.
    pub(crate) is_library: bool,
    /// The name of its library's file without the ending, where it asks for a `cdylib`, as a Worker has to.
    pub(crate) cdylib: Option<String>,
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
        let root = PathBuf::from(text(&metadata, "workspace_root")?);
        let mut members = Vec::new();
        for package in list(&metadata, "packages") {
            let manifest = PathBuf::from(text(package, "manifest_path")?);
            let folder = manifest.parent().map(Path::to_owned).unwrap_or_default();
            if folder.starts_with(root.join("xtask")) {
                continue;
            }
            // An empty list forbids publishing; without a list anyone may.
            let is_library = package.get("publish").and_then(Value::as_array).is_none_or(|to| !to.is_empty());
            members.push(Member {
                name: text(package, "name")?,
                folder,
                is_library,
                cdylib: cdylib(package)?,
            });
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

/// The file name of a package's `cdylib`, if it has one.
fn cdylib(package: &Value) -> Outcome<Option<String>> {
    let is_cdylib = |target: &&Value| list(target, "crate_types").any(|kind| kind.as_str() == Some("cdylib"));
    let name = list(package, "targets").find(is_cdylib).map(|target| text(target, "name")).transpose()?;
    Ok(name.map(|name| name.replace('-', "_")))
}

fn list<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    value.get(key).and_then(Value::as_array).into_iter().flatten()
}

fn text(value: &Value, key: &str) -> Outcome<String> {
    let found = value.get(key).and_then(Value::as_str).map(str::to_owned);
    found.ok_or_else(|| Problem::new(format!("cargo metadata has no {key}")))
}

/// The cargo that runs us, else the one on `PATH`.
fn cargo() -> OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_told_apart() {
        let workspace = Workspace::read(
            r#"{"workspace_root": "/w", "target_directory": "/t", "packages": [
                {"name": "do-core", "manifest_path": "/w/do-core/Cargo.toml", "publish": null},
                {"name": "hello", "manifest_path": "/w/benches/hello/Cargo.toml", "publish": [], "targets": [
                    {"name": "hello-x", "crate_types": ["cdylib", "rlib"]}, {"name": "y", "crate_types": ["bin"]}]},
                {"name": "xtask", "manifest_path": "/w/xtask/Cargo.toml", "publish": []},
                {"name": "xtask-bindgen", "manifest_path": "/w/xtask/bindgen/Cargo.toml", "publish": []}]}"#,
        )
        .unwrap();
        assert_eq!(workspace.libraries().collect::<Vec<_>>(), ["do-core"]);
        let members: Vec<_> =
            workspace.members.iter().map(|member| (member.name.as_str(), member.cdylib.as_deref())).collect();
        assert_eq!(members, [("do-core", None), ("hello", Some("hello_x"))]);
        assert_eq!(workspace.members.last().unwrap().folder, Path::new("/w/benches/hello"));
        assert_eq!(workspace.target, Path::new("/t"));
    }
}
