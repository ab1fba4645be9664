//! The last turn that was seen, until another one shows whether it was kept: what is there then has to follow from it.

use crate::{
    lab::{self, Kept, Seen, Slot, Table},
    model::{self, Owed},
    ops::{STORES, Setup},
};

#[derive(Debug, Default)]
pub(crate) struct Last {
    pub(crate) number: u32,
    /// All that is seen in one is committed together.
    poll: u32,
    /// What it left.
    kept: Table,
    /// What it may have begun with. Not what it found: a sweep may have run before, in the same turn.
    undone: Vec<Table>,
    /// What was gone of those when it looked. If the turn is undone it may be there again.
    gone: Vec<(Slot, Kept)>,
    /// Who is to be told of those, and may have to be.
    owed: Vec<Owed>,
    maybe_owed: Vec<Owed>,
    /// Who is to be told of what its calls did.
    owed_for_calls: Vec<Owed>,
}

/// What is known once another turn was seen.
#[derive(Debug, Default)]
pub(crate) struct Settled {
    /// The turn, if it was not kept.
    pub(crate) undone: Option<u32>,
    pub(crate) owed: Vec<Owed>,
    pub(crate) maybe_owed: Vec<Owed>,
}

impl Last {
    /// By its calls, which are not in a transaction that was undone.
    pub(crate) fn owe(&mut self, owed: Vec<Owed>) {
        self.owed_for_calls.extend(owed);
    }

    pub(crate) fn left(&mut self, table: &Table) {
        self.kept.clone_from(table);
    }

    /// Something that it left does.
    pub(crate) fn expires(&self) -> bool {
        self.kept.values().any(|row| row.expires.is_some())
    }

    /// Certainly, and perhaps, by what it found.
    pub(crate) fn found_to_be_owed(&self) -> [&[Owed]; 2] {
        [&self.owed, &self.maybe_owed]
    }

    pub(crate) fn followed_by(
        self,
        setup: &Setup,
        seen: &Seen,
        is_answered: bool,
    ) -> Result<(Self, Settled), String> {
        let is_same_turn = self.poll == seen.poll;
        let is_kept = seen.follows(&self.kept, &[]);
        let mut left = Vec::from_iter(is_kept.then(|| self.kept.clone()));
        // Nobody can tell whether a turn was lost that wrote only what was swept meanwhile.
        if !(is_same_turn || is_kept && is_answered) {
            left.extend(self.undone.iter().filter(|left| seen.follows(left, &self.gone)).cloned());
        }
        left.dedup();
        if left.is_empty() {
            return Err(format!(
                "lost: a turn at {} finds {:?}, swept up to {:?}, but left was {self:?}",
                seen.now, seen.before, seen.swept
            ));
        }
        let is_certain = left.len() == 1;
        let mut next = self.found(setup, seen, &left);
        if is_same_turn {
            next.undone = self.undone;
            next.gone.extend(self.gone);
            next.owed.extend(self.owed);
            next.maybe_owed.extend(self.maybe_owed);
            next.owed_for_calls = self.owed_for_calls;
            return Ok((next, Settled::default()));
        }
        next.undone = left;
        let settled = self.settled(seen, is_kept, is_certain);
        Ok((next, settled))
    }

    /// The turn that finds one of these, less what is gone by now.
    fn found(&self, setup: &Setup, seen: &Seen, left: &[Table]) -> Self {
        let mut next = Self { number: seen.number, poll: seen.poll, ..Self::default() };
        for (slot, row) in left.iter().flatten().filter(|(slot, _)| !seen.before.contains_key(*slot)) {
            let gone = (slot.clone(), row.clone());
            let store = (0..STORES).find(|n| lab::store_name(*n) == slot.0).unwrap_or(0);
            if setup.stores[store].notify && !self.gone.contains(&gone) {
                let is_cleared = seen.going.contains(&(slot.clone(), row.version));
                let is_owed = left.len() == 1 && !is_cleared;
                let owed = if is_owed { &mut next.owed } else { &mut next.maybe_owed };
                owed.push(Owed { slot: slot.clone(), row: row.clone(), is_evicted: false });
            }
            next.gone.push(gone);
        }
        next
    }

    /// Less what came back when it was undone.
    fn settled(self, seen: &Seen, is_kept: bool, is_certain: bool) -> Settled {
        let is_gone = |owed: &Owed| seen.before.get(&owed.slot) != Some(&owed.row);
        let mut settled = Settled {
            undone: (!is_kept).then_some(self.number),
            owed: self.owed.into_iter().filter(is_gone).collect(),
            maybe_owed: self.maybe_owed.into_iter().filter(is_gone).collect(),
        };
        if is_kept {
            let owed = if is_certain { &mut settled.owed } else { &mut settled.maybe_owed };
            owed.extend(self.owed_for_calls);
        }
        settled
    }
}

impl Seen {
    /// What it found is what was left, less what is gone, then or by now.
    fn follows(&self, left: &Table, gone: &[(Slot, Kept)]) -> bool {
        let is_gone = |slot: &Slot, row: &Kept| {
            let was_gone = gone.iter().any(|(other, gone)| (other, gone) == (slot, row));
            let is_cleared = self.going.contains(&(slot.clone(), row.version));
            let is_swept = self.swept.is_some_and(|now| !model::is_live(row, now));
            !self.before.contains_key(slot) && (was_gone || is_cleared || is_swept)
        };
        self.before.iter().all(|(slot, row)| left.get(slot) == Some(row))
            && left.iter().all(|(slot, row)| self.before.get(slot) == Some(row) || is_gone(slot, row))
    }
}
