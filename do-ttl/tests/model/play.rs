//! Plays a case in the kit, and holds what was seen to the model.

use crate::{
    lab::{self, Kept, Seen, Slot, Table, Told},
    last::Last,
    model::{self, Owed},
    ops::{Case, Op, STORES, Setup, Turn},
};
use do_core::{
    kit::{Failing, Kit, Strike},
    prelude::*,
};
use do_ttl::Version;
use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
};

/// Later than the latest time that an alarm can have.
const ALARM_MAX_MS: i64 = do_core::limits::ALARM_MAX_MS;

/// What was found out so far.
#[derive(Debug, Default)]
struct Judge {
    last: Last,
    /// The turns whose answers came, which are kept.
    answered: Rc<RefCell<BTreeSet<u32>>>,
    /// Turns that were seen not to have been kept.
    undone: BTreeSet<u32>,
    /// Who gave which version to a key.
    given: BTreeMap<Slot, BTreeMap<Version, u32>>,
    /// The newest version of an instance.
    newest: BTreeMap<u32, Version>,
    /// Something failed that has to do with the alarm, and was not seen to be mended.
    troubled: bool,
    /// A transaction was rolled back, and what the instance knows of the alarm was not compared since: it may take one that
    /// is left over for none.
    shaken: bool,
    /// Instances may have been lost since all was well.
    struck: bool,
    /// What is to be told of.
    owed: Vec<Owed>,
    /// What was cleared, if it was not over before, and what may never have been.
    maybe_owed: Vec<Owed>,
    /// Everything was deleted at some time, with what was written down of it.
    deleted: bool,
    newest_instance: u32,
    /// The instance that has seen what the alarm is. One that wakes and finds nothing that expires does not look.
    compared: u32,
}

impl Judge {
    fn turn(&mut self, setup: &Setup, seen: &Seen, turn: &Turn) -> Result<(), String> {
        self.found(setup, seen)?;
        Self::cleared(setup, seen)?;
        let mut owed = Vec::new();
        let mut before = &seen.before;
        for step in &seen.steps {
            let new = model::check(setup, seen.now, before, step)
                .map_err(|wrong| format!("{wrong}\nin {step:?}"))?;
            owed.extend(new);
            for given in model::given(step) {
                self.version(seen, given)?;
            }
            before = &step.after;
        }
        let kept = if turn.fail { &seen.before } else { before };
        if seen.after != *kept {
            return Err(format!("table: the end of the turn differs\n{seen:?}"));
        }
        let has_failed = seen.steps.iter().any(|step| step.done.is_err());
        self.shaken |= has_failed || turn.fail || !turn.undone.is_empty();
        self.alarm(setup, seen, turn)?;
        self.deleted |= seen.deletes_all();
        if !turn.fail {
            self.last.owe(owed);
        }
        self.last.left(&seen.after);
        Ok(())
    }

    /// What is found is what was left, apart from what a sweep took.
    fn found(&mut self, setup: &Setup, seen: &Seen) -> Result<(), String> {
        let is_answered = self.answered.borrow().contains(&self.last.number);
        let (next, settled) = std::mem::take(&mut self.last).followed_by(setup, seen, is_answered)?;
        self.last = next;
        self.undone.extend(settled.undone);
        self.owed.extend(settled.owed);
        self.maybe_owed.extend(settled.maybe_owed);
        Ok(())
    }

    /// Whoever was owed it was told, once; and nobody else.
    fn told(&self, told: &[Told]) -> Result<(), String> {
        if self.deleted {
            return Ok(()); // with what was told
        }
        let told_of = |owed: &Owed| Told {
            slot: owed.slot.clone(),
            version: owed.row.version,
            value: owed.row.value.clone(),
            expires: owed.row.expires.unwrap_or_default(),
            is_evicted: owed.is_evicted,
        };
        let [owed_last, maybe_owed_last] = self.last.found_to_be_owed();
        let maybe: Vec<_> = self.maybe_owed.iter().chain(maybe_owed_last).map(told_of).collect();
        let mut owed: Vec<_> = self.owed.iter().chain(owed_last).map(told_of).collect();
        owed.extend(maybe.into_iter().filter(|maybe| told.contains(maybe)));
        let key = |told: &Told| (told.slot.clone(), told.version);
        let mut told = told.to_vec();
        owed.sort_by_key(key);
        owed.dedup(); // of what may have been either of two ways
        told.sort_by_key(key);
        if owed == told { Ok(()) } else { Err(format!("told: of {told:?}\nto be told was {owed:?}")) }
    }

