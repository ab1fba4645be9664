//! What the run found: a line for each case, a column for each host.

use std::{collections::BTreeMap, fmt};

/// How one case ended on one host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    Pass,
    /// It says nothing about this host.
    Skip,
    Fail(String),
}

/// One host's results by case.
pub(crate) struct Column {
    pub(crate) host: &'static str,
    /// Or why it did not start.
    pub(crate) verdicts: Result<Vec<(&'static str, Verdict)>, String>,
}

#[derive(Default)]
pub(crate) struct Report {
    hosts: Vec<&'static str>,
    order: Vec<&'static str>,
    verdicts: BTreeMap<(&'static str, &'static str), Verdict>,
    notes: Vec<String>,
    bad: bool,
    filtered: bool,
}

impl Report {
    /// `filtered`: whether it is no fault that no case ran.
    pub(crate) fn new(filtered: bool) -> Self {
        Self { filtered, ..Self::default() }
    }

    pub(crate) fn column(&mut self, column: Column) {
        let verdicts = match column.verdicts {
            Ok(verdicts) => verdicts,
            Err(why) => return self.failed(column.host, &why),
        };
        self.hosts.push(column.host);
        for (case, verdict) in verdicts {
            if !self.order.contains(&case) {
                self.order.push(case);
            }
            self.verdicts.insert((case, column.host), verdict);
        }
    }

    /// A host that is not there.
    pub(crate) fn skipped(&mut self, host: &str, why: &str) {
        self.notes.push(format!("{host}: skipped. {why}"));
    }

    /// A host that should be there.
    pub(crate) fn failed(&mut self, host: &str, why: &str) {
        self.bad = true;
        self.notes.push(format!("{host}: failed. {why}"));
    }

    /// Whether everything that ran passed. A run of no case at all has shown nothing.
    pub(crate) fn is_good(&self) -> bool {
        let failed = self.verdicts.values().any(|verdict| matches!(verdict, Verdict::Fail(_)));
        let ran = self.verdicts.values().any(|verdict| *verdict != Verdict::Skip);
        !self.bad && !failed && (ran || self.filtered)
    }

    fn count(&self, is: impl Fn(&Verdict) -> bool) -> usize {
        self.verdicts.values().filter(|verdict| is(verdict)).count()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.order.iter().map(|case| case.len()).max().unwrap_or(0);
        write!(f, "\n{:width$}", "case")?;
        self.hosts.iter().try_for_each(|host| write!(f, "  {host:14}"))?;
        writeln!(f)?;
        for case in &self.order {
            write!(f, "{case:width$}")?;
            for host in &self.hosts {
                let word = match self.verdicts.get(&(*case, *host)) {
                    Some(Verdict::Pass) => "pass",
                    Some(Verdict::Fail(_)) => "FAIL",
                    Some(Verdict::Skip) | None => "-",
                };
                write!(f, "  {word:14}")?;
            }
            writeln!(f)?;
        }
        for ((case, host), verdict) in &self.verdicts {
            if let Verdict::Fail(why) = verdict {
                writeln!(f, "\nFAIL on {host}: {case}\n    {}", why.replace('\n', "\n    "))?;
            }
        }
        writeln!(f)?;
        self.notes.iter().try_for_each(|note| writeln!(f, "{note}"))?;
        let passed = self.count(|verdict| *verdict == Verdict::Pass);
        let failed = self.count(|verdict| matches!(verdict, Verdict::Fail(_)));
        let skipped = self.count(|verdict| *verdict == Verdict::Skip);
        writeln!(f, "{passed} passed, {failed} failed, {skipped} skipped")
    }
}
