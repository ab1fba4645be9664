//! The caller's side: handles that are `Send` and lead to an object's shard.

use super::{
    shard::{Command, ShardQueue},
    upgrade::PendingUpgrade,
};
use crate::{
    Env, Error, ErrorKind, Namespace, ObjectId, ObjectName, Request, Response, Secret, Stub,
    address::complete_uri,
    engine::{self, Clock, ObjectKey, Reply, UnderWay},
};
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};
use std::{
    collections::BTreeMap,
    fmt,
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::sync::oneshot;

/// What every handle of one host shares.
pub(super) struct Shared {
    pub(super) namespaces: Vec<NamespaceInfo>,
    pub(super) shards: Vec<Arc<ShardQueue>>,
    pub(super) vars: BTreeMap<String, String>,
    pub(super) secrets: BTreeMap<String, Secret>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) draining: AtomicBool,
    pub(super) unique: Unique,
}

/// Fills the part of a new id that is random.
pub(crate) type Unique = Box<dyn Fn(&mut [u8]) -> Result<(), Error> + Send + Sync>;

/// From the operating system.
pub(super) fn system_random(bytes: &mut [u8]) -> Result<(), Error> {
    let failed = |e| Error::new(ErrorKind::Platform, format!("the system gives no randomness: {e}"));
    getrandom::fill(bytes).map_err(failed)
}

/// One class of objects.
pub(super) struct NamespaceInfo {
    pub(super) name: String,
    /// Of the namespace's stable key: what makes ids belong to it (rule A1).
    mac: Hmac<Sha256>,
}

impl NamespaceInfo {
    /// `key` is the namespace's stable one, which its name is not: it may be renamed.
    pub(super) fn new(name: &str, key: &str) -> Result<Self, Error> {
        let key = Sha256::digest(key.as_bytes());
        let mac = Hmac::new_from_slice(&key).map_err(|e| Error::new(ErrorKind::Platform, e.to_string()))?;
        Ok(Self { name: name.to_owned(), mac })
    }

    fn mac16(&self, of: &[u8]) -> [u8; 16] {
        let mut mac = self.mac.clone();
        mac.update(of);
        let full = mac.finalize().into_bytes();
        let mut half = [0; 16];
        half.copy_from_slice(&full[..16]);
        half
    }

    /// A1: 16 bytes, then their check value for this namespace.
    fn id(&self, first: [u8; 16]) -> [u8; 32] {
        let mut bytes = [0; 32];
        bytes[..16].copy_from_slice(&first);
        bytes[16..].copy_from_slice(&self.mac16(&first));
        bytes
    }

    fn check(&self, bytes: &[u8; 32]) -> Result<(), Error> {
        if self.mac16(&bytes[..16])[..] == bytes[16..] {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::Invalid,
            format!("the object id is not valid for the namespace {}", self.name),
        ))
    }
}

/// The native [`Env`].
#[derive(Clone)]
pub struct HostEnv(pub(super) Arc<Shared>);

impl HostEnv {
    /// Whether [`Host::shutdown`](super::Host::shutdown) has begun: what a health check should say.
    pub fn is_shutting_down(&self) -> bool {
        self.0.draining.load(Ordering::Acquire)
    }
}

impl Env for HostEnv {
    type Namespace = HostNamespace;

    fn namespace(&self, binding: &str) -> Result<HostNamespace, Error> {
        let found = self.0.namespaces.iter().zip(0..).find(|(info, _)| info.name == binding);
        let (_, class) = found
            .ok_or_else(|| Error::new(ErrorKind::NotFound, format!("there is no namespace {binding:?}")))?;
        Ok(HostNamespace { shared: Arc::clone(&self.0), class })
    }

    fn var(&self, name: &str) -> Result<String, Error> {
        let var = self.0.vars.get(name).cloned();
        var.ok_or_else(|| Error::new(ErrorKind::NotFound, format!("there is no variable {name:?}")))
    }

