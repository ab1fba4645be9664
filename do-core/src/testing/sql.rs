//! The probe's steps over SQL: parameters and rows are plain JSON, so that a case reads as a table.

use super::{probe::Inner, run::At, step::Step, thrown::Thrown};
use crate::{Error, ErrorKind, Failure, KeyValue, Keys, ObjectState, Row, SqlExt, SqlStorage};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::{collections::BTreeMap, ops::ControlFlow};

/// What to do with the database. None of them awaits.
///
/// Parameters and values of rows are JSON: numbers, texts, `null`, as parameters `true` and `false` as well.
/// `{"blob": [1, 2]}` is a blob, `{"real": "inf"}` a number that JSON has not, `{"blob_of": 9}` and `{"text_of": 9}` are
/// that many bytes.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum SqlStep {
    /// Runs SQL with parameters and gives the rows.
    Rows(String, Vec<Value>),
    /// The same, row by row.
    Each(String, Vec<Value>, EachRow),
    /// `{"ok": values}` or `{"error": ..}`, also in a transaction.
    Try(Vec<Step>),
    /// As a type with the fields `id`, `name` and, as they can be missing in a row, `score` and `kind`.
    All(String),
    One(String),
    Optional(String),
    /// The first value as an `i64`, a `u8`, a `f64`, a `bool`, a text, bytes.
    Scalar(As, String),
    /// The value of a column by its name.
    Column(String, String),
    Migrate(Vec<String>),
    /// Bytes in use.
    Size,
    /// How many transactions have failed.
    Rollbacks,
    /// Over a [`KeyValue`](crate::KeyValue) in the table of this name.
    Kv(String, KvStep),
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum KvStep {
    Get(String),
    /// As a number.
    GetNumber(String),
    GetMany(Vec<String>),
    Put(String, Value),
    PutMany(Vec<(String, Value)>),
    /// Puts two keys, of which the second has a text of so many bytes.
    PutTwo(usize),
    /// A map whose keys are no texts, which JSON has not.
    PutUnspeakable(String),
    /// A key of so many bytes.
    PutLongKey(usize),
    Delete(String),
    DeleteMany(Vec<String>),
    List(KeysOf),
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct KeysOf {
    prefix: String,
    from: Option<String>,
    after: Option<String>,
    before: Option<String>,
    reversed: bool,
    limit: Option<u32>,
}

/// What happens at each row: the steps, and at the row with the number, from 1, the end.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct EachRow {
    steps: Vec<Step>,
    stop: Option<usize>,
    fail: Option<usize>,
}

/// A type to read a value as.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum As {
    I64,
    U8,
    F64,
    Bool,
    Text,
    Bytes,
}

#[derive(Debug, Serialize, Deserialize)]
struct Line {
    id: i64,
    name: String,
    #[serde(default)]
    score: Option<f64>,
    #[serde(default)]
    kind: Kind,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    #[default]
    Plain,
    Special,
}

impl<S: ObjectState> Inner<S> {
    pub(super) fn sql_step(&self, step: &SqlStep, at: &At<S>) -> Result<Value, Failure> {
        let sql = self.state.sql();
        Ok(match step {
            SqlStep::Rows(text, params) => {
                let rows = sql.exec(text, parameters(params)?)?;
                rows.iter().map(shown).collect()
            }
            SqlStep::Each(text, params, each) => self.row_by_row(text, params, each, at)?,
            SqlStep::Try(steps) => match self.all_now(steps, at) {
                Ok(values) => json!({ "ok": values }),
                Err(failure) => json!({ "error": Thrown::from(&Error::from(failure)) }),
            },
            SqlStep::All(text) => json!(sql.query::<Line>(text, ())?),
            SqlStep::One(text) => json!(sql.query_one::<Line>(text, ())?),
            SqlStep::Optional(text) => json!(sql.query_optional::<Line>(text, ())?),
            SqlStep::Scalar(kind, text) => match kind {
                As::I64 => json!(sql.scalar::<i64>(text, ())?),
                As::U8 => json!(sql.scalar::<u8>(text, ())?),
                As::F64 => json!(sql.scalar::<f64>(text, ())?),
                As::Bool => json!(sql.scalar::<bool>(text, ())?),
                As::Text => json!(sql.scalar::<String>(text, ())?),
                As::Bytes => json!(sql.scalar::<Vec<u8>>(text, ())?),
            },
            SqlStep::Column(name, text) => {
                let rows = sql.exec(text, ())?;
                rows.first()
                    .map(|row| row.get::<crate::Value>(name))
                    .transpose()?
                    .map_or(Value::Null, |v| plain(&v))
            }
            SqlStep::Migrate(steps) => {
                sql.migrate(&steps.iter().map(String::as_str).collect::<Vec<_>>())?;
                Value::Null
            }
            SqlStep::Size => json!(sql.database_size()),
            SqlStep::Rollbacks => json!(sql.rollbacks()),
            SqlStep::Kv(table, step) => kv_step(&KeyValue::open(&self.state, table)?, step)?,
        })
    }

