//! D: what is about frames.
use crate::testing::{case::Case, driver::Driver};
pub(super) fn cases<D: Driver>() -> Vec<Case<D>> {
    vec![]
}
