//! The object's database.

use super::{
    error::caught_sql,
    ext::{Cursor, Sql},
    state::Inner,
};
use crate::{
    Error, ErrorKind, Failure, Params, Row, Rows, SqlStorage, Value, limits,
    sql::{
        rules::{
            PARAMETERS_BEFORE_LAST, TRANSACTION_REFUSED, check_depth, check_text, kept_bytes,
            too_large_result, wrong_parameters,
        },
        statements::{split_first, without_trailing_blanks},
    },
};
use js_sys::{Array, ArrayBuffer, Uint8Array};
use std::{
    fmt,
    ops::ControlFlow,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    rc::Rc,
};
use wasm_bindgen::{JsCast, JsValue};

/// What takes a row: the columns' names, and the values.
type Each<'a> = dyn FnMut(&[String], Vec<Value>) -> Result<ControlFlow<()>, Error> + 'a;

/// The [`SqlStorage`] of a Worker's object.
#[derive(Clone)]
pub struct WorkersSql {
    raw: Rc<Sql>,
    state: Rc<Inner>,
}

impl WorkersSql {
    pub(super) fn new(raw: Sql, state: Rc<Inner>) -> Self {
        Self { raw: Rc::new(raw), state }
    }

    /// Runs the text and gives the rows of its last statement one by one, until `each` stops it.
    ///
    /// Not generic, and nor is `collect`: every kind of parameters would have a copy of the machine code.
    fn run(
        &self,
        text: &str,
        params: Vec<Value>,
        each: &mut Each<'_>,
    ) -> Result<(Vec<String>, Cursor), Error> {
        check_text(text)?;
        params.iter().try_for_each(Value::check_bind)?;
        let mut last = text;
        loop {
            let (first, rest) = split_first(last);
            if rest.is_empty() {
                break;
            }
            self.run_one(first, Vec::new(), true, &mut |_, _| Ok(ControlFlow::Continue(())))?;
            last = rest;
        }
        self.run_one(without_trailing_blanks(last), params, false, each)
    }

    fn run_one(
        &self,
        text: &str,
        params: Vec<Value>,
        leads: bool,
        each: &mut Each<'_>,
    ) -> Result<(Vec<String>, Cursor), Error> {
        let given = params.len();
        let params: Array = params.into_iter().map(bind).collect();
        let cursor = self.raw.exec(text, &params).map_err(|e| refused(&e, given, leads))?;
        let columns = cursor.column_names().map_err(|e| caught_sql(&e))?;
        let columns: Vec<String> = columns.iter().map(|name| name.as_string().unwrap_or_default()).collect();
        if columns.is_empty() {
            return Ok((columns, cursor));
        }
        let run = match leads && !writes(&cursor) {
            // It has run with its first step, nobody wants its rows, and there may be no end of them.
            true => Ok(ControlFlow::Break(())),
            false => rows_of(&cursor, &columns, each),
        };
        if !matches!(run, Ok(ControlFlow::Continue(()))) {
            // Only what is left to run is ended by this: a cursor that stays open until it is collected keeps its
            // table from being dropped and, when it writes, the turn from being committed.
            let _ = cursor.one();
        }
        run.map(|_| (columns, cursor))
    }

    /// Runs `body` in a transaction, which is rolled back when it gives `false`.
    fn in_transaction(&self, body: &mut dyn FnMut() -> bool) -> Result<(), Error> {
        let _depth = self.state.enter_transaction();
        // Moved in as one value: a closure that captures a plain `&mut` is not unwind-safe.
        let mut body = AssertUnwindSafe(body);
        let run = self.state.storage.transaction(&mut move || {
            let body = &mut body;
            match (**body)() {
                true => Ok(JsValue::UNDEFINED),
                false => Err(JsValue::NULL),
            }
        });
        run.map(drop).map_err(|e| caught_sql(&e))
    }

