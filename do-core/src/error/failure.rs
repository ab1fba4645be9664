use super::{Error, ErrorKind};
use std::{error::Error as StdError, fmt};

/// What a handler returns: `?` takes every `std::error::Error` into it.
///
/// Deliberately not a `std::error::Error` itself, or the blanket conversion could not exist. When it crosses a
/// stub, the caller receives an [`Error`]: the library's own one with its kind kept, any other one as
/// [`ErrorKind::Application`] with its type name and its text (rule B12).
///
/// ```
/// use do_core::{ErrorKind, Failure, Tag};
///
/// fn handler(input: &str) -> Result<Tag, Failure> {
///     let n: usize = input.parse()?;      // a std error
///     Ok(Tag::new("x".repeat(n))?)        // the library's error
/// }
/// assert_eq!(handler("x").unwrap_err().to_string(), "invalid digit found in string");
/// assert_eq!(handler("257").unwrap_err().error().map(|e| e.kind()), Some(ErrorKind::Limit));
/// ```
pub struct Failure {
    source: Box<dyn StdError + Send + Sync + 'static>,
    name: &'static str,
}

impl Failure {
    /// A failure that is only a text.
    pub fn msg(message: impl Into<String>) -> Self {
        Error::new(ErrorKind::Application, message).into()
    }

    /// The first [`Error`] in the chain of sources, so that the error of a pattern crate keeps its answers.
    pub fn error(&self) -> Option<&Error> {
        let mut at: Option<&(dyn StdError + 'static)> = Some(&*self.source);
        while let Some(error) = at {
            if let Some(found) = error.downcast_ref::<Error>() {
                return Some(found);
            }
            at = error.source();
        }
        None
    }

    /// The error itself, if it is of type `T`.
    pub fn downcast_ref<T: StdError + 'static>(&self) -> Option<&T> {
        self.source.downcast_ref()
    }

    /// What a caller on the other side of a stub receives.
    #[cfg(all(feature = "tokio", not(target_arch = "wasm32")))]
    pub(crate) fn into_remote(self) -> Error {
        self.into_error().remote()
    }

    pub(crate) fn into_error(self) -> Error {
        match self.source.downcast::<Error>() {
            Ok(error) => *error,
            Err(source) => {
                let this = Self { source, name: self.name };
                let kind = this.error().map_or(ErrorKind::Application, Error::kind);
                Error::new(kind, this.to_string()).with_name(this.name)
            }
        }
    }
}

impl<E: StdError + Send + Sync + 'static> From<E> for Failure {
    fn from(error: E) -> Self {
        let full = std::any::type_name::<E>();
        // `alloc::vec::Vec<T>` is known by its last segment, but not the one inside the angle brackets.
        let path = full.split('<').next().unwrap_or(full);
        let name = path.rsplit("::").next().unwrap_or(path);
        Self { source: Box::new(error), name }
    }
}

impl From<Failure> for Box<dyn StdError + Send + Sync> {
    fn from(failure: Failure) -> Self {
        failure.source
    }
}

impl From<Failure> for Box<dyn StdError> {
    fn from(failure: Failure) -> Self {
        failure.source
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.source, f)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.source, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("the pattern failed")]
    struct Pattern(#[source] Error);

    #[test]
    fn b12_an_error_crosses_with_its_name_and_message() {
        let error = Error::from(Failure::from("x".parse::<u8>().unwrap_err()));
        assert_eq!((error.kind(), error.name()), (ErrorKind::Application, "ParseIntError"));
        assert_eq!(error.to_string(), "invalid digit found in string");
    }

    #[test]
    fn a_patterns_error_keeps_the_kind_of_its_source() {
        let error = Error::from(Failure::from(Pattern(Error::new(ErrorKind::Overloaded, "full"))));
        assert_eq!((error.kind(), error.name()), (ErrorKind::Overloaded, "Pattern"));
        assert!(error.is_overloaded() && !error.is_retryable());
    }

    #[test]
    fn the_librarys_error_crosses_unchanged() {
        let error = Error::from(Failure::from(Error::new(ErrorKind::Limit, "long")));
        assert_eq!(
            (error.kind(), error.name(), error.to_string().as_str()),
            (ErrorKind::Limit, "Error", "long")
        );
    }
}
