//! Stores and a feed in one object: over a schedule each has its own alarm, over the object's one alarm they must not be.
#![cfg(not(target_arch = "wasm32"))]
#![allow(clippy::unwrap_used, clippy::panic)] // tests fail by panics

use do_core::{
    kit::{Kit, Strike},
    prelude::*,
    tokio::HostStub,
};
use do_sse::{Event, Feed};
use do_ttl::{Settings, Sweeper, Ttl, TtlStore};
use futures::FutureExt as _;
use http_body_util::BodyExt as _;

/// A board whose notes are there for some seconds, and are shown to who looks at it.
struct Board<S: ObjectState, const SCHEDULED: bool> {
    state: S,
    schedule: Option<Schedule<S>>,
    feed: Feed<S>,
    sweeper: Sweeper<S>,
    notes: TtlStore<S>,
}

impl<S: ObjectState, const SCHEDULED: bool> DurableObject<S> for Board<S, SCHEDULED> {
    fn new(state: S) -> Result<Self> {
        let schedule = SCHEDULED.then(|| Schedule::open(&state)).transpose()?;
        let alarm = |name| schedule.as_ref().map_or_else(|| Alarm::raw(&state), |all| all.slot(name).into());
        let feed = Feed::new(&state, do_sse::Settings::new(), alarm("feed"));
        let sweeper = Sweeper::new(&state, alarm("ttl"));
        let notes = sweeper.store("notes", Settings::new())?;
        Ok(Self { schedule, feed, sweeper, notes, state })
    }

    async fn fetch(&self, request: Request) -> Result<Response> {
        match request.uri().path() {
            "/look" => Ok(self.feed.open(&request).start().await?),
            // How many rows there are, expired ones too; and when the alarm comes.
            "/rows" => {
                let rows = self.state.sql().scalar::<i64>("SELECT count(*) FROM _ttl", ())?;
                Ok(reply::json(&(rows, self.state.alarms().get().await?))?)
            }
            "/note" => Ok(reply::json(&self.notes.get("note")?.is_some())?),
            path => {
                let secs: i64 = path.trim_start_matches('/').parse()?;
                let _ = self.notes.put("note", "v", Ttl::secs(secs))?;
                self.feed.broadcast(Event::named("note")?).send();
                Ok(reply::text(""))
            }
        }
    }

    async fn alarm(&self, info: AlarmInfo) -> Result<()> {
        let Some(schedule) = &self.schedule else {
            self.feed.on_alarm().await?;
            return Ok(self.sweeper.on_alarm().await?);
        };
        let run = async |job: Job| match job.name() {
            "feed" => Ok(self.feed.on_alarm().await?),
            "ttl" => Ok(self.sweeper.on_alarm().await?),
            _ => job.unknown(),
        };
        schedule.run_due(info, run).await
    }
}

const SECOND: Duration = Duration::from_secs(1);

fn start<const SCHEDULED: bool>() -> (Kit, HostStub) {
    let kit = Kit::builder().object::<Board<_, SCHEDULED>>("BOARD").start().unwrap();
    let board = kit.namespace("BOARD").unwrap().named("b").unwrap();
    (kit, board)
}

async fn ask<T: serde::de::DeserializeOwned>(board: &HostStub, path: &str) -> T {
    let request = http::Request::get(format!("http://board{path}")).body(Body::empty()).unwrap();
    board.fetch(request).await.unwrap().into_body().json(100).await.unwrap()
}

async fn put(board: &HostStub, secs: u32) {
    let request = http::Request::get(format!("http://board/{secs}")).body(Body::empty()).unwrap();
    assert_eq!(board.fetch(request).await.unwrap().status(), 200);
}

/// Whether the note is there; asked again by who is cut off.
async fn is_there(board: &HostStub) -> bool {
    let request = || http::Request::get("http://board/note").body(Body::empty()).unwrap();
    let answer = match board.fetch(request()).await {
        Ok(answer) => answer,
        Err(_) => board.fetch(request()).await.unwrap(),
    };
    answer.into_body().json(100).await.unwrap()
}

/// Who looks at it, from behind the first event on.
async fn look(board: &HostStub) -> Body {
    let request = http::Request::get("http://board/look").body(Body::empty()).unwrap();
    let mut body = board.fetch(request).await.unwrap().into_body();
    assert!(frame(&mut body).await.contains("event: ready"));
    body
}

