//! What is nobody's business: a hub in an object's turn, and a question between a departure and its hook.

use do_core::{Connections, kit::Kit, prelude::*};
use do_sse::{Feed, Hub, Settings};
use futures::FutureExt as _;
use http_body_util::BodyExt as _;
use std::{cell::Cell, rc::Rc};

struct Aside<S: ObjectState>(S);

impl<S: ObjectState> DurableObject<S> for Aside<S> {
    fn new(state: S) -> Result<Self> {
        state.sql().exec("CREATE TABLE IF NOT EXISTS t (a)", ())?;
        Ok(Self(state))
    }
    async fn fetch(&self, request: Request) -> Result<Response> {
        let hub = Hub::new(Settings::new());
        let mut stream = hub.open(&request).start()?.into_body();
        assert!(stream.frame().now_or_never().is_some(), "`ready`");
        self.0.sql().exec("INSERT INTO t VALUES (1)", ())?;
        hub.broadcast("at once").send();
        let frame = stream.frame().now_or_never().flatten();
        Ok(reply::text(frame.is_some().to_string()))
    }
}

struct Counted<S: ObjectState> {
    feed: Feed<S>,
    left: Rc<Cell<u32>>,
}

impl<S: ObjectState> DurableObject<S> for Counted<S> {
    fn new(state: S) -> Result<Self> {
        let left = Rc::new(Cell::new(0));
        let told = Rc::clone(&left);
        let connections = Connections::new(&state).on_leave(move |_| told.set(told.get() + 1));
        Ok(Self {
            feed: Feed::new(&state, Settings::new(), Alarm::raw(&state)).connections(&connections),
            left,
        })
    }
    async fn fetch(&self, request: Request) -> Result<Response> {
        match request.uri().path() {
            "/count" => Ok(reply::text(self.feed.count().to_string())),
            "/left" => Ok(reply::text(self.left.get().to_string())),
            _ => Ok(self.feed.open(&request).start().await?),
        }
    }
    async fn alarm(&self, _: AlarmInfo) -> Result<()> {
        Ok(self.feed.on_alarm().await?)
    }
}

fn get(path: &str) -> Request {
    http::Request::get(format!("http://x{path}")).body(Body::empty()).unwrap()
}

#[test]
fn a_hub_in_an_objects_turn_does_not_wait_for_its_commit() {
    let kit = Kit::builder().object::<Aside<_>>("ASIDE").start().unwrap();
    kit.run(async {
        let object = kit.namespace("ASIDE")?.named("a")?;
        assert_eq!(object.fetch(get("/")).await?.into_body().text(10).await?, "true");
        Ok::<_, Failure>(())
    })
    .unwrap();
}

#[test]
fn who_left_is_told_of_at_once_also_when_somebody_asks_before() {
    for seed in 0..20 {
        let kit = Kit::builder().seed(seed).object::<Counted<_>>("COUNTED").start().unwrap();
        kit.run(async {
            let object = kit.namespace("COUNTED")?.named("a")?;
            let _stays = object.fetch(get("/")).await?;
            let goes = object.fetch(get("/")).await?;
            drop(goes);
            object.fetch(get("/count")).await?;
            kit.settle().await;
            assert_eq!(object.fetch(get("/left")).await?.into_body().text(10).await?, "1", "seed {seed}");
            Ok::<_, Failure>(())
        })
        .unwrap();
    }
}
