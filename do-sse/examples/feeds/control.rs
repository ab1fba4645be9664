//! What the object and the plain server have in common: a feed that does as its tester says.
//!
//! Every feed has a name, the first part of the path, and three addresses below it: `make` begins it, by settings in JSON;
//! `do` runs a list of [actions](Action) in one go, without anything in between, and tells the [state](State); `events` is
//! the feed. A tester of another origin may say everything, as this serves nobody else.

use do_core::{Error, ErrorKind, Origins, RequestExt};
use do_sse::{Backlog, Broadcast, Event, Feed, History, Hub, Opening, Publication, Settings, Stats};
use http::{HeaderMap, Request, StatusCode};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::{
    sync::{LazyLock, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// What feeds and hubs have in common.
pub(crate) trait Sends {
    fn publishing(&self, event: Event) -> Publication<'_>;
    fn broadcast(&self, event: Event) -> Broadcast<'_>;
    fn close_all(&self) -> usize;
    fn stats(&self) -> Stats;
}

impl<S: do_core::ObjectState> Sends for Feed<S> {
    fn publishing(&self, event: Event) -> Publication<'_> {
        self.publishing(event)
    }
    fn broadcast(&self, event: Event) -> Broadcast<'_> {
        self.broadcast(event)
    }
    fn close_all(&self) -> usize {
        self.close_all()
    }
    fn stats(&self) -> Stats {
        self.stats()
    }
}

impl Sends for Hub {
    fn publishing(&self, event: Event) -> Publication<'_> {
        self.publishing(event)
    }
    fn broadcast(&self, event: Event) -> Broadcast<'_> {
        self.broadcast(event)
    }
    fn close_all(&self) -> usize {
        self.close_all()
    }
    fn stats(&self) -> Stats {
        self.stats()
    }
}

/// What `make` is told. Times in milliseconds.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Wanted {
    retry: u64,
    heartbeat: u64,
    stall: u64,
    max_bytes: usize,
    max_connections: usize,
    history: Option<u64>,
    /// Who cannot go on is told how many events there were.
    snapshot: bool,
    /// The history is the application's, and says only what it was asked.
    echo: bool,
    origin: Option<String>,
}

impl Default for Wanted {
    fn default() -> Self {
        Self {
            retry: 10,
            heartbeat: 15_000,
            stall: 30_000,
            max_bytes: 1_024 * 1_024,
            max_connections: 1_000,
            history: None,
            snapshot: false,
            echo: false,
            origin: None,
        }
    }
}

impl Wanted {
    pub(crate) fn settings(&self) -> Result<Settings, Error> {
        let mut settings = Settings::new()
            .retry(Duration::from_millis(self.retry))
            .heartbeat(Duration::from_millis(self.heartbeat))
            .stall(Duration::from_millis(self.stall))
            .max_bytes(self.max_bytes)
            .max_connections(self.max_connections);
        if let Some(events) = self.history {
            settings = settings.history(History::new().max_events(events));
        }
        if let Some(origins) = self.origins()? {
            settings = settings.cors(origins);
        }
        Ok(settings)
    }

    fn origins(&self) -> Result<Option<Origins>, Error> {
        self.origin.as_deref().map(|origin| Origins::same_host().allow(origin)).transpose()
    }
}

/// What is said to a feed.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum Action {
    Publish(Words),
    Broadcast(Words),
    /// Ends all connections.
    Close {},
    /// How those are answered who come from now on.
    Answer(Answer),
}

/// An event.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Words {
    event: Option<String>,
    data: Option<String>,
    id: Option<String>,
    retry: Option<u64>,
    comment: Option<String>,
    topic: Option<String>,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Answer {
    #[default]
    Open,
    Stop,
    /// Overload: to come back after so many milliseconds.
    Later(u64),
    Status(u16),
}

/// Who came.
#[derive(Debug, Clone, Serialize)]
struct Seen {
    /// When, in milliseconds since the program began.
    at: u128,
    method: String,
    accept: Option<String>,
    cache_control: Option<String>,
    cookie: Option<String>,
    last_event_id: Option<String>,
}

/// A feed and what it was told.
#[derive(Debug)]
pub(crate) struct Place<F> {
    pub(crate) feed: F,
    wanted: Wanted,
    told: Mutex<Told>,
}

#[derive(Debug, Default)]
struct Told {
    answer: Answer,
    sent: u64,
    seen: Vec<Seen>,
}

static BEGAN: LazyLock<Instant> = LazyLock::new(Instant::now);

impl<F: Sends> Place<F> {
    pub(crate) fn new(feed: F, wanted: Wanted) -> Self {
        LazyLock::force(&BEGAN);
        Self { feed, wanted, told: Mutex::default() }
    }

