#![allow(missing_docs, dead_code)] // A placeholder for the host's own module, so that this branch compiles.
pub(crate) mod ws;
pub type HostState = ();
