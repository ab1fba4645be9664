//! What do-ttl promises, on every host that is there, from one source.
//!
//! The kit and the tokio host are always there. workerd is when `DO_WORKERD` names its binary and `DO_WORKER_TTL_SUITE` a
//! folder with the suite's Worker. `cargo xtask contract --suite ttl` builds it and runs this with the same options:
//! `--host HOST`, `--full`, `--json`, `--list`, and parts of names.
//!
//! It has no test harness, because its report is the point: a line for each rule, a column for each host.

mod cases;
mod stores;

use contract_hosts::{Answer, Suite};
use do_core::{
    Request, kit,
    testing::{Case, Deployment, Difference, Driver},
    tokio::{Builder, HostEnv},
};
use do_ttl::TtlCache;
use std::process::ExitCode;
use ttl_suite::{TtlProbe, route};

enum Ttl {}

impl Suite for Ttl {
    const NAME: &'static str = "ttl";
    const COMMAND: &'static str = "cargo xtask contract --suite ttl";
    const WORKER: &'static str = "DO_WORKER_TTL_SUITE";
    const FENCE: &'static str = "/";

    fn cases<D: Driver>() -> Vec<Case<D>> {
        cases::all()
    }

    fn namespaces(_: Deployment) -> &'static [&'static str] {
        &["TTL", "CACHE"]
    }

    fn kit(builder: kit::Builder, _: Deployment) -> kit::Builder {
        builder.object::<TtlProbe<_>>("TTL").object::<TtlCache<_>>("CACHE")
    }

    fn host(builder: Builder, _: Deployment) -> Builder {
        builder.object::<TtlProbe<_>>("TTL").object::<TtlCache<_>>("CACHE")
    }

    fn route(request: Request, env: HostEnv) -> Answer {
        Box::pin(route(request, env))
    }

    fn differences() -> &'static [Difference] {
        cases::DIFFERENCES
    }
}

fn main() -> ExitCode {
    contract_hosts::run::<Ttl>()
}
