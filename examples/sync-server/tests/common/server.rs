//! A running server of either host.

use super::{Answer, Http, JSON, Program, created, request, within};
use serde_json::Value;
use std::{fs, net::SocketAddr, path::PathBuf, process::ExitStatus};
use tempfile::TempDir;
use tokio::process::Command;

/// A running server. Killed when dropped. How it is started, ended and looked into is each host's own.
pub(crate) struct Server {
    pub(crate) program: Program,
    pub(crate) address: SocketAddr,
    /// Standard error goes to a file: what the server has written can be read at once, without a race with a pipe.
    log: PathBuf,
    _logs: TempDir,
}

impl Server {
    /// Starts it; `address` finds where it listens in the first line that contains `wanted`.
    pub(crate) async fn launch(
        command: &mut Command,
        wanted: &str,
        address: impl FnOnce(&str) -> Option<SocketAddr>,
    ) -> Self {
        let logs = tempfile::tempdir().unwrap();
        let log = logs.path().join("stderr");
        command.stderr(fs::File::create(&log).unwrap());
        let program = Program::start(command, wanted).await;
        let program =
            program.unwrap_or_else(|error| panic!("{error}: {}", fs::read_to_string(&log).unwrap()));
        let mut address = address(&program.line).expect(&program.line);
        if address.ip().is_unspecified() {
            address.set_ip([127, 0, 0, 1].into());
        }
        Self { program, address, log, _logs: logs }
    }

    /// Sends a request with the right `Host` and gives the answer.
    pub(crate) async fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        let host = self.address.to_string();
        let mut all = vec![("host", host.as_str())];
        all.extend(headers);
        let mut http = Http::connect(self.address).await;
        http.send(request(method, path, &all, body).as_bytes()).await.unwrap();
        within("an answer", http.answer(method)).await.unwrap()
    }

    /// Reports changes; gives the status and the JSON of the answer.
    pub(crate) async fn notify(&self, body: &str) -> (u16, Value) {
        let answer = self.ask("POST", "/notify", &[JSON], body).await;
        (answer.status, answer.json())
    }

    /// Reports one change and gives its number.
    pub(crate) async fn notify_created(&self, path: &str) -> i64 {
        let (status, answer) = self.notify(&created(path)).await;
        assert_eq!(status, 200, "{answer}");
        answer["seq"].as_i64().unwrap()
    }

    /// What it wrote to standard error.
    pub(crate) fn log(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.log).unwrap()).into_owned()
    }

    /// How many files and connections it has open.
    #[cfg(target_os = "linux")]
    pub(crate) fn open_files(&self) -> usize {
        let id = self.program.child.id().expect("it runs");
        fs::read_dir(format!("/proc/{id}/fd")).unwrap().count()
    }

    /// Asks it to end, as a service manager does.
    pub(crate) fn terminate(&self) {
        let id = self.program.child.id().expect("it runs");
        // The shell's own: a package with `kill` may be missing.
        let sent = std::process::Command::new("sh").arg("-c").arg(format!("kill -TERM {id}")).status();
        assert!(sent.unwrap().success());
    }

    /// Waits until it ends by itself; gives what it wrote to standard output after the first line, too.
    pub(crate) async fn ended(&mut self) -> (ExitStatus, Vec<String>) {
        let status = within("the server ends", self.program.child.wait()).await.unwrap();
        (status, (&mut self.program.rest).await.unwrap())
    }

    /// As `kill -9` does.
    pub(crate) async fn kill(self) {
        self.program.kill().await.unwrap();
    }
}
