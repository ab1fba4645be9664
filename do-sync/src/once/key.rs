use do_core::{Error, ErrorKind};
use std::{fmt, str::FromStr};

/// What makes a request known again when it is repeated: chosen by the caller, once for each thing to be done, and kept
/// for every attempt at it.
///
/// 1 to [`MAX_CHARS`](Self::MAX_CHARS) visible ASCII characters without blanks, so that it goes into a header as it is.
///
/// ```
/// use do_sync::RequestKey;
///
/// let key = RequestKey::new("order-7/reserve")?;
/// assert_eq!(key.as_str(), "order-7/reserve");
/// for bad in ["", "two words", "käse", &"x".repeat(129)] {
///     assert!(RequestKey::new(bad).is_err());
/// }
/// # Ok::<(), do_core::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RequestKey(String);

impl RequestKey {
    /// Longest key, in characters.
    pub const MAX_CHARS: usize = 128;

    /// Checks it.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] when it is empty, too long, or has a character that is not visible ASCII.
    pub fn new(key: impl Into<String>) -> Result<Self, Error> {
        let key = key.into();
        if (1..=Self::MAX_CHARS).contains(&key.len()) && key.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Ok(Self(key));
        }
        let message =
            format!("a request key has 1 to {} visible ASCII characters and no blanks", Self::MAX_CHARS);
        Err(Error::new(ErrorKind::Invalid, message))
    }

    /// One of 128 random bits.
    pub(crate) fn random(high: u64, low: u64) -> Self {
        Self(format!("{high:016x}{low:016x}"))
    }

    /// Its characters.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for RequestKey {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Self::new(text)
    }
}

impl TryFrom<&str> for RequestKey {
    type Error = Error;

    fn try_from(text: &str) -> Result<Self, Error> {
        Self::new(text)
    }
}

impl fmt::Display for RequestKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for RequestKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}
