use crate::{
    Member, Position, Present, Refusal, Room, codes,
    log::{Asked, Plan},
    member::{Refused, Roster, close},
    outbound::{Kind, Outgoing},
    wire,
};
use do_core::{
    Accept, Error, ErrorKind, Message, ObjectState, Request, RequestExt, Response, Socket, SocketOf,
    SocketRegistry, reply,
};
use http::StatusCode;
use serde::Serialize;
use serde_json::value::RawValue;
use std::fmt;

/// Most members that one who comes is told of; all are counted.
const MEMBERS: usize = 256;

/// What a hello is long at most without pings, members and snapshot, in bytes.
const HELLO_BYTES: u64 = 1_024;

/// Most of the history that goes over one connection before the client is told to come back for the rest: what hosts
/// take at once.
const PAGE_BYTES: u64 = 512 * 1_024;

/// Longest part of an unreadable position that is sent back.
const ECHO_CHARS: usize = 64;

type Snapshot<'a> = Box<dyn FnOnce() -> Result<String, Error> + 'a>;

/// Somebody on their way into a room. Made by [`Room::entering`]; nothing happens before [`done`](Self::done).
#[must_use = "nobody is in before `done`"]
pub struct Entering<'a, S: ObjectState> {
    room: &'a Room<S>,
    request: &'a Request,
    who: Who,
    snapshot: Option<Snapshot<'a>>,
}

/// Whoever comes.
enum Who {
    Member(Member),
    Follower(Accept),
}

impl Who {
    fn accept(&mut self) -> &mut Accept {
        match self {
            Self::Member(member) => &mut member.accept,
            Self::Follower(accept) => accept,
        }
    }

    fn id(&self) -> Option<&str> {
        match self {
            Self::Member(member) => Some(member.id()),
            Self::Follower(_) => None,
        }
    }
}

impl<S: ObjectState> Room<S> {
    /// Lets a member in who speaks the protocol: accepts the WebSocket that the request asks for, and gives the 101 to
    /// return from `fetch`. A request that cannot be let in gets a refusal as its response: 426 or 400 when it is no
    /// right handshake, 409 when the member is there already and that is not allowed twice, 503 when there is no place, and what the
    /// [registry](Self::connections) says: 401, 403, 429.
    ///
    /// The new socket is told first where the sequence is and who is there, then what it missed: all behind the position
    /// in the query's `after`, or how much of it is lost. From then on it gets everything that is published. All this
    /// happens in one turn, so that nothing is lost and nothing comes twice.
    ///
    /// Who comes back after so long that the messages do not fit one connection
    /// ([`Outbound`](crate::Outbound)) gets the first part of them, a close with
    /// [`RESYNC`](codes::RESYNC), and the next part when they come back at once. They are in the room when they have it
    /// all; before, their sockets are none of the room's.
    ///
    /// Who `member` is has to be known: the application asks before.
    ///
    /// ```
    /// use do_core::prelude::*;
    /// use do_sync::{Member, Refusal, Room};
    ///
    /// # struct Chat<S: ObjectState> { room: Room<S> }
    /// # impl<S: ObjectState> Chat<S> {
    /// async fn fetch(&self, request: Request) -> Result<Response> {
    ///     let name = request.require("name")?;
    ///     Ok(self.room.enter(&request, Member::new(name)?)?)
    /// }
    ///
    /// async fn websocket_message(&self, from: SocketOf<S>, message: Message) -> Result<()> {
    ///     if let Some(text) = self.room.receive::<String>(&from, &message) {
    ///         self.room.publishing(&text).from(&from).send()?;
    ///     }
    ///     Ok(())
    /// }
    ///
    /// async fn websocket_close(&self, gone: SocketOf<S>, _: Close) -> Result<()> {
    ///     self.room.leave(&gone).await?;
    ///     Ok(())
    /// }
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Limit`] when tags, the member's data or what is attached are too long, and as
    /// [`SqlStorage::exec`](do_core::SqlStorage::exec). Then nobody is in.
    pub fn enter(&self, request: &Request, member: Member) -> Result<Response, Error> {
        self.entering(request, member).done()
    }

    /// Begins what [`enter`](Self::enter) does at once, to say more.
    pub fn entering<'a>(&'a self, request: &'a Request, member: Member) -> Entering<'a, S> {
        Entering { room: self, request, who: Who::Member(member), snapshot: None }
    }

    /// Lets somebody in who only listens: they get the sequence and what they missed of it, as those who
    /// [enter](Self::enter) do, but are no member. Nobody is told that they come or go, and no row is written for it: for
    /// feeds with many unnamed readers.
    ///
    /// What they send arrives like that of others; it can be [published](Self::publish) by nobody or by the object.
    ///
    /// ```
    /// # use do_core::prelude::*;
    /// # use do_sync::Room;
    /// # fn example<S: ObjectState>(room: &Room<S>, request: &Request) -> Result<Response> {
    /// Ok(room.follow(request)?)
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`enter`](Self::enter).
    pub fn follow(&self, request: &Request) -> Result<Response, Error> {
        self.following(request, Accept::new()).done()
    }

    /// Begins what [`follow`](Self::follow) does at once, to say more. The tags, the sub-protocol and the attachment are
    /// those of `accept`.
    pub fn following<'a>(&'a self, request: &'a Request, accept: Accept) -> Entering<'a, S> {
        Entering { room: self, request, who: Who::Follower(accept), snapshot: None }
    }
}

