use do_core::{Response, Upgrade};
use http::{
    HeaderValue, StatusCode,
    header::{SEC_WEBSOCKET_VERSION, UPGRADE},
};

/// Why a request cannot join a room: it is no WebSocket handshake, or a wrong one.
///
/// What the client is told is the application's business, so this carries the status and the headers, not the
/// body.
///
/// ```
/// use do_core::{Body, reply};
/// use do_sync::Refusal;
///
/// let plain = http::Request::new(Body::empty());
/// let refusal = Refusal::of(&plain).unwrap();
/// let response = refusal.response(reply::text("open a WebSocket here"));
/// assert_eq!(response.status(), 426);
/// assert_eq!(response.headers()["upgrade"], "websocket");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The request does not ask for a WebSocket: 426.
    #[error("this address speaks WebSocket only")]
    NotAnUpgrade,
    /// It asks for one of another version: 426.
    #[error("only version 13 of WebSocket is spoken here")]
    Version,
    /// It asks for one wrongly, for this reason: 400.
    #[error("{0}")]
    Broken(&'static str),
}

impl Refusal {
    /// Looks at method, version and headers; `None` when the handshake is right.
    pub fn of<B>(request: &http::Request<B>) -> Option<Self> {
        match Upgrade::of(request) {
            Upgrade::WebSocket => None,
            Upgrade::None => Some(Self::NotAnUpgrade),
            Upgrade::Version => Some(Self::Version),
            Upgrade::Broken(reason) => Some(Self::Broken(reason)),
            _ => Some(Self::Broken("the handshake is of a kind unknown here")),
        }
    }

    /// 426 or 400.
    pub const fn status(self) -> StatusCode {
        match self {
            Self::NotAnUpgrade | Self::Version => StatusCode::UPGRADE_REQUIRED,
            Self::Broken(_) => StatusCode::BAD_REQUEST,
        }
    }

    /// Turns the application's answer into the refusal: sets the status and, with 426, says what is spoken here
    /// (RFC 9110 section 15.5.22, RFC 6455 section 4.4). Body and other headers stay.
    pub fn response(self, mut answer: Response) -> Response {
        *answer.status_mut() = self.status();
        if self.status() == StatusCode::UPGRADE_REQUIRED {
            answer.headers_mut().insert(UPGRADE, HeaderValue::from_static("websocket"));
            answer.headers_mut().insert(SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
        }
        answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use do_core::reply;

    fn handshake(version: &str) -> http::Request<()> {
        http::Request::builder()
            .header("upgrade", "websocket")
            .header("connection", "upgrade")
            .header("sec-websocket-version", version)
            .header("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==")
            .body(())
            .unwrap()
    }

    #[test]
    fn tells_426_from_400_with_the_headers_a_client_needs() {
        let answer = |request: &http::Request<()>| {
            let response = Refusal::of(request).unwrap().response(reply::text("no"));
            let header = |name: &str| response.headers().get(name).map(|v| v.to_str().unwrap().to_owned());
            (response.status().as_u16(), header("upgrade"), header("sec-websocket-version"))
        };
        let required = || (426, Some("websocket".to_owned()), Some("13".to_owned()));
        assert_eq!(Refusal::of(&handshake("13")), None);
        assert_eq!(answer(&http::Request::new(())), required());
        assert_eq!(answer(&handshake("8")), required());
        let mut broken = handshake("13");
        broken.headers_mut().remove("sec-websocket-key");
        assert_eq!(answer(&broken), (400, None, None));
    }
}
