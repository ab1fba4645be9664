//! Who is sent what.

use super::{Core, Info};
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
    fn has(&mut self, info: &Info) -> bool {
        !self.except.contains(&&*info.id) && self.filter.as_mut().is_none_or(|filter| filter(info))
    }
}

impl Core {
    /// Puts an event into the queues of those who are addressed. Never waits; each connection's reader takes it when it
    /// comes to it.
    pub(crate) fn deliver(
        &self,
        outgoing: &Outgoing,
        mut target: Target<'_>,
        now: Timestamp,
    ) -> BroadcastReport {
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
        if target.topics.is_empty() && target.only.is_none() {
            for (serial, entry) in inner.registry.iter_mut() {
                if target.has(&entry.info) {
                    send(serial, entry);
                }
            }
        } else {
            let serials: Vec<u64> = match target.only {
                Some(id) => inner.registry.with_id(id),
                None => inner.registry.listening(&target.topics).into_iter().collect(),
            };
            for serial in serials {
                if let Some(entry) = inner.registry.get_mut(serial)
                    && target.has(&entry.info)
                {
                    send(serial, entry);
                }
            }
        }
        for (serial, cause) in ended {
            inner.remove(serial, cause);
        }
        report
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
