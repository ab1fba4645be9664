//! F2, F3 and F5: values other than numbers, what is read back, and the number of parameters.

use super::{Bound, Row, bound, table};
use crate::testing::{case::Case, driver::Driver};

pub(super) fn cases<D: Driver>() -> Vec<Case<D>> {
    vec![
        Case::new("f2 text keeps every character", |lab| {
            Box::pin(bound(lab, "", "SELECT typeof(?1), ?1, hex(?1), length(?1)", TEXTS))
        }),
        Case::new("f2 NULL is NULL and NaN is too", |lab| {
            Box::pin(bound(lab, "", "SELECT typeof(?1), ?1, ?1 IS NULL", NULLS))
        }),
        Case::new("f2 infinities are kept", |lab| {
            Box::pin(table(lab, "CREATE TABLE t (v, r REAL)", INFINITIES))
        }),
        Case::new("f2 numbers keep every digit", |lab| Box::pin(table(lab, "", NUMBERS))),
        Case::new("f2 blobs keep every byte", |lab| Box::pin(table(lab, "CREATE TABLE t (v)", BLOBS))),
        Case::new("f2 booleans bind as 0 and 1", |lab| {
            Box::pin(table(lab, "CREATE TABLE t (v BOOLEAN)", BOOLEANS))
        }),
        Case::new("f3 integers beyond 2^53-1 are refused and store nothing", |lab| {
            Box::pin(bound(lab, "CREATE TABLE t (i INTEGER)", INSERT, REFUSED))
        }),
        Case::new("f3 integers beyond 2^53-1 are read as the nearest double", |lab| {
            Box::pin(table(lab, "", BEYOND))
        }),
        Case::new("f3 whole doubles are read as integers", |lab| Box::pin(table(lab, "", WHOLE))),
        Case::new("f3 integers in JSON keep their digits as text", |lab| {
            Box::pin(table(lab, "", BEYOND_IN_JSON))
        }),
        Case::new("f3 invalid UTF-8 is read as replacement characters", |lab| Box::pin(table(lab, "", UTF8))),
        Case::new("f5 the number of parameters is that of the highest index", |lab| {
            Box::pin(table(lab, "", COUNT))
        }),
        Case::new("f5 named parameters bind by the order in which they come", |lab| {
            Box::pin(table(lab, "", NAMES))
        }),
    ]
}

