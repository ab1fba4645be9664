//! Running programs: said before, streamed while, judged by the exit code after.

use crate::problem::{Doing, Outcome, Problem};
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

/// How often a program with a time limit is looked at.
const POLL: Duration = Duration::from_millis(100);

/// Prints the command and runs it; its output goes where ours goes.
///
/// # Errors
/// It could not be started, or did not exit with 0.
pub(crate) fn run(command: &mut Command) -> Outcome {
    announce(command);
    let status = command.status().doing(format_args!("cannot start {}", program(command)))?;
    if status.success() { Ok(()) } else { Err(Problem::new(format!("`{}`: {status}", line(command)))) }
}

/// As [`run`], and kills the program when `limit` is over.
///
/// # Errors
/// Also when the time was not enough.
pub(crate) fn run_within(command: &mut Command, limit: Duration) -> Outcome {
    announce(command);
    let child = command.spawn().doing(format_args!("cannot start {}", program(command)))?;
    let mut child = Server(child); // so that it ends when the time is over
    let until = Instant::now() + limit;
    loop {
        match child.0.try_wait().doing(line(command))? {
            Some(status) if status.success() => return Ok(()),
            Some(status) => return Err(Problem::new(format!("`{}`: {status}", line(command)))),
            None if Instant::now() >= until => {
                return Err(Problem::new(format!("`{}`: not done after {limit:?}", line(command))));
            }
            None => thread::sleep(POLL),
        }
    }
}

/// Prints the command and starts it, to run beside others.
///
/// # Errors
/// It could not be started.
pub(crate) fn begin(command: &mut Command) -> Outcome<Running> {
    announce(command);
    let child = command.spawn().doing(format_args!("cannot start {}", program(command)))?;
    Ok(Running { child: Server(child), line: line(command) })
}

/// A program that runs beside others; dropping this kills it.
#[derive(Debug)]
pub(crate) struct Running {
    child: Server,
    line: String,
}

impl Running {
    /// Waits for its end.
    ///
    /// # Errors
    /// It did not exit with 0.
    pub(crate) fn finish(mut self) -> Outcome {
        let status = self.child.0.wait().doing(&self.line)?;
        if status.success() { Ok(()) } else { Err(Problem::new(format!("`{}`: {status}", self.line))) }
    }
}

/// Runs a command without saying so and returns what it wrote on standard output.
///
/// # Errors
/// It could not be started, did not exit with 0, or did not write UTF-8. The problem has its standard error.
pub(crate) fn capture(command: &mut Command) -> Outcome<String> {
    let output = command.output().doing(format_args!("cannot start {}", program(command)))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(Problem::new(format!("`{}`: {}\n{said}", line(command), output.status)));
    }
    String::from_utf8(output.stdout).doing(line(command))
}

/// Whether a program of this name is on `PATH`.
pub(crate) fn on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| is_program(&folder.join(program)))
}

/// Whether a file that can be run is there.
pub(crate) fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

/// A program that serves while a check runs; dropping this kills it, whatever happened to the check.
#[derive(Debug)]
pub(crate) struct Server(Child);

impl Server {
    /// Starts the command and waits for its first line on standard output; what follows is passed on.
    ///
    /// # Errors
    /// It could not be started, ended before its first line, or did not write one within `limit`.
    pub(crate) fn start(command: &mut Command, limit: Duration) -> Outcome<(Self, String)> {
        announce(command);
        let child = command.stdout(Stdio::piped()).spawn();
        let mut server = Self(child.doing(format_args!("cannot start {}", program(command)))?);
        let Some(output) = server.0.stdout.take() else {
            return Err(Problem::new("standard output is not a pipe"));
        };
        let (first, received) = mpsc::sync_channel(1);
        // Never joined: it ends with the program, and reading on keeps the program from blocking on a full pipe.
        thread::spawn(move || {
            let mut output = BufReader::new(output);
            let mut line = String::new();
            let read = output.read_line(&mut line);
            if matches!(read, Ok(n) if n > 0) && first.send(line).is_ok() {
                let _ = std::io::copy(&mut output, &mut std::io::stdout());
            }
        });
        match received.recv_timeout(limit) {
            Ok(line) => Ok((server, line.trim_end().to_owned())),
            Err(RecvTimeoutError::Timeout) => {
                Err(Problem::new(format!("`{}` wrote no line within {limit:?}", line(command))))
            }
            Err(RecvTimeoutError::Disconnected) => {
                Err(Problem::new(format!("`{}` ended before its first line", line(command))))
            }
        }
    }

