use crate::{Settings, history, inbound, query::accept};
use do_core::{
    Tag,
    prelude::*,
    tag,
    testing::{Log, Query, Thrown},
};
use do_sync::{Refusal, Room};
use serde_json::{Value, json};
use std::{cell::RefCell, fmt};

/// Most bytes of commands.
const MOST: usize = 1 << 20;

/// The object under test: it holds a room, or several, and does what it is told.
///
/// | request | answer |
/// |---|---|
/// | a WebSocket for `/room/NAME` | 101: it joins, with what the query says; with `member` it enters, with `follow` it follows |
/// | POST `/room/NAME` | what the [`Command`](crate::Command)s in the body gave, as JSON |
/// | POST `/notify/NAME` | the report of the broadcast of the body, which is JSON |
/// | GET `/room/NAME` | the refusal of do-sync |
/// | others | 404 |
///
/// A message that is a JSON array is commands too, whose values are sent back, or `{"error": ..}`; of all others the object does what a room
/// offers for them, and notes it.
pub struct RoomProbe<S: ObjectState> {
    pub(crate) state: S,
    pub(crate) log: Log<S>,
    made: RefCell<Made<S>>,
}

/// What is made by the settings.
struct Made<S: ObjectState> {
    settings: Settings,
    /// The main room first.
    rooms: Vec<Room<S>>,
}

/// Where a command came from.
pub(crate) struct At<S: ObjectState> {
    pub(crate) room: Room<S>,
    /// The one that sent it.
    pub(crate) socket: Option<SocketOf<S>>,
}

impl<S: ObjectState> Made<S> {
    fn new(state: &S, settings: Settings) -> Result<Self> {
        let main = if settings.all { Room::all(state) } else { Room::new(state) };
        let mut rooms = vec![settings.apply(main, state)];
        for tag in &settings.rooms {
            rooms.push(settings.apply(Room::tagged(state, Tag::new(tag.as_str())?), state));
        }
        if let (Some((ping, pong)), Some(room)) = (&settings.auto_ping, rooms.first()) {
            room.auto_ping(ping, pong)?;
        }
        Ok(Self { settings, rooms })
    }
}

impl<S: ObjectState> RoomProbe<S> {
    pub(crate) fn configure(&self, settings: &Settings) -> Result<Value> {
        settings.keep(&self.state)?;
        *self.made.borrow_mut() = Made::new(&self.state, settings.clone())?;
        Ok(Value::Null)
    }

    /// After everything was deleted: the probe's own tables, and rooms with the settings of the beginning.
    pub(crate) fn remake(&self) -> Result<()> {
        Log::open(&self.state)?;
        Settings::kept(&self.state)?;
        Ok(())
    }

    /// The room with this tag, or the main one.
    pub(crate) fn room(&self, tag: Option<&str>) -> Result<Room<S>> {
        let made = self.made.borrow();
        let found = match tag {
            None => made.rooms.first(),
            Some(tag) => made.rooms.iter().find(|room| room.tag().is_some_and(|of| of.as_str() == tag)),
        };
        found.cloned().ok_or_else(|| Failure::msg(format!("there is no room {tag:?}")))
    }

    /// The first room that the socket is in; the main one for a stranger.
    fn room_of(&self, socket: &SocketOf<S>) -> Result<Room<S>> {
        let tags = socket.tags();
        let made = self.made.borrow();
        let is_in = |room: &&Room<S>| room.tag().is_none_or(|tag| tags.contains(tag));
        made.rooms.iter().find(is_in).or(made.rooms.first()).cloned().ok_or_else(|| Failure::msg("no room"))
    }

