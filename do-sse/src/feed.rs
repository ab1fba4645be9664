mod presence;
mod stored;

use crate::{
    Broadcast, Event, Info, Opening, Publication, Published, Settings, Stats, core::Core, opening::Owner,
    send::Sender,
};
use do_core::{
    Alarm, AlarmScheduler, Body, BroadcastReport, Error, ObjectState, Position, Refusal, Request, Response,
    Timestamp, journal, limits,
};
use presence::Presence;
use std::{
    cell::{Cell, OnceCell},
    fmt,
    future::poll_fn,
    rc::{Rc, Weak},
    sync::Arc,
    task::Poll,
    time::Duration,
};
use stored::Stored;

/// A feed of an object: the connections of those who read its events.
///
/// Make it in `new` and keep it: its connections live as long as the instance, which open streams keep in memory. Its
/// clones are the same feed.
pub struct Feed<S: ObjectState>(Rc<Inner<S>>);

struct Inner<S: ObjectState> {
    state: S,
    core: Core,
    /// The history, when it is in the database.
    stored: Option<Stored<S>>,
    alarm: Alarm<S>,
    this: Weak<Self>,
    /// When the alarm comes, as far as this instance knows.
    armed: Cell<Option<Timestamp>>,
    /// The soonest time for which it is being set.
    wanted: Cell<Option<Timestamp>>,
    /// The alarm came, and is about to be set again.
    is_alarmed: Cell<bool>,
    /// Since when a lost alarm is tried to be set anew.
    repaired: Cell<Option<Timestamp>>,
    /// Somebody waits for departures.
    is_watching: Cell<bool>,
    /// The registry that is shared with others.
    presence: OnceCell<Presence<S>>,
}

/// An alarm that is so late does not come.
const LATE: Duration = Duration::from_secs(60);

impl<S: ObjectState> Feed<S> {
    /// A feed whose history, if the settings have one, is in memory: an instance that begins anew has an empty one, and
    /// clients that come back are told of the gap.
    ///
    /// The alarm is for heartbeats: the object's own ([`Alarm::raw`]), or a slot of its schedule. Whoever gives it calls
    /// [`on_alarm`](Self::on_alarm) when it comes.
    pub fn new(state: &S, settings: Settings, alarm: impl Into<Alarm<S>>) -> Self {
        Self::make(state, settings, alarm.into(), None)
    }

    /// A feed whose history is in the object's own database: clients resume behind evictions, restarts and crashes. Without
    /// a history in the settings it has the [default](crate::History::new) one.
    ///
    /// What is published is kept before it is sent. Whatever is gone that was sent ends the epoch: when a transaction around
    /// a publish is rolled back, or everything is deleted, all streams end, and their clients come back and are told `reset`.
    /// Publish behind a transaction rather than in it: when the process dies between a rollback and the end of its turn,
    /// nobody knows any more that the number was sent, and it is given again.
    ///
    /// The alarm is also for events that are older than [`History::max_age`](crate::History::max_age): they are not shown any
    /// more, and are deleted by [`on_alarm`](Self::on_alarm) somewhat later, many at once.
    ///
    /// | | rows read | rows written |
    /// |---|---|---|
    /// | [`publish`](Self::publish) | 1, and 1 for all of a turn | 1, and 1 for its deletion some day |
    /// | a client that comes | 1 | 0 |
    /// | the first one of an instance that missed something that is not in memory | all of the history | 0 |
    /// | [`on_alarm`](Self::on_alarm) | 1; some more when something is too old | those that are deleted |
    ///
    /// Deletions come in eighths of a bound, and each reads some 2 to 40 rows more. The table's name is `_feed_log`; it is
    /// made with the first use.
    pub fn stored(state: &S, settings: Settings, alarm: impl Into<Alarm<S>>) -> Self {
        Self::stored_as(state, "feed", settings, alarm)
    }

    /// [`stored`](Self::stored) under another key than `feed`, up to 512 bytes of text: for objects with several feeds,
    /// each of which has a key of its own.
    pub fn stored_as(state: &S, key: &str, settings: Settings, alarm: impl Into<Alarm<S>>) -> Self {
        Self::make(state, stored::with_history(settings), alarm.into(), Some(key))
    }

