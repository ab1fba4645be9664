//! What a native object has of its host: handles on the instance's [`Core`].

use super::{namespace::HostEnv, upgrade::Accepts, ws};
use crate::{
    Accept, AlarmScheduler, AutoResponse, CloseFrame, Error, ErrorKind, Failure, Message, ObjectId,
    ObjectState, Params, ReadyState, Request, Response, Row, Rows, Socket, SocketOf, SocketRegistry,
    SqlStorage, Tag, Timestamp,
    engine::{Core, DriverState, Sleep, SocketCell, SocketSeed},
};
use std::{
    convert::Infallible,
    fmt,
    future::{Future, ready},
    ops::ControlFlow,
    pin::Pin,
    rc::Rc,
    task::{Context, Poll},
    time::Duration,
};

/// The native [`ObjectState`].
#[derive(Clone)]
pub struct HostState(Rc<Inner>);

struct Inner {
    env: HostEnv,
    core: Rc<Core>,
    sockets: HostSockets,
    alarms: HostAlarms,
    sql: HostSql,
}

impl HostState {
    pub(crate) fn new(core: Rc<Core>, env: HostEnv, network: Rc<dyn Accepts>) -> Self {
        Self(Rc::new(Inner {
            env,
            sockets: HostSockets { core: Rc::clone(&core), network },
            alarms: HostAlarms(Rc::clone(&core)),
            sql: HostSql(Rc::clone(&core)),
            core,
        }))
    }
}

impl DriverState for HostState {
    fn socket(seed: SocketSeed) -> SocketOf<Self> {
        HostSocket { core: seed.core, cell: seed.cell }
    }
}

impl ObjectState for HostState {
    type Sockets = HostSockets;
    type Alarms = HostAlarms;
    type Sql = HostSql;
    type Env = HostEnv;

    fn id(&self) -> &ObjectId {
        self.0.core.id()
    }

    fn env(&self) -> &HostEnv {
        &self.0.env
    }

    fn sockets(&self) -> &HostSockets {
        &self.0.sockets
    }

    fn alarms(&self) -> &HostAlarms {
        &self.0.alarms
    }

    fn sql(&self) -> &HostSql {
        &self.0.sql
    }

    fn now(&self) -> Timestamp {
        self.0.core.now()
    }

    fn random(&self) -> u64 {
        self.0.core.random()
    }

    fn sleep(&self, duration: Duration) -> impl Future<Output = ()> + use<> {
        HostSleep(Sleep::new(Rc::clone(&self.0.core), duration))
    }

    fn wait_until(&self, work: impl Future<Output = ()> + 'static) {
        self.0.core.wait_until(work);
    }

    fn block_concurrency_while<T, F>(&self, work: F) -> impl Future<Output = Result<T, Failure>> + use<T, F>
    where
        T: 'static,
        F: Future<Output = Result<T, Failure>> + 'static,
    {
        self.0.core.block_concurrency_while(work)
    }

    fn at_first_event(&self, work: impl FnOnce() + 'static) {
        self.0.core.at_first_event(work);
    }

    async fn reset(&self, reason: &str) -> Infallible {
        self.0.core.reset(reason).await
    }

    fn delete_all(&self) -> Result<(), Error> {
        self.0.core.delete_all()
    }
}

/// A pending [`sleep`](ObjectState::sleep) of a native object.
pub struct HostSleep(Sleep);

impl Future for HostSleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        Pin::new(&mut self.0).poll(cx)
    }
}

/// The native [`SocketRegistry`].
#[derive(Clone)]
pub struct HostSockets {
    core: Rc<Core>,
    network: Rc<dyn Accepts>,
}

impl HostSockets {
    fn handle(&self, cell: Rc<SocketCell>) -> HostSocket {
        HostSocket { core: Rc::clone(&self.core), cell }
    }
}

impl SocketRegistry for HostSockets {
    type Socket = HostSocket;

