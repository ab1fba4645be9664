//! What the query of a request says to the probe.

use super::percent_decoded;
use crate::Error;

/// For the probe objects of suites: keys and values in their order, of which there may be several with the same key.
#[derive(Debug)]
pub struct Query(Vec<(String, String)>);

impl Query {
    /// That of an address.
    ///
    /// # Errors
    /// As [`percent_decoded`], of a value.
    pub fn of(uri: &http::Uri) -> Result<Self, Error> {
        let pairs = uri.query().unwrap_or_default().split('&').filter_map(|pair| pair.split_once('='));
        let decoded = pairs.map(|(key, value)| Ok((key.to_owned(), percent_decoded(value)?)));
        decoded.collect::<Result<_, Error>>().map(Self)
    }

    /// All values with this key.
    pub fn all(&self, key: &str) -> impl Iterator<Item = &str> {
        self.0.iter().filter(move |(of, _)| of == key).map(|(_, value)| value.as_str())
    }

    /// The first value with this key.
    pub fn first(&self, key: &str) -> Option<&str> {
        self.all(key).next()
    }
}
