//! The two error types: [`Error`], which the library returns, and [`Failure`], which handlers return.
//!
//! One type cannot be both a `std::error::Error` and take `?` from every other one, hence two.

mod failure;

pub use failure::Failure;
use std::{error::Error as StdError, fmt, sync::Arc};

/// Who is to blame, as far as a caller needs to know it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The call can never succeed as it was made: a malformed id, a bad close code, a refused statement.
    Invalid,
    /// A limit of the platform would be exceeded (see [`limits`](crate::limits)).
    Limit,
    /// The object's class has no such handler, or the host has no such namespace.
    NotFound,
    /// An object's storage or alarm was used outside an event of that object.
    NotInEvent,
    /// The socket, stream or object is closed.
    Closed,
    /// SQLite refused the statement; [`Error::sql_code`] says why.
    Sql,
    /// The object's own code returned an error. [`Error::name`] is its type, the message its text.
    Application,
    /// The object was reset while the call was under way: it may or may not have taken effect.
    Reset,
    /// A passing fault.
    Transient,
    /// Too much is waiting already. Retrying makes it worse: shed the load instead.
    Overloaded,
    /// The caller's own time limit ran out: the call may still take effect.
    Deadline,
    /// The host is shutting down.
    Shutdown,
    /// The host itself failed: disk, file system, runtime.
    Platform,
}

/// What the library returns: opaque, cheap to move and to clone, and able to answer what a caller asks next.
///
/// ```
/// use do_core::{ErrorKind, Tag};
///
/// let error = Tag::new("x".repeat(300)).unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::Limit);
/// assert_eq!(error.to_string(), "tag is 300 bytes long, the limit is 256");
/// assert!(!error.is_retryable() && !error.is_overloaded() && !error.is_indefinite());
/// ```
#[derive(Clone)]
pub struct Error(Arc<Inner>);

#[derive(Clone)]
struct Inner {
    kind: ErrorKind,
    message: String,
    name: Option<String>,
    sql_code: Option<String>,
    remote: bool,
    of_request: bool,
    /// Although its kind does not say so, the call may have taken effect.
    indefinite: bool,
    source: Option<Arc<dyn StdError + Send + Sync + 'static>>,
}

impl Error {
    /// An error of one's own, for example in a pattern crate.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self(Arc::new(Inner {
            kind,
            message: message.into(),
            name: None,
            sql_code: None,
            remote: false,
            of_request: false,
            indefinite: false,
            source: None,
        }))
    }

    /// The same with the error that caused it.
    #[must_use]
    pub fn with_source(self, source: impl StdError + Send + Sync + 'static) -> Self {
        self.change(|inner| inner.source = Some(Arc::new(source)))
    }

    /// For adapters: the class or type name of an application's error.
    #[doc(hidden)]
    #[must_use]
    pub fn with_name(self, name: impl Into<String>) -> Self {
        self.change(|inner| inner.name = Some(name.into()))
    }

    /// For adapters: SQLite's name of the (extended) result code.
    #[doc(hidden)]
    #[must_use]
    pub fn with_sql_code(self, code: impl Into<String>) -> Self {
        self.change(|inner| inner.sql_code = Some(code.into()))
    }

    /// For adapters: it came out of an object's own code.
    #[doc(hidden)]
    #[must_use]
    pub fn remote(self) -> Self {
        self.change(|inner| inner.remote = true)
    }

    /// For the library: the object was reset for this, with calls under way that may have taken effect.
    #[cfg(any(
        all(feature = "tokio", not(target_arch = "wasm32")),
        all(feature = "workers", target_arch = "wasm32")
    ))]
    #[must_use]
    pub(crate) fn of_reset(self) -> Self {
        self.change(|inner| inner.indefinite = true)
    }

    /// Says that the request is to blame, and that its sender may read the text: one of kind
    /// [`Invalid`](ErrorKind::Invalid) or [`Limit`](ErrorKind::Limit) that a handler or a route does not handle is then
    /// answered by 400 or 413 instead of 500.
    #[must_use]
    pub fn of_request(self) -> Self {
        self.change(|inner| inner.of_request = true)
    }

    pub(crate) fn is_of_request(&self) -> bool {
        self.0.of_request
    }

    fn change(self, f: impl FnOnce(&mut Inner)) -> Self {
        let mut inner = Arc::unwrap_or_clone(self.0);
        f(&mut inner);
        Self(Arc::new(inner))
    }

    /// Who is to blame.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The type name of an application's own error after it crossed a stub (rule B12); otherwise `"Error"`.
    pub fn name(&self) -> &str {
        self.0.name.as_deref().unwrap_or("Error")
    }

    /// SQLite's name of the result code, the extended one where there is one: `"SQLITE_CONSTRAINT_UNIQUE"`.
    pub fn sql_code(&self) -> Option<&str> {
        self.0.sql_code.as_deref()
    }

    /// Whether it came out of the code of the object that was called (rule B12): then [`ErrorKind::Invalid`] and
    /// its like speak of what that code did, not of the call.
    pub fn is_remote(&self) -> bool {
        self.0.remote
    }

    /// Whether the same call may succeed when it is made again. Never true together with
    /// [`is_overloaded`](Self::is_overloaded). Make an [indefinite](Self::is_indefinite) call again only if it
    /// is idempotent.
    pub fn is_retryable(&self) -> bool {
        matches!(self.0.kind, ErrorKind::Transient | ErrorKind::Reset)
    }

    /// Whether the other side has too much to do: do not retry, shed load.
    pub fn is_overloaded(&self) -> bool {
        self.0.kind == ErrorKind::Overloaded
    }

    /// Whether the call may have taken effect although it failed. An object that was reset for a
    /// [gate](crate::ObjectState::block_concurrency_while) that took too long is overloaded, and this as well.
    pub fn is_indefinite(&self) -> bool {
        self.0.indefinite
            || matches!(self.0.kind, ErrorKind::Reset | ErrorKind::Transient | ErrorKind::Deadline)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("Error");
        out.field("kind", &self.0.kind).field("message", &self.0.message);
        if let Some(name) = &self.0.name {
            out.field("name", name);
        }
        if let Some(source) = &self.0.source {
            out.field("source", source);
        }
        out.finish()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source.as_deref().map(|s| s as _)
    }
}

impl From<std::convert::Infallible> for Error {
    fn from(never: std::convert::Infallible) -> Self {
        match never {}
    }
}

/// Keeps an [`Error`] of the source chain with its kind; anything else becomes [`ErrorKind::Application`].
impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        failure.into_error()
    }
}
