use crate::Error;
use serde::{Deserialize, Serialize};

/// An error as data, so that a driver can see on every host what a caller inside the host saw (rule B12).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Thrown {
    /// The name of its [`ErrorKind`](crate::ErrorKind).
    pub kind: String,
    /// [`Error::name`].
    pub name: String,
    /// Its text.
    pub message: String,
    /// [`Error::sql_code`].
    pub sql_code: Option<String>,
    /// [`Error::is_remote`].
    pub remote: bool,
    /// [`Error::is_retryable`].
    pub retryable: bool,
    /// [`Error::is_overloaded`].
    pub overloaded: bool,
    /// [`Error::is_indefinite`].
    pub indefinite: bool,
}

impl From<&Error> for Thrown {
    fn from(error: &Error) -> Self {
        Self {
            kind: format!("{:?}", error.kind()),
            name: error.name().to_owned(),
            message: error.to_string(),
            sql_code: error.sql_code().map(str::to_owned),
            remote: error.is_remote(),
            retryable: error.is_retryable(),
            overloaded: error.is_overloaded(),
            indefinite: error.is_indefinite(),
        }
    }
}
