//! Linearizability: several clients call one object through stubs at once, while it is evicted, killed and made to fail;
//! what they were answered must be explained by some order of their calls. Objects that are wrong on purpose are caught
//! by the same check.

mod checker;
mod counters;
mod leases;
mod world;
