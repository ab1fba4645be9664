//! `cargo xtask contract`: a suite on the hosts that are asked for, with the Workers that it needs built first. The contract
//! is one, and do-sync, do-sse and do-ttl have others.
//!
//! A suite is a test with a report of its own, and the options here are its own; its exit code is ours.

use crate::command::{announce, reserve_stdout, run as run_checked};
use crate::problem::{Doing, Outcome, Problem};
use crate::wasm::Panic;
use crate::workers::test::{CONTRACT, SSE_SUITE, SYNC_SUITE, TTL_SUITE, Wanted, build_all};
use crate::workspace::Workspace;
use lexopt::{Arg, Parser};
use std::ffi::OsString;
use std::process::{Command, ExitCode, Stdio};

/// How it is used.
pub(crate) const USAGE: &str = "\
usage: cargo xtask contract [--host HOST]... [--all [--check]] [--full] [--json] [NAME]...
       cargo xtask contract --suite sync|sse|ttl [--host HOST]... [--all] [--full] [--json] [NAME]...
       cargo xtask contract --platform [--check]
       cargo xtask contract [--suite sync|sse|ttl] --list [NAME]...

holds hosts to the rules of the platform. On standard output: for each rule pass, FAIL or skip on each host, what
failed and what was skipped, and last `N passed, N failed, N skipped`. Everything else is on standard error. The exit
code is 0 only when nothing failed.

  NAME         only the cases whose names contain it, such as d15
  --suite SUITE
               sync, sse or ttl: the cases of what do-sync, do-sse or do-ttl promises instead of the contract's; they
               have no workerd-abort, and no page
  --host HOST  kit, tokio, workerd, or workerd-abort, the Worker built so that panics abort; repeat it for several
               [default: kit and tokio]
  --all        all four; also fails where hosts differ and no documented difference says so, and writes PLATFORM.md
  --platform   writes PLATFORM.md from the suite's tables and runs nothing
  --check      writes nothing, and fails if PLATFORM.md would be written anew
  --full       also the cases that take more than 15 s on hosts whose time is real
  --json       an object on each line of standard output:
               {type: \"case\", host, case, rules, verdict: pass|fail|skip, reason, ms}, for each case on each host
               {type: \"note\"|\"problem\"|\"undocumented\", text}
               {type: \"totals\", passed, failed, skipped, undocumented, good}, last
  --list       the names of the cases";

/// The columns of the report.
const HOSTS: [&str; 4] = ["kit", "tokio", "workerd", "workerd-abort"];
/// What runs when no host is named: those for which nothing is built.
const DEFAULT: [&str; 2] = ["kit", "tokio"];
/// The features and the resolution of the checks' tests, so that nothing is compiled twice.
const TEST: [&str; 4] = ["test", "--workspace", "--all-features", "--test"];

/// A suite of cases.
#[derive(Debug, PartialEq)]
struct Suite {
    /// The name of its test.
    test: &'static str,
    /// By column, what names the folder of its Worker, and how that is built.
    workers: &'static [(&'static str, Wanted)],
    /// Whether it writes PLATFORM.md.
    has_page: bool,
}

const SUITES: [&Suite; 4] = [&RULES, &SYNC, &SSE, &TTL];

/// The contract.
static RULES: Suite = Suite {
    test: "contract",
    workers: &[
        ("workerd", ("DO_WORKER_CONTRACT", CONTRACT, Panic::Unwind, true)),
        ("workerd-abort", ("DO_WORKER_CONTRACT_ABORT", CONTRACT, Panic::Abort, true)),
    ],
    has_page: true,
};
/// That of do-sync.
static SYNC: Suite = Suite {
    test: "sync",
    workers: &[("workerd", ("DO_WORKER_SYNC_SUITE", SYNC_SUITE, Panic::Unwind, true))],
    has_page: false,
};
/// That of do-sse.
static SSE: Suite = Suite {
    test: "sse",
    workers: &[("workerd", ("DO_WORKER_SSE_SUITE", SSE_SUITE, Panic::Unwind, true))],
    has_page: false,
};
/// That of do-ttl.
static TTL: Suite = Suite {
    test: "ttl",
    workers: &[("workerd", ("DO_WORKER_TTL_SUITE", TTL_SUITE, Panic::Unwind, true))],
    has_page: false,
};

/// What is asked for.
#[derive(Debug, PartialEq)]
pub(crate) struct Contract {
    suite: &'static Suite,
    hosts: Vec<&'static str>,
    all: bool,
    platform: bool,
    check: bool,
    full: bool,
    json: bool,
    list: bool,
    names: Vec<String>,
}

/// Reads the arguments after `contract`; `None` when help is asked for.
///
/// # Errors
/// An option that does not exist, or does not go with another one; a host that does not exist.
pub(crate) fn parse(arguments: &[OsString]) -> Outcome<Option<Contract>> {
    let mut parser = Parser::from_args(arguments);
    let mut asked = Contract::of(&RULES);
    while let Some(argument) = parser.next().doing("contract")? {
        match argument {
            Arg::Short('h') | Arg::Long("help") => return Ok(None),
            Arg::Long("suite") => asked.suite = suite(&parser.value().doing("contract")?)?,
            Arg::Long("host") => {
                let host = host(&parser.value().doing("contract")?)?;
                if !asked.hosts.contains(&host) {
                    asked.hosts.push(host);
                }
            }
            Arg::Long("all") => asked.all = true,
            Arg::Long("platform") => asked.platform = true,
            Arg::Long("check") => asked.check = true,
            Arg::Long("full") => asked.full = true,
            Arg::Long("json") => asked.json = true,
            Arg::Long("list") => asked.list = true,
            Arg::Value(name) => asked.names.push(name.to_string_lossy().into_owned()),
            Arg::Short(_) | Arg::Long(_) => return Err(Problem::new(argument.unexpected().to_string())),
        }
    }
    asked.checked().map(Some)
}

fn suite(value: &OsString) -> Outcome<&'static Suite> {
    SUITES.into_iter().find(|suite| value == suite.test).ok_or_else(|| {
        let value = value.display().to_string();
        let names: Vec<_> = SUITES.iter().map(|suite| suite.test).collect();
        Problem::new(format!("no suite is named {value:?}; there are: {}", names.join(", ")))
    })
}

