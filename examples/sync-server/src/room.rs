use crate::{
    answer,
    change::{self, BATCH, BODY_BYTES, Change, PATH_BYTES, Recorded, Refused},
};
use do_core::{Connection, Connections, Peer, limits, offers_protocol, prelude::*, tag};
use do_sse::Feed;
use do_sync::{Event, History, Inbound, OnFull, Outbound, Refusal, Room};
use serde::{Deserialize, Serialize};
use std::rc::{Rc, Weak};

mod events;

/// The sub-protocol of those who follow: the protocol of `do_sync`, by which a client resumes.
pub(crate) const PROTOCOL: &str = "do-sync.1";

/// How many changes a joiner is shown.
const RECENT: u64 = 100;

/// How many changes are kept.
const KEPT: u64 = 1_000;

/// How long changes are kept.
const KEPT_FOR: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// The longest frame of a change: two paths of which JSON escapes every byte in six, and what stands around them.
const FRAME_BYTES: u64 = 2 * 6 * PATH_BYTES as u64 + 512;

/// What may wait for one editor in bytes, what the host holds included; the host's own bound is the same natively.
///
/// One full report, which is sent at once, is at most 170 KiB: its paths are no longer in frames than in the body, and a
/// frame has 100 bytes beside. So an editor that keeps up may be six of them behind before it counts as slow.
const WAITING_BYTES: usize = 1_024 * 1_024;

/// The same in messages: all but the first 64 KiB of a full report waits in the room until the turn is over, and an
/// editor that is still busy with the one before must not be closed for it.
const WAITING_MESSAGES: usize = 4 * BATCH;

/// A data folder of the time before the first release may have the tables of an earlier version, whose numbers nobody
/// could resume. They are dropped, and the numbers begin anew. The step that made them is not run any more.
const MIGRATIONS: &[&str] =
    &["SELECT 'made the tables'", "DROP TABLE IF EXISTS changes; DROP TABLE IF EXISTS counter"];

/// The object of one watched root: numbers its changes, keeps the latest and sends them to every editor.
///
/// It answers `GET /ws` (join), `GET /events` (read along) and `POST /notify` (report changes). Who may ask is decided before, in
/// [`route`](crate::route()).
///
/// Editors that offer the sub-protocol `do-sync.1` follow the room as the protocol of `do_sync` has it: what they missed
/// comes first, each change is a published value, and the count of editors is the event `{"editors":2}`. They are no
/// members, so that all numbers are those of changes. The others get the messages of this server's own interface.
///
/// Those who read along by server-sent events count as editors. The room's history is theirs too: the id of a change is its
/// position in the room, from which they go on.
///
/// # Alarm
/// A schedule with two slots: in one the room deletes changes that are too old, in the other the streams of events get their
/// heartbeats.
#[derive(Debug)]
pub struct SyncRoom<S: ObjectState>(Rc<Inner<S>>);

#[derive(Debug)]
struct Inner<S: ObjectState> {
    room: Room<S>,
    feed: Feed<S>,
    /// All who are in the one or the other.
    connections: Connections<S>,
    schedule: Schedule<S>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Outgoing {
    Hello { editors: usize, recent: Vec<Recorded> },
    Editors { editors: usize },
}

/// What editors say beside pings: nothing.
#[derive(Debug, Deserialize)]
enum Incoming {}

/// The tag of editors that speak this server's own interface. Those that follow are all others.
fn plain() -> Tag {
    tag!("plain")
}

impl<S: ObjectState> DurableObject<S> for SyncRoom<S> {
    fn new(state: S) -> Result<Self> {
        state.sql().migrate(MIGRATIONS)?;
        let schedule = Schedule::open(&state)?;
        let inner = Rc::new_cyclic(|inner| Inner::new(&state, schedule, inner));
        inner.room.auto_ping("ping", "pong")?;
        Ok(Self(inner))
    }

