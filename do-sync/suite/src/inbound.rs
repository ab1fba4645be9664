//! Who is let in, and what they may send.

use crate::{RoomProbe, probe::At};
use do_core::{Failure, Message, ObjectState, Request, RequestExt, SocketOf};
use do_sync::{Inbound, OnExcess, OnMalformed, Origins, Received, Refusal, Rejected, Room};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// What a room can be told about what comes in.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InboundCommand {
    /// The statistics as admitted, control, too big, too often, malformed, closing, closed.
    Stats,
}

/// The room's [`Inbound`], and what a handshake must have. What is not said is as do-sync has it by default.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct InboundSettings {
    /// The longest message in bytes.
    pub max_bytes: Option<usize>,
    /// Messages a second, and at once.
    pub rate: Option<(f64, u32)>,
    /// Whoever sends more often is closed.
    pub close_excess: bool,
    /// Whoever sends what is malformed is closed.
    pub close_malformed: bool,
    /// Pages of the room's own host only.
    pub own_pages: bool,
    /// Only who has it as `ticket` in the query.
    pub ticket: Option<String>,
}

impl InboundSettings {
    pub(crate) fn apply<S: ObjectState>(&self, room: Room<S>) -> Room<S> {
        let mut inbound = Inbound::new();
        if let Some(bytes) = self.max_bytes {
            inbound = inbound.max_bytes(bytes);
        }
        if let Some((per_second, burst)) = self.rate {
            inbound = inbound.rate(per_second, burst);
        }
        if self.close_excess {
            inbound = inbound.on_excess(OnExcess::Close);
        }
        if self.close_malformed {
            inbound = inbound.on_malformed(OnMalformed::Close);
        }
        room.inbound(inbound)
    }

    /// Why this handshake is not welcome.
    pub(crate) fn refusal(&self, request: &Request) -> Option<Refusal> {
        if self.own_pages
            && let Err(refusal) = Origins::same_host().check(request)
        {
            return Some(refusal);
        }
        let is_unknown = self.ticket.is_some() && request.query("ticket") != self.ticket;
        is_unknown.then_some(Refusal::Unauthorized)
    }
}

/// What is noted of a message that is no command.
pub(crate) fn noted<S: ObjectState>(room: &Room<S>, socket: &SocketOf<S>, message: &Message) -> Value {
    match room.try_receive::<Value>(socket, message) {
        Received::Value(value) => json!({"event": "message", "value": value}),
        Received::Control => json!({"event": "control"}),
        Received::Dropped(Rejected::Malformed) => json!({"event": "malformed"}),
        Received::Dropped(reason) => json!({"event": "dropped", "reason": reason.to_string()}),
    }
}

impl<S: ObjectState> RoomProbe<S> {
    #[allow(clippy::unused_self)] // as the commands of other features
    pub(crate) fn inbound_command(&self, command: &InboundCommand, at: &At<S>) -> Result<Value, Failure> {
        let InboundCommand::Stats = command;
        let it = at.room.inbound_stats();
        Ok(json!([it.admitted, it.control, it.too_big, it.too_often, it.malformed, it.closing, it.closed]))
    }
}
