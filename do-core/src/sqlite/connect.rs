//! Opens an object's file: its folders, its journal mode, its limits and its authorizer.

use super::{SqlLimits, authorize::Gate, error::host_error, limits::PAGE_BYTES, math, space};
use crate::{Error, ErrorKind};
use rusqlite::{Connection, OpenFlags, config::DbConfig};
use std::{
    fs::File,
    io,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

/// Statements that a connection keeps compiled (rule F22).
const CACHED_STATEMENTS: usize = 64;

/// The write-ahead log is cut back to this after a large transaction.
const LOG_BYTES: i64 = 4 * 1_024 * 1_024;

/// The log goes into the file when it has so many pages. That is done at once, by the turn whose commit made them that many:
/// SQLite's own 1,000 take 8 ms of CPU and more, which is the longest that anything of an object's turns takes. Fewer
/// pages are written more often, if they are written again and again.
const LOG_PAGES: i64 = 200;

/// Opens or creates the database of an object, with the host's rules in force.
///
/// # Errors
/// [`ErrorKind::Platform`] with the path.
pub(super) fn connect(path: &Path, limits: &SqlLimits, gate: &Arc<Gate>) -> Result<Connection, Error> {
    let fault =
        |error: Error| Error::new(error.kind(), format!("{}: {error}", path.display())).with_source(error);
    let mut conn = open_file(path, Keeps::NothingUnused).map_err(fault)?;
    gate.trusting(|| set_up(&mut conn, limits, gate)).map_err(|error| fault(host_error(error)))?;
    Ok(conn)
}

/// What a new file does with pages that nothing uses any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keeps {
    /// They can be given back to the file system, which costs one page in 820 for knowing who refers to which.
    NothingUnused,
    /// It keeps them for what comes.
    Everything,
}

/// Opens a file in the mode that all databases of the host have: write-ahead log, every commit synced. What it `keeps`
/// is decided when it is new; a file that is there stays as it is.
///
/// # Errors
/// [`ErrorKind::Platform`] with the path.
pub(super) fn open_file(path: &Path, keeps: Keeps) -> Result<Connection, Error> {
    if let Some(folder) = path.parent() {
        create_folders(folder).map_err(|error| {
            Error::new(ErrorKind::Platform, format!("cannot create {}: {error}", folder.display()))
                .with_source(error)
        })?;
    }
    open_durable(path, keeps).map_err(host_error)
}

fn open_durable(path: &Path, keeps: Keeps) -> rusqlite::Result<Connection> {
    let flags =
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(path, flags)?;
    // The file is ours alone. Whoever holds a lock on it is a mistake that waiting would only hide.
    conn.busy_timeout(Duration::ZERO)?;
    // Before the mode changes: a new file's first page must be on the disk before any log is, because SQLite throws
    // away the log of an empty file.
    conn.pragma_update(None, "synchronous", "FULL")?;
    if keeps == Keeps::NothingUnused {
        space::make_incremental(&conn)?;
    }
    let mode: String = conn.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))?;
    if mode != "wal" {
        let message = format!("the file system does not take a write-ahead log (journal mode {mode})");
        let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CANTOPEN);
        return Err(rusqlite::Error::SqliteFailure(code, Some(message)));
    }
    conn.pragma_update(None, "journal_size_limit", LOG_BYTES)?;
    conn.query_row(&format!("PRAGMA wal_autocheckpoint({LOG_PAGES})"), (), |_| Ok(()))?;
    conn.pragma_update(None, "mmap_size", 0)?;
    Ok(conn)
}

fn set_up(conn: &mut Connection, limits: &SqlLimits, gate: &Arc<Gate>) -> rusqlite::Result<()> {
    conn.pragma_update(None, "cache_size", -i64::try_from(limits.cache_bytes / 1_024).unwrap_or(i64::MAX))?;
    let pages = space::with_map(conn, limits.database_bytes.div_ceil(PAGE_BYTES))?;
    conn.pragma_update(None, "max_page_count", i64::try_from(pages).unwrap_or(i64::MAX))?;
    for (option, on) in [
        (DbConfig::SQLITE_DBCONFIG_ENABLE_FKEY, true),
        (DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true),
        (DbConfig::SQLITE_DBCONFIG_DQS_DML, true),
        (DbConfig::SQLITE_DBCONFIG_DQS_DDL, true),
        // As on the platform: without it, views cannot use the functions of FTS5. The authorizer is asked about what
        // is in views, triggers and constraints as well, so that nothing more is reachable through them.
        (DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, true),
        // A plan that looks at a bound value, which any range does, is made anew each time that one is bound: most of what a
        // short statement takes.
        (DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true),
    ] {
        conn.set_db_config(option, on)?;
    }
    limits.apply(conn)?;
    math::register(conn)?;
    conn.set_prepared_statement_cache_capacity(CACHED_STATEMENTS);
    conn.authorizer(Some(gate.authorizer()))
}

/// For the test kit: the files are real and nothing waits for the disk, and `random()` and `randomblob()` repeat with
/// the seed.
#[cfg(feature = "testing")]
pub(super) fn unsync(conn: &Connection, seed: u64) -> rusqlite::Result<()> {
    use rusqlite::functions::FunctionFlags;
    conn.pragma_update(None, "synchronous", "OFF")?;
    let numbers = Arc::new(Mutex::new(fastrand::Rng::with_seed(seed)));
    let blobs = Arc::clone(&numbers);
    let locked =
        |random: &Arc<Mutex<fastrand::Rng>>| random.lock().unwrap_or_else(PoisonError::into_inner).fork();
    conn.create_scalar_function("random", 0, FunctionFlags::SQLITE_UTF8, move |_| {
        Ok(locked(&numbers).i64(..))
    })?;
    conn.create_scalar_function("randomblob", 1, FunctionFlags::SQLITE_UTF8, move |context| {
        let bytes = usize::try_from(context.get::<i64>(0)?.max(1)).unwrap_or(usize::MAX);
        let mut blob = vec![0; bytes.min(MAX_BLOB)];
        locked(&blobs).fill(&mut blob);
        Ok(blob)
    })
}

/// What SQLite itself would refuse to keep.
#[cfg(feature = "testing")]
const MAX_BLOB: usize = 16 * 1_024 * 1_024;

/// Creates a folder with those above it, and syncs the entry of each new one: a file in a folder that a power
/// failure takes away is lost however often it was synced itself.
pub(crate) fn create_folders(folder: &Path) -> io::Result<()> {
    // One at a time: a shard that finds a folder which another just made must not go on before it is synced.
    static MAKING: Mutex<()> = Mutex::new(());
    let _making = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
    create_folder(folder)
}

fn create_folder(folder: &Path) -> io::Result<()> {
    if folder.as_os_str().is_empty() || folder.is_dir() {
        return Ok(());
    }
    let above = folder.parent().filter(|above| !above.as_os_str().is_empty());
    if let Some(above) = above {
        create_folder(above)?;
    }
    match std::fs::create_dir(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists || !folder.is_dir() => Err(error),
        _ => File::open(above.unwrap_or(Path::new(".")))?.sync_all(),
    }
}
