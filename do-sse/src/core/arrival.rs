//! Somebody comes.

use super::{
    core::{Core, Inner},
    deliver::Held,
    registry::{Entry as Place, Info},
    ring::{PAGE, Point, Replay},
};
use crate::{
    Event, OnDuplicate,
    connection::{Connection, Entry, EventStream, Kind},
    stats::Cause,
};
use bytes::Bytes;
use do_core::{Error, Gap, Position, Timestamp, base36::Base36};
use serde::Serialize;
use serde_json::value::RawValue;
use std::{sync::Arc, time::Duration};

/// For how long a client that was replaced is told to stay away.
const REPLACED: Duration = Duration::from_secs(60 * 60);

/// After how long a client that got a page of a replay comes back for the next.
const NEXT_PAGE: Duration = Duration::from_millis(10);

/// What somebody asks to be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Asked {
    /// Whoever comes for the first time.
    Fresh,
    /// All behind what they had, in their words.
    After(String),
}

/// Somebody on their way in.
#[derive(Debug, Default)]
pub(crate) struct Arrival {
    /// `None`: drawn at random.
    pub(crate) id: Option<Arc<str>>,
    pub(crate) topics: Vec<Arc<str>>,
    /// What the application shows instead of a history.
    pub(crate) backlog: Option<Backlog>,
    /// The state of things, for who cannot go on.
    pub(crate) snapshot: Option<Snapshot>,
    /// There is none yet, and the application can be asked for it.
    pub(crate) can_ask: bool,
    /// For ids and jitter.
    pub(crate) random: u64,
}

/// The state of things.
#[derive(Debug)]
pub(crate) struct Snapshot {
    /// What it is right at, or somewhat after.
    pub(crate) at: Option<Position>,
    pub(crate) json: String,
}

/// What an application shows from a history of its own.
///
/// Events that are to be resumed from have ids.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Backlog {
    /// Something that was asked for is gone.
    pub gap: Option<Gap>,
    /// The id of what is right before the first of the events, for a client whose stream breaks before it had one.
    pub from: Option<String>,
    /// In their order.
    pub events: Vec<Event>,
    /// There are more than these: the stream ends behind them, and its client comes back for the rest at once. Those that
    /// are longer together than what goes over one connection (512 KiB) are cut off there anyhow, so that nobody needs to read
    /// a long history as a whole.
    pub has_more: bool,
}

/// Somebody who is in.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) stream: EventStream,
    /// The number and the id of the connection; `None` for one that ends with a page of a replay.
    pub(crate) joined: Option<(u64, Arc<str>)>,
}

/// Why somebody is not in.
#[derive(Debug)]
pub(crate) enum NotIn {
    /// There is no place.
    SentAway,
    /// Other threads published meanwhile, so that there is a gap now: first the snapshot is to be asked for.
    Outdated(Box<Arrival>),
}

/// The data of the event `ready`.
#[derive(Serialize)]
struct Ready<'a> {
    connection: &'a str,
}

/// The data of the event `reset`.
#[derive(Serialize)]
struct Reset<'a> {
    lost: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    snapshot: Option<&'a RawValue>,
}

impl Core {
    /// Whether one more can come.
    pub(crate) fn has_place(&self, id: Option<&str>) -> bool {
        let inner = self.inner();
        self.has_place_in(&inner, id)
    }

    fn has_place_in(&self, inner: &Inner, id: Option<&str>) -> bool {
        let same = id.map_or(0, |id| inner.registry.with_id(id).len());
        let leaving = match self.settings.on_duplicate {
            OnDuplicate::Replace => same,
            OnDuplicate::Allow => 0,
            OnDuplicate::Reject if same > 0 => return false,
            OnDuplicate::Reject => 0,
        };
        self.settings.max_connections.is_none_or(|most| inner.registry.len() - leaving < most)
    }

    /// Counts somebody who is sent away for another reason than that there is no place.
    pub(crate) fn sent_away(&self) {
        self.inner().stats.sent_away += 1;
    }

