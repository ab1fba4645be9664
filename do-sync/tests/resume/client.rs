//! A client that follows the protocol, and is strict about it.

use crate::object::World;
use do_core::{Error, Message, kit::Client, testing::Received};
use do_sync::{Position, codes};
use serde_json::Value;

/// What a client was told, in its order.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Told {
    /// The hello of a connection.
    Hello(Value),
    /// A numbered message.
    Message(u64, Value),
    Binary(u64, Vec<u8>),
    Event(Value),
    Other(Message),
    Closed(u16),
}

pub(crate) struct Peer {
    pub(crate) name: String,
    pub(crate) socket: Option<Client>,
    pub(crate) epoch: String,
    pub(crate) seq: u64,
    /// Replayed messages that the hello promised and that did not come yet.
    replay: u64,
    pub(crate) told: Vec<Told>,
    /// Connections so far.
    pub(crate) connections: u32,
}

impl Peer {
    pub(crate) fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            socket: None,
            epoch: String::new(),
            seq: 0,
            replay: 0,
            told: Vec::new(),
            connections: 0,
        }
    }

    pub(crate) async fn enter(world: &World, name: &str) -> Self {
        let mut peer = Self::new(name);
        peer.connect(world).await.unwrap();
        world.kit.settle().await;
        peer.drain();
        peer
    }

    pub(crate) fn position(&self) -> String {
        format!("{}-{}", self.epoch, self.seq)
    }

    /// Comes, or comes back.
    pub(crate) async fn connect(&mut self, world: &World) -> Result<(), Error> {
        let after = if self.epoch.is_empty() { String::new() } else { format!("&after={}", self.position()) };
        // Whoever has no name follows.
        let member = if self.name.is_empty() { String::new() } else { format!("member={}", self.name) };
        self.socket = Some(world.kit.connect(&world.room, &format!("/?{member}{after}")).await?);
        self.connections += 1;
        self.replay = 0;
        Ok(())
    }

    /// Reads all that has arrived. Whether the connection is still there.
    pub(crate) fn drain(&mut self) -> bool {
        while let Some(received) = self.socket.as_ref().and_then(Client::try_receive) {
            if !self.take(received) {
                return false;
            }
        }
        self.socket.is_some()
    }

    fn take(&mut self, received: Received) -> bool {
        match received {
            Received::Message(message) => self.message(message),
            Received::Close(how) => return self.closed(how.map_or(1_005, |(code, _)| code)),
            _ => return self.closed(1_006),
        }
        true
    }

    fn closed(&mut self, code: u16) -> bool {
        self.told.push(Told::Closed(code));
        self.socket = None;
        false
    }

    fn message(&mut self, message: Message) {
        match &message {
            Message::Text(text) => match serde_json::from_str::<Value>(text) {
                Ok(value) if value["t"] == "hello" => self.hello(value),
                Ok(value) if value["t"] == "ev" => self.told.push(Told::Event(value["d"].clone())),
                Ok(value) if value["s"].is_u64() => {
                    let seq = value["s"].as_u64().unwrap();
                    self.next(seq);
                    self.told.push(Told::Message(seq, value));
                }
                _ => self.told.push(Told::Other(message)),
            },
            Message::Binary(bytes) if bytes.first() == Some(&1) => {
                let seq = u64::from_be_bytes(bytes[1..9].try_into().unwrap());
                self.next(seq);
                self.told.push(Told::Binary(seq, bytes[18 + usize::from(bytes[17])..].to_vec()));
            }
            Message::Binary(_) => self.told.push(Told::Other(message)),
        }
    }

    fn next(&mut self, seq: u64) {
        if seq != self.seq + 1 {
            // What a client does: here a test fails unless it wanted this.
            self.told.push(Told::Closed(codes::RESYNC));
        }
        self.seq = seq;
        self.replay = self.replay.saturating_sub(1);
    }

    fn hello(&mut self, hello: Value) {
        let at: Position = hello["at"].as_str().unwrap().parse().unwrap();
        let epoch = hello["at"].as_str().unwrap().split_once('-').unwrap().0.to_owned();
        if !self.epoch.is_empty() {
            let gap = &hello["gap"];
            if gap.is_null() {
                assert_eq!(self.position(), hello["at"], "without a gap it goes on where it was");
            } else {
                assert_eq!(gap["after"], self.position(), "the gap is about what was asked");
                if let Some(lost) = gap["lost"].as_u64() {
                    assert_eq!(
                        (&self.epoch, self.seq + lost),
                        (&epoch, at.seq()),
                        "as much is lost as is said"
                    );
                    assert!(lost > 0);
                }
            }
        }
        (self.epoch, self.seq) = (epoch, at.seq());
        self.replay = hello["replay"].as_u64().unwrap();
        self.told.push(Told::Hello(hello));
    }

    /// Whether all that the hello promised has come.
    pub(crate) fn is_caught_up(&self) -> bool {
        self.replay == 0
    }

    /// Comes back until it stays.
    pub(crate) async fn catch_up(&mut self, world: &World) {
        for _ in 0..1_000 {
            world.kit.settle().await;
            if self.drain() && self.is_caught_up() {
                return;
            }
            if self.socket.is_none() {
                self.connect(world).await.unwrap();
            }
        }
        panic!("{} never catches up: {:?}", self.name, self.told.last());
    }

    /// Since the last time.
    pub(crate) fn news(&mut self) -> Vec<Told> {
        std::mem::take(&mut self.told)
    }

    /// The published values since the last time.
    pub(crate) fn values(&mut self) -> Vec<Value> {
        let values = self.news().into_iter().filter_map(|told| match told {
            Told::Message(_, message) if message["t"] == "msg" => Some(message["d"].clone()),
            _ => None,
        });
        values.collect()
    }

    /// The last hello since the last time, which is taken.
    pub(crate) fn last_hello(&mut self) -> Value {
        let hello = self.news().into_iter().rev().find_map(|told| match told {
            Told::Hello(hello) => Some(hello),
            _ => None,
        });
        hello.expect("a hello")
    }
}
