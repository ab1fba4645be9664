//! F4 and F6 to F9: statements, their rows one by one, and what happens meanwhile.

use super::{Said, ask, rows, said, tried};
use crate::testing::{
    case::{Case, Fault, Outcome, same},
    driver::Driver,
    lab::Lab,
};
use serde_json::{Value, json};

pub(super) fn cases<D: Driver>() -> Vec<Case<D>> {
    vec![
        Case::new("f4 columns of the same name are all in the row", |lab| Box::pin(f4_columns(lab))),
        Case::new("f4 a column is found by its exact name, of several the last", |lab| {
            Box::pin(f4_names(lab))
        }),
        Case::new("f6 several statements run in order and the last gives its rows", |lab| {
            Box::pin(said(lab, "", SEVERAL))
        }),
        Case::new("f6 an error leaves what earlier statements did", |lab| {
            Box::pin(said(lab, "CREATE TABLE t (a)", ERRORS))
        }),
        Case::new("f6 only the last statement has parameters", |lab| Box::pin(f6_parameters(lab))),
        Case::new("f6 comments and blanks stand anywhere", |lab| Box::pin(said(lab, "", COMMENTS))),
        Case::new("f6 a text without a statement is an error", |lab| Box::pin(said(lab, "", NOTHING))),
        Case::new("f6 semicolons in strings, names, comments and triggers end nothing", |lab| {
            Box::pin(said(lab, "", SEMICOLONS))
        }),
        Case::new("f6 rows of a statement before the last are not read", |lab| Box::pin(f6_leading(lab))),
        Case::new("f6 a NUL character in the text is an error", |lab| Box::pin(f6_nul(lab))),
        Case::new("f7 RETURNING is done when the first row is seen", |lab| Box::pin(f7_returning(lab))),
        Case::new("f7 a statement that writes is done although its rows are stopped", |lab| {
            Box::pin(f7_stopped(lab))
        }),
        Case::new("f7 an error of a write is thrown at once and undoes the statement", |lab| {
            Box::pin(f7_error(lab))
        }),
        Case::new("f8 for_each gives row after row", |lab| Box::pin(f8_rows(lab))),
        Case::new("f8 for_each ends where it is stopped", |lab| Box::pin(f8_stop(lab))),
        Case::new("f8 the error of the callback is given on unchanged", |lab| Box::pin(f8_fail(lab))),
        Case::new("f8 an error while stepping comes before the last row that was read", |lab| {
            Box::pin(f8_stepping(lab))
        }),
        Case::new("f8 an error while stepping is all that exec gives", |lab| {
            Box::pin(said(lab, "", STEPPING))
        }),
        Case::new("f9 the same text runs inside its own callback", |lab| Box::pin(f9_nested(lab))),
        Case::new("f9 rows that are added to the table being read are seen", |lab| Box::pin(f9_insert(lab))),
        Case::new("f9 rows that are deleted meanwhile are not seen, but for the next one", |lab| {
            Box::pin(f9_delete(lab))
        }),
        Case::new("f9 sorted rows are those of the beginning", |lab| Box::pin(f9_sorted(lab))),
        Case::new("f9 a table that is being read cannot be dropped", |lab| Box::pin(f9_drop(lab))),
        Case::new("f9 a table whose reading was stopped can be dropped", |lab| Box::pin(f9_drop_after(lab))),
        Case::new("f9 a transaction inside the callback commits and rolls back", |lab| {
            Box::pin(f9_transaction(lab))
        }),
        Case::new("f9 rolling back a change of the schema ends the reading", |lab| Box::pin(f9_schema(lab))),
        Case::new("f9 the alarm can be set inside the callback", |lab| Box::pin(f9_alarm(lab))),
        Case::new("f9 the database cannot be emptied inside the callback", |lab| {
            Box::pin(f9_delete_all(lab))
        }),
        Case::new("f22 a changed schema is picked up by the same text", |lab| {
            Box::pin(said(lab, "CREATE TABLE t (a); INSERT INTO t VALUES (1)", CHANGED))
        }),
    ]
}

