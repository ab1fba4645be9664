//! What time brings: heartbeats, ages, readers that stand still.

use super::core::{Core, Inner};
use crate::{
    Settings,
    connection::{Entry, Kind},
    event::BEAT,
    stats::Cause,
};
use bytes::Bytes;
use do_core::{Delivered, Timestamp};
use std::time::Duration;

impl Core {
    /// Does what is due. When it is to be called again; `None` when nobody is there.
    pub(crate) fn tick(&self, now: Timestamp) -> Option<Timestamp> {
        let mut inner = self.inner();
        let inner = &mut *inner;
        let soon = now + slack(self.settings.heartbeat);
        let mut ended = Vec::new();
        for (serial, entry) in inner.registry.iter_mut() {
            if let Some(cause) = entry.connection.end_if_stalled(now, self.settings.stall) {
                ended.push((serial, cause));
            } else if entry.ends.is_some_and(|ends| ends <= now) {
                ended.push((serial, Cause::Aged));
            } else if entry.quiet_since + self.settings.heartbeat <= soon {
                let beat = Entry { bytes: Bytes::from_static(BEAT), kind: Kind::Beat, key: None, ticket: 0 };
                let pushed = entry.connection.push(beat, true, now, &self.limits);
                entry.quiet_since = now;
                inner.stats.beats += u64::from(pushed.delivered == Delivered::Queued);
            }
        }
        for (serial, cause) in ended {
            if let Some(entry) = inner.remove(serial, cause) {
                inner.drain(&entry.connection, 0); // nothing, for one that stood still
            }
        }
        let draining = inner.look_at_draining(now, self.settings.stall);
        due(inner, &self.settings).into_iter().chain(draining).min()
    }
}

/// Those that would be due so soon are done together.
fn slack(heartbeat: Duration) -> Duration {
    heartbeat / 5
}

fn due(inner: &Inner, settings: &Settings) -> Option<Timestamp> {
    let connections = inner.registry.iter().flat_map(|(_, entry)| {
        let beat = Some(entry.quiet_since + settings.heartbeat);
        [beat, entry.ends, entry.connection.stalls_at(settings.stall)].into_iter().flatten()
    });
    connections.min()
}
