//! The registry of connections: what counts, who is told, and that neither changes with hibernation, resets or the order of
//! ends.

use do_core::{
    Admission, Connection, Connections, Origins, Peer, Refusal, StreamTicket,
    kit::{Client, Kit, for_seeds},
    prelude::*,
    tokio::HostStub,
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::{cell::RefCell, collections::BTreeMap};

/// Sockets and streams by hand. What the hooks are told it keeps in its database.
struct Desk<S: ObjectState> {
    state: S,
    connections: Connections<S>,
    streams: RefCell<BTreeMap<String, StreamTicket>>,
}

#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
struct Caps {
    max: Option<usize>,
    per_key: Option<usize>,
}

/// `+s:ann/0`: a socket of ann's came, and she has no other.
fn say<S: ObjectState>(state: &S, sign: char, who: &Connection<'_, S>) {
    let what = match who.peer {
        Peer::Socket(_) => "s".to_owned(),
        Peer::Stream(id) => id.to_owned(),
        _ => "?".to_owned(),
    };
    let line = format!("{sign}{what}:{}/{}", who.key.unwrap_or("-"), who.others);
    state.sql().exec("INSERT INTO said (line) VALUES (?)", (line,)).unwrap();
}

impl<S: ObjectState> DurableObject<S> for Desk<S> {
    fn new(state: S) -> Result<Self> {
        state.sql().exec("CREATE TABLE IF NOT EXISTS said (n INTEGER PRIMARY KEY, line TEXT)", ())?;
        let caps: Caps = serde_json::from_str(&state.env().var("CAPS").unwrap_or_default())?;
        let (comes, goes) = (state.clone(), state.clone());
        let mut connections = Connections::new(&state)
            .origins(Origins::same_host())
            .admit(|request| match request.query("user") {
                Some(user) => Admission::of(user).map_err(|_| Refusal::Unauthorized),
                None if request.uri().path() == "/vip" => Err(Refusal::Unauthorized),
                None => Ok(Admission::anonymous()),
            })
            .on_join(move |who| say(&comes, '+', who))
            .on_leave(move |who| say(&goes, '-', who));
        if let Some(most) = caps.max {
            connections = connections.max(most);
        }
        if let Some(most) = caps.per_key {
            connections = connections.max_per_key(most);
        }
        Ok(Self { state, connections, streams: RefCell::default() })
    }

    async fn fetch(&self, request: Request) -> Result<Response> {
        let id = request.query("id").unwrap_or_default();
        match request.uri().path() {
            "/ws" | "/vip" => {
                let admission = match self.connections.check(&request) {
                    Ok(admission) => admission,
                    Err(refusal) => return Ok(refusal.reply()),
                };
                let accept = Accept::new().tag(request.query("tag").unwrap_or_else(|| "x".to_owned()))?;
                let accept = self.connections.socket_accept(accept, &admission)?;
                let (response, socket) = self.state.sockets().accept(&request, accept)?;
                self.connections.joined(&socket);
                assert_eq!(self.connections.key_of(&socket).as_deref(), admission.key());
                Ok(response)
            }
            "/foreign" => {
                let (response, socket) = self.state.sockets().accept(&request, Accept::new())?;
                self.connections.joined(&socket);
                Ok(response)
            }
            "/open" => match self.connections.check(&request) {
                Ok(admission) => {
                    let ticket = self.connections.stream_joined(&id, &admission);
                    self.streams.borrow_mut().insert(id, ticket);
                    Ok(reply::json("ok")?)
                }
                Err(refusal) => Ok(reply::json(&refusal.status().as_u16())?),
            },
            "/end" => {
                let ticket = self.streams.borrow_mut().remove(&id);
                if let Some(ticket) = ticket {
                    self.connections.stream_left(ticket);
                }
                Ok(reply::json("ok")?)
            }
            "/place" => {
                let admission = self.connections.identify(&request).unwrap();
                let streams = self.streams.borrow();
                let leaving: Vec<&StreamTicket> = streams.get(&id).into_iter().collect();
                let sockets = match request.query("socket") {
                    Some(key) => self.connections.sockets_of(&key),
                    None => Vec::new(),
                };
                let place = self.connections.check_place(&admission, &sockets, &leaving);
                Ok(reply::json(&place.map_or_else(|refusal| refusal.status().as_u16(), |()| 200))?)
            }
            "/close" => {
                for socket in self.connections.sockets_of(&request.query("user").unwrap_or_default()) {
                    socket.close(CloseCode::NORMAL)?;
                }
                Ok(reply::json("ok")?)
            }
            "/fail" => {
                let ticket = self.connections.stream_joined("lost", &Admission::anonymous());
                self.connections.stream_left(ticket);
                Err(self.state.sql().exec("INSERT INTO missing VALUES (1)", ()).unwrap_err().into())
            }
            "/counts" => {
                let all = &self.connections;
                assert_eq!(all.count(), all.sockets() + all.streams());
                let of: Vec<_> =
                    all.keys().into_iter().map(|key| format!("{key}:{}", all.of_key(&key))).collect();
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
        self.gone(&gone).await
    }

    async fn websocket_error(&self, gone: SocketOf<S>, _: Error) -> Result<()> {
        self.gone(&gone).await
    }
}

impl<S: ObjectState> Desk<S> {
    /// As often as one likes, and before and behind an await.
    async fn gone(&self, socket: &SocketOf<S>) -> Result<()> {
        self.connections.left(socket);
        self.connections.left(socket);
        self.state.sleep(Duration::from_millis(1)).await;
        self.connections.left(socket);
        Ok(())
    }
}

fn kit(caps: Caps, seed: u64) -> Kit {
    let caps = serde_json::to_string(&caps).unwrap();
    Kit::builder()
        .object::<Desk<_>>("DESK")
        .var("CAPS", caps)
        .message_bytes(1_000)
        .seed(seed)
        .start()
        .unwrap()
}

fn desk(kit: &Kit) -> HostStub {
    kit.namespace("DESK").unwrap().named("desk").unwrap()
}

async fn ask<T: DeserializeOwned>(stub: &HostStub, path: &str) -> T {
    let request = http::Request::get(format!("http://kit{path}")).body(Body::empty()).unwrap();
    stub.fetch(request).await.unwrap().into_body().json(1 << 20).await.unwrap()
}

async fn come(kit: &Kit, stub: &HostStub, user: &str) -> Client {
    kit.connect(stub, &format!("/ws?user={user}")).await.unwrap()
}

async fn refused(kit: &Kit, stub: &HostStub, path: &str, header: Option<(&'static str, &str)>) -> u16 {
    let (mut request, _opening) = kit.handshake(path).unwrap();
    if let Some((name, value)) = header {
        request.headers_mut().insert(name, value.parse().unwrap());
    }
    stub.fetch(request).await.unwrap().status().as_u16()
}

async fn said(stub: &HostStub) -> Vec<String> {
    ask(stub, "/said").await
}

type Counts = (usize, usize, Vec<String>);

fn counts(sockets: usize, streams: usize, of: &[&str]) -> Counts {
    (sockets, streams, of.iter().map(|key| (*key).to_owned()).collect())
}

#[test]
fn sockets_and_streams_are_counted_together_and_by_key() {
    let kit = kit(Caps::default(), 0);
    kit.run(async {
        let desk = desk(&kit);
        let _ann = come(&kit, &desk, "ann").await;
        let _foreign = kit.connect(&desk, "/foreign").await.unwrap();
        let _nobody = kit.connect(&desk, "/ws").await.unwrap();
        ask::<String>(&desk, "/open?id=a&user=ann").await;
        ask::<String>(&desk, "/open?id=b&user=bob").await;
        ask::<String>(&desk, "/open?id=c").await;
        let now: Counts = ask(&desk, "/counts").await;
        assert_eq!(now, counts(3, 3, &["ann:2", "bob:1"]));
        assert_eq!(said(&desk).await, ["+s:ann/0", "+s:-/0", "+a:ann/1", "+b:bob/0", "+c:-/0"]);
        ask::<String>(&desk, "/end?id=a").await;
        ask::<String>(&desk, "/end?id=a").await;
        ask::<String>(&desk, "/end?id=b").await;
        let now: Counts = ask(&desk, "/counts").await;
        assert_eq!(now, counts(3, 1, &["ann:1"]));
        assert_eq!(said(&desk).await[5..], ["-a:ann/1", "-b:bob/0"]);
    });
}

#[test]
fn what_is_cheap_is_checked_first_and_nothing_is_accepted_before() {
    let kit = kit(Caps { max: Some(3), per_key: Some(2) }, 0);
    kit.run(async {
        let desk = desk(&kit);
        let evil = Some(("origin", "https://evil.example"));
        assert_eq!(refused(&kit, &desk, "/ws?user=ann", evil).await, 403);
        assert_eq!(refused(&kit, &desk, "/vip", evil).await, 403);
        assert_eq!(refused(&kit, &desk, "/vip", None).await, 401);
        assert_eq!(refused(&kit, &desk, &format!("/ws?user={}", "x".repeat(129)), None).await, 401);
        assert_eq!(ask::<Counts>(&desk, "/counts").await, counts(0, 0, &[]));
        let _ann = come(&kit, &desk, "ann").await;
        assert_eq!(ask::<String>(&desk, "/open?id=1&user=ann").await, "ok");
        for path in ["/ws?user=ann", "/vip?user=ann"] {
            assert_eq!(refused(&kit, &desk, path, None).await, 429);
        }
        assert_eq!(ask::<u16>(&desk, "/open?id=2&user=ann").await, 429);
        let _bob = come(&kit, &desk, "bob").await;
        for path in ["/ws", "/ws?user=carl", "/vip"] {
            assert_eq!(refused(&kit, &desk, path, None).await, 503, "full is full, whoever it is");
        }
        assert_eq!(ask::<u16>(&desk, "/open?id=2").await, 503);
        assert_eq!(ask::<Counts>(&desk, "/counts").await, counts(2, 1, &["ann:2", "bob:1"]));
        assert_eq!(said(&desk).await, ["+s:ann/0", "+1:ann/1", "+s:bob/0"]);
    });
}

#[test]
fn whoever_replaces_a_connection_needs_no_place_of_their_own() {
    let kit = kit(Caps { max: Some(2), per_key: Some(1) }, 0);
    kit.run(async {
        let desk = desk(&kit);
        let _ann = come(&kit, &desk, "ann").await;
        ask::<String>(&desk, "/open?id=b&user=bob").await;
        for (path, status) in [
            ("/place?user=ann", 503),
            ("/place?user=ann&socket=ann", 200),
            ("/place?user=bob&id=b", 200),
            ("/place?user=bob&socket=ann", 429),
            ("/place?user=ann&id=b", 429),
            ("/place?user=carl&id=b", 200),
            ("/place?id=b", 200),
            ("/place?socket=nobody", 503),
        ] {
            assert_eq!(ask::<u16>(&desk, path).await, status, "{path}");
        }
    });
}

#[test]
fn caps_and_keys_outlive_hibernation_and_streams_do_not() {
    let kit = kit(Caps { max: Some(3), per_key: Some(1) }, 0);
    kit.run(async {
        let desk = desk(&kit);
        let ann = come(&kit, &desk, "ann").await;
        let _bob = come(&kit, &desk, "bob").await;
        ask::<String>(&desk, "/open?id=s&user=carl").await;
        kit.hibernate(&desk).await.unwrap();
        assert_eq!(ask::<Counts>(&desk, "/counts").await, counts(2, 0, &["ann:1", "bob:1"]));
        assert_eq!(refused(&kit, &desk, "/ws?user=ann", None).await, 429);
        let _carl = come(&kit, &desk, "carl").await;
        assert_eq!(refused(&kit, &desk, "/ws?user=dora", None).await, 503);
        kit.hibernate(&desk).await.unwrap();
        drop(ann); // the end itself wakes the object
        kit.settle().await;
        assert_eq!(
            said(&desk).await,
            ["+s:ann/0", "+s:bob/0", "+s:carl/0", "+s:carl/0", "-s:ann/0"].map(str::to_owned)
        );
    });
}

/// Both of two connections end, in each way and in every order of the kit.
#[test]
fn d15_d16_each_is_told_of_once_and_the_last_one_is_the_last() {
    for_seeds(0..6, |seed| {
        for (first, second) in (0..4).flat_map(|first| (0..4).map(move |second| (first, second))) {
            let kit = kit(Caps::default(), seed);
            kit.run(async {
                let desk = desk(&kit);
                let one = come(&kit, &desk, "ann").await;
                let two = come(&kit, &desk, "ann").await;
                kit.settle().await;
                if seed % 2 == 0 {
                    kit.hibernate(&desk).await.unwrap();
                }
                let ends = [end(&desk, one, first).await, end(&desk, two, second).await];
                if seed % 3 == 0 {
                    kit.settle().await;
                    let _ = kit.hibernate(&desk).await;
                }
                kit.advance(Duration::from_secs(30)).await;
                let all = said(&desk).await;
                assert_eq!(all, ["+s:ann/0", "+s:ann/1", "-s:ann/1", "-s:ann/0"], "{first} {second}");
                drop(ends);
            });
        }
    });
}

async fn end(desk: &HostStub, client: Client, how: u8) -> Option<Client> {
    match how {
        0 => client.close(Some((1_000, "bye"))).unwrap(),
        1 => return None,
        2 => client.send("x".repeat(1_001)).unwrap(),
        _ => {
            client.answers_closes(false);
            ask::<String>(desk, "/close?user=ann").await;
        }
    }
    Some(client)
}

#[test]
fn d25_a_reset_ends_all_and_nobody_is_told_twice() {
    for strike in 0..3 {
        let kit = kit(Caps { max: Some(2), per_key: None }, 0);
        kit.run(async {
            let desk = desk(&kit);
            let _gone = [come(&kit, &desk, "ann").await, come(&kit, &desk, "ann").await];
            kit.settle().await;
            match strike {
                0 => kit.evict(&desk),
                1 => kit.crash(),
                _ => kit.lose_power(),
            }
            kit.settle().await;
            assert_eq!(ask::<Counts>(&desk, "/counts").await, counts(0, 0, &[]));
            let back = come(&kit, &desk, "ann").await;
            drop(back);
            kit.settle().await;
            assert_eq!(said(&desk).await, ["+s:ann/0", "+s:ann/1", "+s:ann/0", "-s:ann/0"]);
        });
    }
}

#[test]
fn what_a_hook_writes_is_part_of_the_turn() {
    let kit = kit(Caps::default(), 0);
    kit.run(async {
        let desk = desk(&kit);
        let request = http::Request::get("http://kit/fail").body(Body::empty()).unwrap();
        assert!(desk.fetch(request).await.is_err());
        assert_eq!(said(&desk).await, ["+lost:-/0", "-lost:-/0"], "an error is no rollback (rule B11)");
        kit.fail_next(&desk, do_core::kit::Failing::Commit);
        let (request, _opening) = kit.handshake("/ws?user=ann").unwrap();
        assert!(desk.fetch(request).await.is_err());
        assert_eq!(said(&desk).await, ["+lost:-/0", "-lost:-/0"]);
        assert_eq!(ask::<Counts>(&desk, "/counts").await, counts(0, 0, &[]));
    });
}

#[test]
fn no_tag_of_the_application_says_whose_a_socket_is() {
    let kit = kit(Caps::default(), 0);
    kit.run(async {
        let desk = desk(&kit);
        let _ann = come(&kit, &desk, "ann").await;
        // The tag of ann's sockets, and what is no key.
        for user in ["%1F%1Eann", "%1F", "%00", ""] {
            assert_eq!(refused(&kit, &desk, &format!("/ws?user={user}"), None).await, 401, "{user}");
        }
        for tag in ["%1F%1Eann", "%1F%1E"] {
            let (request, _opening) = kit.handshake(&format!("/ws?tag={tag}")).unwrap();
            let error = desk.fetch(request).await.unwrap_err();
            assert!(error.to_string().starts_with("tags do not begin with U+001F"), "{error}");
        }
        assert_eq!(ask::<Counts>(&desk, "/counts").await, counts(1, 0, &["ann:1"]));
        assert_eq!(ask::<u16>(&desk, "/place?user=ann&socket=%1F").await, 200);
    });
}
