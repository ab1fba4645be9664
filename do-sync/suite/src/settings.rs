use crate::{HistorySettings, InboundSettings, MembersSettings, OutboundSettings};
use do_core::{Failure, ObjectState, SqlExt, SqlStorage};
use do_sync::Room;
use serde::{Deserialize, Serialize};

/// How the object's rooms are made. What is not said is as do-sync has it by default.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// The tags of rooms beside the main one, which is that of `Room::new`.
    pub rooms: Vec<String>,
    /// The main room is all sockets of the object.
    pub all: bool,
    /// What the host answers by itself, and with what.
    pub auto_ping: Option<(String, String)>,
    /// Messages that are no commands go to everyone else in the room of their sender, as they are.
    pub relay: bool,
    /// The most sockets of each room.
    pub max_sockets: Option<usize>,
    /// What is kept.
    pub history: HistorySettings,
    /// Who is let in, and what they may send.
    pub inbound: InboundSettings,
    /// The bounds of what waits for slow readers.
    pub outbound: Option<OutboundSettings>,
    /// Who may be a member, and for how long.
    pub members: MembersSettings,
}

impl Settings {
    /// What each room of the object is told when it is made: a line for each feature.
    pub(crate) fn apply<S: ObjectState>(&self, room: Room<S>, state: &S) -> Room<S> {
        let mut room = self.members.apply(self.history.apply(room, state), state);
        room = self.inbound.apply(room);
        if let Some(outbound) = &self.outbound {
            room = outbound.apply(room);
        }
        match self.max_sockets {
            Some(most) => room.max_sockets(most),
            None => room,
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
