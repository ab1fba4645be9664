use crate::{Response, Upgrade, reply};
use http::{
    HeaderValue, StatusCode,
    header::{RETRY_AFTER, SEC_WEBSOCKET_VERSION, UPGRADE, WWW_AUTHENTICATE},
};
use std::time::Duration;

/// Why a client is not connected: its request is no WebSocket handshake, or a wrong one, or one that is not welcome.
///
/// What the client is told is the application's business, so this carries the status and the headers, not the
/// body.
///
/// ```
/// use do_core::{Body, reply};
/// use do_core::Refusal;
///
/// let plain = http::Request::new(Body::empty());
/// let refusal = Refusal::of(&plain).unwrap();
/// let response = refusal.response(reply::text("open a WebSocket here"));
/// assert_eq!(response.status(), 426);
/// assert_eq!(response.headers()["upgrade"], "websocket");
/// ```
///
/// # Before the handshake
/// Whoever is refused must be refused before [`SocketRegistry::accept`](crate::SocketRegistry::accept): a browser cannot read the response to
/// a handshake, but it costs no socket, and other clients see the status. Check in this order, the cheap and the public
/// first: the handshake and the cap, where the page comes from, who it is, whether they may.
///
/// A browser's WebSocket sends cookies and the page's `Origin`, but no headers of one's own. So the credential is one of:
///
/// - **a cookie**. Browsers send it from any page, so this needs [`Origins`](crate::Origins), else any page on the
///   web opens sockets in its visitors' names.
/// - **a sub-protocol** such as `bearer.<token>`, offered beside the real one, which the server chooses:
///   `new WebSocket(url, ["chat", "bearer." + token])`. A token has to be made of letters, digits and
///   `` !#$%&'*+-.^_`|~ ``; base64url without padding is.
/// - **a parameter** of the query. It ends up in logs, so let it be a ticket that is good for one handshake within a
///   minute, which the page fetches with its real credential.
/// - **the `Authorization` header**, from clients that are no browsers.
///
/// ```
/// use do_core::{kit::Kit, offers_protocol, prelude::*};
/// use do_core::{Origins, Refusal};
///
/// struct Chat<S: ObjectState> { state: S, origins: Origins }
///
/// /// Stands for a look-up in a table of sessions or the check of a signature.
/// fn user_of(token: &str) -> Option<&'static str> {
///     (token == "s3cret").then_some("ann")
/// }
///
/// fn credential(request: &Request) -> Option<String> {
///     let headers = request.headers();
///     let text = |name| headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
///     let cookie = text("cookie").flat_map(|all| all.split(';')).find_map(|one| one.trim().strip_prefix("session="));
///     let offered = || text("sec-websocket-protocol").flat_map(|all| all.split(','))
///         .find_map(|one| one.trim().strip_prefix("bearer."));
///     let header = || text("authorization").find_map(|value| value.strip_prefix("Bearer "));
///     let sent = cookie.or_else(offered).or_else(header).map(str::to_owned);
///     sent.or_else(|| request.query("ticket"))
/// }
///
/// impl<S: ObjectState> Chat<S> {
///     fn admitted(&self, request: &Request) -> Result<&'static str, Refusal> {
///         Refusal::of(request).map_or(Ok(()), Err)?; // 426, 400
///         self.origins.check(request)?; // 403
///         credential(request).as_deref().and_then(user_of).ok_or(Refusal::Unauthorized) // 401
///     }
/// }
///
/// impl<S: ObjectState> DurableObject<S> for Chat<S> {
///     fn new(state: S) -> Result<Self> {
///         Ok(Self { state, origins: Origins::same_host() })
///     }
///     async fn fetch(&self, request: Request) -> Result<Response> {
///         let user = match self.admitted(&request) {
///             Ok(user) => user,
///             Err(refusal) => return Ok(refusal.reply()),
///         };
///         let mut accept = Accept::new().attach(user)?;
///         if offers_protocol(&request, "chat") {
///             accept = accept.protocol("chat"); // never the one with the token
///         }
///         Ok(self.state.sockets().accept(&request, accept)?.0)
///     }
/// }
///
/// # fn main() -> Result<()> {
/// let kit = Kit::builder().object::<Chat<_>>("CHAT").start()?;
/// kit.run(async {
///     let lobby = kit.namespace("CHAT")?.named("lobby")?;
///     let statuses = [
///         ("/", "cookie", "theme=dark; session=s3cret", 101),
///         ("/", "sec-websocket-protocol", "chat, bearer.s3cret", 101),
///         ("/?ticket=s3cret", "x-other", "", 101),
///         ("/", "authorization", "Bearer s3cret", 101),
///         ("/", "authorization", "Bearer wrong", 401),
///         ("/?ticket=s3cret", "origin", "https://evil.example", 403),
///     ];
///     for (path, name, value, status) in statuses {
///         let (mut request, _opening) = kit.handshake(path)?;
///         request.headers_mut().insert(name, value.parse()?);
///         assert_eq!(lobby.fetch(request).await?.status(), status, "{name}: {value}");
///     }
///     Ok(())
/// })
/// # }
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
    /// Nobody knows who it is from: 401, with `WWW-Authenticate: Bearer` where the answer does not name another scheme.
    #[error("who are you?")]
    Unauthorized,
    /// They may not, or not from there: 403.
    #[error("not for you")]
    Forbidden,
    /// There is no such room: 404.
    #[error("there is no such room")]
    NotFound,
    /// They are there already, and that is not allowed twice: 409.
    #[error("you are here already")]
    Conflict,
    /// There is no place left: 503 with `Retry-After`, in whole seconds.
    #[error("there is no place left")]
    Full {
        /// When to come back.
        retry_after: Duration,
    },
    /// They come too often, or are here too often already: 429 with `Retry-After`, in whole seconds.
    #[error("too many attempts or connections")]
    TooMany {
        /// When to come back.
        retry_after: Duration,
    },
}

