//! A server as a process, and what the system says about it.

use super::Outcome;
use std::{process::Stdio, time::Duration};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout, Command},
};

/// A running server; it ends when this is dropped.
#[derive(Debug)]
pub struct Server {
    child: Child,
    input: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
    /// Where it listens.
    pub address: String,
}

impl Server {
    /// Starts this program once more as `serve CONTENDER [SEND BUFFER]`.
    ///
    /// # Errors
    /// When it does not start.
    pub async fn start(contender: &str, send_buffer: Option<u32>) -> Outcome<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("serve").arg(contender).args(send_buffer.map(|bytes| bytes.to_string()));
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true).spawn()?;
        let input = child.stdin.take().ok_or("no input")?;
        let mut lines = BufReader::new(child.stdout.take().ok_or("no output")?).lines();
        let address = lines.next_line().await?.ok_or("the server did not start")?;
        Ok(Self { child, input, lines, address })
    }

    /// How many deliveries it gave up so far.
    ///
    /// # Errors
    /// When it has ended.
    pub async fn drops(&mut self) -> Outcome<u64> {
        self.input.write_all(b"drops\n").await?;
        Ok(self.lines.next_line().await?.ok_or("the server has ended")?.parse()?)
    }

    /// CPU time of all its threads, in user and kernel mode. The kernel's part includes what it does for the receiver
    /// on a loopback connection while the sender's call runs.
    ///
    /// # Errors
    /// When it has ended.
    pub fn cpu(&self) -> Outcome<Duration> {
        let stat = self.proc("stat")?;
        // The name, in brackets, may hold anything.
        let rest = stat.rsplit_once(')').ok_or("no name in stat")?.1;
        let mut ticks = 0;
        for field in rest.split_whitespace().skip(11).take(2) {
            ticks += field.parse::<u64>()?;
        }
        Ok(Duration::from_millis(ticks * 1_000 / rustix::param::clock_ticks_per_second()))
    }

    /// Resident memory in bytes.
    ///
    /// # Errors
    /// When it has ended.
    pub fn resident(&self) -> Outcome<u64> {
        let status = self.proc("status")?;
        let line = status.lines().find_map(|l| l.strip_prefix("VmRSS:")).ok_or("no VmRSS")?;
        let kib: u64 = line.split_whitespace().next().ok_or("no figure")?.parse()?;
        Ok(kib * 1_024)
    }

    fn proc(&self, file: &str) -> Outcome<String> {
        let id = self.child.id().ok_or("the server has ended")?;
        Ok(std::fs::read_to_string(format!("/proc/{id}/{file}"))?)
    }
}

/// The machine's load average of the last minute.
#[must_use]
pub fn load() -> String {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    load.split(' ').next().unwrap_or_default().to_owned()
}
