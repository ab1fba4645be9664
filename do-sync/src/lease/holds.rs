//! What leases and semaphores share: rows that are held until a time, and the counter of their fencing tokens.
//!
//! A row whose time is over is never given as held, whether the alarm came or not. Whoever first sees that writes it
//! down, by turning the time negative: then no step of the clock brings the row back. It stays for the alarm, which gives
//! notice of it.

use super::grant::{Expired, Grant, Holder, Token};
use do_core::{
    Alarm, Error, ErrorKind, ObjectState, Row, Timestamp,
    deadline::{self, Deadline, Due},
    limits::ALARM_MAX_MS,
    tables::Tables,
};
use std::{rc::Rc, time::Duration};

/// Longest time that something is held without being renewed: 30 days. The shortest is a millisecond.
pub const TTL_MAX: Duration = Duration::from_secs(30 * 24 * 3_600);

/// How many expired rows of a name wait for the alarm; the oldest makes room.
const EXPIRED_KEPT: usize = 64;

/// How many expired rows one run of the alarm takes away.
const EXPIRED_PER_RUN: u32 = 1_000;

/// The statements of one pattern, over a table with the columns name, token, holder, weight, until and ttl, and one row
/// of `last` (the last token) and `armed` (what the alarm was set for).
pub(crate) struct Statements {
    pub(crate) prefix: &'static str,
    pub(crate) create: &'static str,
    pub(crate) insert: &'static str,
    pub(crate) of_name: &'static str,
    pub(crate) lapse: &'static str,
    pub(crate) extend: &'static str,
    pub(crate) delete: &'static str,
    pub(crate) soonest: &'static str,
    pub(crate) over: &'static str,
    pub(crate) meta: &'static str,
    pub(crate) set_meta: &'static str,
}

/// Writes [`Statements`] for the tables of a name.
macro_rules! statements {
    ($table:literal $(, $more:literal)?) => {
        $crate::lease::Statements {
            prefix: $table,
            create: concat!(
                "CREATE TABLE IF NOT EXISTS ", $table, " (name TEXT NOT NULL, token INTEGER NOT NULL, \
                 holder TEXT NOT NULL, weight INTEGER NOT NULL, until INTEGER NOT NULL, ttl INTEGER NOT NULL, \
                 PRIMARY KEY (name, token)) STRICT, WITHOUT ROWID; \
                 CREATE INDEX IF NOT EXISTS ", $table, "_until ON ", $table, " (until); \
                 CREATE TABLE IF NOT EXISTS ", $table, "_meta (id INTEGER PRIMARY KEY, last INTEGER NOT NULL, \
                 armed INTEGER) STRICT; " $(, $more)?
            ),
            insert: concat!("INSERT INTO ", $table, " VALUES (?, ?, ?, ?, ?, ?)"),
            of_name: concat!("SELECT token, holder, weight, until, ttl FROM ", $table, " WHERE name = ? ORDER BY token"),
            lapse: concat!("UPDATE ", $table, " SET until = -until WHERE name = ? AND until BETWEEN 1 AND ?"),
            extend: concat!("UPDATE ", $table, " SET until = ?, ttl = ? WHERE name = ? AND token = ?"),
            delete: concat!("DELETE FROM ", $table, " WHERE name = ? AND token = ?"),
            soonest: concat!("SELECT until FROM ", $table, " ORDER BY until LIMIT 1"),
            over: concat!(
                "SELECT name, token, holder, weight, until FROM ", $table, " WHERE until <= ? ORDER BY until LIMIT ?"
            ),
            meta: concat!("SELECT last, armed FROM ", $table, "_meta WHERE id = 1"),
            set_meta: concat!("INSERT OR REPLACE INTO ", $table, "_meta VALUES (1, ?, ?)"),
        }
    };
}
pub(crate) use statements;

pub(crate) struct Holds<S: ObjectState> {
    pub(crate) state: S,
    pub(crate) tables: Tables<S::Sql>,
    sql: &'static Statements,
    deadline: Deadline<S>,
}

impl<S: ObjectState> Due for Holds<S> {
    type State = S;

    fn deadline(&self) -> &Deadline<S> {
        &self.deadline
    }

    fn soonest(&self) -> Result<Option<Timestamp>, Error> {
        let rows = self.tables.query(self.sql.soonest, ())?;
        rows.first().map(|row| row.at(0)).transpose()
    }
}

impl<S: ObjectState> Holds<S> {
    pub(crate) fn new(state: &S, alarm: Alarm<S>, sql: &'static Statements) -> Rc<Self> {
        let holds = Rc::new(Self {
            state: state.clone(),
            tables: Tables::new(state.sql(), sql.prefix, sql.create),
            sql,
            deadline: Deadline::new(state, alarm),
        });
        let woken = Rc::clone(&holds);
        state.at_first_event(move || deadline::wake(&woken));
        holds
    }

    /// Who holds something of that name, in the order of their tokens. Writes down what is over.
    pub(crate) fn live(self: &Rc<Self>, name: &str) -> Result<Vec<Holder>, Error> {
        let now = self.state.now();
        let rows = self.tables.query(self.sql.of_name, (name,))?;
        let (mut live, mut lapsed, mut over) = (Vec::new(), Vec::new(), false);
        for row in rows.iter() {
            let mut held = holder(&row)?;
            let ttl = Duration::from_millis(row.at(4)?);
            if held.until.as_millis() <= 0 {
                lapsed.push(held.token);
                continue;
            }
            if held.until <= now {
                lapsed.push(held.token);
                over = true;
                continue;
            }
            // The clock was set back: what is left is at most the whole time, not that and the step.
            if held.until > now + ttl {
                held.until = now + ttl;
                self.write_extended(name, held.token, held.until, ttl)?;
            }
            live.push(held);
        }
        if over {
            self.tables.write(self.sql.lapse, (name, now))?;
        }
        // Only an alarm that nobody runs lets them pile up.
        let spare = lapsed.len().saturating_sub(EXPIRED_KEPT);
        for token in lapsed.into_iter().take(spare) {
            self.tables.write(self.sql.delete, (name, token))?;
        }
        Ok(live)
    }

