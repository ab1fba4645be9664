//! The rules that every run must keep, whatever happened in it. Each complaint begins with the number of its rule:
//!
//! 1. What was acknowledged stays; what was refused by a definite error did not happen.
//! 2. A request runs at most once, its rows are there once, and a turn is there as a whole or not at all.
//! 3. Nobody is told anything before what was written by then is in the database.
//! 4. Calls of one caller and messages of one socket are handled in order, none is left out.
//! 5. The sockets of an object are the clients that are open; of each other one it was told once.
//! 6. A committed alarm runs, never early, never two at once, never when it was taken back; then the slot is empty.
//! 7. Every call is answered once.
//! 8. An object without work leaves memory after ten seconds.

use super::{
    ops::{Case, Fault, OBJECTS, Op},
    run::{Peer, Record},
    slot,
    witness::{Answer, End, Job, Seen, What},
};
use std::collections::{BTreeMap, BTreeSet};

pub(crate) type Verdict = Result<(), String>;

/// What is asked of a record again and again.
pub(super) struct Facts<'a> {
    pub(super) case: &'a Case,
    pub(super) record: &'a Record,
    /// Rows that are there at the end.
    rows: BTreeSet<u32>,
    /// By instance: where the first row that is not there was written.
    lost: BTreeMap<u32, usize>,
    /// By call: the run of its handler.
    runs: BTreeMap<u32, u32>,
    /// Where runs ended by themselves.
    ends: BTreeMap<u32, usize>,
    /// By run: the run that it is part of.
    parents: BTreeMap<u32, u32>,
}

pub(crate) fn check(case: &Case, record: &Record) -> Verdict {
    let facts = Facts::new(case, record);
    facts.rows_once()?;
    facts.runs_once()?;
    facts.turns_whole()?;
    facts.answers()?;
    facts.nothing_told_early()?;
    facts.calls_in_order()?;
    facts.messages_in_order()?;
    for (number, peer) in (0..).zip(&record.peers) {
        facts.told_once(number, peer)?;
    }
    facts.sockets_listed()?;
    for object in 0..OBJECTS {
        slot::check(&facts, object)?;
    }
    facts.at_rest()
}

impl<'a> Facts<'a> {
    fn new(case: &'a Case, record: &'a Record) -> Self {
        let rows: BTreeSet<u32> = record.held.iter().flat_map(|held| held.rows.iter().copied()).collect();
        let (mut lost, mut runs) = (BTreeMap::new(), BTreeMap::new());
        let (mut ends, mut parents) = (BTreeMap::new(), BTreeMap::new());
        for (at, seen) in record.seen.iter().enumerate() {
            match &seen.what {
                What::Writes { row, .. } if !rows.contains(row) => {
                    lost.entry(seen.instance).or_insert(at);
                }
                What::Begins(Job::Call(call)) => {
                    runs.entry(*call).or_insert(seen.run);
                }
                What::Begins(Job::Part(of)) => drop(parents.insert(seen.run, *of)),
                What::Ends(End::Well | End::Failed) => drop(ends.insert(seen.run, at)),
                _ => {}
            }
        }
        Self { case, record, rows, lost, runs, ends, parents }
    }

    pub(super) fn has(&self, row: u32) -> bool {
        self.rows.contains(&row)
    }

    fn entries(&self) -> impl Iterator<Item = (usize, &'a Seen)> {
        self.record.seen.iter().enumerate()
    }

    /// Whether an instance had written something that is not there by then.
    fn loses_before(&self, instance: u32, at: usize) -> bool {
        self.lost.get(&instance).is_some_and(|lost| *lost < at)
    }

    fn root(&self, mut run: u32) -> u32 {
        while let Some(parent) = self.parents.get(&run) {
            run = *parent;
        }
        run
    }

