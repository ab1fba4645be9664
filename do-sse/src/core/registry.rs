use crate::connection::Connection;
use do_core::Timestamp;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// A connection as filters and lists see it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Info {
    /// Its id.
    pub id: Arc<str>,
    /// What it listens to beside what goes to everyone.
    pub topics: Arc<[Arc<str>]>,
    /// Since when it is open.
    pub since: Timestamp,
}

/// A connection in the registry.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) connection: Arc<Connection>,
    pub(super) info: Info,
    /// When it is old enough.
    pub(super) ends: Option<Timestamp>,
    /// When it was last sent something.
    pub(super) quiet_since: Timestamp,
}

/// The open connections by number, by id and by topic. Everything is iterated in the order of numbers, which is that of
/// their coming.
#[derive(Debug, Default)]
pub(super) struct Registry {
    last: u64,
    entries: BTreeMap<u64, Entry>,
    ids: BTreeMap<Arc<str>, BTreeSet<u64>>,
    topics: BTreeMap<Arc<str>, BTreeSet<u64>>,
}

impl Registry {
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// A number that was never given before.
    pub(super) fn next(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    pub(super) fn insert(&mut self, serial: u64, entry: Entry) {
        self.ids.entry(Arc::clone(&entry.info.id)).or_default().insert(serial);
        for topic in &*entry.info.topics {
            self.topics.entry(Arc::clone(topic)).or_default().insert(serial);
        }
        self.entries.insert(serial, entry);
    }

    /// Removes one: whoever gets it is the one who removed it.
    pub(super) fn remove(&mut self, serial: u64) -> Option<Entry> {
        let entry = self.entries.remove(&serial)?;
        forget(&mut self.ids, &entry.info.id, serial);
        for topic in &*entry.info.topics {
            forget(&mut self.topics, topic, serial);
        }
        Some(entry)
    }

    pub(super) fn with_id(&self, id: &str) -> Vec<u64> {
        self.ids.get(id).into_iter().flatten().copied().collect()
    }

    pub(super) fn has_id(&self, id: &str) -> bool {
        self.ids.contains_key(id)
    }

    /// Those who listen to any of the topics, each once.
    pub(super) fn listening(&self, topics: &[Arc<str>]) -> BTreeSet<u64> {
        topics.iter().filter_map(|topic| self.topics.get(topic)).flatten().copied().collect()
    }

    pub(super) fn get(&self, serial: u64) -> Option<&Entry> {
        self.entries.get(&serial)
    }

    pub(super) fn get_mut(&mut self, serial: u64) -> Option<&mut Entry> {
        self.entries.get_mut(&serial)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, &Entry)> {
        self.entries.iter().map(|(serial, entry)| (*serial, entry))
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (u64, &mut Entry)> {
        self.entries.iter_mut().map(|(serial, entry)| (*serial, entry))
    }
}

fn forget(index: &mut BTreeMap<Arc<str>, BTreeSet<u64>>, name: &Arc<str>, serial: u64) {
    if let Some(serials) = index.get_mut(name) {
        serials.remove(&serial);
        if serials.is_empty() {
            index.remove(name);
        }
    }
}