    fn collect(&self, sql: &str, params: Vec<Value>) -> Result<Rows, Error> {
        let (mut rows, mut bytes) = (Vec::new(), 0_usize);
        let (columns, cursor) = self.run(sql, params, &mut |_, row| {
            bytes = bytes.saturating_add(row.iter().map(kept_bytes).sum());
            if bytes > limits::SQL_RESULT_BYTES {
                return Err(too_large_result());
            }
            rows.push(row);
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(Rows::new(columns, rows, count(cursor.rows_read()), count(cursor.rows_written())))
    }
}

impl SqlStorage for WorkersSql {
    fn exec(&self, sql: &str, params: impl Params) -> Result<Rows, Error> {
        self.collect(sql, params.into_values())
    }

    fn for_each(
        &self,
        sql: &str,
        params: impl Params,
        mut each: impl FnMut(Row<'_>) -> Result<ControlFlow<()>, Error>,
    ) -> Result<(), Error> {
        self.run(sql, params.into_values(), &mut |columns, row| {
            let _iterating = self.state.enter_iteration();
            each(Row::new(columns, &row))
        })
        .map(drop)
    }

    fn transaction<T>(&self, body: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
        check_depth(self.state.own_transactions())?;
        let (mut body, mut outcome) = (Some(body), None);
        let touched = self.state.alarm_run.enter();
        let run = self.in_transaction(&mut || {
            let Some(body) = body.take() else { return true };
            // A panic must not pass through JavaScript, which would keep only its text: it goes on behind it.
            let result = outcome.insert(catch_unwind(AssertUnwindSafe(body)));
            matches!(result, Ok(Ok(_)))
        });
        let is_kept = matches!((&outcome, &run), (Some(Ok(Ok(_))), Ok(())));
        self.state.alarm_run.leave(touched, is_kept);
        self.state.rollbacks.set(self.state.rollbacks.get() + u64::from(!is_kept));
        match (outcome, run) {
            (Some(Err(panic)), _) => resume_unwind(panic),
            (Some(Ok(Err(failure))), _) => Err(failure),
            (Some(Ok(Ok(value))), Ok(())) => Ok(value),
            (_, Err(error)) => Err(error.into()),
            (None, Ok(())) => Err(Error::new(ErrorKind::Platform, "the transaction did not run").into()),
        }
    }

    fn rollbacks(&self) -> u64 {
        self.state.rollbacks.get()
    }

    fn database_size(&self) -> u64 {
        count(self.raw.database_size()).unwrap_or(0)
    }
}

/// Gives the rows to `each`; `Break` when it stopped them. Those of a statement that writes are all taken first: a
/// transaction inside the callback could not be rolled back while it is under way.
fn rows_of(cursor: &Cursor, columns: &[String], each: &mut Each<'_>) -> Result<ControlFlow<()>, Error> {
    let rows = cursor.raw().map_err(|e| caught_sql(&e))?;
    let next = || -> Result<Option<Vec<Value>>, Error> {
        let next = rows.next().map_err(|e| caught_sql(&e))?;
        if next.done() {
            return Ok(None);
        }
        let row: Array = next.value().unchecked_into();
        row.iter().map(read).collect::<Result<_, _>>().map(Some)
    };
    if writes(cursor) {
        let mut all = Vec::new();
        while let Some(row) = next()? {
            all.push(row);
        }
        for row in all {
            if each(columns, row)?.is_break() {
                break;
            }
        }
        return Ok(ControlFlow::Continue(()));
    }
    while let Some(row) = next()? {
        if each(columns, row)?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
    Ok(ControlFlow::Continue(()))
}

/// Whether the statement writes, which it has then done with its first step.
fn writes(cursor: &Cursor) -> bool {
    count(cursor.rows_written()).is_some_and(|written| written > 0)
}

/// An exception of running a text, with what every host says where the platform speaks of its JavaScript interface.
fn refused(exception: &JsValue, given: usize, leads: bool) -> Error {
    let error = caught_sql(exception);
    let message = error.to_string();
    if message.starts_with("Wrong number of parameter bindings") {
        return match leads {
            true => Error::new(ErrorKind::Invalid, PARAMETERS_BEFORE_LAST),
            false => wrong_parameters(given),
        };
    }
    if message.starts_with("To execute a transaction, please use") {
        return Error::new(ErrorKind::Invalid, TRANSACTION_REFUSED);
    }
    error
}

fn count(number: Result<f64, JsValue>) -> Option<u64> {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a count; a float saturates
    number.ok().filter(|n| n.is_finite()).map(|n| n as u64)
}

/// All numbers travel as doubles (rule F1); the integers were checked to be exact.
fn bind(value: Value) -> JsValue {
    match value {
        Value::Null => JsValue::NULL,
        #[allow(clippy::cast_precision_loss)] // exact: beyond 2^53-1 it was refused
        Value::Integer(i) => (i as f64).into(),
        Value::Real(r) => r.into(),
        Value::Text(text) => text.into(),
        Value::Blob(blob) => Uint8Array::from(&blob[..]).into(),
    }
}

fn read(value: JsValue) -> Result<Value, Error> {
    if let Some(number) = value.as_f64() {
        return Ok(Value::from_number(number));
    }
    if let Some(text) = value.as_string() {
        return Ok(Value::Text(text));
    }
    if value.is_null() || value.is_undefined() {
        return Ok(Value::Null);
    }
    match value.dyn_into::<ArrayBuffer>() {
        Ok(blob) => Ok(Value::Blob(Uint8Array::new(&blob).to_vec())),
        Err(other) => Err(Error::new(ErrorKind::Platform, format!("SQL gave an unknown value: {other:?}"))),
    }
}

impl fmt::Debug for WorkersSql {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WorkersSql")
    }
}
