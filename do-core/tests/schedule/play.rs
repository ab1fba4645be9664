//! Plays a case in the kit, lets it come to rest, and says what is wrong.

use super::{
    case::{Case, Fault, Op, Strike},
    object::Planner,
    watch,
};
use do_core::{
    Body, Namespace, Request, Stub,
    kit::{self, Builder, Kit},
    tokio::HostStub,
};
use std::{future::poll_fn, task::Poll, time::Duration};

fn builder<const FLAW: u8>(case: &Case) -> Builder {
    let idle = Duration::from_secs(case.idle);
    Kit::builder().object::<Planner<_, FLAW>>("PLANNER").idle(idle)
}

fn stub(kit: &Kit) -> HostStub {
    kit.namespace("PLANNER").unwrap().named("p").unwrap()
}

/// What is wrong with a run of a case.
pub(crate) fn complaint<const FLAW: u8>(case: &Case) -> Option<String> {
    play::<FLAW>(case, None, false).complaint
}

/// The same, with all that happened.
pub(crate) fn told<const FLAW: u8>(case: &Case) -> (Option<String>, String) {
    let played = play::<FLAW>(case, None, true);
    (played.complaint, played.history)
}

pub(crate) struct Played {
    pub(crate) complaint: Option<String>,
    pub(crate) history: String,
    /// Of the world, until it was let come to rest.
    pub(crate) steps: u64,
}

/// Something may strike at a step.
pub(crate) fn play<const FLAW: u8>(case: &Case, strike: Option<(u64, Strike)>, log: bool) -> Played {
    let kit = builder::<FLAW>(case).seed(case.seed).start().unwrap();
    watch::begin(case, &kit, stub(&kit), log);
    if let Some((step, strike)) = strike {
        kit.at_step(step, &of_kit(&kit, strike));
    }
    let steps = kit.run(async {
        for op in &case.ops {
            play_op::<FLAW>(&kit, case, op).await;
            if watch::is_complaining() {
                break;
            }
        }
        kit.settle().await;
        let steps = kit.steps();
        rest(&kit).await;
        steps
    });
    let (complaint, seen) = watch::end();
    let history = if log { format!("{}\n{seen}", kit.history()) } else { String::new() };
    Played { complaint, history, steps }
}

fn of_kit(kit: &Kit, strike: Strike) -> kit::Strike {
    match strike {
        Strike::Hibernate => kit::Strike::Hibernate(stub(kit)),
        Strike::Evict => kit::Strike::Evict(stub(kit)),
        Strike::Crash | Strike::Deploy => kit::Strike::Crash,
        Strike::LosePower => kit::Strike::LosePower,
    }
}

fn call(kit: &Kit, script: usize) {
    let mut request = Request::new(Body::empty());
    *request.uri_mut() = format!("/{script}").parse().unwrap();
    let answer = stub(kit).fetch(request);
    drop(kit.spawn(async move { drop(answer.await) }));
}

async fn play_op<const FLAW: u8>(kit: &Kit, case: &Case, op: &Op) {
    match op {
        Op::Call(script) => call(kit, watch::keep(script)),
        Op::Advance(ms) => kit.advance(Duration::from_millis((*ms).into())).await,
        Op::Yield(steps) => {
            for _ in 0..*steps {
                give_way().await;
            }
        }
        Op::Strike(Strike::Hibernate) => drop(kit.hibernate(&stub(kit)).await),
        Op::Strike(Strike::Evict) => kit.evict(&stub(kit)),
        Op::Strike(Strike::Crash) => kit.crash(),
        Op::Strike(Strike::LosePower) => kit.lose_power(),
        Op::Strike(Strike::Deploy) => {
            kit.deploy(builder::<FLAW>(case)).unwrap();
            watch::deployed(stub(kit));
        }
        Op::StrikeIn(steps, strike) => kit.at_step(kit.steps() + u64::from(*steps), &of_kit(kit, *strike)),
        Op::Storm(strike, thousandths) => {
            kit.at_random(&of_kit(kit, *strike), f64::from(*thousandths) / 1_000.0);
        }
        Op::Fail(Fault::Sql(n)) => watch::fail_statement(*n),
        Op::Fail(Fault::Kit(what)) => kit.fail_next(&stub(kit), *what),
        Op::Late(ms) => kit.late_alarms(Duration::from_millis((*ms).into())),
        Op::Repeat(times) => kit.repeat_alarms((*times).into()),
        Op::StepWall(ms) => {
            kit.step_wall(do_core::Timestamp::from_millis(kit.now().as_millis() + i64::from(*ms)));
        }
    }
}

/// Once nothing fails any more, what is due runs in bounded time: an event comes only where the platform, or the object
/// itself, took the alarm away, or a fault was followed by the loss of the instance that would have mended it.
async fn rest(kit: &Kit) {
    /// Longer than all waits that runs which failed one after the other can add up to.
    const ENOUGH: u32 = 12;
    kit.heal();
    watch::heal();
    kit.settle().await;
    let mut wait = Duration::from_secs(3);
    for last in (0..ENOUGH).rev() {
        if watch::is_complaining() {
            return;
        }
        if watch::needs_an_event(last == ENOUGH - 1) {
            kit.evict(&stub(kit)); // the first event of an instance is the one that looks
            call(kit, 0);
        }
        kit.advance(wait).await;
        let late = watch::is_late(kit.now().as_millis() - 5_000);
        let Some(late) = late else { break };
        if last == 0 {
            watch::complain(late);
        }
        wait *= 2;
    }
    if watch::is_armed_for_nothing().is_some() {
        kit.advance(Duration::from_secs(600)).await; // a run that failed comes again, and finds nothing
        call(kit, 0);
        kit.settle().await;
        if let Some(unused) = watch::is_armed_for_nothing() {
            watch::complain(unused);
        }
    }
}

async fn give_way() {
    let mut gave = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut gave, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