const SEVERAL: &[Said] = &[
    ("CREATE TABLE t (a); INSERT INTO t VALUES (1); SELECT a FROM t", "[[1]]"),
    ("SELECT 1; SELECT 2;", "[[2]]"),
    ("SELECT 1; INSERT INTO t VALUES (2)", "[]"),
    ("SELECT 1; INSERT INTO t VALUES (3) RETURNING a", "[[3]]"),
    ("INSERT INTO t VALUES (4) RETURNING a; SELECT count(*) FROM t", "[[4]]"),
];

const ERRORS: &[Said] = &[
    ("INSERT INTO t VALUES (1); INSERT INTO missing VALUES (2)", "no such table: missing: SQLITE_ERROR"),
    ("SELECT a FROM t", "[[1]]"),
    (
        "INSERT INTO t VALUES (2); SELEC 1; INSERT INTO t VALUES (3)",
        "near \"SELEC\": syntax error at offset 0: SQLITE_ERROR",
    ),
    ("SELECT a FROM t", "[[1], [2]]"),
    ("SELECT abs(-9223372036854775808); INSERT INTO t VALUES (4)", "integer overflow: SQLITE_ERROR"),
    ("SELECT a FROM t", "[[1], [2]]"),
];

const COMMENTS: &[Said] = &[
    ("SELECT 1 -- the end", "[[1]]"),
    ("SELECT 1; -- the end\n", "[[1]]"),
    ("SELECT 1 /* the end */ ;", "[[1]]"),
    ("SELECT 1 /* never closed", "[[1]]"),
    ("-- first\nSELECT 1", "[[1]]"),
    ("/* first */ SELECT /* second */ 1", "[[1]]"),
    ("  \t\n SELECT 1 ; ", "[[1]]"),
    ("; SELECT 1", "[[1]]"),
    ("SELECT 1; ; SELECT 2", "[[2]]"),
];

const NOTHING: &[Said] = &[
    ("", "SQL code did not contain a statement."),
    ("  ", "SQL code did not contain a statement."),
    (";", "SQL code did not contain a statement."),
    (" ; ; ", "SQL code did not contain a statement."),
    ("-- only words", "SQL code did not contain a statement."),
    ("SELECT 1;;", "SQL code did not contain a statement."),
    ("/* only words */ ;", "SQL code did not contain a statement."),
];

