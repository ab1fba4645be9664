//! The tokio host behind real sockets, with a clock that stands still until a case moves it.

use crate::{
    Suite,
    exchange::Http,
    runner::{Kind, no_deployments},
    web,
};
use do_core::{
    Env, Namespace, ObjectName, Stub, Timestamp, limits,
    testing::{Deployment, Driver, Fault, Head, HostKind, Opened, Outcome, PanicCost},
    tokio::{Clock, Host, HostEnv, ManualClock},
};
use std::{
    fmt,
    future::Future,
    marker::PhantomData,
    net::SocketAddr,
    pin::Pin,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};
use tempfile::TempDir;
use tokio::{net::TcpListener, task::yield_now};

/// A step of time while the shard does not come to rest, so that nobody knows what is due next.
const STEP: Duration = Duration::from_millis(10);

/// The shortest step.
const TICK: Duration = Duration::from_millis(1);

/// How often work may go from the shard to the connections and back before time passes.
const HOPS: usize = 2;

/// The same between two steps of time.
const HOPS_BETWEEN: usize = 1;

/// How often the connections' tasks run and the sockets are polled in one hop: the runtime has one thread, which runs all
/// that is ready before it returns to who yields.
const TURNS: usize = 6;

/// After so many rounds, a shard that did not rest is busy with work that wakes itself.
const ROUNDS: usize = 16;

/// How long objects have to become idle, in real time: their connections may still be at work.
const IDLE_TIME: Duration = Duration::from_secs(30);

/// For a message or a Close: nothing of it depends on how fast the machine is, as the host's time stands still.
const HEAR_TIME: Duration = Duration::from_secs(30);

/// A host for each case: it costs next to nothing, and time is its own.
pub(crate) struct Tokio<S>(PhantomData<fn() -> S>);

pub(crate) struct Native<S> {
    dir: TempDir,
    clock: Watched,
    deployment: Mutex<Deployment>,
    host: Mutex<Option<Running>>,
    suite: PhantomData<fn() -> S>,
}

struct Running {
    host: Host,
    address: SocketAddr,
    /// It never ends, so that the shard always waits for something: see [`Watched`].
    _far: Pin<Box<dyn Future<Output = ()>>>,
}

/// A clock that stands still until it is moved, and learns from the shard, whenever that comes to rest, until when it would
/// sleep: so time passes in steps from one event to the next, as many as there are events, however long it is.
#[derive(Clone)]
struct Watched {
    manual: ManualClock,
    /// How often the shard has come to rest, and what is due next.
    rest: Arc<Mutex<(u64, Duration)>>,
}

impl Watched {
    fn new() -> Self {
        let manual = ManualClock::at(Timestamp::from_millis(1_800_000_000_000));
        Self { manual, rest: Arc::default() }
    }

    fn rest(&self) -> (u64, Duration) {
        *self.rest.lock().unwrap()
    }
}

impl Clock for Watched {
    fn now(&self) -> Timestamp {
        self.manual.now()
    }

    fn elapsed(&self) -> Duration {
        self.manual.elapsed()
    }

    fn real_wait(&self, until: Duration) -> Option<Duration> {
        let mut rest = self.rest.lock().unwrap();
        *rest = (rest.0 + 1, until);
        None
    }

    fn on_jump(&self, wake: Arc<dyn Fn() + Send + Sync>) {
        self.manual.on_jump(wake);
    }
}

impl fmt::Debug for Watched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.manual.fmt(f)
    }
}

impl<S: Suite> Tokio<S> {
    pub(crate) fn new() -> Self {
        Self(PhantomData)
    }
}

impl<S: Suite> Kind for Tokio<S> {
    type Driver = Native<S>;
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

    async fn driver(&self, _shared: Option<&()>) -> Result<Native<S>, Fault> {
        let (dir, deployment) = (tempfile::tempdir()?, Mutex::new(Deployment::First));
        let native =
            Native { dir, clock: Watched::new(), deployment, host: Mutex::new(None), suite: PhantomData };
        native.start().await?;
        Ok(native)
    }

    fn said(&self, _driver: &Native<S>) -> String {
        String::new()
    }

    async fn stop(&self, driver: Native<S>) {
        drop(driver);
    }

    async fn stop_shared(&self, _shared: ()) {}
}

impl<S: Suite> Native<S> {
    async fn start(&self) -> Outcome {
        let deployment = *self.deployment.lock().unwrap();
        let builder = Host::builder(self.dir.path()).clock(self.clock.clone()).shards(1).local_sql_limits();
        let host = S::host(builder, deployment).start()?;
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        host.serve(listener, S::route);
        let far = host
            .env()
            .namespace(self.any_namespace()?)?
            .named("nobody")?
            .delay(Duration::from_secs(u32::MAX.into()));
        *self.host.lock().unwrap() = Some(Running { host, address, _far: Box::pin(far) });
        Ok(())
    }

