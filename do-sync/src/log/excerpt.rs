//! The history for the application's own use.

use super::{Asked, Log, Position, log::frame_of};
use crate::{Room, wire::Read};
use bytes::Bytes;
use do_core::{Error, ErrorKind, Gap, Message, ObjectState, Timestamp};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::value::RawValue;
use std::ops::ControlFlow;

/// Most messages that are read at once, whoever asks for more.
const EXCERPT: u64 = 1_000;

/// Some of a room's history. As JSON, for clients that ask over HTTP, it has positions as text.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Excerpt {
    /// Messages that were asked for and are gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gap: Option<Gap>,
    /// In their order, without a hole.
    pub entries: Vec<Recorded>,
    /// The position of the room's newest message: when the last entry has it, there are no more.
    pub newest: Position,
}

/// A message of the history.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Recorded {
    /// Its place in the sequence.
    pub position: Position,
    /// When it was published.
    pub at: Timestamp,
    /// What it is.
    #[serde(flatten)]
    pub what: What,
}

/// What a message of the history is.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum What {
    /// A published value.
    #[serde(rename = "msg")]
    Value {
        /// The member who published it; `None` for the object itself.
        #[serde(skip_serializing_if = "Option::is_none")]
        from: Option<String>,
        /// As JSON; [`Recorded::value`] reads it.
        #[serde(rename = "d")]
        data: Box<RawValue>,
    },
    /// Published bytes.
    Binary {
        /// The member who published them; `None` for the object itself.
        #[serde(skip_serializing_if = "Option::is_none")]
        from: Option<String>,
        /// As they were published; in JSON a list of numbers.
        #[serde(rename = "d", serialize_with = "numbers")]
        data: Bytes,
    },
    /// A member came.
    Joined {
        /// Who.
        member: String,
        /// What others see of them.
        #[serde(skip_serializing_if = "Option::is_none")]
        data: Option<Box<RawValue>>,
    },
    /// Others see something else of a member.
    Updated {
        /// Who.
        member: String,
        /// What they see now.
        data: Box<RawValue>,
    },
    /// A member went.
    Left {
        /// Who.
        member: String,
    },
}

fn numbers<S: serde::Serializer>(bytes: &Bytes, to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(bytes.iter())
}

impl What {
    fn of(frame: &Message) -> Result<Self, Error> {
        Ok(match Read::of(frame)? {
            Read::Json { from, data } => Self::Value { from: from.map(Into::into), data: data.to_owned() },
            Read::Binary { from, data } => {
                Self::Binary { from: from.map(Into::into), data: Bytes::copy_from_slice(data) }
            }
            Read::Joined { member, data } => {
                Self::Joined { member: member.into(), data: data.map(ToOwned::to_owned) }
            }
            Read::Updated { member, data } => Self::Updated { member: member.into(), data: data.to_owned() },
            Read::Left { member } => Self::Left { member: member.into() },
        })
    }
}

impl Recorded {
    /// The published value; `None` when it is something else than a value.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] when it is of another type.
    pub fn value<T: DeserializeOwned>(&self) -> Result<Option<T>, Error> {
        let What::Value { data, .. } = &self.what else { return Ok(None) };
        serde_json::from_str(data.get())
            .map(Some)
            .map_err(|e| Error::new(ErrorKind::Invalid, format!("the message is not of that type: {e}")))
    }
}

impl<S: ObjectState> Room<S> {
    /// Reads the history: up to `limit` messages behind a position, or the latest without one; never more than 1,000. What is beyond the
    /// [bounds](crate::History) is not shown; where something is missing for that, [`Excerpt::gap`] says so.
    ///
    /// For the application's own use, as for clients that ask over HTTP:
    ///
    /// ```
    /// # use do_core::prelude::*;
    /// # use do_sync::{Position, Room};
    /// # fn example<S: ObjectState>(room: &Room<S>, request: &Request) -> Result<Response> {
    /// let after = request.query("after").map(|text| text.parse::<Position>()).transpose();
    /// let after = after.map_err(Error::from)?; // is answered with 400
    /// Ok(reply::json(&room.messages(after, 100)?)?)
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`SqlStorage::exec`](do_core::SqlStorage::exec).
    pub fn messages(&self, after: Option<Position>, limit: u64) -> Result<Excerpt, Error> {
        self.log().excerpt(after, limit.min(EXCERPT))
    }
}

impl<S: ObjectState> Log<'_, S> {
    fn excerpt(&self, after: Option<Position>, limit: u64) -> Result<Excerpt, Error> {
        let newest = self.position()?;
        let latest = Position::new(newest.epoch(), newest.seq().saturating_sub(limit));
        let asked = after.filter(|after| after.epoch() == newest.epoch() && after.seq() <= newest.seq());
        let plan = self.plan(Asked::After(Some(asked.unwrap_or(latest))), false)?;
        let gap = match (after, asked) {
            (None, _) => None,
            (Some(_), Some(_)) => plan.gap,
            (Some(_), None) => Some(Gap { lost: None }),
        };
        let mut entries = Vec::new();
        self.journal().after(plan.at().seq(), limit, |kept| {
            let facts = kept.facts;
            let position = Position::new(newest.epoch(), facts.seq);
            entries.push(Recorded { position, at: facts.at, what: What::of(&frame_of(kept)?)? });
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(Excerpt { gap, entries, newest })
    }
}
