//! What a room is told when it is made.

use crate::{History, Inbound, Members, Outbound};

#[derive(Debug, Clone, Default)]
pub(crate) struct Settings {
    pub(crate) history: History,
    pub(crate) members: Members,
    pub(crate) outbound: Outbound,
    pub(crate) inbound: Inbound,
    pub(crate) max_sockets: Option<usize>,
}