async fn frame(body: &mut Body) -> String {
    let frame = body.frame().await.unwrap().unwrap();
    String::from_utf8(frame.into_data().unwrap().to_vec()).unwrap()
}

const HEARTBEAT: &str = ":\n\n";

#[test]
fn t9_heartbeats_and_sweeps_come_at_their_times_over_one_schedule() {
    let (kit, board) = start::<true>();
    kit.run(async {
        let mut body = look(&board).await;
        put(&board, 20).await; // later than the heartbeat, which keeps the alarm
        assert!(frame(&mut body).await.contains("event: note"));
        let begin = kit.now();
        kit.advance(15 * SECOND).await;
        assert_eq!(frame(&mut body).await, HEARTBEAT);
        put(&board, 2).await; // sooner than the heartbeat
        assert!(frame(&mut body).await.contains("event: note"));
        kit.advance(3 * SECOND - Duration::from_millis(1)).await;
        assert!(!ask::<bool>(&board, "/note").await);
        assert_eq!(ask::<(i64, Option<i64>)>(&board, "/rows").await.0, 1, "not swept before its slack");
        kit.advance(Duration::from_millis(1)).await;
        let heartbeat = begin + 30 * SECOND;
        assert_eq!(ask::<(i64, Option<i64>)>(&board, "/rows").await, (0, Some(heartbeat.as_millis())));
        kit.advance(kit.now().until(heartbeat)).await;
        assert_eq!(frame(&mut body).await, HEARTBEAT);
        // Who looks goes, and nothing is there to be swept: no more alarms.
        drop(body);
        kit.advance(60 * SECOND).await;
        assert_eq!(ask::<(i64, Option<i64>)>(&board, "/rows").await, (0, None));
    });
}

#[test]
fn t9_whatever_step_a_crash_strikes_at_both_go_on() {
    let run = |strike: Option<u64>| {
        let (kit, board) = start::<true>();
        if let Some(step) = strike {
            kit.at_step(step, &Strike::Crash);
        }
        kit.run(async {
            // Cut off by the crash, or not.
            let request = http::Request::get("http://board/look").body(Body::empty()).unwrap();
            let body = board.fetch(request).await.ok();
            let request = http::Request::get("http://board/5").body(Body::empty()).unwrap();
            let is_put = board.fetch(request).await.is_ok();
            kit.advance(3 * SECOND).await;
            assert!(!is_put || is_there(&board).await);
            kit.advance(3 * SECOND).await;
            let steps = kit.steps();
            kit.heal();
            assert!(!ask::<bool>(&board, "/note").await);
            drop(body);
            let mut body = look(&board).await;
            kit.advance(15 * SECOND).await;
            assert_eq!(frame(&mut body).await, HEARTBEAT);
            if is_put {
                assert_eq!(ask::<(i64, Option<i64>)>(&board, "/rows").await.0, 0, "struck at {strike:?}");
            }
            steps
        })
    };
    let steps = run(None);
    assert!(steps > 10);
    (0..steps).for_each(|step| {
        run(Some(step));
    });
}

/// The mistake that the documentation of [`Alarm`] names: who sets the one alarm overwrites what another has set. It costs
/// heartbeats here, and never shows what is expired.
#[test]
fn over_one_raw_alarm_a_put_takes_the_alarm_of_the_heartbeats_and_what_is_expired_stays_unseen() {
    let (kit, board) = start::<false>();
    kit.run(async {
        let mut body = look(&board).await;
        let heartbeat = kit.now() + 15 * SECOND;
        put(&board, 60).await;
        assert!(frame(&mut body).await.contains("event: note"));
        let sweep = kit.now() + 61 * SECOND;
        let (rows, alarm) = ask::<(i64, Option<i64>)>(&board, "/rows").await;
        assert_eq!((rows, alarm), (1, Some(sweep.as_millis())), "not {heartbeat}");
        kit.advance(60 * SECOND).await;
        assert!(body.frame().now_or_never().is_none(), "no heartbeat");
        assert!(!ask::<bool>(&board, "/note").await);
        assert_eq!(ask::<(i64, Option<i64>)>(&board, "/rows").await.0, 1);
        kit.advance(SECOND).await;
        assert_eq!(frame(&mut body).await, HEARTBEAT);
        assert_eq!(ask::<(i64, Option<i64>)>(&board, "/rows").await.0, 0);
    });
}
