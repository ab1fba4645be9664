//! The tests that need Workers: what they serve is built here, and they are told where it lies.

use super::build::{self, DEFAULT_CRATE, Plan};
use super::npm;
use crate::command::run;
use crate::install;
use crate::problem::Outcome;
use crate::wasm::Panic;
use crate::workspace::Workspace;

/// Where the tests find the runtime.
const WORKERD: &str = "DO_WORKERD";
/// The objects of the contract suite, and what evicts them.
const CONTRACT: &str = "do-core/tests/worker";

/// The Workers: the variable that names the folder, the crate, the kind of panic, and whether it is a test build.
const WORKERS: [(&str, &str, Panic, bool); 4] = [
    ("DO_WORKER_CONTRACT", CONTRACT, Panic::Unwind, true),
    (SYNC, DEFAULT_CRATE, Panic::Unwind, false),
    ("DO_WORKER_CONTRACT_ABORT", CONTRACT, Panic::Abort, true),
    (SYNC_ABORT, DEFAULT_CRATE, Panic::Abort, false),
];

/// The tests, as arguments of `cargo test`, and which of the two sync servers they speak with.
const TESTS: [(&[&str], Panic); 4] = [
    (&["--package", "do-core", "--features", "tokio,testing", "--test", "contract"], Panic::Unwind),
    (&["--package", "sync-server", "--test", "worker"], Panic::Unwind),
    (&["--package", "sync-server", "--test", "worker"], Panic::Abort),
    (&["--package", "sync-server", "--test", "browser"], Panic::Unwind),
];
/// The sync server that the tests speak with.
const SYNC: &str = "DO_WORKER_SYNC";
/// The same, built so that panics abort.
const SYNC_ABORT: &str = "DO_WORKER_SYNC_ABORT";

/// Builds and tests.
///
/// # Errors
/// A build or a test fails.
pub(crate) fn test(workspace: &Workspace) -> Outcome {
    install::browser()?;
    let mut variables = vec![(WORKERD, npm::tools(workspace, false)?.workerd)];
    for (variable, folder, panic, testing) in WORKERS {
        let member = build::member(workspace, &workspace.root.join(folder))?;
        let mut plan = Plan::new(workspace, member, panic, testing);
        plan.dev = true; // nothing here measures
        variables.push((variable, build::build(workspace, &plan)?.folder));
    }
    variables.push(("BROWSER_ARTIFACTS", workspace.scratch("browser-worker")?));
    for (arguments, panic) in TESTS {
        let mut test = workspace.cargo(&["test"]);
        test.args(arguments).envs(variables.iter().map(|(name, value)| (name, value)));
        let abort = variables.iter().find(|(name, _)| *name == SYNC_ABORT);
        if let (Panic::Abort, Some((_, folder))) = (panic, abort) {
            test.env(SYNC, folder);
        }
        run(&mut test)?;
    }
    Ok(())
}
