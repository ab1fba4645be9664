//! What a call has to do to the table and to give, as the documentation says it.

use crate::{
    lab::{Kept, Step, Table, store_name, version_of},
    ops::{Call, Done, Drawn, Got, KEYS, Life, Rules, Setup},
};
use do_core::{ErrorKind, Timestamp};
use do_ttl::{Put, Version};

/// Numbers from this on are not moments.
const FAR: i128 = (1 << 53) - 1;

/// The times of a row.
struct Times {
    expires: Option<i64>,
    idle: Option<i64>,
    until: Option<i64>,
}

const NEVER: Times = Times { expires: None, idle: None, until: None };

fn moment(now: i64, ms: i64) -> Option<i64> {
    let at = i128::from(now) + i128::from(ms);
    (at < FAR).then(|| at.try_into().unwrap())
}

/// The expiry that a call gave.
#[derive(Clone, Copy)]
enum Chance {
    Unknown,
    Gave(Option<i64>),
}

/// `None` when it is over.
fn times(life: Life, now: i64, drawn: Chance) -> Result<Option<Times>, String> {
    Ok(match life {
        Life::Never => Some(NEVER),
        Life::Millis(ms) => (ms > 0).then(|| Times { expires: moment(now, ms), ..NEVER }),
        Life::Until(ms) => (ms > 0).then(|| Times { expires: moment(now, ms), ..NEVER }),
        Life::Sliding(idle, age) => {
            let first = age.map_or(idle, |age| age.min(idle));
            // At its cap it does not slide.
            let slides = age.is_none_or(|age| age > idle);
            (first > 0).then(|| Times {
                expires: moment(now, first.into()),
                idle: slides.then_some(idle.into()),
                until: age.filter(|_| slides).and_then(|age| moment(now, age.into())),
            })
        }
        Life::Jitter(ms, percent) => {
            let (longest, percent) = (i64::from(ms), i64::from(percent.min(100)));
            let shortest = (longest - longest * percent / 100).max(1);
            let span = now + shortest..=now + longest;
            let drawn = match drawn {
                Chance::Unknown => Some(now + longest),
                Chance::Gave(expires) => expires,
            };
            if !drawn.is_some_and(|drawn| span.contains(&drawn)) {
                return Err(format!("the jitter gave {drawn:?}, not one of {span:?}"));
            }
            Some(Times { expires: drawn, ..NEVER })
        }
    })
}

pub(crate) fn is_live(row: &Kept, now: i64) -> bool {
    row.expires.is_none_or(|expires| expires > now)
}

fn got(row: &Kept) -> Got {
    Got { value: row.value.clone(), expires: row.expires, version: row.version }
}

/// The table at a moment, for one call.
struct Model<'a> {
    setup: &'a Setup,
    now: i64,
    table: Table,
    /// What the puts of the call gave, in their order, for what chance decides.
    given: Vec<Put>,
    after: &'a Table,
    /// What expired or was evicted without having been told of.
    owed: Vec<Owed>,
}

/// A row of a store that notifies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Owed {
    pub(crate) slot: (String, String),
    pub(crate) row: Kept,
    pub(crate) is_evicted: bool,
}

/// Most that one put evicts.
const EVICTED: usize = 8;

/// What a call gave instead of what it should have: a complaint, or an error that it should give.
enum Wrong {
    Complaint(String),
    Error(ErrorKind),
}

impl From<String> for Wrong {
    fn from(complaint: String) -> Self {
        Self::Complaint(complaint)
    }
}

fn bytes(slot: &(String, String), row: &Kept) -> u64 {
    (slot.1.len() + row.value.len()) as u64
}