    fn rows_once(&self) -> Verdict {
        let mut written = BTreeMap::new();
        for (_, seen) in self.entries() {
            if let What::Writes { row, .. } = seen.what {
                written.insert(row, seen.object);
            }
        }
        for (object, held) in (0..).zip(&self.record.held) {
            let mut once = BTreeSet::new();
            for row in &held.rows {
                if written.get(row) != Some(&object) {
                    return Err(format!("2: object {object} has the row {row}, which nobody wrote or kept"));
                }
                if !once.insert(row) {
                    return Err(format!("2: object {object} has the row {row} twice"));
                }
            }
            if held.rows != held.rows_again {
                return Err(format!("1: a crash at rest changed object {object}: {held:?}"));
            }
        }
        Ok(())
    }

    fn runs_once(&self) -> Verdict {
        let mut begun = Vec::new();
        for (_, seen) in self.entries() {
            if let What::Begins(job @ (Job::Call(_) | Job::Message(..))) = seen.what {
                if begun.contains(&job) {
                    return Err(format!("2: {job:?} ran twice"));
                }
                begun.push(job);
            }
        }
        Ok(())
    }

    fn turns_whole(&self) -> Verdict {
        let mut kept = BTreeMap::new();
        for (_, seen) in self.entries() {
            if let What::Writes { row, turn } = seen.what
                && *kept.entry(turn).or_insert(self.has(row)) != self.has(row)
            {
                return Err(format!("2: the turn {turn} of run {} is there in part", seen.run));
            }
        }
        Ok(())
    }

    fn all_answers(&self) -> impl Iterator<Item = (u32, &'a Answer)> {
        let own = self.record.calls.iter().flat_map(|(call, (_, got))| got.iter().map(|one| (*call, one)));
        own.chain(self.record.seen.iter().filter_map(|seen| match &seen.what {
            What::Answered { call, answer } => Some((*call, answer)),
            _ => None,
        }))
    }

    fn answers(&self) -> Verdict {
        for (call, (_, answers)) in &self.record.calls {
            if answers.len() != 1 {
                return Err(format!("7: the call {call} has {} answers: {answers:?}", answers.len()));
            }
        }
        for (call, answer) in self.all_answers() {
            let run = self.runs.get(&call);
            let end = run.and_then(|run| self.ends.get(run));
            if let Answer::Host { indefinite, text } = answer {
                let happened = self.entries().any(|(_, seen)| {
                    let row = if let What::Writes { row, .. } = seen.what { self.has(row) } else { false };
                    row && Some(&self.root(seen.run)) == run
                });
                if happened && !indefinite {
                    return Err(format!("1: the call {call} was refused and happened: {text}"));
                }
                continue;
            }
            let Some(end) = end else { return Err(format!("1: the call {call} was answered by nobody")) };
            if self.loses_before(self.record.seen[*end].instance, *end) {
                return Err(format!("1: the call {call} was acknowledged and something of it lost"));
            }
            if let Answer::Well(read) = answer
                && let Some(row) = read.iter().find(|row| !self.has(**row))
            {
                return Err(format!("3: the call {call} was told of the row {row}, which is not there"));
            }
        }
        Ok(())
    }

    fn nothing_told_early(&self) -> Verdict {
        let received: BTreeSet<_> = self.record.peers.iter().flat_map(|peer| &peer.received).collect();
        for (at, seen) in self.entries() {
            let left = match &seen.what {
                What::Sends { text, .. } => received.contains(text),
                What::Calls { call } => self.runs.contains_key(call),
                _ => false,
            };
            if left && self.loses_before(seen.instance, at) {
                return Err(format!("3: {:?} left before what was written by then", seen.what));
            }
        }
        Ok(())
    }

    fn calls_in_order(&self) -> Verdict {
        // Calls are numbered in their order. The test is a caller too.
        let callers: BTreeMap<u32, u32> = self
            .entries()
            .filter_map(|(_, seen)| match seen.what {
                What::Calls { call } => Some((call, seen.instance)),
                _ => None,
            })
            .collect();
        let mut last = BTreeMap::new();
        for (_, seen) in self.entries() {
            if let What::Begins(Job::Call(call)) = seen.what {
                let before = last.insert((callers.get(&call), seen.object), call);
                if before.is_some_and(|before| before > call) {
                    return Err(format!("4: the call {call} ran behind a later one of its caller"));
                }
            }
        }
        Ok(())
    }

