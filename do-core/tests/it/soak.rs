//! Many things at once, by a seed: every caller gets an answer, and in the end nothing is left in memory.

use crate::common::{Rig, join};
use do_core::ErrorKind;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

/// A small generator, so that a run can be repeated (Knuth's constants).
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }

    fn step(&mut self, depth: u32) -> Value {
        let ms = self.below(400); // short enough that no nest of gates takes 30 s
        match self.below(if depth > 2 { 9 } else { 15 }) {
            0 | 1 => json!({"sleep": ms}),
            2 => json!({"note": "x"}),
            3 => json!({"set_alarm": ms}),
            4 => json!("delete_alarm"),
            5 => json!({"increment": if ms < 200 { None } else { Some(ms) }}),
            6 => match ms % 8 {
                0 => json!({"panic": "soak"}),
                1 => json!({"reset": "soak"}),
                2 => json!({"sql": "INSERT INTO child VALUES (99)"}),
                3 => json!("delete_all"),
                _ => json!({"fail": "soak"}),
            },
            7 => json!({"transaction": [{"note": "y"}, {"set_alarm": ms}]}),
            8 => json!({"catch": [{"fail": "soak"}]}),
            9 => json!({"gate": self.steps(depth + 1)}),
            10 => json!({"two_gates": [self.steps(depth + 1), self.steps(depth + 1)]}),
            11 => json!({"wait_until": self.steps(depth + 1)}),
            // Nothing that sets the alarm: with a fault behind it, it would rightly run for ever (rule E10).
            12 => {
                let fault = if ms < 200 { json!({"fail": "soak"}) } else { json!({"panic": "soak"}) };
                json!({"on_alarm": [{"sleep": ms}, {"gate": [{"sleep": ms}, {"note": "z"}]}, {"up_to_runs": [ms / 40, [fault]]}]})
            }
            13 => json!({"call_detached": [self.object(), self.steps(depth + 1)]}),
            _ => json!({"gate_over_background": self.steps(depth + 1)}),
        }
    }

    fn steps(&mut self, depth: u32) -> Value {
        (0..=self.below(3)).map(|_| self.step(depth)).collect()
    }

    fn object(&mut self) -> String {
        format!("o{}", self.below(4))
    }
}

/// Half a second, in all shards.
async fn pass(rig: &Rig) {
    rig.pass(500).await;
    for n in 0..4 {
        rig.why_awake(&format!("o{n}")).await;
    }
}

async fn pass_until_answered<T>(rig: &Rig, calls: &[JoinHandle<T>]) {
    for _ in 0..1_000 {
        if calls.iter().all(JoinHandle::is_finished) {
            return;
        }
        pass(rig).await;
    }
}

async fn soak(seed: u64, shards: usize) {
    let rig = if shards == 1 { Rig::new() } else { Rig::with(|builder| builder.shards(3)) };
    let mut random = Random(seed);
    let mut calls = Vec::new();
    for _ in 0..150 {
        let (object, steps) = (random.object(), random.steps(0));
        calls.push(rig.begin(&object, steps));
        if random.below(3) == 0 {
            rig.pass(random.below(600)).await;
        }
    }
    pass_until_answered(&rig, &calls).await;
    for call in calls {
        assert!(call.is_finished(), "seed {seed}: a call was not answered");
        if let Err(error) = join(call).await {
            let expected = [ErrorKind::Application, ErrorKind::Reset, ErrorKind::Overloaded, ErrorKind::Sql];
            assert!(expected.contains(&error.kind()), "seed {seed}: {error:?}");
        }
    }
    // Alarms and background work go on for a while, and may set alarms and change their handler again.
    let mut awake = Vec::new();
    for _ in 0..20 {
        for n in 0..4 {
            let call = rig.begin(&format!("o{n}"), json!([{"on_alarm": []}, "delete_alarm"]));
            pass_until_answered(&rig, std::slice::from_ref(&call)).await;
            assert!(call.is_finished(), "seed {seed}: o{n}");
            let _ = join(call).await; // which may have been reset by what still runs there
        }
        for _ in 0..60 {
            pass(&rig).await;
        }
        awake.clear();
        for n in 0..4 {
            awake.extend(rig.why_awake(&format!("o{n}")).await);
        }
        if awake.is_empty() {
            return;
        }
    }
    panic!("seed {seed}: {awake:?}");
}

/// `DO_CORE_SOAK` is how many seeds to try instead.
fn seeds(from: u64, count: u64) -> std::ops::Range<u64> {
    let wanted = std::env::var("DO_CORE_SOAK").ok().and_then(|n| n.parse().ok());
    from..from + wanted.unwrap_or(count)
}

#[tokio::test]
async fn everybody_is_answered_and_nothing_is_left() {
    for seed in seeds(1, 2) {
        soak(seed, 1).await;
    }
}

#[tokio::test]
async fn everybody_is_answered_across_shards_too() {
    for seed in seeds(1_001, 1) {
        soak(seed, 3).await;
    }
}
