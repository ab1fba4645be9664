//! Runs an object's statements with the rules F1 to F6 and F10.

use super::{
    authorize::Notes,
    database::Database,
    error::{host_error, sql_error},
};
use crate::{
    Error, ErrorKind, Row, Rows, Value, limits,
    sql::{
        rules::{
            PARAMETERS_BEFORE_LAST, TRANSACTION_REFUSED, check_text, kept_bytes, too_large_result,
            wrong_parameters,
        },
        statements::split_first,
    },
};
use rusqlite::{
    Connection, Statement,
    types::{ToSqlOutput, ValueRef},
};
use std::ops::ControlFlow;

/// A row callback.
pub(super) type Each<'a> = dyn FnMut(Row<'_>) -> Result<ControlFlow<()>, Error> + 'a;

/// Longer texts are compiled anew each time, so that the cache of statements has a bound in bytes as well.
const CACHED_TEXT_BYTES: usize = 16 * 1_024;

/// Where the statement stands in the text.
struct Piece<'a> {
    sql: &'a str,
    /// Bytes of the object's text before it that its error offsets count (rule F10).
    base: usize,
}

/// What to do with the rows of a statement.
enum Sink<'a, 'b> {
    /// Nothing.
    Drop,
    Collect(&'a mut Vec<Vec<Value>>),
    Each(&'a mut Each<'b>),
}

impl Database {
    /// All statements of `sql`, of which only the last may have parameters and gives its rows (rule F6).
    pub(super) fn run_all(&self, sql: &str, params: &[Value]) -> Result<Rows, Error> {
        let mut rows = Vec::new();
        let columns = self.run(sql, params, Sink::Collect(&mut rows))?;
        // SQLite's own counters do not count rows as the platform bills them, so none are given.
        Ok(Rows::new(columns, rows, None, None))
    }

    /// The same, with the last statement's rows one by one.
    pub(super) fn run_each(&self, sql: &str, params: &[Value], each: &mut Each<'_>) -> Result<(), Error> {
        self.run(sql, params, Sink::Each(each)).map(drop)
    }

    /// Returns the names of the last statement's columns.
    fn run(&self, sql: &str, params: &[Value], sink: Sink<'_, '_>) -> Result<Vec<String>, Error> {
        check_text(sql)?;
        params.iter().try_for_each(Value::check_bind)?;
        let conn = self.ready()?;
        let text = sql.trim_start_matches([' ', '\t', '\n', '\r', '\x0c']);
        let mut piece = Piece { sql: text, base: sql.len() - text.len() };
        loop {
            let (first, rest) = split_first(piece.sql);
            piece.sql = first;
            if rest.is_empty() {
                return self.run_last(conn, &piece, params, sink);
            }
            self.run_leading(conn, &piece)?;
            piece = Piece { sql: rest, base: 0 };
        }
    }

    fn run_leading(&self, conn: &Connection, piece: &Piece<'_>) -> Result<(), Error> {
        let (mut statement, notes) = self.prepare(conn, piece, || conn.prepare(piece.sql))?;
        if statement.parameter_count() != 0 {
            return Err(Error::new(ErrorKind::Invalid, PARAMETERS_BEFORE_LAST));
        }
        self.run_prepared(conn, &mut statement, notes, Sink::Drop).map(drop)
    }

    fn run_last(
        &self,
        conn: &Connection,
        piece: &Piece<'_>,
        params: &[Value],
        sink: Sink<'_, '_>,
    ) -> Result<Vec<String>, Error> {
        if piece.sql.len() > CACHED_TEXT_BYTES {
            let (mut statement, notes) = self.prepare(conn, piece, || conn.prepare(piece.sql))?;
            bind(&mut statement, params)?;
            return self.run_prepared(conn, &mut statement, notes, sink);
        }
        let (mut statement, notes) = self.prepare(conn, piece, || conn.prepare_cached(piece.sql))?;
        bind(&mut statement, params)?;
        let result = self.run_prepared(conn, &mut statement, notes, sink);
        if notes != Notes::default() {
            statement.discard();
        }
        result
    }