    fn messages_in_order(&self) -> Verdict {
        for (client, peer) in (0..).zip(&self.record.peers) {
            let handled: Vec<u32> = self
                .entries()
                .filter_map(|(_, seen)| match seen.what {
                    What::Begins(Job::Message(of, number)) if of == client => Some(number),
                    _ => None,
                })
                .collect();
            if !handled.iter().copied().eq(0..u32::try_from(handled.len()).unwrap()) {
                return Err(format!("4: messages of client {client} were handled as {handled:?}"));
            }
            if peer.is_open() && !peer.vanished && handled.len() != peer.sent as usize {
                let sent = peer.sent;
                return Err(format!("4: client {client} sent {sent} messages, handled were {handled:?}"));
            }
            let sent = self.entries().filter_map(|(_, seen)| match seen.what {
                What::Sends { client: to, text } if to == client => Some(text),
                _ => None,
            });
            let sent: Vec<u32> = sent.collect();
            if !sent.starts_with(&peer.received) {
                return Err(format!("4: client {client} was sent {sent:?} and received {:?}", peer.received));
            }
        }
        Ok(())
    }

    fn told_once(&self, number: u32, peer: &Peer) -> Verdict {
        let told = self.entries().filter(|(_, seen)| match seen.what {
            What::Begins(Job::Closed(of) | Job::Failed(of)) => of == number,
            _ => false,
        });
        let told = told.count();
        let most = usize::from(!peer.is_open() || peer.vanished);
        if told > most {
            return Err(format!(
                "5: the object was told {told} times of the end of client {number}: {peer:?}"
            ));
        }
        let ended = peer.connection.is_some() && !peer.is_open() && !peer.vanished;
        if ended && told == 0 && !self.was_reset(peer) {
            return Err(format!("5: the object was not told of the end of client {number}: {peer:?}"));
        }
        Ok(())
    }

    /// Whether the object lost its sockets after it accepted the client.
    fn was_reset(&self, peer: &Peer) -> bool {
        let (object, connection) = (peer.object, peer.connection.unwrap_or(u32::MAX));
        let accepted = format!("network {connection} is socket ");
        let mut after = self.record.before_crash.lines().skip_while(|line| !line.contains(&accepted));
        let evicted = self.case.ops.iter().any(|op| {
            matches!(op, Op::Strike(Fault::Evict(of)) | Op::StrikeIn(_, Fault::Evict(of)) if *of == object)
        });
        let resets =
            [format!("\"{object}\" is reset"), format!("\"{object}\" is not constructed"), "the p".into()];
        let cut = format!("network {connection} is cut");
        after.any(|line| {
            resets.iter().any(|reset| line.contains(reset))
                || line.contains("another program")
                || evicted && line.contains(&cut)
        })
    }

    fn sockets_listed(&self) -> Verdict {
        for (object, held) in (0..).zip(&self.record.held) {
            let mut listed = held.clients.clone();
            let mut open = Vec::new();
            for (number, peer) in (0..).zip(&self.record.peers).filter(|(_, peer)| peer.object == object) {
                if peer.vanished {
                    listed.retain(|client| *client != number); // nobody can know
                } else if peer.is_open() {
                    open.push(number);
                }
            }
            listed.sort_unstable();
            if listed != open {
                return Err(format!("5: object {object} lists the clients {listed:?}, open are {open:?}"));
            }
        }
        Ok(())
    }

    fn at_rest(&self) -> Verdict {
        for (object, held) in (0..).zip(&self.record.held) {
            let busy = held.awake.iter().flatten().any(|why| !why.is_empty());
            let stalled = self.record.peers.iter().any(|peer| peer.object == object && peer.vanished);
            let idle = Some(Vec::new());
            let right = [None, idle.clone(), idle, None];
            if held.awake != right && !(busy && stalled) {
                return Err(format!("8: object {object} was in memory as {:?}", held.awake));
            }
        }
        Ok(())
    }
}

impl Peer {
    /// As far as it knows.
    fn is_open(&self) -> bool {
        self.connection.is_some() && !self.left && !self.saw_end
    }
}
