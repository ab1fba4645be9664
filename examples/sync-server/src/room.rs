use crate::{
    answer,
    change::{self, BATCH, BODY_BYTES, Change, Recorded, Refused},
};
use do_core::prelude::*;
use do_sync::{Refusal, Room};
use serde::{Deserialize, Serialize};

/// How many changes a joiner is shown.
const RECENT: u32 = 100;

/// How many changes are kept.
const KEPT: i64 = 1_000;

/// How long changes are kept.
const KEPT_FOR: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// How long changes beyond [`KEPT`] may stay, so that a busy folder is pruned in batches and not at each change.
const PRUNE_AFTER: Duration = Duration::from_secs(5);

/// With this many changes beyond [`KEPT`], pruning waits no longer.
const PRUNE_AT_ONCE: i64 = 10 * KEPT;

/// The number of the last change is kept apart from the changes: it must outlive their pruning, and a table with
/// `AUTOINCREMENT` would cost one more written row for each change instead of one for each report.
const MIGRATIONS: &[&str] = &["
    CREATE TABLE changes (
        seq INTEGER PRIMARY KEY, kind TEXT NOT NULL, path TEXT NOT NULL, at INTEGER NOT NULL, renamed_from TEXT
    );
    CREATE TABLE counter (last INTEGER NOT NULL);
    INSERT INTO counter VALUES (0)
"];

/// The object of one watched root: numbers its changes, keeps the latest and sends them to every editor.
///
/// It answers `GET /ws` (join) and `POST /notify` (report changes). Who may ask is decided before, in
/// [`route`](crate::route()).
///
/// # Alarm
/// While there are changes, the alarm is set to the time at which the oldest is too old, or to shortly after
/// there are too many. Setting it is repeated with each report, so a set that failed is made good by the next.
#[derive(Debug)]
pub struct SyncRoom<S: ObjectState> {
    state: S,
    room: Room<S>,
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

impl<S: ObjectState> DurableObject<S> for SyncRoom<S> {
    fn new(state: S) -> Result<Self> {
        state.sql().migrate(MIGRATIONS)?;
        let room = Room::new(&state);
        room.auto_ping("ping", "pong")?;
        Ok(Self { state, room })
    }

    async fn fetch(&self, request: Request) -> Result<Response> {
        match (request.method(), request.uri().path()) {
            (&Method::GET, "/ws") => self.join(&request),
            (&Method::POST, "/notify") => self.notify(request).await,
            _ => Ok(answer::error(StatusCode::NOT_FOUND, "the room knows GET /ws and POST /notify")),
        }
    }

    async fn alarm(&self, _: AlarmInfo) -> Result<()> {
        self.prune()?;
        // Last, because setting the alarm gives up the retries of this run (rule E10).
        match self.prune_at()? {
            Some(at) => Ok(self.state.alarms().set_earlier(at).await?),
            None => Ok(()),
        }
    }

    async fn websocket_message(&self, socket: SocketOf<S>, message: Message) -> Result<()> {
        if !self.room.answer_ping(&socket, &message) {
            self.room.receive::<Incoming>(&socket, &message); // logs it: editors have nothing to say
        }
        Ok(())
    }

    async fn websocket_close(&self, socket: SocketOf<S>, _: Close) -> Result<()> {
        self.tell_others(&socket, self.room.count_without(&socket))
    }

    async fn websocket_error(&self, socket: SocketOf<S>, _: Error) -> Result<()> {
        self.tell_others(&socket, self.room.count_without(&socket))
    }
}

impl<S: ObjectState> SyncRoom<S> {
    /// The new editor is greeted and the others are told, all in one turn: no change falls between the recent
    /// ones and the first that is broadcast to it.
    fn join(&self, request: &Request) -> Result<Response> {
        if let Some(refusal) = Refusal::of(request) {
            return Ok(refusal.response(answer::error(refusal.status(), &refusal.to_string())));
        }
        let recent = self.recent()?;
        let (response, socket) = match self.room.join(request, Accept::new()) {
            Ok(joined) => joined,
            Err(error) if error.kind() == ErrorKind::Limit => {
                return Ok(answer::error(StatusCode::SERVICE_UNAVAILABLE, "the room is full"));
            }
            Err(error) => return Err(error.into()),
        };
        let editors = self.room.count();
        socket.send(Message::json(&Outgoing::Hello { editors, recent })?)?;
        self.tell_others(&socket, editors)?;
        Ok(response)
    }

    /// How many editors there are now, to all of them but `socket`, which comes or goes.
    fn tell_others(&self, socket: &SocketOf<S>, editors: usize) -> Result<()> {
        self.room.broadcast(Message::json(&Outgoing::Editors { editors })?).except(socket).send();
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
        // Between here and the first await everything is one turn: one commit, and nobody sees half of it.
        let seq = self.record(changes)?;
        if let Some(at) = self.prune_at()?
            && let Err(error) = self.state.alarms().set_earlier(at).await
        {
            // The changes are recorded and sent, so the report succeeded; the next one sets the alarm again.
            tracing::error!(%error, "the alarm that prunes changes could not be set");
        }
        #[derive(Serialize)]
        struct Recorded {
            seq: i64,
        }
        Ok(reply::json(&Recorded { seq })?)
    }

    /// Numbers, keeps and broadcasts the changes, all or none; gives the number of the last.
    fn record(&self, changes: Vec<Change>) -> Result<i64> {
        let sql = self.state.sql();
        let at = self.state.now().as_millis();
        let recorded = sql.transaction(|| {
            let count = i64::try_from(changes.len())?;
            let last: i64 = sql
                .scalar("UPDATE counter SET last = last + CAST(? AS INTEGER) RETURNING last", (count,))?
                .ok_or_else(|| Failure::msg("the number of the last change is lost"))?;
            let mut recorded = Vec::with_capacity(changes.len());
            for (seq, change) in (last - count + 1..).zip(changes) {
                let change = change.record(seq, at);
                sql.exec(
                    "INSERT INTO changes (seq, kind, path, at, renamed_from) VALUES (?, ?, ?, ?, ?)",
                    (seq, change.kind.as_str(), change.path.as_str(), at, change.from.as_deref()),
                )?;
                recorded.push(change);
            }
            Ok(recorded)
        })?;
        // Made before the first is sent: a failure must not leave editors with a part of the report.
        let messages = recorded.iter().map(Message::json).collect::<Result<Vec<_>, Error>>()?;
        for message in messages {
            self.room.send_all(message);
        }
        Ok(recorded.last().map_or(0, |change| change.seq))
    }

    /// The latest changes, oldest first.
    fn recent(&self) -> Result<Vec<Recorded>> {
        let mut recent: Vec<Recorded> = self.state.sql().query(
            r#"SELECT seq, kind, path, at, renamed_from AS "from" FROM changes ORDER BY seq DESC LIMIT ?"#,
            (RECENT,),
        )?;
        recent.reverse();
        Ok(recent)
    }

    /// Deletes what is too old, and what is beyond the latest [`KEPT`].
    fn prune(&self) -> Result<()> {
        let expired = self.state.now() - KEPT_FOR;
        self.state.sql().exec(
            "DELETE FROM changes WHERE at <= ? OR seq <= (SELECT last FROM counter) - CAST(? AS INTEGER)",
            (expired, KEPT),
        )?;
        Ok(())
    }

    /// When there will be something to prune; `None` without changes.
    ///
    /// Numbers have no gaps, because all that are given are kept, so two of them give the count without reading
    /// the rows between.
    fn prune_at(&self) -> Result<Option<Timestamp>> {
        #[derive(Deserialize)]
        struct Oldest {
            at: Timestamp,
            count: i64,
        }
        let oldest: Option<Oldest> = self.state.sql().query_optional(
            "SELECT at, (SELECT last FROM counter) - seq + 1 AS count FROM changes ORDER BY seq LIMIT 1",
            (),
        )?;
        let now = self.state.now();
        Ok(oldest.map(|Oldest { at, count }| match count {
            beyond if beyond > KEPT + PRUNE_AT_ONCE => now,
            beyond if beyond > KEPT => now + PRUNE_AFTER,
            // After a run of the alarm this is in the future, so that it never runs in circles.
            _ => at + KEPT_FOR,
        }))
    }
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
