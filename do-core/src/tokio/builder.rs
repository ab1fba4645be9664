use super::{
    host::Host,
    lock::DirLock,
    namespace::{HostEnv, NamespaceInfo, Shared, shard_of},
    serve::Serving,
    shard::{Shard, ShardQueue},
    state::HostState,
    ws::{ConnLimits, Connections},
};
use crate::{
    DurableObject, Error, ErrorKind, ObjectName, Secret, Timestamp,
    engine::{self, Class, Clock, Config, Engine, ObjectKey, Ports, Storage, SystemClock},
    limits,
    sqlite::{AlarmIndex, Database, IndexRow, SqlLimits, create_folders},
};
use std::{
    collections::BTreeMap,
    fmt,
    path::{Path, PathBuf},
    rc::Rc,
    sync::Arc,
    thread::{self, JoinHandle},
    time::Duration,
};

/// Sets up a [`Host`].
#[must_use]
pub struct Builder {
    dir: PathBuf,
    classes: Vec<(String, MakeClass)>,
    shards: Option<usize>,
    idle: Duration,
    background: Option<Duration>,
    message_bytes: usize,
    outbox_bytes: usize,
    waiting: usize,
    awake: Option<usize>,
    sql: SqlLimits,
    clock: Arc<dyn Clock>,
    vars: BTreeMap<String, String>,
    secrets: BTreeMap<String, Secret>,
}

/// Makes a class on its shard's thread. A plain function, so that it can go there.
type MakeClass = fn(HostEnv, Rc<Connections>) -> Class;

impl Builder {
    pub(super) fn new(dir: PathBuf) -> Self {
        Self {
            dir,
            classes: Vec::new(),
            shards: None,
            idle: limits::IDLE,
            background: None,
            message_bytes: limits::MESSAGE_BYTES,
            outbox_bytes: 1_024 * 1_024,
            waiting: 10_000,
            awake: None,
            sql: SqlLimits::default(),
            clock: Arc::new(SystemClock::new()),
            vars: BTreeMap::new(),
            secrets: BTreeMap::new(),
        }
    }

    /// Registers the class `O` under the name of its namespace. The name is stable: the objects' ids and files
    /// belong to it, so another name is another, empty namespace.
    ///
    /// It may hold ASCII letters, digits, `_` and `-`, at most 64 of them; [`start`](Self::start) says so
    /// otherwise.
    pub fn object<O: DurableObject<HostState>>(mut self, namespace: impl Into<String>) -> Self {
        let make: MakeClass = |env, connections| {
            Class::new::<HostState, O>(move |core| HostState::new(core, env.clone(), Rc::clone(&connections)))
        };
        self.classes.push((namespace.into(), make));
        self
    }

    /// How many threads objects run on. Default: one for each core.
    pub fn shards(mut self, shards: usize) -> Self {
        self.shards = Some(shards);
        self
    }

    /// An object without work leaves memory after this time. Default: [`limits::IDLE`] (rule B2).
    pub fn idle(mut self, idle: Duration) -> Self {
        self.idle = idle;
        self
    }

    /// An object that only sleeps and background work keep in memory, and to which no client is connected, is reset
    /// this long after its last event, give or take the [idle](Self::idle) time. Default: no limit; the platform's is
    /// 70 to 140 s (rule B4).
    pub fn background(mut self, most: Duration) -> Self {
        self.background = Some(most);
        self
    }

    /// Longest inbound WebSocket message in bytes. Default: [`limits::MESSAGE_BYTES`] (rule D11).
    pub fn message_bytes(mut self, bytes: usize) -> Self {
        self.message_bytes = bytes;
        self
    }

    /// Bytes that may wait to be sent on one socket. Default: 1 MiB. A message larger than this is taken when
    /// nothing else waits; a peer for which more would wait is dropped with 1013.
    pub fn outbox_bytes(mut self, bytes: usize) -> Self {
        self.outbox_bytes = bytes;
        self
    }

    /// Events that may wait or be under way in one object before more requests are refused as overloaded. Default:
    /// 10,000.
    pub fn events_under_way(mut self, most: usize) -> Self {
        self.waiting = most;
        self
    }

    /// How many objects may be in memory before those that are idle leave early, the longest idle first. Each has
    /// up to three open files. Default: as many as fit half of the open files that the process may have.
    pub fn awake_objects(mut self, most: usize) -> Self {
        self.awake = Some(most);
        self
    }

    /// The limits on SQL of local development instead of those of production: larger values (rule F16) and more
    /// function arguments (rule F15).
    pub fn local_sql_limits(mut self) -> Self {
        self.sql = SqlLimits::local();
        self
    }

    /// A variable of the environment, the same for all objects.
    pub fn var(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.vars.insert(name.into(), value.into());
        self
    }

