use crate::{
    Broadcast, BroadcastReport, Refusal, inbound::Watch, member::was_closed, outbound::Flow,
    settings::Settings,
};
use do_core::{
    Accept, Admission, Alarm, AutoResponse, Connections, Error, ErrorKind, Message, ObjectState, Request,
    Response, Socket, SocketOf, SocketRegistry, Tag, tag,
};
use serde::Serialize;
use std::{cell::RefCell, fmt, rc::Rc};

/// What stands between a room's key and a member's id in a tag. No id has it, and no tag of the application.
pub(crate) const SEPARATOR: char = '\u{1f}';

/// The key of the room of all sockets: no other room's key or tag is the same, because these have no separator.
const ALL: &str = "\u{1f}\u{1f}";

/// Some of an object's sockets, seen as one room.
///
/// The sockets of a room are those that carry its tag, whichever instance of the object accepted them: none is
/// held here. Only open ones count and receive: one that is closing is out of the room at once (rule D18).
///
/// Make it in `new` and keep it: what it knows about slow and loud sockets is in memory, and its clones share it.
pub struct Room<S: ObjectState>(Rc<Inner<S>>);

pub(crate) struct Inner<S: ObjectState> {
    pub(crate) state: S,
    /// `None`: all sockets of the object.
    pub(crate) tag: Option<Tag>,
    pub(crate) settings: Settings,
    pub(crate) alarm: Option<Alarm<S>>,
    pub(crate) connections: Option<Connections<S>>,
    pub(crate) log: crate::log::Memory<S>,
    pub(crate) members: crate::member::Memory,
    pub(crate) flow: Flow<S>,
    pub(crate) watch: Watch<S>,
    pub(crate) pings: RefCell<Option<AutoResponse>>,
}

impl<S: ObjectState> Room<S> {
    /// The room of an object that has one: the sockets with the tag `"room"`.
    pub fn new(state: &S) -> Self {
        Self::tagged(state, tag!("room"))
    }

    /// The room of the sockets with this tag: for objects with several rooms. A socket is in each of which it
    /// has the tag.
    pub fn tagged(state: &S, tag: impl Into<Tag>) -> Self {
        Self::make(state.clone(), Some(tag.into()), Settings::default(), None, None, None)
    }

    /// All sockets of the object, whatever their tags; joining adds none.
    pub fn all(state: &S) -> Self {
        Self::make(state.clone(), None, Settings::default(), None, None, None)
    }

    fn make(
        state: S,
        tag: Option<Tag>,
        settings: Settings,
        alarm: Option<Alarm<S>>,
        connections: Option<Connections<S>>,
        pings: Option<AutoResponse>,
    ) -> Self {
        let log = crate::log::Memory::new(&state, key(tag.as_ref()), &settings.history);
        Self(Rc::new(Inner {
            state,
            tag,
            settings,
            alarm,
            connections,
            log,
            members: crate::member::Memory::default(),
            flow: Flow::default(),
            watch: Watch::default(),
            pings: RefCell::new(pings),
        }))
    }

    /// The same room with other settings, and with a memory of its own.
    pub(crate) fn with(self, change: impl FnOnce(&mut Settings)) -> Self {
        let mut settings = self.0.settings.clone();
        change(&mut settings);
        let Inner { alarm, connections, .. } = &*self.0;
        self.made_anew(settings, alarm.clone(), connections.clone())
    }

    fn made_anew(
        &self,
        settings: Settings,
        alarm: Option<Alarm<S>>,
        connections: Option<Connections<S>>,
    ) -> Self {
        let Inner { state, tag, pings, .. } = &*self.0;
        Self::make(state.clone(), tag.clone(), settings, alarm, connections, pings.borrow().clone())
    }

    /// The alarm by which old messages and members who do not come back are tidied away: the object's own, or a slot
    /// of its schedule. Whoever gives one calls [`on_alarm`](Self::on_alarm) when it comes. Several rooms may share one:
    /// then all of them are to be told. The object's own alarm is not to be shared with anything else.
    #[must_use]
    pub fn alarm(self, alarm: impl Into<Alarm<S>>) -> Self {
        let Inner { settings, connections, .. } = &*self.0;
        self.made_anew(settings.clone(), Some(alarm.into()), connections.clone())
    }

