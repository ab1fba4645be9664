//! A hostile user and a hostile environment: what they do to one object, and what must hold all the same.

use do_core::{
    Plan, Schedule,
    kit::{Builder, Kit},
    prelude::*,
    schedule::{DEAD_LETTERS_KEPT, Missed, Outcome, PAYLOAD_BYTES, Retry, Settings},
    tokio::{HostState, HostStub},
};
use futures::{
    FutureExt,
    future::{Either, LocalBoxFuture, select},
};
use std::{cell::RefCell, future::poll_fn, panic::resume_unwind, pin::pin, rc::Rc, task::Poll};

const YEAR: Duration = Duration::from_secs(365 * 24 * 3_600);
/// 2027.
const BEGIN: Timestamp = Timestamp::from_millis(1_800_000_000_000);

type Act<T> = Rc<dyn Fn(Own, T) -> LocalBoxFuture<'static, Result<()>>>;

/// What the object does.
#[derive(Clone)]
struct Behaviour {
    settings: Settings,
    new: Rc<dyn Fn(&Own) -> Result<()>>,
    job: Act<Job>,
    /// In place of running what is due.
    alarm: Option<Act<AlarmInfo>>,
}

thread_local! {
    static BEHAVIOUR: RefCell<Option<Behaviour>> = const { RefCell::new(None) };
    static CALL: RefCell<Option<Act<()>>> = const { RefCell::new(None) };
    static LOG: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

fn note(line: impl Into<String>) {
    LOG.with_borrow_mut(|log| log.push(line.into()));
}

fn log() -> Vec<String> {
    LOG.take()
}

#[derive(Clone)]
struct Own {
    state: HostState,
    schedule: Schedule<HostState>,
}

impl Own {
    fn behaviour() -> Behaviour {
        BEHAVIOUR.with_borrow(Clone::clone).unwrap()
    }

    fn after(&self, ms: u64) -> Timestamp {
        self.state.now() + Duration::from_millis(ms)
    }

    async fn run_due(&self, info: AlarmInfo) -> Result<()> {
        let run = async |job| (Self::behaviour().job)(self.clone(), job).await;
        self.schedule.run_due(info, run).await
    }

    fn exec(&self, sql: &str) -> Result<()> {
        self.state.sql().exec(sql, ())?;
        Ok(())
    }
}

impl DurableObject<HostState> for Own {
    fn new(state: HostState) -> Result<Self> {
        let Behaviour { settings, new, .. } = Self::behaviour();
        let own = Self { schedule: Schedule::with(&state, settings)?, state };
        new(&own)?;
        Ok(own)
    }

    async fn fetch(&self, _: Request) -> Result<Response> {
        let call = CALL.take();
        if let Some(call) = call {
            call(self.clone(), ()).await?;
        }
        Ok(reply::text(""))
    }

    async fn alarm(&self, info: AlarmInfo) -> Result<()> {
        match Self::behaviour().alarm {
            Some(alarm) => alarm(self.clone(), info).await,
            None => self.run_due(info).await.inspect_err(|error| note(format!("the run failed: {error}"))),
        }
    }
}

/// A world with one such object, in which jobs do what is given.
struct World {
    kit: Kit,
    stub: HostStub,
}

fn builder() -> Builder {
    Kit::builder().object::<Own>("OWN").now(BEGIN)
}

fn act<T, F: Future<Output = Result<()>> + 'static>(act: impl Fn(Own, T) -> F + 'static) -> Act<T> {
    Rc::new(move |own, told| act(own, told).boxed_local())
}

impl World {
    fn new<F: Future<Output = Result<()>> + 'static>(job: impl Fn(Own, Job) -> F + 'static) -> Self {
        Self::of(builder(), Settings::default(), job)
    }

    fn of<F: Future<Output = Result<()>> + 'static>(
        builder: Builder,
        settings: Settings,
        job: impl Fn(Own, Job) -> F + 'static,
    ) -> Self {
        log();
        BEHAVIOUR.set(Some(Behaviour { settings, new: Rc::new(|_| Ok(())), job: act(job), alarm: None }));
        let kit = builder.start().unwrap();
        let stub = kit.namespace("OWN").unwrap().named("o").unwrap();
        Self { kit, stub }
    }

    /// Another life of the object, from its next instance on.
    fn behave(&self, change: impl FnOnce(&mut Behaviour)) {
        BEHAVIOUR.with_borrow_mut(|behaviour| change(behaviour.as_mut().unwrap()));
    }

    /// Does something within a request, and gives what came of it.
    async fn call<T: 'static, F: Future<Output = Result<T>> + 'static>(
        &self,
        work: impl Fn(Own) -> F + 'static,
    ) -> T {
        let given = Rc::new(RefCell::new(None));
        let give = Rc::clone(&given);
        CALL.set(Some(act(move |own, ()| {
            let (work, give) = (work(own), Rc::clone(&give));
            async move {
                give.replace(Some(work.await?));
                Ok(())
            }
        })));
        self.stub.fetch(Request::default()).await.unwrap();
        given.take().unwrap()
    }

    async fn advance(&self, ms: u64) {
        self.kit.advance(Duration::from_millis(ms)).await;
    }

    /// What is pending, and when the raw slot runs: at the soonest of it or before, or not at all.
    async fn is_sound(&self) {
        let (soonest, armed) = self
            .call(|own| async move {
                let pending = own.schedule.pending("", u32::MAX)?;
                let soonest = pending.iter().map(|row| row.due).min();
                Ok((soonest, own.state.alarms().get().await?))
            })
            .await;
        match soonest {
            None => assert_eq!(armed, None),
            Some(due) => {
                let armed = armed.expect("something is pending and nothing is armed");
                assert!(
                    armed <= due.max(self.kit.now() + Duration::from_millis(1)),
                    "{armed} is behind {due}"
                );
            }
        }
    }
}

