//! The object half of the contract as a Worker: the probe under all namespaces of both deployments, and the suite's
//! entry. The driver half is the test `contract` of `do-core`.

use do_core::testing::{Probe as Class, route};

do_core::export!(
    Probe = Class<_>,
    Other = Class<_>,
    Before = Class<_>,
    After = Class<_>,
    Gone = Class<_>,
    New = Class<_>,
);
do_core::export!(fetch = route);