impl<'a, S: ObjectState> Entering<'a, S> {
    /// What one is told who knows nothing yet, or missed what is lost: as JSON in the hello. Called once, and only for
    /// them. It has to be the state as of now, with all that was published.
    ///
    /// It comes before the messages that are replayed, which it contains already; with [`History::replay`] 0, which is
    /// the default, there are none for those who get a snapshot.
    ///
    /// At most half of [`Outbound::max_bytes`] long; else [`done`](Self::done) fails.
    ///
    /// [`History::replay`]: crate::History::replay
    /// [`Outbound::max_bytes`]: crate::Outbound::max_bytes
    pub fn snapshot<T: Serialize>(mut self, make: impl FnOnce() -> T + 'a) -> Self {
        self.snapshot = Some(Box::new(move || wire::to_json(&make())));
        self
    }

    /// [`snapshot`](Self::snapshot) of what may fail to be read. Its error is the one of [`done`](Self::done), and nobody
    /// is in then.
    pub fn try_snapshot<T: Serialize, E: Into<Error>>(
        mut self,
        make: impl FnOnce() -> Result<T, E> + 'a,
    ) -> Self {
        self.snapshot = Some(Box::new(move || wire::to_json(&make().map_err(Into::into)?)));
        self
    }

    /// Attaches a value to the socket that nobody else sees: [`Room::attached`] reads it. In place of what their
    /// [`Accept`] has.
    ///
    /// # Errors
    /// [`ErrorKind::Limit`] when it is too long for an attachment, [`ErrorKind::Invalid`] when it cannot be written as
    /// JSON.
    pub fn attach<T: Serialize + ?Sized>(mut self, value: &T) -> Result<Self, Error> {
        let accept = self.who.accept();
        *accept = std::mem::take(accept).attach(value)?;
        Ok(self)
    }

    /// Lets them in, or refuses.
    ///
    /// # Errors
    /// As [`Room::enter`], and the error of the snapshot.
    pub fn done(self) -> Result<Response, Error> {
        let Self { room, request, who, snapshot } = self;
        if let Some(refusal) = Refusal::of(request) {
            return Ok(refusal.reply());
        }
        let admitted = match room.identify(request) {
            Ok(admitted) => admitted,
            Err(refusal) => return Ok(refusal.reply()),
        };
        let member = match who {
            Who::Member(member) => member,
            Who::Follower(accept) => {
                if let Err(refusal) = room.check_place(&admitted, &[]) {
                    return Ok(refusal.reply());
                }
                let (marked, id) = room.roster().follower(accept.clone())?;
                let mut greeting = Greeting::new(room, request, snapshot, None, &id)?;
                if !greeting.fits() {
                    return greeting.page(request, accept);
                }
                let (response, socket) = room.take_in(request, marked, &admitted)?;
                greeting.send(&socket).inspect_err(|_| room.roster().abandon(&socket))?;
                room.tell_joined(&socket);
                return Ok(response);
            }
        };
        let admission = match room.roster().admit(&member)? {
            Ok(admission) => admission,
            Err(refused) => return Ok(refusal(refused).response(reply::text(refused.to_string()))),
        };
        // Whoever takes the place of an earlier connection of theirs needs none.
        if let Err(refusal) = room.check_place(&admitted, &admission.replaced) {
            return Ok(refusal.reply());
        }
        let mut greeting = Greeting::new(room, request, snapshot, Some(member.id()), &admission.socket)?;
        if !greeting.fits() {
            return greeting.page(request, member.accept.clone());
        }
        let (response, socket) = room.take_in(request, admission.accept.clone(), &admitted)?;
        room.roster().entered(&admission, &socket)?;
        greeting.send(&socket).inspect_err(|_| room.roster().abandon(&socket))?;
        room.tell_joined(&socket);
        Roster::replace(&admission);
        let arming = room.clone();
        room.state().wait_until(async move {
            if let Err(error) = arming.roster().arm().await {
                tracing::warn!(%error, "no alarm is set for those who left a room");
            }
        });
        Ok(response)
    }
}

