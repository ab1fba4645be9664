use super::{pending::read_payload, store::Row};
use crate::{Error, Failure, Timestamp};
use serde::de::DeserializeOwned;
use std::fmt;

/// One run of a job or of a slot, as [`Schedule::run_due`](super::Schedule::run_due) gives it.
///
/// It comes at least once: after a crash it may run again although it had done its work, with the same
/// [`idempotency_key`](Self::idempotency_key). What it writes behind its last await commits together with the fact that
/// it ran, so that writes alone are done exactly once.
#[derive(Debug)]
pub struct Job {
    name: String,
    scheduled: Timestamp,
    attempt: u32,
    attempts: u32,
    missed: u64,
    payload: Option<String>,
}

impl Job {
    pub(super) fn new(row: &Row, attempts: u32, missed: u64) -> Self {
        Self {
            name: row.name().to_owned(),
            scheduled: row.tick.min(row.due),
            attempt: row.attempt,
            attempts,
            missed,
            payload: row.payload.clone(),
        }
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The time that it was set to run at, or its tick; it runs later, a retry much later.
    pub fn scheduled(&self) -> Timestamp {
        self.scheduled
    }

    /// Which run this is since the last one that succeeded or was given up: 1 is the first. A run that was cut off by a
    /// crash counts.
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// Whether there is no further run if this one fails.
    pub fn is_last_attempt(&self) -> bool {
        self.attempt >= self.attempts
    }

    /// How many ticks before this one nobody ran; 1,000 stands for that and more. 0 for what runs once.
    pub fn missed(&self) -> u64 {
        self.missed
    }

    /// What [`Plan::payload`](super::Plan::payload) was given. `()` and an `Option` also read a job without one.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`](crate::ErrorKind::Invalid) when it is of another type. A `?` makes the run a failed one, and
    /// after the last the payload is in the dead letter.
    pub fn payload<T: DeserializeOwned>(&self) -> Result<T, Error> {
        read_payload(&self.name, self.payload.as_deref())
    }

    /// The same for each run of this job at this time and for no other of this object: for whoever is asked to do
    /// something once. A job that is put anew in a run that then fails has no longer the time of that run.
    pub fn idempotency_key(&self) -> String {
        format!("{}@{}", self.name, self.scheduled)
    }

    /// For a name that the object has no code for: the job becomes a dead letter at once, a recurring one as a whole, and
    /// can be replayed when there is code.
    ///
    /// # Errors
    /// Always.
    pub fn unknown<T>(&self) -> Result<T, Failure> {
        Err(Ended { why: End::Unknown, message: format!("no code for a job named {:?}", self.name) }.into())
    }

    /// For a failure that no retry can mend: the run is the last one, and the job, or this tick of a recurring one,
    /// becomes a dead letter at once.
    ///
    /// # Errors
    /// Always.
    pub fn give_up<T>(&self, why: impl fmt::Display) -> Result<T, Failure> {
        Err(Ended { why: End::GivenUp, message: why.to_string() }.into())
    }
}

/// Why no further run is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Unknown,
    GivenUp,
}

/// The error that says so.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) why: End,
    message: String,
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Ended {}
