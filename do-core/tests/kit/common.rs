//! A world of probes, which run the steps that requests bring.

use do_core::{
    Error, Namespace, Request, Stub,
    kit::{Builder, Kit},
    testing::Probe,
    tokio::HostStub,
};
use serde_json::Value;

pub(crate) fn builder() -> Builder {
    Kit::builder().object::<Probe<_>>("PROBE")
}

pub(crate) fn kit() -> Kit {
    builder().start().unwrap()
}

pub(crate) fn probe(kit: &Kit, name: &str) -> HostStub {
    kit.namespace("PROBE").unwrap().named(name).unwrap()
}

pub(crate) async fn ask(stub: &HostStub, steps: Value) -> Result<Vec<Value>, Error> {
    let request = Request::new(serde_json::to_vec(&steps).unwrap().into());
    stub.fetch(request).await?.into_body().json(1 << 20).await
}

/// What was noted, over all instances.
pub(crate) async fn lines(stub: &HostStub) -> Vec<String> {
    let log = ask(stub, serde_json::json!(["log"])).await.unwrap().remove(0);
    log.as_array().unwrap().iter().map(|line| line["line"].as_str().unwrap().to_owned()).collect()
}
