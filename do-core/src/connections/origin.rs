use super::Refusal;
use crate::{Error, ErrorKind};
use http::{HeaderMap, Request, Uri, header, uri::Authority};
use std::net::{Ipv4Addr, Ipv6Addr};

/// From which pages a browser may come.
///
/// A browser lets any page open a WebSocket to any server that it reaches, and sends that server's cookies with it:
/// the same-origin rule does not hold for WebSockets. Two headers that a page cannot forge tell where it came from:
/// `Origin`, and `Host`, the name by which the browser found the server.
///
/// ```
/// use do_core::{Origins, Refusal};
///
/// let origins = Origins::same_host().allow("https://app.example.com")?.allow("https://*.preview.example.com")?;
/// let from = |origin: &str| {
///     let request = http::Request::builder().header("host", "chat.example.com").header("origin", origin);
///     origins.check(&request.body(()).unwrap())
/// };
/// assert_eq!(from("https://chat.example.com"), Ok(())); // the server's own page
/// assert_eq!(from("https://app.example.com"), Ok(()));
/// assert_eq!(from("https://pr-7.preview.example.com"), Ok(()));
/// assert_eq!(from("https://evil.example"), Err(Refusal::Forbidden));
/// assert_eq!(from("null"), Err(Refusal::Forbidden)); // a sandboxed frame, a file
/// # Ok::<(), do_core::Error>(())
/// ```
///
/// Requests without an `Origin` are not from a page, and are let through unless
/// [`require_origin`](Self::require_origin) is said: this protects the visitors of pages, not the server from other
/// programs, which write what they like.
///
/// Behind a proxy that changes `Host` the server's own pages look foreign: [`allow`](Self::allow) their origin.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[must_use]
pub struct Origins {
    same_host: bool,
    allowed: Vec<Pattern>,
    null: bool,
    required: bool,
    loopback: bool,
}

/// One origin, or all that have a name below one.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Pattern {
    scheme: String,
    name: String,
    /// Whether it stands for the names below `name`, and not for itself.
    below: bool,
    port: Option<u16>,
}

impl Origins {
    /// No page at all, until some are [allowed](Self::allow).
    pub fn none() -> Self {
        Self::default()
    }

    /// The server's own pages: those whose origin has the name and port of the request's `Host`. Where no port is
    /// written it is the default of the scheme. Whether the page came by http or https is not compared: a proxy may have
    /// ended the TLS.
    pub fn same_host() -> Self {
        Self { same_host: true, ..Self::default() }
    }

    /// Also pages of this origin, such as `https://example.com` or `http://localhost:5173`; or of all names below one,
    /// at any depth and without itself: `https://*.example.com`. Upper and lower case are the same, and so are a
    /// scheme's default port and none.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] when it is no scheme, `://` and a name with or without a port, such as when it has a path,
    /// and for other patterns.
    pub fn allow(mut self, origin: &str) -> Result<Self, Error> {
        let pattern = Pattern::parse(origin).ok_or_else(|| {
            let message =
                format!("{origin:?} is no origin such as https://example.com or https://*.example.com");
            Error::new(ErrorKind::Invalid, message)
        })?;
        self.allowed.push(pattern);
        Ok(self)
    }

