//! The history of a feed in the object's own database.
//!
//! The database has the whole truth, and the ring in memory is always a part of it: the newest events without a hole. So
//! what is asked of every event, that it is numbered, kept and sent, costs one row; and however many clients come back at
//! once, the events are read from the database once, by the first who misses one that is not in memory.

use super::Inner;
use crate::{
    Event, History, Published, Settings,
    core::{Asked, Recorded, check_length},
    send::Sender,
};
use bytes::Bytes;
use do_core::{
    Error, ErrorKind, ObjectState, Position, Timestamp,
    journal::{Bounds, Facts, Journal, Kept, Newest, Stats, Table},
};
use std::{cell::Cell, ops::ControlFlow, rc::Weak, sync::Arc};

/// The events of all stored feeds of an object, as they are sent.
const TABLE: Table = Table::new("_feed_log").columns("feed", "event");

/// For everyone: the event.
const PLAIN: u8 = 1;
/// For those who listen to some topics: these as JSON, in one line, and the event.
const TOPICAL: u8 = 2;

/// A history in the object's database, and what this instance knows of it.
pub(super) struct Stored<S: ObjectState> {
    journal: Journal<S>,
    /// The ring is a part of the history: it was brought there, and then followed each event.
    is_followed: Cell<bool>,
    /// All of the history is in the ring.
    is_loaded: Cell<bool>,
    /// When the oldest event is to be deleted; `None` when that is not known, or there is none.
    expires: Cell<Option<Timestamp>>,
}

impl<S: ObjectState> Stored<S> {
    pub(super) fn new(state: &S, key: &str, history: &History) -> Self {
        let History { max_events, max_bytes, max_age, .. } = *history;
        let bounds = Bounds { max_entries: max_events, max_bytes, max_age };
        Self {
            journal: Journal::new(state, TABLE, key, bounds),
            is_followed: Cell::default(),
            is_loaded: Cell::default(),
            expires: Cell::default(),
        }
    }

    pub(super) fn stats(&self) -> Stats {
        self.journal.stats()
    }

    /// Where the sequence is.
    pub(super) fn position(&self, feed: &Inner<S>) -> Result<Position, Error> {
        self.newest(feed).map(|newest| newest.position())
    }

    /// Numbers an event, keeps it, and then sends it: a commit that fails takes both away (rule C4).
    pub(super) fn publish(
        &self,
        feed: &Inner<S>,
        event: &Event,
        topics: Vec<Arc<str>>,
        now: Timestamp,
    ) -> Result<Published, Error> {
        let before = self.newest(feed)?;
        let position = Position::new(before.epoch, before.seq + 1);
        let bytes = event.encode(Some(position));
        let (kind, row) = written(&topics, &bytes);
        check_length(&row, &feed.core.settings)?;
        let kept = self.journal.append(&before, now, kind, &row)?;
        if before.is_blank() {
            self.expires.set(None);
        }
        self.look_later(feed);
        let recorded = Recorded { seq: kept.seq, at: kept.at, bytes, topics: topics.into() };
        Ok(Published { position, report: feed.core.publish_recorded(recorded, now) })
    }

    /// Brings into the ring what this client is to be shown. Right until the next event.
    pub(super) fn prepare(&self, feed: &Inner<S>, asked: &Asked) -> Result<(), Error> {
        let newest = self.newest(feed)?;
        if self.is_loaded.get() || feed.core.suffices(asked) {
            return Ok(());
        }
        let mut events = Vec::new();
        self.journal.after(self.journal.floor(&newest)? - 1, u64::MAX, |kept| {
            match read(kept, newest.epoch) {
                Ok(event) => events.push(event),
                // Written by other code than this. What is before it is of no use either: there must be no hole.
                Err(error) => {
                    tracing::warn!(%error, "an event of a feed's history cannot be read");
                    events.clear();
                }
            }
            Ok(ControlFlow::Continue(()))
        })?;
        feed.core.load(newest.position(), events);
        self.is_loaded.set(true);
        Ok(())
    }

    /// Deletes what is too old. When the next is, in somewhat more than its time.
    pub(super) fn expire(&self, feed: &Inner<S>) -> Result<Option<Timestamp>, Error> {
        let has_age = self.journal.bounds().max_age.is_some();
        // An object that was emptied, and has no use for the feed, is left as it is.
        if feed.core.count() == 0 && (!has_age || self.journal.first_from(0)?.is_none()) {
            return Ok(None);
        }
        let newest = self.newest(feed)?;
        let expires = self.expires.get();
        if !has_age || expires.is_some_and(|expires| expires > feed.state.now()) {
            return Ok(expires);
        }
        if expires.is_some() || !newest.is_blank() {
            self.expires.set(self.journal.expire(&newest)?);
        }
        Ok(self.expires.get())
    }

    /// The newest event of the sequence; the ring is behind none then.
    fn newest(&self, feed: &Inner<S>) -> Result<Facts, Error> {
        Ok(self.follow(feed, self.journal.newest()?))
    }

    /// Brings the ring to where the sequence is. Where it did not follow it there, events are gone that were sent, or
    /// others were not sent: then everybody has to come back and ask.
    fn follow(&self, feed: &Inner<S>, newest: Newest) -> Facts {
        let position = newest.facts.position();
        if feed.core.position() == Some(position) && self.is_followed.get() {
            return newest.facts;
        }
        if self.is_followed.replace(true) {
            tracing::warn!(object = %feed.state.id(), "events of a feed are gone: a new epoch begins");
            feed.core.close_all();
            // The alarm may be gone as well.
            feed.armed.set(None);
            self.expires.set(None);
        }
        self.is_loaded.set(false);
        feed.core.load(position, []);
        newest.facts
    }

