//! From two snapshots to changes: the one place that decides what is reported, a function of what was known, what
//! is there now, and what the events of the system claimed.

use super::{
    change::{ChangeKind, RawChange},
    snapshot::{Stamp, Tree},
};
use crate::native::paths::encode;
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    path::{Path, PathBuf},
};

/// What the events of one window claimed, beyond "look here".
#[derive(Debug, Default)]
pub(super) struct Evidence {
    /// The paths that events named. Within [`rules_changed`](Self::rules_changed) only these, and what is in
    /// them, count as new.
    pub(super) touched: BTreeSet<PathBuf>,
    /// Renames from one watched path to another, oldest first.
    pub(super) moves: Vec<(PathBuf, PathBuf)>,
    /// Directories whose ignore rules changed: files come into view or leave it without having changed.
    pub(super) rules_changed: Vec<PathBuf>,
}

/// The changes that lead from `before` to `after`, sorted by path. `still_there` asks the disk about a file that
/// left the view: a file that exists but became ignored was not removed.
pub(super) fn changes(
    before: &Tree,
    after: &Tree,
    evidence: &Evidence,
    still_there: impl Fn(&Path) -> bool,
) -> Vec<RawChange> {
    let mut changes = Vec::new();
    let mut created: BTreeMap<&Path, Stamp> = BTreeMap::new();
    for (path, node) in after {
        let Some(stamp) = node.stamp() else { continue };
        match before.get(path).and_then(|node| node.stamp()) {
            Some(old) if old != stamp => changes.push(change(ChangeKind::Modified, path)),
            Some(_) => {}
            None => drop(created.insert(path, stamp)),
        }
    }
    let removed = before.iter().filter(|(path, _)| !after.get(*path).is_some_and(|node| node.is_file()));
    let removed: BTreeMap<&Path, Stamp> =
        removed.filter_map(|(path, node)| Some((path.as_path(), node.stamp()?))).collect();
    let renamed = pair(&removed, &mut created, &evidence.moves);
    for path in removed.into_keys() {
        match renamed.get(path) {
            Some(to) => changes.push(change(ChangeKind::Renamed { from: encode(path) }, to)),
            None if still_there(path) => {}
            None => changes.push(change(ChangeKind::Removed, path)),
        }
    }
    let created = created.into_keys().filter(|path| !evidence.only_came_into_view(path));
    changes.extend(created.map(|path| change(ChangeKind::Created, path)));
    changes.sort_by(|a, b| a.path.cmp(&b.path));
    changes
}

fn change(kind: ChangeKind, path: &Path) -> RawChange {
    RawChange { kind, path: encode(path) }
}

/// Finds the removed files that are a created file now, and takes those out of `created`.
///
/// The same inode with the same content is a rename whoever reports it. When the file was also written to in the
/// window, the system's word for the rename is needed, because inode numbers of deleted files are given out again.
fn pair<'a>(
    removed: &BTreeMap<&'a Path, Stamp>,
    created: &mut BTreeMap<&'a Path, Stamp>,
    moves: &[(PathBuf, PathBuf)],
) -> HashMap<&'a Path, &'a Path> {
    let by_identity: HashMap<(u64, u64), &Path> =
        created.iter().filter_map(|(path, stamp)| Some((stamp.identity()?, *path))).collect();
    let mut pairs = HashMap::new();
    for (from, old) in removed {
        let same = old.identity().and_then(|identity| by_identity.get(&identity));
        let same = same.filter(|to| created.get(**to).is_some_and(|new| new.same_content(old)));
        let to = same.copied().or_else(|| {
            let to = follow(from, moves)?;
            let (to, new) = created.get_key_value(to.as_path())?;
            (new.identity() == old.identity()).then_some(*to)
        });
        if let Some(to) = to {
            created.remove(to);
            pairs.insert(*from, to);
        }
    }
    pairs
}

/// Where `path` is after all `moves`, of itself and of directories above it; none when nothing moved it.
fn follow(path: &Path, moves: &[(PathBuf, PathBuf)]) -> Option<PathBuf> {
    let mut now: Option<PathBuf> = None;
    for (from, to) in moves {
        let at = now.as_deref().unwrap_or(path);
        match at.strip_prefix(from) {
            Ok(rest) if rest.as_os_str().is_empty() => now = Some(to.clone()),
            Ok(rest) => now = Some(to.join(rest)),
            Err(_) => {}
        }
    }
    now
}

impl Evidence {
    fn only_came_into_view(&self, path: &Path) -> bool {
        self.rules_changed.iter().any(|dir| path.starts_with(dir))
            && !path.ancestors().any(|part| self.touched.contains(part))
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::snapshot::{Node, stamp_for_test},
        *,
    };

