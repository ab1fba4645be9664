//! F1: what a number is in columns and expressions.

use super::{Bound, Row, bound, table};
use crate::testing::{case::Case, driver::Driver};

pub(super) fn cases<D: Driver>() -> Vec<Case<D>> {
    vec![
        Case::new("f1 an integer in a column without a type stays real", |lab| {
            Box::pin(bound(
                lab,
                "CREATE TABLE t (v)",
                "INSERT INTO t VALUES (?) RETURNING typeof(v), v, v || ''",
                UNTYPED,
            ))
        }),
        Case::new("f1 a whole number in an INTEGER column is an integer", |lab| {
            Box::pin(bound(
                lab,
                "CREATE TABLE t (v INTEGER)",
                "INSERT INTO t VALUES (?) RETURNING typeof(v), v, v || ''",
                INTEGER,
            ))
        }),
        Case::new("f1 a number in a TEXT column is the text of a double", |lab| {
            Box::pin(bound(
                lab,
                "CREATE TABLE t (v TEXT)",
                "INSERT INTO t VALUES (?) RETURNING typeof(v), v, v || ''",
                TEXT,
            ))
        }),
        Case::new("f1 a REAL column holds doubles", |lab| {
            Box::pin(bound(
                lab,
                "CREATE TABLE t (v REAL)",
                "INSERT INTO t VALUES (?) RETURNING typeof(v), v, v || ''",
                REAL,
            ))
        }),
        Case::new("f1 a NUMERIC column makes integers of whole numbers", |lab| {
            Box::pin(bound(
                lab,
                "CREATE TABLE t (v NUMERIC)",
                "INSERT INTO t VALUES (?) RETURNING typeof(v), v, v || ''",
                NUMERIC,
            ))
        }),
        Case::new("f1 a BLOB column leaves what is bound", |lab| {
            Box::pin(bound(
                lab,
                "CREATE TABLE t (v BLOB)",
                "INSERT INTO t VALUES (?) RETURNING typeof(v), v, v || ''",
                BLOB,
            ))
        }),
        Case::new("f1 names of types that SQLite does not know have the affinity of their words", |lab| {
            Box::pin(table(
                lab,
                "CREATE TABLE t (a VARCHAR(5), b BIGINT, c DOUBLE, d BOOLEAN, e DATE, f STRING)",
                OTHER_TYPES,
            ))
        }),
        Case::new("f1 a whole number is a row's id and a fraction is not", |lab| {
            Box::pin(table(lab, "CREATE TABLE t (id INTEGER PRIMARY KEY, v)", ROWID))
        }),
        Case::new("f1 operators see a double", |lab| Box::pin(table(lab, "", OPERATORS))),
        Case::new("f1 CAST makes of it what it says", |lab| Box::pin(table(lab, "", CASTS))),
        Case::new("f1 JSON functions see a double", |lab| Box::pin(table(lab, "", JSON))),
        Case::new("f1 text functions see the text of a double", |lab| {
            Box::pin(table(lab, "", TEXT_FUNCTIONS))
        }),
        Case::new("f1 whole numbers compare equal to integers whatever holds them", |lab| {
            Box::pin(table(
                lab,
                "CREATE TABLE t (v); INSERT INTO t VALUES (5), (5.0), ('5'), ('5.0')",
                COMPARISONS,
            ))
        }),
        Case::new("f1 LIMIT and OFFSET take whole numbers", |lab| Box::pin(table(lab, "", LIMIT))),
        Case::new("f1 aggregates see doubles", |lab| Box::pin(table(lab, "", AGGREGATES))),
        Case::new("f1 window functions take whole numbers", |lab| Box::pin(table(lab, "", WINDOWS))),
    ]
}

