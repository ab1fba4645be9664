//! What is true of the schedule at the end of each turn, told from outside of the simulated process.
//!
//! Turns of one instance commit one after the other, so what the last one left is what the next one begins with; a new
//! instance begins with what the last turn left or with what was there before it. Each change of a row must be explained
//! by what the object did in that turn.

use super::{
    case::{Case, JOBS, SLOTS, Step},
    rows::{Row, Rows},
};
use do_core::{
    Timestamp,
    kit::{Failing, Kit},
    tokio::HostStub,
};
use std::{cell::RefCell, collections::BTreeSet, fmt::Write as _, rc::Rc};

type Verdict = Result<(), String>;

/// What a turn belongs to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Kind {
    Constructor,
    Fetch,
    Alarm,
    Background,
}

/// What the object did in a turn.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Event {
    /// At a time, or again and again.
    Put {
        key: String,
        at: Option<i64>,
    },
    /// Perhaps.
    Written(String),
    Cancelled(String),
    Replayed(i64, String),
    Discarded(i64),
    DeletedAll,
    /// `for_good` is for no further attempt.
    Ended {
        name: String,
        well: bool,
        for_good: bool,
    },
}

impl Event {
    fn writes(&self, of: &str) -> bool {
        match self {
            Self::Put { key, .. } | Self::Written(key) | Self::Cancelled(key) => key == of,
            Self::Replayed(id, name) => name == of || replay_key(*id) == of,
            Self::Discarded(_) | Self::Ended { .. } => false,
            Self::DeletedAll => true,
        }
    }
}

/// Whether a row has one of the names that there are, or is a letter's.
fn is_known(key: &str) -> bool {
    JOBS.iter().chain(&SLOTS).any(|name| *name == key) || key.starts_with('\u{1}')
}

fn replay_key(id: i64) -> String {
    format!("\u{1}replay {id}")
}

/// Why rows may be pending without an alarm.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Excuse {
    /// The schedule knows, and tries again in that instance.
    Fault { instance: u32 },
    /// The object took the alarm away.
    Touched,
    /// The constructor of that instance wrote them, and no event has followed.
    Declared { instance: u32 },
    /// The platform gave the alarm up after many runs that were cut off.
    Dropped,
}

/// A run of the alarm that is under way.
#[derive(Debug, Clone, Copy)]
struct Running {
    retry: u32,
    touched: bool,
    failed: bool,
}

impl Running {
    /// The platform drops the alarm if it is cut off.
    fn is_last(self) -> bool {
        self.retry >= do_core::limits::ALARM_RETRIES && !self.touched
    }
}

#[derive(Default)]
struct Watch {
    case: Rc<Case>,
    world: Option<(Kit, HostStub)>,
    beginning: i64,
    scripts: Vec<Rc<Vec<Step>>>,
    job_scripts: u32,
    instance: u32,
    /// The last that left memory.
    gone: u32,
    constructing: bool,
    /// Before the last turn, and after it.
    before: Rows,
    after: Rows,
    events: Vec<Event>,
    /// A statement or the setting of the alarm failed in this turn.
    faulty: bool,
    /// The rows may have changed in this turn.
    wrote: bool,
    /// Statements until one fails.
    countdown: Option<u8>,
    running: Option<Running>,
    /// What may be run next, or runs: more than one only where a row looks the same before and after.
    claimed: Vec<Row>,
    /// Put again while they waited for a retry: the attempts that were made still count.
    put_again: BTreeSet<String>,
    /// An event or a run of this instance has begun, so that the schedule may look.
    attended: bool,
    excuse: Option<Excuse>,
    /// Before the last turn, which may not commit.
    excuse_before: Option<Excuse>,
    /// There may be an alarm that nothing is pending for, until it comes.
    may_idle: bool,
    /// Where a run that failed put the alarm.
    recovery: Option<i64>,
    failures: u32,
    armed: Option<i64>,
    now: i64,
    complaint: Option<String>,
    log: Option<String>,
}

impl Default for Case {
    fn default() -> Self {
        Self {
            seed: 0,
            declared: Vec::new(),
            behaviours: Vec::new(),
            slots: [0; super::case::SLOTS.len()],
            per_wake: 64,
            history: 0,
            idle: 10,
            cut: None,
            ops: Vec::new(),
        }
    }
}

