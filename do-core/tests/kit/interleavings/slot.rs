//! A small model of the alarm slot: what the committed turns say about it, and what each run may do.

use super::{
    check::{Facts, Verdict},
    ops::Op,
    witness::{End, Job, What},
};
use do_core::limits;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Slot {
    /// In ms.
    Known(Option<i64>),
    /// Something ended that may or may not have been written down.
    Unknown,
}

struct Running {
    run: u32,
    retry: u32,
    /// Set or deleted since the run began.
    touched: bool,
    /// The row of its last turn.
    last: Option<u32>,
}

pub(super) fn check(facts: &Facts<'_>, object: u8) -> Verdict {
    let repeats = facts.case.ops.iter().any(|op| matches!(op, Op::RepeatAlarms(times) if *times > 0));
    let mut slot = Slot::Known(None);
    let mut running: Option<Running> = None;
    for seen in facts.record.seen.iter().filter(|seen| seen.object == object) {
        match seen.what {
            What::Alarm { row, at } if facts.has(row) => {
                slot = Slot::Known(at);
                if let Some(running) = &mut running {
                    running.touched = true;
                }
            }
            What::Begins(Job::Alarm { scheduled, retry, now }) => {
                may_run(slot, scheduled, now).map_err(|why| format!("6: in object {object} {why}"))?;
                if running.is_some() {
                    return Err(format!("6: two alarms of object {object} run at once"));
                }
                running = Some(Running { run: seen.run, retry, touched: false, last: None });
            }
            What::AlarmEnds { row } => {
                if let Some(running) = &mut running {
                    running.last = Some(row);
                }
            }
            What::Ends(end) if running.as_ref().is_some_and(|running| running.run == seen.run) => {
                if let Some(running) = running.take() {
                    slot = after(slot, &running, end, facts, repeats);
                }
            }
            _ => {}
        }
    }
    match (slot, facts.record.held.get(usize::from(object)).and_then(|held| held.alarm)) {
        (Slot::Known(Some(at)), _) => Err(format!("6: the alarm of object {object} for {at} did not run")),
        (_, Some(at)) => Err(format!("6: the slot of object {object} still says {at}")),
        _ => Ok(()),
    }
}

fn may_run(slot: Slot, scheduled: i64, now: i64) -> Verdict {
    match slot {
        Slot::Known(None) => Err(format!("an alarm for {scheduled} runs at {now}, but none is set")),
        Slot::Known(Some(at)) if at > now => Err(format!("an alarm runs at {now}, but is set to {at}")),
        _ if scheduled > now => Err(format!("an alarm runs at {now} and is told {scheduled}")),
        _ => Ok(()),
    }
}

/// What a run leaves behind.
fn after(slot: Slot, running: &Running, end: End, facts: &Facts<'_>, repeats: bool) -> Slot {
    let committed = running.last.is_some_and(|row| facts.has(row));
    let gives_up = running.retry >= limits::ALARM_RETRIES;
    match end {
        _ if running.touched => slot,
        End::Well if committed && repeats => Slot::Unknown,
        End::Well if committed => Slot::Known(None),
        End::Failed if committed && gives_up => Slot::Known(None),
        _ if gives_up => Slot::Unknown, // a reset counts as a failure, a crash does not
        _ => slot,
    }
}