    /// Lets somebody in: from here on they get everything that is sent, behind what they are told first.
    pub(crate) fn open(
        &self,
        arrival: Arrival,
        asked: &Asked,
        now: Timestamp,
    ) -> Result<Result<Opened, NotIn>, Error> {
        let mut inner = self.inner();
        let inner = &mut *inner;
        if !self.has_place_in(inner, arrival.id.as_deref()) {
            inner.stats.sent_away += 1;
            return Ok(Err(NotIn::SentAway));
        }
        let serial = inner.registry.next();
        let id = arrival.id.clone().unwrap_or_else(|| drawn(inner, arrival.random));
        let Some((preface, is_page)) = self.preface(inner, &arrival, &id, asked, now)? else {
            return Ok(Err(NotIn::Outdated(Box::new(arrival))));
        };
        let (ticket, held) = self.ticket(&mut inner.issued);
        if self.settings.on_duplicate == OnDuplicate::Replace {
            replace(inner, &id, (ticket, held.as_ref()), now, self);
        }
        let connection = Connection::new(serial, &self.shared, now);
        connection.begin(preface, ticket);
        inner.stats.opened += 1;
        let stream = EventStream::new(Arc::clone(&connection));
        let joined = (!is_page).then(|| (serial, Arc::clone(&id)));
        if is_page {
            connection.drain();
            inner.stats.ended(Cause::Closed);
        } else {
            let info = Info { id: Arc::clone(&id), topics: arrival.topics.into(), since: now };
            let ends = self.age(arrival.random).map(|age| now + age);
            inner
                .registry
                .insert(serial, Place { connection: Arc::clone(&connection), info, ends, quiet_since: now });
        }
        match held {
            Some(held) => held.borrow_mut().push(connection),
            None => connection.wake(),
        }
        Ok(Ok(Opened { stream, joined }))
    }

    /// How old a connection gets.
    fn age(&self, random: u64) -> Option<Duration> {
        self.settings.max_age.map(|age| jittered(age, random))
    }

    /// How soon after its beginning something is to be done for a connection.
    pub(crate) fn first_due(&self, random: u64) -> Duration {
        self.age(random).unwrap_or(Duration::MAX).min(self.settings.heartbeat)
    }

    /// After how long a client comes back.
    fn retry(&self, random: u64) -> Duration {
        let retry = self.settings.retry;
        retry + retry.mul_f64(fraction(random.rotate_left(32)) / 2.0)
    }

    /// A stream for who is to come back later: the time, and the end.
    pub(crate) fn later(&self, random: u64, now: Timestamp) -> EventStream {
        let connection = Connection::new(0, &self.shared, now);
        connection.begin(vec![Event::new().retry(self.retry(random)).to_bytes()], 0);
        connection.drain();
        EventStream::new(connection)
    }

    /// Whether they have to be told the state of things.
    pub(crate) fn is_news_to(&self, asked: &Asked, backlog: Option<&Backlog>, now: Timestamp) -> bool {
        match (asked, backlog) {
            (Asked::Fresh, _) => true,
            (Asked::After(_), Some(backlog)) => backlog.gap.is_some(),
            (Asked::After(_), None) => self.inner().ring.as_mut().is_none_or(|ring| {
                ring.expire(now);
                !ring.can_resume(after(asked))
            }),
        }
    }

    /// Whether the ring will do for who asks for this, however much more is kept elsewhere.
    pub(crate) fn suffices(&self, asked: &Asked) -> bool {
        self.inner().ring.as_ref().is_none_or(|ring| ring.suffices(after(asked)))
    }

    /// What a newcomer is told first, in whole events, and whether that is all for this connection. `None` when they are to be
    /// told of a gap, and the snapshot is still to be asked for.
    fn preface(
        &self,
        inner: &mut Inner,
        arrival: &Arrival,
        id: &str,
        asked: &Asked,
        now: Timestamp,
    ) -> Result<Option<(Vec<Bytes>, bool)>, Error> {
        let Told { from, at, gap, events, is_page, is_resumed } = told(inner, arrival, asked, now);
        if gap.is_some() && arrival.can_ask {
            return Ok(None);
        }
        let retry = self.retry(arrival.random);
        let mut ready = Event::named("ready")?.retry(retry).json(&Ready { connection: id })?;
        if let Some(from) = from {
            ready = ready.id(from)?;
        }
        let mut preface = vec![ready.to_bytes()];
        let is_fresh = *asked == Asked::Fresh;
        if gap.is_some() || (is_fresh && arrival.snapshot.is_some()) {
            let snapshot =
                arrival.snapshot.as_ref().map(|snapshot| serde_json::from_str(&snapshot.json)).transpose();
            let snapshot: Option<&RawValue> = snapshot.map_err(|e| {
                do_core::Error::new(do_core::ErrorKind::Invalid, "the snapshot is no JSON").with_source(e)
            })?;
            let reset = Reset { lost: gap.and_then(|gap| gap.lost), snapshot };
            let mut event = Event::named("reset")?.json(&reset)?;
            if let Some(at) = at {
                event = event.id(at)?;
            }
            preface.push(event.to_bytes());
        }
        inner.stats.replayed += events.len() as u64;
        inner.stats.gaps += u64::from(gap.is_some());
        inner.stats.resumed += u64::from(is_resumed);
        preface.extend(events);
        if is_page {
            preface.push(Event::new().retry(NEXT_PAGE).to_bytes());
        }
        Ok(Some((preface, is_page)))
    }
}