const SEMICOLONS: &[Said] = &[
    ("SELECT 'a;b', \";c\", '--', '/*'", r#"[["a;b", ";c", "--", "/*"]]"#),
    ("SELECT 1 AS [a;b], 2 AS `c;d` -- e;\n; SELECT 3", "[[3]]"),
    ("SELECT 'it''s;'; SELECT 2", "[[2]]"),
    (
        "CREATE TABLE t (a); CREATE TRIGGER r AFTER INSERT ON t BEGIN SELECT CASE 1 WHEN 1 THEN 2 END; SELECT 3; END; \
         INSERT INTO t VALUES (1); SELECT a FROM t",
        "[[1]]",
    ),
    ("CREATE TABLE begin_end (a); SELECT 1", "[[1]]"),
];

const STEPPING: &[Said] = &[
    ("SELECT abs(-9223372036854775808)", "integer overflow: SQLITE_ERROR"),
    (
        "SELECT abs(CASE value WHEN 3 THEN -9223372036854775808 ELSE value END) FROM json_each('[1,2,3]')",
        "integer overflow: SQLITE_ERROR",
    ),
    (r#"SELECT json(value) FROM json_each('["1","[2]","{"]')"#, "malformed JSON: SQLITE_ERROR"),
    ("SELECT 1 FROM json_each('[1,2,3]') WHERE abs(-9223372036854775808)", "integer overflow: SQLITE_ERROR"),
];

const CHANGED: &[Said] = &[
    ("SELECT * FROM t", "[[1]]"),
    ("ALTER TABLE t ADD COLUMN b DEFAULT 7", "[]"),
    ("SELECT * FROM t", "[[1, 7]]"),
    ("DROP TABLE t; CREATE TABLE t (c)", "[]"),
    ("SELECT * FROM t", "[]"),
];

/// A step that reads row by row, with what to do at each.
#[allow(clippy::needless_pass_by_value)] // so that `json!` can stand in the call
fn each(sql: &str, at_each: Value) -> Value {
    json!({"db": {"each": [sql, [], at_each]}})
}

/// What one such step gave: the rows with what the steps gave at each, and the text of the error.
async fn stepped<D: Driver>(lab: &Lab<D>, sql: &str, at_each: Value) -> Result<(Value, Value), Fault> {
    let mut gave = lab.last("a", json!([each(sql, at_each)])).await?;
    Ok((gave["seen"].take(), gave["error"]["message"].take()))
}

async fn with_rows<D: Driver>(lab: &Lab<D>) -> Outcome {
    ask(lab, "CREATE TABLE t (a); INSERT INTO t VALUES (1), (2), (3)").await.map(drop)
}

async fn f4_columns<D: Driver>(lab: &Lab<D>) -> Outcome {
    let int = |n: i64| json!({ "integer": n });
    let got = lab.last("a", json!([{"query": ["SELECT 1 AS n, 'x' AS n, 2 AS m", []]}])).await?;
    same("all", got, json!({"columns": ["n", "n", "m"], "rows": [[int(1), {"text": "x"}, int(2)]]}))?;
    let got = lab.last("a", json!([{"query": ["SELECT line, 1 AS \"\" FROM log", []]}])).await?;
    same("without rows", got, json!({"columns": ["line", ""], "rows": []}))?;
    let got = lab.last("a", json!([{"query": ["INSERT INTO n VALUES (1)", []]}])).await?;
    same("without a result", got, json!({"columns": [], "rows": []}))
}

async fn f4_names<D: Driver>(lab: &Lab<D>) -> Outcome {
    let column = |name: &str| json!({"db": {"column": [name, "SELECT 1 AS n, 2 AS n, 3 AS m"]}});
    same("of several", lab.last("a", json!([column("n")])).await?, json!(2))?;
    for wrong in ["N", "zz", ""] {
        let error = lab.thrown("a", json!([column(wrong)])).await?;
        let message = format!("no column {wrong:?}; there are: n, n, m");
        same(wrong, json!([error.kind, error.message]), json!(["Invalid", message]))?;
    }
    Ok(())
}

async fn f6_parameters<D: Driver>(lab: &Lab<D>) -> Outcome {
    let run = |sql: &str| json!([{"db": {"rows": [sql, [7]]}}]);
    same("last", lab.last("a", run("SELECT 1; SELECT ?")).await?, json!([[7]]))?;
    let error = lab.thrown("a", run("CREATE TABLE t (a); SELECT ?; SELECT 1")).await?;
    let message = "When executing multiple SQL statements in a single call, only the last statement can have parameters.";
    same("first", json!([error.kind, error.message]), json!(["Invalid", message]))?;
    same("what was before", ask(lab, "SELECT count(*) FROM t").await?, json!([[0]]))
}

async fn f6_leading<D: Driver>(lab: &Lab<D>) -> Outcome {
    let endless = "WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c)";
    same("without an end", ask(lab, &format!("{endless} SELECT i FROM c; SELECT 7")).await?, json!([[7]]))?;
    let later = format!("{endless} SELECT CASE WHEN i > 1 THEN json('{{') END FROM c; SELECT 8");
    same("with an error behind the first", ask(lab, &later).await?, json!([[8]]))?;
    let writes = "CREATE TABLE t (a); INSERT INTO t VALUES (1), (2), (3) RETURNING a; SELECT count(*) FROM t";
    same("of one that writes", ask(lab, writes).await?, json!([[3]]))
}

async fn f6_nul<D: Driver>(lab: &Lab<D>) -> Outcome {
    for sql in ["SELECT 1\0", "SELECT 1\0; SELECT 2", "\0"] {
        let error = lab.thrown("a", json!([rows(sql)])).await?;
        let expected = json!(["Invalid", "SQL code must not contain a NUL character."]);
        same(sql, json!([error.kind, error.message]), expected)?;
    }
    Ok(())
}

async fn f7_returning<D: Driver>(lab: &Lab<D>) -> Outcome {
    with_rows(lab).await?;
    let at_each = json!({"steps": [rows("SELECT count(*) FROM t")]});
    let (seen, _) = stepped(lab, "INSERT INTO t VALUES (4), (5) RETURNING a", at_each).await?;
    same("seen", seen, json!([[[4], [[[5]]]], [[5], [[[5]]]]]))
}

async fn f7_stopped<D: Driver>(lab: &Lab<D>) -> Outcome {
    with_rows(lab).await?;
    for (what, at_each, count) in [("stopped", json!({"stop": 1}), 6), ("failed", json!({"fail": 1}), 9)] {
        let (seen, _) = stepped(lab, "INSERT INTO t VALUES (7), (8), (9) RETURNING a", at_each).await?;
        same(what, seen, json!([[[7], []]]))?;
        same(what, ask(lab, "SELECT count(*) FROM t").await?, json!([[count]]))?;
    }
    Ok(())
}

async fn f7_error<D: Driver>(lab: &Lab<D>) -> Outcome {
    ask(lab, "CREATE TABLE t (a UNIQUE); INSERT INTO t VALUES (2)").await?;
    let (seen, error) = stepped(lab, "INSERT INTO t VALUES (1), (2) RETURNING a", json!({})).await?;
    same("no row", seen, json!([]))?;
    let message = "UNIQUE constraint failed: t.a: SQLITE_CONSTRAINT (extended: SQLITE_CONSTRAINT_UNIQUE)";
    same("the error", error, json!(message))?;
    same("undone", ask(lab, "SELECT a FROM t").await?, json!([[2]]))
}

async fn f8_rows<D: Driver>(lab: &Lab<D>) -> Outcome {
    with_rows(lab).await?;
    let (seen, error) = stepped(lab, "SELECT a, a * 2 FROM t", json!({})).await?;
    same("seen", seen, json!([[[1, 2], []], [[2, 4], []], [[3, 6], []]]))?;
    same("no error", error, Value::Null)?;
    same("no rows", stepped(lab, "SELECT 1 WHERE 0", json!({})).await?.0, json!([]))?;
    let error =
        lab.thrown("a", json!([{"db": {"each": ["SELECT ?", [], {}]}}, {"fail": "not so far"}])).await;
    // An error before the first row is the result, too: the probe gives it as a value.
    same("and none", error?.message, "not so far")?;
    let (_, error) = stepped(lab, "SELECT ?", json!({})).await?;
    same("parameters", error, json!("Wrong number of parameter bindings for SQL query: 0 were given."))
}

async fn f8_stop<D: Driver>(lab: &Lab<D>) -> Outcome {
    let endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n";
    let (seen, error) = stepped(lab, endless, json!({"stop": 3})).await?;
    same("seen", seen, json!([[[1], []], [[2], []], [[3], []]]))?;
    same("no error", error, Value::Null)
}

async fn f8_fail<D: Driver>(lab: &Lab<D>) -> Outcome {
    with_rows(lab).await?;
    let mut gave = lab.last("a", json!([each("SELECT a FROM t", json!({"fail": 2}))])).await?;
    same("seen", gave["seen"].take(), json!([[[1], []], [[2], []]]))?;
    let error = &gave["error"];
    let expected = json!(["Application", "the callback was told to fail", null]);
    same("the error", json!([error["kind"], error["message"], error["sql_code"]]), expected)?;
    let at_each = json!({"steps": [rows("SELECT x FROM missing")]});
    let error = lab.last("a", json!([each("SELECT a FROM t", at_each)])).await?["error"].take();
    let expected = json!(["Sql", "no such table: missing: SQLITE_ERROR", "SQLITE_ERROR"]);
    same("one of SQL", json!([error["kind"], error["message"], error["sql_code"]]), expected)
}

async fn f8_stepping<D: Driver>(lab: &Lab<D>) -> Outcome {
    let third =
        "SELECT abs(CASE value WHEN 3 THEN -9223372036854775808 ELSE value END) FROM json_each('[1,2,3,4]')";
    let (seen, error) = stepped(lab, third, json!({})).await?;
    same("the third row", (seen, error), json!([[[[1], []]], "integer overflow: SQLITE_ERROR"]))?;
    let json = r#"SELECT json(value) FROM json_each('["1","[2]","{"]')"#;
    let (seen, error) = stepped(lab, json, json!({})).await?;
    same("JSON", (seen, error), json!([[[["1"], []]], "malformed JSON: SQLITE_ERROR"]))?;
    let (seen, error) = stepped(lab, "SELECT abs(-9223372036854775808)", json!({})).await?;
    same("the first row", (seen, error), json!([[], "integer overflow: SQLITE_ERROR"]))?;
    with_rows(lab).await?;
    let third = "SELECT abs(CASE a WHEN 3 THEN -9223372036854775808 ELSE a END) FROM t";
    lab.run("a", json!([each(third, json!({})), tried(json!([rows(third)]))])).await?;
    same("nothing stays open", ask(lab, "DROP TABLE t; SELECT 1").await?, json!([[1]]))
}

async fn f9_nested<D: Driver>(lab: &Lab<D>) -> Outcome {
    with_rows(lab).await?;
    let inner = each("SELECT a FROM t", json!({"stop": 2}));
    let (seen, _) =
        stepped(lab, "SELECT a FROM t", json!({"steps": [inner, rows("SELECT a FROM t")]})).await?;
    let inner = json!({"seen": [[[1], []], [[2], []]], "error": null});
    let row = |a: i64| json!([[a], [inner, [[1], [2], [3]]]]);
    same("seen", seen, json!([row(1), row(2), row(3)]))
}

async fn f9_insert<D: Driver>(lab: &Lab<D>) -> Outcome {
    with_rows(lab).await?;
    let at_each = json!({"steps": [rows("INSERT INTO t VALUES (10)")], "stop": 5});
    let (seen, error) = stepped(lab, "SELECT a FROM t", at_each).await?;
    let row = |a: i64| json!([[a], [[]]]);
    same("seen", seen, json!([row(1), row(2), row(3), row(10), row(10)]))?;
    same("no error", error, Value::Null)?;
    same("kept", ask(lab, "SELECT count(*) FROM t").await?, json!([[8]]))?;
    ask(lab, "DELETE FROM t WHERE a > 1").await?;
    let at_each = json!({"steps": [rows("INSERT INTO t VALUES (10)")]});
    let (seen, _) = stepped(lab, "SELECT a FROM t", at_each).await?;
    same("behind the end, which was read already", seen, json!([row(1)]))
}

async fn f9_delete<D: Driver>(lab: &Lab<D>) -> Outcome {
    with_rows(lab).await?;
    let (seen, _) = stepped(lab, "SELECT a FROM t", json!({"steps": [rows("DELETE FROM t")]})).await?;
    same("seen", seen, json!([[[1], [[]]], [[2], [[]]]]))?;
    same("gone", ask(lab, "SELECT count(*) FROM t").await?, json!([[0]]))
}

async fn f9_sorted<D: Driver>(lab: &Lab<D>) -> Outcome {
    with_rows(lab).await?;
    let at_each = json!({"steps": [rows("UPDATE t SET a = a + 1")]});
    let (seen, _) = stepped(lab, "SELECT a FROM t ORDER BY a DESC", at_each).await?;
    same("seen", seen, json!([[[3], [[]]], [[2], [[]]], [[1], [[]]]]))?;
    same("changed", ask(lab, "SELECT a FROM t").await?, json!([[4], [5], [6]]))
}

async fn f9_drop<D: Driver>(lab: &Lab<D>) -> Outcome {
    with_rows(lab).await?;
    ask(lab, "CREATE INDEX i ON t (a)").await?;
    for sql in ["DROP TABLE t", "DROP INDEX i"] {
        let at_each = json!({"steps": [tried(json!([rows(sql)]))], "stop": 2});
        let (seen, _) = stepped(lab, "SELECT a FROM t NOT INDEXED", at_each).await?;
        for row in 0..2 {
            let error = &seen[row][1][0]["error"];
            let expected = json!(["database table is locked: SQLITE_LOCKED", "SQLITE_LOCKED"]);
            same(sql, json!([error["message"], error["sql_code"]]), expected)?;
        }
    }
    Ok(())
}

async fn f9_drop_after<D: Driver>(lab: &Lab<D>) -> Outcome {
    for at_each in [json!({"stop": 1}), json!({"fail": 1})] {
        with_rows(lab).await?;
        let steps = json!([each("SELECT a FROM t", at_each), rows("DROP TABLE t")]);
        same("dropped", lab.last("a", steps).await?, json!([]))?;
    }
    Ok(())
}

async fn f9_transaction<D: Driver>(lab: &Lab<D>) -> Outcome {
    with_rows(lab).await?;
    let undone = tried(json!([{"transaction": [{"note": "undone"}, rows("DELETE FROM t"), {"fail": "x"}]}]));
    let at_each = json!({"steps": [undone, {"transaction": [{"note": "kept"}]}]});
    for sql in ["SELECT a FROM t", "UPDATE t SET a = a RETURNING a"] {
        let (seen, error) = stepped(lab, sql, at_each.clone()).await?;
        same(sql, error, Value::Null)?;
        same(sql, json!([seen[0][0], seen[1][0], seen[2][0]]), json!([[1], [2], [3]]))?;
        same(sql, &seen[2][1][0]["error"]["message"], json!("x"))?;
    }
    same("written", lab.lines("a").await?, json!(vec!["kept"; 6]))?;
    same("left", ask(lab, "SELECT count(*) FROM t").await?, json!([[3]]))
}

async fn f9_schema<D: Driver>(lab: &Lab<D>) -> Outcome {
    with_rows(lab).await?;
    let undone = tried(json!([{"transaction": [rows("CREATE TABLE u (a)"), {"fail": "x"}]}]));
    let mut gave = lab.last("a", json!([each("SELECT a FROM t", json!({"steps": [undone]}))])).await?;
    same("seen", &gave["seen"][0][0], json!([1]))?;
    let error = gave["error"].take();
    let message = "abort due to ROLLBACK: SQLITE_ABORT (extended: SQLITE_ABORT_ROLLBACK)";
    same(
        "the error",
        json!([error["message"], error["sql_code"]]),
        json!([message, "SQLITE_ABORT_ROLLBACK"]),
    )?;
    same("goes on", ask(lab, "SELECT count(*) FROM t").await?, json!([[3]]))
}

async fn f9_alarm<D: Driver>(lab: &Lab<D>) -> Outcome {
    with_rows(lab).await?;
    let (seen, error) = stepped(lab, "SELECT a FROM t", json!({"steps": [{"set_alarm": 600_000}]})).await?;
    same("no error", error, Value::Null)?;
    same("the alarm", lab.last("a", json!(["get_alarm"])).await?, &seen[2][1][0])
}

async fn f9_delete_all<D: Driver>(lab: &Lab<D>) -> Outcome {
    with_rows(lab).await?;
    let at_each = json!({"steps": [tried(json!(["delete_all"]))], "stop": 1});
    let (seen, _) = stepped(lab, "SELECT a FROM t", at_each).await?;
    let error = &seen[0][1][0]["error"];
    let expected = json!(["Invalid", "delete_all cannot run while for_each runs"]);
    same("refused", json!([error["kind"], error["message"]]), expected)?;
    lab.run("a", json!(["delete_all"])).await?;
    same("afterwards", ask(lab, "SELECT count(*) FROM sqlite_schema WHERE name = 't'").await?, json!([[0]]))
}