fn refusal(refused: Refused) -> Refusal {
    if refused.status() == StatusCode::CONFLICT { Refusal::Conflict } else { Refusal::full() }
}

/// What a new socket is told.
struct Greeting<'a, S: ObjectState> {
    room: &'a Room<S>,
    /// `None` for those who only follow.
    member: Option<String>,
    socket: String,
    /// As it was asked for.
    after: Option<String>,
    asked: Asked,
    plan: Plan,
    make: Option<Snapshot<'a>>,
    /// As JSON.
    snapshot: Option<Box<RawValue>>,
}

impl<'a, S: ObjectState> Greeting<'a, S> {
    fn new(
        room: &'a Room<S>,
        request: &Request,
        make: Option<Snapshot<'a>>,
        member: Option<&str>,
        socket: &str,
    ) -> Result<Self, Error> {
        let after = request.query("after");
        let asked = after.as_ref().map_or(Asked::Fresh, |text| Asked::After(text.parse().ok()));
        let plan = room.log().plan(asked, make.is_some())?;
        let (member, socket) = (member.map(str::to_owned), socket.to_owned());
        let mut greeting = Self { room, member, socket, after, asked, plan, make, snapshot: None };
        greeting.make_snapshot()?;
        Ok(greeting)
    }

    fn max_bytes(&self) -> u64 {
        self.room.inner().settings.outbound.max_bytes as u64
    }

    /// If it is needed and not there yet.
    fn make_snapshot(&mut self) -> Result<(), Error> {
        if !self.plan.is_renewed {
            return Ok(());
        }
        let Some(make) = self.make.take() else { return Ok(()) };
        let (json, most) = (make()?, self.max_bytes() / 2);
        if json.len() as u64 > most {
            let message = format!("the snapshot is {} bytes long, the limit is {most}", json.len());
            return Err(Error::new(ErrorKind::Limit, message));
        }
        self.snapshot = RawValue::from_string(json).ok();
        self.catch_up()?;
        self.prefer_snapshot();
        Ok(())
    }

    /// A replay that does not fit is left out beside a snapshot, which has it all: with the parts of one, nobody could tell
    /// which of the messages the snapshot contains.
    fn prefer_snapshot(&mut self) {
        if self.snapshot.is_some() && !self.fits() {
            self.plan.skip();
        }
    }

    /// Looks again, if something was logged since.
    fn catch_up(&mut self) -> Result<(), Error> {
        let log = self.room.log();
        if !self.plan.is_of(log.position()?) {
            self.plan = log.plan(self.asked, self.snapshot.is_some() || self.make.is_some())?;
        }
        Ok(())
    }

    /// What is left for replayed messages: the hello and they take three quarters of what may wait, so that there is
    /// space for the members and for what comes next.
    fn budget(&self) -> (u64, u64) {
        let snapshot = self.snapshot.as_ref().map_or(0, |snapshot| snapshot.get().len() as u64);
        let pings = self.room.inner().pings.borrow();
        let pings = pings.as_ref().map_or(0, |pair| (pair.request().len() + pair.response().len()) as u64);
        let hello = HELLO_BYTES + 2 * pings + snapshot;
        let bytes = (self.max_bytes() / 4 * 3).min(PAGE_BYTES).saturating_sub(hello);
        let messages = self.room.inner().settings.outbound.max_messages as u64;
        (bytes, (messages / 4 * 3).max(1))
    }

    fn fits(&self) -> bool {
        let (bytes, messages) = self.budget();
        self.plan.messages == 0 || (self.plan.bytes <= bytes && self.plan.messages <= messages)
    }