    fn let_in(&self, room: &Room<S>, request: &Request, query: &Query) -> Result<Response> {
        let settings = self.made.borrow().settings.clone();
        if let Some(refusal) = Refusal::of(request).or_else(|| settings.inbound.refusal(request)) {
            return Ok(refusal.reply());
        }
        if let Some(member) = query.first("member") {
            return Ok(history::enter(room, request, query, member, &settings.history)?);
        }
        if query.first("follow").is_some() {
            return Ok(history::follow(room, request, query, &settings.history)?);
        }
        match room.refusal(request) {
            Some(refusal) => Ok(refusal.reply()),
            None => Ok(room.join(request, accept(query)?)?.0),
        }
    }

    fn note_of(&self, socket: &SocketOf<S>, mut line: Value) -> Result<()> {
        line["tags"] = tags_of(socket);
        Ok(self.log.note(line)?)
    }
}

/// Without the room's own, sorted.
pub(crate) fn tags_of<T: Socket>(socket: &T) -> Value {
    let own = tag!("room");
    let mut tags: Vec<_> = socket.tags().iter().filter(|tag| **tag != own).map(Tag::to_string).collect();
    tags.sort();
    json!(tags)
}

impl<S: ObjectState> DurableObject<S> for RoomProbe<S> {
    fn new(state: S) -> Result<Self> {
        let log = Log::open(&state)?;
        let made = Made::new(&state, Settings::kept(&state)?)?;
        Ok(Self { state, log, made: RefCell::new(made) })
    }

    async fn fetch(&self, request: Request) -> Result<Response> {
        let query = Query::of(request.uri())?;
        let room = self.room(query.first("in"))?;
        let is_post = request.method() == Method::POST;
        let told = request.uri().path().split('/').nth(1) == Some("notify");
        match (told, is_post) {
            (true, true) => {
                let value: Value = request.into_body().json(MOST).await?;
                Ok(reply::json(&crate::room::told(room.send_all(Message::json(&value)?)))?)
            }
            (true, false) => Ok(reply::status(StatusCode::NOT_FOUND)),
            (false, true) => {
                let commands = request.into_body().json(MOST).await?;
                Ok(reply::json(&self.commands(commands, &At { room, socket: None }).await?)?)
            }
            (false, false) => self.let_in(&room, &request, &query),
        }
    }

    async fn alarm(&self, _: AlarmInfo) -> Result<()> {
        self.room(None)?.on_alarm().await?;
        Ok(self.log.note(json!({"event": "alarm"}))?)
    }

    async fn websocket_message(&self, socket: SocketOf<S>, message: Message) -> Result<()> {
        let room = self.room_of(&socket)?;
        if message.as_text().is_some_and(|text| text.starts_with('[')) {
            let at = At { room, socket: Some(socket.clone()) };
            let values = match self.commands(message.parse_json()?, &at).await {
                Ok(values) => values,
                // Told to the one that asks: whoever failed here would be heard of by nobody.
                Err(failure) => json!({ "error": Thrown::from(&Error::from(failure)) }),
            };
            return Ok(socket.send(Message::json(&values)?)?);
        }
        if room.answer_ping(&socket, &message) {
            return self.note_of(&socket, json!({"event": "ping"}));
        }
        if self.made.borrow().settings.relay {
            if room.admit(&socket, &message) {
                room.broadcast(message).except(&socket).send();
            }
            return Ok(());
        }
        self.note_of(&socket, inbound::noted(&room, &socket, &message))
    }

    async fn websocket_close(&self, socket: SocketOf<S>, close: Close) -> Result<()> {
        let room = self.room_of(&socket)?;
        room.leave(&socket).await?;
        self.note_of(
            &socket,
            json!({
                "event": "close", "code": close.code, "reason": close.reason, "clean": close.was_clean,
                "count": room.count(), "without": room.count_without(&socket),
            }),
        )
    }

    async fn websocket_error(&self, socket: SocketOf<S>, error: Error) -> Result<()> {
        self.room_of(&socket)?.leave(&socket).await?;
        self.note_of(&socket, json!({"event": "error", "kind": format!("{:?}", error.kind())}))
    }
}

impl<S: ObjectState> fmt::Debug for RoomProbe<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RoomProbe").field("log", &self.log).finish_non_exhaustive()
    }
}
