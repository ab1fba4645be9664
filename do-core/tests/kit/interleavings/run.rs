//! Plays a case in the kit, lets it come to rest, and records what everybody got.

use super::{
    flaw,
    object::{Asked, Scripted, ask},
    ops::{Case, Fault, OBJECTS, Op, Script, Step},
    witness::{self, Answer, Seen},
};
use do_core::{
    Body, Error, Message, Namespace, Request, Stub,
    kit::{Builder, Client, Kit, Received, Strike},
    tokio::HostStub,
};
use std::{cell::RefCell, collections::BTreeMap, future::poll_fn, rc::Rc, task::Poll, time::Duration};

/// A client, from its handshake on.
#[derive(Debug, Default)]
pub(crate) struct Peer {
    pub(crate) object: u8,
    client: Option<Client>,
    pub(crate) connection: Option<u32>,
    /// It sent a Close, or went away.
    pub(crate) left: bool,
    pub(crate) vanished: bool,
    /// A Close, or the end of its connection.
    pub(crate) saw_end: bool,
    pub(crate) sent: u32,
    pub(crate) received: Vec<u32>,
}

/// Why an object was in memory, at one time.
pub(crate) type Awake = Option<Vec<&'static str>>;

/// What an object holds at the end.
#[derive(Debug, Default)]
pub(crate) struct Held {
    pub(crate) rows: Vec<u32>,
    pub(crate) alarm: Option<i64>,
    pub(crate) clients: Vec<u32>,
    /// After a crash.
    pub(crate) rows_again: Vec<u32>,
    /// An hour after the last event; then at once, 9.9 s and 10.1 s after one.
    pub(crate) awake: Vec<Awake>,
}

#[derive(Debug, Default)]
pub(crate) struct Record {
    pub(crate) seen: Vec<Seen>,
    /// The test's own calls: to whom, and what came back.
    pub(crate) calls: BTreeMap<u32, (u8, Vec<Answer>)>,
    pub(crate) peers: Vec<Peer>,
    pub(crate) held: Vec<Held>,
    pub(crate) history: String,
    /// The same, without the crash at the end.
    pub(crate) before_crash: String,
}

struct Player<'a> {
    kit: &'a Kit,
    builder: fn() -> Builder,
    record: Rc<RefCell<Record>>,
    /// The last step before which something strikes.
    planned: u64,
    /// Failures that were asked for.
    failing: [u32; OBJECTS as usize],
}

fn builder<const FLAW: u8>() -> Builder {
    Kit::builder().object::<Scripted<_, FLAW>>("SCRIPTED")
}

/// Plays a case with objects of that flaw.
pub(crate) fn play<const FLAW: u8>(case: &Case) -> Record {
    witness::begin();
    flaw::forget();
    let kit = builder::<FLAW>().seed(case.seed).start().unwrap();
    let record = Rc::new(RefCell::new(Record::default()));
    let builder = builder::<FLAW>;
    let mut player = Player { kit: &kit, builder, record: Rc::clone(&record), planned: 0, failing: [0; 3] };
    kit.run(async {
        for op in &case.ops {
            player.op(op).await;
            player.bring_leaks();
        }
        player.rest().await;
    });
    drop(player);
    let history = kit.history();
    drop(kit);
    let mut record = record.take();
    record.history = history;
    record.seen = witness::end();
    record
}

const HOUR: Duration = Duration::from_secs(3_600);

