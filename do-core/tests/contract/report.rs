//! What the run found: a line for each rule, a column for each host; and where hosts differ without a documented reason.

use crate::options::Options;
use do_core::testing::{Rule, Topic, catalogue, differences, rules};
use serde_json::{Value, json};
use std::{collections::BTreeMap, fmt, time::Duration};

/// Why a case over 15 s does not run in real time.
pub(crate) const LONG: &str = "long";

/// How one case ended on one host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    Pass,
    /// It says nothing about this host, for this reason: [`LONG`], or the id of a documented difference.
    Skip(&'static str),
    Fail(String),
}

impl Verdict {
    fn word(&self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Skip(_) => "skip",
            Self::Fail(_) => "fail",
        }
    }

    fn reason(&self) -> Option<&str> {
        match self {
            Self::Pass => None,
            Self::Skip(why) => Some(why),
            Self::Fail(why) => Some(why),
        }
    }
}

/// One case on one host.
pub(crate) struct Finished {
    case: &'static str,
    verdict: Verdict,
    took: Duration,
}

impl Finished {
    /// Says so on standard error: a run in real time takes minutes.
    pub(crate) fn new(host: &str, case: &'static str, verdict: Verdict, took: Duration) -> Self {
        eprintln!("{host:13} {} {:6} ms  {case}", verdict.word(), took.as_millis());
        Self { case, verdict, took }
    }

    pub(crate) fn skipped(case: &'static str, reason: &'static str) -> Self {
        Self { case, verdict: Verdict::Skip(reason), took: Duration::ZERO }
    }
}

/// One host's results in the order of the cases.
pub(crate) struct Column {
    pub(crate) host: &'static str,
    /// Or why it did not start.
    pub(crate) finished: Result<Vec<Finished>, String>,
}

#[derive(Default)]
pub(crate) struct Report {
    columns: Vec<(&'static str, Vec<Finished>)>,
    /// Hosts that are not there, and nothing else is wrong with.
    notes: Vec<String>,
    /// What is wrong beside the cases.
    problems: Vec<String>,
    /// All hosts are compared, and all cases.
    compares: bool,
    filtered: bool,
    may_be_empty: bool,
}

#[derive(Default)]
struct Count {
    passed: usize,
    failed: usize,
    skipped: usize,
}

impl Count {
    fn of<'a>(finished: impl Iterator<Item = &'a Finished>) -> Self {
        finished.fold(Self::default(), |mut count, finished| {
            match finished.verdict {
                Verdict::Pass => count.passed += 1,
                Verdict::Fail(_) => count.failed += 1,
                Verdict::Skip(_) => count.skipped += 1,
            }
            count
        })
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed, {} skipped", self.passed, self.failed, self.skipped)
    }
}

impl Report {
    pub(crate) fn new(options: &Options) -> Self {
        Self {
            compares: options.all && !options.is_filtered(),
            filtered: options.is_filtered(),
            may_be_empty: options.may_be_empty(),
            ..Self::default()
        }
    }

    pub(crate) fn column(&mut self, column: Column) {
        match column.finished {
            Ok(finished) => self.columns.push((column.host, finished)),
            Err(why) => self.failed(column.host, &why),
        }
    }

    /// A host that is not there.
    pub(crate) fn skipped(&mut self, host: &str, why: &str) {
        self.notes.push(format!("{host}: skipped. {why}"));
    }

    /// A host that should be there.
    pub(crate) fn failed(&mut self, host: &str, why: &str) {
        self.problems.push(format!("{host}: failed. {why}"));
    }

    /// Something else that is wrong.
    pub(crate) fn problem(&mut self, what: impl Into<String>) {
        self.problems.push(what.into());
    }

    /// Whether everything that ran passed and nothing differs without a reason. A run of no case at all has shown
    /// nothing.
    pub(crate) fn is_good(&self) -> bool {
        let count = Count::of(self.finished());
        let empty = count.passed == 0 && !self.may_be_empty && (!self.filtered || count.skipped == 0);
        self.problems.is_empty() && count.failed == 0 && !empty && self.undocumented().is_empty()
    }

    fn finished(&self) -> impl Iterator<Item = &Finished> {
        self.columns.iter().flat_map(|(_, finished)| finished)
    }

    /// Where hosts differ and no documented difference says so.
    fn undocumented(&self) -> Vec<String> {
        let mut found = Vec::new();
        let mut hosts: BTreeMap<&str, (Vec<&str>, Vec<&str>)> = BTreeMap::new();
        for (host, finished) in &self.columns {
            for Finished { case, verdict, .. } in finished {
                let (passes, fails) = hosts.entry(case).or_default();
                match verdict {
                    Verdict::Pass => passes.push(host),
                    Verdict::Fail(_) => fails.push(host),
                    Verdict::Skip(LONG) => {}
                    Verdict::Skip(id) if differences().iter().any(|difference| difference.id == *id) => {}
                    Verdict::Skip(id) => {
                        found.push(format!(
                            "{case:?} is skipped on {host} for {id:?}, which is not in the list"
                        ));
                    }
                }
            }
        }
        for (case, (passes, fails)) in hosts {
            if !passes.is_empty() && !fails.is_empty() {
                found.push(format!(
                    "{case:?} passes on {} and fails on {}",
                    passes.join(", "),
                    fails.join(", ")
                ));
            }
        }
        if self.compares {
            found.extend(differences_without_a_case());
        }
        found
    }

