//! F13 and F14: pragmas, and foreign keys.

use super::{Said, said};
use crate::testing::{case::Case, driver::Driver};

pub(super) fn cases<D: Driver>() -> Vec<Case<D>> {
    vec![
        Case::new("f13 pragmas that tell about tables", |lab| {
            Box::pin(said(
                lab,
                "CREATE TABLE p (a INTEGER PRIMARY KEY); CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT NOT NULL DEFAULT 'x', c AS (b || 'y'), d REFERENCES p ON DELETE CASCADE); CREATE INDEX i ON t (b DESC, a)",
                TABLES,
            ))
        }),
        Case::new("f13 pragmas that tell about indexes", |lab| {
            Box::pin(said(
                lab,
                "CREATE TABLE p (a INTEGER PRIMARY KEY); CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT NOT NULL DEFAULT 'x', c AS (b || 'y'), d REFERENCES p ON DELETE CASCADE); CREATE INDEX i ON t (b DESC, a)",
                INDEXES,
            ))
        }),
        Case::new("f13 pragmas that tell about foreign keys", |lab| {
            Box::pin(said(
                lab,
                "CREATE TABLE p (a INTEGER PRIMARY KEY); CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT NOT NULL DEFAULT 'x', c AS (b || 'y'), d REFERENCES p ON DELETE CASCADE); CREATE INDEX i ON t (b DESC, a); INSERT INTO p VALUES (1); INSERT INTO t (d) VALUES (1)",
                FOREIGN_KEYS,
            ))
        }),
        Case::new("f13 pragmas that check and tend the database", |lab| {
            Box::pin(said(
                lab,
                "CREATE TABLE p (a INTEGER PRIMARY KEY); CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT NOT NULL DEFAULT 'x', c AS (b || 'y'), d REFERENCES p ON DELETE CASCADE); CREATE INDEX i ON t (b DESC, a)",
                CHECKS,
            ))
        }),
        Case::new("f13 pragmas that tell about the file", |lab| Box::pin(said(lab, "", FILE))),
        Case::new("f13 settings are read and set", |lab| Box::pin(said(lab, "", SETTINGS))),
        Case::new("f13 settings are truth values as the platform reads them", |lab| {
            Box::pin(said(lab, "", TRUTHS))
        }),
        Case::new("f13 names of pragmas are without case", |lab| Box::pin(said(lab, "", CASE))),
        Case::new("f13 LIKE can be made to tell cases apart", |lab| Box::pin(said(lab, "", LIKE))),
        Case::new("f13 checks can be left out", |lab| {
            Box::pin(said(lab, "CREATE TABLE t (a CHECK (a > 0))", CHECK_CONSTRAINTS))
        }),
        Case::new("f13 triggers recur when told to", |lab| {
            Box::pin(said(
                lab,
                "CREATE TABLE t (a); CREATE TRIGGER r AFTER INSERT ON t WHEN new.a > 0 BEGIN INSERT INTO t VALUES (new.a - 1); END",
                RECURSIVE,
            ))
        }),
        Case::new("f13 all other pragmas are refused", |lab| Box::pin(said(lab, "", REFUSED))),
        Case::new("f13 all other pragmas are refused with values too", |lab| {
            Box::pin(said(lab, "", REFUSED_VALUES))
        }),
        Case::new("f13 refused pragmas are no functions either", |lab| Box::pin(said(lab, "", FUNCTIONS))),
    ]
}

