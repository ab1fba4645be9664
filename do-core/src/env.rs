use crate::{Error, Namespace};
use std::fmt;

/// What the application's configuration gives: namespaces, variables and secrets, by name.
///
/// One `route(request, env)` written over it serves as the entry of both hosts.
pub trait Env: Clone + Send + Sync + 'static {
    /// The namespaces of this host.
    type Namespace: Namespace;

    /// The namespace bound under a name.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`](crate::ErrorKind::NotFound) when there is none.
    fn namespace(&self, binding: &str) -> Result<Self::Namespace, Error>;

    /// A plain variable.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`](crate::ErrorKind::NotFound) when there is none.
    fn var(&self, name: &str) -> Result<String, Error>;

    /// A secret.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`](crate::ErrorKind::NotFound) when there is none.
    fn secret(&self, name: &str) -> Result<Secret, Error>;
}

/// A string that does not show itself in logs.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps it.
    pub fn new(secret: impl Into<String>) -> Self {
        Self(secret.into())
    }

    /// The secret itself.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}
