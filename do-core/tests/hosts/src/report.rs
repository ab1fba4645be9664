//! What the run found: a line for each rule, a column for each host; and where hosts differ without a documented reason.

use crate::{Suite, options::Options};
use do_core::testing::Difference;
use serde_json::{Value, json};
use std::{collections::BTreeMap, fmt, time::Duration};

/// Why a case over 15 s does not run in real time.
pub const LONG: &str = "long";

/// How one case ended on one host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It passed.
    Pass,
    /// It says nothing about this host, for this reason: [`LONG`], or the id of a documented difference.
    Skip(&'static str),
    /// It failed, for this reason.
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
#[derive(Debug)]
pub struct Finished {
    case: &'static str,
    verdict: Verdict,
    took: Duration,
}

impl Finished {
    /// Says so on standard error: a run in real time takes minutes.
    pub fn new(host: &str, case: &'static str, verdict: Verdict, took: Duration) -> Self {
        eprintln!("{host:13} {} {:6} ms  {case}", verdict.word(), took.as_millis());
        Self { case, verdict, took }
    }

    pub(crate) fn skipped(case: &'static str, reason: &'static str) -> Self {
        Self { case, verdict: Verdict::Skip(reason), took: Duration::ZERO }
    }
}

/// One host's results in the order of the cases.
#[derive(Debug)]
pub struct Column {
    /// What it is called.
    pub host: &'static str,
    /// Or why it did not start.
    pub finished: Result<Vec<Finished>, String>,
}

/// What a report has to know of its suite.
#[derive(Debug)]
pub struct Subject {
    /// Lines in their order, and whether they are there without a case.
    lines: Vec<(&'static str, bool)>,
    topics: fn(&'static str) -> Vec<&'static str>,
    differences: &'static [Difference],
    /// The ids of the differences that cases show.
    shown: Vec<&'static str>,
}

impl Subject {
    /// That of a suite.
    pub fn of<S: Suite>() -> Self {
        let shown = S::listed().iter().flat_map(|case| case.needs.cites()).collect();
        Self { lines: S::lines(), topics: S::topics, differences: S::differences(), shown }
    }

    /// Known lines in their order, then the others by their names.
    fn place(&self, topic: &'static str) -> (usize, &'static str) {
        let known = self.lines.iter().position(|(line, _)| *line == topic);
        (known.unwrap_or(self.lines.len()), topic)
    }

    fn silent_differences(&self) -> impl Iterator<Item = String> {
        let shown = |id: &str| self.shown.contains(&id);
        let silent = self.differences.iter().filter(move |it| !it.is_excused() && !shown(it.id));
        silent.map(|difference| format!("{:?} is in the list, and no case shows it", difference.id))
    }
}

/// What the run found.
#[derive(Debug)]
pub struct Report {
    subject: Subject,
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
    /// An empty one.
    pub fn new<S: Suite>(options: &Options) -> Self {
        Self {
            subject: Subject::of::<S>(),
            columns: Vec::new(),
            notes: Vec::new(),
            problems: Vec::new(),
            compares: options.all && !options.is_filtered(),
            filtered: options.is_filtered(),
            may_be_empty: options.may_be_empty(),
        }
    }

    /// Adds what a host's cases gave.
    pub fn column(&mut self, column: Column) {
        match column.finished {
            Ok(finished) => self.columns.push((column.host, finished)),
            Err(why) => self.failed(column.host, &why),
        }
    }

    /// A host that is not there.
    pub fn skipped(&mut self, host: &str, why: &str) {
        self.notes.push(format!("{host}: skipped. {why}"));
    }

    /// A host that should be there.
    pub fn failed(&mut self, host: &str, why: &str) {
        self.problems.push(format!("{host}: failed. {why}"));
    }

    /// Something else that is wrong.
    pub fn problem(&mut self, what: impl Into<String>) {
        self.problems.push(what.into());
    }

    /// Whether everything that ran passed and nothing differs without a reason. A run of no case at all has shown
    /// nothing.
    pub fn is_good(&self) -> bool {
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
                    Verdict::Skip(id) if self.subject.differences.iter().any(|known| known.id == *id) => {}
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
            found.extend(self.subject.silent_differences());
        }
        found
    }

    /// The lines for programs: an object for each case on each host, for each thing that is wrong beside them, and
    /// last for the totals.
    pub fn json_lines(&self) -> Vec<Value> {
        let mut lines = Vec::new();
        for (host, finished) in &self.columns {
            lines.extend(finished.iter().map(|Finished { case, verdict, took }| {
                let rules = (self.subject.topics)(case);
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
        let mut rows: BTreeMap<(usize, &'static str), Vec<&'static str>> = BTreeMap::new();
        for (line, _) in self.subject.lines.iter().filter(|(_, always)| *always && !self.filtered) {
            rows.insert(self.subject.place(line), Vec::new());
        }
        for finished in self.finished() {
            for topic in (self.subject.topics)(finished.case) {
                let cases = rows.entry(self.subject.place(topic)).or_default();
                if !cases.contains(&finished.case) {
                    cases.push(finished.case);
                }
            }
        }
        for ((_, topic), cases) in &rows {
            write!(f, "{topic:9} {:>5}", cases.len())?;
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
