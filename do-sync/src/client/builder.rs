use super::{
    Backoff, Client,
    connect::{Io, Target},
    core::{Config, Core},
    driver::Driver,
    queue::Queue,
    shared::Shared,
};
use crate::Position;
use do_core::{Error, ErrorKind};
use http::{HeaderMap, HeaderName, HeaderValue, Uri};
use std::{io, sync::Arc, time::Duration};
use tokio::runtime::Handle;

/// Sets up a [`Client`].
#[derive(Debug)]
#[must_use]
pub struct Builder {
    target: Target,
    config: Config,
    after: Option<Position>,
    queued: (usize, usize),
    events: usize,
    seed: Option<u64>,
    /// The first thing that was wrong: told by [`connect`](Self::connect), so that the calls can be chained.
    wrong: Option<Error>,
}

impl Builder {
    pub(super) fn new(url: &str) -> Self {
        Self {
            target: Target {
                url: url.split('#').next().unwrap_or_default().to_owned(),
                headers: HeaderMap::new(),
                connector: None,
                max_incoming: 4 * 1_024 * 1_024,
            },
            config: Config {
                backoff: Backoff::new(),
                connect_within: Duration::from_secs(20),
                ping_after: Duration::from_secs(30),
                pong_within: Duration::from_secs(10),
                close_within: Duration::from_secs(5),
                give_up: None,
            },
            after: None,
            queued: (1_000, 1_024 * 1_024),
            events: 64,
            seed: None,
            wrong: None,
        }
    }

    /// Adds a parameter to the address's query, percent-encoded. `after` is the client's own.
    pub fn query(mut self, name: &str, value: &str) -> Self {
        self.target.query(name, value);
        self
    }

    /// Adds a header to each handshake.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        match (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            (Ok(name), Ok(value)) => drop(self.target.headers.append(name, value)),
            _ => self.is_wrong(format!("{name:?} is no header, or its value has what no header has")),
        }
        self
    }

    /// Sends `Authorization: Bearer` with each handshake.
    pub fn bearer(mut self, token: &str) -> Self {
        match HeaderValue::try_from(format!("Bearer {token}")) {
            Ok(mut value) => {
                value.set_sensitive(true);
                self.target.headers.insert(http::header::AUTHORIZATION, value);
            }
            Err(_) => self.is_wrong("the token has what no header has".to_owned()),
        }
        self
    }

    /// Continues where another client was: see [`Client::position`].
    pub fn after(mut self, position: Position) -> Self {
        self.after = Some(position);
        self
    }

    /// How long to wait between attempts.
    pub fn backoff(mut self, backoff: Backoff) -> Self {
        self.config.backoff = backoff;
        self
    }

    /// Stops after so many attempts in a row that came to nothing. Default: never.
    pub fn give_up_after(mut self, attempts: u32) -> Self {
        self.config.give_up = Some(attempts.max(1));
        self
    }

    /// How long an attempt may take, from the look-up of the name to the room's hello. Default: 20 s.
    pub fn connect_within(mut self, time: Duration) -> Self {
        self.config.connect_within = time;
        self
    }

    /// When a server that says nothing is asked whether it is there, and how long it may take to answer before the
    /// client connects anew. Default: after 30 s, within 10 s. Where the room has an
    /// [auto-response](crate::Room::auto_ping) the question does not wake it.
    pub fn ping(mut self, after: Duration, within: Duration) -> Self {
        (self.config.ping_after, self.config.pong_within) = (after, within);
        self
    }

    /// How long [`Client::close`] takes at most: for what waits to be written, and then for the server's answer.
    /// Default: 5 s each.
    pub fn close_within(mut self, time: Duration) -> Self {
        self.config.close_within = time;
        self
    }

    /// Most messages, and bytes of them, that wait to be sent. Default: 1,000 and 1 MiB. What is beyond is
    /// [refused](super::NotSent::Full).
    pub fn max_queued(mut self, messages: usize, bytes: usize) -> Self {
        self.queued = (messages, bytes);
        self
    }

    /// Most events that wait for the application, at least one. When there are as many, nothing more is read from the
    /// network, and the server notices that this client is slow. Default: 64.
    pub fn max_events(mut self, events: usize) -> Self {
        self.events = events.max(1);
        self
    }

    /// The longest message that is taken from the server, in bytes; a longer one ends the client. Default: 4 MiB.
    pub fn max_incoming(mut self, bytes: usize) -> Self {
        self.target.max_incoming = bytes;
        self
    }

    /// How to get the stream that a WebSocket runs over, for TLS of one's own, proxies, Unix sockets, and tests. It is
    /// given the whole address. Without it: TCP, and TLS for `wss` if a feature of `tokio-tungstenite` has it.
    ///
    /// ```no_run
    /// use do_sync::client::{Client, Io};
    ///
    /// let through_unix = Client::builder("ws://chat/lobby").connector(async |_| {
    ///     let stream = tokio::net::UnixStream::connect("/run/chat.sock").await?;
    ///     Ok(Box::new(stream) as Box<dyn Io>)
    /// });
    /// # drop(through_unix);
    /// ```
    pub fn connector<C, F>(mut self, connector: C) -> Self
    where
        C: Fn(Uri) -> F + Send + Sync + 'static,
        F: Future<Output = io::Result<Box<dyn Io>>> + Send + 'static,
    {
        self.target.connector = Some(Arc::new(move |uri| Box::pin(connector(uri))));
        self
    }

    /// Makes the waits between attempts the same in each run: for tests.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Starts the client in a task of the current runtime. The first connection is no different from later ones: it is
    /// tried until it succeeds, and what is sent before it waits.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] when the address is not one of `ws` or `wss`, for what is no header, and outside of a
    /// tokio runtime.
    pub fn connect(self) -> Result<Client, Error> {
        if let Some(wrong) = self.wrong {
            return Err(wrong);
        }
        self.target.check()?;
        let runtime = Handle::try_current()
            .map_err(|e| Error::new(ErrorKind::Invalid, "a client runs in a tokio runtime").with_source(e))?;
        let rng = self.seed.map_or_else(fastrand::Rng::new, fastrand::Rng::with_seed);
        let (messages, bytes) = self.queued;
        let shared = Arc::new(Shared::new(Queue::new(messages, bytes), self.events));
        let _entered = runtime.enter();
        let driver = Driver::new(Core::new(self.config, self.after, rng), Arc::clone(&shared), self.target);
        let task = runtime.spawn(driver.run()).abort_handle();
        Ok(Client::new(shared, task, self.after))
    }

    fn is_wrong(&mut self, why: String) {
        self.wrong.get_or_insert_with(|| Error::new(ErrorKind::Invalid, why));
    }
}
