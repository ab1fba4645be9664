//! Who may talk to the room from a browser: the page of this server, and nobody else's.
//!
//! A browser lets any page open a WebSocket to, or post at, any server that it reaches, the one on the visitor's
//! own machine included. Two headers that a page cannot forge tell such a page: `Origin` is where it came from,
//! and `Host` the name by which the browser found us. A name of somebody else that resolves to 127.0.0.1 gives
//! itself away by the second.

use http::{HeaderMap, Uri, header, uri::Authority};
use std::net::{Ipv4Addr, Ipv6Addr};

/// Why a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Foreign {
    #[error("the Origin is not this server")]
    Origin,
    #[error("the Host is not this machine")]
    Host,
}

/// Checks the `Origin`, if there is one, against the `Host`, and on a loopback listener the `Host` itself.
///
/// Without an `Origin` the request is not from a page, and those are let through. A port that is not written is
/// the default one: of the origin's scheme, and for the host the one of https where the request came by that, or else of
/// the origin's scheme as well. That a request came by http says little: a proxy may have ended the TLS before us.
pub(crate) fn check(uri: &Uri, headers: &HeaderMap, loopback: bool) -> Result<(), Foreign> {
    let host = host_of(uri, headers).and_then(split);
    if loopback && !host.is_some_and(|(name, _)| is_loopback(name)) {
        return Err(Foreign::Host);
    }
    let mut origins = headers.get_all(header::ORIGIN).iter();
    let Some(origin) = origins.next() else { return Ok(()) };
    let same = || {
        let (scheme, authority) = origin.to_str().ok()?.split_once("://")?;
        let ((name, port), (host, host_port)) = (split(authority)?, host?);
        let origin_port = port.or(default_port(scheme))?;
        let host_scheme =
            uri.scheme_str().filter(|scheme| scheme.eq_ignore_ascii_case("https")).unwrap_or(scheme);
        let host_port = host_port.or(default_port(host_scheme))?;
        Some(name.eq_ignore_ascii_case(host) && origin_port == host_port)
    };
    if origins.next().is_none() && same() == Some(true) { Ok(()) } else { Err(Foreign::Origin) }
}

/// Whether the request has at most one `Host`, and that can be part of an address (RFC 9112 section 3.2).
pub(crate) fn is_host_sound(headers: &HeaderMap) -> bool {
    let mut hosts = headers.get_all(header::HOST).iter();
    match (hosts.next(), hosts.next()) {
        (None, _) => true,
        (Some(host), None) => Authority::try_from(host.as_bytes()).is_ok(),
        (Some(_), Some(_)) => false,
    }
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

    fn verdict(uri: &str, hosts: &[&str], origins: &[&str], loopback: bool) -> Result<(), Foreign> {
        let mut headers = HeaderMap::new();
        for (name, values) in [(header::HOST, hosts), (header::ORIGIN, origins)] {
            for value in values {
                headers.append(&name, value.parse().unwrap());
            }
        }
        check(&uri.parse().unwrap(), &headers, loopback)
    }

    #[test]
    fn an_origin_must_have_the_host_and_port_of_the_request() {
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
            let expected = if same { Ok(()) } else { Err(Foreign::Origin) };
            assert_eq!(verdict("/ws", &[host], &[origin], false), expected, "Host {host}, Origin {origin}");
        }
    }

    #[test]
    fn without_an_origin_all_pass_and_with_several_or_no_host_none_does() {
        assert_eq!(verdict("/ws", &["x"], &[], false), Ok(()));
        assert_eq!(verdict("/ws", &[], &[], false), Ok(()));
        assert_eq!(verdict("/ws", &["x"], &["http://x", "http://x"], false), Err(Foreign::Origin));
        assert_eq!(verdict("/ws", &[], &["http://x"], false), Err(Foreign::Origin));
        assert_eq!(verdict("/ws", &["x", "y"], &["http://x"], false), Err(Foreign::Origin));
    }

    #[test]
    fn a_host_is_sound_when_it_can_be_part_of_an_address() {
        let sound = |hosts: &[&str]| {
            is_host_sound(&HeaderMap::from_iter(
                hosts.iter().map(|host| (header::HOST, host.parse().unwrap())),
            ))
        };
        for hosts in [&[][..], &["x"], &["x:1"], &["[::1]:80"]] {
            assert!(sound(hosts), "{hosts:?}");
        }
        for hosts in [&[""][..], &["a b"], &["a/b"], &["x", "x"]] {
            assert!(!sound(hosts), "{hosts:?}");
        }
    }

    #[test]
    fn an_absolute_address_gives_the_scheme_and_a_missing_host() {
        assert_eq!(verdict("https://x/ws", &["x"], &["https://x"], false), Ok(()));
        assert_eq!(verdict("https://x/ws", &["x"], &["http://x"], false), Err(Foreign::Origin));
        assert_eq!(verdict("https://x/ws", &[], &["https://x:443"], false), Ok(()));
        for origin in ["http://x", "https://x"] {
            assert_eq!(
                verdict("http://x/ws", &["x"], &[origin], false),
                Ok(()),
                "a proxy may have ended the TLS"
            );
        }
        assert_eq!(verdict("http://x/ws", &["x:80"], &["https://x"], false), Err(Foreign::Origin));
    }

    #[test]
    fn a_loopback_listener_takes_only_loopback_hosts() {
        for host in
            ["localhost", "LocalHost:8080", "127.0.0.1:80", "127.9.9.9", "[::1]", "[::1]:8080", "[0:0::1]"]
        {
            assert_eq!(verdict("/ws", &[host], &[], true), Ok(()), "{host}");
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
            assert_eq!(verdict("/ws", &[host], &[], true), Err(Foreign::Host), "{host:?}");
            assert_eq!(verdict("/ws", &[host], &[], false), Ok(()), "{host:?}");
        }
        assert_eq!(verdict("/ws", &[], &[], true), Err(Foreign::Host));
        assert_eq!(verdict("/ws", &["localhost", "localhost"], &[], true), Err(Foreign::Host));
        assert_eq!(verdict("/ws", &["localhost:1"], &["http://localhost:2"], true), Err(Foreign::Origin));
    }
}