    /// Several at once.
    ///
    /// # Errors
    /// As [`allow`](Self::allow).
    pub fn allow_all<'a>(self, origins: impl IntoIterator<Item = &'a str>) -> Result<Self, Error> {
        origins.into_iter().try_fold(self, Self::allow)
    }

    /// Also pages without an origin of their own, which say `null`: sandboxed frames, files. Any page on the web can
    /// make itself one of these.
    pub fn allow_null(mut self) -> Self {
        self.null = true;
        self
    }

    /// Also requires that there is an `Origin`: for services that only pages use. Other programs can forge it.
    pub fn require_origin(mut self) -> Self {
        self.required = true;
        self
    }

    /// Also requires that `Host` is this machine, `localhost` or a loopback address: for servers on a visitor's own
    /// machine. Otherwise a page whose name resolves to 127.0.0.1 is a page of the server.
    pub fn loopback_only(mut self) -> Self {
        self.loopback = true;
        self
    }

    /// Whether a request may come from where it says.
    ///
    /// # Errors
    /// [`Refusal::Forbidden`].
    pub fn check<B>(&self, request: &Request<B>) -> Result<(), Refusal> {
        self.check_parts(request.uri(), request.headers())
    }

    /// [`check`](Self::check) where there is no whole request.
    ///
    /// # Errors
    /// [`Refusal::Forbidden`].
    pub fn check_parts(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), Refusal> {
        if self.is_welcome(uri, headers) { Ok(()) } else { Err(Refusal::Forbidden) }
    }

    fn is_welcome(&self, uri: &Uri, headers: &HeaderMap) -> bool {
        let host = host_of(uri, headers).and_then(split);
        if self.loopback && !host.is_some_and(|(name, _)| is_loopback(name)) {
            return false;
        }
        let mut origins = headers.get_all(header::ORIGIN).iter();
        let origin = match (origins.next(), origins.next()) {
            (None, _) => return !self.required,
            (Some(only), None) => only.to_str().unwrap_or_default(),
            (Some(_), Some(_)) => return false,
        };
        if origin == "null" {
            return self.null;
        }
        let Some((scheme, name, port)) = parse(origin) else { return false };
        let same = || {
            let (host, host_port) = host?;
            // That a request came by http says little: a proxy may have ended the TLS before us.
            let host_scheme =
                uri.scheme_str().filter(|scheme| scheme.eq_ignore_ascii_case("https")).unwrap_or(scheme);
            let host_port = host_port.or(default_port(host_scheme))?;
            Some(name.eq_ignore_ascii_case(host) && port == Some(host_port))
        };
        (self.same_host && same() == Some(true))
            || self.allowed.iter().any(|pattern| pattern.matches(scheme, name, port))
    }
}

impl Pattern {
    fn parse(text: &str) -> Option<Self> {
        let (scheme, name, port) = parse(text)?;
        let (name, below) = match name.strip_prefix("*.") {
            Some(parent) => (parent, true),
            None => (name, false),
        };
        let broken = name.is_empty() || name.contains('*') || (below && name.starts_with(['.', '[']));
        (!broken).then(|| Self {
            scheme: scheme.to_ascii_lowercase(),
            name: name.to_ascii_lowercase(),
            below,
            port,
        })
    }

    fn matches(&self, scheme: &str, name: &str, port: Option<u16>) -> bool {
        let named = if self.below {
            let rest = name.len().checked_sub(self.name.len()).and_then(|at| name.split_at_checked(at));
            rest.is_some_and(|(below, parent)| {
                below.len() > 1 && below.ends_with('.') && parent.eq_ignore_ascii_case(&self.name)
            })
        } else {
            name.eq_ignore_ascii_case(&self.name)
        };
        named && port == self.port && scheme.eq_ignore_ascii_case(&self.scheme)
    }
}

/// Scheme, name and port of an origin; the port may be the scheme's default one.
fn parse(origin: &str) -> Option<(&str, &str, Option<u16>)> {
    let (scheme, authority) = origin.split_once("://")?;
    let sound = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
    if !scheme.starts_with(|c: char| c.is_ascii_alphabetic()) || !scheme.chars().all(sound) {
        return None;
    }
    let (name, port) = split(authority)?;
    Some((scheme, name, port.or(default_port(scheme))))
}

/// The only `Host`; where there is none, the authority of the request's address. `None` when there are several.
fn host_of<'a>(uri: &'a Uri, headers: &'a HeaderMap) -> Option<&'a str> {
    let mut hosts = headers.get_all(header::HOST).iter();
    match (hosts.next(), hosts.next()) {
        (Some(host), None) => host.to_str().ok(),
        (None, _) => uri.authority().map(Authority::as_str),
        (Some(_), Some(_)) => None,
    }
}

fn default_port(scheme: &str) -> Option<u16> {
    match scheme {
        _ if scheme.eq_ignore_ascii_case("http") => Some(80),
        _ if scheme.eq_ignore_ascii_case("https") => Some(443),
        _ => None,
    }
}

