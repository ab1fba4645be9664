//! Two rooms of one object that share a registry of connections with their sockets.

use super::watch::heard;
use do_core::{
    Admission, Connection, Connections,
    kit::{Client, Kit, for_seeds},
    prelude::*,
    tokio::HostStub,
};
use do_sync::{History, Member, Members, OnDuplicate, Origins, Outbound, Refusal, Room};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::collections::BTreeMap;

#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
struct Caps {
    max: Option<usize>,
    per_key: Option<usize>,
    allow_duplicates: bool,
}

/// What the hooks are told it keeps in its database.
struct Floor<S: ObjectState> {
    state: S,
    connections: Connections<S>,
    east: Room<S>,
    west: Room<S>,
}

/// `+ann/0`: a socket of ann's came, and she has no other.
fn say<S: ObjectState>(state: &S, sign: char, who: &Connection<'_, S>) {
    let line = format!("{sign}{}/{}", who.key.unwrap_or("-"), who.others);
    state.sql().exec("INSERT INTO said (line) VALUES (?)", (line,)).unwrap();
}

impl<S: ObjectState> DurableObject<S> for Floor<S> {
    fn new(state: S) -> Result<Self> {
        state.sql().exec("CREATE TABLE IF NOT EXISTS said (n INTEGER PRIMARY KEY, line TEXT)", ())?;
        let caps: Caps = serde_json::from_str(&state.env().var("CAPS").unwrap_or_default())?;
        let (comes, goes) = (state.clone(), state.clone());
        let mut connections = Connections::new(&state)
            .origins(Origins::same_host())
            .admit(|request| match request.query("user") {
                Some(user) => Admission::of(user).map_err(|_| Refusal::Unauthorized),
                None => Ok(Admission::anonymous()),
            })
            .on_join(move |who| say(&comes, '+', who))
            .on_leave(move |who| say(&goes, '-', who));
        connections = caps.max.map_or(connections.clone(), |most| connections.max(most));
        connections = caps.per_key.map_or(connections.clone(), |most| connections.max_per_key(most));
        let duplicate = if caps.allow_duplicates { OnDuplicate::Allow } else { OnDuplicate::Replace };
        let east = Room::tagged(&state, tag!("east"))
            .connections(&connections)
            .members(Members::new().on_duplicate(duplicate))
            .history(History::new().max_messages(1_000))
            .outbound(Outbound::new().max_messages(16));
        let west = Room::tagged(&state, tag!("west")).max_sockets(3).connections(&connections);
        Ok(Self { state, connections, east, west })
    }

    async fn fetch(&self, request: Request) -> Result<Response> {
        let room = if request.query("room").is_some() { &self.west } else { &self.east };
        let user = request.query("user").unwrap_or_default();
        match request.uri().path() {
            "/enter" => Ok(room.enter(&request, Member::new(request.require("user")?)?)?),
            "/follow" => Ok(room.follow(&request)?),
            "/join" => Ok(room.join(&request, Accept::new())?.0),
            "/asked" => match room.refusal(&request) {
                Some(refusal) => Ok(refusal.reply()),
                None => Ok(room.join(&request, Accept::new())?.0),
            },
            "/kick" => Ok(reply::json(&room.kick(&user, "go").await?)?),
            "/publish" => Ok(reply::json(&room.publish(&"x")?.position.seq())?),
            "/jam" => {
                let trigger = "ON _room_members BEGIN SELECT RAISE(ABORT, 'jammed'); END";
                self.state.sql().exec(&format!("CREATE TRIGGER jam BEFORE INSERT {trigger}"), ())?;
                Ok(reply::json(&1)?)
            }
            "/counts" => {
                let all = &self.connections;
                let of: Vec<_> =
                    all.keys().into_iter().map(|key| format!("{key}:{}", all.of_key(&key))).collect();
                assert_eq!(all.count(), all.sockets());
                Ok(reply::json(&(self.east.count(), self.west.count(), all.count(), of))?)
            }
            "/said" => {
                let rows = self.state.sql().exec("SELECT line FROM said ORDER BY n", ())?;
                let lines: Vec<String> = rows.iter().map(|row| row.at(0)).collect::<Result<_, _>>()?;
                Ok(reply::json(&lines)?)
            }
            _ => Ok(reply::text("")),
        }
    }

    async fn websocket_close(&self, gone: SocketOf<S>, _: Close) -> Result<()> {
        self.gone(&gone).await
    }

    async fn websocket_error(&self, gone: SocketOf<S>, _: Error) -> Result<()> {
        self.gone(&gone).await
    }
}

