//! What the query of a request says to the probe.
//!
//! `in` is the tag of one of the object's rooms, where the main one is not meant; `tag`, any number of them, `attach` (a text)
//! and `protocol` are about the socket that is to join. Features have keys of their own.

use do_core::{Accept, Error, testing::Query};

/// With what the socket is to be accepted.
pub(crate) fn accept(query: &Query) -> Result<Accept, Error> {
    let mut accept = Accept::new();
    for tag in query.all("tag") {
        accept = accept.tag(tag)?;
    }
    if let Some(attach) = query.first("attach") {
        accept = accept.attach(attach)?;
    }
    Ok(match query.first("protocol") {
        Some(protocol) => accept.protocol(protocol),
        None => accept,
    })
}
