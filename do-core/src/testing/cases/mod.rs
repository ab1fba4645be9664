//! The cases, a file for each section of the contract.

mod alarms;
mod bodies;
mod closing;
mod commits;
mod deploy;
mod failures;
mod first_event;
mod gated;
mod gates;
mod hibernation;
mod identity;
mod lifecycle;
mod panics;
mod resets;
mod schedule;
mod sockets;
mod sql;
mod told;
mod wire;

use super::{case::Case, driver::Driver};

/// All cases, in the order of the rules.
pub fn cases<D: Driver>() -> Vec<Case<D>> {
    let areas = [
        identity::cases(),
        lifecycle::cases(),
        failures::cases(),
        gated::cases(),
        resets::cases(),
        bodies::cases(),
        gates::cases(),
        commits::cases(),
        sockets::cases(),
        wire::cases(),
        closing::cases(),
        hibernation::cases(),
        alarms::cases(),
        first_event::cases(),
        schedule::cases(),
        sql::cases(),
        panics::cases(),
        deploy::cases(),
    ];
    areas.into_iter().flatten().collect()
}
