//! F14 and F18: foreign keys, settings and transactions over turns.

use super::{ask, outcome, rows, tried};
use crate::testing::{
    case::{Case, Outcome, holds, same},
    driver::Driver,
    lab::Lab,
};
use serde_json::{Value, json};

pub(super) fn cases<D: Driver>() -> Vec<Case<D>> {
    vec![
        Case::new("f14 foreign keys are checked", |lab| Box::pin(f14_on(lab))),
        Case::new("f14 switching foreign keys off after a write has no effect", |lab| {
            Box::pin(f14_after_a_write(lab))
        }),
        Case::new("f14 switching foreign keys off before any write lasts", |lab| Box::pin(f14_off(lab))),
        Case::new("f14 switching foreign keys off in a transaction has no effect", |lab| {
            Box::pin(f14_in_a_transaction(lab))
        }),
        Case::new("f14 another instance checks foreign keys again", |lab| Box::pin(f14_evicted(lab)))
            .evicts(),
        Case::new("f14 deferring foreign keys lasts for a turn", |lab| Box::pin(f14_deferred(lab))),
        Case::new("f14 an emptied database has its settings as in the beginning", |lab| {
            Box::pin(f14_emptied(lab))
        }),
        Case::new("f18 a transaction gives the value of its body", |lab| Box::pin(f18_value(lab))),
        Case::new("f18 an error rolls back and is given on unchanged", |lab| Box::pin(f18_error(lab))),
        Case::new("f18 an error rolls back the alarm", |lab| Box::pin(f18_alarm(lab))),
        Case::new("f18 an error rolls back the schema", |lab| Box::pin(f18_schema(lab))),
        Case::new("f18 an inner error that is caught rolls back the inner part", |lab| {
            Box::pin(f18_inner(lab))
        }),
        Case::new("f18 an outer error rolls back inner transactions", |lab| Box::pin(f18_outer(lab))),
        Case::new("f18 what is undone is counted as long as the instance lives", |lab| {
            Box::pin(f18_counted(lab))
        }),
        Case::new("f18 a failed statement that is caught does not roll back", |lab| {
            Box::pin(f18_caught(lab))
        }),
        Case::new("f18 an error of a handler rolls back nothing", |lab| Box::pin(f18_handler(lab))),
        Case::new("f18 the database cannot be emptied in a transaction", |lab| Box::pin(f18_delete_all(lab))),
        Case::new("f18 a statement that rolls back by itself resets the object", |lab| {
            Box::pin(f18_rollback(lab))
        }),
    ]
}

const KEYS: &str =
    "CREATE TABLE p (a PRIMARY KEY); CREATE TABLE c (a REFERENCES p); INSERT INTO p VALUES (1)";
const FAILED: &str =
    "FOREIGN KEY constraint failed: SQLITE_CONSTRAINT (extended: SQLITE_CONSTRAINT_FOREIGNKEY)";
const ORPHAN: &str = "INSERT INTO c VALUES (2)";

async fn f14_on<D: Driver>(lab: &Lab<D>) -> Outcome {
    ask(lab, KEYS).await?;
    outcome("an orphan", &lab.last("a", json!([{"try": [rows(ORPHAN)]}])).await?, FAILED)?;
    same("with a parent", ask(lab, "INSERT INTO c VALUES (1) RETURNING a").await?, json!([[1]]))?;
    let parent = json!([{"try": [rows("DELETE FROM p")]}]);
    outcome("the parent", &lab.last("a", parent).await?, FAILED)
}

async fn f14_after_a_write<D: Driver>(lab: &Lab<D>) -> Outcome {
    ask(lab, KEYS).await?;
    let steps = json!([
        rows("INSERT INTO p VALUES (9)"),
        rows("PRAGMA foreign_keys = off"),
        rows("PRAGMA foreign_keys"),
        tried(json!([rows(ORPHAN)]))
    ]);
    let gave = lab.run("a", steps).await?;
    same("still on", &gave[2], json!([[1]]))?;
    outcome("an orphan", &gave[3], FAILED)?;
    same("in the next turn", ask(lab, "PRAGMA foreign_keys").await?, json!([[1]]))
}

async fn f14_off<D: Driver>(lab: &Lab<D>) -> Outcome {
    ask(lab, KEYS).await?;
    let steps = json!([
        rows("SELECT 1"),
        rows("PRAGMA foreign_keys = off"),
        rows("PRAGMA foreign_keys"),
        rows(ORPHAN)
    ]);
    same("off", &lab.run("a", steps).await?[2], json!([[0]]))?;
    same("in the next turn", ask(lab, "PRAGMA foreign_keys").await?, json!([[0]]))?;
    ask(lab, ORPHAN).await?;
    let orphans = json!([["c", 1, "p", 0], ["c", 2, "p", 0]]);
    same("found", ask(lab, "PRAGMA foreign_key_check").await?, orphans)?;
    ask(lab, "PRAGMA foreign_keys = on").await?;
    outcome("on again", &lab.last("a", json!([{"try": [rows(ORPHAN)]}])).await?, FAILED)
}

