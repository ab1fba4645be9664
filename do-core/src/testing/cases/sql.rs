//! F: SQL.

use crate::limits;
use crate::testing::{
    case::{Case, Fault, Outcome, holds, same},
    driver::Driver,
    lab::Lab,
};
use serde_json::{Value, json};

pub(super) fn cases<D: Driver>() -> Vec<Case<D>> {
    vec![
        Case::new("f1 integers bind as real in expressions and as columns say in tables", |lab| {
            Box::pin(f1_integers(lab))
        }),
        Case::new("f2 other values bind as what they are", |lab| Box::pin(f2_values(lab))),
        Case::new("f3 integers are exact up to 2^53-1 and refused beyond", |lab| Box::pin(f3_exact(lab))),
        Case::new("f4 columns of the same name are all in the row", |lab| Box::pin(f4_columns(lab))),
        Case::new("f5 the number of parameters must match", |lab| Box::pin(f5_count(lab))),
        Case::new("f6 several statements run in order, and an error keeps the earlier ones", |lab| {
            Box::pin(f6_several(lab))
        }),
        Case::new("f6 comments stand anywhere, and text without a statement is an error", |lab| {
            Box::pin(f6_comments(lab))
        }),
        Case::new("f10 errors have SQLite's text and code", |lab| Box::pin(f10_errors(lab))),
        Case::new("f11 transaction statements and the host's tables are refused", |lab| {
            Box::pin(f11_refused(lab))
        }),
        Case::new("f14 foreign keys are checked", |lab| Box::pin(f14_foreign_keys(lab))),
        Case::new("f15 one hundred parameters and no more", |lab| Box::pin(f15_parameters(lab))),
        Case::new("f18 a failed transaction rolls back, alarm included, and nests", |lab| {
            Box::pin(f18_transaction(lab))
        }),
    ]
}

/// The rows of one query.
async fn rows<D: Driver>(lab: &Lab<D>, sql: &str, params: Value) -> Result<Value, Fault> {
    Ok(lab.last("a", json!([{"query": [sql, params]}])).await?["rows"].take())
}

/// The error of one query.
async fn error<D: Driver>(lab: &Lab<D>, sql: &str, params: Value) -> Result<Value, Fault> {
    let mut tried = lab.last("a", json!([{"try": [{"query": [sql, params]}]}])).await?;
    match tried["error"].take() {
        Value::Null => Err(Fault::new(format!("{sql} succeeded: {tried}"))),
        error => Ok(error),
    }
}

fn int(n: i64) -> Value {
    json!({ "integer": n })
}

fn text(text: &str) -> Value {
    json!({ "text": text })
}

async fn f1_integers<D: Driver>(lab: &Lab<D>) -> Outcome {
    let sql = "SELECT typeof(?1), ?1 || '', ?1 / 2, CAST(?1 AS INTEGER) / 2, json_array(?1), ?1";
    let expected = json!([[text("real"), text("5.0"), json!({"real": 2.5}), int(2), text("[5.0]"), int(5)]]);
    same("in expressions", rows(lab, sql, json!([int(5)])).await?, expected)?;
    lab.run("a", json!([{"sql": "CREATE TABLE t (i INTEGER, r REAL, t TEXT, b)"}])).await?;
    let insert =
        "INSERT INTO t VALUES (?1, ?1, ?1, ?1) RETURNING typeof(i), typeof(r), typeof(t), typeof(b), i, t, b";
    let expected =
        json!([[text("integer"), text("real"), text("text"), text("real"), int(5), text("5.0"), int(5)]]);
    same("in columns", rows(lab, insert, json!([int(5)])).await?, expected)?;
    let half = json!({"real": 5.5});
    let expected = json!([[text("real"), text("real"), text("text"), text("real"), half, text("5.5"), half]]);
    same("a fraction", rows(lab, insert, json!([half])).await?, expected)?;
    let limit = "SELECT value FROM json_each('[1,2,3]') LIMIT ?";
    same("as a limit", rows(lab, limit, json!([int(2)])).await?, json!([[int(1)], [int(2)]]))
}

async fn f2_values<D: Driver>(lab: &Lab<D>) -> Outcome {
    for (bound, kind, back) in [
        (json!("null"), "null", json!("null")),
        (text("a\0é"), "text", text("a\0é")),
        (text(""), "text", text("")),
        (json!({"blob": [0, 255]}), "blob", json!({"blob": [0, 255]})),
        (json!({"blob": []}), "blob", json!({"blob": []})),
        (json!({"real": 2.0}), "real", int(2)),
        (json!({"real": -0.5}), "real", json!({"real": -0.5})),
        (json!({"real": 1e300}), "real", json!({"real": 1e300})),
        (json!({"bool": true}), "real", int(1)),
        (json!({"bool": false}), "real", int(0)),
    ] {
        let got = rows(lab, "SELECT typeof(?1), ?1", json!([bound])).await?;
        same(&bound.to_string(), got, json!([[text(kind), back]]))?;
    }
    let infinite = rows(lab, "SELECT 9e999 > 1e308, typeof(9e999)", json!([])).await?;
    same("infinity", infinite, json!([[int(1), text("real")]]))
}

