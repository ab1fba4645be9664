//! The room with a clock that the test moves: what is kept and shown, and for how long.

use crate::common::Place;
use do_core::{
    Namespace, Stub, Timestamp,
    kit::Kit,
    prelude::{Alarm, AlarmInfo, Body, DurableObject, ObjectState, Request, Response},
    tokio::{Host, HostStub, ManualClock},
};
use do_sse::{Decoded, Decoder};
use do_sync::{History, Room};
use http_body_util::BodyExt;
use rusqlite::Connection;
use serde_json::{Value, json};
use std::{ops::RangeInclusive, time::Duration};
use sync_server::{
    Change, SyncRoom,
    change::{BATCH, Kind},
    notify_requests,
};

const HOUR: Duration = Duration::from_secs(60 * 60);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
const MOMENT: Duration = Duration::from_millis(1);

/// How long a change stays in the file after it is shown no more, so that many are deleted at once.
const LATER: Duration = Duration::from_secs(21 * 60 * 60);

struct Running {
    host: Host,
    room: HostStub,
}

impl Running {
    fn start(place: &Place, clock: &ManualClock) -> Self {
        let builder = Host::builder(place.data()).shards(1).clock(clock.clone());
        let host = builder.object::<SyncRoom<_>>("SYNC_ROOM").start().unwrap();
        let room = host.namespace("SYNC_ROOM").unwrap().named("room").unwrap();
        Self { host, room }
    }

    async fn notify(&self, count: usize) {
        let changes = vec![Change::new(Kind::Modified, "x").unwrap(); count];
        for request in notify_requests(changes).unwrap() {
            assert_eq!(self.room.fetch(request).await.unwrap().status(), 200);
        }
    }

    /// Lets what is due happen and ends the host.
    async fn end(self) {
        // What is due begins before a later request, and handlers that began end before the host.
        let request = http::Request::get("http://room/nothing").body(Body::empty()).unwrap();
        assert_eq!(self.room.fetch(request).await.unwrap().status(), 404);
        self.host.shutdown(Duration::from_secs(30)).await.unwrap();
    }

    /// [`end`](Self::end), and the numbers of what is kept.
    async fn kept(self, place: &Place) -> Option<RangeInclusive<i64>> {
        self.end().await;
        let rows = place.rows();
        let range = rows.first()?.seq..=rows.last()?.seq;
        assert!(rows.iter().map(|row| row.seq).eq(range.clone()), "the numbers have gaps");
        Some(range)
    }
}

fn a_clock() -> ManualClock {
    ManualClock::at(Timestamp::from_millis(1_800_000_000_000))
}

#[tokio::test]
async fn changes_are_deleted_some_hours_after_seven_days() {
    let (place, clock) = (Place::new(), a_clock());
    let running = Running::start(&place, &clock);
    running.notify(2).await;
    clock.advance(3 * DAY);
    running.notify(1).await;
    clock.advance(4 * DAY + LATER - MOMENT);
    assert_eq!(running.kept(&place).await, Some(1..=3));

    let running = Running::start(&place, &clock);
    clock.advance(MOMENT);
    assert_eq!(running.kept(&place).await, Some(3..=3));
    let running = Running::start(&place, &clock);
    clock.advance(3 * DAY);
    assert_eq!(running.kept(&place).await, None);

    let running = Running::start(&place, &clock);
    running.notify(1).await;
    assert_eq!(running.kept(&place).await, Some(4..=4), "numbers outlive what they were given to");
}

#[tokio::test]
async fn more_than_a_thousand_changes_are_pruned_125_at_a_time() {
    let (place, clock) = (Place::new(), a_clock());
    let running = Running::start(&place, &clock);
    running.notify(BATCH + 124).await;
    assert_eq!(running.kept(&place).await, Some(1..=1_124));
    let running = Running::start(&place, &clock);
    running.notify(1).await;
    assert_eq!(running.kept(&place).await, Some(126..=1_125));
}

#[tokio::test]
async fn an_alarm_that_came_due_while_no_host_ran_fires_at_the_next_start() {
    let (place, clock) = (Place::new(), a_clock());
    let running = Running::start(&place, &clock);
    running.notify(7).await;
    assert_eq!(running.kept(&place).await, Some(1..=7));
    clock.advance(8 * DAY);
    let running = Running::start(&place, &clock);
    assert_eq!(running.kept(&place).await, None);
}

