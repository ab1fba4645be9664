//! The index of alarms outside of the simulated process: what of it a crash keeps, and what a power failure.

use crate::{
    Error, ObjectName, Timestamp,
    engine::{AlarmIndex, ObjectKey},
};
use std::{cell::RefCell, collections::BTreeMap, rc::Rc};

/// By the stable key of the namespace, and the object's id.
type Entries = BTreeMap<(String, [u8; 32]), (Option<ObjectName>, Timestamp)>;

/// See the [module](self). Entries may be earlier than the objects' own slots, never later (rule E17).
#[derive(Default)]
pub(super) struct Index {
    written: RefCell<Entries>,
    /// As it was when it was last synced, which an earlier time waits for and a later one does not.
    synced: RefCell<Entries>,
}

impl Index {
    /// The alarms of the namespaces with these keys, by their number in the list.
    pub(super) fn known(&self, keys: &[String]) -> Vec<(ObjectKey, Option<ObjectName>, Timestamp)> {
        let class = |key: &String| keys.iter().zip(0_u16..).find(|(k, _)| *k == key).map(|(_, class)| class);
        let entries = self.written.borrow();
        let known = entries.iter().filter_map(|((namespace, id), (name, at))| {
            Some((ObjectKey { class: class(namespace)?, id: *id }, name.clone(), *at))
        });
        known.collect()
    }

    pub(super) fn lose_power(&self) {
        *self.written.borrow_mut() = self.synced.borrow().clone();
    }

    pub(super) fn forget(&self, namespace: &str) {
        for entries in [&self.written, &self.synced] {
            entries.borrow_mut().retain(|(of, _), _| of != namespace);
        }
    }
}

/// An engine's share of it, with the keys of its classes.
pub(super) struct Port {
    pub(super) index: Rc<Index>,
    pub(super) keys: Rc<[String]>,
}

impl Port {
    fn key(&self, key: &ObjectKey) -> (String, [u8; 32]) {
        (self.keys.get(usize::from(key.class)).cloned().unwrap_or_default(), key.id)
    }
}

impl AlarmIndex for Port {
    fn earlier(&self, key: &ObjectKey, name: Option<&ObjectName>, at: Timestamp) -> Result<(), Error> {
        let mut written = self.index.written.borrow_mut();
        let entry = written.entry(self.key(key)).or_insert_with(|| (None, at));
        entry.0 = name.cloned().or_else(|| entry.0.take());
        entry.1 = entry.1.min(at);
        *self.index.synced.borrow_mut() = written.clone();
        Ok(())
    }

    fn settle(&self, key: &ObjectKey, at: Option<Timestamp>) {
        let mut written = self.index.written.borrow_mut();
        match at {
            Some(at) => {
                if let Some(entry) = written.get_mut(&self.key(key)) {
                    entry.1 = at;
                }
            }
            None => drop(written.remove(&self.key(key))),
        }
    }
}
