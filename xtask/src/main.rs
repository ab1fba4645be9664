//! The project's own tools. `cargo xtask test` runs what CI runs, in the same order and with the same tools;
//! `cargo xtask contract` holds hosts to the rules of the platform; `cargo xtask workers` makes Workers of crates and
//! serves them.
//!
//! All install what they need and the machine lacks (packages of Debian, Python and npm, targets of rustup), so that a
//! fresh clone needs nothing but Rust, and Node.js for Workers.

mod command;
mod contract;
mod install;
mod options;
mod problem;
mod step;
mod steps;
mod wasm;
mod workers;
mod workspace;

use options::{Options, Parsed};
use problem::{Outcome, Problem};
use std::ffi::OsString;
use std::process::ExitCode;
use workspace::Workspace;

const USAGE: &str = "\
usage: cargo xtask test [--full] [--only STEP]... [--list]
       cargo xtask contract [--suite sync] [--host kit|tokio|workerd]... [--all] [--help]
       cargo xtask workers build|dev|test|size [--help]

  --full        also the long runs
  --only STEP   this step alone; repeat it for more steps
  --list        name the steps and run nothing

Environment:
  DO_WASM_RUST=rustup|debian   the Rust for wasm32; by default the first that is there or can be installed";

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    match options::parse(&arguments) {
        Ok(Parsed::Help) => {
            println!("{USAGE}");
            ExitCode::SUCCESS
        }
        Ok(Parsed::Test(options)) => exit(test(&options)),
        Ok(Parsed::Contract(None)) => {
            println!("{}", contract::USAGE);
            ExitCode::SUCCESS
        }
        Ok(Parsed::Contract(Some(asked))) => contract::run(&asked).unwrap_or_else(failed),
        Ok(Parsed::Workers(command)) => exit(workers::run(&command).map(|()| true)),
        Err(problem) => {
            let usage = match arguments.first().and_then(|first| first.to_str()) {
                Some("contract") => contract::USAGE,
                Some("workers") => workers::USAGE,
                _ => USAGE,
            };
            eprintln!("xtask: {problem}\n{usage}");
            ExitCode::from(2)
        }
    }
}

/// Success for `true`; a problem is printed.
fn exit(outcome: Outcome<bool>) -> ExitCode {
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(problem) => failed(problem),
    }
}

#[allow(clippy::needless_pass_by_value)] // where it ends
fn failed(problem: Problem) -> ExitCode {
    eprintln!("xtask: {problem}");
    ExitCode::FAILURE
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
