//! Pages of other origins, with the cookies of whoever looks at them.

use super::next;
use do_core::{Origins, kit::Kit, prelude::*};
use do_sse::{Feed, Settings};

const APP: &str = "https://app.example.com";

struct News<S: ObjectState>(Feed<S>);

impl<S: ObjectState> DurableObject<S> for News<S> {
    fn new(state: S) -> Result<Self> {
        let settings = Settings::new().cors(Origins::same_host().allow(APP)?);
        Ok(Self(Feed::new(&state, settings, Alarm::raw(&state))))
    }

    async fn fetch(&self, request: Request) -> Result<Response> {
        match request.uri().path() {
            "/count" => Ok(reply::text(self.0.count().to_string())),
            _ => Ok(self.0.open(&request).id("ann").start().await?),
        }
    }

    async fn alarm(&self, _: AlarmInfo) -> Result<()> {
        Ok(self.0.on_alarm().await?)
    }
}

#[test]
fn w10_a_page_that_is_allowed_asks_and_comes_and_others_take_nobodys_place() {
    let kit = Kit::builder().object::<News<_>>("NEWS").start().unwrap();
    kit.run(async {
        let news = kit.namespace("NEWS")?.named("a")?;
        let ask = |method: &str, origin: &str| {
            http::Request::builder()
                .method(method)
                .uri("http://feeds.example.com/events")
                .header("origin", origin)
                .header("access-control-request-method", "GET")
                .header("access-control-request-headers", "last-event-id, authorization")
                .body(Body::empty())
        };
        let count = async || -> Result<String> {
            let request = http::Request::get("http://feeds.example.com/count").body(Body::empty())?;
            Ok(news.fetch(request).await?.into_body().text(100).await?)
        };

        let asked = news.fetch(ask("OPTIONS", APP)?).await?;
        assert_eq!(asked.status(), 204);
        assert_eq!(asked.headers()["access-control-allow-headers"], "last-event-id, authorization");
        assert_eq!(news.fetch(ask("OPTIONS", "https://evil.example")?).await?.status(), 403);
        assert_eq!(count().await?, "0");

        let stream = news.fetch(ask("GET", APP)?).await?;
        assert_eq!(stream.headers()["access-control-allow-origin"], APP);
        assert_eq!(stream.headers()["vary"], "origin");
        let mut body = stream.into_body();
        assert!(next(&mut body).await.unwrap().contains("event: ready\n"));

        let foreign = news.fetch(ask("GET", "https://evil.example")?).await?;
        assert_eq!(foreign.status(), 403);
        assert_eq!(foreign.headers().get("access-control-allow-origin"), None);
        assert_eq!(count().await?, "1");
        kit.advance(Duration::from_secs(15)).await;
        assert_eq!(next(&mut body).await.unwrap(), ":\n\n", "it was not replaced");
        Ok::<(), Failure>(())
    })
    .unwrap();
}
