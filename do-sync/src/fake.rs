//! Just enough of a host in memory for the room's own logic. What a host really does is tested on real hosts.

use do_core::{
    Accept, AlarmScheduler, AutoResponse, CloseFrame, Env, Error, ErrorKind, Failure, Message, Namespace,
    ObjectId, ObjectState, Params, ReadyState, Request, Response, Row, Rows, Secret, Socket, SocketRegistry,
    SqlStorage, Stub, Tag, Timestamp, reply,
};
use std::{
    cell::{Cell, RefCell},
    convert::Infallible,
    future::{pending, ready},
    ops::ControlFlow,
    rc::Rc,
    time::Duration,
};

fn absent<T>() -> Result<T, Error> {
    Err(Error::new(ErrorKind::Platform, "the fake host does not have this"))
}

pub(crate) fn handshake() -> Request {
    Request::default()
}

#[derive(Debug)]
struct Connection {
    tags: Vec<Tag>,
    attachment: RefCell<Option<Vec<u8>>>,
    sent: RefCell<Vec<Message>>,
    state: Cell<ReadyState>,
    failing: Cell<bool>,
}

#[derive(Debug, Clone)]
pub(crate) struct FakeSocket(Rc<Connection>);

impl FakeSocket {
    pub(crate) fn sent(&self) -> Vec<Message> {
        self.0.sent.borrow().clone()
    }

    pub(crate) fn fail_sends(&self) {
        self.0.failing.set(true);
    }
}

impl PartialEq for FakeSocket {
    fn eq(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.0, &other.0)
    }
}

impl Socket for FakeSocket {
    fn send(&self, message: impl Into<Message>) -> Result<(), Error> {
        if self.0.failing.get() {
            return Err(Error::new(ErrorKind::Overloaded, "full"));
        }
        self.0.sent.borrow_mut().push(message.into());
        Ok(())
    }

    fn close(&self, _: impl Into<CloseFrame>) -> Result<(), Error> {
        self.0.state.set(ReadyState::Closing);
        Ok(())
    }

    fn tags(&self) -> Vec<Tag> {
        self.0.tags.clone()
    }

    fn attachment_bytes(&self) -> Option<Vec<u8>> {
        self.0.attachment.borrow().clone()
    }

    fn set_attachment_bytes(&self, bytes: Vec<u8>) -> Result<(), Error> {
        *self.0.attachment.borrow_mut() = Some(bytes);
        Ok(())
    }

    fn ready_state(&self) -> ReadyState {
        self.0.state.get()
    }

    fn buffered_bytes(&self) -> Option<u64> {
        Some(0)
    }

    fn number(&self) -> u64 {
        Rc::as_ptr(&self.0) as usize as u64
    }

    fn auto_response_at(&self) -> Option<Timestamp> {
        None
    }
}

#[derive(Debug, Clone)]
pub(crate) struct FakeState(Rc<Shared>);

#[derive(Debug)]
struct Shared {
    id: ObjectId,
    sockets: RefCell<Vec<FakeSocket>>,
    auto_response: RefCell<Option<AutoResponse>>,
}

impl FakeState {
    pub(crate) fn auto_response(&self) -> Option<AutoResponse> {
        self.0.auto_response.borrow().clone()
    }
}

impl Default for FakeState {
    fn default() -> Self {
        let id = ObjectId::from_parts([0; 32], None);
        Self(Rc::new(Shared { id, sockets: RefCell::default(), auto_response: RefCell::default() }))
    }
}

impl SocketRegistry for FakeState {
    type Socket = FakeSocket;

    fn accept(&self, _: &Request, with: Accept) -> Result<(Response, FakeSocket), Error> {
        let (tags, attachment) = with.into_parts();
        let socket = FakeSocket(Rc::new(Connection {
            tags,
            attachment: RefCell::new(attachment),
            sent: RefCell::default(),
            state: Cell::new(ReadyState::Open),
            failing: Cell::new(false),
        }));
        self.0.sockets.borrow_mut().push(socket.clone());
        Ok((reply::status(http::StatusCode::SWITCHING_PROTOCOLS), socket))
    }

