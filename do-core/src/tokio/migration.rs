//! What becomes of namespaces from one deployment to the next, in the platform's words: created, renamed, deleted, each
//! change under a tag that is applied once.

use crate::{Error, ErrorKind};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Longest tag in bytes.
const TAG_BYTES: usize = 256;

/// Longest name of a namespace in bytes. Files are named by it.
const NAME_BYTES: usize = 64;

/// Some changes of namespaces under one tag, for [`Builder::migrations`](super::Builder::migrations).
///
/// What `wrangler.toml` says of classes, this says of the namespaces that
/// [`Builder::object`](super::Builder::object) registers. The changes of one migration happen in the order in which
/// they are written.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub struct Migration(pub(super) Applied);

/// A migration as a data directory remembers it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Applied {
    tag: String,
    changes: Vec<Change>,
}

/// One change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Change {
    Created(String),
    Renamed { from: String, to: String },
    Deleted(String),
}

impl Migration {
    /// A migration that changes nothing yet. The tag is remembered in the data directory: 1 to 256 bytes, and no other
    /// migration's.
    pub fn new(tag: impl Into<String>) -> Self {
        Self(Applied { tag: tag.into(), changes: Vec::new() })
    }

    /// A new namespace (`new_sqlite_classes`). In a directory that was used without migrations before, it takes over
    /// the objects that are there under this name; otherwise it is empty.
    pub fn created(self, namespace: impl Into<String>) -> Self {
        self.and(Change::Created(namespace.into()))
    }

    /// Another name for a namespace (`renamed_classes`). Its objects keep their ids, their data and their alarms, and no
    /// file is touched.
    pub fn renamed(self, from: impl Into<String>, to: impl Into<String>) -> Self {
        self.and(Change::Renamed { from: from.into(), to: to.into() })
    }

    /// The end of a namespace (`deleted_classes`): of all its objects with their data and their alarms. Its name may be
    /// created again, and then has none of them.
    pub fn deleted(self, namespace: impl Into<String>) -> Self {
        self.and(Change::Deleted(namespace.into()))
    }

    fn and(mut self, change: Change) -> Self {
        self.0.changes.push(change);
        self
    }
}

impl Applied {
    pub(super) fn tag(&self) -> &str {
        &self.tag
    }

    pub(super) fn changes(&self) -> &[Change] {
        &self.changes
    }

    /// Whether its tag and the names in it may be used at all.
    pub(super) fn check(&self) -> Result<(), Error> {
        if self.tag.is_empty() || self.tag.len() > TAG_BYTES {
            let message = format!("the tag of a migration must have 1 to {TAG_BYTES} bytes: {:?}", self.tag);
            return Err(Error::new(ErrorKind::Invalid, message));
        }
        self.changes.iter().try_for_each(|change| match change {
            Change::Created(name) | Change::Deleted(name) => check_name(name),
            Change::Renamed { from, to } => check_name(from).and_then(|()| check_name(to)),
        })
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Created(name) => write!(f, "creates {name}"),
            Self::Renamed { from, to } => write!(f, "renames {from} to {to}"),
            Self::Deleted(name) => write!(f, "deletes {name}"),
        }
    }
}

/// Whether a namespace may be called this.
pub(super) fn check_name(name: &str) -> Result<(), Error> {
    let legal = name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'));
    if !name.is_empty() && name.len() <= NAME_BYTES && legal {
        return Ok(());
    }
    let message = format!(
        "the namespace {name:?} must have 1 to {NAME_BYTES} ASCII letters, digits, underscores and hyphens"
    );
    Err(Error::new(ErrorKind::Invalid, message))
}