    /// The one of them with that token.
    pub(crate) fn one(self: &Rc<Self>, name: &str, token: Token) -> Result<Option<Holder>, Error> {
        Ok(self.live(name)?.into_iter().find(|held| held.token == token))
    }

    /// Grants with the next token.
    pub(crate) fn grant(
        self: &Rc<Self>,
        name: &str,
        holder: &str,
        weight: u32,
        ttl: Duration,
    ) -> Result<Grant, Error> {
        let (last, armed) = self.meta()?;
        let first = self.state.now().as_millis().max(1);
        let token = Token::new(last.map_or(first, |last| last.saturating_add(1)))?;
        let until = self.until(ttl);
        self.tables.write(self.sql.insert, (name, token, holder, weight, until, millis(ttl)))?;
        let at = self.needed(armed, until)?;
        self.tables.write(self.sql.set_meta, (token, at.or(armed)))?;
        if let Some(at) = at {
            deadline::arm(self, at);
        }
        Ok(Grant { token, until })
    }

    /// Holds it from now on for `ttl`.
    pub(crate) fn extend(self: &Rc<Self>, name: &str, held: &Holder, ttl: Duration) -> Result<Grant, Error> {
        let until = self.until(ttl);
        self.write_extended(name, held.token, until, ttl)?;
        if until < held.until {
            let (last, armed) = self.meta()?;
            if let (Some(last), Some(at)) = (last, self.needed(armed, until)?) {
                self.tables.write(self.sql.set_meta, (last, at))?;
                deadline::arm(self, at);
            }
        }
        Ok(Grant { token: held.token, until })
    }

    fn write_extended(&self, name: &str, token: Token, until: Timestamp, ttl: Duration) -> Result<(), Error> {
        self.tables.write(self.sql.extend, (until, millis(ttl), name, token)).map(drop)
    }

    pub(crate) fn delete(&self, name: &str, token: Token) -> Result<(), Error> {
        self.tables.write(self.sql.delete, (name, token)).map(drop)
    }

    /// Takes away what is over and sets the alarm for what is soonest then.
    pub(crate) fn expire(self: &Rc<Self>) -> Result<Vec<Expired>, Error> {
        self.deadline.is_awake();
        self.tables.together(|| {
            let now = self.state.now();
            let rows = self.tables.query(self.sql.over, (now, EXPIRED_PER_RUN))?;
            let mut expired = Vec::with_capacity(rows.len());
            for row in rows.iter() {
                let until = Timestamp::from_millis(row.at::<i64>(4)?.saturating_abs());
                let (token, weight) = (Token::new(row.at(1)?)?, row.at(3)?);
                let held = Holder { holder: row.at(2)?, token, until, weight };
                expired.push(Expired { name: row.at(0)?, held });
            }
            for one in &expired {
                self.delete(&one.name, one.held.token)?;
            }
            let (soonest, (last, armed)) = (self.soonest()?, self.meta()?);
            if let (Some(last), true) = (last, soonest.is_some() || armed.is_some()) {
                self.tables.write(self.sql.set_meta, (last, soonest))?;
            }
            if let Some(at) = soonest {
                deadline::arm(self, at);
            }
            Ok(expired)
        })
    }

    /// The last token, and what the alarm was set for.
    fn meta(&self) -> Result<(Option<i64>, Option<Timestamp>), Error> {
        let rows = self.tables.query(self.sql.meta, ())?;
        rows.first().map_or(Ok((None, None)), |row| Ok((row.at(0)?, row.at(1)?)))
    }

    /// What the alarm is to be set for, if it is not set for that or before.
    fn needed(&self, armed: Option<Timestamp>, until: Timestamp) -> Result<Option<Timestamp>, Error> {
        let now = self.state.now();
        match armed {
            Some(armed) if armed > now && armed <= until => Ok(None),
            // It is due, or nobody knows: what is soonest may be over already.
            _ => Ok(Some(self.soonest()?.map_or(until, |soonest| soonest.min(until)))),
        }
    }

    fn until(&self, ttl: Duration) -> Timestamp {
        (self.state.now() + ttl).min(Timestamp::from_millis(ALARM_MAX_MS))
    }
}

/// A time to hold something for, in whole milliseconds.
pub(crate) fn check_ttl(ttl: Duration) -> Result<(), Error> {
    if ttl < Duration::from_millis(1) || ttl > TTL_MAX {
        let message = format!("the time to hold it is {ttl:?}: it must be from 1 ms to {TTL_MAX:?}");
        return Err(Error::new(ErrorKind::Invalid, message));
    }
    Ok(())
}

pub(crate) fn millis(ttl: Duration) -> i64 {
    i64::try_from(ttl.as_millis()).unwrap_or(i64::MAX)
}

fn holder(row: &Row<'_>) -> Result<Holder, Error> {
    Ok(Holder { token: Token::new(row.at(0)?)?, holder: row.at(1)?, weight: row.at(2)?, until: row.at(3)? })
}