async fn noted(_: Own, job: Job) -> Result<()> {
    note(job.name());
    Ok(())
}

async fn fails(_: Own, job: Job) -> Result<()> {
    note(job.name());
    Err(Failure::msg("as it should"))
}

fn once() -> Retry {
    Retry::never()
}

// What is put.

#[test]
fn times_at_the_bounds_are_taken_and_those_beyond_change_nothing() {
    let world = World::new(noted);
    world.kit.run(async {
        let kinds = world
            .call(|own| async move {
                let mut kinds = Vec::new();
                for ms in [i64::MIN, -1, 0, 6_942_758_400_000, i64::MAX] {
                    let at = Timestamp::from_millis(ms);
                    kinds.push(own.schedule.put("a", Plan::at(at).key("k")).await.unwrap_err().kind());
                    kinds.push(own.schedule.slot("s").set(at).await.unwrap_err().kind());
                }
                assert_eq!(own.schedule.pending("", 9)?, []);
                own.schedule
                    .put("last", Plan::at(Timestamp::from_millis(6_942_758_399_999)).key("k"))
                    .await?;
                own.schedule.slot("first").set(Timestamp::from_millis(1)).await?;
                Ok(kinds)
            })
            .await;
        assert_eq!(kinds, [ErrorKind::Invalid; 10]);
        world.is_sound().await;
        world.advance(5).await;
        assert_eq!(log(), ["first"]);
        world.is_sound().await;
    });
}

#[test]
fn intervals_and_anchors_at_the_bounds_come_at_their_ticks_or_are_refused() {
    let world = World::new(noted);
    world.kit.run(async {
        let hour = || Plan::every(Duration::from_secs(3_600)).unwrap();
        let due = world
            .call(move |own| async move {
                for interval in [Duration::ZERO, Duration::from_nanos(999_999), Duration::MAX] {
                    assert_eq!(Plan::every(interval).unwrap_err().kind(), ErrorKind::Invalid);
                }
                let never = [
                    Plan::every(Duration::from_millis(i64::MAX.unsigned_abs()))?,
                    hour().anchored(Timestamp::MAX),
                    hour().anchored(Timestamp::from_millis(6_942_758_400_000)),
                ];
                for plan in never {
                    let error = own.schedule.put("a", plan).await.unwrap_err();
                    assert_eq!(error.to_string(), "a plan whose first tick never comes");
                }
                own.schedule.put("far", hour().anchored(Timestamp::from_millis(6_942_758_399_999))).await?;
                own.schedule.put("old", hour().anchored(Timestamp::from_millis(i64::MIN))).await?;
                let due = |name| own.schedule.get(name).map(|row| row.unwrap().due.as_millis());
                Ok([due("far")?, due("old")?])
            })
            .await;
        let rest = (i128::from(BEGIN.as_millis()) - i128::from(i64::MIN)) % 3_600_000;
        let old = BEGIN.as_millis() + 3_600_000 - i64::try_from(rest).unwrap();
        assert_eq!(due[0], 6_942_758_399_999);
        assert!((due[1] - old).abs() <= 10, "{} is not {old}", due[1]);
        world.is_sound().await;
    });
}

#[test]
fn names_in_any_language_are_names_and_page_in_their_order() {
    let world = World::new(fails);
    world.kit.run(async {
        let names =
            ["ß", "a b", "🦀🦀", "\u{202e}rtl", "e\u{301}", "é", "%_", "'; DROP TABLE _schedule; --", "_"];
        let long = "ü".repeat(128);
        let told = long.clone();
        world
            .call(move |own| {
                let long = told.clone();
                async move {
                    for name in names.iter().copied().chain([long.as_str()]) {
                        own.schedule.put(name, Plan::at(own.after(10)).retry(once())).await?;
                    }
                    for bad in ["", "\0", "a\nb", "\u{85}", "\u{1}replay 1"] {
                        let error = own.schedule.put(bad, Plan::at(own.after(10))).await.unwrap_err();
                        assert_eq!(error.kind(), ErrorKind::Invalid, "{bad:?}");
                        assert_eq!(own.schedule.get(bad)?, None);
                        assert!(!own.schedule.cancel(bad).await?);
                    }
                    let error = own.schedule.put(&(long + "x"), Plan::at(own.after(10))).await.unwrap_err();
                    assert_eq!(error.kind(), ErrorKind::Limit);
                    Ok(())
                }
            })
            .await;
        world.advance(100).await;
        let mut run = log();
        run.sort();
        let mut expected: Vec<_> = names.iter().map(|name| (*name).to_owned()).chain([long]).collect();
        expected.sort();
        assert_eq!(run, expected);
        // All of them are dead letters: replayed, their ids are none of the names, and paging by id meets each once.
        let paged = world
            .call(|own| async move {
                let letters = own.schedule.dead_letters(0, 100)?;
                for letter in &letters {
                    assert!(own.schedule.replay(letter.id).await?);
                    assert!(!own.schedule.replay(letter.id).await?);
                    own.schedule.put(&letter.name, Plan::at(own.after(60_000))).await?;
                }
                let (mut after, mut ids) = (String::new(), Vec::new());
                while let Some(page) = Some(own.schedule.pending(&after, 3)?).filter(|page| !page.is_empty())
                {
                    after.clone_from(&page.last().unwrap().id);
                    ids.extend(page.into_iter().map(|row| row.id));
                }
                assert_eq!(own.schedule.pending(&after, 3)?, []);
                assert_eq!(own.schedule.pending("", 0)?, []);
                Ok(ids)
            })
            .await;
        assert_eq!(paged.len(), 20);
        assert!(paged.is_sorted() && paged.windows(2).all(|pair| pair[0] != pair[1]));
    });
}

