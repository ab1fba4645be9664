//! Debian's Rust. It brings the standard library as source and no linker for wasm32, which is a package of its own.

use super::{MINIMUM, has_source, minor, new_enough, printed};
use crate::command::is_program;
use crate::install;
use crate::workspace::Workspace;
use std::path::{Path, PathBuf};
use std::process::Command;

const RUSTC: &str = "/usr/bin/rustc";
const CARGO: &str = "/usr/bin/cargo";
const RUSTDOC: &str = "/usr/bin/rustdoc";
const CLIPPY: &str = "/usr/bin/cargo-clippy";

/// Whether the packages are installed and new enough.
pub(super) fn ready() -> bool {
    is_program(Path::new(CARGO)) && new_enough(RUSTC) && has_source(RUSTC) && linker().is_some()
}

/// Whether the package that lints is installed.
pub(super) fn has_clippy() -> bool {
    is_program(Path::new(CLIPPY))
}

/// Debian's cargo, in the root folder.
pub(super) fn cargo(workspace: &Workspace, command: &str) -> Command {
    // Not `cargo clippy`: cargo looks for that in its own folder first, where rustup's is.
    let mut built = Command::new(if command == "clippy" { CLIPPY } else { CARGO });
    built.arg(command).current_dir(&workspace.root);
    built.env("CARGO", CARGO).env("RUSTC", RUSTC).env("RUSTDOC", RUSTDOC);
    if let Some(linker) = linker() {
        built.env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", linker);
    }
    // Set by the cargo that started us, and it points to rustup's libraries.
    built.env_remove("LD_LIBRARY_PATH");
    built
}

/// Installs the packages. Debian keeps two Rusts: `rustc-web` is renewed for its browsers within a release, `rustc`
/// only with a release.
pub(super) fn install() -> bool {
    let web = ["rustc-web", "cargo-web", "rust-web-src", "rust-web-clippy"];
    let plain = ["rustc", "cargo", "rust-src", "rust-clippy"];
    let chosen = || [web, plain].into_iter().find(|names| names.first().is_some_and(|rustc| offered(rustc)));
    let mut packages = chosen();
    if packages.is_none() && install::apt_update().is_ok() {
        packages = chosen();
    }
    let Some(packages) = packages else { return false };
    let list = printed(Command::new("apt-cache").args(["search", "--names-only", "^lld-[0-9]+$"]))
        .unwrap_or_default();
    let lld = newest("lld-", list.lines().filter_map(|line| line.split(' ').next()));
    let packages: Vec<&str> = packages.into_iter().chain(lld).collect();
    if let Err(problem) = install::apt(&packages) {
        println!("{problem}");
    }
    ready()
}

/// Whether apt's candidate of a package is new enough.
fn offered(package: &str) -> bool {
    let policy = printed(Command::new("apt-cache").args(["policy", package])).unwrap_or_default();
    minor(&policy, "Candidate: 1.").is_some_and(|minor| minor >= MINIMUM)
}

/// The newest `wasm-ld` of the packages `lld-NN`; a plain `wasm-ld` belongs to a release's own, older LLVM.
fn linker() -> Option<PathBuf> {
    let folder = Path::new("/usr/bin");
    let files: Vec<String> = std::fs::read_dir(folder)
        .ok()?
        .flatten()
        .map(|file| file.file_name().to_string_lossy().into_owned())
        .collect();
    newest("wasm-ld-", files.iter().map(String::as_str)).map(|name| folder.join(name))
}

/// Of the names that are `before` and a number, the one with the greatest number.
fn newest<'a>(before: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    names
        .filter_map(|name| Some((name.strip_prefix(before)?.parse::<u32>().ok()?, name)))
        .max()
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_is_found_by_number() {
        let names = ["wasm-ld", "wasm-ld-9", "wasm-ld-22", "wasm-ld-14", "wasm-ld-x"];
        assert_eq!(newest("wasm-ld-", names.into_iter()), Some("wasm-ld-22"));
        assert_eq!(newest("wasm-ld-", ["wasm-ld", "lld-22"].into_iter()), None);
    }
}
