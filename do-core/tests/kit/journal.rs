//! A journal holds what a model in memory holds, whatever happens to the object.

use do_core::{
    journal::{Bounds, ENTRY_BYTES, Journal, Newest, Table},
    kit::{Kit, Strike, for_seeds},
    prelude::*,
    tokio::HostStub,
};
use serde::{Deserialize, Serialize};
use std::{collections::VecDeque, ops::ControlFlow};

const TABLE: Table = Table::new("_notes");

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Config {
    entries: u64,
    bytes: u64,
    age_ms: Option<u64>,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
enum Command {
    /// So many bytes.
    Append(usize),
    /// In a transaction that fails; then looks again, or not.
    Undone(bool),
    /// In one of the journal that fails.
    Taken,
    DeleteAll,
    Expire,
    /// Of the kind 0, of too many bytes, and after what is not the newest.
    Wrong,
    Look,
}

/// What the object sees after a command.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Seen {
    epoch: u64,
    seq: u64,
    /// By the looks at the end of turns too.
    renewals: u32,
    now: i64,
    /// Number, time and bytes of what is within the bounds.
    shown: Vec<(u64, i64, Vec<u8>)>,
    /// Rows and bytes in the table.
    rows: u64,
    bytes: u64,
    due: Option<i64>,
    /// What went wrong, as it had to.
    errors: Vec<String>,
}

struct Notes<S: ObjectState> {
    state: S,
    journal: Journal<S>,
    other: Journal<S>,
    renewals: std::rc::Rc<std::cell::Cell<u32>>,
}

impl<S: ObjectState> Notes<S> {
    fn newest(&self) -> Result<do_core::journal::Facts> {
        let Newest { facts, is_renewed, .. } = self.journal.newest()?;
        self.renewals.set(self.renewals.get() + u32::from(is_renewed));
        Ok(facts)
    }

    fn append(&self, bytes: usize) -> Result<()> {
        let newest = self.newest()?;
        let content = vec![u8::try_from(newest.seq % 251)?; bytes];
        self.journal.append(&newest, self.state.now(), 7, &content)?;
        let renewals = self.renewals.clone();
        self.journal.look_later(async move |newest| {
            renewals.set(renewals.get() + u32::from(newest.unwrap().is_renewed));
        });
        // A neighbour in the same table.
        let other = self.other.newest()?.facts;
        self.other.append(&other, self.state.now(), 1, b"other")?;
        Ok(())
    }

    fn run(&self, command: Command) -> Result<Vec<String>> {
        let fails = || {
            self.append(10)?;
            self.append(10)?;
            Err::<(), _>(Failure::from(Error::new(ErrorKind::Application, "undone")))
        };
        match command {
            Command::Append(bytes) => self.append(bytes)?,
            Command::Undone(looks) => {
                self.state.sql().transaction(fails).unwrap_err();
                if looks {
                    self.append(1)?;
                }
            }
            Command::Taken => drop(self.journal.transaction(fails).unwrap_err()),
            Command::DeleteAll => self.state.delete_all()?,
            Command::Expire => drop(self.journal.expire(&self.newest()?)?),
            Command::Wrong => {
                let newest = self.newest()?;
                let before = self.journal.first_from(0)?.unwrap();
                let append = |after, kind, bytes: &[u8]| {
                    self.journal.append(after, self.state.now(), kind, bytes).unwrap_err()
                };
                return Ok([
                    append(&newest, 0, b""),
                    append(&newest, 1, &vec![0; ENTRY_BYTES + 1]),
                    append(&before, 1, b"again"),
                ]
                .map(|error| format!("{:?}: {error}", error.kind()))
                .into());
            }
            Command::Look => {}
        }
        Ok(Vec::new())
    }

