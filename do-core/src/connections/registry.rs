use super::{
    Admission, Connection, Peer, Refusal, StreamTicket,
    memory::Memory,
    settings::{Hook, Settings},
};
use crate::{
    Accept, Error, ErrorKind, ObjectState, ReadyState, Request, Socket, SocketOf, SocketRegistry, Tag,
};
use std::{
    cell::{Cell, OnceCell, RefCell},
    collections::BTreeSet,
    fmt,
    rc::Rc,
};

/// What the tag of every socket begins with that came by a registry; its key follows. The tags of applications have no
/// U+001F where patterns use it, and what follows it in those of `do-sync` has no control characters.
const MARK: &str = "\u{1f}\u{1e}";

/// Who is connected to an object, whether by WebSocket or by a stream of events, and who may be: one place for the caps, the
/// authentication and the hooks of all patterns that an object uses.
///
/// Make it in `new`, say all that is to be said, and then give it to rooms, feeds and the like: its clones are the same
/// registry. With patterns an object does no more than that:
///
/// ```
/// use do_core::prelude::*;
/// use do_core::{Admission, Connections, Origins, Refusal};
///
/// # fn user_of(request: &Request) -> Option<String> { request.query("user") }
/// # fn example<S: ObjectState>(state: &S) -> Connections<S> {
/// let connections = Connections::new(state)
///     .origins(Origins::same_host())
///     .max(10_000)
///     .max_per_key(5)
///     .admit(|request| {
///         let user = user_of(request).ok_or(Refusal::Unauthorized)?; // a session's cookie, a signature
///         Admission::of(user).map_err(|_| Refusal::Unauthorized)
///     })
///     .on_join(|who| {
///         if who.others == 0 { /* somebody came who was not here */ }
///     })
///     .on_leave(|who| {
///         if who.others == 0 { /* their last connection ended */ }
///     });
/// # connections }
/// ```
///
/// # What counts
/// Sockets are counted from the host's list, so that hibernation changes nothing: all open ones of the object, also those
/// that came without the registry. One that is closing counts no longer. Streams are counted in memory, because they end
/// with the instance. Nothing is stored, and nothing is written.
///
/// # The hooks
/// Each connection is told of once when it is accepted and once when it is gone, within the turn of the object in which
/// that happens: what a hook writes is committed with what the handler writes. Hooks cannot fail. They may use the
/// registry, and hold clones of the state, but not of the registry itself: such an object is never freed.
///
/// A socket is gone with its close or error event, which comes once (rules D15, D16), and whoever handles it says so:
/// [`left`](Self::left), or what the pattern has for it. It counts no longer from the moment it closes, which may be
/// earlier. What ends without an event is not told of: a reset, a crash and a deployment end all connections of an object
/// at once (rule D25). A fresh instance begins with the sockets that hibernated and no streams, so that an application that
/// keeps rows about its visitors compares them with [`keys`](Self::keys) at the
/// [first event](ObjectState::at_first_event).
///
/// # Without patterns
/// ```
/// use do_core::{kit::Kit, prelude::*};
/// use do_core::{Admission, Connections, Refusal};
///
/// struct Board<S: ObjectState> { state: S, connections: Connections<S> }
///
/// impl<S: ObjectState> DurableObject<S> for Board<S> {
///     fn new(state: S) -> Result<Self> {
///         let connections = Connections::new(&state).max_per_key(1).admit(|request| {
///             let user = request.query("user").ok_or(Refusal::Unauthorized)?;
///             Admission::of(user).map_err(|_| Refusal::Unauthorized)
///         });
///         Ok(Self { state, connections })
///     }
///     async fn fetch(&self, request: Request) -> Result<Response> {
///         if let Some(refusal) = Refusal::of(&request) {
///             return Ok(refusal.reply()); // 426, 400
///         }
///         let admission = match self.connections.check(&request) {
///             Ok(admission) => admission,
///             Err(refusal) => return Ok(refusal.reply()), // 401, 403, 429, 503
///         };
///         let accept = self.connections.socket_accept(Accept::new(), &admission)?;
///         let (response, socket) = self.state.sockets().accept(&request, accept)?;
///         self.connections.joined(&socket);
///         Ok(response)
///     }
///     async fn websocket_close(&self, gone: SocketOf<S>, _: Close) -> Result<()> {
///         self.connections.left(&gone);
///         Ok(())
///     }
/// }
///
/// # fn main() -> Result<()> {
/// let kit = Kit::builder().object::<Board<_>>("BOARD").start()?;
/// kit.run(async {
///     let board = kit.namespace("BOARD")?.named("lobby")?;
///     let ann = kit.connect(&board, "/?user=ann").await?;
///     for (path, status) in [("/?user=ann", 429), ("/?user=bob", 101), ("/", 401)] {
///         let (request, _opening) = kit.handshake(path)?;
///         assert_eq!(board.fetch(request).await?.status(), status, "{path}");
///     }
///     drop(ann);
///     kit.settle().await;
///     kit.connect(&board, "/?user=ann").await?;
///     Ok(())
/// })
/// # }
/// ```
pub struct Connections<S: ObjectState>(pub(super) Rc<Inner<S>>);

