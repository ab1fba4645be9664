//! Typed rows and migrations, which are the same code on every host over what they read (rules F3 and F4).

use super::{ask, rows};
use crate::testing::{
    case::{Case, Outcome, same},
    driver::Driver,
    lab::Lab,
};
use serde_json::{Value, json};

pub(super) fn cases<D: Driver>() -> Vec<Case<D>> {
    vec![
        Case::new("f4 rows are read as a type by the names of their columns", |lab| Box::pin(all(lab))),
        Case::new("f4 a row that is not of the type says which field", |lab| Box::pin(mismatches(lab))),
        Case::new("f8 the only row is an error when there are none or two", |lab| Box::pin(one(lab))),
        Case::new("f8 the first row is none when there is none", |lab| Box::pin(optional(lab))),
        Case::new("f3 a single value is of the type that is asked for", |lab| Box::pin(scalars(lab))),
        Case::new("f3 a single value of another type is an error", |lab| Box::pin(wrong_scalars(lab))),
        Case::new("f13 migrations run once, in order", |lab| Box::pin(migrate(lab))),
        Case::new("f13 a failing migration leaves the ones before it", |lab| Box::pin(migrate_fails(lab))),
        Case::new("f13 migrations that are not known any more are an error", |lab| {
            Box::pin(migrate_back(lab))
        }),
        Case::new("f13 migrations roll back with a transaction around them", |lab| {
            Box::pin(migrate_undone(lab))
        }),
        Case::new("f13 migrations begin again in an emptied database", |lab| Box::pin(migrate_emptied(lab))),
    ]
}

async fn gives<D: Driver>(lab: &Lab<D>, step: Value, expected: Value) -> Outcome {
    same(&step.to_string(), lab.last("a", json!([{"db": step}])).await?, expected)
}

async fn fails<D: Driver>(lab: &Lab<D>, step: Value, kind: &str, message: &str) -> Outcome {
    let error = lab.last("a", json!([{"try": [{"db": step}]}])).await?["error"].take();
    same(&step.to_string(), json!([error["kind"], error["message"]]), json!([kind, message]))
}

async fn all<D: Driver>(lab: &Lab<D>) -> Outcome {
    let line = |id: i64, name: &str, score: Value, kind: &str| json!({"id": id, "name": name, "score": score, "kind": kind});
    let sql = "SELECT 0 AS id, 'x' AS name, 2 AS score, 'special' AS kind, x'00' AS more, 1 AS id
        UNION ALL SELECT 0, 'y', 0.5, 'plain', NULL, 2";
    let expected = json!([line(1, "x", json!(2.0), "special"), line(2, "y", json!(0.5), "plain")]);
    gives(lab, json!({"all": sql}), expected).await?;
    gives(lab, json!({"all": "SELECT 1 AS id, 'x' AS name"}), json!([line(1, "x", Value::Null, "plain")]))
        .await?;
    gives(
        lab,
        json!({"all": "SELECT 1 AS id, '' AS name, NULL AS score"}),
        json!([line(1, "", Value::Null, "plain")]),
    )
    .await?;
    gives(lab, json!({"all": "SELECT 1 AS id WHERE 0"}), json!([])).await
}

async fn mismatches<D: Driver>(lab: &Lab<D>) -> Outcome {
    for (sql, why) in [
        ("SELECT 1 AS id", "missing field `name`"),
        ("SELECT 1 AS ID, 'x' AS name", "missing field `id`"),
        ("SELECT 'x' AS id, 'y' AS name", "invalid type: string \"x\", expected i64"),
        ("SELECT 1 AS id, 2 AS name", "invalid type: integer `2`, expected a string"),
        ("SELECT NULL AS id, 'x' AS name", "invalid type: unit value, expected i64"),
        ("SELECT 1.5 AS id, 'x' AS name", "invalid type: floating point `1.5`, expected i64"),
        (
            "SELECT 9007199254740993 AS id, 'x' AS name",
            "invalid type: floating point `9007199254740992.0`, expected i64",
        ),
        ("SELECT 1 AS id, 'x' AS name, 'zz' AS kind", "unknown variant `zz`, expected `plain` or `special`"),
        ("SELECT 1 AS id, 'x' AS name, 1 AS kind", "the enum Kind is read from text"),
    ] {
        fails(lab, json!({"all": sql}), "Invalid", &format!("the row is not of that type: {why}")).await?;
    }
    fails(lab, json!({"all": "SELECT x FROM missing"}), "Sql", "no such table: missing: SQLITE_ERROR").await
}

const ONE: &str = "SELECT 1 AS id, 'x' AS name";
const NONE: &str = "SELECT 1 AS id, 'x' AS name WHERE 0";
const TWO: &str = "SELECT 1 AS id, 'x' AS name UNION ALL SELECT 2, 'y'";

async fn one<D: Driver>(lab: &Lab<D>) -> Outcome {
    gives(lab, json!({"one": ONE}), json!({"id": 1, "name": "x", "score": null, "kind": "plain"})).await?;
    fails(lab, json!({"one": NONE}), "Invalid", "expected one row, there are 0").await?;
    fails(lab, json!({"one": TWO}), "Invalid", "expected one row, there are 2").await
}

async fn optional<D: Driver>(lab: &Lab<D>) -> Outcome {
    let first = json!({"id": 1, "name": "x", "score": null, "kind": "plain"});
    gives(lab, json!({"optional": NONE}), Value::Null).await?;
    gives(lab, json!({"optional": ONE}), first.clone()).await?;
    gives(lab, json!({"optional": TWO}), first).await
}

