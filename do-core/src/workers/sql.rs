//! The object's database.

use super::{
    error::{caught_sql, thrown},
    ext::{Cursor, Sql},
    state::Inner,
};
use crate::{
    Error, ErrorKind, Failure, Params, Row, Rows, SqlStorage, Value, limits,
    sql::{
        rules::{check_text, kept_bytes, too_large_result},
        statements::without_trailing_blanks,
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

/// The [`SqlStorage`] of a Worker's object.
///
/// A table that a stopped [`for_each`](SqlStorage::for_each) was reading cannot be dropped until the platform has
/// collected the cursor, for which there is no call: it says that the table is locked. Write `LIMIT` instead.
#[derive(Clone)]
pub struct WorkersSql {
    raw: Rc<Sql>,
    state: Rc<Inner>,
}

impl WorkersSql {
    pub(super) fn new(raw: Sql, state: Rc<Inner>) -> Self {
        Self { raw: Rc::new(raw), state }
    }

    /// Runs the text and gives the rows of its last statement one by one. The rows of a cursor are read to their end
    /// or not at all: one that stays open keeps its tables from being changed (rule F9).
    fn run(
        &self,
        text: &str,
        params: impl Params,
        mut each: impl FnMut(&[String], Vec<Value>) -> Result<ControlFlow<()>, Error>,
    ) -> Result<(Vec<String>, Cursor), Error> {
        check_text(text)?;
        let params = params.into_values();
        params.iter().try_for_each(Value::check_bind)?;
        let params: Array = params.into_iter().map(bind).collect();
        let cursor = self.raw.exec(without_trailing_blanks(text), &params).map_err(|e| caught_sql(&e))?;
        let columns = cursor.column_names().map_err(|e| caught_sql(&e))?;
        let columns: Vec<String> = columns.iter().map(|name| name.as_string().unwrap_or_default()).collect();
        if columns.is_empty() {
            return Ok((columns, cursor));
        }
        let rows = cursor.raw().map_err(|e| caught_sql(&e))?;
        loop {
            let next = rows.next().map_err(|e| caught_sql(&e))?;
            if next.done() {
                break;
            }
            let row: Array = next.value().unchecked_into();
            if each(&columns, row.iter().map(read).collect::<Result<_, _>>()?)?.is_break() {
                break;
            }
        }
        Ok((columns, cursor))
    }
}

impl SqlStorage for WorkersSql {
    fn exec(&self, sql: &str, params: impl Params) -> Result<Rows, Error> {
        let (mut rows, mut bytes) = (Vec::new(), 0_usize);
        let (columns, cursor) = self.run(sql, params, |_, row| {
            bytes = bytes.saturating_add(row.iter().map(kept_bytes).sum());
            if bytes > limits::SQL_RESULT_BYTES {
                return Err(too_large_result());
            }
            rows.push(row);
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(Rows::new(columns, rows, count(cursor.rows_read()), count(cursor.rows_written())))
    }

    fn for_each(
        &self,
        sql: &str,
        params: impl Params,
        mut each: impl FnMut(Row<'_>) -> Result<ControlFlow<()>, Error>,
    ) -> Result<(), Error> {
        self.run(sql, params, |columns, row| each(Row::new(columns, &row))).map(drop)
    }

    fn transaction<T>(&self, body: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
        let (mut body, mut outcome) = (Some(body), None);
        // Asserted as one value and taken apart inside: a closure that captures the parts would not be unwind-safe.
        let mut parts = AssertUnwindSafe((&mut body, &mut outcome));
        let _depth = self.state.enter_transaction();
        let run = self.state.storage.transaction(&mut move || {
            let parts = &mut parts;
            let (body, outcome) = &mut **parts;
            let Some(body) = body.take() else { return Ok(JsValue::UNDEFINED) };
            // A panic must not pass through JavaScript, which would keep only its text: it goes on behind it.
            let result = catch_unwind(AssertUnwindSafe(body));
            let thrown = match &result {
                Ok(Ok(_)) => Ok(JsValue::UNDEFINED),
                Ok(Err(_)) | Err(_) => Err(thrown(&Error::new(ErrorKind::Application, "rolled back"))),
            };
            **outcome = Some(result);
            thrown
        });
        match (outcome, run) {
            (Some(Err(panic)), _) => resume_unwind(panic),
            (Some(Ok(Err(failure))), _) => Err(failure),
            (Some(Ok(Ok(value))), Ok(_)) => Ok(value),
            (_, Err(exception)) => Err(caught_sql(&exception).into()),
            (None, Ok(_)) => Err(Error::new(ErrorKind::Platform, "the transaction did not run").into()),
        }
    }

    fn database_size(&self) -> u64 {
        count(self.raw.database_size()).unwrap_or(0)
    }
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
