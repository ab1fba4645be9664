//! Many threads at once: each connection has each thread's events in that thread's order, and what is numbered in the order
//! of its numbers, once.

use do_sse::{Decoded, Decoder, EventStream, History, Hub, Settings};
use http_body_util::BodyExt;
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::time::timeout;

const PUBLISHERS: usize = 4;
const EACH: usize = 500;
const READERS: usize = 8;

fn open(hub: &Hub, after: Option<&str>) -> EventStream {
    let mut request = http::Request::get("/");
    if let Some(after) = after {
        request = request.header("last-event-id", after);
    }
    hub.open(&request.body(()).unwrap()).start().unwrap().into_body()
}

/// The events up to the end of the stream, or until it is enough.
async fn read(mut body: EventStream, mut is_enough: impl FnMut(&Decoded) -> bool) -> Vec<Decoded> {
    let (mut decoder, mut events) = (Decoder::new(), Vec::new());
    while let Some(frame) = body.frame().await {
        decoder.push(&frame.unwrap().into_data().unwrap()).unwrap();
        while let Some(event) = decoder.next_event().unwrap() {
            let enough = is_enough(&event);
            events.push(event);
            if enough {
                return events;
            }
        }
    }
    events
}

fn seq(event: &Decoded) -> u64 {
    event.id.rsplit_once('-').unwrap().1.parse().unwrap()
}

fn roomy() -> Settings {
    let all = PUBLISHERS * EACH;
    Settings::new()
        .max_bytes(16 * 1_024 * 1_024)
        .max_events(2 * all)
        .history(History::new().max_events(2 * all as u64).max_bytes(16 * 1_024 * 1_024))
}

fn publish_all(hub: &Hub) -> Vec<std::thread::JoinHandle<()>> {
    let threads = (0..PUBLISHERS).map(|publisher| {
        let hub = hub.clone();
        std::thread::spawn(move || {
            for n in 0..EACH {
                hub.publish(format!("{publisher} {n}")).unwrap();
                hub.broadcast(do_sse::Event::named("plain").unwrap().data(format!("{publisher} {n}"))).send();
            }
        })
    });
    threads.collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn s2_each_connection_keeps_the_order_of_each_thread() {
    let hub = Hub::new(roomy());
    let readers: Vec<_> = (0..READERS)
        .map(|_| {
            let body = open(&hub, None);
            tokio::spawn(read(body, |_| false))
        })
        .collect();
    let ticking = Arc::new(AtomicBool::new(true));
    let (beating, still) = (hub.clone(), Arc::clone(&ticking));
    let ticker = std::thread::spawn(move || {
        while still.load(Ordering::Relaxed) {
            beating.tick();
            drop(open(&beating, None)); // others come and go
        }
    });
    for publisher in publish_all(&hub) {
        tokio::task::spawn_blocking(move || publisher.join()).await.unwrap().unwrap();
    }
    ticking.store(false, Ordering::Relaxed);
    tokio::task::spawn_blocking(move || ticker.join()).await.unwrap().unwrap();
    hub.close_all();
    for reader in readers {
        let events = timeout(Duration::from_secs(60), reader).await.unwrap().unwrap();
        for name in ["message", "plain"] {
            let mut next = [0; PUBLISHERS];
            for event in events.iter().filter(|event| event.event == name) {
                let (publisher, n) = event.data.split_once(' ').unwrap();
                let next = &mut next[publisher.parse::<usize>().unwrap()];
                assert_eq!(n.parse::<usize>().unwrap(), *next, "{name} of {publisher}");
                *next += 1;
            }
            assert_eq!(next, [EACH; PUBLISHERS]);
        }
        let numbers: Vec<u64> = events.iter().filter(|event| event.event == "message").map(seq).collect();
        assert_eq!(numbers, (1..=(PUBLISHERS * EACH) as u64).collect::<Vec<_>>());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn who_comes_and_comes_back_while_others_publish_has_everything_once() {
    let hub = Hub::new(roomy());
    let last = (PUBLISHERS * EACH) as u64;
    let publishers = publish_all(&hub);
    let readers: Vec<_> = (0..READERS)
        .map(|reader| {
            let hub = hub.clone();
            tokio::spawn(async move {
                let (mut numbers, mut after) = (Vec::new(), None::<String>);
                while numbers.last() != Some(&last) {
                    let mut left = 7 + reader * 13;
                    let body = open(&hub, after.as_deref());
                    let events = read(body, |event| {
                        left -= usize::from(event.event == "message" && left > 0);
                        left == 0 || seq(event) == last
                    });
                    let events = events.await;
                    after = events.last().map(|event| event.id.clone());
                    numbers.extend(events.iter().filter(|event| event.event == "message").map(seq));
                }
                numbers
            })
        })
        .collect();
    for publisher in publishers {
        tokio::task::spawn_blocking(move || publisher.join()).await.unwrap().unwrap();
    }
    for reader in readers {
        let numbers = timeout(Duration::from_secs(60), reader).await.unwrap().unwrap();
        let first = *numbers.first().unwrap();
        assert_eq!(numbers, (first..=last).collect::<Vec<_>>(), "without a hole and without doubles");
    }
    assert_eq!(hub.stats().gaps, 0);
}

const STORM: usize = 1_000;
const ROUNDS: usize = 4;
const OF_A_ROUND: usize = 50;

/// All are cut off together, several times, while others publish, and come back at once with what they had last.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_thousand_who_come_back_together_have_everything_once() {
    let hub = Hub::new(roomy().retry(Duration::ZERO));
    let last = (ROUNDS * OF_A_ROUND) as u64;
    let clients: Vec<_> = (0..STORM)
        .map(|_| {
            let (hub, mut body) = (hub.clone(), open(&hub, None));
            tokio::spawn(async move {
                let (mut numbers, mut after) = (Vec::new(), None::<String>);
                loop {
                    let events = read(body, |event| seq(event) == last).await;
                    after = events.last().map(|event| event.id.clone()).or(after);
                    numbers.extend(events.iter().filter(|event| event.event == "message").map(seq));
                    if numbers.last() == Some(&last) {
                        return numbers;
                    }
                    body = open(&hub, after.as_deref());
                }
            })
        })
        .collect();
    for round in 0..ROUNDS {
        let publishing = hub.clone();
        let publisher = tokio::task::spawn_blocking(move || {
            for n in 0..OF_A_ROUND {
                publishing.publish(format!("{round} {n}")).unwrap();
                if n == OF_A_ROUND / 2 {
                    publishing.close_all();
                }
            }
        });
        publisher.await.unwrap();
    }
    let wanted: Vec<u64> = (1..=last).collect();
    for client in clients {
        let numbers = timeout(Duration::from_secs(60), client).await.unwrap().unwrap();
        assert_eq!(numbers, wanted);
    }
    assert_eq!((hub.stats().gaps, hub.stats().full), (0, 0));
    assert!(hub.stats().resumed >= STORM as u64, "{:?}", hub.stats());
}