impl<S: ObjectState> Floor<S> {
    /// To whichever room, as often as one likes, before and behind an await.
    async fn gone(&self, socket: &SocketOf<S>) -> Result<()> {
        self.west.leave(socket).await?;
        self.east.leave(socket).await?;
        self.state.sleep(Duration::from_millis(1)).await;
        self.west.leave(socket).await?;
        Ok(())
    }
}

fn kit(caps: Caps, seed: u64) -> Kit {
    let caps = serde_json::to_string(&caps).unwrap();
    Kit::builder()
        .object::<Floor<_>>("FLOOR")
        .var("CAPS", caps)
        .message_bytes(1_000)
        .seed(seed)
        .start()
        .unwrap()
}

fn floor(kit: &Kit) -> HostStub {
    kit.namespace("FLOOR").unwrap().named("floor").unwrap()
}

async fn ask<T: DeserializeOwned>(stub: &HostStub, path: &str) -> T {
    let request = http::Request::get(format!("http://kit{path}")).body(Body::empty()).unwrap();
    stub.fetch(request).await.unwrap().into_body().json(1 << 20).await.unwrap()
}

async fn come(kit: &Kit, stub: &HostStub, path: &str) -> Client {
    kit.connect(stub, path).await.unwrap()
}

async fn refused(kit: &Kit, stub: &HostStub, path: &str, origin: Option<&str>) -> u16 {
    let (mut request, _opening) = kit.handshake(path).unwrap();
    if let Some(origin) = origin {
        request.headers_mut().insert("origin", origin.parse().unwrap());
    }
    stub.fetch(request).await.unwrap().status().as_u16()
}

async fn said(stub: &HostStub) -> Vec<String> {
    ask(stub, "/said").await
}

/// In the east, in the west, in all, and of each key.
type Counts = (usize, usize, usize, Vec<String>);

fn counts(east: usize, west: usize, of: &[&str]) -> Counts {
    (east, west, east + west, of.iter().map(|key| (*key).to_owned()).collect())
}

#[test]
fn a_cap_holds_over_all_rooms_of_an_object_and_each_has_its_own_too() {
    let kit = kit(Caps { max: Some(4), ..Caps::default() }, 0);
    kit.run(async {
        let floor = floor(&kit);
        let clients = [
            come(&kit, &floor, "/enter?room=west&user=ann").await,
            come(&kit, &floor, "/follow?room=west&user=bob").await,
            come(&kit, &floor, "/join?room=west").await,
        ];
        for path in ["/enter?user=carl&room=west", "/follow?room=west", "/asked?room=west"] {
            assert_eq!(refused(&kit, &floor, path, None).await, 503, "{path}");
        }
        let east = come(&kit, &floor, "/asked").await;
        for path in ["/enter?user=carl", "/follow", "/asked"] {
            assert_eq!(refused(&kit, &floor, path, None).await, 503, "{path}");
        }
        let (request, _opening) = kit.handshake("/join").unwrap();
        let error = floor.fetch(request).await.unwrap_err();
        assert_eq!((error.kind(), error.to_string().as_str()), (ErrorKind::Limit, "there is no place left"));
        assert_eq!(ask::<Counts>(&floor, "/counts").await, counts(1, 3, &["ann:1", "bob:1"]));
        drop(clients);
        kit.settle().await;
        let _more = come(&kit, &floor, "/enter?user=carl").await;
        assert_eq!(ask::<Counts>(&floor, "/counts").await, counts(2, 0, &["carl:1"]));
        drop(east);
    });
}

#[test]
fn a_cap_for_each_key_holds_over_rooms_and_hibernation() {
    let kit = kit(Caps { per_key: Some(2), allow_duplicates: true, ..Caps::default() }, 0);
    kit.run(async {
        let floor = floor(&kit);
        let _ann = come(&kit, &floor, "/enter?user=ann").await;
        let second = come(&kit, &floor, "/join?room=west&user=ann").await;
        for _ in 0..2 {
            for path in
                ["/enter?user=ann", "/follow?user=ann", "/asked?user=ann", "/asked?room=west&user=ann"]
            {
                assert_eq!(refused(&kit, &floor, path, None).await, 429, "{path}");
            }
            kit.hibernate(&floor).await.unwrap();
        }
        let _bob = come(&kit, &floor, "/enter?user=bob").await;
        let _nobody = [come(&kit, &floor, "/join").await, come(&kit, &floor, "/follow").await];
        drop(second);
        kit.settle().await;
        let _third = come(&kit, &floor, "/follow?user=ann").await;
        assert_eq!(ask::<Counts>(&floor, "/counts").await, counts(5, 0, &["ann:2", "bob:1"]));
        let told = ["+ann/0", "+ann/1", "+bob/0", "+-/0", "+-/0", "-ann/1", "+ann/1"];
        assert_eq!(said(&floor).await, told);
    });
}

