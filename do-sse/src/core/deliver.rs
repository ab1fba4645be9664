//! Who is sent what.

use super::{Core, Info, Recorded, core::Inner, registry::Registry, ring::Ring};
use crate::{
    Event, Published, Settings,
    connection::{Connection, Entry, Kind, Shared},
    stats::Cause,
};
use bytes::Bytes;
use do_core::{BroadcastReport, Delivered, Error, ErrorKind, Timestamp, hold_output};
use std::{cell::RefCell, rc::Rc, sync::Arc};

/// An event on its way.
#[derive(Debug)]
pub(crate) struct Outgoing {
    pub(crate) bytes: Bytes,
    pub(crate) kind: Kind,
    pub(crate) key: Option<Arc<str>>,
}

type Filter<'a> = Box<dyn FnMut(&Info) -> bool + 'a>;

/// Who is addressed.
#[derive(Default)]
pub(crate) struct Target<'a> {
    /// Those who listen to any of these; everyone when there are none.
    pub(crate) topics: Vec<Arc<str>>,
    /// The only one, by id.
    pub(crate) only: Option<&'a str>,
    pub(crate) except: Vec<&'a str>,
    pub(crate) filter: Option<Filter<'a>>,
}

impl Target<'_> {
    /// Those who are addressed, but for the filter; `None` for all.
    fn listed(&self, registry: &Registry) -> Option<Vec<u64>> {
        let except =
            |serial: &u64| !registry.get(*serial).is_some_and(|e| self.except.contains(&&*e.info.id));
        match (self.only, &self.topics[..]) {
            (Some(id), _) => Some(registry.with_id(id).into_iter().filter(except).collect()),
            (None, []) if self.except.is_empty() && self.filter.is_none() => None,
            (None, []) => Some(registry.iter().map(|(serial, _)| serial).filter(except).collect()),
            (None, topics) => Some(registry.listening(topics).into_iter().filter(except).collect()),
        }
    }
}

impl Core {
    /// Puts an event into the queues of those who are addressed. Never waits; each connection's reader takes it when it
    /// comes to it.
    pub(crate) fn deliver(&self, outgoing: &Outgoing, target: Target<'_>, now: Timestamp) -> BroadcastReport {
        let chosen = self.choose(target);
        self.deliver_in(&mut self.inner(), outgoing, chosen, now)
    }

    /// Numbers an event, keeps it, and puts it into the queues of those who listen to any of the topics, or of everyone. All
    /// of it at once: who comes meanwhile gets it from the history or from here, and numbers come in their order.
    pub(crate) fn publish(
        &self,
        event: &Event,
        topics: Vec<Arc<str>>,
        now: Timestamp,
    ) -> Result<Published, Error> {
        let mut inner = self.inner();
        let position = inner.ring.as_ref().map(Ring::next).ok_or_else(without_history)?;
        let bytes = event.encode(Some(position));
        check_length(&bytes, &self.settings)?;
        let recorded = Recorded { seq: position.seq(), at: now, bytes, topics: topics.into() };
        Ok(Published { position, report: self.publish_in(&mut inner, recorded, now) })
    }

    /// [`publish`](Self::publish) of what was numbered and kept elsewhere.
    pub(crate) fn publish_recorded(&self, event: Recorded, now: Timestamp) -> BroadcastReport {
        self.publish_in(&mut self.inner(), event, now)
    }

    fn publish_in(&self, inner: &mut Inner, event: Recorded, now: Timestamp) -> BroadcastReport {
        let outgoing = Outgoing { bytes: event.bytes.clone(), kind: Kind::Numbered, key: None };
        let listening =
            (!event.topics.is_empty()).then(|| inner.registry.listening(&event.topics).into_iter().collect());
        if let Some(ring) = &mut inner.ring {
            ring.expire(now);
            ring.append(event);
        }
        self.deliver_in(inner, &outgoing, listening, now)
    }