    fn make(state: &S, settings: Settings, alarm: Alarm<S>, key: Option<&str>) -> Self {
        Self(Rc::new_cyclic(|this| {
            let stored =
                key.zip(settings.history.as_ref()).map(|(key, history)| Stored::new(state, key, history));
            Inner {
                state: state.clone(),
                core: Core::new(settings, state.random(), true),
                stored,
                alarm,
                this: Weak::clone(this),
                armed: Cell::new(None),
                wanted: Cell::new(None),
                is_alarmed: Cell::new(false),
                repaired: Cell::new(None),
                is_watching: Cell::new(false),
                presence: OnceCell::new(),
            }
        }))
    }

    /// Begins a stream for whoever sent this request. Nothing happens before [`Opening::start`].
    pub fn open<'a>(&'a self, request: &'a Request) -> Opening<'a, Self> {
        let mut opening = Opening::new(self, request, self.0.state.random());
        opening.admitted = self.0.identify(request);
        opening
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
    /// As [`Publication::send`]; of a [stored](Self::stored) feed also those of
    /// [`SqlStorage::exec`](do_core::SqlStorage::exec), and [`ErrorKind::Limit`](do_core::ErrorKind::Limit) above 2 MB.
    /// Nothing was sent then.
    pub fn publish(&self, event: impl Into<Event>) -> Result<Published, Error> {
        self.publishing(event).send()
    }

    /// Sends to the connections with this id, in order with all else.
    #[allow(clippy::must_use_candidate)] // the report is for those who want it
    pub fn send_to(&self, id: &str, event: impl Into<Event>) -> BroadcastReport {
        self.broadcast(event).only(id).send()
    }

    /// What an object does when the feed's alarm comes: sends the heartbeats that are due, ends the connections that are
    /// too old or stand still, deletes the events of a [stored](Self::stored) history that are too old, and sets the alarm
    /// for what is due next. When nobody is there, and no event will be too old, it sets nothing: the chain ends, and begins
    /// anew with whoever comes next. Right at any other time too.
    ///
    /// # Errors
    /// Those of the alarm and of the history. Return it from the handler: the run counts as failed and is tried again, and
    /// the heartbeats go on.
    ///
    /// # Cancellation
    /// All but the setting of the alarm happens at the first poll.
    pub async fn on_alarm(&self) -> Result<(), Error> {
        let inner = &*self.0;
        inner.armed.set(None);
        inner.wanted.set(None);
        let _alarmed = Alarmed::of(&inner.is_alarmed);
        let due = inner.core.tick(inner.now());
        let expires = inner.stored.as_ref().map_or(Ok(None), |stored| stored.expire(inner));
        inner.sent();
        let ages = expires.as_ref().ok().copied().flatten();
        if let Some(due) = due.into_iter().chain(ages).min() {
            inner.arm(due).await?;
        }
        expires.map(drop)
    }

    /// Ends the connections with this id behind what waits for them. How many.
    #[allow(clippy::must_use_candidate)] // nobody needs it
    pub fn close(&self, id: &str) -> usize {
        let closed = self.0.core.close(id);
        self.0.sent();
        closed
    }

    /// Ends all connections behind what waits for them. How many. Their clients come back.
    #[allow(clippy::must_use_candidate)] // nobody needs it
    pub fn close_all(&self) -> usize {
        let closed = self.0.core.close_all();
        self.0.sent();
        closed
    }

    /// How many connections are open.
    pub fn count(&self) -> usize {
        self.0.core.count()
    }

    /// The open connections, in the order of their coming.
    pub fn infos(&self) -> Vec<Info> {
        self.0.core.infos()
    }

    /// What it did since this instance began, and what waits.
    pub fn stats(&self) -> Stats {
        self.0.core.stats()
    }

    /// What a [stored](Self::stored) history cost since this instance began; nothing without one.
    pub fn history_stats(&self) -> journal::Stats {
        self.0.stored.as_ref().map(Stored::stats).unwrap_or_default()
    }

    /// The position of the newest event; `None` without a history.
    ///
    /// Of a [stored](Self::stored) feed it begins the history when there is none, and ends the streams when numbers that were
    /// sent are gone.
    ///
    /// # Errors
    /// Of a [stored](Self::stored) feed those of [`SqlStorage::exec`](do_core::SqlStorage::exec); none else.
    pub fn position(&self) -> Result<Option<Position>, Error> {
        match &self.0.stored {
            Some(stored) => {
                let position = stored.position(&self.0).map(Some);
                self.0.sent();
                position
            }
            None => Ok(self.0.core.position()),
        }
    }
}

impl<S: ObjectState> Opening<'_, Feed<S>> {
    /// Begins the stream: gives the response to return from `fetch`. Who cannot be let in now gets one that says when to
    /// come back: when there is no place, when the alarm cannot be set, or when a stored history cannot be read. Who is
    /// refused by the [registry](Feed::connections) gets what [`refuse`](Self::refuse) says. Where the settings say [which
    /// origins](crate::Settings::cors) may come, others get 403, and a CORS [preflight](crate::preflight) is answered.
    ///
    /// # Errors
    /// Those of the snapshot and the backlog. Nobody is in then.
    ///
    /// # Cancellation
    /// Dropped before it is done, nobody is in.
    pub async fn start(self) -> Result<Response, Error> {
        let feed = &*self.feed.0;
        let mut response = Response::new(Body::empty());
        // First of all: a preflight brings no cookies, and nobody is to be found out by it.
        if let Some((status, headers)) = self.preflight(&feed.core) {
            (*response.status_mut(), *response.headers_mut()) = (status, headers);
            return Ok(response);
        }
        if self.is_foreign(&feed.core) {
            return Ok(self.refuse(Refusal::Forbidden));
        }
        let admitted = match self.admitted.clone() {
            Ok(admitted) => admitted,
            Err(refusal) => return Ok(self.refuse(refusal)),
        };
        self.write_headers(&feed.core, response.headers_mut());
        if self.is_head() {
            return Ok(response);
        }
        if let Err(refusal) = feed.check_place(&admitted, self.wanted_id()) {
            return Ok(self.send_away(refusal));
        }
        let is_armed = match feed.core.has_place(self.wanted_id()) {
            true => feed.arm(feed.now() + feed.core.first_due(self.random())).await,
            false => Ok(()), // nobody comes
        };
        // Others came meanwhile.
        if let Err(refusal) = feed.check_place(&admitted, self.wanted_id()) {
            return Ok(self.send_away(refusal));
        }
        // Without an await to what follows: nothing falls in between.
        let is_ready = is_armed.and_then(|()| match &feed.stored {
            Some(stored) if !self.has_backlog() => stored.prepare(feed, &self.asked),
            _ => Ok(()),
        });
        let now = feed.now();
        let random = feed.state.random();
        let stream = match is_ready {
            Err(error) => {
                tracing::warn!(%error, "a client is sent away: no alarm can be set for it, or the history not be read");
                feed.core.sent_away();
                feed.core.later(random, now)
            }
            Ok(()) => match self.arrive(&feed.core, now)? {
                Some(opened) => {
                    if let Some((serial, id)) = &opened.joined {
                        feed.tell_joined(*serial, id, &admitted);
                    }
                    opened.stream
                }
                None => feed.core.later(random, now),
            },
        };
        feed.sent();
        feed.watch();
        *response.body_mut() = Body::from_http(stream);
        Ok(response)
    }

