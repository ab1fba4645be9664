//! The cases, a file for each feature. A case's name begins with the rules that it shows.

mod broadcast;
mod credit;
mod following;
mod hibernation;
mod history;
mod inbound;
mod joining;
mod leaving;
mod members;
mod messages;
mod outbound;
mod primitives;

use do_core::testing::{Case, Difference, Driver};

/// All cases, in the order of the report.
pub(crate) fn all<D: Driver>() -> Vec<Case<D>> {
    let features = [
        joining::cases(),
        hibernation::cases(),
        broadcast::cases(),
        leaving::cases(),
        messages::cases(),
        history::cases(),
        following::cases(),
        outbound::cases(),
        credit::cases(),
        members::cases(),
        inbound::cases(),
        primitives::cases(),
    ];
    features.into_iter().flatten().collect()
}

/// Where hosts are meant to differ: what cases name in `differs` and `shows`.
pub(crate) const DIFFERENCES: &[Difference] = &[
    Difference::new("kit-reads", "clients that stop reading", &["D11b", "R4", "flaw1"])
        .in_workerd("What a client does not read fills the buffers of the operating system, then the runtime's.")
        .on_tokio("It fills the buffers of the operating system, then the outbox.")
        .in_kit(
            "A client of the suite has read whatever arrived: it never stops. `Client::stall` of the kit does, in \
             do-sync's own tests.",
        ),
    Difference::new("close-wait", "closes that are not answered", &["flaw10", "pain21"])
        .in_workerd("The socket stays closing for as long as the peer is connected, over evictions too.")
        .on_tokio("After ten seconds the connection ends, before an object that is idle leaves memory.")
        .in_kit("As tokio; but evictions take no time."),
    Difference::new("kit-wire", "connections that break the protocol", &["flaw15"])
        .in_workerd("The runtime ends them, and the object is told.")
        .on_tokio("The host ends them with 1002, and the object is told.")
        .in_kit("There is no wire: messages are whole. Connections are lost all the same."),
    Difference::new("rows-counted", "how rows are counted", &["history"])
        .in_workerd("Each statement tells how many rows it read and wrote, as they are billed.")
        .on_tokio("Rows are not counted: what would be billed is nobody's.")
        .in_kit("As tokio."),
];
