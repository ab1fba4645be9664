//! The contract: every case of `do_core::testing` on every host that is there, from one source.
//!
//! The kit and the tokio host are always there. workerd is when `DO_WORKERD` names its binary and
//! `DO_WORKER_CONTRACT` a folder with the contract's Worker (`worker.capnp` beside what it names), built so that
//! panics unwind; `DO_WORKER_CONTRACT_ABORT` names one whose panics abort. Without them the report says that it was
//! skipped; with only some of them, or when it was asked for, the run fails. `cargo xtask contract` builds what is
//! asked for and runs this with the same options.
//!
//! It has no test harness, because its report is the point: a line for each rule, a column for each host. What
//! happens meanwhile is on standard error; the report alone, or its lines of JSON, on standard output.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a case fails by a panic of the runner too

mod exchange;
mod kit;
mod native;
mod options;
mod platform;
mod report;
mod runner;
mod web;
mod workerd;

use do_core::testing::catalogue;
use options::Options;
use report::Report;
use std::process::ExitCode;
use tokio::signal::unix::{SignalKind, signal};

fn main() -> ExitCode {
    // Some cases panic on purpose: a line is enough for those.
    std::panic::set_hook(Box::new(|panic| eprintln!("{panic}")));
    let options = match Options::from_arguments() {
        Ok(options) => options,
        Err(misuse) => {
            eprintln!("contract: {misuse}\n{}", options::USAGE);
            return ExitCode::from(2);
        }
    };
    if options.list {
        let names = catalogue().into_iter().map(|case| case.name).filter(|name| options.has(name));
        names.for_each(|name| println!("{name}: test"));
        return ExitCode::SUCCESS;
    }
    if options.platform && !options.all {
        return match platform::write(options.check) {
            Ok(()) => ExitCode::SUCCESS,
            Err(problem) => {
                eprintln!("contract: {problem}");
                ExitCode::FAILURE
            }
        };
    }
    report(&options)
}

fn report(options: &Options) -> ExitCode {
    // One thread: that all tasks that can go on have done so can then be known, and the tokio column rests on it.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut report = Report::new(options);
    let stopped = runtime.block_on(async {
        let mut terminated = signal(SignalKind::terminate()).unwrap();
        // What is dropped by a stop takes its processes with it.
        tokio::select! {
            () = run(&mut report, options) => false,
            _ = terminated.recv() => true,
            _ = tokio::signal::ctrl_c() => true,
        }
    });
    drop(runtime);
    if stopped {
        report.problem("stopped");
    } else if options.all
        && let Err(problem) = platform::write(options.check)
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

async fn run(report: &mut Report, options: &Options) {
    let asked = options.columns();
    let columns = asked.clone().unwrap_or_else(|| options::COLUMNS.to_vec());
    if columns.contains(&"kit") {
        kit::column(report, options, asked.is_some()).await;
    }
    if columns.contains(&"tokio") {
        report.column(runner::run(native::Tokio, options).await);
    }
    if !columns.iter().any(|column| column.starts_with("workerd")) {
        return;
    }
    match workerd::Workerd::from_environment(&columns) {
        Ok(hosts) if hosts.is_empty() => {
            let why = "DO_WORKERD, DO_WORKER_CONTRACT and DO_WORKER_CONTRACT_ABORT are not set: see `cargo xtask contract`";
            if asked.is_some() { report.failed("workerd", why) } else { report.skipped("workerd", why) }
        }
        Ok(hosts) => {
            for host in hosts {
                report.column(runner::run(host, options).await);
            }
        }
        Err(problem) => report.failed("workerd", &problem),
    }
}