    /// At most so many open sockets; whoever comes then is refused. Without it, as many as an object can have.
    #[must_use]
    pub fn max_sockets(self, most: usize) -> Self {
        self.with(|settings| settings.max_sockets = Some(most))
    }

    /// Who may come is for this registry to say, and it is told of all who do: one place for the caps, the authentication
    /// and the hooks of several rooms, and of streams beside them. The room's own caps hold too.
    ///
    /// [`join`](Self::join), [`enter`](Self::enter) and [`follow`](Self::follow) ask it before they accept anything, and
    /// give the socket one more tag. It is told who came when they are in, and who went by [`leave`](Self::leave), which
    /// has to be called for every socket then: also for those that joined. Whoever gets only a part of what they missed,
    /// and comes back for the rest, has not come.
    ///
    /// ```
    /// use do_core::prelude::*;
    /// use do_core::{Admission, Connections};
    /// use do_sync::{Origins, Refusal, Room};
    ///
    /// struct Game<S: ObjectState> { players: Room<S>, watchers: Room<S> }
    ///
    /// impl<S: ObjectState> DurableObject<S> for Game<S> {
    ///     fn new(state: S) -> Result<Self> {
    ///         let connections = Connections::new(&state)
    ///             .origins(Origins::same_host())
    ///             .max(500) // players and watchers together
    ///             .max_per_key(2)
    ///             .admit(|request| {
    ///                 let user = request.query("ticket").ok_or(Refusal::Unauthorized)?;
    ///                 Admission::of(user).map_err(|_| Refusal::Unauthorized)
    ///             });
    ///         Ok(Self {
    ///             players: Room::tagged(&state, tag!("players")).max_sockets(4).connections(&connections),
    ///             watchers: Room::tagged(&state, tag!("watchers")).connections(&connections),
    ///         })
    ///     }
    ///     async fn fetch(&self, request: Request) -> Result<Response> {
    ///         let room = if request.uri().path() == "/play" { &self.players } else { &self.watchers };
    ///         Ok(room.follow(&request)?) // 101, or 401, 403, 426, 429, 503
    ///     }
    ///     async fn websocket_close(&self, gone: SocketOf<S>, _: Close) -> Result<()> {
    ///         self.players.leave(&gone).await?; // whichever room of the registry it is
    ///         Ok(())
    ///     }
    /// }
    /// ```
    #[must_use]
    pub fn connections(self, connections: &Connections<S>) -> Self {
        connections.disregard(was_closed::<SocketOf<S>>);
        let Inner { settings, alarm, .. } = &*self.0;
        self.made_anew(settings.clone(), alarm.clone(), Some(connections.clone()))
    }

    pub(crate) fn inner(&self) -> &Inner<S> {
        &self.0
    }

    pub(crate) fn state(&self) -> &S {
        &self.0.state
    }

    /// What the room is called in tables and attachments: its tag, or what is nobody's.
    pub(crate) fn key(&self) -> &str {
        key(self.tag())
    }

    /// The tag that makes a socket a member; `None` for [`all`](Self::all).
    pub fn tag(&self) -> Option<&Tag> {
        self.0.tag.as_ref()
    }

    /// Accepts the WebSocket that the request asks for into the room, and gives the 101 to return from `fetch` and
    /// the new socket, to greet it. From here on it counts and receives; what is sent before the handshake
    /// completes waits.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] when the request is no right handshake or the [registry](Self::connections) does not admit it,
    /// [`ErrorKind::Limit`] when there is no place in the room or for them (ask [`refusal`](Self::refusal) before, for all
    /// of these), when `accept` has all ten tags already or the object has as many
    /// sockets as it can, [`ErrorKind::Invalid`] when the room's tag or one of `accept` has the character U+001F. Do what
    /// can fail before joining: after it the socket is a member.
    pub fn join(&self, request: &Request, accept: Accept) -> Result<(Response, SocketOf<S>), Error> {
        self.check_tags(&accept)?;
        if self.is_full() {
            return Err(Error::new(ErrorKind::Limit, "the room is full"));
        }
        let admission = match &self.0.connections {
            Some(connections) if Refusal::of(request).is_none() => {
                connections.check(request).map_err(unwelcome)?
            }
            _ => Admission::anonymous(),
        };
        let (response, socket) = self.take_in(request, accept, &admission)?;
        self.tell_joined(&socket);
        Ok((response, socket))
    }

