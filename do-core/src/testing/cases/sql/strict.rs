//! F1: what a number is in the columns of STRICT tables.

use super::{Bound, bound, values::BLOB};
use crate::testing::{case::Case, driver::Driver};

pub(super) fn cases<D: Driver>() -> Vec<Case<D>> {
    vec![
        Case::new("f1 a STRICT INTEGER column takes whole numbers alone", |lab| {
            Box::pin(bound(
                lab,
                "CREATE TABLE t (v INTEGER) STRICT",
                "INSERT INTO t VALUES (?) RETURNING typeof(v), v, v || ''",
                STRICT_INTEGER,
            ))
        }),
        Case::new("f1 a STRICT TEXT column takes numbers as texts", |lab| {
            Box::pin(bound(
                lab,
                "CREATE TABLE t (v TEXT) STRICT",
                "INSERT INTO t VALUES (?) RETURNING typeof(v), v, v || ''",
                STRICT_TEXT,
            ))
        }),
        Case::new("f1 a STRICT REAL column takes numbers", |lab| {
            Box::pin(bound(
                lab,
                "CREATE TABLE t (v REAL) STRICT",
                "INSERT INTO t VALUES (?) RETURNING typeof(v), v, v || ''",
                STRICT_REAL,
            ))
        }),
        Case::new("f1 a STRICT BLOB column takes blobs alone", |lab| {
            Box::pin(bound(
                lab,
                "CREATE TABLE t (v BLOB) STRICT",
                "INSERT INTO t VALUES (?) RETURNING typeof(v), v, v || ''",
                STRICT_BLOB,
            ))
        }),
        Case::new("f1 a STRICT ANY column leaves what is bound", |lab| {
            Box::pin(bound(
                lab,
                "CREATE TABLE t (v ANY) STRICT",
                "INSERT INTO t VALUES (?) RETURNING typeof(v), v, v || ''",
                BLOB, // as such a column does outside of STRICT tables
            ))
        }),
    ]
}

const STRICT_INTEGER: &[Bound] = &[
    ("[5]", r#"[["integer", 5, "5"]]"#),
    (
        "[5.5]",
        "cannot store REAL value in INTEGER column t.v: SQLITE_CONSTRAINT (extended: SQLITE_CONSTRAINT_DATATYPE)",
    ),
    ("[true]", r#"[["integer", 1, "1"]]"#),
    (r#"["5"]"#, r#"[["integer", 5, "5"]]"#),
    (
        r#"["x"]"#,
        "cannot store TEXT value in INTEGER column t.v: SQLITE_CONSTRAINT (extended: SQLITE_CONSTRAINT_DATATYPE)",
    ),
    (
        r#"[{"blob": [53]}]"#,
        "cannot store BLOB value in INTEGER column t.v: SQLITE_CONSTRAINT (extended: SQLITE_CONSTRAINT_DATATYPE)",
    ),
    ("[null]", r#"[["null", null, null]]"#),
];

const STRICT_TEXT: &[Bound] = &[
    ("[5]", r#"[["text", "5.0", "5.0"]]"#),
    ("[5.5]", r#"[["text", "5.5", "5.5"]]"#),
    ("[true]", r#"[["text", "1.0", "1.0"]]"#),
    (r#"["5"]"#, r#"[["text", "5", "5"]]"#),
    (r#"["x"]"#, r#"[["text", "x", "x"]]"#),
    (
        r#"[{"blob": [53]}]"#,
        "cannot store BLOB value in TEXT column t.v: SQLITE_CONSTRAINT (extended: SQLITE_CONSTRAINT_DATATYPE)",
    ),
    ("[null]", r#"[["null", null, null]]"#),
];

const STRICT_REAL: &[Bound] = &[
    ("[5]", r#"[["real", 5, "5.0"]]"#),
    ("[5.5]", r#"[["real", 5.5, "5.5"]]"#),
    ("[true]", r#"[["real", 1, "1.0"]]"#),
    (r#"["5"]"#, r#"[["real", 5, "5.0"]]"#),
    (
        r#"["x"]"#,
        "cannot store TEXT value in REAL column t.v: SQLITE_CONSTRAINT (extended: SQLITE_CONSTRAINT_DATATYPE)",
    ),
    (
        r#"[{"blob": [53]}]"#,
        "cannot store BLOB value in REAL column t.v: SQLITE_CONSTRAINT (extended: SQLITE_CONSTRAINT_DATATYPE)",
    ),
    ("[null]", r#"[["null", null, null]]"#),
];

const STRICT_BLOB: &[Bound] = &[
    (
        "[5]",
        "cannot store REAL value in BLOB column t.v: SQLITE_CONSTRAINT (extended: SQLITE_CONSTRAINT_DATATYPE)",
    ),
    (
        "[5.5]",
        "cannot store REAL value in BLOB column t.v: SQLITE_CONSTRAINT (extended: SQLITE_CONSTRAINT_DATATYPE)",
    ),
    (
        "[true]",
        "cannot store REAL value in BLOB column t.v: SQLITE_CONSTRAINT (extended: SQLITE_CONSTRAINT_DATATYPE)",
    ),
    (
        r#"["5"]"#,
        "cannot store TEXT value in BLOB column t.v: SQLITE_CONSTRAINT (extended: SQLITE_CONSTRAINT_DATATYPE)",
    ),
    (
        r#"["x"]"#,
        "cannot store TEXT value in BLOB column t.v: SQLITE_CONSTRAINT (extended: SQLITE_CONSTRAINT_DATATYPE)",
    ),
    (r#"[{"blob": [53]}]"#, r#"[["blob", {"blob": [53]}, "5"]]"#),
    ("[null]", r#"[["null", null, null]]"#),
];
