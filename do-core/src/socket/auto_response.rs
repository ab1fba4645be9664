use crate::{Error, ErrorKind, limits};

/// A text and the answer that the host gives to it by itself (rule D28): exact, case-sensitive, text messages
/// only.
///
/// ```
/// use do_core::AutoResponse;
///
/// let pair = AutoResponse::new("ping", "pong")?;
/// assert!(AutoResponse::new("x".repeat(2_049), "pong").is_err());
/// # Ok::<(), do_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AutoResponse {
    request: String,
    response: String,
}

impl AutoResponse {
    /// Checks and pairs the two texts.
    ///
    /// # Errors
    /// [`ErrorKind::Limit`] when one is longer than [`limits::AUTO_RESPONSE_BYTES`].
    pub fn new(request: impl Into<String>, response: impl Into<String>) -> Result<Self, Error> {
        let (request, response) = (request.into(), response.into());
        let longest = request.len().max(response.len());
        if longest > limits::AUTO_RESPONSE_BYTES {
            let message = format!(
                "the auto-response is {longest} bytes long, the limit is {}",
                limits::AUTO_RESPONSE_BYTES
            );
            return Err(Error::new(ErrorKind::Limit, message));
        }
        Ok(Self { request, response })
    }

    /// The text that is answered.
    pub fn request(&self) -> &str {
        &self.request
    }

    /// The answer.
    pub fn response(&self) -> &str {
        &self.response
    }
}
