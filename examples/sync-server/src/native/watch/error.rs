//! Why a watcher could not start or had to stop, in words that tell the user what to do.

use std::{error::Error as StdError, fmt, io, path::PathBuf};

/// Why a watcher could not start, or why it ended.
#[derive(Debug)]
#[non_exhaustive]
pub enum WatchError {
    /// The watched folder is gone: deleted, moved or unmounted.
    RootGone(PathBuf),
    /// The watched folder cannot be read.
    RootUnreadable(PathBuf, io::Error),
    /// The system's limit of watched directories is reached.
    WatchLimit(PathBuf),
    /// The system offers no (more) change notification.
    Unavailable(notify::Error),
    /// The watcher's thread could not be started, or ended by a fault of its own.
    Thread(io::Error),
}

impl WatchError {
    /// Sorts the errors of a new watch: the limit needs an advice, the others speak for themselves.
    pub(super) fn from_notify(error: notify::Error, path: PathBuf) -> Self {
        match error.kind {
            notify::ErrorKind::MaxFilesWatch => Self::WatchLimit(path),
            notify::ErrorKind::PathNotFound => Self::RootGone(path),
            notify::ErrorKind::Io(error) => Self::RootUnreadable(path, error),
            _ => Self::Unavailable(error),
        }
    }
}

impl fmt::Display for WatchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RootGone(path) => write!(f, "the watched folder is gone: {}", path.display()),
            Self::RootUnreadable(path, error) => write!(f, "cannot watch {}: {error}", path.display()),
            Self::WatchLimit(path) => write!(
                f,
                "cannot watch {}: the limit of watched directories is reached; raise it with `sysctl \
                 fs.inotify.max_user_watches=524288`, or name large folders in .gitignore or .ignore",
                path.display()
            ),
            Self::Unavailable(error) => write!(
                f,
                "the system offers no change notification: {error}; if too many programs watch files, raise \
                 the limit with `sysctl fs.inotify.max_user_instances=512`"
            ),
            Self::Thread(error) => write!(f, "the watcher's thread ended: {error}"),
        }
    }
}

impl StdError for WatchError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match self {
            Self::RootUnreadable(_, error) | Self::Thread(error) => Some(error),
            Self::Unavailable(error) => Some(error),
            Self::RootGone(_) | Self::WatchLimit(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_error_of_the_system_says_what_to_do_in_one_line() {
        let text = |kind| {
            let text = WatchError::from_notify(notify::Error::new(kind), "/srv/x".into()).to_string();
            assert!(!text.contains('\n'));
            text
        };
        let limit = text(notify::ErrorKind::MaxFilesWatch);
        assert!(
            limit.starts_with(
                "cannot watch /srv/x: the limit of watched directories is reached; raise it with"
            )
        );
        assert!(limit.contains("fs.inotify.max_user_watches") && limit.contains(".gitignore"));
        assert_eq!(text(notify::ErrorKind::PathNotFound), "the watched folder is gone: /srv/x");
        let denied = io::Error::from(io::ErrorKind::PermissionDenied);
        assert_eq!(text(notify::ErrorKind::Io(denied)), "cannot watch /srv/x: permission denied");
        assert!(text(notify::ErrorKind::Generic("x".into())).contains("fs.inotify.max_user_instances"));
    }
}
