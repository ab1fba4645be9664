//! The feeds as objects have them.

use crate::control::{Place, Wanted, open_to_all, page, parse, split};
use do_core::{
    prelude::*,
    tokio::{Host, HostEnv},
};
use do_sse::Feed;
use std::{cell::RefCell, path::Path, rc::Rc};
use tokio::net::TcpListener;

/// Most bytes of what is said to a feed.
const MOST: usize = 4 * 1_024 * 1_024;

/// An object with one feed, which can be made anew: what a restart is to its clients.
pub(crate) struct Feeds<S: ObjectState> {
    state: S,
    place: RefCell<Option<Rc<Place<Feed<S>>>>>,
}

impl<S: ObjectState> DurableObject<S> for Feeds<S> {
    fn new(state: S) -> Result<Self> {
        Ok(Self { state, place: RefCell::default() })
    }

    async fn fetch(&self, request: Request) -> Result<Response> {
        let path = request.uri().path().to_owned();
        let (_, what) = split(&path);
        if what == "events" {
            let place = self.place()?;
            if let Some(away) = place.come(&request)? {
                return Ok(away);
            }
            return Ok(place.prepare(place.feed.open(&request), &request).start().await?);
        }
        let body = request.into_body().bytes(MOST).await?;
        let answer = match what {
            "make" => {
                let wanted: Wanted = parse(&body)?;
                let feed = Feed::new(&self.state, wanted.settings()?, Alarm::raw(&self.state));
                self.place.replace(Some(Rc::new(Place::new(feed, wanted))));
                reply::text("made")
            }
            "do" => reply::json(&self.place()?.act(&body)?)?,
            _ => reply::status(StatusCode::NOT_FOUND),
        };
        Ok(answer)
    }

    async fn alarm(&self, _: AlarmInfo) -> Result<()> {
        match self.place() {
            Ok(place) => Ok(place.feed.on_alarm().await?),
            Err(_) => Ok(()),
        }
    }
}

impl<S: ObjectState> Feeds<S> {
    fn place(&self) -> Result<Rc<Place<Feed<S>>>, Error> {
        let nothing = || Error::new(ErrorKind::Invalid, "no feed was made here");
        self.place.borrow().clone().ok_or_else(nothing)
    }
}

async fn route(request: Request, env: HostEnv) -> Result<Response> {
    if let Some((kind, text)) = page(request.uri().path()) {
        return Ok(reply::stream(text, kind));
    }
    let (name, what) = split(request.uri().path());
    let is_feed = what == "events";
    let feeds = env.namespace("FEEDS")?.named(ObjectName::new(name)?)?;
    let mut response = feeds.fetch(request).await?;
    if !is_feed {
        open_to_all(response.headers_mut());
    }
    Ok(response)
}

/// Serves until the host is dropped.
pub(crate) fn serve(listener: TcpListener, data: &Path) -> Result<Host> {
    let host = Host::builder(data).object::<Feeds<_>>("FEEDS").start()?;
    host.serve(listener, route);
    Ok(host)
}