    fn seen(&self, errors: Vec<String>) -> Result<Seen> {
        let newest = self.newest()?;
        let mut shown = Vec::new();
        self.journal.after(self.journal.floor(&newest)? - 1, u64::MAX, |kept| {
            assert!(self.journal.is_within(&kept.facts, &newest));
            shown.push((kept.facts.seq, kept.facts.at.as_millis(), kept.bytes));
            Ok(ControlFlow::Continue(()))
        })?;
        let sql = "SELECT count(*), coalesce(sum(length(bytes)), 0) FROM _notes WHERE journal = 'a'";
        let table = self.state.sql().exec(sql, ())?;
        Ok(Seen {
            epoch: newest.epoch,
            seq: newest.seq,
            renewals: self.renewals.get(),
            now: self.state.now().as_millis(),
            shown,
            rows: table.first().unwrap().at(0)?,
            bytes: table.first().unwrap().at(1)?,
            due: self.journal.due()?.map(Timestamp::as_millis),
            errors,
        })
    }
}

impl<S: ObjectState> DurableObject<S> for Notes<S> {
    fn new(state: S) -> Result<Self> {
        let Config { entries, bytes, age_ms } = serde_json::from_str(&state.env().var("CONFIG")?)?;
        let bounds =
            Bounds { max_entries: entries, max_bytes: bytes, max_age: age_ms.map(Duration::from_millis) };
        let journal = Journal::new(&state, TABLE, "a", bounds);
        let other = Journal::new(&state, TABLE, "b", Bounds { max_entries: 1, ..Bounds::default() });
        Ok(Self { journal, other, state, renewals: Default::default() })
    }

    async fn fetch(&self, request: Request) -> Result<Response> {
        let command: Command = request.into_body().json(1_000).await?;
        let errors = self.run(command)?;
        Ok(reply::json(&self.seen(errors)?)?)
    }
}

fn builder(config: Config) -> do_core::kit::Builder {
    Kit::builder().object::<Notes<_>>("NOTES").var("CONFIG", serde_json::to_string(&config).unwrap())
}

struct World {
    kit: Kit,
    notes: HostStub,
}

impl World {
    fn new(config: Config, seed: u64) -> Self {
        Self::of(builder(config).seed(seed).start().unwrap())
    }

    fn of(kit: Kit) -> Self {
        let notes = kit.namespace("NOTES").unwrap().named("notes").unwrap();
        Self { kit, notes }
    }

    async fn run(&self, command: Command) -> Seen {
        let request = Request::new(serde_json::to_vec(&command).unwrap().into());
        let seen = self.notes.fetch(request).await.unwrap().into_body().json(1 << 24).await.unwrap();
        self.kit.settle().await;
        seen
    }
}

const UNBOUNDED: Config = Config { entries: 1_000, bytes: 1 << 20, age_ms: None };

/// What should be there.
struct Model {
    config: Config,
    epoch: u64,
    seq: u64,
    entries: VecDeque<(u64, i64, Vec<u8>)>,
}

impl Model {
    fn append(&mut self, now: i64, bytes: usize) {
        let content = vec![u8::try_from(self.seq % 251).unwrap(); bytes];
        self.seq += 1;
        self.entries.push_back((self.seq, now, content));
    }

    fn shown(&self, now: i64) -> Vec<(u64, i64, Vec<u8>)> {
        let mut total = 0;
        let within = |entry: &&(u64, i64, Vec<u8>)| {
            total += entry.2.len() as u64;
            self.seq - entry.0 < self.config.entries
                && total <= self.config.bytes
                && self.config.age_ms.is_none_or(|age| entry.1 >= now - i64::try_from(age).unwrap())
        };
        let mut shown: Vec<_> = self.entries.iter().rev().take_while(within).cloned().collect();
        shown.reverse();
        shown
    }

    /// Whatever was done, the journal shows what it should, and holds little more.
    fn check(&self, seen: &Seen, longest: u64) {
        assert_eq!((seen.epoch, seen.seq), (self.epoch, self.seq));
        assert_eq!(seen.shown, self.shown(seen.now));
        let Config { entries, bytes, .. } = self.config;
        assert!(seen.rows <= entries + (entries / 8).max(1) + 1, "{seen:?}");
        assert!(seen.bytes <= bytes + (bytes / 8).max(1) + longest, "{seen:?}");
    }
}