/// What a newcomer is told of what was before.
struct Told {
    from: Option<String>,
    at: Option<String>,
    gap: Option<Gap>,
    events: Vec<Bytes>,
    is_page: bool,
    is_resumed: bool,
}

fn told(inner: &mut Inner, arrival: &Arrival, asked: &Asked, now: Timestamp) -> Told {
    if let Some(backlog) = &arrival.backlog {
        let (events, is_page) = page(&backlog.events, backlog.has_more);
        return Told {
            from: backlog.from.clone().filter(|_| backlog.gap.is_none()),
            at: backlog.from.clone(),
            gap: backlog.gap,
            events,
            is_page,
            is_resumed: backlog.gap.is_none() && *asked != Asked::Fresh,
        };
    }
    let Some(ring) = &mut inner.ring else {
        // Whoever had a position had it from elsewhere; nothing is known of what they missed.
        let gap = (*asked != Asked::Fresh && arrival.snapshot.is_some()).then_some(Gap { lost: None });
        return Told { from: None, at: None, gap, events: Vec::new(), is_page: false, is_resumed: false };
    };
    ring.expire(now);
    let Replay { from, gap, at, events, is_page, is_resumed } = ring.replay(
        after(asked),
        &arrival.topics,
        arrival.snapshot.as_ref().and_then(|snapshot| snapshot.at),
    );
    let text = |position: Position| position.to_string();
    Told { from: from.map(text), at: Some(text(at)), gap, events, is_page, is_resumed }
}

/// As many events as go over one connection, and whether there are more. Only behind one with an id can a client come
/// back for the rest.
fn page(events: &[Event], has_more: bool) -> (Vec<Bytes>, bool) {
    let (mut shown, mut length, mut can_resume) = (Vec::with_capacity(events.len()), 0, false);
    for event in events {
        let bytes = event.to_bytes();
        length += bytes.len();
        if length > PAGE && can_resume {
            return (shown, true);
        }
        can_resume = event.is_resumable();
        shown.push(bytes);
    }
    (shown, has_more && can_resume)
}

/// The position that is asked for.
fn after(asked: &Asked) -> Point {
    match asked {
        Asked::Fresh => Point::Newcomer,
        Asked::After(text) => text.parse().map_or(Point::Unknown, Point::After),
    }
}

/// Tells those with this id that another one came, and ends them.
fn replace(
    inner: &mut Inner,
    id: &Arc<str>,
    (ticket, held): (u64, Option<&Held>),
    now: Timestamp,
    core: &Core,
) {
    for serial in inner.registry.with_id(id) {
        let Some(place) = inner.remove(serial, Cause::Replaced) else { continue };
        if let Ok(event) = Event::named("replaced") {
            let bytes = event.retry(REPLACED).data("").to_bytes();
            let entry = Entry { bytes, kind: Kind::Preface, key: None, ticket };
            place.connection.push(entry, false, now, &core.limits);
        }
        place.connection.drain();
        if let Some(held) = held {
            held.borrow_mut().push(place.connection);
        }
    }
}

/// A name that nobody has.
fn drawn(inner: &Inner, random: u64) -> Arc<str> {
    let mut number = random;
    loop {
        let id = Base36(number).to_string();
        if !inner.registry.has_id(&id) {
            return id.into();
        }
        number = number.wrapping_add(1);
    }
}

/// Between 0 and 1.
fn fraction(random: u64) -> f64 {
    f64::from(u32::try_from(random >> 32).unwrap_or(0)) / f64::from(u32::MAX)
}

/// Between 80 and 100 % of an age.
fn jittered(age: Duration, random: u64) -> Duration {
    age.mul_f64(0.8 + 0.2 * fraction(random))
}
