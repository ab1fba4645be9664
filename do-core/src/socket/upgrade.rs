use crate::{Error, ErrorKind, Request};
use http::{HeaderMap, Method, Version, header};

/// Whether a request asks for a WebSocket, and rightly so (RFC 6455 section 4.2.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Upgrade {
    /// It asks for none.
    None,
    /// It asks for one, rightly.
    WebSocket,
    /// It asks for one of another version: answer 426 with `Sec-WebSocket-Version: 13`.
    Version,
    /// It asks for one wrongly: answer 400 with the reason.
    Broken(&'static str),
}

impl Upgrade {
    /// For adapters: as an error, what keeps the request from being accepted.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`].
    #[doc(hidden)]
    pub fn check<B>(request: &http::Request<B>) -> Result<(), Error> {
        let reason = match Self::of(request) {
            Self::WebSocket => return Ok(()),
            Self::None => "the request asks for no WebSocket",
            Self::Version => "the request asks for another version of WebSocket than 13",
            Self::Broken(reason) => reason,
        };
        Err(Error::new(ErrorKind::Invalid, reason).of_request())
    }

    /// Looks at method, version and headers.
    pub fn of<B>(request: &http::Request<B>) -> Self {
        let headers = request.headers();
        if !has_token(headers, &header::UPGRADE, "websocket") {
            return Self::None;
        }
        if request.method() != Method::GET {
            return Self::Broken("a WebSocket is opened with GET");
        }
        // The platform made the handshake and keeps its headers to itself.
        if request.extensions().get::<Handshaken>().is_some() {
            return Self::WebSocket;
        }
        if request.version() < Version::HTTP_11 {
            return Self::Broken("a WebSocket needs HTTP/1.1");
        }
        if !has_token(headers, &header::CONNECTION, "upgrade") {
            return Self::Broken("the Connection header does not say upgrade");
        }
        if headers.get(header::SEC_WEBSOCKET_VERSION).is_none_or(|v| v.as_bytes() != b"13") {
            return Self::Version;
        }
        let mut keys = headers.get_all(header::SEC_WEBSOCKET_KEY).iter();
        match (keys.next(), keys.next()) {
            (Some(key), None) if is_key(key.as_bytes()) => Self::WebSocket,
            (None, _) => Self::Broken("the Sec-WebSocket-Key header is missing"),
            _ => Self::Broken("the Sec-WebSocket-Key header is not 16 bytes in base64"),
        }
    }
}

/// For adapters: in the extensions of a request whose handshake the platform checked itself. On Workers the
/// headers of the handshake but `Upgrade` do not reach the code, and a wrong handshake neither.
#[doc(hidden)]
#[derive(Debug, Clone, Copy)]
pub struct Handshaken;

/// Whether one of the sub-protocols that the client offers is `protocol`.
pub fn offers_protocol(request: &Request, protocol: &str) -> bool {
    let offered = request.headers().get_all(header::SEC_WEBSOCKET_PROTOCOL);
    offered.iter().filter_map(|v| v.to_str().ok()).flat_map(|v| v.split(',')).any(|p| p.trim() == protocol)
}

fn has_token(headers: &HeaderMap, name: &header::HeaderName, token: &str) -> bool {
    let values = headers.get_all(name).iter().filter_map(|v| v.to_str().ok());
    values.flat_map(|v| v.split(',')).any(|t| t.trim().eq_ignore_ascii_case(token))
}

/// 16 bytes in base64 are 22 digits, of which the last carries four zero bits, and two equal signs.
fn is_key(key: &[u8]) -> bool {
    let digit = |d: &u8| d.is_ascii_alphanumeric() || matches!(d, b'+' | b'/');
    key.len() == 24 && key.ends_with(b"==") && key[..22].iter().all(digit) && b"AQgw".contains(&key[21])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(change: impl FnOnce(&mut http::Request<()>)) -> http::Request<()> {
        let mut request = http::Request::builder()
            .header("upgrade", "WebSocket")
            .header("connection", "keep-alive, Upgrade")
            .header("sec-websocket-version", "13")
            .header("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==")
            .body(())
            .unwrap();
        change(&mut request);
        request
    }

    #[test]
    fn tells_a_right_upgrade_from_none_and_from_a_broken_one() {
        let of = |change: fn(&mut http::Request<()>)| Upgrade::of(&request(change));
        assert_eq!(of(|_| ()), Upgrade::WebSocket);
        assert_eq!(of(|r| drop(r.headers_mut().remove("upgrade"))), Upgrade::None);
        assert_eq!(of(|r| drop(r.headers_mut().remove("sec-websocket-version"))), Upgrade::Version);
        assert_eq!(
            of(|r| drop(r.headers_mut().insert("sec-websocket-version", "8".parse().unwrap()))),
            Upgrade::Version
        );
        assert!(matches!(of(|r| *r.method_mut() = Method::POST), Upgrade::Broken(_)));
        assert!(matches!(of(|r| *r.version_mut() = Version::HTTP_10), Upgrade::Broken(_)));
        assert!(matches!(of(|r| drop(r.headers_mut().remove("connection"))), Upgrade::Broken(_)));
        assert!(matches!(of(|r| drop(r.headers_mut().remove("sec-websocket-key"))), Upgrade::Broken(_)));
        for key in
            ["", "x", "dGhlIHNhbXBsZSBub25jZR==", "dGhlIHNhbXBsZSBub25jZQ=", "dGhlIHNhbXBsZSBub25jZQ==x"]
        {
            let broken = request(|r| drop(r.headers_mut().insert("sec-websocket-key", key.parse().unwrap())));
            assert!(matches!(Upgrade::of(&broken), Upgrade::Broken(_)), "{key:?}");
        }
    }
}
