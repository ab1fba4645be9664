//! The hosts that suites of cases run on: the test kit, the tokio host and workerd, with the runner, the command line and
//! the report, so that what a crate promises is shown on every host by the same cases.
//!
//! A suite is a [`Suite`]: its cases, and what hosts are to serve for them. A test without a harness is all that it needs:
//! `fn main() -> ExitCode { contract_hosts::run::<MySuite>() }`.
//!
//! The kit and the tokio host are always there. workerd is when `DO_WORKERD` names its binary and the suite's variable a
//! folder with its Worker (`worker.capnp` beside what it names). Without them the report says that it was skipped; with
//! only some of them, or when it was asked for, the run fails.
//!
//! What happens meanwhile is on standard error; the report alone, or its lines of JSON, on standard output.
#![cfg(not(target_arch = "wasm32"))]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a case fails by a panic of the runner too

mod exchange;
mod kit;
mod native;
mod options;
mod report;
mod runner;
mod suite;
mod web;
mod workerd;

pub use options::{COLUMNS, Misuse, Options};
pub use report::{Column, Finished, LONG, Report, Subject, Verdict};
pub use suite::{Answer, Page, Suite};

use std::process::ExitCode;
use tokio::signal::unix::{SignalKind, signal};

/// Does what the command line asks for: the whole of a test without a harness.
pub fn run<S: Suite>() -> ExitCode {
    // Some cases panic on purpose: a line is enough for those.
    std::panic::set_hook(Box::new(|panic| eprintln!("{panic}")));
    let options = match Options::from_arguments::<S>() {
        Ok(options) => options,
        Err(misuse) => {
            eprintln!("{}: {misuse}\n{}", S::NAME, options::usage::<S>());
            return ExitCode::from(2);
        }
    };
    if options.list {
        let names = S::listed().into_iter().map(|case| case.name).filter(|name| options.has(name));
        names.for_each(|name| println!("{name}: test"));
        return ExitCode::SUCCESS;
    }
    if options.platform && !options.all {
        return match page::<S>(&options) {
            Ok(()) => ExitCode::SUCCESS,
            Err(problem) => {
                eprintln!("{}: {problem}", S::NAME);
                ExitCode::FAILURE
            }
        };
    }
    report::<S>(&options)
}

fn page<S: Suite>(options: &Options) -> Result<(), String> {
    S::PAGE.map_or(Ok(()), |write| write(options.check))
}

fn report<S: Suite>(options: &Options) -> ExitCode {
    // One thread: that all tasks that can go on have done so can then be known, and the tokio column rests on it.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut report = Report::new::<S>(options);
    let stopped = runtime.block_on(async {
        let mut terminated = signal(SignalKind::terminate()).unwrap();
        // What is dropped by a stop takes its processes with it.
        tokio::select! {
            () = columns::<S>(&mut report, options) => false,
            _ = terminated.recv() => true,
            _ = tokio::signal::ctrl_c() => true,
        }
    });
    drop(runtime);
    if stopped {
        report.problem("stopped");
    } else if options.all
        && let Err(problem) = page::<S>(options)
    {
        report.problem(problem);
    }
    if options.json {
        report.json_lines().iter().for_each(|line| println!("{line}"));
    } else {
        print!("{report}");
    }
    if report.is_good() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

async fn columns<S: Suite>(report: &mut Report, options: &Options) {
    let asked = options.columns();
    let columns = asked.clone().unwrap_or_else(options::columns::<S>);
    if columns.contains(&"kit") {
        report.column(runner::run_in_process::<_, S>(kit::Worlds::<S>::new(), options).await);
    }
    if columns.contains(&"tokio") {
        report.column(runner::run::<_, S>(native::Tokio::<S>::new(), options).await);
    }
    if !columns.iter().any(|column| column.starts_with("workerd")) {
        return;
    }
    match workerd::Workerd::from_environment::<S>(&columns) {
        Ok(hosts) if hosts.is_empty() => {
            let mut variables = vec!["DO_WORKERD", S::WORKER];
            variables.extend(S::WORKER_ABORT);
            let last = variables.pop().unwrap_or_default();
            let why = format!("{} and {last} are not set: see `{}`", variables.join(", "), S::COMMAND);
            if asked.is_some() { report.failed("workerd", &why) } else { report.skipped("workerd", &why) }
        }
        Ok(hosts) => {
            for host in hosts {
                report.column(runner::run::<_, S>(host, options).await);
            }
        }
        Err(problem) => report.failed("workerd", &problem),
    }
}