const TEXTS: &[Bound] = &[
    (r#"[""]"#, r#"[["text", "", "", 0]]"#),
    (r#"["x"]"#, r#"[["text", "x", "78", 1]]"#),
    (r#"["a\u0000b"]"#, r#"[["text", "a\u0000b", "610062", 1]]"#),
    (r#"["\u0000"]"#, r#"[["text", "\u0000", "00", 0]]"#),
    (r#"["é😀"]"#, r#"[["text", "é😀", "C3A9F09F9880", 2]]"#),
    (r#"["�"]"#, r#"[["text", "�", "EFBFBD", 1]]"#),
    (r#"["it's \"q\""]"#, r#"[["text", "it's \"q\"", "6974277320227122", 8]]"#),
];

const NULLS: &[Bound] =
    &[("[null]", r#"[["null", null, 1]]"#), (r#"[{"real": "nan"}]"#, r#"[["null", null, 1]]"#)];

const INFINITIES: &[Row] = &[
    (
        "SELECT ?1, typeof(?1), ?1 > 1e308, ?1 < -1e308, ?1 || ''",
        r#"[{"real": "inf"}]"#,
        r#"[[{"real": "inf"}, "real", 1, 0, "Inf"]]"#,
    ),
    (
        "SELECT ?1, typeof(?1), ?1 > 1e308, ?1 < -1e308, ?1 || ''",
        r#"[{"real": "-inf"}]"#,
        r#"[[{"real": "-inf"}, "real", 0, 1, "-Inf"]]"#,
    ),
    (
        "INSERT INTO t VALUES (?1, ?1) RETURNING v, r",
        r#"[{"real": "inf"}]"#,
        r#"[[{"real": "inf"}, {"real": "inf"}]]"#,
    ),
    ("SELECT json_array(?1)", r#"[{"real": "inf"}]"#, r#"[["[9.0e+999]"]]"#),
    ("SELECT 9e999, -9e999, 9e999 - 9e999", "[]", r#"[[{"real": "inf"}, {"real": "-inf"}, null]]"#),
];

const NUMBERS: &[Row] = &[
    ("SELECT ?1, ?1 || ''", "[0.1]", r#"[[0.1, "0.1"]]"#),
    ("SELECT ?1, ?1 || ''", "[-0.5]", r#"[[-0.5, "-0.5"]]"#),
    ("SELECT ?1, ?1 || ''", "[1e+300]", r#"[[1e+300, "1.0e+300"]]"#),
    ("SELECT ?1, ?1 || ''", "[5e-324]", r#"[[5e-324, "4.9406564584124654e-324"]]"#),
    (
        "SELECT ?1, ?1 || ''",
        "[1.7976931348623157e+308]",
        r#"[[1.7976931348623157e+308, "1.7976931348623157e+308"]]"#,
    ),
    ("SELECT ?1, ?1 || ''", "[123456789.125]", r#"[[123456789.125, "123456789.125"]]"#),
    ("SELECT ?1, ?1 || ''", "[1000000000000000.0]", r#"[[1000000000000000, "1000000000000000.0"]]"#),
    ("SELECT ?1, ?1 || ''", "[1e+16]", r#"[[1e+16, "10000000000000000.0"]]"#),
    ("SELECT ?1, ?1 || ''", "[4503599627370498.0]", r#"[[4503599627370498, "4503599627370498.0"]]"#),
    ("SELECT ?1, 1 / ?1", r#"[{"real": "-0.0"}]"#, "[[0, null]]"),
];

const BLOBS: &[Row] = &[
    (
        "INSERT INTO t VALUES (?) RETURNING typeof(v), v, hex(v), length(v)",
        r#"[{"blob": []}]"#,
        r#"[["blob", {"blob": []}, "", 0]]"#,
    ),
    (
        "INSERT INTO t VALUES (?) RETURNING typeof(v), v, hex(v), length(v)",
        r#"[{"blob": [0]}]"#,
        r#"[["blob", {"blob": [0]}, "00", 1]]"#,
    ),
    (
        "INSERT INTO t VALUES (?) RETURNING typeof(v), v, hex(v), length(v)",
        r#"[{"blob": [0, 255, 128]}]"#,
        r#"[["blob", {"blob": [0, 255, 128]}, "00FF80", 3]]"#,
    ),
    (
        "SELECT x'', x'00ff', zeroblob(3), length(zeroblob(0))",
        "[]",
        r#"[[{"blob": []}, {"blob": [0, 255]}, {"blob": [0, 0, 0]}, 0]]"#,
    ),
    ("SELECT ?1 = ?2, ?1 = 'a'", r#"[{"blob": [97]}, {"blob": [97]}]"#, "[[1, 0]]"),
];

const BOOLEANS: &[Row] = &[
    ("SELECT typeof(?1), ?1, ?1 = TRUE, iif(?1, 'y', 'n')", "[true]", r#"[["real", 1, 1, "y"]]"#),
    ("SELECT typeof(?1), ?1, ?1 = TRUE, iif(?1, 'y', 'n')", "[false]", r#"[["real", 0, 0, "n"]]"#),
    ("INSERT INTO t VALUES (?) RETURNING v, typeof(v), v IS TRUE", "[true]", r#"[[1, "integer", 1]]"#),
];

const BEYOND: &[Row] = &[
    ("SELECT 9007199254740991, -9007199254740991", "[]", "[[9007199254740991, -9007199254740991]]"),
    (
        "SELECT 9007199254740992, 9007199254740993, -9007199254740993",
        "[]",
        "[[9007199254740992.0, 9007199254740992.0, -9007199254740992.0]]",
    ),
    (
        "SELECT 9223372036854775807, -9223372036854775808",
        "[]",
        "[[9.223372036854776e+18, -9.223372036854776e+18]]",
    ),
    (
        "SELECT CAST(9007199254740993 AS TEXT), 9007199254740993 = 9007199254740992, typeof(9007199254740993)",
        "[]",
        r#"[["9007199254740993", 0, "integer"]]"#,
    ),
    (
        "SELECT 9007199254740991 + 1, 9007199254740991.0 + 1",
        "[]",
        "[[9007199254740992.0, 9007199254740992.0]]",
    ),
    (
        "SELECT sum(9007199254740993), max(9007199254740993), total(1)",
        "[]",
        "[[9007199254740992.0, 9007199254740992.0, 1]]",
    ),
];

const WHOLE: &[Row] = &[
    (
        "SELECT 1.0, -2.0, 0.0, -0.0, 1e15, 9e15, 1e16",
        "[]",
        "[[1, -2, 0, 0, 1000000000000000, 9000000000000000, 1e+16]]",
    ),
    ("SELECT typeof(1.0), 5 / 2, 5.0 / 2, 4.0 / 2", "[]", r#"[["real", 2, 2.5, 2]]"#),
];

const BEYOND_IN_JSON: &[Row] = &[
    (
        "SELECT json('[9007199254740993]'), json_extract('[9007199254740993]', '$[0]'), '[9007199254740993]' ->> 0, '[9007199254740993]' -> 0",
        "[]",
        r#"[["[9007199254740993]", 9007199254740992.0, 9007199254740992.0, "9007199254740993"]]"#,
    ),
    (
        r#"SELECT value, typeof(value), atom || '' FROM json_each('[9007199254740993, 1.0, "x", null, true]')"#,
        "[]",
        r#"[[9007199254740992.0, "integer", "9007199254740993"], [1, "real", "1.0"], ["x", "text", "x"], [null, "null", null], [1, "integer", "1"]]"#,
    ),
    (
        "SELECT json_array(9007199254740993), json_object('a', 1.0)",
        "[]",
        r#"[["[9007199254740993]", "{\"a\":1.0}"]]"#,
    ),
];

const UTF8: &[Row] = &[
    ("SELECT CAST(x'ff' AS TEXT)", "[]", r#"[["�"]]"#),
    ("SELECT CAST(x'61ff62' AS TEXT)", "[]", r#"[["a�b"]]"#),
    ("SELECT CAST(x'c3' AS TEXT), CAST(x'61f09f98' AS TEXT)", "[]", r#"[["�", "a�"]]"#),
    (
        "SELECT CAST(x'eda080' AS TEXT), CAST(x'c080' AS TEXT), CAST(x'f4908080' AS TEXT)",
        "[]",
        r#"[["���", "��", "����"]]"#,
    ),
    ("SELECT char(55296), char(1114112), char(65533)", "[]", r#"[["���", "�", "�"]]"#),
    ("SELECT hex(CAST(x'ff41' AS TEXT)), length(CAST(x'ff41' AS TEXT))", "[]", r#"[["FF41", 2]]"#),
];

const COUNT: &[Row] = &[
    ("SELECT ?", "[]", "Wrong number of parameter bindings for SQL query: 0 were given."),
    ("SELECT ?", "[1, 2]", "Wrong number of parameter bindings for SQL query: 2 were given."),
    ("SELECT 1", "[1]", "Wrong number of parameter bindings for SQL query: 1 were given."),
    ("SELECT ?1, ?3", "[1, 2]", "Wrong number of parameter bindings for SQL query: 2 were given."),
    ("SELECT ?1, ?3", "[1, 2, 3]", "[[1, 3]]"),
    ("SELECT ?2, ?1", "[1, 2]", "[[2, 1]]"),
    ("SELECT ?1, ?1", "[7]", "[[7, 7]]"),
    ("SELECT ?, ?1", "[7]", "[[7, 7]]"),
    ("SELECT ?3, ?", "[1, 2, 3, 4]", "[[3, 4]]"),
    ("SELECT 1; SELECT 2", "[1]", "Wrong number of parameter bindings for SQL query: 1 were given."),
    ("SELECT ?100", "[1]", "Wrong number of parameter bindings for SQL query: 1 were given."),
];

const NAMES: &[Row] = &[
    ("SELECT :a, @b, $c", "[1, 2, 3]", "[[1, 2, 3]]"),
    ("SELECT :a, :b, :a", "[1, 2]", "[[1, 2, 1]]"),
    ("SELECT :a, ?, ?1", "[1, 2]", "[[1, 2, 1]]"),
    ("SELECT $a::b", "[4]", "[[4]]"),
    ("SELECT :a", "[]", "Wrong number of parameter bindings for SQL query: 0 were given."),
    ("SELECT @", "[1]", r#"unrecognized token: "@" at offset 7: SQLITE_ERROR"#),
];

const INSERT: &str =
    "INSERT INTO t VALUES (?1) RETURNING i, typeof(i), CAST(i AS TEXT), (SELECT count(*) FROM t)";

const REFUSED: &[Bound] = &[
    ("[9007199254740991]", r#"[[9007199254740991, "integer", "9007199254740991", 1]]"#),
    (
        "[9007199254740992]",
        "the integer 9007199254740992 is beyond ±(2^53-1), which SQL cannot hold exactly on every host",
    ),
    (
        "[-9007199254740992]",
        "the integer -9007199254740992 is beyond ±(2^53-1), which SQL cannot hold exactly on every host",
    ),
    (
        "[9223372036854775807]",
        "the integer 9223372036854775807 is beyond ±(2^53-1), which SQL cannot hold exactly on every host",
    ),
    (
        "[-9223372036854775808]",
        "the integer -9223372036854775808 is beyond ±(2^53-1), which SQL cannot hold exactly on every host",
    ),
    ("[-9007199254740991]", r#"[[-9007199254740991, "integer", "-9007199254740991", 2]]"#),
];
