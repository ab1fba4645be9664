//! The contract: every case of `do_core::testing` on every host that is there, from one source.
//!
//! The hosts, the command line and the report are those of `contract-hosts`. workerd is there when `DO_WORKERD` names its
//! binary, `DO_WORKER_CONTRACT` a folder with the contract's Worker (`worker.capnp` beside what it names), built so that
//! panics unwind, and `DO_WORKER_CONTRACT_ABORT` one whose panics abort. `cargo xtask contract` builds what is asked for
//! and runs this with the same options.
//!
//! It has no test harness, because its report is the point: a line for each rule, a column for each host.

mod platform;
mod suite;

use std::process::ExitCode;

fn main() -> ExitCode {
    contract_hosts::run::<suite::Contract>()
}