    fn row_by_row(&self, text: &str, params: &[Value], each: &EachRow, at: &At<S>) -> Result<Value, Failure> {
        let mut seen = Vec::new();
        let ran = self.state.sql().for_each(text, parameters(params)?, |row| {
            let values = self.all_now(&each.steps, at)?;
            seen.push(json!([shown(row), values]));
            if each.fail == Some(seen.len()) {
                return Err(Error::new(ErrorKind::Application, "the callback was told to fail"));
            }
            Ok(if each.stop == Some(seen.len()) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        });
        let error = ran.err().map(|error| Thrown::from(&error));
        Ok(json!({ "seen": seen, "error": error }))
    }
}

fn kv_step<Q: SqlStorage>(kv: &KeyValue<Q>, step: &KvStep) -> Result<Value, Error> {
    fn texts(keys: &[String]) -> Vec<&str> {
        keys.iter().map(String::as_str).collect()
    }
    Ok(match step {
        KvStep::Get(key) => json!(kv.get::<Value>(key)?),
        KvStep::GetNumber(key) => json!(kv.get::<i64>(key)?),
        KvStep::GetMany(keys) => {
            json!(kv.get_many::<Value>(&texts(keys))?)
        }
        KvStep::Put(key, value) => json!(kv.put(key, value)?),
        KvStep::PutMany(entries) => json!(kv.put_many(entries.iter().map(|(key, value)| (key, value)))?),
        KvStep::PutTwo(bytes) => json!(kv.put_many([("one", "1".to_owned()), ("two", "x".repeat(*bytes))])?),
        KvStep::PutUnspeakable(key) => json!(kv.put(key, &BTreeMap::from([((1, 2), 3)]))?),
        KvStep::PutLongKey(bytes) => json!(kv.put(&"k".repeat(*bytes), &1)?),
        KvStep::Delete(key) => json!(kv.delete(key)?),
        KvStep::DeleteMany(keys) => {
            json!(kv.delete_many(&texts(keys))?)
        }
        KvStep::List(of) => json!(kv.list::<Value>(of.keys())?),
    })
}

impl KeysOf {
    fn keys(&self) -> Keys<'_> {
        let mut keys = Keys::prefix(&self.prefix);
        if let Some(from) = &self.from {
            keys = keys.start(from);
        }
        if let Some(after) = &self.after {
            keys = keys.start_after(after);
        }
        if let Some(before) = &self.before {
            keys = keys.end(before);
        }
        if let Some(limit) = self.limit {
            keys = keys.limit(limit);
        }
        if self.reversed { keys.reverse() } else { keys }
    }
}

fn parameters(params: &[Value]) -> Result<Vec<crate::Value>, Failure> {
    params.iter().map(parameter).collect()
}

fn parameter(value: &Value) -> Result<crate::Value, Failure> {
    let unknown = || Failure::msg(format!("no parameter: {value}"));
    Ok(match value {
        Value::Null => crate::Value::Null,
        Value::Bool(it) => (*it).into(),
        Value::Number(number) => match number.as_i64() {
            Some(integer) => integer.into(),
            None => number.as_f64().ok_or_else(unknown)?.into(),
        },
        Value::String(text) => text.into(),
        Value::Object(_) => {
            match serde_json::from_value::<BTreeMap<String, Value>>(value.clone())?.pop_first() {
                Some((kind, content)) => match (kind.as_str(), content) {
                    ("blob", bytes) => serde_json::from_value::<Vec<u8>>(bytes)?.into(),
                    ("real", Value::String(text)) => text.parse::<f64>()?.into(),
                    ("blob_of", count) => vec![7; serde_json::from_value(count)?].into(),
                    ("text_of", count) => "x".repeat(serde_json::from_value(count)?).into(),
                    _ => return Err(unknown()),
                },
                None => return Err(unknown()),
            }
        }
        Value::Array(_) => return Err(unknown()),
    })
}

fn shown(row: Row<'_>) -> Value {
    row.values().iter().map(plain).collect()
}

fn plain(value: &crate::Value) -> Value {
    match value {
        crate::Value::Null => Value::Null,
        crate::Value::Integer(i) => json!(i),
        crate::Value::Real(r) if r.is_finite() => json!(r),
        crate::Value::Real(r) => json!({ "real": r.to_string() }),
        crate::Value::Text(text) => json!(text),
        crate::Value::Blob(bytes) => json!({ "blob": bytes }),
    }
}