    /// Looks at the end of the turn whether what was kept is still there: a transaction around it may have been rolled
    /// back. Then sees to the alarm for what is too old.
    fn look_later(&self, feed: &Inner<S>) {
        let feed = Weak::clone(&feed.this);
        self.journal.look_later(async move |newest| {
            let Some(feed) = feed.upgrade() else { return };
            let Some(stored) = &feed.stored else { return };
            match newest {
                Ok(newest) => _ = stored.follow(&feed, newest),
                Err(error) => tracing::warn!(%error, "the history of a feed could not be read"),
            }
            feed.sent();
            if let Err(error) = stored.arm(&feed).await {
                stored.expires.set(None);
                tracing::warn!(%error, "no alarm is set for the old events of a feed");
            }
        });
    }

    /// Sets the alarm for the oldest event: where there was none before, and with the first event of an instance, in case
    /// that the settings are others. For events after that it is set when it comes.
    async fn arm(&self, feed: &Inner<S>) -> Result<(), Error> {
        if self.expires.get().is_some() || self.journal.bounds().max_age.is_none() {
            return Ok(());
        }
        self.expires.set(self.journal.due()?);
        match self.expires.get() {
            Some(expires) => feed.arm(expires).await,
            None => Ok(()),
        }
    }
}

/// These settings, with a history.
pub(super) fn with_history(settings: Settings) -> Settings {
    match settings.history {
        Some(_) => settings,
        None => settings.history(History::new()),
    }
}

/// An event as it is kept, and of what kind it is.
fn written(topics: &[Arc<str>], event: &Bytes) -> (u8, Bytes) {
    if topics.is_empty() {
        return (PLAIN, event.clone());
    }
    let topics: Vec<&str> = topics.iter().map(|topic| &**topic).collect();
    // JSON has no line end in a line.
    let mut row = serde_json::Value::from(topics).to_string().into_bytes();
    row.push(b'\n');
    row.extend_from_slice(event);
    (TOPICAL, row.into())
}

/// What [`written`] wrote, as one of this epoch.
fn read(kept: Kept, epoch: u64) -> Result<Recorded, Error> {
    let foreign = |why: &str| Error::new(ErrorKind::Platform, format!("{why} (number {})", kept.facts.seq));
    let row = Bytes::from(kept.bytes);
    let (topics, event) = match kept.facts.kind {
        PLAIN => (Vec::new(), row),
        TOPICAL => {
            let end = memchr::memchr(b'\n', &row).ok_or_else(|| foreign("its topics have no end"))?;
            let topics: Vec<Arc<str>> = serde_json::from_slice::<Vec<String>>(&row.slice(..end))
                .map_err(|_| foreign("its topics are no list of texts"))?
                .into_iter()
                .map(Arc::from)
                .collect();
            (topics, row.slice(end + 1..))
        }
        kind => return Err(foreign(&format!("nothing is known of the kind {kind}"))),
    };
    let position = Position::new(epoch, kept.facts.seq);
    let bytes = with_id(event, position).ok_or_else(|| foreign("it has no id"))?;
    Ok(Recorded { seq: kept.facts.seq, at: kept.facts.at, bytes, topics: topics.into() })
}

/// The event with this id: it has that of another epoch when one ended since.
fn with_id(event: Bytes, position: Position) -> Option<Bytes> {
    const LABEL: &[u8] = b"id: ";
    let mut at = 0;
    loop {
        let rest = event.get(at..)?;
        let end = memchr::memchr(b'\n', rest)?;
        if let Some(id) = rest.get(..end)?.strip_prefix(LABEL) {
            let wanted = position.to_string();
            if id == wanted.as_bytes() {
                return Some(event);
            }
            let head = event.get(..at + LABEL.len())?;
            return Some([head, wanted.as_bytes(), rest.get(end..)?].concat().into());
        }
        at += end + 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As a row of this number, which was written in this epoch.
    fn row(event: &Event, topics: &[&str], seq: u64, epoch: u64) -> (u8, Bytes) {
        let topics: Vec<Arc<str>> = topics.iter().map(|topic| Arc::from(*topic)).collect();
        written(&topics, &event.encode(Some(Position::new(epoch, seq))))
    }

    #[test]
    fn an_event_has_the_id_of_the_epoch_that_is_now() {
        let event = Event::named("id: 7").unwrap().comment("id: 1\nid: 2").data("id: 3\nid: 4");
        for data in [event, Event::new(), Event::from("x"), Event::new().retry(std::time::Duration::ZERO)] {
            let old = data.encode(Some(Position::new(35, 12)));
            let new = data.encode(Some(Position::new(1 << 40, 12)));
            assert_eq!(with_id(old.clone(), Position::new(35, 12)).unwrap(), old);
            assert_eq!(with_id(old, Position::new(1 << 40, 12)).unwrap(), new);
        }
        assert_eq!(with_id(Bytes::from("data: x\n\n"), Position::new(1, 1)), None);
    }

    #[test]
    fn topics_are_read_as_they_were_written() {
        let (kind, plain) = row(&Event::from("x"), &[], 1, 1);
        assert_eq!((kind, &plain[..]), (PLAIN, &b"id: 1-1\ndata: x\n\n"[..]));
        let (kind, topical) = row(&Event::from("x"), &["a\nb", "\"", ""], 1, 1);
        assert_eq!((kind, &topical[..]), (TOPICAL, &b"[\"a\\nb\",\"\\\"\",\"\"]\nid: 1-1\ndata: x\n\n"[..]));
    }
}
