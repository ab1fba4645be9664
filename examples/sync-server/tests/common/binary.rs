//! The native server's program.

use std::path::Path;
use tokio::process::Command;

/// What its first line begins with, before its address.
pub(crate) const FIRST_LINE: &str = "listening on http://";

/// The program, with an environment that does not depend on who runs the tests.
pub(crate) fn sync_server() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sync-server"));
    command.env("NO_COLOR", "1").env_remove("RUST_LOG").kill_on_drop(true);
    command
}

/// It, serving a folder.
pub(crate) fn serve(folder: &Path, data: &Path, listen: &str) -> Command {
    let mut command = sync_server();
    command.arg(folder).args(["--listen", listen, "--data"]).arg(data);
    command
}