async fn f14_in_a_transaction<D: Driver>(lab: &Lab<D>) -> Outcome {
    let steps = json!([{"transaction": [rows("PRAGMA foreign_keys = off"), rows("PRAGMA foreign_keys")]}]);
    same("still on", lab.last("a", steps).await?, json!([[], [[1]]]))?;
    same("afterwards", ask(lab, "PRAGMA foreign_keys").await?, json!([[1]]))
}

async fn f14_evicted<D: Driver>(lab: &Lab<D>) -> Outcome {
    ask(lab, "PRAGMA foreign_keys = off; PRAGMA recursive_triggers = on").await?;
    lab.evict().await?;
    same("foreign keys", ask(lab, "PRAGMA foreign_keys").await?, json!([[1]]))?;
    same("triggers", ask(lab, "PRAGMA recursive_triggers").await?, json!([[0]]))
}

async fn f14_deferred<D: Driver>(lab: &Lab<D>) -> Outcome {
    ask(lab, KEYS).await?;
    let steps = json!([
        rows("PRAGMA defer_foreign_keys = on"),
        rows(ORPHAN),
        rows("INSERT INTO p VALUES (2)"),
        rows("PRAGMA defer_foreign_keys")
    ]);
    same("deferred", lab.last("a", steps).await?, json!([[1]]))?;
    same("in the next turn", ask(lab, "PRAGMA defer_foreign_keys").await?, json!([[0]]))?;
    outcome("checked", &lab.last("a", json!([{"try": [rows("INSERT INTO c VALUES (3)")]}])).await?, FAILED)
}

async fn f14_emptied<D: Driver>(lab: &Lab<D>) -> Outcome {
    ask(lab, "PRAGMA foreign_keys = off; PRAGMA recursive_triggers = on; PRAGMA case_sensitive_like = on")
        .await?;
    lab.run("a", json!(["delete_all"])).await?;
    same("foreign keys", ask(lab, "PRAGMA foreign_keys").await?, json!([[1]]))?;
    same("triggers", ask(lab, "PRAGMA recursive_triggers").await?, json!([[0]]))?;
    same("LIKE", ask(lab, "SELECT 'a' LIKE 'A'").await?, json!([[1]]))
}

async fn f18_value<D: Driver>(lab: &Lab<D>) -> Outcome {
    let steps = json!([{"transaction": [{"note": "kept"}, {"transaction": [rows("SELECT 1")]}]}]);
    same("the value", lab.last("a", steps).await?, json!([null, [[[1]]]]))?;
    same("kept", lab.lines("a").await?, json!(["kept"]))
}

async fn f18_error<D: Driver>(lab: &Lab<D>) -> Outcome {
    let failing = |step: Value| json!([{"try": [{"transaction": [{"note": "undone"}, step]}]}]);
    for (step, expected) in [
        (json!({"fail": "as told"}), json!(["Application", "as told", null])),
        (json!("fail_typed"), json!(["Application", "the probe was told to fail", null])),
        (
            rows("SELECT x FROM missing"),
            json!(["Sql", "no such table: missing: SQLITE_ERROR", "SQLITE_ERROR"]),
        ),
        (
            rows("SELECT ?"),
            json!(["Invalid", "Wrong number of parameter bindings for SQL query: 0 were given.", null]),
        ),
    ] {
        let error = lab.last("a", failing(step.clone())).await?["error"].take();
        same(&step.to_string(), json!([error["kind"], error["message"], error["sql_code"]]), expected)?;
        same("local", &error["remote"], json!(false))?;
    }
    same("undone", lab.lines("a").await?, json!([]))
}

async fn f18_alarm<D: Driver>(lab: &Lab<D>) -> Outcome {
    let steps = json!([
        {"set_alarm": 600_000},
        {"try": [{"transaction": [{"set_alarm": 900_000}, {"fail": "x"}]}]},
        "get_alarm",
        {"try": [{"transaction": ["delete_alarm", {"fail": "x"}]}]},
        "get_alarm",
        {"transaction": [{"set_alarm": 1_200_000}]},
        "get_alarm"
    ]);
    let gave = lab.run("a", steps).await?;
    same("not moved", &gave[2], &gave[0])?;
    same("not deleted", &gave[4], &gave[0])?;
    same("kept", &gave[6], &gave[5][0])?;
    holds(format!("another one: {}", gave[6]), gave[6].as_i64() > gave[0].as_i64())
}

