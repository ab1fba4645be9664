//! The tokio host behind real sockets, with a clock that stands still until a case moves it.

use crate::{exchange::Http, runner::Kind, web};
use do_core::{
    Env, Namespace, ObjectName, Timestamp, limits,
    testing::{Deployment, Driver, Fault, Head, HostKind, Notices, Opened, Outcome, PanicCost, Probe, route},
    tokio::{Clock, Host, ManualClock},
};
use std::{net::SocketAddr, sync::Mutex, time::Duration};
use tempfile::TempDir;
use tokio::net::TcpListener;

/// The largest step in which time passes: what comes due on the way happens before what comes due later.
const STEP: Duration = Duration::from_millis(10);

/// The most steps of one advance: hours take longer ones.
const STEPS: u32 = 5_000;

/// A host for each case: it costs next to nothing, and time is its own.
pub(crate) struct Tokio;

pub(crate) struct Native {
    dir: TempDir,
    clock: ManualClock,
    deployment: Mutex<Deployment>,
    host: Mutex<Option<(Host, SocketAddr)>>,
}

impl Kind for Tokio {
    type Driver = Native;
    type Shared = ();

    fn name(&self) -> &'static str {
        "tokio"
    }

    fn kind(&self) -> HostKind {
        HostKind::Tokio
    }

    fn panic_cost(&self) -> PanicCost {
        PanicCost::Object
    }

    fn is_real_time(&self) -> bool {
        false
    }

    fn at_once(&self) -> usize {
        4
    }

    async fn shared(&self) -> Result<(), Fault> {
        Ok(())
    }

    async fn driver(&self, _shared: Option<&()>) -> Result<Native, Fault> {
        let clock = ManualClock::at(Timestamp::from_millis(1_800_000_000_000));
        let (dir, deployment) = (tempfile::tempdir()?, Mutex::new(Deployment::First));
        let native = Native { dir, clock, deployment, host: Mutex::new(None) };
        native.start().await?;
        Ok(native)
    }

    fn said(&self, _driver: &Native) -> String {
        String::new()
    }

    async fn stop(&self, driver: Native) {
        drop(driver);
    }

    async fn stop_shared(&self, _shared: ()) {}
}

impl Native {
    async fn start(&self) -> Outcome {
        let deployment = *self.deployment.lock().unwrap();
        let builder = Host::builder(self.dir.path())
            .clock(self.clock.clone())
            .shards(1)
            .local_sql_limits()
            .var("DEPLOYMENT", deployment.name())
            .migrations(deployment.migrations());
        let namespaces = deployment.namespaces().iter();
        let host = namespaces.fold(builder, |builder, name| builder.object::<Probe<_>>(*name)).start()?;
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        host.serve(listener, route);
        *self.host.lock().unwrap() = Some((host, address));
        Ok(())
    }

    fn address(&self) -> SocketAddr {
        self.host.lock().unwrap().as_ref().unwrap().1
    }

    /// Returns when what was asked for, and what it asked for in turn, has happened.
    async fn settle(&self) -> Outcome {
        let objects = self.host.lock().unwrap().as_ref().unwrap().0.env().namespace("PROBE")?;
        let nobody = objects.id_of(&ObjectName::new("nobody")?)?;
        for _ in 0..4 {
            objects.why_awake(&nobody).await?;
        }
        Ok(())
    }
}

impl Driver for Native {
    type Client = web::Socket;
    type Exchange = Http;

    fn kind(&self) -> HostKind {
        HostKind::Tokio
    }

    async fn post(&self, path: &str, body: Vec<u8>) -> Result<(u16, Vec<u8>), Fault> {
        web::post(self.address(), path, body).await
    }

    async fn begin(&self, head: Head) -> Result<Http, Fault> {
        Http::begin(self.address(), head).await
    }

    async fn open(&self, path: &str) -> Result<Opened<web::Socket>, Fault> {
        web::Socket::open(self.address(), path).await
    }

    async fn advance(&self, by: Duration) -> Outcome {
        // Another connection's request is behind those that are on their way already, nearly always.
        web::post(self.address(), "/unique/PROBE/", Vec::new()).await?;
        self.settle().await?;
        let (until, step) = (self.clock.elapsed() + by, STEP.max(by / STEPS));
        while self.clock.elapsed() < until {
            self.clock.advance(step.min(until - self.clock.elapsed()));
            self.settle().await?;
        }
        Ok(())
    }

    async fn evict(&self) -> Outcome {
        self.settle().await?;
        self.clock.advance(limits::IDLE);
        self.settle().await
    }

    fn eviction_takes(&self) -> Duration {
        limits::IDLE
    }

    async fn crash(&self) -> Outcome {
        let host = self.host.lock().unwrap().take();
        drop(host);
        self.start().await
    }

    async fn deploy(&self, deployment: Deployment) -> Outcome {
        *self.deployment.lock().unwrap() = deployment;
        self.crash().await
    }

    fn panic_cost(&self) -> PanicCost {
        PanicCost::Object
    }

    fn notices(&self) -> Notices {
        Notices::AtOnce
    }
}
