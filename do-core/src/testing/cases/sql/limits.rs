//! F15 to F17: limits, as the local runtime has them; those of production have native tests.

use super::{Said, ask, outcome, rows, said};
use crate::limits;
use crate::testing::{
    case::{Case, Outcome, holds, same},
    difference::HostKind,
    driver::Driver,
    lab::Lab,
};
use serde_json::{Value, json};

pub(super) fn cases<D: Driver>() -> Vec<Case<D>> {
    vec![
        Case::new("f15 a table has a hundred columns", |lab| Box::pin(f15_columns(lab))),
        Case::new("f15 a result has a hundred columns", |lab| Box::pin(f15_result(lab))),
        Case::new("f15 a statement has a hundred parameters", |lab| Box::pin(f15_parameters(lab))),
        Case::new("f15 a statement has 100,000 bytes", |lab| Box::pin(f15_text(lab))),
        Case::new("f15 a pattern of LIKE and GLOB has 50 bytes", |lab| Box::pin(f15_patterns(lab))),
        Case::new("f15 a compound SELECT has five terms, and VALUES any number", |lab| {
            Box::pin(f15_compounds(lab))
        }),
        Case::new("f15 an expression is a hundred deep", |lab| Box::pin(f15_depth(lab))),
        Case::new("f15 a function has 127 arguments", |lab| Box::pin(f15_arguments(lab))),
        Case::new("f15 triggers nest ten deep", |lab| Box::pin(f15_triggers(lab))),
        Case::new("f15 a join has 64 tables", |lab| Box::pin(f15_joins(lab))),
        Case::new("f15 a program is as long as its text allows", |lab| Box::pin(f15_program(lab))),
        Case::new("f12 UPDATE and DELETE take no LIMIT in the bundled SQLite", |lab| {
            Box::pin(said(lab, BUILD_TABLE, BUNDLED))
        })
        .differs(&[HostKind::Kit, HostKind::Tokio], "sql-build"),
        Case::new("f12 UPDATE and DELETE take a LIMIT in workerd, and printf is not as wide", |lab| {
            Box::pin(said(lab, BUILD_TABLE, WORKERD))
        })
        .differs(&[HostKind::Workerd], "sql-build"),
        Case::new("f16 a value has 8,388,642 bytes", |lab| Box::pin(f16_values(lab))),
        Case::new("f16 a row has 8,388,642 bytes with its header", |lab| Box::pin(f16_rows(lab))),
        Case::new("f16 what functions make has no more", |lab| Box::pin(said(lab, "", MADE))),
        Case::new("f17 the size is that of the used pages", |lab| Box::pin(f17_size(lab))),
        Case::new("f17 an emptied database is as small as a new one", |lab| Box::pin(f17_emptied(lab))),
    ]
}

const BUILD_TABLE: &str = "CREATE TABLE t (a); INSERT INTO t VALUES (1), (2), (3)";

const BUNDLED: &[Said] = &[
    ("DELETE FROM t LIMIT 1", "near \"LIMIT\": syntax error at offset 14: SQLITE_ERROR"),
    ("UPDATE t SET a = 9 LIMIT 1", "near \"LIMIT\": syntax error at offset 19: SQLITE_ERROR"),
    ("SELECT length(printf('%200000d', 1))", "[[200000]]"),
];

const WORKERD: &[Said] = &[
    ("DELETE FROM t ORDER BY a DESC LIMIT 1", "[]"),
    ("UPDATE t SET a = 9 LIMIT 1", "[]"),
    ("SELECT a FROM t", "[[9], [2]]"),
    ("SELECT length(printf('%200000d', 1))", "[[100000]]"),
];

const TOO_BIG: &str = "string or blob too big: SQLITE_TOOBIG";

const MADE: &[Said] = &[
    ("SELECT length(zeroblob(8388642))", "[[8388642]]"),
    ("SELECT length(zeroblob(8388643))", TOO_BIG),
    ("SELECT length(zeroblob(4194321) || zeroblob(4194322))", TOO_BIG),
    ("SELECT length(replace(hex(zeroblob(2097160)), '00', 'abcd'))", "[[8388640]]"),
    ("SELECT length(replace(hex(zeroblob(2097160)), '00', 'abcde'))", TOO_BIG),
    ("SELECT length(group_concat(hex(zeroblob(2097160)), '')) FROM (VALUES (1), (2))", "[[8388640]]"),
    ("SELECT length(group_concat(hex(zeroblob(2097161)), '')) FROM (VALUES (1), (2))", TOO_BIG),
];

/// The longest value of the local runtime, in bytes.
const VALUE: usize = 8_388_642;

/// The items of `1..=n` with commas between them.
fn list(n: usize, item: impl Fn(usize) -> String) -> String {
    (1..=n).map(item).collect::<Vec<_>>().join(", ")
}

/// Statements that work, and one that goes too far with its error.
async fn edge<D: Driver>(lab: &Lab<D>, fine: &[&str], beyond: &str, message: &str) -> Outcome {
    for sql in fine {
        lab.run("a", json!([rows(sql)])).await?;
    }
    let gave = lab.last("a", json!([{"try": [rows(beyond)]}])).await?;
    outcome(&beyond.chars().take(80).collect::<String>(), &gave, message)
}