/// Runs of jobs in a case that do more than end.
const JOB_SCRIPTS: u32 = 12;

thread_local! {
    static WATCH: RefCell<Watch> = RefCell::default();
}

fn with<T>(f: impl FnOnce(&mut Watch) -> T) -> T {
    WATCH.with_borrow_mut(f)
}

// ---- for who plays a case

pub(crate) fn begin(case: &Case, kit: &Kit, stub: HostStub, log: bool) {
    let watch = Watch {
        case: Rc::new(case.clone()),
        beginning: kit.now().as_millis(),
        now: kit.now().as_millis(),
        world: Some((kit.clone(), stub)),
        scripts: vec![Rc::default()],
        log: log.then(String::new),
        ..Watch::default()
    };
    with(|old| *old = watch);
}

pub(crate) fn deployed(stub: HostStub) {
    with(|watch| {
        if let Some((_, old)) = &mut watch.world {
            *old = stub;
        }
    });
}

/// What is wrong, and what happened.
pub(crate) fn end() -> (Option<String>, String) {
    let watch = WATCH.take();
    (watch.complaint, watch.log.unwrap_or_default())
}

/// Scripts travel by number; 0 does nothing.
pub(crate) fn keep(script: &[Step]) -> usize {
    with(|watch| {
        watch.scripts.push(Rc::new(script.to_vec()));
        watch.scripts.len() - 1
    })
}

pub(crate) fn heal() {
    with(|watch| watch.countdown = None);
}

/// Whether nobody but a further event can know, or mend, what there is.
///
/// An instance that left memory by itself, with an alarm to mend, is not excused: hence `struck`.
pub(crate) fn needs_an_event(struck: bool) -> bool {
    with(|watch| match watch.excuse {
        _ if watch.before != watch.after && struck && watch.gone == watch.instance => true,
        None if struck && watch.gone == watch.instance && watch.running.is_some_and(Running::is_last) => true,
        None => struck && watch.excuse_before.is_some() && watch.gone == watch.instance,
        Some(Excuse::Fault { instance }) => struck && (instance != watch.instance || watch.gone == instance),
        Some(Excuse::Touched | Excuse::Dropped | Excuse::Declared { .. }) => true,
    })
}

/// The soonest pending row, if it is in the past, or the lack of an alarm.
pub(crate) fn is_late(now: i64) -> Option<String> {
    with(|watch| {
        if let Some(excuse) = watch.excuse {
            return Some(format!("late: the alarm is still not set after {excuse:?}"));
        }
        let late = watch.after.pending.iter().find(|(_, row)| row.due < now)?;
        Some(format!("late: at {now}, {late:?} did not run"))
    })
}

/// Nothing is pending, and yet there is an alarm that the schedule has set.
pub(crate) fn is_armed_for_nothing() -> Option<String> {
    with(|watch| {
        let armed = watch.armed.filter(|_| watch.after.pending.is_empty() && !watch.may_idle)?;
        Some(format!("idle: nothing is pending, but the alarm is set for {armed}"))
    })
}

pub(crate) fn is_complaining() -> bool {
    with(|watch| watch.complaint.is_some())
}

pub(crate) fn complain(what: String) {
    with(|watch| watch.complain(what));
}

// ---- for the object

pub(crate) fn case() -> Rc<Case> {
    with(|watch| Rc::clone(&watch.case))
}

pub(crate) fn beginning() -> Timestamp {
    Timestamp::from_millis(with(|watch| watch.beginning))
}

pub(crate) fn script(number: usize) -> Rc<Vec<Step>> {
    with(|watch| Rc::clone(&watch.scripts[number]))
}

/// What a job does beside ending. Not for ever: one that sets itself for now again and again never lets time pass.
pub(crate) fn job_script(behaviour: usize) -> Vec<Step> {
    with(|watch| {
        watch.job_scripts += 1;
        let script = watch.case.behaviours.get(behaviour).filter(|_| watch.job_scripts <= JOB_SCRIPTS);
        script.map(|behaviour| behaviour.script.clone()).unwrap_or_default()
    })
}

pub(crate) fn saw(event: Event) {
    with(|watch| {
        if let (Some(running), Event::Ended { well: false, .. }) = (&mut watch.running, &event) {
            running.failed = true;
        }
        watch.events.push(event);
    });
}

