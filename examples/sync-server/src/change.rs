//! What happened to a file: as a publisher reports it, and as the room records it.
//!
//! Everything is checked when a [`Change`] is made, so that none that exists is wrong. Input is read strictly: a
//! field that is not known is an error, because dropping it would lose what the publisher meant. That also
//! refuses `seq` and `at`, which only the room gives.

use serde::{
    Deserialize, Deserializer, Serialize,
    de::{MapAccess, Visitor, value::MapAccessDeserializer},
};
use std::fmt;

/// Longest path, in UTF-8 bytes: that of Linux.
pub const PATH_BYTES: usize = 4_096;

/// Most changes that are reported at once.
pub const BATCH: usize = 1_000;

/// Longest report, in bytes.
pub const BODY_BYTES: usize = 64 * 1_024;

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// It is new.
    Created,
    /// Its content or metadata changed.
    Modified,
    /// It is gone.
    Removed,
    /// It has another path now.
    Renamed,
}

/// One change as a publisher reports it, checked.
///
/// ```
/// use sync_server::Change;
///
/// let change: Change = serde_json::from_str(r#"{"type":"change","kind":"created","path":"src/lib.rs"}"#)?;
/// assert_eq!(change.path(), "src/lib.rs");
/// assert!(serde_json::from_str::<Change>(r#"{"kind":"created","path":"../secret"}"#).is_err());
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename = "change")]
pub struct Change {
    kind: Kind,
    path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<String>,
}

impl Change {
    /// A change of any kind but [`Kind::Renamed`].
    ///
    /// # Errors
    /// [`Invalid`] when the path is no [valid](Invalid) one, or for a rename.
    pub fn new(kind: Kind, path: impl Into<String>) -> Result<Self, Invalid> {
        Self::check(kind, path.into(), None)
    }

    /// Something has another path now.
    ///
    /// # Errors
    /// [`Invalid`] when one of the paths is.
    pub fn renamed(from: impl Into<String>, path: impl Into<String>) -> Result<Self, Invalid> {
        Self::check(Kind::Renamed, path.into(), Some(from.into()))
    }

    fn check(kind: Kind, path: String, from: Option<String>) -> Result<Self, Invalid> {
        check_path(&path)?;
        match (kind, &from) {
            (Kind::Renamed, None) => return Err(Invalid::FromMissing),
            (Kind::Renamed, Some(from)) => check_path(from)?,
            (_, Some(_)) => return Err(Invalid::FromUnexpected),
            (_, None) => {}
        }
        Ok(Self { kind, path, from })
    }

    /// What happened.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The path, relative to the watched root, with `/` between its parts.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The path before; only of a rename.
    pub fn from(&self) -> Option<&str> {
        self.from.as_deref()
    }

    /// The same change with the number and the time that the room gave it.
    pub(crate) fn record(self, seq: u64, at: i64) -> Recorded {
        Recorded { seq, kind: self.kind, path: self.path, at, from: self.from }
    }
}

/// A path must be relative, not empty, at most [`PATH_BYTES`] long, and have no part `..` or `.`, no empty part and
/// no NUL.
fn check_path(path: &str) -> Result<(), Invalid> {
    match path {
        "" => Err(Invalid::PathEmpty),
        long if long.len() > PATH_BYTES => Err(Invalid::PathLong),
        absolute if absolute.starts_with('/') => Err(Invalid::PathAbsolute),
        nul if nul.contains('\0') => Err(Invalid::PathNul),
        outside if outside.split('/').any(|part| part == "..") => Err(Invalid::PathOutside),
        // One file has one name.
        loose if loose.split('/').any(|part| matches!(part, "" | ".")) => Err(Invalid::PathLoose),
        _ => Ok(()),
    }
}

/// Why something is no change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Invalid {
    /// The path has no characters.
    #[error("the path is empty")]
    PathEmpty,
    /// The path is longer than [`PATH_BYTES`].
    #[error("the path is longer than {PATH_BYTES} bytes")]
    PathLong,
    /// The path begins with `/`.
    #[error("the path is not relative")]
    PathAbsolute,
    /// The path contains a NUL character, which no file system takes.
    #[error("the path contains a NUL character")]
    PathNul,
    /// The path has a part `..`.
    #[error("the path has a part `..`")]
    PathOutside,
    /// The path has an empty part, as in `a//b`, or a part `.`.
    #[error("the path has an empty part or a part `.`")]
    PathLoose,
    /// A rename does not say from where.
    #[error("`renamed` needs `from`")]
    FromMissing,
    /// Another change says from where.
    #[error("only `renamed` has `from`")]
    FromUnexpected,
}

impl<'de> Deserialize<'de> for Change {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // Only from a map: serde would also read a list of the fields in order.
        deserializer.deserialize_map(ChangeVisitor)
    }
}

struct ChangeVisitor;

impl<'de> Visitor<'de> for ChangeVisitor {
    type Value = Change;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a change object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Change, A::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Draft {
            #[serde(rename = "type", default)]
            _type: Option<Type>,
            kind: Kind,
            path: String,
            #[serde(default)]
            from: Option<String>,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "lowercase")]
        enum Type {
            Change,
        }
        let draft = Draft::deserialize(MapAccessDeserializer::new(map))?;
        Change::check(draft.kind, draft.path, draft.from).map_err(serde::de::Error::custom)
    }
}

/// One change as the room recorded it: what editors receive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename = "change")]
pub(crate) struct Recorded {
    pub(crate) seq: u64,
    pub(crate) kind: Kind,
    pub(crate) path: String,
    /// Unix ms.
    pub(crate) at: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) from: Option<String>,
}