#[test]
fn random_appends_and_prunings_leave_what_a_model_holds() {
    for_seeds(0..20, |seed| {
        let mut rng = fastrand::Rng::with_seed(seed);
        let config = Config {
            entries: [0, 1, 3, 20, 100][rng.usize(..5)],
            bytes: [0, 100, 1_000, 1 << 20][rng.usize(..4)],
            age_ms: [None, Some(0), Some(1_000), Some(60_000)][rng.usize(..4)],
        };
        let longest = [1, 40, 300][rng.usize(..3)];
        let world = World::new(config, seed);
        world.kit.run(async {
            let first = world.run(Command::Look).await;
            let mut model = Model { config, epoch: first.epoch, seq: 0, entries: VecDeque::new() };
            for _ in 0..100 {
                match rng.u32(..20) {
                    0..=11 => {
                        let bytes = rng.usize(..=longest);
                        let seen = world.run(Command::Append(bytes)).await;
                        model.append(seen.now, bytes);
                        model.check(&seen, longest as u64);
                    }
                    12..=13 => world.kit.advance(Duration::from_millis(rng.u64(..2_000))).await,
                    14 => world.kit.advance(Duration::from_secs(10)).await,
                    15 => world.kit.evict(&world.notes),
                    16 => world.kit.crash(),
                    17 => drop(world.run(Command::Taken).await),
                    18 => {
                        let seen = world.run(Command::Expire).await;
                        let old =
                            |at: i64| config.age_ms.is_some_and(|age| at + age.cast_signed() < seen.now);
                        assert!(seen.rows <= seen.shown.len() as u64 + 1, "{seen:?}");
                        let is_due = config.age_ms.is_some() && !seen.shown.is_empty();
                        assert!(seen.due.is_some() || !is_due, "{seen:?}");
                        assert!(seen.due.is_none_or(|due| due > seen.now), "{seen:?}");
                        assert!(!seen.shown.iter().any(|(_, at, _)| old(*at)));
                    }
                    _ => {
                        let undone = world.run(Command::Undone(rng.bool())).await;
                        let seen = world.run(Command::Look).await;
                        assert_ne!(seen.epoch, model.epoch);
                        if undone.seq > model.seq {
                            model.append(undone.now, 1);
                        }
                        model.epoch = seen.epoch;
                    }
                }
                model.check(&world.run(Command::Look).await, longest as u64);
            }
        });
    });
}

#[test]
fn numbers_that_are_rolled_back_end_the_epoch_once() {
    for looks in [true, false] {
        for evicts in [true, false] {
            let world = World::new(UNBOUNDED, 1);
            world.kit.run(async {
                let before = world.run(Command::Append(1)).await;
                world.run(Command::Undone(looks)).await;
                if evicts {
                    world.kit.evict(&world.notes);
                }
                let after = world.run(Command::Look).await;
                assert_ne!(after.epoch, before.epoch, "even when the instance is gone that gave them");
                assert_eq!(after.seq, 1 + u64::from(looks));
                assert_eq!(after.renewals, u32::from(!evicts));
                assert_eq!(world.run(Command::Append(1)).await.epoch, after.epoch);
            });
        }
    }
}

#[test]
fn numbers_of_a_transaction_of_the_journal_can_be_given_again() {
    let world = World::new(UNBOUNDED, 1);
    world.kit.run(async {
        let before = world.run(Command::Append(1)).await;
        let after = world.run(Command::Taken).await;
        assert_eq!((after.epoch, after.seq, after.renewals), (before.epoch, 1, 0));
    });
}

#[test]
fn e14_after_delete_all_another_epoch_begins() {
    for appends in [true, false] {
        let world = World::new(UNBOUNDED, 1);
        world.kit.run(async {
            let mut before = world.run(Command::Append(1)).await;
            if !appends {
                // An instance that told a position, and gave none.
                world.kit.evict(&world.notes);
                before = world.run(Command::Look).await;
            }
            let after = world.run(Command::DeleteAll).await;
            assert_ne!(after.epoch, before.epoch);
            assert_eq!((after.seq, after.renewals, after.shown.len()), (0, 1, 0));
            assert_eq!(world.run(Command::Append(1)).await.renewals, 1);
        });
    }
}