#[tokio::test]
async fn the_tables_of_an_earlier_version_are_dropped_and_numbers_begin_anew() {
    let (place, clock) = (Place::new(), a_clock());
    let running = Running::start(&place, &clock);
    running.end().await;
    let earlier = "
        UPDATE _migrations SET done = 1;
        CREATE TABLE changes (
            seq INTEGER PRIMARY KEY, kind TEXT NOT NULL, path TEXT NOT NULL, at INTEGER NOT NULL, renamed_from TEXT
        );
        CREATE TABLE counter (last INTEGER NOT NULL);
        INSERT INTO counter VALUES (41);
        INSERT INTO changes VALUES (41, 'created', 'x', 1800000000000, NULL)";
    Connection::open(place.room_file()).unwrap().execute_batch(earlier).unwrap();
    let running = Running::start(&place, &clock);
    running.notify(1).await;
    assert_eq!(running.kept(&place).await, Some(1..=1));
    let left = "SELECT count(*) FROM sqlite_master WHERE name IN ('changes', 'counter')";
    let room = Connection::open(place.room_file()).unwrap();
    assert_eq!(room.query_row(left, (), |row| row.get::<_, i64>(0)).unwrap(), 0);
}

#[test]
fn a_change_is_shown_for_seven_days_and_among_the_last_thousand() {
    let kit = Kit::builder().object::<SyncRoom<_>>("SYNC_ROOM").start().unwrap();
    kit.run(async {
        let room = kit.namespace("SYNC_ROOM").unwrap().named("room").unwrap();
        let notify = async |count: usize| {
            for request in notify_requests(vec![Change::new(Kind::Modified, "x").unwrap(); count]).unwrap() {
                assert_eq!(room.fetch(request).await.unwrap().status(), 200);
            }
        };
        // Those from before the first change on, whether they are plain or follow.
        let shown = async |after: &str| {
            let plain = kit.connect(&room, "/ws").await.unwrap();
            let hello: Value = serde_json::from_str(&plain.text().await.unwrap()).unwrap();
            let recent = hello["recent"].as_array().unwrap().iter();
            let recent: Vec<u64> = recent.map(|change| change["seq"].as_u64().unwrap()).collect();
            let (mut request, opening) = kit.handshake(&format!("/ws{after}")).unwrap();
            request.headers_mut().insert("sec-websocket-protocol", "do-sync.1".parse().unwrap());
            let follower = opening.open(room.fetch(request).await.unwrap()).unwrap();
            assert_eq!(follower.protocol(), Some("do-sync.1"));
            let hello: Value = serde_json::from_str(&follower.text().await.unwrap()).unwrap();
            (recent, hello)
        };
        let (recent, hello) = shown("").await;
        assert_eq!((recent, &hello["replay"]), (Vec::new(), &json!(0)));
        let after = format!("?after={}", hello["at"].as_str().unwrap());
        notify(2).await;
        kit.advance(HOUR).await;
        notify(1).await;
        kit.advance(7 * DAY - HOUR).await;
        let (recent, hello) = shown(&after).await;
        assert_eq!((recent, &hello["replay"], &hello["gap"]), (vec![1, 2, 3], &json!(3), &Value::Null));
        kit.advance(MOMENT).await;
        let (recent, hello) = shown(&after).await;
        assert_eq!((recent, &hello["replay"], &hello["gap"]["lost"]), (vec![3], &json!(1), &json!(2)));
        notify(1_001).await;
        let (recent, hello) = shown(&after).await;
        assert_eq!((recent.len(), recent[0], recent[99]), (100, 905, 1_004));
        assert_eq!((&hello["replay"], &hello["gap"]["lost"]), (&json!(1_000), &json!(4)));
    });
}

/// Somebody who reads along.
struct Reader {
    body: Body,
    decoder: Decoder,
}

impl Reader {
    async fn open(room: &HostStub, last: &str) -> Self {
        let request = http::Request::get("http://room/events").header("last-event-id", last);
        let response = room.fetch(request.body(Body::empty()).unwrap()).await.unwrap();
        Self { body: response.into_body(), decoder: Decoder::new() }
    }

    async fn next(&mut self) -> Decoded {
        loop {
            if let Some(event) = self.decoder.next_event().unwrap() {
                return event;
            }
            let chunk = self.chunk().await;
            self.decoder.push(&chunk).unwrap();
        }
    }

    async fn chunk(&mut self) -> Vec<u8> {
        self.body.frame().await.expect("the stream ended").unwrap().into_data().unwrap().to_vec()
    }

    /// The next events, each as its name and its data.
    async fn expect(&mut self, events: &[(&str, Value)]) {
        for (name, data) in events {
            let event = self.next().await;
            assert_eq!(
                (event.event.as_str(), &serde_json::from_str::<Value>(&event.data).unwrap()),
                (*name, data)
            );
        }
    }
}

fn editors(count: usize) -> (&'static str, Value) {
    ("editors", json!({ "type": "editors", "editors": count }))
}