    /// What was there when a clear began is gone when it has ended. What is over and is to be told of is not its matter.
    fn cleared(setup: &Setup, seen: &Seen) -> Result<(), String> {
        let stays = |slot: &(String, String), row: &Kept| {
            let notifies = (0..STORES).any(|n| lab::store_name(n) == slot.0 && setup.stores[n].notify);
            notifies && !model::is_live(row, seen.now)
        };
        for (slot, version) in seen.cleared.iter().flatten() {
            if let Some(row) = seen.before.get(slot)
                && row.version == *version
                && !stays(slot, row)
            {
                return Err(format!("cleared: {slot:?} is still there\n{seen:?}"));
            }
        }
        Ok(())
    }

    /// Each put has another one.
    fn version(&mut self, seen: &Seen, (slot, version): (Slot, Version)) -> Result<(), String> {
        let newest = self.newest.entry(seen.instance).or_insert(Version::from_raw(0));
        if version <= *newest {
            return Err(format!("version: {version} follows {newest} in one instance"));
        }
        *newest = version;
        let before = self.given.entry(slot.clone()).or_default().insert(version, seen.instance);
        // Two instances in one millisecond is what only a clock does that stands still.
        if before.is_some_and(|instance| instance == seen.instance) {
            return Err(format!("version: {slot:?} has {version} again"));
        }
        Ok(())
    }

    /// What expires has its alarm, and it was not moved later.
    fn alarm(&mut self, setup: &Setup, seen: &Seen, turn: &Turn) -> Result<(), String> {
        let next = seen.now + 1;
        // A slot whose run was cut off shows no time, and is compared behind the first event.
        let is_first = setup.scheduled && self.newest_instance < seen.instance;
        self.newest_instance = seen.instance;
        // A run that a strike cut off comes again, whatever the alarm shows.
        let is_cut_off = setup.scheduled && self.struck && self.compared != seen.instance;
        if seen.sweeping
            || is_first
            || is_cut_off
            || self.troubled
            || turn.fails.is_some()
            || seen.deletes_all()
        {
            return Ok(());
        }
        // An instance that has not compared yet may take one for later than it is, which is left over and needed by nobody.
        let soonest = |table: &Table| table.values().filter_map(|row| row.expires).min();
        let is_needed = |at: i64| soonest(&seen.before).is_some_and(|soonest| soonest + setup.slack <= at);
        if let Some(before) = seen.armed_before.filter(|before| *before > seen.now)
            && !self.shaken
            && (self.compared == seen.instance || is_needed(before))
            && seen.armed.is_none_or(|armed| armed > before)
        {
            return Err(format!("later: the alarm was moved from {before}\n{seen:?}"));
        }
        let Some(soonest) = soonest(&seen.after).filter(|_| !turn.fail) else { return Ok(()) };
        let wanted = soonest.saturating_add(setup.slack).min(ALARM_MAX_MS).max(next);
        if seen.armed.is_none_or(|armed| armed > wanted) {
            return Err(format!("armed: the alarm should be set for {wanted} or before\n{seen:?}"));
        }
        Ok(())
    }
}

impl Seen {
    fn deletes_all(&self) -> bool {
        self.steps.iter().any(|step| matches!(step.call, crate::ops::Call::DeleteAll))
    }
}

struct Player {
    kit: Kit,
    setup: Setup,
    judge: Judge,
    turns: BTreeMap<u32, Turn>,
    latest: Timestamp,
}

impl Player {
    async fn op(&mut self, op: &Op) -> Result<(), String> {
        let kit = self.kit.clone();
        self.latest = self.latest.max(kit.now());
        match op {
            Op::Turn(turn) => self.ask(turn).await,
            Op::Beside(turn) => drop(kit.spawn(self.ask(turn))),
            Op::Advance(ms) => kit.advance(Duration::from_millis((*ms).into())).await,
            Op::Leap(hours) => kit.advance(Duration::from_secs(3_600 * u64::from(*hours))).await,
            Op::StepWall(ms) => kit.step_wall(Timestamp::from_millis(kit.now().as_millis() + ms)),
            Op::Late(ms) => kit.late_alarms(Duration::from_millis((*ms).into())),
            Op::Twice => kit.repeat_alarms(1),
            Op::Hibernate => drop(kit.hibernate(&lab::stub(&kit)).await),
            Op::Strike(what, steps) => {
                let stub = lab::stub(&kit);
                let all =
                    [Strike::Hibernate(stub.clone()), Strike::Evict(stub), Strike::Crash, Strike::LosePower];
                kit.at_step(kit.steps() + u64::from(*steps), &all[usize::from(*what)]);
            }
            Op::Fail(what) => {
                self.judge.troubled |=
                    matches!(what, Failing::Sql | Failing::SqlAfter(_) | Failing::SetAlarm);
                kit.fail_next(&lab::stub(&kit), *what);
            }
            Op::Rest => self.rest().await?,
        }
        self.latest = self.latest.max(kit.now());
        self.judge.struck |= matches!(op, Op::Strike(..) | Op::Fail(_));
        self.judge_all()?;
        if matches!(op, Op::Advance(_) | Op::Leap(_) | Op::Rest) {
            self.judge.shaken = false;
            if self.judge.last.expires() {
                self.judge.compared = self.judge.newest_instance;
            }
        }
        Ok(())
    }

