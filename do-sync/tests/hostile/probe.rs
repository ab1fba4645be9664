//! An object with two rooms on one alarm, and a test's way to it.

use do_core::{
    kit::{Client, Kit},
    prelude::*,
    testing::Received,
    tokio::HostStub,
};
use do_sync::{History, Member, Members, OnDuplicate, Outbound, Position, Room};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// How the rooms are made, as the variable `SETUP`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Setup {
    /// Tags of the two rooms; `None`: all sockets.
    pub(crate) tags: [Option<String>; 2],
    pub(crate) grace: Option<Duration>,
    pub(crate) max_messages: u64,
    pub(crate) history_bytes: u64,
    pub(crate) max_age: Option<Duration>,
    pub(crate) replay: u64,
    pub(crate) outbound_bytes: usize,
    pub(crate) outbound_messages: usize,
    pub(crate) credit: Option<u64>,
    pub(crate) allow: bool,
    /// `auto_ping` before the room's other settings.
    pub(crate) ping_first: bool,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            tags: [Some("room".into()), Some("other".into())],
            grace: None,
            max_messages: 1_000,
            history_bytes: 1 << 20,
            max_age: None,
            replay: 0,
            outbound_bytes: 256 * 1_024,
            outbound_messages: 1_000,
            credit: None,
            allow: false,
            ping_first: false,
        }
    }
}

/// What the object does, with its room of this number.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Do {
    Publish(Value),
    Presence,
    SocketsOf(String),
    MemberOfAll,
    Kick(String),
    Position,
    Log,
    Sql(String),
    DeleteAll,
    Alarm,
    OnAlarm,
    Messages(Option<String>, u64),
    /// Takes the attachment of each socket away.
    Unmark,
    /// What others see of the member whose socket is found first.
    SetData(String, Value),
    Stats,
}

pub(crate) struct Probe<S: ObjectState> {
    state: S,
    rooms: [Room<S>; 2],
}

impl<S: ObjectState> DurableObject<S> for Probe<S> {
    fn new(state: S) -> Result<Self> {
        let setup: Setup = serde_json::from_str(&state.env().var("SETUP")?)?;
        let make = |tag: &Option<String>| -> Result<Room<S>> {
            let room = match tag {
                Some(tag) => Room::tagged(&state, Tag::new(tag.clone())?),
                None => Room::all(&state),
            };
            if setup.ping_first {
                room.auto_ping("ping", "pong")?;
            }
            let mut history = History::new()
                .max_messages(setup.max_messages)
                .max_bytes(setup.history_bytes)
                .replay(setup.replay);
            if let Some(age) = setup.max_age {
                history = history.max_age(age);
            }
            let mut members = Members::new().grace(setup.grace.unwrap_or_default());
            if setup.allow {
                members = members.on_duplicate(OnDuplicate::Allow);
            }
            let mut outbound =
                Outbound::new().max_bytes(setup.outbound_bytes).max_messages(setup.outbound_messages);
            if let Some(credit) = setup.credit {
                outbound = outbound.credit(credit);
            }
            Ok(room.history(history).members(members).outbound(outbound).alarm(Alarm::raw(&state)))
        };
        let rooms = [make(&setup.tags[0])?, make(&setup.tags[1])?];
        Ok(Self { state, rooms })
    }

    async fn fetch(&self, request: Request) -> Result<Response> {
        let room = &self.rooms[usize::from(request.query("room").is_some())];
        if request.method() == Method::POST {
            let command: Do = request.into_body().json(1 << 22).await?;
            return Ok(reply::json(&self.run(room, command).await?)?);
        }
        let mut accept = Accept::new();
        for n in 0..request.query("tags").and_then(|n| n.parse().ok()).unwrap_or(0) {
            accept = accept.tag(format!("tag{n}"))?;
        }
        if let Some(tag) = request.query("tag") {
            accept = accept.tag(tag)?;
        }
        if let Some(text) = request.query("attach") {
            accept = accept.attach(&serde_json::from_str::<Value>(&text)?)?;
        }
        match request.query("member") {
            Some(id) => {
                let mut member = Member::new(id)?.accept(accept);
                if let Some(data) = request.query("data") {
                    member = member.data(&data)?;
                }
                let mut entering = room.entering(&request, member);
                match request.query("snapshot").as_deref() {
                    Some("publishes") => {
                        entering = entering.try_snapshot(|| room.publish(&"by the snapshot").map(|_| "snap"));
                    }
                    Some("fails") => {
                        entering =
                            entering.try_snapshot(|| Err::<(), _>(Error::new(ErrorKind::Invalid, "no")));
                    }
                    Some("panics") => entering = entering.snapshot(|| -> Value { panic!("a snapshot") }),
                    Some("huge") => entering = entering.snapshot(|| "x".repeat(1 << 20)),
                    _ => {}
                }
                let entered = entering.done()?;
                if request.query("dropped").is_some() {
                    return Ok(reply::text("dropped"));
                }
                Ok(entered)
            }
            None if request.query("follow").is_some() => Ok(room.following(&request, accept).done()?),
            None => Ok(room.join(&request, accept)?.0),
        }
    }

