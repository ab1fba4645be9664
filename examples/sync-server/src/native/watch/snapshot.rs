//! What the watcher knows of the folder: every visible file and directory with the marks that show a change.

use std::{
    collections::BTreeMap,
    fs::Metadata,
    ops::Bound,
    path::{Path, PathBuf},
    time::SystemTime,
};

/// A set of known paths relative to the watched folder, which itself is the empty path. The order of `Path` is
/// by parts, so that a directory is followed by all that is in it.
pub(super) type Tree = BTreeMap<PathBuf, Node>;

/// One known path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Node {
    /// A directory, which is watched.
    Directory,
    /// A regular file or a symbolic link.
    File(Stamp),
}

impl Node {
    pub(super) fn is_file(self) -> bool {
        matches!(self, Self::File(_))
    }

    pub(super) fn stamp(self) -> Option<Stamp> {
        match self {
            Self::File(stamp) => Some(stamp),
            Self::Directory => None,
        }
    }
}

/// The marks of a file that change when it does. The time of the last status change is not among them: a new
/// hard link or a rename moves it, and neither is a change of this file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    identity: Option<(u64, u64)>,
    len: u64,
    mode: u32,
    symlink: bool,
    modified: Option<SystemTime>,
}

impl Stamp {
    pub(super) fn of(metadata: &Metadata) -> Self {
        Self {
            identity: identity(metadata),
            len: metadata.len(),
            mode: mode(metadata),
            symlink: metadata.file_type().is_symlink(),
            modified: metadata.modified().ok(),
        }
    }

    /// Device and inode: the same for a file under another name, but also for a new file after an old one.
    pub(super) fn identity(&self) -> Option<(u64, u64)> {
        self.identity
    }

    /// Whether nothing but the permissions can differ. Inode numbers are given out again; together with the time
    /// in nanoseconds and the length they name one content.
    pub(super) fn same_content(&self, other: &Self) -> bool {
        self.identity.is_some()
            && self.identity == other.identity
            && self.len == other.len
            && self.symlink == other.symlink
            && self.modified == other.modified
    }
}

/// Takes `path` and all that is in it out of `tree`.
pub(super) fn remove_subtree(tree: &mut Tree, path: &Path) -> Tree {
    if path.as_os_str().is_empty() {
        return std::mem::take(tree);
    }
    let inside = tree.range::<Path, _>((Bound::Included(path), Bound::Unbounded));
    let inside: Vec<PathBuf> =
        inside.map(|(key, _)| key).take_while(|key| key.starts_with(path)).cloned().collect();
    inside.into_iter().filter_map(|key| tree.remove_entry(&key)).collect()
}

#[cfg(unix)]
fn identity(metadata: &Metadata) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    Some((metadata.dev(), metadata.ino()))
}

#[cfg(not(unix))]
fn identity(_: &Metadata) -> Option<(u64, u64)> {
    None
}

#[cfg(unix)]
fn mode(metadata: &Metadata) -> u32 {
    use std::os::unix::fs::MetadataExt;
    metadata.mode()
}

#[cfg(not(unix))]
fn mode(metadata: &Metadata) -> u32 {
    u32::from(metadata.permissions().readonly())
}

#[cfg(test)]
pub(super) fn stamp_for_test(inode: u64, len: u64, seconds: u64) -> Stamp {
    let modified = Some(SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(seconds));
    Stamp { identity: Some((1, inode)), len, mode: 0o644, symlink: false, modified }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(paths: &[&str]) -> Tree {
        paths.iter().map(|path| (PathBuf::from(path), Node::Directory)).collect()
    }

    #[test]
    fn a_subtree_is_a_directory_and_what_is_in_it_but_not_its_namesakes() {
        let mut all = tree(&["", "a", "a/b", "a/b/c", "a.txt", "a-b", "ab", "z"]);
        let taken = remove_subtree(&mut all, Path::new("a"));
        assert_eq!(taken, tree(&["a", "a/b", "a/b/c"]));
        assert_eq!(all, tree(&["", "a.txt", "a-b", "ab", "z"]));
        assert_eq!(remove_subtree(&mut all, Path::new("nothing")), Tree::new());
        assert_eq!(remove_subtree(&mut all, Path::new("z")), tree(&["z"]));
        assert_eq!(remove_subtree(&mut all, Path::new("")).len(), 4);
        assert_eq!(all, Tree::new());
    }
}
