//! One process per data directory.

use crate::{Error, ErrorKind};
use std::{
    fs::{File, OpenOptions, TryLockError},
    io::{Seek, Write},
    path::Path,
};

/// A dot is in no namespace's name.
const NAME: &str = "host.lock";

/// Held as long as the host runs; the operating system releases it when the process ends, however it ends.
#[derive(Debug)]
pub(super) struct DirLock {
    _file: File,
}

impl DirLock {
    /// Whether the file is still where it was: a directory that was removed would be made again, empty.
    pub(super) fn is_there(dir: &Path) -> bool {
        dir.join(NAME).exists()
    }

    pub(super) fn take(dir: &Path) -> Result<Self, Error> {
        let failed = |e: std::io::Error| {
            Error::new(ErrorKind::Platform, format!("cannot lock the data directory {}: {e}", dir.display()))
                .with_source(e)
        };
        let path = dir.join(NAME);
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {
                // Who holds it, for the message below in another process.
                file.set_len(0).map_err(failed)?;
                file.rewind().map_err(failed)?;
                write!(file, "{}", std::process::id()).map_err(failed)?;
                Ok(Self { _file: file })
            }
            Err(TryLockError::WouldBlock) => {
                let holder = std::fs::read_to_string(&path).unwrap_or_default();
                let holder = if holder.is_empty() {
                    "another process".to_owned()
                } else {
                    format!("process {holder}")
                };
                let message = format!("the data directory {} is in use by {holder}", dir.display());
                Err(Error::new(ErrorKind::Invalid, message))
            }
            Err(TryLockError::Error(e)) => Err(failed(e)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_holder_is_told_who_the_first_is() {
        let dir = tempfile::tempdir().unwrap();
        let first = DirLock::take(dir.path()).unwrap();
        let error = DirLock::take(dir.path()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(
            error.to_string().ends_with(&format!("is in use by process {}", std::process::id())),
            "{error}"
        );
        drop(first);
        assert!(DirLock::take(dir.path()).is_ok());
    }
}