async fn f3_exact<D: Driver>(lab: &Lab<D>) -> Outcome {
    let most = limits::SQL_INTEGER_MAX;
    lab.run("a", json!([{"sql": "CREATE TABLE t (i INTEGER)"}])).await?;
    for n in [most, -most, 0] {
        let got =
            rows(lab, "INSERT INTO t VALUES (?) RETURNING i, typeof(i), CAST(i AS TEXT)", json!([int(n)]));
        same(&n.to_string(), got.await?, json!([[int(n), text("integer"), text(&n.to_string())]]))?;
    }
    for n in [most + 1, -most - 1, i64::MAX, i64::MIN] {
        let error = error(lab, "INSERT INTO t VALUES (?)", json!([int(n)])).await?;
        same(&n.to_string(), &error["kind"], json!("Invalid"))?;
    }
    same("nothing more", rows(lab, "SELECT count(*) FROM t", json!([])).await?, json!([[int(3)]]))?;
    let got = rows(lab, "SELECT 9007199254740992, CAST(9007199254740993 AS TEXT)", json!([])).await?;
    let expected = json!([[{"real": 9_007_199_254_740_992.0}, text("9007199254740993")]]);
    same("read from beyond", got, expected)
}

async fn f4_columns<D: Driver>(lab: &Lab<D>) -> Outcome {
    let got = lab.last("a", json!([{"query": ["SELECT 1 AS n, 'x' AS n, 2 AS m", []]}])).await?;
    same("all", got, json!({"columns": ["n", "n", "m"], "rows": [[int(1), text("x"), int(2)]]}))?;
    let got = lab.last("a", json!([{"query": ["SELECT line FROM log", []]}])).await?;
    same("without rows", got, json!({"columns": ["line"], "rows": []}))?;
    let got = lab.last("a", json!([{"query": ["INSERT INTO n VALUES (1)", []]}])).await?;
    same("without a result", got, json!({"columns": [], "rows": []}))
}

async fn f5_count<D: Driver>(lab: &Lab<D>) -> Outcome {
    for (sql, params) in
        [("SELECT ?", json!([])), ("SELECT 1", json!([int(1)])), ("SELECT ?1, ?3", json!([int(1), int(2)]))]
    {
        same(sql, &error(lab, sql, params).await?["kind"], json!("Invalid"))?;
    }
    let got = rows(lab, "SELECT ?1, ?3", json!([int(1), int(2), int(3)])).await?;
    same("by index", got, json!([[int(1), int(3)]]))?;
    let got = rows(lab, "SELECT :a, @b, $c", json!([int(1), int(2), int(3)])).await?;
    same("by name", got, json!([[int(1), int(2), int(3)]]))
}

async fn f6_several<D: Driver>(lab: &Lab<D>) -> Outcome {
    let got =
        rows(lab, "CREATE TABLE t (x); INSERT INTO t VALUES (1); SELECT x + ? FROM t;  ", json!([int(2)]));
    same("the last one's rows", got.await?, json!([[int(3)]]))?;
    error(lab, "INSERT INTO t VALUES (2); INSERT INTO missing VALUES (1)", json!([])).await?;
    same("the earlier one", rows(lab, "SELECT count(*) FROM t", json!([])).await?, json!([[int(2)]]))
}

async fn f6_comments<D: Driver>(lab: &Lab<D>) -> Outcome {
    for sql in
        ["SELECT 1 -- the end", "SELECT 1; -- the end\n", "-- first\nSELECT 1", "SELECT 1 /* the end */ ;"]
    {
        same(sql, rows(lab, sql, json!([])).await?, json!([[int(1)]]))?;
    }
    for sql in ["", "  ", ";", "-- only words"] {
        same(sql, &error(lab, sql, json!([])).await?["kind"], json!("Invalid"))?;
    }
    Ok(())
}

