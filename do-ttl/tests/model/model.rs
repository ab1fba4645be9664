//! What a call has to do to the table and to give, as the documentation says it.

use crate::{
    lab::{Kept, Step, Table, store_name, version_of},
    ops::{Call, Done, Got, KEYS, Life, Setup},
};
use do_core::Timestamp;
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

/// `None` when it is over. `drawn` is the expiry that chance gave.
fn times(life: Life, now: i64, drawn: Option<i64>) -> Result<Option<Times>, String> {
    Ok(match life {
        Life::Never => Some(NEVER),
        Life::Millis(ms) => (ms > 0).then(|| Times { expires: moment(now, ms), ..NEVER }),
        Life::Until(ms) => (ms > 0).then(|| Times { expires: moment(now, ms), ..NEVER }),
        Life::Sliding(idle, age) => {
            let first = age.map_or(idle, |age| age.min(idle));
            (first > 0).then(|| Times {
                expires: moment(now, first.into()),
                idle: Some(idle.into()),
                until: age.and_then(|age| moment(now, age.into())),
            })
        }
        Life::Jitter(ms, percent) => {
            let (longest, percent) = (i64::from(ms), i64::from(percent.min(100)));
            let shortest = (longest - longest * percent / 100).max(1);
            let span = now + shortest..=now + longest;
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
    /// Of store and key.
    at: (u8, u8),
    slot: (String, String),
    /// The row as it was found behind the call, for what chance gives.
    drawn: Option<&'a Kept>,
}

impl Model<'_> {
    fn live(&self) -> Option<Kept> {
        self.table.get(&self.slot).filter(|row| is_live(row, self.now)).cloned()
    }

    fn put(&mut self, value: Vec<u8>, life: Life) -> Result<Put, String> {
        let Some(times) = times(life, self.now, self.drawn.and_then(|row| row.expires))? else {
            self.remove();
            return Ok(Put::Removed);
        };
        let version = self.drawn.map_or(Version::from_raw(0), |row| row.version);
        let Times { expires, idle, until } = times;
        self.table.insert(self.slot.clone(), Kept { value, expires, version, idle, until });
        Ok(Put::Stored { version, expires: expires.map(Timestamp::from_millis) })
    }

    /// What is expired stays for the sweep.
    fn remove(&mut self) -> Option<Kept> {
        let row = self.live()?;
        self.table.remove(&self.slot);
        Some(row)
    }

    /// A use.
    fn get(&mut self) -> Option<Got> {
        let mut row = self.live()?;
        if let (Some(idle), Some(expires)) = (row.idle, row.expires) {
            let later = (self.now + idle).min(row.until.unwrap_or(i64::MAX));
            let throttle = self.setup.stores[usize::from(self.at.0)].throttle.map_or(idle / 20, i64::from);
            if later - expires >= throttle.max(1) {
                row.expires = Some(later);
                self.table.insert(self.slot.clone(), row.clone());
            }
        }
        Some(got(&row))
    }

    fn touch(&mut self, life: Life) -> Result<bool, String> {
        let Some(mut row) = self.live() else { return Ok(false) };
        match times(life, self.now, self.drawn.and_then(|row| row.expires))? {
            None => drop(self.remove()),
            Some(times) => {
                (row.expires, row.idle, row.until) = (times.expires, times.idle, times.until);
                self.table.insert(self.slot.clone(), row);
            }
        }
        Ok(true)
    }

    fn call(&mut self, call: &Call) -> Result<Done, String> {
        Ok(match *call {
            Call::Put(.., value, life) => Done::Put(self.put(value.bytes(), life)?),
            Call::Get(..) => Done::Entry(self.get()),
            Call::Contains(..) => Done::Is(self.live().is_some()),
            Call::Touch(.., life) => Done::Is(self.touch(life)?),
            Call::Remove(..) => Done::Is(self.remove().is_some()),
            Call::Take(..) => Done::Entry(self.remove().as_ref().map(got)),
            Call::PutIfAbsent(.., value, life) => match self.get() {
                Some(there) => Done::Present(there),
                None => Done::Put(self.put(value.bytes(), life)?),
            },
            Call::Swap(s, k, is_current, value, life) => {
                let version = version_of(&self.table, s, k, is_current);
                match self.live() {
                    Some(row) if row.version == version => Done::Put(self.put(value.bytes(), life)?),
                    _ => Done::Differs(self.get()),
                }
            }
            Call::DeleteAll => {
                self.table.clear();
                Done::Nothing
            }
        })
    }
}

fn place(call: &Call) -> (u8, u8) {
    match *call {
        Call::Put(s, k, ..)
        | Call::Get(s, k)
        | Call::Contains(s, k)
        | Call::Touch(s, k, _)
        | Call::Remove(s, k)
        | Call::Take(s, k)
        | Call::PutIfAbsent(s, k, ..)
        | Call::Swap(s, k, ..) => (s, k),
        Call::DeleteAll => (0, 0),
    }
}

pub(crate) fn slot((store, key): (u8, u8)) -> (String, String) {
    (store_name(store.into()), KEYS[usize::from(key)].to_owned())
}

/// What is wrong with a call on that table.
pub(crate) fn check(setup: &Setup, now: i64, before: &Table, step: &Step) -> Result<(), String> {
    let done = match &step.done {
        Ok(done) => done,
        // Only what a test asked for fails, and then nothing has changed.
        Err(error) if error.starts_with("the kit was told") && step.after == *before => return Ok(()),
        Err(error) => return Err(format!("torn: it failed with {error:?} on {before:?}")),
    };
    let at = place(&step.call);
    let slot = slot(at);
    let drawn = step.after.get(&slot);
    let mut model = Model { setup, now, table: before.clone(), at, slot: slot.clone(), drawn };
    let wanted = model.call(&step.call)?;
    if wanted != *done {
        return Err(format!("answer: it should have given {wanted:?} at {now} on {before:?}"));
    }
    if model.table != step.after {
        return Err(format!("table: it should have made {:?} at {now} of {before:?}", model.table));
    }
    Ok(())
}

/// The version that a call gave to what it wrote.
pub(crate) fn given(step: &Step) -> Option<((String, String), Version)> {
    match step.done {
        Ok(Done::Put(Put::Stored { version, .. })) => Some((slot(place(&step.call)), version)),
        _ => None,
    }
}
