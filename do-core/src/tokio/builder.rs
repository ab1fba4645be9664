use super::{
    host::Host,
    lock::DirLock,
    manifest::Manifest,
    migration::{Applied, Migration, check_name},
    namespace::{HostEnv, NamespaceInfo, Shared, Unique, shard_of, system_random},
    serve::Serving,
    shard::{Shard, ShardQueue},
    state::HostState,
    upgrade::Accepts,
    ws::{ConnLimits, Connections, Cork},
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
    migrations: Option<Vec<Applied>>,
    shards: Option<usize>,
    idle: Duration,
    background: Option<Duration>,
    message_bytes: usize,
    outbox_bytes: usize,
    cork: Duration,
    waiting: usize,
    awake: Option<usize>,
    sql: SqlLimits,
    clock: Arc<dyn Clock>,
    vars: BTreeMap<String, String>,
    secrets: BTreeMap<String, Secret>,
}

/// The default of [`Builder::cork`].
const CORK: Duration = Duration::from_millis(50);

/// Makes a class on its shard's thread. A plain function, so that it can go there.
pub(crate) type MakeClass = fn(HostEnv, Rc<dyn Accepts>) -> Class;

impl Builder {
    pub(super) fn new(dir: PathBuf) -> Self {
        Self {
            dir,
            classes: Vec::new(),
            migrations: None,
            shards: None,
            idle: limits::IDLE,
            background: None,
            message_bytes: limits::MESSAGE_BYTES,
            outbox_bytes: 1_024 * 1_024,
            cork: CORK,
            waiting: 10_000,
            awake: None,
            sql: SqlLimits::default(),
            clock: Arc::new(SystemClock::new()),
            vars: BTreeMap::new(),
            secrets: BTreeMap::new(),
        }
    }

    /// Registers the class `O` under the name of its namespace. The objects' ids and files belong to the name, so
    /// another name is another, empty namespace; unless [`migrations`](Self::migrations) say that it was renamed.
    ///
    /// It may hold ASCII letters, digits, `_` and `-`, at most 64 of them; [`start`](Self::start) says so
    /// otherwise.
    pub fn object<O: DurableObject<HostState>>(mut self, namespace: impl Into<String>) -> Self {
        let make: MakeClass = |env, network| {
            Class::new::<HostState, O>(move |core| HostState::new(core, env.clone(), Rc::clone(&network)))
        };
        self.classes.push((namespace.into(), make));
        self
    }

