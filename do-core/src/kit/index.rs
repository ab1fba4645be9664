//! The index of alarms outside of the simulated process: what of it a crash keeps, and what a power failure.

use crate::{
    Error, ObjectName, Timestamp,
    engine::{AlarmIndex, ObjectKey},
};
use std::{cell::RefCell, collections::BTreeMap, rc::Rc};

pub(super) type Entries = BTreeMap<ObjectKey, (Option<ObjectName>, Timestamp)>;

/// See the [module](self). Entries may be earlier than the objects' own slots, never later (rule E17).
#[derive(Default)]
pub(super) struct Index {
    written: RefCell<Entries>,
    /// As it was when it was last synced, which an earlier time waits for and a later one does not.
    synced: RefCell<Entries>,
}

impl Index {
    pub(super) fn entries(&self) -> Entries {
        self.written.borrow().clone()
    }

    pub(super) fn lose_power(&self) {
        *self.written.borrow_mut() = self.synced.borrow().clone();
    }

    pub(super) fn forget_class(&self, class: u16) {
        self.written.borrow_mut().retain(|key, _| key.class != class);
        self.synced.borrow_mut().retain(|key, _| key.class != class);
    }
}

/// The engine's share of it.
pub(super) struct Port(pub(super) Rc<Index>);

impl AlarmIndex for Port {
    fn earlier(&self, key: &ObjectKey, name: Option<&ObjectName>, at: Timestamp) -> Result<(), Error> {
        let mut written = self.0.written.borrow_mut();
        let entry = written.entry(*key).or_insert_with(|| (None, at));
        entry.0 = name.cloned().or_else(|| entry.0.take());
        entry.1 = entry.1.min(at);
        *self.0.synced.borrow_mut() = written.clone();
        Ok(())
    }

    fn settle(&self, key: &ObjectKey, at: Option<Timestamp>) {
        let mut written = self.0.written.borrow_mut();
        match at {
            Some(at) => {
                if let Some(entry) = written.get_mut(key) {
                    entry.1 = at;
                }
            }
            None => drop(written.remove(key)),
        }
    }
}