impl Player<'_> {
    fn stub(&self, object: u8) -> HostStub {
        self.kit.namespace("SCRIPTED").unwrap().named(object.to_string()).unwrap()
    }

    async fn op(&mut self, op: &Op) {
        let kit = self.kit;
        match op {
            Op::Call(to, script) => self.call(*to, script),
            Op::Connect(to, script) => self.connect(*to, script),
            Op::Message(client, script) => self.message(*client, script),
            Op::Drain(client) => self.with(*client, |peer, client| {
                drain(peer, &client);
                Some(client)
            }),
            Op::CloseClient(client, code) => self.with(*client, |peer, client| {
                peer.left |= client.close(code.map(|code| (code, "bye"))).is_ok();
                Some(client)
            }),
            Op::Lose(client) => self.with(*client, |peer, client| {
                drain(peer, &client);
                peer.left |= !peer.saw_end;
                None // dropped
            }),
            Op::Vanish(client) => self.with(*client, |peer, client| {
                client.vanish();
                peer.vanished = true;
                Some(client)
            }),
            Op::Stall(client, stalled) => self.with(*client, |_, client| {
                client.stall(*stalled);
                Some(client)
            }),
            Op::Mute(client) => self.with(*client, |_, client| {
                client.answers_closes(false);
                Some(client)
            }),
            Op::Advance(ms) => kit.advance(Duration::from_millis(u64::from(*ms))).await,
            Op::Yield(steps) => {
                for _ in 0..*steps {
                    give_way().await;
                }
            }
            Op::Strike(Fault::Hibernate(object)) => drop(kit.hibernate(&self.stub(*object)).await),
            Op::Strike(Fault::Evict(object)) => kit.evict(&self.stub(*object)),
            Op::Strike(Fault::Crash) => kit.crash(),
            Op::Strike(Fault::LosePower) => kit.lose_power(),
            Op::Strike(Fault::Deploy) => kit.deploy((self.builder)()).unwrap(),
            Op::StrikeIn(steps, fault) => self.strike_in(*steps, *fault),
            Op::Fail(object, what) => {
                self.failing[usize::from(*object)] += 1;
                kit.fail_next(&self.stub(*object), *what);
            }
            Op::LateAlarms(ms) => kit.late_alarms(Duration::from_millis(u64::from(*ms))),
            Op::RepeatAlarms(times) => kit.repeat_alarms(u32::from(*times)),
            Op::StepWall(ms) => kit.step_wall(kit.now() - Duration::from_millis(u64::from(*ms))),
        }
    }

    fn strike_in(&mut self, steps: u8, fault: Fault) {
        let step = self.kit.steps() + u64::from(steps);
        self.planned = self.planned.max(step);
        let strike = match fault {
            Fault::Hibernate(object) => Strike::Hibernate(self.stub(object)),
            Fault::Evict(object) => Strike::Evict(self.stub(object)),
            Fault::Crash | Fault::Deploy => Strike::Crash,
            Fault::LosePower => Strike::LosePower,
        };
        self.kit.at_step(step, &strike);
    }

    /// One of the clients that are there.
    fn with(&self, which: u8, change: impl FnOnce(&mut Peer, Client) -> Option<Client>) {
        let mut record = self.record.borrow_mut();
        let mut there: Vec<_> = record.peers.iter_mut().filter(|peer| peer.client.is_some()).collect();
        if there.is_empty() {
            return;
        }
        let which = usize::from(which) % there.len();
        let peer = &mut *there[which];
        let Some(client) = peer.client.take() else { return };
        peer.client = change(peer, client);
    }

    fn call(&self, to: u8, script: &Script) {
        let asked: Asked = (witness::number(), witness::keep(script), None);
        let answer = self.stub(to).fetch(ask(Request::new(Body::empty()), "/", &asked));
        self.begin(to, asked.0, async move { Answer::read(answer.await).await });
    }

    fn begin(&self, to: u8, call: u32, answer: impl Future<Output = Answer> + 'static) {
        self.record.borrow_mut().calls.insert(call, (to, Vec::new()));
        let record = Rc::clone(&self.record);
        drop(self.kit.spawn(async move {
            let answer = answer.await;
            record.borrow_mut().calls.get_mut(&call).unwrap().1.push(answer);
        }));
    }

    fn connect(&self, to: u8, script: &Script) {
        let number = self.record.borrow().peers.len();
        self.record.borrow_mut().peers.push(Peer { object: to, ..Peer::default() });
        let client = u32::try_from(number).unwrap();
        let asked: Asked = (witness::number(), witness::keep(script), Some(client));
        let (request, opening) = self.kit.handshake("/").unwrap();
        let response = self.stub(to).fetch(ask(request, "/", &asked));
        let record = Rc::clone(&self.record);
        self.begin(to, asked.0, async move {
            let response = match response.await {
                Ok(response) => response,
                Err(error) => return Answer::of(&error),
            };
            let client = opening.open(response).unwrap_or_else(|refused| panic!("a 101 was {refused:?}"));
            let mut record = record.borrow_mut();
            let peer = &mut record.peers[number];
            peer.connection = Some(connection(&client));
            peer.client = Some(client);
            Answer::Well(Vec::new())
        });
    }

    fn message(&self, client: u8, script: &Script) {
        let script = witness::keep(script);
        let mut record = self.record.borrow_mut();
        let there: Vec<usize> =
            (0..record.peers.len()).filter(|n| record.peers[*n].client.is_some()).collect();
        let Some(number) = there.get(usize::from(client) % there.len().max(1)) else { return };
        let peer = &mut record.peers[*number];
        let message = Message::json(&(number, peer.sent, script)).unwrap();
        if peer.client.as_ref().is_some_and(|client| client.send(message).is_ok()) {
            peer.sent += 1;
        }
    }

    /// What flawed objects send beside the gate, through another object.
    fn bring_leaks(&self) {
        for (object, text) in flaw::leaks() {
            let other = self.stub((object + 1) % OBJECTS);
            let relayed = other.fetch(ask(Request::new(Body::empty()), "/relay", &text));
            drop(self.kit.spawn(async move { drop(relayed.await) }));
        }
    }

    /// Until nothing is planned, under way, or due, and clients have read everything.
    async fn rest(&mut self) {
        let kit = self.kit;
        kit.repeat_alarms(0);
        self.read_everything().await;
        kit.advance(HOUR).await;
        while kit.steps() <= self.planned {
            let _ = self.look(0).await; // may be struck
        }
        for object in 0..OBJECTS {
            let use_up = vec![Step::Write(1), Step::SetAlarm(1, 0, Vec::new()), Step::Write(1)];
            for _ in 0..self.failing[usize::from(object)] {
                self.call(object, &use_up);
                kit.advance(Duration::from_millis(10)).await;
            }
        }
        self.bring_leaks();
        self.read_everything().await;
        kit.advance(HOUR).await;
        self.read_everything().await;
        kit.settle().await;
        for object in 0..OBJECTS {
            let held = self.held(object).await;
            self.record.borrow_mut().held.push(held);
        }
        self.record.borrow_mut().before_crash = kit.history();
        kit.crash();
        for object in 0..OBJECTS {
            let (rows, ..) = self.look_until(object).await;
            self.record.borrow_mut().held[usize::from(object)].rows_again = rows;
        }
    }

    async fn held(&self, object: u8) -> Held {
        let mut awake = vec![self.why_awake(object).await];
        let (rows, alarm, clients) = self.look_until(object).await;
        awake.push(self.why_awake(object).await);
        for ms in [9_900, 200] {
            self.kit.advance(Duration::from_millis(ms)).await;
            awake.push(self.why_awake(object).await);
        }
        Held { rows, alarm, clients, rows_again: Vec::new(), awake }
    }

    async fn why_awake(&self, object: u8) -> Awake {
        let id = self.stub(object).id().clone();
        self.kit.namespace("SCRIPTED").unwrap().why_awake(&id).await.unwrap()
    }

    async fn look(&self, object: u8) -> Result<(Vec<u32>, Option<i64>, Vec<u32>), Error> {
        let request = ask(Request::new(Body::empty()), "/log", &());
        self.stub(object).fetch(request).await?.into_body().json(1 << 20).await
    }

    /// What was made to fail and did not yet fails here.
    async fn look_until(&self, object: u8) -> (Vec<u32>, Option<i64>, Vec<u32>) {
        for _ in 0..100 {
            if let Ok(found) = self.look(object).await {
                return found;
            }
        }
        panic!("the table of object {object} cannot be read")
    }

    async fn read_everything(&self) {
        for _ in 0..4 {
            self.kit.settle().await;
            for peer in &mut self.record.borrow_mut().peers {
                if let Some(client) = peer.client.take() {
                    client.stall(false);
                    drain(peer, &client);
                    peer.client = Some(client);
                }
            }
        }
    }
}

fn drain(peer: &mut Peer, client: &Client) {
    while let Some(received) = client.try_receive() {
        match received {
            Received::Message(message) => peer.received.push(message.parse_json().unwrap()),
            Received::Close(_) => peer.saw_end = true,
            Received::Lost => {
                peer.saw_end = true;
                break;
            }
            Received::Pong(_) => {}
        }
    }
}

fn connection(client: &Client) -> u32 {
    let digits: String = format!("{client:?}").chars().filter(char::is_ascii_digit).collect();
    digits.parse().unwrap()
}

async fn give_way() {
    let mut gave = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut gave, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
