//! The contract: every case of `do_core::testing` on every host that is there, from one source.
//!
//! The tokio host is always there. workerd is when `DO_WORKERD` names its binary and `DO_WORKER_CONTRACT` a folder
//! with the contract's Worker (`worker.capnp` beside what it names), built so that panics unwind;
//! `DO_WORKER_CONTRACT_ABORT` names one whose panics abort. Without them the report says that it was skipped; with
//! only some of them the run fails.
//!
//! It has no test harness, because its report is the point: a line for each case, a column for each host. An
//! argument that is no option runs only the cases whose names contain it; `--full` runs the long ones in real time
//! too.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a case fails by a panic of the runner too

mod exchange;
mod kit;
mod native;
mod report;
mod runner;
mod web;
mod workerd;

use report::Report;
use runner::Wanted;
use std::process::ExitCode;
use tokio::signal::unix::{SignalKind, signal};

fn main() -> ExitCode {
    // Some cases panic on purpose: a line is enough for those.
    std::panic::set_hook(Box::new(|panic| eprintln!("{panic}")));
    let wanted = Wanted::from_arguments();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let mut report = Report::new(wanted.is_filtered());
    let stopped = runtime.block_on(async {
        let mut terminated = signal(SignalKind::terminate()).unwrap();
        // What is dropped by a stop takes its processes with it.
        tokio::select! {
            () = run(&mut report, &wanted) => false,
            _ = terminated.recv() => true,
            _ = tokio::signal::ctrl_c() => true,
        }
    });
    drop(runtime);
    print!("{report}");
    if stopped {
        println!("stopped");
    }
    if report.is_good() && !stopped { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

async fn run(report: &mut Report, wanted: &Wanted) {
    report.column(runner::in_kit(wanted));
    if std::env::var_os("DO_KIT_ONLY").is_none() {
        report.column(runner::run(native::Tokio, wanted).await);
    }
    match workerd::Workerd::from_environment() {
        Ok(hosts) if hosts.is_empty() => report.skipped(
            "workerd",
            "DO_WORKERD, DO_WORKER_CONTRACT and DO_WORKER_CONTRACT_ABORT are not set: see `cargo xtask workers test`",
        ),
        Ok(hosts) => {
            for host in hosts {
                report.column(runner::run(host, wanted).await);
            }
        }
        Err(problem) => report.failed("workerd", &problem),
    }
}
