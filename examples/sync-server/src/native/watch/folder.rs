//! The watched folder on disk: what of it is visible, and what is there now.

use super::snapshot::{Node, Stamp, Tree};
use ignore::{IncrementalIgnore, WalkBuilder};
use std::{
    ffi::OsStr,
    fs, io,
    path::{Path, PathBuf},
};

/// The files whose change changes the rules. Rules that lie outside of the folder, or in `.git`, are read again
/// together with these.
const RULE_FILES: [&str; 2] = [".gitignore", ".ignore"];

/// The folder, its rules, and the paths that are nobody's business.
#[derive(Debug)]
pub(super) struct Folder {
    root: PathBuf,
    exclude: Vec<PathBuf>,
    /// Reads the rule files of a directory when it is first asked about it, and keeps them.
    rules: Option<IncrementalIgnore>,
}

impl Folder {
    /// `root` must be canonical: events carry the path that a watch was placed with.
    pub(super) fn new(root: PathBuf, exclude: &[PathBuf]) -> Self {
        let exclude = exclude
            .iter()
            .filter_map(|path| Some(canonical(path)?.strip_prefix(&root).ok()?.to_owned()))
            .filter(|path| !path.as_os_str().is_empty())
            .collect();
        let mut folder = Self { root, exclude, rules: None };
        folder.reload_rules();
        folder
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    pub(super) fn absolute(&self, path: &Path) -> PathBuf {
        if path.as_os_str().is_empty() { self.root.clone() } else { self.root.join(path) }
    }

    /// Forgets the rules that were read, so that the next question reads them again.
    pub(super) fn reload_rules(&mut self) {
        let mut builder = WalkBuilder::new(&self.root);
        // Dot files are reported unless ignored. A .gitignore counts whether or not git was ever run here, but then
        // only within the folder: people keep a `*` in that of their home for dot files.
        let in_git = self.root.ancestors().any(|directory| directory.join(".git").exists());
        builder.hidden(false).require_git(in_git).parents(in_git).current_dir(&self.root);
        self.rules = builder.build_matchers().pop();
    }

    /// Whether changes of this path can change the rules.
    pub(super) fn is_rule_file(path: &Path) -> bool {
        path.file_name().is_some_and(|name| RULE_FILES.iter().any(|rule| name == *rule))
    }

    fn is_visible(&mut self, path: &Path, is_directory: bool) -> bool {
        if is_git(path) || self.exclude.iter().any(|excluded| path.starts_with(excluded)) {
            return false;
        }
        let Some(rules) = &mut self.rules else { return true };
        let (matched, errors) = rules.matched_with_errors(path, is_directory);
        if let Some(errors) = errors {
            tracing::warn!("an ignore rule is skipped: {errors}");
        }
        !matched.is_ignore()
    }

    /// What is at `path` and in it, as far as it is visible. Calls `watch` with each directory before reading it:
    /// the other way round a file created in between would be in neither the list nor the events.
    ///
    /// What cannot be read is logged and left out. Symbolic links are not followed.
    pub(super) fn scan(&mut self, path: &Path, mut watch: impl FnMut(&Path)) -> Tree {
        let mut tree = Tree::new();
        let mut open = vec![path.to_owned()];
        while let Some(path) = open.pop() {
            let absolute = self.absolute(&path);
            let metadata = match fs::symlink_metadata(&absolute) {
                Ok(metadata) => metadata,
                Err(error) => {
                    log_unreadable(&absolute, &error);
                    continue;
                }
            };
            let kind = metadata.file_type();
            if !path.as_os_str().is_empty() && !self.is_visible(&path, kind.is_dir()) {
                continue;
            }
            if kind.is_dir() {
                watch(&absolute);
                match names(&absolute) {
                    Ok(names) => open.extend(names.map(|name| path.join(name))),
                    Err(error) => log_unreadable(&absolute, &error),
                }
                tree.insert(path, Node::Directory);
            } else if kind.is_file() || kind.is_symlink() {
                tree.insert(path, Node::File(Stamp::of(&metadata)));
            }
        }
        tree
    }

    /// Whether `path` is a directory right now.
    pub(super) fn is_directory(&self, path: &Path) -> bool {
        fs::symlink_metadata(self.absolute(path)).is_ok_and(|metadata| metadata.is_dir())
    }

    /// Whether there is a file at `path` within the folder itself, not behind a link that took the place of a
    /// directory. A directory that took the file's place is none.
    pub(super) fn has_file(&self, path: &Path) -> bool {
        let absolute = self.absolute(path);
        let in_place = |parent: &Path| fs::canonicalize(parent).is_ok_and(|real| real == parent);
        fs::symlink_metadata(&absolute).is_ok_and(|found| !found.is_dir())
            && absolute.parent().is_some_and(in_place)
    }
}

/// Whether `path` is git's own: a directory, or the file that stands for it in a linked work tree.
pub(super) fn is_git(path: &Path) -> bool {
    path.components().any(|part| part.as_os_str() == OsStr::new(".git"))
}

fn names(directory: &Path) -> io::Result<impl Iterator<Item = std::ffi::OsString>> {
    let directory = directory.to_owned();
    Ok(fs::read_dir(&directory)?.filter_map(move |entry| match entry {
        Ok(entry) => Some(entry.file_name()),
        Err(error) => {
            log_unreadable(&directory, &error);
            None
        }
    }))
}

fn log_unreadable(path: &Path, error: &io::Error) {
    // A file that vanished since the event is the ordinary case, not a fault.
    if error.kind() != io::ErrorKind::NotFound {
        tracing::warn!("cannot read {}, it is left out: {error}", path.display());
    }
}

/// The real path of something that may not exist yet.
fn canonical(path: &Path) -> Option<PathBuf> {
    let path = std::path::absolute(path).ok()?;
    path.ancestors().find_map(|part| {
        let rest = path.strip_prefix(part).ok()?;
        fs::canonicalize(part).ok().map(|real| real.join(rest))
    })
}