    /// There is no place in the registry.
    fn send_away(self, refusal: Refusal) -> Response {
        self.feed.0.core.sent_away();
        self.refuse(refusal)
    }
}

/// That the alarm came and is about to be set again, until it is or the handler is dropped.
struct Alarmed<'a>(&'a Cell<bool>);

impl<'a> Alarmed<'a> {
    fn of(flag: &'a Cell<bool>) -> Self {
        flag.set(true);
        Self(flag)
    }
}

impl Drop for Alarmed<'_> {
    fn drop(&mut self) {
        self.0.set(false);
    }
}

impl<S: ObjectState> Inner<S> {
    /// Sees to it that the alarm comes at this time or before.
    async fn arm(&self, at: Timestamp) -> Result<(), Error> {
        let now = self.state.now();
        if self.armed.get().is_some_and(|armed| armed <= at && armed + LATE > now) {
            return Ok(());
        }
        if at.as_millis() > limits::ALARM_MAX_MS {
            self.armed.set(Some(at));
            return Ok(()); // as good as never
        }
        // Not for now or earlier, which may be late (rule E4b). Only earlier: others may share it.
        let at = at.max(now + Duration::from_millis(1));
        let mut setting =
            self.wanted.get().filter(|wanted| *wanted > now).map_or(at, |wanted| wanted.min(at));
        self.wanted.set(Some(setting));
        loop {
            if let Err(error) = self.alarm.set_earlier(setting).await {
                self.wanted.set(None);
                return Err(error);
            }
            // Another one may have been set meanwhile, and this one over it.
            match self.wanted.get() {
                Some(sooner) if sooner < setting => setting = sooner,
                _ => break,
            }
        }
        self.wanted.set(None);
        self.armed.set(Some(setting));
        Ok(())
    }

