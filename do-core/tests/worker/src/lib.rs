//! The object half of the contract as a Worker: the probe under two namespaces, and the suite's entry. The driver
//! half is the test `contract` of `do-core`.

do_core::export!(Probe = do_core::testing::Probe<_>, Other = do_core::testing::Probe<_>);
do_core::export!(fetch = do_core::testing::route);
