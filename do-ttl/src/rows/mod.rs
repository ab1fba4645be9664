//! The table of all stores of an object, and every statement on it.
//!
//! One table without row ids, clustered by store and key, and one index by expiry: a put writes a row in each of them and
//! reads none. What never expires is not in the index, whose condition each statement has to repeat. Values that would make
//! the tree's cells too large are in a table of their own, and triggers delete them there.
//!
//! The texts are constants, so that they are compiled once.

mod counts;
mod outbox;
mod range;
mod room;
mod row;
mod table;

pub(crate) use counts::Growth;
pub(crate) use outbox::{RowId, wait};
pub(crate) use range::Ranged;
pub(crate) use room::Taken;
pub(crate) use row::{Found, NewRow, Overdue};
pub(crate) use table::{INLINE_BYTES, Rows};
