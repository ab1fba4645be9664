//! What every host checks by itself, so that the answer is the same on all of them.

use crate::{Error, ErrorKind, Value, limits};

pub(crate) fn check_text(sql: &str) -> Result<(), Error> {
    if sql.len() > limits::SQL_TEXT_BYTES {
        return Err(
            Error::new(ErrorKind::Sql, "statement too long: SQLITE_TOOBIG").with_sql_code("SQLITE_TOOBIG")
        );
    }
    if sql.contains('\0') {
        return Err(Error::new(ErrorKind::Invalid, "SQL code must not contain a NUL character."));
    }
    Ok(())
}

/// Whether another transaction may begin inside so many.
pub(crate) fn check_depth(open: usize) -> Result<(), Error> {
    if open < limits::TRANSACTION_DEPTH {
        return Ok(());
    }
    let message = format!("transactions are nested deeper than {}", limits::TRANSACTION_DEPTH);
    Err(Error::new(ErrorKind::Limit, message))
}

/// Whether the database may be emptied inside so many transactions and row callbacks (rules F9 and F19).
pub(crate) fn check_erase(transactions: usize, callbacks: usize) -> Result<(), Error> {
    let inside = match (transactions, callbacks) {
        (0, 0) => return Ok(()),
        (0, _) => "while for_each runs",
        _ => "inside a transaction",
    };
    Err(Error::new(ErrorKind::Invalid, format!("delete_all cannot run {inside}")))
}

/// What a value costs to keep.
pub(crate) fn kept_bytes(value: &Value) -> usize {
    let content = match value {
        Value::Null | Value::Integer(_) | Value::Real(_) => 0,
        Value::Text(text) => text.len(),
        Value::Blob(blob) => blob.len(),
    };
    size_of::<Value>() + content
}

pub(crate) fn too_large_result() -> Error {
    let message = format!(
        "the result is larger than {} bytes: take it row by row with for_each",
        limits::SQL_RESULT_BYTES
    );
    Error::new(ErrorKind::Limit, message)
}

/// The platform's own text, for rule F11, with the name of our function.
pub(crate) const TRANSACTION_REFUSED: &str = "To execute a transaction, please use SqlStorage::transaction() instead \
     of the SQL BEGIN TRANSACTION or SAVEPOINT statements. It is safer because it rolls back on errors by itself, and \
     because it interacts correctly with the implicit transaction of each turn.";

/// The platform's own text, for rule F6.
pub(crate) const PARAMETERS_BEFORE_LAST: &str =
    "When executing multiple SQL statements in a single call, only the last statement can have parameters.";

/// Rule F5, with as much as every host can tell.
pub(crate) fn wrong_parameters(given: usize) -> Error {
    let message = format!("Wrong number of parameter bindings for SQL query: {given} were given.");
    Error::new(ErrorKind::Invalid, message)
}