async fn f15_columns<D: Driver>(lab: &Lab<D>) -> Outcome {
    let create = |n: usize| format!("CREATE TABLE t{n} ({})", list(n, |i| format!("c{i}")));
    edge(lab, &[&create(100)], &create(101), "too many columns on t101: SQLITE_ERROR").await?;
    let insert = format!("INSERT INTO t100 VALUES ({}) RETURNING *", list(100, |i| i.to_string()));
    let message = "too many columns on sqlite_altertab_t100: SQLITE_ERROR";
    edge(lab, &[&insert], "ALTER TABLE t100 ADD COLUMN c101", message).await
}

async fn f15_result<D: Driver>(lab: &Lab<D>) -> Outcome {
    let select = |n: usize| format!("SELECT {}", list(n, |i| i.to_string()));
    edge(lab, &[&select(100)], &select(101), "too many columns in result set: SQLITE_ERROR").await
}

async fn f15_parameters<D: Driver>(lab: &Lab<D>) -> Outcome {
    let step = |n: usize| {
        let sum = (1..=n).map(|_| "?").collect::<Vec<_>>().join(", ");
        let params: Vec<_> = (0..n).collect();
        json!([{"try": [{"db": {"rows": [format!("SELECT max({sum})"), params]}}]}])
    };
    let most = limits::SQL_PARAMETERS;
    same("a hundred", lab.last("a", step(most)).await?, json!({"ok": [[[99]]]}))?;
    let beyond = lab.last("a", step(most + 1)).await?;
    outcome("one more", &beyond, "too many SQL variables at offset 311: SQLITE_ERROR")?;
    edge(lab, &[], "SELECT ?101", "variable number must be between ?1 and ?100 at offset 7: SQLITE_ERROR")
        .await
}

async fn f15_text<D: Driver>(lab: &Lab<D>) -> Outcome {
    let padded = |n: usize| format!("SELECT 1{}", " ".repeat(n - 8));
    let most = limits::SQL_TEXT_BYTES;
    edge(lab, &[&padded(most)], &padded(most + 1), "statement too long: SQLITE_TOOBIG").await?;
    // What counts is the text, however many statements are in it.
    let several = format!("SELECT 1;{}", padded(most));
    edge(lab, &[], &several, "statement too long: SQLITE_TOOBIG").await
}

async fn f15_patterns<D: Driver>(lab: &Lab<D>) -> Outcome {
    let message = "LIKE or GLOB pattern too complex: SQLITE_ERROR";
    for (operator, wildcard) in [("LIKE", "%"), ("NOT LIKE", "x"), ("GLOB", "*")] {
        let sql = |n: usize| format!("SELECT 'x' {operator} '{}'", wildcard.repeat(n));
        edge(lab, &[&sql(50)], &sql(51), message).await?;
    }
    let bytes = |n: usize| format!("SELECT 'x' LIKE '{}'", "é".repeat(n));
    edge(lab, &[&bytes(25)], &bytes(26), message).await
}

async fn f15_compounds<D: Driver>(lab: &Lab<D>) -> Outcome {
    for operator in [" UNION ", " UNION ALL ", " INTERSECT ", " EXCEPT "] {
        let sql = |n: usize| vec!["SELECT 1"; n].join(operator);
        edge(lab, &[&sql(5)], &sql(6), "too many terms in compound SELECT: SQLITE_ERROR").await?;
    }
    let values = format!("SELECT count(*) FROM (VALUES {})", list(1_000, |i| format!("({i})")));
    same("values", ask(lab, &values).await?, json!([[1_000]]))
}

async fn f15_depth<D: Driver>(lab: &Lab<D>) -> Outcome {
    let message = "Expression tree is too large (maximum depth 100): SQLITE_ERROR";
    let sum = |n: usize| format!("SELECT {}", vec!["1"; n].join(" + "));
    edge(lab, &[&sum(100)], &sum(101), message).await?;
    let nested = |n: usize| format!("SELECT {}1{}", "(1 + ".repeat(n), ")".repeat(n));
    edge(lab, &[&nested(99)], &nested(100), message).await?;
    let negated = |n: usize| format!("SELECT {}1", "NOT ".repeat(n));
    edge(lab, &[&negated(99)], &negated(100), message).await
}

async fn f15_arguments<D: Driver>(lab: &Lab<D>) -> Outcome {
    for function in ["max", "coalesce", "json_array", "concat"] {
        let sql = |n: usize| format!("SELECT {function}({})", list(n, |i| i.to_string()));
        let message = format!("too many arguments on function {function} at offset 7: SQLITE_ERROR");
        edge(lab, &[&sql(33), &sql(127)], &sql(128), &message).await?;
    }
    Ok(())
}