/// Name and port of `name`, `name:port`, `[address]` or `[address]:port`; `None` for anything else.
fn split(authority: &str) -> Option<(&str, Option<u16>)> {
    let end = match authority.strip_prefix('[') {
        Some(rest) => rest.find(']')? + 2,
        None => authority.find(':').unwrap_or(authority.len()),
    };
    let (name, rest) = authority.split_at_checked(end)?;
    let plain = |c: char| c.is_ascii_graphic() && !"/?#@\\".contains(c);
    if name.is_empty() || !name.chars().all(plain) {
        return None;
    }
    match rest.strip_prefix(':') {
        None if rest.is_empty() => Some((name, None)),
        None => None,
        Some("") => Some((name, None)), // RFC 3986 section 3.2.3: as if it were not written
        // `parse` alone would take a plus sign.
        Some(port) if port.bytes().all(|b| b.is_ascii_digit()) => Some((name, Some(port.parse().ok()?))),
        Some(_) => None,
    }
}

fn is_loopback(name: &str) -> bool {
    match name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        Some(v6) => v6.parse::<Ipv6Addr>().is_ok_and(|address| address.is_loopback()),
        None => {
            name.eq_ignore_ascii_case("localhost") || name.parse::<Ipv4Addr>().is_ok_and(|a| a.is_loopback())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passes(origins: &Origins, uri: &str, hosts: &[&str], from: &[&str]) -> bool {
        let mut request = Request::builder().uri(uri);
        for (name, values) in [(header::HOST, hosts), (header::ORIGIN, from)] {
            for value in values {
                request = request.header(&name, *value);
            }
        }
        let verdict = origins.check(&request.body(()).unwrap());
        assert!(matches!(verdict, Ok(()) | Err(Refusal::Forbidden)));
        verdict.is_ok()
    }

    #[test]
    fn an_own_page_has_the_host_and_port_of_the_request() {
        for (host, origin, same) in [
            ("x", "http://x", true),
            ("x:80", "http://x", true),
            ("x", "http://x:80", true),
            ("X", "http://x", true),
            ("x:", "http://x", true),
            ("x:8080", "http://x:8080", true),
            ("x", "https://x", true),
            ("x:443", "https://x", true),
            ("[::1]:8080", "http://[::1]:8080", true),
            ("127.0.0.1:8080", "http://127.0.0.1:8080", true),
            ("x:8080", "http://x", false),
            ("x:80", "https://x", false),
            ("x", "http://x:8080", false),
            ("x:8080", "http://x:8081", false),
            ("x", "http://y", false),
            ("x", "http://x.evil", false),
            ("x", "http://evil-x", false),
            ("x", "null", false),
            ("x", "", false),
            ("x", "x", false),
            ("x", "http://", false),
            ("x", "http://x/", false),
            ("x", "http://user@x", false),
            ("x", "http://x:+80", false),
            ("x", "http://x:99999", false),
            ("x", "ftp://x", false),
            ("[::1]", "http://[::1", false),
            ("[::1]x", "http://[::1]x", false),
            ("a@x", "http://a@x", false),
            ("localhost:1", "http://127.0.0.1:1", false),
        ] {
            let origins = Origins::same_host();
            assert_eq!(passes(&origins, "/ws", &[host], &[origin]), same, "Host {host}, Origin {origin}");
            assert!(!passes(&Origins::none(), "/ws", &[host], &[origin]));
        }
    }

    #[test]
    fn without_an_origin_all_pass_unless_it_is_required_and_several_never_do() {
        let same = Origins::same_host();
        for hosts in [&["x"][..], &[]] {
            assert!(passes(&same, "/ws", hosts, &[]));
            assert!(!passes(&same.clone().require_origin(), "/ws", hosts, &[]));
        }
        assert!(!passes(&same, "/ws", &["x"], &["http://x", "http://x"]));
        assert!(!passes(&same, "/ws", &[], &["http://x"]));
        assert!(!passes(&same, "/ws", &["x", "y"], &["http://x"]));
        let open = Origins::none().allow("http://x").unwrap().allow_null();
        assert!(!passes(&open, "/ws", &["x"], &["null", "http://x"]));
    }

    #[test]
    fn an_absolute_address_gives_the_scheme_and_a_missing_host() {
        let same = Origins::same_host();
        assert!(passes(&same, "https://x/ws", &["x"], &["https://x"]));
        assert!(!passes(&same, "https://x/ws", &["x"], &["http://x"]));
        assert!(passes(&same, "https://x/ws", &[], &["https://x:443"]));
        for origin in ["http://x", "https://x"] {
            assert!(passes(&same, "http://x/ws", &["x"], &[origin]), "a proxy may have ended the TLS");
        }
        assert!(!passes(&same, "http://x/ws", &["x:80"], &["https://x"]));
    }

    #[test]
    fn allowed_origins_are_exact() {
        let origins = Origins::none()
            .allow_all(["https://App.example.com", "http://localhost:5173", "https://[::1]:8443", "app://-"])
            .unwrap();
        let from = |origin: &str| passes(&origins, "/", &["chat.example.com"], &[origin]);
        for yes in [
            "https://app.example.com",
            "HTTPS://APP.example.com:443",
            "http://localhost:5173",
            "https://[::1]:8443",
            "app://-",
        ] {
            assert!(from(yes), "{yes}");
        }
        for no in [
            "http://app.example.com",
            "https://app.example.com:8443",
            "https://app.example.com.evil.example",
            "https://evil.app.example.com",
            "https://chat.example.com",
            "http://localhost",
            "https://app.example.com/",
            "null",
            "",
        ] {
            assert!(!from(no), "{no}");
        }
    }

    #[test]
    fn a_pattern_is_for_the_names_below_one() {
        let origins = Origins::none().allow("https://*.Example.com").unwrap();
        let from = |origin: &str| passes(&origins, "/", &["x"], &[origin]);
        for yes in ["https://a.example.com", "https://b.a.EXAMPLE.com:443"] {
            assert!(from(yes), "{yes}");
        }
        for no in [
            "https://example.com",
            "https://.example.com",
            "https://evilexample.com",
            "https://example.com.evil",
            "http://a.example.com",
            "https://a.example.com:8443",
            "https://é.example.com",
        ] {
            assert!(!from(no), "{no}");
        }
    }

    #[test]
    fn what_is_no_origin_cannot_be_allowed() {
        for wrong in [
            "",
            "*",
            "null",
            "example.com",
            "https://",
            "https://*",
            "https://*.",
            "https://*.*.example.com",
            "https://a.*.com",
            "https://*example.com",
            "https://*..com",
            "https://example.com/",
            "https://example.com:port",
            "*://example.com",
            "://x",
        ] {
            let error = Origins::none().allow(wrong).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid, "{wrong}");
        }
    }

    #[test]
    fn null_passes_only_where_it_is_allowed() {
        assert!(!passes(&Origins::same_host(), "/", &["x"], &["null"]));
        assert!(passes(&Origins::none().allow_null(), "/", &["x"], &["null"]));
    }

    #[test]
    fn a_loopback_server_takes_only_loopback_hosts() {
        let local = Origins::same_host().loopback_only();
        for host in
            ["localhost", "LocalHost:8080", "127.0.0.1:80", "127.9.9.9", "[::1]", "[::1]:8080", "[0:0::1]"]
        {
            assert!(passes(&local, "/ws", &[host], &[]), "{host}");
        }
        for host in [
            "",
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "128.0.0.1",
            "[::2]",
            "::1",
            "127.1",
        ] {
            assert!(!passes(&local, "/ws", &[host], &[]), "{host:?}");
            assert!(passes(&Origins::same_host(), "/ws", &[host], &[]), "{host:?}");
        }
        assert!(!passes(&local, "/ws", &[], &[]));
        assert!(!passes(&local, "/ws", &["localhost", "localhost"], &[]));
        assert!(!passes(&local, "/ws", &["localhost:1"], &["http://localhost:2"]));
    }
}