fn host(value: &OsString) -> Outcome<&'static str> {
    HOSTS.into_iter().find(|host| value == host).ok_or_else(|| {
        let value = value.display().to_string();
        Problem::new(format!("no host is named {value:?}; there are: {}", HOSTS.join(", ")))
    })
}

impl Contract {
    /// Nothing of a suite yet.
    fn of(suite: &'static Suite) -> Self {
        Self {
            suite,
            hosts: Vec::new(),
            all: false,
            platform: false,
            check: false,
            full: false,
            json: false,
            list: false,
            names: Vec::new(),
        }
    }

    /// All hosts, compared, with the page as it is checked in.
    fn of_checks(suite: &'static Suite) -> Self {
        Self { all: true, check: suite.has_page, ..Self::of(suite) }
    }

    fn checked(mut self) -> Outcome<Self> {
        let runs = self.all || self.full || self.json || !self.hosts.is_empty();
        if self.all && !self.hosts.is_empty() {
            return Err(Problem::new("--all is every host: it does not go with --host"));
        }
        if (self.platform || self.list) && (runs || self.platform && self.list) {
            return Err(Problem::new(
                "--platform and --list run nothing: they do not go with what is about a run",
            ));
        }
        if self.check && !self.all && !self.platform {
            return Err(Problem::new("--check is about PLATFORM.md: it goes with --all or --platform"));
        }
        if (self.platform || self.check) && !self.suite.has_page {
            return Err(Problem::new(
                "PLATFORM.md is the contract's: --platform and --check go with no other suite",
            ));
        }
        let built = |host: &&str| self.suite.workers.iter().any(|(column, _)| column == host);
        if let Some(host) = self.hosts.iter().find(|host| !DEFAULT.contains(*host) && !built(host)) {
            return Err(Problem::new(format!("the suite {} has no {host}", self.suite.test)));
        }
        if !self.all && !self.platform && !self.list && self.hosts.is_empty() {
            self.hosts = DEFAULT.to_vec();
        }
        Ok(self)
    }

    /// The Workers that it needs.
    fn workers(&self) -> Vec<Wanted> {
        let asked = self.suite.workers.iter().filter(|(host, _)| self.all || self.hosts.contains(host));
        asked.map(|(_, wanted)| *wanted).collect()
    }

    /// The suite's own arguments.
    fn arguments(&self) -> Vec<&str> {
        let flags = [
            (self.all, "--all"),
            (self.platform, "--platform"),
            (self.check, "--check"),
            (self.full, "--full"),
            (self.json, "--json"),
            (self.list, "--list"),
        ];
        let hosts = self.hosts.iter().flat_map(|host| ["--host", *host]);
        let flags = flags.into_iter().filter_map(|(is, flag)| is.then_some(flag));
        hosts.chain(flags).chain(self.names.iter().map(String::as_str)).collect()
    }

    /// The command, when what it needs is built.
    fn prepare(&self, workspace: &Workspace) -> Outcome<Command> {
        let workers = self.workers();
        let variables = if workers.is_empty() { Vec::new() } else { build_all(workspace, &workers)? };
        let mut suite = workspace.cargo(&TEST);
        suite.arg(self.suite.test).arg("--").args(self.arguments()).envs(variables);
        Ok(suite)
    }
}