async fn f15_triggers<D: Driver>(lab: &Lab<D>) -> Outcome {
    let setup = "CREATE TABLE t (n); CREATE TRIGGER r AFTER INSERT ON t WHEN new.n > 1
        BEGIN INSERT INTO t VALUES (new.n - 1); END; PRAGMA recursive_triggers = on";
    let insert = |n: usize| format!("INSERT INTO t VALUES ({n})");
    edge(lab, &[setup, &insert(10)], &insert(11), "triggers nested too deep: SQLITE_ERROR").await?;
    // SQLite undoes nothing of a statement that fails so.
    same("left", ask(lab, "SELECT count(*) FROM t").await?, json!([[21]]))
}

async fn f15_joins<D: Driver>(lab: &Lab<D>) -> Outcome {
    let join = |n: usize| format!("SELECT 1 FROM {}", list(n, |i| format!("(SELECT {i}) AS t{i}")));
    edge(lab, &[&join(64)], &join(65), "at most 64 tables in a join: SQLITE_ERROR").await
}

async fn f15_program<D: Driver>(lab: &Lab<D>) -> Outcome {
    let numbers = vec!["1"; 40_000].join(",");
    same("a list", ask(lab, &format!("SELECT 1 IN ({numbers})")).await?, json!([[1]]))?;
    let values = vec!["(1)"; 20_000].join(",");
    let sql = format!("CREATE TABLE t (a); INSERT INTO t VALUES {values}; SELECT count(*) FROM t");
    same("rows", ask(lab, &sql).await?, json!([[20_000]]))
}

/// A step that inserts values of these lengths and gives their sum, or tells the error.
fn insert(of: &[Value]) -> Value {
    let places = vec!["?"; of.len()].join(", ");
    let sum = ["length(a)", "length(a) + length(b)"][of.len() - 1];
    let columns = ["a", "a, b"][of.len() - 1];
    json!({"try": [{"db": {"rows": [format!("INSERT INTO t ({columns}) VALUES ({places}) RETURNING {sum}"), of]}}]})
}

async fn f16_values<D: Driver>(lab: &Lab<D>) -> Outcome {
    for kind in ["text_of", "blob_of"] {
        let step = |n: usize| json!([{"try": [{"db": {"rows": ["SELECT length(?)", [{kind: n}]]}}]}]);
        same(kind, lab.last("a", step(VALUE)).await?, json!({"ok": [[[VALUE]]]}))?;
        outcome(kind, &lab.last("a", step(VALUE + 1)).await?, TOO_BIG)?;
    }
    Ok(())
}

async fn f16_rows<D: Driver>(lab: &Lab<D>) -> Outcome {
    ask(lab, "CREATE TABLE t (a, b)").await?;
    // A header takes a byte for its own length, four for each long value, and one for NULL.
    let one = VALUE - 6;
    same(
        "one value",
        lab.last("a", json!([insert(&[json!({"blob_of": one})])])).await?,
        json!({"ok": [[[one]]]}),
    )?;
    let beyond = lab.last("a", json!([insert(&[json!({"blob_of": one + 1})])])).await?;
    outcome("one byte more", &beyond, TOO_BIG)?;
    let half = VALUE / 2;
    let both = |second: usize| json!([insert(&[json!({"blob_of": half}), json!({"text_of": second})])]);
    same("two", lab.last("a", both(half - 9)).await?, json!({"ok": [[[VALUE - 9]]]}))?;
    outcome("two and one byte more", &lab.last("a", both(half - 8)).await?, TOO_BIG)?;
    same("what was kept", ask(lab, "SELECT count(*) FROM t").await?, json!([[2]]))
}

async fn f17_size<D: Driver>(lab: &Lab<D>) -> Outcome {
    const PAGE: u64 = 4_096;
    let size = json!({"db": "size"});
    let steps = json!([
        size,
        rows("CREATE TABLE t (a)"),
        size,
        rows("INSERT INTO t VALUES (zeroblob(100000))"),
        size,
        rows("DELETE FROM t"),
        size,
        rows("DROP TABLE t"),
        size
    ]);
    let gave = lab.run("a", steps).await?;
    let sizes: Vec<u64> = gave.iter().filter_map(Value::as_u64).collect();
    let [new, created, full, deleted, dropped] = sizes[..] else {
        return holds(format!("sizes: {gave:?}"), false);
    };
    holds(format!("a few pages: {new}"), new % PAGE == 0 && (PAGE..64 * PAGE).contains(&new))?;
    same("a table", created, new + PAGE)?;
    same("100,000 bytes", full, created + 24 * PAGE)?;
    same("deleted", deleted, created)?;
    same("dropped", dropped, new)
}

async fn f17_emptied<D: Driver>(lab: &Lab<D>) -> Outcome {
    let new = lab.last("a", json!([{"db": "size"}])).await?;
    let fill = rows("CREATE TABLE t (a); INSERT INTO t VALUES (zeroblob(100000))");
    let steps = json!([fill, {"set_alarm": 600_000}, "delete_alarm", "delete_all", {"db": "size"}]);
    same("emptied", lab.last("a", steps).await?, &new)?;
    same("later", lab.last("a", json!([{"db": "size"}])).await?, new)
}
