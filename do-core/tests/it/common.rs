//! A host over a temporary directory with a clock that stands still, and the calls that tests make.

use do_core::{
    Body, DurableObject, Error, Namespace, ObjectName, Request, Response, Stub, Timestamp,
    testing::Probe,
    tokio::{Builder, Host, HostNamespace, HostState, HostStub, ManualClock},
};
use serde_json::Value;
use std::{future::Future, time::Duration};
use tempfile::TempDir;
use tokio::task::JoinHandle;

/// When tests begin.
pub(crate) const START: i64 = 1_800_000_000_000;

pub(crate) struct Rig {
    host: Option<Host>,
    pub(crate) clock: ManualClock,
    pub(crate) dir: TempDir,
    more: fn(Builder) -> Builder,
}

impl Rig {
    /// One shard, so that what happens in several objects has an order.
    pub(crate) fn new() -> Self {
        Self::with(|builder| builder)
    }

    /// With further settings.
    pub(crate) fn with(more: fn(Builder) -> Builder) -> Self {
        let clock = ManualClock::at(Timestamp::from_millis(START));
        let mut rig = Self { host: None, clock, dir: tempfile::tempdir().unwrap(), more };
        rig.start();
        rig
    }

    /// With one more class.
    pub(crate) fn with_class<O: DurableObject<HostState>>() -> Self {
        Self::with(|builder| builder.object::<O>("OTHER"))
    }

    pub(crate) fn start(&mut self) {
        let builder = Host::builder(self.dir.path()).clock(self.clock.clone()).shards(1);
        let builder = (self.more)(builder.object::<Probe<_>>("PROBE"));
        self.host = Some(builder.start().unwrap());
    }

    pub(crate) fn host(&self) -> &Host {
        self.host.as_ref().unwrap()
    }

    /// As a kill does, as far as a process can do it to itself.
    pub(crate) fn stop(&mut self) {
        self.host = None;
    }

    pub(crate) async fn shut_down(&mut self) {
        let host = self.host.take().unwrap();
        soon(host.shutdown(Duration::from_secs(5))).await.unwrap();
    }

    pub(crate) fn namespace(&self, name: &str) -> HostNamespace {
        self.host().namespace(name).unwrap()
    }

    pub(crate) fn stub(&self, name: &str) -> HostStub {
        self.namespace("PROBE").named(name).unwrap()
    }

    /// Runs steps in an object.
    pub(crate) async fn run(&self, name: &str, steps: Value) -> Result<Value, Error> {
        ask(&self.stub(name), steps).await
    }

    /// The same, for what must succeed; the value of the last step.
    pub(crate) async fn last(&self, name: &str, steps: Value) -> Value {
        let mut all = self.run(name, steps).await.unwrap();
        all.as_array_mut().unwrap().pop().unwrap()
    }

    /// The request is on its way when this returns.
    pub(crate) fn begin(&self, name: &str, steps: Value) -> JoinHandle<Result<Value, Error>> {
        begin(&self.stub(name), steps)
    }

    pub(crate) async fn why_awake(&self, name: &str) -> Option<Vec<&'static str>> {
        let namespace = self.namespace("PROBE");
        let id = namespace.id_of(&ObjectName::new(name).unwrap()).unwrap();
        soon(namespace.why_awake(&id)).await.unwrap()
    }

    pub(crate) async fn is_awake(&self, name: &str) -> bool {
        self.why_awake(name).await.is_some()
    }

    /// Virtual ms since the start of the test.
    pub(crate) fn clock_ms(&self) -> u128 {
        use do_core::tokio::Clock;
        self.clock.elapsed().as_millis()
    }

    /// Returns when what was asked for and what it asked for in turn has happened.
    pub(crate) async fn settle(&self) {
        for _ in 0..4 {
            self.why_awake("nobody").await;
        }
    }

    /// Lets happen what is under way, moves the time, and lets happen what is due then.
    pub(crate) async fn pass(&self, ms: u64) {
        self.pass_in_steps(ms, ms).await;
    }

    /// The same in many small steps, as real time has them.
    pub(crate) async fn pass_in_steps(&self, ms: u64, step: u64) {
        self.settle().await;
        let mut left = ms;
        while left > 0 {
            let now = step.min(left);
            self.clock.advance(Duration::from_millis(now));
            self.settle().await;
            left -= now;
        }
    }
}

pub(crate) fn request(steps: &Value) -> Request {
    http::Request::post("http://probe/").body(Body::from(serde_json::to_vec(steps).unwrap())).unwrap()
}

pub(crate) async fn ask<T: Stub>(stub: &T, steps: Value) -> Result<Value, Error> {
    read(soon(stub.fetch(request(&steps))).await).await
}

#[allow(clippy::needless_pass_by_value)] // so that `json!` can stand in the call
pub(crate) fn begin<T: Stub>(stub: &T, steps: Value) -> JoinHandle<Result<Value, Error>> {
    let call = stub.fetch(request(&steps));
    tokio::spawn(async move { read(soon(call).await).await })
}

async fn read(response: Result<Response, Error>) -> Result<Value, Error> {
    soon(response?.into_body().json(1 << 20)).await
}

/// The test fails instead of hanging.
pub(crate) async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), future).await.expect("nothing came within 20 s")
}

/// What a begun request gave.
pub(crate) async fn join<T>(handle: JoinHandle<T>) -> T {
    soon(handle).await.unwrap()
}
