//! A Rust for wasm32: rustup's where it has what is needed or can add it, else Debian's packages.
//!
//! What is needed depends on what a panic shall do. `abort` is how the target's standard library is shipped; for
//! `unwind` cargo builds the library from its source. Debian ships the source only, so there cargo always builds it.

mod debian;
mod rustup;

use crate::command::capture;
use crate::problem::{Outcome, Problem};
use crate::workspace::Workspace;
use std::path::{Path, PathBuf};
use std::process::Command;

const TARGET: &str = "wasm32-unknown-unknown";
/// The workspace's rust-version: no compiler may be older.
const MINIMUM: u32 = 95;

/// What a panic does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Panic {
    /// It ends the wasm instance, and with it every request and all memory of its isolate.
    Abort,
    /// It ends its own request.
    Unwind,
}

impl Panic {
    /// Both, the recommended one first.
    pub(crate) const ALL: [Self; 2] = [Self::Unwind, Self::Abort];

    /// As on the command line and in the names of folders.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Abort => "abort",
            Self::Unwind => "unwind",
        }
    }
}

/// Where the Rust for wasm32 comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    /// The active toolchain.
    Rustup,
    /// `rustc-web` and `cargo-web`.
    Debian,
}

/// A Rust for wasm32 that builds for one kind of panic.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Toolchain {
    source: Source,
    panic: Panic,
}

/// The first toolchain that is there or can be installed; `DO_WASM_RUST` forces one.
///
/// # Errors
/// None can be had, or `DO_WASM_RUST` is not `rustup` or `debian`.
pub(crate) fn toolchain(workspace: &Workspace, panic: Panic) -> Outcome<Toolchain> {
    let forced = std::env::var("DO_WASM_RUST").unwrap_or_default();
    let source = match forced.as_str() {
        "rustup" if rustup::ready(panic) || rustup::install(workspace, panic) => Source::Rustup,
        "debian" if debian::ready() || debian::install() => Source::Debian,
        "" if rustup::ready(panic) => Source::Rustup,
        "" if debian::ready() => Source::Debian,
        "" if rustup::install(workspace, panic) => Source::Rustup,
        "" if debian::install() => Source::Debian,
        "" | "rustup" | "debian" => {
            return Err(Problem::new(format!(
                "no Rust of 1.{MINIMUM} or later that can build for {TARGET} with panic={}. Run 'rustup {}', or on \
                 Debian 'apt-get install rustc-web cargo-web rust-web-src rust-web-clippy lld-22' (or a newer lld).",
                panic.name(),
                rustup::wanted(panic).join(" "),
            )));
        }
        other => return Err(Problem::new(format!("DO_WASM_RUST is {other:?}, not rustup or debian"))),
    };
    Ok(Toolchain { source, panic })
}

impl Toolchain {
    /// `cargo COMMAND --target wasm32-unknown-unknown` with this toolchain, and where cargo puts what it builds:
    /// a folder for each toolchain and kind of panic, because in one they would rebuild everything at each change.
    pub(crate) fn cargo(self, workspace: &Workspace, command: &str) -> Command {
        let mut built = match self.source {
            Source::Rustup => workspace.cargo(&[command]),
            Source::Debian => debian::cargo(workspace, command),
        };
        built.args(["--target", TARGET]).env("CARGO_TARGET_DIR", self.target(workspace));
        // wasm-bindgen's macros then leave the executor to js-sys, as `worker-build` has it. Cargo does not see this
        // variable, so it is set for checks as well, which share their dependencies with builds.
        built.env("WASM_BINDGEN_USE_JS_SYS", "1");
        let library = match (self.source, self.panic) {
            (Source::Rustup, Panic::Abort) => return built,
            (Source::Debian, Panic::Abort) => "std,panic_abort",
            (_, Panic::Unwind) => "std,panic_unwind",
        };
        // The first is the switch that lets a stable compiler build its own standard library.
        built.env("RUSTC_BOOTSTRAP", "1").env("CARGO_UNSTABLE_BUILD_STD", library);
        if self.panic == Panic::Unwind {
            // The target's own default is abort: cargo leaves out a flag that it takes for the default of all.
            let more = std::env::var("RUSTFLAGS").map(|flags| format!("{flags} ")).unwrap_or_default();
            built.env("RUSTFLAGS", format!("{more}-Cpanic=unwind"));
            for profile in ["DEV", "RELEASE", "WORKER"] {
                built.env(format!("CARGO_PROFILE_{profile}_PANIC"), "unwind");
            }
        }
        built
    }

    /// The library that a build with `profile` has left for the package's library target of this name.
    pub(crate) fn artifact(self, workspace: &Workspace, profile: &str, library: &str) -> PathBuf {
        self.target(workspace).join(TARGET).join(profile).join(format!("{library}.wasm"))
    }

    /// Whether it can lint.
    pub(crate) fn has_clippy(self) -> bool {
        self.source == Source::Rustup || debian::has_clippy()
    }

    fn target(self, workspace: &Workspace) -> PathBuf {
        let source = match self.source {
            Source::Rustup => "rustup",
            Source::Debian => "debian",
        };
        workspace.target.join(format!("wasm-{source}-{}", self.panic.name()))
    }
}

/// The number after `before`, of a version such as `1.96.0`.
fn minor(text: &str, before: &str) -> Option<u32> {
    let (_, after) = text.split_once(before)?;
    after.split('.').next()?.parse().ok()
}

/// Whether this compiler can be run and is new enough.
fn new_enough(rustc: &str) -> bool {
    printed(Command::new(rustc).arg("--version"))
        .and_then(|version| minor(&version, "rustc 1."))
        .is_some_and(|minor| minor >= MINIMUM)
}

/// Whether this compiler has the source of its standard library.
fn has_source(rustc: &str) -> bool {
    printed(Command::new(rustc).args(["--print", "sysroot"]))
        .is_some_and(|sysroot| Path::new(&sysroot).join("lib/rustlib/src/rust/library/std").is_dir())
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