#[test]
fn whoever_is_refused_leaves_no_trace() {
    let kit = kit(Caps::default(), 0);
    kit.run(async {
        let floor = floor(&kit);
        for path in ["/enter?user=ann", "/follow", "/asked"] {
            assert_eq!(refused(&kit, &floor, path, Some("https://evil.example")).await, 403, "{path}");
            assert_eq!(refused(&kit, &floor, path, Some("null")).await, 403, "{path}");
        }
        for path in ["/follow?user=", "/asked?user=%1F"] {
            assert_eq!(refused(&kit, &floor, path, None).await, 401, "{path}");
        }
        let (request, _opening) = kit.handshake("/join?user=").unwrap();
        let response = floor.fetch(request).await;
        assert!(response.map_or(true, |response| response.status() != 101));
        let plain = http::Request::get("http://kit/enter?user=ann").body(Body::empty()).unwrap();
        assert_eq!(floor.fetch(plain).await.unwrap().status(), 426, "before anybody is asked who they are");
        assert_eq!(ask::<Counts>(&floor, "/counts").await, counts(0, 0, &[]));
        assert_eq!(said(&floor).await, [""; 0]);
    });
}

#[test]
fn whoever_takes_their_own_place_needs_none_and_both_are_told_of_once() {
    let kit = kit(Caps { max: Some(1), per_key: Some(1), ..Caps::default() }, 0);
    kit.run(async {
        let floor = floor(&kit);
        let old = come(&kit, &floor, "/enter?user=ann").await;
        assert_eq!(refused(&kit, &floor, "/enter?user=bob", None).await, 503);
        kit.hibernate(&floor).await.unwrap();
        let new = come(&kit, &floor, "/enter?user=ann").await;
        kit.settle().await;
        assert_eq!(ask::<Counts>(&floor, "/counts").await, counts(1, 0, &["ann:1"]));
        assert_eq!(refused(&kit, &floor, "/follow?user=ann", None).await, 503, "who follows replaces nobody");
        drop((old, new));
        kit.settle().await;
        assert_eq!(said(&floor).await, ["+ann/0", "+ann/1", "-ann/1", "-ann/0"]);
    });
}

#[test]
fn the_kicked_are_told_of_once_though_they_do_not_answer_and_the_object_sleeps() {
    for asleep in [false, true] {
        let kit = kit(Caps { per_key: Some(2), allow_duplicates: true, ..Caps::default() }, 0);
        kit.run(async {
            let floor = floor(&kit);
            let clients =
                [come(&kit, &floor, "/enter?user=ann").await, come(&kit, &floor, "/enter?user=ann").await];
            for client in &clients {
                client.answers_closes(false);
            }
            assert_eq!(ask::<usize>(&floor, "/kick?user=ann").await, 2);
            assert_eq!(ask::<usize>(&floor, "/kick?user=ann").await, 0);
            assert_eq!(ask::<Counts>(&floor, "/counts").await, counts(0, 0, &[]));
            if asleep {
                kit.hibernate(&floor).await.unwrap();
            }
            let back = come(&kit, &floor, "/enter?user=ann").await;
            kit.advance(Duration::from_secs(30)).await;
            let all = said(&floor).await;
            let (came, went): (Vec<_>, Vec<_>) = all.iter().partition(|line| line.starts_with('+'));
            assert_eq!((came.len(), went.len()), (3, 2), "{all:?}");
            assert_eq!(balance(&all).unwrap(), [("ann".to_owned(), 1)].into());
            drop((back, clients));
        });
    }
}

#[test]
fn d25_a_reset_ends_all_and_nobody_is_told_twice() {
    for strike in 0..3 {
        let kit = kit(Caps { max: Some(2), ..Caps::default() }, 0);
        kit.run(async {
            let floor = floor(&kit);
            let gone =
                [come(&kit, &floor, "/enter?user=ann").await, come(&kit, &floor, "/join?user=bob").await];
            kit.settle().await;
            match strike {
                0 => kit.evict(&floor),
                1 => kit.crash(),
                _ => kit.lose_power(),
            }
            kit.settle().await;
            assert_eq!(ask::<Counts>(&floor, "/counts").await, counts(0, 0, &[]));
            let ann = come(&kit, &floor, "/enter?user=ann").await;
            drop((ann, gone));
            kit.settle().await;
            assert_eq!(said(&floor).await, ["+ann/0", "+bob/0", "+ann/0", "-ann/0"]);
        });
    }
}