pub(crate) fn events() -> usize {
    with(|watch| watch.events.len())
}

pub(crate) fn undo_events(to: usize) {
    with(|watch| watch.events.truncate(to));
}

pub(crate) fn fail_statement(n: u8) {
    with(|watch| watch.countdown = Some(n));
}

pub(crate) fn statement_fails() -> bool {
    with(|watch| {
        let fails = watch.countdown == Some(0);
        watch.countdown = watch.countdown.and_then(|n| n.checked_sub(1));
        watch.faulty |= fails;
        fails
    })
}

/// Something was written, or undone.
pub(crate) fn writes() {
    with(|watch| watch.wrote = true);
}

pub(crate) fn may_have_written() -> bool {
    with(|watch| watch.wrote)
}

pub(crate) fn fail(what: Failing) {
    if let Some((kit, stub)) = with(|watch| watch.world.clone()) {
        kit.fail_next(&stub, what);
    }
}

pub(crate) fn raw_was_touched() {
    with(|watch| {
        watch.excuse = Some(Excuse::Touched);
        watch.may_idle = true;
        watch.touch();
    });
}

pub(crate) fn failed_in_run() -> bool {
    with(|watch| watch.running.is_some_and(|running| running.failed))
}

pub(crate) fn is_running() -> bool {
    with(|watch| watch.running.is_some())
}

pub(crate) fn alarm_set(at: i64, now: i64, well: bool) {
    with(|watch| {
        if watch.constructing {
            watch.complain("E12: the alarm is set in the constructor".to_owned());
        }
        if watch.running.is_some() && at <= now {
            watch.complain(format!("E4b: the alarm is set to {at} in its run at {now}"));
        }
        if well {
            watch.touch();
            // If the run is cut off, it comes then.
            watch.recovery = watch.recovery.max(Some(at).filter(|_| watch.running.is_some()));
        } else {
            watch.faulty = true;
            watch.excuse = Some(Excuse::Fault { instance: watch.instance });
        }
        watch.say(|| format!("  alarm set to {at}{}", if well { "" } else { ", which fails" }));
    });
}

pub(crate) fn alarm_deleted() {
    with(|watch| {
        if watch.constructing {
            watch.complain("E12: the alarm is deleted in the constructor".to_owned());
        }
        watch.touch();
        watch.say(|| "  alarm deleted".to_owned());
    });
}

/// Gives the instance's number.
pub(crate) fn constructs(rows: Rows) -> u32 {
    with(|watch| {
        watch.instance += 1;
        watch.constructing = true;
        watch.say(|| "is constructed".to_owned());
        if rows != watch.after && rows != watch.before {
            watch.complain(format!("torn: {rows:?} is not what any turn left: {:?}", watch.after));
        }
        if watch.running.take().is_some_and(Running::is_last) {
            watch.excuse = Some(Excuse::Dropped);
        }
        watch.excuse = watch.excuse.or(watch.excuse_before);
        watch.wrote = false;
        watch.before.clone_from(&rows);
        watch.after = rows;
        watch.claimed.clear();
        watch.attended = false;
        watch.failures = 0;
        watch.events.clear();
        watch.faulty = false;
        watch.instance
    })
}

/// An instance left memory.
pub(crate) fn goes(instance: u32) {
    with(|watch| watch.gone = instance);
}

pub(crate) fn run_begins(retry: u32) {
    with(|watch| {
        if watch.running.is_some() {
            watch.complain("E5: two runs of the alarm at once".to_owned());
        }
        watch.running = Some(Running { retry, touched: false, failed: false });
        watch.recovery = None;
    });
}

pub(crate) fn job_begins(name: &str, scheduled: i64, attempt: u32, now: i64) {
    with(|watch| {
        watch.say(|| format!("  job {name} for {scheduled} begins, attempt {attempt}"));
        let is_it = |row: &Row| row.name == name && row.attempt == attempt && row.scheduled() == scheduled;
        let claimed = std::mem::take(&mut watch.claimed);
        match claimed.iter().find(|row| is_it(row)).cloned() {
            Some(row) => {
                if scheduled > now {
                    watch.complain(format!("early: the job {name} for {scheduled} runs, at {now}"));
                }
                if attempt > row.runs() && !watch.put_again.contains(name) {
                    watch.complain(format!("again: the job {name} runs for the {attempt}th time: {row:?}"));
                }
                watch.claimed = vec![row];
            }
            None => watch.complain(format!(
                "unclaimed: the job {name} for {scheduled} runs, attempt {attempt}, but {claimed:?} is claimed"
            )),
        }
    });
}

