//! The WebSocket protocol: own framing and a table of parked connections, so that an idle socket costs no task,
//! no codec and no buffer.
//!
//! Nothing here knows objects. A shard polls its [`Connections`] when a waker says so and hands the events to
//! the engine, which answers through [`Transport`](crate::engine::Transport).

mod connection;
mod connections;
pub(super) mod decoder;
mod frame;
mod handshake;
mod outbox;
mod unmask;

pub(crate) use connection::ConnEvent;
pub(crate) use connections::{ConnLimits, Connections};
pub(crate) use handshake::response;

#[cfg(test)]
mod tests;
