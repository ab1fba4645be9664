//! The command line of `cargo xtask`.

use crate::contract::{self, Contract};
use crate::problem::{Outcome, Problem};
use crate::step::Step;
use crate::workers::args::{self, Workers};
use std::ffi::OsString;

/// What the command line asks for.
#[derive(Debug, PartialEq)]
pub(crate) enum Parsed {
    /// How it is used.
    Help,
    /// The checks.
    Test(Options),
    /// The contract suite, or how it is used.
    Contract(Option<Contract>),
    /// Something with Workers.
    Workers(Workers),
}

/// Which checks to run.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Options {
    /// Also the long runs.
    pub(crate) full: bool,
    /// Names only.
    pub(crate) list: bool,
    /// These steps; empty means all.
    pub(crate) only: Vec<String>,
}

/// Reads the arguments after the program's name.
///
/// # Errors
/// An argument that does not exist, or `--only` without its value.
pub(crate) fn parse(arguments: &[OsString]) -> Outcome<Parsed> {
    match arguments.split_first() {
        Some((first, rest)) if first == "contract" => return contract::parse(rest).map(Parsed::Contract),
        Some((first, rest)) if first == "workers" => return args::parse(rest).map(Parsed::Workers),
        _ => {}
    }
    let words: Vec<_> = arguments.iter().map(|argument| argument.to_string_lossy()).collect();
    let mut arguments = words.iter().map(AsRef::as_ref);
    match arguments.next() {
        Some("test") => {}
        None | Some("help" | "--help" | "-h") => return Ok(Parsed::Help),
        Some(other) => return Err(Problem::new(format!("unknown command {other:?}"))),
    }
    let mut options = Options::default();
    while let Some(argument) = arguments.next() {
        match argument {
            "--full" => options.full = true,
            "--list" => options.list = true,
            "--only" => match arguments.next() {
                Some(step) => options.only.push(step.to_owned()),
                None => return Err(Problem::new("--only needs the name of a step")),
            },
            "--help" | "-h" => return Ok(Parsed::Help),
            other => return Err(Problem::new(format!("unknown argument {other:?}"))),
        }
    }
    Ok(Parsed::Test(options))
}

impl Options {
    /// The steps that these options ask for, in the order of the run. A step named by `--only` runs also when it
    /// is a long one.
    ///
    /// # Errors
    /// `--only` names a step that does not exist: running nothing would look like success.
    pub(crate) fn choose(&self, all: Vec<Step>) -> Outcome<Vec<Step>> {
        if let Some(name) = self.only.iter().find(|name| all.iter().all(|step| step.name != **name)) {
            let names: Vec<&str> = all.iter().map(|step| step.name).collect();
            return Err(Problem::new(format!("no step is named {name:?}; there are: {}", names.join(", "))));
        }
        let wanted = |step: &Step| match self.only.as_slice() {
            [] => self.full || self.list || !step.long,
            only => only.iter().any(|name| name == step.name),
        };
        Ok(all.into_iter().filter(wanted).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_words(line: &str) -> Outcome<Parsed> {
        parse(&line.split_whitespace().map(OsString::from).collect::<Vec<_>>())
    }

    fn step(name: &'static str, long: bool) -> Step {
        Step { name, about: "", long, run: |_| Ok(()) }
    }

    fn names(options: &Options) -> Vec<&'static str> {
        let all = vec![step("fmt", false), step("soak", true), step("doc", false)];
        options.choose(all).unwrap().iter().map(|step| step.name).collect()
    }

    #[test]
    fn arguments_are_read() {
        let wanted = Options { full: true, list: false, only: vec!["doc".to_owned(), "fmt".to_owned()] };
        assert_eq!(parse_words("test --only doc --full --only fmt").unwrap(), Parsed::Test(wanted));
        assert_eq!(parse_words("").unwrap(), Parsed::Help);
        assert!(parse_words("test --only").is_err());
        assert!(parse_words("test --fast").is_err());
        assert!(parse_words("bench").is_err());
        assert_eq!(parse_words("workers size").unwrap(), Parsed::Workers(Workers::Size));
        assert!(parse_words("workers bench").is_err());
        assert_eq!(parse_words("contract --help").unwrap(), Parsed::Contract(None));
        assert!(parse_words("contract --fast").is_err());
    }

    #[test]
    fn long_steps_run_when_asked_for() {
        assert_eq!(names(&Options::default()), ["fmt", "doc"]);
        assert_eq!(names(&Options { full: true, ..Options::default() }), ["fmt", "soak", "doc"]);
        assert_eq!(names(&Options { only: vec!["soak".to_owned()], ..Options::default() }), ["soak"]);
    }

    #[test]
    fn an_unknown_step_is_an_error() {
        let options = Options { only: vec!["doc".to_owned(), "dox".to_owned()], ..Options::default() };
        let problem = options.choose(vec![step("doc", false)]).err().unwrap();
        assert_eq!(problem.to_string(), r#"no step is named "dox"; there are: doc"#);
    }
}
