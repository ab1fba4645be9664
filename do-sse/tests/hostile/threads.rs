//! Everything at once, from many threads.

use crate::object::sums;
use do_sse::{Decoder, EventStream, History, Hub, OnDuplicate, OnFull, Settings};
use futures::FutureExt;
use http_body_util::BodyExt;
use std::{
    collections::BTreeMap,
    sync::{
        Barrier, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

/// An open stream, and what it was told last: by thread for plain events, and the number.
struct Client {
    body: EventStream,
    decoder: Decoder,
    plain: BTreeMap<usize, u64>,
    seq: u64,
}

impl Client {
    fn open(hub: &Hub, id: Option<&str>, after: Option<String>) -> Self {
        let mut request = http::Request::get("/");
        if let Some(after) = after {
            request = request.header("last-event-id", after);
        }
        let request = request.body(()).unwrap();
        let mut opening = hub.open(&request);
        if let Some(id) = id {
            opening = opening.id(id);
        }
        let body = opening.start().unwrap().into_body();
        Self { body, decoder: Decoder::new(), plain: BTreeMap::new(), seq: 0 }
    }

    /// Whether it is at its end.
    fn read(&mut self) -> bool {
        loop {
            match self.body.frame().now_or_never() {
                None => return false,
                Some(None) => return true,
                Some(Some(frame)) => self.decoder.push(&frame.unwrap().into_data().unwrap()).unwrap(),
            }
            while let Some(event) = self.decoder.next_event().unwrap() {
                let seq = || event.id.rsplit_once('-').unwrap().1.parse::<u64>().unwrap();
                match event.event.as_str() {
                    "ready" if event.id.is_empty() => {}
                    "ready" | "reset" => self.seq = seq(),
                    "replaced" => {}
                    "message" if event.data.starts_with('p') => {
                        assert_eq!(seq(), self.seq + 1, "once, and in order");
                        self.seq = seq();
                    }
                    "message" => {
                        let (thread, n) = event.data.split_once(' ').unwrap();
                        let before = self.plain.insert(thread.parse().unwrap(), n.parse().unwrap());
                        assert!(before.is_none_or(|before| before < n.parse().unwrap()));
                    }
                    other => panic!("{other}"),
                }
            }
        }
    }
}

const THREADS: usize = 8;
const STEPS: u64 = 3_000;

fn storm(settings: Settings, most: usize) {
    let hub = Hub::new(settings);
    let clients: Mutex<Vec<Client>> = Mutex::default();
    let barrier = Barrier::new(THREADS);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (hub, clients, barrier) = (&hub, &clients, &barrier);
            scope.spawn(move || {
                let mut rng = fastrand::Rng::with_seed(thread as u64);
                barrier.wait();
                for n in 0..STEPS {
                    let take = |rng: &mut fastrand::Rng| {
                        let mut clients = clients.lock().unwrap();
                        let len = clients.len();
                        (len > 0).then(|| clients.swap_remove(rng.usize(..len)))
                    };
                    match rng.u32(..20) {
                        0..=4 => drop(hub.publish(format!("p {thread} {n}")).unwrap()),
                        5..=8 => drop(hub.broadcast(format!("{thread} {n}")).key("k").send()),
                        9..=11 => {
                            let id = ["a", "b", "c"][rng.usize(..3)];
                            let after = hub.position().filter(|_| rng.bool()).map(|at| at.to_string());
                            let client = Client::open(hub, Some(id).filter(|_| rng.bool()), after);
                            clients.lock().unwrap().push(client);
                            assert!(hub.count() <= most);
                        }
                        12..=14 => drop(take(&mut rng)),
                        15 => drop(hub.close("a")),
                        16 => drop(hub.tick()),
                        17 => drop(hub.broadcast(format!("{thread} {n}")).filter(|_| n % 2 == 0).send()),
                        _ => {
                            if let Some(mut client) = take(&mut rng)
                                && !client.read()
                            {
                                clients.lock().unwrap().push(client);
                            }
                        }
                    }
                }
            });
        }
    });
    let stats = hub.stats();
    assert_eq!(sums(&stats).0, sums(&stats).1, "{stats:?}");
    let mut clients = clients.into_inner().unwrap();
    let open = clients.iter_mut().map(Client::read).filter(|is_over| !is_over).count();
    assert_eq!((hub.count(), hub.stats().waiting_bytes), (open, 0));
    clients.clear();
    let stats = hub.stats();
    assert_eq!((hub.count(), stats.connections, stats.waiting_bytes), (0, 0, 0));
    assert_eq!(sums(&stats).0, sums(&stats).1, "{stats:?}");
    assert_eq!(hub.infos(), []);
}

