//! The object half of the contract as a Worker: the probe under two namespaces, and the suite's entry. The driver
//! half is the test `contract` of `do-core`.

pub use do_core::testing::{Probe, route};
