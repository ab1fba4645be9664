//! Conformance from outside: the Autobahn cases against an object that echoes, over the real host and real TCP.

use crate::command::{Server, run, run_within};
use crate::install;
use crate::problem::{Doing, Outcome, Problem};
use crate::workspace::Workspace;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::process::Command;
use std::time::Duration;

/// Groups 1 to 7, 9 and 10. Fewer means that a group was not run.
const CASES: usize = 301;
/// Compression (groups 12 and 13), which the host does not offer.
const EXCLUDED: [&str; 2] = ["12.*", "13.*"];
const START_LIMIT: Duration = Duration::from_secs(60);
const RUN_LIMIT: Duration = Duration::from_mins(10);

pub(crate) fn check(workspace: &Workspace) -> Outcome {
    let kosoku = install::kosoku(workspace)?;
    run(&mut workspace.cargo(&[
        "build",
        "--package",
        "do-core",
        "--example",
        "echo",
        "--features",
        "tokio",
    ]))?;
    let folder = workspace.scratch("autobahn")?;
    std::fs::remove_dir_all(&folder).doing(folder.display())?; // an old report must not pass for a new one
    let data = workspace.scratch("autobahn/data")?;

    let mut echo = Command::new(workspace.target.join("debug/examples/echo"));
    echo.args(["--listen", "127.0.0.1:0", "--data"]).arg(&data);
    let (mut server, first_line) = Server::start(&mut echo, START_LIMIT)?;
    let Some(address) = first_line.strip_prefix("listening on http://") else {
        return Err(Problem::new(format!("the echo server began with {first_line:?}")));
    };

    let mut client = Command::new(kosoku);
    client.args(["-m", "fuzzingclient", "-p", "2"]).args(EXCLUDED.iter().flat_map(|group| ["-x", group]));
    client.arg("-o").arg(&folder).arg(address);
    let ran = run_within(&mut client, RUN_LIMIT);
    let alive = server.is_running();
    drop(server);

    let index = folder.join("index.json");
    let Ok(report) = std::fs::read_to_string(&index) else {
        return ran.and(Err(Problem::new(format!("there is no report in {}", index.display()))));
    };
    let tally = Tally::read(&report)?;
    println!("{tally}");
    tally.judge()?;
    ran?;
    if alive { Ok(()) } else { Err(Problem::new("the echo server did not outlive the cases")) }
}

/// The report, counted.
#[derive(Debug, Default)]
struct Tally {
    cases: usize,
    /// By the worse of a case's two verdicts, so that each case counts once.
    counts: BTreeMap<String, usize>,
    /// Cases with a verdict that is neither OK nor informational, as `id behavior / behaviorClose`.
    offending: Vec<String>,
}

impl Tally {
    /// # Errors
    /// This is not a report of one agent.
    fn read(report: &str) -> Outcome<Self> {
        let report: Value = serde_json::from_str(report).doing("index.json")?;
        let agents = report.as_object().filter(|agents| agents.len() == 1);
        let Some(cases) = agents.and_then(|agents| agents.values().next()).and_then(Value::as_object) else {
            return Err(Problem::new("index.json does not report one agent"));
        };
        let mut tally = Self { cases: cases.len(), ..Self::default() };
        for (id, case) in cases {
            let verdict = |key: &str| case.get(key).and_then(Value::as_str).unwrap_or("MISSING");
            let (behavior, close) = (verdict("behavior"), verdict("behaviorClose"));
            let worse = if severity(close) > severity(behavior) { close } else { behavior };
            *tally.counts.entry(worse.to_owned()).or_default() += 1;
            if severity(worse) > severity("INFORMATIONAL") {
                tally.offending.push(format!("{id}: {behavior}, close {close}"));
            }
        }
        Ok(tally)
    }

    /// # Errors
    /// A case is missing, or one is not as strict as the protocol asks.
    fn judge(&self) -> Outcome {
        if !self.offending.is_empty() {
            return Err(Problem::new(format!(
                "{} of {} cases:\n  {}",
                self.offending.len(),
                self.cases,
                self.offending.join("\n  ")
            )));
        }
        if self.cases != CASES {
            return Err(Problem::new(format!("{} cases were run, not {CASES}", self.cases)));
        }
        Ok(())
    }
}

/// How bad a verdict is; one that is not known is the worst.
fn severity(verdict: &str) -> usize {
    ["OK", "INFORMATIONAL", "NON-STRICT"].iter().position(|known| *known == verdict).unwrap_or(usize::MAX)
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = |verdict: &str| self.counts.get(verdict).copied().unwrap_or(0);
        let known = count("OK") + count("INFORMATIONAL") + count("NON-STRICT");
        write!(f, "OK {}, INFORMATIONAL {}, ", count("OK"), count("INFORMATIONAL"))?;
        write!(f, "NON-STRICT {}, FAILED {}", count("NON-STRICT"), self.cases - known)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(cases: &[(&str, &str, &str)]) -> String {
        let case = |(id, behavior, close): &(&str, &str, &str)| {
            format!(r#""{id}": {{"behavior": "{behavior}", "behaviorClose": "{close}"}}"#)
        };
        format!(r#"{{"agent": {{{}}}}}"#, cases.iter().map(case).collect::<Vec<_>>().join(","))
    }

    #[test]
    fn each_case_counts_once_by_its_worse_verdict() {
        let tally = Tally::read(&report(&[
            ("1.1.1", "OK", "OK"),
            ("7.1.6", "INFORMATIONAL", "INFORMATIONAL"),
            ("6.4.3", "NON-STRICT", "OK"),
            ("7.7.1", "OK", "WRONG CODE"),
        ]))
        .unwrap();
        assert_eq!(tally.to_string(), "OK 1, INFORMATIONAL 1, NON-STRICT 1, FAILED 1");
        let problem = tally.judge().unwrap_err().to_string();
        assert_eq!(problem, "2 of 4 cases:\n  6.4.3: NON-STRICT, close OK\n  7.7.1: OK, close WRONG CODE");
    }

    #[test]
    fn a_missing_case_or_verdict_is_a_fault() {
        let good = Tally { cases: CASES, ..Tally::default() };
        assert!(good.judge().is_ok());
        assert!(Tally { cases: CASES - 1, ..Tally::default() }.judge().is_err());
        assert!(Tally::read(r#"{"agent": {"1.1.1": {"behavior": "OK"}}}"#).unwrap().judge().is_err());
        assert!(Tally::read("{}").is_err());
    }
}
