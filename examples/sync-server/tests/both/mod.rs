//! What holds for the sync server on every host, from one source: `it` runs it against the native program, `worker`
//! against the Worker in workerd. Each gives [`Place`](crate::common::Place) and [`Server`](crate::common::Server)
//! the same methods to start a server and to look into it.

mod crash;
mod events;
mod http;
mod resume;
pub(crate) mod ws;
