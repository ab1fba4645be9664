//! Placeholder of the lead until the encoder branch is merged.
use bytes::Bytes;
use do_core::{Error, ErrorKind, Position};
use std::time::Duration;

/// An event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Event {
    name: Option<String>,
    data: Option<String>,
    id: Option<String>,
    retry: Option<Duration>,
    comment: Option<String>,
}

impl Event {
    /// Nothing.
    pub fn new() -> Self {
        Self::default()
    }
    /// # Errors
    /// Bad name.
    pub fn named(name: impl AsRef<str>) -> Result<Self, Error> {
        Self::new().event(name)
    }
    /// # Errors
    /// Bad name.
    pub fn event(mut self, name: impl AsRef<str>) -> Result<Self, Error> {
        self.name = Some(name.as_ref().to_owned());
        Ok(self)
    }
    /// Data.
    pub fn data(mut self, data: impl AsRef<str>) -> Self {
        self.data = Some(data.as_ref().to_owned());
        self
    }
    /// # Errors
    /// Not JSON.
    pub fn json<T: serde::Serialize + ?Sized>(self, value: &T) -> Result<Self, Error> {
        Ok(self
            .data(serde_json::to_string(value).map_err(|e| Error::new(ErrorKind::Invalid, e.to_string()))?))
    }
    /// # Errors
    /// Bad id.
    pub fn id(mut self, id: impl AsRef<str>) -> Result<Self, Error> {
        self.id = Some(id.as_ref().to_owned());
        Ok(self)
    }
    /// Retry.
    pub fn retry(mut self, retry: Duration) -> Self {
        self.retry = Some(retry);
        self
    }
    /// Comment.
    pub fn comment(mut self, comment: impl AsRef<str>) -> Self {
        self.comment = Some(comment.as_ref().to_owned());
        self
    }
    /// Bytes.
    pub fn to_bytes(&self) -> Bytes {
        self.encode(None)
    }
    pub(crate) fn encode(&self, id: Option<Position>) -> Bytes {
        let mut out = String::new();
        if let Some(c) = &self.comment {
            out += &format!(": {c}\n");
        }
        if let Some(r) = self.retry {
            out += &format!("retry: {}\n", r.as_millis());
        }
        if let Some(n) = &self.name {
            out += &format!("event: {n}\n");
        }
        if let Some(i) = id.map(|p| p.to_string()).or_else(|| self.id.clone()) {
            out += &format!("id: {i}\n");
        }
        if let Some(d) = &self.data {
            for l in d.split('\n') {
                out += &format!("data: {l}\n");
            }
        }
        out.push('\n');
        out.into()
    }
    pub(crate) fn has_id(&self) -> bool {
        self.id.is_some()
    }
}
impl From<&str> for Event {
    fn from(data: &str) -> Self {
        Self::new().data(data)
    }
}
impl From<String> for Event {
    fn from(data: String) -> Self {
        Self::new().data(data)
    }
}
