use contract_hosts::{Answer, Page, Suite};
use do_core::{
    Request, kit,
    testing::{Case, Deployment, Difference, Driver, Probe, Topic, cases, differences, route, rules},
    tokio::{Builder, HostEnv},
};

/// The contract of `do_core::testing`, with its two deployments.
#[derive(Debug)]
pub(crate) enum Contract {}

impl Suite for Contract {
    const NAME: &'static str = "contract";
    const COMMAND: &'static str = "cargo xtask contract";
    const WORKER: &'static str = "DO_WORKER_CONTRACT";
    const WORKER_ABORT: Option<&'static str> = Some("DO_WORKER_CONTRACT_ABORT");
    const DEPLOYS: bool = true;
    const FENCE: &'static str = "/unique/PROBE/";
    const PAGE: Option<Page> = Some(crate::platform::write);

    fn cases<D: Driver>() -> Vec<Case<D>> {
        cases()
    }

    fn namespaces(deployment: Deployment) -> &'static [&'static str] {
        deployment.namespaces()
    }

    fn kit(builder: kit::Builder, deployment: Deployment) -> kit::Builder {
        let builder = builder.migrations(deployment.migrations()).var("DEPLOYMENT", deployment.name());
        deployment.namespaces().iter().fold(builder, |builder, name| builder.object::<Probe<_>>(*name))
    }

    fn host(builder: Builder, deployment: Deployment) -> Builder {
        let builder = builder.migrations(deployment.migrations()).var("DEPLOYMENT", deployment.name());
        deployment.namespaces().iter().fold(builder, |builder, name| builder.object::<Probe<_>>(*name))
    }

    fn route(request: Request, env: HostEnv) -> Answer {
        Box::pin(route(request, env))
    }

    fn differences() -> &'static [Difference] {
        differences()
    }

    fn topics(case: &'static str) -> Vec<&'static str> {
        Topic::of(case).iter().map(Topic::name).collect()
    }

    /// Rules; what has no number comes after them.
    fn lines() -> Vec<(&'static str, bool)> {
        rules().map(|rule| (rule.number, rule.treatment.is_kept())).collect()
    }
}
