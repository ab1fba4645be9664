//! Members: who is there, and what is said of them.

use crate::{RoomProbe, probe::At, room::me};
use do_core::{Alarm, Failure, ObjectState};
use do_sync::{Members, OnDuplicate, Position, Room};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::time::Duration;

/// What a room can be told about its members.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MembersCommand {
    /// Who is there.
    Presence,
    /// Who the one that asks is, what others see of them, and what is attached to the socket.
    Me,
    /// Others see this of the one that asks.
    Data(Value),
    /// Attaches to the one that asks.
    Attach(Value),
    /// How many sockets of a member are open.
    Sockets(String),
    /// Makes a member go, for a reason. Gives how many sockets closed.
    Kick(String, String),
}

/// The rules. What is not said is as do-sync has it by default.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MembersSettings {
    /// `allow` or `reject`; by default the newest replaces.
    pub duplicate: Option<String>,
    /// How long one without a socket is waited for, in ms. With it the room has the object's own alarm.
    pub grace: u64,
    /// Most members.
    pub max_members: Option<usize>,
    /// Most sockets of one.
    pub max_sockets: Option<usize>,
}

impl MembersSettings {
    pub(crate) fn apply<S: ObjectState>(&self, room: Room<S>, state: &S) -> Room<S> {
        let mut members = Members::new().grace(Duration::from_millis(self.grace));
        members = match self.duplicate.as_deref() {
            Some("allow") => members.on_duplicate(OnDuplicate::Allow),
            Some("reject") => members.on_duplicate(OnDuplicate::Reject),
            _ => members,
        };
        if let Some(most) = self.max_members {
            members = members.max_members(most);
        }
        if let Some(most) = self.max_sockets {
            members = members.max_sockets(most);
        }
        let room = room.members(members);
        if self.grace == 0 { room } else { room.alarm(Alarm::raw(state)) }
    }
}

impl<S: ObjectState> RoomProbe<S> {
    pub(crate) async fn members_command(
        &self,
        command: MembersCommand,
        at: &At<S>,
    ) -> Result<Value, Failure> {
        let room = &at.room;
        Ok(match command {
            MembersCommand::Presence => {
                let there = room.presence()?;
                let mut consistent = room.member_count()? == there.len();
                for present in &there {
                    consistent &= room.is_present(&present.id)?;
                }
                if consistent { serde_json::to_value(there)? } else { json!("inconsistent") }
            }
            MembersCommand::Me => {
                let me = me(at)?;
                let (data, attached) = (room.data_of::<Value>(me)?, room.attached::<Value>(me)?);
                json!({"id": room.member_of(me).map(|present| present.id), "data": data, "attached": attached})
            }
            MembersCommand::Data(data) => {
                json!(room.set_data(me(at)?, &data).await?.map(Position::seq))
            }
            MembersCommand::Attach(value) => {
                room.set_attached(me(at)?, &value)?;
                Value::Null
            }
            MembersCommand::Sockets(member) => json!(room.sockets_of(&member).len()),
            MembersCommand::Kick(member, reason) => json!(room.kick(&member, &reason).await?),
        })
    }
}