#[test]
fn what_cannot_be_appended_changes_nothing() {
    let world = World::new(UNBOUNDED, 1);
    world.kit.run(async {
        let before = world.run(Command::Append(3)).await;
        let after = world.run(Command::Wrong).await;
        let [blank, long, again] = &after.errors[..] else { panic!("{after:?}") };
        assert_eq!(blank, "Invalid: the kind 0 is that of entries without bytes");
        assert_eq!(
            long,
            &format!("Limit: the entry is {} bytes long, the limit is {ENTRY_BYTES}", ENTRY_BYTES + 1)
        );
        assert!(again.starts_with("Sql: UNIQUE constraint failed"), "{again}");
        assert_eq!(after.shown, before.shown);
        assert_eq!((after.epoch, after.seq), (before.epoch, before.seq));
    });
}

#[test]
fn the_longest_entry_is_kept() {
    let world = World::new(Config { bytes: 1 << 22, ..UNBOUNDED }, 1);
    world.kit.run(async {
        let seen =
            world.notes.fetch(Request::new(format!("{{\"Append\":{ENTRY_BYTES}}}").into())).await.unwrap();
        let seen: Seen = seen.into_body().json(1 << 24).await.unwrap();
        assert_eq!(seen.bytes, ENTRY_BYTES as u64);
    });
}

#[test]
fn an_old_entry_goes_when_it_is_due_and_its_number_stays() {
    let world = World::new(Config { age_ms: Some(8_000), ..UNBOUNDED }, 1);
    world.kit.run(async {
        let first = world.run(Command::Append(5)).await;
        // Its age and an eighth of it.
        assert_eq!(first.due, Some(first.now + 9_000));
        world.kit.advance(Duration::from_millis(8_001)).await;
        let hidden = world.run(Command::Look).await;
        assert_eq!((hidden.shown.len(), hidden.bytes), (0, 5));
        world.kit.advance(Duration::from_millis(999)).await;
        let gone = world.run(Command::Expire).await;
        assert_eq!((gone.seq, gone.rows, gone.bytes, gone.due), (1, 1, 0, None));
        assert_eq!(gone.epoch, first.epoch);
    });
}

#[test]
fn narrower_bounds_count_at_once_and_wider_ones_show_what_is_left() {
    let world = World::new(UNBOUNDED, 1);
    world.kit.run(async {
        for _ in 0..20 {
            world.run(Command::Append(10)).await;
        }
        world.kit.deploy(builder(Config { entries: 5, ..UNBOUNDED })).unwrap();
        let narrow = World::of(world.kit.clone());
        assert_eq!(narrow.run(Command::Look).await.shown.first().unwrap().0, 16);
        assert_eq!(narrow.run(Command::Append(10)).await.rows, 5);
        world.kit.deploy(builder(UNBOUNDED)).unwrap();
        let wide = World::of(world.kit.clone());
        let seen = wide.run(Command::Append(10)).await;
        assert_eq!(seen.shown.first().unwrap().0, 17);
        assert_eq!(seen.seq, 22);
    });
}

#[test]
fn c6_what_a_crash_takes_away_was_never_seen() {
    let steps = |strike: Option<u64>| {
        let world = World::new(UNBOUNDED, 1);
        if let Some(step) = strike {
            world.kit.at_step(step, &Strike::LosePower);
        }
        world.kit.run(async {
            let mut last = None;
            for _ in 0..3 {
                let request = Request::new(r#"{"Append":1}"#.into());
                if let Ok(response) = world.notes.fetch(request).await
                    && let Ok(seen) = response.into_body().json::<Seen>(1 << 20).await
                {
                    last = Some(seen);
                }
            }
            world.kit.heal();
            let now = world.run(Command::Look).await;
            if let Some(last) = last {
                assert_eq!(now.epoch, last.epoch);
                assert!(now.shown.starts_with(&last.shown), "{now:?} {last:?}");
            }
        });
        world.kit.steps()
    };
    for step in 0..steps(None) {
        steps(Some(step));
    }
}