type WasClosed<S> = fn(&SocketOf<S>) -> bool;

pub(super) struct Inner<S: ObjectState> {
    pub(super) state: S,
    pub(super) settings: Settings<S>,
    memory: RefCell<Memory>,
    /// What [`Connections::disregard`] said.
    was_closed: Cell<Option<WasClosed<S>>>,
    /// The numbers of sockets that the host takes for open and that were closed in an earlier instance.
    revenants: OnceCell<Vec<u64>>,
}

impl<S: ObjectState> Connections<S> {
    /// Everybody may come, as many as an object can have, and nobody is told.
    pub fn new(state: &S) -> Self {
        Self::make(state.clone(), Settings::default())
    }

    pub(super) fn make(state: S, settings: Settings<S>) -> Self {
        Self(Rc::new(Inner {
            state,
            settings,
            memory: RefCell::default(),
            was_closed: Cell::new(None),
            revenants: OnceCell::new(),
        }))
    }

    /// Whether whoever sent this may connect, and who it is. What is cheap to find out comes first: where the page is from,
    /// whether there is a place, who it is, whether there is a place for them.
    ///
    /// Nothing is reserved: accept them without an await between.
    ///
    /// # Errors
    /// [`Refusal::Forbidden`] for a foreign page, [`Refusal::Full`] at [`max`](Self::max), what
    /// [`admit`](Self::admit) says, [`Refusal::TooMany`] at [`max_per_key`](Self::max_per_key). Whether the request is a
    /// right WebSocket handshake is for [`Refusal::of`].
    pub fn check(&self, request: &Request) -> Result<Admission, Refusal> {
        self.check_origin(request)?;
        self.check_max(0)?;
        let admission = self.ask(request)?;
        self.check_max_of(&admission, 0)?;
        Ok(admission)
    }

    /// The part of [`check`](Self::check) that is about the request alone: for patterns in which a newcomer takes the place
    /// of an earlier connection. [`check_place`](Self::check_place) is the rest of it.
    ///
    /// # Errors
    /// As [`check`](Self::check), without those about places.
    pub fn identify(&self, request: &Request) -> Result<Admission, Refusal> {
        self.check_origin(request)?;
        self.ask(request)
    }

    /// Whether there is a place for somebody, if these leave for them. Those of the sockets that are not open have none to
    /// give.
    ///
    /// # Errors
    /// [`Refusal::Full`] and [`Refusal::TooMany`].
    pub fn check_place(
        &self,
        admission: &Admission,
        sockets: &[SocketOf<S>],
        streams: &[&StreamTicket],
    ) -> Result<(), Refusal> {
        let mut leaving = sockets.to_vec();
        self.retain_open(&mut leaving);
        let memory = self.0.memory.borrow();
        let streams: Vec<_> = streams.iter().filter_map(|ticket| memory.stream(ticket.serial)).collect();
        self.check_max(leaving.len() + streams.len())?;
        let Some(key) = admission.key() else { return Ok(()) };
        let of_key = leaving.iter().filter(|socket| self.key_of(socket).as_deref() == Some(key)).count()
            + streams.iter().filter(|stream| stream.key.as_deref() == Some(key)).count();
        self.check_max_of(admission, of_key)
    }

    fn check_origin(&self, request: &Request) -> Result<(), Refusal> {
        self.0.settings.origins.as_ref().map_or(Ok(()), |origins| origins.check(request))
    }