    /// The lines for programs: an object for each case on each host, for each thing that is wrong beside them, and
    /// last for the totals.
    pub(crate) fn json_lines(&self) -> Vec<Value> {
        let mut lines = Vec::new();
        for (host, finished) in &self.columns {
            lines.extend(finished.iter().map(|Finished { case, verdict, took }| {
                let rules: Vec<&str> = Topic::of(case).iter().map(Topic::name).collect();
                json!({
                    "type": "case", "host": host, "case": case, "rules": rules, "verdict": verdict.word(),
                    "reason": verdict.reason(), "ms": u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
                })
            }));
        }
        let undocumented = self.undocumented();
        let of = |kind: &'static str| move |text: &String| json!({ "type": kind, "text": text });
        lines.extend(self.notes.iter().map(of("note")));
        lines.extend(self.problems.iter().map(of("problem")));
        lines.extend(undocumented.iter().map(of("undocumented")));
        let Count { passed, failed, skipped } = Count::of(self.finished());
        lines.push(json!({
            "type": "totals", "passed": passed, "failed": failed, "skipped": skipped,
            "undocumented": undocumented.len(), "good": self.is_good(),
        }));
        lines
    }

    /// Late in the report: where a log is cut, it is cut in the middle.
    fn failures(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (host, finished) in &self.columns {
            for Finished { case, verdict, .. } in finished {
                if let Verdict::Fail(why) = verdict {
                    writeln!(f, "\nFAIL on {host}: {case}\n    {}\n", why.replace('\n', "\n    "))?;
                }
            }
        }
        Ok(())
    }

    fn table(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:9} {:>5}", "rule", "cases")?;
        let hosts: String = self.columns.iter().map(|(host, _)| format!("  {host:13}")).collect();
        writeln!(f, "{}", hosts.trim_end())?;
        let mut rows: BTreeMap<usize, (Topic, Vec<&'static str>)> = BTreeMap::new();
        let kept = |rule: &&'static Rule| rule.treatment.is_kept() && !self.filtered;
        for rule in rules().filter(kept) {
            rows.insert(place(&Topic::Rule(rule)), (Topic::Rule(rule), Vec::new()));
        }
        for finished in self.finished() {
            for topic in Topic::of(finished.case) {
                let (_, cases) = rows.entry(place(&topic)).or_insert_with(|| (topic, Vec::new()));
                if !cases.contains(&finished.case) {
                    cases.push(finished.case);
                }
            }
        }
        for (topic, cases) in rows.values() {
            write!(f, "{:9} {:>5}", topic.name(), cases.len())?;
            let of_rule = |finished: &[Finished]| {
                word(&Count::of(finished.iter().filter(|finished| cases.contains(&finished.case))))
            };
            let words: String =
                self.columns.iter().map(|(_, finished)| format!("  {:13}", of_rule(finished))).collect();
            writeln!(f, "{}", words.trim_end())?;
        }
        Ok(())
    }
}

/// A rule by all its cases.
fn word(count: &Count) -> &'static str {
    match count {
        Count { failed: 1.., .. } => "FAIL",
        Count { passed: 1.., .. } => "pass",
        Count { skipped: 1.., .. } => "skip",
        _ => "-",
    }
}

/// Rules in their order, then the rest.
fn place(topic: &Topic) -> usize {
    match topic {
        Topic::Rule(rule) => rules().take_while(|other| other != rule).count(),
        other => rules().count() + other.name().bytes().next().map_or(0, usize::from),
    }
}

fn differences_without_a_case() -> impl Iterator<Item = String> {
    let catalogue = catalogue();
    let shown = move |id: &str| catalogue.iter().any(|case| case.needs.cites().any(|cited| cited == id));
    let silent =
        differences().iter().filter(move |difference| !difference.is_excused() && !shown(difference.id));
    silent.map(|difference| format!("{:?} is in the list, and no case shows it", difference.id))
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.table(f)?;
        writeln!(f)?;
        let mut skipped: BTreeMap<(usize, &str), Vec<&str>> = BTreeMap::new();
        for (at, (_, finished)) in self.columns.iter().enumerate() {
            for Finished { case, verdict, .. } in finished {
                if let Verdict::Skip(why) = verdict {
                    skipped.entry((at, why)).or_default().push(case);
                }
            }
        }
        for ((at, why), cases) in skipped {
            let host = self.columns.get(at).map_or("", |(host, _)| host);
            writeln!(f, "skipped on {host} ({why}): {}", cases.join("; "))?;
        }
        self.notes.iter().chain(&self.problems).try_for_each(|line| writeln!(f, "{line}"))?;
        let undocumented = self.undocumented();
        undocumented.iter().try_for_each(|line| writeln!(f, "undocumented difference: {line}"))?;
        self.failures(f)?;
        for (host, finished) in &self.columns {
            writeln!(f, "{host}: {}", Count::of(finished.iter()))?;
        }
        if self.columns.len() > 1 {
            writeln!(f, "{} undocumented differences", undocumented.len())?;
        }
        writeln!(f, "{}", Count::of(self.finished()))
    }
}
