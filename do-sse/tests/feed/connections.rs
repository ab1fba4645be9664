//! A room and a feed of one object that share a registry of connections.

use do_core::{
    Admission, Connection, Connections, Peer,
    kit::{Client, Kit, for_seeds},
    prelude::*,
    tokio::HostStub,
};
use do_sse::{Event, Feed, History, OnDuplicate, Settings};
use do_sync::{Member, Origins, Refusal, Room};
use http_body_util::BodyExt;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::collections::BTreeMap;

#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
struct Caps {
    max: Option<usize>,
    per_key: Option<usize>,
    allow_duplicates: bool,
    max_age: Option<u64>,
}

/// What the hooks are told it keeps in its database.
struct House<S: ObjectState> {
    state: S,
    connections: Connections<S>,
    room: Room<S>,
    feed: Feed<S>,
}

/// `+s:ann/0`: a socket of ann's came, and she has nothing else.
fn say<S: ObjectState>(state: &S, sign: char, who: &Connection<'_, S>) {
    let what = match who.peer {
        Peer::Socket(_) => "s",
        Peer::Stream(id) => id,
        _ => "?",
    };
    let line = format!("{sign}{what}:{}/{}", who.key.unwrap_or("-"), who.others);
    state.sql().exec("INSERT INTO said (line) VALUES (?)", (line,)).unwrap();
}

