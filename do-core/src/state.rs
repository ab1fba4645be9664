use crate::{AlarmScheduler, Env, Error, Failure, ObjectId, SocketRegistry, SqlStorage, Timestamp};
use std::{convert::Infallible, time::Duration};

/// What an object has of its host. Cheap to clone; every clone is the same state.
#[allow(async_fn_in_trait)] // objects live on one thread: their futures are not meant to be Send
pub trait ObjectState: Clone + 'static {
    /// Its sockets.
    type Sockets: SocketRegistry;
    /// Its alarm slot.
    type Alarms: AlarmScheduler;
    /// Its database.
    type Sql: SqlStorage;
    /// The way to variables, secrets and other objects.
    type Env: Env;

    /// The object's id; with its name if the instance was first reached by name (rule A9).
    fn id(&self) -> &ObjectId;

    /// Variables, secrets and namespaces.
    fn env(&self) -> &Self::Env;

    /// The WebSockets that this object accepted and that are still open, whichever instance accepted them.
    fn sockets(&self) -> &Self::Sockets;

    /// The object's one alarm slot.
    fn alarms(&self) -> &Self::Alarms;

    /// The object's database.
    fn sql(&self) -> &Self::Sql;

    /// The time. It stands still between two awaits, and within an instance it never goes back.
    fn now(&self) -> Timestamp;

    /// A random number for jitter, epochs and ids; not for secrets. In the test kit a seed replays it.
    fn random(&self) -> u64;

    /// Completes after `duration`. A pending sleep keeps the object in memory (rule B3).
    fn sleep(&self, duration: Duration) -> impl Future<Output = ()> + use<Self>;

    /// Runs `work` beside the handlers, after the response too. The only way to spawn. Keeps the object in
    /// memory until it ends (rule B3).
    fn wait_until(&self, work: impl Future<Output = ()> + 'static);

    /// Runs `work` while every other event of this object waits, then gives its value (rule B8). The gate closes
    /// at the call, and the returned future may be dropped.
    ///
    /// # Errors
    /// The error of `work`; after it, the object is reset in any case (rule B9), so code behind the await does
    /// not run. More than [`limits::BLOCK_CONCURRENCY`](crate::limits::BLOCK_CONCURRENCY) or nesting deeper than
    /// [`limits::BLOCK_CONCURRENCY_DEPTH`](crate::limits::BLOCK_CONCURRENCY_DEPTH) resets it too (rule B10).
    fn block_concurrency_while<T, F>(
        &self,
        work: F,
    ) -> impl Future<Output = Result<T, Failure>> + use<Self, T, F>
    where
        T: 'static,
        F: Future<Output = Result<T, Failure>> + 'static;

    /// [`block_concurrency_while`](Self::block_concurrency_while) for `new`: nothing to await.
    fn init(&self, work: impl Future<Output = Result<(), Failure>> + 'static) {
        drop(self.block_concurrency_while(work));
    }

    /// Calls `work` once, right before the handler of this instance's first event that is not its alarm's: a request, or
    /// a socket's message, close or error. It runs within that event, before its handler's first line: storage may be
    /// used in it, what it writes is committed with what the handler writes, and a panic in it is one of the handler.
    /// At once, before this returns, when the handler of such an event has begun already.
    ///
    /// For what must not happen in a constructor: one that touches the alarm slot loses the run of the alarm that woke
    /// the object (rule E12).
    ///
    /// Several are called in the order in which they were given. An instance that only ever runs alarms never calls them.
    /// They are lost with the instance, do not keep it in memory, and may hold clones of the state.
    fn at_first_event(&self, work: impl FnOnce() + 'static);

    /// Throws the instance away: every request in flight fails with `reason`, sockets close with 1006 and
    /// without an event, memory is lost; what was written before stays. Never returns.
    async fn reset(&self, reason: &str) -> Infallible;

    /// Empties the database and the alarm slot (rule E14). What this turn wrote before is discarded.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`](crate::ErrorKind::Invalid) inside a transaction, and as
    /// [`SqlStorage::exec`](crate::SqlStorage::exec).
    fn delete_all(&self) -> Result<(), Error>;
}