const TABLES: &[Said] = &[
    (
        "PRAGMA table_info(t)",
        r#"[[0, "a", "INTEGER", 0, null, 1], [1, "b", "TEXT", 1, "'x'", 0], [2, "d", "", 0, null, 0]]"#,
    ),
    (
        "PRAGMA table_xinfo(t)",
        r#"[[0, "a", "INTEGER", 0, null, 1, 0], [1, "b", "TEXT", 1, "'x'", 0, 0], [2, "c", "", 0, null, 0, 2], [3, "d", "", 0, null, 0, 0]]"#,
    ),
    ("PRAGMA table_list(t)", r#"[["main", "t", "table", 4, 0, 0]]"#),
    ("PRAGMA main.table_info(p)", r#"[[0, "a", "INTEGER", 0, null, 1]]"#),
    ("PRAGMA table_info('p')", r#"[[0, "a", "INTEGER", 0, null, 1]]"#),
    ("PRAGMA table_info(missing)", "[]"),
    ("PRAGMA table_info", "not authorized: SQLITE_AUTH"),
    ("SELECT name FROM pragma_table_info('t')", r#"[["a"], ["b"], ["d"]]"#),
    (
        "SELECT name, ncol FROM pragma_table_list WHERE name IN ('t', 'p') ORDER BY name",
        r#"[["p", 1], ["t", 4]]"#,
    ),
];

const INDEXES: &[Said] = &[
    ("PRAGMA index_list(t)", r#"[[0, "i", 0, "c", 0]]"#),
    ("PRAGMA index_info(i)", r#"[[0, 1, "b"], [1, 0, "a"]]"#),
    (
        "PRAGMA index_xinfo(i)",
        r#"[[0, 1, "b", 1, "BINARY", 1], [1, 0, "a", 0, "BINARY", 1], [2, -1, null, 0, "BINARY", 0]]"#,
    ),
    ("PRAGMA index_info(missing)", "[]"),
    ("SELECT name FROM pragma_index_list('t')", r#"[["i"]]"#),
];

const FOREIGN_KEYS: &[Said] = &[
    ("PRAGMA foreign_key_list(t)", r#"[[0, 0, "p", "d", null, "NO ACTION", "CASCADE", "NONE"]]"#),
    ("PRAGMA foreign_key_check", "[]"),
    ("PRAGMA foreign_key_check(t)", "[]"),
    ("PRAGMA foreign_key_check(missing)", "no such table: missing: SQLITE_ERROR"),
];

const CHECKS: &[Said] = &[
    ("PRAGMA quick_check", r#"[["ok"]]"#),
    ("PRAGMA quick_check(5)", r#"[["ok"]]"#),
    ("PRAGMA quick_check(t)", r#"[["ok"]]"#),
    ("PRAGMA quick_check(missing)", "no such table: missing: SQLITE_ERROR"),
    ("SELECT * FROM pragma_quick_check", r#"[["ok"]]"#),
    ("PRAGMA optimize", "[]"),
    ("PRAGMA optimize(0x10002)", "[]"),
    ("PRAGMA optimize = 1", "[]"),
    ("PRAGMA optimize = x", "not authorized: SQLITE_AUTH"),
    ("PRAGMA optimize = 1.5", "not authorized: SQLITE_AUTH"),
];

const FILE: &[Said] = &[
    ("PRAGMA page_size", "[[4096]]"),
    ("PRAGMA page_size = 4096", "not authorized: SQLITE_AUTH"),
    ("SELECT typeof(data_version) FROM pragma_data_version", r#"[["integer"]]"#),
    ("PRAGMA data_version = 1", "not authorized: SQLITE_AUTH"),
];

const SETTINGS: &[Said] = &[
    ("PRAGMA case_sensitive_like", "[]"),
    ("PRAGMA defer_foreign_keys", "[[0]]"),
    ("PRAGMA foreign_keys", "[[1]]"),
    ("PRAGMA ignore_check_constraints", "[[0]]"),
    ("PRAGMA legacy_alter_table", "[[0]]"),
    ("PRAGMA recursive_triggers", "[[0]]"),
    ("PRAGMA reverse_unordered_selects", "[[0]]"),
    ("PRAGMA recursive_triggers = on", "[]"),
    ("PRAGMA recursive_triggers", "[[1]]"),
    ("PRAGMA ignore_check_constraints = 1", "[]"),
    ("PRAGMA ignore_check_constraints", "[[1]]"),
    ("PRAGMA legacy_alter_table = true", "[]"),
    ("PRAGMA legacy_alter_table", "[[1]]"),
    ("PRAGMA reverse_unordered_selects = yes", "[]"),
    ("PRAGMA reverse_unordered_selects", "[[1]]"),
    ("PRAGMA defer_foreign_keys = on", "[]"),
    ("PRAGMA defer_foreign_keys", "[[1]]"),
];

const TRUTHS: &[Said] = &[
    ("PRAGMA recursive_triggers = 0", "[]"),
    ("PRAGMA recursive_triggers = 1", "[]"),
    ("PRAGMA recursive_triggers = off", "[]"),
    ("PRAGMA recursive_triggers = ON", "[]"),
    ("PRAGMA recursive_triggers = 'on'", "[]"),
    (r#"PRAGMA recursive_triggers = "yes""#, "[]"),
    ("PRAGMA recursive_triggers = [no]", "[]"),
    ("PRAGMA recursive_triggers = false", "[]"),
    ("PRAGMA recursive_triggers = TRUE", "[]"),
    ("PRAGMA recursive_triggers = 0x1", "[]"),
    ("PRAGMA recursive_triggers = 1.0", "[]"),
    ("PRAGMA recursive_triggers = none", "[]"),
    ("PRAGMA recursive_triggers = 2", "not authorized: SQLITE_AUTH"),
    ("PRAGMA recursive_triggers = -1", "not authorized: SQLITE_AUTH"),
    ("PRAGMA recursive_triggers = o", "not authorized: SQLITE_AUTH"),
    ("PRAGMA recursive_triggers = full", "not authorized: SQLITE_AUTH"),
    ("PRAGMA recursive_triggers = ''", "not authorized: SQLITE_AUTH"),
    ("PRAGMA recursive_triggers = null", r#"near "null": syntax error at offset 28: SQLITE_ERROR"#),
];

const CASE: &[Said] = &[
    ("PRAGMA FOREIGN_KEYS", "[[1]]"),
    ("PRAGMA Quick_Check", r#"[["ok"]]"#),
    ("PRAGMA TABLE_INFO(parent)", r#"[[0, "id", "INTEGER", 0, null, 1]]"#),
    ("PRAGMA OPTIMIZE", "[]"),
    ("PRAGMA Page_Size", "[[4096]]"),
];

const LIKE: &[Said] = &[
    ("PRAGMA case_sensitive_like = on", "[]"),
    ("SELECT 'a' LIKE 'A'", "[[0]]"),
    ("PRAGMA case_sensitive_like = off", "[]"),
    ("SELECT 'a' LIKE 'A'", "[[1]]"),
];

const CHECK_CONSTRAINTS: &[Said] = &[
    (
        "INSERT INTO t VALUES (0)",
        "CHECK constraint failed: a > 0: SQLITE_CONSTRAINT (extended: SQLITE_CONSTRAINT_CHECK)",
    ),
    ("PRAGMA ignore_check_constraints = on", "[]"),
    ("INSERT INTO t VALUES (0) RETURNING a", "[[0]]"),
    ("PRAGMA ignore_check_constraints = off", "[]"),
    (
        "INSERT INTO t VALUES (0)",
        "CHECK constraint failed: a > 0: SQLITE_CONSTRAINT (extended: SQLITE_CONSTRAINT_CHECK)",
    ),
];

const RECURSIVE: &[Said] = &[
    ("INSERT INTO t VALUES (3); SELECT count(*) FROM t", "[[2]]"),
    ("PRAGMA recursive_triggers = on", "[]"),
    ("INSERT INTO t VALUES (3); SELECT count(*) FROM t", "[[6]]"),
];

const REFUSED: &[Said] = &[
    ("PRAGMA analysis_limit", "not authorized: SQLITE_AUTH"),
    ("PRAGMA application_id", "not authorized: SQLITE_AUTH"),
    ("PRAGMA auto_vacuum", "not authorized: SQLITE_AUTH"),
    ("PRAGMA automatic_index", "not authorized: SQLITE_AUTH"),
    ("PRAGMA busy_timeout", "not authorized: SQLITE_AUTH"),
    ("PRAGMA cache_size", "not authorized: SQLITE_AUTH"),
    ("PRAGMA cache_spill", "not authorized: SQLITE_AUTH"),
    ("PRAGMA cell_size_check", "not authorized: SQLITE_AUTH"),
    ("PRAGMA checkpoint_fullfsync", "not authorized: SQLITE_AUTH"),
    ("PRAGMA collation_list", "not authorized: SQLITE_AUTH"),
    ("PRAGMA compile_options", "not authorized: SQLITE_AUTH"),
    ("PRAGMA count_changes", "not authorized: SQLITE_AUTH"),
    ("PRAGMA database_list", "not authorized: SQLITE_AUTH"),
    ("PRAGMA encoding", "not authorized: SQLITE_AUTH"),
    ("PRAGMA freelist_count", "not authorized: SQLITE_AUTH"),
    ("PRAGMA full_column_names", "not authorized: SQLITE_AUTH"),
    ("PRAGMA fullfsync", "not authorized: SQLITE_AUTH"),
    ("PRAGMA function_list", "not authorized: SQLITE_AUTH"),
    ("PRAGMA hard_heap_limit", "not authorized: SQLITE_AUTH"),
    ("PRAGMA incremental_vacuum", "not authorized: SQLITE_AUTH"),
    ("PRAGMA integrity_check", "not authorized: SQLITE_AUTH"),
    ("PRAGMA journal_mode", "not authorized: SQLITE_AUTH"),
    ("PRAGMA journal_size_limit", "not authorized: SQLITE_AUTH"),
    ("PRAGMA locking_mode", "not authorized: SQLITE_AUTH"),
    ("PRAGMA max_page_count", "not authorized: SQLITE_AUTH"),
    ("PRAGMA mmap_size", "not authorized: SQLITE_AUTH"),
    ("PRAGMA module_list", "not authorized: SQLITE_AUTH"),
    ("PRAGMA page_count", "not authorized: SQLITE_AUTH"),
    ("PRAGMA pragma_list", "not authorized: SQLITE_AUTH"),
    ("PRAGMA query_only", "not authorized: SQLITE_AUTH"),
    ("PRAGMA read_uncommitted", "not authorized: SQLITE_AUTH"),
    ("PRAGMA schema_version", "not authorized: SQLITE_AUTH"),
    ("PRAGMA secure_delete", "not authorized: SQLITE_AUTH"),
    ("PRAGMA short_column_names", "not authorized: SQLITE_AUTH"),
    ("PRAGMA shrink_memory", "not authorized: SQLITE_AUTH"),
    ("PRAGMA soft_heap_limit", "not authorized: SQLITE_AUTH"),
    ("PRAGMA synchronous", "not authorized: SQLITE_AUTH"),
    ("PRAGMA temp_store", "not authorized: SQLITE_AUTH"),
    ("PRAGMA threads", "not authorized: SQLITE_AUTH"),
    ("PRAGMA trusted_schema", "not authorized: SQLITE_AUTH"),
    ("PRAGMA user_version", "not authorized: SQLITE_AUTH"),
    ("PRAGMA wal_autocheckpoint", "not authorized: SQLITE_AUTH"),
    ("PRAGMA wal_checkpoint", "not authorized: SQLITE_AUTH"),
    ("PRAGMA writable_schema", "not authorized: SQLITE_AUTH"),
    ("PRAGMA missing", "not authorized: SQLITE_AUTH"),
];

const REFUSED_VALUES: &[Said] = &[
    ("PRAGMA user_version = 3", "not authorized: SQLITE_AUTH"),
    ("PRAGMA journal_mode = delete", "not authorized: SQLITE_AUTH"),
    ("PRAGMA synchronous = off", "not authorized: SQLITE_AUTH"),
    ("PRAGMA writable_schema = on", "not authorized: SQLITE_AUTH"),
    ("PRAGMA cache_size = 10", "not authorized: SQLITE_AUTH"),
    ("PRAGMA busy_timeout(5)", "not authorized: SQLITE_AUTH"),
    ("PRAGMA wal_checkpoint(FULL)", "not authorized: SQLITE_AUTH"),
    ("PRAGMA temp.foreign_keys", "not authorized: SQLITE_AUTH"),
    ("PRAGMA query_only = on", "not authorized: SQLITE_AUTH"),
    ("PRAGMA encoding = 'UTF-16'", "not authorized: SQLITE_AUTH"),
];

const FUNCTIONS: &[Said] = &[
    ("SELECT * FROM pragma_user_version", "not authorized: SQLITE_AUTH"),
    ("SELECT * FROM pragma_database_list", "not authorized: SQLITE_AUTH"),
    ("SELECT * FROM pragma_function_list", "not authorized: SQLITE_AUTH"),
    ("SELECT * FROM pragma_compile_options", "not authorized: SQLITE_AUTH"),
    ("SELECT * FROM pragma_page_size", "[[4096]]"),
    ("SELECT * FROM pragma_foreign_keys", "[[1]]"),
];
