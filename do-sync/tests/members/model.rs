//! Random histories of clients, faults and time, checked against what a room's members must always be.
//!
//! - The log: for each member `joined`, `left`, `joined`, ... alternate, numbers have no holes.
//! - A client: after the hello come the entries behind its position, in order, without a hole.
//! - In the end, when everything has settled: the log's view, the presence, and the members of those clients whose
//!   connections live are one and the same, and others see of each what the log says last.

use super::{
    hall::{Flaw, Rules, ask, hall, kit},
    watch::{Heard, There, frames, replay},
};
use do_core::{
    kit::{Client, Failing, Kit, Strike, for_seeds},
    prelude::Duration,
    tokio::HostStub,
};
use std::panic::{AssertUnwindSafe, catch_unwind};

const NAMES: [&str; 4] = ["ann", "bob", "carl", "dora"];

struct Guest {
    name: &'static str,
    client: Client,
    heard: Heard,
    /// It did something that ends the connection.
    going: bool,
}

struct Play {
    kit: Kit,
    hall: HostStub,
    chance: fastrand::Rng,
    guests: Vec<Guest>,
    /// Those whose handle is gone, with what they had heard.
    past: Vec<Heard>,
    faults: bool,
}

impl Play {
    fn new(rules: Rules, seed: u64, faults: bool) -> Self {
        let kit = kit(rules, seed);
        let hall = hall(&kit);
        let chance = fastrand::Rng::with_seed(seed ^ 0x5eed);
        Self { kit, hall, chance, guests: Vec::new(), past: Vec::new(), faults }
    }

    fn name(&mut self) -> &'static str {
        NAMES[self.chance.usize(..NAMES.len())]
    }

    fn query(&mut self) -> (&'static str, String) {
        let name = self.name();
        let data = if self.chance.bool() { format!("&d={}", self.chance.u8(..4)) } else { String::new() };
        (name, format!("/enter?m={name}{data}"))
    }

    fn welcome(&mut self, name: &'static str, client: Client) {
        self.guests.push(Guest { name, client, heard: Heard::default(), going: false });
    }

    /// Somebody who has not been told to go.
    fn guest(&mut self) -> Option<&mut Guest> {
        let among: Vec<usize> = (0..self.guests.len()).filter(|i| !self.guests[*i].going).collect();
        let index = *among.get(self.chance.usize(..among.len().max(1)))?;
        self.guests.get_mut(index)
    }

    async fn act(&mut self) {
        match self.chance.u8(..if self.faults { 22 } else { 14 }) {
            0..=3 => {
                let (name, query) = self.query();
                if let Ok(client) = self.kit.connect(&self.hall, &query).await {
                    self.welcome(name, client);
                }
            }
            4 => {
                let ((one, first), (two, second)) = (self.query(), self.query());
                let (kit, hall) = (self.kit.clone(), self.hall.clone());
                let other = self.kit.spawn(async move { kit.connect(&hall, &second).await });
                let client = self.kit.connect(&self.hall, &first).await;
                for (name, client) in [(one, client), (two, other.await)] {
                    if let Ok(client) = client {
                        self.welcome(name, client);
                    }
                }
            }
            5 | 6 => {
                if let Some(guest) = self.guest() {
                    guest.going = guest.client.close(Some((1_000, "bye"))).is_ok() || guest.going;
                }
            }
            7 => {
                if let Some(index) = self.guests.iter().position(|guest| !guest.going) {
                    let mut guest = self.guests.swap_remove(index);
                    guest.heard.listen(&guest.client);
                    self.past.push(guest.heard);
                }
            }
            8 => {
                if let Some(guest) = self.guest() {
                    guest.going = guest.client.send("x".repeat(1_001)).is_ok() || guest.going;
                }
            }
            9 => {
                let name = self.name();
                let _ = ask::<usize>(&self.hall, &format!("/kick?m={name}")).await;
            }
            10 => {
                let data = self.chance.u8(..4);
                if let Some(guest) = self.guest() {
                    let _ = guest.client.send(format!("data:{data}")); // it may be gone
                }
            }
            11 => drop(self.kit.hibernate(&self.hall).await),
            12 => self.kit.settle().await,
            13 => self.kit.advance(Duration::from_millis(self.chance.u64(..7_000))).await,
            14 => self.kit.evict(&self.hall),
            15 => self.kit.crash(),
            16 => self.kit.lose_power(),
            17 => self.kit.fail_next(&self.hall, Failing::Sql),
            18 => self.kit.fail_next(&self.hall, Failing::Commit),
            19 => self.kit.fail_next(&self.hall, Failing::CrashBeforeCommit),
            20 => self.kit.fail_next(&self.hall, Failing::CrashAfterCommit),
            _ => self.kit.fail_next(&self.hall, Failing::SetAlarm),
        }
    }

    fn listen(&mut self) {
        for guest in &mut self.guests {
            guest.heard.listen(&guest.client);
        }
    }

    async fn check(&mut self) -> There {
        self.listen();
        let log = frames(&self.hall, "").await;
        let there = replay(&log).unwrap_or_else(|wrong| panic!("{wrong}; the log: {log:#?}"));
        for heard in self.guests.iter().map(|guest| &guest.heard).chain(&self.past) {
            heard.check(&log).unwrap_or_else(|wrong| panic!("{wrong}; the log: {log:#?}"));
        }
        there
    }

    async fn end(mut self) {
        self.kit.heal();
        // Closes are read, answered and told; who is waited for is waited for no longer.
        for _ in 0..3 {
            self.kit.settle().await;
            self.listen();
        }
        self.kit.advance(Duration::from_secs(30)).await;
        // Whoever went without an event is missed by the next use. That may fail once for what was struck before.
        ask::<usize>(&self.hall, "/kick?m=nobody").await.unwrap();
        self.kit.advance(Duration::from_secs(30)).await;
        let there = self.check().await;
        let mut alive: Vec<&str> = self
            .guests
            .iter()
            .filter(|guest| !guest.going && guest.heard.end.is_none())
            .map(|g| g.name)
            .collect();
        alive.sort_unstable();
        let sockets: Vec<(String, Option<String>, Option<String>)> =
            ask(&self.hall, "/sockets").await.unwrap();
        assert_eq!(
            sockets.iter().map(|(id, ..)| id.as_str()).collect::<Vec<_>>(),
            alive,
            "whose sockets are open"
        );
        alive.dedup();
        assert_eq!(there.keys().map(String::as_str).collect::<Vec<_>>(), alive, "who is there by the log");
        let present: There = ask::<Vec<_>>(&self.hall, "/presence").await.unwrap().into_iter().collect();
        assert_eq!(present, there, "who is there by the presence");
        for (id, data, _) in &sockets {
            assert_eq!(Some(data), there.get(id), "what {id}'s socket carries");
        }
        let rows: Vec<serde_json::Value> = ask(&self.hall, "/rows").await.unwrap_or_default();
        assert_eq!(rows.len(), there.len(), "{rows:?}");
    }
}

