//! What an object's statements may do: the lists of rules F11 to F13, asked by SQLite at each preparation.
//!
//! Allow-lists, as on the platform: a function or pragma that a later SQLite brings is refused until somebody
//! decided about it, here and there.

use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering::Relaxed},
};

/// What the authorizer and the connection's owner tell each other.
///
/// Atomics although all of it happens on one thread, because rusqlite wants its callbacks `Send`.
#[derive(Debug, Default)]
pub(super) struct Gate {
    /// Statements of the host itself are prepared: everything is allowed.
    trusted: AtomicBool,
    /// A statement that controls the transaction was refused.
    transaction: AtomicBool,
    /// A statement that alters a table was let through.
    alters: AtomicBool,
    /// `PRAGMA optimize` was let through.
    optimizes: AtomicBool,
}

impl Gate {
    /// Runs `f` with the host's rights.
    pub(super) fn trusting<T>(&self, f: impl FnOnce() -> T) -> T {
        struct Restore<'a>(&'a AtomicBool, bool);
        impl Drop for Restore<'_> {
            fn drop(&mut self) {
                self.0.store(self.1, Relaxed);
            }
        }
        let _restore = Restore(&self.trusted, self.trusted.swap(true, Relaxed));
        f()
    }

    /// Forgets what the last preparation showed.
    pub(super) fn clear(&self) {
        self.transaction.store(false, Relaxed);
        self.alters.store(false, Relaxed);
        self.optimizes.store(false, Relaxed);
    }

    /// Whether what was prepared since [`clear`](Self::clear) tried to control the transaction.
    pub(super) fn transaction(&self) -> bool {
        self.transaction.load(Relaxed)
    }

    /// What else was noted since [`clear`](Self::clear).
    pub(super) fn notes(&self) -> Notes {
        Notes { alters: self.alters.load(Relaxed), optimizes: self.optimizes.load(Relaxed) }
    }

    /// The callback for the connection.
    pub(super) fn authorizer(
        self: &Arc<Self>,
    ) -> impl FnMut(AuthContext<'_>) -> Authorization + Send + use<> {
        let gate = Arc::clone(self);
        move |context| {
            if gate.trusted.load(Relaxed) || gate.allows(&context) {
                Authorization::Allow
            } else {
                Authorization::Deny
            }
        }
    }

    fn allows(&self, context: &AuthContext<'_>) -> bool {
        use AuthAction as A;
        // SQLite passes the database of these two where other actions have their first argument.
        let database = match context.action {
            A::AlterTable { database_name, .. } | A::Detach { database_name } => Some(database_name),
            _ => context.database_name,
        };
        match database {
            None | Some("main") => {}
            // Renaming reads and updates the (empty) schema of temporary objects.
            Some("temp") => {
                return match context.action {
                    A::Read { table_name, .. } | A::Update { table_name, .. } => is_open_name(table_name),
                    _ => false,
                };
            }
            Some(_) => return false,
        }
        match context.action {
            // ANALYZE and `PRAGMA optimize` look at all tables; what they keep is only statistics.
            A::Select | A::Recursive | A::Analyze { .. } => true,
            A::CreateTable { table_name: name }
            | A::Delete { table_name: name }
            | A::DropTable { table_name: name }
            | A::Insert { table_name: name }
            | A::CreateView { view_name: name }
            | A::DropView { view_name: name }
            | A::Reindex { index_name: name }
            | A::Update { table_name: name, .. } => is_open_name(name),
            A::Read { table_name, .. } => is_open_name(table_name) && !is_listed(HIDDEN_TABLES, table_name),
            A::CreateIndex { index_name: name, table_name }
            | A::DropIndex { index_name: name, table_name }
            | A::CreateTrigger { trigger_name: name, table_name }
            | A::DropTrigger { trigger_name: name, table_name } => {
                is_open_name(name) && is_open_name(table_name)
            }
            A::AlterTable { table_name, .. } => {
                // SQLite does not tell the new name here: the caller compares names afterwards.
                self.alters.store(true, Relaxed);
                is_open_name(table_name)
            }
            A::CreateVtable { table_name, module_name } | A::DropVtable { table_name, module_name } => {
                is_listed(MODULES, module_name) && is_open_name(table_name)
            }
            A::Function { function_name } => FUNCTIONS.binary_search(&function_name).is_ok(),
            A::Pragma { pragma_name, pragma_value } => {
                self.optimizes.fetch_or(pragma_name.eq_ignore_ascii_case("optimize"), Relaxed);
                allows_pragma(pragma_name, pragma_value)
            }
            A::Transaction { .. } | A::Savepoint { .. } => {
                self.transaction.store(true, Relaxed);
                false
            }
            _ => false,
        }
    }
}

/// What a statement does that SQLite's interface does not tell. The authorizer sees it only when a statement is
/// prepared, so that one with a note must not be cached.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Notes {
    /// It alters a table.
    pub(super) alters: bool,
    /// It is `PRAGMA optimize`, which writes although SQLite counts it as reading.
    pub(super) optimizes: bool,
}

/// Names that begin with `_cf_` in any case belong to the host (rule F11).
pub(super) fn is_open_name(name: &str) -> bool {
    !name.as_bytes().get(..4).is_some_and(|start| start.eq_ignore_ascii_case(b"_cf_"))
}

fn is_listed(list: &[&str], name: &str) -> bool {
    list.iter().any(|item| item.eq_ignore_ascii_case(name))
}

/// Virtual tables that may be created (rule F11).
const MODULES: &[&str] = &["fts5", "fts5vocab", "rtree", "rtree_i32"];

