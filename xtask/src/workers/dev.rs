//! A Worker served by workerd until a signal, as the native server serves: the same first line, the same end.

use super::args::Dev;
use super::build::{self, Built, Plan};
use super::capnp;
use super::migrations;
use super::workerd::{Event, Workerd};
use crate::command::reserve_stdout;
use crate::problem::{Doing, Outcome, Problem};
use crate::workspace::Workspace;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, SyncSender};
use std::thread;

/// The configuration with what only the command line knows, beside the one of the build.
const CONFIG: &str = "dev.capnp";

/// Builds, serves, and ends with SIGTERM or SIGINT.
///
/// # Errors
/// The build fails, the address or the data folder is in use, the folder has applied other migrations, or workerd ends
/// by itself.
pub(crate) fn serve(asked: &Dev) -> Outcome {
    let mut output = reserve_stdout().doing("standard output")?;
    let workspace = Workspace::open()?;
    let plan = Plan::asked(&workspace, &asked.build)?;
    let default = || workspace.target.join("workers/data").join(&plan.member.name);
    let (data, in_use) = data_folder(&asked.data.clone().unwrap_or_else(default))?;
    let mut built = build::build(&workspace, &plan)?;
    configure(&mut built, asked)?;
    migrations::apply(&data, &built.config.name, &built.config.migrations)?;

    let (sender, events) = mpsc::sync_channel(1);
    listen_to_signals(sender.clone())?;
    let config = built.folder.join(CONFIG);
    let mut workerd = Workerd::start(&built.tools.workerd, &config, asked.listen, &data, in_use, sender)?;
    let Some(port) = workerd.wait_for_port(&events)? else { return workerd.stop() };
    drop(built); // workerd has read the folder: others may write it
    if let Err(error) = writeln!(output, "listening on http://{}", SocketAddr::new(asked.listen.ip(), port)) {
        workerd.stop()?;
        return Err(error).doing("standard output");
    }
    workerd.watch(&events)
}

/// Writes the configuration that this run is served with.
fn configure(built: &mut Built, asked: &Dev) -> Outcome {
    if asked.listen.ip().is_loopback() {
        // What the native server tells its object as well: the page may then be asked for by any local name.
        built.config.set("LOOPBACK".to_owned(), "1".into())?;
    }
    for (name, value) in &asked.vars {
        built.config.set(name.clone(), value.as_str().into())?;
    }
    build::write(&built.folder, CONFIG, &capnp::file(&built.config, false))
}

/// The folder, made when it is not there, and a lock on it: two servers with the same objects would destroy their data.
fn data_folder(path: &Path) -> Outcome<(PathBuf, File)> {
    let path = std::path::absolute(path).doing(path.display())?;
    fs::create_dir_all(&path).doing(path.display())?;
    let file = path.join("lock");
    let file = OpenOptions::new().create(true).append(true).open(&file).doing(file.display())?;
    match file.try_lock() {
        Ok(()) => Ok((path, file)),
        Err(TryLockError::WouldBlock) => {
            Err(Problem::new(format!("another server keeps its data in {}", path.display())))
        }
        Err(TryLockError::Error(error)) => Err(error).doing(path.display()),
    }
}

/// From now on the two signals end nothing but are sent to the channel. What is asked more often than once is not
/// needed: when the channel is full, an earlier signal waits in it.
fn listen_to_signals(events: SyncSender<Event>) -> Outcome {
    let mut signals = Signals::new([SIGTERM, SIGINT]).doing("signals")?;
    // Never joined: it ends with the process.
    thread::spawn(move || {
        for _ in signals.forever() {
            if events.send(Event::AskedToEnd).is_err() {
                break;
            }
        }
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_data_folder_is_used_by_one_server() {
        let kept = tempfile::tempdir().unwrap();
        let folder = kept.path().join("made/when/missing");
        let (path, first) = data_folder(&folder).unwrap();
        assert_eq!(path, folder);
        let problem = data_folder(&folder).unwrap_err().to_string();
        assert!(problem.starts_with("another server keeps its data in"), "{problem}");
        drop(first);
        assert!(data_folder(&folder).is_ok());
    }
}