fn run(rules: Rules, seed: u64, acts: usize, faults: bool) {
    let mut play = Play::new(rules, seed, faults);
    let kit = play.kit.clone();
    kit.run(async move {
        for act in 0..acts {
            play.act().await;
            if act % 8 == 7 && !play.faults {
                play.kit.settle().await;
                play.check().await;
            }
        }
        play.end().await;
    });
}

fn all_rules() -> impl Iterator<Item = Rules> {
    (0..3).flat_map(|duplicate| [0, 5].map(|grace| Rules { duplicate, grace, ..Rules::default() }))
}

#[test]
fn joined_and_left_alternate_whatever_clients_do() {
    for_seeds(0..6, |seed| all_rules().for_each(|rules| run(rules, seed, 60, false)));
}

#[test]
fn joined_and_left_alternate_whatever_fails() {
    for_seeds(100..110, |seed| all_rules().for_each(|rules| run(rules, seed, 60, true)));
}

/// A script of arrivals, returns and departures that is struck before one of its steps. Gives how many it has.
fn struck(rules: Rules, at: Option<(u64, u8)>) -> u64 {
    let mut play = Play::new(rules, 7, true);
    if let Some((step, how)) = at {
        let strike = match how {
            0 => Strike::Evict(play.hall.clone()),
            1 => Strike::Crash,
            _ => Strike::LosePower,
        };
        play.kit.at_step(step, &strike);
    }
    let kit = play.kit.clone();
    kit.run(async move {
        for (name, query) in [("ann", "m=ann&d=x"), ("bob", "m=bob"), ("ann", "m=ann")] {
            if let Ok(client) = play.kit.connect(&play.hall, &format!("/enter?{query}")).await {
                play.welcome(name, client);
            }
        }
        if let Some(guest) = play.guests.iter_mut().find(|guest| guest.name == "ann") {
            guest.going = guest.client.close(None).is_ok();
        }
        if let Ok(client) = play.kit.connect(&play.hall, "/enter?m=ann&d=y").await {
            play.welcome("ann", client);
        }
        play.kit.settle().await;
        let _ = ask::<usize>(&play.hall, "/kick?m=bob").await; // it may be struck
        play.guests.retain(|guest| guest.name != "bob");
        play.kit.settle().await;
        let steps = play.kit.steps();
        play.end().await;
        steps
    })
}

#[test]
fn b7_d25_a_strike_at_any_step_makes_nobody_join_or_leave_twice() {
    for rules in [Rules::default(), Rules { duplicate: 1, grace: 5, ..Rules::default() }] {
        for step in 0..struck(rules, None) {
            for how in 0..3 {
                struck(rules, Some((step, how)));
            }
        }
    }
}

/// The checks find an object that does it wrongly.
#[test]
fn an_object_that_is_wrong_on_purpose_is_found() {
    for flaw in [Flaw::Twice, Flaw::Forgetful, Flaw::Blank] {
        let found = (0..30).any(|seed| {
            let rules = Rules { duplicate: 1, flaw, ..Rules::default() };
            catch_unwind(AssertUnwindSafe(|| run(rules, seed, 60, false))).is_err()
        });
        assert!(found, "{flaw:?}");
    }
}