/// Why a report is refused as a whole.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refused {
    /// With the reason, for the publisher.
    #[error("{0}")]
    Malformed(String),
    #[error("a report has at most {BATCH} changes")]
    TooMany,
}

/// Reads the body of a report: one change, or a list of 1 to [`BATCH`].
pub(crate) fn read_report(body: &[u8]) -> Result<Vec<Change>, Refused> {
    let malformed =
        |e: serde_json::Error| Refused::Malformed(format!("not a change or a list of changes: {e}"));
    if !body.trim_ascii_start().starts_with(b"[") {
        return Ok(vec![serde_json::from_slice(body).map_err(malformed)?]);
    }
    let changes: Vec<Change> = serde_json::from_slice(body).map_err(malformed)?;
    match changes.len() {
        0 => Err(Refused::Malformed("the list of changes is empty".to_owned())),
        1..=BATCH => Ok(changes),
        _ => Err(Refused::TooMany),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(json: &str) -> String {
        match read_report(json.as_bytes()) {
            Err(Refused::Malformed(reason)) => reason,
            other => panic!("{json}: {other:?}"),
        }
    }

    #[test]
    fn the_json_forms_are_those_of_the_interface() {
        let created = Change::new(Kind::Created, "a/b.rs").unwrap();
        let renamed = Change::renamed("old", "new").unwrap();
        assert_eq!(
            serde_json::to_string(&created.clone().record(7, 1_000)).unwrap(),
            r#"{"type":"change","seq":7,"kind":"created","path":"a/b.rs","at":1000}"#
        );
        assert_eq!(
            serde_json::to_string(&renamed.clone().record(8, 1_000)).unwrap(),
            r#"{"type":"change","seq":8,"kind":"renamed","path":"new","at":1000,"from":"old"}"#
        );
        for change in [created, renamed] {
            let json = serde_json::to_vec(&change).unwrap();
            assert_eq!(read_report(&json).unwrap(), [change], "what is written reads back");
        }
    }

    #[test]
    fn reads_one_change_or_a_list_with_or_without_the_type() {
        let one = read_report(br#" {"kind":"modified","path":"x"}"#).unwrap();
        assert_eq!(one, [Change::new(Kind::Modified, "x").unwrap()]);
        let two =
            r#"[{"type":"change","kind":"removed","path":"x"}, {"kind":"renamed","path":"y","from":"x"}]"#;
        assert_eq!(read_report(two.as_bytes()).unwrap().len(), 2);
        let list = |n: usize| format!("[{}]", vec![r#"{"kind":"created","path":"a"}"#; n].join(","));
        assert_eq!(read_report(list(BATCH).as_bytes()).unwrap().len(), BATCH);
        assert!(list(BATCH).len() <= BODY_BYTES);
        assert_eq!(read_report(list(BATCH + 1).as_bytes()), Err(Refused::TooMany));
    }

    #[test]
    fn every_malformed_report_is_refused_as_a_whole() {
        for bad in [
            "",
            "[]",
            "null",
            "1",
            "{}",
            "{",
            r#""created""#,
            r#"["created","x"]"#,
            r#"[["created","x"]]"#,
            r#"{"kind":"created"}"#,
            r#"{"path":"x"}"#,
            r#"{"kind":"Created","path":"x"}"#,
            r#"{"kind":"created","path":1}"#,
            r#"{"kind":"created","path":"x","seq":1}"#,
            r#"{"kind":"created","path":"x","at":1}"#,
            r#"{"kind":"created","path":"x","form":"y"}"#,
            r#"{"type":"hello","kind":"created","path":"x"}"#,
            r#"{"kind":"created","path":"x","path":"y"}"#,
            r#"{"kind":"created","path":"x"} {}"#,
            r#"[{"kind":"created","path":"x"},{"kind":"created","path":"/x"}]"#,
        ] {
            refused(bad);
        }
        assert!(matches!(
            read_report(b"{\"kind\":\"created\",\"path\":\"\xff\"}"),
            Err(Refused::Malformed(_))
        ));
        assert!(refused(r#"{"kind":"created","path":"x","seq":1}"#).contains("unknown field `seq`"));
    }

    #[test]
    fn paths_stay_inside_the_root() {
        let check = |path: &str| Change::new(Kind::Created, path).err();
        for good in ["a", "a/b", "..a", "a..", "a/..b", "…", "a\nb", ".git", "x y", &"x".repeat(PATH_BYTES)]
        {
            assert_eq!(check(good), None, "{good:?}");
        }
        assert_eq!(check(""), Some(Invalid::PathEmpty));
        assert_eq!(check("/etc/passwd"), Some(Invalid::PathAbsolute));
        assert_eq!(check("a\0"), Some(Invalid::PathNul));
        assert_eq!(check(&"x".repeat(PATH_BYTES + 1)), Some(Invalid::PathLong));
        for loose in [".", "./a", "a/.", "a//b", "a/"] {
            assert_eq!(check(loose), Some(Invalid::PathLoose), "{loose:?}");
        }
        for outside in ["..", "../a", "a/..", "a/../b"] {
            assert_eq!(check(outside), Some(Invalid::PathOutside), "{outside:?}");
            assert_eq!(Change::renamed(outside, "a"), Err(Invalid::PathOutside), "{outside:?}");
        }
    }

    #[test]
    fn from_comes_with_renamed_and_only_then() {
        assert_eq!(Change::new(Kind::Renamed, "x"), Err(Invalid::FromMissing));
        assert_eq!(
            refused(r#"{"kind":"renamed","path":"x"}"#).split(" at line").next(),
            Some("not a change or a list of changes: `renamed` needs `from`")
        );
        refused(r#"{"kind":"created","path":"x","from":"y"}"#);
    }
}