    async fn alarm(&self, _: AlarmInfo) -> Result<()> {
        for room in &self.rooms {
            room.on_alarm().await?;
        }
        Ok(())
    }

    async fn websocket_message(&self, from: SocketOf<S>, message: Message) -> Result<()> {
        for room in &self.rooms {
            if let Some(member) = room.member_of(&from) {
                if message.as_text() == Some(r#""kick me""#) {
                    room.kick(&member.id, "as you like").await?;
                    room.publishing("after the kick").from(&from).send()?;
                } else if let Some(value) = room.receive::<Value>(&from, &message) {
                    room.publishing(&value).from(&from).send()?;
                }
            }
        }
        Ok(())
    }

    async fn websocket_close(&self, gone: SocketOf<S>, _: Close) -> Result<()> {
        for room in &self.rooms {
            room.leave(&gone).await?;
        }
        Ok(())
    }

    async fn websocket_error(&self, gone: SocketOf<S>, _: Error) -> Result<()> {
        for room in &self.rooms {
            room.leave(&gone).await?;
        }
        Ok(())
    }
}

impl<S: ObjectState> Probe<S> {
    async fn run(&self, room: &Room<S>, command: Do) -> Result<Value> {
        Ok(match command {
            Do::Publish(value) => {
                let published = room.publish(&value)?;
                serde_json::to_value((published.position, published.report.matched))?
            }
            Do::Presence => serde_json::to_value(room.presence()?)?,
            Do::SocketsOf(member) => serde_json::to_value(room.sockets_of(&member).len())?,
            Do::MemberOfAll => {
                let all = self.state.sockets().all();
                serde_json::to_value(all.iter().map(|socket| room.member_of(socket)).collect::<Vec<_>>())?
            }
            Do::Kick(member) => serde_json::to_value(room.kick(&member, "go").await?)?,
            Do::Position => serde_json::to_value(room.position()?)?,
            Do::Log => {
                let sql = "SELECT CAST(frame AS TEXT) FROM _room_log WHERE kind = 1 ORDER BY room, seq";
                let rows = self.state.sql().exec(sql, ())?;
                let rows: Result<Vec<String>, Error> = rows.iter().map(|row| row.at(0)).collect();
                serde_json::to_value(rows?)?
            }
            Do::Sql(sql) => {
                self.state.sql().exec(&sql, ())?;
                Value::Null
            }
            Do::DeleteAll => {
                self.state.delete_all()?;
                Value::Null
            }
            Do::Alarm => serde_json::to_value(self.state.alarms().get().await?)?,
            Do::OnAlarm => {
                room.on_alarm().await?;
                Value::Null
            }
            Do::Messages(after, limit) => {
                let after = after.map(|text| text.parse::<Position>()).transpose()?;
                serde_json::to_value(room.messages(after, limit)?)?
            }
            Do::Unmark => {
                for socket in self.state.sockets().all() {
                    socket.set_attachment(&"mine")?;
                }
                Value::Null
            }
            Do::SetData(member, data) => {
                let socket = room
                    .sockets_of(&member)
                    .into_iter()
                    .next()
                    .ok_or(Error::new(ErrorKind::NotFound, "who"))?;
                serde_json::to_value(room.set_data(&socket, &data).await?)?
            }
            Do::Stats => {
                let stats = room.outbound_stats();
                serde_json::to_value((stats.behind, stats.messages, stats.bytes, stats.disconnected))?
            }
        })
    }
}

