//! `cargo xtask workers`: crates as Workers, served by the real runtime.

pub(crate) mod args;
mod build;
mod capnp;
mod config;
mod control;
mod dev;
mod migrations;
pub(crate) mod npm;
mod shim;
mod size;
mod template;
pub(crate) mod test;
mod workerd;

use crate::problem::{Doing, Outcome};
use crate::workspace::Workspace;
use args::Workers;
use std::fs::{File, TryLockError};
use std::path::Path;

/// How `cargo xtask workers` is used.
pub(crate) const USAGE: &str = "\
usage: cargo xtask workers build [CRATE-FOLDER] [--out DIR] [--panic MODE] [--dev] [--opt] [--minify] [--testing]
       cargo xtask workers dev [CRATE-FOLDER] [--listen ADDR:PORT] [--data DIR] [--panic MODE] [--dev]
                               [--var NAME=VALUE]...
       cargo xtask workers test
       cargo xtask workers size

build writes index.js, index_bg.wasm and worker.capnp from a cdylib that exports fetch and has a wrangler.toml; dev also
serves them with workerd, says `listening on http://ADDR:PORT` on standard output and everything else on standard error,
and ends with SIGTERM or SIGINT; test runs the tests of the examples that need Workers; size prints what the sync server
adds to the smallest Worker.

  CRATE-FOLDER       a crate of this workspace [default: examples/sync-server]
  --out DIR          [default: target/workers/CRATE-MODE, with --testing CRATE-MODE-testing]
  --panic MODE       unwind: a panic ends its request; abort: it ends all requests and memory of the isolate, and the
                     file is smaller [default: unwind]
  --dev              cargo's dev profile: fast to build, large
  --opt              wasm-opt
  --minify           smaller JavaScript
  --testing          GET /__evict?sockets=hibernate|close evicts all objects; workerd serve then wants --experimental;
                     a wrangler.second.toml gives a worker.second.capnp, the next deployment of the same code
  --listen ADDR:PORT [default: 127.0.0.1:8080]; port 0 is a free one; a loopback address sets the variable LOOPBACK=1
  --data DIR         where the objects' data is kept [default: target/workers/data/CRATE]; the migrations of
                     wrangler.toml are applied to it, each once
  --var NAME=VALUE   a variable of the Worker, over those of its wrangler.toml";

/// Does what the command line asks for.
///
/// # Errors
/// It cannot be done.
pub(crate) fn run(command: &Workers) -> Outcome {
    match command {
        Workers::Help => {
            println!("{USAGE}");
            Ok(())
        }
        Workers::Build(asked) => {
            let workspace = Workspace::open()?;
            build::build(&workspace, &build::Plan::asked(&workspace, asked)?).map(drop)
        }
        Workers::Dev(asked) => dev::serve(asked),
        Workers::Test => test::test(&Workspace::open()?),
        Workers::Size => size::print(&Workspace::open()?),
    }
}

/// Waits until this process alone uses what the file stands for; until the handle is dropped. The file stays as it is.
///
/// # Errors
/// There is no such file.
fn lock(path: &Path) -> Outcome<File> {
    let file = File::open(path).doing(path.display())?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            println!("waiting for another process that uses {}", path.display());
            file.lock().doing(path.display())?;
        }
        Err(TryLockError::Error(error)) => return Err(error).doing(path.display()),
    }
    Ok(file)
}
