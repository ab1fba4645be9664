use crate::{
    Broadcast, Event, Info, Opening, Publication, Published, Settings, Stats, core::Core, opening::Owner,
    send::Sender,
};
use do_core::{BroadcastReport, Error, Position, Timestamp};
use http::Request;
use std::{
    fmt,
    hash::{BuildHasher, RandomState},
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

/// A feed of a server that has no objects: any axum, hyper or tower service. Cheap to clone; every clone is the same.
///
/// What a [`Feed`](crate::Feed) is to an object, but for what an object has: its history is in memory, and heartbeats are
/// sent when somebody says so.
///
/// ```no_run
/// use axum::{Router, body::Body, extract::Request, response::Response, routing::get, serve::ListenerExt};
/// use do_sse::{Event, History, Hub, Settings};
///
/// #[tokio::main]
/// async fn main() -> Result<(), Box<dyn std::error::Error>> {
///     let hub = Hub::new(Settings::new().history(History::new().max_events(500)));
///
///     let feed = hub.clone();
///     let events = async move |request: Request| -> Response {
///         // Without a snapshot or a backlog nothing here can fail.
///         feed.open(&request).start().map_or_else(|_| Response::default(), |response| response.map(Body::new))
///     };
///
///     let beating = hub.clone(); // heartbeats, ages, readers that stand still
///     tokio::spawn(async move {
///         loop {
///             tokio::time::sleep(beating.tick()).await;
///         }
///     });
///
///     hub.publish(Event::named("news")?.data("it begins"))?; // from any thread, without waiting
///
///     let listener = tokio::net::TcpListener::bind("127.0.0.1:8080").await?;
///     let listener = listener.tap_io(|socket| drop(socket.set_nodelay(true))); // each event at once
///     axum::serve(listener, Router::new().route("/events", get(events))).await?;
///     Ok(())
/// }
/// ```
///
/// # When a client leaves
/// Servers of hyper, as axum's is, drop the body of the response when the client closes its connection, or ends its side of
/// it: it is gone from the hub at once. Of a client that vanishes without a word (a network that is switched off) nobody
/// hears; what is written to it, heartbeats at the latest, is not acknowledged, and the system gives up after a quarter of
/// an hour. The hub keeps no more than [`max_bytes`](Settings::max_bytes) for it, and ends it when nothing is read for the
/// time of [`stall`](Settings::stall).
///
/// That is the hub's end of it. The server's, a socket and what it was given to send, stays until the system gives up, as
/// it also does for a client that is there and does not read. On Linux, `TCP_USER_TIMEOUT` on the accepted sockets says
/// when that is.
pub struct Hub(Arc<Inner>);

struct Inner {
    core: Core,
    began: (Timestamp, Instant),
}

impl Hub {
    /// One without connections.
    pub fn new(settings: Settings) -> Self {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let began = Timestamp::EPOCH + since;
        Self(Arc::new(Inner { core: Core::new(settings, random(), false), began: (began, Instant::now()) }))
    }

    /// Begins a stream for whoever sent this request. Nothing happens before [`Opening::start`].
    pub fn open<'a, B>(&'a self, request: &'a Request<B>) -> Opening<'a, Self> {
        Opening::new(self, request, random())
    }

    /// Begins a broadcast; without further words it goes to everyone. It has no number and is not kept.
    pub fn broadcast(&self, event: impl Into<Event>) -> Broadcast<'_> {
        Broadcast::new(&*self.0, event.into())
    }

    /// Begins to publish. See [`publish`](Self::publish).
    pub fn publishing(&self, event: impl Into<Event>) -> Publication<'_> {
        Publication::new(&*self.0, event.into())
    }

    /// Numbers an event, keeps it in the history, and sends it to everyone.
    ///
    /// # Errors
    /// As [`Publication::send`].
    pub fn publish(&self, event: impl Into<Event>) -> Result<Published, Error> {
        self.publishing(event).send()
    }

    /// Sends to the connections with this id, in order with all else.
    #[allow(clippy::must_use_candidate)] // the report is for those who want it
    pub fn send_to(&self, id: &str, event: impl Into<Event>) -> BroadcastReport {
        self.broadcast(event).only(id).send()
    }

    /// Sends the heartbeats that are due, and ends the connections that are too old or stand still. Gives how long it is
    /// until the next are due, at most a heartbeat.
    ///
    /// ```no_run
    /// # async fn example(hub: do_sse::Hub) {
    /// tokio::spawn(async move {
    ///     loop {
    ///         tokio::time::sleep(hub.tick()).await;
    ///     }
    /// });
    /// # }
    /// ```
    #[allow(clippy::must_use_candidate)] // it is not what it is for
    pub fn tick(&self) -> Duration {
        let now = self.0.now();
        let most = self.0.core.settings.heartbeat;
        self.0.core.tick(now).map_or(most, |due| now.until(due).clamp(Duration::from_millis(1), most))
    }

    /// Ends the connections with this id behind what waits for them. How many.
    #[allow(clippy::must_use_candidate)] // nobody needs it
    pub fn close(&self, id: &str) -> usize {
        self.0.core.close(id)
    }

    /// Ends all connections behind what waits for them. How many. Their clients come back.
    #[allow(clippy::must_use_candidate)] // nobody needs it
    pub fn close_all(&self) -> usize {
        self.0.core.close_all()
    }

    /// How many connections are open.
    pub fn count(&self) -> usize {
        self.0.core.count()
    }

    /// The open connections, in the order of their coming.
    pub fn infos(&self) -> Vec<Info> {
        self.0.core.infos()
    }

    /// What it did, and what waits.
    pub fn stats(&self) -> Stats {
        self.0.core.stats()
    }

    /// The position of the newest event; `None` without a history.
    pub fn position(&self) -> Option<Position> {
        self.0.core.position()
    }
}

impl Owner for Hub {
    fn core(&self) -> &Core {
        &self.0.core
    }
}

impl Hub {
    pub(crate) fn now(&self) -> Timestamp {
        self.0.now()
    }
}

impl Sender for Inner {
    fn core(&self) -> &Core {
        &self.core
    }

    fn now(&self) -> Timestamp {
        self.began.0 + self.began.1.elapsed()
    }
}

/// Not for secrets.
fn random() -> u64 {
    RandomState::new().hash_one(0)
}

impl Clone for Hub {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl fmt::Debug for Hub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hub").field("connections", &self.count()).finish_non_exhaustive()
    }
}