    /// `"a/b.txt 7 1"` is a file with inode 7 and content 1, `"a/"` a directory.
    fn tree(lines: &[&str]) -> Tree {
        let mut tree = Tree::new();
        for line in lines {
            let mut words = line.split(' ');
            let path = words.next().unwrap();
            let mut number = || words.next().map(|word| word.parse::<u64>().unwrap());
            let node = match (number(), number()) {
                (Some(inode), Some(content)) => Node::File(stamp_for_test(inode, content, content)),
                _ => Node::Directory,
            };
            tree.insert(PathBuf::from(path.trim_end_matches('/')), node);
        }
        tree
    }

    fn moves(pairs: &[(&str, &str)]) -> Evidence {
        let moves = pairs.iter().map(|(from, to)| (PathBuf::from(from), PathBuf::from(to))).collect();
        Evidence { moves, ..Evidence::default() }
    }

    fn check(before: &[&str], after: &[&str], evidence: &Evidence, expected: &[&str]) {
        let found = changes(&tree(before), &tree(after), evidence, |_| false);
        assert_eq!(found.iter().map(ToString::to_string).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn each_kind_of_change_is_told_apart() {
        let before = ["a/", "a/same 1 1", "a/other 2 1", "a/gone 3 1"];
        let after = ["a/", "a/same 1 1", "a/other 2 2", "a/new 4 1"];
        check(&before, &after, &moves(&[]), &["removed a/gone", "created a/new", "modified a/other"]);
        check(&before, &before, &moves(&[]), &[]);
    }

    #[test]
    fn a_replacement_by_rename_is_a_modification() {
        check(&["f 1 1"], &["f 2 2"], &moves(&[("f.tmp", "f")]), &["modified f"]);
    }

    #[test]
    fn a_replacement_by_a_file_that_was_reported_keeps_the_target_modified() {
        let expected = ["modified f", "removed f.tmp"];
        check(&["f 1 1", "f.tmp 2 2"], &["f 2 2"], &moves(&[("f.tmp", "f")]), &expected);
    }

    #[test]
    fn a_backup_that_stays_is_created_and_the_file_is_modified() {
        let expected = ["modified f", "created f~"];
        check(&["f 1 1"], &["f 2 2", "f~ 1 1"], &moves(&[("f", "f~")]), &expected);
    }

    #[test]
    fn a_rename_needs_no_event_when_inode_and_content_agree() {
        check(&["a 1 1"], &["b 1 1"], &moves(&[]), &["renamed a -> b"]);
    }

    #[test]
    fn a_reused_inode_is_not_a_rename() {
        check(&["a 1 1"], &["b 1 2"], &moves(&[]), &["removed a", "created b"]);
        check(&["a 1 1"], &["b 2 1"], &moves(&[("a", "b")]), &["removed a", "created b"]);
    }

    #[test]
    fn a_file_renamed_and_written_is_a_rename_by_the_event() {
        check(&["a 1 1"], &["b 1 2"], &moves(&[("a", "b")]), &["renamed a -> b"]);
        check(&["a 1 1"], &["c 1 2"], &moves(&[("a", "b"), ("b", "c")]), &["renamed a -> c"]);
    }

    #[test]
    fn a_renamed_directory_renames_each_file() {
        let before = ["d/", "d/x 1 1", "d/e/", "d/e/y 2 1"];
        let after = ["n/", "n/x 1 1", "n/e/", "n/e/y 2 9"];
        let expected = ["renamed d/e/y -> n/e/y", "renamed d/x -> n/x"];
        check(&before, &after, &moves(&[("d", "n")]), &expected);
    }

    #[test]
    fn two_files_that_swap_names_are_both_modified() {
        let evidence = moves(&[("a", "t"), ("b", "a"), ("t", "b")]);
        check(&["a 1 1", "b 2 2"], &["a 2 2", "b 1 1"], &evidence, &["modified a", "modified b"]);
    }

    #[test]
    fn a_file_that_takes_the_name_of_a_directory_is_created() {
        check(&["d/", "d/x 1 1"], &["d 2 1"], &moves(&[]), &["created d", "removed d/x"]);
    }

    #[test]
    fn files_that_only_change_visibility_are_not_reported() {
        let mut evidence = Evidence { rules_changed: vec![PathBuf::new()], ..Evidence::default() };
        evidence.touched.insert(PathBuf::from("fresh"));
        let (before, after) = (tree(&["hidden 1 1"]), tree(&["shown 2 2", "fresh/", "fresh/f 3 3"]));
        let found = changes(&before, &after, &evidence, |path| path == Path::new("hidden"));
        assert_eq!(found.iter().map(ToString::to_string).collect::<Vec<_>>(), ["created fresh/f"]);
    }
}
