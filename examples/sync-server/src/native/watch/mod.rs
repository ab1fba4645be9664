//! Watches a folder and reports which files changed.
//!
//! Events of the system only say where to look. What is reported is the difference between what was known of the
//! folder and what is on disk after a short quiet, which makes one change of many writes, one `modified` of an
//! atomic save, nothing of a temporary file, and the right changes even after events were lost.

mod change;
mod diff;
mod error;
mod folder;
mod pending;
mod shared;
mod snapshot;
mod worker;

pub use change::{ChangeKind, RawChange};
pub use error::WatchError;
pub use pending::Timing;

use folder::Folder;
use shared::Shared;
use std::{path::PathBuf, sync::Arc, thread};
use tokio::sync::mpsc;
use worker::Worker;

/// What comes out of a watcher: up to [`MAX_BATCH`] changes sorted by path, or as the last thing the reason why
/// it ended.
pub type Batch = Result<Vec<RawChange>, WatchError>;

/// The largest number of changes in one [`Batch`].
pub const MAX_BATCH: usize = 1_000;

/// Batches that wait for a slow receiver. Few, because changes that are not looked at yet merge with later ones of
/// the same file, and those in a batch no longer do.
const WAITING_BATCHES: usize = 4;

/// A running watcher; dropping it ends its thread.
#[derive(Debug)]
#[must_use = "a dropped watcher stops"]
pub struct Watcher {
    shared: Arc<Shared>,
}

impl Watcher {
    /// Reads the whole folder `root` once, which is what later changes are told against, and watches it from then
    /// on in a thread of its own. `root` must be canonical; nothing in the folders `exclude` is watched.
    ///
    /// Reading a large folder takes time: call this where blocking is allowed.
    ///
    /// # Errors
    /// - [`WatchError::RootGone`], [`WatchError::RootUnreadable`]: there is nothing to watch.
    /// - [`WatchError::WatchLimit`], [`WatchError::Unavailable`]: the system does not let us.
    /// - [`WatchError::Thread`]: no thread.
    pub fn start(root: PathBuf, exclude: Vec<PathBuf>) -> Result<(Self, mpsc::Receiver<Batch>), WatchError> {
        Self::start_with(root, exclude, Timing::default())
    }

    /// The same with other times.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    #[expect(clippy::needless_pass_by_value, reason = "a list of own paths is what every caller has")]
    pub fn start_with(
        root: PathBuf,
        exclude: Vec<PathBuf>,
        timing: Timing,
    ) -> Result<(Self, mpsc::Receiver<Batch>), WatchError> {
        let (sender, receiver) = mpsc::channel(WAITING_BATCHES);
        let shared = Arc::new(Shared::new(timing));
        let worker = Worker::start(Folder::new(root, &exclude), Arc::clone(&shared), sender)?;
        let thread = thread::Builder::new().name("watcher".to_owned());
        thread.spawn(move || worker.run()).map_err(WatchError::Thread)?;
        Ok((Self { shared }, receiver))
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.shared.stop();
    }
}