    /// Who it is that wants to come, as the [registry](Self::connections) has it.
    pub(crate) fn identify(&self, request: &Request) -> Result<Admission, Refusal> {
        let connections = self.0.connections.as_ref();
        connections.map_or_else(|| Ok(Admission::anonymous()), |connections| connections.identify(request))
    }

    /// Whether there is a place, in the room and for them, if these leave for them.
    pub(crate) fn check_place(&self, admission: &Admission, leaving: &[SocketOf<S>]) -> Result<(), Refusal> {
        if self.has_no_place(leaving.len()) {
            return Err(Refusal::full());
        }
        let connections = self.0.connections.as_ref();
        connections.map_or(Ok(()), |connections| connections.check_place(admission, leaving, &[]))
    }

    /// They are in.
    pub(crate) fn tell_joined(&self, socket: &SocketOf<S>) {
        if let Some(connections) = &self.0.connections {
            connections.joined(socket);
        }
    }

    /// Their close or error event came; or they could not get in, and nobody was told that they did.
    pub(crate) fn tell_left(&self, socket: &SocketOf<S>, was_in: bool) {
        match &self.0.connections {
            Some(connections) if was_in => connections.left(socket),
            Some(connections) => connections.never_joined(socket),
            None => {}
        }
    }

    /// Whether these are tags of the application: those by which the room knows who entered have a [`SEPARATOR`], and
    /// nobody gets in by a tag, or by a name of a room, that somebody else chose.
    pub(crate) fn check_tags(&self, accept: &Accept) -> Result<(), Error> {
        let (tags, _) = accept.clone().into_parts();
        if tags.iter().chain(self.tag()).any(|tag| tag.as_str().contains(SEPARATOR)) {
            let message =
                "tags of rooms and of those who come have no character U+001F: rooms mark sockets with it";
            return Err(Error::new(ErrorKind::Invalid, message));
        }
        Ok(())
    }

    /// [`join`](Self::join), whether there is a place or not.
    pub(crate) fn take_in(
        &self,
        request: &Request,
        accept: Accept,
        admission: &Admission,
    ) -> Result<(Response, SocketOf<S>), Error> {
        let mut accept = match &self.0.tag {
            Some(tag) => accept.tag(tag)?,
            None => accept,
        };
        if let Some(connections) = &self.0.connections {
            accept = connections.socket_accept(accept, admission)?;
        }
        self.0.state.sockets().accept(request, accept)
    }

    /// Whether as many sockets are open as [`max_sockets`](Self::max_sockets) allows.
    pub fn is_full(&self) -> bool {
        self.has_no_place(0)
    }

    /// Whether there is no place, if so many sockets leave for the new one.
    pub(crate) fn has_no_place(&self, leaving: usize) -> bool {
        self.0.settings.max_sockets.is_some_and(|most| self.count().saturating_sub(leaving) >= most)
    }

    /// Why this request cannot join at all: it is no right handshake, the room is full, or the
    /// [registry](Self::connections) refuses it. Ask it before what takes
    /// longer, and [`join`](Self::join) then without an await between.
    ///
    /// ```
    /// # use do_core::prelude::*;
    /// # use do_sync::Room;
    /// # fn example<S: ObjectState>(room: &Room<S>, request: &Request) -> Result<Response> {
    /// if let Some(refusal) = room.refusal(request) {
    ///     return Ok(refusal.reply()); // 426, 400 or 503; with a registry 401, 403, 429 too
    /// }
    /// Ok(room.join(request, Accept::new())?.0)
    /// # }
    /// ```
    pub fn refusal(&self, request: &Request) -> Option<Refusal> {
        let refused = || self.0.connections.as_ref().and_then(|connections| connections.check(request).err());
        Refusal::of(request).or_else(|| self.is_full().then(Refusal::full)).or_else(refused)
    }