async fn f18_schema<D: Driver>(lab: &Lab<D>) -> Outcome {
    let steps = json!([
        rows("CREATE TABLE t (a); INSERT INTO t VALUES (1)"),
        {"try": [{"transaction": [rows("ALTER TABLE t ADD COLUMN b"), rows("CREATE TABLE u (a)"), {"fail": "x"}]}]},
        {"try": [{"transaction": [rows("DROP TABLE t"), {"fail": "x"}]}]},
        rows("SELECT * FROM t"),
        {"try": [rows("SELECT * FROM u")]}
    ]);
    let gave = lab.run("a", steps).await?;
    same("the table", &gave[3], json!([[1]]))?;
    outcome("the other one", &gave[4], "no such table: u: SQLITE_ERROR")
}

async fn f18_inner<D: Driver>(lab: &Lab<D>) -> Outcome {
    let inner = tried(json!([{"transaction": [{"note": "undone"}, {"fail": "inner"}]}]));
    let steps = json!([{"transaction": [{"note": "before"}, inner, {"note": "after"}]}]);
    let gave = lab.last("a", steps).await?;
    same("the inner error", &gave[1]["error"]["message"], json!("inner"))?;
    same("kept", lab.lines("a").await?, json!(["before", "after"]))
}

async fn f18_outer<D: Driver>(lab: &Lab<D>) -> Outcome {
    let inner = json!({"transaction": [{"note": "inner"}, {"transaction": [{"note": "innermost"}]}]});
    let steps =
        json!([{"note": "outside"}, {"try": [{"transaction": [inner, {"note": "outer"}, {"fail": "x"}]}]}]);
    lab.run("a", steps).await?;
    same("kept", lab.lines("a").await?, json!(["outside"]))
}

async fn f18_counted<D: Driver>(lab: &Lab<D>) -> Outcome {
    let failing = |step: Value| tried(json!([{"transaction": [step, {"fail": "x"}]}]));
    let kept = |step: Value| json!({"transaction": [step]});
    let count = || json!({"db": "rollbacks"});
    let steps = json!([
        count(),
        kept(count()),
        failing(count()),
        count(),
        kept(failing(kept(count()))),
        count(),
        failing(failing(json!({"note": "undone"}))),
        tried(json!([rows("SELECT x FROM missing")])),
        count()
    ]);
    let gave = lab.run("a", steps).await?;
    let counts = json!([gave[0], gave[1][0], gave[3], gave[5], gave[8]]);
    same("counted", counts, json!([0, 0, 1, 2, 4]))?;
    same("in the next event", lab.last("a", json!([count()])).await?, json!(4))
}

async fn f18_caught<D: Driver>(lab: &Lab<D>) -> Outcome {
    ask(lab, "CREATE TABLE t (a UNIQUE)").await?;
    let caught = |sql: &str| tried(json!([rows(sql)]));
    let steps = json!([{"transaction": [
        rows("INSERT INTO t VALUES (1)"),
        caught("INSERT INTO missing VALUES (1)"),
        caught("INSERT INTO t VALUES (2), (1)"),
        caught("SELECT abs(-9223372036854775808)"),
        rows("INSERT INTO t VALUES (3)")
    ]}]);
    lab.run("a", steps).await?;
    same("kept", ask(lab, "SELECT a FROM t").await?, json!([[1], [3]]))
}

async fn f18_handler<D: Driver>(lab: &Lab<D>) -> Outcome {
    lab.thrown("a", json!([{"note": "kept"}, {"transaction": [{"note": "kept too"}]}, {"fail": "x"}]))
        .await?;
    same("kept", lab.lines("a").await?, json!(["kept", "kept too"]))
}

async fn f18_delete_all<D: Driver>(lab: &Lab<D>) -> Outcome {
    let steps = json!([{"note": "kept"}, {"transaction": [tried(json!(["delete_all"]))]}]);
    let error = lab.last("a", steps).await?[0]["error"].take();
    let expected = json!(["Invalid", "delete_all cannot run inside a transaction"]);
    same("refused", json!([error["kind"], error["message"]]), expected)?;
    same("kept", lab.lines("a").await?, json!(["kept"]))
}

async fn f18_rollback<D: Driver>(lab: &Lab<D>) -> Outcome {
    ask(lab, "CREATE TABLE t (a UNIQUE); INSERT INTO t VALUES (1)").await?;
    let before = lab.last("a", json!(["instance"])).await?;
    let steps = json!([{"note": "undone"}, tried(json!([rows("INSERT OR ROLLBACK INTO t VALUES (1)")]))]);
    lab.thrown("a", steps).await?;
    same("undone", lab.lines("a").await?, json!([]))?;
    let after = lab.last("a", json!(["instance"])).await?;
    holds(format!("another instance: {before} {after}"), before != after)
}
