//! The room on the real host with a clock that the test moves: what is kept, and for how long.

use crate::common::Place;
use do_core::{
    Namespace, Stub, Timestamp,
    tokio::{Host, HostStub, ManualClock},
};
use std::{ops::RangeInclusive, time::Duration};
use sync_server::{
    Change, SyncRoom,
    change::{BATCH, Kind},
    notify_requests,
};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
const SECOND: Duration = Duration::from_secs(1);
const MOMENT: Duration = Duration::from_millis(1);

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

    /// Lets what is due happen, ends the host and gives the numbers of what is kept.
    async fn kept(self, place: &Place) -> Option<RangeInclusive<i64>> {
        // What is due begins before a later request, and handlers that began end before the host.
        let request = http::Request::get("http://room/nothing").body(do_core::Body::empty()).unwrap();
        assert_eq!(self.room.fetch(request).await.unwrap().status(), 404);
        self.host.shutdown(Duration::from_secs(30)).await.unwrap();
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
async fn changes_are_kept_for_seven_days() {
    let (place, clock) = (Place::new(), a_clock());
    let running = Running::start(&place, &clock);
    running.notify(2).await;
    clock.advance(3 * DAY);
    running.notify(1).await;
    clock.advance(4 * DAY - MOMENT);
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
async fn more_than_a_thousand_changes_are_pruned_after_five_seconds() {
    let (place, clock) = (Place::new(), a_clock());
    let running = Running::start(&place, &clock);
    running.notify(BATCH).await;
    clock.advance(60 * SECOND);
    running.notify(5).await;
    clock.advance(5 * SECOND - MOMENT);
    assert_eq!(running.kept(&place).await, Some(1..=1_005));

    let running = Running::start(&place, &clock);
    clock.advance(MOMENT);
    assert_eq!(running.kept(&place).await, Some(6..=1_005));
}

#[tokio::test]
async fn a_busy_folder_does_not_put_pruning_off() {
    let (place, clock) = (Place::new(), a_clock());
    let running = Running::start(&place, &clock);
    running.notify(BATCH + 1).await;
    for _ in 0..4 {
        clock.advance(SECOND);
        running.notify(1).await;
    }
    clock.advance(SECOND);
    assert_eq!(running.kept(&place).await, Some(6..=1_005));
}

#[tokio::test]
async fn ten_thousand_too_many_are_pruned_at_once() {
    let (place, clock) = (Place::new(), a_clock());
    let running = Running::start(&place, &clock);
    running.notify(12 * BATCH).await;
    assert_eq!(running.kept(&place).await, Some(11_001..=12_000));
}

#[tokio::test]
async fn an_alarm_that_came_due_while_no_host_ran_fires_at_the_next_start() {
    let (place, clock) = (Place::new(), a_clock());
    let running = Running::start(&place, &clock);
    running.notify(BATCH + 7).await;
    assert_eq!(running.kept(&place).await, Some(1..=1_007));
    clock.advance(DAY);
    let running = Running::start(&place, &clock);
    assert_eq!(running.kept(&place).await, Some(8..=1_007));
}
