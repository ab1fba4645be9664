//! The probe's steps over work for the first event of an instance.

use super::{probe::Inner, run::At, step::Step};
use crate::{Failure, ObjectState};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// What to ask for.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum FirstEventStep {
    /// The steps; those that await are refused, and a failure is noted.
    Do(Vec<Step>),
    /// Background work that runs the steps.
    Begin(Vec<Step>),
    /// How much was asked for in this process by instances of this object and is there still.
    Waiting,
}

/// Beside all instances, so that what a lost one leaves is seen.
static WAITING: Mutex<BTreeMap<[u8; 32], u32>> = Mutex::new(BTreeMap::new());

fn waiting() -> MutexGuard<'static, BTreeMap<[u8; 32], u32>> {
    WAITING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One more that waits, until it is dropped.
struct Waits([u8; 32]);

impl Waits {
    fn of(object: [u8; 32]) -> Self {
        *waiting().entry(object).or_default() += 1;
        Self(object)
    }
}

impl Drop for Waits {
    fn drop(&mut self) {
        if let Some(count) = waiting().get_mut(&self.0) {
            *count = count.saturating_sub(1);
        }
    }
}

impl<S: ObjectState> Inner<S> {
    pub(super) fn first_event_step(&self, step: &FirstEventStep, at: &At<S>) -> Result<Value, Failure> {
        let object = *self.state.id().as_bytes();
        let gone = || Failure::msg("the instance is gone");
        match step {
            FirstEventStep::Do(steps) => {
                let (this, steps, at) = (self.this.upgrade().ok_or_else(gone)?, steps.clone(), at.clone());
                let waits = Waits::of(object);
                self.state.at_first_event(move || {
                    let _waits = waits;
                    if let Err(failure) = this.all_now(&steps, &at) {
                        let _ = this.note(&format!("for the first event: {failure}"));
                    }
                });
            }
            FirstEventStep::Begin(steps) => {
                let (this, steps, at) = (self.this.upgrade().ok_or_else(gone)?, steps.clone(), at.clone());
                let waits = Waits::of(object);
                self.state.at_first_event(move || {
                    let _waits = waits;
                    let work = this.steps(steps, at);
                    this.state.wait_until(async move { drop(work.await) });
                });
            }
            FirstEventStep::Waiting => return Ok(json!(waiting().get(&object).copied().unwrap_or_default())),
        }
        Ok(Value::Null)
    }
}
