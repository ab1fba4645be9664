use crate::{
    answer, asked,
    core::{Arrival, Asked, Backlog, Core, NotIn, Opened, Snapshot},
};
use do_core::{Admission, Error, ErrorKind, Refusal, Response, Timestamp};
use http::{HeaderMap, Method, Request, StatusCode, Uri};
use serde::Serialize;
use std::{fmt, sync::Arc, time::Duration};

type Snapshots<'a> = Box<dyn FnOnce() -> Result<String, Error> + 'a>;
type Backlogs<'a> = Box<dyn FnOnce(Option<&str>) -> Result<Backlog, Error> + 'a>;

/// Somebody on their way in: made by [`Feed::open`](crate::Feed::open) and `Hub::open`. Nothing happens before `start`.
#[must_use = "nothing happens before `start`"]
pub struct Opening<'a, F> {
    pub(crate) feed: &'a F,
    pub(crate) method: &'a Method,
    pub(crate) asked: Asked,
    /// Who it is, or why they may not come.
    pub(crate) admitted: Result<Admission, Refusal>,
    arrival: Arrival,
    uri: &'a Uri,
    headers: &'a HeaderMap,
    snapshot: Option<Snapshots<'a>>,
    backlog: Option<Backlogs<'a>>,
}

impl<'a, F> Opening<'a, F> {
    pub(crate) fn new<B>(feed: &'a F, request: &'a Request<B>, random: u64) -> Self {
        Self {
            feed,
            method: request.method(),
            asked: asked::of(request),
            admitted: Ok(Admission::anonymous()),
            arrival: Arrival { random, ..Arrival::default() },
            uri: request.uri(),
            headers: request.headers(),
            snapshot: None,
            backlog: None,
        }
    }

    /// The connection's id: a name by which it can be sent to, and by which a second one is known for the same
    /// ([`OnDuplicate`](crate::OnDuplicate)). Without it, one is drawn at random.
    pub fn id(mut self, id: impl Into<Arc<str>>) -> Self {
        self.arrival.id = Some(id.into());
        self
    }

    /// Listens to a topic; or several. What has no topic goes to everyone.
    pub fn topic(mut self, topic: impl Into<Arc<str>>) -> Self {
        self.arrival.topics.push(topic.into());
        self
    }

    /// The state of things, as any value that can be JSON, for who comes for the first time and for who cannot go on where
    /// they were: they get it in the event `reset`, and no history. It is asked for only when it is needed.
    ///
    /// Change what it is made of before you publish what changed: what is published while it is made comes behind it.
    pub fn snapshot<T: Serialize>(mut self, snapshot: impl FnOnce() -> Result<T, Error> + 'a) -> Self {
        self.snapshot = Some(Box::new(move || {
            let value = snapshot()?;
            serde_json::to_string(&value).map_err(|e| {
                Error::new(ErrorKind::Invalid, format!("the snapshot is not expressible as JSON: {e}"))
            })
        }));
        self
    }

    /// Shows events of a history that the application has, instead of the feed's. It is asked with what the client says that
    /// it had last, if it says so.
    pub fn backlog(mut self, backlog: impl FnOnce(Option<&str>) -> Result<Backlog, Error> + 'a) -> Self {
        self.backlog = Some(Box::new(backlog));
        self
    }

    pub(crate) fn wanted_id(&self) -> Option<&str> {
        self.arrival.id.as_deref()
    }

    /// Whether the application has a history of its own for it.
    pub(crate) fn has_backlog(&self) -> bool {
        self.backlog.is_some()
    }

    pub(crate) fn random(&self) -> u64 {
        self.arrival.random
    }

    pub(crate) fn is_head(&self) -> bool {
        self.method == Method::HEAD
    }

    /// The headers of the answer.
    pub(crate) fn write_headers(&self, core: &Core, headers: &mut HeaderMap) {
        answer::stream_headers(headers);
        self.write_cors(core, headers);
    }

    fn write_cors(&self, core: &Core, headers: &mut HeaderMap) {
        if let Some(origins) = &core.settings.cors {
            answer::cors_headers(origins, self.uri, self.headers, headers);
        }
    }

    /// The answer to a browser that only asks whether it may.
    pub(crate) fn preflight(&self, core: &Core) -> Option<(StatusCode, HeaderMap)> {
        answer::preflight_parts(core.settings.cors.as_ref()?, self.method, self.uri, self.headers)
    }