    /// The alarm was lost: deleted with everything else, or given up after it had failed too often. Tried once in a while.
    fn arm_later(&self, now: Timestamp) {
        if self.repaired.get().is_some_and(|since| since + LATE > now) {
            return;
        }
        self.repaired.set(Some(now));
        self.armed.set(None);
        let this = Weak::clone(&self.this);
        self.state.wait_until(async move {
            let Some(inner) = this.upgrade() else { return };
            match inner.arm(now + Duration::from_millis(1)).await {
                Ok(()) => inner.repaired.set(None),
                Err(error) => {
                    tracing::warn!(%error, "the alarm of a feed's heartbeats cannot be set; it is tried again later");
                }
            }
        });
    }

    /// Waits for those who go, so that others are told at once.
    fn watch(&self) {
        if self.core.count() == 0 || self.is_watching.replace(true) {
            return;
        }
        let watched = Weak::clone(&self.this);
        let shared = self.core.shared();
        self.state.wait_until(async move {
            loop {
                let is_over = || watched.upgrade().is_none_or(|inner| inner.core.count() == 0);
                // Those who went may have been found by somebody else, who had no time to tell.
                let is_news = || watched.upgrade().is_some_and(|inner| inner.core.has_removed());
                poll_fn(|cx| match shared.poll_departed(cx) {
                    Poll::Pending if !is_over() && !is_news() => Poll::Pending,
                    _ => Poll::Ready(()),
                })
                .await;
                let Some(inner) = watched.upgrade() else { return };
                inner.sent();
                if inner.core.count() == 0 {
                    inner.is_watching.set(false);
                    return;
                }
            }
        });
    }
}

impl<S: ObjectState> Sender for Inner<S> {
    fn core(&self) -> &Core {
        &self.core
    }

    fn now(&self) -> Timestamp {
        self.state.now()
    }

    fn publish(&self, event: &Event, topics: Vec<Arc<str>>) -> Result<Published, Error> {
        match &self.stored {
            Some(stored) => stored.publish(self, event, topics, self.now()),
            None => self.core.publish(event, topics, self.now()),
        }
    }

    fn sent(&self) {
        let gone = self.core.take_removed();
        self.tell_removed(&gone);
        let is_empty = self.core.count() == 0;
        if is_empty && !gone.is_empty() {
            self.core.nudge(); // nobody is left to wait for
        }
        let now = self.now();
        let is_lost = match self.armed.get() {
            Some(armed) => armed + LATE < now,
            None => !self.is_alarmed.get(), // it could not be set, or went with everything else
        };
        if !is_empty && is_lost {
            self.arm_later(now);
        }
    }
}

impl<S: ObjectState> Owner for Feed<S> {
    fn core(&self) -> &Core {
        &self.0.core
    }
}

impl<S: ObjectState> Clone for Feed<S> {
    fn clone(&self) -> Self {
        Self(Rc::clone(&self.0))
    }
}

/// Not derived, because states need not have it.
impl<S: ObjectState> fmt::Debug for Feed<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Feed").field("connections", &self.count()).finish_non_exhaustive()
    }
}