    async fn fetch(&self, request: Request) -> Result<Response> {
        match (request.method(), request.uri().path()) {
            (&Method::GET, "/ws") => self.0.join(&request),
            (&Method::GET | &Method::HEAD, "/events") => self.0.read_along(&request).await,
            (&Method::POST, "/notify") => self.0.notify(request).await,
            _ => Ok(answer::error(
                StatusCode::NOT_FOUND,
                "the room knows GET /ws, GET /events and POST /notify",
            )),
        }
    }

    async fn alarm(&self, info: AlarmInfo) -> Result<()> {
        let run = async |job: Job| match job.name() {
            "room" => Ok(self.0.room.on_alarm().await?),
            "beat" => Ok(self.0.feed.on_alarm().await?),
            _ => job.unknown(),
        };
        self.0.schedule.run_due(info, run).await?;
        if self.0.schedule.get("room")?.is_none() {
            // There is no change, or the room set its alarm in an earlier version, where it had it for itself.
            self.0.room.on_alarm().await?;
        }
        Ok(())
    }

    async fn websocket_message(&self, socket: SocketOf<S>, message: Message) -> Result<()> {
        if !self.0.room.answer_ping(&socket, &message) {
            self.0.room.receive::<Incoming>(&socket, &message); // logs it: editors have nothing to say
        }
        Ok(())
    }

    async fn websocket_close(&self, socket: SocketOf<S>, _: Close) -> Result<()> {
        self.0.part(&socket).await
    }

    async fn websocket_error(&self, socket: SocketOf<S>, _: Error) -> Result<()> {
        self.0.part(&socket).await
    }
}

impl<S: ObjectState> Inner<S> {
    fn new(state: &S, schedule: Schedule<S>, inner: &Weak<Self>) -> Self {
        let of_streams = || {
            let inner = Weak::clone(inner);
            // Sockets are told of where they are greeted and part.
            move |who: &Connection<'_, S>| {
                if let (Peer::Stream(_), Some(inner)) = (&who.peer, inner.upgrade()) {
                    inner.tell_of_stream();
                }
            }
        };
        let connections = Connections::new(state).max(limits::SOCKETS_PER_OBJECT);
        let connections = connections.on_join(of_streams()).on_leave(of_streams());
        let history = History::new().max_messages(KEPT).max_bytes(KEPT * FRAME_BYTES);
        let outbound = Outbound::new().max_bytes(WAITING_BYTES).max_messages(WAITING_MESSAGES);
        let room = Room::new(state)
            .history(history.max_age(KEPT_FOR).replay(RECENT))
            // Of the counts only the latest matters; a change has no key, so that none is ever left out.
            .outbound(outbound.on_full(OnFull::LatestPerKey))
            // Editors have nothing to say; whatever they do say is ignored.
            .inbound(Inbound::new().max_bytes(limits::MESSAGE_BYTES))
            .connections(&connections)
            .alarm(schedule.slot("room"));
        let streams = do_sse::Settings::new().max_bytes(WAITING_BYTES).max_events(WAITING_MESSAGES);
        let streams = streams.on_full(do_sse::OnFull::LatestPerKey); // as with sockets
        let feed = Feed::new(state, streams, schedule.slot("beat")).connections(&connections);
        Self { room, feed, connections, schedule }
    }

    /// The new editor is greeted and the others are told, all in one turn: no change falls between the recent
    /// ones and the first that is sent to it.
    fn join(&self, request: &Request) -> Result<Response> {
        if let Some(refusal) = Refusal::of(request) {
            return Ok(refusal.response(answer::error(refusal.status(), &refusal.to_string())));
        }
        if offers_protocol(request, PROTOCOL) { self.follow(request) } else { self.greet(request) }
    }

