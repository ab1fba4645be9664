//! The runtime as a child: started, waited for, ended. It never outlives us.

use super::{capnp, control};
use crate::command::{announce, on_path};
use crate::problem::{Doing, Outcome, Problem};
use rustix::process::{Pid, Signal, kill_process};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender};
use std::thread;
use std::time::{Duration, Instant};

/// From the start to the first socket.
const START_LIMIT: Duration = Duration::from_secs(60);
/// How long requests under way may take at the end: workerd waits for them, and for ever for one that hangs.
const GRACE: Duration = Duration::from_secs(2);
/// How often it is looked at.
const POLL: Duration = Duration::from_millis(50);

/// What is told to the thread that runs it.
#[derive(Debug)]
pub(crate) enum Event {
    /// It serves on this port.
    Listens(u16),
    /// A signal asks us to end.
    AskedToEnd,
}

/// A running workerd; dropping this kills it.
#[derive(Debug)]
pub(crate) struct Workerd(Child);

impl Workerd {
    /// Starts it. Its output and the Worker's log go to our standard error.
    ///
    /// It gets `in_use`, the lock on its data, as its standard input, which it does not read: so the lock lasts as long
    /// as it does, even when it should outlive us.
    ///
    /// # Errors
    /// It cannot be started.
    pub(crate) fn start(
        program: &Path,
        config: &Path,
        listen: SocketAddr,
        data: &Path,
        in_use: File,
        events: SyncSender<Event>,
    ) -> Outcome<Self> {
        // The shell makes descriptor 3 of our pipe and leaves; the Worker's log cannot get between its messages then.
        let mut command = Command::new("sh");
        command.args(["-c", r#"exec "$@" 3>&1 1>&2"#, "sh"]);
        if on_path("setpriv") {
            // Ends it when we are killed and cannot.
            command.args(["setpriv", "--pdeathsig", "KILL"]);
        }
        command.arg(program).arg("serve").arg(config).args([capnp::CONSTANT, "--control-fd=3"]);
        command.arg(format!("--socket-addr={}={listen}", capnp::SOCKET));
        let mut folder = std::ffi::OsString::from(format!("--directory-path={}=", capnp::DATA));
        folder.push(data);
        command.arg(folder);
        announce(&command);
        // In a group of its own the Ctrl-C of a terminal reaches us alone, and we end it as we want.
        command.stdin(in_use).stdout(Stdio::piped()).process_group(0);
        let mut workerd = Self(command.spawn().doing("cannot start sh")?);
        let Some(control) = workerd.0.stdout.take() else {
            return Err(Problem::new("the control descriptor is not a pipe"));
        };
        // Never joined: it ends with workerd.
        thread::spawn(move || read_control(control, &events));
        Ok(workerd)
    }

    /// The port that it serves on; `None` when we are asked to end before it does.
    ///
    /// # Errors
    /// It ended, or does not serve in time.
    pub(crate) fn wait_for_port(&mut self, events: &Receiver<Event>) -> Outcome<Option<u16>> {
        let until = Instant::now() + START_LIMIT;
        loop {
            match events.recv_timeout(POLL) {
                Ok(Event::Listens(port)) => return Ok(Some(port)),
                Ok(Event::AskedToEnd) => return Ok(None),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => self.must_run()?,
            }
            if Instant::now() >= until {
                return Err(Problem::new(format!("workerd does not serve after {START_LIMIT:?}")));
            }
        }
    }

    /// Lets it serve until we are asked to end.
    ///
    /// # Errors
    /// It ended by itself.
    pub(crate) fn watch(mut self, events: &Receiver<Event>) -> Outcome {
        loop {
            match events.recv_timeout(POLL) {
                Ok(Event::AskedToEnd) => return self.stop(),
                Ok(Event::Listens(_)) => {}
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    if let Err(ended) = self.must_run() {
                        // Who ends a group of processes ends it and us: then this was no accident.
                        return match events.recv_timeout(POLL) {
                            Ok(Event::AskedToEnd) => Ok(()),
                            _ => Err(ended),
                        };
                    }
                }
            }
        }
    }

    /// Asks it to end, and ends it when it does not.
    ///
    /// # Errors
    /// The system does not say whether it has ended.
    pub(crate) fn stop(mut self) -> Outcome {
        let until = Instant::now() + GRACE;
        if let Ok(Some(pid)) = i32::try_from(self.0.id()).map(Pid::from_raw) {
            // Fails only when it has ended already; its number is not given away before it is waited for.
            let _ = kill_process(pid, Signal::TERM);
        }
        while self.ended()?.is_none() && Instant::now() < until {
            thread::sleep(POLL);
        }
        Ok(()) // dropping kills it
    }

    fn must_run(&mut self) -> Outcome {
        match self.ended()? {
            None => Ok(()),
            Some(status) => Err(Problem::new(format!("workerd ended by itself: {status}"))),
        }
    }

    fn ended(&mut self) -> Outcome<Option<ExitStatus>> {
        self.0.try_wait().doing("workerd")
    }
}

impl Drop for Workerd {
    fn drop(&mut self) {
        // Both fail only when it has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Passes on where it listens, and reads on, so that it never blocks on a full pipe.
fn read_control(control: ChildStdout, events: &SyncSender<Event>) {
    for line in BufReader::new(control).lines().map_while(Result::ok) {
        if let Some(port) = control::port(&line, capnp::SOCKET) {
            let _ = events.send(Event::Listens(port)); // fails when nobody waits any more
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;
    use std::sync::mpsc;
    use tempfile::TempDir;

    const LISTENS: &str = r#"echo '{"event":"listen","socket":"http","port":7}' >&3; echo log;"#;

    /// A program in place of workerd that runs this script, how to tell us something, and the folder of its data.
    fn start(script: &str) -> (Workerd, SyncSender<Event>, Receiver<Event>, TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("config");
        std::fs::write(&config, script).unwrap();
        let program = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src/workers/stand-in.sh");
        let (sender, events) = mpsc::sync_channel(1);
        let listen = "127.0.0.1:0".parse().unwrap();
        let lock = File::open(&config).unwrap();
        let workerd = Workerd::start(&program, &config, listen, folder.path(), lock, sender.clone()).unwrap();
        (workerd, sender, events, folder)
    }

    fn process(workerd: &Workerd) -> PathBuf {
        PathBuf::from(format!("/proc/{}", workerd.0.id()))
    }

    #[test]
    fn it_serves_until_it_is_asked_to_end() {
        let (mut workerd, sender, events, _folder) = start(&format!("{LISTENS} exec sleep 600"));
        assert_eq!(workerd.wait_for_port(&events).unwrap(), Some(7));
        let process = process(&workerd);
        assert!(process.exists());
        sender.send(Event::AskedToEnd).unwrap();
        workerd.watch(&events).unwrap();
        assert!(!process.exists());
    }

    #[test]
    fn it_is_killed_when_it_does_not_end() {
        let (mut workerd, _sender, events, _folder) =
            start(&format!("trap '' TERM; {LISTENS} while :; do sleep 1; done"));
        workerd.wait_for_port(&events).unwrap();
        let process = process(&workerd);
        workerd.stop().unwrap();
        assert!(!process.exists());
    }

    #[test]
    fn its_own_end_is_a_problem() {
        let (mut workerd, _sender, events, _folder) = start("exit 3");
        let problem = workerd.wait_for_port(&events).unwrap_err();
        assert_eq!(problem.to_string(), "workerd ended by itself: exit status: 3");
        let script = format!("{LISTENS} until [ -e \"$2.end\" ]; do sleep 0.01; done; exit 4");
        let (mut workerd, _sender, events, folder) = start(&script);
        workerd.wait_for_port(&events).unwrap();
        std::fs::write(folder.path().join("config.end"), "").unwrap();
        assert_eq!(
            workerd.watch(&events).unwrap_err().to_string(),
            "workerd ended by itself: exit status: 4"
        );
    }

    #[test]
    fn a_wish_to_end_before_it_serves_is_no_problem() {
        let (mut workerd, sender, events, _folder) = start("exec sleep 600");
        sender.send(Event::AskedToEnd).unwrap();
        assert_eq!(workerd.wait_for_port(&events).unwrap(), None);
        workerd.stop().unwrap();
    }
}
