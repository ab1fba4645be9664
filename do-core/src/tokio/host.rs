use super::{
    builder::Builder,
    lock::DirLock,
    namespace::{HostEnv, HostNamespace, Shared},
    serve::Serving,
    shard::Command,
};
use crate::{Env, Error, ErrorKind};
use std::{
    fmt,
    path::PathBuf,
    sync::{Arc, atomic::Ordering},
    thread::JoinHandle,
    time::Duration,
};

/// What servers get at least to finish the answers that the objects gave.
const LAST_ANSWERS: Duration = Duration::from_millis(500);

/// A running host: the threads that objects live on, over one data directory.
///
/// Dropping it stops at once: handlers under way are cut off between two polls, sockets are reset, and what was
/// acknowledged is on the disk. [`shutdown`](Self::shutdown) lets them finish.
pub struct Host {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    pub(super) serving: Serving,
    // After the threads: the directory is free once nobody writes there.
    _lock: DirLock,
}

impl Host {
    /// Sets up a host over a data directory, which is made if it does not exist.
    pub fn builder(dir: impl Into<PathBuf>) -> Builder {
        Builder::new(dir.into())
    }

    pub(super) fn new(
        shared: Arc<Shared>,
        threads: Vec<JoinHandle<()>>,
        lock: DirLock,
        serving: Serving,
    ) -> Self {
        Self { shared, threads, serving, _lock: lock }
    }

    /// The way to its namespaces and variables, from anywhere.
    pub fn env(&self) -> HostEnv {
        HostEnv(Arc::clone(&self.shared))
    }

    /// One of its namespaces.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] when no class is registered under that name.
    pub fn namespace(&self, name: &str) -> Result<HostNamespace, Error> {
        self.env().namespace(name)
    }

    /// Refuses new work from now on, lets the handlers under way finish for at most `grace`, closes all sockets
    /// with 1001 and stops. Peers get two seconds to end their connections. Servers that [`serve`](Self::serve)
    /// started answer until the objects are done, then end too, within what is left of `grace`. Alarms that come
    /// due meanwhile fire at the next start.
    ///
    /// # Errors
    /// [`ErrorKind::Platform`] when a thread of the host had ended by a fault of the host.
    ///
    /// # Cancel safety
    /// Dropping the future stops at once, as dropping the host does.
    pub async fn shutdown(mut self, grace: Duration) -> Result<(), Error> {
        self.shared.draining.store(true, Ordering::Release);
        let begun = std::time::Instant::now();
        self.tell(|| Command::Shutdown { grace });
        let threads = std::mem::take(&mut self.threads);
        let (done, joined) = tokio::sync::oneshot::channel();
        // Kept as a thread of the host: if this future is dropped, the drop still waits for all before the
        // directory is free.
        self.threads.push(std::thread::spawn(move || {
            let results: Vec<_> = threads.into_iter().map(JoinHandle::join).collect();
            let _ = done.send(results.iter().all(Result::is_ok));
        }));
        let sound = joined.await.unwrap_or(false);
        self.serving.stop(grace.saturating_sub(begun.elapsed()).max(LAST_ANSWERS)).await;
        if sound {
            Ok(())
        } else {
            Err(Error::new(ErrorKind::Platform, "a thread of the host ended by a panic"))
        }
    }

    fn tell(&self, command: impl Fn() -> Command) {
        for shard in &self.shared.shards {
            shard.push(command());
        }
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.shared.draining.store(true, Ordering::Release);
        self.tell(|| Command::Stop);
        for thread in std::mem::take(&mut self.threads) {
            if thread.thread().id() != std::thread::current().id() {
                let _ = thread.join();
            }
        }
    }
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Host").field("env", &self.env()).field("shards", &self.shared.shards.len()).finish()
    }
}
