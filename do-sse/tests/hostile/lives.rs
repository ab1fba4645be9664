//! Strikes at every step, feeds that share an alarm, clients that come all at once or only half.

use crate::{
    object::{Config, Op, Reader, World, sums},
    property::check,
};
use do_core::{
    Connections,
    kit::{Kit, Strike},
    prelude::*,
};
use do_sse::{Feed, History, OnDuplicate, Settings};
use futures::{FutureExt, future::join_all};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use std::{cell::Cell, collections::BTreeMap, rc::Rc};

async fn committed(world: &World) -> BTreeMap<String, String> {
    let audit = world.ask(&[Op::Audit]).await.unwrap();
    let audit: Vec<(String, String)> = serde_json::from_value(audit).unwrap();
    audit.into_iter().map(|(position, text)| (text, position)).collect()
}

/// How many steps it took.
fn struck(config: &Config, strike: Option<(u64, usize)>) -> u64 {
    let world = World::new(config);
    if let Some((step, strike)) = strike {
        let stub = || world.log.clone();
        let strikes = [Strike::Crash, Strike::LosePower, Strike::Evict(stub()), Strike::Hibernate(stub())];
        world.kit.at_step(step, &strikes[strike]);
    }
    world.kit.clone().run(async {
        let mut readers = [Reader::new("/"), Reader::new("/?id=a")];
        let mut acknowledged = Vec::new();
        for n in 0..4 {
            let text = n.to_string();
            if world.ask(&[Op::Publish(text.clone()), Op::Broadcast("b".into())]).await.is_ok() {
                acknowledged.push(text);
            }
            for reader in &mut readers {
                reader.drain();
                if !reader.is_there() {
                    let _ = reader.connect(&world).await;
                }
            }
            if n == 2 {
                readers[1].leave();
                let _ = world.ask(&[Op::Beat]).await;
            }
        }
        let steps = world.kit.steps();
        world.kit.heal();
        for reader in &mut readers {
            reader.catch_up(&world).await;
        }
        world.ask(&[Op::Publish("end".into())]).await.unwrap();
        let position = world.ask(&[Op::Position]).await.unwrap();
        let committed = committed(&world).await;
        assert!(acknowledged.iter().all(|text| committed.contains_key(text)));
        for reader in &mut readers {
            reader.catch_up(&world).await;
            assert_eq!(reader.id, position, "{strike:?}");
            check(reader, &committed);
        }
        if config.is_stored {
            assert!(!readers[0].told.iter().any(|told| told.0 == "reset"), "nothing is lost: {strike:?}");
        }
        steps
    })
}

#[test]
fn a_strike_at_any_step_loses_nothing_unsaid() {
    for is_stored in [false, true] {
        let config = Config::new(is_stored);
        let steps = struck(&config, None);
        for (strike, step) in (0..4).flat_map(|strike| (0..steps).map(move |step| (strike, step))) {
            struck(&config, Some((step, strike)));
        }
    }
}

#[test]
fn what_is_published_in_a_transaction_that_fails_is_of_a_sequence_in_memory_all_the_same() {
    let world = World::new(&Config::new(false));
    world.kit.clone().run(async {
        let mut reader = Reader::at(&world, "/").await;
        world.ask(&[Op::Undone("a".into()), Op::Publish("b".into())]).await.unwrap();
        world.kit.settle().await;
        reader.drain();
        let told: Vec<_> = reader.told.iter().map(|told| told.2.as_str()).skip(1).collect();
        assert_eq!((told, reader.is_there()), (vec!["a", "b"], true));
    });
}

/// Two feeds with one alarm and one registry; with hooks that do what they like.
struct Twins<S: ObjectState> {
    one: Rc<Feed<S>>,
    two: Rc<Feed<S>>,
    connections: Connections<S>,
    joined: Rc<Cell<i64>>,
    left: Rc<Cell<i64>>,
}

impl<S: ObjectState> DurableObject<S> for Twins<S> {
    fn new(state: S) -> Result<Self> {
        let (joined, left) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
        let feed: Rc<Cell<Option<std::rc::Weak<Feed<S>>>>> = Rc::default();
        let upgrade = |feed: &Rc<Cell<Option<std::rc::Weak<Feed<S>>>>>| {
            let weak = feed.take();
            feed.set(weak.clone());
            weak.and_then(|weak| weak.upgrade())
        };
        let (come, gone) = ((Rc::clone(&joined), Rc::clone(&feed)), (Rc::clone(&left), Rc::clone(&feed)));
        let connections = Connections::new(&state)
            .max(4)
            .on_join(move |_| {
                come.0.set(come.0.get() + 1);
                if let Some(feed) = upgrade(&come.1) {
                    let _ = feed.publish("joined");
                    feed.close("short");
                }
            })
            .on_leave(move |_| {
                gone.0.set(gone.0.get() + 1);
                if let Some(feed) = upgrade(&gone.1) {
                    let _ = feed.publish("left");
                    feed.close("short");
                }
            });
        let settings = Settings::new().history(History::new()).on_duplicate(OnDuplicate::Reject);
        let make = |settings: Settings| {
            Rc::new(Feed::new(&state, settings, Alarm::raw(&state)).connections(&connections))
        };
        let one = make(settings.clone().max_connections(2));
        let two = make(settings.max_age(Duration::from_secs(20)));
        feed.set(Some(Rc::downgrade(&one)));
        Ok(Self { one, two, connections, joined, left })
    }

