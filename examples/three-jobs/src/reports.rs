use do_core::prelude::*;
use serde::{Deserialize, Serialize};

/// The table, for the object's migrations.
pub(crate) const TABLE: &str = "CREATE TABLE reports (at INTEGER PRIMARY KEY, notes INTEGER NOT NULL)";

/// How many notes there were in the morning of a working day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// The time that it was planned for, also when it was written later.
    pub at: Timestamp,
    /// Notes that were alive.
    pub notes: u32,
}

/// Writes the report of a time. A job may run again after a crash, and this one's write commits together with its
/// end, so it is there once.
pub(crate) fn add<S: ObjectState>(state: &S, at: Timestamp) -> Result<()> {
    state.sql().exec("INSERT INTO reports (at, notes) SELECT ?, count(*) FROM notes", (at,))?;
    Ok(())
}

/// The latest reports, the latest first.
pub(crate) fn latest<S: ObjectState>(state: &S) -> Result<Vec<Report>> {
    Ok(state.sql().query("SELECT at, notes FROM reports ORDER BY at DESC LIMIT 100", ())?)
}