    /// The open sockets of the room, in no particular order. Use them and let them go: kept in a field they are
    /// wrong after the first hibernation.
    pub fn sockets(&self) -> Vec<SocketOf<S>> {
        self.open(&[])
    }

    /// The open sockets of the room that have any of the tags; all if there are no tags.
    pub(crate) fn open(&self, tags: &[Tag]) -> Vec<SocketOf<S>> {
        let sockets = self.0.state.sockets();
        let mut found = match (&self.0.tag, tags) {
            (Some(room), []) => sockets.tagged(room),
            (None, []) => sockets.all(),
            (_, [only]) => sockets.tagged(only),
            // The lists of the host, united: the room may have many more sockets than they.
            (_, several) => {
                let mut union: Vec<_> = several
                    .iter()
                    .flat_map(|tag| sockets.tagged(tag))
                    .map(|socket| (socket.number(), socket))
                    .collect();
                union.sort_unstable_by_key(|(number, _)| *number);
                union.dedup_by_key(|(number, _)| *number);
                union.into_iter().map(|(_, socket)| socket).collect()
            }
        };
        let foreign = self.0.tag.as_ref().filter(|_| !tags.is_empty());
        self.retain_open(&mut found);
        if let Some(room) = foreign {
            found.retain(|socket| socket.has_tag(room));
        }
        found
    }

    /// How many open sockets are in the room. One that is closing is not among them.
    pub fn count(&self) -> usize {
        self.open(&[]).len()
    }

    /// How many open sockets other than this one are in the room: for close handlers (rule D18).
    pub fn count_without(&self, socket: &SocketOf<S>) -> usize {
        self.open(&[]).iter().filter(|other| *other != socket).count()
    }

    /// Begins a broadcast; without further words it goes to everyone in the room, as it is.
    ///
    /// In a room that is [entered](Self::enter), do not hand on what a client sent: it could look like one of the room's
    /// own frames, such as a member's leaving. [Publish](Self::publish) it, or wrap it in an [`Event`](crate::Event).
    ///
    /// ```
    /// # use do_core::prelude::*;
    /// # use do_sync::Room;
    /// # fn example<S: ObjectState>(room: &Room<S>, sender: &SocketOf<S>) {
    /// let report = room.broadcast("saved").to(tag!("editors")).except(sender).send();
    /// assert_eq!(report.matched, report.queued + report.dropped + report.coalesced + report.disconnected);
    /// # }
    /// ```
    pub fn broadcast(&self, message: impl Into<Message>) -> Broadcast<'_, S> {
        Broadcast::new(self, message.into())
    }

    /// [`broadcast`](Self::broadcast) of a value as JSON text, which is written once.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`](do_core::ErrorKind::Invalid) when it cannot be written as JSON.
    pub fn broadcast_json<T: Serialize + ?Sized>(&self, value: &T) -> Result<Broadcast<'_, S>, Error> {
        Ok(self.broadcast(Message::json(value)?))
    }

    /// Sends to everyone in the room.
    #[allow(clippy::must_use_candidate)] // the report is for those who want it
    pub fn send_all(&self, message: impl Into<Message>) -> BroadcastReport {
        self.broadcast(message).send()
    }
}

fn key(tag: Option<&Tag>) -> &str {
    tag.map_or(ALL, Tag::as_str)
}

/// What [`Room::join`] says to whom the registry refuses.
fn unwelcome(refusal: Refusal) -> Error {
    match refusal {
        Refusal::Full { .. } | Refusal::TooMany { .. } => Error::new(ErrorKind::Limit, refusal.to_string()),
        _ => Error::new(ErrorKind::Invalid, refusal.to_string()).of_request(),
    }
}

impl<S: ObjectState> Clone for Room<S> {
    fn clone(&self) -> Self {
        Self(Rc::clone(&self.0))
    }
}

/// Not derived, because states need not have it.
impl<S: ObjectState> fmt::Debug for Room<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Room").field("tag", &self.0.tag).finish_non_exhaustive()
    }
}
