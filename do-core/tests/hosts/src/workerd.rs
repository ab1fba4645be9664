//! workerd with the suite's Worker: a process that cases share, or one of their own, in real time.

use crate::{
    Suite,
    exchange::Http,
    runner::{Kind, no_deployments},
    web,
};
use do_core::testing::{Deployment, Driver, Fault, Head, HostKind, Opened, Outcome, PanicCost};
use serde::Deserialize;
use std::{
    env,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::Stdio,
    sync::{Arc, Mutex},
    time::Duration,
};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, BufReader},
    process::{Child, Command},
    time::{sleep, timeout},
};

const START_TIME: Duration = Duration::from_secs(30);
/// workerd waits for requests in flight; those of a panic never end.
const STOP_TIME: Duration = Duration::from_secs(1);
/// For one message or Close: less than the 10 s after which a host gives up.
const HEAR_TIME: Duration = Duration::from_secs(9);
/// For what only tells that what was asked before it is under way: after a panic there may be no answer.
const ORDER_TIME: Duration = Duration::from_secs(1);

/// Where the pieces are.
pub(crate) struct Workerd {
    name: &'static str,
    binary: PathBuf,
    /// With a configuration for each deployment.
    folder: PathBuf,
    cost: PanicCost,
    /// Of the suite.
    fence: &'static str,
    deploys: bool,
}

impl Workerd {
    /// One for each of these columns that is a build, in the environment; none when it names nothing.
    pub(crate) fn from_environment<S: Suite>(columns: &[&str]) -> Result<Vec<Self>, String> {
        let abort = S::WORKER_ABORT.map(|variable| ("workerd-abort", variable, PanicCost::Isolate));
        let builds = [("workerd", S::WORKER, PanicCost::Object)].into_iter().chain(abort);
        let builds: Vec<_> = builds.filter(|(name, ..)| columns.contains(name)).collect();
        let set = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let binary = set("DO_WORKERD");
        if binary.is_none() && builds.iter().all(|(_, variable, _)| set(variable).is_none()) {
            return Ok(Vec::new());
        }
        let binary = binary.ok_or("DO_WORKERD is not set")?;
        if !binary.is_file() {
            return Err(format!("DO_WORKERD: there is no file {}", binary.display()));
        }
        if std::fs::read(&binary).is_ok_and(|program| program.starts_with(b"#!")) {
            // That of npm starts the program as a child, which a kill of the script leaves running.
            return Err(format!("DO_WORKERD: {} is a script and not workerd itself", binary.display()));
        }
        let of_build = |(name, variable, cost): (&'static str, &str, PanicCost)| {
            let folder = set(variable).ok_or_else(|| format!("DO_WORKERD is set, but {variable} is not"))?;
            let deployments = [Deployment::First, Deployment::Second];
            for deployment in deployments.into_iter().take(if S::DEPLOYS { 2 } else { 1 }) {
                let config = folder.join(config(deployment));
                if !config.is_file() {
                    return Err(format!("{variable}: there is no file {}", config.display()));
                }
            }
            let (fence, deploys) = (S::FENCE, S::DEPLOYS);
            Ok(Self { name, binary: binary.clone(), folder, cost, fence, deploys })
        };
        builds.into_iter().map(of_build).collect()
    }

    async fn start(&self, deployment: Deployment, data: &Path) -> Result<Process, Fault> {
        let mut command = Command::new(&self.binary);
        command
            .args(["serve", "--experimental"])
            .arg(self.folder.join(config(deployment)))
            .args(["--socket-addr=http=127.0.0.1:0", "--control-fd=1"])
            .arg(format!("--directory-path=data={}", data.display()))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true); // when the test itself fails
        let mut child = command.spawn()?;
        let said = Arc::new(Mutex::new(String::new()));
        let errors = child.stderr.take();
        let kept = Arc::clone(&said);
        tokio::spawn(async move {
            let Some(mut errors) = errors else { return };
            let mut buffer = [0; 4_096];
            while let Ok(read @ 1..) = errors.read(&mut buffer).await {
                kept.lock().unwrap().push_str(&String::from_utf8_lossy(&buffer[..read]));
            }
        });
        let mut lines = BufReader::new(child.stdout.take().ok_or_else(|| Fault::new("no stdout"))?).lines();
        let port = async {
            while let Some(line) = lines.next_line().await? {
                match serde_json::from_str::<Listening>(&line) {
                    Ok(it) if it.event == "listen" && it.socket == "http" => return Ok(it.port),
                    _ => {}
                }
            }
            Err(Fault::new("it ended"))
        };
        let port = match timeout(START_TIME, port).await {
            Ok(Ok(port)) => port,
            Ok(Err(fault)) => return Err(fault.during(&format!("workerd said: {}", said.lock().unwrap()))),
            Err(_) => return Err(Fault::new(format!("no port from workerd: {}", said.lock().unwrap()))),
        };
        // What it may still write there must not fill the pipe.
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        Ok(Process { child, address: ([127, 0, 0, 1], port).into(), said })
    }
}

fn config(deployment: Deployment) -> &'static str {
    match deployment {
        Deployment::First => "worker.capnp",
        Deployment::Second => "worker.second.capnp",
    }
}

/// A line of the control file.
#[derive(Deserialize)]
struct Listening {
    event: String,
    #[serde(default)]
    socket: String,
    #[serde(default)]
    port: u16,
}

