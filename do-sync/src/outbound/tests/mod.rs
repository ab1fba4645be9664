//! Rooms with slow readers in the kit: each test acts on the room from inside of its object.

mod bounds;
mod credit;
mod life;
mod model;
mod policies;
mod select;

use super::{Kind, Outbound, Outgoing};
use crate::{BroadcastReport, Room};
use do_core::{
    Accept, DurableObject, Failure, Namespace, ObjectState, Request, Response, Socket, SocketOf,
    SocketRegistry, Stub,
    kit::{Builder, Client, Kit},
    reply,
    testing::Received,
    tokio::{HostState, HostStub},
};
use std::{
    cell::{Cell, RefCell},
    collections::VecDeque,
    rc::Rc,
};

type Act = Box<dyn FnOnce(&Room<HostState>)>;

thread_local! {
    /// What the next requests do: objects of the kit run in the test's thread.
    static ACTS: RefCell<VecDeque<Act>> = RefCell::default();
    static OUTBOUND: RefCell<Outbound> = RefCell::default();
}

struct Desk(Room<HostState>);

impl DurableObject<HostState> for Desk {
    fn new(state: HostState) -> Result<Self, Failure> {
        Ok(Self(Room::new(&state).outbound(OUTBOUND.with_borrow(Clone::clone))))
    }

    /// `/act` acts; everything else joins, with the tags between the slashes and the query as the attachment.
    async fn fetch(&self, request: Request) -> Result<Response, Failure> {
        let path = request.uri().path();
        if path == "/act" {
            if let Some(act) = ACTS.with_borrow_mut(VecDeque::pop_front) {
                act(&self.0);
            }
            return Ok(reply::text("done"));
        }
        let mut accept = Accept::new().tags(path.split('/').filter(|tag| !tag.is_empty()))?;
        match request.uri().query() {
            Some("member") => accept = accept.attach(&serde_json::json!({"do-sync": {"m": "ann"}}))?,
            Some(attached) => accept = accept.attach(attached)?,
            None => {}
        }
        Ok(self.0.join(&request, accept)?.0)
    }
}

struct Rig {
    kit: Kit,
    stub: HostStub,
}

impl Rig {
    fn new(outbound: Outbound) -> Self {
        Self::with(outbound, |builder| builder)
    }

    fn with(outbound: Outbound, change: impl FnOnce(Builder) -> Builder) -> Self {
        OUTBOUND.set(outbound);
        let kit = change(Kit::builder().object::<Desk>("DESK")).start().unwrap();
        let stub = kit.namespace("DESK").unwrap().named("a").unwrap();
        Self { kit, stub }
    }

    async fn join(&self, path: &str) -> Client {
        self.kit.connect(&self.stub, path).await.unwrap()
    }

    /// One who does not read.
    async fn stalled(&self, path: &str) -> Client {
        let client = self.join(path).await;
        client.stall(true);
        client
    }

    /// Acts on the room in one turn of its object.
    async fn act<T: 'static>(&self, act: impl FnOnce(&Room<HostState>) -> T + 'static) -> T {
        let result = Rc::new(Cell::new(None));
        let slot = Rc::clone(&result);
        ACTS.with_borrow_mut(|acts| acts.push_back(Box::new(move |room| slot.set(Some(act(room))))));
        let request = http::Request::get("http://desk/act").body(do_core::Body::empty()).unwrap();
        assert_eq!(self.stub.fetch(request).await.unwrap().status(), 200);
        result.take().unwrap()
    }

    /// Broadcasts each of the numbers in a turn of its own.
    async fn count(&self, numbers: std::ops::Range<u32>) -> Vec<BroadcastReport> {
        let mut reports = Vec::new();
        for number in numbers {
            reports.push(self.act(move |room| room.send_all(number.to_string())).await);
            self.kit.settle().await;
        }
        reports
    }

    async fn stats(&self) -> super::OutboundStats {
        self.act(Room::outbound_stats).await
    }

    /// Lets a client read for so long, and gives what it has got.
    async fn read(&self, client: &Client) -> Vec<String> {
        client.stall(false);
        self.kit.advance(std::time::Duration::from_secs(2)).await;
        got(client)
    }
}

/// What a client has got: texts, and `1013` for such a Close.
fn got(client: &Client) -> Vec<String> {
    let mut all = Vec::new();
    while let Some(received) = client.try_receive() {
        match received {
            Received::Message(message) => all.push(message.as_text().unwrap_or("binary").to_owned()),
            Received::Close(Some((code, _))) => all.push(code.to_string()),
            Received::Lost => break,
            other => panic!("{other:?}"),
        }
    }
    all
}

fn texts(numbers: impl IntoIterator<Item = u32>) -> Vec<String> {
    numbers.into_iter().map(|number| number.to_string()).collect()
}

fn named(room: &Room<HostState>, tag: &str) -> SocketOf<HostState> {
    let tag = do_core::Tag::new(tag).unwrap();
    room.state().sockets().tagged(&tag).pop().unwrap()
}

fn deliver(room: &Room<HostState>, tag: &str, text: &str, kind: Kind) -> super::Delivered {
    let socket = named(room, tag);
    room.deliver(&socket, Outgoing { message: &text.into(), key: None, kind })
}

fn report(matched: usize) -> BroadcastReport {
    BroadcastReport { matched, ..BroadcastReport::default() }
}
