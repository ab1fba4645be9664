use do_core::{Accept, Error, ErrorKind};
use serde::Serialize;
use serde_json::value::RawValue;

/// Longest id of a member, in UTF-8 bytes.
pub(crate) const ID_BYTES: usize = 128;

/// Whoever comes into a room: an id that the application vouches for, and what others may see of them.
#[derive(Debug, Clone)]
pub struct Member {
    pub(crate) id: String,
    pub(crate) data: Option<Box<RawValue>>,
    pub(crate) accept: Accept,
}

impl Member {
    /// A member with this id.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] when it is empty or has control characters, [`ErrorKind::Limit`] beyond 128 bytes.
    pub fn new(id: impl Into<String>) -> Result<Self, Error> {
        let id = id.into();
        if id.is_empty() || id.chars().any(char::is_control) {
            let message = "a member's id is not empty and has no control characters";
            return Err(Error::new(ErrorKind::Invalid, message).of_request());
        }
        if id.len() > ID_BYTES {
            let message = format!("the member's id is {} bytes long, the limit is {ID_BYTES}", id.len());
            return Err(Error::new(ErrorKind::Limit, message).of_request());
        }
        Ok(Self { id, data: None, accept: Accept::new() })
    }

    /// What other members see: kept as JSON.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] when it cannot be written as JSON.
    pub fn data<T: Serialize + ?Sized>(mut self, data: &T) -> Result<Self, Error> {
        let raw = serde_json::value::to_raw_value(data);
        self.data =
            Some(raw.map_err(|e| Error::new(ErrorKind::Invalid, format!("not expressible as JSON: {e}")))?);
        Ok(self)
    }

    /// Further tags and the sub-protocol of the socket.
    #[must_use]
    pub fn accept(mut self, accept: Accept) -> Self {
        self.accept = accept;
        self
    }

    /// The id.
    pub fn id(&self) -> &str {
        &self.id
    }
}
