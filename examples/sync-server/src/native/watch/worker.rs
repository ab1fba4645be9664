//! The watcher's thread: waits for a look to be due, looks, tells the difference.

use super::{
    Batch, MAX_BATCH, RawChange, WatchError,
    diff::{Evidence, changes},
    folder::Folder,
    pending::Taken,
    shared::Shared,
    snapshot::{Node, Tree, remove_subtree},
};
use notify::{RecommendedWatcher, RecursiveMode, Watcher as _};
use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use tokio::sync::mpsc::{Sender, error::TrySendError};

/// On Linux each watched directory is one watch of its own, so that ignored folders cost nothing. The other systems
/// watch a whole folder for the price of one.
const PER_DIRECTORY: bool = cfg!(any(target_os = "linux", target_os = "android"));
/// How often a full channel is tried again.
const RETRY: Duration = Duration::from_millis(20);

/// Why the thread ends.
enum End {
    /// The watcher or the receiver was dropped.
    Stopped,
    Failed(WatchError),
}

/// All that the thread owns.
#[derive(Debug)]
pub(super) struct Worker {
    folder: Folder,
    known: Tree,
    system: RecommendedWatcher,
    /// The limit of watches is told once, not for each directory.
    limit_told: bool,
    shared: Arc<Shared>,
    sender: Sender<Batch>,
}

impl Worker {
    /// Takes the first snapshot; events are collected from before it on.
    pub(super) fn start(
        mut folder: Folder,
        shared: Arc<Shared>,
        sender: Sender<Batch>,
    ) -> Result<Self, WatchError> {
        let mut system = system_watcher(folder.root(), &shared)?;
        let mut failure = None;
        let known = scan(&mut folder, &mut system, Path::new(""), |error| {
            // A directory below that cannot be watched is left out; more than that has no use to start with.
            match error {
                WatchError::WatchLimit(_) => drop(failure.get_or_insert(error)),
                error => tracing::warn!("{error}"),
            }
        });
        match failure {
            Some(error) => return Err(error),
            None if !known.contains_key(Path::new("")) => {
                return Err(WatchError::RootGone(folder.root().to_owned()));
            }
            None => {}
        }
        Ok(Self { folder, known, system, limit_told: false, shared, sender })
    }

    /// Runs until the watcher or the receiver is dropped, or nothing is left to watch.
    pub(super) fn run(mut self) {
        if let Err(End::Failed(error)) = self.work() {
            // An `End::Stopped` here means that nobody wants to know.
            let _ = self.send(Err(error));
        }
    }

    fn work(&mut self) -> Result<(), End> {
        loop {
            // Not looking while the receiver is behind lets later changes of a file merge with earlier ones.
            while self.sender.capacity() == 0 {
                self.pause()?;
            }
            let taken = self.shared.wait().ok_or(End::Stopped)?;
            let found = if taken.everything { self.look_at_everything() } else { Ok(self.look(taken)) };
            let (found, end) = match found {
                Ok(found) => (found, Ok(())),
                Err((found, error)) => (found, Err(End::Failed(error))),
            };
            for batch in found.chunks(MAX_BATCH) {
                self.send(Ok(batch.to_vec()))?;
            }
            end?;
        }
    }

    fn send(&self, mut batch: Batch) -> Result<(), End> {
        loop {
            batch = match self.sender.try_send(batch) {
                Ok(()) => return Ok(()),
                Err(TrySendError::Closed(_)) => return Err(End::Stopped),
                Err(TrySendError::Full(batch)) => batch,
            };
            self.pause()?;
        }
    }

    fn pause(&self) -> Result<(), End> {
        if self.sender.is_closed() || !self.shared.sleep(RETRY) { Err(End::Stopped) } else { Ok(()) }
    }