impl Model<'_> {
    fn rules(&self, store: u8) -> Rules {
        self.setup.stores[usize::from(store)]
    }

    fn live(&self, at: (u8, u8)) -> Option<Kept> {
        self.table.get(&slot(at)).filter(|row| is_live(row, self.now)).cloned()
    }

    fn put(&mut self, at: (u8, u8), value: Vec<u8>, life: Life) -> Result<Put, Wrong> {
        let given = if self.given.is_empty() { None } else { Some(self.given.remove(0)) };
        let (version, drawn) = match given {
            Some(Put::Stored { version, expires }) => {
                (version, Chance::Gave(expires.map(Timestamp::as_millis)))
            }
            _ => (Version::from_raw(0), Chance::Unknown),
        };
        let Some(times) = times(life, self.now, drawn)? else {
            self.remove(at);
            return Ok(Put::Removed);
        };
        let Times { expires, idle, until } = times;
        let (slot, row) = (slot(at), Kept { value, expires, version, idle, until });
        self.admit(at, &slot, &row)?;
        if let Some(old) = self.table.insert(slot.clone(), row)
            && !is_live(&old, self.now)
        {
            self.owe(at.0, slot, old);
        }
        Ok(Put::Stored { version, expires: expires.map(Timestamp::from_millis) })
    }

    fn owe(&mut self, store: u8, slot: (String, String), row: Kept) {
        if self.rules(store).notify {
            let is_evicted = is_live(&row, self.now);
            self.owed.push(Owed { slot, row, is_evicted });
        }
    }

    /// Makes room, by what expires soonest.
    fn admit(&mut self, at: (u8, u8), slot: &(String, String), row: &Kept) -> Result<(), Wrong> {
        let rules = self.rules(at.0);
        let most = (rules.entries.map_or(u64::MAX, u64::from), rules.bytes.map_or(u64::MAX, u64::from));
        if bytes(slot, row) > most.1 {
            return Err(Wrong::Error(ErrorKind::Limit));
        }
        let others: Vec<_> =
            self.table.iter().filter(|(other, _)| other.0 == slot.0 && *other != slot).collect();
        let has = (
            others.len() as u64 + 1,
            others.iter().map(|(slot, row)| bytes(slot, row)).sum::<u64>() + bytes(slot, row),
        );
        let fits = |gone: &[&(i64, String, u64)]| {
            let gone_bytes: u64 = gone.iter().map(|(.., bytes)| bytes).sum();
            has.0 - gone.len() as u64 <= most.0 && has.1 - gone_bytes <= most.1
        };
        let mut soonest: Vec<_> = others
            .iter()
            .filter_map(|(slot, row)| row.expires.map(|expires| (expires, slot.1.clone(), bytes(slot, row))))
            .filter(|(expires, ..)| !rules.refuses || *expires <= self.now)
            .collect();
        soonest.sort();
        let soonest: Vec<_> = soonest.iter().take(EVICTED).collect();
        let enough = (0..=soonest.len()).find(|n| fits(&soonest[..*n]));
        if enough.is_none() && soonest.len() < EVICTED {
            return Err(Wrong::Error(ErrorKind::Limit));
        }
        for (_, key, _) in soonest.into_iter().take(enough.unwrap_or(EVICTED)).cloned().collect::<Vec<_>>() {
            let slot = (slot.0.clone(), key);
            if let Some(row) = self.table.remove(&slot) {
                self.owe(at.0, slot, row);
            }
        }
        enough.map(drop).ok_or(Wrong::Error(ErrorKind::Transient))
    }

    /// What is expired stays for the sweep.
    fn remove(&mut self, at: (u8, u8)) -> Option<Kept> {
        let row = self.live(at)?;
        self.table.remove(&slot(at));
        Some(row)
    }

    /// A use.
    fn get(&mut self, at: (u8, u8)) -> Option<Got> {
        let mut row = self.live(at)?;
        if let (Some(idle), Some(expires)) = (row.idle, row.expires) {
            let later = (self.now + idle).min(row.until.unwrap_or(i64::MAX));
            let throttle = self.rules(at.0).throttle.map_or(idle / 20, i64::from);
            if later - expires >= throttle.min(idle / 2).max(1) {
                row.expires = Some(later);
                self.table.insert(slot(at), row.clone());
            }
        }
        Some(got(&row))
    }

    fn touch(&mut self, at: (u8, u8), life: Life) -> Result<bool, Wrong> {
        let Some(mut row) = self.live(at) else { return Ok(false) };
        let drawn = self.after.get(&slot(at)).map_or(Chance::Unknown, |row| Chance::Gave(row.expires));
        match times(life, self.now, drawn)? {
            None => drop(self.remove(at)),
            Some(times) => {
                (row.expires, row.idle, row.until) = (times.expires, times.idle, times.until);
                self.table.insert(slot(at), row);
            }
        }
        Ok(true)
    }

    /// All of them or none.
    fn put_many(&mut self, store: u8, items: &[(u8, Drawn, Life)]) -> Result<Done, Wrong> {
        let (table, owed) = (self.table.clone(), self.owed.len());
        let puts: Result<_, _> =
            items.iter().map(|(key, value, life)| self.put((store, *key), value.bytes(), *life)).collect();
        puts.map(Done::Puts).map_err(|wrong| {
            self.table = table;
            self.owed.truncate(owed);
            match wrong {
                // What made room came back.
                Wrong::Error(ErrorKind::Transient) => Wrong::Error(ErrorKind::Limit),
                wrong => wrong,
            }
        })
    }

    fn list(&self, store: u8, from: u8, most: u8) -> Done {
        let (from, most) = (slot((store, from)), usize::from(most));
        let all: Vec<_> = self.table.range(from.clone()..).filter(|(slot, _)| slot.0 == from.0).collect();
        let live: Vec<_> = all.iter().enumerate().filter(|(_, (_, row))| is_live(row, self.now)).collect();
        let entries = live.iter().take(most).map(|(_, (slot, row))| (slot.1.clone(), got(row))).collect();
        // There may be more when a row is behind the last one, be it expired.
        let more = live.get(most - 1).is_some_and(|(at, _)| *at + 1 < all.len());
        Done::Listed(entries, more)
    }

    fn usage(&self, store: u8) -> (u64, u64) {
        let name = store_name(store.into());
        let all = self.table.iter().filter(|(slot, _)| slot.0 == name);
        all.fold((0, 0), |(entries, size), (slot, row)| (entries + 1, size + bytes(slot, row)))
    }

    fn call(&mut self, call: &Call) -> Result<Done, Wrong> {
        Ok(match *call {
            Call::Put(s, k, value, life) => Done::Put(self.put((s, k), value.bytes(), life)?),
            Call::Get(s, k) => Done::Entry(self.get((s, k))),
            Call::Contains(s, k) => Done::Is(self.live((s, k)).is_some()),
            Call::Touch(s, k, life) => Done::Is(self.touch((s, k), life)?),
            Call::Remove(s, k) => Done::Is(self.remove((s, k)).is_some()),
            Call::Take(s, k) => Done::Entry(self.remove((s, k)).as_ref().map(got)),
            Call::PutIfAbsent(s, k, value, life) => match self.get((s, k)) {
                Some(there) => Done::Present(there),
                None => Done::Put(self.put((s, k), value.bytes(), life)?),
            },
            Call::Swap(s, k, is_current, value, life) => {
                let version = version_of(&self.table, s, k, is_current);
                match self.live((s, k)) {
                    Some(row) if row.version == version => {
                        Done::Put(self.put((s, k), value.bytes(), life)?)
                    }
                    _ => Done::Differs(self.get((s, k))),
                }
            }
            Call::PutMany(s, ref items) => self.put_many(s, items)?,
            Call::GetMany(s, ref keys) => Done::Entries(keys.iter().map(|key| self.get((s, *key))).collect()),
            Call::RemoveMany(s, ref keys) => {
                Done::Number(keys.iter().filter_map(|key| self.remove((s, *key))).count() as u64)
            }
            Call::List(s, from, most) => self.list(s, from, most),
            Call::Count(s) => {
                let name = store_name(s.into());
                let all = self.table.iter().filter(|(slot, row)| slot.0 == name && is_live(row, self.now));
                Done::Number(all.count() as u64)
            }
            Call::Usage(s) => {
                let (entries, bytes) = self.usage(s);
                Done::Usage(entries, bytes)
            }
            Call::DeleteAll => {
                self.table.clear();
                Done::Nothing
            }
        })
    }
}

