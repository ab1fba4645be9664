//! One change of one file, as the watcher reports it: a name and a kind, no sequence number and no time.

use std::fmt;

/// What happened to a file.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ChangeKind {
    /// The file is new here: written, or moved in from a place that is not watched.
    Created,
    /// The file was there and has other content or other permissions now, a replacement by rename included.
    Modified,
    /// The file is gone: deleted, or moved to a place that is not watched.
    Removed,
    /// The file is the one that had another name before.
    Renamed {
        /// The name before, written like [`RawChange::path`].
        from: String,
    },
}

/// One change of a regular file or a symbolic link. Directories are not reported, only what is in them.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RawChange {
    /// What happened.
    pub kind: ChangeKind,
    /// The name now, relative to the watched folder, with `/` between the parts; see
    /// [`encode`](crate::native::paths::encode) for names that are not UTF-8.
    pub path: String,
}

impl fmt::Display for RawChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            ChangeKind::Created => write!(f, "created {}", self.path),
            ChangeKind::Modified => write!(f, "modified {}", self.path),
            ChangeKind::Removed => write!(f, "removed {}", self.path),
            ChangeKind::Renamed { from } => write!(f, "renamed {from} -> {}", self.path),
        }
    }
}
