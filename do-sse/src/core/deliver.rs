//! Who is sent what.

use super::{Core, Info, registry::Registry};
use crate::{
    connection::{Connection, Entry, Kind},
    stats::Cause,
};
use bytes::Bytes;
use do_core::{BroadcastReport, Delivered, Timestamp, hold_output};
use std::{cell::RefCell, rc::Rc, sync::Arc};

/// An event on its way.
#[derive(Debug)]
pub(crate) struct Outgoing {
    pub(crate) bytes: Bytes,
    pub(crate) kind: Kind,
    pub(crate) key: Option<Arc<str>>,
}

/// Who is addressed.
#[derive(Default)]
pub(crate) struct Target<'a> {
    /// Those who listen to any of these; everyone when there are none.
    pub(crate) topics: Vec<Arc<str>>,
    /// The only one, by id.
    pub(crate) only: Option<&'a str>,
    pub(crate) except: Vec<&'a str>,
    pub(crate) filter: Option<Box<dyn FnMut(&Info) -> bool + 'a>>,
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
        let mut inner = self.inner();
        let inner = &mut *inner;
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
            let pushed = entry.connection.push(one, now, limits);
            report.count(pushed.delivered);
            stats.dropped += pushed.displaced + u64::from(pushed.delivered == Delivered::Dropped);
            stats.coalesced += u64::from(pushed.delivered == Delivered::Coalesced);
            if let Some(cause) = pushed.ended {
                ended.push((serial, cause));
            }
            if matches!(pushed.delivered, Delivered::Queued | Delivered::Coalesced) {
                stats.delivered += 1;
                entry.quiet_since = now;
                match &held {
                    Some(held) => held.borrow_mut().push(Arc::clone(&entry.connection)),
                    None => entry.connection.wake(),
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
        let next = *issued + 1;
        let held = Held::default();
        let (shared, woken) = (Arc::clone(&self.shared), Rc::clone(&held));
        let is_held = hold_output(move || {
            shared.release(next);
            woken.take().iter().for_each(|connection| connection.wake());
        });
        if is_held {
            *issued = next;
            return (next, Some(held));
        }
        // Behind what is held, if anything is.
        (*issued, None)
    }
}

/// Connections with something that may not leave yet.
pub(super) type Held = Rc<RefCell<Vec<Arc<Connection>>>>;