pub(crate) fn slot((store, key): (u8, u8)) -> (String, String) {
    (store_name(store.into()), KEYS[usize::from(key)].to_owned())
}

/// What is wrong with a call on that table; otherwise what is to be told of from then on.
pub(crate) fn check(setup: &Setup, now: i64, before: &Table, step: &Step) -> Result<Vec<Owed>, String> {
    let is_planned = matches!(&step.done, Err((_, error)) if error.starts_with("the kit was told"));
    if is_planned && step.after == *before {
        return Ok(Vec::new());
    }
    let given = match &step.done {
        Ok(Done::Put(put)) => vec![*put],
        Ok(Done::Puts(puts)) => puts.clone(),
        _ => Vec::new(),
    };
    let table = before.clone();
    let mut model = Model { setup, now, table, given, after: &step.after, owed: Vec::new() };
    let wanted = match model.call(&step.call) {
        Ok(done) => Ok(done),
        Err(Wrong::Error(kind)) => Err(kind),
        Err(Wrong::Complaint(complaint)) => return Err(complaint),
    };
    if is_planned {
        // What removes or moves a row asks behind it whether there was one. Nothing is half written all the same.
        let is_asked = !matches!(step.call, Call::PutMany(..) | Call::RemoveMany(..));
        let is_old = |(slot, row): (&(String, String), &Kept)| {
            before.get(slot).is_some_and(|old| old.version == row.version && old.value == row.value)
        };
        let is_whole = step.after.iter().all(is_old) && step.after.len() + 1 >= before.len();
        return if is_asked && is_whole { Ok(Vec::new()) } else { Err(format!("torn: on {before:?}")) };
    }
    if wanted.as_ref().map_err(|kind| *kind) != step.done.as_ref().map_err(|(kind, _)| *kind) {
        return Err(format!("answer: it should have given {wanted:?} at {now} on {before:?}"));
    }
    if model.table != step.after {
        return Err(format!("table: it should have made {:?} at {now} of {before:?}", model.table));
    }
    Ok(model.owed)
}

/// The versions that a call gave to what it wrote.
pub(crate) fn given(step: &Step) -> Vec<((String, String), Version)> {
    let stored = |put: &Put| match put {
        Put::Stored { version, .. } => Some(*version),
        Put::Removed => None,
    };
    match (&step.call, &step.done) {
        (Call::Put(s, k, ..) | Call::PutIfAbsent(s, k, ..) | Call::Swap(s, k, ..), Ok(Done::Put(put))) => {
            stored(put).map(|version| (slot((*s, *k)), version)).into_iter().collect()
        }
        (Call::PutMany(s, items), Ok(Done::Puts(puts))) => {
            let all = items.iter().zip(puts);
            all.filter_map(|((k, ..), put)| Some((slot((*s, *k)), stored(put)?))).collect()
        }
        _ => Vec::new(),
    }
}
