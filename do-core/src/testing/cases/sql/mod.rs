//! F: SQL; and G as far as the key-value store on SQL has it.
//!
//! Most cases are tables of statements with what they give, in one object and in order. Both hosts are held to the
//! same text: what stands there is what workerd answers.

mod bindings;
mod errors;
mod features;
mod functions;
mod kv;
mod limits;
mod permissions;
mod pragmas;
mod stepping;
mod strict;
mod transactions;
mod typed;
mod values;

use crate::testing::{
    case::{Case, Fault, Outcome, same},
    driver::Driver,
    lab::Lab,
};
use serde_json::{Value, json};

pub(super) fn cases<D: Driver>() -> Vec<Case<D>> {
    let areas = [
        values::cases(),
        strict::cases(),
        bindings::cases(),
        stepping::cases(),
        errors::cases(),
        permissions::cases(),
        features::cases(),
        functions::cases(),
        pragmas::cases(),
        limits::cases(),
        transactions::cases(),
        typed::cases(),
        kv::cases(),
    ];
    areas.into_iter().flatten().collect()
}

/// A statement, its parameters as a JSON array, and what it gives: its rows as JSON, or the text of its error.
type Row = (&'static str, &'static str, &'static str);

/// The same for one statement with other parameters each time.
type Bound = (&'static str, &'static str);

/// The same for a statement without parameters.
type Said = (&'static str, &'static str);

/// Runs `setup`, unless it is empty, and then the statements one after the other.
async fn table<D: Driver>(lab: &Lab<D>, setup: &str, rows: &[Row]) -> Outcome {
    let mut steps = Vec::new();
    for (sql, params, _) in rows {
        let params: Value = serde_json::from_str(params)?;
        steps.push(json!({"try": [{"db": {"rows": [sql, params]}}]}));
    }
    let expected = rows.iter().map(|(sql, params, expected)| (format!("{sql} {params}"), *expected));
    check(lab, setup, steps, expected).await
}

async fn bound<D: Driver>(lab: &Lab<D>, setup: &str, sql: &'static str, rows: &[Bound]) -> Outcome {
    let rows: Vec<Row> = rows.iter().map(|(params, expected)| (sql, *params, *expected)).collect();
    table(lab, setup, &rows).await
}

async fn said<D: Driver>(lab: &Lab<D>, setup: &str, rows: &[Said]) -> Outcome {
    let rows: Vec<Row> = rows.iter().map(|(sql, expected)| (*sql, "[]", *expected)).collect();
    table(lab, setup, &rows).await
}

async fn check<D: Driver>(
    lab: &Lab<D>,
    setup: &str,
    steps: Vec<Value>,
    expected: impl Iterator<Item = (String, &'static str)>,
) -> Outcome {
    if !setup.is_empty() {
        lab.run("a", json!([{"sql": setup}])).await?;
    }
    let gave = lab.run("a", json!(steps)).await?;
    for (gave, (what, expected)) in gave.iter().zip(expected) {
        outcome(&what, gave, expected)?;
    }
    Ok(())
}

/// Compares what a tried step gave with rows as JSON or with the text of an error, whose kind and code follow from it.
fn outcome(what: &str, gave: &Value, expected: &str) -> Outcome {
    if expected.starts_with('[') {
        let expected: Value = serde_json::from_str(expected)?;
        return same(what, gave, json!({ "ok": [expected] }));
    }
    let code = expected.rsplit([' ', '(', ')']).find(|word| word.starts_with("SQLITE_"));
    let kind = if code.is_some() { "Sql" } else { "Invalid" };
    let error = &gave["error"];
    same(what, json!([error["message"], error["kind"], error["sql_code"]]), json!([expected, kind, code]))
}

/// A step that runs SQL and gives the rows.
fn rows(sql: &str) -> Value {
    json!({"db": {"rows": [sql, []]}})
}

/// The steps, whose error is a value, also inside a transaction.
#[allow(clippy::needless_pass_by_value)] // so that `json!` can stand in the call
fn tried(steps: Value) -> Value {
    json!({"db": {"try": steps}})
}

/// The rows of one statement.
async fn ask<D: Driver>(lab: &Lab<D>, sql: &str) -> Result<Value, Fault> {
    lab.last("a", json!([rows(sql)])).await
}