    fn accept(&self, request: &Request, with: Accept) -> Result<(Response, HostSocket), Error> {
        let response = ws::response(request, with.protocol_header()?)?;
        let (tags, attachment) = with.into_parts();
        self.core.sockets().check_room()?;
        let key = self.core.new_socket_key()?;
        let conn = self.network.accept(request, key).ok_or_else(|| {
            Error::new(
                ErrorKind::Invalid,
                "the request's connection cannot be upgraded, or its upgrade was taken already",
            )
            .of_request()
        })?;
        let cell = self.core.sockets().insert(key.socket, conn, tags, attachment);
        Ok((response, self.handle(cell)))
    }

    fn all(&self) -> Vec<HostSocket> {
        self.core.in_any_order(self.core.sockets().all()).into_iter().map(|cell| self.handle(cell)).collect()
    }

    fn tagged(&self, tag: &Tag) -> Vec<HostSocket> {
        self.core
            .in_any_order(self.core.sockets().tagged(tag))
            .into_iter()
            .map(|cell| self.handle(cell))
            .collect()
    }

    fn set_auto_response(&self, pair: Option<AutoResponse>) -> Result<(), Error> {
        self.core.sockets().set_auto_response(pair);
        Ok(())
    }
}

/// The native [`Socket`].
#[derive(Clone)]
pub struct HostSocket {
    core: Rc<Core>,
    cell: Rc<SocketCell>,
}

impl PartialEq for HostSocket {
    fn eq(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.cell, &other.cell)
    }
}

impl Eq for HostSocket {}

impl Socket for HostSocket {
    fn send(&self, message: impl Into<Message>) -> Result<(), Error> {
        self.core.send(&self.cell, message.into())
    }

    fn close(&self, frame: impl Into<CloseFrame>) -> Result<(), Error> {
        self.core.close(&self.cell, frame.into())
    }

    fn tags(&self) -> Vec<Tag> {
        self.cell.tags().to_vec()
    }

    fn attachment_bytes(&self) -> Option<Vec<u8>> {
        self.cell.attachment()
    }

    fn set_attachment_bytes(&self, bytes: Vec<u8>) -> Result<(), Error> {
        self.cell.set_attachment(bytes);
        Ok(())
    }

    fn ready_state(&self) -> ReadyState {
        self.cell.ready_state()
    }

    fn buffered_bytes(&self) -> Option<u64> {
        Some(self.cell.buffered(self.core.transport()))
    }

    fn has_room(&self, bytes: usize) -> bool {
        self.cell.has_room(bytes, self.core.transport())
    }

    fn has_tag(&self, tag: &Tag) -> bool {
        self.cell.tags().contains(tag)
    }

    fn number(&self) -> u64 {
        self.cell.id()
    }

    fn auto_response_at(&self) -> Option<Timestamp> {
        self.cell.auto_response_at()
    }
}

/// The native [`AlarmScheduler`].
#[derive(Clone)]
pub struct HostAlarms(Rc<Core>);

impl AlarmScheduler for HostAlarms {
    fn set(&self, at: Timestamp) -> impl Future<Output = Result<(), Error>> + use<> {
        ready(self.0.set_alarm(Some(at)))
    }

    async fn get(&self) -> Result<Option<Timestamp>, Error> {
        self.0.alarm()
    }

    async fn delete(&self) -> Result<(), Error> {
        self.0.set_alarm(None)
    }
}

/// The native [`SqlStorage`].
#[derive(Clone)]
pub struct HostSql(Rc<Core>);

impl SqlStorage for HostSql {
    fn exec(&self, sql: &str, params: impl Params) -> Result<Rows, Error> {
        self.0.storage()?.exec(sql, &params.into_values())
    }

    fn for_each(
        &self,
        sql: &str,
        params: impl Params,
        mut each: impl FnMut(Row<'_>) -> Result<ControlFlow<()>, Error>,
    ) -> Result<(), Error> {
        self.0.storage()?.for_each(sql, &params.into_values(), &mut each)
    }

    fn transaction<T>(&self, body: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
        self.0.transaction(body)
    }

    fn rollbacks(&self) -> u64 {
        self.0.rollbacks.get()
    }

    fn database_size(&self) -> u64 {
        self.0.database_size()
    }
}

macro_rules! opaque_debug {
    ($($type:ident),*) => {
        $(impl fmt::Debug for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(stringify!($type))
            }
        })*
    };
}

opaque_debug!(HostState, HostSleep, HostSockets, HostSocket, HostAlarms, HostSql);
