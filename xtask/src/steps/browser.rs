//! The page in headless Chromium. The test is an ordinary one of sync-server that plain `cargo test` leaves out,
//! because it needs a browser; here the browser is installed first and the test always runs.

use crate::command::run;
use crate::install;
use crate::problem::Outcome;
use crate::workspace::Workspace;

pub(crate) fn check(workspace: &Workspace) -> Outcome {
    install::browser()?;
    let artifacts = workspace.scratch("browser")?;
    let mut test = workspace.cargo(&["test", "--package", "sync-server", "--test", "browser"]);
    run(test.env("BROWSER_ARTIFACTS", artifacts))
}
