//! What the query of a request says to the probe.

use do_core::{Accept, Error, testing::percent_decoded};

/// Keys and values in their order. `in` is the tag of one of the object's rooms, where the main one is not meant; `tag`, any
/// number of them, `attach` (a text) and `protocol` are about the socket that is to join. Features have keys of their own.
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

    /// With what the socket is to be accepted.
    pub(crate) fn accept(&self) -> Result<Accept, Error> {
        let mut accept = Accept::new();
        for tag in self.all("tag") {
            accept = accept.tag(tag)?;
        }
        if let Some(attach) = self.first("attach") {
            accept = accept.attach(attach)?;
        }
        Ok(match self.first("protocol") {
            Some(protocol) => accept.protocol(protocol),
            None => accept,
        })
    }
}
