//! What handlers ask of a request beyond what the crate `http` gives.

use crate::{Error, ErrorKind};

/// Questions about a request.
///
/// ```
/// use do_core::prelude::*;
///
/// let request = http::Request::get("/ws?name=Ann%20B&tab=1").body(())?;
/// assert_eq!(request.query("name").as_deref(), Some("Ann B"));
/// assert_eq!(request.query("room"), None);
/// assert_eq!(request.require("room").unwrap_err().to_string(), "the query has no parameter `room`");
/// # Ok::<(), http::Error>(())
/// ```
pub trait RequestExt {
    /// The first parameter of this name in the query, decoded as forms are: `+` and `%20` are a space, bytes that are
    /// not UTF-8 become U+FFFD. `None` when there is none; empty when it has no value.
    fn query(&self, name: &str) -> Option<String>;

    /// [`query`](Self::query) for one that must be there.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] when it is missing.
    fn require(&self, name: &str) -> Result<String, Error> {
        self.query(name).ok_or_else(|| {
            Error::new(ErrorKind::Invalid, format!("the query has no parameter `{name}`")).of_request()
        })
    }
}

impl<B> RequestExt for http::Request<B> {
    fn query(&self, name: &str) -> Option<String> {
        let pairs = form_urlencoded::parse(self.uri().query()?.as_bytes());
        pairs.into_iter().find_map(|(key, value)| (key == name).then(|| value.into_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_decoded_and_the_first_of_a_name_counts() {
        let request = http::Request::get("/?a=1&b&a=2&%63=%E2%9C%93+x&d=%FF&=e").body(()).unwrap();
        let ask = |name| request.query(name);
        let expected = [Some("1"), Some(""), Some("\u{2713} x"), Some("\u{fffd}"), Some("e"), None];
        assert_eq!(["a", "b", "c", "d", "", "x"].map(ask), expected.map(|v| v.map(str::to_owned)));
        assert_eq!(http::Request::get("/").body(()).unwrap().query("a"), None);
        let error = request.require("x").unwrap_err();
        assert_eq!(
            (error.kind(), error.to_string().as_str()),
            (ErrorKind::Invalid, "the query has no parameter `x`")
        );
    }
}
