//! Where a server has its files.

use rusqlite::Connection;
use std::{
    fs,
    path::{Path, PathBuf},
};
use tempfile::TempDir;

/// A folder to watch and a data directory beside it, which outlive the servers on them. A Worker watches nothing.
pub(crate) struct Place {
    directory: TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("watched")).unwrap();
        Self { directory }
    }

    pub(crate) fn folder(&self) -> PathBuf {
        self.directory.path().join("watched")
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    pub(crate) fn write(&self, path: impl AsRef<Path>, content: &str) {
        fs::write(self.folder().join(path), content).unwrap();
    }

    /// The changes in the room's file. The server must not run: the files are copied first, so that looking changes
    /// nothing that a server finds later.
    pub(crate) fn rows(&self) -> Vec<Row> {
        let (copy, room) = (tempfile::tempdir().unwrap(), self.room_file());
        for file in files(&self.data()).iter().filter(|file| file.parent() == room.parent()) {
            fs::copy(file, copy.path().join(file.file_name().unwrap())).unwrap();
        }
        let room = Connection::open(copy.path().join(room.file_name().unwrap())).unwrap();
        // A row without a frame is there for its number.
        let sql = "SELECT seq, json_extract(CAST(frame AS TEXT), '$.d.path') FROM _room_log
            WHERE length(frame) > 0 ORDER BY seq";
        let mut rows = room.prepare(sql).unwrap();
        let rows = rows.query_map([], |row| Ok(Row { seq: row.get(0)?, path: row.get(1)? })).unwrap();
        rows.map(Result::unwrap).collect()
    }

    /// The file of the only room.
    pub(crate) fn room_file(&self) -> PathBuf {
        let is_room = |file: &PathBuf| {
            let inside = |folder: &str| file.iter().any(|part| part == folder);
            file.extension().is_some_and(|extension| extension == "sqlite")
                && (inside("SYNC_ROOM")
                    // Beside the objects workerd keeps when their alarms are due.
                    || inside("sync-server-SyncRoom") && !file.ends_with("metadata.sqlite"))
        };
        let mut rooms: Vec<_> = files(&self.data()).into_iter().filter(is_room).collect();
        assert_eq!(rooms.len(), 1, "not one room: {rooms:?}");
        rooms.remove(0)
    }
}

/// All files below the folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let below = |entry: std::io::Result<fs::DirEntry>| {
        let path = entry.unwrap().path();
        if path.is_dir() { files(&path) } else { vec![path] }
    };
    fs::read_dir(folder).unwrap().flat_map(below).collect()
}

/// A change as it lies in the room's file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) seq: i64,
    pub(crate) path: String,
}