    fn all(&self) -> Vec<FakeSocket> {
        self.0.sockets.borrow().clone()
    }

    fn tagged(&self, tag: &Tag) -> Vec<FakeSocket> {
        let mut sockets = self.all();
        sockets.retain(|socket| socket.0.tags.contains(tag));
        sockets
    }

    fn set_auto_response(&self, pair: Option<AutoResponse>) -> Result<(), Error> {
        *self.0.auto_response.borrow_mut() = pair;
        Ok(())
    }
}

impl ObjectState for FakeState {
    type Sockets = Self;
    type Alarms = Absent;
    type Sql = Absent;
    type Env = Absent;

    fn id(&self) -> &ObjectId {
        &self.0.id
    }

    fn env(&self) -> &Absent {
        &Absent
    }

    fn sockets(&self) -> &Self {
        self
    }

    fn alarms(&self) -> &Absent {
        &Absent
    }

    fn sql(&self) -> &Absent {
        &Absent
    }

    fn now(&self) -> Timestamp {
        Timestamp::EPOCH
    }

    /// Always the same, so that whoever trusts it to be unique is found out.
    fn random(&self) -> u64 {
        u64::MAX
    }

    fn sleep(&self, _: Duration) -> impl Future<Output = ()> + use<> {
        ready(())
    }

    fn wait_until(&self, work: impl Future<Output = ()> + 'static) {
        drop(work);
    }

    fn block_concurrency_while<T, F>(&self, work: F) -> impl Future<Output = Result<T, Failure>> + use<T, F>
    where
        T: 'static,
        F: Future<Output = Result<T, Failure>> + 'static,
    {
        work
    }

    /// Nobody tells it of events.
    fn at_first_event(&self, work: impl FnOnce() + 'static) {
        drop(work);
    }

    async fn reset(&self, _: &str) -> Infallible {
        pending().await
    }

    fn delete_all(&self) -> Result<(), Error> {
        absent()
    }
}

/// The parts of a host that a room has no use for.
#[derive(Debug, Clone)]
pub(crate) struct Absent;

impl AlarmScheduler for Absent {
    fn set(&self, _: Timestamp) -> impl Future<Output = Result<(), Error>> + use<> {
        ready(absent())
    }

    async fn get(&self) -> Result<Option<Timestamp>, Error> {
        absent()
    }

    async fn delete(&self) -> Result<(), Error> {
        absent()
    }
}

impl SqlStorage for Absent {
    fn exec(&self, _: &str, _: impl Params) -> Result<Rows, Error> {
        absent()
    }

    fn for_each(
        &self,
        _: &str,
        _: impl Params,
        _: impl FnMut(Row<'_>) -> Result<ControlFlow<()>, Error>,
    ) -> Result<(), Error> {
        absent()
    }

    fn transaction<T>(&self, body: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
        body()
    }

    fn database_size(&self) -> u64 {
        0
    }
}

impl Env for Absent {
    type Namespace = Self;

    fn namespace(&self, _: &str) -> Result<Self, Error> {
        absent()
    }

    fn var(&self, _: &str) -> Result<String, Error> {
        absent()
    }

    fn secret(&self, _: &str) -> Result<Secret, Error> {
        absent()
    }
}

impl Namespace for Absent {
    type Stub = NoStub;

    fn id_of(&self, _: &do_core::ObjectName) -> Result<ObjectId, Error> {
        absent()
    }

    fn parse_id(&self, _: &str) -> Result<ObjectId, Error> {
        absent()
    }

    fn unique_id(&self) -> Result<ObjectId, Error> {
        absent()
    }

    fn get(&self, _: &ObjectId) -> Result<NoStub, Error> {
        absent()
    }
}

#[derive(Debug, Clone)]
pub(crate) struct NoStub(ObjectId);

impl Stub for NoStub {
    fn id(&self) -> &ObjectId {
        &self.0
    }

    fn fetch(&self, _: Request) -> impl Future<Output = Result<Response, Error>> + Send + use<> {
        ready(absent())
    }

    fn delay(&self, _: Duration) -> impl Future<Output = ()> + Send + use<> {
        ready(())
    }
}