    fn ask(&self, request: &Request) -> Result<Admission, Refusal> {
        self.0.settings.admit.as_ref().map_or_else(|| Ok(Admission::anonymous()), |admit| admit(request))
    }

    fn check_max(&self, leaving: usize) -> Result<(), Refusal> {
        let full = self.0.settings.max.is_some_and(|most| self.count().saturating_sub(leaving) >= most);
        if full { Err(Refusal::full()) } else { Ok(()) }
    }

    fn check_max_of(&self, admission: &Admission, leaving: usize) -> Result<(), Refusal> {
        let (Some(most), Some(key)) = (self.0.settings.max_per_key, admission.key()) else { return Ok(()) };
        let full = self.of_key(key).saturating_sub(leaving) >= most;
        if full { Err(Refusal::too_many(super::refusal::RETRY)) } else { Ok(()) }
    }

    /// How many are connected, in whatever way.
    pub fn count(&self) -> usize {
        self.sockets() + self.streams()
    }

    /// How many open sockets the object has.
    pub fn sockets(&self) -> usize {
        let mut sockets = self.0.state.sockets().all();
        self.retain_open(&mut sockets);
        sockets.len()
    }

    /// How many streams there are.
    pub fn streams(&self) -> usize {
        self.0.memory.borrow().streams()
    }

    /// How many connections with this key there are: open sockets and streams.
    pub fn of_key(&self, key: &str) -> usize {
        self.sockets_of(key).len() + self.0.memory.borrow().streams_of(key)
    }

    /// The open sockets with this key, in no particular order: to send to somebody wherever they are, or to close them all.
    pub fn sockets_of(&self, key: &str) -> Vec<SocketOf<S>> {
        let mut sockets = self.listed(key);
        self.retain_open(&mut sockets);
        sockets
    }

    /// Who is connected, each once, in the order of the keys. Somebody anonymous is not among them.
    pub fn keys(&self) -> Vec<String> {
        let mut sockets = self.0.state.sockets().all();
        self.retain_open(&mut sockets);
        let mut keys: BTreeSet<String> = sockets.iter().filter_map(|socket| self.key_of(socket)).collect();
        keys.extend(self.0.memory.borrow().keys().map(|key| key.as_ref().to_owned()));
        keys.into_iter().collect()
    }

    /// The key that a socket came with; `None` when it came anonymously or without the registry. Right in the close handler
    /// too.
    #[allow(clippy::unused_self)] // another registry may have another rule
    pub fn key_of(&self, socket: &SocketOf<S>) -> Option<String> {
        mark_of::<S>(socket).filter(|key| !key.is_empty())
    }

    /// What a socket is to be accepted with: the same and a tag that says who it is, so that this survives hibernation. Of
    /// ten tags that a socket can have the registry takes one.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] when it has such a tag already, [`ErrorKind::Limit`] when it has ten.
    pub fn socket_accept(&self, accept: Accept, admission: &Admission) -> Result<Accept, Error> {
        let (tags, _) = accept.clone().into_parts();
        if tags.iter().any(|tag| tag.as_str().starts_with(MARK)) {
            let message = "tags do not begin with U+001F and U+001E: by these it is known whose a socket is";
            return Err(Error::new(ErrorKind::Invalid, message));
        }
        accept.tag(tag_of(admission.key().unwrap_or_default())?)
    }

    /// The socket was accepted as [`socket_accept`](Self::socket_accept) says: tells who is to be told. Once for each.
    pub fn joined(&self, socket: &SocketOf<S>) {
        let Some(key) = mark_of::<S>(socket) else { return };
        self.tell(self.0.settings.on_join.as_deref(), &key, Peer::Socket(socket), 0);
    }

    /// To be called with the close and the error event of each socket: tells who is to be told. For sockets that came
    /// without the registry, are open, or have left, it does nothing.
    pub fn left(&self, socket: &SocketOf<S>) {
        if socket.ready_state() == ReadyState::Open {
            return;
        }
        let Some(key) = mark_of::<S>(socket) else { return };
        let first = self.0.memory.borrow_mut().tell_left(socket.number());
        if first {
            self.tell(self.0.settings.on_leave.as_deref(), &key, Peer::Socket(socket), 0);
        }
    }

