//! Who may talk to the room from a browser: the page of this server, and nobody else's. Others could otherwise open a
//! WebSocket to, or post at, any server that the visitor's browser reaches, the one on their own machine included.

use do_sync::Origins;
use http::{HeaderMap, Uri, header, uri::Authority};

/// Why a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Foreign {
    #[error("the Origin is not this server")]
    Origin,
    #[error("the Host is not this machine")]
    Host,
}

/// Checks the `Origin`, if there is one, against the `Host`, and on a loopback listener the `Host` itself. Asked one after
/// the other, so that whoever is refused is told for which.
pub(crate) fn check(uri: &Uri, headers: &HeaderMap, loopback: bool) -> Result<(), Foreign> {
    let origins = Origins::same_host();
    origins.check_parts(uri, headers).map_err(|_| Foreign::Origin)?;
    if loopback {
        origins.loopback_only().check_parts(uri, headers).map_err(|_| Foreign::Host)?;
    }
    Ok(())
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
    fn a_page_of_another_server_is_foreign() {
        for (host, origin, same) in [
            ("x", "http://x", true),
            ("x:443", "https://x", true),
            ("[::1]:8080", "http://[::1]:8080", true),
            ("x:8080", "http://x", false),
            ("x", "http://y", false),
            ("x", "null", false),
            ("x", "", false),
            ("localhost:1", "http://127.0.0.1:1", false),
        ] {
            let expected = if same { Ok(()) } else { Err(Foreign::Origin) };
            assert_eq!(verdict("/ws", &[host], &[origin], false), expected, "Host {host}, Origin {origin}");
        }
        assert_eq!(verdict("/ws", &["x"], &[], false), Ok(()));
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
