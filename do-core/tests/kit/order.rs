//! The seed decides the order, and nothing else does.

use crate::common::{ask, builder, kit, lines, probe};
use do_core::{
    Error, Tag,
    kit::{Failing, Kit, Strike, for_seeds},
    prelude::*,
};
use serde_json::{Value, json};
use std::{collections::BTreeSet, panic::catch_unwind, time::Duration};

/// Requests, sockets, alarms, random numbers and faults, all at once.
fn busy_run(seed: u64) -> String {
    let kit = builder().seed(seed).start().unwrap();
    let (a, b) = (probe(&kit, "a"), probe(&kit, "b"));
    kit.at_random(&Strike::Evict(a.clone()), 0.01);
    kit.at_random(&Strike::Hibernate(b.clone()), 0.05);
    kit.at_random(&Strike::Crash, 0.002);
    kit.fail_next(&b, Failing::Commit);
    kit.run(async {
        let mut calls = Vec::new();
        for n in 0..20_u64 {
            let stub = if n % 3 == 0 { a.clone() } else { b.clone() };
            let steps = json!([
                {"note": n.to_string()}, {"sleep": n % 4}, {"sql": "SELECT random()"},
                {"set_alarm": 10 + n}, {"try": [{"call": ["c", [{"sleep": 1}, {"note": "called"}]]}]}
            ]);
            calls.push(kit.spawn(async move { ask(&stub, steps).await.map(|values| values[2].clone()) }));
        }
        if let Ok(client) = kit.connect(&b, "/?tag=x").await {
            for n in 0..5 {
                let _ = client.send(format!("message {n}")); // the connection may be lost already
            }
            kit.advance(Duration::from_millis(5)).await;
        }
        kit.advance(Duration::from_secs(60)).await;
        let mut out = kit.history();
        for call in calls {
            let answer: Result<Value, Error> = call.await;
            out.push_str(&format!("{answer:?}\n"));
        }
        out
    })
}

#[test]
fn the_same_seed_gives_the_same_history_byte_for_byte() {
    for seed in 0..5 {
        let (one, two) = (busy_run(seed), busy_run(seed));
        assert!(one.lines().count() > 100, "{one}");
        assert_eq!(one, two, "seed {seed}");
    }
}

#[test]
fn another_seed_gives_another_history() {
    let all: BTreeSet<String> = (0..5).map(busy_run).collect();
    assert_eq!(all.len(), 5);
}

/// Two handlers that read, wait for the same moment and write.
fn last_writer(seed: u64) -> String {
    let kit = builder().seed(seed).start().unwrap();
    let a = probe(&kit, "a");
    kit.run(async {
        let steps = |name: &str| json!([{"call": ["other", ["instance"]]}, {"note": name}]);
        let calls = ["one", "two"].map(|name| {
            let (a, steps) = (a.clone(), steps(name));
            kit.spawn(async move { ask(&a, steps).await })
        });
        for call in calls {
            call.await.unwrap();
        }
        lines(&a).await.join(",")
    })
}

#[test]
fn what_waits_at_once_goes_on_in_either_order() {
    let seen: BTreeSet<String> = (0..20).map(last_writer).collect();
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), ["one,two", "two,one"]);
}

#[test]
fn a13_calls_of_one_caller_arrive_in_their_order_whatever_the_seed() {
    for_seeds(0..20, |seed| {
        let kit = builder().seed(seed).start().unwrap();
        let a = probe(&kit, "a");
        kit.run(async {
            let calls: Vec<_> = (0..5)
                .map(|n| {
                    let request = Request::new(json!([{"note": n.to_string()}]).to_string().into());
                    a.fetch(request)
                })
                .collect();
            for call in calls {
                call.await.unwrap();
            }
            assert_eq!(lines(&a).await, ["0", "1", "2", "3", "4"]);
        });
    });
}

/// Tells the tags of its sockets in the order of the list.
struct Lister<S: ObjectState>(S);

impl<S: ObjectState> DurableObject<S> for Lister<S> {
    fn new(state: S) -> Result<Self> {
        Ok(Self(state))
    }

    async fn fetch(&self, request: Request) -> Result<Response> {
        let tag = request.uri().path().to_owned();
        Ok(self.0.sockets().accept(&request, Accept::new().tag(Tag::new(tag)?)?)?.0)
    }

