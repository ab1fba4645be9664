//! Installs what a check needs and the machine lacks. What is there already is never touched.

use crate::command::{capture, is_program, on_path, run, run_within};
use crate::problem::{Doing, Outcome, Problem};
use crate::workspace::Workspace;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

/// The WebSocket conformance cases; the counts in the check belong to this version.
const KOSOKU: &str = "0.1.0";
/// For one call of a package manager.
const LIMIT: Duration = Duration::from_mins(15);

/// A browser and the program that drives it, both on `PATH`.
///
/// # Errors
/// They are not there and apt-get cannot install them.
pub(crate) fn browser() -> Outcome {
    let missing = || !(on_path("chromium") && on_path("chromedriver"));
    if missing() {
        apt(&["chromium", "chromium-driver"])?;
    }
    if missing() {
        return Err(Problem::new("apt-get has put no chromium and chromedriver on PATH"));
    }
    Ok(())
}

/// The program `kosoku`, in a Python environment under the target folder.
///
/// # Errors
/// There is no Python that can make one, or the package index does not answer.
pub(crate) fn kosoku(workspace: &Workspace) -> Outcome<PathBuf> {
    let environment = workspace.scratch("venv")?;
    let (python, program) = (environment.join("bin/python"), environment.join("bin/kosoku"));
    let installed = || {
        let ask = "import importlib.metadata as m; print(m.version('kosoku'))";
        is_program(&program)
            && capture(Command::new(&python).args(["-c", ask])).is_ok_and(|version| version.trim() == KOSOKU)
    };
    if installed() {
        return Ok(program);
    }
    // Cleared, because half an environment of an interrupted run does not repair itself.
    let make = || run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&environment));
    if let Err(problem) = make() {
        println!("{problem}");
        apt(&["python3", "python3-venv"])?;
        make()?;
    }
    let mut pip = Command::new(&python);
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"])
        .arg(format!("kosoku=={KOSOKU}"));
    run_within(&mut pip, LIMIT)?;
    if installed() { Ok(program) } else { Err(Problem::new("pip has installed no kosoku that runs")) }
}

/// The program `curl`, on `PATH`.
///
/// # Errors
/// It is not there and apt-get cannot install it.
pub(crate) fn curl() -> Outcome {
    if !on_path("curl") {
        apt(&["curl"])?;
    }
    if on_path("curl") { Ok(()) } else { Err(Problem::new("apt-get has put no curl on PATH")) }
}

/// The program `nginx`: the machine's own, else Debian's, unpacked under the target folder. Not installed, which would
/// start it on the machine's port 80.
///
/// # Errors
/// It is not there, and apt-get has none that runs here.
pub(crate) fn nginx(workspace: &Workspace) -> Outcome<PathBuf> {
    let folder = workspace.scratch("nginx")?;
    let runs = |program: &PathBuf| is_program(program) && capture(Command::new(program).arg("-v")).is_ok();
    let places = [PathBuf::from("/usr/sbin/nginx"), folder.join("usr/sbin/nginx")];
    let found = || places.iter().find(|program| runs(program)).cloned();
    if let Some(program) = found() {
        return Ok(program);
    }
    let download = || {
        let mut apt = Command::new("apt-get");
        apt.args(["download", "-q", "nginx"]).current_dir(&folder);
        run_within(&mut apt, LIMIT)
    };
    download().or_else(|problem| {
        println!("{problem}");
        apt_update()?;
        download()
    })?;
    for entry in std::fs::read_dir(&folder).doing(folder.display())?.flatten() {
        if entry.path().extension().is_some_and(|end| end == "deb") {
            run(Command::new("dpkg").arg("--extract").arg(entry.path()).arg(&folder))?;
            std::fs::remove_file(entry.path()).doing(entry.path().display())?;
        }
    }
    let missing = "Debian's nginx does not run here as it is: install the package nginx by hand";
    found().ok_or_else(|| Problem::new(missing))
}

/// Installs Debian packages; asks for the newest lists only when the ones at hand do not do.
///
/// # Errors
/// There is no apt-get, no right to use it, or a package that it cannot install.
pub(crate) fn apt(packages: &[&str]) -> Outcome {
    println!("installing {} (this can take minutes)", packages.join(" "));
    let install = || {
        let mut command = apt_get()?;
        command.args(["install", "--yes", "--no-install-recommends"]).args(packages);
        run_within(&mut command, LIMIT)
    };
    install().or_else(|problem| {
        println!("{problem}");
        apt_update()?;
        install()
    })
}

/// Fetches the package lists.
///
/// # Errors
/// As [`apt`].
pub(crate) fn apt_update() -> Outcome {
    run_within(apt_get()?.arg("update"), LIMIT)
}

fn apt_get() -> Outcome<Command> {
    if !on_path("apt-get") {
        return Err(Problem::new("there is no apt-get here: install these by hand"));
    }
    let is_root = capture(Command::new("id").arg("-u"))?.trim() == "0";
    let mut command = Command::new(if is_root { "env" } else { "sudo" });
    if !is_root {
        command.args(["--non-interactive", "env"]);
    }
    let quiet = ["-q", "-o", "DPkg::Lock::Timeout=300", "-o", "Dpkg::Use-Pty=0"];
    command.args(["DEBIAN_FRONTEND=noninteractive", "apt-get"]).args(quiet);
    Ok(command)
}