    fn deliver_in(
        &self,
        inner: &mut Inner,
        outgoing: &Outgoing,
        chosen: Option<Vec<u64>>,
        now: Timestamp,
    ) -> BroadcastReport {
        let (ticket, held) = self.ticket(&mut inner.issued);
        let mut report = BroadcastReport::default();
        let mut ended: Vec<(u64, Cause)> = Vec::new();
        let (stats, limits) = (&mut inner.stats, &self.limits);
        stats.encoded += 1;
        let mut send = |serial: u64, entry: &mut super::registry::Entry| {
            let one = Entry {
                bytes: outgoing.bytes.clone(),
                kind: outgoing.kind,
                key: outgoing.key.clone(),
                ticket,
            };
            let pushed = entry.connection.push(one, held.is_none(), now, limits);
            report.count(pushed.delivered);
            stats.dropped += pushed.displaced + u64::from(pushed.delivered == Delivered::Dropped);
            stats.coalesced += u64::from(pushed.delivered == Delivered::Coalesced);
            if let Some(cause) = pushed.ended {
                ended.push((serial, cause));
            }
            if matches!(pushed.delivered, Delivered::Queued | Delivered::Coalesced) {
                stats.delivered += 1;
                entry.quiet_since = now;
                if let Some(held) = &held {
                    held.borrow_mut().push(Arc::clone(&entry.connection));
                }
            }
        };
        match chosen {
            None => inner.registry.iter_mut().for_each(|(serial, entry)| send(serial, entry)),
            Some(serials) => {
                for serial in serials {
                    if let Some(entry) = inner.registry.get_mut(serial) {
                        send(serial, entry);
                    }
                }
            }
        }
        for (serial, cause) in ended {
            inner.remove(serial, cause);
        }
        report
    }

    /// Those who are addressed; `None` for all. The application's filter is asked while nothing is locked: it may do
    /// anything.
    fn choose(&self, mut target: Target<'_>) -> Option<Vec<u64>> {
        let inner = self.inner();
        let listed = target.listed(&inner.registry);
        let (Some(filter), Some(serials)) = (&mut target.filter, &listed) else { return listed };
        let infos: Vec<(u64, Info)> = serials
            .iter()
            .filter_map(|serial| Some((*serial, inner.registry.get(*serial)?.info.clone())))
            .collect();
        drop(inner);
        Some(infos.into_iter().filter(|(_, info)| filter(info)).map(|(serial, _)| serial).collect())
    }

    /// The number of an output that is made now, and where to put those to be woken when it may leave, if not at once.
    pub(super) fn ticket(&self, issued: &mut u64) -> (u64, Option<Held>) {
        if !self.is_gated {
            return (0, None);
        }
        let next = *issued + 1;
        let held = Held::default();
        let waits = Waits { shared: Arc::clone(&self.shared), ticket: next, held: Rc::clone(&held) };
        let is_held = hold_output(move || waits.leave());
        if is_held {
            *issued = next;
            return (next, Some(held));
        }
        // Behind what is held, if anything is.
        (*issued, None)
    }
}

/// Why nothing can be published.
pub(crate) fn without_history() -> Error {
    Error::new(
        ErrorKind::Invalid,
        "this feed has no history: broadcast, or give it one by `Settings::history`",
    )
}

/// An event that the history cannot hold could never be resumed from.
pub(crate) fn check_length(bytes: &[u8], settings: &Settings) -> Result<(), Error> {
    let most = settings.history.as_ref().map_or(u64::MAX, |history| history.max_bytes);
    if bytes.len() as u64 <= most {
        return Ok(());
    }
    let message = format!("the event is {} bytes long, and the history holds {most}", bytes.len());
    Err(Error::new(ErrorKind::Limit, message))
}

/// Connections with something that may not leave yet.
pub(super) type Held = Rc<RefCell<Vec<Arc<Connection>>>>;

/// An output that may not leave yet. Dropped before it did, because the commit failed, it ends its connections: also those
/// that are in no registry any more, whose readers nobody else would tell.
struct Waits {
    shared: Arc<Shared>,
    ticket: u64,
    held: Held,
}

impl Waits {
    fn leave(self) {
        self.shared.release(self.ticket);
        self.held.take().iter().for_each(|connection| connection.wake());
    }
}

impl Drop for Waits {
    fn drop(&mut self) {
        self.held.take().iter().for_each(|connection| connection.give_up(self.ticket));
    }
}
