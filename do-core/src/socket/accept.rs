use crate::{Error, ErrorKind, Tag, limits};
use http::HeaderValue;
use serde::Serialize;

/// What a socket is accepted with.
///
/// ```
/// use do_core::{Accept, tag};
///
/// let accept = Accept::new().tag(tag!("editors"))?.tag("user-7")?.attach(&"Ada")?;
/// # Ok::<(), do_core::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct Accept {
    tags: Vec<Tag>,
    attachment: Option<Vec<u8>>,
    protocol: Option<String>,
}

impl Accept {
    /// No tags, no attachment.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a tag; one that is there already counts once (rule D1).
    ///
    /// # Errors
    /// [`ErrorKind::Limit`] when it is too long, or the eleventh.
    pub fn tag(mut self, tag: impl TryInto<Tag, Error: Into<Error>>) -> Result<Self, Error> {
        let tag = tag.try_into().map_err(Into::into)?;
        if self.tags.contains(&tag) {
            return Ok(self);
        }
        if self.tags.len() == limits::TAGS_PER_SOCKET {
            let message = format!("a socket can have at most {} tags", limits::TAGS_PER_SOCKET);
            return Err(Error::new(ErrorKind::Limit, message).of_request());
        }
        self.tags.push(tag);
        Ok(self)
    }

    /// Adds several tags.
    ///
    /// # Errors
    /// As [`tag`](Self::tag).
    pub fn tags<T: TryInto<Tag, Error: Into<Error>>>(
        self,
        tags: impl IntoIterator<Item = T>,
    ) -> Result<Self, Error> {
        tags.into_iter().try_fold(self, Self::tag)
    }

    /// Attaches a value, kept as JSON; it survives hibernation (rule D26).
    ///
    /// # Errors
    /// [`ErrorKind::Limit`] when it is longer than [`limits::ATTACHMENT_BYTES`], [`ErrorKind::Invalid`] when it
    /// cannot be written as JSON.
    pub fn attach<T: Serialize + ?Sized>(mut self, value: &T) -> Result<Self, Error> {
        self.attachment = Some(attachment_to_bytes(value)?);
        Ok(self)
    }

    /// Names the sub-protocol in the response. Nothing is negotiated: choose one that the client offered
    /// (rule D7).
    pub fn protocol(mut self, protocol: impl Into<String>) -> Self {
        self.protocol = Some(protocol.into());
        self
    }

    /// For adapters: the sub-protocol as a header's value.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] when it is no token of HTTP.
    #[doc(hidden)]
    pub fn protocol_header(&self) -> Result<Option<HeaderValue>, Error> {
        let Some(protocol) = &self.protocol else { return Ok(None) };
        let value = is_token(protocol).then(|| HeaderValue::try_from(protocol).ok()).flatten();
        value.map(Some).ok_or_else(|| {
            Error::new(ErrorKind::Invalid, format!("{protocol:?} is no name of a sub-protocol"))
        })
    }

    /// For adapters.
    #[doc(hidden)]
    pub fn into_parts(self) -> (Vec<Tag>, Option<Vec<u8>>) {
        (self.tags, self.attachment)
    }
}

/// RFC 9110 section 5.6.2.
fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b))
}

pub(super) fn attachment_to_bytes<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>, Error> {
    let bytes = serde_json::to_vec(value).map_err(|e| {
        Error::new(ErrorKind::Invalid, format!("the attachment is not expressible as JSON: {e}"))
    })?;
    if bytes.len() > limits::ATTACHMENT_BYTES {
        let message = format!(
            "the attachment is {} bytes long, the limit is {}",
            bytes.len(),
            limits::ATTACHMENT_BYTES
        );
        return Err(Error::new(ErrorKind::Limit, message));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn d1_ten_distinct_tags_and_the_eleventh_is_an_error() {
        let ten = Accept::new().tags((0..10).map(|n| n.to_string())).unwrap();
        let again = ten.tag("3").unwrap();
        assert_eq!(again.clone().into_parts().0.len(), 10);
        let error = again.tag("eleven").unwrap_err();
        assert_eq!(
            (error.kind(), error.to_string().as_str()),
            (ErrorKind::Limit, "a socket can have at most 10 tags")
        );
        assert_eq!(Accept::new().tag("x".repeat(300)).unwrap_err().kind(), ErrorKind::Limit);
        assert_eq!(Accept::new().tag("").unwrap().into_parts().0, [Tag::new("").unwrap()]);
    }

    #[test]
    fn d7_a_sub_protocol_is_a_token() {
        let header = |protocol: &str| Accept::new().protocol(protocol).protocol_header();
        assert_eq!(header("chat.v2").unwrap().unwrap(), "chat.v2");
        for wrong in ["", "a b", "a,b", "é", "a\r\nx: y"] {
            let error = header(wrong).unwrap_err();
            assert_eq!(error.to_string(), format!("{wrong:?} is no name of a sub-protocol"));
        }
        assert_eq!(Accept::new().protocol_header().unwrap(), None);
    }

    #[test]
    fn d26_an_attachment_has_a_limit() {
        let longest = "x".repeat(limits::ATTACHMENT_BYTES - 2);
        assert!(Accept::new().attach(&longest).is_ok());
        assert_eq!(Accept::new().attach(&(longest + "x")).unwrap_err().kind(), ErrorKind::Limit);
    }
}