    /// Whether the program still runs.
    pub(crate) fn is_running(&mut self) -> bool {
        matches!(self.0.try_wait(), Ok(None))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Both fail only when it has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Standard output for the caller alone: from now on everybody else's, such as cargo's, goes to standard error.
///
/// # Errors
/// One of the two is closed.
pub(crate) fn reserve_stdout() -> std::io::Result<File> {
    let ours = std::io::stdout().as_fd().try_clone_to_owned()?;
    rustix::stdio::dup2_stdout(std::io::stderr())?;
    Ok(File::from(ours))
}

/// Prints the command as one would type it.
pub(crate) fn announce(command: &Command) {
    println!("$ {}", line(command));
    // The program writes to the same place through its own descriptor.
    let _ = std::io::stdout().flush();
}

/// The program's name; the cargo that runs us by its short one, as one would type it.
fn program(command: &Command) -> String {
    let program = command.get_program();
    let ours = std::env::var_os("CARGO").is_some_and(|cargo| cargo == program);
    if ours { "cargo".to_owned() } else { program.to_string_lossy().into_owned() }
}

/// The command as one would type it, with the variables set for it; for reading, not for a shell.
fn line(command: &Command) -> String {
    let mut words: Vec<String> = Vec::new();
    for (name, value) in command.get_envs() {
        if let Some(value) = value {
            words.push(format!("{}={}", name.to_string_lossy(), value.to_string_lossy()));
        }
    }
    words.push(program(command));
    words.extend(command.get_args().map(|argument| argument.to_string_lossy().into_owned()));
    let quote = |word: &String| if word.contains(' ') { format!("'{word}'") } else { word.clone() };
    words.iter().map(quote).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn an_exit_code_is_a_problem() {
        assert!(run(&mut shell("exit 0")).is_ok());
        assert_eq!(run(&mut shell("exit 3")).unwrap_err().to_string(), "`sh -c 'exit 3'`: exit status: 3");
        assert!(capture(&mut shell("echo no >&2; exit 1")).unwrap_err().to_string().ends_with("no\n"));
    }

    #[test]
    fn what_runs_beside_is_judged_at_its_end() {
        assert!(begin(&mut shell("exit 0")).unwrap().finish().is_ok());
        let problem = begin(&mut shell("exit 3")).unwrap().finish().unwrap_err();
        assert_eq!(problem.to_string(), "`sh -c 'exit 3'`: exit status: 3");
    }

    #[test]
    fn a_time_limit_ends_the_program() {
        let problem = run_within(&mut shell("exec sleep 600"), Duration::from_millis(1)).unwrap_err();
        assert!(problem.to_string().contains("not done after"), "{problem}");
    }

    #[test]
    fn a_server_gives_its_first_line_and_dies_with_its_handle() {
        let (mut server, line) =
            Server::start(&mut shell("echo listening; exec sleep 600"), Duration::from_secs(60)).unwrap();
        assert_eq!(line, "listening");
        assert!(server.is_running());
        let process = format!("/proc/{}", server.0.id());
        drop(server);
        assert!(!Path::new(&process).exists());
    }

    #[test]
    fn a_server_that_ends_at_once_is_a_problem() {
        let problem = Server::start(&mut shell("exit 1"), Duration::from_secs(60)).unwrap_err();
        assert_eq!(problem.to_string(), "`sh -c 'exit 1'` ended before its first line");
    }
}
