//! The tests that need Workers: what they serve is built here, and they are told where it lies.

use super::build::{self, DEFAULT_CRATE, Plan};
use super::npm;
use crate::command::run;
use crate::install;
use crate::problem::Outcome;
use crate::wasm::Panic;
use crate::workspace::Workspace;
use std::path::PathBuf;

/// Where the tests find the runtime.
const WORKERD: &str = "DO_WORKERD";
/// The objects of the contract suite, and what evicts them.
pub(crate) const CONTRACT: &str = "do-core/tests/worker";
/// The objects of the suite of do-sync.
pub(crate) const SYNC_SUITE: &str = "do-sync/suite";
/// The objects of the suite of do-sse.
pub(crate) const SSE_SUITE: &str = "do-sse/suite";
/// The objects of the suite of do-ttl.
pub(crate) const TTL_SUITE: &str = "do-ttl/suite";

/// A Worker for tests: the variable that names the folder, the crate, the kind of panic, and whether it is a test build.
pub(crate) type Wanted = (&'static str, &'static str, Panic, bool);

const WORKERS: [Wanted; 6] = [
    (SYNC, DEFAULT_CRATE, Panic::Unwind, false),
    (SYNC_ABORT, DEFAULT_CRATE, Panic::Abort, false),
    (PULSE, "examples/three-jobs", Panic::Unwind, false),
    (CHAT, "examples/chat", Panic::Unwind, false),
    (BUILD_LOG, "examples/build-log", Panic::Unwind, false),
    (INVITE_CODES, "examples/invite-codes", Panic::Unwind, false),
];

/// Package and test, and which of the two sync servers it speaks with.
const TESTS: [(&str, &str, Panic); 7] = [
    ("build-log", "worker", Panic::Unwind),
    ("chat", "worker", Panic::Unwind),
    ("invite-codes", "worker", Panic::Unwind),
    ("pulse", "worker", Panic::Unwind),
    ("sync-server", "worker", Panic::Unwind),
    ("sync-server", "worker", Panic::Abort),
    ("sync-server", "browser", Panic::Unwind),
];
/// The sync server that the tests speak with.
const SYNC: &str = "DO_WORKER_SYNC";
/// The same, built so that panics abort.
const SYNC_ABORT: &str = "DO_WORKER_SYNC_ABORT";
/// The example with three jobs.
const PULSE: &str = "DO_WORKER_PULSE";
/// The chat.
const CHAT: &str = "DO_WORKER_CHAT";
/// The build logs.
const BUILD_LOG: &str = "DO_WORKER_BUILD_LOG";
/// The invite codes.
const INVITE_CODES: &str = "DO_WORKER_INVITE_CODES";

/// Builds Workers, and gives the variables with which tests find them and the runtime.
///
/// # Errors
/// As [`build::build`].
pub(crate) fn build_all(workspace: &Workspace, wanted: &[Wanted]) -> Outcome<Vec<(&'static str, PathBuf)>> {
    let mut variables = vec![(WORKERD, npm::tools(workspace, false)?.workerd)];
    for (variable, folder, panic, testing) in wanted {
        let member = build::member(workspace, &workspace.root.join(folder))?;
        let mut plan = Plan::new(workspace, member, *panic, *testing);
        plan.dev = true; // nothing here measures
        variables.push((variable, build::build(workspace, &plan)?.folder));
    }
    Ok(variables)
}

/// Builds and tests the examples. The suites, which need Workers too, are a check of their own.
///
/// # Errors
/// A build or a test fails.
pub(crate) fn test(workspace: &Workspace) -> Outcome {
    install::browser()?;
    let mut variables = build_all(workspace, &WORKERS)?;
    variables.push(("BROWSER_ARTIFACTS", workspace.scratch("browser-worker")?));
    for (package, name, panic) in TESTS {
        let mut test = workspace.cargo(&["test", "--package", package, "--test", name]);
        test.envs(variables.iter().map(|(name, value)| (name, value)));
        let abort = variables.iter().find(|(name, _)| *name == SYNC_ABORT);
        if let (Panic::Abort, Some((_, folder))) = (panic, abort) {
            test.env(SYNC, folder);
        }
        run(&mut test)?;
    }
    Ok(())
}
