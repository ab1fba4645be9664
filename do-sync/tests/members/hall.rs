//! An object with two rooms of members, and a test's way to it.

use do_core::{
    kit::{Builder, Client, Kit},
    prelude::*,
    tokio::HostStub,
};
use do_sync::{History, Member, Members, OnDuplicate, Room};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

/// The rules, and what is wrong on purpose, as the variable `RULES`.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(crate) struct Rules {
    /// 0: replace, 1: allow, 2: reject.
    pub(crate) duplicate: u8,
    pub(crate) grace: u64,
    pub(crate) max_members: Option<usize>,
    pub(crate) max_sockets: Option<usize>,
    pub(crate) silent: Option<u64>,
    pub(crate) no_alarm: bool,
    pub(crate) flaw: Flaw,
}

/// What is wrong with the object, to see that the checks see it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Flaw {
    #[default]
    None,
    /// It does not say who left.
    Silent,
    /// It says it twice.
    Twice,
    /// It loses who is there.
    Forgetful,
    /// It says that somebody left who has another socket.
    Hasty,
    /// It loses what others see.
    Blank,
}

pub(crate) struct Hall<S: ObjectState> {
    state: S,
    room: Room<S>,
    other: Room<S>,
    flaw: Flaw,
}

fn param(request: &Request, name: &str) -> Option<String> {
    let mut pairs = request.uri().query()?.split('&').filter_map(|pair| pair.split_once('='));
    pairs.find(|(key, _)| *key == name).map(|(_, value)| value.to_owned())
}

impl<S: ObjectState> DurableObject<S> for Hall<S> {
    fn new(state: S) -> Result<Self> {
        let rules: Rules = serde_json::from_str(&state.env().var("RULES").unwrap_or_default())?;
        let mut members =
            Members::new().grace(Duration::from_secs(rules.grace)).on_duplicate(match rules.duplicate {
                0 => OnDuplicate::Replace,
                1 => OnDuplicate::Allow,
                _ => OnDuplicate::Reject,
            });
        members = rules.max_members.map_or(members.clone(), |most| members.max_members(most));
        members = rules.max_sockets.map_or(members.clone(), |most| members.max_sockets(most));
        members = rules.silent.map_or(members.clone(), |most| members.silent(Duration::from_secs(most)));
        let mut room = Room::new(&state)
            .members(members)
            .history(History::new().max_messages(1_000_000).max_bytes(1 << 30));
        if !rules.no_alarm {
            room = room.alarm(Alarm::raw(&state));
        }
        room.auto_ping("ping", "pong")?;
        let other = Room::tagged(&state, tag!("other"));
        Ok(Self { state, room, other, flaw: rules.flaw })
    }

    async fn fetch(&self, request: Request) -> Result<Response> {
        let id = param(&request, "m").unwrap_or_default();
        let room = if param(&request, "room").is_some() { &self.other } else { &self.room };
        match request.uri().path() {
            "/enter" => {
                let mut accept = Accept::new();
                if let Some(tag) = param(&request, "tag") {
                    accept = accept.tag(tag)?;
                }
                if let Some(app) = param(&request, "app") {
                    accept = accept.attach(&app)?;
                }
                let mut member = Member::new(id)?.accept(accept);
                if let Some(data) = param(&request, "d") {
                    member = member.data(&data)?;
                }
                Ok(room.enter(&request, member)?)
            }
            "/join" => Ok(room.join(&request, Accept::new().attach(&["foreign"])?)?.0),
            "/kick" => Ok(reply::json(&room.kick(&id, "go").await?)?),
            "/presence" => {
                let all = room.presence()?.into_iter().map(|p| (p.id, p.data));
                let all: Vec<_> =
                    all.map(|(id, d)| (id, d.and_then(|d| serde_json::from_str(d.get()).ok()))).collect();
                let all: Vec<(String, Option<String>)> = all;
                assert_eq!(room.member_count()?, all.len());
                for (id, _) in &all {
                    assert!(room.is_present(id)?);
                }
                Ok(reply::json(&all)?)
            }
            "/sockets" => {
                let mut all: Vec<(String, Option<String>, Option<String>)> = Vec::new();
                for socket in room.sockets() {
                    if let Some(member) = room.member_of(&socket) {
                        assert!(room.sockets_of(&member.id).contains(&socket));
                        all.push((member.id, room.data_of(&socket)?, room.attached(&socket)?));
                    }
                }
                all.sort();
                Ok(reply::json(&all)?)
            }
            "/foreign" => {
                let foreign: Vec<_> =
                    self.state.sockets().all().into_iter().filter(|s| room.member_of(s).is_none()).collect();
                let mut seen = Vec::new();
                for socket in foreign {
                    let before = socket.attachment::<serde_json::Value>()?;
                    assert_eq!(room.attached::<String>(&socket)?, None);
                    assert_eq!(room.data_of::<String>(&socket)?, None);
                    assert_eq!(room.set_attached(&socket, &1).unwrap_err().kind(), ErrorKind::NotFound);
                    assert_eq!(room.set_data(&socket, &1).await.unwrap_err().kind(), ErrorKind::NotFound);
                    assert_eq!(room.leave(&socket).await?, None);
                    assert_eq!(socket.attachment::<serde_json::Value>()?, before);
                    seen.push(before);
                }
                Ok(reply::json(&seen)?)
            }
            "/log" => {
                let name = if param(&request, "room").is_some() { "other" } else { "room" };
                let sql =
                    "SELECT CAST(frame AS TEXT) FROM _room_log WHERE room = ? AND kind = 1 ORDER BY seq";
                let rows = self.state.sql().exec(sql, (name,));
                let frames: Vec<String> = match rows {
                    Ok(rows) => rows.iter().map(|row| row.at(0)).collect::<Result<_, _>>()?,
                    Err(error) if error.to_string().starts_with("no such table") => Vec::new(),
                    Err(error) => return Err(error.into()),
                };
                Ok(reply::json(&frames)?)
            }
            "/rows" => {
                let rows = self.state.sql().query::<serde_json::Value>("SELECT * FROM _room_members", ())?;
                Ok(reply::json(&rows)?)
            }
            "/jam" => {
                for (n, what) in ["INSERT", "UPDATE", "DELETE"].iter().enumerate() {
                    let trigger = "ON _room_members BEGIN SELECT RAISE(ABORT, 'jammed'); END";
                    self.state.sql().exec(&format!("CREATE TRIGGER jam{n} BEFORE {what} {trigger}"), ())?;
                }
                Ok(reply::json(&1)?)
            }
            "/unjam" => {
                self.state.sql().exec("DROP TRIGGER jam0; DROP TRIGGER jam1; DROP TRIGGER jam2", ())?;
                Ok(reply::json(&1)?)
            }
            "/twice" => {
                // A kick and an arrival in one turn.
                let kicked = room.kick(&id, "go").await?;
                assert_eq!(kicked, 1);
                Ok(room.enter(&request, Member::new(id)?)?)
            }
            _ => Ok(reply::text("awake")),
        }
    }