    /// Whether it is of a page that is not allowed. It could not read the stream, but with the cookies of whoever looks at it
    /// it could take their place: replace their connection, or count as one.
    pub(crate) fn is_foreign(&self, core: &Core) -> bool {
        let origins = core.settings.cors.as_ref();
        origins.is_some_and(|origins| origins.check_parts(self.uri, self.headers).is_err())
    }

    /// Asks the application for what it shows, and lets them in. Without an await to what follows: nothing falls in
    /// between. `None` when there is no place.
    pub(crate) fn enter(self, core: &Core, now: Timestamp) -> Result<Option<Opened>, Error> {
        let Self { mut arrival, asked, mut snapshot, backlog, .. } = self;
        if let Some(backlog) = backlog {
            let after = match &asked {
                Asked::Fresh => None,
                Asked::After(id) => Some(id.as_str()),
            };
            arrival.backlog = Some(backlog(after)?);
        }
        let mut is_news = core.is_news_to(&asked, arrival.backlog.as_ref(), now);
        loop {
            if let Some(snapshot) = snapshot.take_if(|_| is_news) {
                // The position first: what is published meanwhile comes behind it.
                let at = core.position();
                arrival.snapshot = Some(Snapshot { at, json: snapshot()? });
            }
            arrival.can_ask = snapshot.is_some();
            match core.open(arrival, &asked, now)? {
                Ok(opened) => return Ok(Some(opened)),
                Err(NotIn::SentAway) => return Ok(None),
                Err(NotIn::Outdated(again)) => (arrival, is_news) = (*again, true),
            }
        }
    }
}

#[allow(private_bounds)] // feeds and hubs
impl<F: Owner> Opening<'_, F> {
    /// Sends this client away instead, to come back after this time: what 503 and 429 are elsewhere. As
    /// [`later`](crate::later), with the headers by which pages of other origins may read it.
    pub fn later(self, retry: Duration) -> Response {
        self.dress(crate::later(retry))
    }

    /// Tells this client to stay away instead. As [`stop`](crate::stop), with the headers by which pages of other origins
    /// may read it.
    pub fn stop(self) -> Response {
        self.dress(crate::stop())
    }

    /// Refuses this client instead. As [`refuse`](crate::refuse), with the headers by which pages of other origins may
    /// read it.
    pub fn refuse(self, refusal: Refusal) -> Response {
        self.dress(crate::refuse(refusal))
    }

    fn dress(self, mut response: Response) -> Response {
        self.write_cors(self.feed.core(), response.headers_mut());
        response
    }
}

/// What has connections.
pub(crate) trait Owner {
    fn core(&self) -> &Core;
}

impl<F> fmt::Debug for Opening<'_, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Opening")
            .field("arrival", &self.arrival)
            .field("asked", &self.asked)
            .finish_non_exhaustive()
    }
}

#[cfg(not(target_arch = "wasm32"))]
impl Opening<'_, crate::Hub> {
    /// Begins the stream: the response to return. Who cannot be let in now gets one that says when to come back. Where the
    /// settings say [which origins](crate::Settings::cors) may come, others get 403, and a CORS
    /// [preflight](crate::preflight) is answered.
    ///
    /// # Errors
    /// Those of the snapshot and the backlog. Nobody is in then.
    pub fn start(self) -> Result<http::Response<crate::EventStream>, Error> {
        let (hub, mut response) = (self.feed, http::Response::new(crate::EventStream::ended()));
        if let Some((status, headers)) = self.preflight(hub.core()) {
            (*response.status_mut(), *response.headers_mut()) = (status, headers);
            return Ok(response);
        }
        if self.is_foreign(hub.core()) {
            *response.status_mut() = Refusal::Forbidden.status();
            self.write_cors(hub.core(), response.headers_mut());
            return Ok(response);
        }
        self.write_headers(hub.core(), response.headers_mut());
        if self.is_head() {
            return Ok(response);
        }
        let now = hub.now();
        let random = self.random();
        *response.body_mut() = match self.enter(hub.core(), now)? {
            Some(opened) => opened.stream,
            None => hub.core().later(random, now),
        };
        Ok(response)
    }
}