async fn scalars<D: Driver>(lab: &Lab<D>) -> Outcome {
    for (kind, sql, expected) in [
        ("i64", "SELECT 1, 2 UNION ALL SELECT 3, 4", json!(1)),
        ("i64", "SELECT 2.0", json!(2)),
        ("i64", "SELECT 1 WHERE 0", Value::Null),
        ("i64", "CREATE TABLE t (a)", Value::Null),
        ("u8", "SELECT 255", json!(255)),
        ("f64", "SELECT 2", json!(2.0)),
        ("f64", "SELECT 9007199254740993", json!(9_007_199_254_740_992.0)),
        ("bool", "SELECT 2", json!(true)),
        ("bool", "SELECT 0", json!(false)),
        ("text", "SELECT 'é'", json!("é")),
        ("bytes", "SELECT x'00ff'", json!([0, 255])),
    ] {
        gives(lab, json!({"scalar": [kind, sql]}), expected).await?;
    }
    Ok(())
}

async fn wrong_scalars<D: Driver>(lab: &Lab<D>) -> Outcome {
    for (kind, sql, message) in [
        ("u8", "SELECT 256", "the integer 256 does not fit u8"),
        ("u8", "SELECT -1", "the integer -1 does not fit u8"),
        ("i64", "SELECT 1.5", "the column holds a real number, not an integer"),
        ("i64", "SELECT 9007199254740993", "the column holds a real number, not an integer"),
        ("i64", "SELECT NULL", "the column holds NULL, not an integer"),
        ("i64", "SELECT '1'", "the column holds text, not an integer"),
        ("f64", "SELECT 'x'", "the column holds text, not a number"),
        ("bool", "SELECT 'true'", "the column holds text, not a boolean"),
        ("text", "SELECT x'61'", "the column holds a blob, not text"),
        ("text", "SELECT 1", "the column holds an integer, not text"),
        ("bytes", "SELECT 'a'", "the column holds text, not a blob"),
    ] {
        fails(lab, json!({"scalar": [kind, sql]}), "Invalid", message).await?;
    }
    Ok(())
}

async fn migrate<D: Driver>(lab: &Lab<D>) -> Outcome {
    let first = "CREATE TABLE t (a)";
    let second =
        "ALTER TABLE t ADD COLUMN b; INSERT INTO t VALUES (1, 2); INSERT INTO t VALUES (3, 4); -- done";
    gives(lab, json!({"migrate": []}), Value::Null).await?;
    gives(lab, json!({"migrate": [first]}), Value::Null).await?;
    gives(lab, json!({"migrate": [first, second]}), Value::Null).await?;
    gives(lab, json!({"migrate": [first, second]}), Value::Null).await?;
    // Those that were run are not looked at again.
    gives(lab, json!({"migrate": ["x", "y"]}), Value::Null).await?;
    same("once", ask(lab, "SELECT * FROM t").await?, json!([[1, 2], [3, 4]]))?;
    same("counted", ask(lab, "SELECT done FROM _migrations").await?, json!([[2]]))
}

async fn migrate_fails<D: Driver>(lab: &Lab<D>) -> Outcome {
    let wrong = "CREATE TABLE u (a); INSERT INTO u VALUES (1); INSERT INTO missing VALUES (1)";
    let steps = json!({"migrate": ["CREATE TABLE t (a)", wrong, "CREATE TABLE v (a)"]});
    for _ in 0..2 {
        fails(lab, steps.clone(), "Sql", "no such table: missing: SQLITE_ERROR").await?;
    }
    let made = "SELECT name FROM sqlite_schema WHERE name IN ('t', 'u', 'v')";
    same("made", ask(lab, made).await?, json!([["t"]]))?;
    same("counted", ask(lab, "SELECT done FROM _migrations").await?, json!([[1]]))?;
    for (step, message) in [
        ("", "SQL code did not contain a statement."),
        ("INSERT INTO t VALUES (?)", "Wrong number of parameter bindings for SQL query: 0 were given."),
    ] {
        fails(lab, json!({"migrate": ["x", step]}), "Invalid", message).await?;
    }
    gives(lab, json!({"migrate": ["x", "CREATE TABLE u (a)"]}), Value::Null).await?;
    same("then", ask(lab, made).await?, json!([["t"], ["u"]]))
}

async fn migrate_back<D: Driver>(lab: &Lab<D>) -> Outcome {
    gives(lab, json!({"migrate": ["CREATE TABLE t (a)", "CREATE TABLE u (a)"]}), Value::Null).await?;
    let message = "this object has run 2 migrations, but only 1 are known";
    fails(lab, json!({"migrate": ["CREATE TABLE t (a)"]}), "Invalid", message).await
}

async fn migrate_undone<D: Driver>(lab: &Lab<D>) -> Outcome {
    let migrate = json!({"db": {"migrate": ["CREATE TABLE t (a)"]}});
    lab.run("a", json!([{"try": [{"transaction": [migrate, {"fail": "x"}]}]}])).await?;
    let left = "SELECT name FROM sqlite_schema WHERE name IN ('t', '_migrations')";
    same("left", ask(lab, left).await?, json!([]))?;
    lab.run("a", json!([{"transaction": [migrate]}])).await?;
    same("made", ask(lab, left).await?, json!([["_migrations"], ["t"]]))
}

async fn migrate_emptied<D: Driver>(lab: &Lab<D>) -> Outcome {
    let migrate = json!({"db": {"migrate": ["CREATE TABLE t (a)"]}});
    let steps =
        json!([migrate, rows("INSERT INTO t VALUES (1)"), "delete_all", migrate, rows("SELECT a FROM t")]);
    same("made again", lab.last("a", steps).await?, json!([]))
}