    async fn alarm(&self, _: AlarmInfo) -> Result<()> {
        Ok(self.room.on_alarm().await?)
    }

    async fn websocket_message(&self, from: SocketOf<S>, message: Message) -> Result<()> {
        let text = message.as_text().unwrap_or_default();
        match text.split_once(':') {
            Some(("data", data)) => {
                self.room.set_data(&from, data).await?;
                if self.flaw == Flaw::Blank {
                    self.state.sql().exec("UPDATE _room_members SET data = NULL", ())?;
                }
            }
            Some(("app", app)) => self.room.set_attached(&from, app)?,
            _ => {}
        }
        Ok(())
    }

    async fn websocket_close(&self, gone: SocketOf<S>, _: Close) -> Result<()> {
        self.gone(&gone).await
    }

    async fn websocket_error(&self, gone: SocketOf<S>, _: Error) -> Result<()> {
        self.gone(&gone).await
    }
}

impl<S: ObjectState> Hall<S> {
    async fn gone(&self, socket: &SocketOf<S>) -> Result<()> {
        let Some(member) = self.room.member_of(socket) else {
            self.other.leave(socket).await?;
            return Ok(());
        };
        match self.flaw {
            Flaw::Silent => return Ok(()),
            Flaw::Twice => {
                if self.room.leave(socket).await?.is_some() {
                    let again = "INSERT INTO _room_members (room, member) VALUES ('room', ?)";
                    self.state.sql().exec(again, (member.id,))?;
                    self.room.leave(socket).await?;
                }
                return Ok(());
            }
            Flaw::Forgetful => {
                self.state.sql().exec("DELETE FROM _room_members WHERE member = ?", (member.id,))?;
            }
            Flaw::Hasty => {
                self.room.kick(&member.id, "hasty").await?;
            }
            Flaw::Blank | Flaw::None => {}
        }
        self.room.leave(socket).await?;
        // As often as one likes.
        assert_eq!(self.room.leave(socket).await?, None);
        Ok(())
    }
}

/// A kit with one such object.
pub(crate) fn kit(rules: Rules, seed: u64) -> Kit {
    builder(rules).seed(seed).start().unwrap()
}

pub(crate) fn builder(rules: Rules) -> Builder {
    Kit::builder()
        .object::<Hall<_>>("HALL")
        .message_bytes(1_000)
        .var("RULES", serde_json::to_string(&rules).unwrap())
}

pub(crate) fn hall(kit: &Kit) -> HostStub {
    kit.namespace("HALL").unwrap().named("hall").unwrap()
}

/// What the object answers.
pub(crate) async fn ask<T: DeserializeOwned>(stub: &HostStub, path: &str) -> Result<T> {
    let request = http::Request::get(format!("http://kit{path}")).body(Body::empty())?;
    Ok(stub.fetch(request).await?.into_body().json(1 << 24).await?)
}

/// Somebody comes in.
pub(crate) async fn enter(kit: &Kit, stub: &HostStub, query: &str) -> Client {
    kit.connect(stub, &format!("/enter?{query}")).await.unwrap()
}

/// With which status somebody is refused.
pub(crate) async fn refused(kit: &Kit, stub: &HostStub, query: &str) -> (u16, String) {
    let (request, opening) = kit.handshake(&format!("/enter?{query}")).unwrap();
    let response = opening.open(stub.fetch(request).await.unwrap()).unwrap_err();
    let status = response.status().as_u16();
    (status, response.into_body().text(1_000).await.unwrap())
}

/// Who is there, as the object says.
pub(crate) async fn there(stub: &HostStub) -> Vec<String> {
    let all: Vec<(String, Option<String>)> = ask(stub, "/presence").await.unwrap();
    all.into_iter().map(|(id, data)| data.map_or(id.clone(), |data| format!("{id}={data}"))).collect()
}
