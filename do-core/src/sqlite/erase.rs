//! `delete_all`: empties an object's database inside one transaction (rules E14 and G7).
//!
//! By dropping everything instead of deleting the file, so that it takes part in the implicit transaction like any
//! other write: it is durable with the commit and gone with a rollback.

use super::{database::Database, error::host_error};
use crate::{Error, engine::Storage, sql::rules::check_erase};
use rusqlite::{Connection, config::DbConfig};

/// What an object can set for the rest of its life (rules F13 and F14).
const DEFAULTS: &str = "PRAGMA foreign_keys = ON; PRAGMA recursive_triggers = OFF; PRAGMA ignore_check_constraints = OFF; \
     PRAGMA legacy_alter_table = OFF; PRAGMA reverse_unordered_selects = OFF; PRAGMA case_sensitive_like = OFF";

impl Database {
    pub(super) fn erase(&self) -> Result<(), Error> {
        check_erase(self.depth(), self.callbacks())?;
        self.rollback();
        let Some(conn) = self.existing()? else { return Ok(()) };
        // On the platform the new database has a new connection; inside a transaction some of these have no effect.
        self.control(conn, DEFAULTS)?;
        self.begin_write(conn)?;
        self.gate().trusting(|| erase(conn)).map_err(|error| {
            // Half of it must not be committed.
            self.rollback();
            host_error(error)
        })
    }
}

fn erase(conn: &Connection) -> rusqlite::Result<()> {
    // With enforcement deferred, tables that refer to each other can go one after the other; switching it off
    // altogether has no effect inside a transaction. Ending it forgets what was counted.
    conn.execute_batch("PRAGMA defer_foreign_keys = ON")?;
    let dropped = drop_everything(conn);
    conn.execute_batch("PRAGMA defer_foreign_keys = OFF")?;
    dropped?;
    drop_sequence(conn)
}

fn drop_everything(conn: &Connection) -> rusqlite::Result<()> {
    // A virtual table takes its own tables with it, so those go first; then views, because a view on what is gone
    // keeps nothing from being dropped but may be looked at. Indexes and triggers go with their tables.
    for (kind, which) in [
        ("TABLE", "type = 'table' AND sql LIKE 'CREATE VIRTUAL %'"),
        ("VIEW", "type = 'view'"),
        (
            "TABLE",
            "type = 'table' AND (name NOT LIKE 'sqlite^_%' ESCAPE '^' OR name LIKE 'sqlite^_stat%' ESCAPE '^')",
        ),
    ] {
        let mut names = conn.prepare(&format!("SELECT name FROM sqlite_schema WHERE {which}"))?;
        let names = names.query_map((), |row| row.get(0))?.collect::<rusqlite::Result<Vec<String>>>()?;
        for name in names {
            conn.execute_batch(&format!("DROP {kind} \"{}\"", name.replace('"', "\"\"")))?;
        }
    }
    Ok(())
}

/// `AUTOINCREMENT` leaves a table that SQLite refuses to drop. Under another name it does not.
fn drop_sequence(conn: &Connection) -> rusqlite::Result<()> {
    if !conn.table_exists(Some(c"main"), c"sqlite_sequence")? {
        return Ok(());
    }
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, false)?;
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_WRITABLE_SCHEMA, true)?;
    let dropped = conn.execute_batch(
        "UPDATE sqlite_schema SET name = '_cf_dropped', tbl_name = '_cf_dropped',
                 sql = 'CREATE TABLE _cf_dropped(name,seq)' WHERE name = 'sqlite_sequence';
             PRAGMA writable_schema = RESET;
             DROP TABLE _cf_dropped;",
    );
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_WRITABLE_SCHEMA, false)?;
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    dropped
}
