use do_core::{Failure, ObjectState, SqlExt, SqlStorage};
use do_ttl::{OnFull, Pace};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, time::Duration};

/// How the object's sweeper and its stores are made. What is not said is as do-ttl has it by default.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// The alarm is a slot of the object's schedule, which has other jobs too.
    pub slot: bool,
    /// How the sweeper works.
    pub pace: PaceSettings,
    /// The stores that are opened with the object. Others have the default settings and are opened when they are told
    /// something.
    pub stores: BTreeMap<String, StoreSettings>,
}

/// A [`Pace`].
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PaceSettings {
    /// In ms.
    pub slack_ms: Option<u64>,
    /// Most rows of a turn.
    pub slice_rows: Option<u32>,
    /// Most bytes of a turn.
    pub slice_bytes: Option<u64>,
    /// Most rows of a run.
    pub rows_per_wake: Option<u32>,
}

/// Those of a store.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StoreSettings {
    /// Most entries.
    pub max_entries: Option<u64>,
    /// Most bytes.
    pub max_bytes: Option<u64>,
    /// What happens when it is full.
    pub on_full: Option<Full>,
    /// What expires is told.
    pub notify: bool,
    /// How much later a use has to make an expiry, in ms.
    pub throttle_ms: Option<u64>,
}

/// An [`OnFull`].
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)] // as in do-ttl
pub enum Full {
    Evict,
    Refuse,
}

impl PaceSettings {
    pub(crate) fn made(self) -> Pace {
        let mut made = Pace::new();
        if let Some(ms) = self.slack_ms {
            made = made.slack(Duration::from_millis(ms));
        }
        if let Some(rows) = self.slice_rows {
            made = made.slice_rows(rows);
        }
        if let Some(bytes) = self.slice_bytes {
            made = made.slice_bytes(bytes);
        }
        match self.rows_per_wake {
            Some(rows) => made.rows_per_wake(rows),
            None => made,
        }
    }
}

impl StoreSettings {
    pub(crate) fn made(self) -> do_ttl::Settings {
        let mut made = do_ttl::Settings::new().notify(self.notify);
        if let Some(most) = self.max_entries {
            made = made.max_entries(most);
        }
        if let Some(most) = self.max_bytes {
            made = made.max_bytes(most);
        }
        if let Some(policy) = self.on_full {
            made = made.on_full(match policy {
                Full::Evict => OnFull::Evict,
                Full::Refuse => OnFull::Refuse,
            });
        }
        match self.throttle_ms {
            Some(ms) => made.throttle(Duration::from_millis(ms)),
            None => made,
        }
    }
}

impl Settings {
    /// The name of the sweeper's slot.
    pub(crate) const SLOT: &'static str = "ttl";

    /// Keeps them for the instances to come.
    pub(crate) fn keep<S: ObjectState>(&self, state: &S) -> Result<(), Failure> {
        let text = serde_json::to_string(self)?;
        state.sql().exec("INSERT OR REPLACE INTO probe_settings VALUES (1, ?)", [text])?;
        Ok(())
    }

    /// Those that were kept.
    pub(crate) fn kept<S: ObjectState>(state: &S) -> Result<Self, Failure> {
        state.sql().exec(
            "CREATE TABLE IF NOT EXISTS probe_settings (id INTEGER PRIMARY KEY, text TEXT NOT NULL)",
            (),
        )?;
        let text: Option<String> = state.sql().scalar("SELECT text FROM probe_settings", ())?;
        Ok(text.map(|text| serde_json::from_str(&text)).transpose()?.unwrap_or_default())
    }
}
