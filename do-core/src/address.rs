//! The addresses of requests to objects, the same on every host.

use crate::{Error, ErrorKind, Request};
use http::{
    Uri,
    header::HOST,
    uri::{Authority, PathAndQuery, Scheme},
};

/// A12: objects see absolute URIs. axum and hyper hand over the origin form, which `Host` completes.
pub(crate) fn complete_uri(request: &mut Request) -> Result<(), Error> {
    if request.uri().scheme().is_some() {
        return Ok(());
    }
    let wrong = |what: &str| Error::new(ErrorKind::Invalid, format!("the request's {what} is malformed"));
    let mut parts = std::mem::take(request.uri_mut()).into_parts();
    if parts.authority.is_none() {
        parts.authority = Some(match request.headers().get(HOST) {
            None => Authority::from_static("localhost"),
            Some(host) => Authority::try_from(host.as_bytes()).map_err(|_| wrong("Host header"))?,
        });
    }
    parts.scheme = Some(Scheme::HTTP);
    parts.path_and_query.get_or_insert_with(|| PathAndQuery::from_static("/"));
    *request.uri_mut() = Uri::from_parts(parts).map_err(|_| wrong("URI"))?;
    Ok(())
}