pub(crate) fn turn_ended(
    instance: u32,
    kind: Kind,
    ended: Option<bool>,
    rows: Option<Rows>,
    armed: Option<i64>,
    now: i64,
) {
    with(|watch| {
        watch.say(|| format!("{kind:?} turn at {now}, ended {ended:?}: alarm {armed:?}, {rows:?}"));
        if instance != watch.instance {
            return watch.complain(format!("instance: a turn of {instance} after one of {}", watch.instance));
        }
        watch.now = watch.now.max(now);
        watch.wrote = false;
        let rows = rows.unwrap_or_else(|| watch.after.clone());
        watch.before = std::mem::replace(&mut watch.after, rows);
        watch.armed = armed;
        watch.excuse_before = watch.excuse;
        let verdict = watch.rows_are_explained(kind, now).and_then(|()| watch.is_armed(kind, ended, armed));
        if let Err(why) = verdict {
            let events = std::mem::take(&mut watch.events);
            watch.complain(format!("{why}; at {now}, after a {kind:?} turn with {events:?}"));
        }
        watch.events.clear();
        watch.faulty = false;
        watch.constructing = false;
    });
}

impl Watch {
    fn say(&mut self, what: impl FnOnce() -> String) {
        if self.complaint.is_none()
            && let Some(log) = &mut self.log
        {
            let _ = writeln!(log, "[{}] {}", self.instance, what());
        }
    }

    fn complain(&mut self, what: String) {
        self.complaint.get_or_insert(what);
    }

    fn touch(&mut self) {
        if let Some(running) = &mut self.running {
            running.touched = true;
        }
    }

    /// Rows pending, then the raw alarm is armed at or before the soonest.
    fn is_armed(&mut self, kind: Kind, ended: Option<bool>, armed: Option<i64>) -> Verdict {
        if kind == Kind::Constructor {
            let soonest = self.after.soonest();
            if soonest.is_some_and(|soonest| armed.is_none_or(|at| at > soonest.max(self.now + 1))) {
                self.excuse.get_or_insert(Excuse::Declared { instance: self.instance });
            }
            return Ok(());
        }
        let run = match (kind, ended, self.running) {
            (Kind::Alarm, Some(_), run) => run,
            (_, _, Some(_)) => return Ok(()),
            _ => None,
        };
        self.running = self.running.filter(|_| run.is_none());
        // An instance arms what it declares in the turn of its first event. What an earlier one has left without, it finds
        // right behind that.
        let instance = self.instance;
        self.excuse = match self.excuse {
            Some(Excuse::Declared { instance: of }) if of == instance => None,
            Some(Excuse::Declared { .. }) => Some(Excuse::Fault { instance }),
            excuse => excuse,
        };
        let was_attended = std::mem::replace(&mut self.attended, true);
        if self.faulty && (run.is_some() || !was_attended) {
            self.excuse = Some(Excuse::Fault { instance: self.instance });
        }
        let well = ended != Some(false) || kind != Kind::Alarm;
        if run.is_some() {
            // A run that the handler drops neither fails nor succeeds.
            self.failures = if !well {
                self.failures + 1
            } else if self.case.cut.is_none() {
                0
            } else {
                self.failures
            };
        }
        let Some(soonest) = self.after.soonest() else {
            self.excuse = None;
            self.may_idle |= self.faulty; // the row was taken away, and then the alarm could not be
            let unused = run.is_some_and(|_| well) && armed.is_some() && !self.may_idle && !self.faulty;
            return if unused { Err("idle: a run leaves an alarm and no rows".to_owned()) } else { Ok(()) };
        };
        let most = soonest.max(self.now + 1);
        let is_armed = armed.is_some_and(|at| at <= most);
        let recovers = armed.is_some_and(|at| self.recovery.is_some_and(|recovery| at <= recovery));
        match run {
            _ if is_armed => {
                self.excuse = None;
                return Ok(());
            }
            _ if recovers || self.excuse.is_some() => return Ok(()),
            Some(run) if !well && !run.touched => {
                if run.is_last() {
                    self.excuse = Some(Excuse::Dropped);
                }
                return Ok(()); // the platform tries again
            }
            Some(_) if !well => {
                let wait = 2_000_i64 << (self.failures - 1).min(9);
                if armed.is_some_and(|at| at <= self.now + wait) {
                    self.recovery = armed;
                    return Ok(());
                }
            }
            _ => {}
        }
        Err(format!("armed: the soonest row is due at {soonest}, the alarm is set to {armed:?}"))
    }

