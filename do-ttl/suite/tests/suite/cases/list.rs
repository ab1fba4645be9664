//! Listing.

use do_core::testing::{Case, Driver};

pub(super) fn cases<D: Driver>() -> Vec<Case<D>> {
    vec![]
}