    fn follow(&self, request: &Request) -> Result<Response> {
        let before = self.connections.count();
        let response = match self.room.following(request, Accept::new().protocol(PROTOCOL)).done() {
            Ok(response) => response,
            Err(error) => return turned_away(error),
        };
        let editors = self.connections.count();
        // The newcomer is told as well: the count is not in its hello. One that is to come back for the rest of what it
        // missed is not in yet.
        if editors != before {
            self.tell(editors, None)?;
        }
        Ok(response)
    }

    fn greet(&self, request: &Request) -> Result<Response> {
        let recent = self.recent()?;
        let (response, socket) = match self.room.join(request, Accept::new().tag(plain())?) {
            Ok(joined) => joined,
            Err(error) => return turned_away(error),
        };
        let editors = self.connections.count();
        socket.send(Message::json(&Outgoing::Hello { editors, recent })?)?;
        self.tell(editors, Some(&socket))?;
        Ok(response)
    }

    async fn part(&self, socket: &SocketOf<S>) -> Result<()> {
        self.tell(self.room.count_without(socket) + self.connections.streams(), Some(socket))?;
        self.room.leave(socket).await?;
        Ok(())
    }

    /// How many editors there are now, to all of them but `socket`.
    fn tell(&self, editors: usize, socket: Option<&SocketOf<S>>) -> Result<()> {
        #[derive(Serialize)]
        struct Count {
            editors: usize,
        }
        let streamed = do_sse::Event::named("editors")?.json(&Outgoing::Editors { editors })?;
        let to_plain = self.room.broadcast(Message::json(&Outgoing::Editors { editors })?).to(plain());
        let to_others = self.room.broadcast(Event::new(&Count { editors })?).except_tag(plain());
        for broadcast in [to_plain, to_others] {
            let broadcast = broadcast.key("editors");
            match socket {
                Some(socket) => broadcast.except(socket).send(),
                None => broadcast.send(),
            };
        }
        self.feed.broadcast(streamed).key("editors").send();
        Ok(())
    }

    async fn notify(&self, request: Request) -> Result<Response> {
        let body = match request.into_body().bytes(BODY_BYTES).await {
            Ok(body) => body,
            Err(error) if error.kind() == ErrorKind::Limit => return Ok(too_large()),
            Err(_) => return Ok(answer::error(StatusCode::BAD_REQUEST, "the body ended early")),
        };
        let changes = match change::read_report(&body) {
            Ok(changes) => changes,
            Err(Refused::Malformed(reason)) => return Ok(answer::error(StatusCode::BAD_REQUEST, &reason)),
            Err(refused @ Refused::TooMany) => {
                return Ok(answer::error(StatusCode::PAYLOAD_TOO_LARGE, &refused.to_string()));
            }
        };
        #[derive(Serialize)]
        struct Answer {
            seq: u64,
        }
        // From here on everything is one turn: one commit, and nobody sees half of it.
        Ok(reply::json(&Answer { seq: self.record(changes)? })?)
    }

    /// Numbers, keeps and sends the changes, all or none; gives the number of the last.
    fn record(&self, changes: Vec<Change>) -> Result<u64> {
        let published = self.room.publish_all(&changes)?;
        // Made before the first is sent: a failure must not leave editors with a part of the report.
        let records = changes.into_iter().zip(&published).map(|(change, told)| {
            let record = change.record(told.position.seq(), told.at.as_millis());
            Ok((Message::json(&record)?, events::of(told.position, &record)?))
        });
        for (message, event) in records.collect::<Result<Vec<_>, Error>>()? {
            self.room.broadcast(message).to(plain()).send();
            self.feed.broadcast(event).send();
        }
        Ok(published.last().map_or(0, |last| last.position.seq()))
    }

    /// The latest changes, oldest first.
    fn recent(&self) -> Result<Vec<Recorded>> {
        let kept = self.room.messages(None, RECENT)?;
        let mut recent = Vec::with_capacity(kept.entries.len());
        for entry in kept.entries {
            if let Some(change) = entry.value::<Change>()? {
                recent.push(change.record(entry.position.seq(), entry.at.as_millis()));
            }
        }
        Ok(recent)
    }
}

