//! Why a check did not pass: a text for the person who runs it. Nothing here branches on a kind of error.

use std::fmt;

/// The result of a check or of a part of it.
pub(crate) type Outcome<T = ()> = Result<T, Problem>;

/// One or more lines that say what failed and what to do.
#[derive(Debug)]
pub(crate) struct Problem(String);

impl Problem {
    /// A problem with this text.
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Adds what was being done to an error that does not say it.
pub(crate) trait Doing<T> {
    /// Turns the error into a problem that starts with `what`.
    fn doing(self, what: impl fmt::Display) -> Outcome<T>;
}

impl<T, E: fmt::Display> Doing<T> for Result<T, E> {
    fn doing(self, what: impl fmt::Display) -> Outcome<T> {
        self.map_err(|error| Problem(format!("{what}: {error}")))
    }
}
