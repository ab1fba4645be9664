//! The clients and the pages in headless Chromium. The tests are ordinary ones that plain `cargo test` leaves out,
//! because they need a browser; here the browser is installed first and they always run.

use crate::command::run;
use crate::install;
use crate::problem::Outcome;
use crate::workspace::Workspace;

/// Those with a test `browser`.
const PACKAGES: [&str; 5] = ["build-log", "chat", "do-sse", "do-sync", "sync-server"];

pub(crate) fn check(workspace: &Workspace) -> Outcome {
    install::browser()?;
    let artifacts = workspace.scratch("browser")?;
    for package in PACKAGES {
        let mut test = workspace.cargo(&["test", "--package", package, "--test", "browser"]);
        run(test.env("BROWSER_ARTIFACTS", &artifacts))?;
    }
    Ok(())
}
