//! What the tables of the schedule hold at one moment.

use do_core::{Error, SqlStorage};
use std::collections::BTreeMap;

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) due: i64,
    pub(crate) tick: i64,
    pub(crate) attempt: u32,
    pub(crate) running: bool,
    /// `None` for a slot.
    pub(crate) terms: Option<String>,
    pub(crate) payload: Option<String>,
}

impl Row {
    pub(crate) fn recurs(&self) -> bool {
        self.terms.as_ref().is_some_and(|terms| terms.contains("every"))
    }

    pub(crate) fn runs(&self) -> u32 {
        let terms: serde_json::Value =
            self.terms.as_ref().map(|terms| serde_json::from_str(terms).unwrap()).unwrap_or_default();
        terms["retry"]["runs"].as_u64().map_or(7, |runs| u32::try_from(runs).unwrap())
    }

    /// What its job is told.
    pub(crate) fn scheduled(&self) -> i64 {
        self.tick.min(self.due)
    }
}

#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Rows {
    /// By key.
    pub(crate) pending: BTreeMap<String, Row>,
    /// Names and attempts of dead letters, by id.
    pub(crate) dead: BTreeMap<i64, (String, u32)>,
}

impl Rows {
    /// Reads them past the watched state, so that no fault hits it.
    pub(crate) fn read(sql: &impl SqlStorage) -> Self {
        let read = |text: &str| match sql.exec(text, ()) {
            Err(error) if error.to_string().starts_with("no such table") => None,
            result => Some(result.unwrap()),
        };
        let Some(pending) = read(
            "SELECT key, coalesce(name, key), due, tick, attempt, running, terms, payload FROM _schedule",
        ) else {
            return Self::default();
        };
        let dead = read("SELECT id, name, attempts FROM _schedule_dead").unwrap();
        let row = |row: do_core::Row<'_>| -> Result<_, Error> {
            let value = Row {
                name: row.at(1)?,
                due: row.at(2)?,
                tick: row.at(3)?,
                attempt: row.at(4)?,
                running: row.at::<i64>(5)? != 0,
                terms: row.at(6)?,
                payload: row.at(7)?,
            };
            Ok((row.at(0)?, value))
        };
        Self {
            pending: pending.iter().map(row).collect::<Result<_, _>>().unwrap(),
            dead: dead
                .iter()
                .map(|row| Ok((row.at(0)?, (row.at(1)?, row.at(2)?))))
                .collect::<Result<_, Error>>()
                .unwrap(),
        }
    }

    pub(crate) fn soonest(&self) -> Option<i64> {
        self.pending.values().map(|row| row.due).min()
    }
}
