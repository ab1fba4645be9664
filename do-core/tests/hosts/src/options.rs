//! The command line of the suite.

use crate::Suite;
use std::{env, fmt};

/// How it is used, for who calls the binary itself.
pub(crate) fn usage<S: Suite>() -> String {
    let suite = S::NAME;
    let (all, hosts) = match columns::<S>().len() {
        4 => ("four", "kit, tokio, workerd or workerd-abort"),
        _ => ("three", "kit, tokio or workerd"),
    };
    let (page, writes, platform) = match S::PAGE {
        Some(_) => (" [--check]] [--platform [--check]", ", and writes PLATFORM.md", PLATFORM),
        None => ("", "", ""),
    };
    format!(
        "\
usage: {suite} [--host HOST]... [--all{page}] [--full] [--json] [--list] [NAME]...

  NAME         only the cases whose names contain it, such as d15
  --host HOST  {hosts}; several if repeated
  --all        all {all}; fails where they differ without a documented reason{writes}
{platform}  --full       also the long cases in real time
  --json       an object on each line of standard output
  --list       the names of the cases"
    )
}

const PLATFORM: &str = "  --platform   writes PLATFORM.md and runs nothing
  --check      writes nothing, and fails if PLATFORM.md would be written anew
";

/// The columns of the report, in their order. The last is workerd with a build whose panics abort.
pub const COLUMNS: [&str; 4] = ["kit", "tokio", "workerd", "workerd-abort"];

/// Those of a suite.
pub(crate) fn columns<S: Suite>() -> Vec<&'static str> {
    let there = if S::WORKER_ABORT.is_some() { COLUMNS.len() } else { COLUMNS.len() - 1 };
    COLUMNS.into_iter().take(there).collect()
}

/// Options of the usual test harness, which `cargo test` passes on to every test of a package: none of ours.
const HARNESS: [&str; 9] = [
    "--exact",
    "--ignored",
    "--include-ignored",
    "--nocapture",
    "--no-capture",
    "--quiet",
    "-q",
    "--show-output",
    "--test",
];
/// The same with values.
const HARNESS_VALUES: [&str; 6] =
    ["--color", "--format", "--logfile", "--report-time", "--skip", "--test-threads"];

/// What was asked for.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The suite's.
    there: Vec<&'static str>,
    /// Columns; none for those that are there.
    hosts: Vec<&'static str>,
    /// All columns, compared.
    pub(crate) all: bool,
    /// Nothing but PLATFORM.md.
    pub(crate) platform: bool,
    /// PLATFORM.md is compared and not written.
    pub(crate) check: bool,
    /// Long cases in real time, too.
    pub(crate) full: bool,
    /// For programs.
    pub(crate) json: bool,
    /// Names only.
    pub(crate) list: bool,
    /// Parts of names; none for all.
    names: Vec<String>,
}

/// Why the command line makes no sense.
#[derive(Debug, PartialEq, Eq)]
pub struct Misuse(String);

impl fmt::Display for Misuse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Options {
    /// From the arguments of the command.
    ///
    /// # Errors
    /// As [`parse`](Self::parse).
    pub(crate) fn from_arguments<S: Suite>() -> Result<Self, Misuse> {
        Self::parse::<S>(env::args().skip(1))
    }

    /// From these arguments; those of the usual harness are passed over.
    ///
    /// # Errors
    /// An option or a host that the suite does not have, or options that do not go together.
    pub fn parse<S: Suite>(arguments: impl Iterator<Item = String>) -> Result<Self, Misuse> {
        let mut options = Self { there: columns::<S>(), ..Self::default() };
        let mut arguments = arguments;
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--host" => {
                    options
                        .host(&arguments.next().ok_or_else(|| Misuse("--host needs a host".to_owned()))?)?;
                }
                "--all" => options.all = true,
                "--platform" if S::PAGE.is_some() => options.platform = true,
                "--check" if S::PAGE.is_some() => options.check = true,
                "--full" => options.full = true,
                "--json" => options.json = true,
                "--list" => options.list = true,
                name if !name.starts_with('-') => options.names.push(name.to_owned()),
                other if HARNESS.contains(&other) => {}
                other if HARNESS_VALUES.contains(&other) => drop(arguments.next()),
                other => match other.split_once('=') {
                    Some(("--host", host)) => options.host(host)?,
                    Some((of_harness, _)) if HARNESS_VALUES.contains(&of_harness) => {}
                    _ => return Err(Misuse(format!("unknown option {other:?}"))),
                },
            }
        }
        options.checked()
    }

    fn host(&mut self, name: &str) -> Result<(), Misuse> {
        let column = self.there.iter().copied().find(|column| *column == name).ok_or_else(|| {
            Misuse(format!("no host is named {name:?}; there are: {}", self.there.join(", ")))
        })?;
        if !self.hosts.contains(&column) {
            self.hosts.push(column);
        }
        Ok(())
    }

    fn checked(self) -> Result<Self, Misuse> {
        if self.all && !self.hosts.is_empty() {
            return Err(Misuse("--all is every host: it does not go with --host".to_owned()));
        }
        if self.check && !self.all && !self.platform {
            return Err(Misuse("--check is about PLATFORM.md: it goes with --all or --platform".to_owned()));
        }
        Ok(self)
    }

    /// The columns that must be there; `None` for those that are.
    pub fn columns(&self) -> Option<Vec<&'static str>> {
        let named = |column: &&str| self.all || self.hosts.contains(column);
        (self.all || !self.hosts.is_empty()).then(|| self.there.iter().copied().filter(named).collect())
    }

    /// Whether cases were chosen by name.
    pub(crate) fn is_filtered(&self) -> bool {
        !self.names.is_empty()
    }

    /// Whether it may be that no case has such a name: names given to all tests of a package are few tests' own.
    pub(crate) fn may_be_empty(&self) -> bool {
        self.is_filtered() && self.columns().is_none()
    }

    /// Whether it is to run.
    pub fn has(&self, case: &str) -> bool {
        self.names.is_empty() || self.names.iter().any(|part| case.contains(part.as_str()))
    }
}