    fn ask(&mut self, turn: &Turn) -> impl Future<Output = ()> + use<> {
        let number = u32::try_from(self.turns.len()).unwrap() + 1;
        self.turns.insert(number, turn.clone());
        let (kit, turn, answered) = (self.kit.clone(), turn.clone(), Rc::clone(&self.judge.answered));
        async move {
            if lab::ask(&kit, number, turn).await.is_ok() {
                answered.borrow_mut().insert(number);
            }
        }
    }

    fn judge_all(&mut self) -> Result<(), String> {
        for seen in lab::seen() {
            let turn = &self.turns[&seen.number];
            self.judge.turn(&self.setup, &seen, turn).map_err(|wrong| format!("{wrong}\nin {turn:?}"))?;
            self.judge.troubled |= turn.fails.is_some();
        }
        match self.judge.answered.borrow().intersection(&self.judge.undone).next() {
            Some(number) => Err(format!("acknowledged: {:?} is lost", self.turns[number])),
            None => Ok(()),
        }
    }

    /// The table and the alarm, as a turn finds them that does nothing.
    async fn look(&mut self) -> Result<Seen, String> {
        self.judge_all()?;
        for _ in 0..3 {
            self.ask(&Turn::default()).await;
            let mut seen = lab::seen();
            let last = seen.pop();
            for seen in seen.into_iter().chain(last.clone()) {
                self.judge.turn(&self.setup, &seen, &self.turns[&seen.number])?;
            }
            if let Some(last) = last {
                return Ok(last);
            }
        }
        Err("answer: the object does not answer any more".to_owned())
    }

    /// All is well from here on. What is over is gone some time later.
    async fn rest(&mut self) -> Result<(), String> {
        let kit = self.kit.clone();
        kit.heal();
        // An instance does not see the clock go back, and alarms are by the clock.
        kit.step_wall(self.latest.max(kit.now()));
        if self.judge.troubled {
            self.look().await?; // an event, which mends what failed
        }
        let margin = 1_000;
        let wait = self.setup.slack + 300_000; // what failed is tried again within that
        kit.advance(Duration::from_millis(wait.unsigned_abs() + margin)).await;
        self.judge_all()?; // those that came meanwhile, before all was well
        self.judge.troubled = false;
        self.judge.struck = false;
        let Seen { after: table, now, .. } = self.look().await?;
        let slack = self.setup.slack + margin.cast_signed();
        let left: Vec<_> = table
            .iter()
            .filter(|(_, row)| row.expires.is_some_and(|expires| expires + slack <= now))
            .collect();
        if left.is_empty() { Ok(()) } else { Err(format!("swept: at {now} there is still {left:?}")) }
    }

    /// What is left in the end.
    async fn end(&mut self) -> Result<(), String> {
        lab::heal();
        self.rest().await?;
        let kit = self.kit.clone();
        kit.advance(Duration::from_secs(3_600 * 24)).await;
        let Seen { after: table, told, .. } = self.look().await?;
        self.judge.told(&told)?;
        if table.values().any(|row| row.expires.is_some_and(|expires| expires < ALARM_MAX_MS)) {
            return Err(format!("swept: after a day there is still {table:?}"));
        }
        lab::alarms();
        kit.advance(Duration::from_secs(3_600 * 24)).await;
        match lab::alarms() {
            0 => Ok(()),
            alarms => Err(format!("idle: {alarms} alarms although nothing expires")),
        }
    }
}

/// What is wrong, with all that happened.
pub(crate) fn complaint(case: &Case) -> Option<String> {
    let kit = lab::start(case.setup, case.seed);
    let mut player = Player {
        kit: kit.clone(),
        setup: case.setup,
        judge: Judge::default(),
        turns: BTreeMap::new(),
        latest: kit.now(),
    };
    let result = kit.run(async {
        for op in &case.ops {
            player.op(op).await.map_err(|wrong| format!("{wrong}\nat {op:?}"))?;
        }
        player.end().await
    });
    lab::end();
    let panicked = kit.history().contains("panicked").then(|| "panic: in the object".to_owned());
    panicked.or(result.err()).map(|wrong| format!("{wrong}\n{}", kit.history()))
}
