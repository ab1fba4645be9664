//! do-sse: a feed in an object, over do-core's own server or mounted in axum, and a hub in a handler of axum.

use super::{Contender, order::Order};
use crate::fanout::{
    Outcome,
    server::{Drops, PUBLISH, spawn},
};
use ::axum::{
    Router,
    extract::{self, State},
    http::StatusCode,
    response::Response as HttpResponse,
    routing::{get, post},
    serve::ListenerExt as _,
};
use do_core::{
    Alarm, AlarmInfo, BroadcastReport, Error, ErrorKind, ObjectName,
    prelude::*,
    tokio::{Host, HostEnv},
};
use do_sse::{EventStream, Feed, History, Hub, Settings};
use std::sync::OnceLock;
use tokio::{net::TcpListener, time::sleep};

/// Most bytes of a posted order.
const LONGEST: usize = 1_024;

/// Who serves, and where drops are counted. An object has no other way to its process.
static PROCESS: OnceLock<(Contender, Drops)> = OnceLock::new();

/// Room for those that come while clients resume.
fn settings(contender: Contender) -> Settings {
    if contender.keeps() {
        Settings::new().history(History::new().max_events(2_000))
    } else {
        Settings::new()
    }
}

fn count(report: Result<BroadcastReport, Error>, drops: &Drops) {
    match report {
        Ok(report) => drops.add((report.dropped + report.disconnected) as u64),
        Err(error) => eprintln!("{error}"),
    }
}

struct Events<S: ObjectState> {
    state: S,
    feed: Feed<S>,
    contender: Contender,
    drops: Drops,
}

impl<S: ObjectState> DurableObject<S> for Events<S> {
    fn new(state: S) -> Result<Self> {
        let (contender, drops) =
            PROCESS.get().cloned().ok_or_else(|| Error::new(ErrorKind::Invalid, "nobody serves"))?;
        let (settings, alarm) = (settings(contender), Alarm::raw(&state));
        let feed = match contender {
            Contender::Stored => Feed::stored(&state, settings, alarm),
            _ => Feed::new(&state, settings, alarm),
        };
        Ok(Self { state, feed, contender, drops })
    }

    async fn fetch(&self, request: Request) -> Result<Response> {
        if request.uri().path() != PUBLISH {
            return Ok(self.feed.open(&request).start().await?);
        }
        let text = request.into_body().text(LONGEST).await?;
        let order = Order::parse(&text).map_err(|e| Error::new(ErrorKind::Invalid, e.to_string()))?;
        let publish = |text| {
            let report = if self.contender.keeps() {
                self.feed.publish(text).map(|published| published.report)
            } else {
                Ok(self.feed.broadcast(text).send())
            };
            count(report, &self.drops);
        };
        order.run(|wait| self.state.sleep(wait), publish).await;
        Ok(Response::default())
    }

    async fn alarm(&self, _: AlarmInfo) -> Result<()> {
        Ok(self.feed.on_alarm().await?)
    }
}

/// Serves on a listener.
///
/// # Errors
/// When the host cannot start.
pub fn serve(listener: TcpListener, contender: Contender, drops: Drops) -> Outcome<Option<Host>> {
    if matches!(contender, Contender::Hub | Contender::HubPublished) {
        spawn(hub(listener, contender, drops));
        return Ok(None);
    }
    PROCESS.get_or_init(|| (contender, drops));
    let data = std::env::temp_dir().join(format!("do-bench-sse-{}", std::process::id()));
    let host = Host::builder(&data).object::<Events<_>>("EVENTS").start()?;
    if contender == Contender::Mounted {
        let objects = host.namespace("EVENTS")?.service(|_: &http::request::Parts| ObjectName::new("feed"));
        let app = Router::new().fallback_service(objects);
        let listener = listener.tap_io(|stream| drop(stream.set_nodelay(true)));
        spawn(async { Ok(::axum::serve(listener, app).await?) });
    } else {
        host.serve(listener, async |request: Request, env: HostEnv| {
            Ok(env.namespace("EVENTS")?.named("feed")?.fetch(request).await?)
        });
    }
    Ok(Some(host))
}

#[derive(Clone)]
struct Shared {
    hub: Hub,
    contender: Contender,
    drops: Drops,
}

async fn hub(listener: TcpListener, contender: Contender, drops: Drops) -> Outcome<()> {
    let hub = Hub::new(settings(contender));
    let ticking = hub.clone();
    tokio::spawn(async move {
        loop {
            sleep(ticking.tick()).await;
        }
    });
    let shared = Shared { hub, contender, drops };
    let app = Router::new().route(PUBLISH, post(publish)).fallback(get(subscribe)).with_state(shared);
    let listener = listener.tap_io(|stream| drop(stream.set_nodelay(true)));
    Ok(::axum::serve(listener, app).await?)
}

async fn publish(State(shared): State<Shared>, text: String) -> Result<(), StatusCode> {
    let order = Order::parse(&text).map_err(|_| StatusCode::BAD_REQUEST)?;
    let publish = |text| {
        let report = if shared.contender.keeps() {
            shared.hub.publish(text).map(|published| published.report)
        } else {
            Ok(shared.hub.broadcast(text).send())
        };
        count(report, &shared.drops);
    };
    order.run(sleep, publish).await;
    Ok(())
}

async fn subscribe(
    State(shared): State<Shared>,
    request: extract::Request,
) -> Result<HttpResponse<EventStream>, StatusCode> {
    shared.hub.open(&request).start().map_err(|error| {
        eprintln!("{error}");
        StatusCode::INTERNAL_SERVER_ERROR
    })
}