    /// For patterns: this socket was accepted and closed again before anybody was told that it joined. Nobody is told that
    /// it left.
    #[doc(hidden)]
    pub fn never_joined(&self, socket: &SocketOf<S>) {
        self.0.memory.borrow_mut().tell_left(socket.number());
    }

    /// A stream begins, by the name that its pattern knows it by: counts it, and tells who is to be told.
    pub fn stream_joined(&self, id: &str, admission: &Admission) -> StreamTicket {
        let serial = self.0.memory.borrow_mut().add(id, admission.shared_key());
        let key = admission.key().unwrap_or_default();
        self.tell(self.0.settings.on_join.as_deref(), key, Peer::Stream(id), 1);
        StreamTicket { serial }
    }

    /// The stream is gone, whatever the cause. To be called in a turn of the object.
    pub fn stream_left(&self, ticket: StreamTicket) {
        let stream = self.0.memory.borrow_mut().take(ticket.into_serial());
        if let Some(stream) = stream {
            let key = stream.key.as_deref().unwrap_or_default();
            self.tell(self.0.settings.on_leave.as_deref(), key, Peer::Stream(&stream.id), 0);
        }
    }

    /// `key` is empty for somebody anonymous; `counted` is how often the peer itself is among the streams.
    fn tell(&self, hook: Option<&Hook<S>>, key: &str, peer: Peer<'_, S>, counted: usize) {
        let Some(hook) = hook else { return };
        if key.is_empty() {
            return hook(&Connection { key: None, peer, others: 0 });
        }
        let streams = self.0.memory.borrow().streams_of(key).saturating_sub(counted);
        let mut sockets = self.listed(key);
        // Closing ones too: of each is told that it left, and the last of those is the last.
        sockets.retain(|socket| !self.0.memory.borrow().has_left(socket.number()));
        if let Peer::Socket(itself) = peer {
            sockets.retain(|socket| socket != itself);
        }
        hook(&Connection { key: Some(key), peer, others: sockets.len() + streams });
    }

    /// The sockets with this key that the host has, closing ones too.
    fn listed(&self, key: &str) -> Vec<SocketOf<S>> {
        match Admission::of(key).and_then(|_| tag_of(key)) {
            Ok(tag) => self.0.state.sockets().tagged(&tag),
            Err(_) => Vec::new(), // nobody can have it
        }
    }

    /// For patterns that mark the sockets that they close: so that they are not counted where a host takes them for open
    /// again. On Workers a socket whose peer does not answer the close is open for whoever asks after the second hibernation.
    #[doc(hidden)]
    pub fn disregard(&self, was_closed: WasClosed<S>) {
        self.0.was_closed.set(Some(was_closed));
    }

    fn retain_open(&self, sockets: &mut Vec<SocketOf<S>>) {
        sockets.retain(|socket| socket.ready_state() == ReadyState::Open);
        let Some(was_closed) = self.0.was_closed.get() else { return };
        // Looked for once in an instance: whatever closes in it is known to.
        let revenants = self.0.revenants.get_or_init(|| {
            let mut all = self.0.state.sockets().all();
            all.retain(|socket| socket.ready_state() == ReadyState::Open && was_closed(socket));
            all.iter().map(Socket::number).collect()
        });
        if !revenants.is_empty() {
            sockets.retain(|socket| !revenants.contains(&socket.number()));
        }
    }
}

/// The tag of the sockets with this key; the empty one is of those who are anonymous.
fn tag_of(key: &str) -> Result<Tag, Error> {
    Tag::new(format!("{MARK}{key}"))
}

/// The key of a socket that came by a registry; empty for somebody anonymous.
fn mark_of<S: ObjectState>(socket: &SocketOf<S>) -> Option<String> {
    socket.tags().iter().find_map(|tag| tag.as_str().strip_prefix(MARK).map(str::to_owned))
}

impl<S: ObjectState> Clone for Connections<S> {
    fn clone(&self) -> Self {
        Self(Rc::clone(&self.0))
    }
}

/// Not derived, because states and hooks need not have it.
impl<S: ObjectState> fmt::Debug for Connections<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connections")
            .field("max", &self.0.settings.max)
            .field("max_per_key", &self.0.settings.max_per_key)
            .field("origins", &self.0.settings.origins)
            .field("memory", &self.0.memory)
            .finish_non_exhaustive()
    }
}
