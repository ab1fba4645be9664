//! The cases, a file for each feature. A case's name begins with the rules that it shows: `s` and `flaw` are the numbers of
//! the notes on fan-out, `b` and `c` those of the contract, `w` and `o` those of what clients do.

mod beats;
mod leaving;
mod opening;
mod order;
mod registry;
mod resume;
mod sending;
mod slow;
mod stored;

use do_core::testing::{Case, Difference, Driver};

/// All cases, in the order of the report.
pub(crate) fn all<D: Driver>() -> Vec<Case<D>> {
    let features = [
        opening::cases(),
        sending::cases(),
        order::cases(),
        leaving::cases(),
        slow::cases(),
        registry::cases(),
        beats::cases(),
        resume::cases(),
        stored::cases(),
    ];
    features.into_iter().flatten().collect()
}

/// Where hosts are meant to differ: what cases name in `differs` and `shows`.
pub(crate) const DIFFERENCES: &[Difference] = &[
    Difference::new("client-gone", "when a client is known to be gone", &["b17"])
        .in_workerd(
            "A client that closes its connection is noticed with the first write after it, which still succeeds: the next \
             heartbeat at the latest. One that resets it is noticed at once.",
        )
        .on_tokio("As workerd.")
        .in_kit("There is no connection: who drops the response is gone at once."),
    Difference::new("many-clients", "a thousand clients at a time", &["resume", "stored"])
        .in_workerd("A hundred are enough to be held to the same: a thousand take minutes.")
        .on_tokio("A thousand.")
        .in_kit("A thousand."),
    Difference::new("rows-counted", "how rows are counted", &["flaw13", "stored"])
        .in_workerd("Each statement tells how many rows it read and wrote, as they are billed.")
        .on_tokio("Rows are not counted: what would be billed is nobody's.")
        .in_kit("As tokio."),
];
