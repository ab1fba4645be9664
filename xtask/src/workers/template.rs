//! `worker-build`'s entry module. Only its source is fetched, with cargo's own means: compiling it would cost minutes and
//! add nothing.

use crate::command::capture;
use crate::problem::{Doing, Outcome, Problem};
use crate::wasm::Panic;
use crate::workspace::Workspace;
use std::path::{Path, PathBuf};

/// The template for this kind of panic, of the version of `worker` in Cargo.lock.
///
/// # Errors
/// No member depends on `worker`, or cargo cannot fetch the source.
pub(crate) fn template(workspace: &Workspace, panic: Panic) -> Outcome<String> {
    let lock_file = workspace.root.join("Cargo.lock");
    let text = std::fs::read_to_string(&lock_file).doing(lock_file.display())?;
    let version = locked(&text, "worker")?;
    let file = match panic {
        Panic::Abort => "src/js/shim.js",
        Panic::Unwind => "src/js/shim-unwind.js",
    };
    let kept = workspace.scratch(&format!("worker-build-{version}"))?.join(file.replace('/', "-"));
    if let Ok(text) = std::fs::read_to_string(&kept) {
        return Ok(text);
    }
    let folder = source(workspace, &version)?;
    let template = std::fs::read_to_string(folder.join(file)).doing(folder.join(file).display())?;
    // Renamed, so that an interrupted run leaves no half of it.
    let part = kept.with_extension(std::process::id().to_string());
    std::fs::write(&part, &template).doing(part.display())?;
    std::fs::rename(&part, &kept).doing(kept.display())?;
    Ok(template)
}

/// The unpacked source in cargo's home. Where it is not there yet, `cargo info` fetches that one package; `cargo fetch`
/// would bring all that it depends on.
fn source(workspace: &Workspace, version: &str) -> Outcome<PathBuf> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| std::env::home_dir().map(|home| home.join(".cargo"))).unwrap_or_default();
    let (sources, package) = (home.join("registry/src"), format!("worker-build-{version}"));
    if let Some(folder) = find(&sources, &package) {
        return Ok(folder);
    }
    println!("fetching the source of worker-build {version}");
    let package_id = format!("worker-build@{version}");
    // Outside of the workspace, which cargo would read without need.
    capture(workspace.cargo(&["info", "--quiet", &package_id]).current_dir("/"))?;
    find(&sources, &package)
        .ok_or_else(|| Problem::new(format!("cargo has fetched no {package} into {}", sources.display())))
}

/// The folder of a package: cargo keeps one folder for each registry.
fn find(sources: &Path, package: &str) -> Option<PathBuf> {
    let registries = std::fs::read_dir(sources).ok()?.flatten();
    registries.map(|registry| registry.path().join(package)).find(|folder| folder.is_dir())
}

/// The version of a package in a Cargo.lock that has it once.
fn locked(lock_file: &str, package: &str) -> Outcome<String> {
    let table: toml::Table = toml::from_str(lock_file).doing("Cargo.lock")?;
    let packages = table.get("package").and_then(toml::Value::as_array).into_iter().flatten();
    let named = |entry: &&toml::Value| entry.get("name").and_then(toml::Value::as_str) == Some(package);
    let versions: Vec<&str> = packages
        .filter(named)
        .filter_map(|entry| entry.get("version").and_then(toml::Value::as_str))
        .collect();
    match versions.as_slice() {
        [version] => Ok((*version).to_owned()),
        other => {
            Err(Problem::new(format!("Cargo.lock has {package} in {} versions, not in one", other.len())))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_locked_version_is_found() {
        let lock_file = "version = 4\n[[package]]\nname = \"worker-sys\"\nversion = \"0.8.6\"\n\
                         [[package]]\nname = \"worker\"\nversion = \"0.8.7\"\n";
        assert_eq!(locked(lock_file, "worker").unwrap(), "0.8.7");
        assert!(locked(lock_file, "wasm-bindgen").is_err());
        assert!(
            locked(&format!("{lock_file}[[package]]\nname = \"worker\"\nversion = \"0.9.0\"\n"), "worker")
                .is_err()
        );
    }
}