/// When somebody may come back who is not told otherwise.
pub(super) const RETRY: Duration = Duration::from_secs(5);

impl Refusal {
    /// Looks at method, version and headers; `None` when the handshake is right.
    /// A room of `do-sync` has a question of its own, which looks at the room as well.
    pub fn of<B>(request: &http::Request<B>) -> Option<Self> {
        match Upgrade::of(request) {
            Upgrade::WebSocket => None,
            Upgrade::None => Some(Self::NotAnUpgrade),
            Upgrade::Version => Some(Self::Version),
            Upgrade::Broken(reason) => Some(Self::Broken(reason)),
        }
    }

    /// [`Full`](Self::Full), to come back in five seconds.
    pub const fn full() -> Self {
        Self::Full { retry_after: RETRY }
    }

    /// [`TooMany`](Self::TooMany), to come back after this time.
    pub const fn too_many(retry_after: Duration) -> Self {
        Self::TooMany { retry_after }
    }

    /// The status that says it.
    pub const fn status(self) -> StatusCode {
        match self {
            Self::NotAnUpgrade | Self::Version => StatusCode::UPGRADE_REQUIRED,
            Self::Broken(_) => StatusCode::BAD_REQUEST,
            Self::Unauthorized => StatusCode::UNAUTHORIZED,
            Self::Forbidden => StatusCode::FORBIDDEN,
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::Conflict => StatusCode::CONFLICT,
            Self::Full { .. } => StatusCode::SERVICE_UNAVAILABLE,
            Self::TooMany { .. } => StatusCode::TOO_MANY_REQUESTS,
        }
    }

    /// Turns the application's answer into the refusal: sets the status and the headers that a client needs with it.
    /// With 426 what is spoken here (RFC 9110 section 15.5.22, RFC 6455 section 4.4), with 401 how to say who one is
    /// (RFC 9110 section 15.5.2; a scheme that the answer names stays), with 429 and 503 when to come back. Body and
    /// other headers stay.
    pub fn response(self, mut answer: Response) -> Response {
        *answer.status_mut() = self.status();
        let headers = answer.headers_mut();
        match self {
            Self::NotAnUpgrade | Self::Version => {
                headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
                headers.insert(SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
            }
            Self::Unauthorized => {
                headers.entry(WWW_AUTHENTICATE).or_insert(HeaderValue::from_static("Bearer"));
            }
            Self::Full { retry_after } | Self::TooMany { retry_after } => {
                let seconds = retry_after.as_secs().saturating_add(u64::from(retry_after.subsec_nanos() > 0));
                headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
            }
            Self::Broken(_) | Self::Forbidden | Self::NotFound | Self::Conflict => {}
        }
        answer
    }

    /// The [`response`](Self::response) whose body is the refusal's own text.
    pub fn reply(self) -> Response {
        self.response(reply::text(self.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn each_refusal_has_its_status_and_the_headers_that_go_with_it() {
        let told = |refusal: Refusal| {
            let response = refusal.reply();
            let header =
                |name| response.headers().get(name).map(|v: &HeaderValue| v.to_str().unwrap().to_owned());
            (response.status().as_u16(), header(WWW_AUTHENTICATE), header(RETRY_AFTER))
        };
        assert_eq!(told(Refusal::Unauthorized), (401, Some("Bearer".to_owned()), None));
        assert_eq!(told(Refusal::Forbidden), (403, None, None));
        assert_eq!(told(Refusal::NotFound), (404, None, None));
        assert_eq!(told(Refusal::Conflict), (409, None, None));
        assert_eq!(told(Refusal::full()), (503, None, Some("5".to_owned())));
        let soon = Refusal::too_many(Duration::from_millis(1_001));
        assert_eq!(told(soon), (429, None, Some("2".to_owned())), "rounded up: not too soon");
        assert_eq!(told(Refusal::too_many(Duration::MAX)).2, Some(u64::MAX.to_string()));
        let mut basic = reply::text("");
        basic.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Basic"));
        assert_eq!(Refusal::Unauthorized.response(basic).headers()[WWW_AUTHENTICATE], "Basic");
    }
}