    fn rows_are_explained(&mut self, kind: Kind, now: i64) -> Verdict {
        if self.events.contains(&Event::DeletedAll) {
            self.claimed.extend(self.after.pending.values().filter(|row| row.running).cloned()); // beside what runs on
            return Ok(());
        }
        if let Some(key) = self.after.pending.keys().find(|key| !is_known(key)) {
            return Err(format!(
                "doubled: {key:?} is beside what has a name: {:?}",
                self.after.pending.keys()
            ));
        }
        self.dead_letters_are_explained(kind)?;
        let (before, after) = (&self.before.pending, &self.after.pending);
        let keys: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
        let mut claimed = Vec::new();
        for key in keys {
            let (old, new) = (before.get(key), after.get(key));
            if self.events.iter().any(|event| event.writes(key)) {
                claimed.extend(new.filter(|new| new.running && kind == Kind::Alarm).cloned());
                if old.is_some_and(|row| row.attempt > 0) {
                    self.put_again.insert(key.clone());
                }
                continue;
            }
            if old != new && new.is_none_or(|row| row.attempt == 1 && row.running) {
                self.put_again.remove(key);
            }
            match (old, new) {
                (None, Some(new)) => return Err(format!("new: {key:?} comes from nowhere: {new:?}")),
                (Some(old), None) => self.may_go(key, old)?,
                (Some(old), Some(new)) if old == new => {
                    if old.running
                        && self.ended(&old.name) == Some(true)
                        && !self.faulty
                        && self.is_claimed(old)
                    {
                        return Err(format!("again: {key:?} succeeded and is still there: {new:?}"));
                    }
                }
                (Some(old), Some(new)) => {
                    if kind != Kind::Alarm {
                        return Err(format!("changed: {key:?} changes by itself: {old:?} to {new:?}"));
                    }
                    self.may_become(key, old, new, now)?;
                    if new.running {
                        claimed.push(new.clone());
                    }
                }
                (None, None) => {}
            }
        }
        if !claimed.is_empty() {
            self.claimed = claimed;
        }
        self.puts_are_there(now)
    }

    fn is_claimed(&self, row: &Row) -> bool {
        self.claimed.contains(row)
    }

    /// Whether a job of that name ended in this turn, and whether well.
    fn ended(&self, of: &str) -> Option<bool> {
        self.events.iter().rev().find_map(|event| match event {
            Event::Ended { name, well, .. } if name == of => Some(*well),
            _ => None,
        })
    }

    fn is_newly_dead(&self, of: &str) -> bool {
        self.after.dead.iter().any(|(id, (name, _))| name == of && !self.before.dead.contains_key(id))
    }

    fn may_go(&self, key: &str, old: &Row) -> Verdict {
        let is_done = old.running && !old.recurs() && self.ended(&old.name) == Some(true);
        if is_done || self.is_newly_dead(&old.name) {
            return Ok(());
        }
        Err(format!("lost: {key:?} is lost: it was {old:?}"))
    }

