use super::store::Row;
use do_core::Timestamp;
use std::{
    cell::{Cell, OnceCell, RefCell},
    collections::{BTreeMap, BTreeSet},
};

/// What an instance knows of a room's members: who is there, so that it need not be read again for each who comes.
///
/// Empty in a fresh instance: sockets may have gone without an event (rule D25), so who is there is found out anew.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    known: RefCell<Option<Known>>,
    /// Somebody is waited for and no alarm is known to be set for it.
    unarmed: Cell<bool>,
    /// The numbers of sockets that were closed in an earlier instance and that the host takes for open.
    pub(super) revenants: OnceCell<Vec<u64>>,
}

/// As many as members are there.
#[derive(Debug, Default)]
struct Known {
    there: BTreeMap<String, Row>,
    /// Those who are waited for, by the time until which they are.
    awaited: BTreeSet<(Timestamp, String)>,
}

impl Known {
    fn set(&mut self, id: String, row: Option<Row>) {
        let until = row.as_ref().and_then(|row| row.gone);
        let before = match row {
            Some(row) => self.there.insert(id.clone(), row),
            None => self.there.remove(&id),
        };
        if let Some(until) = before.and_then(|row| row.gone) {
            self.awaited.remove(&(until, id.clone()));
        }
        if let Some(until) = until {
            self.awaited.insert((until, id));
        }
    }
}

impl Memory {
    pub(super) fn is_known(&self) -> bool {
        self.known.borrow().is_some()
    }

    /// The next use finds out anew.
    pub(super) fn forget(&self) {
        *self.known.borrow_mut() = None;
    }

    pub(super) fn load(&self) {
        *self.known.borrow_mut() = Some(Known::default());
    }

    /// What is known of a member from now on.
    pub(super) fn set(&self, id: String, row: Option<Row>) {
        if let Some(known) = self.known.borrow_mut().as_mut() {
            if row.as_ref().is_some_and(|row| row.gone.is_some()) {
                self.unarmed.set(true);
            }
            known.set(id, row);
        }
    }

    /// Looks at a member who is there.
    pub(super) fn row<T>(&self, id: &str, look: impl FnOnce(&Row) -> T) -> Option<T> {
        self.known.borrow().as_ref().and_then(|known| known.there.get(id)).map(look)
    }

    /// Looks at all, in the order of their ids; `None` when they are not known yet.
    pub(super) fn all<T>(&self, look: impl FnOnce(&BTreeMap<String, Row>) -> T) -> Option<T> {
        self.known.borrow().as_ref().map(|known| look(&known.there))
    }

    /// Those who are waited for no longer.
    pub(super) fn due(&self, now: Timestamp) -> Vec<String> {
        let known = self.known.borrow();
        let awaited = known.iter().flat_map(|known| &known.awaited);
        awaited.take_while(|(until, _)| *until <= now).map(|(_, id)| id.clone()).collect()
    }

    /// How many are waited for; `None` when that is not known, or when somebody is waited for no longer.
    pub(super) fn awaited(&self, now: Timestamp) -> Option<usize> {
        let known = self.known.borrow();
        let awaited = &known.as_ref()?.awaited;
        awaited.first().is_none_or(|(until, _)| *until > now).then_some(awaited.len())
    }

    /// Until when the first is waited for.
    pub(super) fn next(&self) -> Option<Timestamp> {
        self.known.borrow().as_ref().and_then(|known| known.awaited.first()).map(|(until, _)| *until)
    }

    pub(super) fn unarmed(&self) -> &Cell<bool> {
        &self.unarmed
    }
}
