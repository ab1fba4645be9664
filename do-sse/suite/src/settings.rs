use crate::RegistrySettings;
use do_core::{Error, Failure, ObjectState, Origins, SqlExt, SqlStorage};
use do_sse::{History, OnDuplicate, OnFull};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::time::Duration;

/// How the object's feed is made. What is not said is as do-sse has it by default.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// The alarm is a slot of the object's schedule, which has other jobs too.
    pub slot: bool,
    /// Alarms are not noted: what a run writes is the feed's.
    pub quiet: bool,
    /// Most bytes that wait for one reader.
    pub max_bytes: Option<usize>,
    /// Most events.
    pub max_events: Option<usize>,
    /// The deadline in ms.
    pub stall_ms: Option<u64>,
    /// The policy.
    pub on_full: Option<Full>,
    /// Most connections.
    pub max_connections: Option<usize>,
    /// The greatest age in ms.
    pub max_age_ms: Option<u64>,
    /// After how many ms clients come back.
    pub retry_ms: Option<u64>,
    /// The policy for ids.
    pub on_duplicate: Option<Duplicate>,
    /// Heartbeats in ms.
    pub heartbeat_ms: Option<u64>,
    /// What is kept.
    pub history: Option<HistorySettings>,
    /// What is kept is kept in the database.
    pub stored: bool,
    /// Pages of these origins may read.
    pub origins: Option<Vec<String>>,
    /// Who is let in is for a registry to say.
    pub registry: Option<RegistrySettings>,
    /// Newcomers get this as the snapshot.
    pub snapshot: Option<Value>,
    /// The application has a history of its own: numbers from 1 to this, of which the id is `n17`. Older than 10 is gone.
    pub backlog: Option<u64>,
}

/// An [`OnFull`].
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)] // as in do-sse
pub enum Full {
    Close,
    DropNewest,
    DropOldest,
    LatestPerKey,
}

/// An [`OnDuplicate`].
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)] // as in do-sse
pub enum Duplicate {
    Replace,
    Allow,
    Reject,
}

/// How much is kept.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HistorySettings {
    /// Most events.
    pub max_events: Option<u64>,
    /// Most bytes.
    pub max_bytes: Option<u64>,
    /// The oldest, in ms.
    pub max_age_ms: Option<u64>,
    /// What newcomers are shown.
    pub replay: u64,
}

impl HistorySettings {
    fn made(&self) -> History {
        let mut history = History::new().replay(self.replay);
        if let Some(most) = self.max_events {
            history = history.max_events(most);
        }
        if let Some(most) = self.max_bytes {
            history = history.max_bytes(most);
        }
        if let Some(ms) = self.max_age_ms {
            history = history.max_age(Duration::from_millis(ms));
        }
        history
    }
}

impl Settings {
    /// Those of the feed.
    pub(crate) fn made(&self) -> Result<do_sse::Settings, Error> {
        let mut made = self.limits(do_sse::Settings::new());
        if let Some(ms) = self.max_age_ms {
            made = made.max_age(Duration::from_millis(ms));
        }
        if let Some(ms) = self.retry_ms {
            made = made.retry(Duration::from_millis(ms));
        }
        if let Some(policy) = self.on_duplicate {
            made = made.on_duplicate(match policy {
                Duplicate::Replace => OnDuplicate::Replace,
                Duplicate::Allow => OnDuplicate::Allow,
                Duplicate::Reject => OnDuplicate::Reject,
            });
        }
        if let Some(ms) = self.heartbeat_ms {
            made = made.heartbeat(Duration::from_millis(ms));
        }
        if let Some(history) = &self.history {
            made = made.history(history.made());
        }
        if let Some(origins) = &self.origins {
            made = made.cors(Origins::none().allow_all(origins.iter().map(String::as_str))?);
        }
        Ok(made)
    }

    fn limits(&self, mut made: do_sse::Settings) -> do_sse::Settings {
        if let Some(most) = self.max_bytes {
            made = made.max_bytes(most);
        }
        if let Some(most) = self.max_events {
            made = made.max_events(most);
        }
        if let Some(ms) = self.stall_ms {
            made = made.stall(Duration::from_millis(ms));
        }
        if let Some(policy) = self.on_full {
            made = made.on_full(match policy {
                Full::Close => OnFull::Close,
                Full::DropNewest => OnFull::DropNewest,
                Full::DropOldest => OnFull::DropOldest,
                Full::LatestPerKey => OnFull::LatestPerKey,
            });
        }
        match self.max_connections {
            Some(most) => made.max_connections(most),
            None => made,
        }
    }

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