    /// In a turn of the alarm.
    fn may_become(&self, key: &str, old: &Row, new: &Row, now: i64) -> Verdict {
        let (ended, dead) = (self.ended(&old.name), self.is_newly_dead(&old.name));
        let goes_on = new.attempt == u32::from(new.running)
            && if new.running {
                new.due <= now && (new.due == new.tick || new.tick > now)
            } else {
                new.due == new.tick
            }
            && if old.due < old.tick { new.tick >= old.tick } else { old.recurs() && new.tick > old.tick };
        // Put anew in a run that failed: the attempts go on.
        let again = ended == Some(false)
            && self.claimed.iter().any(|row| row.name == old.name && new.attempt == row.attempt + 1);
        let is_claim = new.running
            && old.due <= now
            && (new.attempt == old.attempt + 1 || again)
            && new.due == if new.tick <= now { old.due.max(new.tick) } else { old.due }
            && new.tick >= old.tick;
        let is_retry = !new.running
            && new.attempt == old.attempt
            && new.tick == old.tick
            && (new.due > now || old.due < old.tick && new.due == old.tick);
        // Its next time has come meanwhile.
        let goes_on_at_once = new.running
            && new.attempt == old.attempt + 1
            && old.due < old.tick
            && new.due == old.tick
            && new.tick == old.tick;
        let may = match (old.running, ended) {
            (true, Some(true)) => goes_on,
            (true, _) if dead => goes_on,
            (true, _) => (is_retry || goes_on_at_once) && old.attempt < old.runs(),
            (false, None) => is_claim || (goes_on && new.tick > old.tick),
            // Put anew in its run.
            (false, Some(true)) => is_claim,
            (false, Some(false)) => {
                let same = |row: &Row| row.name == old.name && row.payload == old.payload;
                let retried = new.tick == old.tick && new.due <= old.due && !new.running;
                is_claim || (retried && self.claimed.iter().any(same))
            }
        };
        if may { Ok(()) } else { Err(format!("changed: {key:?} should not go on so: {old:?} to {new:?}")) }
    }

    fn dead_letters_are_explained(&self, kind: Kind) -> Verdict {
        let (before, after) = (&self.before.dead, &self.after.dead);
        for (id, letter) in before.iter().filter(|(id, _)| !after.contains_key(id)) {
            let taken = |event: &Event| match event {
                Event::Replayed(of, _) | Event::Discarded(of) => of == id,
                _ => false,
            };
            if !self.events.iter().any(taken) {
                return Err(format!("dead: the dead letter {id} is lost: {letter:?}"));
            }
        }
        for (id, (name, attempts)) in after.iter().filter(|(id, _)| !before.contains_key(id)) {
            let row = self.before.pending.values().find(|row| row.name == *name && row.running);
            let claimed = self.claimed.iter().find(|row| row.name == *name);
            let Some(row) = claimed.or(row).filter(|_| kind == Kind::Alarm) else {
                return Err(format!("dead: the dead letter {id} of {name:?} comes from nowhere"));
            };
            let for_good =
                |event: &Event| matches!(event, Event::Ended { name: of, for_good: true, .. } if of == name);
            if self.ended(name) == Some(true) {
                return Err(format!("dead: a dead letter of {name:?}, which succeeded"));
            }
            // Put anew while it ran, perhaps with more runs: those that it began with count.
            let again = self.put_again.contains(name);
            if *attempts < row.runs() && !again && !self.events.iter().any(for_good) {
                return Err(format!("dead: {name:?} is given up after {attempts} runs: {row:?}"));
            }
        }
        Ok(())
    }

    /// What was put or taken away in a turn without faults is there, or not.
    fn puts_are_there(&self, now: i64) -> Verdict {
        if self.faulty {
            return Ok(());
        }
        for (index, event) in self.events.iter().enumerate() {
            let (Event::Put { key, .. } | Event::Cancelled(key)) = event else { continue };
            let others = |other: &Event| other.writes(key);
            if self.events[index + 1..].iter().any(others) || self.ended(key).is_some() {
                continue;
            }
            let (old, new) = (self.before.pending.get(key), self.after.pending.get(key));
            let Event::Put { at, .. } = event else {
                if let Some(new) = new {
                    return Err(format!("put: {key:?} was cancelled and is there: {new:?}"));
                }
                continue;
            };
            let Some(new) = new else { return Err(format!("put: {key:?} was put and is not there")) };
            let Some(at) = *at else { continue };
            if self.events[..index].iter().any(others) {
                continue;
            }
            let is_same =
                |old: &Row| old.due == new.due && (old.tick == at || (old.tick <= now && at <= now));
            if new.due != at.max(now) && !old.is_some_and(is_same) {
                return Err(format!("put: {key:?} was put for {at}, but {new:?}"));
            }
        }
        Ok(())
    }
}