#[test]
fn whoever_could_not_get_in_neither_came_nor_went() {
    let kit = kit(Caps { max: Some(1), ..Caps::default() }, 0);
    kit.run(async {
        let floor = floor(&kit);
        drop(come(&kit, &floor, "/enter?user=bob").await);
        kit.settle().await;
        ask::<u8>(&floor, "/jam").await;
        let (request, opening) = kit.handshake("/enter?user=ann").unwrap();
        assert!(floor.fetch(request).await.unwrap_err().to_string().contains("jammed"));
        drop(opening);
        kit.advance(Duration::from_secs(30)).await;
        assert_eq!(ask::<Counts>(&floor, "/counts").await, counts(0, 0, &[]));
        assert_eq!(said(&floor).await, ["+bob/0", "-bob/0"]);
    });
}

#[test]
fn whoever_comes_back_for_the_rest_has_not_come() {
    let kit = kit(Caps { per_key: Some(1), ..Caps::default() }, 0);
    kit.run(async {
        let floor = floor(&kit);
        let first = come(&kit, &floor, "/follow?user=bob").await;
        let hello: serde_json::Value = serde_json::from_str(&first.text().await.unwrap()).unwrap();
        drop(first);
        for _ in 0..20 {
            ask::<u64>(&floor, "/publish").await;
        }
        let path = format!("/follow?user=ann&after={}", hello["at"].as_str().unwrap());
        let part = come(&kit, &floor, &path).await;
        kit.settle().await;
        assert_eq!(heard(&part).end, Some(4_000));
        kit.advance(Duration::from_secs(30)).await;
        assert_eq!(said(&floor).await, ["+bob/0", "-bob/0"]);
        assert_eq!(ask::<Counts>(&floor, "/counts").await, counts(0, 0, &[]));
    });
}

/// How many of each key are there by what was told, which has to say of each how many others there are.
fn balance(said: &[String]) -> Result<BTreeMap<String, usize>, String> {
    let mut there: BTreeMap<String, usize> = BTreeMap::new();
    for line in said {
        let (key, others) = line[1..].rsplit_once('/').unwrap();
        let count = there.entry(key.to_owned()).or_default();
        if line.starts_with('-') {
            *count = count.checked_sub(1).ok_or_else(|| format!("{line}: it never came"))?;
        }
        if key != "-" && others.parse() != Ok(*count) {
            return Err(format!("{line}: there are {count}"));
        }
        if line.starts_with('+') {
            *count += 1;
        }
    }
    there.retain(|_, count| *count > 0);
    Ok(there)
}

/// Comings and goings of all kinds between hibernations: what is told is who is there.
#[test]
fn d15_d16_what_is_told_is_who_is_there_whatever_happens() {
    for_seeds(0..24, |seed| {
        let kit = kit(Caps { per_key: Some(3), allow_duplicates: seed % 2 == 0, ..Caps::default() }, seed);
        kit.run(async {
            let floor = floor(&kit);
            let mut dice = fastrand::Rng::with_seed(seed);
            let mut clients: Vec<Client> = Vec::new();
            for _ in 0..60 {
                let user = ["ann", "bob", "carl"][dice.usize(..3)];
                let room = if dice.bool() { "&room=west" } else { "" };
                match dice.u8(..12) {
                    0..6 => {
                        let way = ["enter", "follow", "asked"][dice.usize(..3)];
                        let (request, opening) = kit.handshake(&format!("/{way}?user={user}{room}")).unwrap();
                        if let Ok(client) = opening.open(floor.fetch(request).await.unwrap()) {
                            clients.push(client);
                        }
                    }
                    6 => drop(ask::<usize>(&floor, &format!("/kick?user={user}{room}")).await),
                    7 => {
                        kit.settle().await;
                        let _ = kit.hibernate(&floor).await;
                    }
                    8 => kit.settle().await,
                    how if !clients.is_empty() => {
                        let client = clients.swap_remove(dice.usize(..clients.len()));
                        match how {
                            9 => drop(client.close(Some((1_000, "bye")))),
                            10 => drop(client.send("x".repeat(1_001))),
                            _ => {}
                        }
                    }
                    _ => {}
                }
            }
            kit.advance(Duration::from_secs(30)).await;
            let (_, _, _, of): Counts = ask(&floor, "/counts").await;
            let told = balance(&said(&floor).await).unwrap();
            assert_eq!(told.iter().map(|(key, n)| format!("{key}:{n}")).collect::<Vec<_>>(), of);
            drop(clients);
            kit.advance(Duration::from_secs(30)).await;
            assert_eq!(balance(&said(&floor).await).unwrap(), BTreeMap::new());
        });
    });
}
