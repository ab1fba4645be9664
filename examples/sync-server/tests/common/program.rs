//! A program that a test runs: the server of either host, or a browser's driver.

use std::{process::Stdio, time::Duration};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, Command},
    task::JoinHandle,
    time::timeout,
};

/// A program that has not said a word after this long never will.
const START: Duration = Duration::from_secs(60);

/// A running program. Killed when dropped.
pub(crate) struct Program {
    pub(crate) child: Child,
    /// The line of standard output that was waited for.
    pub(crate) line: String,
    /// Reads the lines after it, because a program that writes on must not find its pipe full or closed.
    pub(crate) rest: JoinHandle<Vec<String>>,
}

impl Program {
    /// Starts it and reads its standard output up to the first line that contains `wanted`.
    ///
    /// # Errors
    /// It cannot be started, or does not write such a line.
    pub(crate) async fn start(command: &mut Command, wanted: &str) -> Result<Self, String> {
        let spawned = command.stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true).spawn();
        let mut child = spawned.map_err(|error| format!("it cannot be started: {error}"))?;
        let mut lines = BufReader::new(child.stdout.take().ok_or("no pipe")?).lines();
        let read = async {
            loop {
                match lines.next_line().await {
                    Ok(Some(line)) if line.contains(wanted) => return Ok(line),
                    Ok(Some(_)) => {}
                    Ok(None) => return Err(format!("it ended without a line with {wanted:?}")),
                    Err(error) => return Err(format!("its output cannot be read: {error}")),
                }
            }
        };
        let line = timeout(START, read).await.map_err(|_| format!("it wrote no {wanted:?}"))??;
        let rest = tokio::spawn(async move {
            let mut rest = Vec::new();
            while let Ok(Some(line)) = lines.next_line().await {
                rest.push(line);
            }
            rest
        });
        Ok(Self { child, line, rest })
    }

    /// As `kill -9` does.
    ///
    /// # Errors
    /// The system refuses.
    pub(crate) async fn kill(mut self) -> std::io::Result<()> {
        self.rest.abort();
        self.child.kill().await
    }
}