/// Virtual tables that the bundled SQLite has without creating them and the platform's has not (rule F12).
const HIDDEN_TABLES: &[&str] = &["dbstat", "fts3tokenize", "fts4aux", "sqlite_dbpage"];

/// Functions that the bundled SQLite has and the platform's has not.
const HIDDEN_FUNCTIONS: &[&str] = &["fts3_tokenizer", "matchinfo", "offsets", "optimize", "soundex"];

/// The platform's message for something that is there and refused here, but not there at all on the platform.
pub(super) fn absent(message: &str) -> Option<String> {
    if let Some(rest) = message.strip_prefix("not authorized to use function: ") {
        let name = rest.split(' ').next().filter(|name| is_listed(HIDDEN_FUNCTIONS, name));
        return name.map(|name| format!("no such function: {name}"));
    }
    let (name, _) = message.strip_prefix("access to ")?.split_once('.')?;
    is_listed(HIDDEN_TABLES, name).then(|| format!("no such table: {name}"))
}

fn allows_pragma(name: &str, value: Option<&str>) -> bool {
    match name.to_ascii_lowercase().as_str() {
        "table_list" => true,
        // `page_size` without a value is also what the R-Tree module itself asks.
        "data_version" | "page_size" => value.is_none(),
        "case_sensitive_like"
        | "defer_foreign_keys"
        | "foreign_keys"
        | "ignore_check_constraints"
        | "legacy_alter_table"
        | "recursive_triggers"
        | "reverse_unordered_selects" => value.is_none_or(is_boolean),
        "foreign_key_list" | "index_info" | "index_list" | "index_xinfo" | "table_info" | "table_xinfo" => {
            value.is_some_and(is_open_name)
        }
        "foreign_key_check" | "quick_check" => value.is_none_or(is_open_name),
        "optimize" => value.is_none_or(is_integer),
        _ => false,
    }
}

/// What the platform takes for one: it looks at how the value begins.
fn is_boolean(value: &str) -> bool {
    ["0", "1", "false", "no", "off", "on", "true", "yes"]
        .iter()
        .any(|word| value.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word)))
}

fn is_integer(value: &str) -> bool {
    match value.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).is_ok(),
        None => value.parse::<i32>().is_ok(),
    }
}

/// Functions that may be called (rule F12), sorted: the platform's list. It lacks SQLite's other names of some math
/// functions, and what newer forms of `ALTER TABLE`, those that change constraints, are made of. Those that begin with
/// `sqlite_` are what `ALTER TABLE` is made of; SQLite lets nobody else call them.
const FUNCTIONS: &[&str] = &[
    "->",
    "->>",
    "abs",
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "avg",
    "bm25",
    "ceil",
    "changes",
    "char",
    "coalesce",
    "concat",
    "concat_ws",
    "cos",
    "cosh",
    "count",
    "cume_dist",
    "current_date",
    "current_time",
    "current_timestamp",
    "date",
    "datetime",
    "degrees",
    "dense_rank",
    "exp",
    "first_value",
    "floor",
    "format",
    "glob",
    "group_concat",
    "hex",
    "highlight",
    "ifnull",
    "iif",
    "instr",
    "json",
    "json_array",
    "json_array_length",
    "json_each",
    "json_extract",
    "json_group_array",
    "json_group_object",
    "json_insert",
    "json_object",
    "json_patch",
    "json_quote",
    "json_remove",
    "json_replace",
    "json_set",
    "json_tree",
    "json_type",
    "json_valid",
    "jsonb",
    "jsonb_array",
    "jsonb_extract",
    "jsonb_group_array",
    "jsonb_group_object",
    "jsonb_insert",
    "jsonb_object",
    "jsonb_patch",
    "jsonb_remove",
    "jsonb_replace",
    "jsonb_set",
    "julianday",
    "lag",
    "last_insert_rowid",
    "last_value",
    "lead",
    "length",
    "like",
    "likelihood",
    "likely",
    "ln",
    "log",
    "log2",
    "lower",
    "ltrim",
    "match",
    "max",
    "min",
    "mod",
    "nth_value",
    "ntile",
    "nullif",
    "octet_length",
    "percent_rank",
    "pi",
    "pow",
    "printf",
    "quote",
    "radians",
    "random",
    "randomblob",
    "rank",
    "replace",
    "round",
    "row_number",
    "rtreecheck",
    "rtrim",
    "sign",
    "sin",
    "sinh",
    "snippet",
    "sqlite_drop_column",
    "sqlite_rename_column",
    "sqlite_rename_quotefix",
    "sqlite_rename_table",
    "sqlite_rename_test",
    "sqrt",
    "strftime",
    "string_agg",
    "substr",
    "substring",
    "sum",
    "tan",
    "tanh",
    "time",
    "timediff",
    "total",
    "total_changes",
    "trim",
    "trunc",
    "typeof",
    "unhex",
    "unicode",
    "unixepoch",
    "unlikely",
    "upper",
    "zeroblob",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_of_functions_is_sorted_so_that_it_can_be_searched() {
        assert!(FUNCTIONS.is_sorted());
    }

    #[test]
    fn f11_names_of_the_host_begin_with_cf_in_any_case() {
        for (name, open) in
            [("_cf_KV", false), ("_CF_x", false), ("__cf_x", true), ("_cf", true), ("é_cf_", true)]
        {
            assert_eq!(is_open_name(name), open, "{name}");
        }
    }

    #[test]
    fn trust_ends_with_the_closure_also_when_nested() {
        let gate = Gate::default();
        gate.trusting(|| gate.trusting(|| ()));
        assert!(!gate.trusted.load(Relaxed));
    }
}