#[test]
fn counts_and_orders_hold_in_any_storm() {
    for on_full in [OnFull::Close, OnFull::DropNewest, OnFull::DropOldest, OnFull::LatestPerKey] {
        for on_duplicate in [OnDuplicate::Replace, OnDuplicate::Reject, OnDuplicate::Allow] {
            let settings = Settings::new()
                .on_full(on_full)
                .on_duplicate(on_duplicate)
                .max_events(7)
                .max_connections(50)
                .heartbeat(Duration::ZERO)
                .history(History::new().max_events(5).replay(3));
            storm(settings, 50);
        }
    }
}

#[test]
fn who_is_told_of_a_gap_has_the_snapshot_however_much_is_published_meanwhile() {
    let hub = Hub::new(Settings::new().history(History::new().max_events(1)));
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                hub.publish("p").unwrap();
            }
        });
        let _over = Over(&is_over);
        let mut given_up = 0;
        for _ in 0..20_000 {
            let after = hub.position().unwrap().to_string();
            let request = http::Request::get("/").header("last-event-id", after).body(()).unwrap();
            let mut body = hub.open(&request).snapshot(|| Ok(1)).start().unwrap().into_body();
            let Some(first) = body.frame().now_or_never().unwrap() else {
                // This thread stood still for longer than the queue has room for.
                given_up += 1;
                continue;
            };
            let first = String::from_utf8(first.unwrap().into_data().unwrap().to_vec()).unwrap();
            let has_snapshot = first.contains("\"snapshot\":1");
            assert!(has_snapshot || !first.contains("event: reset"), "{first}");
        }
        assert!(given_up < 10_000, "{given_up}");
        assert!(hub.stats().full >= given_up, "{given_up} {:?}", hub.stats());
    });
}

/// Ends the other thread of a test, also when the test fails: nobody would see that it did.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn of_those_who_race_for_one_id_one_stays() {
    for on_duplicate in [OnDuplicate::Replace, OnDuplicate::Reject] {
        let hub = Hub::new(Settings::new().on_duplicate(on_duplicate));
        for _ in 0..200 {
            let barrier = Barrier::new(4);
            let over: Vec<(Client, bool)> = std::thread::scope(|scope| {
                let threads: Vec<_> = (0..4)
                    .map(|_| {
                        scope.spawn(|| {
                            barrier.wait();
                            Client::open(&hub, Some("one"), None)
                        })
                    })
                    .collect();
                let clients: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
                clients
                    .into_iter()
                    .map(|mut client| {
                        let over = client.read();
                        (client, over)
                    })
                    .collect()
            });
            assert_eq!((hub.count(), over.iter().filter(|(_, over)| !over).count()), (1, 1));
            assert_eq!(hub.send_to("one", "0 1").queued, 1);
        }
    }
}

#[test]
fn many_who_leave_while_something_is_sent_are_counted_once() {
    let hub = Hub::new(Settings::new());
    for _ in 0..30 {
        let clients: Vec<_> = (0..200).map(|_| Client::open(&hub, None, None)).collect();
        std::thread::scope(|scope| {
            scope.spawn(|| (0..50).for_each(|n| _ = hub.broadcast(format!("0 {n}")).send()));
            scope.spawn(move || drop(clients));
        });
        assert_eq!(hub.count(), 0);
    }
    let stats = hub.stats();
    assert_eq!((stats.opened, stats.gone), (6_000, 6_000));
}
