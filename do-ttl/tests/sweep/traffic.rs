//! What the alarm costs: sets and wakes for each million puts at a thousand a second.
//!
//! The whole million with `DO_LONG` in the environment. Without, fewer puts over a minute and a half, so that what was put
//! first expires in that time too: the costs are of the seconds, not of the puts.

use crate::lab::{Lab, SECOND, Setup, wakes, within};
use do_core::prelude::*;
use do_ttl::Ttl;
use std::rc::Rc;

/// One put.
type Workload = fn(&Lab, &mut fastrand::Rng, u64);

/// How many puts there are, and how far apart.
#[derive(Clone, Copy)]
struct Traffic {
    puts: u64,
    apart: Duration,
}

impl Traffic {
    const SHORT: Self = Self { puts: 15_000, apart: Duration::from_millis(6) };
    const LONG: Self = Self { puts: 1_000_000, apart: Duration::from_millis(1) };

    fn time(self) -> Duration {
        self.apart.saturating_mul(self.puts as u32)
    }
}

/// Puts them, and gives how often the alarm was set and came until then.
fn traffic(workload: Workload, traffic: Traffic) -> (u64, u64) {
    let kit = Setup::new().start();
    kit.run(async {
        let sets = kit.spawn({
            let kit = kit.clone();
            async move {
                within(&kit, move |lab: Rc<Lab>| async move {
                    let mut random = fastrand::Rng::with_seed(8);
                    for n in 0..traffic.puts {
                        workload(&lab, &mut random, n);
                        lab.state.sleep(traffic.apart).await;
                    }
                    lab.first().stats().unwrap().alarms_set
                })
                .await
            }
        });
        kit.advance(traffic.time() + SECOND).await;
        (sets.await, wakes().len() as u64)
    })
}

fn uniform(lab: &Lab, random: &mut fastrand::Rng, n: u64, most: i64) {
    let ttl = Ttl::millis(random.i64(1_000..most));
    let _ = lab.first().put(&n.to_string(), "v", ttl).unwrap();
}

const WORKLOADS: [(&str, Workload); 4] = [
    ("constant 60 s", |lab, _, n| {
        let _ = lab.first().put(&n.to_string(), "v", Ttl::secs(60)).unwrap();
    }),
    ("uniform 1 s to 1 h", |lab, random, n| uniform(lab, random, n, 3_600_000)),
    ("uniform 1 s to 60 s", |lab, random, n| uniform(lab, random, n, 60_000)),
    ("10,000 sliding sessions of 60 s", |lab, random, _| {
        let key = random.u32(0..10_000).to_string();
        if lab.first().get(&key).unwrap().is_none() {
            let _ = lab.first().put(&key, "v", Ttl::sliding(SECOND * 60)).unwrap();
        }
    }),
];

#[test]
fn t3_the_alarm_is_set_and_comes_about_once_in_the_slack_however_many_puts_there_are() {
    let is_long = std::env::var_os("DO_LONG").is_some();
    let of = if is_long { Traffic::LONG } else { Traffic::SHORT };
    let seconds = of.time().as_secs();
    for (name, workload) in WORKLOADS {
        let (sets, wakes) = traffic(workload, of);
        println!("{name}: {sets} sets and {wakes} wakes for {} puts in {seconds} s", of.puts);
        assert!((1..=seconds).contains(&wakes), "{name}: {wakes}");
        // 1,100 for a thousand seconds; and a few at the beginning, when each put can be the soonest, which the million has
        // among its 1,100.
        let most = seconds * 1_100 / 1_000 + if is_long { 0 } else { 10 };
        assert!((1..=most).contains(&sets), "{name}: {sets}");
    }
}