    async fn websocket_message(&self, from: SocketOf<S>, _: Message) -> Result<()> {
        let tags: Vec<_> = self.0.sockets().all().iter().map(|socket| socket.tags()[0].to_string()).collect();
        Ok(from.send(tags.concat())?)
    }
}

#[test]
fn d3_sockets_come_in_any_order() {
    let orders: BTreeSet<String> = (0..40)
        .map(|seed| {
            let kit = Kit::builder().seed(seed).object::<Lister<_>>("LISTER").start().unwrap();
            let stub = kit.namespace("LISTER").unwrap().named("a").unwrap();
            kit.run(async {
                let mut clients = Vec::new();
                for path in ["/1", "/2", "/3"] {
                    clients.push(kit.connect(&stub, path).await.unwrap());
                }
                clients[0].send("which").unwrap();
                clients[0].text().await.unwrap()
            })
        })
        .collect();
    let all = ["/1/2/3", "/1/3/2", "/2/1/3", "/2/3/1", "/3/1/2", "/3/2/1"];
    assert_eq!(orders.into_iter().collect::<Vec<_>>(), all);
}

#[test]
fn seeded_chance_of_sql_and_of_ids_repeats() {
    let chance = |seed: u64| {
        let kit = builder().seed(seed).start().unwrap();
        let a = probe(&kit, "a");
        let id = kit.namespace("PROBE").unwrap().unique_id().unwrap();
        let sql = json!([{"sql": "SELECT random() UNION ALL SELECT hex(randomblob(4))"}, "instance"]);
        (id, kit.run(ask(&a, sql)).unwrap())
    };
    assert_eq!(chance(1), chance(1));
    assert_ne!(chance(1), chance(2));
}

#[test]
fn a_test_that_can_only_wait_for_the_clock_says_so() {
    let panic = catch_unwind(|| {
        let kit = kit();
        let a = probe(&kit, "a");
        kit.run(ask(&a, json!([{"sleep": 5_000}]))).unwrap()
    });
    let text = panic.unwrap_err().downcast::<String>().unwrap();
    assert_eq!(
        *text,
        "the test waits, but nothing is left to happen; the next thing is due in 5s: `advance` the clock"
    );
}

#[test]
fn an_object_that_never_rests_is_told_from_one_that_works() {
    let panic = catch_unwind(|| {
        let kit = kit();
        let a = probe(&kit, "a");
        kit.run(ask(&a, json!([{"spin_until": 1}]))).unwrap()
    });
    let text = panic.unwrap_err().downcast::<String>().unwrap();
    assert!(text.contains("wakes itself again and again"), "{text}");
    assert!(text.contains("\"a\" fetch goes on"), "{text}");
}

/// Three requests, of two turns each, one after the other. Gives the steps it took and how many requests failed.
fn acknowledged_is_kept(strike: Option<(u64, &Strike)>) -> (u64, usize) {
    let kit = kit();
    let a = probe(&kit, "a");
    if let Some((step, strike)) = strike {
        kit.at_step(step, strike);
    }
    kit.run(async {
        let (mut acknowledged, mut failed) = (Vec::new(), 0);
        for n in 0..3 {
            let (a, end) = (a.clone(), format!("end {n}"));
            let steps = json!([{"note": n.to_string()}, {"sleep": 0}, {"note": end}]);
            let call = kit.spawn(async move { ask(&a, steps).await });
            kit.advance(Duration::from_millis(1)).await;
            match call.await {
                Ok(_) => acknowledged.push(end),
                Err(_) => failed += 1,
            }
        }
        let steps = kit.steps();
        let kept = lines(&a).await;
        for line in acknowledged {
            assert!(kept.contains(&line), "{strike:?}: {line} was acknowledged and lost: {kept:?}");
        }
        (steps, failed)
    })
}

#[test]
fn every_step_of_a_run_can_be_struck() {
    let (steps, failed) = acknowledged_is_kept(None);
    assert_eq!(failed, 0);
    assert!(steps > 10, "{steps}");
    for strike in [Strike::Crash, Strike::LosePower] {
        let failed: usize = (0..steps).map(|step| acknowledged_is_kept(Some((step, &strike))).1).sum();
        assert!(failed >= 3, "{strike:?} hit {failed} requests");
    }
}
