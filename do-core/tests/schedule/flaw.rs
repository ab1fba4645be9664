//! What is wrong with an object, or with the platform under its schedule, on purpose: to see that the checks see it.

pub(crate) const NONE: u8 = 0;
/// Setting the raw slot does nothing after a job failed in the same run.
pub(crate) const NO_REARM_AFTER_FAILURE: u8 = 1;
/// Setting the raw slot does nothing while the alarm runs.
pub(crate) const NO_REARM_IN_RUN: u8 = 2;
/// The handler returns early, without the run, when something was wrong before.
pub(crate) const EARLY_RETURN: u8 = 3;
/// Every instance puts a row of its own.
pub(crate) const DOUBLED: u8 = 4;
/// A job that failed for the last time is cancelled instead of kept.
pub(crate) const LOST: u8 = 5;
/// A time that is not well in the future is never reached.
pub(crate) const PAST_IS_NEVER: u8 = 6;
