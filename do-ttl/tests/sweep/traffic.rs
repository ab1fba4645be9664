//! What the alarm costs: sets and wakes for each million puts. The whole million with `DO_LONG` in the environment.

use crate::lab::{Lab, SECOND, Setup, wakes, within};
use do_core::prelude::*;
use do_ttl::Ttl;
use std::rc::Rc;

/// A put of each millisecond.
type Workload = fn(&Lab, &mut fastrand::Rng, u64);

/// Puts that many, and gives how often the alarm was set and came until then.
fn traffic(workload: Workload, puts: u64) -> (u64, u64) {
    let kit = Setup::new().start();
    kit.run(async {
        let sets = kit.spawn({
            let kit = kit.clone();
            async move {
                within(&kit, move |lab: Rc<Lab>| async move {
                    let mut random = fastrand::Rng::with_seed(8);
                    for n in 0..puts {
                        workload(&lab, &mut random, n);
                        lab.state.sleep(Duration::from_millis(1)).await;
                    }
                    lab.first().stats().unwrap().alarms_set
                })
                .await
            }
        });
        kit.advance(Duration::from_millis(puts + 1)).await;
        let measured = (sets.await, wakes().len() as u64);
        measured
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
    let puts = if std::env::var_os("DO_LONG").is_some() { 1_000_000 } else { 15_000 };
    for (name, workload) in WORKLOADS {
        let (sets, wakes) = traffic(workload, puts);
        println!("{name}: {sets} sets and {wakes} wakes for {puts} puts in {} s", puts / 1_000);
        let seconds = puts / 1_000;
        assert!(wakes <= seconds, "{name}: {wakes}");
        // A few at the beginning, when each put can be the soonest.
        assert!(sets <= seconds + seconds / 20 + 20, "{name}: {sets}");
        assert!(puts < 1_000_000 || sets <= 1_100, "{name}: {sets}");
    }
}