    /// Prepares with the object's rights; also tells what the authorizer noted.
    fn prepare<T>(
        &self,
        conn: &Connection,
        piece: &Piece<'_>,
        prepare: impl FnOnce() -> rusqlite::Result<T>,
    ) -> Result<(T, Notes), Error> {
        self.before_statement(conn, piece.sql)?;
        self.gate().clear();
        let statement = prepare().map_err(|error| {
            if self.gate().transaction() {
                return Error::new(ErrorKind::Invalid, TRANSACTION_REFUSED);
            }
            sql_error(error, piece.base)
        })?;
        Ok((statement, self.gate().notes()))
    }

    fn run_prepared(
        &self,
        conn: &Connection,
        statement: &mut Statement<'_>,
        notes: Notes,
        sink: Sink<'_, '_>,
    ) -> Result<Vec<String>, Error> {
        let writes = notes.optimizes || !statement.readonly();
        if writes {
            self.begin_write(conn)?;
        }
        let result =
            if notes.alters { self.alter(conn, statement) } else { self.step_all(statement, writes, sink) };
        if let Err(error) = &result {
            self.note_loss(conn, error);
        }
        result
    }

    fn step_all(
        &self,
        statement: &mut Statement<'_>,
        writes: bool,
        sink: Sink<'_, '_>,
    ) -> Result<Vec<String>, Error> {
        let mut rows = Stepped { rows: statement.raw_query(), columns: None };
        match sink {
            Sink::Drop => rows.skip(writes)?,
            Sink::Collect(into) => rows.collect(into, writes)?,
            Sink::Each(each) if writes => self.each_written(&mut rows, each)?,
            Sink::Each(each) => self.each_read(&mut rows, each)?,
        }
        let columns = rows.columns.take();
        drop(rows);
        Ok(columns.unwrap_or_else(|| column_names(statement)))
    }

    /// Rows of a statement that writes, which is over before the first of them is seen: half of a write would depend
    /// on how SQLite orders its work, and what the callback does in a transaction could not be rolled back. SQLite
    /// holds them in memory itself, so that they need no bound of their own.
    fn each_written(&self, rows: &mut Stepped<'_>, each: &mut Each<'_>) -> Result<(), Error> {
        let (mut all, mut row) = (Vec::new(), Vec::new());
        while rows.next(&mut row)? {
            all.push(std::mem::take(&mut row));
        }
        for row in all {
            if self.iterating(|| each(Row::new(rows.columns(), &row)))?.is_break() {
                break;
            }
        }
        Ok(())
    }

    /// Rows of a statement that reads, always one ahead of the callback, as on the platform: what the callback writes
    /// is seen, and an error comes, at the same row on every host.
    fn each_read(&self, rows: &mut Stepped<'_>, each: &mut Each<'_>) -> Result<(), Error> {
        let (mut row, mut ahead) = (Vec::new(), Vec::new());
        let mut is_there = rows.next(&mut row)?;
        while is_there {
            is_there = rows.next(&mut ahead)?;
            if self.iterating(|| each(Row::new(rows.columns(), &row)))?.is_break() {
                break;
            }
            std::mem::swap(&mut row, &mut ahead);
        }
        Ok(())
    }

    /// Runs a statement that alters a table, and takes it back if a name of the host came of it (rule F11): SQLite
    /// does not ask the authorizer about a table's new name.
    fn alter(&self, conn: &Connection, statement: &mut Statement<'_>) -> Result<Vec<String>, Error> {
        let control = |sql: &str| self.gate().trusting(|| conn.execute_batch(sql)).map_err(host_error);
        let reserved = || {
            let count = "SELECT count(*) FROM sqlite_schema WHERE lower(substr(name, 1, 4)) = '_cf_'";
            self.gate().trusting(|| conn.query_row(count, (), |row| row.get::<_, i64>(0))).map_err(host_error)
        };
        let before = reserved()?;
        control("SAVEPOINT _cf_alter")?;
        let result = self.step_all(statement, true, Sink::Drop).and_then(|columns| {
            if reserved()? > before {
                return Err(
                    Error::new(ErrorKind::Sql, "not authorized: SQLITE_AUTH").with_sql_code("SQLITE_AUTH")
                );
            }
            Ok(columns)
        });
        // After a fault SQLite may have rolled everything back already, this savepoint included.
        if !conn.is_autocommit() {
            if result.is_err() {
                control("ROLLBACK TO _cf_alter")?;
            }
            control("RELEASE _cf_alter")?;
        }
        result
    }
}

/// The rows of a statement under way.
struct Stepped<'a> {
    rows: rusqlite::Rows<'a>,
    /// Read at the first row and not before the first step, which compiles the statement anew when the schema has
    /// changed.
    columns: Option<Vec<String>>,
}

