//! What a client says that it had last.

use crate::core::Asked;
use do_core::RequestExt;
use http::Request;

/// The header in which an `EventSource` says it when it comes back.
const HEADER: &str = "last-event-id";

/// The parameter in which a client says it that cannot set headers: an `EventSource` on its first connection.
const PARAMETER: &str = "lastEventId";

/// The header counts: when an `EventSource` comes back, its address still has the parameter of the beginning.
pub(crate) fn of<B>(request: &Request<B>) -> Asked {
    // As bytes: it is UTF-8 and need not be ASCII (W10). What is neither is nobody's position.
    let header =
        request.headers().get(HEADER).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
    match header.or_else(|| request.query(PARAMETER)).filter(|id| !id.is_empty()) {
        Some(id) => Asked::After(id),
        None => Asked::Fresh,
    }
}
