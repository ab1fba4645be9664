//! Clients of feeds that others wrote: npm's, curl, and all of them behind nginx. Their tests are for Node's own runner,
//! beside the example program that serves them.

use crate::command::{Server, on_path, run, run_within};
use crate::install;
use crate::problem::{Outcome, Problem};
use crate::workers::npm;
use crate::workspace::Workspace;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

const START_LIMIT: Duration = Duration::from_secs(60);
const RUN_LIMIT: Duration = Duration::from_mins(5);

pub(crate) fn check(workspace: &Workspace) -> Outcome {
    install::curl()?;
    with_feeds(workspace, &["npm.test.js", "curl.test.js"], None)
}

/// The same through a proxy that holds back what it can.
pub(crate) fn check_nginx(workspace: &Workspace) -> Outcome {
    install::curl()?;
    let nginx = install::nginx(workspace)?;
    with_feeds(workspace, &["nginx.test.js"], Some(nginx))
}

fn with_feeds(workspace: &Workspace, tests: &[&str], nginx: Option<PathBuf>) -> Outcome {
    if !on_path("node") {
        return Err(Problem::new("node is not on PATH: install Node.js 20 or later"));
    }
    let clients = npm::clients(workspace)?;
    run(&mut workspace.cargo(&["build", "--package", "do-sse", "--example", "feeds"]))?;
    let scratch = workspace.scratch("feeds")?;
    let mut feeds = Command::new(workspace.target.join("debug/examples/feeds"));
    feeds.args(["--listen", "127.0.0.1:0", "--data"]).arg(scratch.join("data"));
    let (mut server, first_line) = Server::start(&mut feeds, START_LIMIT)?;
    let Some(addresses) = addresses(&first_line) else {
        return Err(Problem::new(format!("the feeds began with {first_line:?}")));
    };
    let mut node = Command::new("node");
    node.args(["--test", "--test-reporter=spec"]).args(tests);
    node.env("SSE_FEEDS", addresses).env("SSE_NPM", clients).env("SSE_SCRATCH", &scratch);
    if let Some(nginx) = nginx {
        node.env("SSE_NGINX", nginx);
    }
    run_within(node.current_dir(workspace.root.join("do-sse/tests/clients")), RUN_LIMIT)?;
    if server.is_running() { Ok(()) } else { Err(Problem::new("the feeds did not outlive their clients")) }
}

/// Those of the objects and of the plain server, with a space between.
fn addresses(first_line: &str) -> Option<String> {
    let (objects, plain) = first_line.strip_prefix("listening on ")?.split_once(" and ")?;
    Some(format!("{objects} {plain}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_addresses_are_found() {
        let line = "listening on http://127.0.0.1:1 and http://127.0.0.1:2";
        assert_eq!(addresses(line).unwrap(), "http://127.0.0.1:1 http://127.0.0.1:2");
        assert_eq!(addresses("listening on http://127.0.0.1:1"), None);
    }
}