    /// A secret of the environment.
    pub fn secret(mut self, name: impl Into<String>, value: Secret) -> Self {
        self.secrets.insert(name.into(), value);
        self
    }

    /// Where the host reads the time; for tests, [`ManualClock`](super::ManualClock).
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Starts the threads. Alarms that came due while no host ran fire at once (rule E16).
    ///
    /// Inside a tokio runtime, the objects' code runs in that runtime's context, so that it can use clients that
    /// need one.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] when another process uses the directory, and for a namespace that is named
    /// wrongly or twice; [`ErrorKind::Platform`] when the directory or a file in it cannot be used.
    pub fn start(self) -> Result<Host, Error> {
        self.check()?;
        let failed = |e: std::io::Error| {
            let message = format!("cannot use the data directory {}: {e}", self.dir.display());
            Error::new(ErrorKind::Platform, message).with_source(e)
        };
        create_folders(&self.dir).and_then(|()| sync_entry(&self.dir)).map_err(failed)?;
        let lock = DirLock::take(&self.dir)?;
        let index = Arc::new(AlarmIndex::open(&self.dir)?);
        let alarms = index.all()?;
        let shards = self.shard_count();
        let queues: Vec<_> = (0..shards).map(|_| ShardQueue::new()).collect();
        for queue in &queues {
            let queue = Arc::clone(queue);
            self.clock.on_jump(Arc::new(move || queue.wake()));
        }
        let namespaces =
            self.classes.iter().map(|(name, _)| NamespaceInfo::new(name)).collect::<Result<_, _>>()?;
        let shared = Arc::new(Shared {
            namespaces,
            shards: queues.clone(),
            vars: self.vars.clone(),
            secrets: self.secrets.clone(),
            clock: Arc::clone(&self.clock),
            draining: false.into(),
        });
        let this = Arc::new(self);
        let mut threads = Vec::with_capacity(shards);
        for (number, queue) in queues.into_iter().enumerate() {
            let seat = Seat {
                builder: Arc::clone(&this),
                env: HostEnv(Arc::clone(&shared)),
                index: Arc::clone(&index),
                alarms: this.alarms_of(number, shards, &alarms),
                queue,
            };
            match seat.spawn(number) {
                Ok(thread) => threads.push(thread),
                Err(error) => {
                    drop(Host::new(shared, threads, lock, Serving::new())); // ends those that run
                    return Err(Error::new(ErrorKind::Platform, format!("cannot start a thread: {error}")));
                }
            }
        }
        Ok(Host::new(shared, threads, lock, Serving::new()))
    }

    fn config(&self) -> Config {
        let awake = self.awake.unwrap_or_else(|| (open_files() / 2) / FILES_PER_OBJECT);
        let awake = (awake / self.shard_count()).max(1);
        Config { idle: self.idle, background: self.background, waiting: self.waiting, awake }
    }

    fn shard_count(&self) -> usize {
        self.shards.unwrap_or_else(|| thread::available_parallelism().map_or(1, Into::into)).max(1)
    }

    fn check(&self) -> Result<(), Error> {
        let invalid = |message: String| Err(Error::new(ErrorKind::Invalid, message));
        let mut names: Vec<_> = self.classes.iter().map(|(name, _)| name.as_str()).collect();
        for name in &names {
            let legal = name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'));
            if name.is_empty() || name.len() > 64 || !legal {
                return invalid(format!(
                    "the namespace {name:?} must have 1 to 64 ASCII letters, digits, underscores and hyphens"
                ));
            }
        }
        // Files are named by them, and not every file system tells cases apart.
        names.sort_unstable_by_key(|name| name.to_ascii_lowercase());
        if let Some(twice) = names.windows(2).find(|pair| pair[0].eq_ignore_ascii_case(pair[1])) {
            return invalid(format!("the namespace {:?} is registered twice", twice[0]));
        }
        if self.classes.len() > usize::from(u16::MAX) {
            return invalid("too many namespaces".to_owned());
        }
        Ok(())
    }

    /// The alarms of one shard's objects. Those of namespaces that are not registered stay in the index.
    fn alarms_of(
        &self,
        shard: usize,
        shards: usize,
        rows: &[IndexRow],
    ) -> Vec<(ObjectKey, Option<ObjectName>, Timestamp)> {
        let class_of =
            |name: &str| self.classes.iter().zip(0_u16..).find(|((n, _), _)| n == name).map(|(_, i)| i);
        let mine = rows.iter().filter(|row| shard_of(&row.id, shards) == shard);
        mine.filter_map(|row| {
            let key = ObjectKey { class: class_of(&row.namespace)?, id: row.id };
            Some((key, row.name.clone(), row.at))
        })
        .collect()
    }