/// The answer to an editor whom the room did not take.
fn turned_away(error: Error) -> Result<Response> {
    if error.kind() == ErrorKind::Limit {
        return Ok(answer::error(StatusCode::SERVICE_UNAVAILABLE, "the room is full"));
    }
    Err(error.into())
}

pub(crate) fn too_large() -> Response {
    answer::error(StatusCode::PAYLOAD_TOO_LARGE, "the body is longer than 64 KiB")
}

/// The requests that report changes to the room, in order: as few as its limits allow, each one commit.
///
/// For publishers that have the object's stub, such as the watcher. Send the next one only when the one before
/// is answered, or their order is not certain.
///
/// # Errors
/// None that input can cause: a valid [`Change`] fits a request.
pub fn notify_requests(changes: impl IntoIterator<Item = Change>) -> Result<Vec<Request>, Error> {
    let mut requests = Vec::new();
    let (mut body, mut count) = (Vec::new(), 0);
    for change in changes {
        let json = serde_json::to_vec(&change)
            .map_err(|e| Error::new(ErrorKind::Invalid, "not expressible as JSON").with_source(e))?;
        // The brackets, and the comma before this one.
        if count == BATCH || (count > 0 && body.len() + json.len() + 2 > BODY_BYTES) {
            requests.push(notify_request(std::mem::take(&mut body))?);
            count = 0;
        }
        body.push(if count == 0 { b'[' } else { b',' });
        body.extend_from_slice(&json);
        count += 1;
    }
    if count > 0 {
        requests.push(notify_request(body)?);
    }
    Ok(requests)
}

fn notify_request(mut list: Vec<u8>) -> Result<Request, Error> {
    list.push(b']');
    http::Request::post("http://room/notify")
        .header(http::header::CONTENT_TYPE, "application/json")
        .body(list.into())
        .map_err(|e| Error::new(ErrorKind::Invalid, "not a request").with_source(e))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        change::{Kind, PATH_BYTES},
        ready,
    };

    fn reports(changes: Vec<Change>) -> Vec<Vec<Change>> {
        let requests = notify_requests(changes).unwrap();
        let read = |request: Request| {
            let body = ready(request.into_body().bytes(BODY_BYTES)).unwrap();
            change::read_report(&body).unwrap()
        };
        requests.into_iter().map(read).collect()
    }

    #[test]
    fn changes_are_reported_in_as_few_requests_as_the_limits_allow() {
        assert_eq!(reports(Vec::new()).len(), 0);
        let short = vec![Change::new(Kind::Created, "a").unwrap(); 2 * BATCH + 1];
        assert_eq!(reports(short).iter().map(Vec::len).collect::<Vec<_>>(), [BATCH, BATCH, 1]);

        let worst = "\u{1}".repeat(PATH_BYTES);
        let long = vec![Change::renamed(worst.clone(), worst).unwrap(); 3];
        let sent = reports(long.clone());
        assert_eq!(sent.len(), 3);
        assert_eq!(sent.concat(), long);

        let mixed: Vec<_> =
            (0..500).map(|n| Change::new(Kind::Modified, "x".repeat(1 + n * 7)).unwrap()).collect();
        assert_eq!(reports(mixed.clone()).concat(), mixed);
    }

    #[test]
    fn frames_have_the_form_of_the_interface() {
        let json = |message: &Outgoing| serde_json::to_string(message).unwrap();
        let recent = vec![Change::new(Kind::Removed, "x").unwrap().record(3, 9)];
        assert_eq!(
            json(&Outgoing::Hello { editors: 2, recent }),
            r#"{"type":"hello","editors":2,"recent":[{"type":"change","seq":3,"kind":"removed","path":"x","at":9}]}"#
        );
        assert_eq!(json(&Outgoing::Editors { editors: 1 }), r#"{"type":"editors","editors":1}"#);
    }
}
