//! The conditions of a request, by the version that the entry has (RFC 9110, section 13): `If-Match` and `If-None-Match`.

use crate::Version;
use do_core::{Error, ErrorKind};
use http::{
    HeaderMap, HeaderName, HeaderValue,
    header::{IF_MATCH, IF_NONE_MATCH},
};

#[derive(Debug, Default)]
pub(super) struct Conditions {
    matches: Option<Tags>,
    none_matches: Option<Tags>,
}

/// Which of them does not hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unmet {
    Match,
    NoneMatch,
}

#[derive(Debug)]
enum Tags {
    /// `*`
    Any,
    /// Those of them that can be versions.
    These(Vec<Version>),
}

impl Conditions {
    /// # Errors
    /// [`ErrorKind::Invalid`] for what is no list of entity tags.
    pub(super) fn of(headers: &HeaderMap) -> Result<Self, Error> {
        Ok(Self {
            matches: Tags::of(headers, &IF_MATCH, false)?,
            none_matches: Tags::of(headers, &IF_NONE_MATCH, true)?,
        })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.matches.is_none() && self.none_matches.is_none()
    }

    /// What does not hold for an entry of this version, or for none.
    pub(super) fn unmet(&self, version: Option<Version>) -> Option<Unmet> {
        if self.matches.as_ref().is_some_and(|tags| !tags.contain(version)) {
            return Some(Unmet::Match);
        }
        let is_met = !self.none_matches.as_ref().is_some_and(|tags| tags.contain(version));
        (!is_met).then_some(Unmet::NoneMatch)
    }
}

impl Tags {
    fn of(headers: &HeaderMap, name: &HeaderName, weak: bool) -> Result<Option<Self>, Error> {
        let mut tags: Option<Self> = None;
        for value in headers.get_all(name) {
            let wrong = || {
                let message = format!("`{name}` is `*` or versions in quotes: \"123\"");
                Error::new(ErrorKind::Invalid, message)
            };
            let text = value.to_str().map_err(|_| wrong())?.trim();
            match (&mut tags, text) {
                (None, "*") => tags = Some(Self::Any),
                (Some(Self::Any), _) | (_, "*") => return Err(wrong()),
                (Some(Self::These(versions)), text) => versions.extend(listed(text, weak).ok_or_else(wrong)?),
                (None, text) => tags = Some(Self::These(listed(text, weak).ok_or_else(wrong)?)),
            }
        }
        Ok(tags)
    }

    fn contain(&self, version: Option<Version>) -> bool {
        version.is_some_and(|version| match self {
            Self::Any => true,
            Self::These(versions) => versions.contains(&version),
        })
    }
}

/// The versions of a list of tags. What is a tag and no version is nobody's; a weak one counts only where that is enough.
fn listed(mut text: &str, weak: bool) -> Option<Vec<Version>> {
    let mut versions = Vec::new();
    loop {
        text = text.trim_start();
        let strong = text.strip_prefix("W/");
        let (tag, rest) = strong.unwrap_or(text).strip_prefix('"')?.split_once('"')?;
        if weak || strong.is_none() {
            versions.extend(version(tag));
        }
        text = rest.trim_start();
        if text.is_empty() {
            return Some(versions);
        }
        text = text.strip_prefix(',')?;
    }
}

fn version(tag: &str) -> Option<Version> {
    // One form only: `"007"` is another tag than `"7"`.
    let version = Version::from_raw(tag.parse().ok()?);
    (version.to_string() == tag).then_some(version)
}

/// The tag of a version.
pub(super) fn tag(version: Version) -> HeaderValue {
    HeaderValue::try_from(format!("\"{version}\"")).unwrap_or_else(|_| HeaderValue::from_static("\"\""))
}

/// The version of a tag that [`tag`] made.
pub(super) fn of_tag(tag: &HeaderValue) -> Option<Version> {
    version(tag.to_str().ok()?.strip_prefix('"')?.strip_suffix('"')?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unmet(headers: &[(HeaderName, &'static str)], version: Option<u64>) -> Option<Unmet> {
        let headers = headers.iter().map(|(name, value)| (name.clone(), HeaderValue::from_static(value)));
        Conditions::of(&headers.collect()).unwrap().unmet(version.map(Version::from_raw))
    }

    #[test]
    fn a_version_is_matched_as_http_says() {
        for (condition, there, other, absent) in [
            ("*", true, true, false),
            ("\"7\"", true, false, false),
            ("\"1\", \"7\" ,\"9\"", true, false, false),
            ("\"x,\", \"07\"", false, false, false),
        ] {
            for (version, holds) in [(Some(7), there), (Some(8), other), (None, absent)] {
                let matches = unmet(&[(IF_MATCH, condition)], version);
                assert_eq!(matches, (!holds).then_some(Unmet::Match), "{condition} {version:?}");
                let none = unmet(&[(IF_NONE_MATCH, condition)], version);
                assert_eq!(none, holds.then_some(Unmet::NoneMatch), "{condition} {version:?}");
            }
        }
        assert_eq!(unmet(&[(IF_MATCH, "W/\"7\"")], Some(7)), Some(Unmet::Match), "compared strongly");
        assert_eq!(unmet(&[(IF_NONE_MATCH, "W/\"7\"")], Some(7)), Some(Unmet::NoneMatch), "compared weakly");
        assert_eq!(unmet(&[(IF_MATCH, "\"7\""), (IF_NONE_MATCH, "\"7\"")], Some(7)), Some(Unmet::NoneMatch));
        assert_eq!(unmet(&[], Some(7)), None);
        assert_eq!(of_tag(&tag(Version::from_raw(7))), Some(Version::from_raw(7)));
    }

    #[test]
    fn several_lines_are_one_list_and_what_is_no_tag_is_refused() {
        let of = |values: &[&'static str]| {
            let pairs = values.iter().map(|value| (IF_MATCH, HeaderValue::from_static(value)));
            let mut headers = HeaderMap::new();
            for (name, value) in pairs {
                headers.append(name, value);
            }
            Conditions::of(&headers).map(|conditions| conditions.unmet(Some(Version::from_raw(7))))
        };
        assert_eq!(of(&["\"1\"", "\"7\""]).unwrap(), None);
        let wrong: [&[&str]; 9] = [
            &[""],
            &["7"],
            &["\"7"],
            &["\"7\","],
            &["\"7\" \"8\""],
            &["*", "\"7\""],
            &["\"7\"", "*"],
            &["*, \"7\""],
            &["w/\"7\""],
        ];
        for values in wrong {
            assert_eq!(of(values).unwrap_err().kind(), ErrorKind::Invalid, "{values:?}");
        }
    }
}
