//! What the query of a request says to the probe.

use do_core::{Error, testing::percent_decoded};

/// Keys and values in their order: `id` and `topic`, any number of these, are about the connection that is to open;
/// `lastEventId` is the feed's own.
#[derive(Debug)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    pub(crate) fn of(uri: &http::Uri) -> Result<Self, Error> {
        let pairs = uri.query().unwrap_or_default().split('&').filter_map(|pair| pair.split_once('='));
        let decoded = pairs.map(|(key, value)| Ok((key.to_owned(), percent_decoded(value)?)));
        decoded.collect::<Result<_, Error>>().map(Self)
    }

    pub(crate) fn all(&self, key: &str) -> impl Iterator<Item = &str> {
        self.0.iter().filter(move |(of, _)| of == key).map(|(_, value)| value.as_str())
    }

    pub(crate) fn first(&self, key: &str) -> Option<&str> {
        self.all(key).next()
    }
}
