//! The server's half of the opening handshake (RFC 6455 section 4.2.2).

use crate::{Body, Error, ErrorKind, Request, Response, Upgrade};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::{
    HeaderValue, StatusCode,
    header::{CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL, UPGRADE},
};
use sha1::{Digest, Sha1};

/// What the RFC has every server append, so that only one that speaks WebSocket answers rightly.
const GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// The answer to a client's `Sec-WebSocket-Key`.
fn accept_key(key: &[u8]) -> String {
    STANDARD.encode(Sha1::new().chain_update(key).chain_update(GUID).finalize())
}

/// The 101 that accepts the WebSocket which `request` asks for. `protocol` is named as it is: whether the client
/// offered it is the application's to know (rule D7).
///
/// # Errors
/// [`ErrorKind::Invalid`] when the request asks for no WebSocket or does so wrongly.
pub(crate) fn response(request: &Request, protocol: Option<HeaderValue>) -> Result<Response, Error> {
    Upgrade::check(request)?;
    let key = request.headers().get(SEC_WEBSOCKET_KEY).map_or(&b""[..], HeaderValue::as_bytes);
    let accept = HeaderValue::try_from(accept_key(key))
        .map_err(|e| Error::new(ErrorKind::Platform, "the handshake has no answer").with_source(e))?;

    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = response.headers_mut();
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(SEC_WEBSOCKET_ACCEPT, accept);
    if let Some(protocol) = protocol {
        headers.insert(SEC_WEBSOCKET_PROTOCOL, protocol);
    }
    Ok(response)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> Request {
        http::Request::builder()
            .header("upgrade", "websocket")
            .header("connection", "Upgrade")
            .header("sec-websocket-version", "13")
            .header("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==")
            .body(Body::empty())
            .unwrap()
    }

    #[test]
    fn the_key_is_answered_as_in_the_rfc() {
        assert_eq!(accept_key(b"dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    }

    #[test]
    fn d7_a_101_names_the_chosen_protocol() {
        let response = response(&request(), Some(HeaderValue::from_static("chat.v2"))).unwrap();
        assert_eq!(response.status(), 101);
        assert_eq!(response.headers()["upgrade"], "websocket");
        assert_eq!(response.headers()["connection"], "Upgrade");
        assert_eq!(response.headers()["sec-websocket-accept"], "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        assert_eq!(response.headers()["sec-websocket-protocol"], "chat.v2");
        assert!(!super::response(&request(), None).unwrap().headers().contains_key("sec-websocket-protocol"));
    }

    #[test]
    fn a_wrong_request_is_refused_with_the_reason() {
        let refused = |request: &Request| {
            let error = response(request, None).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid);
            error.to_string()
        };
        assert_eq!(refused(&Request::new(Body::empty())), "the request asks for no WebSocket");
        let mut old = request();
        old.headers_mut().insert("sec-websocket-version", HeaderValue::from_static("8"));
        assert_eq!(refused(&old), "the request asks for another version of WebSocket than 13");
        let mut keyless = request();
        keyless.headers_mut().remove("sec-websocket-key");
        assert_eq!(refused(&keyless), "the Sec-WebSocket-Key header is missing");
    }
}
