use do_core::{
    Failure, Request, Response, kit,
    testing::{Case, Deployment, Difference, Driver, Listed, Nowhere, listed},
    tokio::{Builder, HostEnv},
};
use std::{future::Future, pin::Pin};

/// What an entry answers.
pub type Answer = Pin<Box<dyn Future<Output = Result<Response, Failure>> + Send>>;

/// Writes a page of the suite's tables, or, when only to be checked, says that it would.
pub type Page = fn(bool) -> Result<(), String>;

/// Cases, and what the hosts that they run on are to serve. The Worker of the suite serves the same.
pub trait Suite: 'static {
    /// What it is called on the command line.
    const NAME: &'static str;

    /// What runs it with all that it needs, for who has not.
    const COMMAND: &'static str;

    /// The variable that names the folder of its Worker, built so that panics unwind, with a switch for evictions
    /// (`cargo xtask workers build --testing`).
    const WORKER: &'static str;

    /// The variable of the one whose panics abort, for a suite that is about them too. Without it there is no such column.
    const WORKER_ABORT: Option<&'static str> = None;

    /// Whether cases deploy: then the Worker has a second configuration.
    const DEPLOYS: bool = false;

    /// The path of a POST that the entry answers without an object, not even with success.
    const FENCE: &'static str;

    /// The page that `--platform` writes, for a suite that has one.
    const PAGE: Option<Page> = None;

    /// All cases, in the order in which they are reported.
    fn cases<D: Driver>() -> Vec<Case<D>>;

    /// The namespaces of a deployment, at least one. Suites that do not deploy have one deployment: the first.
    fn namespaces(deployment: Deployment) -> &'static [&'static str];

    /// Gives the kit's builder the classes, the variables and the migrations.
    fn kit(builder: kit::Builder, deployment: Deployment) -> kit::Builder;

    /// Gives the tokio host's builder the same.
    fn host(builder: Builder, deployment: Deployment) -> Builder;

    /// The entry.
    fn route(request: Request, env: HostEnv) -> Answer;

    /// Where hosts are meant to differ: the list that [`Case::differs`] and [`Case::shows`] name.
    fn differences() -> &'static [Difference] {
        &[]
    }

    /// The lines of the report that a case belongs to: what its name begins with. Words of letters and a number, such as
    /// `r1`, or else its first word.
    fn topics(case: &'static str) -> Vec<&'static str> {
        let numbered: Vec<_> = case.split(' ').take_while(|word| is_numbered(word)).collect();
        if numbered.is_empty() { case.split(' ').take(1).collect() } else { numbered }
    }

    /// All lines in their order, and whether they are there without a case. Lines that are not among them come last.
    fn lines() -> Vec<(&'static str, bool)> {
        let mut lines = Vec::new();
        for topic in Self::listed().iter().flat_map(|case| Self::topics(case.name)) {
            if !lines.contains(&(topic, true)) {
                lines.push((topic, true));
            }
        }
        lines
    }

    /// The cases without a host.
    fn listed() -> Vec<Listed> {
        listed(&Self::cases::<Nowhere>())
    }
}

fn is_numbered(word: &str) -> bool {
    let digits = word.trim_start_matches(|c: char| c.is_ascii_lowercase());
    let number = digits.trim_end_matches(|c: char| c.is_ascii_lowercase());
    digits.len() < word.len() && !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_rules_are_told_from_words() {
        for word in ["r1", "d28", "ping2", "b17a"] {
            assert!(is_numbered(word), "{word}");
        }
        for word in ["", "room", "1", "r1-2", "two1two2", "R1"] {
            assert!(!is_numbered(word), "{word}");
        }
    }
}