    fn any_namespace(&self) -> Result<&'static str, Fault> {
        let deployment = *self.deployment.lock().unwrap();
        S::namespaces(deployment).first().copied().ok_or_else(|| Fault::new("there is no namespace"))
    }

    fn address(&self) -> SocketAddr {
        self.host.lock().unwrap().as_ref().unwrap().address
    }

    fn env(&self) -> HostEnv {
        self.host.lock().unwrap().as_ref().unwrap().host.env()
    }

    /// Returns when what was asked for, and what it asked for in turn, has happened. Gives what is due next, which nobody
    /// knows of a shard that does not come to rest.
    async fn settle(&self, hops: usize) -> Result<Option<Duration>, Fault> {
        let mut before = 0;
        for _ in 0..hops {
            for _ in 0..TURNS {
                yield_now().await;
            }
            before = self.clock.rest().0;
            self.round().await?;
        }
        for _ in 0..ROUNDS {
            let (rests, due) = self.clock.rest();
            // The first one may have begun before that last round.
            if rests > before + 1 {
                return Ok(Some(due));
            }
            self.round().await?;
        }
        Ok(None)
    }

    /// Returns when the shard has done once what there is to do.
    async fn round(&self) -> Outcome {
        let objects = self.env().namespace(self.any_namespace()?)?;
        objects.why_awake(&objects.id_of(&ObjectName::new("nobody")?)?).await?;
        Ok(())
    }

    /// What keeps objects in memory that are not idle, or that are there at all.
    async fn awake(&self, idle_too: bool) -> Result<Vec<&'static str>, Fault> {
        let env = self.env();
        let deployment = *self.deployment.lock().unwrap();
        let mut why = Vec::new();
        for name in S::namespaces(deployment) {
            for (_, reasons) in env.namespace(name)?.in_memory().await? {
                match reasons.is_empty() {
                    true if idle_too => why.push("it is idle"),
                    _ => why.extend(reasons),
                }
            }
        }
        Ok(why)
    }

    /// Waits until no object is in memory, or none that is not idle.
    async fn until_none_is_awake(&self, idle_too: bool) -> Outcome {
        let began = Instant::now();
        loop {
            self.settle(HOPS_BETWEEN).await?;
            let why = self.awake(idle_too).await?;
            if why.is_empty() {
                return Ok(());
            }
            if began.elapsed() > IDLE_TIME {
                return Err(Fault::new(format!("an object stays: {}", why.join(", "))));
            }
        }
    }
}

impl<S: Suite> Driver for Native<S> {
    type Client = web::Socket;
    type Exchange = Http;

    fn kind(&self) -> HostKind {
        HostKind::Tokio
    }

    async fn post(&self, path: &str, body: Vec<u8>) -> Result<(u16, Vec<u8>), Fault> {
        web::post(self.address(), path, body).await
    }

    async fn begin(&self, head: Head) -> Result<Http, Fault> {
        Http::begin(self.address(), head, HEAR_TIME).await
    }

    async fn open(&self, path: &str) -> Result<Opened<web::Socket>, Fault> {
        web::Socket::open(self.address(), path, HEAR_TIME).await
    }

    async fn advance(&self, by: Duration) -> Outcome {
        // Another connection's request is behind those that are on their way already: they are accepted in order.
        web::post(self.address(), S::FENCE, Vec::new()).await?;
        let mut due = self.settle(HOPS).await?;
        let until = self.clock.elapsed() + by;
        loop {
            let now = self.clock.elapsed();
            let left = until.saturating_sub(now);
            if left.is_zero() {
                return Ok(());
            }
            let step = due.map_or(STEP, |due| due.saturating_sub(now).max(TICK));
            self.clock.manual.advance(step.min(left));
            due = self.settle(HOPS_BETWEEN).await?;
        }
    }

    async fn evict(&self) -> Outcome {
        self.settle(HOPS).await?;
        // An answer that is still being sent keeps its object in memory, which would not look again before another time.
        self.until_none_is_awake(false).await?;
        self.clock.manual.advance(limits::IDLE);
        self.until_none_is_awake(true).await
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
        if !S::DEPLOYS {
            return Err(no_deployments());
        }
        *self.deployment.lock().unwrap() = deployment;
        self.crash().await
    }

    fn panic_cost(&self) -> PanicCost {
        PanicCost::Object
    }
}
