//! Bounds of what waits for slow readers.

use crate::{RoomProbe, probe::At};
use do_core::{Failure, ObjectState};
use do_sync::{OnFull, Outbound, Room};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::time::Duration;

/// What a room can be told about slow readers.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutboundCommand {
    /// Broadcasts texts, which are the numbers from one to before another, filled with spaces up to a length; the keys
    /// are the numbers modulo the last, where that is not 0. Each report as queued, dropped, coalesced, disconnected.
    Flood(u32, u32, usize, u32),
    /// The statistics as behind, messages, dropped, coalesced, disconnected.
    Stats,
}

/// The room's [`Outbound`].
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OutboundSettings {
    /// Most bytes.
    pub max_bytes: usize,
    /// Most messages.
    pub max_messages: usize,
    /// Most bytes that the host is given in advance.
    pub window: usize,
    /// The deadline in ms.
    pub stall_ms: u64,
    /// The policy.
    pub on_full: Policy,
    /// Clients are asked to acknowledge, and so many bytes may be on their way.
    #[serde(default)]
    pub credit: Option<u64>,
}

/// An [`OnFull`].
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)] // as in do-sync
pub enum Policy {
    Close,
    DropNewest,
    DropOldest,
    LatestPerKey,
}

impl OutboundSettings {
    pub(crate) fn apply<S: ObjectState>(&self, room: Room<S>) -> Room<S> {
        let outbound = Outbound::new()
            .max_bytes(self.max_bytes)
            .max_messages(self.max_messages)
            .window(self.window)
            .stall(Duration::from_millis(self.stall_ms))
            .on_full(match self.on_full {
                Policy::Close => OnFull::Close,
                Policy::DropNewest => OnFull::DropNewest,
                Policy::DropOldest => OnFull::DropOldest,
                Policy::LatestPerKey => OnFull::LatestPerKey,
            });
        room.outbound(match self.credit {
            Some(bytes) => outbound.credit(bytes),
            None => outbound,
        })
    }
}

impl<S: ObjectState> RoomProbe<S> {
    #[allow(clippy::unused_self)] // as the commands of other features
    pub(crate) fn outbound_command(&self, command: &OutboundCommand, at: &At<S>) -> Result<Value, Failure> {
        Ok(match command {
            OutboundCommand::Flood(from, to, length, keys) => {
                let mut reports = Vec::new();
                for number in *from..*to {
                    let mut broadcast = at.room.broadcast(format!("{number:<length$}"));
                    if let Some(key) = number.checked_rem(*keys) {
                        broadcast = broadcast.key(key.to_string());
                    }
                    let report = broadcast.send();
                    let sum = report.queued + report.dropped + report.coalesced + report.disconnected;
                    if report.matched != sum {
                        return Err(Failure::msg(format!("{report:?} does not add up")));
                    }
                    reports.push([report.queued, report.dropped, report.coalesced, report.disconnected]);
                }
                json!(reports)
            }
            OutboundCommand::Stats => {
                let stats = at.room.outbound_stats();
                json!([stats.behind, stats.messages, stats.dropped, stats.coalesced, stats.disconnected])
            }
        })
    }
}