    async fn fetch(&self, request: Request) -> Result<Response> {
        let feed = if request.uri().path() == "/two" { &self.two } else { &self.one };
        if request.method() == Method::POST {
            let (one, two) = (self.one.count(), self.two.count());
            for feed in [&self.one, &self.two] {
                let (opened, summed) = sums(&feed.stats());
                assert_eq!(opened, summed);
            }
            let there = i64::try_from(self.connections.count())?;
            assert_eq!(self.joined.get() - self.left.get(), there, "each joins and leaves once");
            return Ok(reply::json(&json!([one, two, there]))?);
        }
        let opening = feed.open(&request);
        Ok(match request.query("id") {
            Some(id) => opening.id(id).start().await?,
            None => opening.start().await?,
        })
    }

    async fn alarm(&self, _: AlarmInfo) -> Result<()> {
        self.one.on_alarm().await?;
        Ok(self.two.on_alarm().await?)
    }
}

fn twins() -> World {
    let kit = Kit::builder().object::<Twins<_>>("LOG").start().unwrap();
    World::of(kit)
}

/// How many each feed has, and the registry.
async fn counts(world: &World) -> Value {
    world.kit.settle().await;
    let body = world.log.fetch(http::Request::post("/").body(Body::empty()).unwrap()).await.unwrap();
    body.into_body().json(100).await.unwrap()
}

#[test]
fn two_feeds_share_an_alarm() {
    let world = twins();
    world.kit.clone().run(async {
        let (mut one, mut two) = (Reader::at(&world, "/").await, Reader::new("/two"));
        world.pass(5, &mut one).await;
        two.connect(&world).await.unwrap();
        for _ in 0..24 {
            world.pass(5, &mut one).await;
            two.drain();
        }
        assert!(one.beats >= 6 && two.beats >= 1 && !two.is_there(), "{} and {}", one.beats, two.beats);
        assert_eq!(counts(&world).await, json!([1, 0, 1]));
        drop(one);
        assert_eq!(counts(&world).await, json!([0, 0, 0]));
    });
}

#[test]
fn of_all_who_come_at_once_as_many_are_let_in_as_there_are_places() {
    for seed in 0..20 {
        let kit = Kit::builder().object::<Twins<_>>("LOG").seed(seed).start().unwrap();
        let world = World::of(kit);
        world.kit.clone().run(async {
            let mut readers: Vec<Reader> =
                ["/", "/", "/two", "/", "/two?id=a", "/two?id=a", "/", "/two", "/two"]
                    .map(Reader::new)
                    .into();
            join_all(readers.iter_mut().map(|reader| reader.connect(&world))).await;
            let counts = counts(&world).await;
            readers.iter_mut().for_each(Reader::drain);
            let is_there = |reader: &&Reader| reader.is_there();
            assert_eq!((&counts[2], readers.iter().filter(is_there).count()), (&json!(4), 4), "{counts}");
            assert!(counts[0].as_u64() <= Some(2), "{counts}");
            readers.clear();
            assert_eq!(self::counts(&world).await, json!([0, 0, 0]));
        });
    }
}

#[test]
fn who_is_ended_by_the_hooks_joins_and_leaves_once() {
    let world = twins();
    world.kit.clone().run(async {
        let mut short = Reader::new("/?id=short");
        short.connect(&world).await.unwrap();
        assert_eq!(counts(&world).await, json!([0, 0, 0]));
        short.drain();
        assert!(!short.is_there() && short.has("joined"), "{:?}", short.told);
    });
}

#[test]
fn who_gives_up_halfway_is_not_in() {
    for polls in 0..4 {
        let world = twins();
        world.kit.clone().run(async {
            {
                let mut coming = Box::pin(world.log.fetch(Request::default()).fuse());
                for _ in 0..polls {
                    let _ = (&mut coming).now_or_never();
                    world.kit.settle().await;
                }
            }
            assert_eq!(counts(&world).await, json!([0, 0, 0]));
            let response = world.log.fetch(Request::default()).await.unwrap();
            assert_eq!(counts(&world).await, json!([1, 0, 1]), "it is there though nobody reads");
            drop(response);
            assert_eq!(counts(&world).await, json!([0, 0, 0]));
        });
    }
}

#[test]
fn the_place_of_who_stands_still_is_free_again() {
    let world = twins();
    world.kit.clone().run(async {
        let dead = world.log.fetch(http::Request::get("/?id=a").body(Body::empty()).unwrap()).await.unwrap();
        let mut dead = dead.into_body();
        let mut new = Reader::at(&world, "/?id=a").await;
        assert!(!new.is_there(), "it is sent away");
        world.kit.advance(Duration::from_secs(46)).await;
        new.connect(&world).await.unwrap();
        new.drain();
        assert!(new.is_there());
        assert_eq!(counts(&world).await, json!([1, 0, 1]));
        assert!(dead.frame().now_or_never().unwrap().is_none());
    });
}
