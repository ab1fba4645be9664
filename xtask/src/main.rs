//! The project's own checks. `cargo xtask test` runs what CI runs, in the same order and with the same tools.
//!
//! It installs what a check needs and the machine lacks (packages of Debian and Python, targets of rustup), so that a fresh
//! clone needs nothing but Rust.

mod command;
mod install;
mod options;
mod problem;
mod step;
mod steps;
mod wasm;
mod workspace;

use options::{Options, Parsed};
use problem::Outcome;
use std::process::ExitCode;
use workspace::Workspace;

const USAGE: &str = "\
usage: cargo xtask test [--full] [--only STEP]... [--list]

  --full        also the long runs
  --only STEP   this step alone; repeat it for more steps
  --list        name the steps and run nothing

Environment:
  DO_WASM_RUST=rustup|debian   the Rust for wasm32; by default the first that is there or can be installed";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match options::parse(&arguments) {
        Ok(Parsed::Help) => {
            println!("{USAGE}");
            ExitCode::SUCCESS
        }
        Ok(Parsed::Test(options)) => match test(&options) {
            Ok(true) => ExitCode::SUCCESS,
            Ok(false) => ExitCode::FAILURE,
            Err(problem) => {
                eprintln!("xtask: {problem}");
                ExitCode::FAILURE
            }
        },
        Err(problem) => {
            eprintln!("xtask: {problem}\n{USAGE}");
            ExitCode::from(2)
        }
    }
}

/// Runs the chosen steps; `false` when one failed.
fn test(options: &Options) -> Outcome<bool> {
    let chosen = options.choose(steps::all())?;
    if options.list {
        for step in &chosen {
            println!("{:<12} {}", step.name, step.about);
        }
        return Ok(true);
    }
    let workspace = Workspace::open()?;
    Ok(step::run(&chosen, &workspace))
}
