//! What is wrong with an object on purpose, to see that the checks see it.

use std::{cell::RefCell, collections::BTreeSet};

pub(crate) const NONE: u8 = 0;
/// It acknowledges before it writes.
pub(crate) const ACK_FIRST: u8 = 1;
/// It answers reads from a memory that outlives it.
pub(crate) const FROM_MEMORY: u8 = 2;
/// It awaits in the middle of what belongs together.
pub(crate) const TORN: u8 = 3;
/// What it sends passes by the output gate.
pub(crate) const NO_GATE: u8 = 4;
/// It runs its alarm when it is set.
pub(crate) const EARLY_ALARM: u8 = 5;
/// It handles every message twice.
pub(crate) const TWICE: u8 = 6;
/// It closes sockets and keeps no track of whom it told.
pub(crate) const DEAF: u8 = 7;
/// It keeps the last message back and handles the next one first.
pub(crate) const DISORDER: u8 = 8;
/// It sets its alarm again when it was deleted.
pub(crate) const UNDEAD_ALARM: u8 = 9;

thread_local! {
    /// What a process must not have: rows that it only has seen.
    static MEMORY: RefCell<BTreeSet<(u8, u32)>> = const { RefCell::new(BTreeSet::new()) };
    /// What leaves without the gate: whoever runs the test brings it.
    static LEAKS: RefCell<Vec<(u8, u32)>> = const { RefCell::new(Vec::new()) };
}

/// Texts, and which objects they come from.
pub(crate) fn leaks() -> Vec<(u8, u32)> {
    LEAKS.take()
}

pub(crate) fn forget() {
    MEMORY.take();
    LEAKS.take();
}

pub(crate) fn leak(object: u8, text: u32) {
    LEAKS.with_borrow_mut(|leaks| leaks.push((object, text)));
}

pub(crate) fn remember(object: u8, row: u32) {
    MEMORY.with_borrow_mut(|memory| memory.insert((object, row)));
}

pub(crate) fn remembered(object: u8) -> Vec<u32> {
    MEMORY.with_borrow(|memory| memory.iter().filter(|of| of.0 == object).map(|of| of.1).collect())
}