/// A kit with one such object.
pub(crate) struct Lab {
    pub(crate) kit: Kit,
    pub(crate) stub: HostStub,
}

impl Lab {
    pub(crate) fn new(setup: &Setup) -> Self {
        let kit =
            Kit::builder().object::<Probe<_>>("PROBE").var("SETUP", serde_json::to_string(setup).unwrap());
        let kit = kit.start().unwrap();
        let stub = kit.namespace("PROBE").unwrap().named("probe").unwrap();
        Self { kit, stub }
    }

    pub(crate) fn run(&self, test: impl Future<Output = ()>) {
        self.kit.run(test);
    }

    /// The first room does something.
    pub(crate) async fn ask(&self, command: Do) -> Value {
        self.try_ask("/", command).await.unwrap()
    }

    /// The second one does.
    pub(crate) async fn ask_other(&self, command: Do) -> Value {
        self.try_ask("/?room=1", command).await.unwrap()
    }

    pub(crate) async fn try_ask(&self, path: &str, command: Do) -> Result<Value, Error> {
        let request = http::Request::post(path).body(serde_json::to_vec(&command).unwrap().into()).unwrap();
        let response = self.stub.fetch(request).await?;
        if response.status() != 200 {
            let text = response.into_body().text(10_000).await?;
            return Err(Error::new(ErrorKind::Platform, text));
        }
        response.into_body().json(1 << 24).await
    }

    pub(crate) async fn connect(&self, query: &str) -> Client {
        self.kit.connect(&self.stub, &format!("/?{query}")).await.unwrap()
    }

    /// The status of a refusal, 0 when the object failed.
    pub(crate) async fn refused(&self, query: &str) -> (u16, String) {
        let (request, opening) = self.kit.handshake(&format!("/?{query}")).unwrap();
        match self.stub.fetch(request).await {
            Err(error) => (0, error.to_string()),
            Ok(response) => {
                let response = opening.open(response).unwrap_err();
                let status = response.status().as_u16();
                (status, response.into_body().text(1_000).await.unwrap())
            }
        }
    }

    /// Who is there, by the first room.
    pub(crate) async fn there(&self) -> Vec<String> {
        ids(&self.ask(Do::Presence).await)
    }

    /// Entries of the log in short.
    pub(crate) async fn log(&self) -> Vec<String> {
        let frames: Vec<String> = serde_json::from_value(self.ask(Do::Log).await).unwrap();
        frames.iter().map(|frame| short(&serde_json::from_str(frame).unwrap())).collect()
    }
}

pub(crate) fn ids(presence: &Value) -> Vec<String> {
    presence.as_array().unwrap().iter().map(|member| member["id"].as_str().unwrap().to_owned()).collect()
}

/// `+ann`, `-ann`, `~ann`, or what was published.
pub(crate) fn short(frame: &Value) -> String {
    let member = frame["member"].as_str().unwrap_or_default();
    match frame["t"].as_str() {
        Some("joined") => format!("+{member}"),
        Some("left") => format!("-{member}"),
        Some("updated") => format!("~{member}"),
        Some("msg") => frame["d"].to_string(),
        Some(other) => other.to_owned(),
        None => frame.to_string(),
    }
}

/// What has arrived in short; a close as its code, a loss as `lost`.
pub(crate) fn heard(client: &Client) -> Vec<String> {
    let mut heard = Vec::new();
    while let Some(received) = client.try_receive() {
        let is_end = matches!(received, Received::Close(_) | Received::Lost);
        heard.push(match received {
            Received::Message(Message::Text(text)) => match serde_json::from_str(&text) {
                Ok(frame) => short(&frame),
                Err(_) => text.to_string(),
            },
            Received::Message(Message::Binary(bytes)) => format!("{} bytes", bytes.len()),
            Received::Close(code) => code.map_or(1_005, |(code, _)| code).to_string(),
            other => format!("{other:?}"),
        });
        if is_end {
            break;
        }
    }
    heard
}

/// The hello as it is.
pub(crate) async fn hello(client: &Client) -> Value {
    let hello: Value = serde_json::from_str(&client.text().await.unwrap()).unwrap();
    assert_eq!(hello["t"], "hello");
    hello
}