    fn secret(&self, name: &str) -> Result<Secret, Error> {
        let secret = self.0.secrets.get(name).cloned();
        secret.ok_or_else(|| Error::new(ErrorKind::NotFound, format!("there is no secret {name:?}")))
    }
}

/// The native [`Namespace`].
#[derive(Clone)]
pub struct HostNamespace {
    shared: Arc<Shared>,
    class: u16,
}

impl HostNamespace {
    fn info(&self) -> Result<&NamespaceInfo, Error> {
        let info = self.shared.namespaces.get(usize::from(self.class));
        info.ok_or_else(|| Error::new(ErrorKind::NotFound, "there is no such namespace"))
    }

    /// Why an object is in memory: what its handlers, timers, calls, open responses and unsent messages are (rule
    /// B3).
    /// `None` when it is not in memory, and an empty list when it is idle and will leave.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] for an id of another namespace, [`ErrorKind::Shutdown`].
    pub async fn why_awake(&self, id: &ObjectId) -> Result<Option<Vec<&'static str>>, Error> {
        let stub = self.get(id)?;
        let (answer, answered) = oneshot::channel();
        stub.shard().push(Command::WhyAwake { key: stub.key, answer });
        answered.await.map_err(|_| stopped())
    }

    /// The namespace's objects that are in memory, in no particular order, and why each one is there, as
    /// [`why_awake`](Self::why_awake) gives it. An object has its name if it was reached by it.
    ///
    /// For inspection: shards answer one after the other, between turns of objects, so that together the answers are no
    /// snapshot. It takes time and memory for each object that is in memory.
    ///
    /// ```
    /// # use do_core::{Stub, prelude::*, tokio::Host};
    /// # struct Counter;
    /// # impl<S: ObjectState> DurableObject<S> for Counter {
    /// #     fn new(_: S) -> Result<Self, Failure> { Ok(Self) }
    /// #     async fn fetch(&self, _: Request) -> Result<Response, Failure> { Ok(reply::json(&1)?) }
    /// # }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Failure> {
    /// # let folder = tempfile::tempdir()?;
    /// # let host = Host::builder(folder.path()).object::<Counter>("COUNTER").start()?;
    /// let counters = host.namespace("COUNTER")?;
    /// counters.named("a")?.fetch(Request::new(Body::empty())).await?;
    /// for (id, why) in counters.in_memory().await? {
    ///     println!("{:?} {}", id.name(), if why.is_empty() { "is idle".to_owned() } else { why.join(", ") });
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Shutdown`].
    ///
    /// # Cancel safety
    /// Dropping the future changes nothing.
    pub async fn in_memory(&self) -> Result<Vec<(ObjectId, Vec<&'static str>)>, Error> {
        let mut all = Vec::new();
        for shard in &self.shared.shards {
            let (answer, answered) = oneshot::channel();
            shard.push(Command::InMemory { class: self.class, answer });
            all.extend(answered.await.map_err(|_| stopped())?);
        }
        Ok(all)
    }
}

impl Namespace for HostNamespace {
    type Stub = HostStub;

    fn id_of(&self, name: &ObjectName) -> Result<ObjectId, Error> {
        let info = self.info()?;
        Ok(ObjectId::from_parts(info.id(info.mac16(name.as_str().as_bytes())), Some(name.clone())))
    }

    fn parse_id(&self, text: &str) -> Result<ObjectId, Error> {
        let bytes = ObjectId::parse_bytes(text)?;
        self.info()?.check(&bytes)?;
        Ok(ObjectId::from_parts(bytes, None))
    }

    fn unique_id(&self) -> Result<ObjectId, Error> {
        let mut first = [0; 16];
        (self.shared.unique)(&mut first)?;
        Ok(ObjectId::from_parts(self.info()?.id(first), None))
    }

    fn get(&self, id: &ObjectId) -> Result<HostStub, Error> {
        self.info()?.check(id.as_bytes())?; // A6: a foreign id is an error
        let key = ObjectKey { class: self.class, id: *id.as_bytes() };
        Ok(HostStub { shared: Arc::clone(&self.shared), key, id: Arc::new(id.clone()) })
    }
}

/// The native [`Stub`].
#[derive(Clone)]
pub struct HostStub {
    shared: Arc<Shared>,
    key: ObjectKey,
    id: Arc<ObjectId>,
}

impl HostStub {
    #[cfg(feature = "testing")]
    pub(crate) fn key(&self) -> ObjectKey {
        self.key
    }

    /// Whether it is of the host whose environment that is.
    #[cfg(feature = "testing")]
    pub(crate) fn is_of(&self, env: &HostEnv) -> bool {
        Arc::ptr_eq(&self.shared, &env.0)
    }

    fn shard(&self) -> &Arc<ShardQueue> {
        // invariant: a host has at least one shard
        &self.shared.shards[shard_of(&self.key.id, self.shared.shards.len())]
    }
}

/// Which shard an object lives on. The bytes of an id are uniformly distributed.
pub(super) fn shard_of(id: &[u8; 32], shards: usize) -> usize {
    let number = u64::from_be_bytes([id[0], id[1], id[2], id[3], id[4], id[5], id[6], id[7]]);
    #[allow(clippy::cast_possible_truncation)] // the remainder is less than a usize
    let index = (number % shards as u64) as usize;
    index
}

fn stopped() -> Error {
    Error::new(ErrorKind::Shutdown, "the host has shut down")
}

impl Stub for HostStub {
    fn id(&self) -> &ObjectId {
        &self.id
    }

    fn fetch(&self, mut request: Request) -> impl Future<Output = Result<Response, Error>> + Send + use<> {
        let (answer, answered) = oneshot::channel();
        let caller = engine::current();
        let under_way = caller.as_deref().map(UnderWay::call);
        let reply = Reply::new(move |result| {
            drop(answer.send(result));
            drop(under_way); // after it: who waits for the answer is awake before the call is over
        });
        match complete_uri(&mut request) {
            Err(error) => reply.send(Err(error)),
            // From a destructor of an instance that is thrown away: its turn may have been undone.
            Ok(()) if engine::is_cutting_off() => {
                reply.send(Err(Error::new(ErrorKind::Reset, "the object that calls is gone")));
            }
            Ok(()) => {
                PendingUpgrade::wrap(&mut request);
                let name = self.id.name().cloned();
                let command = Command::Fetch { key: self.key, name, request: Box::new(request), reply };
                let shard = Arc::clone(self.shard());
                match caller {
                    // C4: a call out of an object waits for what the object wrote
                    Some(core) => core.call(move || shard.push(command)),
                    None => shard.push(command),
                }
            }
        }
        async move { answered.await.unwrap_or_else(|_| Err(stopped())) }
    }

    fn delay(&self, duration: Duration) -> impl Future<Output = ()> + Send + use<> {
        let until = self.shared.clock.elapsed().saturating_add(duration);
        let (done, waited) = oneshot::channel();
        self.shard().push(Command::Delay { until, done });
        async move {
            let _ = waited.await; // a host that stops ends the wait
        }
    }

    fn random(&self) -> Result<u64, Error> {
        let mut bytes = [0; 8];
        (self.shared.unique)(&mut bytes)?;
        Ok(u64::from_ne_bytes(bytes))
    }
}

impl fmt::Debug for HostEnv {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.0.namespaces.iter().map(|info| &info.name).collect();
        f.debug_struct("HostEnv").field("namespaces", &names).finish_non_exhaustive()
    }
}

impl fmt::Debug for HostNamespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("HostNamespace").field(&self.info().map(|info| &info.name).ok()).finish()
    }
}

impl fmt::Debug for HostStub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("HostStub").field(&self.id).finish()
    }
}