#[test]
fn the_longest_payload_is_kept_through_death_and_replay_and_a_longer_one_refused() {
    let world = World::new(async |_: Own, job: Job| {
        note(job.payload::<String>()?.len().to_string());
        job.give_up("\0 not today \u{1F980}".repeat(1_000))
    });
    world.kit.run(async {
        world
            .call(|own| async move {
                let text = "x".repeat(PAYLOAD_BYTES - 2);
                let plan = Plan::at(own.after(10)).payload(&text)?;
                assert_eq!(Plan::at(BEGIN).payload(&(text + "x")).unwrap_err().kind(), ErrorKind::Limit);
                own.schedule.put("a", plan).await?;
                Ok(())
            })
            .await;
        world.advance(100).await;
        world
            .call(|own| async move {
                let letter = own.schedule.dead_letters(0, 1)?.remove(0);
                assert_eq!(letter.payload::<String>()?.len(), PAYLOAD_BYTES - 2);
                assert!(letter.error.len() <= 1_024 && letter.error.starts_with("\0 not today"));
                own.schedule.replay(letter.id).await?;
                Ok(())
            })
            .await;
        world.advance(100).await;
        assert_eq!(log(), ["999998", "999998"]);
        world.is_sound().await;
    });
}

#[test]
fn a_key_is_one_for_all_names_and_one_that_was_refused_is_not_remembered() {
    let world = World::new(noted);
    world.kit.run(async {
        world
            .call(|own| async move {
                let plan = || Plan::at(own.after(10)).key("k");
                own.schedule.put("", plan()).await.unwrap_err();
                own.schedule.put("x", Plan::every(YEAR * 300)?.key("k")).await.unwrap_err();
                let undone: Result<()> = own.state.sql().transaction(|| {
                    drop(own.schedule.put("undone", plan()));
                    Err(Failure::msg("undone"))
                });
                undone.unwrap_err();
                own.schedule.put("a", plan()).await?;
                own.schedule.put("b", plan()).await?;
                own.schedule.put("a", Plan::at(own.after(90_000)).key("k")).await?;
                own.schedule.put("c", Plan::at(own.after(10)).key(" k")).await?;
                Ok(())
            })
            .await;
        world.advance(100).await;
        assert_eq!(log(), ["a", "c"]);
    });
}

// What runs.

#[test]
fn a_panic_within_a_transaction_of_a_job_undoes_it_and_leaves_the_others_alone() {
    let world = World::new(async |own: Own, job: Job| {
        note(job.name());
        if job.name() == "panics" {
            own.state.sql().transaction(|| -> Result<()> {
                own.state.sql().transaction(|| -> Result<()> {
                    own.exec("INSERT INTO t VALUES (1)")?;
                    drop(own.schedule.put("from within", Plan::at(own.after(5))));
                    resume_unwind(Box::new("as it should"))
                })
            })?;
        }
        Ok(())
    });
    world.kit.run(async {
        world
            .call(|own| async move {
                own.exec("CREATE TABLE t (n)")?;
                own.schedule.put("panics", Plan::at(own.after(10)).retry(once())).await?;
                own.schedule.put("well", Plan::at(own.after(11))).await?;
                Ok(())
            })
            .await;
        world.advance(20_000).await;
        assert_eq!(log(), ["panics", "well"]);
        let found = world
            .call(|own| async move {
                let n: Option<i64> = own.state.sql().scalar("SELECT count(*) FROM t", ())?;
                Ok((n, own.schedule.dead_letters(0, 9)?.remove(0).error))
            })
            .await;
        assert_eq!(found, (Some(0), "it panicked: as it should".to_owned()));
        world.is_sound().await;
    });
}

#[test]
fn a_job_whose_error_panics_when_it_is_shown_has_failed_alone() {
    #[derive(Debug)]
    struct Mean;
    impl std::fmt::Display for Mean {
        fn fmt(&self, _: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            resume_unwind(Box::new("shown"))
        }
    }
    impl std::error::Error for Mean {}
    let world = World::new(async |_: Own, job: Job| {
        note(job.name());
        if job.name() == "mean" { Err(Mean.into()) } else { Ok(()) }
    });
    world.kit.run(async {
        world
            .call(|own| async move {
                let retry = Retry::new(2, Duration::from_secs(1))?;
                own.schedule.put("mean", Plan::at(own.after(10)).retry(retry)).await?;
                own.schedule.put("well", Plan::at(own.after(11))).await?;
                Ok(())
            })
            .await;
        world.advance(60_000).await;
        assert_eq!(log(), ["mean", "well", "mean"]);
        assert_eq!(world.call(|own| async move { Ok(own.schedule.dead_letters(0, 9)?.len()) }).await, 1);
        world.is_sound().await;
    });
}

#[test]
fn a_run_within_a_run_is_refused_and_fails_its_job_alone() {
    let world = World::new(async |own: Own, job: Job| {
        note(job.name());
        if job.name() == "recursive" {
            own.run_due(AlarmInfo::new(BEGIN, 0)).await?;
        }
        Ok(())
    });
    world.kit.run(async {
        world
            .call(|own| async move {
                own.schedule.put("recursive", Plan::at(own.after(10)).retry(once())).await?;
                own.schedule.put("well", Plan::at(own.after(11))).await?;
                Ok(())
            })
            .await;
        world.advance(5_000).await;
        assert_eq!(log(), ["recursive", "well"]);
        let error =
            world.call(|own| async move { Ok(own.schedule.dead_letters(0, 9)?.remove(0).error) }).await;
        assert_eq!(error, "this schedule runs what is due already");
        world.is_sound().await;
    });
}