impl<S: ObjectState> DurableObject<S> for House<S> {
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
        let history = History::new().max_bytes(16 << 20);
        let mut settings = Settings::new().max_bytes(1_000).history(history);
        if caps.allow_duplicates {
            settings = settings.on_duplicate(OnDuplicate::Allow);
        }
        if let Some(age) = caps.max_age {
            settings = settings.max_age(Duration::from_secs(age));
        }
        let room = Room::new(&state).connections(&connections);
        let feed = Feed::new(&state, settings, Alarm::raw(&state)).connections(&connections);
        Ok(Self { state, connections, room, feed })
    }

    async fn fetch(&self, request: Request) -> Result<Response> {
        let id = request.query("id").unwrap_or_default();
        match request.uri().path() {
            "/enter" => Ok(self.room.enter(&request, Member::new(request.require("user")?)?)?),
            "/follow" => Ok(self.room.follow(&request)?),
            "/events" => {
                let opening = self.feed.open(&request);
                let opening = if id.is_empty() { opening } else { opening.id(id) };
                Ok(opening.start().await?)
            }
            "/close" => Ok(reply::json(&self.feed.close(&id))?),
            "/broadcast" => {
                let length = request.require("length")?.parse().unwrap_or(0);
                let report = self.feed.broadcast(Event::new().data("x".repeat(length))).send();
                Ok(reply::json(&report.disconnected)?)
            }
            "/publish" => {
                let length = request.require("length")?.parse().unwrap_or(0);
                let published = self.feed.publish(Event::new().data("x".repeat(length)))?;
                Ok(reply::json(&published.position.to_string())?)
            }
            "/counts" => {
                let all = &self.connections;
                let of: Vec<_> =
                    all.keys().into_iter().map(|key| format!("{key}:{}", all.of_key(&key))).collect();
                assert_eq!((all.sockets(), all.streams()), (self.room.count(), self.feed.count()));
                Ok(reply::json(&(all.sockets(), all.streams(), of))?)
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
        self.room.leave(&gone).await?;
        Ok(())
    }

    async fn alarm(&self, _: AlarmInfo) -> Result<()> {
        Ok(self.feed.on_alarm().await?)
    }
}

fn kit(caps: Caps, seed: u64) -> Kit {
    let caps = serde_json::to_string(&caps).unwrap();
    Kit::builder().object::<House<_>>("HOUSE").var("CAPS", caps).seed(seed).start().unwrap()
}

fn house(kit: &Kit) -> HostStub {
    kit.namespace("HOUSE").unwrap().named("house").unwrap()
}

async fn get(stub: &HostStub, path: &str, headers: &[(&str, &str)]) -> Response {
    let mut request = http::Request::get(format!("http://kit{path}"));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    stub.fetch(request.body(Body::empty()).unwrap()).await.unwrap()
}

async fn ask<T: DeserializeOwned>(stub: &HostStub, path: &str) -> T {
    get(stub, path, &[]).await.into_body().json(1 << 20).await.unwrap()
}

/// A stream that began, read up to its `ready`.
async fn listen(stub: &HostStub, query: &str) -> Body {
    let mut body = get(stub, &format!("/events?{query}"), &[]).await.into_body();
    let first = chunk(&mut body).await;
    assert!(first.starts_with("event: ready\n") || first.contains("\nevent: ready\n"), "{first}");
    body
}

async fn chunk(body: &mut Body) -> String {
    let frame = body.frame().await.expect("it goes on").unwrap();
    String::from_utf8(frame.into_data().unwrap().to_vec()).unwrap()
}

/// The status of an answer that ends, and all of it.
async fn answered(stub: &HostStub, path: &str, headers: &[(&str, &str)]) -> (u16, String) {
    let response = get(stub, path, headers).await;
    (response.status().as_u16(), response.into_body().text(1 << 20).await.unwrap())
}

async fn come(kit: &Kit, stub: &HostStub, path: &str) -> Client {
    kit.connect(stub, path).await.unwrap()
}

async fn refused(kit: &Kit, stub: &HostStub, path: &str) -> u16 {
    let (request, _opening) = kit.handshake(path).unwrap();
    stub.fetch(request).await.unwrap().status().as_u16()
}

async fn said(stub: &HostStub) -> Vec<String> {
    ask(stub, "/said").await
}

/// Sockets, streams, and connections of each key.
type Counts = (usize, usize, Vec<String>);

fn counts(sockets: usize, streams: usize, of: &[&str]) -> Counts {
    (sockets, streams, of.iter().map(|key| (*key).to_owned()).collect())
}

/// Whether it is the answer that sends somebody away for five seconds and at most half as much again.
fn is_later((status, body): &(u16, String)) -> bool {
    let retry = body.strip_prefix("retry: ").and_then(|rest| rest.trim_end().parse::<u32>().ok());
    *status == 200 && retry.is_some_and(|retry| (5_000..=7_500).contains(&retry))
}

#[test]
fn a_cap_holds_over_sockets_and_streams() {
    let kit = kit(Caps { max: Some(3), ..Caps::default() }, 0);
    kit.run(async {
        let house = house(&kit);
        let _ann = come(&kit, &house, "/enter?user=ann").await;
        let bob = listen(&house, "user=bob").await;
        let _nobody = listen(&house, "").await;
        assert!(is_later(&answered(&house, "/events?user=carl", &[]).await));
        assert!(is_later(&answered(&house, "/events", &[]).await));
        assert_eq!(refused(&kit, &house, "/enter?user=carl").await, 503);
        assert_eq!(refused(&kit, &house, "/follow").await, 503);
        assert_eq!(ask::<Counts>(&house, "/counts").await, counts(1, 2, &["ann:1", "bob:1"]));
        drop(bob);
        let _carl = listen(&house, "user=carl").await;
        assert_eq!(ask::<Counts>(&house, "/counts").await, counts(1, 2, &["ann:1", "carl:1"]));
    });
}

#[test]
fn a_cap_for_each_key_holds_over_sockets_and_streams() {
    let kit = kit(Caps { per_key: Some(2), ..Caps::default() }, 0);
    kit.run(async {
        let house = house(&kit);
        let socket = come(&kit, &house, "/enter?user=ann").await;
        let stream = listen(&house, "user=ann&id=tab").await;
        assert!(is_later(&answered(&house, "/events?user=ann", &[]).await));
        assert_eq!(refused(&kit, &house, "/follow?user=ann").await, 429);
        let _bob = listen(&house, "user=bob&id=bob").await;
        drop(socket);
        kit.settle().await;
        let again = come(&kit, &house, "/follow?user=ann").await;
        drop(stream);
        kit.settle().await;
        let more = listen(&house, "user=ann&id=more").await;
        drop((again, more));
        kit.settle().await;
        let told =
            ["+s:ann/0", "+tab:ann/1", "+bob:bob/0", "-s:ann/1", "+s:ann/1", "-tab:ann/1", "+more:ann/1"];
        let all = said(&house).await;
        assert_eq!(all[..7], told);
        assert_eq!(balance(&all).unwrap(), [("bob".to_owned(), 1)].into());
    });
}

#[test]
fn who_it_is_and_where_from_is_asked_before_a_stream_begins() {
    let kit = kit(Caps::default(), 0);
    kit.run(async {
        let house = house(&kit);
        let evil = [("host", "kit"), ("origin", "https://evil.example")];
        assert_eq!(answered(&house, "/events?user=ann", &evil).await.0, 403);
        assert_eq!(answered(&house, "/events?user=", &[]).await.0, 401);
        let head = http::Request::head("http://kit/events?user=").body(Body::empty()).unwrap();
        assert_eq!(house.fetch(head).await.unwrap().status(), 401);
        let head = http::Request::head("http://kit/events?user=ann").body(Body::empty()).unwrap();
        assert_eq!(house.fetch(head).await.unwrap().status(), 200);
        assert_eq!(said(&house).await, [""; 0]);
        assert_eq!(ask::<Counts>(&house, "/counts").await, counts(0, 0, &[]));
        let own = [("host", "kit"), ("origin", "http://kit")];
        let mut body = get(&house, "/events?user=ann&id=a", &own).await.into_body();
        assert!(chunk(&mut body).await.contains("ready"));
        assert_eq!(said(&house).await, ["+a:ann/0"]);
    });
}

#[test]
fn whoever_replaces_their_own_stream_needs_no_place() {
    let kit = kit(Caps { max: Some(1), per_key: Some(1), ..Caps::default() }, 0);
    kit.run(async {
        let house = house(&kit);
        let mut old = listen(&house, "user=ann&id=tab").await;
        assert!(is_later(&answered(&house, "/events?user=ann&id=other", &[]).await));
        assert_eq!(refused(&kit, &house, "/enter?user=bob").await, 503);
        let new = listen(&house, "user=ann&id=tab").await;
        assert!(chunk(&mut old).await.contains("event: replaced\n"));
        assert_eq!(ask::<Counts>(&house, "/counts").await, counts(0, 1, &["ann:1"]));
        drop((old, new));
        kit.settle().await;
        assert_eq!(said(&house).await, ["+tab:ann/0", "+tab:ann/1", "-tab:ann/1", "-tab:ann/0"]);
    });
}

/// Whatever ends a stream, and however often that is noticed, it is told of once.
#[test]
fn each_cause_of_an_end_is_told_of_once() {
    for cause in ["gone", "closed", "full", "stalled", "aged", "replaced"] {
        let age = (cause == "aged").then_some(60);
        let kit = kit(Caps { max_age: age, ..Caps::default() }, 0);
        kit.run(async {
            let house = house(&kit);
            let body = listen(&house, "user=ann&id=tab").await;
            let mut body = Some(body);
            match cause {
                "gone" => {
                    body = None;
                    kit.settle().await;
                }
                "closed" => assert_eq!(ask::<usize>(&house, "/close?id=tab").await, 1),
                "full" => {
                    assert_eq!(ask::<usize>(&house, "/broadcast?length=900").await, 0);
                    assert_eq!(ask::<usize>(&house, "/broadcast?length=900").await, 1);
                }
                "stalled" => {
                    ask::<usize>(&house, "/broadcast?length=900").await;
                    kit.advance(Duration::from_secs(60)).await;
                }
                "aged" => kit.advance(Duration::from_secs(61)).await,
                _ => drop(listen(&house, "user=ann&id=tab").await),
            }
            let expected: &[&str] = match cause {
                "replaced" => &["+tab:ann/0", "+tab:ann/1", "-tab:ann/1", "-tab:ann/0"],
                _ => &["+tab:ann/0", "-tab:ann/0"],
            };
            kit.settle().await;
            assert_eq!(said(&house).await, expected, "{cause}");
            assert_eq!(ask::<Counts>(&house, "/counts").await, counts(0, 0, &[]));
            drop(body);
            kit.advance(Duration::from_secs(120)).await;
            assert_eq!(said(&house).await, expected, "{cause}");
        });
    }
}

#[test]
fn whoever_comes_back_for_the_rest_of_a_replay_has_not_come() {
    let kit = kit(Caps::default(), 0);
    kit.run(async {
        let house = house(&kit);
        let first: String = ask(&house, "/publish?length=1").await;
        for _ in 0..3 {
            ask::<String>(&house, "/publish?length=300000").await;
        }
        let (status, page) = answered(&house, &format!("/events?user=ann&lastEventId={first}"), &[]).await;
        assert_eq!((status, page.ends_with("retry: 10\n\n")), (200, true));
        kit.settle().await;
        assert_eq!(said(&house).await, [""; 0]);
        assert_eq!(ask::<Counts>(&house, "/counts").await, counts(0, 0, &[]));
    });
}

#[test]
fn a_reset_ends_all_and_nobody_is_told_twice() {
    for strike in 0..3 {
        let kit = kit(Caps { max: Some(2), ..Caps::default() }, 0);
        kit.run(async {
            let house = house(&kit);
            let gone = (come(&kit, &house, "/enter?user=ann").await, listen(&house, "user=ann&id=tab").await);
            match strike {
                0 => kit.evict(&house),
                1 => kit.crash(),
                _ => kit.lose_power(),
            }
            kit.settle().await;
            assert_eq!(ask::<Counts>(&house, "/counts").await, counts(0, 0, &[]));
            drop(listen(&house, "user=ann&id=tab").await);
            drop(gone);
            kit.advance(Duration::from_secs(60)).await;
            assert_eq!(said(&house).await, ["+s:ann/0", "+tab:ann/1", "+tab:ann/0", "-tab:ann/0"]);
        });
    }
}

/// How many of each key are there by what was told, which has to say of each how many others there are.
fn balance(said: &[String]) -> Result<BTreeMap<String, usize>, String> {
    let mut there: BTreeMap<String, usize> = BTreeMap::new();
    for line in said {
        let (key, others) = line.split_once(':').and_then(|(_, rest)| rest.rsplit_once('/')).unwrap();
        let count = there.entry(key.to_owned()).or_default();
        if line.starts_with('-') {
            *count = count.checked_sub(1).ok_or_else(|| format!("{line}: it never came"))?;
        }
        if others.parse() != Ok(*count) {
            return Err(format!("{line}: there are {count}"));
        }
        if line.starts_with('+') {
            *count += 1;
        }
    }
    there.retain(|_, count| *count > 0);
    Ok(there)
}

/// Comings and goings of all kinds: what is told is who is there.
#[test]
fn what_is_told_is_who_is_there_whatever_happens() {
    for_seeds(0..16, |seed| {
        let caps = Caps { per_key: Some(3), allow_duplicates: seed % 2 == 0, ..Caps::default() };
        let kit = kit(caps, seed);
        kit.run(async {
            let house = house(&kit);
            let mut dice = fastrand::Rng::with_seed(seed);
            let mut sockets: Vec<Client> = Vec::new();
            let mut streams: Vec<Body> = Vec::new();
            for _ in 0..60 {
                let user = ["ann", "bob", "carl"][dice.usize(..3)];
                match dice.u8(..12) {
                    0..3 => {
                        let path = format!("/{}?user={user}", ["enter", "follow"][dice.usize(..2)]);
                        let (request, opening) = kit.handshake(&path).unwrap();
                        if let Ok(client) = opening.open(house.fetch(request).await.unwrap()) {
                            sockets.push(client);
                        }
                    }
                    3..6 => {
                        let path = format!("/events?user={user}&id={user}{}", dice.u8(..2));
                        streams.push(get(&house, &path, &[]).await.into_body());
                    }
                    6 if !sockets.is_empty() => drop(sockets.swap_remove(dice.usize(..sockets.len()))),
                    7 | 8 if !streams.is_empty() => drop(streams.swap_remove(dice.usize(..streams.len()))),
                    9 => drop(ask::<usize>(&house, &format!("/close?id={user}0")).await),
                    10 => drop(ask::<usize>(&house, "/broadcast?length=600").await),
                    11 => kit.advance(Duration::from_secs(dice.u64(..40))).await,
                    _ => kit.settle().await,
                }
            }
            // Of sockets that the room closed, and whose clients do not answer, is told when they are given up.
            kit.advance(Duration::from_secs(30)).await;
            let (_, _, of): Counts = ask(&house, "/counts").await;
            let told = balance(&said(&house).await).unwrap();
            assert_eq!(told.iter().map(|(key, n)| format!("{key}:{n}")).collect::<Vec<_>>(), of);
            drop((sockets, streams));
            kit.advance(Duration::from_secs(60)).await;
            assert_eq!(balance(&said(&house).await).unwrap(), BTreeMap::new());
            assert_eq!(ask::<Counts>(&house, "/counts").await, counts(0, 0, &[]));
        });
    });
}
