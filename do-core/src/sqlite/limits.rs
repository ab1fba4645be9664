use crate::{Error, ErrorKind, limits};
use rusqlite::{Connection, limits::Limit};

/// The limits of SQL that differ between production and the local runtime, and the host's own.
///
/// Those that are the same everywhere are not fields: an object that runs here must run there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SqlLimits {
    /// Longest string, blob or row, in bytes (rule F16).
    pub(crate) value_bytes: usize,
    /// Most arguments of a function (rule F15).
    pub(crate) function_arguments: usize,
    /// Largest database, in bytes; `SQLITE_FULL` beyond it (rule F17).
    pub(crate) database_bytes: u64,
    /// Most memory that one object's page cache takes, in bytes. It is taken page by page as pages are read.
    pub(crate) cache_bytes: usize,
}

/// Deepest recursion of triggers (rule F15).
const TRIGGER_DEPTH: usize = 10;

/// The unit in which SQLite counts a database's size: its default, which rule F17 counts in as well.
pub(super) const PAGE_BYTES: u64 = 4_096;

impl Default for SqlLimits {
    /// Those of production.
    fn default() -> Self {
        Self {
            value_bytes: limits::SQL_VALUE_BYTES,
            function_arguments: limits::SQL_FUNCTION_ARGUMENTS,
            database_bytes: 10_000_000_000,
            cache_bytes: 2 * 1_024 * 1_024,
        }
    }
}

impl SqlLimits {
    /// Those of the local runtime, for comparing hosts case by case.
    pub(crate) fn local() -> Self {
        Self { value_bytes: 8_388_642, function_arguments: 127, ..Self::default() }
    }

    /// Refuses what SQLite cannot be set to, so that a wrong setting shows at start and not in an object.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`].
    pub(super) fn check(&self) -> Result<(), Error> {
        let wrong = |what: &str, n: u64| Err(Error::new(ErrorKind::Invalid, format!("{what} cannot be {n}")));
        match self {
            Self { value_bytes: n @ (..1_000 | 1_000_000_001..), .. } => {
                wrong("the limit of a value", *n as u64)
            }
            Self { function_arguments: n @ (..1 | 1_001..), .. } => {
                wrong("the limit of arguments", *n as u64)
            }
            Self { database_bytes: n @ ..65_536, .. } => wrong("the limit of a database", *n),
            Self { cache_bytes: n @ 1_000_000_001.., .. } => wrong("the page cache", *n as u64),
            _ => Ok(()),
        }
    }

    /// Sets all of them on a connection.
    pub(super) fn apply(&self, conn: &Connection) -> rusqlite::Result<()> {
        for (limit, most) in [
            (Limit::SQLITE_LIMIT_LENGTH, self.value_bytes),
            (Limit::SQLITE_LIMIT_SQL_LENGTH, limits::SQL_TEXT_BYTES),
            (Limit::SQLITE_LIMIT_COLUMN, limits::SQL_COLUMNS),
            (Limit::SQLITE_LIMIT_EXPR_DEPTH, limits::SQL_EXPRESSION_DEPTH),
            (Limit::SQLITE_LIMIT_COMPOUND_SELECT, limits::SQL_COMPOUND_SELECT),
            (Limit::SQLITE_LIMIT_FUNCTION_ARG, self.function_arguments),
            (Limit::SQLITE_LIMIT_ATTACHED, 0),
            (Limit::SQLITE_LIMIT_LIKE_PATTERN_LENGTH, limits::SQL_LIKE_BYTES),
            (Limit::SQLITE_LIMIT_VARIABLE_NUMBER, limits::SQL_PARAMETERS),
            (Limit::SQLITE_LIMIT_TRIGGER_DEPTH, TRIGGER_DEPTH),
            (Limit::SQLITE_LIMIT_WORKER_THREADS, 0),
        ] {
            conn.set_limit(limit, i32::try_from(most).unwrap_or(i32::MAX))?;
        }
        Ok(())
    }
}