    /// What became of the namespaces over all deployments so far, the first one first. It grows with each deployment
    /// that changes them: what is in it already stays at its beginning, as it is.
    ///
    /// Each migration is applied once for each data directory, at the first start with it, and the directory remembers
    /// it by its tag. A rename keeps the objects' ids, data and alarms; a deletion removes them before the start
    /// returns. Either all new migrations are applied or none. A start that is cut off while it removes data leaves the
    /// rest of that to the next one. Objects of namespaces that are not registered keep their data and their alarms.
    ///
    /// Without this, each namespace that is registered is there. A directory that was used so may go over to
    /// migrations: the first ones [create](Migration::created) what is there. There is no way back, because a program
    /// that does not know of them would find other objects under the same names.
    ///
    /// # Errors
    /// [`start`](Self::start) says [`ErrorKind::Invalid`], and nothing is changed, when
    /// - a namespace that is registered is none that the migrations leave;
    /// - one is created under a name or given a name that another has, or renamed or deleted and not there;
    /// - two migrations have one tag, or a tag or a name is none;
    /// - the list does not begin with the migrations that the directory has applied: an older program on the data of
    ///   a newer one, or a history that was changed.
    ///
    /// # Examples
    /// ```
    /// # use do_core::{Stub, prelude::*, tokio::{Host, Migration}};
    /// # struct Room;
    /// # impl<S: ObjectState> DurableObject<S> for Room {
    /// #     fn new(_: S) -> Result<Self> { Ok(Self) }
    /// #     async fn fetch(&self, _: Request) -> Result<Response> { Ok(reply::text("a room")) }
    /// # }
    /// # fn main() -> Result<()> {
    /// # let folder = tempfile::tempdir()?;
    /// # let folder = folder.path();
    /// let first = [Migration::new("v1").created("ROOM").created("LOG")];
    /// let host = Host::builder(folder).migrations(first.clone()).object::<Room>("ROOM").start()?;
    /// let id = host.namespace("ROOM")?.id_of(&ObjectName::new("lobby")?)?;
    /// drop(host);
    ///
    /// // The next deployment, over the same directory or any other.
    /// let second = Migration::new("v2").renamed("ROOM", "CHAT").deleted("LOG");
    /// let list = first.into_iter().chain([second]);
    /// let host = Host::builder(folder).migrations(list).object::<Room>("CHAT").start()?;
    /// assert_eq!(host.namespace("CHAT")?.id_of(&ObjectName::new("lobby")?)?, id);
    /// # Ok(()) }
    /// ```
    pub fn migrations(mut self, list: impl IntoIterator<Item = Migration>) -> Self {
        self.migrations = Some(list.into_iter().map(|migration| migration.0).collect());
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

    /// An object that only background work, sleeps and calls to others keep in memory, and to which no client is
    /// connected, is reset when that has lasted this long; it is looked at once in an [idle](Self::idle) time. Default:
    /// no limit; the platform's is 70 to 140 s (rule B4).
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

    /// How long messages to very many sockets may wait for later ones, to share the call that hands them to the
    /// operating system. Default: 50 ms. Zero: they never wait.
    ///
    /// That call costs several microseconds for each socket, whatever it carries, and is most of what a broadcast
    /// costs. So whenever a shard has spent more than a millisecond on writing to its sockets at once, which are some
    /// hundreds of them, these sockets are written to again only after nine times as long, and at the latest after
    /// this time; if, at the rate of before, at least two messages come meanwhile. Other sockets of the shard, and
    /// rooms of some dozens, never wait; nor do the first message after a pause, Close frames, pongs, and a socket for
    /// which 16 KiB or 64 messages are queued. The order of messages and the [bounds](Self::outbox_bytes) are the same.
    pub fn cork(mut self, most: Duration) -> Self {
        self.cork = most;
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
    /// [`ErrorKind::Invalid`] when another process uses the directory, for a namespace that is named wrongly or
    /// twice, and when the [migrations](Self::migrations) do not fit; [`ErrorKind::Platform`] when the directory or a
    /// file in it cannot be used.
    pub fn start(self) -> Result<Host, Error> {
        self.check()?;
        let failed = |e: std::io::Error| {
            let message = format!("cannot use the data directory {}: {e}", self.dir.display());
            Error::new(ErrorKind::Platform, message).with_source(e)
        };
        create_folders(&self.dir).and_then(|()| sync_entry(&self.dir)).map_err(failed)?;
        let lock = DirLock::take(&self.dir)?;
        let before = Manifest::open(&self.dir)?;
        let after = before.after(self.migrations.as_deref().unwrap_or_default(), &self.dir)?;
        let keys = self.keys(&after)?;
        let index = Arc::new(AlarmIndex::open(&self.dir)?);
        after.carry_out(&before, &self.dir, &index)?;
        let alarms = index.all()?;
        let shards = self.shard_count();
        let queues: Vec<_> = (0..shards).map(|_| ShardQueue::new()).collect();
        for queue in &queues {
            let queue = Arc::clone(queue);
            self.clock.on_jump(Arc::new(move || queue.wake()));
        }
        let shared = self.shared(&keys, queues.clone(), Box::new(system_random))?;
        let this = Arc::new(self);
        let mut threads = Vec::with_capacity(shards);
        for (number, queue) in queues.into_iter().enumerate() {
            let seat = Seat {
                builder: Arc::clone(&this),
                env: HostEnv(Arc::clone(&shared)),
                index: Arc::clone(&index),
                alarms: alarms_of(number, shards, &keys, &alarms),
                keys: Arc::clone(&keys),
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

    /// What all handles share.
    fn shared(
        &self,
        keys: &[String],
        shards: Vec<Arc<ShardQueue>>,
        unique: Unique,
    ) -> Result<Arc<Shared>, Error> {
        let names = self.classes.iter().map(|(name, _)| name).zip(keys);
        let namespaces = names.map(|(name, key)| NamespaceInfo::new(name, key)).collect::<Result<_, _>>()?;
        Ok(Arc::new(Shared {
            namespaces,
            shards,
            vars: self.vars.clone(),
            secrets: self.secrets.clone(),
            clock: Arc::clone(&self.clock),
            draining: false.into(),
            unique,
        }))
    }

    /// For the test kit, which drives the same objects without threads: everything but them. `before` is what its
    /// data directory remembers.
    #[cfg(feature = "testing")]
    pub(crate) fn plan(
        self,
        before: &Manifest,
        shards: Vec<Arc<ShardQueue>>,
        unique: Unique,
    ) -> Result<Plan, Error> {
        self.check()?;
        let mut manifest = before.after(self.migrations.as_deref().unwrap_or_default(), &self.dir)?;
        let keys = self.keys(&manifest)?;
        let env = HostEnv(self.shared(&keys, shards, unique)?);
        let removed = manifest.take_removing();
        let (config, limits, classes) = (self.config(), self.conn_limits(), self.makers());
        Ok(Plan { env, config, limits, sql: self.sql, classes, keys: keys.to_vec(), manifest, removed })
    }

    #[cfg(feature = "testing")]
    fn makers(&self) -> Vec<MakeClass> {
        self.classes.iter().map(|(_, make)| *make).collect()
    }

    fn conn_limits(&self) -> ConnLimits {
        ConnLimits { message_bytes: self.message_bytes, outbox_bytes: self.outbox_bytes }
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
        names.iter().try_for_each(|name| check_name(name))?;
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

    /// The stable key of each class. Without migrations it is the name.
    fn keys(&self, manifest: &Manifest) -> Result<Arc<[String]>, Error> {
        let names = self.classes.iter().map(|(name, _)| name);
        match self.migrations {
            None => Ok(names.cloned().collect()),
            Some(_) => names.map(|name| manifest.key(name)).collect(),
        }
    }

    fn database(&self, keys: &[String], key: &ObjectKey) -> Result<Rc<dyn Storage>, Error> {
        let namespace = key_of(keys, key)?;
        if !DirLock::is_there(&self.dir) {
            let message =
                format!("the data directory {} was removed while it was in use", self.dir.display());
            return Err(Error::new(ErrorKind::Platform, message));
        }
        Ok(Rc::new(Database::open(&file_of(&self.dir, namespace, &key.id), &self.sql)?))
    }
}

/// A host without its threads.
#[cfg(feature = "testing")]
pub(crate) struct Plan {
    pub(crate) env: HostEnv,
    pub(crate) config: Config,
    pub(crate) limits: ConnLimits,
    pub(crate) sql: SqlLimits,
    pub(crate) classes: Vec<MakeClass>,
    /// The stable keys of the classes.
    pub(crate) keys: Vec<String>,
    /// What the data directory is to remember.
    pub(crate) manifest: Manifest,
    /// Keys of namespaces whose data is to be removed.
    pub(crate) removed: std::collections::BTreeSet<String>,
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

/// The alarms of one shard's objects. Those of namespaces that are not registered stay in the index.
fn alarms_of(
    shard: usize,
    shards: usize,
    keys: &[String],
    rows: &[IndexRow],
) -> Vec<(ObjectKey, Option<ObjectName>, Timestamp)> {
    let class_of = |key: &str| keys.iter().zip(0_u16..).find(|(k, _)| *k == key).map(|(_, class)| class);
    let mine = rows.iter().filter(|row| shard_of(&row.id, shards) == shard);
    mine.filter_map(|row| {
        let key = ObjectKey { class: class_of(&row.namespace)?, id: row.id };
        Some((key, row.name.clone(), row.at))
    })
    .collect()
}

/// The stable key of an object's namespace.
fn key_of<'a>(keys: &'a [String], key: &ObjectKey) -> Result<&'a str, Error> {
    let found = keys.get(usize::from(key.class)).map(String::as_str);
    found.ok_or_else(|| Error::new(ErrorKind::NotFound, "there is no such namespace"))
}

/// 256 folders a namespace, so that none grows beyond what a file system likes.
fn file_of(dir: &Path, key: &str, id: &[u8; 32]) -> PathBuf {
    let hex: String = id.iter().map(|b| format!("{b:02x}")).collect();
    dir.join(key).join(&hex[..2]).join(format!("{hex}.sqlite"))
}

/// Everything that goes to a shard's thread.
struct Seat {
    builder: Arc<Builder>,
    env: HostEnv,
    index: Arc<AlarmIndex>,
    keys: Arc<[String]>,
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
        let Self { builder, env, index, keys, alarms, queue } = self;
        let limits = builder.conn_limits();
        let conn_queue = Arc::clone(&queue);
        let cork = Cork::new(builder.cork, Arc::clone(&builder.clock));
        let connections =
            Rc::new(Connections::new(limits, cork, Arc::new(move |conn| conn_queue.conn_ready(conn))));
        let classes =
            builder.classes.iter().map(|(_, make)| make(env.clone(), Rc::clone(&connections) as _)).collect();
        let opener = (Arc::clone(&builder), Arc::clone(&keys));
        let ports = Ports {
            storage: Box::new(move |key| opener.0.database(&opener.1, key)),
            index: Box::new(IndexPort { index, keys }),
            clock: Arc::clone(&builder.clock),
            transport: Rc::clone(&connections) as _,
            ready: Shard::ready_queue(&queue),
            seed: getrandom::u64().unwrap_or_default(), // jitter only
            director: None,
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
    keys: Arc<[String]>,
}

impl engine::AlarmIndex for IndexPort {
    fn earlier(&self, key: &ObjectKey, name: Option<&ObjectName>, at: Timestamp) -> Result<(), Error> {
        self.index.earlier(key_of(&self.keys, key)?, &key.id, name, at)
    }

    fn settle(&self, key: &ObjectKey, at: Option<Timestamp>) {
        let settled = key_of(&self.keys, key).and_then(|namespace| self.index.settle(namespace, &key.id, at));
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
