//! The command line and the report of the contract suite, without a host: the suite itself has no test harness.
#![allow(clippy::unwrap_used)] // helpers of tests

mod platform;
mod suite;

use contract_hosts::{COLUMNS, Column, Finished, LONG, Misuse, Options, Report, Verdict};
use serde_json::json;
use std::time::Duration;
use suite::Contract;

fn parsed(line: &str) -> Result<Options, Misuse> {
    Options::parse::<Contract>(line.split_whitespace().map(str::to_owned))
}

fn options(line: &str) -> Options {
    parsed(line).unwrap()
}

/// A report over two cases that there are.
fn report(line: &str, columns: Vec<(&'static str, [Verdict; 2])>) -> Report {
    let mut report = Report::new::<Contract>(&options(line));
    let cases =
        ["a1 a name is always the same object and any other text another one", "a2 the empty name is a name"];
    for (host, verdicts) in columns {
        let finished = cases.into_iter().zip(verdicts);
        let finished =
            finished.map(|(case, verdict)| Finished::new(host, case, verdict, Duration::from_millis(7)));
        report.column(Column { host, finished: Ok(finished.collect()) });
    }
    report
}

fn fail() -> Verdict {
    Verdict::Fail("so\nit is".to_owned())
}

#[test]
fn hosts_and_names_are_chosen() {
    assert_eq!(options("").columns(), None);
    assert_eq!(options("--host workerd --host=kit").columns(), Some(vec!["kit", "workerd"]));
    assert_eq!(options("--all").columns(), Some(COLUMNS.to_vec()));
    let named = options("d15 e1");
    assert!(named.has("d15 a close") && named.has("d14 d15 another") && !named.has("d16 no close"));
    assert!(options("").has("anything"));
}

#[test]
fn options_of_the_usual_harness_are_passed_over_and_others_refused() {
    assert_eq!(options("--nocapture --test-threads 1 --color=never -q d15"), options("d15"));
    let misuse = |line: &str| parsed(line).unwrap_err().to_string();
    assert_eq!(misuse("--fulll"), r#"unknown option "--fulll""#);
    assert_eq!(
        misuse("--host deno"),
        r#"no host is named "deno"; there are: kit, tokio, workerd, workerd-abort"#
    );
    assert_eq!(misuse("--host"), "--host needs a host");
    assert_eq!(misuse("--all --host kit"), "--all is every host: it does not go with --host");
    assert_eq!(misuse("--check"), "--check is about PLATFORM.md: it goes with --all or --platform");
}

#[test]
fn a_run_in_which_all_passes_is_good() {
    let report = report("--host kit a", vec![("kit", [Verdict::Pass, Verdict::Pass])]);
    assert!(report.is_good());
    let text = report.to_string();
    assert!(
        text.starts_with("rule      cases  kit\nA1            1  pass\nA2            1  pass\n\n"),
        "{text}"
    );
    assert!(
        text.ends_with("\nkit: 2 passed, 0 failed, 0 skipped\n2 passed, 0 failed, 0 skipped\n"),
        "{text}"
    );
}

#[test]
fn a_failure_is_told_with_its_reason() {
    let report = report("a", vec![("tokio", [Verdict::Skip(LONG), fail()])]);
    assert!(!report.is_good());
    let text = report.to_string();
    assert!(text.contains("A1            1  skip\nA2            1  FAIL\n"), "{text}");
    assert!(text.contains("\nFAIL on tokio: a2 the empty name is a name\n    so\n    it is\n"), "{text}");
    let skipped = text.find("\nskipped on tokio (long): a1 a name").unwrap();
    let failed = text.find("\n\nFAIL on tokio: ").unwrap();
    assert!(skipped < failed, "{text}");
    let end = "\n    it is\n\ntokio: 0 passed, 1 failed, 1 skipped\n0 passed, 1 failed, 1 skipped\n";
    assert!(text.ends_with(end), "{text}");
}

#[test]
fn hosts_that_differ_without_a_reason_are_named() {
    let found = |columns| -> Vec<String> {
        let lines = report("a", columns).json_lines();
        let of = lines.iter().filter(|line| line["type"] == "undocumented");
        of.map(|line| line["text"].as_str().unwrap().to_owned()).collect()
    };
    let documented = [Verdict::Skip("panic"), Verdict::Skip(LONG)];
    assert!(found(vec![("kit", [Verdict::Pass, Verdict::Pass]), ("tokio", documented)]).is_empty());
    assert!(found(vec![("kit", [fail(), Verdict::Pass]), ("tokio", [fail(), Verdict::Pass])]).is_empty());
    assert_eq!(
        found(vec![
            ("kit", [Verdict::Pass, Verdict::Pass]),
            ("tokio", [Verdict::Pass, fail()]),
            ("workerd", [Verdict::Skip("weather"), Verdict::Pass]),
        ]),
        [
            r#""a1 a name is always the same object and any other text another one" is skipped on workerd for "weather", which is not in the list"#,
            r#""a2 the empty name is a name" passes on kit, workerd and fails on tokio"#,
        ]
    );
    assert!(!report("a", vec![("kit", [Verdict::Pass, Verdict::Skip("weather")])]).is_good());
}

#[test]
fn programs_get_an_object_a_line_and_the_totals_last() {
    let lines = report("a", vec![("kit", [Verdict::Pass, fail()])]).json_lines();
    assert_eq!(
        lines,
        [
            json!({
                "type": "case", "host": "kit", "rules": ["A1"], "verdict": "pass", "reason": null, "ms": 7,
                "case": "a1 a name is always the same object and any other text another one",
            }),
            json!({
                "type": "case", "host": "kit", "rules": ["A2"], "verdict": "fail", "reason": "so\nit is", "ms": 7,
                "case": "a2 the empty name is a name",
            }),
            json!({
                "type": "totals", "passed": 1, "failed": 1, "skipped": 0, "undocumented": 0, "good": false,
            }),
        ]
    );
}

#[test]
fn a_run_of_nothing_is_good_only_for_names_that_were_given_to_all_tests() {
    assert!(report("no-such", vec![]).is_good());
    assert!(!report("--host kit no-such", vec![]).is_good());
    assert!(!report("", vec![]).is_good());
    let skipped = || vec![("kit", [Verdict::Skip("panic"), Verdict::Skip("panic")])];
    assert!(report("--host kit panic", skipped()).is_good());
    assert!(!report("--host kit", skipped()).is_good());
}

#[test]
fn a_host_that_should_be_there_and_is_not_is_a_failure() {
    let mut report = report("a", vec![("tokio", [Verdict::Pass, Verdict::Pass])]);
    report.skipped("workerd", "Nobody asked.");
    assert!(report.is_good());
    report.column(Column { host: "kit", finished: Err("broken".to_owned()) });
    assert!(!report.is_good());
    let text = report.to_string();
    assert!(text.contains("\nworkerd: skipped. Nobody asked.\nkit: failed. broken\n"), "{text}");
}