#[test]
fn a_job_may_call_its_own_object_which_may_put_cancel_and_replay() {
    let world = World::new(async |own: Own, job: Job| {
        note(job.name());
        if job.name() == "calls" {
            CALL.set(Some(act(async |own: Own, ()| {
                assert!(own.schedule.cancel("calls").await?);
                own.schedule.put("calls", Plan::at(own.after(1_000)).payload("again")?).await?;
                assert!(!own.schedule.check().await?);
                own.schedule.slot("calls slot").set(own.after(0)).await?;
                Ok(())
            })));
            if job.payload::<Option<String>>()?.is_none() {
                own.state.env().namespace("OWN")?.named("o")?.fetch(Request::default()).await?;
            }
        }
        Ok(())
    });
    world.kit.run(async {
        world.call(|own| async move { Ok(own.schedule.put("calls", Plan::at(own.after(10))).await?) }).await;
        world.advance(20_000).await;
        assert_eq!(log(), ["calls", "calls slot", "calls"]);
        CALL.take();
        world.is_sound().await;
    });
}

#[test]
fn a_job_that_cancels_or_deletes_everything_ends_well_and_what_it_puts_then_runs() {
    let world = World::new(async |own: Own, job: Job| {
        note(job.name());
        match job.name() {
            "cancels" => {
                for row in own.schedule.pending("", 100)? {
                    own.schedule.cancel(&row.id).await?;
                }
                own.schedule.put("then", Plan::at(own.after(10))).await?;
            }
            "deletes" => {
                own.state.delete_all()?;
                own.state.sleep(Duration::from_millis(50)).await;
                own.schedule.put("then", Plan::at(own.after(10))).await?;
                own.state.delete_all()?;
                own.schedule.put("last", Plan::at(own.after(10))).await?;
                return Err(Failure::msg("and fails"));
            }
            _ => {}
        }
        Ok(())
    });
    world.kit.run(async {
        for (first, expected) in [("cancels", ["cancels", "then"]), ("deletes", ["deletes", "last"])] {
            world
                .call(move |own| async move {
                    for (name, ms) in [(first, 10), ("other", 11), ("later", 5_000)] {
                        own.schedule.put(name, Plan::at(own.after(ms))).await?;
                    }
                    Ok(())
                })
                .await;
            world.advance(20_000).await;
            assert_eq!(log(), expected);
            world.is_sound().await;
        }
    });
}

#[test]
fn dead_letters_replayed_in_a_job_run_beside_it() {
    let world = World::new(async |own: Own, job: Job| {
        note(format!("{} {}", job.name(), job.attempt()));
        match (job.name(), job.payload::<Option<u8>>()?) {
            ("dies", _) if own.schedule.get("replays")?.is_some() => job.give_up("at first"),
            ("replays", _) => {
                for letter in own.schedule.dead_letters(0, 9)? {
                    assert!(own.schedule.replay(letter.id).await?);
                }
                Ok(())
            }
            _ => Ok(()),
        }
    });
    world.kit.run(async {
        world
            .call(|own| async move {
                own.schedule.put("dies", Plan::at(own.after(10)).payload(&1)?).await?;
                own.schedule.put("replays", Plan::at(own.after(1_000))).await?;
                Ok(())
            })
            .await;
        world.advance(20_000).await;
        assert_eq!(log(), ["dies 1", "replays 1", "dies 1"]);
        world.is_sound().await;
    });
}

#[test]
fn a_run_that_the_object_itself_drops_counts_and_can_be_begun_again_at_once() {
    let world = World::new(async |own: Own, job: Job| {
        note(format!("{} {}", job.name(), job.attempt()));
        if job.name() == "slow" {
            own.state.sleep(Duration::from_secs(10)).await;
        }
        Ok(())
    });
    world.behave(|behaviour| {
        behaviour.alarm = Some(act(async |own: Own, info: AlarmInfo| {
            let cut = own.state.sleep(Duration::from_secs(1));
            if let Either::Right(_) = select(pin!(own.run_due(info)), pin!(cut)).await {
                note("cut");
            }
            own.run_due(info).await
        }));
    });
    world.kit.run(async {
        world
            .call(|own| async move {
                let retry = Retry::new(2, Duration::from_millis(100))?;
                own.schedule.put("slow", Plan::at(own.after(10)).retry(retry)).await?;
                own.schedule.put("quick", Plan::at(own.after(11))).await?;
                Ok(())
            })
            .await;
        world.advance(60_000).await;
        assert_eq!(log(), ["slow 1", "cut", "quick 1", "slow 2", "cut"]);
        let error =
            world.call(|own| async move { Ok(own.schedule.dead_letters(0, 9)?.remove(0).error) }).await;
        assert_eq!(error, "its run was cut off");
        world.is_sound().await;
    });
}