async fn f10_errors<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.run(
        "a",
        json!([{"sql": "CREATE TABLE t (k TEXT UNIQUE, n INTEGER NOT NULL); INSERT INTO t VALUES ('x', 1)"}]),
    )
    .await?;
    for (sql, message, code) in [
        (
            "INSERT INTO t VALUES ('x', 2)",
            "UNIQUE constraint failed: t.k: SQLITE_CONSTRAINT (extended: SQLITE_CONSTRAINT_UNIQUE)",
            "SQLITE_CONSTRAINT_UNIQUE",
        ),
        (
            "INSERT INTO t VALUES ('y', NULL)",
            "NOT NULL constraint failed: t.n: SQLITE_CONSTRAINT (extended: SQLITE_CONSTRAINT_NOTNULL)",
            "SQLITE_CONSTRAINT_NOTNULL",
        ),
        ("SELECT x FROM missing", "no such table: missing: SQLITE_ERROR", "SQLITE_ERROR"),
        ("SELEC 1", "near \"SELEC\": syntax error at offset 0: SQLITE_ERROR", "SQLITE_ERROR"),
    ] {
        let error = error(lab, sql, json!([])).await?;
        let got = [&error["kind"], &error["message"], &error["sql_code"]];
        same(sql, got, [&json!("Sql"), &json!(message), &json!(code)])?;
    }
    Ok(())
}

async fn f11_refused<D: Driver>(lab: &Lab<D>) -> Outcome {
    for sql in ["BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT a", "RELEASE a", "begin immediate"] {
        let error = error(lab, sql, json!([])).await?;
        same(sql, &error["kind"], json!("Invalid"))?;
        let message = error["message"].as_str().unwrap_or_default();
        holds(format!("{sql}: {message}"), message.contains("transaction"))?;
    }
    for sql in
        ["ATTACH 'x' AS y", "CREATE TABLE _cf_mine (x)", "CREATE TEMP TABLE x (y)", "PRAGMA user_version"]
    {
        let error = error(lab, sql, json!([])).await?;
        same(sql, [&error["kind"], &error["sql_code"]], [&json!("Sql"), &json!("SQLITE_AUTH")])?;
    }
    same("the object goes on", rows(lab, "SELECT 1", json!([])).await?, json!([[int(1)]]))
}

async fn f14_foreign_keys<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.run("a", json!([{"sql": "CREATE TABLE c (id INTEGER REFERENCES parent)"}])).await?;
    let error = error(lab, "INSERT INTO c VALUES (1)", json!([])).await?;
    same("the code", &error["sql_code"], json!("SQLITE_CONSTRAINT_FOREIGNKEY"))?;
    let sql = "INSERT INTO parent VALUES (1); INSERT INTO c VALUES (1); SELECT count(*) FROM c";
    same("with a parent", rows(lab, sql, json!([])).await?, json!([[int(1)]]))
}

async fn f15_parameters<D: Driver>(lab: &Lab<D>) -> Outcome {
    let sum = |n: usize| format!("SELECT max({})", vec!["?"; n].join(", "));
    let values = |n: usize| json!((0..n).map(|n| json!({ "integer": n })).collect::<Vec<_>>());
    let most = limits::SQL_PARAMETERS;
    same("a hundred", rows(lab, &sum(most), values(most)).await?, json!([[int(99)]]))?;
    let error = error(lab, &sum(most + 1), values(most + 1)).await?;
    same("one more", &error["kind"], json!("Sql"))
}

async fn f18_transaction<D: Driver>(lab: &Lab<D>) -> Outcome {
    let steps = json!([
        {"note": "outside"},
        {"try": [{"transaction": [{"note": "undone"}, {"set_alarm": 5_000}, {"fail": "as told"}]}]},
        "get_alarm",
        {"transaction": [{"note": "kept"}, {"set_alarm": 60_000}]},
        {"transaction": [
            {"note": "kept too"},
            {"transaction": [{"note": "and this"}]}
        ]},
        {"try": [{"transaction": [{"note": "undone"}, {"transaction": [{"note": "undone"}]}, {"fail": "x"}]}]},
        {"try": [{"transaction": [{"note": "undone"}, {"sql": "INSERT INTO missing VALUES (1)"}]}]}
    ]);
    let gave = lab.run("a", steps).await?;
    same(
        "its error",
        [&gave[1]["error"]["kind"], &gave[1]["error"]["message"]],
        [&json!("Application"), &json!("as told")],
    )?;
    same("the alarm", &gave[2], Value::Null)?;
    same("its value", &gave[4], json!([null, [null]]))?;
    same("a failed statement", &gave[6]["error"]["kind"], json!("Sql"))?;
    same("what was written", lab.lines("a").await?, json!(["outside", "kept", "kept too", "and this"]))?;
    holds("the alarm that was kept", lab.last("a", json!(["get_alarm"])).await?.is_i64())
}