impl Stepped<'_> {
    fn columns(&self) -> &[String] {
        self.columns.as_deref().unwrap_or_default()
    }

    /// Replaces `values` by those of the next row; `false` when there is none.
    fn next(&mut self, values: &mut Vec<Value>) -> Result<bool, Error> {
        values.clear();
        let Some(row) = self.rows.next().map_err(|error| sql_error(error, 0))? else { return Ok(false) };
        let columns = self.columns.get_or_insert_with(|| column_names(row.as_ref()));
        values.reserve_exact(columns.len());
        for index in 0..columns.len() {
            values.push(read(row.get_ref(index).map_err(|error| sql_error(error, 0))?));
        }
        Ok(true)
    }

    /// Runs a statement whose rows nobody wants. One that reads has run with its first step: it may have no end.
    fn skip(&mut self, writes: bool) -> Result<(), Error> {
        while self.rows.next().map_err(|error| sql_error(error, 0))?.is_some() && writes {}
        Ok(())
    }

    /// All rows. When they are too many, a statement that writes goes on to its end, so that it is not left half done;
    /// one that reads may have none.
    fn collect(&mut self, into: &mut Vec<Vec<Value>>, writes: bool) -> Result<(), Error> {
        let (mut row, mut bytes) = (Vec::new(), 0_usize);
        while self.next(&mut row)? {
            bytes = bytes.saturating_add(row.iter().map(kept_bytes).sum());
            if bytes > limits::SQL_RESULT_BYTES {
                self.skip(writes)?;
                return Err(too_large_result());
            }
            into.push(std::mem::take(&mut row));
        }
        Ok(())
    }
}

/// Binds all parameters, numbers as `REAL` (rule F1). SQLite itself binds NaN as `NULL` (rule F2).
fn bind(statement: &mut Statement<'_>, params: &[Value]) -> Result<(), Error> {
    let wanted = statement.parameter_count();
    if params.len() != wanted {
        return Err(wrong_parameters(params.len()));
    }
    for (index, value) in (1_usize..).zip(params) {
        let value = match value {
            Value::Null => ValueRef::Null,
            #[allow(clippy::cast_precision_loss)] // exact: beyond 2^53-1 it was refused
            Value::Integer(i) => ValueRef::Real(*i as f64),
            Value::Real(r) => ValueRef::Real(*r),
            Value::Text(text) => ValueRef::Text(text.as_bytes()),
            Value::Blob(blob) => ValueRef::Blob(blob),
        };
        statement
            .raw_bind_parameter(index, ToSqlOutput::Borrowed(value))
            .map_err(|error| sql_error(error, 0))?;
    }
    Ok(())
}

fn column_names(statement: &Statement<'_>) -> Vec<String> {
    statement.column_names().map(str::to_owned).collect()
}

/// A value as every host reports it (rule F3).
fn read(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(i) if i.unsigned_abs() <= limits::SQL_INTEGER_MAX.unsigned_abs() => {
            Value::Integer(i)
        }
        #[allow(clippy::cast_precision_loss)] // the rule
        ValueRef::Integer(i) => Value::Real(i as f64),
        ValueRef::Real(r) => Value::from_number(r),
        ValueRef::Text(text) => Value::Text(String::from_utf8_lossy(text).into_owned()),
        ValueRef::Blob(blob) => Value::Blob(blob.to_owned()),
    }
}