    fn database(&self, key: &ObjectKey) -> Result<Rc<dyn Storage>, Error> {
        let (namespace, _) = self
            .classes
            .get(usize::from(key.class))
            .ok_or_else(|| Error::new(ErrorKind::NotFound, "there is no such namespace"))?;
        if !DirLock::is_there(&self.dir) {
            let message =
                format!("the data directory {} was removed while it was in use", self.dir.display());
            return Err(Error::new(ErrorKind::Platform, message));
        }
        Ok(Rc::new(Database::open(&file_of(&self.dir, namespace, &key.id), &self.sql)?))
    }
}

/// A database, its log and the log's index.
const FILES_PER_OBJECT: usize = 3;

/// How many files the process may have open.
fn open_files() -> usize {
    #[cfg(unix)]
    let most = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    #[cfg(not(unix))]
    let most = None;
    // Without a limit there is still memory.
    most.and_then(|most| usize::try_from(most).ok()).unwrap_or(usize::MAX).min(1_000_000)
}

/// Makes sure that the directory itself is found after a power failure, also when the process that made it ended
/// before it was.
fn sync_entry(dir: &Path) -> std::io::Result<()> {
    let above = std::path::absolute(dir)?;
    above.parent().map_or(Ok(()), |above| std::fs::File::open(above)?.sync_all())
}

/// 256 folders a namespace, so that none grows beyond what a file system likes.
fn file_of(dir: &Path, namespace: &str, id: &[u8; 32]) -> PathBuf {
    let hex: String = id.iter().map(|b| format!("{b:02x}")).collect();
    dir.join(namespace).join(&hex[..2]).join(format!("{hex}.sqlite"))
}

/// Everything that goes to a shard's thread.
struct Seat {
    builder: Arc<Builder>,
    env: HostEnv,
    index: Arc<AlarmIndex>,
    alarms: Vec<(ObjectKey, Option<ObjectName>, Timestamp)>,
    queue: Arc<ShardQueue>,
}

impl Seat {
    fn spawn(self, number: usize) -> std::io::Result<JoinHandle<()>> {
        let runtime = tokio::runtime::Handle::try_current().ok();
        thread::Builder::new().name(format!("do-shard-{number}")).spawn(move || {
            let _context = runtime.as_ref().map(tokio::runtime::Handle::enter);
            self.run();
        })
    }

    fn run(self) {
        let Self { builder, env, index, alarms, queue } = self;
        let limits = ConnLimits { message_bytes: builder.message_bytes, outbox_bytes: builder.outbox_bytes };
        let conn_queue = Arc::clone(&queue);
        let connections =
            Rc::new(Connections::new(limits, Arc::new(move |conn| conn_queue.conn_ready(conn))));
        let classes =
            builder.classes.iter().map(|(_, make)| make(env.clone(), Rc::clone(&connections))).collect();
        let names = builder.classes.iter().map(|(name, _)| name.clone()).collect();
        let opener = Arc::clone(&builder);
        let ports = Ports {
            storage: Box::new(move |key| opener.database(key)),
            index: Box::new(IndexPort { index, names }),
            clock: Arc::clone(&builder.clock),
            transport: Rc::clone(&connections) as _,
            ready: Shard::ready_queue(&queue),
            seed: getrandom::u64().unwrap_or_default(), // jitter only
        };
        let mut engine = Engine::new(ports, classes, builder.config());
        for (key, name, at) in alarms {
            engine.known_alarm(key, name, at);
        }
        Shard::new(queue, Arc::clone(&builder.clock), connections, engine).run();
    }
}

/// The index by the engine's keys.
struct IndexPort {
    index: Arc<AlarmIndex>,
    names: Vec<String>,
}

impl IndexPort {
    fn namespace(&self, key: &ObjectKey) -> Result<&str, Error> {
        let name = self.names.get(usize::from(key.class)).map(String::as_str);
        name.ok_or_else(|| Error::new(ErrorKind::NotFound, "there is no such namespace"))
    }
}

impl engine::AlarmIndex for IndexPort {
    fn earlier(&self, key: &ObjectKey, name: Option<&ObjectName>, at: Timestamp) -> Result<(), Error> {
        self.index.earlier(self.namespace(key)?, &key.id, name, at)
    }

    fn settle(&self, key: &ObjectKey, at: Option<Timestamp>) {
        let settled = self.namespace(key).and_then(|namespace| self.index.settle(namespace, &key.id, at));
        if let Err(error) = settled {
            tracing::warn!(%error, "the index of alarms stays early");
        }
    }
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.classes.iter().map(|(name, _)| name).collect();
        f.debug_struct("Builder").field("dir", &self.dir).field("namespaces", &names).finish_non_exhaustive()
    }
}