#[test]
fn who_reads_along_is_counted_until_the_stream_is_gone_and_gets_heartbeats() {
    let kit = Kit::builder().object::<SyncRoom<_>>("SYNC_ROOM").start().unwrap();
    kit.run(async {
        let room = kit.namespace("SYNC_ROOM").unwrap().named("room").unwrap();
        let plain = kit.connect(&room, "/ws").await.unwrap();
        let told = async || serde_json::from_str::<Value>(&plain.text().await.unwrap()).unwrap();
        assert_eq!(told().await["editors"], 1);
        let mut reader = Reader::open(&room, "").await;
        assert_eq!(reader.next().await.event, "ready");
        reader.expect(&[editors(2)]).await;
        assert_eq!(told().await, editors(2).1);
        let mut other = Reader::open(&room, "").await;
        assert_eq!(other.next().await.event, "ready");
        for reader in [&mut reader, &mut other] {
            reader.expect(&[editors(3)]).await;
        }
        for _ in 0..3 {
            kit.advance(Duration::from_secs(15)).await;
            for reader in [&mut reader, &mut other] {
                assert_eq!(reader.chunk().await, b":\n\n");
            }
        }
        drop(other);
        assert_eq!((told().await, told().await), (editors(3).1, editors(2).1));
        reader.expect(&[editors(2)]).await;
        drop(reader);
        assert_eq!(told().await, editors(1).1);
        kit.advance(HOUR).await;
        assert_eq!(plain.try_receive(), None, "nobody else comes or goes");
    });
}

#[test]
fn who_comes_back_after_seven_days_is_told_what_is_lost() {
    let kit = Kit::builder().object::<SyncRoom<_>>("SYNC_ROOM").start().unwrap();
    kit.run(async {
        let room = kit.namespace("SYNC_ROOM").unwrap().named("room").unwrap();
        let notify = async |path: &str| {
            for request in notify_requests([Change::new(Kind::Modified, path).unwrap()]).unwrap() {
                assert_eq!(room.fetch(request).await.unwrap().status(), 200);
            }
        };
        let mut reader = Reader::open(&room, "").await;
        let ready = reader.next().await;
        let epoch = ready.id.strip_suffix("-0").unwrap().to_owned();
        drop(reader);
        notify("a").await;
        notify("b").await;
        kit.advance(HOUR).await;
        notify("c").await;
        kit.advance(7 * DAY - HOUR + MOMENT).await;
        let mut back = Reader::open(&room, &ready.id).await;
        assert_eq!((back.next().await.event.as_str(), back.decoder.last_event_id()), ("ready", ""));
        back.expect(&[("reset", json!({ "lost": 2 }))]).await;
        assert_eq!(back.decoder.last_event_id(), format!("{epoch}-2"));
        let event = back.next().await;
        let change: Value = serde_json::from_str(&event.data).unwrap();
        assert_eq!(
            (event.id, &change["seq"], &change["path"]),
            (format!("{epoch}-3"), &json!(3), &json!("c"))
        );
        back.expect(&[editors(1)]).await;
    });
}

/// The room as it was when it had the alarm for itself.
struct Earlier<S: ObjectState>(Room<S>);

impl<S: ObjectState> DurableObject<S> for Earlier<S> {
    fn new(state: S) -> do_core::prelude::Result<Self> {
        let history = History::new().max_messages(1_000).max_age(7 * DAY).replay(100);
        Ok(Self(Room::new(&state).history(history).alarm(Alarm::raw(&state))))
    }

    async fn fetch(&self, _: Request) -> do_core::prelude::Result<Response> {
        self.0.publish(&Change::new(Kind::Modified, "x")?)?;
        Ok(Response::new(Body::empty()))
    }

    async fn alarm(&self, _: AlarmInfo) -> do_core::prelude::Result<()> {
        Ok(self.0.on_alarm().await?)
    }
}

#[tokio::test]
async fn the_alarm_of_an_earlier_version_still_deletes_what_is_too_old() {
    for is_read_along in [false, true] {
        let (place, clock) = (Place::new(), a_clock());
        let builder = Host::builder(place.data()).shards(1).clock(clock.clone());
        let host = builder.object::<Earlier<_>>("SYNC_ROOM").start().unwrap();
        let room = host.namespace("SYNC_ROOM").unwrap().named("room").unwrap();
        room.fetch(http::Request::get("http://room/").body(Body::empty()).unwrap()).await.unwrap();
        host.shutdown(Duration::from_secs(30)).await.unwrap();

        clock.advance(DAY);
        let running = Running::start(&place, &clock);
        if is_read_along {
            // The alarm is used for heartbeats meanwhile.
            let mut reader = Reader::open(&running.room, "").await;
            assert_eq!(reader.next().await.event, "ready");
            assert_eq!(reader.next().await.event, "change");
            clock.advance(Duration::from_secs(15));
            while reader.chunk().await != b":\n\n" {}
        }
        assert_eq!(running.kept(&place).await, Some(1..=1));
        clock.advance(7 * DAY);
        let running = Running::start(&place, &clock);
        assert_eq!(running.kept(&place).await, None, "{is_read_along}");
    }
}