    fn hello(&self, replay: usize) -> Hello<'_> {
        let after = self.after.as_deref().unwrap_or_default();
        let after = after.char_indices().nth(ECHO_CHARS).map_or(after, |(end, _)| &after[..end]);
        Hello {
            t: "hello",
            at: self.plan.at(),
            member: self.member.as_deref(),
            socket: &self.socket,
            replay,
            more: None,
            gap: self.plan.gap.map(|gap| HelloGap { after, lost: gap.lost }),
            members: None,
            count: None,
            snapshot: self.snapshot.as_deref(),
            credit: None,
            ping: self
                .room
                .inner()
                .pings
                .borrow()
                .as_ref()
                .map(|pair| [pair.request().to_owned(), pair.response().to_owned()]),
            limits: Limits { bytes: self.room.inner().settings.inbound.max_bytes },
        }
    }

    /// All of it, to a socket that is in.
    fn send(&mut self, socket: &SocketOf<S>) -> Result<(), Error> {
        self.catch_up()?;
        self.make_snapshot()?;
        self.prefer_snapshot();
        let frames = self.room.log().frames(&self.plan, u64::MAX, u64::MAX)?;
        let (mut some, mut count) = (Vec::new(), 0);
        self.room.roster().visit(|id, data| {
            count += 1;
            if some.len() < MEMBERS {
                some.push(Present { id: id.to_owned(), data: data.map(ToOwned::to_owned) });
            }
        })?;
        let members = shown(some, self.max_bytes() / 8)?;
        let credit = self.room.credit(socket);
        let hello = Hello { members: Some(&members), count: Some(count), credit, ..self.hello(frames.len()) };
        let hello = Message::json(&hello)?;
        for message in std::iter::once(&hello).chain(&frames) {
            if credit.is_some() {
                // Counted against what the client acknowledges.
                self.room.deliver(socket, Outgoing { message, key: None, kind: Kind::Replay });
            } else if let Err(error) = socket.send(message) {
                // At once, and not by windows: it is bounded, and nothing waits before it. Whoever is gone resumes.
                tracing::debug!(%error, "a newcomer did not take what it missed");
                break;
            }
        }
        Ok(())
    }

    /// As much as fits, to a socket that is to come back for the rest.
    fn page(self, request: &Request, accept: do_core::Accept) -> Result<Response, Error> {
        let (bytes, messages) = self.budget();
        let log = self.room.log();
        let mut frames = log.frames(&self.plan, bytes, messages)?;
        // One at least, so that they get on.
        if frames.is_empty() {
            frames = log.frames(&self.plan, u64::MAX, 1)?;
        }
        let hello = Message::json(&Hello { more: Some(true), ..self.hello(frames.len()) })?;
        let (response, socket) = self.room.state().sockets().accept(request, accept)?;
        self.room.inner().watch.expel(&socket); // what it says is for the next connection
        for message in std::iter::once(&hello).chain(&frames) {
            if let Err(error) = socket.send(message) {
                tracing::debug!(%error, "a socket did not take its part of the history");
                break;
            }
        }
        close(&socket, codes::RESYNC, "more");
        Ok(response)
    }
}

/// As many as fit.
fn shown(some: Vec<Present>, bytes: u64) -> Result<Vec<Box<RawValue>>, Error> {
    let (mut shown, mut left) = (Vec::new(), bytes);
    for present in some {
        let json = wire::to_json(&present)?;
        let Some(rest) = left.checked_sub(json.len() as u64 + 1) else { break };
        left = rest;
        shown.extend(RawValue::from_string(json).ok());
    }
    Ok(shown)
}

/// The first message on a socket.
#[derive(Serialize)]
struct Hello<'a> {
    t: &'static str,
    at: Position,
    #[serde(skip_serializing_if = "Option::is_none")]
    member: Option<&'a str>,
    socket: &'a str,
    replay: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    more: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    gap: Option<HelloGap<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    members: Option<&'a [Box<RawValue>]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    snapshot: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    credit: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ping: Option<[String; 2]>,
    limits: Limits,
}

#[derive(Serialize)]
struct HelloGap<'a> {
    after: &'a str,
    lost: Option<u64>,
}

#[derive(Serialize)]
struct Limits {
    bytes: usize,
}

/// Not derived, because states need not have it.
impl<S: ObjectState> fmt::Debug for Entering<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entering")
            .field("room", &self.room.tag())
            .field("member", &self.who.id())
            .field("snapshot", &self.snapshot.is_some())
            .finish_non_exhaustive()
    }
}
