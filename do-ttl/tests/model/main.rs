//! Random calls of all kinds against a model, while everything happens that can: the object leaves memory, is evicted, the
//! process is killed at any step, also between the slices of a sweep, power and storage fail, alarms are late or come twice,
//! and the clock is set forward and back.
//!
//! The table is looked at in the turns in which it is written, so that looking is no event of its own: an object that
//! nobody asks anything has to be swept by its alarm alone.
#![cfg(not(target_arch = "wasm32"))]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)] // tests fail by panics

mod lab;
mod last;
mod model;
mod ops;
mod play;

use do_core::kit::Failing;
use ops::{Call, Case, Drawn, Life, Op, Setup, Turn};
use proptest::{prelude::*, test_runner::Config};

/// So many cases, unless the variable `PROPTEST_CASES` says otherwise; many more in a long run.
fn cases(default: u32) -> Config {
    let config = Config::default();
    let set = std::env::var_os("PROPTEST_CASES").is_some();
    let long = std::env::var_os("DO_LONG").is_some();
    let cases = if set {
        config.cases
    } else if long {
        default * 100
    } else {
        default
    };
    Config { cases, failure_persistence: None, max_shrink_iters: 1_500, ..config }
}

proptest! {
    #![proptest_config(cases(64))]

    #[test]
    fn whatever_happens_stores_are_as_the_model_says(case in ops::case()) {
        let complaint = play::complaint(&case);
        prop_assert!(complaint.is_none(), "{}", complaint.unwrap_or_default());
    }
}

/// Which chance shows once in thousands of cases.
#[test]
fn a_turn_that_swept_and_is_undone_gives_back_what_it_swept() {
    let put = |life| Turn { calls: vec![Call::Put(0, 0, Drawn(0, 0), life)], ..Turn::default() };
    let setup = Setup { slack: 60_000, slice_rows: 2, slice_bytes: 50, rows_per_wake: 1, ..Setup::default() };
    let ops = vec![
        Op::Beside(Turn { delay: 1_370, sweeps: true, ..put(Life::Never) }),
        Op::Turn(put(Life::Millis(1))),
        Op::Fail(Failing::Commit),
        Op::Advance(1_370),
        Op::Turn(put(Life::Never)),
    ];
    assert_eq!(play::complaint(&Case { seed: 0, setup, ops }), None);
}