const UNTYPED: &[Bound] = &[
    ("[5]", r#"[["real", 5, "5.0"]]"#),
    ("[5.5]", r#"[["real", 5.5, "5.5"]]"#),
    ("[true]", r#"[["real", 1, "1.0"]]"#),
    (r#"["5"]"#, r#"[["text", "5", "5"]]"#),
    (r#"["x"]"#, r#"[["text", "x", "x"]]"#),
    (r#"[{"blob": [53]}]"#, r#"[["blob", {"blob": [53]}, "5"]]"#),
    ("[null]", r#"[["null", null, null]]"#),
];

const INTEGER: &[Bound] = &[
    ("[5]", r#"[["integer", 5, "5"]]"#),
    ("[5.5]", r#"[["real", 5.5, "5.5"]]"#),
    ("[true]", r#"[["integer", 1, "1"]]"#),
    (r#"["5"]"#, r#"[["integer", 5, "5"]]"#),
    (r#"["x"]"#, r#"[["text", "x", "x"]]"#),
    (r#"[{"blob": [53]}]"#, r#"[["blob", {"blob": [53]}, "5"]]"#),
    ("[null]", r#"[["null", null, null]]"#),
    ("[9007199254740991]", r#"[["integer", 9007199254740991, "9007199254740991"]]"#),
    (r#"[{"real": "inf"}]"#, r#"[["real", {"real": "inf"}, "Inf"]]"#),
    ("[1e+300]", r#"[["real", 1e+300, "1.0e+300"]]"#),
    (r#"["1e3"]"#, r#"[["integer", 1000, "1000"]]"#),
    (r#"[" 7 "]"#, r#"[["integer", 7, "7"]]"#),
];

const TEXT: &[Bound] = &[
    ("[5]", r#"[["text", "5.0", "5.0"]]"#),
    ("[5.5]", r#"[["text", "5.5", "5.5"]]"#),
    ("[true]", r#"[["text", "1.0", "1.0"]]"#),
    (r#"["5"]"#, r#"[["text", "5", "5"]]"#),
    (r#"["x"]"#, r#"[["text", "x", "x"]]"#),
    (r#"[{"blob": [53]}]"#, r#"[["blob", {"blob": [53]}, "5"]]"#),
    ("[null]", r#"[["null", null, null]]"#),
    ("[9007199254740991]", r#"[["text", "9007199254740991.0", "9007199254740991.0"]]"#),
    ("[1000000000000000.0]", r#"[["text", "1000000000000000.0", "1000000000000000.0"]]"#),
    ("[0.1]", r#"[["text", "0.1", "0.1"]]"#),
    (r#"[{"real": "-inf"}]"#, r#"[["text", "-Inf", "-Inf"]]"#),
];

const REAL: &[Bound] = &[
    ("[5]", r#"[["real", 5, "5.0"]]"#),
    ("[5.5]", r#"[["real", 5.5, "5.5"]]"#),
    ("[true]", r#"[["real", 1, "1.0"]]"#),
    (r#"["5"]"#, r#"[["real", 5, "5.0"]]"#),
    (r#"["x"]"#, r#"[["text", "x", "x"]]"#),
    (r#"[{"blob": [53]}]"#, r#"[["blob", {"blob": [53]}, "5"]]"#),
    ("[null]", r#"[["null", null, null]]"#),
];

const NUMERIC: &[Bound] = &[
    ("[5]", r#"[["integer", 5, "5"]]"#),
    ("[5.5]", r#"[["real", 5.5, "5.5"]]"#),
    ("[true]", r#"[["integer", 1, "1"]]"#),
    (r#"["5"]"#, r#"[["integer", 5, "5"]]"#),
    (r#"["x"]"#, r#"[["text", "x", "x"]]"#),
    (r#"[{"blob": [53]}]"#, r#"[["blob", {"blob": [53]}, "5"]]"#),
    ("[null]", r#"[["null", null, null]]"#),
];

pub(super) const BLOB: &[Bound] = &[
    ("[5]", r#"[["real", 5, "5.0"]]"#),
    ("[5.5]", r#"[["real", 5.5, "5.5"]]"#),
    ("[true]", r#"[["real", 1, "1.0"]]"#),
    (r#"["5"]"#, r#"[["text", "5", "5"]]"#),
    (r#"["x"]"#, r#"[["text", "x", "x"]]"#),
    (r#"[{"blob": [53]}]"#, r#"[["blob", {"blob": [53]}, "5"]]"#),
    ("[null]", r#"[["null", null, null]]"#),
];

const OTHER_TYPES: &[Row] = &[(
    "INSERT INTO t VALUES (?1, ?1, ?1, ?1, ?1, ?1) RETURNING typeof(a), typeof(b), typeof(c), typeof(d), typeof(e), typeof(f)",
    "[5]",
    r#"[["text", "integer", "real", "integer", "integer", "integer"]]"#,
)];

const ROWID: &[Row] = &[
    ("INSERT INTO t VALUES (?, 1) RETURNING id, typeof(id)", "[5]", r#"[[5, "integer"]]"#),
    ("INSERT INTO t VALUES (?, 1) RETURNING id, typeof(id)", "[5.5]", "datatype mismatch: SQLITE_MISMATCH"),
    ("INSERT INTO t VALUES (?, 1) RETURNING id, typeof(id)", r#"["7"]"#, r#"[[7, "integer"]]"#),
    (
        "INSERT INTO t VALUES (?, 1) RETURNING id, typeof(id)",
        r#"["x"]"#,
        "datatype mismatch: SQLITE_MISMATCH",
    ),
    ("INSERT INTO t VALUES (?, 1) RETURNING id, typeof(id)", "[null]", r#"[[8, "integer"]]"#),
    ("SELECT id FROM t WHERE id = ?", "[5]", "[[5]]"),
    ("SELECT id FROM t WHERE rowid = ?", "[5.0]", "[[5]]"),
];

const OPERATORS: &[Row] = &[
    (
        "SELECT ?1 || '', ?1 + 1, typeof(?1 + 1), ?1 * 2, ?1 - 1, -?1, +?1",
        "[5]",
        r#"[["5.0", 6, "real", 10, 4, -5, 5]]"#,
    ),
    ("SELECT ?1 / 2, typeof(?1 / 2), 10 / ?1, ?1 / 0", "[5]", r#"[[2.5, "real", 2, null]]"#),
    ("SELECT ?1 % 3, typeof(?1 % 3), 10 % ?1, ?1 % 0", "[5]", r#"[[2, "real", 0, null]]"#),
    (
        "SELECT ?1 & 6, ?1 | 8, ~?1, ?1 << 1, ?1 >> 1, typeof(?1 & 6)",
        "[5]",
        r#"[[4, 13, -6, 10, 2, "integer"]]"#,
    ),
    ("SELECT ?1 || ?2, ?1 || ?1", r#"[5, "x"]"#, r#"[["5.0x", "5.05.0"]]"#),
    ("SELECT NOT ?1, ?1 AND 1, ?1 OR 0, ?1 IS TRUE", "[5]", "[[0, 1, 1, 1]]"),
];

const CASTS: &[Row] = &[
    (
        "SELECT CAST(?1 AS INTEGER), typeof(CAST(?1 AS INTEGER)), CAST(?1 AS INTEGER) / 2, CAST(?1 AS INTEGER) || ''",
        "[5]",
        r#"[[5, "integer", 2, "5"]]"#,
    ),
    (
        "SELECT CAST(?1 AS TEXT), CAST(?1 AS REAL), CAST(?1 AS BLOB), CAST(?1 AS NUMERIC), typeof(CAST(?1 AS NUMERIC))",
        "[5]",
        r#"[["5.0", 5, {"blob": [53, 46, 48]}, 5, "real"]]"#,
    ),
    ("SELECT CAST(?1 AS INTEGER), CAST(?1 AS TEXT)", "[5.9]", r#"[[5, "5.9"]]"#),
    ("SELECT CAST(?1 AS INTEGER), CAST(?1 AS REAL), CAST(?1 AS NUMERIC)", r#"["12abc"]"#, "[[12, 12, 12]]"),
    ("SELECT CAST(?1 AS INTEGER), CAST(?1 AS TEXT)", r#"[{"blob": [49, 50]}]"#, r#"[[12, "12"]]"#),
    ("SELECT CAST(?1 AS INTEGER)", "[1e+300]", "[[9.223372036854776e+18]]"),
];

const JSON: &[Row] = &[
    (
        "SELECT json_array(?1), json_object('k', ?1), json_quote(?1), json(?1)",
        "[5]",
        r#"[["[5.0]", "{\"k\":5.0}", "5.0", "5.0"]]"#,
    ),
    (
        "SELECT json_set('{}', '$.a', ?1), json_insert('[1]', '$[#]', ?1), json_replace('[1]', '$[0]', ?1)",
        "[5]",
        r#"[["{\"a\":5.0}", "[1,5.0]", "[5.0]"]]"#,
    ),
    (
        r#"SELECT json_patch('{"a":1}', json_object('a', ?1)), json_type(json_array(?1), '$[0]')"#,
        "[5]",
        r#"[["{\"a\":5.0}", "real"]]"#,
    ),
    ("SELECT json_array(CAST(?1 AS INTEGER), ?2, ?3)", r#"[5, "x", null]"#, r#"[["[5,\"x\",null]"]]"#),
    ("SELECT json_group_array(value + ?) FROM json_each('[1,2]')", "[5]", r#"[["[6.0,7.0]"]]"#),
    ("SELECT json_array(?1)", "[true]", r#"[["[1.0]"]]"#),
    ("SELECT json_array(?1)", r#"[{"blob": [1]}]"#, r#"[["[true]"]]"#),
    ("SELECT '[10,20,30]' -> ?1, '[10,20,30]' ->> ?1", "[1]", "[[null, null]]"),
];

const TEXT_FUNCTIONS: &[Row] = &[
    (
        "SELECT length(?1), hex(?1), quote(?1), upper(?1), instr(?1, '.'), replace(?1, '5', 'x'), trim(?1, '0')",
        "[5]",
        r#"[[3, "352E30", "5.0", "5.0", 2, "x.0", "5."]]"#,
    ),
    (
        "SELECT printf('%d %s %f %g %.1f %x', ?1, ?1, ?1, ?1, ?1, ?1)",
        "[5]",
        r#"[["5 5.0 5.000000 5 5.0 5"]]"#,
    ),
    (
        "SELECT substr('abcdef', ?1), substr('abcdef', ?1, ?1), char(?2), concat(?1, 'x'), concat_ws('-', ?1, 2), format('%s', ?1)",
        "[2, 65]",
        r#"[["bcdef", "bc", "A", "2.0x", "2.0-2", "2.0"]]"#,
    ),
    ("SELECT group_concat(x) FROM (SELECT ?1 AS x UNION ALL SELECT 1)", "[5]", r#"[["5.0,1"]]"#),
    ("SELECT ?1 LIKE '5.0', ?1 LIKE '5', ?1 GLOB '5*'", "[5]", "[[1, 0, 1]]"),
    (
        "SELECT date(?1), datetime(?1, 'unixepoch'), strftime('%s', ?1, 'unixepoch')",
        "[86400]",
        r#"[["-4476-06-15", "1970-01-02 00:00:00", "86400"]]"#,
    ),
];

const COMPARISONS: &[Row] = &[
    ("SELECT typeof(v) FROM t WHERE v = ? ORDER BY rowid", "[5]", r#"[["integer"], ["real"]]"#),
    ("SELECT typeof(v), v FROM t WHERE v = ?", r#"["5"]"#, r#"[["text", "5"]]"#),
    (
        "SELECT typeof(v), v FROM t WHERE v IN (?, ?) ORDER BY rowid",
        r#"[5, "5.0"]"#,
        r#"[["integer", 5], ["real", 5], ["text", "5.0"]]"#,
    ),
    ("SELECT count(*) FROM t WHERE v < ?", "[6]", "[[2]]"),
    (
        "SELECT ?1 = 5, ?1 IS 5, ?1 = '5', ?1 BETWEEN 4 AND 5, ?1 IN (4, 5), CASE ?1 WHEN 5 THEN 'y' END",
        "[5]",
        r#"[[1, 1, 0, 1, 1, "y"]]"#,
    ),
    (
        "SELECT max(?1, 4), min(?1, 6), nullif(?1, 5), coalesce(?1, 1), iif(?1, 'y', 'n')",
        "[5]",
        r#"[[5, 5, null, 5, "y"]]"#,
    ),
];

const LIMIT: &[Row] = &[
    ("SELECT value FROM json_each('[1,2,3]') LIMIT ?", "[2]", "[[1], [2]]"),
    ("SELECT value FROM json_each('[1,2,3]') LIMIT ? OFFSET ?", "[1, 1]", "[[2]]"),
    ("SELECT 1 LIMIT ?", "[1.5]", "datatype mismatch: SQLITE_MISMATCH"),
    ("SELECT 1 LIMIT ?", r#"["1"]"#, "[[1]]"),
    ("SELECT 1 LIMIT ?", "[null]", "datatype mismatch: SQLITE_MISMATCH"),
    ("SELECT 1 LIMIT ?", "[-1]", "[[1]]"),
    ("SELECT 1 LIMIT ?", "[true]", "[[1]]"),
];

const AGGREGATES: &[Row] = &[
    (
        "SELECT sum(x), typeof(sum(x)), total(x), avg(x), count(x), max(x) FROM (SELECT ?1 AS x UNION ALL SELECT 1)",
        "[5]",
        r#"[[6, "real", 6, 3, 2, 5]]"#,
    ),
    (
        "SELECT sum(x), typeof(sum(x)) FROM (SELECT CAST(?1 AS INTEGER) AS x UNION ALL SELECT 1)",
        "[5]",
        r#"[[6, "integer"]]"#,
    ),
];

const WINDOWS: &[Row] = &[(
    "SELECT ntile(?1) OVER (), lag(value, ?1) OVER (), nth_value(value, ?1) OVER () FROM json_each('[7,8,9]')",
    "[2]",
    "[[1, null, 8], [1, null, 8], [2, 7, 8]]",
)];
