//! What a request is about: its path and its query.
//!
//! A key is one segment of the path, percent-encoded, and may be any text. Only `.` and `..` cannot be: whoever reads a URL
//! takes such segments out, encoded or not. So a key may stand in the query as well, and stubs always write it there.

use super::wire::Refused;
use do_core::{Error, ErrorKind};
use http::{StatusCode, Uri};
use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use std::{borrow::Cow, fmt::Display};

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// `/entry/KEY` or `/entry?key=KEY`
    Entry(String),
    /// `/take/KEY` or `/take?key=KEY`
    Take(String),
    /// `/entries`
    Entries,
    /// `/count`
    Count,
    /// `/stats`
    Stats,
    /// `/get_many` and the like
    Many(Many),
}

/// An operation on several keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Many {
    Get,
    Put,
    Remove,
}

impl Target {
    pub(super) fn of(uri: &Uri) -> Result<Self, Refused> {
        let path = uri.path();
        match path {
            "/entries" => return Ok(Self::Entries),
            "/count" => return Ok(Self::Count),
            "/stats" => return Ok(Self::Stats),
            "/get_many" => return Ok(Self::Many(Many::Get)),
            "/put_many" => return Ok(Self::Many(Many::Put)),
            "/remove_many" => return Ok(Self::Many(Many::Remove)),
            _ => {}
        }
        if let Some(rest) = path.strip_prefix("/entry") {
            Ok(Self::Entry(key(rest, uri)?))
        } else if let Some(rest) = path.strip_prefix("/take") {
            Ok(Self::Take(key(rest, uri)?))
        } else {
            Err(unknown(path))
        }
    }

    /// What may be done with it.
    pub(super) fn methods(&self) -> &'static str {
        match self {
            Self::Entry(_) => "GET, HEAD, PUT, PATCH, DELETE",
            Self::Take(_) | Self::Many(_) => "POST",
            Self::Entries => "GET, DELETE",
            Self::Count | Self::Stats => "GET",
        }
    }
}

fn unknown(path: &str) -> Refused {
    let start: String = path.chars().take(64).collect();
    Refused::new(StatusCode::NOT_FOUND, "unknown_path", format!("there is nothing at {start:?}"))
}

/// The key, of what comes behind the name of an operation.
fn key(rest: &str, uri: &Uri) -> Result<String, Refused> {
    let encoded = match rest.strip_prefix('/') {
        Some(segment) if !segment.contains('/') => Cow::Borrowed(segment),
        None if rest.is_empty() => {
            let none =
                || Error::new(ErrorKind::Invalid, "there is no key: it is `/KEY` behind this, or `?key=KEY`");
            return Ok(parameter(uri, "key")?.ok_or_else(none)?);
        }
        _ => return Err(unknown(uri.path())),
    };
    Ok(decoded(&encoded, "key")?)
}

/// The first parameter of a name in the query. Unlike in a form, what is no UTF-8 is refused: two keys must not become one.
pub(super) fn parameter(uri: &Uri, name: &str) -> Result<Option<String>, Error> {
    let pairs =
        uri.query().unwrap_or_default().split('&').map(|pair| pair.split_once('=').unwrap_or((pair, "")));
    let mut found = pairs.filter(|(key, _)| *key == name).map(|(_, value)| value.replace('+', " "));
    found.next().map(|value| decoded(&value, name)).transpose()
}

fn decoded(encoded: &str, what: &str) -> Result<String, Error> {
    percent_decode_str(encoded).decode_utf8().map(Cow::into_owned).map_err(|error| {
        Error::new(ErrorKind::Invalid, format!("`{what}` is not percent-encoded UTF-8")).with_source(error)
    })
}

/// A path with a parameter.
pub(super) fn with(path: &str, name: &str, value: &str) -> String {
    format!("{path}?{name}={}", encoded(value))
}

/// As the value of a parameter.
pub(super) fn encoded(value: &str) -> impl Display {
    utf8_percent_encode(value, NON_ALPHANUMERIC)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(uri: &str) -> Result<Target, StatusCode> {
        Target::of(&uri.parse().unwrap()).map_err(|refused| refused.status())
    }

    #[test]
    fn a_key_is_any_text_as_a_segment_or_in_the_query() {
        for (uri, key) in [
            ("/entry/a", "a"),
            ("/entry/a%2Fb%20c+d", "a/b c+d"),
            ("/entry/", ""),
            ("/entry/%00%C3%A9", "\0\u{e9}"),
            ("/entry?key=..", ".."),
            ("/entry?x=1&key=a+b%2B&key=2", "a b+"),
            ("/entry?key=", ""),
            ("/entry?key", ""),
        ] {
            assert_eq!(of(uri), Ok(Target::Entry(key.to_owned())), "{uri}");
        }
        assert_eq!(of("/take/a"), Ok(Target::Take("a".to_owned())));
        for key in ["", ".", "..", "a/b", "?&=#%", "\0", "\u{10ffff} +", "~user-1_x.html"] {
            assert_eq!(of(&with("/entry", "key", key)), Ok(Target::Entry(key.to_owned())));
        }
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for (uri, status) in [
            ("/", 404),
            ("/entr", 404),
            ("/entry2", 404),
            ("/entry/a/b", 404),
            ("/entries/", 404),
            ("/entry", 400),
            ("/entry?k=1", 400),
            ("/entry/%FF", 400),
            ("/entry?key=%C3", 400),
        ] {
            assert_eq!(of(uri).unwrap_err(), status, "{uri}");
        }
    }
}