/// Runs the suite; the exit code is its own.
///
/// # Errors
/// A Worker cannot be built, or the suite not be started.
pub(crate) fn run(asked: &Contract) -> Outcome<ExitCode> {
    let output = reserve_stdout().doing("standard output")?;
    let mut suite = asked.prepare(&Workspace::open()?)?;
    announce(&suite);
    let status = suite.stdout(Stdio::from(output)).status().doing("cargo")?;
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
}

/// All hosts against each other, in every suite, and PLATFORM.md as it is checked in.
pub(crate) fn check(workspace: &Workspace) -> Outcome {
    SUITES.into_iter().try_for_each(|suite| run_checked(&mut Contract::of_checks(suite).prepare(workspace)?))
}

/// What takes too long in real time for every run.
pub(crate) fn check_long(workspace: &Workspace) -> Outcome {
    SUITES.into_iter().try_for_each(|suite| {
        let hosts = suite.workers.iter().map(|(host, _)| *host).collect();
        run_checked(&mut Contract { hosts, full: true, ..Contract::of(suite) }.prepare(workspace)?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Result<Option<Contract>, String> {
        let words: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        parse(&words).map_err(|problem| problem.to_string())
    }

    #[test]
    fn options_are_read_in_any_order() {
        let kit_and_tokio = Contract { hosts: vec!["kit", "tokio"], ..Contract::of(&RULES) };
        assert_eq!(words(""), Ok(Some(kit_and_tokio)));
        let asked = Contract {
            hosts: vec!["workerd", "kit"],
            full: true,
            json: true,
            names: vec!["d15".to_owned(), "e1 ".trim().to_owned()],
            ..Contract::of(&RULES)
        };
        assert_eq!(words("d15 --host workerd --json --host=kit e1 --full --host kit"), Ok(Some(asked)));
        assert_eq!(words("--all --check"), Ok(Some(Contract::of_checks(&RULES))));
        assert_eq!(words("--suite sync --all"), Ok(Some(Contract::of_checks(&SYNC))));
        assert_eq!(words("--host kit --help"), Ok(None));
    }

    #[test]
    fn each_fault_has_its_line() {
        let no_run = "--platform and --list run nothing: they do not go with what is about a run";
        for (line, fault) in [
            ("--host deno", r#"no host is named "deno"; there are: kit, tokio, workerd, workerd-abort"#),
            ("--host", "contract: missing argument for option '--host'"),
            ("--hosts kit", "invalid option '--hosts'"),
            ("--all --host kit", "--all is every host: it does not go with --host"),
            ("--check", "--check is about PLATFORM.md: it goes with --all or --platform"),
            ("--host kit --check", "--check is about PLATFORM.md: it goes with --all or --platform"),
            ("--suite r", r#"no suite is named "r"; there are: contract, sync, sse, ttl"#),
            ("--suite sync --host workerd-abort", "the suite sync has no workerd-abort"),
            (
                "--platform --suite sync",
                "PLATFORM.md is the contract's: --platform and --check go with no other suite",
            ),
            ("--list --json", no_run),
            ("--platform --all", no_run),
            ("--platform --list", no_run),
        ] {
            assert_eq!(words(line), Err(fault.to_owned()), "{line}");
        }
    }

    #[test]
    fn the_suite_gets_what_it_was_asked_for_and_workers_only_then() {
        let asked = |line| words(line).unwrap().unwrap();
        assert_eq!(asked("d15").arguments(), ["--host", "kit", "--host", "tokio", "d15"]);
        assert!(asked("d15").workers().is_empty());
        let both = asked("--all --json --full");
        assert_eq!(both.arguments(), ["--all", "--full", "--json"]);
        assert_eq!(both.workers().len(), 2);
        let one = asked("--host workerd-abort").workers();
        assert_eq!(one, [("DO_WORKER_CONTRACT_ABORT", CONTRACT, Panic::Abort, true)]);
        assert_eq!(asked("--platform --check").arguments(), ["--platform", "--check"]);
        assert!(asked("--list a1").workers().is_empty());
        let sync = asked("--host workerd --suite sync r3");
        assert_eq!(sync.workers(), [("DO_WORKER_SYNC_SUITE", SYNC_SUITE, Panic::Unwind, true)]);
        assert_eq!(sync.arguments(), ["--host", "workerd", "r3"]);
        let sse = asked("--suite sse --host workerd --host kit").workers();
        assert_eq!(sse, [("DO_WORKER_SSE_SUITE", SSE_SUITE, Panic::Unwind, true)]);
        let ttl = asked("--suite ttl --host workerd t3").workers();
        assert_eq!(ttl, [("DO_WORKER_TTL_SUITE", TTL_SUITE, Panic::Unwind, true)]);
    }
}
