//! Those who read along by server-sent events: they are sent what plain editors are, and resume from the room's history.

use super::{Inner, RECENT};
use crate::change::{Change, Recorded};
use do_core::Gap;
use do_core::prelude::*;
use do_sse::{Backlog, Event};
use do_sync::Position;

/// Who reads along is shown so many bytes of paths at once, and then some, and comes back for the rest.
const SHOWN_BYTES: usize = 256 * 1_024;

impl<S: ObjectState> Inner<S> {
    /// As an `EventSource` reads: what it missed comes first, in the same turn in which it is let in.
    pub(super) async fn read_along(&self, request: &Request) -> Result<Response> {
        Ok(self.feed.open(request).backlog(|last| self.missed(last)).start().await?)
    }

    /// What somebody is shown who had this last.
    fn missed(&self, last: Option<&str>) -> Result<Backlog, Error> {
        let here = self.room.position()?;
        let known = last.and_then(|last| last.parse::<Position>().ok());
        let known = known.filter(|last| last.epoch() == here.epoch() && last.seq() <= here.seq());
        let mut kept = self.room.messages(known, RECENT)?;
        let mut backlog = Backlog::default();
        backlog.gap = match (last, known) {
            (Some(_), None) => Some(Gap { lost: None }),
            _ => kept.gap,
        };
        let from = kept.entries.first().map_or(here.seq(), |first| first.position.seq() - 1);
        backlog.from = Some(Position::new(here.epoch(), from).to_string());
        let mut bytes = 0;
        while let Some(last) = kept.entries.last().map(|last| last.position) {
            for entry in kept.entries {
                let Some(change) = entry.value::<Change>()? else { continue };
                bytes += change.path().len() + change.from().map_or(0, str::len);
                let record = change.record(entry.position.seq(), entry.at.as_millis());
                backlog.events.push(of(entry.position, &record)?);
            }
            backlog.has_more = last != here && bytes > SHOWN_BYTES;
            if last == here || backlog.has_more {
                break;
            }
            kept = self.room.messages(Some(last), RECENT)?;
        }
        Ok(backlog)
    }

    /// Somebody begins to read along, or goes.
    pub(super) fn tell_of_stream(&self) {
        if let Err(error) = self.tell(self.connections.count(), None) {
            tracing::error!(%error, "nobody is told how many editors there are");
        }
    }
}

/// A change as those see it who read along.
pub(super) fn of(position: Position, record: &Recorded) -> Result<Event, Error> {
    Event::named("change")?.id(position.to_string())?.json(record)
}
