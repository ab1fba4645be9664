//! The cases, a file for each feature. A case's name begins with the rules that it shows: `t` and `goal` are the numbers of
//! the notes on stores that expire, `c`, `e` and `f` those of the contract.

mod basic;
mod cache;
mod costs;
mod kept;
mod limits;
mod list;
mod load;
mod many;
mod sweep;
mod times;

use do_core::testing::{Case, Difference, Driver};

/// All cases, in the order of the report.
pub(crate) fn all<D: Driver>() -> Vec<Case<D>> {
    let features = [
        basic::cases(),
        times::cases(),
        kept::cases(),
        costs::cases(),
        many::cases(),
        list::cases(),
        load::cases(),
        limits::cases(),
        sweep::cases(),
        cache::cases(),
    ];
    features.into_iter().flatten().collect()
}

/// Where hosts are meant to differ: what cases name in `differs` and `shows`.
pub(crate) const DIFFERENCES: &[Difference] =
    &[Difference::new("rows-counted", "how rows are counted", &["t1", "t2", "t3", "goal2"])
        .in_workerd("Each statement tells how many rows it read and wrote, as they are billed.")
        .on_tokio("Rows are not counted: what would be billed is nobody's.")
        .in_kit("As tokio.")];
