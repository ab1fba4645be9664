//! SQLite's errors in the words of rule F10: `message[ at offset N]: CODE[ (extended: CODE)]`.

use super::authorize::absent;
use crate::{Error, ErrorKind};
use rusqlite::ffi;

/// Translates an error. `base` is where the prepared text begins in the text that the object passed.
pub(super) fn sql_error(error: rusqlite::Error, base: usize) -> Error {
    use rusqlite::Error as E;
    let (mut code, mut message) = match &error {
        E::SqlInputError { error, msg, offset, .. } => {
            let offset = usize::try_from(*offset).unwrap_or(0).saturating_add(base);
            (error.extended_code, format!("{} at offset {offset}", absent(msg).as_deref().unwrap_or(msg)))
        }
        E::SqliteFailure(error, message) => (
            error.extended_code,
            message.clone().unwrap_or_else(|| ffi::code_to_str(error.extended_code).into()),
        ),
        E::Empty => return Error::new(ErrorKind::Invalid, "SQL code did not contain a statement."),
        _ => return Error::new(ErrorKind::Platform, error.to_string()).with_source(error),
    };
    if let Some(absent) = absent(&message).filter(|_| code == ffi::SQLITE_AUTH) {
        (code, message) = (ffi::SQLITE_ERROR, absent);
    }
    let primary = primary_name(code);
    let extended = extended_name(code);
    let mut text = match extended {
        Some(extended) => format!("{message}: {primary} (extended: {extended})"),
        None => format!("{message}: {primary}"),
    };
    let kind = if is_fault(code) { ErrorKind::Platform } else { ErrorKind::Sql };
    if matches!(code & 0xff, ffi::SQLITE_BUSY) {
        text.push_str("; another process has the file of this object open");
    }
    Error::new(kind, text).with_sql_code(extended.unwrap_or(primary)).with_source(error)
}

/// An error of a statement of the host itself: never the object's fault.
pub(super) fn host_error(error: rusqlite::Error) -> Error {
    let text = sql_error(error, 0);
    Error::new(ErrorKind::Platform, format!("the object's storage failed: {text}")).with_source(text)
}

/// Whether the disk, the memory or the file is to blame instead of the statement.
fn is_fault(code: i32) -> bool {
    matches!(
        code & 0xff,
        ffi::SQLITE_BUSY
            | ffi::SQLITE_CANTOPEN
            | ffi::SQLITE_CORRUPT
            | ffi::SQLITE_INTERNAL
            | ffi::SQLITE_IOERR
            | ffi::SQLITE_MISUSE
            | ffi::SQLITE_NOMEM
            | ffi::SQLITE_NOTADB
            | ffi::SQLITE_PERM
            | ffi::SQLITE_PROTOCOL
            | ffi::SQLITE_READONLY
    )
}

macro_rules! names {
    ($code:expr; $($name:ident)+) => {
        match $code {
            $(ffi::$name => Some(stringify!($name)),)+
            _ => None,
        }
    };
}

fn primary_name(code: i32) -> &'static str {
    names!(code & 0xff;
        SQLITE_ABORT SQLITE_AUTH SQLITE_BUSY SQLITE_CANTOPEN SQLITE_CONSTRAINT SQLITE_CORRUPT SQLITE_EMPTY
        SQLITE_ERROR SQLITE_FORMAT SQLITE_FULL SQLITE_INTERNAL SQLITE_INTERRUPT SQLITE_IOERR SQLITE_LOCKED
        SQLITE_MISMATCH SQLITE_MISUSE SQLITE_NOLFS SQLITE_NOMEM SQLITE_NOTADB SQLITE_NOTFOUND SQLITE_NOTICE
        SQLITE_PERM SQLITE_PROTOCOL SQLITE_RANGE SQLITE_READONLY SQLITE_SCHEMA SQLITE_TOOBIG SQLITE_WARNING
    )
    .unwrap_or("SQLITE_UNKNOWN_ERROR_CODE")
}

fn extended_name(code: i32) -> Option<&'static str> {
    names!(code;
        SQLITE_ABORT_ROLLBACK SQLITE_AUTH_USER SQLITE_BUSY_RECOVERY SQLITE_BUSY_SNAPSHOT SQLITE_BUSY_TIMEOUT
        SQLITE_CANTOPEN_CONVPATH SQLITE_CANTOPEN_DIRTYWAL SQLITE_CANTOPEN_FULLPATH SQLITE_CANTOPEN_ISDIR
        SQLITE_CANTOPEN_NOTEMPDIR SQLITE_CANTOPEN_SYMLINK SQLITE_CONSTRAINT_CHECK SQLITE_CONSTRAINT_COMMITHOOK
        SQLITE_CONSTRAINT_DATATYPE SQLITE_CONSTRAINT_FOREIGNKEY SQLITE_CONSTRAINT_FUNCTION
        SQLITE_CONSTRAINT_NOTNULL SQLITE_CONSTRAINT_PINNED SQLITE_CONSTRAINT_PRIMARYKEY SQLITE_CONSTRAINT_ROWID
        SQLITE_CONSTRAINT_TRIGGER SQLITE_CONSTRAINT_UNIQUE SQLITE_CONSTRAINT_VTAB SQLITE_CORRUPT_INDEX
        SQLITE_CORRUPT_SEQUENCE SQLITE_CORRUPT_VTAB SQLITE_ERROR_MISSING_COLLSEQ SQLITE_ERROR_RETRY
        SQLITE_ERROR_SNAPSHOT SQLITE_IOERR_ACCESS SQLITE_IOERR_AUTH SQLITE_IOERR_BEGIN_ATOMIC
        SQLITE_IOERR_BLOCKED SQLITE_IOERR_CHECKRESERVEDLOCK SQLITE_IOERR_CLOSE SQLITE_IOERR_COMMIT_ATOMIC
        SQLITE_IOERR_CONVPATH SQLITE_IOERR_CORRUPTFS SQLITE_IOERR_DATA SQLITE_IOERR_DELETE
        SQLITE_IOERR_DELETE_NOENT SQLITE_IOERR_DIR_CLOSE SQLITE_IOERR_DIR_FSYNC SQLITE_IOERR_FSTAT
        SQLITE_IOERR_FSYNC SQLITE_IOERR_GETTEMPPATH SQLITE_IOERR_LOCK SQLITE_IOERR_MMAP SQLITE_IOERR_NOMEM
        SQLITE_IOERR_RDLOCK SQLITE_IOERR_READ SQLITE_IOERR_ROLLBACK_ATOMIC SQLITE_IOERR_SEEK SQLITE_IOERR_SHMLOCK
        SQLITE_IOERR_SHMMAP SQLITE_IOERR_SHMOPEN SQLITE_IOERR_SHMSIZE SQLITE_IOERR_SHORT_READ
        SQLITE_IOERR_TRUNCATE SQLITE_IOERR_UNLOCK SQLITE_IOERR_VNODE SQLITE_IOERR_WRITE SQLITE_LOCKED_SHAREDCACHE
        SQLITE_LOCKED_VTAB SQLITE_READONLY_CANTINIT SQLITE_READONLY_CANTLOCK SQLITE_READONLY_DBMOVED
        SQLITE_READONLY_DIRECTORY SQLITE_READONLY_RECOVERY SQLITE_READONLY_ROLLBACK
    )
}