    /// Looks at the paths that events named.
    fn look(&mut self, taken: Taken) -> Vec<RawChange> {
        let rule_files = taken.paths.iter().filter(|path| Folder::is_rule_file(path));
        let rules_changed: Vec<PathBuf> =
            rule_files.map(|path| path.parent().unwrap_or(Path::new("")).to_owned()).collect();
        let new_directory =
            |path: &PathBuf| self.known.get(path) == Some(&Node::Directory) || self.folder.is_directory(path);
        if !rules_changed.is_empty() || taken.paths.iter().any(new_directory) {
            self.folder.reload_rules();
        }
        let mut places: BTreeSet<&Path> = taken.paths.iter().map(PathBuf::as_path).collect();
        places.extend(rules_changed.iter().map(PathBuf::as_path));

        let (mut before, mut after) = (Tree::new(), Tree::new());
        let mut looked_at: Option<&Path> = None;
        for place in places {
            if looked_at.is_some_and(|above| place.starts_with(above)) {
                continue;
            }
            looked_at = Some(place);
            before.extend(remove_subtree(&mut self.known, place));
            // Without its directory in view a path is out of view too, and could be behind a link.
            if place.parent().is_none_or(|parent| self.known.get(parent) == Some(&Node::Directory)) {
                let now = self.scan(place);
                self.known.extend(now.iter().map(|(path, node)| (path.clone(), *node)));
                after.extend(now);
            }
        }
        self.unwatch_hidden(&before, &after);
        let evidence = Evidence { touched: taken.paths, moves: taken.moves, rules_changed };
        changes(&before, &after, &evidence, |path| self.folder.has_file(path))
    }

    /// Looks at the whole folder with fresh watches: after lost events nobody knows which of the old ones still
    /// carry the right path.
    fn look_at_everything(&mut self) -> Result<Vec<RawChange>, (Vec<RawChange>, WatchError)> {
        self.system =
            system_watcher(self.folder.root(), &self.shared).map_err(|error| (Vec::new(), error))?;
        self.folder.reload_rules();
        let before = std::mem::take(&mut self.known);
        self.known = self.scan(Path::new(""));
        let found = changes(&before, &self.known, &Evidence::default(), |path| self.folder.has_file(path));
        if self.known.get(Path::new("")) == Some(&Node::Directory) {
            Ok(found)
        } else {
            Err((found, WatchError::RootGone(self.folder.root().to_owned())))
        }
    }

    fn scan(&mut self, path: &Path) -> Tree {
        let limit_told = &mut self.limit_told;
        scan(&mut self.folder, &mut self.system, path, |error| match error {
            WatchError::WatchLimit(_) if std::mem::replace(limit_told, true) => {}
            WatchError::WatchLimit(_) => tracing::error!("{error}; changes there are not seen"),
            error => tracing::warn!("{error}"),
        })
    }

    /// Gives back the watches of directories that are there but not in view any more.
    fn unwatch_hidden(&mut self, before: &Tree, after: &Tree) {
        let directories = before.iter().filter(|(_, node)| **node == Node::Directory).map(|(path, _)| path);
        for path in directories.filter(|path| after.get(*path) != Some(&Node::Directory)) {
            if PER_DIRECTORY && self.folder.is_directory(path) {
                // It fails when the watch ended with the directory, and another took the name since.
                if let Err(error) = self.system.unwatch(&self.folder.absolute(path)) {
                    tracing::debug!("a watch was gone already: {error}");
                }
            }
        }
    }
}

fn system_watcher(root: &Path, shared: &Arc<Shared>) -> Result<RecommendedWatcher, WatchError> {
    let (path, shared) = (root.to_owned(), Arc::clone(shared));
    let config = notify::Config::default().with_follow_symlinks(false);
    let mut system = RecommendedWatcher::new(move |event| shared.take_event(&path, event), config)
        .map_err(WatchError::Unavailable)?;
    if !PER_DIRECTORY {
        system
            .watch(root, RecursiveMode::Recursive)
            .map_err(|error| WatchError::from_notify(error, root.to_owned()))?;
    }
    Ok(system)
}

/// Reads what is at `path`, and watches each directory of it.
fn scan(
    folder: &mut Folder,
    system: &mut RecommendedWatcher,
    path: &Path,
    mut failed: impl FnMut(WatchError),
) -> Tree {
    folder.scan(path, |directory| {
        if PER_DIRECTORY && let Err(error) = system.watch(directory, RecursiveMode::NonRecursive) {
            match WatchError::from_notify(error, directory.to_owned()) {
                // It vanished in between, and its own event is on the way.
                WatchError::RootGone(_) => {}
                error => failed(error),
            }
        }
    })
}