/// Polls a future so often, and drops it.
async fn poll_and_drop(future: impl Future, times: u32) {
    let (mut future, mut left) = (pin!(future), times);
    poll_fn(|cx| {
        if left == 0 || future.as_mut().poll(cx).is_ready() {
            return Poll::Ready(());
        }
        left -= 1;
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

#[test]
fn whatever_is_dropped_half_way_leaves_the_rule_as_it_is() {
    for times in 0..2 {
        let world = World::new(noted);
        world.kit.run(async {
            world
                .call(move |own| async move {
                    let schedule = &own.schedule;
                    poll_and_drop(schedule.put("a", Plan::at(own.after(90))), times).await;
                    poll_and_drop(schedule.put("b", Plan::at(own.after(80))), times).await;
                    poll_and_drop(schedule.slot("s").set(own.after(70)), times).await;
                    poll_and_drop(schedule.slot("t").set_earlier(own.after(60)), times).await;
                    poll_and_drop(schedule.cancel("a"), times).await;
                    poll_and_drop(schedule.slot("s").delete(), times).await;
                    poll_and_drop(schedule.check(), times).await;
                    Ok(())
                })
                .await;
            world.is_sound().await;
            world.advance(1_000).await;
            let expected: &[&str] = if times == 0 { &["s", "b", "a"] } else { &["t", "b"] };
            assert_eq!(log(), expected);
            world.is_sound().await;
        });
    }
}

#[test]
fn what_is_rolled_back_around_a_change_leaves_the_rule_as_it_is() {
    let world = World::new(noted);
    world.kit.run(async {
        world
            .call(|own| async move {
                own.schedule.put("kept", Plan::at(own.after(1_000))).await?;
                let undone: Result<()> = own.state.sql().transaction(|| {
                    drop(own.schedule.put("kept", Plan::at(own.after(5))));
                    drop(own.schedule.slot("s").set(own.after(1)));
                    own.schedule.retire("kept")?;
                    own.schedule.declare("d", Plan::every(Duration::from_millis(1))?)?;
                    Err(Failure::msg("undone"))
                });
                undone.unwrap_err();
                own.schedule.put("more", Plan::at(own.after(500))).await?;
                Ok(())
            })
            .await;
        world.is_sound().await;
        world.advance(10_000).await;
        assert_eq!(log(), ["more", "kept"]);
        world.is_sound().await;
    });
}

// Missed ticks and clocks.

#[test]
fn a_year_of_missed_milliseconds_is_one_step_for_each_policy() {
    let policies = [
        (Missed::Once, 1, 1_000),
        (Missed::Skip(0), 1, 1_000),
        (Missed::CatchUp(3), 3, 1_000),
        (Missed::CatchUp(u32::MAX), 64, 1_000),
    ];
    for (missed, runs, at_least) in policies {
        let world = World::new(async |own: Own, job: Job| {
            note(job.missed().to_string());
            // The last one that is wanted.
            if LOG.with_borrow(Vec::len) >= 64 {
                own.schedule.cancel("beat").await?;
            }
            Ok(())
        });
        world.kit.run(async {
            world
                .call(move |own| async move {
                    let plan = Plan::every(Duration::from_millis(1))?.missed(missed);
                    own.schedule.put("beat", plan).await?;
                    Ok(())
                })
                .await;
            let now = world.kit.now();
            world.kit.crash();
            world.kit.step_wall(now + YEAR);
            world.advance(1).await;
            let seen = log();
            assert!(seen.len() >= runs, "{missed:?}: {seen:?}");
            assert_eq!(seen[0].parse::<u64>().unwrap(), at_least, "{missed:?}");
            world.call(|own| async move { Ok(own.schedule.cancel("beat").await?) }).await;
            world.is_sound().await;
        });
    }
}

#[test]
fn catching_up_with_every_second_of_years_by_cron_takes_no_longer() {
    let world = World::new(async |_: Own, job: Job| {
        note(job.scheduled().to_string());
        Ok(())
    });
    world.kit.run(async {
        world
            .call(|own| async move {
                let plan = Plan::cron("* * * * * *", "Europe/Zurich")?.missed(Missed::CatchUp(u32::MAX));
                own.schedule.put("beat", plan).await?;
                Ok(())
            })
            .await;
        world.kit.crash();
        world.kit.step_wall(BEGIN + YEAR * 20);
        world.kit.settle().await;
        let first = (1..4).map(|second| (BEGIN.as_millis() + second * 1_000).to_string());
        assert_eq!(log()[..3], first.collect::<Vec<_>>());
        world.call(|own| async move { Ok(own.schedule.cancel("beat").await?) }).await;
    });
}

#[test]
fn a_clock_that_goes_back_a_year_leaves_everything_pending_and_armed() {
    let world = World::new(fails);
    world.kit.run(async {
        let put = || async {
            world
                .call(|own| async move {
                    let retry = Retry::new(9, Duration::from_secs(1))?;
                    own.schedule.put("every", Plan::every(Duration::from_secs(60))?).await?;
                    own.schedule.put("cron", Plan::cron("0 * * * *", "Europe/Zurich")?).await?;
                    own.schedule.put("retried", Plan::at(own.after(1)).retry(retry)).await?;
                    Ok(own.schedule.pending("", 9)?.len())
                })
                .await
        };
        put().await;
        world.advance(100).await;
        assert_eq!(log(), ["retried"]);
        world.kit.crash();
        let back = world.kit.now() - YEAR;
        world.kit.step_wall(back);
        world.is_sound().await;
        assert_eq!(put().await, 3);
        world.is_sound().await;
        let due = world.call(|own| async move { Ok(own.schedule.get("every")?.unwrap().due) }).await;
        assert!(due >= BEGIN, "a tick is never early");
    });
}

#[test]
fn a_retry_behind_the_last_time_of_an_alarm_comes_at_that() {
    let last = Timestamp::from_millis(6_942_758_399_999);
    let world = World::of(builder().now(last - Duration::from_secs(3_600)), Settings::default(), fails);
    world.kit.run(async {
        world
            .call(|own| async move {
                let retry = Retry::new(9, YEAR)?;
                own.schedule.put("a", Plan::at(own.after(10)).retry(retry)).await?;
                Ok(())
            })
            .await;
        world.advance(60_000).await;
        assert_eq!(log(), ["a"]);
        let due = world.call(|own| async move { Ok(own.schedule.get("a")?.unwrap().due) }).await;
        assert_eq!(due, last);
        world.is_sound().await;
    });
}

#[test]
fn what_recurs_is_over_with_the_last_time_of_an_alarm() {
    let last = Timestamp::from_millis(6_942_758_399_999);
    let world = World::of(builder().now(last - Duration::from_millis(2_500)), Settings::default(), noted);
    world.kit.run(async {
        world
            .call(|own| async move {
                own.schedule.put("cron", Plan::cron("* * * * * *", "UTC")?).await?;
                own.schedule.put("every", Plan::every(Duration::from_millis(900))?).await?;
                Ok(())
            })
            .await;
        world.advance(2_400).await;
        assert_eq!(log(), ["cron", "every", "cron", "every"]);
        world.is_sound().await;
        assert_eq!(world.call(|own| async move { Ok(own.schedule.pending("", 9)?.len()) }).await, 0);
    });
}

// Rows that nobody here wrote.

#[test]
fn rows_that_are_damaged_are_each_a_matter_of_themselves() {
    let damages = [
        "due = 1152921504606846976, tick = 1152921504606846976",
        "due = -9223372036854775808, tick = -9223372036854775808",
        "attempt = -1",
        "attempt = 9223372036854775807",
        "running = 7",
        "terms = ''",
        "terms = 'null'",
        "terms = '{\"cadence\":{\"every\":{\"ms\":0,\"anchor\":0}}}'",
        "terms = '{\"cadence\":{\"every\":{\"ms\":1,\"anchor\":-9223372036854775808}}}'",
        "terms = '{\"cadence\":{\"cron\":{\"at\":\"x\",\"zone\":\"y\"}}}'",
        "terms = '{\"retry\":{\"runs\":0,\"first\":0,\"longest\":0}}'",
        "terms = '{\"retry\":{\"runs\":9,\"first\":18446744073709551615,\"longest\":18446744073709551615}}'",
        "terms = '{\"limit\":18446744073709551615}'",
        "terms = '{\"limit\":0}'",
        "terms = '{\"missed\":{\"skip\":18446744073709551615}}'",
        "payload = '{'",
        "payload = cast(x'ff00fe' as text)",
        "terms = cast(x'ff00fe' as text)",
        "name = ''",
        "name = cast(x'ff00fe' as text)",
        "tick = 0",
        "tick = 6942758399999",
    ];
    for damage in damages {
        for recurs in [false, true] {
            let world = World::new(async |_: Own, job: Job| {
                note(job.name());
                if job.name() == "well" { Ok(()) } else { Err(Failure::msg("as it should")) }
            });
            world.kit.run(async {
                world
                    .call(move |own| async move {
                        let damaged = if recurs {
                            Plan::every(Duration::from_millis(10))?
                        } else {
                            Plan::at(own.after(10))
                        };
                        own.schedule.put("damaged", damaged).await?;
                        own.schedule.put("well", Plan::at(own.after(100))).await?;
                        own.exec(&format!("UPDATE _schedule SET {damage} WHERE key = 'damaged'"))?;
                        Ok(())
                    })
                    .await;
                world.advance(150).await;
                let seen = log();
                assert!(seen.iter().any(|name| name == "well"), "{damage}: {seen:?}");
                assert!(!seen.iter().any(|line| line.starts_with("the run failed")), "{damage}: {seen:?}");
                world
                    .call(|own| async move {
                        own.schedule.pending("", 9)?;
                        own.schedule.history(9)?;
                        own.schedule.dead_letters(0, 9)?;
                        own.schedule.check().await?;
                        Ok(())
                    })
                    .await;
                world.is_sound().await;
                // Putting it mends it.
                world
                    .call(|own| async move {
                        Ok(own.schedule.put("damaged", Plan::at(own.after(1_000_000))).await?)
                    })
                    .await;
                world.is_sound().await;
            });
        }
    }
}

// What is kept.

#[test]
fn a_dead_letter_is_kept_while_there_are_not_too_many() {
    let world = World::new(async |_: Own, job: Job| job.give_up("as it should"));
    world.kit.run(async {
        let put = |name: String| {
            world.call(move |own| {
                let name = name.clone();
                async move { Ok(own.schedule.put(&name, Plan::at(own.after(1))).await?) }
            })
        };
        put("old".to_owned()).await;
        world.advance(2).await;
        for n in 0..DEAD_LETTERS_KEPT + 5 {
            put(format!("job {n}")).await;
            world.advance(2).await;
            let left = world
                .call(|own| async move {
                    let letters = own.schedule.dead_letters(0, 9)?;
                    for letter in letters.iter().skip(1) {
                        own.schedule.discard(letter.id)?;
                    }
                    Ok(letters.into_iter().map(|letter| letter.name).collect::<Vec<_>>())
                })
                .await;
            assert_eq!(left, ["old".to_owned(), format!("job {n}")]);
        }
    });
}

#[test]
fn the_latest_thousand_dead_letters_are_kept_whatever_is_missing_between_them() {
    let world =
        World::of(builder(), Settings::default().jobs_per_wake(u32::MAX), async |_: Own, job: Job| {
            job.give_up("as it should")
        });
    world.kit.run(async {
        let total = u64::from(DEAD_LETTERS_KEPT) + 200;
        world
            .call(move |own| async move {
                for n in 0..total {
                    own.schedule.put(&format!("{n:04}"), Plan::at(own.after(1_000 + n))).await?;
                }
                Ok(())
            })
            .await;
        world.advance(1_500).await;
        // Every second of the first 400.
        world
            .call(|own| async move {
                for letter in own.schedule.dead_letters(0, 400)?.iter().step_by(2) {
                    own.schedule.discard(letter.id)?;
                }
                Ok(())
            })
            .await;
        world.advance(60_000).await;
        let (count, first) = world
            .call(|own| async move {
                let letters = own.schedule.dead_letters(0, u32::MAX)?;
                Ok((letters.len(), letters[0].name.clone()))
            })
            .await;
        assert_eq!((count, first.as_str()), (1_000, "0001"));
    });
}

#[test]
fn a_history_without_end_and_one_that_is_made_smaller() {
    let world = World::of(builder(), Settings::default().history(u32::MAX).jobs_per_wake(1), noted);
    world.kit.run(async {
        world
            .call(|own| async move { Ok(own.schedule.put("a", Plan::every(Duration::from_millis(10))?).await?) })
            .await;
        world.advance(2_005).await;
        let runs = log().len();
        assert!(runs >= 195, "{runs}");
        let kept = world.call(|own| async move { Ok(own.schedule.history(u32::MAX)?.len()) }).await;
        assert_eq!(kept, runs);
        world.behave(|behaviour| behaviour.settings = Settings::default().history(2));
        world.kit.evict(&world.stub);
        world.advance(15).await;
        let kept = world.call(|own| async move { own.schedule.cancel("a").await?; Ok(own.schedule.history(9)?) }).await;
        assert_eq!(kept.len(), 2);
        assert!(kept.iter().all(|run| run.outcome == Outcome::Done));
    });
}

#[test]
fn what_the_history_cannot_take_does_not_keep_jobs_from_ending() {
    let world = World::new(noted);
    world.kit.run(async {
        world
            .call(|own| async move {
                own.schedule.put("a", Plan::at(own.after(10))).await?;
                own.schedule.put("b", Plan::at(own.after(20))).await?;
                let full = "CREATE TRIGGER full BEFORE INSERT ON _schedule_runs \
                            BEGIN SELECT RAISE(ABORT, 'database or disk is full'); END";
                own.exec(full)
            })
            .await;
        world.advance(600_000).await;
        assert_eq!(log(), ["a", "b"]);
        world.is_sound().await;
    });
}

// Many of them.

#[test]
fn ten_thousand_pending_are_run_each_once_and_in_their_order() {
    let world = World::of(builder(), Settings::default().jobs_per_wake(u32::MAX), noted);
    world.kit.run(async {
        world
            .call(|own| async move {
                for n in 0..10_000_u64 {
                    let at = own.after(100_000 + n * 7 % 10_000);
                    own.schedule.put(&format!("{:05}", n * 7 % 10_000), Plan::at(at)).await?;
                }
                assert_eq!(own.schedule.stats().alarms_set, 1);
                Ok(())
            })
            .await;
        world.advance(200_000).await;
        let run = log();
        assert_eq!(run.len(), 10_000);
        assert!(run.is_sorted());
        world.is_sound().await;
    });
}

/// Those that the schedule asks of its tables, whatever is in them: as they are in `store.rs`, `dead.rs` and `schedule.rs`.
#[test]
fn no_question_reads_a_whole_table() {
    let world = World::new(noted);
    world.kit.run(async {
        world
            .call(|own| async move { Ok(own.schedule.put("a", Plan::at(own.after(9_000)).key("k")).await?) })
            .await;
        let questions = [
            "SELECT due FROM _schedule ORDER BY due LIMIT 1",
            "SELECT * FROM _schedule WHERE key = ?",
            "SELECT * FROM _schedule WHERE due <= ? ORDER BY due, key LIMIT 1",
            "SELECT * FROM _schedule WHERE key > ? ORDER BY key LIMIT ?",
            "DELETE FROM _schedule WHERE key = ? RETURNING key",
            "SELECT id FROM _schedule_keys WHERE key = ?",
            "DELETE FROM _schedule_keys WHERE id <= (SELECT max(id) FROM _schedule_keys) - ?",
            "SELECT * FROM _schedule_dead WHERE id > ? ORDER BY id LIMIT ?",
            "SELECT * FROM _schedule_runs ORDER BY id DESC LIMIT ?",
        ];
        world
            .call(move |own| async move {
                for question in questions {
                    let params = vec![do_core::Value::from(1_i64); question.matches('?').count()];
                    let plan = own.state.sql().exec(&format!("EXPLAIN QUERY PLAN {question}"), params)?;
                    let steps: Vec<String> = plan.iter().map(|row| row.at(3)).collect::<Result<_, _>>()?;
                    let bounded = question.contains("LIMIT");
                    let whole = |step: &String| {
                        step.contains("TEMP B-TREE") || (step.starts_with("SCAN") && !bounded)
                    };
                    assert!(!steps.iter().any(whole), "{question}: {steps:?}");
                }
                Ok(())
            })
            .await;
    });
}

// Where it is opened.

#[test]
fn a_constructor_that_puts_where_the_alarm_is_the_first_event_is_armed_by_its_run() {
    let world = World::new(noted);
    world.kit.run(async {
        world.call(|own| async move { Ok(own.schedule.put("a", Plan::at(own.after(10_000))).await?) }).await;
        world.behave(|behaviour| {
            behaviour.new = Rc::new(|own| {
                own.schedule.declare("b", Plan::at(own.after(500)))?;
                drop(own.schedule.slot("s").set(own.after(700)));
                drop(own.schedule.put("a", Plan::at(own.after(600))));
                Ok(())
            });
        });
        world.kit.evict(&world.stub);
        world.advance(10_010).await;
        world.behave(|behaviour| behaviour.new = Rc::new(|_| Ok(())));
        world.advance(5_000).await;
        assert_eq!(log(), ["b", "a", "s"]);
        world.is_sound().await;
    });
}

#[test]
fn a_schedule_that_is_opened_in_a_handler_or_twice_keeps_the_rule() {
    let world = World::new(noted);
    world.kit.run(async {
        world
            .call(|own| async move {
                let second = Schedule::open(&own.state)?;
                own.schedule.put("a", Plan::at(own.after(100))).await?;
                second.put("b", Plan::at(own.after(50))).await?;
                own.schedule.cancel("b").await?;
                second.cancel("a").await?;
                own.schedule.put("c", Plan::at(own.after(40))).await?;
                Schedule::open(&own.state)?.put("d", Plan::at(own.after(20))).await?;
                Ok(())
            })
            .await;
        world.is_sound().await;
        world.advance(1_000).await;
        assert_eq!(log(), ["d", "c"]);
        world.is_sound().await;
    });
}

#[test]
fn a_schedule_that_is_opened_in_the_alarm_runs_and_puts() {
    let world = World::new(async |own: Own, job: Job| {
        note(job.name());
        let late = Schedule::open(&own.state)?;
        if job.name() == "a" {
            late.put("b", Plan::at(own.after(100))).await?;
        }
        Ok(())
    });
    world.behave(|behaviour| {
        behaviour.alarm = Some(act(async |own: Own, info: AlarmInfo| {
            let own = Own { schedule: Schedule::open(&own.state)?, ..own };
            own.run_due(info).await
        }));
    });
    world.kit.run(async {
        world.call(|own| async move { Ok(own.schedule.put("a", Plan::at(own.after(10_000))).await?) }).await;
        world.kit.evict(&world.stub);
        world.advance(11_000).await;
        assert_eq!(log(), ["a", "b"]);
        world.is_sound().await;
    });
}

// Back-off.

#[test]
fn what_is_put_for_now_during_back_off_comes_now_and_what_is_put_for_before_keeps_the_retry() {
    let world = World::new(fails);
    world.kit.run(async {
        world
            .call(|own| async move {
                let retry = || Retry::new(9, Duration::from_secs(100));
                own.schedule.put("again", Plan::at(own.after(10)).retry(retry()?)).await?;
                own.schedule.put("overdue", Plan::at(Timestamp::from_millis(5)).retry(retry()?)).await?;
                let every = Plan::every(Duration::from_secs(1_000))?.anchored(own.after(10));
                own.schedule.put("becomes one", every.retry(retry()?)).await?;
                own.schedule.slot("slot").set(own.after(10)).await?;
                Ok(())
            })
            .await;
        world.advance(1_000).await;
        assert_eq!(log(), ["overdue", "again", "becomes one", "slot"]);
        let attempts = world
            .call(|own| async move {
                let retry = || Retry::new(9, Duration::from_secs(100));
                let now = own.state.now();
                own.schedule.put("again", Plan::at(now).retry(retry()?)).await?;
                own.schedule.put("overdue", Plan::at(Timestamp::from_millis(5)).retry(retry()?)).await?;
                own.schedule.put("becomes one", Plan::at(Timestamp::from_millis(5)).retry(retry()?)).await?;
                own.schedule.slot("slot").set(now).await?;
                let rows = own.schedule.pending("", 9)?;
                Ok(rows.into_iter().map(|row| (row.name, row.attempts)).collect::<Vec<_>>())
            })
            .await;
        let expected = [("again", 0), ("becomes one", 0), ("overdue", 1), ("slot", 0)];
        assert_eq!(attempts, expected.map(|(name, attempts)| (name.to_owned(), attempts)));
        world.advance(100).await;
        assert_eq!(log(), ["again", "becomes one", "slot"]);
        world.is_sound().await;
    });
}

#[test]
fn a_recurring_job_that_fails_at_each_tick_is_a_dead_letter_after_its_runs_and_goes_on() {
    let world = World::new(async |_: Own, job: Job| {
        note(format!("{} {} {}", job.scheduled(), job.attempt(), job.missed()));
        Err(Failure::msg("as it should"))
    });
    world.kit.run(async {
        world
            .call(|own| async move {
                let plan = Plan::every(Duration::from_secs(1))?.anchored(Timestamp::from_millis(0));
                own.schedule.put("a", plan.retry(Retry::new(2, Duration::from_secs(60))?)).await?;
                Ok(())
            })
            .await;
        world.advance(4_500).await;
        let at = |second: i64| BEGIN.as_millis() + second * 1_000;
        let runs = [(1, 1, 0), (2, 2, 1), (3, 1, 0), (4, 2, 1)];
        let runs = runs.map(|(second, attempt, missed)| format!("{} {attempt} {missed}", at(second)));
        assert_eq!(log(), runs);
        assert_eq!(world.call(|own| async move { Ok(own.schedule.dead_letters(0, 9)?.len()) }).await, 2);
        world.is_sound().await;
    });
}

// Jobs that take the object with them.

#[test]
fn a_job_that_resets_its_object_or_panics_when_it_is_dropped_counts_and_the_others_run() {
    struct Mean;
    impl Drop for Mean {
        fn drop(&mut self) {
            resume_unwind(Box::new("dropped"));
        }
    }
    let world = World::new(async |own: Own, job: Job| {
        note(format!("{} {}", job.name(), job.attempt()));
        match job.name() {
            "resets" => {
                own.state.reset("as it should").await;
            }
            "mean" => {
                let _mean = Mean;
                std::future::pending::<()>().await;
            }
            _ => {}
        }
        Ok(())
    });
    world.kit.run(async {
        world
            .call(|own| async move {
                let retry = || Retry::new(2, Duration::from_secs(100));
                own.schedule.put("mean", Plan::at(own.after(20)).retry(retry()?).time_limit(Duration::ZERO)).await?;
                own.schedule.put("resets", Plan::at(own.after(10)).retry(retry()?)).await?;
                own.schedule.put("well", Plan::at(own.after(30))).await?;
                Ok(())
            })
            .await;
        world.advance(600_000).await;
        let mut runs = log();
        runs.sort();
        assert_eq!(runs, ["mean 1", "mean 2", "resets 1", "resets 2", "well 1"]);
        assert_eq!(world.call(|own| async move { Ok(own.schedule.dead_letters(0, 9)?.len()) }).await, 2);
        world.is_sound().await;
    });
}

#[test]
fn everything_deleted_by_a_request_while_a_job_runs_stays_deleted_and_what_is_put_then_runs() {
    let world = World::new(async |own: Own, job: Job| {
        note(format!("{} {}", job.name(), job.attempt()));
        own.state.sleep(Duration::from_secs(10)).await;
        Err(Failure::msg("as it should"))
    });
    world.kit.run(async {
        world
            .call(|own| async move {
                own.schedule.put("a", Plan::at(own.after(10))).await?;
                own.schedule.put("b", Plan::at(own.after(20))).await?;
                Ok(())
            })
            .await;
        world.advance(1_000).await;
        world
            .call(|own| async move {
                own.state.delete_all()?;
                own.schedule.put("a", Plan::at(own.after(100_000)).payload(&7)?.retry(once())).await?;
                Ok(())
            })
            .await;
        world.is_sound().await;
        world.advance(50_000).await;
        assert_eq!(log(), ["a 1"]);
        world.is_sound().await;
        world.advance(100_000).await;
        assert_eq!(log(), ["a 1"]);
        let left = world
            .call(|own| async move { Ok((own.schedule.pending("", 9)?.len(), own.schedule.dead_letters(0, 9)?.len())) })
            .await;
        assert_eq!(left, (0, 1));
    });
}
