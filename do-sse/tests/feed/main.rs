//! A feed in the test kit.
#![cfg(not(target_arch = "wasm32"))]
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod alarm;
mod apart;
mod connections;
mod origins;

use do_core::{kit::Kit, prelude::*};
use do_sse::{Event, Feed, History, Settings};
use http_body_util::BodyExt;

struct Log<S: ObjectState> {
    feed: Feed<S>,
}

impl<S: ObjectState> DurableObject<S> for Log<S> {
    fn new(state: S) -> Result<Self> {
        let settings = Settings::new().history(History::new());
        Ok(Self { feed: Feed::new(&state, settings, Alarm::raw(&state)) })
    }
    async fn fetch(&self, request: Request) -> Result<Response> {
        if request.method() == Method::GET {
            return Ok(self.feed.open(&request).id("one").start().await?);
        }
        let line = request.into_body().text(4_096).await?;
        Ok(reply::text(self.feed.publish(Event::new().data(line))?.position.seq().to_string()))
    }
    async fn alarm(&self, _: AlarmInfo) -> Result<()> {
        Ok(self.feed.on_alarm().await?)
    }
}

async fn next(body: &mut Body) -> Option<String> {
    let frame = body.frame().await?.unwrap();
    Some(String::from_utf8(frame.into_data().unwrap().to_vec()).unwrap())
}

#[test]
fn what_is_published_arrives_and_is_resumed() {
    let kit = Kit::builder().object::<Log<_>>("LOG").start().unwrap();
    kit.run(async {
        let log = kit.namespace("LOG")?.named("a")?;
        let mut body = log.fetch(http::Request::get("http://x/").body(Body::empty())?).await?.into_body();
        let first = next(&mut body).await.unwrap();
        assert!(
            first.contains("event: ready\n") && first.contains("data: {\"connection\":\"one\"}\n\n"),
            "{first}"
        );
        log.fetch(http::Request::post("http://x/").body(Body::from("hello"))?).await?;
        let event = next(&mut body).await.unwrap();
        assert!(event.ends_with("-1\ndata: hello\n\n"), "{event}");
        kit.advance(Duration::from_secs(15)).await;
        assert_eq!(next(&mut body).await.unwrap(), ":\n\n");
        drop(body);
        log.fetch(http::Request::post("http://x/").body(Body::from("missed"))?).await?;
        let id = event.strip_prefix("id: ").unwrap().split('\n').next().unwrap();
        let request = http::Request::get("http://x/").header("last-event-id", id).body(Body::empty())?;
        let mut body = log.fetch(request).await?.into_body();
        let all = next(&mut body).await.unwrap();
        assert!(all.ends_with("-2\ndata: missed\n\n"), "{all}");
        kit.advance(Duration::from_secs(15)).await;
        assert_eq!(next(&mut body).await.unwrap(), ":\n\n");
        Ok::<(), Failure>(())
    })
    .unwrap();
}
