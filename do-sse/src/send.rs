//! Sending, the same for feeds and hubs.

use crate::{
    Event, Info,
    connection::Kind,
    core::{Core, Outgoing, Target},
};
use do_core::{BroadcastReport, Error, ErrorKind, Position, Timestamp};
use std::{fmt, sync::Arc};

/// What sends.
pub(crate) trait Sender {
    fn core(&self) -> &Core;
    fn now(&self) -> Timestamp;

    /// Numbers an event, keeps it and sends it.
    fn publish(&self, event: &Event, topics: Vec<Arc<str>>) -> Result<Published, Error> {
        self.core().publish(event, topics, self.now())
    }

    /// Called when something was sent: some may have gone by it.
    fn sent(&self) {}
}

/// An event on its way to some connections. Made by `broadcast`; nothing is sent before [`send`](Self::send).
#[must_use = "nothing is sent before `send`"]
pub struct Broadcast<'a> {
    sender: &'a dyn Sender,
    event: Event,
    key: Option<Arc<str>>,
    target: Target<'a>,
}

impl<'a> Broadcast<'a> {
    pub(crate) fn new(sender: &'a dyn Sender, event: Event) -> Self {
        Self { sender, event, key: None, target: Target::default() }
    }

    /// Only to those who listen to this topic, or to any of several. Without it, to everyone.
    pub fn to(mut self, topic: impl Into<Arc<str>>) -> Self {
        self.target.topics.push(topic.into());
        self
    }

    /// Not to connections with this id; or several.
    pub fn except(mut self, id: &'a str) -> Self {
        self.target.except.push(id);
        self
    }

    /// Only to those of whom this is true.
    pub fn filter(mut self, filter: impl FnMut(&Info) -> bool + 'a) -> Self {
        self.target.filter = Some(Box::new(filter));
        self
    }

    /// Of what has the same key only the latest waits, by [`OnFull::LatestPerKey`](crate::OnFull::LatestPerKey).
    pub fn key(mut self, key: impl Into<Arc<str>>) -> Self {
        self.key = Some(key.into());
        self
    }

    pub(crate) fn only(mut self, id: &'a str) -> Self {
        self.target.only = Some(id);
        self
    }

    /// Sends it. The event is encoded once. One with an id is of a sequence that the application has, from which clients
    /// resume: it is never left out, as published ones are not.
    #[allow(clippy::must_use_candidate)] // the report is for those who want it
    pub fn send(self) -> BroadcastReport {
        let kind = if self.event.has_id() { Kind::Numbered } else { Kind::Plain };
        let outgoing = Outgoing { bytes: self.event.encode(None), kind, key: self.key };
        let report = self.sender.core().deliver(&outgoing, self.target, self.sender.now());
        self.sender.sent();
        report
    }
}

impl fmt::Debug for Broadcast<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Broadcast").field("event", &self.event).finish_non_exhaustive()
    }
}

/// An event that is to be numbered and kept. Made by `publishing`; nothing happens before [`send`](Self::send).
#[must_use = "nothing happens before `send`"]
pub struct Publication<'a> {
    sender: &'a dyn Sender,
    event: Event,
    topics: Vec<Arc<str>>,
}

impl<'a> Publication<'a> {
    pub(crate) fn new(sender: &'a dyn Sender, event: Event) -> Self {
        Self { sender, event, topics: Vec::new() }
    }

    /// Only to those who listen to this topic, or to any of several, now and when they resume. Without it, to everyone.
    pub fn to(mut self, topic: impl Into<Arc<str>>) -> Self {
        self.topics.push(topic.into());
        self
    }

    /// Numbers it, keeps it, and sends it with its position as id.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] when the feed has no history, or the event an id of its own; [`ErrorKind::Limit`] when it is
    /// longer than all that the history holds. Nothing has happened then.
    pub fn send(self) -> Result<Published, Error> {
        if self.event.has_id() {
            let message = "a published event gets its position as id, and cannot have another one";
            return Err(Error::new(ErrorKind::Invalid, message));
        }
        let published = self.sender.publish(&self.event, self.topics)?;
        self.sender.sent();
        Ok(published)
    }
}

impl fmt::Debug for Publication<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Publication").field("event", &self.event).finish_non_exhaustive()
    }
}

/// What became of a published event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Published {
    /// Its place in the sequence, which clients have as its id.
    pub position: Position,
    /// What became of it for those who are there.
    pub report: BroadcastReport,
}
