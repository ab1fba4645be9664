//! A Rust for wasm32: rustup's where it has the target or can add it, else Debian's packages, which bring the
//! standard library as source, so that cargo builds it.

use crate::command::{capture, is_program, run_within};
use crate::install;
use crate::problem::{Outcome, Problem};
use crate::workspace::Workspace;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const TARGET: &str = "wasm32-unknown-unknown";
/// The workspace's rust-version: Debian's compiler must not be older.
const MINIMUM: u32 = 95;
/// For `rustup target add`, which downloads about 25 MB.
const RUSTUP_LIMIT: Duration = Duration::from_mins(3);
const DEBIAN_RUSTC: &str = "/usr/bin/rustc";
const DEBIAN_CARGO: &str = "/usr/bin/cargo";
const DEBIAN_CLIPPY: &str = "/usr/bin/cargo-clippy";

/// Where the Rust for wasm32 comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Toolchain {
    /// The active toolchain, which has the target's standard library.
    Rustup,
    /// `rustc-web` and `cargo-web`, building the standard library from `rust-web-src`.
    Debian,
}

/// The first toolchain that is there or can be installed; `DO_WASM_RUST` forces one.
///
/// # Errors
/// None can be had, or `DO_WASM_RUST` is not `rustup` or `debian`.
pub(crate) fn toolchain(workspace: &Workspace) -> Outcome<Toolchain> {
    let forced = std::env::var("DO_WASM_RUST").unwrap_or_default();
    match forced.as_str() {
        "rustup" if rustup_ready() || rustup_install(workspace) => Ok(Toolchain::Rustup),
        "debian" if debian_ready() || debian_install() => Ok(Toolchain::Debian),
        "" if rustup_ready() => Ok(Toolchain::Rustup),
        "" if debian_ready() => Ok(Toolchain::Debian),
        "" if rustup_install(workspace) => Ok(Toolchain::Rustup),
        "" if debian_install() => Ok(Toolchain::Debian),
        "" | "rustup" | "debian" => Err(Problem::new(format!(
            "no Rust of 1.{MINIMUM} or later that can build for {TARGET}. Run 'rustup target add {TARGET}', or on \
             Debian 'apt-get install rustc-web cargo-web rust-web-src rust-web-clippy'."
        ))),
        other => Err(Problem::new(format!("DO_WASM_RUST is {other:?}, not rustup or debian"))),
    }
}

impl Toolchain {
    /// `cargo COMMAND --target wasm32-unknown-unknown` with this toolchain.
    pub(crate) fn cargo(self, workspace: &Workspace, command: &str) -> Command {
        match self {
            Self::Rustup => workspace.cargo(&[command, "--target", TARGET]),
            Self::Debian => {
                // Not `cargo clippy`: cargo looks for that in its own folder first, where rustup's is.
                let mut built = Command::new(if command == "clippy" { DEBIAN_CLIPPY } else { DEBIAN_CARGO });
                built.args([command, "--target", TARGET]).current_dir(&workspace.root);
                built.env("CARGO", DEBIAN_CARGO).env("RUSTC", DEBIAN_RUSTC);
                // The switch that lets a stable compiler build its own standard library.
                built.env("RUSTC_BOOTSTRAP", "1").env("CARGO_UNSTABLE_BUILD_STD", "std,panic_abort");
                // A folder of its own: two compilers in one would rebuild everything at each change.
                built.env("CARGO_TARGET_DIR", workspace.target.join("wasm-debian"));
                // Set by the cargo that started us, and it points to rustup's libraries.
                built.env_remove("LD_LIBRARY_PATH");
                built
            }
        }
    }

    /// Whether it can lint.
    pub(crate) fn has_clippy(self) -> bool {
        self == Self::Rustup || is_program(Path::new(DEBIAN_CLIPPY))
    }
}

fn rustup_ready() -> bool {
    let Some(folder) = printed(Command::new("rustc").args(["--print", "target-libdir", "--target", TARGET]))
    else {
        return false;
    };
    let Ok(files) = std::fs::read_dir(folder) else { return false };
    files.flatten().any(|file| file.file_name().to_string_lossy().starts_with("libstd-"))
}

fn rustup_install(workspace: &Workspace) -> bool {
    let mut command = Command::new("rustup");
    command.args(["target", "add", TARGET]).current_dir(&workspace.root);
    if let Err(problem) = run_within(&mut command, RUSTUP_LIMIT) {
        println!("{problem}");
    }
    rustup_ready()
}

fn debian_ready() -> bool {
    let new_enough =
        printed(Command::new(DEBIAN_RUSTC).arg("--version")).and_then(|text| minor(&text, "rustc 1."));
    let Some(sysroot) = printed(Command::new(DEBIAN_RUSTC).args(["--print", "sysroot"])) else {
        return false;
    };
    let source = PathBuf::from(sysroot).join("lib/rustlib/src/rust/library/std");
    new_enough.is_some_and(|minor| minor >= MINIMUM) && is_program(Path::new(DEBIAN_CARGO)) && source.is_dir()
}

/// Debian keeps two Rusts: `rustc-web` is renewed for its browsers within a release, `rustc` only with a release.
fn debian_install() -> bool {
    let web = ["rustc-web", "cargo-web", "rust-web-src", "rust-web-clippy"];
    let plain = ["rustc", "cargo", "rust-src", "rust-clippy"];
    let chosen = || [web, plain].into_iter().find(|names| names.first().is_some_and(|rustc| offered(rustc)));
    let mut packages = chosen();
    if packages.is_none() && install::apt_update().is_ok() {
        packages = chosen();
    }
    let Some(packages) = packages else { return false };
    if let Err(problem) = install::apt(&packages) {
        println!("{problem}");
    }
    debian_ready()
}

/// Whether apt's candidate of a package is new enough.
fn offered(package: &str) -> bool {
    let policy = printed(Command::new("apt-cache").args(["policy", package])).unwrap_or_default();
    minor(&policy, "Candidate: 1.").is_some_and(|minor| minor >= MINIMUM)
}

/// The number after `before`, of a version such as `1.96.0`.
fn minor(text: &str, before: &str) -> Option<u32> {
    let (_, after) = text.split_once(before)?;
    after.split('.').next()?.parse().ok()
}

/// What a command printed, if it could be run and exited with 0.
fn printed(command: &mut Command) -> Option<String> {
    capture(command).ok().map(|text| text.trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minor_version_is_read() {
        assert_eq!(minor("rustc 1.96.0 (ac68faa20 2026-05-25)", "rustc 1."), Some(96));
        assert_eq!(minor("x:\n  Candidate: 1.85.0+dfsg3-1~deb12u3\n", "Candidate: 1."), Some(85));
        assert_eq!(minor("x:\n  Candidate: (none)\n", "Candidate: 1."), None);
    }
}