    /// Does what the body says, and tells the state.
    pub(crate) fn act(&self, body: &[u8]) -> Result<Value, Error> {
        for action in parse::<Vec<Action>>(body)? {
            match action {
                Action::Publish(words) => {
                    self.told().sent += 1;
                    let topic = words.topic.clone();
                    let sending = self.feed.publishing(words.event()?);
                    topic.into_iter().fold(sending, Publication::to).send()?;
                }
                Action::Broadcast(words) => {
                    let topic = words.topic.clone();
                    let sending = self.feed.broadcast(words.event()?);
                    topic.into_iter().fold(sending, Broadcast::to).send();
                }
                Action::Close {} => drop(self.feed.close_all()),
                Action::Answer(answer) => self.told().answer = answer,
            }
        }
        let stats = self.feed.stats();
        let told = self.told();
        Ok(json!({
            "at": BEGAN.elapsed().as_millis(),
            "seen": told.seen,
            "connections": stats.connections,
            "waiting_bytes": stats.waiting_bytes,
            "opened": stats.opened,
            "gone": stats.gone,
            "full": stats.full,
            "stalled": stats.stalled,
            "replaced": stats.replaced,
            "sent_away": stats.sent_away,
            "beats": stats.beats,
            "resumed": stats.resumed,
            "gaps": stats.gaps,
        }))
    }

    /// Looks at who comes; gives how they are answered who are not let in.
    pub(crate) fn come<B>(&self, request: &Request<B>) -> Result<Option<do_core::Response>, Error> {
        let text = |name| {
            let value = request.headers().get(name)?;
            Some(String::from_utf8_lossy(value.as_bytes()).into_owned())
        };
        let mut told = self.told();
        told.seen.push(Seen {
            at: BEGAN.elapsed().as_millis(),
            method: request.method().to_string(),
            accept: text("accept"),
            cache_control: text("cache-control"),
            cookie: text("cookie"),
            last_event_id: text("last-event-id"),
        });
        let response = match told.answer {
            Answer::Open => return Ok(None),
            Answer::Stop => do_sse::stop(),
            Answer::Later(ms) => do_sse::later(Duration::from_millis(ms)),
            Answer::Status(status) => {
                let status = StatusCode::from_u16(status).map_err(invalid)?;
                do_core::reply::status(status)
            }
        };
        Ok(Some(match self.wanted.origins()? {
            Some(origins) => do_sse::cors(&origins, request, response),
            None => response,
        }))
    }

    /// The same words for a feed and a hub.
    pub(crate) fn prepare<'a, B>(
        &'a self,
        mut opening: Opening<'a, F>,
        request: &Request<B>,
    ) -> Opening<'a, F> {
        if let Some(id) = request.query("id") {
            opening = opening.id(id);
        }
        if let Some(topic) = request.query("topic") {
            opening = opening.topic(topic);
        }
        if self.wanted.snapshot {
            opening = opening.snapshot(|| Ok(json!({ "sent": self.told().sent })));
        }
        if self.wanted.echo {
            opening = opening.backlog(|after| {
                let mut backlog = Backlog::default();
                backlog.events.push(Event::new().json(&after)?);
                Ok(backlog)
            });
        }
        opening
    }

    fn told(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Words {
    fn event(self) -> Result<Event, Error> {
        let mut event = Event::new();
        if let Some(name) = self.event {
            event = event.event(name)?;
        }
        if let Some(data) = self.data {
            event = event.data(data);
        }
        if let Some(id) = self.id {
            event = event.id(id)?;
        }
        if let Some(ms) = self.retry {
            event = event.retry(Duration::from_millis(ms));
        }
        if let Some(comment) = self.comment {
            event = event.comment(comment);
        }
        Ok(event)
    }
}

/// Reads a body; an empty one as if nothing was wanted.
pub(crate) fn parse<'a, T: Default + Deserialize<'a>>(body: &'a [u8]) -> Result<T, Error> {
    if body.is_empty() { Ok(T::default()) } else { serde_json::from_slice(body).map_err(invalid) }
}

pub(crate) fn invalid(error: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::new(ErrorKind::Invalid, error.to_string()).with_source(error)
}

/// Testers of any origin may read what is no feed.
pub(crate) fn open_to_all(headers: &mut HeaderMap) {
    headers.insert("access-control-allow-origin", http::HeaderValue::from_static("*"));
}

/// Name and rest of a path.
pub(crate) fn split(path: &str) -> (&str, &str) {
    path.trim_start_matches('/').split_once('/').unwrap_or_default()
}

/// What a browser is served that runs the scenarios.
pub(crate) fn page(path: &str) -> Option<(&'static str, &'static str)> {
    match path {
        "/" => Some(("text/html; charset=utf-8", PAGE)),
        "/scenarios.js" => {
            Some(("text/javascript; charset=utf-8", include_str!("../../tests/clients/scenarios.js")))
        }
        _ => None,
    }
}

const PAGE: &str =
    r#"<!doctype html><meta charset="utf-8"><title>feeds</title><link rel="icon" href="data:,"><pre></pre>"#;