pub(crate) struct Process {
    child: Child,
    address: SocketAddr,
    said: Arc<Mutex<String>>,
}

impl Process {
    async fn stop(mut self) {
        if let Some(id) =
            self.child.id().and_then(|id| i32::try_from(id).ok()).and_then(rustix::process::Pid::from_raw)
        {
            let _ = rustix::process::kill_process(id, rustix::process::Signal::TERM);
        }
        if timeout(STOP_TIME, self.child.wait()).await.is_err() {
            let _ = self.child.kill().await;
        }
    }
}

/// A process and its data.
pub(crate) struct Home {
    workerd: Workerd,
    data: TempDir,
    deployment: Mutex<Deployment>,
    process: Mutex<Option<Process>>,
}

impl Home {
    async fn new(workerd: &Workerd) -> Result<Self, Fault> {
        let workerd = Workerd { binary: workerd.binary.clone(), folder: workerd.folder.clone(), ..*workerd };
        let data = tempfile::tempdir()?;
        let process = Mutex::new(Some(workerd.start(Deployment::First, data.path()).await?));
        Ok(Self { workerd, data, deployment: Mutex::new(Deployment::First), process })
    }

    fn take(&self) -> Option<Process> {
        self.process.lock().unwrap().take()
    }

    async fn stop(self) {
        if let Some(process) = self.take() {
            process.stop().await;
        }
    }
}

/// A case's way to it.
pub(crate) struct Remote {
    home: Arc<Home>,
    shared: bool,
}

impl Kind for Workerd {
    type Driver = Remote;
    type Shared = Arc<Home>;

    fn name(&self) -> &'static str {
        self.name
    }

    fn kind(&self) -> HostKind {
        HostKind::Workerd
    }

    fn panic_cost(&self) -> PanicCost {
        self.cost
    }

    fn is_real_time(&self) -> bool {
        true
    }

    fn at_once(&self) -> usize {
        2
    }

    async fn shared(&self) -> Result<Arc<Home>, Fault> {
        Ok(Arc::new(Home::new(self).await?))
    }

    async fn driver(&self, shared: Option<&Arc<Home>>) -> Result<Remote, Fault> {
        Ok(match shared {
            Some(home) => Remote { home: Arc::clone(home), shared: true },
            None => Remote { home: Arc::new(Home::new(self).await?), shared: false },
        })
    }

    fn said(&self, driver: &Remote) -> String {
        let process = driver.home.process.lock().unwrap();
        let said = process.as_ref().map(|process| process.said.lock().unwrap().clone()).unwrap_or_default();
        let whose = if driver.shared { "workerd, which other cases share," } else { "workerd" };
        if said.is_empty() { String::new() } else { format!("\n{whose} said:\n{said}") }
    }

    async fn stop(&self, driver: Remote) {
        if let Some(home) = Arc::into_inner(driver.home) {
            home.stop().await;
        }
    }

    async fn stop_shared(&self, shared: Arc<Home>) {
        if let Some(home) = Arc::into_inner(shared) {
            home.stop().await;
        }
    }
}

impl Remote {
    fn address(&self) -> Result<SocketAddr, Fault> {
        let process = self.home.process.lock().unwrap();
        process.as_ref().map(|process| process.address).ok_or_else(|| Fault::new("workerd does not run"))
    }
}

impl Driver for Remote {
    type Client = web::Socket;
    type Exchange = Http;

    fn kind(&self) -> HostKind {
        HostKind::Workerd
    }

    async fn post(&self, path: &str, body: Vec<u8>) -> Result<(u16, Vec<u8>), Fault> {
        web::post(self.address()?, path, body).await
    }

    async fn begin(&self, head: Head) -> Result<Http, Fault> {
        Http::begin(self.address()?, head, HEAR_TIME).await
    }

    async fn open(&self, path: &str) -> Result<Opened<web::Socket>, Fault> {
        web::Socket::open(self.address()?, path, HEAR_TIME).await
    }

    async fn advance(&self, by: Duration) -> Outcome {
        // Another connection's request is behind those that are on their way already. On a busy machine they would take the
        // time that is to pass.
        drop(timeout(ORDER_TIME, web::post(self.address()?, self.home.workerd.fence, Vec::new())).await);
        sleep(by).await;
        Ok(())
    }

    /// By the switch of the runtime itself, which the build puts before the Worker.
    async fn evict(&self) -> Outcome {
        let (status, body) = web::get(self.address()?, "/__evict?sockets=hibernate").await?;
        if (200..300).contains(&status) {
            return Ok(());
        }
        Err(Fault::new(format!("the eviction gave {status}: {}", String::from_utf8_lossy(&body))))
    }

    fn eviction_takes(&self) -> Duration {
        Duration::ZERO
    }

    async fn crash(&self) -> Outcome {
        if let Some(mut process) = self.home.take() {
            process.child.kill().await?;
        }
        let deployment = *self.home.deployment.lock().unwrap();
        let process = self.home.workerd.start(deployment, self.home.data.path()).await?;
        *self.home.process.lock().unwrap() = Some(process);
        Ok(())
    }

    async fn deploy(&self, deployment: Deployment) -> Outcome {
        if !self.home.workerd.deploys {
            return Err(no_deployments());
        }
        *self.home.deployment.lock().unwrap() = deployment;
        self.crash().await
    }

    fn panic_cost(&self) -> PanicCost {
        self.home.workerd.cost
    }
}
